from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import warnings
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.runtime.thread import runtime
from tests.session.gates import Gate
from tests.talking import PATIENCE, agent_of, call, in_threads, run, session_of

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


async def nap() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_everything_runs_on_one_daemon_thread() -> None:
    names = in_threads(8, lambda index: runtime.submit(nap()).result())
    assert set(names) == {"sagents-runtime"}
    (thread,) = [t for t in threading.enumerate() if t.name == "sagents-runtime"]
    assert thread.daemon


def test_a_function_is_called_on_the_loop_and_its_error_comes_back() -> None:
    assert runtime.call(lambda: asyncio.get_running_loop()) is runtime.loop
    assert runtime.call(runtime.here)
    assert not runtime.here()
    with pytest.raises(ZeroDivisionError):
        runtime.call(lambda: 1 // 0)
    with pytest.raises(SystemExit):
        runtime.call(sys.exit)
    assert runtime.call(lambda: "alive") == "alive"


def test_a_coroutine_sees_the_context_of_who_handed_it_over() -> None:
    name = contextvars.ContextVar("name", default="nobody")
    name.set("alice")

    async def who() -> str:
        return name.get()

    assert runtime.submit(who()).result() == "alice"


def test_a_thousand_idle_sessions_cost_no_thread() -> None:
    before = threading.active_count()
    sessions = [session_of() for _ in range(1000)]
    assert threading.active_count() <= before + 1
    for session in sessions:
        session.close()


def test_a_blocking_run_inside_an_async_tool_is_refused_with_advice() -> None:
    async def nested() -> str:
        return agent_of("never").run("?").text

    result = agent_of(call("nested"), "ok", tools=[nested]).run("go")
    assert "await agent.arun" in result.state.messages[2].tool_results[0].text


def test_a_sync_call_works_while_a_loop_turns_in_the_same_thread() -> None:
    async def cell() -> str:
        return agent_of("from a cell").run("?").text

    assert run(cell()) == "from a cell"


def in_child(work: Any) -> str:
    """What ``work`` returns in a forked child; the child ends without cleaning up."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():  # forking with threads is what this is about
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            text = str(work())
        except BaseException as error:
            text = repr(error)
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


@forks
def test_a_forked_child_runs_its_own_agents_and_the_parent_goes_on() -> None:
    def tell() -> str:
        return str(os.getpid())

    def work() -> str:
        result = agent_of(call("tell"), "from the child", tools=[tell]).run("?")
        return f"{result.text} {result.state.messages[2].tool_results[0].text == str(os.getpid())}"

    gate = Gate()
    session = session_of(call("hold"), "from the parent", tools=[gate.tool])
    running = session.send("go")
    gate.wait()
    for _ in range(3):
        assert in_child(work) == "from the child True"
    gate.open()
    assert running.result().text == "from the parent"


@forks
def test_a_child_is_not_stuck_on_what_another_thread_held_when_it_was_forked() -> None:
    from sagents_nb import frozenlist
    from sagents_nb.runtime import main_thread as mainthread

    @sa.tool(run_on="main")
    def main_thread_of_the_child() -> str:
        return "drawn"

    def work() -> str:
        agent = agent_of(call("main_thread_of_the_child"), "ok", tools=[main_thread_of_the_child])
        return agent.run("?").state.messages[2].tool_results[0].text

    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with frozenlist.lock, mainthread.main_thread.lock, runtime.lock:
            holding.set()
            release.wait(PATIENCE)

    holder = threading.Thread(target=hold)
    holder.start()
    holding.wait(PATIENCE)
    try:
        assert in_child(work) == "drawn"
    finally:
        release.set()
        holder.join(PATIENCE)


def test_a_program_that_ends_in_the_middle_of_a_run_does_end() -> None:
    program = (
        "import asyncio, sagents_nb as sa\n"
        "async def forever() -> None:\n"
        "    await asyncio.sleep(600)\n"
        "agent = sa.Agent(sa.ScriptedModel([sa.ToolCall('c', 'forever')]), tools=[forever])\n"
        "sa.Session(agent).send('go')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
