"""Waiting for what happens on the runtime thread: from any thread, on any loop."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from ..result import RunResult
from .main_thread import main_thread
from .thread import runtime


class RunHandle:
    """A future result: wait for it in any thread, await it on any loop.

    Whoever is interrupted while waiting, by Ctrl-C or by being cancelled, cancels the run.
    """

    future: Future[RunResult]

    def cancel(self) -> None:
        """Stop the run; from any thread, and harmless once it has ended."""
        raise NotImplementedError

    def result(self, timeout: float | None = None) -> RunResult:
        """Wait up to ``timeout`` seconds; raises AgentError for a failed run, or TimeoutError.

        A KeyboardInterrupt while waiting cancels the run. Raises
        :class:`~sagents_nb.errors.Busy` on the runtime thread, which would wait for itself.
        """
        runtime.refuse_here("Waiting for a run", "use 'await run' or 'await agent.arun(…)' there")
        try:
            return main_thread.wait(self.future, timeout)
        except KeyboardInterrupt:
            self.cancel()
            raise

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._awaited().__await__()

    async def _awaited(self) -> RunResult:
        try:
            return await asyncio.wrap_future(self.future)
        except asyncio.CancelledError:
            self.cancel()
            raise


async def wait_uncancelled(work: asyncio.Future[Any]) -> None:
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
