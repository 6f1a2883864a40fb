"""A journal gives back what it was given: in order, unchanged, and nothing half written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import sqlalchemy as sql
from hypothesis import HealthCheck, given, settings
from sqlalchemy.exc import DBAPIError

from sagents_nb.errors import NotFound, Owned, StaleOwner
from sagents_nb.messages import Message, ToolCall, ToolResult
from sagents_nb.runtime.thread import runtime
from sagents_nb.serialization import VERSION, to_data
from sagents_nb.store import conversations
from sagents_nb.store.database.thread import Database
from sagents_nb.store.entries import Entry, StoredMessage
from sagents_nb.store.folding import fold
from sagents_nb.store.journal import Journal
from tests.store.database.test_thread import hold
from tests.store.journals import begin, count, database_of, kept, note, said
from tests.talking import PATIENCE, in_threads

text = st.text(st.characters(codec=None))  # any code point, lone surrogates and NUL too
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(text, inner, max_size=5),
    max_leaves=20,
)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with database_of(url) as made:
        yield made


@pytest.fixture
def journal(database: Database) -> Journal:
    return Journal.open(database, "c")[0]


def comes_back(database: Database, values: list[Any]) -> None:
    journal, before, _ = Journal.open(database, "c", take_over=True)
    seq = journal.append([note(value) for value in values]).result(PATIENCE)
    again, entries, problems = Journal.open(database, "c", take_over=True)
    again.compact(range(1, seq + 1))  # for the next example
    assert not problems
    # By repr, since NaN is not equal to itself, and 0.0 is to -0.0.
    assert repr(said(entries[len(before) :])) == repr(values)
    assert entries[-1].seq == seq


one_database = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
lists = st.lists(anything, min_size=1, max_size=5)


@settings(one_database, max_examples=50)
@given(values=lists)
def test_whatever_is_json_ready_comes_back_equal(database: Database, values: list[Any]) -> None:
    comes_back(database, values)


@pytest.mark.soak
@settings(one_database, max_examples=2000)
@given(values=lists)
def test_more_of_what_is_json_ready_comes_back_equal(database: Database, values: list[Any]) -> None:
    comes_back(database, values)


def test_a_large_text_comes_back(database: Database, journal: Journal) -> None:
    value = "é\0\ud83d\ude00\udc00" * 200_000
    journal.append([note(value)]).result(PATIENCE)
    assert kept(database) == [value]


def test_what_json_cannot_say_does_not_stop_the_journal(
    database: Database, journal: Journal
) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    journal.append([note(10**5000), note(deep), note(1)]).result(PATIENCE)
    huge, _, last = kept(database)
    assert int(huge, 16) == 10**5000
    assert last == 1


def test_entries_are_numbered_and_dated(database: Database, journal: Journal) -> None:
    assert (journal.epoch, journal.last_seq) == (1, 0)
    assert journal.append([note("a"), note("b")]).result(PATIENCE) == 2
    assert journal.append([]).result(PATIENCE) == 2
    assert journal.append([Entry("interrupt", None), Entry("todos", [])]).result(PATIENCE) == 4
    again, entries, problems = Journal.open(database, "c", take_over=True)
    assert (again.epoch, again.last_seq, problems) == (2, 4, [])
    assert [entry.seq for entry in entries] == [1, 2, 3, 4]
    assert [entry.kind for entry in entries] == ["run", "run", "interrupt", "todos"]
    assert [entry.data for entry in entries[2:]] == [None, []]
    begun = database.run(lambda c: c.execute(database.tables.leases.select()).one().began_at)
    assert all(abs(entry.at - begun.timestamp()) < 60 for entry in entries)


SAID = [
    Message.user("Grüße, 👋🏽", source="page"),
    Message.assistant(
        "", [ToolCall("c1", "look", {"deep": [1, 2.5, {"n": 10**25}], "s": "\ud800"})]
    ),
    Message.tool([ToolResult("c1", "look", "nothing\0\ufffe", is_error=True)]),
    Message("system", "be kind"),
]


def test_a_new_conversation_is_there_with_its_first_entries_or_not_at_all(
    database: Database,
) -> None:
    tables = database.tables

    def make(connection: sql.Connection) -> None:
        conversations.add(connection, tables, "", None, None, "new")

    def make_and_fail(connection: sql.Connection) -> None:
        make(connection)
        raise ValueError("no")

    failed = Journal.of_new(database, "new", make_and_fail)
    with pytest.raises(ValueError, match="no"):
        failed.append([note(1)]).result(PATIENCE)
    with pytest.raises(NotFound):
        Journal.open(database, "new")
    refused = Journal.of_new(database, "new", make)
    with pytest.raises(AttributeError):
        refused.append([Entry("run", None)]).result(PATIENCE)
    with pytest.raises(NotFound):
        Journal.open(database, "new")
    journal = Journal.of_new(database, "new", make)
    assert journal.append([note(2), note(3)]).result(PATIENCE) == 2
    assert journal.append([note(4)]).result(PATIENCE) == 3
    with pytest.raises(Owned):
        Journal.open(database, "new")
    again, entries, problems = Journal.open(database, "new", take_over=True)
    assert (journal.epoch, again.epoch, problems) == (1, 2, [])
    assert said(entries) == [2, 3, 4]


def test_a_new_conversation_whose_first_transaction_was_lost_begins_without_a_gap(
    database: Database,
) -> None:
    def make(connection: sql.Connection) -> None:
        conversations.add(connection, database.tables, "", None, None, "new")

    class Conflict(Exception):
        sqlstate = "40001"  # as the server says it to one of two that are in each other's way

    lost = [DBAPIError("INSERT", None, Conflict())]

    def lose(connection: sql.Connection) -> None:
        if lost:
            raise lost.pop()

    journal = Journal.of_new(database, "new", make)
    assert journal.append([note(1), note(2)], lose).result(PATIENCE) == 2
    assert not lost
    _, entries, problems = Journal.open(database, "new", take_over=True)
    assert (said(entries), problems) == ([1, 2], [])


def test_messages_are_read_straight_from_their_rows(database: Database, journal: Journal) -> None:
    entries = [Entry("message", {"n": n, **to_data(said)}) for n, said in enumerate(SAID, 1)]
    journal.append([Entry("begin", {"version": VERSION}), *entries]).result(PATIENCE)
    _, read, problems = Journal.open(database, "c", take_over=True)
    assert problems == []
    folded = fold((entry.seq, entry.kind, entry.data) for entry in read)
    assert folded.state.messages == SAID
    plain = [entry.data for entry in read if type(entry.data) is StoredMessage]
    assert [stored.message for stored in plain] == [SAID[0], SAID[3]]  # the others are escaped
    assert folded.state.messages[0] is plain[0].message
    assert [json.loads(stored.text) for stored in plain] == [stored.data for stored in plain]


def test_messages_of_an_older_version_are_migrated_before_they_are_read(
    database: Database, journal: Journal
) -> None:
    older = Entry("message", {"n": 1, "role": "user", "content": "Grüße"})
    journal.append([Entry("begin", {"version": 0}), older]).result(PATIENCE)
    _, read, _ = Journal.open(database, "c", take_over=True)
    folded = fold((entry.seq, entry.kind, entry.data) for entry in read)
    assert folded.state.messages == [Message.user("Grüße")]
    assert folded.damaged == {}


def test_a_message_that_is_none_is_told_though_it_is_what_was_written(
    database: Database, journal: Journal
) -> None:
    wrong = [{"n": 1, "role": 5}, {"role": "user"}, {"n": "1", "role": "user"}]
    rows = [Entry("message", data) for data in wrong]
    journal.append([Entry("begin", {"version": VERSION}), *rows]).result(PATIENCE)
    _, read, problems = Journal.open(database, "c", take_over=True)
    assert problems == []
    folded = fold((entry.seq, entry.kind, entry.data) for entry in read)
    assert sorted(folded.damaged) == [2, 3, 4]
    assert folded.state.messages == []


def test_what_is_appended_is_written_in_the_order_of_the_calls(
    database: Database, journal: Journal
) -> None:
    def append(index: int) -> None:
        wait([journal.append([note([index, n])]) for n in range(100)], PATIENCE)

    in_threads(8, append)
    entries = kept(database)
    for index in range(8):
        assert [n for who, n in entries if who == index] == list(range(100))


def test_appending_is_safe_on_the_runtime_thread(database: Database, journal: Journal) -> None:
    future = runtime.call(lambda: journal.append([note(1)]))
    assert future.result(PATIENCE) == 1


def test_an_unknown_kind_is_refused_at_once(database: Database, journal: Journal) -> None:
    with pytest.raises(ValueError, match="'gossip' is no kind of entry; use one of begin, message"):
        journal.append([note(1), Entry("gossip", {})])
    assert kept(database) == []


def test_an_unknown_conversation_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound, match="no conversation 'nobody'"):
        Journal.open(database, "nobody")


@pytest.mark.parametrize("id", ["a\0b", "\ud800", "\ufffe", "x' OR 1=1 --", "é" * 200])
def test_a_conversation_may_have_any_name(database: Database, id: str) -> None:
    begin(database, id)
    Journal.open(database, id)[0].append([note(1)]).result(PATIENCE)
    assert kept(database, id) == [1]
    assert kept(database) == []


def failing(journal: Journal) -> Future[int]:
    """An append that the database refuses."""
    journal.last_seq = 2**70  # no column takes that
    return journal.append([note("refused")])


def test_after_a_failure_nothing_that_came_later_is_written_before_it(
    database: Database, journal: Journal
) -> None:
    journal.append([note(0)]).result(PATIENCE)
    go_on, _ = hold(database)
    futures = [failing(journal), *(journal.append([note(n)]) for n in range(3))]
    go_on.set()
    wait(futures, PATIENCE)
    for future in futures:
        assert isinstance(future.exception(), Exception)
    assert "before them were not; append them again" in str(futures[1].exception())
    journal.last_seq = 1
    assert journal.append([note("refused"), note("later")]).result(PATIENCE) == 3
    assert kept(database) == [0, "refused", "later"]


def test_what_is_appended_while_nobody_knows_of_the_failure_yet_is_not_written(
    database: Database, journal: Journal
) -> None:
    reached, told = threading.Event(), threading.Event()
    go_on, _ = hold(database)
    futures = [failing(journal)]
    # Done in the same transaction, after all that is about a conversation.
    database.submit(lambda _: (reached.set(), told.wait(PATIENCE)))
    go_on.set()
    assert reached.wait(PATIENCE)
    futures.append(journal.append([note("behind")]))
    told.set()
    assert "append them again" in str(futures[1].exception(PATIENCE))
    assert futures[0].exception()
    assert kept(database) == []


def test_who_hears_of_a_failure_may_append_again_at_once(
    database: Database, journal: Journal
) -> None:
    done: Future[int] = Future()

    def again(failed: Future[int]) -> None:
        assert failed.exception()
        journal.last_seq = 0
        journal.append([note("again")]).add_done_callback(lambda f: done.set_result(f.result()))

    failing(journal).add_done_callback(again)
    assert done.result(PATIENCE) == 1
    assert kept(database) == ["again"]


def test_compaction_deletes_what_it_is_told_and_nothing_else(
    database: Database, journal: Journal
) -> None:
    begin(database, "d")
    other = Journal.open(database, "d")[0]
    other.append([note(n) for n in range(5)]).result(PATIENCE)
    journal.append([note(n) for n in range(2000)]).result(PATIENCE)
    journal.compact(range(1, 1990)).result(PATIENCE)
    journal.compact([1, 5, 1990, 10**9]).result(PATIENCE)
    journal.compact([]).result(PATIENCE)
    assert kept(database) == list(range(1990, 2000))
    assert kept(database, "d") == list(range(5))


def test_the_number_of_a_deleted_entry_is_not_used_again(
    database: Database, journal: Journal
) -> None:
    last = journal.append([note(n) for n in range(3)]).result(PATIENCE)
    journal.compact([last]).result(PATIENCE)
    assert journal.append([note("new")]).result(PATIENCE) == last + 1


def test_the_file_stays_bounded_when_what_is_superseded_is_compacted(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with database_of(sqlite_url) as database:
        journal, _, _ = Journal.open(database, "c")
        sizes = []
        for _ in range(5):
            for _ in range(10):
                first = journal.last_seq + 1
                last = journal.append([note("x" * 1000) for _ in range(100)]).result(PATIENCE)
                journal.compact(range(first, last + 1)).result(PATIENCE)
            sizes.append(path.stat().st_size)
        assert max(sizes) == sizes[0]


def test_after_its_release_a_journal_writes_nothing(database: Database, journal: Journal) -> None:
    first = journal.append([note("before")])
    journal.release().result(PATIENCE)
    assert first.result(0) == 1
    with pytest.raises(StaleOwner, match=r"was closed, so nothing .*; open it again\."):
        journal.append([note("after")]).result(PATIENCE)
    with pytest.raises(StaleOwner):
        journal.compact([1]).result(PATIENCE)
    journal.release().result(PATIENCE)
    assert kept(database) == ["before"]


def test_after_the_conversation_was_deleted_nothing_is_written(
    database: Database, journal: Journal
) -> None:
    tables = database.tables
    journal.append([note(1)]).result(PATIENCE)
    database.run(lambda connection: connection.execute(tables.conversations.delete()))
    with pytest.raises(StaleOwner, match=r"was deleted, .*; begin another one\."):
        journal.append([note(2)]).result(PATIENCE)
    assert database.run(lambda connection: count(connection, tables.journal)) == 0


def test_who_is_interrupted_while_opening_owns_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(work: Any, **about: Any) -> None:
        database.submit(work, **about)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(database, "run", run)
        with pytest.raises(KeyboardInterrupt):
            Journal.open(database, "c")
    assert Journal.open(database, "c")[0].epoch == 2
