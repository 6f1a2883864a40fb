"""A database that was put back to an older copy has not what was acknowledged, and that is told."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.store import ConversationStore
from sagents_nb.store.database.thread import Database
from sagents_nb.store.entries import BEHIND
from sagents_nb.store.journal import Journal
from tests.session.stored import Disk, disk
from tests.store.journals import database_of, note, said
from tests.talking import PATIENCE, agent_of


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """One with a conversation "c"."""
    with database_of(url) as made:
        yield made


def copied(database: Database) -> Callable[[], None]:
    """What puts the journal and its lease back to what they are now."""
    tables = database.tables.leases, database.tables.journal
    rows = [
        database.run(lambda c, t=table: [dict(r) for r in c.execute(t.select()).mappings()])
        for table in tables
    ]

    def put_back(connection: Any) -> None:
        for table, old in zip(tables, rows, strict=True):
            connection.execute(table.delete())
            if old:
                connection.execute(table.insert(), old)

    return lambda: database.run(put_back)


def written(journal: Journal, first: int, size: int) -> None:
    for number in range(first, first + size):
        journal.append([note(number, "message")]).result(PATIENCE)


def opened(database: Database) -> tuple[list[Any], list[str]]:
    journal, entries, problems = Journal.open(database, "c")
    journal.release().result(PATIENCE)
    return said(entries), problems


SIZES = [(0, 1), (1, 1), (3, 5), (3, 2 * BEHIND), (2 * BEHIND, 1), (BEHIND, BEHIND)]


@pytest.mark.parametrize(("before", "since"), SIZES)
@pytest.mark.parametrize("again", [False, True])
def test_what_is_appended_to_an_older_copy_is_refused_and_the_next_opening_tells(
    database: Database, before: int, since: int, again: bool
) -> None:
    journal, _, _ = Journal.open(database, "c")
    written(journal, 0, before)
    if again:
        journal.release().result(PATIENCE)
        journal, _, _ = Journal.open(database, "c")
    put_back = copied(database)
    written(journal, before, since)
    put_back()
    for _ in range(2):
        with pytest.raises(sa.StaleOwner, match="older copy was put in its place"):
            journal.append([note("new", "message")]).result(PATIENCE)
    journal.release().result(PATIENCE)
    entries, [problem] = opened(database)
    assert entries == list(range(before))
    assert problem == (
        f"The journal was damaged: it had {before + since} entries, and {before} are there."
    )
    assert opened(database) == (entries, [])


@pytest.mark.parametrize(("before", "since"), SIZES)
def test_an_older_copy_that_nothing_is_written_to_is_told_at_the_next_opening(
    database: Database, before: int, since: int
) -> None:
    journal, _, _ = Journal.open(database, "c")
    written(journal, 0, before)
    put_back = copied(database)
    written(journal, before, since)
    put_back()
    journal.release().result(PATIENCE)
    assert opened(database)[1] != []


def test_an_older_copy_is_noticed_also_after_something_could_not_be_written(
    database: Database,
) -> None:
    def full(connection: Any) -> None:
        raise OSError("the disk is full")

    journal, _, _ = Journal.open(database, "c")
    written(journal, 0, 2)
    put_back = copied(database)
    written(journal, 2, 1)
    with pytest.raises(sa.StoreError):
        journal.append([note("lost", "message")], full).result(PATIENCE)
    put_back()
    with pytest.raises(sa.StaleOwner):
        journal.append([note("new", "message")]).result(PATIENCE)


def test_an_owner_of_what_is_there_now_is_left_alone(database: Database) -> None:
    journal, _, _ = Journal.open(database, "c")
    put_back = copied(database)
    written(journal, 0, 3)
    put_back()
    with pytest.raises(sa.StaleOwner):
        written(journal, 3, 1)
    other, _, problems = Journal.open(database, "c", take_over=True)
    written(other, 0, 2)
    journal.release().result(PATIENCE)
    written(other, 2, 1)
    other.release().result(PATIENCE)
    assert problems == []
    assert opened(database) == ([0, 1, 2], [])


def test_rows_that_were_compacted_away_are_no_loss(database: Database) -> None:
    journal, _, _ = Journal.open(database, "c")
    written(journal, 0, 3)
    journal.compact([2, 3]).result(PATIENCE)
    written(journal, 3, 1)
    journal.set_aside({4: "no sense"}).result(PATIENCE)
    written(journal, 4, 1)
    journal.release().result(PATIENCE)
    assert opened(database) == ([0, 4], [])


@pytest.fixture
def place() -> Iterator[Disk]:
    with disk() as made:
        yield made


def put_over(store: ConversationStore, copy: Any) -> None:
    """What a program that syncs files does, in the same file."""
    with (
        contextlib.closing(sqlite3.connect(copy)) as source,
        contextlib.closing(sqlite3.connect(store.database.name, timeout=PATIENCE)) as target,
    ):
        source.backup(target)


def test_a_session_on_an_older_copy_takes_no_message_and_can_be_opened_again(place: Disk) -> None:
    store = place.store()
    agent = agent_of(*["fine"] * 4)
    session = sa.Session(agent, "c1", store=store)
    session.send("one").result()
    older = place.snapshot(store)
    session.send("two").result()
    put_over(store, older)
    with pytest.raises(sa.StaleOwner, match="put the newer one back"):
        session.send("three")
    assert session.status == "closed"
    again = sa.Session.open("c1", agent=agent, store=store)
    [problem] = again.info()["problems"]
    assert "The journal was damaged: it had" in problem
    assert [m.text for m in again.messages] == ["one", "fine"]
    again.send("three").result()
    again.close()
    assert sa.Session.open("c1", agent=agent, store=store).info()["problems"] == []


def test_a_session_that_rests_on_an_older_copy_says_so_once_it_is_needed(place: Disk) -> None:
    store = place.store()
    agent = agent_of(*["fine"] * 4)
    session = sa.Session(agent, "c1", store=store)
    session.send("one").result()
    older = place.snapshot(store)
    session.send("two").result()
    put_over(store, older)
    session.close()
    assert sa.Session.open("c1", agent=agent, store=store).info()["problems"] != []
