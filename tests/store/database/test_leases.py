"""One owner: who lives, who is dead, and what a zombie may still do, which is nothing."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb.sql
from sagents_nb.errors import NotRunning, Owned, StaleOwner
from sagents_nb.store.database import leases
from sagents_nb.store.database.leases import Owner
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store.journals import database_of, kept, note, said
from tests.talking import PATIENCE

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with database_of(url) as made:
        yield made


def lease(database: Database) -> Any:
    table = database.tables.leases
    return database.run(lambda connection: connection.execute(table.select()).one())


def give_to(database: Database, owner: str, seconds: float = 0.0) -> None:
    """Make somebody else the owner, whose last heartbeat was so many seconds ago."""
    table = database.tables.leases
    at = lease(database).heartbeat_at + timedelta(seconds=-seconds)
    values = {"owner": owner, "host": "elsewhere", "pid": 4711, "heartbeat_at": at}
    database.run(lambda connection: connection.execute(table.update().values(**values)))


def elsewhere(**changes: Any) -> str:
    """An owner as it is kept: one on another machine, or what is changed of this process."""
    me = Owner.new()
    parts = {"machine": "another", "pid": me.pid, "started": me.started, "store": "s"} | changes
    return Owner(**parts).text


def test_a_second_owner_is_told_who_the_first_is_and_how_to_take_over(database: Database) -> None:
    Journal.open(database, "c")
    with pytest.raises(Owned) as caught:
        Journal.open(database, "c")
    error = caught.value
    assert re.fullmatch(
        r"Conversation 'c' has been open in this process since [-\d]+ [\d:]+ UTC; "
        r"close it there, or open it with take_over=True\.",
        str(error),
    )
    assert (error.host, error.pid) == (socket.gethostname(), os.getpid())
    assert abs(datetime.now(UTC) - error.since) < timedelta(seconds=60)
    give_to(database, elsewhere())
    with pytest.raises(Owned, match="has been open in process 4711 on elsewhere since"):
        Journal.open(database, "c")


def test_two_stores_of_one_process_are_two_owners(url: str, database: Database) -> None:
    journal, _, _ = Journal.open(database, "c")
    with database_of(url) as other, pytest.raises(Owned, match="in this process"):
        Journal.open(other, "c")
    journal.append([note(1)]).result(PATIENCE)  # the other's end gave up only what was its own
    assert kept(database) == [1]


def test_epochs_only_grow(database: Database, url: str) -> None:
    epochs = []
    for _ in range(3):
        journal, _, _ = Journal.open(database, "c")
        epochs.append(journal.epoch)
        journal.release().result(PATIENCE)
    for _ in range(2):
        epochs.append(Journal.open(database, "c", take_over=True)[0].epoch)
    database.close()
    with database_of(url) as again:
        epochs.append(Journal.open(again, "c")[0].epoch)
    assert epochs == [1, 2, 3, 4, 5, 6]


def test_a_zombie_writes_nothing(url: str, database: Database) -> None:
    zombie, _, _ = Journal.open(database, "c")
    zombie.append([note("mine")]).result(PATIENCE)
    with database_of(url) as other:
        owner, entries, _ = Journal.open(other, "c", take_over=True)
        assert said(entries) == ["mine"]
        for future in (zombie.append([note("zombie")]), zombie.compact([1])):
            with pytest.raises(StaleOwner, match=r"taken over by .* take_over=True") as caught:
                future.result(PATIENCE)
            assert isinstance(caught.value, NotRunning)
        zombie.release().result(PATIENCE)
        owner.append([note("still")]).result(PATIENCE)
        assert kept(other) == ["mine", "still"]


def test_who_takes_over_sees_all_that_was_acknowledged(url: str, database: Database) -> None:
    """Also what was being committed at that moment: the two transactions exclude each other."""
    with database_of(url) as other:
        stores = [database, other]
        journal, entries, _ = Journal.open(database, "c")
        for turn in range(1, 20):
            acknowledged = said(entries)
            stop = threading.Event()

            def write(
                journal: Journal = journal,
                acknowledged: list[Any] = acknowledged,
                stop: threading.Event = stop,
                turn: int = turn,
            ) -> None:
                with contextlib.suppress(StaleOwner):
                    for n in range(10_000):
                        journal.append([note([turn, n])]).result(PATIENCE)
                        acknowledged.append([turn, n])
                        if n == 3:
                            stop.set()

            writer = threading.Thread(target=write)
            writer.start()
            assert stop.wait(PATIENCE)
            journal, entries, _ = Journal.open(stores[turn % 2], "c", take_over=True)
            writer.join(PATIENCE)
            assert not writer.is_alive()
            assert said(entries) == acknowledged


@linux
def test_a_process_is_known_by_its_pid_and_when_it_began() -> None:
    me = Owner.new()
    assert me.lives()
    assert Owner.read(me.text) == me
    assert not Owner(me.machine, me.pid, "1", me.store).lives()
    init = Owner(me.machine, 1, "no such time", me.store)
    assert not init.lives()
    assert not Owner(me.machine, 2**31 - 1, me.started, me.store).lives()
    assert not Owner(me.machine, 2**70, me.started, me.store).lives()
    assert Owner("another boot", me.pid, me.started, me.store).lives() is None


@linux
def test_when_a_process_began_is_told_in_ticks_since_boot() -> None:
    tick = 10**9 // os.sysconf("SC_CLK_TCK")
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // tick
    read = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(read, stdin=subprocess.PIPE) as child:
        after = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // tick
        assert before <= int(leases.started_at(child.pid) or "") <= after


@linux
def test_a_process_that_has_ended_but_was_not_waited_for_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    me = Owner.new()
    started = leases.started_at(child.pid)
    owner = Owner(me.machine, child.pid, started or "", "s")
    assert owner.lives()
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert owner.lives() is None  # nobody knows when it goes on
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not owner.lives()
    child.communicate()
    assert not owner.lives()


@linux
def test_a_pid_that_somebody_else_has_now_is_not_mistaken(database: Database) -> None:
    Journal.open(database, "c")[0].release().result(PATIENCE)
    give_to(database, Owner(Owner.new().machine, 1, "1", "s").text)
    assert Journal.open(database, "c")[0].epoch == 2


@pytest.mark.parametrize(
    ("seconds", "is_dead"), [(0, False), (15, False), (35, True), (-15, False), (-60, True)]
)
def test_an_owner_elsewhere_lives_as_long_as_its_heart_beats(
    database: Database, seconds: float, is_dead: bool
) -> None:
    journal, _, _ = Journal.open(database, "c")
    give_to(database, elsewhere(), seconds)
    if is_dead:
        assert Journal.open(database, "c")[0].epoch == journal.epoch + 1
    else:
        with pytest.raises(Owned):
            Journal.open(database, "c")
        assert Journal.open(database, "c", take_over=True)[0].epoch == journal.epoch + 1


@pytest.mark.parametrize("owner", ["?", "a b c d", " ", "\0", "one two three four five", "x" * 999])
def test_an_owner_that_nobody_can_read_is_judged_by_its_heart(
    database: Database, owner: str
) -> None:
    Journal.open(database, "c")
    give_to(database, owner)
    with pytest.raises(Owned):
        Journal.open(database, "c")
    give_to(database, owner, 60)
    assert Journal.open(database, "c")[0].epoch == 2


def test_one_heartbeat_is_for_all_that_a_store_holds(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEWED_EVERY", 0.05)
    beats: queue.SimpleQueue[Owner] = queue.SimpleQueue()
    renew = leases.renew_all

    def seen(connection: Any, tables: Any, owner: Owner) -> None:
        renew(connection, tables, owner)
        beats.put(owner)

    monkeypatch.setattr(leases, "renew_all", seen)
    with database_of(url, "a", "b", "d") as database, database_of(url) as other:
        journals = [Journal.open(database, name)[0] for name in "ab"]
        Journal.open(other, "d")
        table = database.tables.leases
        long_ago = datetime.now(UTC) - timedelta(days=1)
        all_of_them = table.select().where(table.c.epoch > 0)

        def age(connection: Any) -> None:
            connection.execute(table.update().values(heartbeat_at=long_ago))

        database.run(age)
        heard: list[Owner] = []
        while min(heard.count(database.owner), heard.count(other.owner)) < 3:
            heard.append(beats.get(timeout=PATIENCE))  # of which the first may have come before
        rows = other.run(lambda connection: connection.execute(all_of_them).all())
        for row in rows:
            assert abs(datetime.now(UTC) - row.heartbeat_at) < timedelta(seconds=60)
        for journal in journals:
            journal.release().result(PATIENCE)
        assert not database.held
        database.run(age)
        rows = database.run(lambda connection: connection.execute(all_of_them).all())
        assert rows[0].heartbeat_at == rows[1].heartbeat_at == long_ago


def test_who_lets_go_of_a_conversation_or_had_it_last_is_told_of_that_one(url: str) -> None:
    with database_of(url, "a", "b", "c") as database:
        held = {id: Journal.open(database, id)[0] for id in ("a", "c")}
        last = [
            database.run(partial(leases.last, tables=database.tables, conversation_id=id))
            for id in "abc"
        ]
        assert last == [f"{socket.gethostname()}:{os.getpid()}", None, last[0]]
        held["c"].release().result(PATIENCE)
        assert held["a"].append([note("mine")]).result(PATIENCE) == 1


def heartbeat(database: Database, id: str) -> datetime:
    """When the owner of that conversation was heard of last."""
    table = database.tables.leases
    asked = sql.select(table.c.heartbeat_at).where(table.c.conversation_id == id)
    found: datetime = database.run(lambda connection: connection.scalar(asked))
    return found


def test_a_heart_beats_while_the_store_is_at_long_work(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEWED_EVERY", 0.1)
    monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", 10 * PATIENCE)  # it may stand still
    go_on, begun = threading.Event(), threading.Event()

    def work(_: sql.Connection) -> bool:
        begun.set()
        return go_on.wait(PATIENCE)

    with database_of(postgres_url, "a") as busy, database_of(postgres_url) as other:
        journal, _, _ = Journal.open(busy, "a")
        busy.submit(work)
        assert begun.wait(PATIENCE)
        since = [heartbeat(other, "a")]
        while len(since) < 4:
            if (now := heartbeat(other, "a")) != since[-1]:
                since.append(now)
        go_on.set()
        assert journal.append([note("mine")]).result(PATIENCE) == 1


def test_a_lease_that_somebody_has_locked_stops_no_heart_of_the_others(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEWED_EVERY", 0.1)
    with database_of(postgres_url, "a", "b") as database, database_of(postgres_url) as other:
        journals = [Journal.open(database, id)[0] for id in "ab"]
        locked = sql.select(database.tables.leases).where(
            database.tables.leases.c.conversation_id == "a"
        )
        engine = sql.create_engine(database.url)
        with engine.connect() as somebody:
            somebody.execute(locked.with_for_update())
            since = [heartbeat(other, "b")]
            while len(since) < 4:
                if (now := heartbeat(other, "b")) != since[-1]:
                    since.append(now)
        engine.dispose()
        for journal in journals:
            journal.release().result(PATIENCE)
