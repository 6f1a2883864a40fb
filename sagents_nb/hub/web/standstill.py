"""How long somebody waits for a store in which nothing goes on any more."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import sqlalchemy as sql

from ...errors import StoreError
from ...store.database.thread import Database

T = TypeVar("T")

PATIENCE = 6.0
"""Seconds after which it is looked whether the store does anything, while somebody waits."""

ANSWERED_IN = 2.0
"""Seconds in which it does the least that can be asked."""


class Standstill(StoreError):
    """The store does nothing: perhaps another process was stopped in the midst of its work."""

    def __init__(self) -> None:
        super().__init__(
            "The hub's store does not answer now, so this may be done later, or not at all; try "
            "again in a moment, with the same idempotencyKey."
        )


async def in_time(working: asyncio.Future[T], database: Database) -> T:
    """What ``working`` gives, which may take long, unless the ``database`` stands still.

    Raises :class:`Standstill` then; what has not begun by then does not begin.
    """
    try:
        while not (await asyncio.wait({working}, timeout=PATIENCE))[0]:
            if not await _goes_on(database):
                raise Standstill
        return working.result()
    finally:
        working.cancel()


async def _goes_on(database: Database) -> bool:
    asked = database.submit(lambda connection: connection.execute(sql.select(1)).first())
    answered = asyncio.wrap_future(asked)
    done, _ = await asyncio.wait({answered}, timeout=ANSWERED_IN)
    if done:
        answered.exception()  # an error is an answer as well: who waits is told theirs
    else:
        answered.add_done_callback(lambda late: late.cancelled() or late.exception())
    return bool(done)
