"""Somebody waits for a model outside of a run: in a thread, or on a loop of their own.

Models are asked on the runtime's loop only, so that all who share one share its connections and
limits; whoever waits is given the pieces of the answer where they wait.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from ..events import Event, MessageUpdate
from ..messages import TextDelta
from ..runtime.caller import blocking
from ..runtime.event_stream import EventStream
from ..runtime.main_thread import main_thread
from ..runtime.thread import runtime

T = TypeVar("T")
OnText = Callable[[str], Any]
Work = Callable[[OnText], Coroutine[Any, Any, T]]
"""It is given what takes the pieces of text, from the runtime's thread."""


class _Call(Generic[T]):
    """Work under way; who waits for it and is interrupted takes it along."""

    def __init__(self, work: Work[T]) -> None:
        self.pieces = EventStream()
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self.future: Future[T] = runtime.submit(self._run(work))

    async def _run(self, work: Work[T]) -> T:
        self._task = asyncio.current_task()
        try:
            if self._cancelled:
                raise asyncio.CancelledError
            return await work(self._push)
        finally:
            self.pieces.close()

    def _push(self, text: str) -> None:
        self.pieces.push(MessageUpdate(delta=TextDelta(text)))

    def cancel(self) -> None:
        """End it, from any thread."""
        runtime.post(self._cancel)

    def _cancel(self) -> None:
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()


def text_of(event: Event) -> str:
    """The piece of text in an event."""
    is_text = isinstance(event, MessageUpdate) and isinstance(event.delta, TextDelta)
    return event.delta.text if is_text else ""  # type: ignore[attr-defined]


def wait_for(what: str, instead: str, work: Work[T], on_text: OnText | None = None) -> T:
    """What ``work`` gives, for a thread, on which ``on_text`` is called; what that raises ends it.

    Raises :class:`~sagents_nb.errors.Busy` on the runtime thread, as ``what`` would wait for
    itself there; ``instead`` says what to do.
    """
    runtime.refuse_here(what, instead)
    call = _Call(work)
    try:
        with blocking():
            if on_text is not None:
                for event in call.pieces.blocking(main_thread.wait):
                    on_text(text_of(event))
            return main_thread.wait(call.future)
    except BaseException:
        call.cancel()
        raise


async def awaited(work: Work[T], on_text: OnText | None = None) -> T:
    """What ``work`` gives, on any loop, where ``on_text`` is called and may be async.

    To cancel it, or to raise in ``on_text``, ends the work.
    """
    call = _Call(work)
    try:
        if on_text is not None:
            async for event in call.pieces:
                said = on_text(text_of(event))
                if inspect.isawaitable(said):
                    await said
        return await asyncio.wrap_future(call.future)
    except BaseException:
        call.cancel()
        raise
