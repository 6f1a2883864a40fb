"""The state of a conversation: what its journal says, else what was saved.

Every function works in its caller's transaction and for one owner only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sql

from ..errors import ConfigurationError
from ..interrupts import Interrupt
from ..state import State, Todo, export_state, restore_state
from . import conversations
from .database.schema import Tables
from .folding import Folded, fold
from .journal import StoredJournal, journals_of


def save(connection: sql.Connection, tables: Tables, owner: str, id: str, exported: Any) -> None:
    """Keep an exported state instead of the one that was kept."""
    if not isinstance(exported, Mapping) or not isinstance(exported.get("state"), Mapping):
        raise ConfigurationError(
            "This is not an exported state: it has no 'state'; pass what State.export() gave."
        )
    conversations.touch(connection, tables, owner, id)
    if has_journal(connection, tables, id):
        raise ConfigurationError(
            f"The state of conversation {id!r} is the journal of its session; restore this one "
            "into another conversation."
        )
    table = tables.agent_states
    values = {"data": dict(exported), "updated_at": datetime.now(UTC)}
    changing = table.update().where(table.c.conversation_id == id).values(**values)
    if not connection.execute(changing).rowcount:
        connection.execute(table.insert().values(conversation_id=id, **values))


def keep(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    id: str,
    exported: dict[str, Any],
    context: str,
) -> None:
    """What a session wants kept: its state unless that is a journal, and a generated title."""
    if not has_journal(connection, tables, id):
        save(connection, tables, owner, id, exported)
    if context == "on_title_generated":
        title = restore_state(exported).get_metadata("conversation_title")
        conversations.update(connection, tables, owner, id, {"title": title})


def load(connection: sql.Connection, tables: Tables, owner: str, id: str) -> dict[str, Any] | None:
    """The exported state, or None for a conversation that has none yet."""
    conversations.get(connection, tables, owner, id)
    if journal := journaled(connection, tables, id):
        return export_state(journal[0].state)
    return _saved(connection, tables, id)


def todos(connection: sql.Connection, tables: Tables, owner: str, id: str) -> list[Todo]:
    """The to-do list; empty for a conversation that is not there."""
    return list(_partly(connection, tables, owner, id, "todos").todos)


def interrupt(connection: sql.Connection, tables: Tables, owner: str, id: str) -> Interrupt | None:
    """What waits for a decision; None also for a conversation that is not there."""
    return _partly(connection, tables, owner, id, "interrupt").interrupt


def _partly(connection: sql.Connection, tables: Tables, owner: str, id: str, kind: str) -> State:
    """The state as far as entries of one kind tell it; an empty one where there is none."""
    if conversations.find(connection, tables, owner, id) is None:
        return State()
    if journal := journaled(connection, tables, id, "begin", kind):
        return journal[0].state
    saved = _saved(connection, tables, id)
    return restore_state(saved) if saved else State()


def has_journal(connection: sql.Connection, tables: Tables, id: str) -> bool:
    """Whether a session has written to it."""
    journal = tables.journal
    asked = sql.select(journal.c.seq).where(journal.c.conversation_id == id).limit(1)
    return connection.execute(asked).first() is not None


def journaled(
    connection: sql.Connection, tables: Tables, id: str, *kinds: str
) -> tuple[Folded, dict[int, float]] | None:
    """What the journal says, and the time of each entry by its number; None if there is none."""
    return folded(journals_of(connection, tables, [id], kinds)[id])


def folded(journal: StoredJournal) -> tuple[Folded, dict[int, float]] | None:
    """What it says, and the time of each entry by its number; None if nobody wrote to it."""
    entries = journal.entries()
    if not journal.begun:
        return None
    said = fold((entry.seq, entry.kind, entry.data) for entry in entries)
    return said, {entry.seq: entry.at for entry in entries}


def _saved(connection: sql.Connection, tables: Tables, id: str) -> dict[str, Any] | None:
    return checked(saved_of(connection, tables, [id]).get(id), id)


def saved_of(connection: sql.Connection, tables: Tables, ids: Sequence[str]) -> dict[str, Any]:
    """What was saved of these conversations, by their ids, as it is in the database."""
    c = tables.agent_states.c
    query = sql.select(c.conversation_id, c.data).where(c.conversation_id.in_(ids))
    return {row.conversation_id: row.data for row in connection.execute(query)}


def checked(saved: Any, id: str) -> dict[str, Any] | None:
    """A saved state, if it is one, or None."""
    if saved is not None and not isinstance(saved, dict):
        raise ConfigurationError(
            f"The saved state of conversation {id!r:.300} is damaged; save another, or delete it."
        )
    return saved
