"""A row that is damaged, or was planted, is set aside; it harms nobody, and nothing runs."""

from __future__ import annotations

import contextlib
import json
import pickle
import random
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from sagents_nb.store.database.thread import Database
from sagents_nb.store.entries import KINDS, Entry
from sagents_nb.store.journal import Journal
from tests.store.journals import count, database_of, kept, note, said
from tests.talking import PATIENCE


def plant(database: Database, seq: int, **changes: Any) -> None:
    """Put a row into the journal past the journal itself."""
    table = database.tables.journal
    row = {"conversation_id": "c", "kind": "run", "data": '{"says": 1}', "escaped": False}
    row |= {"seq": seq, "at": datetime.now(UTC)} | changes
    database.run(lambda connection: connection.execute(table.insert(), row))


def aside(database: Database) -> list[Any]:
    table = database.tables.journal_damaged
    return list(
        database.run(lambda c: c.execute(table.select().order_by(table.c.seq)).all())  # type: ignore[arg-type]
    )


DAMAGED = [
    ({"data": ""}, "it is not JSON"),
    ({"data": '{"says": '}, "it is not JSON"),
    ({"data": "{'says': 1}"}, "it is not JSON"),
    ({"data": '{"says": NaN}'}, "it is not JSON"),
    ({"data": "9" * 5000}, "it is not JSON"),
    ({"data": "[" * 100_000}, "its JSON is too deep"),
    ({"data": "[1]"}, "its data is of type list, which no run is"),
    ({"data": "null"}, "its data is of type NoneType, which no run is"),
    ({"kind": "todos", "data": "{}"}, "its data is of type dict, which no todos is"),
    ({"kind": "gossip"}, "its kind 'gossip' is unknown"),
    ({"kind": ""}, "its kind '' is unknown"),
    ({"seq": 0}, "there are no such numbers"),
    ({"seq": -5}, "there are no such numbers"),
    ({"seq": 2**63 - 1}, "there are no such numbers"),
]


@pytest.mark.parametrize(("changes", "reason"), DAMAGED)
def test_a_damaged_row_is_set_aside_and_the_rest_opens(
    url: str, changes: dict[str, Any], reason: str
) -> None:
    with database_of(url) as database:
        journal, _, _ = Journal.open(database, "c")
        journal.append([note(n) for n in range(3)]).result(PATIENCE)
        journal.release().result(PATIENCE)
        plant(database, **({"seq": 4} | changes))
        plant(database, 5, data='{"says": "after"}')
        journal, entries, problems = Journal.open(database, "c")
        seq = changes.get("seq", 4)
        assert problems == [f"Journal entry {seq} was set aside: {reason}."]
        assert said(entries) == [0, 1, 2, "after"]
        (row,) = aside(database)
        assert (row.conversation_id, row.seq, row.reason) == ("c", seq, reason)
        assert (row.kind, row.data) == (changes.get("kind", "run"), changes.get("data", row.data))
        assert journal.append([note("new")]).result(PATIENCE) == 6
        assert kept(database) == [0, 1, 2, "after", "new"]  # without a problem


def test_the_last_row_that_was_set_aside_keeps_its_number(url: str) -> None:
    with database_of(url) as database:
        plant(database, 1)
        for seq in (2, 3):
            plant(database, seq, data="?")
            journal, entries, problems = Journal.open(database, "c", take_over=True)
            assert (len(entries), len(problems)) == (1, 1)
            assert journal.last_seq == seq
        assert [row.seq for row in aside(database)] == [2, 3]
        assert journal.append([note("new")]).result(PATIENCE) == 4


def test_what_a_newer_version_wrote_is_left_as_it_is(url: str) -> None:
    with database_of(url) as database:
        plant(database, 1, kind="begin", data='{"version": 99}')
        plant(database, 2, kind="hologram")
        _, entries, problems = Journal.open(database, "c")
        assert (len(entries), len(problems)) == (1, 1)
        assert aside(database) == []
        journal = database.tables.journal
        assert database.run(lambda connection: count(connection, journal)) == 2


def test_what_is_marked_as_escaped_and_is_not_is_harmless(url: str) -> None:
    with database_of(url) as database:
        plant(database, 1, data='{"says": "\ufffe00", "\ufffezzzz": "\ufffe"}', escaped=True)
        _, (entry,), problems = Journal.open(database, "c")
        assert not problems
        assert entry.data == {"says": "\ufffe00", "\ufffezzzz": "\ufffe"}


def test_an_index_that_leads_to_a_row_twice_hides_none_of_the_others(sqlite_url: str) -> None:
    with database_of(sqlite_url) as database:
        journal, _, _ = Journal.open(database, "c")
        journal.append([note(n) for n in range(4)]).result(PATIENCE)
        journal.release().result(PATIENCE)
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        connection.executescript(TWICE)
    with database_of(sqlite_url) as database:
        journal_table = database.tables.journal
        assert database.run(lambda connection: count(connection, journal_table)) == 5
        assert kept(database) == [0, 1, 2, 3]


# The index of the journal is from now on a tree that has its first row twice.
TWICE = """
    CREATE TABLE twice (id, seq, place, PRIMARY KEY (id, seq, place)) WITHOUT ROWID;
    INSERT INTO twice SELECT conversation_id, seq, rowid FROM sagents_journal;
    INSERT INTO twice SELECT conversation_id, 1.5, rowid FROM sagents_journal WHERE seq = 1;
    PRAGMA writable_schema=ON;
    UPDATE sqlite_schema
        SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'twice')
        WHERE name = 'sqlite_autoindex_sagents_journal_1';
"""


class Evil:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit",))


SEEDS: list[Any] = [
    pickle.dumps(Evil(), protocol=0),
    pickle.dumps(Evil()),
    b"cos\nsystem\n(S'touch owned'\ntR.",
    '{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "id"}}',
    '{"py/object": "os.system", "py/reduce": [{"py/type": "os.system"}, ["id"]]}',
    '{"__reduce__": ["os.system", ["id"]], "__class__": "Entry"}',
    '!!python/object/apply:os.system ["id"]',
    "'; DROP TABLE sagents_journal; --",
    '{"says": "\' OR 1=1; DELETE FROM sagents_leases; --"}',
    "__import__('os').system('id')",
    "[" * 20_000 + "]" * 20_000,
    '{"a":' * 5_000 + "1" + "}" * 5_000,
    '{"n": ' + "9" * 10_000 + "}",
    '{"n": 1e999, "m": -Infinity, "o": NaN}',
    '{"a": 1, "a": 2, "a": {"a": 3}}',
    '{"\\ud800": "\\udfff\\u0000"}',
    '{"says": "\ufffe0000\ufffed800"}',
    b"\xff\xfe{}\x00",
    b'{"says": "\xed\xa0\x80\xc3\x28"}',
    "\ufeff{}",
    "",
    " ",
    "null",
    "0",
    '"text"',
    0,
    -1,
    2**63 - 1,
    1.5,
    float("inf"),
    b"",
]
EVENTS = ("pickle.", "marshal.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")
EVENTS += (
    "subprocess.",
    "exec",
    "compile",
    "import",
    "ctypes.",
    "socket.connect",
    "os.remove",
    "shutil.",
)

_seen: list[str] | None = None


def _hook(event: str, arguments: Any) -> None:
    if _seen is not None and event.startswith(EVENTS):
        _seen.append(f"{event}: {arguments!r:.200}")


@contextlib.contextmanager
def watched() -> Iterator[list[str]]:
    """What happens meanwhile that no reader of rows has a reason to do."""
    global _seen
    if not getattr(sys, "sagents_watched", False):
        sys.addaudithook(_hook)  # it cannot be taken away again
        sys.sagents_watched = True  # type: ignore[attr-defined]
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None


def hostile(chance: random.Random) -> tuple[Any, ...]:
    """seq, kind, data, escaped and time of a row: good, bad, or a bit of each."""

    def some(*choices: Any) -> Any:
        return chance.choice(choices)

    def mutated(value: Any) -> Any:
        if isinstance(value, str) and chance.random() < 0.5:
            value = value.encode("utf-8", "surrogatepass")
        if isinstance(value, bytes) and value and chance.random() < 0.7:
            data = bytearray(value)
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(data) + 1)
                data[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
            value = bytes(data)
        if isinstance(value, bytes) and chance.random() < 0.7:
            return value.decode("utf-8", "ignore") if chance.random() < 0.8 else value
        return value

    good = json.dumps({"says": chance.random(), "deep": [{"x": "y" * chance.randint(0, 50)}]})
    data = mutated(some(good, *SEEDS))
    kind = some(*KINDS) if chance.random() < 0.8 else mutated(some("run", *SEEDS[:12]))
    # As text that is no UTF-8, which no driver lets one write in another way.
    cast = "TEXT" if isinstance(data, bytes) and chance.random() < 0.5 else None
    escaped = some(0, 1, 1, 7, -1, "x", b"\x00")
    at = some("2026-11-22 03:00:00.000000", "never", "", 0, -1.5, b"\xff", "9" * 500)
    return kind, data, cast, escaped, at


def plant_hostile(path: Path, rows: int, seed: int) -> int:
    chance = random.Random(seed)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for n in range(rows):
            kind, data, cast, escaped, at = hostile(chance)
            seq: Any = 2 * n + 2
            if chance.random() < 0.05:
                seq = chance.choice([f"x{n}", b"y%d" % n, n + 0.5, -n - 1, 2**63 - 1 - n, f"{n}'"])
            place = "CAST(? AS TEXT)" if cast else "?"
            connection.execute(
                "INSERT OR IGNORE INTO sagents_journal "
                "(conversation_id, seq, kind, data, escaped, at) "
                f"VALUES ('c', ?, ?, {place}, ?, ?)",
                (seq, kind, data, escaped, at),
            )
        found = connection.execute("SELECT count(*) FROM sagents_journal").fetchone()
    return int(found[0])


def survive(url: str, rows: int, seed: int) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    with database_of(url) as database:
        Journal.open(database, "c")[0].append([note(0)]).result(PATIENCE)
        plant(database, 3, data="?")
        Journal.open(database, "c", take_over=True)  # all that this needs has been loaded
        total = plant_hostile(path, rows, seed)
        for n in range(50):
            plant(database, 10_000_001 + n, data=json.dumps({"says": ["mine", n]}))
        with watched() as seen:
            journal, entries, problems = Journal.open(database, "c", take_over=True)
        assert seen == []
        mine = [entry for entry in entries if entry.data and "says" in entry.data]
        assert said([e for e in mine if e.seq > 10_000_000 or e.seq == 1]) == [
            0,
            *(["mine", n] for n in range(50)),
        ]
        assert len(entries) + len(problems) == total + 50
        assert len(problems) > rows / 4
        assert len(entries) > rows / 20 + 51
        for entry in entries:
            assert isinstance(entry, Entry)
            assert isinstance(entry.data, KINDS[entry.kind])
        tables = database.tables
        left = database.run(lambda connection: count(connection, tables.journal))
        moved = database.run(lambda connection: count(connection, tables.journal_damaged))
        assert (left, moved) == (len(entries), len(problems) + 1)
        assert journal.append([note("new")]).result(PATIENCE) == entries[-1].seq + 1
        again, same, none = Journal.open(database, "c", take_over=True)
        assert none == []
        assert repr(same[:-1]) == repr(entries)
        # What was read can be written again.
        again.append([Entry(entry.kind, entry.data) for entry in entries]).result(PATIENCE)
        _, twice, none = Journal.open(database, "c", take_over=True)
        assert none == []
        assert repr([e.data for e in twice[len(same) :]]) == repr([e.data for e in entries])


def test_hostile_rows_run_nothing_and_the_rest_opens(sqlite_url: str) -> None:
    survive(sqlite_url, 500, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_thousands_of_hostile_rows_run_nothing(sqlite_url: str, seed: int) -> None:
    survive(sqlite_url, 10_000, seed)


def test_the_watch_sees_what_it_watches_for() -> None:
    with watched() as seen:
        pickle.loads(pickle.dumps(sql.select))
        eval("1 + 1")
    assert any(event.startswith("pickle.find_class") for event in seen)
    assert any(event.startswith("compile") for event in seen)
