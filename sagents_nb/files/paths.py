"""Virtual paths: absolute, '/'-separated, the same on every operating system; and scopes.

A path that could mean something else on somebody's disk is refused, not repaired, so that
what is stored today can be written to any disk tomorrow. A scope is what a filesystem is of: a
tuple in the process, text for a storage.
"""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from .. import kinds
from ..errors import ConfigurationError
from .errors import InvalidPath

MAX_PATH_BYTES = 4096
MAX_SEGMENT_BYTES = 255

_DRIVE = re.compile(r"[A-Za-z]:")
# Windows gives these names to devices in every directory and with every suffix, and takes
# the superscript digits for digits (Microsoft, "Naming Files, Paths, and Namespaces").
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|\Z)", re.IGNORECASE
)
# They turn the reading direction, so a path would not be what it looks like.
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


# As "s3://", and what pathlib makes of it, "s3:/". A drive of Windows has one letter.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise ConfigurationError for no path, and for the address of another place.

    What it says has nothing of the address, which may hold a password.

    >>> check_folder("s3:notes"), check_folder("./s3://notes")
    (None, None)
    """
    if not (text := os.fspath(path)):
        raise ConfigurationError("'' is not the path of a directory; '.' is the one you are in.")
    if (found := _ADDRESS.match(text)) is None:
        return
    scheme = found[1].lower()
    storage = "SQLStorage" if scheme.startswith(("sqlite", "postgresql")) else "FsspecStorage"
    way = (
        "give its path alone, without 'file://'"
        if scheme == "file"
        else "make it the storage of a mount, as in sa.open_filesystem([sa.Mount(default=True, "
        f"storage=sa.{storage}('{scheme}://…'))])"
    )
    raise ConfigurationError(f"'{scheme}://…' is an address, and no folder of this disk; {way}.")


def normalize(path: str) -> str:
    """``path`` as an absolute virtual path; a relative one is taken from "/".

    Raises :class:`~sagents_nb.files.errors.InvalidPath` for ".." segments, a leading "~",
    empty segments (a trailing "/" makes one), backslashes, control characters, drive
    letters, names of Windows devices, and paths that are too long.

    >>> normalize("notes/./a..b.md")
    '/notes/a..b.md'
    """
    path = kinds.plain(path)
    if not isinstance(path, str):
        raise InvalidPath(f"A path is text such as '/notes.md', not {type(path).__name__}.")
    return path if _SIMPLE.fullmatch(path) else _normal(path)


# What most paths are, and nothing of what is looked for below.
_SIMPLE = re.compile(
    r"(/(?!con|prn|aux|nul|com|lpt)[a-z0-9_-][a-z0-9_.-]{0,99}){1,9}", re.ASCII | re.IGNORECASE
)


@functools.lru_cache(1024)  # an agent names few files, again and again
def _normal(path: str) -> str:
    if path in ("/", "."):
        return "/"
    text = path.removeprefix("/")
    # Characters first: the later messages show the path as it is.
    is_ascii = path.isascii()
    for character in "" if is_ascii and path.isprintable() else path:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in _DIRECTION:
            raise _invalid(path, f"has the control character {ascii(character)[1:-1]}", "remove it")
    if "\\" in path:
        raise _invalid(path, "has a backslash", "separate directories with '/'")
    segments = []
    for segment in text.split("/"):
        if not segment:
            raise _invalid(path, "has an empty segment", "drop the extra '/'")
        if segment == ".":
            continue
        if ".." in segment and not segment.strip(". "):
            raise _invalid(path, "has a '..' segment", "write the path from '/'")
        if _DEVICE.match(segment):
            raise _invalid(path, f"uses {segment!r}, a device on Windows", "choose another name")
        if len(segment if is_ascii else segment.encode()) > MAX_SEGMENT_BYTES:
            raise _invalid(path, f"has a name over {MAX_SEGMENT_BYTES} bytes", "shorten it")
        segments.append(segment)
    if segments and segments[0].startswith("~"):
        raise _invalid(path, "starts with '~'", "write the path from '/'")
    if segments and _DRIVE.fullmatch(segments[0]):
        raise _invalid(path, "starts with a drive letter", "write the path from '/'")
    normal = "/" + "/".join(segments)
    if len(normal if is_ascii else normal.encode()) > MAX_PATH_BYTES:
        raise _invalid(path, f"is over {MAX_PATH_BYTES} bytes long", "shorten it")
    return normal


def _invalid(path: str, fault: str, remedy: str) -> InvalidPath:
    shown = path if len(path) <= 200 else path[:200] + "…"
    return InvalidPath(f"The path {shown!r} {fault}; {remedy}.", path)


def parent(path: str) -> str:
    """The directory of a normal path.

    >>> parent("/a/b"), parent("/a")
    ('/a', '/')
    """
    return path.rpartition("/")[0] or "/"


def name(path: str) -> str:
    """The last segment of a normal path."""
    return path.rpartition("/")[2]


def depth(path: str) -> int:
    """The number of segments of a normal path."""
    return path.count("/") if path != "/" else 0


def ancestors(path: str) -> Iterator[str]:
    """The directories above a normal path, outermost first, without "/".

    >>> list(ancestors("/a/b/c"))
    ['/a', '/a/b']
    """
    position = path.find("/", 1)
    while position > 0:
        yield path[:position]
        position = path.find("/", position + 1)


def is_below(path: str, directory: str) -> bool:
    """Whether ``path`` lies in ``directory``, at any depth; compared by whole segments.

    >>> is_below("/a/x", "/a"), is_below("/ab", "/a")
    (True, False)
    """
    return path.startswith(directory if directory == "/" else directory + "/") and path != "/"


# scopes

Scope = tuple[Any, ...]


def check_scope(scope: Any) -> None:
    """Raise ConfigurationError for what is no scope."""
    if not isinstance(scope, tuple) or not scope:
        raise ConfigurationError(
            f"A filesystem's scope is a tuple such as ('user', 123), not {kinds.shown(scope)}."
        )
    try:
        hash(scope)
    except Exception:
        raise ConfigurationError(
            "A filesystem's scope is a key, so it may hold no lists or dicts, as "
            f"{kinds.shown(scope)} does."
        ) from None
    try:
        scope_text(scope)
    except Exception:
        raise ConfigurationError(
            "A filesystem's scope is written as text, which a part of this one cannot be "
            f"({', '.join(map(kinds.shown, scope))}); give texts and numbers."
        ) from None


def scope_text(scope: Scope) -> str:
    """A scope as its storages know it; ":" and "%" within a part are escaped.

    >>> scope_text(("user", 123)), scope_text(("a:b", "c"))
    ('user:123', 'a%3Ab:c')
    """
    parts = (str(part).replace("%", "%25").replace(":", "%3A") for part in scope)
    return ":".join(parts)
