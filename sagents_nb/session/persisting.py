"""The state of a session, given to whoever keeps it at the turns of its life.

Nothing here stops the agent: what cannot be kept is logged, told, and given again with the next.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from ..runtime.thread import runtime
from ..store.persistence import AgentPersistence, Lifecycle

logger = logging.getLogger(__name__)

# How long a session waits for its state to be kept, in seconds; then it is kept when it is kept.
PATIENCE = 5.0

ENDS: dict[str, Lifecycle] = {
    "completed": "on_completion",
    "paused": "on_completion",
    "interrupted": "on_interrupt",
    "error": "on_error",
    "cancelled": "on_cancel",
}
"""Why a state is kept, by how a run ended."""


class Persister:
    """Keeps the state of one conversation, one after the other; on the runtime loop only."""

    def __init__(
        self,
        persistence: AgentPersistence,
        scope: Any,
        conversation_id: str,
        export: Callable[[], dict[str, Any]],
        trouble: Callable[[str], None],
    ) -> None:
        self._persistence = persistence
        self._whose = scope, conversation_id
        self._export = export
        self._trouble = trouble
        self._last: asyncio.Task[None] | None = None

    async def keep(self, context: Lifecycle) -> None:
        """Have the state of now kept, and wait for it if it does not take long."""
        await asyncio.wait([self.post(context)], timeout=PATIENCE)

    def post(self, context: Lifecycle) -> asyncio.Task[None]:
        """Have the state of now kept, behind what is being kept."""
        self._last = runtime.spawn(self._keep(self._last, self._export(), context))
        return self._last

    async def _keep(
        self, before: asyncio.Task[None] | None, exported: dict[str, Any], context: Lifecycle
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            await called(self._persistence.save_state, *self._whose, exported, context)
        except Exception as error:
            problem = f"The state was not saved {context}: {type(error).__name__}: {error}"
            logger.warning("Session %r: %s", self._whose[1], problem)
            self._trouble(problem)


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """What somebody's function gives, be it sync (in a worker thread) or async."""
    if inspect.iscoroutinefunction(function):
        return await function(*args)
    loop = asyncio.get_running_loop()
    outcome = await loop.run_in_executor(runtime.pool, function, *args)
    return await outcome if inspect.isawaitable(outcome) else outcome
