"""Sessions that do nothing cost nothing but memory; benchmarks/sessions.py tells how much."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.runtime.thread import runtime
from sagents_nb.store import ConversationStore
from tests.talking import agent_of

COUNT = 50


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """What is asked of any database."""
    asked: list[str] = []

    def hear(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        asked.append(statement)

    sql.event.listen(sql.Engine, "before_cursor_execute", hear)
    yield asked
    sql.event.remove(sql.Engine, "before_cursor_execute", hear)


@pytest.mark.parametrize("kept", [False, True])
def test_idle_sessions_take_no_thread_and_no_task(store: ConversationStore, kept: bool) -> None:
    agent = agent_of(*["hi"] * (COUNT + 1))
    around: dict[str, Any] = {"store": store} if kept else {}

    def begun() -> sa.Session:
        session = sa.Session(agent, **around)
        session.send("go").result()
        return session

    first = begun()
    threads, tasks = threading.active_count(), len(runtime.tasks)
    sessions = [begun() for _ in range(COUNT)]
    runtime.call(lambda: None)
    assert threading.active_count() <= threads
    assert len(runtime.tasks) <= tasks
    assert {session.status for session in [first, *sessions]} == {"idle"}


def test_the_heartbeat_of_many_idle_sessions_is_one_update(
    store: ConversationStore, statements: list[str]
) -> None:
    agent = agent_of()
    sessions = [sa.Session(agent, store=store) for _ in range(COUNT)]
    database = store.database
    size = Path(database.name).stat().st_size
    statements.clear()
    for _ in range(3):
        database.renewed_at = time.monotonic() - 1000  # a heartbeat is due
        database.run(lambda connection: None)
    updates = [text for text in statements if text.startswith("UPDATE")]
    assert len(updates) == 3
    assert all("leases" in text for text in updates)
    assert Path(database.name).stat().st_size == size
    assert [s.status for s in sessions] == ["idle"] * COUNT
