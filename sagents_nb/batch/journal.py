"""Finished rows in a file: a line of JSON each, appended as the row ends."""

from __future__ import annotations

import errno
import logging
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from .. import kinds
from ..errors import ConfigurationError
from .rows import Answer

_log = logging.getLogger("sagents_nb.batch")
_LINES = "rows.jsonl"
_BEGUN = re.compile(rb'\{"key":"([0-9a-f]{64}"|[0-9a-f]{0,64}$)')  # a row that may be cut


class BatchJournal:
    """The answers of earlier maps at ``path``, and where those of this one go.

    A line is written in one piece as its row ends, so that a killed process loses what was
    running and nothing else; several processes may share the file. A line that is no answer, or
    half of one that did not fit on the disk, is passed over; a file that does not begin with an
    answer, or half of one, is somebody else's and refused. The file is made readable for its owner
    alone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._broken = False
        self._cut = False  # whether the file ends in half a line of ours

    def read(self) -> dict[str, Answer]:
        """The answers by key, the latest of each; none if there is no file.

        Raises ConfigurationError for a file that cannot be read or holds something else.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(
                f"The finished rows in {str(self.path)!r} cannot be read ({error.strerror}); "
                "name another file as cache=…"
            ) from error
        answers = {}
        decoder = msgspec.json.Decoder(Answer)
        if text.strip() and not _is_row(text.lstrip().split(b"\n", 1)[0], decoder):
            raise ConfigurationError(
                f"The file {str(self.path)!r} is no cache of finished rows; name another file as "
                "cache=…"
            )
        for line in text.splitlines():
            try:
                answer = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # the process was killed while it wrote, or somebody else wrote it
            answers[answer.key] = answer
        return answers

    def write(self, answer: Answer) -> None:
        """Append an answer. What cannot be written is told once, and the map goes on."""
        try:
            if self._file is None:
                self._file = self._open()
            line = b"\n" * self._cut + msgspec.json.encode(answer) + b"\n"
            written = os.write(self._file, line)
            if written:
                self._cut = written < len(line)
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except (OSError, ValueError, TypeError) as error:
            if not self._broken:
                _log.warning("Rows are not kept in %s: %s", self.path, error)
            self._broken = True

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":  # a line was cut
            os.write(file, b"\n")
        return file

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _is_row(line: bytes, decoder: msgspec.json.Decoder[Answer]) -> bool:
    """Whether this is an answer, or the first half of one."""
    try:
        decoder.decode(line)
    except msgspec.ValidationError:  # whole JSON, and something else
        return False
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _BEGUN.match(line) is not None
    return True


def journal_at(cache: Any) -> BatchJournal:
    """The journal of a file, of a directory, or beside the answers of a ResponseCache."""
    if not isinstance(cache, str | os.PathLike) and isinstance(
        getattr(cache, "path", None), str | os.PathLike
    ):
        return BatchJournal(Path(cache.path) / _LINES)
    if not isinstance(cache, str | os.PathLike):
        raise ConfigurationError(f"cache is a path or a ResponseCache, not {type(cache).__name__}.")
    if not kinds.PATH.fits(cache):
        raise ConfigurationError(f"cache is {kinds.PATH.what}; give another one.")
    path = Path(cache).expanduser()
    try:
        is_directory = path.is_dir()
    except OSError:  # too long a name, say: told as soon as it is read
        is_directory = False
    return BatchJournal(path / _LINES if is_directory else path)
