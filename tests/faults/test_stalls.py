"""Nothing that a provider, a person or a model gives holds up all sessions."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import MessageUpdate
from sagents_nb.models import RetryingModel
from sagents_nb.runtime.foreign import TURN
from sagents_nb.runtime.thread import runtime
from tests.faults.serving import STREAM, Echoing
from tests.talking import agent_of, all_of, call, results, until

# a08: packed bodies, and lines without an end


def sending(encoding: str, body: bytes) -> Any:
    def send(self: Echoing) -> None:
        assert self.headers["accept-encoding"] == "identity"
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-encoding", encoding)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    return send


def asked(server: Any) -> str:
    model = sa.OpenAIChatModel("m", api_key="k", base_url=f"http://127.0.0.1:{server.server_port}")
    return sa.Agent(model, replace_default_middleware=True).run("hi").text


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("identity", STREAM),
        ("gzip", gzip.compress(STREAM)),
        ("X-GZIP", gzip.compress(STREAM)),
        ("deflate", zlib.compress(STREAM)),
    ],
)
def test_a08_what_comes_packed_all_the_same_is_read(
    encoding: str, body: bytes, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Echoing, "do_POST", sending(encoding, body))
    assert asked(server) == "ok"


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("gzip", gzip.compress(b"\0" * 2_000_000), "one event has over 1,000,000 bytes"),
        ("gzip", gzip.compress(b"data: x\n" * 200_000), "one event has over 1,000,000 bytes"),
        ("identity", b"data: " + b"x" * 2_000_000, "one event has over 1,000,000 bytes"),
        ("gzip", b"no gzip at all", "incorrect header check"),
        ("br", b"anything", "it came packed as 'br', for which nobody asked"),
    ],
)
def test_a08_a_body_that_nobody_should_read_on_is_cut(
    encoding: str, body: bytes, why: str, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.models.providers.streaming.LONGEST_EVENT", 1_000_000)
    monkeypatch.setattr(Echoing, "do_POST", sending(encoding, body))
    with pytest.raises(sa.ModelError, match=why) as cut:
        asked(server)
    assert cut.value.kind == "cut_stream"


# a12: a map of more at once than there are rows


def test_a12_there_are_no_more_workers_than_rows() -> None:
    most = 0

    def answer(request: Any) -> str:
        nonlocal most
        most = max(most, len(asyncio.all_tasks()))
        return "x"

    agent = agent_of(*[answer] * 3)
    frame = agent.map(["a", "b", "c"], concurrency=10**9, progress=False)
    assert len(frame) == 3
    assert most < 50


# a21: a subscriber who does not come along


def test_a21_an_async_subscriber_that_is_stuck_keeps_a_bounded_number_of_events(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sagents_nb.session.event_log.KEPT", 100)
    heard: list[int] = []
    may = asyncio.Event()

    async def stuck(event: Any) -> None:
        heard.append(event.seq)
        await may.wait()

    session = sa.Session(sa.Agent(sa.ScriptedModel(["x" * 1000], chunk=1)))
    session.subscribe(stuck)
    session.send("go").result()
    assert heard == [1]
    last = session.actor.log.last
    runtime.loop.call_soon_threadsafe(may.set)
    until(lambda: heard[-1] == last)
    assert heard == [1, *range(last - 99, last + 1)]
    [told] = [record.getMessage() for record in caplog.records if "missed" in record.msg]
    assert f"stuck was slower than its events came and missed {last - 101}," in told


def test_a21_who_does_not_read_a_stream_of_events_misses_the_oldest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sagents_nb.runtime.event_stream.LONGEST", 100)
    session = sa.Session(sa.Agent(sa.ScriptedModel(["x" * 1000], chunk=1)))
    stream = session.events()
    session.send("go").result()
    last = session.actor.log.last
    session.close()
    read = [event.seq for event in all_of(stream)]
    assert read[-100:] == list(range(read[-1] - 99, read[-1] + 1))
    assert len(read) == 100
    assert read[-1] >= last
    assert f"missed {read[-1] - 100}, the oldest" in caplog.text


# a22: a server that says little, for ever

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
WORD = b'data: {"choices": [{"index": 0, "delta": {"content": "ok "}}]}\n\n'
DRIPS = {
    "nothing": (HEAD + b"\r\n", b""),
    "comments": (HEAD + b"\r\n", b": ping\n\n"),
    "comments after a word": (HEAD + b"\r\n" + WORD, b": ping\n\n"),
    "a line": (HEAD + b"\r\ndata: ", b"x"),
    "the head": (HEAD + b"x: ", b"y"),
    "what it refuses": (b"HTTP/1.1 429 No\r\ncontent-length: 99999\r\n\r\n", b"z"),
}


def dripping(first: bytes, then: bytes) -> Any:
    def send(self: Echoing) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.close_connection = True
        with suppress(OSError):  # whoever asked has gone
            self.wfile.write(first)
            while not self.server.stopping.wait(0.01):  # type: ignore[attr-defined]
                self.wfile.write(then)

    return send


def asking_once(server: Any, **options: Any) -> sa.Agent:
    url = f"http://127.0.0.1:{server.server_port}"
    model = sa.OpenAIChatModel("m", api_key="k", base_url=url, **options)
    return sa.Agent(RetryingModel(model, attempts=1), replace_default_middleware=True)


@pytest.mark.parametrize("drip", DRIPS)
@pytest.mark.parametrize("kind", ["a number", "the SDK's own"])
def test_a22_an_answer_that_does_not_come_is_not_waited_for_longer_than_allowed(
    drip: str, kind: str, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import openai

    monkeypatch.setattr(Echoing, "do_POST", dripping(*DRIPS[drip]))
    timeout = 0.4 if kind == "a number" else openai.Timeout(60, read=0.4)
    with pytest.raises(sa.ModelError, match="did not answer in time") as late:
        asking_once(server, timeout=timeout).run("hi")
    assert late.value.kind == "timeout"


def test_a22_no_call_lasts_for_ever_however_lively_it_is(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.models.providers.streaming.LONGEST_CALL", 0.4)
    monkeypatch.setattr(Echoing, "do_POST", dripping(HEAD + b"\r\n", WORD))
    with pytest.raises(sa.ModelError, match="did not answer in time"):
        asking_once(server).run("hi")


def test_a22_a_budget_of_seconds_ends_an_answer_that_goes_on(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Echoing, "do_POST", dripping(HEAD + b"\r\n", WORD))
    session = sa.Session(asking_once(server))
    heard: list[Any] = []
    session.subscribe(heard.append)
    with pytest.raises(sa.BudgetExceeded, match="seconds is used up"):
        session.send("hi", budget=sa.Budget(seconds=0.5)).result()
    said = session.messages[-1]
    assert (said.stop_reason, said.role) == ("error", "assistant")
    assert said.error == session.error
    assert session.status == "error"
    told = [event.delta.text for event in heard if isinstance(event, MessageUpdate)]
    assert said.text == "".join(told)


@pytest.mark.parametrize("timeout", ["5", 0, -1, float("nan"), True])
def test_a_timeout_that_is_none_is_refused(timeout: Any, server: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="is a number of seconds over 0"):
        asking_once(server, timeout=timeout)
    with pytest.raises(sa.ModelError, match="timeout is a number of seconds above 0, not"):
        asking_once(server, options={"timeout": timeout}).run("hi")


# an answer without an end, of which each piece is short and in time


class Endless(sa.ChatModel):
    """Says the same for ever the first time, and "fine" then."""

    name = "endless"

    def __init__(self, piece: Callable[[int], Any]) -> None:
        self.piece = piece
        self.asked = self.closed = 0

    async def stream(self, request: Any) -> Any:
        self.asked += 1
        try:
            for number in itertools.count() if self.asked == 1 else ():
                yield self.piece(number)
        finally:
            self.closed += 1
        yield sa.Message.assistant("fine")


PIECES: dict[str, Callable[[int], Any]] = {
    "text": lambda n: "x" * 50,
    "letters": lambda n: "x",
    "nothing": lambda n: "",
    "thoughts": lambda n: sa.ThinkingDelta("x" * 50),
    "in turns": lambda n: (sa.TextDelta, sa.ThinkingDelta)[n % 2]("x" * 50),
    "arguments": lambda n: sa.ToolCallDelta(0, "x" * 50, *(() if n else ("c", "look"))),
    "calls": lambda n: sa.ToolCallDelta(n, "{}", f"c{n}", "look"),
}


@pytest.mark.parametrize("what", PIECES)
def test_an_answer_without_an_end_is_cut_and_the_session_goes_on(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.loop.model_call.LONGEST_ANSWER", 100_000)
    model = Endless(PIECES[what])
    session = sa.Session(sa.Agent(model))
    with pytest.raises(sa.ModelError, match="it has over 100,000 characters or 4,096 calls") as cut:
        session.send("hi").result()
    assert (cut.value.kind, model.asked, model.closed) == ("cut_stream", 1, 1)
    assert len(session.messages[-1].text) < 101_000
    assert session.send("again").result().text == "fine"


def test_an_answer_is_as_long_as_any_that_ends() -> None:
    letters, calls = "x" * 600_000, [call("look", f"c{n}") for n in range(1000)]
    said = sa.Message.assistant(letters, calls)
    agent = agent_of(said, "done", tools=[sa.Tool(lambda: "x", name="look", description="Look.")])
    result = agent.run("go")
    assert result.messages[1].text == letters
    assert len(result.messages[2].tool_results) == 1000


@pytest.mark.parametrize("field", ["logprobs", "annotations"])
def test_what_comes_beside_an_answer_without_an_end_is_cut_too(
    field: str, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside: Any = [{"token": "x"}] * 10
    told = {"logprobs": {"content": beside}} if field == "logprobs" else {}
    delta = {"annotations": beside} if field == "annotations" else {}
    event = (
        b"data: %b\n\n" % json.dumps({"choices": [{"index": 0, "delta": delta, **told}]}).encode()
    )
    monkeypatch.setattr("sagents_nb.models.providers.streaming.LONGEST_BODY", 100_000)
    monkeypatch.setattr(Echoing, "do_POST", dripping(HEAD + b"\r\n", event * 2000))
    with pytest.raises(sa.ModelError, match="it has over 100,000 bytes") as cut:
        asking_once(server).run("hi")
    assert cut.value.kind == "cut_stream"


# many calls in one message


def steps_on_the_loop(work: Callable[[], object]) -> int:
    """How many functions and generators the runtime loop enters meanwhile."""
    entered = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal entered
        entered += 1

    runtime.call(lambda: sys.setprofile(count))
    try:
        work()
    finally:
        runtime.call(lambda: sys.setprofile(None))
    return entered


@pytest.mark.parametrize("changing", [False, True])
def test_what_many_calls_of_one_message_cost_grows_with_their_number_only(changing: bool) -> None:
    async def note(n: int) -> Any:
        return sa.ToolOutput("ok", update={"metadata": {"n": n}} if changing else {})

    def asked_for(count: int) -> int:
        calls = [call("note", f"c{n}", n=n) for n in range(count)]
        session = sa.Session(agent_of(sa.Message.assistant("", calls), "done", tools=[note]))
        steps = steps_on_the_loop(lambda: session.send("go").result())
        assert len(results(session.state)) == count
        assert session.state.get_metadata("n") == (count - 1 if changing else None)
        return steps

    asked_for(10)
    assert asked_for(1600) < 2.5 * asked_for(800)


def test_others_have_their_turn_between_the_calls_of_one_message() -> None:
    order: list[str] = []

    async def note(n: int) -> str:
        if n == 0:
            runtime.loop.call_soon(order.append, "another session")
        order.append(str(n))
        return "ok"

    calls = [call("note", f"c{n}", n=n) for n in range(1000)]
    agent = agent_of(
        sa.Message.assistant("", calls), "done", tools=[note], max_parallel_tools=10**6
    )
    agent.run("go")
    assert order.index("another session") < 500
    assert len(order) == 1001


def test_others_have_their_turn_between_the_tools_of_one_message_that_run_on_the_loop() -> None:
    done = 0
    seen: set[int] = set()

    @sa.tool(run_on="loop")
    def compute(n: int) -> str:
        """Compute."""
        nonlocal done
        time.sleep(2 * TURN)
        done += 1
        return "computed"

    def look() -> None:  # what another session would do
        seen.add(done)
        if done < 10:
            runtime.loop.call_soon(look)

    runtime.post(look)
    calls = [call("compute", f"c{n}", n=n) for n in range(10)]
    agent_of(calls, "done", tools=[compute], max_parallel_tools=10).run("go")
    assert seen >= set(range(1, 10))


def test_others_have_their_turn_while_a_model_and_tools_never_wait() -> None:
    seen: list[int] = []

    class Ready(sa.ChatModel):
        """Has its answers at once, as one that is replayed, and takes its time to make each."""

        name = "ready"
        asked = 0

        async def stream(self, request: Any) -> Any:
            self.asked += 1
            time.sleep(2 * TURN)
            yield sa.Message.assistant("…", stop_reason="pause_turn" if self.asked < 9 else None)

    model = Ready()

    def look() -> None:  # what another session would do
        seen.append(model.asked)
        if model.asked < 9:
            runtime.loop.call_soon(look)

    runtime.post(look)
    sa.Agent(model, replace_default_middleware=True).run("go")
    assert set(seen) >= set(range(1, 9))
