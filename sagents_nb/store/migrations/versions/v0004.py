"""What a hub keeps: its agencies, their blueprints, schedules and variables, and what it told."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sql
from alembic import op

revision = "0004"
down_revision = "0003"

ID = sql.String(255)
TIME = sql.DateTime(timezone=True)


def _column(name: str, type_: Any) -> sql.Column[Any]:
    return sql.Column(name, type_, nullable=False)


def upgrade(prefix: str) -> None:
    """Make its tables."""
    agencies, blueprints, events = (
        f"{prefix}hub_{n}" for n in ("agencies", "blueprints", "events")
    )
    op.create_table(
        agencies,
        _column("id", ID),
        _column("name", ID),
        _column("secret", sql.String(64)),
        _column("created_at", TIME),
        sql.PrimaryKeyConstraint("id", name=f"pk_{agencies}"),
    )
    op.create_index(f"ix_{agencies}_name", agencies, ["name"], unique=True)
    op.create_table(
        blueprints,
        _column("agency_id", ID),
        _column("name", ID),
        sql.Column("version", sql.Integer(), nullable=False, autoincrement=False),
        _column("data", sql.Text()),
        _column("created_at", TIME),
        sql.PrimaryKeyConstraint("agency_id", "name", "version", name=f"pk_{blueprints}"),
    )
    op.create_table(
        events,
        _column("conversation_id", ID),
        sql.Column("seq", sql.BigInteger(), nullable=False, autoincrement=False),
        _column("type", sql.String(40)),
        _column("data", sql.Text()),
        _column("at", TIME),
        sql.PrimaryKeyConstraint("conversation_id", "seq", name=f"pk_{events}"),
        sql.ForeignKeyConstraint(
            ["conversation_id"],
            [f"{prefix}conversations.id"],
            name=f"fk_{events}_conversation_id",
            ondelete="CASCADE",
        ),
    )
    _schedules(prefix)
    doors = f"{prefix}hub_doors"
    op.create_table(
        doors,
        _column("owner", ID),
        _column("address", sql.String()),
        _column("token", ID),
        _column("opened_at", TIME),
        sql.PrimaryKeyConstraint("owner", name=f"pk_{doors}"),
    )


def _schedules(prefix: str) -> None:
    schedules, runs, variables = (
        f"{prefix}hub_{name}" for name in ("schedules", "schedule_runs", "variables")
    )
    op.create_table(
        schedules,
        _column("id", ID),
        _column("agency_id", ID),
        _column("data", sql.Text()),
        _column("status", sql.String(20)),
        sql.Column("next_at", TIME),
        sql.Column("last_at", TIME),
        _column("created_at", TIME),
        _column("updated_at", TIME),
        sql.PrimaryKeyConstraint("id", name=f"pk_{schedules}"),
    )
    op.create_index(f"ix_{schedules}_due", schedules, ["status", "next_at"])
    op.create_index(f"ix_{schedules}_agency", schedules, ["agency_id", "created_at"])
    op.create_table(
        runs,
        _column("id", ID),
        _column("schedule_id", ID),
        sql.Column("thread_id", ID),
        _column("status", sql.String(20)),
        _column("attempts", sql.Integer()),
        sql.Column("error", sql.String()),
        _column("scheduled_at", TIME),
        sql.Column("started_at", TIME),
        sql.Column("ended_at", TIME),
        sql.PrimaryKeyConstraint("id", name=f"pk_{runs}"),
        sql.ForeignKeyConstraint(
            ["schedule_id"],
            [f"{schedules}.id"],
            name=f"fk_{runs}_schedule_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index(f"ix_{runs}_newest", runs, ["schedule_id", "scheduled_at"])
    op.create_table(
        variables,
        _column("agency_id", ID),
        _column("name", ID),
        _column("value", sql.Text()),
        sql.PrimaryKeyConstraint("agency_id", "name", name=f"pk_{variables}"),
    )
