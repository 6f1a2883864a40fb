"""What nobody holds any more is not kept, and a cell can be run again."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import Owned
from tests.session.gates import Gate
from tests.talking import agent_of, call, session_of, until


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Callable[[], sa.ConversationStore]]:
    """Makes stores on one database, which are closed in the end."""
    made: list[sa.ConversationStore] = []

    def make() -> sa.ConversationStore:
        made.append(sa.ConversationStore(f"sqlite:///{tmp_path}/left.db"))
        return made[-1]

    yield make
    for store in made:
        store.close()


Stores = Callable[[], sa.ConversationStore]


@pytest.fixture
def gate() -> Iterator[Gate]:
    """One that is open in the end, so that no thread waits for ever."""
    gate = Gate()
    yield gate
    gate.open()


def gone(reference: weakref.ref[Any]) -> bool:
    """Whether it was collected."""
    gc.collect()
    return reference() is None


def test_b16_agents_that_are_gone_leave_no_files() -> None:
    made = []
    for _ in range(50):
        agent = agent_of("x")
        agent.run("hi")
        made.append(("agent", agent.agent_id))
    del agent
    gc.collect()
    assert not set(made) & set(sa.filesystems.list())


def test_b16_an_agents_files_last_as_long_as_the_agent_and_its_copies() -> None:
    write = call("write_file", file_path="/a", content="1")
    model = sa.ScriptedModel([write, "done", call("read_file", "c2", file_path="/a"), "done"])
    agent = sa.Agent(model)
    agent.run("go", budget=sa.Budget(tokens=10**6))  # a copy of the agent runs that
    gc.collect()
    shared = sa.open_filesystem(("agent", agent.agent_id))
    assert shared.read("/a").content == "1"
    assert "1" in agent.run("go").messages[2].tool_results[0].text
    sa.filesystems.close(("agent", agent.agent_id))


def test_b16_files_that_somebody_opened_stay_after_the_agent() -> None:
    agent = sa.Agent(sa.ScriptedModel([call("write_file", file_path="/a", content="1"), "done"]))
    scope = ("agent", agent.agent_id)
    agent.run("go")
    sa.open_filesystem(scope)
    del agent
    gc.collect()
    assert sa.open_filesystem(scope).read("/a").content == "1"
    sa.filesystems.close(scope)


def test_b16_a_session_on_shared_files_is_collected() -> None:
    def talked() -> weakref.ref[sa.Session]:
        agent = sa.Agent(sa.ScriptedModel(["x"]), filesystem_scope=("left", 1))
        session = sa.Session(agent, inactivity_timeout=None)
        session.send("hi").result()
        return weakref.ref(session)

    reference = talked()
    until(lambda: gone(reference))
    sa.open_filesystem(("left", 1)).write("/a", "told to nobody")
    sa.filesystems.close(("left", 1))


def test_b16_a_stored_session_that_nobody_has_lets_its_conversation_go(stores: Stores) -> None:
    store, other = stores(), stores()

    def talked() -> weakref.ref[sa.Session]:
        session = sa.Session(agent_of("x"), id="c1", store=store, inactivity_timeout=None)
        session.send("hi").result()
        return weakref.ref(session)

    reference = talked()
    until(lambda: gone(reference))
    again = sa.Session.open("c1", agent=agent_of("y"), store=store)
    assert [m.text for m in again.messages] == ["hi", "x"]
    assert again.send("more").result().text == "y"
    again.close()
    # Also by way of another store of this process.
    reference = weakref.ref(sa.Session.open("c1", agent=agent_of(), store=other))
    until(lambda: gone(reference))
    sa.Session.open("c1", agent=agent_of(), store=store).close()


def test_b16_a_cell_that_opens_a_conversation_can_be_run_again(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    stores().scoped(None).create_conversation(id="c1")
    session = None
    with caplog.at_level(logging.WARNING):
        for n in range(3):
            earlier = session
            store = stores()
            session = sa.Session.open("c1", agent=agent_of(str(n)), store=store)
            assert session.send("hi").result().text == str(n)
            if earlier is not None:
                assert earlier.status == "closed"
                with pytest.raises(sa.NotRunning):
                    earlier.send("still?")
    told = [r.getMessage() for r in caplog.records]
    assert len([text for text in told if "was open in this process already" in text]) == 2
    assert session is not None
    assert len(session.messages) == 6
    session.close()


def test_b16_one_that_is_at_work_or_of_another_thread_is_not_closed(
    stores: Stores, gate: Gate
) -> None:
    store = stores()
    session = sa.Session(agent_of(call("hold"), "done", tools=[gate.tool]), id="c1", store=store)
    run = session.send("go")
    gate.wait()
    with pytest.raises(Owned, match="take_over=True"):
        sa.Session.open("c1", agent=agent_of(), store=store)
    gate.open()
    assert run.result().text == "done"
    refused: list[BaseException] = []

    def elsewhere() -> None:
        try:
            sa.Session.open("c1", agent=agent_of(), store=store)
        except Owned as error:
            refused.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(refused) == 1
    assert session.status == "idle"
    session.close()


def test_a_session_of_no_store_is_collected() -> None:
    reference = weakref.ref(session_of("x"))
    until(lambda: gone(reference))
