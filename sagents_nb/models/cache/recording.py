"""What is asked, in one canonical form; the recording of its answer; and who may ask.

The canonical form of a request is all that decides its answer, and nothing else: two requests
with the same form have the same key. Left out are keys and other secrets, who asks
(``session_id``), and the metadata that no provider is sent. What a field is for is said here
for every field there is; a test fails when a struct gains one that this file does not know.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ...messages import Message, Part, ToolResult
from ...redaction import SHORTEST, Secrets, is_secret, redacted_json, without_login
from ...serialization import escaped, to_data
from ..base import ChatModel, ModelRequest, asked_by
from ..providers import SDKS

# Every field of what a request is made of is named in one of these two.
KEYED = {
    "ModelRequest": {"messages", "system", "tools", "options", "model"},
    "Message": {"role", "parts", "stop_reason", "metadata"},
    "ToolSpec": {"name", "description", "schema"},
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

    ``secrets`` are the keys in use; ``text`` holds none of them.
    """

    key: str
    text: bytes
    secrets: Secrets


def asked(model: ChatModel, request: ModelRequest) -> Asked:
    """The canonical form of ``request`` to ``model``.

    >>> from sagents_nb import Message, ScriptedModel
    >>> one = asked(ScriptedModel([]), ModelRequest([Message.user("hi")]))
    >>> two = asked(ScriptedModel([]), ModelRequest([Message.user("ho")]))
    >>> len(one.key), one.key == two.key
    (64, False)
    """
    secrets = secrets_of(model, request)
    text = redacted_json(_json(_form(model, request)), secrets)
    return Asked(hashlib.sha256(text).hexdigest(), text, secrets)


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
    form: dict[str, Any] = {"role": message.role, "parts": [_part(p) for p in message.parts]}
    if message.stop_reason in ("error", "aborted"):  # of these only the text is sent
        form["broken"] = True
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


def _json(form: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(form, order="sorted")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(escaped(to_data(form)), order="sorted")


# Recordings


class Recording(msgspec.Struct, frozen=True):
    """An answer with what it answers.

    ``request`` is the canonical form of the request as JSON, ``message`` the whole answer,
    ``shape`` the pieces in which it was streamed: see ``models/replay.py``.
    """

    key: str
    request: msgspec.Raw
    message: Message
    shape: str = ""


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored: ``sum`` is the SHA-256 of the JSON text of the recording."""

    sum: str
    recording: msgspec.Raw


_row = msgspec.json.Decoder(_Row)
_recording = msgspec.json.Decoder(Recording)


def recording_of(asked: Asked, message: Message, shape: str) -> Recording:
    """The recording of ``message``, in which no secret is left.

    Raises TypeError or ValueError for a message that JSON cannot carry.
    """
    text = redacted_json(msgspec.json.encode(message), asked.secrets)
    return Recording(
        asked.key, msgspec.Raw(asked.text), msgspec.json.decode(text, type=Message), shape
    )


def to_row(recording: Recording) -> str:
    """The recording as the JSON text of a row."""
    body = msgspec.json.encode(recording)
    row = _Row(hashlib.sha256(body).hexdigest(), msgspec.Raw(body))
    return msgspec.json.encode(row).decode()


def from_row(text: str, key: str) -> Recording:
    """The recording of that key; a new one each time, so nothing of it is shared.

    Raises ValueError for any text that :func:`to_row` did not write for this key.
    """
    row = _row.decode(text)
    body = bytes(row.recording)
    if hashlib.sha256(body).hexdigest() != row.sum:
        raise ValueError("The row is damaged.")
    recording = _recording.decode(body)
    if recording.key != key:
        raise ValueError("The row is another's.")
    return recording


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
