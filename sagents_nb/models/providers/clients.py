"""The SDKs' clients: imported when first needed, shared, and called at one place.

This is the typed edge: everything the SDKs give is Any here and nowhere else. Of the SDKs we
use authentication, transport, proxies, time-outs and errors, through the low-level ``post``
that their READMEs describe for undocumented endpoints (``cast_to=httpx2.Response``). Bodies
and events are ours: the typed path costs some 160 µs a delta and, in openai, 210 ms for a
request of 1,000 messages.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import math
import os
import threading
import traceback
import zlib
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from ...errors import ModelError
from ...redaction import Secrets, Unshown, redacted, secrets_of_call
from ...runtime.workers import workers
from ...text import digest
from . import Sdk


class Secret:
    """A key, or an address with a password, that no repr, traceback or dump shows."""

    __slots__ = ("value",)

    def __init__(self, value: str | None) -> None:
        # A key that was pasted with its line end would be an illegal header.
        self.value = (value or "").strip() or None

    def __repr__(self) -> str:
        return "Secret(…)" if self.value else "Secret(None)"

    def __reduce__(self) -> tuple[Any, ...]:
        return Secret, (None,)  # a pickled model looks its key up where it wakes


# A local server wants no key, but the SDKs want one.
_NO_KEY = "no-key-needed"

# By event loop, because a connection belongs to the loop that opened it.
_clients: dict[asyncio.AbstractEventLoop, dict[str, Any]] = {}
_lock = threading.Lock()


def preload(sdk: Sdk) -> None:
    """Import the SDK in a background thread, so that the first call does not wait for it.

    A missing package is not reported here but by the first call.
    """
    threading.Thread(
        target=_import_quietly, args=(sdk,), name=f"sagents-import-{sdk.package}", daemon=True
    ).start()


def _import_quietly(sdk: Sdk) -> None:
    try:
        importlib.import_module(sdk.package)
    except Exception:
        return


async def client(sdk: Sdk, key: Secret, base_url: Secret) -> Any:
    """The shared client for this SDK, key and address, made on first use.

    Raises :class:`~sagents_nb.errors.ModelError` of kind "missing_package" or "missing_key".
    """
    environment = [os.environ.get(name, "") for name in sdk.variables]
    identity = repr((sdk.package, key.value, base_url.value, environment))
    fingerprint = digest(identity)
    del identity, environment
    loop = asyncio.get_running_loop()
    with _lock:
        shared = _clients.get(loop, {}).get(fingerprint)
    if shared is not None:
        return shared
    # In a thread: the import takes up to a second, and other sessions share this loop.
    new = await workers.run(_make, sdk, key, base_url)
    with _lock:
        for closed in [other for other in _clients if other.is_closed()]:
            del _clients[closed]
        return _clients.setdefault(loop, {}).setdefault(fingerprint, new)


def _make(sdk: Sdk, key: Secret, base_url: Secret) -> Any:
    missing = False
    try:
        module = importlib.import_module(sdk.package)
    except ImportError as error:
        missing, reason = True, str(error)
    if missing:  # outside of the except block: an error of ours carries no other error
        raise ModelError(
            f"The package {sdk.package!r} is needed to talk to {sdk.label} ({reason}); install it "
            f"with: pip install 'sagents-nb[{sdk.package}]'.",
            kind="missing_package",
        )
    url = base_url if base_url.value else Secret(os.environ.get(sdk.url_variable))
    secret = key if key.value else Secret(os.environ.get(sdk.key_variable))
    try:
        client = _build(sdk, module, secret, url)
    except Exception as error:
        secrets = Secrets({secret.value or "", *secrets_of_call(url.value, {})})
        client, reason = None, redacted(str(error), secrets)
        failed = type(error).__name__
    else:
        failed = ""
    if failed:
        raise ModelError(
            f"The client for {sdk.label} could not be made ({failed}: {reason}); check base_url "
            "and the proxy settings.",
            kind="invalid_request",
        )
    if client is None:
        raise _missing_key(sdk)
    _mask_logs(sdk)
    return client


def _build(sdk: Sdk, module: Any, key: Secret, url: Secret) -> Any:
    """The SDK's client, or None if nobody has given a key and the official API wants one."""

    def make(api_key: str | None) -> Any:
        http = module.DefaultAsyncHttpxClient(event_hooks={"response": [_cut_error]})
        return getattr(module, sdk.client)(
            base_url=url.value, max_retries=0, api_key=api_key, http_client=http
        )

    if key.value or sdk.own_credentials:
        client = make(key.value)
        if key.value or any(getattr(client, name) is not None for name in sdk.own_credentials):
            return client
    return make(_NO_KEY) if url.value else None


def _missing_key(sdk: Sdk) -> ModelError:
    return ModelError(
        f"There is no key for {sdk.label}: set {sdk.key_variable} or pass api_key=…; or use "
        "model='demo', which needs none.",
        kind="missing_key",
    )


REDIRECTS = 3
"""How often one call follows a redirect."""


_of_call: ContextVar[Secrets] = ContextVar("secrets of the call that is under way")


class _Masking(logging.Filter):
    """Takes the secrets of a call out of what is logged on the way: whole addresses, say."""

    def filter(self, record: logging.LogRecord) -> bool:
        secrets = _of_call.get(None)
        if secrets is not None:
            record.msg, record.args = redacted(record.getMessage(), secrets), None
            if record.exc_info:  # an error quotes what a server sent; the text is shown as it was
                told = "".join(traceback.format_exception(record.exc_info[1]))
                record.exc_text, record.exc_info = redacted(told, secrets).rstrip(), None
        return True


_masking = _Masking()


def _mask_logs(sdk: Sdk) -> None:
    """Of the SDK, which is imported, and of its HTTP client."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in (sdk.package, "httpx2", "httpcore2"):
            logging.getLogger(name).addFilter(_masking)


async def post(
    client: Any, path: str, body: bytes, options: dict[str, Any], secrets: Secrets
) -> Any:
    """POST ``body`` and give the open ``httpx2.Response``, or raise the SDK's error.

    What is logged meanwhile has none of the ``secrets``.

    A redirect is followed to the same origin only: another one would be sent the conversation
    and the keys of gateways, and its answer believed.
    """
    httpx2 = importlib.import_module("httpx2")
    options = Unshown(options, follow_redirects=False)
    left = REDIRECTS
    _of_call.set(secrets)  # of this task, and of the next call once there is one
    while True:
        try:
            return await client.post(
                path, content=body, cast_to=httpx2.Response, stream=True, options=options
            )
        except Exception as error:
            elsewhere = _moved(error) if left else None
            if elsewhere is None:
                raise
            path, left = elsewhere, left - 1


_PIECE = 64 * 1024


def pieces(body: AsyncGenerator[bytes, None], headers: Any) -> AsyncGenerator[bytes, None]:
    """The body of an answer, in pieces that hold nobody up: a kilobyte may unpack to a megabyte.

    No packing is asked for; what comes packed all the same is unpacked if zlib can.
    """
    packed = headers.get("content-encoding", "").strip().lower()
    return body if packed in ("", "identity") else _unpacked(body, packed)


async def _unpacked(body: AsyncIterable[bytes], packed: str) -> AsyncGenerator[bytes, None]:
    if packed not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"it came packed as {packed[:40]!r}, for which nobody asked")
    unpacked = zlib.decompressobj(zlib.MAX_WBITS | 32)  # of gzip or zlib, as its head says
    async for chunk in body:
        yield unpacked.decompress(chunk, _PIECE)
        while unpacked.unconsumed_tail:
            await asyncio.sleep(0)
            yield unpacked.decompress(unpacked.unconsumed_tail, _PIECE)
    yield unpacked.flush()


MOST_OF_ERROR = 64 * 1024
"""Bytes of the body of an error that are looked at,"""
LONGEST_ERROR = 5.0
"""and the seconds that they may take to come."""


async def _cut_error(response: Any) -> None:
    """Leave of the body of an error what is looked at; it may have no end, or unpack to gigabytes.

    The SDKs read all of it, and unpack it at one stroke.
    """
    if response.is_success:
        return
    whole, body = response.stream, bytearray()
    with suppress(Exception):  # what has come until then tells more than how it ended
        async with asyncio.timeout(LONGEST_ERROR):
            async for piece in pieces(aiter(whole), response.headers):
                body += piece
                if len(body) >= MOST_OF_ERROR:
                    break
    await whole.aclose()
    response.headers.pop("content-encoding", None)
    response.stream = importlib.import_module("httpx2").ByteStream(bytes(body[:MOST_OF_ERROR]))


def take_reading_time(client: Any, options: dict[str, Any], longest: float) -> float:
    """The seconds that are waited for an answer to begin and to go on; no more than ``longest``.

    They are taken out of the request ``options``, whose other limits stay: to the HTTP client
    they are for the next byte, and so a server that sends one now and then is never late.
    Raises :class:`~sagents_nb.errors.ModelError` for a ``timeout`` that is none.
    """
    httpx2 = importlib.import_module("httpx2")
    limits = options.get("timeout", client.timeout)
    if not isinstance(limits, httpx2.Timeout):
        if limits is not None and not (type(limits) in (int, float) and 0 < limits < math.inf):
            raise ModelError(
                f"timeout is a number of seconds above 0, not {limits!r}; leave it out for the "
                "SDK's own.",
                kind="invalid_request",
            )
        limits = httpx2.Timeout(limits)
    others = {name: getattr(limits, name) for name in ("connect", "write", "pool")}
    options["timeout"] = httpx2.Timeout(read=None, **others)
    return longest if limits.read is None else min(float(limits.read), longest)


def _moved(error: Exception) -> str | None:
    """Where to ask instead, if the answer says so and it is of the same origin."""
    response: Any = getattr(error, "response", None)
    if getattr(response, "status_code", None) not in (307, 308):  # others ask without the body
        return None
    asked = response.request.url
    try:
        target = asked.join(response.headers.get("location", ""))
    except Exception:  # no address
        return None
    same = (target.scheme, target.host, target.port) == (asked.scheme, asked.host, asked.port)
    return str(target) if same else None


async def close_clients() -> None:
    """Close the running loop's connections; the next call opens new ones."""
    with _lock:
        mine = _clients.pop(asyncio.get_running_loop(), {})
    for each in mine.values():
        await each.close()
