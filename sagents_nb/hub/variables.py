"""What the tools of an agency's agents are told: values that are kept, and never shown."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sql

from ..errors import ConfigurationError, NotFound
from ..serialization import to_data
from ..store.database.schema import Tables


def save(
    connection: sql.Connection, tables: Tables, agency_id: str, changes: Mapping[str, Any]
) -> None:
    """Keep these besides what there is."""
    t = tables.hub_variables
    for name, value in changes.items():
        if not name or len(name) > 100:
            raise ConfigurationError("The name of a variable has 1 to 100 characters.")
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


def resolved(values: Mapping[str, Any], allowed: Collection[str]) -> dict[str, Any]:
    """The values themselves: ``"$NAME"`` is that variable of the environment, if it is allowed.

    One that is not allowed, or not set, is left as it is written.
    """
    return {name: _resolved(value, allowed) for name, value in values.items()}


def _resolved(value: Any, allowed: Collection[str]) -> Any:
    if isinstance(value, str) and value.startswith("$") and value[1:] in allowed:
        return os.environ.get(value[1:], value)
    return value
