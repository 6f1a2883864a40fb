"""One file or directory, as plain immutable data."""

from __future__ import annotations

import functools
import hashlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from .paths import name

if TYPE_CHECKING:
    import mimetypes

Persistence = Literal["memory", "persisted"]


class FileEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file or a directory.

    ``content`` is the text or the bytes that were written, None for a directory. ``size``
    is in bytes (of UTF-8 for text), ``sha256`` a hexadecimal digest of the same bytes.
    Times are in UTC. ``custom`` is yours. ``persistence`` is "memory" where nothing else
    keeps the file. ``loaded`` is False while the content lies in its storage only, unread.
    """

    path: str
    content: str | bytes | None = None
    title: str | None = None
    file_type: str | None = None
    size: int = 0
    sha256: str | None = None
    mime_type: str | None = None
    created_at: datetime
    modified_at: datetime
    custom: dict[str, Any] = {}
    is_directory: bool = False
    persistence: Persistence = "memory"
    loaded: bool = True

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return name(self.path)

    @property
    def text(self) -> str | None:
        """The content as text; None for a directory and for bytes that are no UTF-8 text."""
        if not isinstance(self.content, bytes):
            return self.content
        if b"\0" in self.content:
            return None
        try:
            return self.content.decode()
        except UnicodeDecodeError:
            return None

    def describe(self) -> dict[str, Any]:
        """Everything but the content, as JSON-ready data; times in ISO 8601."""
        described: dict[str, Any] = msgspec.to_builtins(
            replace(self, content=None), str_keys=True, enc_hook=repr
        )
        return described


def guessed_type(path: str) -> str:
    """The MIME type that a file's name suggests, the same on every machine."""
    name = path.rpartition("/")[2].lstrip(".")
    return _type_of(".".join(name.rsplit(".", 2)[1:]))


# A folder has few kinds of files: to look for each anew took a tenth of reading it.
@functools.lru_cache(maxsize=1024)
def _type_of(endings: str) -> str:
    """By the last two endings of a name, of which the first says what was compressed."""
    known = _OTHERS.get(endings.lower().rpartition(".")[2])
    if known:
        return known
    return _known_types().guess_type(f"x.{endings}")[0] or "application/octet-stream"


@functools.cache
def _known_types() -> mimetypes.MimeTypes:
    import mimetypes  # 4 ms, so only when it is needed

    return mimetypes.MimeTypes(filenames=())


# What Python's own list lacks, or takes for something else: ".ts" is a video there.
_OTHERS = {
    "md": "text/markdown",
    "ipynb": "application/x-ipynb+json",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "jsonl": "application/jsonl",
    "sql": "application/sql",
    "r": "text/x-r",
    "ts": "text/typescript",
    "log": "text/plain",
    "parquet": "application/vnd.apache.parquet",
}
# Who writes text into such a file has chosen an odd name for it.
_NO_TEXT = re.compile(r"(?:image/(?!svg)|audio/|video/|application/(?:octet-stream|zip|pdf)$)")


def new_file(
    path: str,
    content: str | bytes,
    *,
    title: str | None = None,
    custom: dict[str, Any] | None = None,
    mime_type: str | None = None,
    before: FileEntry | None = None,
) -> FileEntry:
    """The entry of a file with that content.

    What is not given comes from ``before``, the entry in whose place it goes, whose
    creation time it keeps.
    """
    data = content.encode() if isinstance(content, str) else content
    now = datetime.now(UTC)
    if mime_type is None:
        if before and _is_binary(before) == isinstance(content, bytes):
            mime_type = before.mime_type
        else:
            mime_type = guessed_type(path)
            if isinstance(content, str) and _NO_TEXT.match(mime_type):
                mime_type = "text/markdown"
    file_type = "markdown" if isinstance(content, str) else "binary"
    return FileEntry(
        path=path,
        content=content,
        title=title if title is not None else (before.title if before else None),
        file_type=(before.file_type if before else None) or file_type,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        mime_type=mime_type,
        created_at=before.created_at if before else now,
        modified_at=now,
        custom=dict(custom) if custom is not None else (before.custom if before else {}),
    )


def _is_binary(entry: FileEntry) -> bool:
    return isinstance(entry.content, bytes) if entry.loaded else entry.file_type == "binary"


def with_content(entry: FileEntry, content: str | bytes) -> FileEntry:
    """The entry, now loaded; its size and digest are those of the content."""
    data = content.encode() if isinstance(content, str) else content
    return replace(
        entry,
        content=content,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        loaded=True,
    )


def new_directory(path: str, title: str | None = None) -> FileEntry:
    """The entry of a directory; its title is its name unless given."""
    now = datetime.now(UTC)
    return FileEntry(
        path=path, title=title or name(path), created_at=now, modified_at=now, is_directory=True
    )
