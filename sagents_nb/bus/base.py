"""What a bus is: subjects, messages, and who hears them."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from .. import kinds
from ..errors import ConfigurationError, pass_on
from ..runtime.caller import running_loop
from ..text import logger_of, said_by

logger = logger_of(__name__)

LONGEST = 65_536
"""How many messages wait for one who hears them; of more, the oldest are lost."""

_TURN = 256  # messages that are heard before others on the loop have a turn


class BusMessage(msgspec.Struct, frozen=True, gc=False):
    """What was published on ``subject``; ``reply`` is where an answer goes, "" for nowhere.

    >>> from sagents_nb.bus import BusMessage
    >>> BusMessage("tides.bergen", b'{"high": 6}').json()
    {'high': 6}
    """

    subject: str
    data: bytes = b""
    reply: str = ""

    @property
    def text(self) -> str:
        """The data as text; what is no UTF-8 is replaced."""
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        """The data as JSON; raises ValueError for what is none."""
        return msgspec.json.decode(self.data)


Handler = Callable[[BusMessage], Any]
HANDLER = kinds.or_none(kinds.Kind("a function of a message", callable), "for 'async for'")


class Bus(Protocol):
    """Where messages are published by subjects, and heard by whoever subscribed to these.

    A subject is names with dots between; to subscribe, "*" stands for one name and ">" at the end
    for one or more. Of subscriptions with the same ``queue`` one hears each message, of others
    all. Data is bytes, text, or anything that JSON can hold. All can be awaited on any loop.
    """

    async def publish(self, subject: str, data: Any = b"") -> None:
        """Have all who subscribed hear ``data``, each later; nobody is waited for."""

    async def subscribe(
        self, subject: str, handler: Handler | None = None, *, queue: str = ""
    ) -> Subscription:
        """Hear what is published from now on: by ``handler``, or by ``async for``.

        The handler, sync or async, is called on the loop that subscribed, with one message after
        the other. What it returns, unless that is None, answers a request; what it raises is
        logged.
        """

    async def request(self, subject: str, data: Any = b"", timeout: float = 5.0) -> BusMessage:
        """Publish, and wait up to ``timeout`` seconds for the first answer.

        Raises TimeoutError where none comes, at once where nobody listens.
        """

    async def close(self) -> None:
        """Let go of all subscriptions, and of the connection if there is one; twice is fine."""


Answer = Callable[[BusMessage, Any], Any]


class Subscription:
    """One who hears a ``subject``; ``queue`` is the name of those who share, or "".

    >>> import asyncio
    >>> from sagents_nb import LocalBus
    >>> async def main():
    ...     bus = LocalBus()
    ...     tides = await bus.subscribe("tides.*")
    ...     await bus.publish("tides.bergen", "high at 6")
    ...     async for message in tides:
    ...         return message.text
    >>> asyncio.run(main())
    'high at 6'
    """

    def __init__(
        self,
        subject: str,
        queue: str,
        handler: Handler | None,
        answer: Answer,
        leave: Callable[[Subscription], Any],
    ) -> None:
        self.subject = subject
        self.queue = queue
        self._handler = handler
        self._answer = answer
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[BusMessage] = deque(maxlen=LONGEST)
        self._woken: asyncio.Future[None] | None = None
        self._is_waking = False
        self._lost = 0
        self.closed = False
        self._task = None if handler is None else self._loop.create_task(self._hear(handler))

    def deliver(self, message: BusMessage) -> None:
        """Have it heard; from any thread, and without waiting."""
        if self.closed:
            return
        if len(self._waiting) == LONGEST:
            self._lost += 1
        self._waiting.append(message)
        if not self._is_waking:  # one wake-up for many: it costs more than a message
            self._is_waking = True
            self._wake_soon()

    def _wake_soon(self) -> None:
        if running_loop() is self._loop:
            self._wake()
            return
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop was closed: nobody hears
            self.closed = True

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def _next(self) -> BusMessage | None:
        while not self._waiting:
            if self.closed:
                return None
            self._is_waking = False
            if self._waiting or self.closed:  # which came from another thread just now
                continue
            self._woken = self._loop.create_future()
            await self._woken
        return self._waiting.popleft()

    async def _hear(self, handler: Handler) -> None:
        heard = 0
        while (message := await self._next()) is not None:
            try:
                said = handler(message)
                if inspect.isawaitable(said):
                    said = await said
                if said is not None and message.reply:
                    await self._answer(message, said)
            except BaseException as error:
                pass_on(error)
                logger.warning(
                    "What hears %r failed with a message on %r: %s",
                    *(self.subject, message.subject, said_by(error)),
                )
            if self._lost:
                self._tell_lost()
            heard += 1
            if heard % _TURN == 0:
                await asyncio.sleep(0)

    def _tell_lost(self) -> None:
        lost, self._lost = self._lost, 0
        logger.warning(
            "What hears %r missed %d messages, the oldest that waited; let it take less time.",
            *(self.subject, lost),
        )

    def __aiter__(self) -> Subscription:
        if self._handler is not None:
            raise ConfigurationError(
                f"The subscription to {self.subject!r} has a handler; subscribe without one for "
                "'async for'."
            )
        return self

    async def __anext__(self) -> BusMessage:
        message = await self._next()
        if message is None:
            raise StopAsyncIteration
        if self._lost:
            self._tell_lost()
        return message

    async def unsubscribe(self) -> None:
        """Hear nothing more, not what waits either; twice is fine."""
        if not self.closed:
            self.end()
            await self._leave(self)

    def end(self) -> None:
        """Let nothing more be heard; from any thread."""
        self.closed = True
        self._waiting.clear()
        self._wake_soon()

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"Subscription({self.subject!r})"


def as_data(data: Any) -> bytes:
    """``data`` as bytes; raises :class:`~sagents_nb.errors.ConfigurationError` for no JSON."""
    kind = type(data)
    if kind is bytes:
        return data  # type: ignore[no-any-return]
    if kind is str:
        return str.encode(data, "utf-8", "replace")
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    try:
        return msgspec.json.encode(data)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigurationError(
            f"A message is bytes, text, or what JSON can hold, and this is none ({error})."
        ) from None


_LONGEST_NAME = 1_000  # characters: a line of NATS has 4,096 bytes
# NATS forbids white space alone, and what it sends is lines.
_SUBJECT = re.compile(r"[^\s.*>\x00-\x1f\ud800-\udfff]+(?:\.[^\s.*>\x00-\x1f\ud800-\udfff]+)*")
_PATTERN = re.compile(
    r"(?:(?:\*|[^\s.*>\x00-\x1f\ud800-\udfff]+)\.)*(?:\*|>|[^\s.*>\x00-\x1f\ud800-\udfff]+)"
)
_QUEUE = re.compile(r"[^\s\x00-\x1f\ud800-\udfff]*")


def as_subject(subject: Any) -> str:
    """``subject`` as plain text; raises ConfigurationError for what nobody can publish on."""
    subject = kinds.plain(subject)
    if not isinstance(subject, str) or not _fits(_SUBJECT, subject):
        raise ConfigurationError(
            f"{kinds.shown(subject)} is no subject to publish on: names with dots between, such "
            "as 'tides.bergen', without spaces, '*' and '>'."
        )
    return subject


def check_pattern(pattern: str, queue: str) -> None:
    """Raise ConfigurationError for what nobody can subscribe to."""
    if not _fits(_PATTERN, pattern):
        raise ConfigurationError(
            f"{kinds.shown(pattern)} is no subject to hear: names with dots between, of which '*' "
            "may stand for one and '>' at the end for all that follow, such as 'tides.*'."
        )
    if not _fits(_QUEUE, queue):
        raise ConfigurationError(f"{kinds.shown(queue)} is no name of a queue: no spaces in it.")


def _fits(form: re.Pattern[str], name: str) -> bool:
    return len(name) <= _LONGEST_NAME and form.fullmatch(name) is not None


def matches(pattern: str, subject: str) -> bool:
    """Whether one who subscribed to ``pattern`` hears ``subject``.

    >>> matches("a.*", "a.b"), matches("a.*", "a.b.c"), matches("a.>", "a.b.c"), matches("a.>", "a")
    (True, False, True, False)
    """
    if pattern == subject:
        return True
    names, wanted = subject.split("."), pattern.split(".")
    for place, name in enumerate(wanted):
        if name == ">":
            return len(names) > place
        if place >= len(names) or name not in ("*", names[place]):
            return False
    return len(names) == len(wanted)


def no_answer(subject: str, timeout: float | None) -> TimeoutError:
    """The error of a request; without ``timeout`` nobody listens."""
    if timeout is None:
        return TimeoutError(f"Nobody listens to {subject!r}, so no answer comes; subscribe first.")
    return TimeoutError(f"No answer came to the request on {subject!r} within {timeout:g} s.")
