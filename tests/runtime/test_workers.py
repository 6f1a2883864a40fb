"""Functions that block have a thread each, and none of them holds another up."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from concurrent.futures import wait
from contextlib import suppress

import pytest

import sagents_nb as sa
from sagents_nb.runtime.workers import KEPT, workers
from tests.talking import PATIENCE, agent_of, call, run, session_of, until


def named_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sagents-tool"]


def test_one_after_the_other_they_share_a_thread() -> None:
    workers.submit(int).result()
    before = len(named_threads())
    for _ in range(50):
        workers.submit(int).result()
    assert len(named_threads()) == before


def test_as_many_as_are_asked_for_run_at_once_and_few_threads_stay() -> None:
    meeting = threading.Barrier(200)
    futures = [workers.submit(meeting.wait, PATIENCE) for _ in range(200)]
    wait(futures)
    assert sorted(future.result() for future in futures) == list(range(200))
    until(lambda: len(named_threads()) <= KEPT)
    assert all(thread.daemon for thread in named_threads())


def test_they_see_the_context_of_who_asked() -> None:
    name = contextvars.ContextVar("name", default="nobody")
    name.set("alice")
    assert workers.submit(name.get).result() == "alice"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ZeroDivisionError()])
def test_what_one_raises_comes_back_and_ends_no_thread(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        workers.submit(fail).result()

    async def awaited() -> None:
        with pytest.raises(type(error)):
            await workers.run(fail)

    run(awaited())
    assert workers.submit(lambda: "alive").result() == "alive"


def test_stop_iteration_is_no_value_that_a_future_waits_for_ever_for() -> None:
    async def awaited() -> None:
        with pytest.raises(RuntimeError, match="StopIteration"):
            await workers.run(next, iter(()))

    run(awaited())


def test_where_no_thread_can_be_started_the_call_says_so_and_the_next_one_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def work() -> str:
        return "worked"

    agent_of("hello").run("start the runtime thread")
    gate = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with suppress(RuntimeError):
            while True:  # until none is free
                workers.submit(gate.wait, PATIENCE)
        result = agent_of(call("work"), "done", tools=[work]).run("go")
    assert result.messages[2].tool_results[0].text == "RuntimeError: can't start new thread"
    gate.set()
    result = agent_of(call("work"), "done", tools=[work]).run("go")
    assert result.messages[2].tool_results[0].text == "worked"


# tools that call agents whose tools call agents


def test_tools_that_ask_agents_whose_tools_ask_agents_do_not_wait_for_each_other() -> None:
    """Forty at once, eight deep: more than any number of threads that one would think of."""

    def ask(depth: int) -> str:
        if depth == 0:
            return "ground"
        deeper = agent_of(call("ask", depth=depth - 1), "done", tools=[ask])
        return deeper.run("go").messages[2].tool_results[0].text

    futures = [workers.submit(ask, 8) for _ in range(40)]
    wait(futures, PATIENCE)
    assert [future.result(0) for future in futures] == ["ground"] * 40


# tools that nobody waits for any more


def test_a_tool_that_timed_out_is_known_until_it_ends() -> None:
    gate = threading.Event()

    @sa.tool(timeout=0.01)
    def slow() -> str:
        gate.wait(PATIENCE)
        return "late"

    session = session_of(call("slow"), "done", tools=[slow])
    other = session_of("hello")
    assert session.info()["abandoned_tools"] == []
    result = session.send("go").result()
    assert result.text == "done"
    assert "may still be working" in result.messages[2].tool_results[0].text
    assert session.info()["abandoned_tools"] == ["slow"]
    assert other.info()["abandoned_tools"] == []
    gate.set()
    until(lambda: session.info()["abandoned_tools"] == [])


def test_a_tool_that_does_not_stop_when_its_run_is_cancelled_is_known_too() -> None:
    gate, begun = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        gate.wait(PATIENCE)
        return "late"

    session = session_of(call("slow"), "done", tools=[slow])
    running = session.send("go")
    assert begun.wait(PATIENCE)
    session.cancel()
    assert running.result().status == "cancelled"
    assert session.info()["abandoned_tools"] == ["slow"]
    gate.set()
    until(lambda: session.info()["abandoned_tools"] == [])


def test_many_that_never_end_keep_nobody_from_running_a_tool() -> None:
    gate = threading.Event()

    @sa.tool(timeout=0.01)
    def slow() -> str:
        gate.wait(PATIENCE)
        return "late"

    def quick() -> str:
        return "quick"

    calls = [call("slow", f"c{n}") for n in range(20)]
    for _ in range(5):
        agent_of(calls, "done", tools=[slow], max_parallel_tools=20).run("go")
    session = session_of(call("quick"), "done", tools=[quick])
    assert session.send("go").result(PATIENCE).messages[2].tool_results[0].text == "quick"
    gate.set()
    until(lambda: len(named_threads()) <= KEPT)


HANGING = """
import threading, sagents_nb as sa

@sa.tool(timeout=0.01)
def hang() -> str:
    "Hang."
    threading.Event().wait()

model = sa.ScriptedModel([sa.ToolCall("c", "hang", {}), "done"])
print(sa.Agent(model, tools=[hang], replace_default_middleware=True).run("x").text)
"""


def test_a_process_ends_although_a_tool_never_does() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


SAVING = """
import sys, time, sagents_nb as sa

class Rows:
    def save_message(self, scope, id, message):
        open(sys.argv[1], "a").write("began\\n")
        while not sys.is_finalizing() and not leaving: time.sleep(0.01)
        time.sleep(0.05)
        open(sys.argv[1], "a").write("kept\\n")
        return []
    save_row = update_tool_status = record_decision = lambda *args: None

import atexit
leaving = []
session = sa.Session(sa.Agent(sa.ScriptedModel(["x"])), display_persistence=Rows())
session.send("hello")
while True:
    try:
        if "began" in open(sys.argv[1]).read(): break
    except FileNotFoundError: pass
    time.sleep(0.01)
atexit.register(leaving.append, 1)
"""


def test_a_process_that_ends_lets_what_is_being_kept_be_kept(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "rows")
    done = subprocess.run([sys.executable, "-c", SAVING, path], timeout=PATIENCE)
    assert done.returncode == 0
    with open(path) as rows:
        assert rows.read() == "began\nkept\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    script = (
        "import os, warnings; warnings.simplefilter('ignore')\n"
        "from sagents_nb.runtime.workers import workers\n"
        "workers.submit(int).result()\n"
        "if os.fork() == 0: os._exit(workers.submit(lambda: 7).result())\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout == "7\n", done.stderr


def test_what_is_waited_for_by_a_task_goes_on_when_that_is_cancelled() -> None:
    gate = threading.Event()

    async def cancelled() -> None:
        task = asyncio.ensure_future(workers.run(gate.wait, PATIENCE))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancelled())
    gate.set()
