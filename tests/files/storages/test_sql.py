"""Files in a database: where it is, what it says, and who shares it."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from sqlalchemy.dialects import mysql, postgresql

import sagents_nb.sql
from sagents_nb import drives
from sagents_nb.errors import ConfigurationError
from sagents_nb.files import FileError
from sagents_nb.files.entry import new_file
from sagents_nb.files.storages.sql import SQLStorage, files_table
from tests.talking import PATIENCE

SCOPE = "user:1"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'files.db'}"
    return str(request.getfixturevalue("postgres_url"))


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    SQLStorage(f"sqlite:///{tmp_path / 'files.db'}")
    assert list(tmp_path.iterdir()) == []


def test_two_tables_of_one_database_are_two_storages(url: str) -> None:
    engine = sql.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    one, two = SQLStorage(engine), SQLStorage(engine, table="other files")
    one.save(SCOPE, new_file("a.md", "1"))
    two.save(SCOPE, new_file("a.md", "2"))
    assert (one.load(SCOPE, "a.md").content, two.load(SCOPE, "a.md").content) == ("1", "2")
    one.close()
    assert two.load(SCOPE, "a.md").content == "2"  # the engine is not ours to close
    engine.dispose()


def test_the_list_reads_no_content(url: str) -> None:
    engine = sql.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    storage = SQLStorage(engine)
    storage.save(SCOPE, new_file("a.md", "a"))
    asked: list[str] = []

    @sql.event.listens_for(engine, "before_cursor_execute")
    def remember(_c: Any, _k: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    storage.list(SCOPE)
    asked = [statement for statement in asked if "FROM" in statement]
    assert len(asked) == 1
    assert "content" not in asked[0]
    engine.dispose()


def test_two_that_save_the_same_new_file_at_once_both_succeed(url: str) -> None:
    storages = {who: SQLStorage(url) for who in ("a", "b")}  # as in two processes
    together = threading.Barrier(2, timeout=PATIENCE)

    def work(who: str) -> None:
        for number in range(20):
            together.wait()
            storages[who].save(SCOPE, new_file(f"{number}.md", who, title=who))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, storages))
    found = {e.path: e.title for e in storages["a"].list(SCOPE)}
    assert len(found) == 20
    assert all(storages["b"].load(SCOPE, path).content == who for path, who in found.items())
    for storage in storages.values():
        storage.close()


def test_a_database_in_memory_is_for_several_threads() -> None:
    storage = SQLStorage("sqlite://")

    def work(number: int) -> None:
        for version in range(5):
            storage.save(SCOPE, new_file(f"{number}.md", str(version)))
            assert storage.load(SCOPE, f"{number}.md").content == str(version)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    assert len(list(storage.list(SCOPE))) == 16
    storage.close()


def test_a_path_may_be_longer_than_the_keys_of_a_database(url: str) -> None:
    storage = SQLStorage(url)
    path = "/".join(["é" * 100] * 19)
    storage.save(SCOPE, new_file(path, "deep"))
    assert storage.load(SCOPE, path).content == "deep"
    storage.close()


def test_spellings_are_different_files(url: str) -> None:
    storage = SQLStorage(url)
    for path in ("a", "A", "a ", "é", "e\u0301", "K", "\u212a"):
        storage.save(SCOPE, new_file(path, path))
    assert {e.path for e in storage.list(SCOPE)} == {"a", "A", "a ", "é", "e\u0301", "K", "\u212a"}
    assert storage.load(SCOPE, "A").content == "A"
    storage.close()


@pytest.mark.parametrize("dialect", [mysql.dialect(), postgresql.dialect()])
def test_the_table_can_be_made_in_other_databases(dialect: Any) -> None:
    table = files_table("sagents_files")
    assert "sagents_files" in str(sql.schema.CreateTable(table).compile(dialect=dialect))


# how safe it is


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """All connections that are made, by an SQLite that leaves commits to chance unless told."""
    connections: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connect_carelessly(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.execute("PRAGMA synchronous=OFF")
        connections.append(connection)
        return connection

    monkeypatch.setattr(sqlite3.dbapi2, "connect", connect_carelessly)
    return connections


def test_a_saved_file_is_on_the_disk_whatever_sqlite_does_by_itself(
    careless: list[sqlite3.Connection], tmp_path: Path
) -> None:
    storage = SQLStorage(f"sqlite:///{tmp_path / 'files.db'}")
    storage.save(SCOPE, new_file("a.md", "a"))
    assert careless
    for connection in careless:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA fullfsync").fetchone() == (1,)
    storage.close()


@pytest.mark.parametrize(("safe", "mode"), [(True, "wal"), (False, "delete")])
def test_many_may_begin_the_same_file_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safe: bool, mode: str
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: safe)
    for round_ in range(5):
        place = tmp_path / f"files{round_}.db"
        storages = [SQLStorage(f"sqlite:///{place}") for _ in range(8)]

        def work(number: int, storages: list[SQLStorage] = storages) -> None:
            for turn in range(3):
                storages[number].save(SCOPE, new_file(f"{number}/{turn}.md", str(turn)))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert len(list(storages[0].list(SCOPE))) == 24
        for storage in storages:
            storage.close()
        with contextlib.closing(sqlite3.connect(place)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == (mode,)


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's table of mounts")
def test_a_network_drive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text(f"/dev/sda / ext4 rw 0 0\nnas:/a {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(drives, "MOUNT_TABLE", tmp_path / "mounts")
    with pytest.raises(ConfigurationError, match=r"files\.db is on a network drive \(nfs4\)"):
        SQLStorage(f"sqlite:///{tmp_path / 'files.db'}")


# what is wrong with it


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("no url: hunter2", "needs the URL of a database"),
        (7, "is text, an URL"),
        ("nonesuch://me:hunter2@host/db", "no database called 'nonesuch'"),
        ("mysql+nonesuch://me:hunter2@host/db", "no database called"),
    ],
)
def test_a_bad_url_is_told_without_its_password(given: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        SQLStorage(given)
    assert "hunter2" not in str(caught.value)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'sagents-nb\[postgres\]'"):
        SQLStorage("postgresql://host/db")


def test_a_missing_sqlalchemy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'sagents-nb\[store\]'"):
        SQLStorage("sqlite://")


def test_a_database_that_is_not_there_is_told_without_its_password() -> None:
    url = "postgresql://me:hunter2@127.0.0.1:1/db?sslpassword=hunter2&connect_timeout=2"
    storage = SQLStorage(url)
    with pytest.raises(FileError, match=r"a\.md could not be saved in postgresql") as caught:
        storage.save(SCOPE, new_file("a.md", "a"))
    assert "hunter2" not in f"{caught.value!r} {storage!r} {caught.value.__cause__!r}"
    assert "127.0.0.1" in str(caught.value)  # what is no secret stays readable


def test_what_fails_tells_no_content(tmp_path: Path) -> None:
    storage = SQLStorage(f"sqlite:///{tmp_path / 'files.db'}")
    storage.save(SCOPE, new_file("a.md", "old"))
    with contextlib.closing(sqlite3.connect(tmp_path / "files.db")) as connection:
        connection.execute(
            "CREATE TRIGGER t BEFORE UPDATE ON sagents_files BEGIN "
            "SELECT RAISE(ABORT, 'the disk is full'); END"
        )
    with pytest.raises(FileError, match="the disk is full") as caught:
        storage.save(SCOPE, new_file("a.md", "confidential"))
    assert "confidential" not in f"{caught.value} {caught.value.__cause__}"
    assert storage.load(SCOPE, "a.md").content == "old"
    storage.close()


def test_a_database_of_something_else_is_not_taken_for_one_of_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database at all, but a text of some length" * 30)
    storage = SQLStorage(f"sqlite:///{tmp_path / 'notes.txt'}")
    with pytest.raises(FileError, match="not a database"):
        storage.list(SCOPE)
    storage.close()


def test_a_byte_of_the_schema_that_is_no_text_is_told_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "files.db"
    storage = SQLStorage(f"sqlite:///{path}")
    storage.save(SCOPE, new_file("a.md", "1"))
    storage.close()
    whole = path.read_bytes()
    name = whole.index(b"tablesagents_files")
    path.write_bytes(whole[: name + 8] + b"\x80" + whole[name + 9 :])
    with pytest.raises(FileError, match=r"a\.md could not be read in .*: it is damaged; look"):
        SQLStorage(f"sqlite:///{path}").load(SCOPE, "a.md")
