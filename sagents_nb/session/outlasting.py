"""Waiting that a cancellation does not end."""

from __future__ import annotations

import asyncio
from typing import Any


async def outlast(work: asyncio.Future[Any]) -> None:
    """Return once ``work`` is done, also when whoever waits for it is cancelled meanwhile.

    The cancellation ends here: whoever stops a run has told its loop so. What ``work`` raises
    is left in it.
    """
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            if task := asyncio.current_task():
                task.uncancel()
