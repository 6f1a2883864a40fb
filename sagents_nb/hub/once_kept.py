"""Telling in order, and nothing before it is kept: for clients that hear of a session directly."""

from __future__ import annotations

from collections.abc import Callable

from ..session import Session


class OnceKept:
    """Tells what happens in ``session``, in its order, once all that happened before is safe.

    So nobody hears of the result of a call that the next process, after a crash, would have to ask
    about. On the runtime loop only; at once where nothing is to be written.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._due: list[Callable[[], object]] = []
        self._busy = False

    def tell(self, tell: Callable[[], object]) -> None:
        """Have ``tell`` called then, also if it cannot be written: who hears it knows the error."""
        self._due.append(tell)
        if not self._busy:
            self._busy = True
            self._next()

    def _next(self) -> None:
        due, self._due = self._due, []

        def kept(error: BaseException | None) -> None:
            for tell in due:
                tell()
            if self._due:
                self._next()
            else:
                self._busy = False

        self._session.when_kept(kept)
