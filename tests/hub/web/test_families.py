"""Parents and children that two processes have open: they are stopped, and heard, all the same."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import Owned
from sagents_nb.hub import Thread
from tests.hub.houses import Speaking, still, task
from tests.hub.web.served import Served, serving
from tests.talking import until


class Family:
    """A boss and two children of it: ``slow`` is open in ``there``, all else in ``here``."""

    def __init__(self, here: Served, there: Served, go: dict[str, threading.Event]) -> None:
        self.here, self.there, self.go = here, there, go
        for served in (here, there):
            served.hub.doors.open(served.url)
        self.agency = here.agency
        self.boss = here.hub.create_thread(self.agency, "boss")
        self.boss.invoke([sa.Message.user("Go.")])
        until(lambda: self.boss.status == "paused")
        records = here.hub.threads(self.agency)
        ids = {record.type: record.id for record in records if record.parent}
        self.fast = here.hub.thread(self.agency, ids["fast"])
        self.slow_path = here.path(ids["slow"])
        self.slow = self._taken(ids["slow"])

    def _taken(self, id: str) -> Thread:
        """The thread, once it is open ``there``: who looks after a family may open it meanwhile."""
        while True:
            self.here.hub.thread(self.agency, id).close("it goes elsewhere")
            with contextlib.suppress(Owned):
                return self.there.hub.thread(self.agency, id)


@pytest.fixture
def family(path: Path | str) -> Iterator[Family]:
    go = {"slow": threading.Event(), "fast": threading.Event()}

    def held(name: str) -> Any:
        async def say(request: Any) -> str:
            while not go[name].is_set():
                await asyncio.sleep(0.005)
            return f"The report of {name}."

        return [say, say]

    calls = [task("c1", "one", "slow"), task("c2", "two", "fast")]
    models = {"boss": [calls, "Done."], "slow": held("slow"), "fast": held("fast"), "guide": []}
    with serving(path, Speaking(models)) as here, serving(path, Speaking(models)) as there:
        yield Family(here, there, go)
        for each in go.values():
            each.set()


def waiting(thread: Thread) -> list[str]:
    """The calls of which it has no report yet."""
    interrupt = thread.session.interrupt
    return [] if interrupt is None else interrupt.tool_call_ids


def contents(thread: Thread) -> list[str]:
    return [m["content"] for m in thread.state()["state"]["messages"] if "content" in m]


def test_a_parent_hears_of_one_child_while_another_process_has_the_other(family: Family) -> None:
    family.go["fast"].set()
    assert still(family.fast, "completed")
    until(lambda: len(waiting(family.boss)) == 1)
    assert family.boss.run["reason"] == "subagent"
    family.go["slow"].set()
    assert family.there.client.post(f"{family.slow_path}/invoke", json={}).status_code == 202
    assert still(family.boss, "completed")
    assert {"The report of slow.", "The report of fast."} <= set(contents(family.boss))


def test_a_parent_is_stopped_with_a_child_that_another_process_has(family: Family) -> None:
    path = family.here.path(family.boss.record.id)
    assert family.here.client.post(f"{path}/cancel").json() == {"ok": True}
    for thread in (family.boss, family.slow, family.fast):
        assert still(thread, "canceled")


def test_a_parent_is_deleted_though_another_process_has_its_child(family: Family) -> None:
    path = family.here.path(family.boss.record.id)
    # A thread that goes to another process just then is refused with 409.
    until(lambda: family.there.client.delete(path).status_code in (200, 404))
    assert family.here.client.get(f"{path}/state").status_code == 404
    assert still(family.slow, "canceled")


def test_an_agency_is_deleted_whose_threads_two_processes_have(family: Family) -> None:
    path = family.here.path()
    assert family.there.client.delete(path).json() == {"ok": True}
    assert family.here.client.delete(path).status_code == 404
    assert family.slow.is_gone
    assert family.boss.is_gone
