"""What middleware hears outside of runs: that the session starts, and messages of others."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

from ..errors import AgentError
from ..loop.loop import Loop
from ..middleware.base import middleware_id
from ..middleware.chain import call_hook
from ..runtime.futures import outlast
from ..runtime.thread import runtime
from ..state import State
from .holding import Holding

logger = logging.getLogger(__name__)


class Mailing(Holding):
    """A session's middleware while nothing runs. Everything here runs on the runtime loop."""

    _working: asyncio.Task[None] | None = None  # hooks, while nothing runs; one at a time
    _letters: deque[tuple[str, Any]] | None = None  # what they have not read yet

    def boot(self) -> None:
        """Call the hooks of a session that starts; runs wait for them."""
        if self.agent._chain.hooks["on_session_start"]:
            self._working = runtime.spawn(self._boot())

    async def _boot(self) -> None:
        before = self._state
        loop = self._idle_loop()
        for item, hook in self.agent._chain.hooks["on_session_start"]:
            try:
                outcome = await call_hook(item, "on_session_start", hook, loop.state, loop.ctx)
                if isinstance(outcome, State):
                    loop.state = outcome
                elif outcome is not None:
                    kind = type(outcome).__name__
                    logger.warning(
                        "%s.on_session_start returned %s; return None or a State",
                        middleware_id(item),
                        kind,
                    )
            except AgentError:
                logger.exception("A session started without one of its hooks")
        self._keep_work(loop, before)
        await self._read_letters()

    async def _read_letters(self) -> None:
        """Let middleware read its messages while nothing runs, and keep what it made of them."""
        while self._letters and self.status != "closed":
            letter = self._letters.popleft()
            if self._loop is not None:  # a run began meanwhile
                self._loop.mail.append(letter)
                continue
            before, loop = self._state, self._idle_loop()
            loop.mail.append(letter)
            await loop.read_mail()
            if not self._keep_work(loop, before):
                self._letters.appendleft(letter)  # it is read again, beside what changed

    def _keep_work(self, loop: Loop, before: State) -> bool:
        """Keep what a hook made of the state; False if that was changed meanwhile."""
        if loop.state is not before:
            if self._state is not before:
                return False
            self._state = loop.state
            self.debug("state_updated", messages=len(self._state.messages))
        held = loop.ctx.held or []

        def tell() -> None:
            for kind, fields in held:
                loop.ctx.emitter.emit(kind, **fields)

        self.once_safe(tell)
        return True

    async def _booted(self, loop: Loop) -> None:
        before = loop.state
        while self._working is not None and not self._working.done():
            await outlast(self._working)
        if self._loop is loop and loop.state is before:
            loop.state = self._state

    def notify(self, middleware_id: str, message: Any) -> None:
        """Deliver a message to a middleware: between turns, or now if nothing runs."""
        if self._loop is not None:
            self._loop.mail.append((middleware_id, message))
        elif self.status != "closed":
            self._letters = self._letters or deque()
            self._letters.append((middleware_id, message))
            if self._working is None or self._working.done():
                self._working = runtime.spawn(self._read_letters())

    def _idle_loop(self) -> Loop:
        emitter = self._emitter.for_run(self._run_id)
        loop = self.agent.loop(
            self._state, emitter, files=self.files, scope=self.scope, local=self.local
        )
        if self.recorder is not None:
            loop.ctx.held = []  # what hooks tell waits until it is safe
        return loop
