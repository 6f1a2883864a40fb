from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import sagents_nb as sa
from tests.session.gates import Gate
from tests.talking import PATIENCE, call, in_threads, run, session_of


def held(gate: Gate) -> sa.Run:
    return session_of(call("hold"), "done", tools=[gate.tool]).send("go")


def test_a_result_can_be_waited_for_with_a_limit_and_asked_for_again(gate: Gate) -> None:
    running = held(gate)
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.\d+ s; it goes on"):
        running.result(timeout=0.01)
    assert (running.status, running.done) == ("running", False)
    gate.open()
    assert running.result().text == "done"
    assert running.result(timeout=0) is running.result()
    assert (running.status, running.done) == ("completed", True)


def test_a_failed_run_raises_for_everybody_who_asks() -> None:
    running = session_of(ConnectionError("cable")).send("go")

    async def ask() -> Any:
        return await running

    for _ in range(2):
        with pytest.raises(sa.ModelError, match="cable"):
            running.result()
        with pytest.raises(sa.ModelError, match="cable"):
            run(ask())
    assert running.status == "error"


def test_a_run_is_awaited_on_several_loops_and_waited_for_in_threads_at_once(gate: Gate) -> None:
    running = held(gate)

    async def wait() -> str:
        results = await asyncio.gather(_result(running), _result(running))
        assert results[0] is results[1]
        return results[0].text

    def work(index: int) -> str:
        if index == 0:
            gate.wait()
            gate.open()
        return run(wait()) if index % 2 else running.result().text

    assert in_threads(6, work) == ["done"] * 6


async def _result(running: sa.Run) -> sa.RunResult:
    return await running


def test_an_async_tool_may_await_another_session() -> None:
    inner = session_of("from inside")

    async def ask() -> str:
        return (await inner.send("?")).text

    outer = session_of(call("ask"), "done", tools=[ask])
    assert outer.send("go").result().state.messages[2].tool_results[0].text == "from inside"


def test_a_sync_tool_may_wait_for_another_session() -> None:
    inner = session_of("from inside")

    def ask() -> str:
        return inner.send("?").result().text

    outer = session_of(call("ask"), "done", tools=[ask])
    assert outer.send("go").result().state.messages[2].tool_results[0].text == "from inside"


def test_waiting_inside_an_async_tool_is_refused_instead_of_hanging() -> None:
    inner = session_of("never seen")

    async def ask() -> str:
        return inner.send("?").result().text

    outer = session_of(call("ask"), "done", tools=[ask])
    (result,) = outer.send("go").result().state.messages[2].tool_results
    assert "await run" in result.text
    assert result.is_error


def test_a_forgotten_run_still_finishes() -> None:
    session = session_of("done")
    done = threading.Event()
    session.subscribe(lambda event: done.set() if event.type == "agent_end" else None)
    session.send("go")
    assert done.wait(PATIENCE)


def test_a_session_works_without_any_loop_and_inside_one() -> None:
    session = session_of("one", "two", "three")

    async def inside() -> list[str]:
        awaited = (await session.send("a")).text
        return [awaited, (await asyncio.to_thread(session.send("b").result)).text]

    assert run(inside()) == ["one", "two"]
    assert session.send("c").result().text == "three"
