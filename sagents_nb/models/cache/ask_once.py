"""One asks at a time for the same answer; who waits finds it recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class AskOnce:
    """Whose turn it is to ask, by key; on each event loop, since its locks are its own."""

    def __init__(self) -> None:
        self._asking: dict[tuple[int, str], _Asking] = {}

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Wait for the turn to ask for ``key``, and have it."""
        name = (id(asyncio.get_running_loop()), key)
        asking = self._asking.setdefault(name, _Asking())
        asking.wanted += 1
        try:
            async with asking.lock:
                yield
        finally:
            asking.wanted -= 1
            if not asking.wanted:
                self._asking.pop(name, None)


class _Asking:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0
