"""What a session's middleware hears: that the session starts, and messages for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from ..errors import AgentError
from ..loop.loop import Loop
from ..middleware.base import middleware_id
from ..middleware.chain import Chain, call_hook
from ..runtime.futures import wait_uncancelled
from ..runtime.thread import runtime
from ..state import State
from ..text import logger_of

logger = logger_of(__name__)


class MiddlewareMessages:
    """The messages for the middleware of one session; used on the runtime loop only.

    ``waiting`` are those that nobody has handled, as pairs of a middleware's id and a message.
    The active run is given that queue and handles them between its turns. While the session
    ``is_idle`` they are handled here, each by an ``idle_run`` of its own. ``keep`` is given that
    run and the state it began with, and says whether its state could be kept: else the message
    is handled again, beside what changed meanwhile.
    """

    def __init__(
        self,
        is_idle: Callable[[], bool],
        idle_run: Callable[[deque[tuple[str, Any]]], Loop],
        keep: Callable[[Loop, State], bool],
    ) -> None:
        self.waiting: deque[tuple[str, Any]] = deque()
        self._is_idle = is_idle
        self._idle_run = idle_run
        self._keep = keep
        self._working: asyncio.Task[None] | None = None

    def start(self, chain: Chain) -> None:
        """Call the hooks of a session that starts; runs wait for them."""
        if chain.hooks["on_session_start"]:
            self._working = runtime.spawn(self._start(chain))

    def post(self, middleware_id: str, message: Any) -> None:
        """Take a message: for the active run, or to be handled now."""
        self.waiting.append((middleware_id, message))
        self.handle()

    @property
    def at_work(self) -> bool:
        """Whether a middleware is at work here."""
        return self._working is not None and not self._working.done()

    def handle(self) -> None:
        """Handle what waits, if nothing runs."""
        if self.waiting and not self.at_work and self._is_idle():
            self._working = runtime.spawn(self._handle())

    def hand_over(self) -> None:
        """Leave what waits to the run that was active, which is let go."""
        self.waiting = deque()

    async def idle(self) -> None:
        """Return once no middleware is at work here, also when cancelled meanwhile."""
        while self.at_work:
            assert self._working is not None
            await wait_uncancelled(self._working)

    async def _start(self, chain: Chain) -> None:
        run = self._idle_run(deque())
        before = run.state
        for item, hook in chain.hooks["on_session_start"]:
            try:
                outcome = await call_hook(item, "on_session_start", hook, run.state, run.ctx)
                if isinstance(outcome, State):
                    run.state = outcome
                elif outcome is not None:
                    kind = type(outcome).__name__
                    logger.warning(
                        "%s.on_session_start returned %s; return None or a State",
                        middleware_id(item),
                        kind,
                    )
            except AgentError:
                logger.exception("A session started without one of its hooks")
        self._keep(run, before)
        await self._handle()

    async def _handle(self) -> None:
        waiting = self.waiting
        while waiting and self._is_idle():
            run = self._idle_run(deque([waiting[0]]))
            before = run.state
            await run.deliver_messages()
            if self._keep(run, before):
                waiting.popleft()
