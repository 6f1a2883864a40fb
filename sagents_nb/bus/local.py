"""A bus within one process: for its sessions, agents and threads, and for tests."""

from __future__ import annotations

import asyncio
import threading
from itertools import count
from typing import Any

from .. import kinds
from ..errors import NotRunning
from .base import (
    HANDLER,
    BusMessage,
    Handler,
    Subscription,
    as_data,
    as_subject,
    check_pattern,
    matches,
    no_answer,
)

_MOST_KNOWN = 10_000  # subjects of which it is remembered who hears them

# Those who hear a subject all, and the groups of which one does, with whose turn it is.
_Hearers = tuple[
    tuple[Subscription, ...], tuple[tuple[tuple[Subscription, ...], "count[int]"], ...]
]


class LocalBus:
    """A :class:`~sagents_nb.bus.Bus` within this process, between any threads and loops.

    Nothing is kept: who subscribes later hears nothing of what was published before.

    >>> import asyncio
    >>> from sagents_nb import LocalBus
    >>> async def main():
    ...     bus = LocalBus()
    ...     await bus.subscribe("tides.*", lambda message: "high at 6")
    ...     return (await bus.request("tides.bergen")).text
    >>> asyncio.run(main())
    'high at 6'
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: list[Subscription] = []
        self._known: dict[str, _Hearers] = {}
        self._numbers = count(1)
        self._inboxes: dict[str, Subscription] = {}  # of requests: each has one who hears it
        self.closed = False

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"LocalBus({len(self._subscriptions)} subscriptions)"

    async def publish(self, subject: str, data: Any = b"") -> None:
        """Have all who subscribed hear ``data``, each later; nobody is waited for.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no ``subject`` or no
        data, and :class:`~sagents_nb.errors.NotRunning` once the bus is closed.

        >>> import asyncio
        >>> from sagents_nb import LocalBus
        >>> asyncio.run(LocalBus().publish("tides.bergen", {"high": 6}))
        """
        if type(subject) is not str:
            subject = as_subject(subject)
        self._publish(BusMessage(subject, as_data(data)))

    def _publish(self, message: BusMessage) -> bool:
        if (inbox := self._inboxes.get(message.subject)) is not None:
            inbox.deliver(message)
            return True
        all_of, groups = self._known.get(message.subject) or self._hearers(message.subject)
        for subscription in all_of:
            subscription.deliver(message)
        for members, turn in groups:
            members[next(turn) % len(members)].deliver(message)
        return bool(all_of or groups)

    def _hearers(self, subject: str) -> _Hearers:
        as_subject(subject)
        with self._lock:
            if self.closed:
                raise _closed()
            self._subscriptions = [s for s in self._subscriptions if not s.closed]
            hear = [s for s in self._subscriptions if matches(s.subject, subject)]
            groups: dict[str, list[Subscription]] = {}
            for subscription in hear:
                if subscription.queue:
                    groups.setdefault(subscription.queue, []).append(subscription)
            alone = tuple(s for s in hear if not s.queue)
            found = alone, tuple((tuple(members), count()) for members in groups.values())
            if len(self._known) >= _MOST_KNOWN:
                self._known = {}
            self._known[subject] = found
            return found

    @kinds.checked(handler=HANDLER)
    async def subscribe(
        self, subject: str, handler: Handler | None = None, *, queue: str = ""
    ) -> Subscription:
        """Hear what is published on ``subject`` from now on: by ``handler``, or ``async for``.

        Of those of the same ``queue`` one hears each message, in turn. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for what is no subject to hear, and
        :class:`~sagents_nb.errors.NotRunning` once the bus is closed.

        >>> import asyncio
        >>> from sagents_nb import LocalBus
        >>> asyncio.run(LocalBus().subscribe("tides.>", print))
        Subscription('tides.>')
        """
        check_pattern(subject, queue)
        subscription = Subscription(subject, queue, handler, self._answer, self._leave)
        with self._lock:
            if self.closed:
                subscription.end()
                raise _closed()
            self._subscriptions.append(subscription)
            self._known = {}
        return subscription

    async def _answer(self, message: BusMessage, data: Any) -> None:
        self._publish(BusMessage(message.reply, as_data(data)))

    async def _leave(self, subscription: Subscription) -> None:
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)
            self._known = {}

    @kinds.checked(
        subject=kinds.ANYTHING, data=kinds.ANYTHING, timeout=kinds.number(0, "seconds", over=True)
    )
    async def request(self, subject: str, data: Any = b"", timeout: float = 5.0) -> BusMessage:
        """Publish ``data`` on ``subject``, and wait up to ``timeout`` seconds for an answer.

        Raises TimeoutError where none comes, at once where nobody listens, and what
        :meth:`publish` raises.

        >>> import asyncio
        >>> from sagents_nb import LocalBus
        >>> asyncio.run(LocalBus().request("tides.bergen"))
        Traceback (most recent call last):
            ...
        TimeoutError: Nobody listens to 'tides.bergen', so no answer comes; subscribe first.
        """
        subject = as_subject(subject)
        inbox = f"_INBOX.{next(self._numbers)}"
        answers = self._inboxes[inbox] = Subscription(inbox, "", None, self._answer, self._leave)
        try:
            if not self._publish(BusMessage(subject, as_data(data), inbox)):
                raise no_answer(subject, None)
            try:
                async with asyncio.timeout(timeout):
                    return await anext(answers)
            except TimeoutError:
                raise no_answer(subject, timeout) from None
        except StopAsyncIteration:
            raise _closed() from None
        finally:
            del self._inboxes[inbox]
            answers.end()

    async def close(self) -> None:
        """Let go of all subscriptions; twice is fine.

        >>> import asyncio
        >>> from sagents_nb import LocalBus
        >>> asyncio.run(LocalBus().close())
        """
        with self._lock:
            self.closed = True
            gone, self._subscriptions, self._known = self._subscriptions, [], {}
        for subscription in gone:
            subscription.end()


def _closed() -> NotRunning:
    return NotRunning("The bus was closed; make another one.")
