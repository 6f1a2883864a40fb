"""How SQLite is set up for a store, and what a connection has to assert before it is used."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa
import sagents_nb.sql
from sagents_nb.errors import ConfigurationError, StoreError
from sagents_nb.sql import JOURNAL_BYTES, Prepared, masked, path_of, url_of_place, wal_is_safe
from sagents_nb.store.database.connection import name_of, url_of
from sagents_nb.store.database.thread import Database
from tests.store.journals import begin, database_of
from tests.talking import in_threads


def ask(database: Database, pragma: str) -> Any:
    return database.run(lambda connection: connection.exec_driver_sql(f"PRAGMA {pragma}").scalar())


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 7, 0), False),
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 0), False),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 53, 0), True),
        ((4, 0, 0), True),
    ],
)
def test_wal_is_used_only_where_it_loses_no_commit(version: tuple[int, ...], safe: bool) -> None:
    assert wal_is_safe(version) is safe


@pytest.mark.parametrize(("safe", "mode"), [(True, "wal"), (False, "persist")])
def test_every_connection_is_durable(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, safe: bool, mode: str
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: safe)
    with database_of(sqlite_url) as database:
        for _ in range(2):
            assert ask(database, "synchronous") == 2
            assert ask(database, "journal_mode") == mode
            assert ask(database, "foreign_keys") == 1
            assert ask(database, "trusted_schema") == 0
            database.connection.disconnect()


def fill(database: Database, size: int) -> None:
    """Make a transaction that changes so many bytes of the file which were there before."""
    note = f"CREATE TABLE IF NOT EXISTS filler AS SELECT zeroblob({size}) AS it"
    database.run(lambda connection: connection.exec_driver_sql(note))
    change = f"UPDATE filler SET it = randomblob({size})"
    database.run(lambda connection: connection.exec_driver_sql(change))


def beside(database: Database, ending: str) -> int:
    """How many bytes the file has that SQLite keeps beside the store's."""
    return os.stat(f"{path_of(database.url)}-{ending}").st_size


def test_a_large_transaction_leaves_no_large_journal(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: False)
    with database_of(sqlite_url) as database:
        assert 0 < beside(database, "journal") < JOURNAL_BYTES
        fill(database, 2 * JOURNAL_BYTES)
        assert beside(database, "journal") == JOURNAL_BYTES


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """An SQLite that may use WAL, and copies nothing to the file by itself unless told."""
    connect = sqlite3.connect

    def connect_forgetfully(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.execute("PRAGMA wal_autocheckpoint=0")
        return connection

    monkeypatch.setattr(sqlite3.dbapi2, "connect", connect_forgetfully)
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: True)


def test_a_log_stays_small_however_much_is_written(sqlite_url: str, forgetful: None) -> None:
    with database_of(sqlite_url) as database:
        for _ in range(5):
            fill(database, JOURNAL_BYTES)
            assert beside(database, "wal") < 1.1 * JOURNAL_BYTES
        fill(database, 2 * JOURNAL_BYTES)
        assert beside(database, "wal") > 2 * JOURNAL_BYTES
        begin(database, "d")
        assert beside(database, "wal") == JOURNAL_BYTES


def test_a_log_is_small_again_once_nobody_reads_what_was_before(
    sqlite_url: str, forgetful: None
) -> None:
    with database_of(sqlite_url) as database:
        with contextlib.closing(sqlite3.connect(path_of(database.url) or "")) as other:
            reading = other.execute("SELECT 1 FROM sqlite_master")
            reading.fetchone()
            for _ in range(3):
                fill(database, JOURNAL_BYTES)
            assert beside(database, "wal") > 3 * JOURNAL_BYTES
            reading.close()
        fill(database, JOURNAL_BYTES)
        begin(database, "d")
        assert beside(database, "wal") == JOURNAL_BYTES


def test_who_closes_a_store_last_leaves_one_file(sqlite_url: str, forgetful: None) -> None:
    with database_of(sqlite_url, "c") as first:
        with database_of(sqlite_url, "d") as last:
            first.close()
            assert beside(last, "wal") > 0
        path = path_of(first.url)
        assert path is not None
        assert os.listdir(path.parent) == [path.name]
        with contextlib.closing(sqlite3.connect(path)) as raw:
            found = raw.execute("SELECT id FROM sagents_conversations ORDER BY id")
            assert found.fetchall() == [("c",), ("d",)]


def test_an_older_version_that_empties_the_journal_may_write_in_turn(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: False)
    path = path_of(url_of(sqlite_url))
    assert path is not None
    with database_of(sqlite_url) as ours, contextlib.closing(sqlite3.connect(path)) as older:
        older.execute("PRAGMA journal_mode=TRUNCATE")
        older.execute("CREATE TABLE turns (n INTEGER)")
        for turn in range(0, 20, 2):
            older.execute(f"INSERT INTO turns VALUES ({turn})")
            older.commit()
            assert beside(ours, "journal") == 0
            mine = f"INSERT INTO turns VALUES ({turn + 1})"
            ours.run(lambda connection, mine=mine: connection.exec_driver_sql(mine))
            assert beside(ours, "journal") > 0
        assert [n for (n,) in older.execute("SELECT n FROM turns ORDER BY n")] == list(range(20))
        assert older.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_every_connection_to_postgresql_commits_to_its_disk(
    postgres_url: str, usual: Callable[[str, str], None]
) -> None:
    for setting in ("on", "off"):
        usual("synchronous_commit", setting)
        with database_of(postgres_url) as database:
            asked = sql.text("SHOW synchronous_commit")
            assert database.run(lambda c, asked=asked: c.scalar(asked)) == "on"


def test_what_a_url_says_of_patience_counts(postgres_url: str) -> None:
    with database_of(f"{postgres_url}?connect_timeout=300") as database:
        raw = database.run(lambda connection: connection.connection.driver_connection)
        told = raw.info.get_parameters()
        assert told["connect_timeout"] == "300"
        assert told["keepalives_idle"] == "30"


def test_a_wal_that_another_program_has_open_is_not_shared_by_an_old_sqlite(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", 0.1)
    with database_of(sqlite_url):
        pass
    other = sqlite3.connect(str(path_of(url_of(sqlite_url))), isolation_level=None)
    other.execute("PRAGMA journal_mode=WAL")
    other.execute("SELECT * FROM sagents_journal").fetchall()
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: False)
    database = Database(sqlite_url)
    with pytest.raises(StoreError, match="cannot safely share; close that program"):
        ask(database, "journal_mode")
    other.close()
    assert ask(database, "journal_mode") == "persist"
    database.close()


# Ends as by kill -9: what it wrote is in the log alone.
KILLED = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode=WAL")
connection.execute("UPDATE sagents_conversations SET title = 'in the log'")
os._exit(0)
"""


@pytest.mark.parametrize(("safe", "mode"), [(True, "wal"), (False, "persist")])
def test_what_a_dead_process_left_in_wal_is_there_also_for_an_old_sqlite(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, safe: bool, mode: str
) -> None:
    with database_of(sqlite_url, "c") as database:
        path = str(path_of(database.url))
    subprocess.run([sys.executable, "-c", KILLED, path], check=True)
    assert beside(database, "wal") > 0
    assert b"in the log" not in Path(path).read_bytes()
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: safe)
    with database_of(sqlite_url, "c") as database:
        title = sql.select(database.tables.conversations.c.title)
        assert database.run(lambda connection: connection.scalar(title)) == "in the log"
        assert ask(database, "journal_mode") == mode
        assert os.path.exists(f"{path}-wal") is safe


def test_a_file_that_was_put_into_wal_by_hand_stays_in_it(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: False)
    with database_of(sqlite_url) as database:
        assert ask(database, "journal_mode") == "persist"
    with contextlib.closing(sqlite3.connect(str(path_of(database.url)))) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: True)
    with database_of(sqlite_url) as database:
        assert ask(database, "journal_mode") == "wal"


def test_a_file_that_has_begun_without_wal_stays_so(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: False)
    with database_of(sqlite_url) as old:
        monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: True)
        with database_of(sqlite_url) as new:
            assert ask(new, "journal_mode") == "persist"
        assert ask(old, "journal_mode") == "persist"


@pytest.mark.parametrize("safe", [True, False])
def test_many_may_begin_the_same_file_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safe: bool
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: safe)
    for n in range(5):
        databases = [Database(f"sqlite:///{tmp_path / f'store{n}.db'}") for _ in range(8)]
        in_threads(8, lambda index, them=databases: ask(them[index], "journal_mode"))
        assert {ask(database, "journal_mode") for database in databases} == {
            "wal" if safe else "persist"
        }
        for database in databases:
            database.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_new_store_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "made" / "for" / "it" / "store.db"
    with database_of(f"sqlite:///{path}"):
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_what_is_there_keeps_its_modes(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    path = tmp_path / "store.db"
    path.touch(0o644)
    path.chmod(0o644)
    with database_of(f"sqlite:///{path}"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_second_database_on_a_file_leaves_the_locks_of_the_first(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """POSIX drops all locks of a process on a file when it closes any one of its handles."""
    with database_of(sqlite_url) as one:

        def while_locked(connection: sql.Connection) -> str:
            two = Database(sqlite_url)
            with pytest.raises(StoreError, match="locked"):
                two.run(lambda _: None)
            two.close()
            code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 0).execute('BEGIN IMMEDIATE')"
            command = [sys.executable, "-c", code, str(path_of(one.url))]
            return subprocess.run(command, capture_output=True, text=True).stderr

        monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", 0.05)
        assert "database is locked" in one.run(while_locked)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:////a/b.db", "/a/b.db"),
        ("postgresql://u:hunter2@h/d", "postgresql://h/d"),
        ("postgres://u@h:1/d?password=hunter2", "postgresql://h:1/d"),
        ("postgresql+psycopg://u:hunter2@/d", "postgresql:///d"),
    ],
)
def test_a_store_has_a_name_without_its_password(url: str, name: str) -> None:
    assert name_of(url_of(url)) == name


@pytest.mark.parametrize(
    ("place", "said", "shown"),
    [
        ("me:w@h/d", 'password of "worker" is wrong', 'password of "worker" is wrong'),
        ("me:1@h/d", 'at "127.0.0.1", port 5431', 'at "127.0.0.1", port 5431'),
        ("me:server@h/d", "connection to server failed", "connection to server failed"),
        ("agents:agents@h/d", 'failed for user "agents"', 'failed for user "agents"'),
        ("me:w@h/d?sslmode=require", "SSL was required", "SSL was required"),
        ("me:w@h/d", "postgresql://me:w@h/d", "postgresql://me:***@h/d"),
        ("agents:agents@h/d", "password=agents user='me'", "password=*** user='me'"),
        ("me:hunter2@h/d", "it says xhunter2x", "it says x***x"),
        ("me@h/d?password=hunter2", "it says hunter2", "it says ***"),
    ],
)
def test_a_password_is_masked_and_no_word_that_it_happens_to_be(
    place: str, said: str, shown: str
) -> None:
    assert masked(sql.make_url(f"postgresql://{place}"), said) == shown


def test_a_path_is_meant_from_the_directory_in_which_the_store_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with database_of("sqlite:///store.db") as database:
        database.connection.disconnect()
        monkeypatch.chdir(tmp_path / "elsewhere")
        database.run(lambda _: None)
    assert (tmp_path / "store.db").exists()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_prepared_statement_takes_and_gives_what_any_other_does(url: str) -> None:
    with database_of(url) as database:
        table = database.tables.conversations
        adding = Prepared(table.insert())
        of_it = table.c.id == sql.bindparam("which")
        change = {"title": sql.bindparam("title", type_=table.c.title.type)}
        changing = Prepared(table.update().where(of_it).values(**change).returning(table.c.title))
        asked = sql.select(table).where(of_it).limit(1)
        moment = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=2)))

        def work(connection: sql.Connection) -> None:
            row = {
                "id": "a \ud800 b",
                "owner": "o",
                "title": None,
                "metadata": {"half": "\udfff", "number": 1.5},
                "created_at": moment,
                "updated_at": moment,
            }
            assert adding(connection, row).rows == []
            assert adding(connection, {**row, "id": "other"}).rows == []
            of_first = {"which": row["id"]}
            for _ in range(2):
                found = Prepared(asked)(connection, of_first).rows
                assert found == [tuple(connection.execute(asked, of_first).one())]
            assert found[0][table.columns.keys().index("metadata")] == row["metadata"]
            assert changing(connection, {**of_first, "title": "\ud83d"}) == ([("\ud83d",)], 1)
            assert changing(connection, {"which": "none", "title": "x"}) == ([], 0)

        database.run(work)
        with pytest.raises(StoreError, match=r"IntegrityError|UniqueViolation"):
            database.run(work)


def test_no_file_has_a_key_for_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    key = "sk-ant-api03-AbCdEf0123456789xyzXYZ"
    with pytest.raises(ConfigurationError, match="neither a path nor a URL") as raised:
        url_of_place(key)
    assert key not in str(raised.value)
    assert url_of_place("sk-learn-experiments/of-2026.db") is not None


def test_no_key_in_a_url_is_shown() -> None:
    key = "sk-ant-api03-AbCdEf0123456789xyzXYZ"
    for url in (f"postgresql://{key}", f"postgresql://{key}@host/d", f"sqlite://{key}@host/x"):
        for make in (sa.ConversationStore, sa.SQLStorage):
            with pytest.raises(ConfigurationError, match="postgresql://user@host/") as raised:
                make(url)
            assert key not in str(raised.value)
            assert raised.value.__cause__ is raised.value.__context__ is None


def test_no_attribute_of_an_unreachable_servers_error_has_the_password() -> None:
    with pytest.raises(StoreError) as raised:
        sa.ConversationStore("postgresql://me:canary-7781@127.0.0.1:9/d")
    error: BaseException | None = raised.value
    told = []
    while error is not None:
        told += [str(error), repr(error), repr(vars(error))]
        error = error.__cause__ or error.__context__
    assert "OperationalError" in "".join(told)
    assert "canary" not in "".join(told)
