"""Checksums of a journal's rows, and in the lease of its conversation their tally.

The rows have none yet: each conversation's get them when it is opened for the first time, so that
this takes no longer for large stores, and pages that are damaged stop nothing but what is on them.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sql
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade(prefix: str) -> None:
    """Add them, and the leases of conversations that nobody has had yet."""
    op.add_column(f"{prefix}journal", sql.Column("checksum", sql.BigInteger(), nullable=True))
    op.add_column(f"{prefix}leases", sql.Column("tally", sql.String(), nullable=True))
    connection, made = op.get_bind(), sql.MetaData()
    conversations, leases = (
        sql.Table(f"{prefix}{name}", made, autoload_with=connection)
        for name in ("conversations", "leases")
    )
    at, nobody = conversations.c.created_at, map(sql.literal, (0, "", "", 0))
    columns = ["conversation_id", "epoch", "owner", "host", "pid", "began_at", "heartbeat_at"]
    without = conversations.c.id.not_in(sql.select(leases.c.conversation_id))
    new = sql.select(conversations.c.id, *nobody, at, at).where(without)
    connection.execute(leases.insert().from_select(columns, new))
    of_it = leases.c.conversation_id == sql.bindparam("id")
    tallies = [
        {"id": id, "text": _tally_of_nothing(id)}
        for id in connection.execute(sql.select(leases.c.conversation_id)).scalars()
    ]
    if tallies:
        change = leases.update().where(of_it).values(tally=sql.bindparam("text"))
        connection.execute(change, tallies)


def _tally_of_nothing(id: str) -> str:
    digest = hashlib.blake2b(ascii(id).encode() + b" 0 0 0", digest_size=8).digest()
    return f"0 0 0 {int.from_bytes(digest, 'big', signed=True)}"
