"""What the tools of an agency's agents are told: values that are kept, and never shown."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sql

from .. import kinds
from ..errors import ConfigurationError, NotFound
from ..serialization import to_data
from ..sql import insert_new
from ..store.database.schema import Tables
from .records import is_id

_OF_PROCESS = re.compile(r"\$([A-Z_][A-Z0-9_]*)")
_OF_HUB, _KEY = "", "thread key"  # no agency has that id


def check(values: Mapping[str, Any], allowed: Collection[str]) -> None:
    """Raise ConfigurationError for what cannot be kept of an agency, or would not be what it says.

    ``"$NAME"`` is to be one of those that are ``allowed``: a tool would be told the words.
    """
    for name, value in values.items():
        if not is_id(name):  # another could not be in the address that deletes it
            raise ConfigurationError(
                f"{name!r:.110} is no name of a variable: it has 1 to 100 letters, digits, _ and -."
            )
        named = _OF_PROCESS.fullmatch(value) if isinstance(value, str) else None
        if named is not None and named[1] not in allowed:
            raise ConfigurationError(
                f"The variable {name!r:.110} cannot be {value:.110}: this hub's environment does "
                "not allow it; add it there, or send the value itself."
            )
    iterations(values, 0)


def iterations(values: Mapping[str, Any], default: int) -> int:
    """The model calls of one run that these variables say; raises ConfigurationError."""
    most = values.get("MAX_ITERATIONS", default)
    if not kinds.whole(0).fits(most):
        raise ConfigurationError(
            f"MAX_ITERATIONS is {kinds.whole(0).what} (0 for no limit), not {kinds.shown(most)}."
        )
    return int(most)


def save(
    connection: sql.Connection, tables: Tables, agency_id: str, changes: Mapping[str, Any]
) -> None:
    """Keep these besides what there is."""
    t = tables.hub_variables
    for name, value in changes.items():
        connection.execute(t.delete().where(t.c.agency_id == agency_id, t.c.name == name))
        connection.execute(t.insert().values(agency_id=agency_id, name=name, value=to_data(value)))


def listed(connection: sql.Connection, tables: Tables, agency_id: str) -> dict[str, Any]:
    """All of the agency, by their names."""
    t = tables.hub_variables
    rows = connection.execute(sql.select(t).where(t.c.agency_id == agency_id).order_by(t.c.name))
    return {row.name: row.value for row in rows}


def delete(connection: sql.Connection, tables: Tables, agency_id: str, name: str) -> None:
    """One less."""
    t = tables.hub_variables
    gone = connection.execute(t.delete().where(t.c.agency_id == agency_id, t.c.name == name))
    if not gone.rowcount:
        raise NotFound(f"This agency has no variable {name!r:.110}; its list names them.")


def key_of_hub(connection: sql.Connection, tables: Tables) -> bytes:
    """What makes ids of names that clients chose: made once for a store, and no token of anything.

    It is told to nobody, so that nobody can say from a name what the id is.
    """
    t = tables.hub_variables
    mine = {"agency_id": _OF_HUB, "name": _KEY}
    connection.execute(insert_new(connection, t).values(**mine, value=secrets.token_hex(32)))
    query = sql.select(t.c.value).where(t.c.agency_id == _OF_HUB, t.c.name == _KEY)
    return bytes.fromhex(connection.execute(query).scalar_one())


def resolved(values: Mapping[str, Any], allowed: Collection[str]) -> dict[str, Any]:
    """The values themselves: ``"$NAME"`` is that variable of the environment, if it is allowed.

    One that is not allowed, or not set, is left as it is written.
    """
    return {name: _resolved(value, allowed) for name, value in values.items()}


def _resolved(value: Any, allowed: Collection[str]) -> Any:
    if isinstance(value, str) and value.startswith("$") and value[1:] in allowed:
        return os.environ.get(value[1:], value)
    return value
