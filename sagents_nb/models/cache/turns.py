"""One asks at a time for the same answer; who waits finds it recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Whose turn it is to ask, by key; on each event loop, since its locks are its own."""

    def __init__(self) -> None:
        self._turns: dict[tuple[int, str], _Turn] = {}

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Wait for the turn to ask for ``key``, and have it."""
        name = (id(asyncio.get_running_loop()), key)
        turn = self._turns.setdefault(name, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                self._turns.pop(name, None)


class _Turn:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0
