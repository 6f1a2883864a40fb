"""What a hub of a released version has kept, as SQL text in tests/fixtures/hub.

Run as a module, writes those of today's version: ``python -m tests.hub.released``. A version that
was released is never written again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint, Hub, Schedule
from sagents_nb.store.database.schema import VERSION
from tests.store import postgres
from tests.store.released import dumped, put

FIXTURES = Path(__file__).parents[1] / "fixtures" / "hub"
ENDINGS = ("stopped", "killed")
WAITS = sa.ToolCall("p1", "pay", {"amount": 5})


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


async def spoken(request: Any) -> Any:
    """Pays if it is told to, never ends if it is told to hold, and else is done."""
    last = request.messages[-1]
    if last.role == "user" and last.text == "pay":
        return WAITS
    if last.role == "user" and last.text == "hold" and "HOLDS" in os.environ:
        await asyncio.sleep(3600)
    usage = sa.Usage(input_tokens=10, output_tokens=3, cost_usd=0.25)
    return sa.Message.assistant("done", usage=usage)


def system_of() -> AgentSystem:
    """The same in every version."""
    system = AgentSystem(sa.ScriptedModel(iter(lambda: spoken, None))).defaults().add_tool(pay)
    gated = {"hitl": {"tools": ["pay"]}}
    return system.add_agent(Blueprint("clerk", "Pay what is due.", config=gated))


def fill(url: str) -> None:
    """An agency whose threads are done, wait for people and are at work; then end, as told."""
    hub = Hub(system_of(), url)
    agency, _ = hub.create_agency("Post")
    hub.save_variables(agency, {"city": "Oslo"})
    hub.save_blueprint(agency, {"name": "clerk", "description": "Pays."})
    daily = Schedule(name="Daily", agent_type="clerk", type="cron", cron="0 7 * * *")
    hub.scheduler.create(agency, daily)
    for said, status in (("hello", "completed"), ("pay", "paused"), ("hold", "running")):
        thread = hub.create_thread(agency, "clerk")
        thread.invoke([sa.Message.user(said)], {"/note.txt": said}, f"key {said}")
        while thread.status != status or said not in [m.text for m in thread.session.messages]:
            time.sleep(0.01)
        if status != "running":
            thread.wait()
        thread.log.wait()
    print("filled", flush=True)
    sys.stdin.readline()
    hub.close()


def path_of(version: str, ending: str, kind: str) -> Path:
    """Where the SQL text is kept; ``kind`` is "sqlite" or "postgresql"."""
    return FIXTURES / f"{ending}_{version}.{kind}.sql"


def load(url: str, version: str, ending: str) -> None:
    """Make a database that a hub of that version has left like that."""
    put(url, path_of(version, ending, sql.make_url(url).get_backend_name()))


def end(url: str, ending: str) -> None:
    """Have a process fill the database, and end."""
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, "fill", url]
    environment = {**os.environ, "HOLDS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "filled\n"
        if ending == "killed":
            process.kill()
        else:
            process.communicate("\n")


def main() -> None:
    """Write the files of today's version."""
    FIXTURES.mkdir(exist_ok=True)
    for ending in ENDINGS:
        with tempfile.TemporaryDirectory() as directory, postgres.running() as server:
            urls = {"sqlite": f"sqlite:///{directory}/hub.db", "postgresql": server}
            for kind, url in urls.items():
                end(url, ending)
                store = sa.ConversationStore(url)
                leases = store.database.tables.leases
                anywhere = leases.update().where(leases.c.epoch > 0).values(host="elsewhere", pid=1)
                store.database.run(lambda connection, do=anywhere: connection.execute(do))
                store.close()
                path_of(VERSION, ending, kind).write_text(dumped(url), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        with contextlib.suppress(KeyboardInterrupt):
            fill(sys.argv[2])
    else:
        main()
