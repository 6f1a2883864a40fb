"""What a search finds is what a plain look at all texts finds, whatever became of them."""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sql
from hypothesis import given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.store import display_rows
from sagents_nb.store.database import schema
from sagents_nb.store.display import DisplayMessage
from sagents_nb.store.store import ScopedStore
from tests.store.conftest import Selected

OWNERS: list[Any] = [sa.Scope(user="alice"), sa.Scope(user="bob"), None]

# Few enough that terms meet, of scripts with one to four bytes a character, and what is special.
LETTERS = "aab\"'%_/\\* ßſİΣςаяあ漢🧭\0\ud800\ufffe"
texts = st.text(st.sampled_from(LETTERS) | st.characters(codec=None), max_size=12)
seeds = st.integers(0, 2**32)


@contextlib.contextmanager
def eager(**numbers: int) -> Iterator[None]:
    """As if the store were so large that its index is used and brought up to date all the time."""
    few = {"BEHIND": 0, "CANDIDATES": 4, "LOOKED_AT": 2} | numbers
    with pytest.MonkeyPatch.context() as patch:
        for name, number in few.items():
            patch.setattr(display_rows, name, number)
        yield


def plainly(store: sa.ConversationStore, owner: int, term: str, limit: int) -> list[int]:
    """The numbers of the rows that hold it, newest first, by looking at each."""
    tables = store.database.tables
    rows, parents = tables.display_messages, tables.conversations
    asked = sql.select(rows, parents.c.owner).join(parents, parents.c.id == rows.c.conversation_id)
    found = store.database.run(lambda connection: connection.execute(asked).all())
    name = ['"alice"', '"bob"', ""][owner]
    wanted = display_rows.compared(term)
    held = [row for row in found if row.owner == name and wanted in (row.search_text or "")]
    held.sort(key=lambda row: (row.inserted_at, row.sequence, row.id), reverse=True)
    return [row.id for row in held[:limit]]


class People:
    """Who does anything at all to a store, by two connections, and by none of ours."""

    def __init__(self, stores: list[sa.ConversationStore], seed: int, words: list[str]) -> None:
        self.stores = stores
        self.random = random.Random(seed)
        self.words = words
        self.ids: list[tuple[int, str]] = []
        self.tables = stores[0].database.tables

    def scoped(self, owner: int) -> ScopedStore:
        """One of the stores, as the owner has it."""
        store = self.random.choice(self.stores)
        return store.scoped(OWNERS[owner]) if OWNERS[owner] else store

    def execute(self, statement: Any) -> Any:
        """What is done behind the back of all functions."""
        run = self.random.choice(self.stores).database.run
        return run(lambda connection: connection.execute(statement))

    def text(self) -> str:
        """A text, of which there are more."""
        return "".join(self.random.choices(self.words, k=self.random.randint(0, 3)))

    def begin(self) -> None:
        owner = self.random.randrange(len(OWNERS))
        self.ids.append((owner, self.scoped(owner).create_conversation().id))

    def say(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            owner, id = self.random.choice(self.ids)
            self.scoped(owner).append_text_message(id, "user", self.text())

    def call(self) -> None:
        owner, id = self.random.choice(self.ids)
        content = {"call_id": "c", "name": "ls", "arguments": {}}
        row = {"message_type": "assistant", "content_type": "tool_call", "content": content}
        self.scoped(owner).append_display_message(id, {**row, "status": "pending"})
        self.scoped(owner).mark_tool_executing("c", conversation_id=id)

    def delete(self) -> None:
        owner, id = self.ids.pop(self.random.randrange(len(self.ids)))
        self.scoped(owner).delete_conversation(id)

    def cascade(self) -> None:
        _, id = self.ids.pop(self.random.randrange(len(self.ids)))
        parents = self.tables.conversations
        self.execute(parents.delete().where(parents.c.id == id))

    def row(self) -> sql.ColumnElement[bool]:
        """One of the rows, or none."""
        numbers = self.numbers()
        number = self.random.choice([max(numbers), *numbers]) if numbers else -1
        return self.tables.display_messages.c.id == number

    def numbers(self) -> list[int]:
        """Those of all rows."""
        asked = sql.select(self.tables.display_messages.c.id)
        return self.stores[0].database.run(lambda c: list(c.execute(asked).scalars()))

    def lose(self) -> None:
        self.execute(self.tables.display_messages.delete().where(self.row()))

    def rewrite(self) -> None:
        text = display_rows.compared(self.text())
        rows = self.tables.display_messages
        self.execute(rows.update().where(self.row()).values(search_text=text))

    def put(self) -> None:
        """A row of another time, and perhaps of a number that is below others."""
        at = datetime.now(UTC) + timedelta(seconds=self.random.choice([-9, 0, 9]))
        values: dict[str, Any] = {"search_text": display_rows.compared(self.text())}
        values |= {"content": {}, "metadata": {}, "status": "completed", "message_type": "user"}
        values |= {"content_type": "text", "sequence": self.random.randint(0, 2), "inserted_at": at}
        values["conversation_id"] = self.random.choice(self.ids)[1]
        is_sqlite = self.stores[0].database.url.get_backend_name() == "sqlite"
        if is_sqlite and self.random.random() < 0.3:
            used = self.numbers()
            free = set(range(1, max(used, default=0) + 3)) - set(used)
            values["id"] = self.random.choice(sorted(free))
        self.execute(self.tables.display_messages.insert().values(**values))

    def look(self) -> None:
        """Everybody finds what is there."""
        text = self.text() or "a"
        for owner in range(len(OWNERS)):
            at = self.random.randrange(len(text))
            term = text[at : at + self.random.randint(1, 8)]
            limit = self.random.choice([1, 3, 50])
            found = self.scoped(owner).search_messages(term, limit)
            assert [row.id for row in found] == plainly(self.stores[0], owner, term, limit), term

    def go_on(self) -> None:
        """Do something, and look now and then."""
        often = [self.say, self.say, self.say, self.look, self.look, self.begin]
        do = self.random.choice(
            [*often, self.call, self.delete, self.cascade, self.lose, self.rewrite, self.put]
        )
        if do not in (self.begin, self.look) and not self.ids:
            do = self.begin
        do()


def check_people(url: str, seed: int, words: list[str], steps: int) -> None:
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(contextlib.closing(sa.ConversationStore(url))) for _ in "ab"]
        empty = stores[0].database.tables.conversations.delete()
        stores[0].database.run(lambda connection: connection.execute(empty))
        people = People(stores, seed, words)
        stack.enter_context(eager(CHARACTERS=people.random.choice([0, 20, 10**6])))
        for _ in range(steps):
            people.go_on()
        people.look()


@pytest.mark.spec("S1.12.6")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_search_finds_what_is_there_whatever_was_done(
    request: pytest.FixtureRequest, kind: str
) -> None:
    url = request.getfixturevalue({"sqlite": "sqlite_url", "postgresql": "postgres_url"}[kind])

    @settings(max_examples=15)
    @given(seeds, st.lists(texts, min_size=1, max_size=6))
    def check(seed: int, words: list[str]) -> None:
        check_people(url, seed, words, 40)

    check()


@pytest.mark.soak
@settings(max_examples=300)
@given(seeds, st.lists(texts, min_size=1, max_size=6))
def test_a_search_finds_what_is_there_after_much(
    tmp_path_factory: pytest.TempPathFactory, seed: int, words: list[str]
) -> None:
    check_people(f"sqlite:///{tmp_path_factory.mktemp('search')}/store.db", seed, words, 100)


def filled(store: ScopedStore, count: int, word: str = "Oslo") -> list[DisplayMessage]:
    """So many rows of a conversation of their own."""
    id = store.create_conversation().id
    return [store.append_text_message(id, "user", f"To {word}, {n}") for n in range(count)]


def indexed(url: str) -> tuple[int | None, set[str]]:
    """Up to which row the index of a file goes, and which trigrams it has."""
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, sagents_search, row)")
        [(last,)] = connection.execute("SELECT indexed FROM sagents_search_state")
        return last, {term for (term,) in connection.execute("SELECT term FROM v WHERE doc > 0")}


def delete_old(store: sa.ConversationStore, id: str) -> int:
    """Have one be old, and delete what is."""
    parents = store.database.tables.conversations
    then = datetime.now(UTC) - timedelta(days=40)
    aging = parents.update().where(parents.c.id == id).values(updated_at=then)
    store.database.run(lambda connection: connection.execute(aging))
    return store.delete_older_than()


@pytest.mark.spec("S1.12.6")
@pytest.mark.parametrize("by", ["its owner", "age", "another program"])
def test_a_deleted_conversation_leaves_nothing_in_the_index(sqlite_url: str, by: str) -> None:
    with contextlib.closing(sa.ConversationStore(sqlite_url)) as store, eager():
        filled(store, 3)
        gone = filled(store, 3, "Bergen")[0].conversation_id
        assert len(store.search_messages("bergen")) == 3
        assert indexed(sqlite_url)[0] == 6
        assert "erg" in indexed(sqlite_url)[1]
        if by == "its owner":
            store.delete_conversation(gone)
        elif by == "age":
            assert delete_old(store, gone) == 1
        else:  # another program, by the foreign key
            parents = store.database.tables.conversations
            deleted = parents.delete().where(parents.c.id == gone)
            store.database.run(lambda connection: connection.execute(deleted))
            assert len(store.search_messages("oslo")) == 3
        last, trigrams = indexed(sqlite_url)
        assert last == 3, "the numbers that follow are used again"
        assert "osl" in trigrams
        assert "erg" not in trigrams
        again = filled(store, 1, "Bergen")
        assert again[0].id == 4
        assert store.search_messages("bergen") == again


def test_a_row_that_is_kept_costs_the_index_nothing_until_somebody_searches(
    sqlite_url: str,
) -> None:
    with contextlib.closing(sa.ConversationStore(sqlite_url)) as store:
        many = filled(store, display_rows.BEHIND + 1)
        assert store.search_messages("oslo", 1) == many[-1:]
        before = indexed(sqlite_url)
        assert before[0] == many[-1].id
        later = filled(store, display_rows.BEHIND, "Bergen")
        assert store.search_messages("bergen", 3) == later[:-4:-1]
        assert indexed(sqlite_url) == before, "these few are looked at"
        filled(store, 1)
        assert store.search_messages("bergen", 3) == later[:-4:-1]
        assert indexed(sqlite_url)[0] == later[-1].id + 1


def test_a_search_reads_no_more_where_there_are_many_conversations(
    sqlite_url: str, selected: Selected
) -> None:
    with contextlib.closing(sa.ConversationStore(sqlite_url)) as store, eager(LOOKED_AT=100):
        counts = []
        for count in (5, 100):
            for _ in range(count):
                filled(store, 1)
            filled(store, 1, "Bergen")
            store.search_messages("bergen", 1)
            with selected(store) as plans:
                assert len(store.search_messages("bergen", 1)) == 1
                assert len(store.search_messages("oslo", 2)) == 2
            steps = [step for plan in plans.values() for step in plan]
            assert not [step for step in steps if "TEMP B-TREE" in step]
            scans = {step.split()[1] for step in steps if step.startswith("SCAN")}
            # The first is the index itself; the others have no more rows in a large store.
            others = {"sagents_search_state", "sagents_search_gone", "sqlite_master"}
            assert scans == {"sagents_search", *others}
            counts.append(len(steps))
        assert counts[0] == counts[1]


def test_a_clock_that_is_set_back_changes_nothing_in_what_is_newest(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        hours = iter([1, 9, 2, 3, 8, 10, 11])

        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime(2026, 3, 1, next(cls.hours), tzinfo=UTC)

    monkeypatch.setattr("sagents_nb.store.display_rows.datetime", Clock)
    with contextlib.closing(sa.ConversationStore(sqlite_url)) as store, eager(LOOKED_AT=1):
        saved = [filled(store, 1)[0] for _ in range(5)]
        for limit in (1, 2, 5):
            newest = sorted(saved, key=lambda row: row.inserted_at, reverse=True)
            assert store.search_messages("oslo", limit) == newest[:limit]
        saved += [filled(store, 1)[0] for _ in range(2)]
        assert store.search_messages("oslo", 3) == [saved[6], saved[5], saved[1]]


def test_what_others_have_hides_nothing(store: sa.ConversationStore, mine: ScopedStore) -> None:
    saved = filled(mine, 3)
    theirs = filled(store.scoped(sa.Scope(user="bob")), 20)
    with eager(CANDIDATES=4):
        assert mine.search_messages("oslo", 2) == saved[:0:-1]
        assert store.search_messages("oslo") == []
        assert store.scoped(sa.Scope(user="bob")).search_messages("oslo", 2) == theirs[:-3:-1]


def test_short_terms_are_found_too(store: sa.ConversationStore, mine: ScopedStore) -> None:
    with eager():
        saved = filled(mine, 2)
        filled(mine, 2, "Bergen")
        for term in ("o", "sl", "osl", "oslo, 1"):
            wanted = saved[::-1] if term != "oslo, 1" else saved[1:]
            found = mine.search_messages(term)
            assert [row for row in found if "Oslo" in row.content["text"]] == wanted


def test_without_trigrams_a_search_goes_on_and_what_another_sqlite_made_harms_nobody(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reopened(has_trigrams: bool) -> Any:
        monkeypatch.setattr(schema, "has_trigrams", lambda: has_trigrams)
        return contextlib.closing(sa.ConversationStore(sqlite_url))

    with eager():
        with reopened(True) as store:
            saved = filled(store, 3)
            gone = filled(store, 3)[0].conversation_id
            assert len(store.search_messages("oslo")) == 6
        with reopened(False) as store:
            known = sql.text("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'")
            assert store.database.run(lambda connection: connection.scalar(known)) == 0
            assert len(store.search_messages("oslo")) == 6
            store.delete_conversation(gone)
            assert store.search_messages("oslo") == saved[::-1]
            saved += filled(store, 1)
        with reopened(True) as store:
            assert store.search_messages("oslo") == saved[::-1]
            assert indexed(sqlite_url)[0] == saved[-1].id


def test_what_a_lost_transaction_indexed_is_not_taken_for_indexed(sqlite_url: str) -> None:
    with contextlib.closing(sa.ConversationStore(sqlite_url)) as store, eager():
        saved = filled(store, 3)

        def lost(connection: sql.Connection) -> None:
            display_rows.search(connection, store.database.tables, "", "oslo", 5)
            raise ValueError("lost")

        for _ in range(2):
            with pytest.raises(ValueError, match="lost"):
                store.database.run(lost)
            assert store.search_messages("oslo") == saved[::-1]
            saved += filled(store, 3)


KILLED = """
import os, signal, sys
import sagents_nb as sa
from sagents_nb.store import display_rows
display_rows.BEHIND = 0
store = sa.ConversationStore(sys.argv[1])
for n in range(4):
    id = store.create_conversation().id
    store.append_text_message(id, "user", f"To Oslo, {n}")
    assert len(store.search_messages("oslo")) == n + 1
store.delete_conversation(id)
def killed(connection):
    display_rows.append(connection, store.database.tables, "", first, [row])
    display_rows.search(connection, store.database.tables, "", "oslo", 5)
    os.kill(os.getpid(), signal.SIGKILL)
first, row = store.list_conversations()[0].id, sa.store.rows_of(sa.Message.user("Oslo?"))[0]
store.database.run(killed)
"""


def test_a_process_that_is_killed_leaves_an_index_that_is_right(sqlite_url: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, sqlite_url], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    with contextlib.closing(sa.ConversationStore(sqlite_url)) as store, eager():
        said = [row.content["text"] for row in store.search_messages("oslo")]
        assert said == ["To Oslo, 2", "To Oslo, 1", "To Oslo, 0"]
        saved = filled(store, 1)
        assert store.search_messages("oslo", 1) == saved
        assert indexed(sqlite_url)[0] == saved[0].id == 4


@pytest.mark.parametrize("part", ["TRIGGER sagents_search_deleted", "TABLE sagents_search_state"])
def test_an_index_that_lost_a_part_is_made_anew(sqlite_url: str, part: str) -> None:
    with contextlib.closing(sa.ConversationStore(sqlite_url)) as store, eager():
        saved = filled(store, 3)
        assert store.search_messages("oslo") == saved[::-1]
        rows = store.database.tables.display_messages
        others = [f"DROP TRIGGER sagents_search_{name}" for name in ("added", "changed", "deleted")]
        for statement in [f"DROP {part}"] if "TRIGGER" in part else [*others, f"DROP {part}"]:
            store.database.run(lambda c, text=statement: c.exec_driver_sql(text))
        lost = rows.delete().where(rows.c.id == saved.pop().id)
        store.database.run(lambda connection: connection.execute(lost))
        saved += filled(store, 1, "Oslo again")
        assert store.search_messages("oslo") == saved[::-1]


def test_postgresql_finds_by_trigrams_where_it_can(postgres_url: str) -> None:
    with contextlib.closing(sa.ConversationStore(postgres_url)) as store:
        ask = sql.text("SELECT indexdef FROM pg_indexes WHERE indexname LIKE '%messages_text'")
        found = store.database.run(lambda connection: connection.execute(ask).scalars().all())
        assert found
        assert all("USING gin (search_text" in each for each in found)
