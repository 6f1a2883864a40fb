"""No input holds up the other sessions for longer than its size explains."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.middleware import FileSystem as FileTools
from sagents_nb.models import RetryingModel
from sagents_nb.redaction import Secrets, redacted
from sagents_nb.runtime.thread import runtime
from tests.faults.serving import Echoing, serving
from tests.talking import agent_of, call

DOUBLINGS = 10
ALLOWED = 0.05
"""Seconds that nobody asks about."""
NOISE = 3.0
"""How many times as long as in a straight line it may take: a collection of garbage, say."""

Work = Callable[[int], Any]


class Stall:
    """How long the runtime loop was at work at most before it got to its next step.

    In seconds of the processor, since whatever else the machine does is not ours.
    """

    def __init__(self) -> None:
        self.longest = self.before = 0.0
        self._task = runtime.submit(self._watch())

    def _look(self) -> None:
        now = time.thread_time()
        self.longest, self.before = max(self.longest, now - self.before), now

    async def _watch(self) -> None:
        self.before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            self._look()

    def end(self) -> float:
        runtime.call(self._look)
        self._task.cancel()
        return self.longest


def answering(status: int, body: Callable[[int], bytes], kind: str) -> Work:
    def work(size: int) -> None:
        sent = body(size)

        def send(self: Echoing) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        with serving() as server, pytest.MonkeyPatch.context() as patch:
            patch.setattr(Echoing, "do_POST", send)
            url = f"http://127.0.0.1:{server.server_port}"
            model = sa.OpenAIChatModel("m", api_key="k" * 20, base_url=url)
            with suppress(sa.ModelError):
                sa.Agent(RetryingModel(model, attempts=1)).run("hi")

    return work


def deltas(size: int) -> None:
    sa.Session(sa.Agent(sa.ScriptedModel(["x" * size], chunk=1))).send("go").result()


def calls(size: int) -> None:
    async def note(n: int) -> str:
        return "ok"

    message = sa.Message.assistant("", [call("note", f"c{n}", n=n) for n in range(size)])
    sa.Session(agent_of(message, "done", tools=[note])).send("go").result()


def result(size: int) -> None:
    def give() -> str:
        return "line\n" * size

    sa.Session(agent_of(call("give"), "done", tools=[give])).send("go").result()


def history(size: int) -> None:
    messages = [m for n in range(size) for m in (sa.Message.user("q"), sa.Message.assistant("a"))]
    session = sa.Session(agent_of("done"), state=sa.State(messages=messages))
    session.send("go").result()


def searched(size: int) -> None:
    session = sa.Session(
        agent_of(
            call("write_file", "c1", file_path="/a", content="some words\n" * size),
            call("search_text", "c2", pattern="w.*d$"),
            call(
                "edit_file",
                "c3",
                file_path="/a",
                old_string="some",
                new_string="",
                replace_all=True,
            ),
            "done",
            middleware=[FileTools()],
        )
    )
    session.send("go").result()


def listed(size: int) -> None:
    session = sa.Session(
        agent_of(
            call("ls", "c1"),
            call("search_text", "c2", pattern="x"),
            "done",
            middleware=[FileTools()],
        )
    )
    for n in range(size):
        session.files.write(f"/d{n % 10}/f{n}", "text")
    session.send("go").result()


def masked(size: int) -> None:
    runtime.call(lambda: redacted("sk-" + "aB3" * size + " =" * size, Secrets({"k" * 20})))


JSON, STREAM = "application/json", "text/event-stream"
WORKS: dict[str, tuple[Work, int]] = {
    "an error of one word": (
        answering(400, lambda n: b'{"error": "%s"}' % (b"aB3" * n), JSON),
        300,
    ),
    "an error of many words": (answering(500, lambda n: b"Bearer ab " * n, "text/plain"), 100),
    "a stream of one line": (answering(200, lambda n: b"data: " + b"x" * n, STREAM), 10_000),
    "a stream of line ends": (answering(200, lambda n: b"\n" * n, STREAM), 1_000),
    "a stream of empty events": (answering(200, lambda n: b"data: {}\n\n" * n, STREAM), 100),
    "deltas": (deltas, 50),
    "calls of one message": (calls, 8),
    "lines of a result": (result, 500),
    "messages of a history": (history, 10),
    "lines of a file": (searched, 50),
    "files": (listed, 5),
    "characters to be masked": (masked, 500),
}


@pytest.fixture(autouse=True)
def warm() -> None:
    sa.Session(agent_of("hi")).send("go").result()


@pytest.mark.soak
@pytest.mark.parametrize("name", WORKS)
def test_a_stall_grows_no_faster_than_what_causes_it(name: str) -> None:
    work, size = WORKS[name]
    stalls = []
    for doubling in range(DOUBLINGS + 1):
        times = []
        for _ in range(3):
            gc.collect()
            stall = Stall()
            work(size * 2**doubling)
            times.append(stall.end())
        stalls.append(min(times))
    print(name, [f"{1000 * stall:.1f}" for stall in stalls])
    assert stalls[-1] < max(ALLOWED, NOISE * 2**4 * max(stalls[-5], 0.002)), stalls
