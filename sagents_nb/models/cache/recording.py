"""One recorded answer: what was asked, what was said, and in which pieces it came."""

from __future__ import annotations

import hashlib

import msgspec

from ...messages import Message
from .keys import Asked
from .redaction import redacted


class Recording(msgspec.Struct, frozen=True):
    """An answer with what it answers.

    ``request`` is the canonical form of the request as JSON, ``message`` the whole answer,
    ``shape`` the pieces in which it was streamed: see ``shape.py``.
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


def made(asked: Asked, message: Message, shape: str) -> Recording:
    """The recording of ``message``, in which no secret is left.

    Raises TypeError or ValueError for a message that JSON cannot carry.
    """
    text = redacted(msgspec.json.encode(message), asked.secrets)
    return Recording(
        asked.key, msgspec.Raw(asked.text), msgspec.json.decode(text, type=Message), shape
    )


def to_text(recording: Recording) -> str:
    """The recording as the JSON text of a row."""
    body = msgspec.json.encode(recording)
    row = _Row(hashlib.sha256(body).hexdigest(), msgspec.Raw(body))
    return msgspec.json.encode(row).decode()


def from_text(text: str, key: str) -> Recording:
    """The recording of that key; a new one each time, so nothing of it is shared.

    Raises ValueError for any text that :func:`to_text` did not write for this key.
    """
    row = _row.decode(text)
    body = bytes(row.recording)
    if hashlib.sha256(body).hexdigest() != row.sum:
        raise ValueError("The row is damaged.")
    recording = _recording.decode(body)
    if recording.key != key:
        raise ValueError("The row is another's.")
    return recording
