"""What middleware hears outside of runs: that the session starts, and messages of others."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ..errors import AgentError
from ..loop import Loop
from ..middleware.base import middleware_id
from ..middleware.chain import call_hook
from ..runtime import runtime
from ..state import State
from .holding import Holding

logger = logging.getLogger(__name__)


class Mailing(Holding):
    """A session's middleware while nothing runs. Everything here runs on the runtime loop."""

    _booting: asyncio.Task[None] | None = None  # the hooks of a session that starts

    def boot(self) -> None:
        """Call the hooks of a session that starts; runs wait for them."""
        if self.agent._chain.hooks["on_session_start"]:
            self._booting = runtime.spawn(self._boot())

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
        await self._read_mail(loop, before)

    async def _read_mail(self, loop: Loop, before: State) -> None:
        """Let middleware read its messages while nothing runs, and keep what it made of them."""
        await loop.read_mail()
        if self._state is not before:  # a run began meanwhile
            return
        if loop.state is not before:
            self._state = loop.state
            self.debug("state_updated", messages=len(self._state.messages))
        held = loop.ctx.held or []

        def tell() -> None:
            for kind, fields in held:
                loop.ctx.emitter.emit(kind, **fields)

        self.once_safe(tell)

    async def _booted(self, loop: Loop) -> None:
        before = loop.state
        while self._booting is not None and not self._booting.done():
            try:
                await asyncio.wait([self._booting])
            except asyncio.CancelledError:
                if task := asyncio.current_task():
                    task.uncancel()
        if self._loop is loop and loop.state is before:
            loop.state = self._state

    def notify(self, middleware_id: str, message: Any) -> None:
        """Deliver a message to a middleware: between turns, or now if nothing runs."""
        if self._loop is not None:
            self._loop.mail.append((middleware_id, message))
        elif self.status != "closed":
            runtime.spawn(self._deliver(middleware_id, message))

    async def _deliver(self, middleware_id: str, message: Any) -> None:
        if self._loop is not None:  # a run began meanwhile
            self._loop.mail.append((middleware_id, message))
            return
        loop = self._idle_loop()
        loop.mail.append((middleware_id, message))
        await self._read_mail(loop, self._state)

    def _idle_loop(self) -> Loop:
        emitter = self._emitter.for_run(self._run_id)
        loop = self.agent.loop(
            self._state, emitter, files=self.files, scope=self.scope, local=self.local
        )
        if self.recorder is not None:
            loop.ctx.held = []  # what hooks tell waits until it is safe
        return loop
