"""When a conversation went on last is in its own row, once nobody has it open, and is indexed."""

from __future__ import annotations

from contextlib import suppress

import sqlalchemy as sql
from alembic import op
from sqlalchemy.exc import DatabaseError

revision = "0003"
down_revision = "0002"


def upgrade(prefix: str) -> None:
    """Write it down, and make an index in the order of lists, and one of who has something open."""
    _keep_times(op.get_bind(), prefix)
    conversations, leases = f"{prefix}conversations", f"{prefix}leases"
    op.drop_index(f"ix_{conversations}_owner", conversations)
    op.create_index(f"ix_{conversations}_newest", conversations, ["owner", "updated_at", "id"])
    is_held = sql.text("owner <> ''")
    op.create_index(
        f"ix_{leases}_held",
        leases,
        ["owner", "conversation_id"],
        sqlite_where=is_held,
        postgresql_where=is_held,
    )


def _keep_times(connection: sql.Connection, prefix: str) -> None:
    made = sql.MetaData()
    conversations, journal = (
        sql.Table(f"{prefix}{name}", made, autoload_with=connection)
        for name in ("conversations", "journal")
    )
    entries = sql.select(journal.c.at).where(journal.c.conversation_id == conversations.c.id)
    newest = entries.order_by(journal.c.seq.desc()).limit(1).scalar_subquery()
    change = conversations.update().values(updated_at=newest)
    change = change.where(newest > conversations.c.updated_at)
    try:
        with connection.begin_nested():
            connection.execute(change)
    except DatabaseError:
        # A page of a journal is damaged, which is told to whoever opens a conversation on it.
        for id in connection.execute(sql.select(conversations.c.id)).scalars().all():
            with suppress(DatabaseError), connection.begin_nested():
                connection.execute(change.where(conversations.c.id == id))
