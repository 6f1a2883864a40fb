"""Telling subscribers what happened, in the order in which it happened."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import pass_on
from ..events import Event, FileUpdated
from ..text import logger_of
from .entry import FileEntry

log = logger_of(__name__)

Subscriber = Callable[[Event], Any]


def updated(entry: FileEntry) -> FileUpdated:
    """The event that tells of a new or changed entry."""
    return FileUpdated(path=entry.path, entry=entry.describe())


class Notices:
    """Events on their way to subscribers.

    Whoever changes something queues its event while it still holds the ``lock`` of what it
    changes, so the queue has the order of the changes, and delivers after letting go of it.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._waiting: deque[Event] = deque()
        self._subscribers: dict[int, Subscriber] = {}
        self._count = 0
        self._delivering = False

    def queue(self, events: Iterable[Event]) -> None:
        """Add events, which are made only if somebody listens; the caller holds the lock."""
        if self._subscribers:
            self._waiting.extend(events)

    def add(self, callback: Subscriber) -> Callable[[], None]:
        """Add a subscriber; the caller holds the lock. Gives the way to remove it."""
        self._count += 1
        key = self._count
        self._subscribers[key] = callback

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers.pop(key, None)

        return unsubscribe

    def clear(self) -> None:
        """Forget all subscribers; the caller holds the lock."""
        self._subscribers.clear()

    def deliver(self) -> None:
        """Hand the waiting events on; the caller does not hold the lock.

        One thread delivers at a time and takes what others add meanwhile: two would mix up
        the order. What a subscriber raises is logged and the others are still called.
        """
        if not self._waiting:  # what this thread has queued, another has taken
            return
        with self._lock:
            if self._delivering:
                return
            self._delivering = True
        try:
            while True:
                with self._lock:
                    if not self._waiting:
                        self._delivering = False
                        return
                    event = self._waiting.popleft()
                    subscribers = tuple(self._subscribers.values())
                for callback in subscribers:
                    try:
                        callback(event)
                    except BaseException as error:
                        pass_on(error)
                        log.exception("A subscriber failed on %s", event.type)
        except BaseException:  # KeyboardInterrupt: the next change delivers the rest
            self._delivering = False
            raise
