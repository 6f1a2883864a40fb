"""What happens in a session is safe before it is told."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from ..events import Emitter, StatusChanged
from ..loop.loop import Loop
from ..state import State
from .journal import Recorder

T = TypeVar("T")


class Writing:
    """When what a session does is safe. Everything here runs on the runtime loop."""

    recorder: Recorder | None  # None without a store: then all is safe at once
    status: str
    error: str | None
    _state: State
    _loop: Loop | None  # of the active run
    _emitter: Emitter
    _acting: list[tuple[Callable[[], Any], Callable[..., Any]]] | None = None

    def flush(self) -> Future[None] | None:
        """Write what changed; None if all is safe. The future raises StoreError."""
        if self.recorder is None:
            return None
        if self._loop is None:  # else the run notes its own changes
            self.recorder.note(self._state)
        return self.recorder.flush()

    def once_safe(
        self, do: Callable[[], Any], undo: Callable[[BaseException], Any] = lambda error: None
    ) -> None:
        """Call ``do`` once all that happened so far is safe, or ``undo`` if it cannot be written.

        Without a store all is safe at once.
        """
        if self.recorder is not None and self._acting is not None:
            self._acting.append((do, undo))
            return
        self._after(self.flush(), do, undo)

    def _after(
        self, future: Future[None] | None, do: Callable[[], Any], undo: Callable[..., Any]
    ) -> None:
        if future is None:
            do()
            return

        def ended(future: Future[None]) -> None:
            error = future.exception()
            do() if error is None else undo(error)

        future.add_done_callback(ended)

    def acted(
        self, function: Callable[..., T], args: tuple[Any, ...]
    ) -> tuple[T, Future[None] | None]:
        """What a public method returns, and a future for its being safe and told, or None.

        All that it changes is written together.
        """
        acting: list[tuple[Callable[[], Any], Callable[..., Any]]] = []
        self._acting = acting
        try:
            value = function(*args)
        finally:
            self._acting = None
            future = self.flush()
            for do, undo in acting:
                self._after(future, do, undo)
        if future is None:
            return value, None
        told: Future[None] = Future()  # who waits for it comes after those who are told of it

        def tell() -> None:
            told.set_result(None)

        def fail(error: BaseException) -> None:
            self._not_safe(error)
            told.set_exception(error)

        self._after(future, tell, fail)
        return value, told

    def _not_safe(self, error: BaseException) -> None:
        """What was done while nothing runs could not be written: it is, before anything else."""
        if self._loop is None and self.status not in ("closed", "interrupted"):
            self.error = str(error)
            self.status, previous = "error", self.status
            self._emitter.emit(StatusChanged, status="error", previous=previous, reason=self.error)
