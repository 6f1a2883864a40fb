"""A copy of a store's file: whole, of one moment, and of nothing else."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import sagents_nb as sa
import sagents_nb.store.database.connection
from sagents_nb.errors import SagentsError
from tests.store import released
from tests.store.journals import database_of, kept

ROOT = Path(__file__).parents[2]
backup = sa.ConversationStore.backup

# Counts, each number once it is kept, until nobody reads any more.
WRITER = """
import sys
import sagents_nb.sql
from tests.store.journals import database_of, note
from sagents_nb.store.journal import Journal
sagents_nb.sql.wal_is_safe = lambda version: sys.argv[2] == "wal"
with database_of(sys.argv[1]) as database:
    journal, _, _ = Journal.open(database, "c")
    for number in range(10**6):
        journal.append([note(number)]).result()
        print(number, flush=True)
"""


@pytest.fixture
def path(sqlite_url: str) -> Path:
    """Where the store is, or is to be."""
    return Path(sqlite_url.removeprefix("sqlite:///"))


@pytest.mark.parametrize("mode", ["persist", "wal"])
def test_a_copy_has_all_that_was_kept_before_while_another_process_writes(
    path: Path, mode: str
) -> None:
    command = [sys.executable, "-c", WRITER, f"sqlite:///{path}", mode]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        counts = []
        for n in range(10):
            before = int(writer.stdout.readline())
            copy = path.with_name(f"copy{n}.db")
            backup(path, copy)
            assert not list(path.parent.glob(f"{copy.name}?*"))
            with database_of(f"sqlite:///{copy}") as database:
                numbers = kept(database)
            assert numbers == list(range(len(numbers)))
            assert len(numbers) > before
            counts.append(len(numbers))
        assert counts == sorted(counts)
        assert writer.poll() is None, "it did not go on"
        writer.kill()
    with contextlib.closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == (
            mode if mode == "wal" else "delete",
        )


def test_a_copy_is_for_its_user_alone_and_is_a_store(path: Path, tmp_path: Path) -> None:
    with database_of(f"sqlite:///{path}", "a", "b"):
        backup(str(path), str(tmp_path / "copy #1 100%.db"))
    [copy] = tmp_path.iterdir()
    assert stat.S_IMODE(copy.stat().st_mode) & 0o077 == 0
    store = sa.ConversationStore(copy)
    assert {each.id for each in store.list_conversations()} == {"a", "b"}
    store.close()


def test_a_store_of_an_older_version_is_copied_as_it_is(path: Path, tmp_path: Path) -> None:
    released.load(f"sqlite:///{path}", "0001")
    before = path.read_bytes()
    backup(path, tmp_path / "copy.db")
    assert path.read_bytes() == before
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT version_num FROM sagents_version").fetchall() == [("0001",)]
    store = sa.ConversationStore(tmp_path / "copy.db")
    released.assert_filled(store)
    store.close()


# Is gone in the middle of a transaction, of which the file has much and the journal the rest.
TORN = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode=PERSIST")
connection.execute("PRAGMA cache_size=1")
connection.execute("BEGIN")
connection.execute("UPDATE sagents_conversations SET title = hex(zeroblob(100000))")
connection.execute("UPDATE sagents_conversations SET metadata = hex(zeroblob(100000))")
os._exit(0)
"""


def test_a_transaction_that_a_crash_cut_off_is_not_in_the_copy(path: Path, tmp_path: Path) -> None:
    with database_of(f"sqlite:///{path}"):
        pass
    before = path.stat().st_size
    subprocess.run([sys.executable, "-c", TORN, str(path)], check=True)
    assert path.stat().st_size > before + 100_000
    backup(path, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_size == before
    store = sa.ConversationStore(tmp_path / "copy.db")
    assert store.get_conversation("c").title is None
    store.close()


def test_what_is_there_is_never_overwritten(path: Path) -> None:
    with database_of(f"sqlite:///{path}"):
        (path.parent / "copy.db").write_text("dear to somebody")
        before = sorted(os.listdir(path.parent))
        for taken in (path.parent / "copy.db", path.parent, path):
            with pytest.raises(sa.ConfigurationError, match="is there already; choose a name"):
                backup(path, taken)
        assert sorted(os.listdir(path.parent)) == before
        assert (path.parent / "copy.db").read_text() == "dear to somebody"


def empty(path: Path) -> None:
    path.touch()


def of_somebody_else(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE schema_version (version_num TEXT)")
        other.execute("CREATE TABLE journal (n INTEGER)")


def text(path: Path) -> None:
    path.write_text("Dear diary, " * 100)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (empty, "is an SQLite database, but no store"),
        (of_somebody_else, "is an SQLite database, but no store"),
        (text, r"cannot be copied to .*copy\.db: the file is no SQLite database"),
        (Path.mkdir, "There is no plain file"),
        (lambda path: None, "There is no plain file"),
    ],
)
def test_what_is_no_store_is_not_copied(tmp_path: Path, make: object, says: str) -> None:
    assert callable(make)
    make(tmp_path / "a.db")
    before = os.listdir(tmp_path)
    with pytest.raises(SagentsError, match=says):
        backup(tmp_path / "a.db", tmp_path / "copy.db")
    assert os.listdir(tmp_path) == before


def test_a_copy_goes_nowhere_that_is_not_there(path: Path, tmp_path: Path) -> None:
    with (
        database_of(f"sqlite:///{path}"),
        pytest.raises(sa.ConfigurationError, match="There is no directory"),
    ):
        backup(path, tmp_path / "made" / "copy.db")
    assert not os.listdir(tmp_path)


def test_a_server_has_a_tool_of_its_own_and_its_password_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(sa.ConfigurationError, match="pg_dump") as told:
        backup("postgresql://me:hunter2@host/db", tmp_path / "copy.db")
    assert "hunter2" not in str(told.value)


def test_a_damaged_store_is_told_and_not_copied(path: Path, tmp_path: Path) -> None:
    with database_of(f"sqlite:///{path}"):
        pass
    damaged = bytearray(path.read_bytes())
    damaged[5 * 4096 : 6 * 4096] = b"\xa5" * 4096
    path.write_bytes(damaged)
    with pytest.raises(
        sa.StoreError, match=r"is damaged \(.+\) and was not copied; keep its files"
    ):
        backup(path, tmp_path / "copy.db")
    assert not os.listdir(tmp_path)
    assert path.read_bytes() == damaged


def test_a_store_that_is_locked_is_not_waited_for_for_ever(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.store.database.connection, "LOCK_SECONDS", 0.05)
    with database_of(f"sqlite:///{path}"):
        pass
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sa.StoreError, match=r"cannot be copied to .* another program has had"):
            backup(path, tmp_path / "copy.db")
    assert not os.listdir(tmp_path)


ON_A_SMALL_DISK = """
import resource, signal, sys
from sagents_nb.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
sys.exit(main(["backup", *sys.argv[1:]]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_where_there_is_no_room_for_a_copy_nothing_is_left(path: Path, tmp_path: Path) -> None:
    with database_of(f"sqlite:///{path}"):
        pass
    assert path.stat().st_size > 50_000
    command = [sys.executable, "-c", ON_A_SMALL_DISK, str(path), str(tmp_path / "copy.db")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot be copied to" in done.stderr
    assert "Traceback" not in done.stderr
    assert not os.listdir(tmp_path)
