"""A cassette: recorded answers in one readable file, to lie beside a notebook in a repository.

People review it line by line. A text of several lines is ``{"lines": [...]}``. System prompts
and lists of tools stand once, at the top. A request that goes on from a recorded one
``continues`` it, and shows only the messages that came after its answer.

An answer is added at the end of the file, in place of the two brackets there, which follow it
again: so each costs what it says, however many there are. What a later version of the format 1
may therefore have, and what :meth:`Cassette.save` puts in order as it always was:

- a ``system`` or ``tools`` that is no name but an object, ``{name: value}``: what would stand
  at the top, which is written already;
- two recordings with one key: the later answer counts, in the place of the earlier;
- an end in the middle of a recording, where a process was killed: those before it count.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

import msgspec

from ... import kinds
from ...drives import remove_left_beside, replace_file
from ...errors import ConfigurationError
from ...messages import Message
from .recording import (
    AskOnce,
    Recording,
    joined,
    longer,
    message_form,
    parted,
    stored_recording,
)

PATIENCE = 10.0  # seconds to wait for a process that may have been stopped while it wrote

VERSION = 1
_LINES = "lines"
_WIDTH = 100  # characters of a line of a shape
_TABLES = {"system": "systems", "tools": "tools"}  # by field of a recording: where it stands once
_ENTRY_END = b"\n  }"  # where a recording ends, in a file that nobody has formatted anew,
_END = b"\n ]\n}\n"  # and the file

_FIRST = ("role", "type", "id", "tool_call_id", "name")

Entry = dict[str, Any]
_OWN = frozenset({"version", "systems", "tools", "recordings"})


class Cassette:
    """The recordings of the JSON file ``path``; there need be none yet.

    Each new recording is written before :meth:`put` returns, at the end of the file. What is
    recorded anew with the same words keeps its text and its place. ``header`` holds what else
    stands in the file. A path that is a link stays one: the file that it names is written.
    Raises :class:`~sagents_nb.errors.ConfigurationError` for a file that is no cassette.

    Use :meth:`at`: all who record into one file must share one Cassette.
    """

    _open: ClassVar[dict[Path, Cassette]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    @kinds.checked(path=kinds.PATH)
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.ask_once = AskOnce()
        self.header: dict[str, Any] = {}
        self._content = _Content()
        self._lock = threading.Lock()
        self._saved: _Stamp | None = None
        self._added = False  # whether this process has added something
        self._read()

    @classmethod
    @kinds.checked(path=kinds.PATH)
    def at(cls, path: str | os.PathLike[str]) -> Cassette:
        """The process's one cassette of that path."""
        full = Path(path).expanduser().absolute()
        with cls._opening:
            if full not in cls._open:
                cls._open[full] = cls(full)
                atexit.register(cls._open[full]._finish)
            return cls._open[full]

    @kinds.safe_repr
    def __repr__(self) -> str:
        return self.path.name

    def __len__(self) -> int:
        return len(self._content.kept)

    def get(self, key: str) -> Recording | None:
        """The recording of that key, or None; what another process wrote is seen."""
        with self._lock:
            self._read()
            return self._content.recording(key)

    def put(self, recording: Recording) -> None:
        """Keep it and write it; raises OSError if that fails."""
        if not self._put(recording, may_add=True):
            self._put(recording, may_add=False)

    def _put(self, recording: Recording, may_add: bool) -> bool:
        """Keep and write it; False where others wrote meanwhile, which has to be read first."""
        with self._alone() as alone:
            self._read()
            content, saved = self._content, self._saved
            if _same(content.recording(recording.key), recording):
                if content.is_cut:
                    self._write()
                return True
            self._saved = None  # should writing fail, what is in the file is read again
            content.add(recording)
            self._added = True
            if may_add and alone and saved is not None and not content.is_mostly_outdated():
                return self._append(recording.key, saved)
            self._write()
            return True

    def recordings(self) -> Iterator[Recording]:
        """The recordings, in the order in which they were made."""
        with self._lock:
            self._read()
            found = list(self._content.recordings())
        yield from found

    def keep_of(self, old: Cassette) -> tuple[int, int, int]:
        """After a full recording, look like ``old``: how many are new, changed and gone.

        What says the same as in ``old`` takes its text and its place; the new comes last.
        """
        with self._alone():
            self._read()
            news = {recording.key: recording for recording in self._content.recordings()}
            before = {recording.key: recording for recording in old._content.recordings()}
            both = [key for key in before if key in news]
            same = [key for key in both if _same(before[key], news[key])]
            self._content, self._saved = _Content(), None
            for key in (*both, *(key for key in news if key not in before)):
                self._content.add(before[key] if key in same else news[key])
            self._write()
        return len(news) - len(both), len(both) - len(same), len(before) - len(both)

    def save(self) -> None:
        """Write the file in order, with a changed ``header``; raises OSError if that fails."""
        with self._alone():
            header = self.header
            self._read()
            self.header = header
            self._write()

    def _finish(self) -> None:
        """Put in order what was added; where nobody is left who could be told of a failure."""
        if not self._added:
            return
        with suppress(OSError, ConfigurationError), self._alone():
            self._read()
            if self._content.outdated and self._content.kept:
                self._write()

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Nobody else reads what is there to add to it meanwhile, in whatever process.

        False where that cannot be known: then a file is only replaced, never written in.
        """
        with self._lock:
            folder = _target(self.path).parent
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder) as alone:
                yield alone

    def _read(self) -> None:
        stamp = _stamp(self.path)
        if stamp is not None and stamp == self._saved:
            return
        if stamp is None:  # not there yet, or somebody removed it, to begin anew
            if self._saved is not None or self._content.kept:
                self._content, self._saved = _Content(), None
            return
        try:
            self.header, self._content = _parsed(self.path.read_bytes())
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if _stamp(self.path) != stamp:  # another process wrote while it was read
                self._read()
                return
            raise ConfigurationError(
                f"{ascii(self.path.name)[1:-1]} is no cassette that can be read ({error}); restore "
                "it, or remove it and record again with sagents-nb test-notebook --record."
            ) from None
        self._saved = stamp

    def _append(self, key: str, saved: _Stamp) -> bool:
        """Write the recording at the end; False where the file was replaced meanwhile."""
        at = self._content.end
        if at is None:  # somebody formatted it
            self._write()
            return True
        entry = self._content.entry(key)
        text = json.dumps(lined(entry), ensure_ascii=False, indent=1).replace("\n", "\n  ")
        added = f",\n  {text}".encode()
        with open(self.path, "r+b") as file:
            if _told(os.fstat(file.fileno())) != saved:
                return False
            try:
                # Without its end first, so that a write that is cut leaves nothing of it behind.
                _write_at(file, at, added + _END)
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    _write_at(file, at, _END)
                raise
            stamp = _told(os.fstat(file.fileno()))
        if stamp != _stamp(self.path):  # this process was stopped for so long that another went on
            return False
        self._content.end, self._saved = at + len(added), stamp
        return True

    def _write(self) -> None:
        target = _target(self.path)
        remove_left_beside(target)
        replace_file(target, self._content.text(self.header))
        self._saved = None
        self._read()


_Stamp = tuple[int, int, int]


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """The folder itself is locked, so that no file of ours lies in somebody's repository.

    False where it could not be: there are no locks, or another process was stopped in it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield False
        return
    held = os.open(folder, os.O_RDONLY)
    alone = False
    try:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone = True
                break
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:  # some network disks have no locks
                break
        yield alone
    finally:
        os.close(held)


def _target(path: Path) -> Path:
    """The file itself, where the path is a link."""
    return Path(os.path.realpath(path))


def _stamp(path: Path) -> _Stamp | None:
    try:
        return _told(path.stat())
    except OSError:
        return None


def _told(status: os.stat_result) -> _Stamp:
    return status.st_mtime_ns, status.st_ino, status.st_size


def _same(old: Recording | None, new: Recording) -> bool:
    """Whether it says the same: tokens, times and ids of answers differ each time."""
    if old is None:
        return False
    mine, other = old.message, new.message
    return (mine.parts, mine.stop_reason) == (other.parts, other.stop_reason)


def _write_at(file: BinaryIO, at: int, text: bytes) -> None:
    file.seek(at)
    file.truncate()
    file.write(text)
    file.flush()


# The file


class _Kept(NamedTuple):
    """A recording without what others share with it."""

    end: str  # the digest of its messages
    rest: bytes  # of its request
    answer: bytes
    shape: str
    after: str  # the digest of its messages and its answer


class _Content:
    """The recordings of a file, with each message once; ``end`` is where more may be written.

    ``outdated`` counts what stands elsewhere in the file than in one that is in order;
    ``is_cut`` says that the file ends in the middle of a recording.
    """

    def __init__(self) -> None:
        self.kept: dict[str, _Kept] = {}
        self.tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES.values()}
        self.outdated = 0
        self.is_cut = False
        self.end: int | None = None
        self._messages: dict[str, tuple[str, bytes]] = {}
        self._rests: dict[bytes, bytes] = {}
        self._ended: dict[str, str] = {}  # by digest of a history: who may be continued there

    def is_mostly_outdated(self) -> bool:
        """Whether it is time to write the file in order: not for every answer."""
        return self.outdated > len(self.kept)

    def add(self, recording: Recording) -> None:
        """Take in a recording; in place of another one with its key."""
        parts = parted(recording.request)
        if parts is None:  # not written by asked()
            request = msgspec.json.decode(recording.request)
            parts = parted(msgspec.json.encode(request, order="sorted"))
        if parts is None:
            raise ValueError(f"The request of {recording.key[:12]!r} is not what asked() gives.")
        messages, rest = parts
        self._keep(recording, self._chained("", messages), rest)

    def add_entry(self, entry: Entry) -> None:
        """Take in what stands in the file, after all that stands before it."""
        request = {"model": entry["model"], "options": entry.get("options", {})}
        for field, table in _TABLES.items():
            request[field] = self._looked_up(entry[field], table) if field in entry else ""
        request["tools"] = request["tools"] or []
        before = self.kept.get(entry.get("continues", ""))
        messages = [msgspec.json.encode(message, order="sorted") for message in entry["messages"]]
        end = self._chained(before.after if before else "", messages)
        message = msgspec.convert(entry["answer"], Message)
        shape = "".join(entry.get("shape", ())).strip()
        recording = Recording(str(entry["key"]), msgspec.Raw(b""), message, shape)
        self._keep(recording, end, b"]," + msgspec.json.encode(request, order="sorted")[1:])

    def _looked_up(self, name: Any, table: str) -> Any:
        if isinstance(name, dict):
            self.tables[table].update(name)
            self.outdated += 1
            (name,) = name
        return self.tables[table][name]

    def _chained(self, end: str, messages: list[bytes]) -> str:
        for message in messages:
            before, end = end, longer(end, message)
            self._messages.setdefault(end, (before, message))
        return end

    def _keep(self, recording: Recording, end: str, rest: bytes) -> None:
        key, message = recording.key, recording.message
        after = self._chained(end, [_as_asked(message)])
        old = self.kept.get(key)
        if old is not None:
            self.outdated += 1
            if self._ended.get(old.after) == key:
                del self._ended[old.after]
        rest = self._rests.setdefault(rest, rest)
        self.kept[key] = _Kept(end, rest, msgspec.json.encode(message), recording.shape, after)
        self._ended.setdefault(after, key)

    def recording(self, key: str) -> Recording | None:
        """The recording of that key, or None; a new one each time, so nothing of it is shared."""
        kept = self.kept.get(key)
        if kept is None:
            return None
        message = msgspec.json.decode(kept.answer, type=Message)
        return stored_recording(
            key, lambda: joined(kept.end, kept.rest, self._message), message, kept.shape
        )

    def _message(self, digest: str) -> tuple[str, list[bytes]]:
        before, message = self._messages[digest]
        return before, [message]

    def recordings(self) -> Iterator[Recording]:
        """All of them, in the order in which they were made."""
        for key in list(self.kept):
            if (recording := self.recording(key)) is not None:
                yield recording

    def entry(self, key: str) -> Entry:
        """What to write at the end of the file, with what no table at the top has."""
        return self._entry(key, self._ended, self.tables, at_top=False)

    def text(self, header: dict[str, Any]) -> bytes:
        """The whole file, in order."""
        ended: dict[str, str] = {}
        tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES.values()}
        entries = []
        for key, kept in self.kept.items():
            entries.append(self._entry(key, ended, tables, at_top=True))
            ended.setdefault(kept.after, key)
        data = {"version": VERSION, **header, **tables, "recordings": entries}
        text = json.dumps(lined(data), ensure_ascii=False, indent=1)
        return text.encode() + b"\n"

    def _entry(
        self, key: str, ended: dict[str, str], tables: dict[str, dict[str, Any]], at_top: bool
    ) -> Entry:
        kept = self.kept[key]
        request = msgspec.json.decode(b"{" + kept.rest.removeprefix(b"],"))
        entry: Entry = {"key": key, "model": request["model"]}
        if request["options"]:
            entry["options"] = request["options"]
        for field, table in _TABLES.items():
            value = request[field]
            if value:
                entry[field] = name = _named(value)
                if name not in tables[table]:
                    tables[table][name] = value
                    if not at_top:
                        entry[field] = {name: value}
                        self.outdated += 1
        end, messages = kept.end, []
        while end and end not in ended:
            end, message = self._messages[end]
            messages.append(message)
        if end:
            entry["continues"] = ended[end]
        entry["messages"] = [_readable(msgspec.json.decode(text)) for text in reversed(messages)]
        entry["answer"] = msgspec.json.decode(kept.answer)
        if kept.shape:
            entry["shape"] = _wrapped(kept.shape)
        return entry


def to_text(header: dict[str, Any], recordings: Iterable[Recording]) -> bytes:
    """The file; the same recordings always give the same bytes."""
    content = _Content()
    for recording in recordings:
        content.add(recording)
    return content.text(header)


def from_text(text: bytes) -> tuple[dict[str, Any], dict[str, Recording]]:
    """The header and the recordings by key; raises ValueError, KeyError or TypeError."""
    header, content = _parsed(text)
    return header, {recording.key: recording for recording in content.recordings()}


def _parsed(text: bytes) -> tuple[dict[str, Any], _Content]:
    whole = text
    try:
        data = json.loads(text)
    except ValueError:
        whole = _mended(text)
        data = json.loads(whole)
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ValueError(f"its version is not {VERSION}")
    data = unlined(data)
    content = _Content()
    for table in content.tables:
        content.tables[table] = dict(data.get(table, {}))
    for entry in data["recordings"]:
        content.add_entry(entry)
    content.is_cut = whole != text
    if whole.endswith(_ENTRY_END + _END) and list(data)[-1] == "recordings":
        content.end = len(whole) - len(_END)
    header = {k: v for k, v in data.items() if k not in _OWN}
    return header, content


# The beginning of a recording that is added, in which no line begins as one of the file's own.
_CUT = re.compile(rb"(,(\n {0,2}(\{(\n   [^\n]*)*(\n {0,2})?)?)?)?")


def _mended(text: bytes) -> bytes:
    """``text`` without the recording in which it ends, as after a kill; as it is if it does not.

    Only what can be the beginning of one is left out: a conflict of a merge is not.
    """
    before, end, cut = text.rpartition(_ENTRY_END)
    if end and (_CUT.fullmatch(cut) or _END.startswith(cut)):
        return before + end + _END
    return text


def _named(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:12]


def _as_asked(message: Message) -> bytes:
    """An answer as it stands in the request that follows it."""
    return msgspec.json.encode(message_form(message), order="sorted")


def _readable(value: Any) -> Any:
    """With what says what it is before what it holds; the canonical form is sorted by name."""
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = sorted(value, key=lambda name: (name not in _FIRST, name))
    return {name: _readable(value[name]) for name in names}


def _wrapped(shape: str) -> list[str]:
    """A shape in lines that joined give it back."""
    lines = [""]
    for word in shape.split():
        if len(lines[-1]) + len(word) > _WIDTH:
            lines.append("")
        lines[-1] += f"{word} "
    return [*lines[:-1], lines[-1].rstrip()]


# A text of lines, and the dict that only looks like one, which is wrapped once more.


def lined(value: Any) -> Any:
    """``value`` with texts of several lines as lists of lines, for people to read."""
    if isinstance(value, str):
        return {_LINES: value.split("\n")} if "\n" in value else value
    if isinstance(value, dict):
        plain = {key: lined(item) for key, item in value.items()}
        return {_LINES: plain} if set(value) == {_LINES} else plain
    return [lined(item) for item in value] if isinstance(value, list) else value


def unlined(value: Any) -> Any:
    """What :func:`lined` was given."""
    if isinstance(value, list):
        return [unlined(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {_LINES}:
        inside = value[_LINES]
        if isinstance(inside, list):
            return "\n".join(inside)
        return {key: unlined(item) for key, item in inside.items()}
    return {key: unlined(item) for key, item in value.items()}
