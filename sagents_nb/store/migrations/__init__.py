"""From an older version of the tables to the newest, one file of ``versions/`` per step.

Each has Alembic's ``revision`` and ``down_revision`` and an ``upgrade(prefix)`` that says with
``alembic.op`` what changes. A step is never edited once it was released: it stands for what
older stores look like. There is no way back.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sql

from ...errors import ConfigurationError

VERSIONS = [str(Path(__file__).parent / "versions")]


def migrate(connection: sql.Connection, prefix: str, since: str | None, to: str) -> None:
    """Take the steps from version ``since`` to ``to``, in the transaction of ``connection``."""
    try:
        from alembic.migration import MigrationContext
        from alembic.operations import Operations
        from alembic.script import ScriptDirectory
    except ImportError:
        raise ConfigurationError(
            "This store is of an older version, and bringing it up to date needs alembic: "
            'pip install "sagents-nb[store]".'
        ) from None
    scripts = ScriptDirectory(str(Path(__file__).parent), version_locations=VERSIONS)
    steps = list(scripts.iterate_revisions(to, since or "base"))  # the newest comes first
    with Operations.context(MigrationContext.configure(connection)):
        for step in reversed(steps):
            step.module.upgrade(prefix)
