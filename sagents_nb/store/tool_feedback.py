"""The questions for which tools were of use, by their words: what finds them for the like.

Every function works in its caller's transaction and for one owner only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import sqlalchemy as sql

from ..scope import ID_LENGTH
from ..sql import insert_new
from .database.schema import Tables

MOST = 40
"""Of each tool the newest so many are kept,"""
LONGEST = 2_000
"""and so many characters of each."""


def load(connection: sql.Connection, tables: Tables, owner: str) -> dict[str, list[str]]:
    """The words of the questions, by tools, the oldest first."""
    table = tables.tool_feedback
    rows = connection.execute(sql.select(table).where(table.c.owner == owner))
    return {row.tool: _read(row.queries) for row in rows}


def add(
    connection: sql.Connection, tables: Tables, owner: str, queries: Mapping[str, Sequence[str]]
) -> None:
    """Keep more of them, by tools; what is kept already counts as new again."""
    table = tables.tool_feedback
    for tool in sorted(queries):  # in one order, so that two who write wait and do not deadlock
        if len(tool) > ID_LENGTH:
            continue
        now = datetime.now(UTC)
        row = {"owner": owner, "tool": tool, "queries": [], "updated_at": now}
        connection.execute(insert_new(connection, table).values(**row))
        mine = (table.c.owner == owner) & (table.c.tool == tool)
        known = connection.execute(sql.select(table.c.queries).where(mine).with_for_update())
        new = [words[:LONGEST] for words in queries[tool]]
        kept = [words for words in _read(known.scalar_one()) if words not in new]
        values = {"queries": [*kept, *dict.fromkeys(new)][-MOST:], "updated_at": now}
        connection.execute(table.update().where(mine).values(**values))


def _read(queries: object) -> list[str]:
    """Those that are there; none of what somebody else wrote."""
    return [words for words in queries if isinstance(words, str)] if type(queries) is list else []
