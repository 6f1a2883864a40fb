"""Waking the kernel's loop while a cell awaits, so that an interrupt reaches the cell.

ipykernel's handler of the interrupt has the loop cancel the cell, but nothing wakes the loop for
that: it would hear of it with the next message, or with whatever else it waits for.
"""

from __future__ import annotations

import asyncio
from typing import Any

# In seconds.
INTERVAL = 0.1


class Heartbeat:
    """Wakes ``loop`` while cells run, as the shell's ``events`` tell; begins within a cell."""

    def __init__(self, loop: asyncio.AbstractEventLoop, events: Any) -> None:
        self._loop = loop
        self._events = events
        self._next: asyncio.TimerHandle | None = None
        events.register("pre_run_cell", self._begin)
        events.register("post_run_cell", self._rest)
        self._begin()

    def end(self) -> None:
        """Never wake it again."""
        self._events.unregister("pre_run_cell", self._begin)
        self._events.unregister("post_run_cell", self._rest)
        self._rest()

    def _begin(self, *info: Any) -> None:
        self._rest()
        self._next = self._loop.call_later(INTERVAL, self._begin)

    def _rest(self, *result: Any) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
