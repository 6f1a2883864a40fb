"""What a close leaves in the store."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

import sagents_nb as sa
from sagents_nb.events import Event, Interrupt
from sagents_nb.runtime.thread import runtime
from sagents_nb.store import ConversationStore
from tests.session.stored import Disk
from tests.talking import PATIENCE, agent_of, call, results, until


def test_what_was_said_while_something_was_written_is_kept_by_a_close(
    store: ConversationStore,
) -> None:
    session = sa.Session(agent_of(*["hi"] * 9), id="a", store=store)

    async def say() -> None:  # on a loop, where nobody waits for the commit
        for number in range(5):
            session.follow_up(str(number))
        session.close()

    asyncio.run(say())
    session.actor.ended.result(PATIENCE)
    again = sa.Session.open("a", agent=agent_of(), store=store)
    assert again.info()["queued"] == 5


def test_a_close_of_what_somebody_else_has_by_now_ends_without_a_word(
    disk: Disk, store: ConversationStore, caplog: pytest.LogCaptureFixture
) -> None:
    session = sa.Session(agent_of("hi"), id="a", store=store)
    session.send("go").result()
    other = disk.store(Path(store.database.name))
    again = sa.Session.open("a", agent=agent_of(), store=other, take_over=True)

    async def say() -> None:  # on a loop, where nobody waits for the commit
        session.follow_up("more")
        session.close()

    asyncio.run(say())
    session.actor.ended.result(PATIENCE)
    again.close()
    runtime.call(gc.collect)  # an error of a task is told once nobody has it any more
    assert "NoneType" not in caplog.text


def test_a_close_as_a_run_begins_to_ask_people_leaves_the_question_open(
    store: ConversationStore,
) -> None:
    def look() -> str:
        "Look."
        return "seen"

    around = {"tools": [look], "interrupt_on": ["look"]}
    session = sa.Session(agent_of(call("look"), **around), id="a", store=store)

    def close(event: Event) -> None:
        if isinstance(event, Interrupt):  # told before the run has ended
            session.actor.close("closed")

    session.subscribe(close)
    session.send("go")
    until(lambda: session.status == "closed")
    session.actor.ended.result(PATIENCE)
    again = sa.Session.open("a", agent=agent_of("done", **around), store=store)
    assert again.status == "interrupted"
    run = again.approve()
    assert run is not None
    assert run.result().text == "done"
    assert results(again.state) == ["seen"]
