"""Files of threads, in the database of their hub."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ..files.paths import scope_text
from ..files.storages.sql import SQLStorage
from .event_log import EventLog

if TYPE_CHECKING:
    import sqlalchemy as sql


class ThreadFiles(SQLStorage):
    """The files of the threads that it follows: once another process has had one, this writes none.

    Each write looks at the lease in its own transaction, so that nobody takes it meanwhile.
    """

    def __init__(self, url: sql.URL) -> None:
        super().__init__(url)
        self._logs: WeakValueDictionary[str, EventLog] = WeakValueDictionary()
        self._is_shared = url.database not in (None, "", ":memory:")  # else leases are elsewhere

    def follow(self, log: EventLog) -> None:
        """Files of that thread are written as long as its events are kept."""
        if self._is_shared:
            self._logs[scope_text(scope_of(log.thread_id))] = log

    def before_commit(self, connection: sql.Connection, scope: str) -> None:
        """Raise StaleOwner where another process has the thread, or had it since."""
        if (log := self._logs.get(scope)) is not None:
            log.check(connection)


def scope_of(thread_id: str) -> tuple[str, str]:
    """Whose the files of a thread are."""
    return "thread", thread_id
