"""Where documents come from: files on a disk or a virtual one, texts, data frames."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from .. import kinds
from ..errors import ConfigurationError, DocumentError
from ..files import FileError, VirtualFilesystem
from ..text import whole
from .loading import (
    MOST_BYTES,
    Document,
    checked_size,
    file_document,
    frame_documents,
    plain,
    text_document,
)


def documents_of(
    source: Any,
    text: str | None,
    id: str | None,
    metadata: Any,
    files: VirtualFilesystem | None,
    refused: dict[str, str],
) -> tuple[Iterable[Document], bool]:
    """The documents that a source is, as :meth:`.DocumentIndex.add` takes it.

    And whether they are several files, of which some may be left out: those that cannot be read
    are ``refused``, as they come. Else each has to be one.
    """
    about, columns = _metadata(metadata)
    if hasattr(source, "columns"):
        if text is None or id is None:
            raise ConfigurationError(
                "Of a data frame, add(…) needs the columns with the texts and with what names "
                'the rows: add(df, text="abstract", id="doi").'
            )
        return frame_documents(source, text, id, columns, about, refused), False
    if text is not None or id is not None or columns:
        raise ConfigurationError(
            "text=, id= and a list of metadata name columns of a data frame, and this source "
            f"is {kinds.shown(source)}."
        )
    if isinstance(source, Mapping):
        return (text_document(*one, about) for one in _texts(source)), False
    if kinds.PATH.fits(source):
        paths, several = _paths(os.fspath(source), files, refused)
        return _files(paths, files, about, refused if several else None), several
    raise ConfigurationError(
        "add(…) takes a path, a pattern, a dict of texts or a data frame; not "
        f"{kinds.shown(source)}."
    )


def _metadata(metadata: Any) -> tuple[dict[str, str], list[str]]:
    """What holds for all documents, and the columns of a frame that say it of each."""
    if isinstance(metadata, Mapping) and all(isinstance(name, str) for name in metadata):
        about = {plain(name): plain(value) for name, value in metadata.items()}
        return {name: value for name, value in about.items() if value}, []
    if not kinds.LIST.fits(metadata) or not all(isinstance(name, str) for name in metadata):
        raise ConfigurationError(
            "add(metadata=…) is a dict of texts, or a list of the names of columns; not "
            f"{kinds.shown(metadata)}."
        )
    return {}, [*metadata]


def _texts(source: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for name, text in source.items():
        if not isinstance(name, str) or not name or not isinstance(text, str):
            raise ConfigurationError(
                "add({…}) takes texts by their names, and this dict has "
                f"{kinds.shown(name)}: {kinds.shown(text)}."
            )
        yield name, text


def _files(
    paths: Iterable[str],
    files: VirtualFilesystem | None,
    about: dict[str, str],
    refused: dict[str, str] | None,
) -> Iterator[Document]:
    """The documents that files are; those that cannot be read are ``refused``, else an error."""
    for path in paths:
        try:
            document = file_document(path, _content(path, files), about)
        except DocumentError as error:
            if refused is None:
                raise
            refused[whole(path)] = str(error)
        else:
            yield document


def _content(path: str, files: VirtualFilesystem | None) -> str | bytes:
    try:
        if files is not None:
            entry = files.read(path)
            checked_size(path, entry.size)
            return entry.content or ""
        if not os.path.isfile(path):
            why = "it is no file" if os.path.lexists(path) else "there is none"
            raise DocumentError(f"{path} cannot be read: {why}.")
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
            checked_size(path, max(len(content), os.fstat(file.fileno()).st_size))
            return content
    except (OSError, FileError) as error:
        why = str((isinstance(error, OSError) and error.strerror) or error).rstrip(".")
        raise DocumentError(f"{path} cannot be read: {why}.") from None


def _paths(
    source: str, files: VirtualFilesystem | None, refused: dict[str, str]
) -> tuple[list[str], bool]:
    """The files that are meant, and whether it may be several; some of these are ``refused``."""
    if files is None:
        paths, several = _on_disk(source, refused)
    else:
        try:
            below = files.list(f"{source.rstrip('/')}/**")
            several = bool(below) or not files.exists(source)
            paths = (below or files.list(source)) if several else [source]
        except FileError as error:
            raise DocumentError(f"{error}") from None
    if not paths and not refused:
        raise DocumentError(f"No file fits {source!r}; give a path, or a pattern such as **/*.md.")
    return paths, several


def _on_disk(source: str, refused: dict[str, str]) -> tuple[list[str], bool]:
    if os.path.isdir(source):
        root, names = source, ["**"]
    elif os.path.lexists(source) or not glob.has_magic(source):
        return [_named(source)], False
    else:
        root, names = _rooted(source)
    inside = os.path.join(os.path.realpath(root), "")
    paths = []
    for path in sorted({_named(path) for path in _below(root, names)}):
        # A link may be anybody's: of a folder that was unpacked, it leads to what is private.
        if not os.path.realpath(path).startswith(inside):
            refused[whole(path)] = f"{path} leads out of the folder by a link; add it by itself."
        elif os.path.isfile(path):
            paths.append(path)
    return paths, True


def _rooted(pattern: str) -> tuple[str, list[str]]:
    """The folder in which all lies that a pattern can mean, and the names in it from there on."""
    names = Path(pattern).parts
    first = next(place for place, name in enumerate(names) if glob.has_magic(name))
    root = os.path.join(*names[:first]) if first else os.curdir
    return root, [*names[first:]]


def _below(folder: str, names: list[str]) -> Iterator[str]:
    """What fits the ``names`` in a ``folder``, as ``glob`` has it.

    But "**" enters no folder by a link, which may lead to where it came from: it gives the link.
    """
    name, *rest = names
    if name == "**":
        while rest[:1] == ["**"]:
            rest = rest[1:]
        for inside, folders, files in os.walk(folder):
            folders[:] = [one for one in folders if not one.startswith(".")]
            links = [one for one in folders if os.path.islink(os.path.join(inside, one))]
            plain = [] if rest else [one for one in files if not one.startswith(".")]
            yield from (os.path.join(inside, one) for one in links + plain)
            if rest:
                yield from _below(inside, rest)
        return
    if glob.has_magic(name):
        hidden = name.startswith(".")
        found = [one for one in _listed(folder) if fnmatch(one, name)]
        found = [one for one in found if hidden or not one.startswith(".")]
    else:
        found = [name]
    for path in (os.path.join(folder, one) for one in found):
        if rest and os.path.isdir(path):
            yield from _below(path, rest)
        elif not rest and os.path.lexists(path):
            yield path


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _named(path: str) -> str:
    return Path(os.path.normpath(path)).as_posix()
