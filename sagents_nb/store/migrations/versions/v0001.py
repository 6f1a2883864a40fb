"""The first tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None

ID = sql.String(255)
TIME = sql.DateTime(timezone=True)
BIG = sql.BigInteger()


def _column(name: str, type_: Any, nullable: bool = False, **options: Any) -> sql.Column[Any]:
    return sql.Column(name, type_, nullable=nullable, **options)


def upgrade(prefix: str) -> None:
    """Make them."""
    conversations = f"{prefix}conversations"
    op.create_table(
        conversations,
        _column("id", ID),
        _column("owner", ID),
        _column("title", sql.String(), True),
        _column("metadata", sql.Text()),
        _column("created_at", TIME),
        _column("updated_at", TIME),
        sql.PrimaryKeyConstraint("id", name=f"pk_{conversations}"),
    )
    op.create_index(f"ix_{conversations}_owner", conversations, ["owner", "updated_at"])

    def create(name: str, key: list[str], *columns: sql.Column[Any]) -> None:
        table = f"{prefix}{name}"
        op.create_table(
            table,
            *columns,
            sql.PrimaryKeyConstraint(*key, name=f"pk_{table}"),
            sql.ForeignKeyConstraint(
                ["conversation_id"],
                [f"{conversations}.id"],
                name=f"fk_{table}_conversation_id",
                ondelete="CASCADE",
            ),
        )

    create(
        "agent_states",
        ["conversation_id"],
        _column("conversation_id", ID),
        _column("data", sql.Text()),
        _column("updated_at", TIME),
    )
    create(
        "display_messages",
        ["id"],
        _column("id", BIG.with_variant(sql.Integer(), "sqlite"), autoincrement=True),
        _column("conversation_id", ID),
        _column("tool_call_id", ID, True),
        _column("message_type", ID),
        _column("content_type", sql.String(40)),
        _column("content", sql.Text()),
        _column("status", sql.String(20)),
        _column("metadata", sql.Text()),
        _column("inserted_at", TIME),
        _column("sequence", sql.Integer()),
        _column("search_text", sql.Text(), True),
    )
    op.create_index(
        f"ix_{prefix}display_messages_order",
        f"{prefix}display_messages",
        ["conversation_id", "inserted_at", "sequence"],
    )
    op.create_index(
        f"ix_{prefix}display_messages_call",
        f"{prefix}display_messages",
        ["conversation_id", "tool_call_id"],
    )
    create(
        "journal",
        ["conversation_id", "seq"],
        _column("conversation_id", ID),
        _column("seq", BIG, autoincrement=False),
        _column("kind", sql.String(20)),
        _column("data", sql.Text()),
        _column("escaped", sql.Boolean()),
        _column("at", TIME),
    )
    create(
        "journal_damaged",
        ["conversation_id", "seq"],
        _column("conversation_id", ID),
        _column("seq", BIG, autoincrement=False),
        _column("kind", sql.Text(), True),
        _column("data", sql.Text(), True),
        _column("escaped", sql.Boolean(), True),
        _column("reason", sql.String()),
        _column("at", TIME),
    )
    create(
        "leases",
        ["conversation_id"],
        _column("conversation_id", ID),
        _column("epoch", BIG),
        _column("owner", sql.String()),
        _column("host", sql.String()),
        _column("pid", BIG),
        _column("began_at", TIME),
        _column("heartbeat_at", TIME),
    )
    op.create_table(
        f"{prefix}version",
        _column("version_num", sql.String(32)),
        sql.PrimaryKeyConstraint("version_num", name=f"pk_{prefix}version"),
    )
