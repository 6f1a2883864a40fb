"""How much one hub takes at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import msgspec

from ..errors import SagentsError
from .agencies import Agency


class TooMany(SagentsError):
    """A limit of the hub is reached."""


class Limits(msgspec.Struct, frozen=True):
    """How much one hub takes at once.

    ``runs`` may be active, and of one agency ``approvals`` threads wait for people before a further
    run is refused; those that run already may come to wait, too. ``sockets`` may be open, of one
    agency ``sockets_of_agency``; a body or a message of a socket has ``body_bytes``.
    """

    runs: int = 32
    approvals: int = 8
    sockets: int = 1_024
    sockets_of_agency: int = 64
    body_bytes: int = 1_048_576


class Beginning:
    """A run that is about to begin: of ``thread_id``, once that is known."""

    def __init__(self, thread_id: str = "") -> None:
        self.thread_id = thread_id


class Room:
    """Room for runs: those that are about to begin take it as those do that have begun.

    ``active`` gives the ids of what runs, and ``waiting`` of the threads of an agency that wait for
    people. For no event loop.
    """

    def __init__(
        self,
        active: Callable[[], Collection[str]],
        waiting: Callable[[Agency], Collection[str]],
    ) -> None:
        self._active = active
        self._waiting = waiting
        self._beginnings: list[Beginning] = []
        self._lock = threading.Lock()

    @contextmanager
    def take(
        self, agency: Agency, limits: Limits | None, thread_id: str = "", *, kept: bool = True
    ) -> Iterator[Beginning]:
        """Room for one run of the ``agency`` until it has begun, or has not.

        Raises :class:`TooMany` where the ``limits`` leave none; None leaves room for any, which
        counts all the same. Of what is not ``kept`` people are asked nothing.
        """
        beginning = Beginning(thread_id)
        if limits is not None and kept:
            self._check_waiting(agency, limits)
        with self._lock:
            if limits is not None:
                self._check_runs(limits, thread_id)
            self._beginnings.append(beginning)
        try:
            yield beginning
        finally:
            with self._lock:
                self._beginnings.remove(beginning)

    def check(self, agency: Agency, limits: Limits) -> None:
        """Raise :class:`TooMany` where no run of the ``agency`` may begin now."""
        with self.take(agency, limits):
            pass

    def _check_runs(self, limits: Limits, thread_id: str) -> None:
        # One that has begun a moment ago is no second one.
        known = {each.thread_id for each in self._beginnings if each.thread_id}
        nameless = sum(not each.thread_id for each in self._beginnings)
        if len({*self._active(), *known} - {thread_id}) + nameless >= limits.runs:
            raise TooMany(
                f"{limits.runs} runs are active, as many as this hub takes; try again when one has "
                "ended."
            )

    def _check_waiting(self, agency: Agency, limits: Limits) -> None:
        waiting = len(self._waiting(agency))
        if waiting >= limits.approvals:
            raise TooMany(
                f"{waiting} threads of this agency wait for people, and none begins beside "
                f"{limits.approvals}; answer or cancel one, then try again."
            )
