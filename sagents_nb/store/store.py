"""Many conversations of many owners in one database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sql

from . import conversations
from .database import Database
from .scope import owner_of
from .scoped import ScopedStore

if TYPE_CHECKING:
    import pandas


class ConversationStore(ScopedStore):
    """Conversations in SQLite or PostgreSQL, each one its owner's.

    ``url`` is a path or any SQLAlchemy URL, "sqlite:///agents.db" or "postgresql://user@host/db";
    the names of all tables begin with ``table_prefix``. A new database gets its tables, an
    older one is brought up to date. Every method may be called from any thread but the
    runtime's, which has to await the ones that are async.

    :meth:`scoped` gives the conversations of one owner. The store's own methods are for those
    that have none: whoever has no scope sees nobody's conversations.

    >>> from sagents_nb import Scope
    >>> store = ConversationStore("sqlite://")  # in memory
    >>> mine = store.scoped(Scope(user="alice"))
    >>> conversation = mine.create_conversation(title="Trip")
    >>> row = mine.append_text_message(conversation.id, "user", "To Oslo, please.")
    >>> [row.content["text"] for row in mine.search_messages("oslo")]
    ['To Oslo, please.']
    >>> store.scoped(Scope(user="bob")).search_messages("oslo")
    []
    >>> store.close()

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a place that cannot work and a
    database of a newer version, and :class:`~sagents_nb.errors.StoreError` for one that cannot
    be opened.
    """

    def __init__(self, url: str | Path | sql.URL, table_prefix: str = "sagents_") -> None:
        if isinstance(url, Path) or (isinstance(url, str) and "://" not in url):
            url = sql.URL.create("sqlite", database=str(Path(url).expanduser()))
        super().__init__(Database(url, table_prefix=table_prefix), owner_of(None))
        self.database.run(lambda connection: None)  # what cannot be opened is told here

    def __repr__(self) -> str:
        return f"ConversationStore({self.database.name!r})"

    def scoped(self, scope: Any) -> ScopedStore:
        """The conversations of one owner: ``Scope(user=…)`` or any object with an ``owner_id``."""
        return ScopedStore(self.database, owner_of(scope))

    def to_frame(self, kind: str, scope: Any = None) -> pandas.DataFrame:
        """The frame of one owner's conversations; see :meth:`ScopedStore.to_frame`."""
        return super().to_frame(kind) if scope is None else self.scoped(scope).to_frame(kind)

    def delete_older_than(self, days: float = 30) -> int:
        """Delete what nobody went on with for so many days, whosever it is; how many it were.

        What is open in a session that lives is left alone.
        """
        return self.database.run(
            lambda connection: conversations.delete_older_than(
                connection, self.database.tables, days
            )
        )

    def close(self) -> None:
        """Write what is waiting and close the database. Sessions that use the store end badly."""
        self.database.close()
