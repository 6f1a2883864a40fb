"""What a store of each released version looks like, as SQL text in tests/fixtures/store.

Run as a module, writes those of today's version: ``python -m tests.store.released``. A version
that was released is never written again.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.serialization import to_data
from sagents_nb.store.database.schema import VERSION
from sagents_nb.store.entries import Entry
from sagents_nb.store.journal import Journal
from tests.store import postgres

FIXTURES = Path(__file__).parents[1] / "fixtures" / "store"

STATE = sa.State(
    messages=[sa.Message.user("To Oslo \0\ud800"), sa.Message.assistant("When?")],
    todos=[sa.Todo("book", "in_progress"), sa.Todo("pack")],
    metadata={"conversation_title": "Trip"},
)


def fill(store: sa.ConversationStore) -> None:
    """A conversation whose state was saved, one with a journal, and one of nobody's."""
    mine = store.scoped(sa.Scope(user="alice"))
    mine.create_conversation("Trip \0\ud800", {"pinned": True}, id="saved")
    mine.save_agent_state("saved", STATE.export())
    mine.append_text_message("saved", "user", "To Oslo \0\ud800")
    call = {"call_id": "c1", "name": "ls", "arguments": {"path": "/"}}
    row = {"message_type": "assistant", "content_type": "tool_call", "content": call}
    mine.append_display_message("saved", {**row, "status": "pending"})
    theirs = store.scoped(sa.Scope(user=7))
    theirs.create_conversation(id="journaled")
    journal, _, _ = Journal.open(store.database, "journaled")
    messages = [
        Entry("message", {"n": n, **to_data(message)})
        for n, message in enumerate(STATE.messages, start=1)
    ]
    todos = Entry("todos", [to_data(todo) for todo in STATE.todos])
    journal.append([Entry("begin", {"version": 1}), *messages, todos]).result()
    journal.release().result()
    store.create_conversation(id="nobody's")


def assert_filled(store: sa.ConversationStore) -> None:
    """All of it can be read, and goes on."""
    mine, theirs = store.scoped(sa.Scope(user="alice")), store.scoped(sa.Scope(user=7))
    [trip] = mine.list_conversations()
    assert (trip.title, trip.metadata) == ("Trip \0\ud800", {"pinned": True})
    assert sa.State.restore(mine.load_agent_state("saved")) == STATE
    assert [row.content_type for row in mine.load_display_messages("saved")] == [
        "text",
        "tool_call",
    ]
    assert [row.content["text"] for row in mine.search_messages("OSLO")] == ["To Oslo \0\ud800"]
    assert mine.mark_tool_executing("c1").status == "executing"
    mine.append_text_message("saved", "assistant", "When?")
    assert len(mine.load_display_messages("saved")) == 3
    restored = sa.State.restore(theirs.load_agent_state("journaled"))
    assert (restored.messages, restored.todos) == (STATE.messages, STATE.todos)
    journal, entries, problems = Journal.open(store.database, "journaled")
    assert (len(entries), problems) == (4, [])
    journal.append([Entry("todos", [])]).result()
    journal.release().result()
    assert theirs.load_todos("journaled") == []
    assert [c.id for c in store.list_conversations()] == ["nobody's"]


def path_of(version: str, kind: str) -> Path:
    """Where the SQL text of a version is kept; ``kind`` is "sqlite" or "postgresql"."""
    return FIXTURES / f"version_{version}.{kind}.sql"


def load(url: str, version: str = VERSION) -> None:
    """Make a database of that version."""
    put(url, path_of(version, sql.make_url(url).get_backend_name()))


def put(url: str, path: Path) -> None:
    """Do what that SQL text says."""
    made, text = sql.make_url(url), path.read_text(encoding="utf-8")
    if made.get_backend_name() == "sqlite":
        assert made.database is not None
        connection = sqlite3.connect(made.database)
        connection.executescript(text)
        connection.close()
    else:
        with psycopg.connect(url.replace("+psycopg", "")) as server:
            server.execute(text.encode())


def dumped(url: str) -> str:
    """All that a database has, as SQL text."""
    made = sql.make_url(url)
    if made.get_backend_name() == "sqlite":
        assert made.database is not None
        connection = sqlite3.connect(made.database)
        text = "\n".join(connection.iterdump()) + "\n"
        connection.close()
        return text
    command = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", "--schema=public"]
    command += ["-h", str(made.host), "-p", str(made.port), "-U", str(made.username)]
    environment = os.environ | {"PGPASSWORD": str(made.password)}
    done = subprocess.run(
        [*command, str(made.database)], env=environment, capture_output=True, check=True
    )
    without = re.compile(r"(--|SET |\\|CREATE SCHEMA|COMMENT|SELECT pg_catalog\.set_config)")
    lines = [line for line in done.stdout.decode().splitlines() if not without.match(line)]
    lines = [line for line in lines if "gin_trgm_ops" not in line]  # not every server has these
    return re.sub(r"\n{2,}", "\n", "\n".join(lines)).replace("public.", "").lstrip() + "\n"


def main() -> None:
    """Write the two files of today's version."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory, postgres.running() as server:
        urls: dict[str, Any] = {"sqlite": f"sqlite:///{directory}/store.db", "postgresql": server}
        for kind, url in urls.items():
            store = sa.ConversationStore(url)
            fill(store)
            leases = store.database.tables.leases
            anywhere = leases.update().where(leases.c.epoch > 0).values(host="elsewhere", pid=1)
            store.database.run(lambda connection, do=anywhere: connection.execute(do))
            store.close()
            path_of(VERSION, kind).write_text(dumped(url), encoding="utf-8")


if __name__ == "__main__":
    main()
