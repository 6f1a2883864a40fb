"""A process that was stopped and goes on when another has its threads: none of it is kept."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.errors import Owned, StoreError
from sagents_nb.files.storages.sql import files_table
from sagents_nb.hub import Agency, Hub, Thread
from sagents_nb.loop.open_calls import RAN
from sagents_nb.store.database import leases
from tests.hub import zombie
from tests.hub.houses import still
from tests.talking import PATIENCE

ROOT = Path(__file__).parents[2]


def elsewhere() -> list[str]:
    """The beginning of a command that runs where process ids mean others: on another machine."""
    if sys.platform == "linux" and (program := shutil.which("unshare")):
        as_user = [] if os.geteuid() == 0 else ["-Ur"]
        command = [program, *as_user, "-p", "-f", "--kill-child"]
        if not subprocess.run([*command, "true"], capture_output=True).returncode:
            return command
    pytest.skip("a process cannot have process ids of its own here")


class Zombie:
    """The process that is stopped."""

    def __init__(self, url: str, beat: float) -> None:
        self.process = subprocess.Popen(
            [*elsewhere(), sys.executable, "-m", "tests.hub.zombie", url, str(beat)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.hear() == {"ready": True}
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        (self.pid,) = map(int, children.read_text().split())

    def tell(self, line: str) -> None:
        assert self.process.stdin
        print(line, file=self.process.stdin, flush=True)

    def hear(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)


@contextmanager
def a_zombie(url: str, beat: float) -> Iterator[Zombie]:
    made = Zombie(url, beat)
    try:
        yield made
    finally:
        made.signal(signal.SIGKILL)
        made.process.communicate(timeout=PATIENCE)


def taken_over(hub: Hub, agency: Agency, id: str, wait: float) -> Thread:
    """The thread, once its owner counts as dead."""
    end = time.monotonic() + wait + PATIENCE
    while True:
        try:
            return hub.thread(agency, id)
        except (Owned, StoreError):  # it is locked, until its server ends that transaction
            assert time.monotonic() < end, "it is never let go of"
            time.sleep(0.02)


def kept(hub: Hub, id: str) -> dict[str, list[Any]]:
    """All that the database has of a thread, files too."""
    tables = hub.store.database.tables
    found: dict[str, list[Any]] = {}

    def read(connection: sql.Connection) -> None:
        for table in tables.metadata.sorted_tables:
            column = table.c.get("conversation_id")
            if table is tables.conversations:
                column = table.c.id
            if column is not None:
                rows = connection.execute(sql.select(table).where(column == id))
                found[table.name] = sorted(map(repr, rows))
        held = connection.execute(
            sql.select(tables.leases.c.epoch, tables.leases.c.owner).where(
                tables.leases.c.conversation_id == id
            )
        )
        found[tables.leases.name] = list(held)
        files = files_table("sagents_files")
        mine = files.c.scope.contains(id)
        found[files.name] = sorted(map(repr, connection.execute(sql.select(files).where(mine))))

    hub.store.database.run(read)
    return found


def survive(url: str, rounds: int, seed: int, stale: float) -> Counter[str]:
    """What became of late writes, in so many rounds; ``stale`` is how long a lease lasts."""
    chance, figures = random.Random(seed), Counter[str]()
    hub = Hub(zombie.system_with(lambda number: "over"), url)
    agency, _ = hub.create_agency()
    hub.recover()
    with a_zombie(url, stale / 3) as stopped:
        for number in range(rounds):
            stopped.tell(f"begin {chance.randrange(20)}")
            id = stopped.hear()["thread"]
            time.sleep(chance.random() * 0.02)
            stopped.signal(signal.SIGSTOP)
            thread = taken_over(hub, agency, id, stale)
            figures["taken over"] += 1
            doubted = set[str]()
            while still(thread) == "paused":
                ids = thread.session.interrupt.tool_call_ids  # type: ignore[union-attr]
                thread.approve(True, answers=dict.fromkeys(ids, RAN), by="heir")
                doubted.update(ids)
                thread.wait()
            assert thread.status == "completed"
            thread.log.wait()
            before = kept(hub, id)
            stopped.tell(f"late {number + seed}")
            stopped.signal(signal.SIGCONT)
            said = stopped.hear()
            time.sleep(0.05)
            assert kept(hub, id) == before, said
            assert len(before["sagents_files"]) == 1
            # Stopped between having kept that a call begins and beginning it: the heir asked of it.
            begun = {f"c{number}" for number in said["began"]}
            assert begun <= doubted, "a call began that nobody is to know of"
            figures["in doubt"] += len(doubted)
            figures["begun late, and asked about"] += len(begun)
            accepted = {name for name, why in said["refused"].items() if not why}
            assert accepted <= {"cancel", "events"}, said  # which nobody was promised
            figures["late writes"] += len(said["refused"])
            figures.update(why.partition(":")[0] or "unsaid" for why in said["refused"].values())
    hub.close()
    return figures


def test_what_a_stopped_owner_writes_later_is_refused(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "STALE_AFTER", 0.6)
    assert survive(postgres_url, 1, seed=4, stale=0.6)["late writes"] == 14


def test_who_stood_still_has_no_thread_that_another_took_meanwhile(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'hub.db'}"
    system = zombie.system_with(lambda number: "over")
    with closing(Hub(system, url)) as hub, closing(Hub(system, url)) as heir:
        agency, _ = hub.create_agency()
        taken, kept = (hub.create_thread(agency, "clerk") for _ in range(2))
        taken.invoke([sa.Message.user("over")])
        assert still(taken, "completed")
        lease, owner = hub.store.database.tables.leases, heir.store.database.owner.text
        taking = lease.update().where(lease.c.conversation_id == taken.record.id)
        taking = taking.values(owner=owner, epoch=lease.c.epoch + 1)
        heir.store.database.run(lambda connection: connection.execute(taking))
        assert hub.thread(agency, taken.record.id) is taken  # nothing tells it
        hub.store.database.renewed_at -= 2 * leases.STALE_AFTER
        for ask in (hub.thread, hub.delete_thread):
            with pytest.raises(Owned):
                ask(agency, taken.record.id)
        assert hub.thread(agency, kept.record.id) is kept
        assert taken.is_gone


@pytest.mark.soak
def test_what_a_stopped_owner_writes_later_is_refused_in_many_rounds(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = int(time.time())
    stale = leases.STALE_AFTER
    print(f"seed {seed}, a lease of {stale} s: {survive(postgres_url, 1, seed, stale)}")
    monkeypatch.setattr(leases, "STALE_AFTER", 1.0)
    print(f"a lease of 1 s: {survive(postgres_url, 40, seed, 1.0)}")
