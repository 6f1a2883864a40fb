"""Who watches a session, and when it has been left alone long enough to rest."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from typing import Any

from ..runtime.thread import runtime


class Presence:
    """The viewers of one session and the time since somebody used it; on the runtime loop only.

    ``rest`` is called with the reason, "inactivity" or "no_viewers", once nobody needed the
    session for so many seconds; None is never. ``busy`` says of a reason that it is none now:
    while a run is active, say. Who is watched is not inactive. There is one timer at most.
    """

    def __init__(
        self,
        busy: Callable[[str], bool],
        rest: Callable[[str], Any],
        *,
        inactivity: float | None,
        presence: float | None,
    ) -> None:
        self.viewers: dict[str, float] = {}  # since when, in seconds since the epoch
        self.last_activity = time.time()
        self._busy = busy
        self._rest = rest
        self._inactivity = inactivity
        self._presence = presence
        self._used = self._left = time.monotonic()
        self._was_watched = False
        self._timer: asyncio.TimerHandle | None = None
        self._looks_at = 0.0
        self._joined: dict[str, object] = {}

    @property
    def inactivity(self) -> dict[str, Any]:
        """How long nobody has used it, and whether it will rest for that; in seconds."""
        return {
            "timeout": self._inactivity,
            "timer_active": self._timer is not None and not self._busy("inactivity"),
            "time_since_activity": time.monotonic() - self._used,
        }

    def start(self) -> None:
        """Begin to count; also again, after a rest."""
        self._was_watched = bool(self.viewers)
        self.touch()

    def touch(self) -> None:
        """Somebody used the session."""
        self.last_activity = time.time()
        self._used = time.monotonic()
        self._arm()

    def join(self, viewer: str) -> Callable[[], None]:
        """Somebody watches; the same id again takes the place of the first. Gives the way out."""
        token = self._joined[viewer] = object()
        self.viewers = {**self.viewers, viewer: time.time()}
        self._was_watched = True

        watched = weakref.ref(self)  # who watches a session does not keep it alive

        def leave() -> None:
            presence = watched()
            if presence is not None:
                presence._leave(viewer, token)

        return leave

    def _leave(self, viewer: str, token: object) -> None:
        if self._joined.get(viewer) is token:
            del self._joined[viewer]
            self.viewers = {id: at for id, at in self.viewers.items() if id != viewer}
            self._used = self._left = time.monotonic()
            self._arm()

    def stop(self) -> None:
        """Count no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> tuple[float, str] | None:
        """When it may rest, by the monotonic clock, and why."""
        moments = []
        if self._inactivity is not None:
            moments.append((self._used + self._inactivity, "inactivity"))
        if self._presence is not None and self._was_watched:
            moments.append((max(self._left, self._used) + self._presence, "no_viewers"))
        return min((m for m in moments if not self._busy(m[1])), default=None)

    def _arm(self) -> None:
        if (due := self._due()) is None:
            return
        if self._timer is not None:
            if self._looks_at <= due[0]:  # and goes on waiting then
                return
            self._timer.cancel()
        self._looks_at = due[0]
        wait = max(0.0, due[0] - time.monotonic())
        self._timer = runtime.loop.call_later(wait, _look, weakref.ref(self))

    def look(self) -> None:
        """Rest if it is time, else look again when it may be."""
        self._timer = None
        due = self._due()
        # The last viewer who leaves arms it again, and so does the end of a run.
        if due is None or self.viewers:
            return
        if time.monotonic() >= due[0]:
            self._rest(due[1])
        else:
            self._arm()


def _look(presence: weakref.ref[Presence]) -> None:
    # A timer keeps nothing alive: a session that nobody has any more needs no rest.
    alive = presence()
    if alive is not None:
        alive.look()
