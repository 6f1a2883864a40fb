"""What a page may ask about the files of a session."""

from __future__ import annotations

import base64
from typing import Any

from ..files.entry import FileEntry
from ..messages import image_of
from ..session import Session

SHOWN_CHARACTERS = 200_000
SHOWN_IMAGE = 2_000_000  # bytes of one that a page shows
WHOLE_FILE = 20_000_000  # bytes of one that a person may download


def read_file(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """The beginning of a text, an image, or what kind of file it is; ``whole``: all its bytes."""
    entry = session.files.read(request["path"])
    text = entry.text
    image = image_of(entry.content) if text is None and entry.size <= SHOWN_IMAGE else None
    file: dict[str, Any] = {
        "path": entry.path,
        "size": entry.size,
        "content": None if text is None else text[:SHOWN_CHARACTERS],
        "truncated": text is not None and len(text) > SHOWN_CHARACTERS,
        "media_type": image.mime_type if image else entry.mime_type or "",
    }
    if (location := session.files.location(entry.path)) is not None:
        file["location"] = location
    if request.get("whole"):
        file["data"] = base64.b64encode(_bytes(entry)).decode()
    elif image is not None:
        file["data"] = image.data
    return {"file": file}


def shown_text(entry: FileEntry) -> str | None:
    """The text of a file that is shown whole; None for a longer one and for what is no text."""
    text = entry.text
    return None if text is None or len(text) > SHOWN_CHARACTERS else text


def _bytes(entry: FileEntry) -> bytes:
    if entry.size > WHOLE_FILE:
        raise ValueError(
            f"{entry.path} has {entry.size:,} bytes, and a page is sent at most {WHOLE_FILE:,}; "
            f"read it in a cell: session.files.read({entry.path!r}).content."
        )
    return entry.content.encode() if isinstance(entry.content, str) else entry.content or b""
