"""The same bus between machines: a NATS server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

from .. import kinds
from ..errors import ConfigurationError, NotRunning
from ..redaction import Secrets, redacted, secrets_of_call
from ..runtime.thread import runtime
from ..text import said_by
from .base import (
    HANDLER,
    BusMessage,
    Handler,
    Subscription,
    as_data,
    as_subject,
    check_pattern,
    no_answer,
)

T = TypeVar("T")

LONGEST_WAIT = 10.0
"""Seconds for a connection, and for the server to have taken a subscription."""


class NatsBus:
    """A :class:`~sagents_nb.bus.Bus` over the NATS server at ``url``, for all who are connected.

    It is connected when it is first used, and again by itself when the connection breaks. A name
    and password may stand in the address, which no repr and no error shows; ``tls://`` is
    encrypted. Needs ``pip install 'sagents-nb[nats]'``, else
    :class:`~sagents_nb.errors.ConfigurationError` is raised. A server that cannot be reached raises
    ConnectionError.

    >>> from sagents_nb import NatsBus
    >>> NatsBus("nats://me:secret@127.0.0.1:4222")
    NatsBus('127.0.0.1:4222')
    """

    @kinds.checked
    def __init__(self, url: str = "nats://127.0.0.1:4222") -> None:
        try:
            self.address = urlsplit(url).netloc.rpartition("@")[2]
        except ValueError:
            self.address = ""
        if not self.address:
            raise ConfigurationError(
                "The address of a NATS server is one such as 'nats://127.0.0.1:4222'."
            )
        self._url = url
        self._secrets = Secrets(secrets_of_call(url, {}))
        self._connecting: asyncio.Lock | None = None
        self._client: Any = None
        self._heard: dict[Subscription, Any] = {}  # by ours, the client's
        self.closed = False

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"NatsBus({self.address!r})"

    async def client(self) -> Any:
        """The connected client of nats-py; to be used on the runtime's loop, where this is called.

        Raises what the class says, and :class:`~sagents_nb.errors.NotRunning` once it is closed.
        """
        if self.closed:
            raise NotRunning("The bus was closed; make another one.")
        if self._client is None:
            self._connecting = self._connecting or asyncio.Lock()
            async with self._connecting:
                if self._client is None:
                    self._client = await self._connected()
        return self._client

    async def _connected(self) -> Any:
        try:
            import nats
        except ImportError:
            raise ConfigurationError(
                "NatsBus needs nats-py; pip install 'sagents-nb[nats]'."
            ) from None

        client: Any = None

        async def told(error: Exception) -> None:
            """What goes wrong later is told to whoever asks for something then."""
            if client is None:
                raise error  # nats-py would try again and again

        reason = ""
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                client = await nats.connect(
                    self._url, allow_reconnect=False, max_reconnect_attempts=-1, error_cb=told
                )
            # Now that it was there, it may come back.
            client.options["allow_reconnect"] = True
        except Exception as error:
            reason = redacted(said_by(error), self._secrets)
        else:
            return client
        raise ConnectionError(
            f"NATS at {self.address} could not be reached ({reason}); check the address, and that "
            "nats-server runs there."
        )

    async def publish(self, subject: str, data: Any = b"") -> None:
        """Have all who subscribed hear ``data``, each later; nobody is waited for.

        While the connection is broken, some of it waits. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for what is no ``subject`` or no data, or too
        much for the server; ConnectionError; and :class:`~sagents_nb.errors.NotRunning` once the
        bus is closed.
        """
        subject = as_subject(subject)
        await on_runtime(self._publish(subject, as_data(data)))

    async def _publish(self, subject: str, data: bytes) -> None:
        client = await self.client()
        try:
            await client.publish(subject, data)
        except Exception as error:
            failure = self._failed(error, data)
        else:
            return
        raise failure

    @kinds.checked(handler=HANDLER)
    async def subscribe(
        self, subject: str, handler: Handler | None = None, *, queue: str = ""
    ) -> Subscription:
        """Hear what is published on ``subject`` from now on: by ``handler``, or ``async for``.

        Of those of the same ``queue``, on any machine, one hears each message. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for what is no subject to hear, and otherwise
        what :meth:`publish` does.
        """
        check_pattern(subject, queue)
        subscription = Subscription(subject, queue, handler, self._answer, self._leave)
        try:
            await on_runtime(self._subscribe(subscription))
        except BaseException:
            subscription.end()
            raise
        return subscription

    async def _subscribe(self, subscription: Subscription) -> None:
        async def heard(message: Any) -> None:
            subscription.deliver(BusMessage(message.subject, message.data, message.reply))

        client = await self.client()
        try:
            self._heard[subscription] = await client.subscribe(
                subscription.subject, queue=subscription.queue, cb=heard
            )
            await client.flush(LONGEST_WAIT)  # so that what is published from now on is heard
        except Exception as error:
            failure = self._failed(error)
        else:
            return
        raise failure

    async def _answer(self, message: BusMessage, data: Any) -> None:
        await on_runtime(self._publish(message.reply, as_data(data)))

    async def _leave(self, subscription: Subscription) -> None:
        await on_runtime(self._left(subscription))

    async def _left(self, subscription: Subscription) -> None:
        heard = self._heard.pop(subscription, None)
        if heard is not None:
            with suppress(Exception):  # the connection is gone, and it with it
                await heard.unsubscribe()

    @kinds.checked(
        subject=kinds.ANYTHING, data=kinds.ANYTHING, timeout=kinds.number(0, "seconds", over=True)
    )
    async def request(self, subject: str, data: Any = b"", timeout: float = 5.0) -> BusMessage:
        """Publish ``data`` on ``subject``, and wait up to ``timeout`` seconds for an answer.

        Raises TimeoutError where none comes, at once where nobody listens, and what
        :meth:`publish` raises.
        """
        subject = as_subject(subject)
        return await on_runtime(self._request(subject, as_data(data), timeout))

    async def _request(self, subject: str, data: bytes, timeout: float) -> BusMessage:
        from nats.errors import NoRespondersError

        client = await self.client()
        try:
            answer = await client.request(subject, data, timeout=timeout)
        except NoRespondersError:
            failure: Exception = no_answer(subject, None)
        except TimeoutError:
            failure = no_answer(subject, timeout)
        except Exception as error:
            failure = self._failed(error, data)
        else:
            return BusMessage(answer.subject, answer.data, answer.reply)
        raise failure

    def _failed(self, error: Exception, data: bytes = b"") -> Exception:
        if type(error).__name__ == "MaxPayloadError":
            return ConfigurationError(
                f"A message of {len(data):,} bytes is more than NATS at {self.address} takes; put "
                "it into a BlobStore, and send its name."
            )
        reason = redacted(said_by(error), self._secrets)
        return ConnectionError(f"NATS at {self.address} failed ({reason}); see that it runs.")

    async def close(self) -> None:
        """Let go of all subscriptions and of the connection; twice is fine."""
        self.closed = True
        await on_runtime(self._close())

    async def _close(self) -> None:
        gone, self._heard = self._heard, {}
        for subscription in gone:
            subscription.end()
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # what is lost with a broken connection
                await client.flush(LONGEST_WAIT)
            with suppress(Exception):
                await client.close()


async def on_runtime(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` gives on the runtime's loop, to which connections belong; from any loop."""
    if runtime.here():
        return await work
    return await asyncio.wrap_future(runtime.submit(work))
