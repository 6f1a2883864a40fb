"""A hub that is stopped and not ended: nobody waits long for it, and another takes its threads."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sagents_nb.hub import AgentSystem, Blueprint
from sagents_nb.store.database import leases
from tests.hub.web.processes import HubProcess, a_hub_process, patiently, system_of
from tests.hub.web.served import Served, serving
from tests.talking import PATIENCE

if sys.platform != "linux":
    pytest.skip("that a process is stopped is seen on Linux alone", allow_module_level=True)


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[HubProcess]:
    with a_hub_process(f"sqlite:///{tmp_path / 'hub.db'}", tmp_path) as process:
        yield process


def alike(folder: Path) -> AgentSystem:
    """What that process has as well, and the kind of agent that ``serving`` needs."""
    return system_of(folder / "effects").add_agent(Blueprint("guide", "Be brief."))


def a_thread(process: HubProcess) -> str:
    """The path of one that the process has open and that has answered."""
    with process.client() as client:
        agency = client.post("/agencies", json={}).json()["id"]
        body = {"agentType": "clerk", "input": "look sun"}
        made = client.post(f"/agency/{agency}/agents", json=body).json()
        path = f"/agency/{agency}/agent/{made['id']}"
        while client.get(f"{path}/state").json()["run"]["status"] != "completed":
            pass
        return path


def test_nobody_waits_long_for_a_hub_that_is_stopped(
    stopped: HubProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.hub.doors.SILENT_AFTER", 0.2)
    monkeypatch.setattr("sagents_nb.hub.doors.ANSWER_SECONDS", 100 * PATIENCE)
    monkeypatch.setattr("sagents_nb.hub.web.forwarding.SOCKET_SECONDS", 0.2)
    path = a_thread(stopped)
    with serving(tmp_path / "hub.db", alike(tmp_path)) as here:
        assert here.client.get(f"{path}/state").status_code == 200
        os.kill(stopped.process.pid, signal.SIGSTOP)
        said = {"messages": [{"role": "user", "content": "look"}]}
        for answer in (
            here.client.get(f"{path}/state"),
            here.client.post(f"{path}/invoke", json=said),
            here.client.get(f"{path}/events", headers={"Accept": "text/event-stream"}),
        ):
            assert answer.status_code == 503
            assert "does not answer; try again" in answer.json()["error"]
        with pytest.raises(Exception, match="503"):
            here.socket(f"{path}/ws")
        os.kill(stopped.process.pid, signal.SIGCONT)
        assert patiently(lambda: here.client.get(f"{path}/state")).status_code == 200


def test_a_hub_takes_the_threads_of_one_that_is_stopped_once_its_lease_is_over(
    stopped: HubProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_thread(stopped)
    monkeypatch.setattr(leases, "STALE_AFTER", 0.0)
    with serving(tmp_path / "hub.db", alike(tmp_path)) as here:
        # Whoever is not stopped keeps it, however old the lease is.
        assert here.client.get(f"{path}/state").status_code == 200
        assert here.hub.active_runs() == 0
        id = path.rpartition("/")[2]
        assert here.hub.doors.holder(id) is not None
        os.kill(stopped.process.pid, signal.SIGSTOP)
        answer = patiently(lambda: here.client.get(f"{path}/state"))
        assert answer.json()["run"]["status"] == "completed"
        assert here.hub.doors.holder(id) is None


def test_nobody_waits_long_for_a_store_that_a_stopped_process_has_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.hub.web.standstill.PATIENCE", 0.2)
    monkeypatch.setattr("sagents_nb.hub.web.standstill.ANSWERED_IN", 0.2)
    with serving(tmp_path / "hub.db") as here:
        threads = [here.thread() for _ in range(3)]
        monkeypatch.setattr("sagents_nb.sql.LOCK_SECONDS", 100 * PATIENCE)
        locked = sqlite3.connect(tmp_path / "hub.db", isolation_level=None)
        locked.execute("BEGIN EXCLUSIVE")
        try:
            for answer in _asked(here, threads[0]):
                assert answer == (503, "The hub's store does not answer now")
        finally:
            locked.execute("ROLLBACK")
            locked.close()
        again = patiently(lambda: here.client.get(here.path(threads[0], "/state")))
        assert again.status_code == 200


def _asked(here: Served, thread: str) -> Iterator[tuple[int, str]]:
    for method, path in (
        ("POST", here.path(rest="/agents")),
        ("GET", here.path(rest="/agents")),
        ("POST", here.path(thread, "/invoke")),
    ):
        body = {"agentType": "guide"} if path.endswith("/agents") else {}
        answer = here.client.request(method, path, json=body if method == "POST" else None)
        yield answer.status_code, answer.json()["error"].partition(",")[0]
