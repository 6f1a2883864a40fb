"""What was acknowledged is there after ``kill -9``, at whatever moment that came."""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

import sagents_nb.sql
from sagents_nb.sql import path_of
from sagents_nb.store.database.connection import url_of
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store.journals import database_of, note, said
from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
ROOT = Path(__file__).parents[2]
NAMES = ("c", "d", "e")


def write_until_killed(url: str, pipe: int, seed: int, life: int) -> NoReturn:
    """In a process of its own: say each batch of entries that is committed, and go on.

    A batch is ``[life, batch, index, size]`` in each entry; one that is to be deleted is said
    before.
    """
    signal.alarm(60)  # should nobody kill it
    chance = random.Random(seed)
    database = Database(url)
    journals = {name: Journal.open(database, name)[0] for name in NAMES}
    os.write(pipe, b"begun\n")
    batch = 0
    while True:
        batch += 1
        write_batch(journals, pipe, chance, life, batch)


def write_batch(
    journals: dict[str, Journal], pipe: int, chance: random.Random, life: int, batch: int
) -> None:
    """Append to one of the journals, perhaps wait, and perhaps delete all but the newest entry.

    What is committed is said by the store's thread before it does anything else.
    """
    name, size = chance.choice(NAMES), chance.randint(1, 5)
    filler = "x" * chance.choice([0, 0, 100, 10_000])
    entries = [note([life, batch, index, size, filler]) for index in range(size)]
    future = journals[name].append(entries)
    told = f"kept {name} {life} {batch} {size}\n".encode()
    future.add_done_callback(lambda done: done.result() and os.write(pipe, told))
    if chance.random() < 0.1:
        last = future.result(PATIENCE)
        os.write(pipe, f"cut {name} {life} {batch}\n".encode())
        journals[name].compact([last])
    elif chance.random() < 0.3:
        future.result(PATIENCE)


# Forks the writers: it has loaded everything, and has no thread whose locks they would inherit.
NURSERY = """
import os, sys
import sagents_nb.sql
from tests.store.test_journal_crash import Database, write_until_killed
Database(sys.argv[1])  # which loads the driver
if sys.argv[2] == "wal":
    sagents_nb.sql.wal_is_safe = lambda version: True
for line in sys.stdin:
    seed, life = map(int, line.split())
    pid = os.fork()
    if pid == 0:
        try:
            write_until_killed(sys.argv[1], 1, seed, life)
        finally:
            os._exit(1)
    os.write(1, b"born %d\\n" % pid)
    code = os.waitpid(pid, 0)[1]
    os.write(1, b"dead %d\\n" % os.WTERMSIG(code))
"""


def one_life(nursery: subprocess.Popen[bytes], seed: int, life: int) -> list[list[str]]:
    """Let a process write, kill it, and give back what it said."""
    chance = random.Random(seed)
    assert nursery.stdin
    assert nursery.stdout
    nursery.stdin.write(f"{seed} {life}\n".encode())
    nursery.stdin.flush()
    said: list[list[str]] = []
    patience = chance.choice([0, 1, 2, 5, 20])
    while not any(line[0] == "born" for line in said) or len(said) <= patience:
        said.append(nursery.stdout.readline().decode().split())
    time.sleep(chance.uniform(0, 0.004))
    (pid,) = [int(line[1]) for line in said if line[0] == "born"]
    os.kill(pid, signal.SIGKILL)
    while said[-1][0] != "dead":
        said.append(nursery.stdout.readline().decode().split())
    assert said[-1][1] == str(int(signal.SIGKILL)), "it ended by itself"
    return said


def survive(url: str, lives: int, first_seed: int, mode: str = "") -> None:
    kept: dict[str, set[tuple[int, ...]]] = {name: set() for name in NAMES}
    cut: dict[str, set[tuple[int, ...]]] = {name: set() for name in NAMES}
    with database_of(url, *NAMES):
        pass
    command = [sys.executable, "-c", NURSERY, url, mode]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as nursery:
        for life in range(lives):
            seed = first_seed + life
            for what, *rest in one_life(nursery, seed, life):
                if what in ("kept", "cut"):
                    name, *numbers = rest
                    (kept if what == "kept" else cut)[name].add(tuple(map(int, numbers)))
            with contextlib.closing(Database(url)) as database:
                for name in NAMES:
                    _, entries, problems = Journal.open(database, name)  # the dead own nothing
                    assert not problems
                    assert_kept(said(entries), kept[name], cut[name], seed)
            if path := path_of(url_of(url)):
                with contextlib.closing(sqlite3.connect(path)) as raw:
                    (found,) = raw.execute("PRAGMA journal_mode").fetchone()
                    assert mode in ("", found)
                    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert nursery.stdin
        nursery.stdin.close()
    assert all(kept.values())


def assert_kept(
    values: list[Any], kept: set[tuple[int, ...]], cut: set[tuple[int, ...]], seed: int
) -> None:
    order = [value[:3] for value in values]
    assert order == sorted(order), seed
    found = collections.Counter((life, batch, size) for life, batch, _, size, _ in values)
    for batch in kept - found.keys():
        assert batch[:2] in cut, f"{batch} was lost; seed {seed}"
    for (life, batch, size), count in found.items():
        assert count == size or ((life, batch) in cut and count == size - 1), seed


def test_what_was_acknowledged_outlives_kill_9(url: str) -> None:
    survive(url, 20, first_seed=1)


@pytest.fixture
def wal_url(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with WAL, though several processes might not share it with every SQLite: here one
    begins when the other has ended."""
    monkeypatch.setattr(sagents_nb.sql, "wal_is_safe", lambda version: True)
    return sqlite_url


def test_what_was_acknowledged_outlives_kill_9_with_wal(wal_url: str) -> None:
    survive(wal_url, 20, first_seed=1, mode="wal")


FIVE_HUNDRED = pytest.mark.parametrize("first_seed", range(1000, 1500, 100))


@pytest.mark.soak
@FIVE_HUNDRED
def test_what_was_acknowledged_outlives_kill_9_500_times(url: str, first_seed: int) -> None:
    survive(url, 100, first_seed)


@pytest.mark.soak
@FIVE_HUNDRED
def test_what_was_acknowledged_outlives_kill_9_500_times_with_wal(
    wal_url: str, first_seed: int
) -> None:
    survive(wal_url, 100, first_seed, mode="wal")
