"""What each thread is and has used, a row each: known without opening it or reading its events.

The row is written in the transaction of the events that it comes of.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sql

from ..scope import owner_of
from ..sql import Prepared
from ..store.conversations import Conversation, conversation_of, selected
from ..store.database.schema import Tables
from .agencies import Agency, is_of
from .vocabulary import ASKED, MODEL_COMPLETED, RUN_PAUSED, STATUSES

PEOPLE = "hitl"
"""Why a thread waits that waits for people."""

_TOKENS = ("input_tokens", "output_tokens")


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread is, without opening it: its ``status`` since the moment ``at``.

    ``reason`` says why it waits or failed, and ``asks`` are the tools whose calls wait for people.
    """

    status: str = "registered"
    at: datetime | None = None
    reason: str | None = None
    asks: tuple[str, ...] = ()


class Spent(msgspec.Struct, kw_only=True):
    """What threads have used: how many they are, the answers of models, and tokens.

    ``cost_usd`` is of those answers that say it, None where none does.
    """

    threads: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    def add(self, answer: Mapping[str, Any]) -> None:
        """Count an answer of a model, by the data of its event."""
        usage = answer.get("usage", {})
        self.model_calls += 1
        self.input_tokens += usage.get("inputTokens", 0)
        self.output_tokens += usage.get("outputTokens", 0)
        if "costUsd" in usage:
            self.cost_usd = (self.cost_usd or 0.0) + usage["costUsd"]


# In the database, each function in its caller's transaction.


def note(connection: sql.Connection, tables: Tables, id: str, told: Iterable[Any]) -> None:
    """What is told of thread ``id`` changes its row; ``told`` are rows of events."""
    values: dict[str, Any] = {}
    used = Spent()
    for row in told:
        type, data = row["type"], row["data"]
        if type == ASKED:
            values["asks"] = [call["toolName"] for call in data["proposedToolCalls"]]
        elif type == MODEL_COMPLETED:
            used.add(data)
        elif type in STATUSES:
            reason = data.get("reason") or data.get("error")
            values |= {"type": type, "reason": reason, "at": row["at"]}
            if reason != PEOPLE:
                values["asks"] = []
    if used.model_calls:
        values |= {name: getattr(used, name) for name in ("model_calls", *_TOKENS)}
        if used.cost_usd is not None:
            values["cost_usd"] = used.cost_usd
    if not values:
        return
    noting = _noting(tables, frozenset(values))
    if not noting(connection, {"id": id, **values}).changed:
        connection.execute(tables.hub_standings.insert().values(conversation_id=id, asks=[]))
        noting(connection, {"id": id, **values})


@functools.cache
def _noting(tables: Tables, names: frozenset[str]) -> Prepared:
    """Changes these columns of a row: what was used is added to what was used before."""
    t = tables.hub_standings
    new: dict[str, Any] = {name: sql.bindparam(name, type_=t.c[name].type) for name in names}
    for name in names & {"model_calls", *_TOKENS}:
        new[name] = t.c[name] + new[name]
    if "cost_usd" in names:
        new["cost_usd"] = sql.func.coalesce(t.c.cost_usd, 0.0) + new["cost_usd"]
    return Prepared(t.update().where(t.c.conversation_id == sql.bindparam("id")).values(new))


def last_type(connection: sql.Connection, tables: Tables, id: str) -> str | None:
    """The type of the event that says what the thread is; None where nothing was told."""
    t = tables.hub_standings
    query = sql.select(t.c.type).where(t.c.conversation_id == id)
    found: str | None = connection.scalar(query)
    return found


def listed(connection: sql.Connection, tables: Tables, agency: Agency) -> dict[str, Standing]:
    """What each thread of an agency is of which anything was told, by its id."""
    t, c = tables.hub_standings, tables.conversations
    query = sql.select(t).join(c, c.c.id == t.c.conversation_id)
    mine = query.where(is_of(tables, agency), t.c.type.is_not(None))
    return {row.conversation_id: _standing(row) for row in connection.execute(mine)}


def waiting(
    connection: sql.Connection, tables: Tables, agency: Agency
) -> list[tuple[Conversation, Standing]]:
    """Those of an agency that wait for people, the longest first."""
    t, c = tables.hub_standings, tables.conversations
    query = selected(tables, c.c.updated_at).add_columns(t.c.type, t.c.reason, t.c.at, t.c.asks)
    query = query.join(t, c.c.id == t.c.conversation_id).where(_waits(t), is_of(tables, agency))
    rows = connection.execute(query.order_by(t.c.at)).all()
    return [(conversation_of(row[:5]), _standing(row)) for row in rows]


def count_waiting(connection: sql.Connection, tables: Tables) -> int:
    """How many threads of all agencies wait for people."""
    t = tables.hub_standings
    return connection.scalar(sql.select(sql.func.count()).select_from(t).where(_waits(t))) or 0


def waiting_ids(connection: sql.Connection, tables: Tables, agency: Agency) -> set[str]:
    """The ids of the threads of an ``agency`` that wait for people, which is no notebook's."""
    return {id for (id,) in _waiting_of(tables)(connection, {"by": owner_of(agency)}).rows}


@functools.cache
def _waiting_of(tables: Tables) -> Prepared:
    """Asked before each run."""
    t, c = tables.hub_standings, tables.conversations
    query = sql.select(t.c.conversation_id).join(c, c.c.id == t.c.conversation_id)
    return Prepared(query.where(_waits(t), c.c.owner == sql.bindparam("by", type_=c.c.owner.type)))


def spent(connection: sql.Connection, tables: Tables, agency: Agency) -> Spent:
    """What the threads have used that an agency has now."""
    t, c = tables.hub_standings, tables.conversations
    names = ("model_calls", *_TOKENS, "cost_usd")
    sums = [sql.func.sum(t.c[name]) for name in names]
    threads = sql.func.count(c.c.id)
    joined = sql.select(threads, *sums).select_from(c.outerjoin(t, c.c.id == t.c.conversation_id))
    count, calls, taken, given, cost = connection.execute(joined.where(is_of(tables, agency))).one()
    return Spent(
        threads=count,
        model_calls=int(calls or 0),  # in PostgreSQL a sum of integers is a Decimal
        input_tokens=int(taken or 0),
        output_tokens=int(given or 0),
        cost_usd=cost,
    )


def _waits(t: sql.Table) -> sql.ColumnElement[bool]:
    return sql.and_(t.c.type == RUN_PAUSED, t.c.reason == PEOPLE)


def _standing(row: Any) -> Standing:
    return Standing(
        status=STATUSES[row.type], at=row.at, reason=row.reason, asks=tuple(row.asks or ())
    )
