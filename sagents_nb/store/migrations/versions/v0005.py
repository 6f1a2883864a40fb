"""What the events of a hub's threads come to has a row each, of those that are there."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sql
from alembic import op

revision = "0005"
down_revision = "0004"

ID = sql.String(255)
TIME = sql.DateTime(timezone=True)

_SAY_WHAT_IT_IS = (
    "run.started",
    "run.resumed",
    "run.paused",
    "agent.completed",
    "agent.error",
    "run.canceled",
)
_ASKS, _ANSWERED = "hitl.interrupt", "model.completed"


def _count(name: str) -> sql.Column[Any]:
    return sql.Column(name, sql.BigInteger(), nullable=False)


def upgrade(prefix: str) -> None:
    """Make the table, and read each event once."""
    name = f"{prefix}hub_standings"
    standings = op.create_table(
        name,
        sql.Column("conversation_id", ID, nullable=False),
        sql.Column("type", sql.String(40)),
        sql.Column("reason", sql.String()),
        sql.Column("asks", sql.Text(), nullable=False),
        sql.Column("at", TIME),
        _count("model_calls"),
        _count("input_tokens"),
        _count("output_tokens"),
        sql.Column("cost_usd", sql.Double()),
        _count("forgotten"),
        sql.PrimaryKeyConstraint("conversation_id", name=f"pk_{name}"),
        sql.ForeignKeyConstraint(
            ["conversation_id"],
            [f"{prefix}conversations.id"],
            name=f"fk_{name}_conversation_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index(f"ix_{name}_type", name, ["type"])
    connection = op.get_bind()
    events = sql.Table(f"{prefix}hub_events", sql.MetaData(), autoload_with=connection)
    told = sql.select(events).where(events.c.type.in_((*_SAY_WHAT_IT_IS, _ASKS, _ANSWERED)))
    found: dict[str, dict[str, Any]] = {}
    for row in connection.execute(told.order_by(events.c.conversation_id, events.c.seq)):
        new = _nothing(row.conversation_id)
        _take(found.setdefault(row.conversation_id, new), row.type, _read(row.data), row.at)
    for values in found.values():
        connection.execute(standings.insert().values(values))


def _nothing(id: str) -> dict[str, Any]:
    counts = dict.fromkeys(("model_calls", "input_tokens", "output_tokens", "forgotten"), 0)
    return {"conversation_id": id, "asks": "[]", "type": None, "cost_usd": None, **counts}


def _read(text: Any) -> dict[str, Any]:
    """The data of an event, nothing of one that is damaged; escapes are left as they are."""
    try:
        data = json.loads(text.removeprefix("\ufffe"))
    except (ValueError, AttributeError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _take(values: dict[str, Any], type: str, data: dict[str, Any], at: Any) -> None:
    if type == _ASKS:
        calls = data.get("proposedToolCalls") or ()
        values["asks"] = json.dumps([call.get("toolName") for call in calls])
    elif type == _ANSWERED:
        usage = data.get("usage") or {}
        values["model_calls"] += 1
        values["input_tokens"] += usage.get("inputTokens", 0)
        values["output_tokens"] += usage.get("outputTokens", 0)
        if "costUsd" in usage:
            values["cost_usd"] = (values["cost_usd"] or 0.0) + usage["costUsd"]
    else:
        values |= {"type": type, "reason": data.get("reason") or data.get("error"), "at": at}
        if values["reason"] != "hitl":
            values["asks"] = "[]"
