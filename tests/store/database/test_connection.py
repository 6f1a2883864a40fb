"""What happens when the disk, the file or the server fails: an error that says so, and no more."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import wait
from pathlib import Path

import pytest
import sqlalchemy as sql

import sagents_nb.sql
from sagents_nb.errors import StoreError
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store.journals import database_of, kept, note
from tests.talking import PATIENCE

ROOT = Path(__file__).parents[2]
root_only = pytest.mark.skipif(
    not (hasattr(os, "geteuid") and os.geteuid() == 0), reason="only root may do it"
)


@pytest.fixture
def path(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", 0.1)


def refused(journal: Journal, size: int = 1) -> str:
    """What the error says to an append that cannot be written."""
    with pytest.raises(StoreError) as caught:
        journal.append([note("lost" + "x" * size)]).result(PATIENCE)
    return str(caught.value)


def assert_sound(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_full_disk_writes_nothing_and_is_recovered_from(sqlite_url: str, path: Path) -> None:
    with database_of(sqlite_url) as database:
        journal, _, _ = Journal.open(database, "c")
        journal.append([note(0)]).result(PATIENCE)
        for n in range(1, 101):
            fill = lambda c: c.exec_driver_sql("PRAGMA max_page_count=1").scalar()  # noqa: E731
            database.run(fill)  # as far as the file goes now
            before = path.stat().st_size
            said = refused(journal, 100_000)
            assert said == (
                f"The store {path} cannot be used: the disk is full; "
                "free some space, then try again."
            )
            assert path.stat().st_size == before
            journal.append([note(n)]).result(PATIENCE)  # on a connection without that limit
        assert kept(database) == list(range(101))
        assert_sound(path)


def test_a_full_disk_fails_all_that_was_to_be_committed_with_it(sqlite_url: str) -> None:
    with database_of(sqlite_url, "c", "d") as database:
        c, d = Journal.open(database, "c")[0], Journal.open(database, "d")[0]
        go_on = threading.Event()

        full = "PRAGMA max_page_count=1"
        database.run(lambda connection: connection.exec_driver_sql(full).all())
        database.submit(lambda _: go_on.wait(PATIENCE))
        futures = [c.append([note("small")]), d.append([note("x" * 100_000)])]
        go_on.set()
        for future in futures:
            with pytest.raises(StoreError, match="disk is full"):
                future.result(PATIENCE)
        assert kept(database, "c") == kept(database, "d") == []


def test_work_that_hides_a_full_disk_is_not_taken_for_done(sqlite_url: str) -> None:
    with database_of(sqlite_url) as database:
        journal, _, _ = Journal.open(database, "c")
        conversations = database.tables.conversations

        def hide(connection: sql.Connection) -> None:
            connection.exec_driver_sql("PRAGMA max_page_count=1")
            with contextlib.suppress(sql.exc.OperationalError):
                connection.execute(conversations.update().values(title="x" * 100_000))
            hidden.append(connection.connection.driver_connection.in_transaction)

        hidden: list[bool] = []
        with pytest.raises(StoreError, match="lost what was not saved yet"):
            journal.append([note("small")], hide).result(PATIENCE)
        assert hidden == [False]
        assert kept(database) == []


@root_only
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this system mounts nothing")
    try:
        with database_of(f"sqlite:///{disk / 'store.db'}") as database:
            journal, _, _ = Journal.open(database, "c")
            for n in range(10):
                journal.append([note(n)]).result(PATIENCE)
                with contextlib.suppress(OSError), (disk / "rest").open("wb", 0) as rest:
                    while rest.write(b"x" * 4096):
                        pass
                assert "the disk is full" in refused(journal, 50_000)
                (disk / "rest").unlink()
            assert kept(database) == list(range(10))
            assert_sound(disk / "store.db")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_locked_file_is_waited_for(
    sqlite_url: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", PATIENCE)
    with database_of(sqlite_url) as database:
        journal, _, _ = Journal.open(database, "c")
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        future = journal.append([note("waited")])
        threading.Timer(0.3, other.rollback).start()
        assert future.result(PATIENCE) == 1
        other.close()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("lock", ["BEGIN EXCLUSIVE", "BEGIN IMMEDIATE", "BEGIN"])
def test_a_file_that_stays_locked_is_told_and_recovered_from(
    sqlite_url: str, path: Path, lock: str
) -> None:
    with database_of(sqlite_url) as database:
        journal, _, _ = Journal.open(database, "c")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute(lock)
        other.execute("SELECT * FROM sagents_journal").fetchall()  # a reader stops a commit, too
        assert "another program has had it locked" in refused(journal)
        other.rollback()
        other.close()
        journal.append([note("then")]).result(PATIENCE)
        assert kept(database) == ["then"]
        assert_sound(path)


READ_ONLY = """
import os, sys
from sagents_nb.errors import StoreError
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
Database("sqlite://").run(lambda _: None)  # all is loaded that this user may not read
os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    Journal.open(Database(sys.argv[1]), "c")
except StoreError as error:
    print(error)
"""


@root_only
@pytest.mark.parametrize("there", [True, False])
def test_a_directory_that_may_not_be_written_is_told(tmp_path: Path, there: bool) -> None:
    place = Path("/var/tmp") / f"sagents-{os.getpid()}"  # where another user may look
    place.mkdir(mode=0o755)
    path = place / "store.db"
    try:
        if there:
            with database_of(f"sqlite:///{path}"):
                path.chmod(0o644)
        command = [sys.executable, "-c", READ_ONLY, f"sqlite:///{path}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert "make the file and its directory writable" in done.stdout, done.stderr
    finally:
        for file in place.iterdir():
            file.unlink()
        place.rmdir()


def test_a_file_that_is_no_database_is_left_alone(sqlite_url: str, path: Path) -> None:
    path.write_text("Dear diary, " * 100)
    with pytest.raises(StoreError, match="is no SQLite database, or is damaged; choose another"):
        Database(sqlite_url).run(lambda _: None)
    assert path.read_text() == "Dear diary, " * 100


def test_a_damaged_file_is_told(sqlite_url: str, path: Path) -> None:
    with database_of(sqlite_url) as database:
        journal, _, _ = Journal.open(database, "c")
        for _ in range(20):
            journal.append([note("x" * 2000)]).result(PATIENCE)
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = b"\xa5" * (len(damaged) - 4096)
    path.write_bytes(damaged)
    database = Database(sqlite_url)
    with pytest.raises(StoreError, match=r"the file is damaged; keep a copy"):
        Journal.open(database, "c")
    database.close()
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_file_that_was_taken_away_is_noticed(sqlite_url: str, path: Path, how: str) -> None:
    with database_of(sqlite_url) as database:
        journal, _, _ = Journal.open(database, "c")
        path.rename(path.with_name("away"))
        if how == "replaced":
            sqlite3.connect(path).close()
            path.touch()
        for _ in range(2):  # nor is another made in its place, or taken for it
            assert "was moved or deleted while it was open" in refused(journal)
            assert path.exists() == (how == "replaced")
        path.unlink(missing_ok=True)
        path.with_name("away").rename(path)
        journal.append([note("back")]).result(PATIENCE)
        assert kept(database) == ["back"]


def test_a_directory_is_no_store_and_told_as_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a directory; name a file in it"):
        Database(f"sqlite:///{tmp_path}").run(lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot be opened or made \(File exists\); make"):
        Database(f"sqlite:///{tmp_path}/file/store.db").run(lambda _: None)


def test_a_forked_child_makes_no_connection_in_the_place_of_one_that_was_just_lost(
    url: str,
) -> None:
    made: list[object] = []
    with database_of(url) as database:
        reached, go_on = threading.Event(), threading.Event()

        def lose(connection: sql.Connection) -> None:
            connection.invalidate()
            reached.set()
            assert go_on.wait(PATIENCE)

        losing = database.submit(lose)
        assert reached.wait(PATIENCE)
        sql.event.listen(database.connection.engine, "connect", lambda *args: made.append(args))
        try:
            database.connection.after_fork()  # as in a child, where no other thread goes on
            assert made == []
        finally:
            go_on.set()
            wait([losing], PATIENCE)
