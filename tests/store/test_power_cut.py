"""What was acknowledged is there after a power cut, at whatever moment that came.

A process that writes is recorded; what it wrote is put back into states in which a disk may be
that lost its power in the meantime. The next process begins with one of these.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from sagents_nb.errors import NotFound, StoreError
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store import power
from tests.store.journals import said
from tests.store.test_journal_crash import NAMES, assert_kept

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace, which records system calls, is not installed"
)
ROOT = Path(__file__).parents[2]
STORE = Path("made", "for", "it", "store.db")
BATCHES = 40

# Small limits, so that it happens often: that pages of a transaction go to the file before its
# end, that a log is copied to the file, and that what is left of a journal is cut.
WRITER = f"""
import random, sys
import sagents_nb.sql
from tests.store.journals import begin
from tests.store.test_journal_crash import NAMES, Database, Journal, os, write_batch
path, mode, seed, life, careless = sys.argv[1:]
sagents_nb.sql.wal_is_safe = lambda version: mode == "wal"
sagents_nb.sql.JOURNAL_BYTES = 30_000
database = Database(f"sqlite:///{{path}}")
driver = database.run(sagents_nb.sql.driver_of)
pragmas = ["cache_size=5", "wal_autocheckpoint=10"] + ["synchronous=OFF"] * (careless == "True")
for pragma in pragmas:
    driver.execute(f"PRAGMA {{pragma}}")
for name in NAMES:
    begin(database, name)
    os.write(1, f"made {{name}}\\n".encode())
journals = {{name: Journal.open(database, name)[0] for name in NAMES}}
chance = random.Random(int(seed))
for batch in range({BATCHES}):
    write_batch(journals, 1, chance, int(life), batch)
database.close()
"""


class Witness:
    """What somebody was told by processes, each of which began with what a power cut had left."""

    def __init__(self, folder: Path, mode: str, *, careless: bool = False) -> None:
        self.folder = folder
        self.mode = mode
        self.careless = careless
        self.files: power.Files = {}
        self.made: set[str] = set()
        self.kept: dict[str, set[tuple[int, ...]]] = defaultdict(set)
        self.cut: dict[str, set[tuple[int, ...]]] = defaultdict(set)
        self.lives = 0
        self.acknowledged = 0

    def see(self, lives: int, states: int, first_seed: int = 1) -> None:
        """Watch that many processes, one after the other."""
        for seed in range(first_seed, first_seed + lives):
            self.one_life(states, seed)

    def one_life(self, states: int, seed: int) -> None:
        """Have a process write, and look into that many of the states it may have left."""
        self.lives += 1
        chance = random.Random(seed)
        calls = self.recorded(seed)
        end = chance.randrange(len(calls) + 1)
        moments = [*sorted(chance.randint(0, end) for _ in range(states - 1)), end]
        root = self.folder / "written"
        disk = power.Disk(root, self.files)
        done = 0
        for number, moment in enumerate(moments):
            for call in calls[done:moment]:
                if power.is_said(call.name, call.arguments):
                    self.hear(call.texts()[0].decode())
                else:
                    disk.do(call)
            done = moment
            left = disk.after_power_cut(chance)
            self.look_into(left, f"seed {seed}, state {number}, after call {moment}")
        self.files = left

    def recorded(self, seed: int) -> list[power.Call]:
        """What a process did that began with these files."""
        root = self.folder / "written"
        with made(root, self.files):
            arguments = [str(root / STORE), self.mode, str(seed), str(self.lives)]
            command = [sys.executable, "-c", WRITER, *arguments, str(self.careless)]
            return list(power.record(command, root, self.folder / "calls", ROOT))

    def hear(self, told: str) -> None:
        """Take what the process acknowledged."""
        for line in told.splitlines():
            what, name, *numbers = line.split()
            if what == "made":
                self.made.add(name)
            else:
                into = self.kept if what == "kept" else self.cut
                into[name].add(tuple(map(int, numbers)))
                self.acknowledged += what == "kept"

    def look_into(self, files: power.Files, where: str) -> None:
        """Open the store that is left, and compare it with what was acknowledged."""
        with made(self.folder / "left", files) as root:
            path = root / STORE
            with contextlib.closing(Database(f"sqlite:///{path}")) as database:
                for name in NAMES:
                    try:
                        _, entries, problems = Journal.open(database, name)
                    except NotFound:
                        assert name not in self.made, where
                        continue
                    assert not problems, where
                    assert_kept(said(entries), self.kept[name], self.cut[name], where)
            with contextlib.closing(sqlite3.connect(path)) as raw:
                assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)], where


@contextlib.contextmanager
def made(root: Path, files: power.Files) -> Iterator[Path]:
    """A directory with these files, for a while."""
    root.mkdir()
    try:
        power.write(files, root)
        yield root
    finally:
        shutil.rmtree(root)


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where that can be: what is synced is seen from the calls."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="sagents-", dir=place) as name:
        yield Path(name)


@pytest.mark.parametrize("mode", ["persist", "wal"])
def test_what_was_acknowledged_outlives_a_power_cut(folder: Path, mode: str) -> None:
    witness = Witness(folder, mode)
    witness.see(lives=2, states=5)
    while not witness.acknowledged:  # the power was cut before anything was
        witness.see(lives=1, states=5, first_seed=witness.lives + 1)


def test_a_store_that_does_not_sync_is_found_out(folder: Path) -> None:
    witness = Witness(folder, "persist", careless=True)
    with pytest.raises((AssertionError, StoreError, sqlite3.DatabaseError)):
        witness.see(lives=100, states=5)


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["persist", "wal"])
def test_what_was_acknowledged_outlives_200_power_cuts(folder: Path, mode: str) -> None:
    witness = Witness(folder, mode)
    witness.see(lives=20, states=10, first_seed=int(time.time()))
    assert witness.acknowledged > 100
