"""Of each tool the questions for which it was of use."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0006"
down_revision = "0005"

ID = sql.String(255)


def upgrade(prefix: str) -> None:
    """Make the table."""
    name = f"{prefix}tool_feedback"
    op.create_table(
        name,
        sql.Column("owner", ID, nullable=False),
        sql.Column("tool", ID, nullable=False),
        sql.Column("queries", sql.Text(), nullable=False),
        sql.Column("updated_at", sql.DateTime(timezone=True), nullable=False),
        sql.PrimaryKeyConstraint("owner", "tool", name=f"pk_{name}"),
    )
