"""How much one hub takes at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import msgspec

from ..errors import SagentsError
from .agencies import Agency

MOST_PATIENCE = 5.0
"""Seconds that a beginning waits for others of its agency that may come to wait for people."""


class TooMany(SagentsError):
    """A limit of the hub is reached."""


class Limits(msgspec.Struct, frozen=True):
    """How much one hub takes at once.

    ``runs`` may be active, and of one agency ``approvals`` threads wait for people before a further
    run is refused. ``sockets`` may be open, of one agency ``sockets_of_agency``; a body or a
    message of a socket has ``body_bytes``.
    """

    runs: int = 32
    approvals: int = 8
    sockets: int = 1_024
    sockets_of_agency: int = 64
    body_bytes: int = 1_048_576


class Beginning:
    """A run that is about to begin: of ``thread_id``, once that is known."""

    def __init__(self, agency: Agency, thread_id: str = "") -> None:
        self.agency_id = agency.id
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
        self._changed = threading.Condition()

    @contextmanager
    def take(
        self, agency: Agency, limits: Limits | None, thread_id: str = "", *, kept: bool = True
    ) -> Iterator[Beginning]:
        """Room for one run of the ``agency`` until it has begun, or has not.

        Raises :class:`TooMany` where the ``limits`` leave none; None leaves room for any, of which
        others are told all the same. What is not ``kept`` waits for nobody.
        """
        beginning = Beginning(agency, thread_id)
        with self._changed:
            if limits is not None:
                if kept:
                    self._check_waiting(agency, limits)
                self._check_runs(limits, thread_id)
            self._beginnings.append(beginning)
        try:
            yield beginning
        finally:
            with self._changed:
                self._beginnings.remove(beginning)
                self._changed.notify_all()

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
        # Others that are about to begin may wait for people in a moment, or may not.
        waiting = 0

        def is_settled() -> bool:
            nonlocal waiting
            waiting = len(self._waiting(agency))
            others = sum(each.agency_id == agency.id for each in self._beginnings)
            return waiting >= limits.approvals or waiting + others < limits.approvals

        is_known = self._changed.wait_for(is_settled, MOST_PATIENCE)
        if waiting >= limits.approvals:
            raise TooMany(
                f"{waiting} threads of this agency wait for people, as many as it may have; answer "
                "or cancel one, then try again."
            )
        if not is_known:
            raise TooMany(
                "Several runs of this agency are about to begin, and each may come to wait for "
                "people; try again in a moment."
            )
