"""What is asked, in one canonical form; the recording of its answer; and who may ask.

The canonical form of a request is all that decides its answer, and nothing else: two requests
with the same form have the same key. Left out are keys and other secrets, who asks
(``session_id``), and the metadata that no provider is sent. What a field is for is said here
for every field there is; a test fails when a struct gains one that this file does not know.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ... import kinds
from ...messages import Message, Part, ToolResult
from ...redaction import (
    SHORTEST,
    Secrets,
    is_secret,
    redacted_json,
    secrets_of_environment,
    without_login,
)
from ...serialization import escaped, to_data
from ..base import ChatModel, ModelRequest, asked_by
from ..providers import SDKS

# Every field of what a request is made of is named in one of these two.
KEYED = {
    "ModelRequest": {"messages", "system", "tools", "options", "model"},
    "Message": {"role", "parts", "stop_reason", "metadata"},
    "ToolSpec": {"name", "description", "schema", "defer_loading"},
    "TextPart": {"text"},
    "ThinkingPart": {"text", "signature", "provider", "raw"},
    "ImagePart": {"data", "mime_type", "url"},
    "FilePart": {"data", "mime_type", "name", "url"},
    "JsonPart": {"data"},
    "ProviderPart": {"provider", "data"},
    "ToolCall": {"id", "name", "arguments", "error"},
    "ToolResult": {"tool_call_id", "name", "content", "is_error", "is_interrupt"},
}
IGNORED = {
    "ModelRequest": {"api_key", "session_id"},
    "Message": {"usage", "error"},
    "ToolResult": {"metadata"},
}

_SENT_ROLES = frozenset({"system", "user", "assistant", "tool"})
# What providers read of a message's metadata: see sagents_nb.models.providers.history.extras.
_SENT_METADATA = ("provider", "extras")
# Options for the way there and back, which do not change what is answered.
_TRANSPORT = frozenset({"timeout"})


class Asked(NamedTuple):
    """A request in canonical form: its ``key`` (64 hex digits) and the form as JSON text.

    ``secrets`` are the keys in use, ``environment`` what else the process's environment holds of
    them; ``text`` holds none.
    """

    key: str
    text: bytes
    secrets: Secrets
    environment: Secrets = Secrets()


def asked(model: ChatModel, request: ModelRequest) -> Asked:
    """The canonical form of ``request`` to ``model``.

    >>> from sagents_nb import Message, ScriptedModel
    >>> one = asked(ScriptedModel([]), ModelRequest([Message.user("hi")]))
    >>> two = asked(ScriptedModel([]), ModelRequest([Message.user("ho")]))
    >>> len(one.key), one.key == two.key
    (64, False)
    """
    secrets = secrets_of(model, request)
    return _redacted(*_text(model, request), secrets, secrets_of_environment())


# Beginnings of long requests in which nothing was redacted: length, digest, hash of the secrets.
# A conversation asks with the same beginning each turn, and hashing is all that it costs then.
_clean: dict[tuple[int, bytes, int], None] = {}
_clean_lock = threading.Lock()
_MOST_CLEAN = 64
_LONG = 8_000  # bytes; what is shorter is looked through as quickly


def _redacted(text: bytes, end: int, secrets: Secrets, environment: Secrets) -> Asked:
    """``text``, whose messages stand before ``end``, without the secrets.

    No secret and nothing like a key reaches over the end of a message, where a quote stands that
    is none of a text's. So what comes after a clean beginning can be looked at alone.
    """
    digest, view, done, start, who = (
        hashlib.sha256(),
        memoryview(text),
        0,
        0,
        hash((secrets, environment)),
    )
    for length in sorted({n for n, _, whose in tuple(_clean) if n <= end and whose == who}):
        digest.update(view[done:length])
        done = length
        if (length, digest.digest(), who) in _clean:
            start = length
    rest = text[start:]
    redacted = redacted_json(rest, secrets, environment)
    if redacted != rest:
        text = text[:start] + redacted
        return Asked(hashlib.sha256(text).hexdigest(), text, secrets, environment)
    digest.update(view[done:end])
    if end >= _LONG:
        with _clean_lock:
            beginning = (end, digest.digest(), who)
            _clean.pop(beginning, None)
            _clean[beginning] = None
            if len(_clean) > _MOST_CLEAN:
                del _clean[next(iter(_clean))]
    digest.update(view[end:])
    return Asked(digest.hexdigest(), text, secrets, environment)


# Of the environment: where the SDKs look for keys.
_VARIABLES = tuple(name for sdk in SDKS for name in sdk.variables if is_secret(name))


def secrets_of(model: ChatModel, request: ModelRequest) -> Secrets:
    """The secrets that ``model``, ``request`` and the environment hold, the longest first."""
    secrets = {*_secrets(model, request), (request.api_key or "").strip()}
    secrets |= {os.environ.get(name, "").strip() for name in _VARIABLES}
    return Secrets(sorted((s for s in secrets if len(s) >= SHORTEST), key=len, reverse=True))


def _secrets(model: ChatModel, request: ModelRequest) -> Iterator[str]:
    yield from model.secrets(request.options)
    for inner in asked_by(model):
        yield from _secrets(inner, request)


def _form(model: ChatModel, request: ModelRequest) -> dict[str, Any]:
    identity = dict(model.identity())
    options = {**identity.pop("options", {}), **request.options}
    identity.update(_base_url(identity))
    if request.model and request.model != identity.get("name"):
        identity["asked_as"] = request.model
    return {
        "model": identity,
        "options": _options(options),
        "system": request.system,
        "tools": request.tools,
        "messages": [message_form(m) for m in request.messages if m.role in _SENT_ROLES],
    }


def message_form(message: Message) -> dict[str, Any]:
    """What of a message of the history is sent."""
    parts: Iterable[Part] = message.parts
    for part in parts:
        if isinstance(part, ToolResult) and part.metadata:
            parts = [_part(part) for part in parts]
            break
    form: dict[str, Any] = {"role": message.role, "parts": parts}
    if message.stop_reason in ("error", "aborted"):  # of these only the text is sent
        form["broken"] = True
    if message.metadata:
        for name in _SENT_METADATA:
            if name in message.metadata:
                form[name] = message.metadata[name]
    return form


def _part(part: Part) -> Part:
    return replace(part, metadata={}) if isinstance(part, ToolResult) and part.metadata else part


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """What changes the answer; None leaves an option out, as it does on the wire."""
    relevant: dict[str, Any] = {}
    for name, value in options.items():
        if value is None or name in _TRANSPORT or is_secret(name):
            continue
        if name in ("extra_headers", "extra_query") and isinstance(value, dict):
            value = {str(k).lower(): v for k, v in value.items() if not is_secret(str(k))}
            if not value:
                continue
        relevant[name] = value
    return relevant


def _base_url(identity: dict[str, Any]) -> dict[str, Any]:
    """Whom it talks to, without a name and password in the address."""
    url = identity.get("base_url")
    if not url:
        return {}
    return {"base_url": without_login(str(url)).rstrip("/")}


def _text(model: ChatModel, request: ModelRequest) -> tuple[bytes, int]:
    """The form as JSON, and where its messages end in it, which come first."""
    form = _form(model, request)
    try:
        text = msgspec.json.encode(form, order="sorted")
        rest = msgspec.json.encode({**form, "messages": ()}, order="sorted")
        return text, len(text) - len(rest) + len(_START)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(escaped(to_data(form)), order="sorted"), 0


# A request in its parts, which other requests share

_START = b'{"messages":['  # of every canonical form: its names are sorted


class _Messages(msgspec.Struct):
    messages: list[msgspec.Raw]


def parted(request: bytes | msgspec.Raw) -> tuple[list[bytes], bytes] | None:
    """Each message of a canonical form, and what follows them; None if it is no such text.

    >>> parted(b'{"messages":[{"role":"user"},7],"model":"m"}')
    ([b'{"role":"user"}', b'7'], b'],"model":"m"}')
    """
    text = bytes(request)
    try:
        messages = [bytes(message) for message in _messages.decode(text).messages]
    except (ValueError, RecursionError):  # edited by somebody
        return None
    start = _START + b",".join(messages)
    return (messages, text[len(start) :]) if text.startswith(start + b"]") else None


_messages = msgspec.json.Decoder(_Messages)


def prefixes(messages: Iterable[bytes]) -> list[str]:
    """A digest for each beginning of ``messages``, the shortest first."""
    return list(accumulate(messages, longer, initial=""))[1:]


def longer(before: str, message: bytes) -> str:
    """The digest of the messages with the digest ``before``, and then ``message``."""
    return hashlib.sha256(before.encode() + message).hexdigest()


def joined(end: str, rest: bytes, read: Callable[[str], tuple[str, list[bytes]]]) -> msgspec.Raw:
    """The request whose messages have the digest ``end``, "" if there are none.

    ``read`` gives the last of the messages with that digest, and the digest of those before.
    """
    found: list[bytes] = []
    while end:
        end, messages = read(end)
        found += reversed(messages)
    return msgspec.Raw(_START + b",".join(reversed(found)) + rest)


# Recordings


class Recording:
    """An answer with what it answers.

    ``request`` is the canonical form of the request as JSON, ``message`` the whole answer,
    ``shape`` the pieces in which it was streamed: see ``models/replay.py``. Recordings are
    equal that have the same ``key``, the digest of the request, and the same answer.
    """

    key: str
    request: msgspec.Raw
    message: Message
    shape: str
    _put_together: Callable[[], msgspec.Raw]

    def __init__(self, key: str, request: msgspec.Raw, message: Message, shape: str = "") -> None:
        self.key, self.request, self.message, self.shape = key, request, message, shape

    def __getattr__(self, name: str) -> Any:
        if name != "request" or "_put_together" not in vars(self):
            raise AttributeError(f"A Recording has no {name!r}.")
        self.request = self._put_together()
        return self.request

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Recording):
            return NotImplemented
        return (self.key, self.message, self.shape) == (other.key, other.message, other.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        return Recording, (self.key, self.request, self.message, self.shape)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"Recording({self.key!r}, {self.message!r})"


def stored_recording(
    key: str, request: Callable[[], msgspec.Raw], message: Message, shape: str
) -> Recording:
    """A recording whose request is put together when somebody looks at it.

    That raises LookupError where a part of it is gone.
    """
    recording = Recording.__new__(Recording)
    recording.key, recording.message, recording.shape = key, message, shape
    recording._put_together = request
    return recording


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored: ``sum`` is the SHA-256 of the JSON text of the recording."""

    sum: str
    recording: msgspec.Raw


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The recording of a row: its request, or the digests of the request's parts."""

    key: str
    message: Message
    shape: str = ""
    request: msgspec.Raw = msgspec.Raw(b"")
    messages: str = ""
    rest: str = ""


class _Shared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of messages that requests share: those with the digest ``before``, and then these."""

    before: str
    messages: list[msgspec.Raw]


_row = msgspec.json.Decoder(_Row)
_entry = msgspec.json.Decoder(_Entry)
_shared = msgspec.json.Decoder(_Shared)
MESSAGES, REST = "messages-", "rest-"  # before the digests of shared rows
_SHORT = 1_000  # bytes; more rows would take more than they share


def recording_of(asked: Asked, message: Message, shape: str) -> Recording:
    """The recording of ``message``, in which no secret is left.

    Raises TypeError or ValueError for a message that JSON cannot carry.
    """
    text = redacted_json(msgspec.json.encode(message), asked.secrets, asked.environment)
    return Recording(
        asked.key, msgspec.Raw(asked.text), msgspec.json.decode(text, type=Message), shape
    )


class Parts(NamedTuple):
    """A request as it is stored, in rows that others share.

    ``digests`` are those of the beginnings of its messages; ``rest`` is what follows them.
    """

    messages: list[bytes]
    digests: list[str]
    rest: bytes
    rest_digest: str


def parts_of(recording: Recording) -> Parts | None:
    """The parts of its request; None if it is short, or not what :func:`asked` gives."""
    request = bytes(recording.request)
    parts = parted(request) if len(request) >= _SHORT else None
    if parts is None or hashlib.sha256(request).hexdigest() != recording.key:
        return None
    messages, rest = parts
    return Parts(messages, prefixes(messages), rest, hashlib.sha256(rest).hexdigest())


def to_row(recording: Recording, parts: Parts | None = None) -> str:
    """The recording as the JSON text of a row, with its request or the digests of its parts."""
    request: dict[str, Any] = {"request": recording.request}
    if parts is not None:
        end = parts.digests[-1] if parts.digests else ""
        request = {"messages": end, "rest": parts.rest_digest}
    named = {"key": recording.key, **request, "message": recording.message}
    body = msgspec.json.encode({**named, "shape": recording.shape})
    row = _Row(hashlib.sha256(body).hexdigest(), msgspec.Raw(body))
    return msgspec.json.encode(row).decode()


def shared_rows(parts: Parts, is_stored: Callable[[str], bool]) -> dict[str, str]:
    """The rows of the parts that are not stored yet, by key.

    The messages that are new are cut into rows of 1, 2, 4, … from the end, so that a later
    request can go on from almost where it leaves this one, and still a long one has few rows.
    """
    messages, digests, rest, rest_digest = parts
    rows: dict[str, str] = {}
    if not is_stored(REST + rest_digest):
        rows[REST + rest_digest] = rest.decode()
    known = len(digests)
    while known and not is_stored(MESSAGES + digests[known - 1]):
        known -= 1
    end, size = len(digests), 1
    while end > known:
        start = max(end - size, known)
        new = [msgspec.Raw(text) for text in messages[start:end]]
        shared = _Shared(digests[start - 1] if start else "", new)
        rows[MESSAGES + digests[end - 1]] = msgspec.json.encode(shared).decode()
        end, size = start, 2 * size
    return rows


def from_row(text: str, key: str, stored: Callable[[str], str | None]) -> Recording:
    """The recording of that key; a new one each time, so nothing of it is shared.

    ``stored`` gives the text of a shared row, or None. Raises ValueError for any text that
    :func:`to_row` did not write for this key.
    """
    row = _row.decode(text)
    body = bytes(row.recording)
    if hashlib.sha256(body).hexdigest() != row.sum:
        raise ValueError("The row is damaged.")
    entry = _entry.decode(body)
    if entry.key != key:
        raise ValueError("The row is another's.")
    if not entry.rest:
        return Recording(key, entry.request, entry.message, entry.shape)
    message, shape, end, rest = entry.message, entry.shape, entry.messages, entry.rest
    return stored_recording(key, lambda: _put_together(key, end, rest, stored), message, shape)


def _put_together(
    key: str, end: str, rest: str, stored: Callable[[str], str | None]
) -> msgspec.Raw:
    def read(digest: str) -> tuple[str, list[bytes]]:
        shared = _shared.decode(stored(MESSAGES + digest) or "")
        messages = list(map(bytes, shared.messages))
        if functools.reduce(longer, messages, shared.before) != digest:  # it might go in a circle
            raise ValueError("The row is another's.")
        return shared.before, messages

    try:
        request = joined(end, (stored(REST + rest) or "").encode(), read)
        if hashlib.sha256(request).hexdigest() == key:
            return request
    except (ValueError, RecursionError):  # a row that is gone, or was not written here
        pass
    raise LookupError(f"A part of the request {key[:12]} is no longer in its cache.")


# Who may ask


class AskOnce:
    """Whose turn it is to ask, by key; on each event loop, since its locks are its own."""

    def __init__(self) -> None:
        self._asking: dict[tuple[int, str], _Asking] = {}

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Wait for the turn to ask for ``key``, and have it."""
        name = (id(asyncio.get_running_loop()), key)
        asking = self._asking.setdefault(name, _Asking())
        asking.wanted += 1
        try:
            async with asking.lock:
                yield
        finally:
            asking.wanted -= 1
            if not asking.wanted:
                self._asking.pop(name, None)


class _Asking:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0
