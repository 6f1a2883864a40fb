"""How long a client may take to read what it is sent."""

from __future__ import annotations

import asyncio
from typing import Any

from .guard import Send

MOST_WAITING = 256
"""Events or messages that wait for one client; who is further behind does without some."""


class Patience:
    """Waits for nobody who reads nothing for ``seconds``.

    All that is being sent is looked at now and then: a timer for each would take as long as to send
    it. Its methods are for one loop.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._sending: dict[asyncio.Task[Any], float] = {}  # since when, by the loop's clock
        self._late: set[asyncio.Task[Any]] = set()
        self._looks = False

    def sends(self, send: Send) -> Send:
        """Sends as ``send`` does; raises :class:`TimeoutError` where that takes too long."""

        async def sending(message: Any) -> None:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None
            self._sending[task] = loop.time()
            if not self._looks:
                self._look_later(loop)
            try:
                await send(message)
            except asyncio.CancelledError:
                if task in self._late and not task.uncancel():  # and nobody else has cancelled it
                    raise TimeoutError from None
                raise
            finally:
                del self._sending[task]
                self._late.discard(task)

        return sending

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looks = True
        loop.call_later(self._seconds / 10, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looks = False
        for task, since in self._sending.items():
            if loop.time() - since > self._seconds and task not in self._late:
                self._late.add(task)
                task.cancel()
        if self._sending:
            self._look_later(loop)
