"""Messages to middleware: each is read, whatever else happens to the session."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.runtime.thread import runtime
from tests.session.gates import Gate
from tests.talking import PATIENCE, agent_of, call


class Clerk(sa.Middleware):
    """Files what it is told, and takes its time."""

    id = "clerk"

    async def handle_message(self, message: Any, state: sa.State, ctx: Any) -> sa.State:
        await asyncio.sleep(0.01)
        return state.put_metadata("filed", [*state.get_metadata("filed", []), message])


def filed(session: sa.Session) -> Any:
    runtime.submit(session.actor.middleware.idle()).result(PATIENCE)
    return session.state.get_metadata("filed")


@pytest.mark.spec("S1.11.13")
def test_letters_that_come_at_once_are_read_one_after_the_other() -> None:
    session = sa.Session(agent_of(middleware=[Clerk()]))
    for number in range(10):
        session.notify_middleware("clerk", number)
    assert filed(session) == list(range(10))


@pytest.mark.spec("S1.11.13")
def test_a_letter_that_is_read_while_a_run_begins_is_a_part_of_it() -> None:
    session = sa.Session(agent_of("hi", middleware=[Clerk()]))
    session.notify_middleware("clerk", 1)
    session.notify_middleware("clerk", 2)
    result = session.send("go").result()
    assert result.state.get_metadata("filed") == [1, 2]
    assert filed(session) == [1, 2]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_run_that_is_stopped_while_it_reads_ends_however_often(times: int) -> None:
    gate = Gate()
    session = sa.Session(agent_of(call("hold"), tools=[gate.tool], middleware=[Clerk()]))
    run = session.send("go")
    gate.wait()
    for number in range(3):
        session.notify_middleware("clerk", number)
    for _ in range(times):
        session.cancel()
    gate.open()
    assert run.result(PATIENCE).status == "cancelled"
    if times == 1:
        assert filed(session) == [0, 1, 2]


@pytest.mark.spec("S1.11.13")
def test_a_letter_that_is_read_while_the_state_is_replaced_is_read_again() -> None:
    reached, may = threading.Event(), threading.Event()

    class Slow(Clerk):
        async def handle_message(self, message: Any, state: sa.State, ctx: Any) -> sa.State:
            reached.set()
            await asyncio.to_thread(may.wait, PATIENCE)
            return await super().handle_message(message, state, ctx)

    session = sa.Session(agent_of(middleware=[Slow()]))
    session.notify_middleware("clerk", 1)
    assert reached.wait(PATIENCE)
    session.replace(state=sa.State().add_message(sa.Message.user("other")))
    may.set()
    assert filed(session) == [1]
    assert [m.text for m in session.messages] == ["other"]


class Odd(str):
    """A text that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("odd")

    def __hash__(self) -> int:
        raise RuntimeError("odd")


def test_an_address_of_a_class_of_somebodys_own_hurts_no_later_run() -> None:
    session = sa.Session(agent_of("hi", "ho", middleware=[Clerk()]))
    for id in (Odd("clerk"), Odd("nobody")):
        session.notify_middleware(id, 1)
    assert session.send("go").result().text == "hi"
    assert session.send("go").result().text == "ho"
    assert filed(session) == [1]
