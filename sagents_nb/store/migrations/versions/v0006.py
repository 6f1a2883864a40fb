"""Tasks, and what they make; of each tool the questions for which it was of use."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0006"
down_revision = "0005"

ID = sql.String(255)
TIME = sql.DateTime(timezone=True)


def upgrade(prefix: str) -> None:
    """Make the three tables."""
    tasks, artifacts = f"{prefix}tasks", f"{prefix}artifacts"
    feedback = f"{prefix}tool_feedback"

    def of_conversation(table: str) -> sql.ForeignKeyConstraint:
        return sql.ForeignKeyConstraint(
            ["conversation_id"],
            [f"{prefix}conversations.id"],
            name=f"fk_{table}_conversation_id",
            ondelete="CASCADE",
        )

    op.create_table(
        tasks,
        sql.Column("conversation_id", ID, nullable=False),
        sql.Column("context", ID, nullable=False),
        sql.Column("caller", ID, nullable=False),
        sql.Column("agent", ID, nullable=False),
        sql.Column("state", sql.String(20), nullable=False),
        sql.Column("background", sql.Boolean(), nullable=False),
        sql.Column("change", sql.BigInteger(), nullable=False),
        sql.Column("told", sql.BigInteger(), nullable=False),
        sql.Column("seconds", sql.Double(), nullable=False),
        sql.Column("tokens", sql.BigInteger(), nullable=False),
        sql.Column("cost_usd", sql.Double()),
        sql.Column("data", sql.Text(), nullable=False),
        sql.Column("input", sql.Text(), nullable=False),
        sql.Column("output", sql.Text(), nullable=False),
        sql.Column("created_at", TIME, nullable=False),
        sql.Column("updated_at", TIME, nullable=False),
        sql.Column("completed_at", TIME),
        sql.PrimaryKeyConstraint("conversation_id", name=f"pk_{tasks}"),
        of_conversation(tasks),
    )
    op.create_index(f"ix_{tasks}_newest", tasks, ["created_at"])
    op.create_index(f"ix_{tasks}_context", tasks, ["context", "created_at"])
    op.create_index(f"ix_{tasks}_agent", tasks, ["agent", "state"])
    op.create_table(
        artifacts,
        sql.Column("conversation_id", ID, nullable=False),
        sql.Column("position", sql.Integer(), nullable=False, autoincrement=False),
        sql.Column("data", sql.Text(), nullable=False),
        sql.Column("created_at", TIME, nullable=False),
        sql.PrimaryKeyConstraint("conversation_id", "position", name=f"pk_{artifacts}"),
        of_conversation(artifacts),
    )
    op.create_table(
        feedback,
        sql.Column("owner", ID, nullable=False),
        sql.Column("tool", ID, nullable=False),
        sql.Column("queries", sql.Text(), nullable=False),
        sql.Column("updated_at", TIME, nullable=False),
        sql.PrimaryKeyConstraint("owner", "tool", name=f"pk_{feedback}"),
    )
