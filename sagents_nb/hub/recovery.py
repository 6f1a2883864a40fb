"""After an end of the process: what it cut off is gone on with, and not for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..errors import Owned, SagentsError
from ..store.database.thread import Database
from ..text import logger_of
from . import agencies
from .agencies import Agency
from .open_threads import OpenThreads
from .operations import line
from .threads import Thread

logger = logger_of(__name__)

MOST_ATTEMPTS = 3
"""How often a run is gone on with after an end of the process, without getting to an end itself."""


class Recovery:
    """Goes on with what was cut off among ``threads``, each in a turn of its own.

    ``stopped`` is told of those that do nothing then, as if they had stopped just now.
    """

    def __init__(
        self,
        database: Database,
        threads: OpenThreads,
        stopped: Callable[[Agency, Thread], None],
    ) -> None:
        self._database = database
        self._threads = threads
        self._stopped = stopped
        self._begun = False

    def recover(self, all: Iterable[Agency]) -> int:
        """Go on with what was cut off in these agencies; how many runs."""
        count = 0
        self._begun = True
        for agency in all:
            for id in self._database.query(agencies.cut_off, agency):
                try:
                    thread = self._threads.get(agency, id)
                    if not thread.went_on:  # of what a crash cut off nothing may have been told
                        self._go_on(agency, thread)
                    count += thread.went_on
                    self._stopped(agency, thread)
                except Owned:
                    continue  # it is at work elsewhere
                except SagentsError as error:
                    logger.warning("Thread %s could not be gone on with: %s", id, error)
        line("hub.recovered", runs=count)
        return count

    def opened(self, agency: Agency, thread: Thread) -> None:
        """Go on with a thread that was opened, if its process ended while it was at work."""
        if self._begun and thread.was_cut_off:
            self._go_on(agency, thread)
            self._stopped(agency, thread)

    def _go_on(self, agency: Agency, thread: Thread) -> None:
        attempts = thread.record.attempts
        if attempts < MOST_ATTEMPTS:
            self._threads.keep(agency, thread, attempts=attempts + 1)
            thread.go_on()

    def got_on(self, agency: Agency, thread: Thread) -> None:
        """A run got to an end by itself: what happens to the next is counted anew."""
        self._threads.keep(agency, thread, attempts=0)
