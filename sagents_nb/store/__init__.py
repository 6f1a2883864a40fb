"""Conversations in SQL: SQLite without a server, PostgreSQL when that is outgrown.

SQLAlchemy is imported with :class:`ConversationStore`; the rest needs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..scope import Scope
from .display import DisplayMessage, Row, cancelled_row, error_row, rows_of
from .persistence import AgentPersistence, DisplayMessagePersistence, Lifecycle

if TYPE_CHECKING:
    from .store import ConversationStore as ConversationStore

__all__ = [
    "AgentPersistence",
    "ConversationStore",
    "DisplayMessage",
    "DisplayMessagePersistence",
    "Lifecycle",
    "Row",
    "Scope",
    "cancelled_row",
    "error_row",
    "rows_of",
]


def __getattr__(name: str) -> Any:
    if name != "ConversationStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .store import ConversationStore
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sqlalchemy":
            raise
        raise ConfigurationError(
            'A store needs SQLAlchemy: pip install "sagents-nb[store]".'
        ) from None
    globals()[name] = ConversationStore
    return ConversationStore
