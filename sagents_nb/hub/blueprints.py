"""What a kind of agent is, as data: written in code, or kept in an agency and changed there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sql
from msgspec.structs import replace

from .. import kinds
from ..errors import ConfigurationError, NotFound
from ..serialization import to_data
from ..sql import insert_new
from ..store.database.schema import Tables

DEFAULT_TAG = "default"
"""Of what has no tags of its own."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_NAME_KIND = kinds.Kind(
    "1 to 100 letters, digits, _ and -",
    lambda value: isinstance(value, str) and _NAME.fullmatch(value) is not None,
    shows=True,
)
_PROMPT = kinds.Kind(
    "text, and not empty", lambda value: isinstance(value, str) and bool(value.strip())
)
_TAGS = kinds.Kind(
    "a list of words",
    lambda value: (
        kinds.LIST.fits(value) and all(isinstance(tag, str) and tag.strip() for tag in value)
    ),
)


class Blueprint(msgspec.Struct, metaclass=kinds.Record, frozen=True):
    """A kind of agent: its ``name``, its system ``prompt``, and what it is made of.

    ``tags`` choose tools and middleware of an :class:`~sagents_nb.hub.AgentSystem`: those that
    have one of them. ``model`` is a name such as "openai:gpt-5", by default that of the system, and
    ``config`` what middleware is made with, each by its key. ``description`` is for people.
    Raises :class:`~sagents_nb.errors.ConfigurationError` for values that make no sense.

    >>> from sagents_nb.hub import Blueprint
    >>> Blueprint("writer", "Write reports.", tags=["files"]).tags
    ('files',)
    """

    name: str
    prompt: str
    description: str = ""
    tags: Sequence[str] = (DEFAULT_TAG,)
    model: str | None = None
    config: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if _TAGS.fits(self.tags):
            tags = tuple(dict.fromkeys(self.tags)) or (DEFAULT_TAG,)
            msgspec.structs.force_setattr(self, "tags", tags)
        kinds.check_fields(self, name=_NAME_KIND, prompt=_PROMPT, tags=_TAGS)


class KeptBlueprint(msgspec.Struct, frozen=True):
    """One as an agency has it: ``version`` 0 is that of the code, and has no times."""

    blueprint: Blueprint
    version: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


def blueprint_of(data: Mapping[str, Any]) -> Blueprint:
    """The blueprint that these fields are; others are refused."""
    fields = Blueprint.__struct_fields__
    kinds.refuse_unknown("A blueprint", data, fields)
    missing = [name for name in ("name", "prompt") if name not in data]
    if missing:
        raise ConfigurationError(f"A blueprint needs a {' and a '.join(missing)}.")
    return Blueprint(**data)


def merged(static: Iterable[Blueprint], dynamic: Iterable[KeptBlueprint]) -> list[KeptBlueprint]:
    """Those of an agency by their names; what it keeps itself comes before what is in the code."""
    found = {each.name: KeptBlueprint(each) for each in static}
    found |= {each.blueprint.name: each for each in dynamic}
    return [found[name] for name in sorted(found)]


# In the database, each function in its caller's transaction.


def save(
    connection: sql.Connection,
    tables: Tables,
    agency_id: str,
    changes: Mapping[str, Any],
    static: Mapping[str, Blueprint],
) -> KeptBlueprint:
    """A further version: ``changes`` in what there is of that name, in the agency or the code."""
    name = changes.get("name")
    if not _NAME_KIND.fits(name):
        raise ConfigurationError(f"The name of a blueprint is {_NAME_KIND.what}.")
    t = tables.hub_blueprints
    while True:
        before = versions(connection, tables, agency_id, str(name))
        base = before[0].blueprint if before else static.get(str(name))
        blueprint = blueprint_of({**({} if base is None else _fields(base)), **changes})
        now = datetime.now(UTC)
        version = before[0].version + 1 if before else 1
        key = {"agency_id": agency_id, "name": blueprint.name, "version": version}
        made = insert_new(connection, t).values(data=_fields(blueprint), created_at=now, **key)
        if connection.execute(made.returning(t.c.version)).first() is not None:
            return KeptBlueprint(blueprint, version, before[-1].created_at if before else now, now)
        # Another process was faster: this is a change of what it made.


def _fields(blueprint: Blueprint) -> dict[str, Any]:
    fields: dict[str, Any] = to_data(blueprint)
    return fields


def versions(
    connection: sql.Connection, tables: Tables, agency_id: str, name: str
) -> list[KeptBlueprint]:
    """All that the agency has of that name, the newest first."""
    t = tables.hub_blueprints
    query = sql.select(t).where(t.c.agency_id == agency_id, t.c.name == name)
    rows = connection.execute(query.order_by(t.c.version.desc())).all()
    created = rows[-1].created_at if rows else None
    return [_kept(row, created) for row in rows]


def listed(connection: sql.Connection, tables: Tables, agency_id: str) -> list[KeptBlueprint]:
    """The newest version of each that the agency has."""
    t = tables.hub_blueprints
    rows = connection.execute(
        sql.select(t).where(t.c.agency_id == agency_id).order_by(t.c.name, t.c.version)
    ).all()
    created = {row.name: row.created_at for row in reversed(rows)}
    newest = {row.name: _kept(row, created[row.name]) for row in rows}
    return list(newest.values())


def find(
    connection: sql.Connection, tables: Tables, agency_id: str, name: str
) -> KeptBlueprint | None:
    """The newest that the agency has of that name, or None."""
    return next(iter(versions(connection, tables, agency_id, name)), None)


def delete(connection: sql.Connection, tables: Tables, agency_id: str, name: str) -> None:
    """All that the agency has of that name; one of the same name in the code is there again."""
    t = tables.hub_blueprints
    gone = connection.execute(t.delete().where(t.c.agency_id == agency_id, t.c.name == name))
    if not gone.rowcount:
        raise NotFound(
            f"This agency keeps no blueprint {name!r:.110}; its list names those that it has."
        )


def _kept(row: Any, created_at: datetime | None) -> KeptBlueprint:
    blueprint = replace(blueprint_of({"prompt": "?", **row.data}), name=row.name)
    return KeptBlueprint(blueprint, row.version, created_at, row.created_at)
