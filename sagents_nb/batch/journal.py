"""Finished and failed rows in a file: a line of JSON each, appended as the row ends."""

from __future__ import annotations

import asyncio
import errno
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from .. import kinds
from ..drives import sync_names
from ..errors import ConfigurationError
from ..runtime.futures import wait_uncancelled
from ..runtime.thread import runtime
from ..runtime.workers import workers
from ..text import logger_of
from .rows import Answer

_log = logger_of("sagents_nb.batch")
_LINES = "rows.jsonl"
_BEGUN = re.compile(rb'\{"key":"([0-9a-f]{64}"|[0-9a-f]{0,64}$)')  # a row that may be cut


class BatchJournal:
    """The answers of earlier maps at ``path``, and where those of this one go.

    Lines are appended as rows end, those of rows that end together in one piece, and are on the
    disk before their rows count as done: neither a killed process nor a power cut loses more than
    what was running. Several processes may share the file. A line that is no answer, or
    half of one that did not fit on the disk, is passed over; a file that does not begin with an
    answer, or half of one, is somebody else's and refused. The file is made readable for its owner
    alone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._waiting: list[tuple[Answer, Callable[[Answer], None], asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        # Of the thread that writes:
        self._file: int | None = None
        self._broken = False
        self._cut = False  # whether the file ends in half a line of ours

    def read(self) -> dict[str, Answer]:
        """The answers by key, the latest of each; none if there is no file.

        Raises ConfigurationError for a file that cannot be read or holds something else.
        """
        try:
            if self.path.exists() and not self.path.is_file():  # a pipe, say, would never end
                raise ConfigurationError(
                    f"{str(self.path)!r} is no plain file; name another file as cache=…"
                )
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(
                f"The finished rows in {str(self.path)!r} cannot be read ({error.strerror}); "
                "name another file as cache=…"
            ) from error
        decoder = msgspec.json.Decoder(Answer)
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # nearly always: all are answers
            return {answer.key: answer for answer in decoder.decode_lines(text)}
        if text.strip() and not _is_row(text.lstrip().split(b"\n", 1)[0], decoder):
            raise ConfigurationError(
                f"The file {str(self.path)!r} is no cache of finished rows; name another file as "
                "cache=…"
            )
        answers = {}
        for line in text.splitlines():
            try:
                answer = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # the process was killed while it wrote, or somebody else wrote it
            answers[answer.key] = answer
        return answers

    def keep(self, answer: Answer, kept: Callable[[Answer], None]) -> asyncio.Future[None]:
        """Call ``kept`` once the answer is on the disk, and end the future; on the runtime loop.

        What cannot be written is told once, and counts as kept: the map goes on. The answer is
        kept all the same when nobody waits any more.
        """
        safe: asyncio.Future[None] = runtime.loop.create_future()
        self._waiting.append((answer, kept, safe))
        if self._writer is None:
            self._writer = runtime.spawn(self._write_waiting())
        return safe

    async def close(self) -> None:
        """Return once all is on the disk, also when whoever waits is cancelled; ends the use."""
        if self._writer is not None:
            await wait_uncancelled(self._writer)
        if self._file is not None:
            os.close(self._file)
            self._file = None

    async def _write_waiting(self) -> None:
        """Write what waits, and then what has come meanwhile, one sync for all of it."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            try:
                await workers.run(self._write, [answer for answer, _, _ in waiting])
            except (OSError, RuntimeError) as error:  # also: no thread can be started
                self._tell(error)
            for answer, kept, safe in waiting:
                kept(answer)
                if not safe.done():
                    safe.set_result(None)
        self._writer = None

    def _write(self, answers: Sequence[Answer]) -> None:
        if self._file is None:
            self._file = self._open()
        lines = []
        for answer in answers:
            try:
                lines.append(msgspec.json.encode(answer) + b"\n")
            except (ValueError, TypeError) as error:
                self._tell(error)
        self._append(self._file, lines)
        _sync(self._file)

    def _append(self, file: int, lines: Sequence[bytes]) -> None:
        """Write lines in one piece; behind one that does not fit, each for itself."""
        begun, size = 0, len(lines)
        while begun < len(lines):
            part = lines[begun : begun + size]
            written = self._put(file, b"".join(part))
            for line in part:
                begun += 1
                if written < len(line):
                    self._tell(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
                    size = 1
                    break
                written -= len(line)

    def _put(self, file: int, text: bytes) -> int:
        """How many bytes of the text were written."""
        end = b"\n" * self._cut
        try:
            written = os.write(file, end + text)
        except OSError as error:
            self._tell(error)
            return 0
        if written:
            self._cut = (end + text)[written - 1 : written] != b"\n"
        return max(0, written - len(end))

    def _tell(self, error: Exception) -> None:
        if not self._broken:
            _log.warning("Rows are not kept in %s: %s", self.path, error)
        self._broken = True

    def _open(self) -> int:
        new = [self.path, *(above for above in self.path.parents if not above.exists())]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        for path in new:
            sync_names(path.parent)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":  # a line was cut
            os.write(file, b"\n")
        return file


def _sync(file: int) -> None:
    getattr(os, "fdatasync", os.fsync)(file)


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
    cache = kinds.plain(cache)
    if not isinstance(cache, str | os.PathLike) and isinstance(
        getattr(cache, "path", None), str | os.PathLike
    ):
        return BatchJournal(Path(cache.path) / _LINES)
    if not isinstance(cache, str | os.PathLike) or not os.fspath(cache):
        raise ConfigurationError(f"cache is a path or a ResponseCache, not {kinds.shown(cache)}.")
    if not kinds.PATH.fits(cache):
        raise ConfigurationError(f"cache is {kinds.PATH.what}; not {kinds.shown_path(cache)}.")
    if isinstance(cache, str) and "://" in cache:  # it may have a password, so it is not shown
        raise ConfigurationError("cache is a path or a ResponseCache, and no address.")
    path = Path(cache).expanduser()
    try:
        is_directory = path.is_dir()
    except OSError:  # too long a name, say: told as soon as it is read
        is_directory = False
    return BatchJournal(path / _LINES if is_directory else path)
