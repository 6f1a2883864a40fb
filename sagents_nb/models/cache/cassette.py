"""A cassette: recorded answers in one readable file, to lie beside a notebook in a repository.

People review it line by line. A text of several lines is ``{"lines": [...]}``. System prompts
and lists of tools stand once, at the top. A request that goes on from a recorded one
``continues`` it, and shows only the messages that came after its answer.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ... import kinds
from ...errors import ConfigurationError
from ...messages import Message
from .recording import AskOnce, Recording, message_form

SLOW = 0.05  # seconds that writing a file may take without a thought
LATEST = 2.0  # seconds that a recording may wait to be written
PATIENCE = 10.0  # seconds to wait for a process that may have been stopped while it wrote

VERSION = 1
_LINES = "lines"
_WIDTH = 100  # characters of a line of a shape

_FIRST = ("role", "type", "id", "tool_call_id", "name")

Entry = dict[str, Any]
_OWN = frozenset({"version", "systems", "tools", "recordings"})


class Cassette:
    """The recordings of the JSON file ``path``; there need be none yet.

    It is written after each new recording, as a whole and in one step; a large one at the
    latest two seconds after it, or when the process ends. What is recorded anew with the same
    words keeps its text and its place. ``header`` holds what else stands in the
    file. Raises :class:`~sagents_nb.errors.ConfigurationError` for a file that is no cassette.

    Use :meth:`at`: all who record into one file must share one Cassette.
    """

    _open: ClassVar[dict[Path, Cassette]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    @kinds.checked(path=kinds.PATH)
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.ask_once = AskOnce()
        self.header: dict[str, Any] = {}
        self._entries: dict[str, bytes] = {}  # JSON text of Recording: nothing is shared
        self._lock = threading.Lock()
        self._unsaved: dict[str, bytes] = {}
        self._saved: tuple[int, int] | None = None
        self._next = 0.0  # when the file may be written again
        self._later: threading.Timer | None = None
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

    def __repr__(self) -> str:
        return self.path.name

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Recording | None:
        """The recording of that key, or None; what another process wrote is seen."""
        with self._lock:
            self._read()
            text = self._entries.get(key)
        return None if text is None else _decoded(text)

    def put(self, recording: Recording) -> None:
        """Keep it and write the file; raises OSError if that fails."""
        with self._alone():
            self._read()
            if _same(self._entries.get(recording.key), recording):
                return
            text = msgspec.json.encode(recording)
            self._entries[recording.key] = self._unsaved[recording.key] = text
            wait = self._next - time.monotonic()
            if wait <= 0:
                self._write()
            elif self._later is None:
                self._later = threading.Timer(wait, self._finish)
                self._later.daemon = True
                self._later.start()

    def recordings(self) -> Iterator[Recording]:
        """The recordings, in the order in which they were made."""
        with self._lock:
            self._read()
            texts = list(self._entries.values())
        for text in texts:
            yield _decoded(text)

    def keep_of(self, old: Cassette) -> tuple[int, int, int]:
        """After a full recording, look like ``old``: how many are new, changed and gone.

        What says the same as in ``old`` takes its text and its place; the new comes last.
        """
        with self._alone():
            self._read()
            news, before = self._entries, dict(old._entries)
            both = [key for key in before if key in news]
            same = [key for key in both if _same(before[key], _decoded(news[key]))]
            order = [*both, *(key for key in news if key not in before)]
            self._entries = {key: before[key] if key in same else news[key] for key in order}
            self._write()
        return len(news) - len(both), len(both) - len(same), len(before) - len(both)

    def save(self) -> None:
        """Write the file, for a changed ``header``; raises OSError if that fails."""
        with self._alone():
            header = self.header
            self._read()
            self.header = header
            self._write()

    def _finish(self) -> None:
        """Write what is not written yet; where nobody is left who could be told of a failure."""
        with suppress(OSError, ConfigurationError), self._alone():
            self._later = None
            if self._unsaved:
                self._read()  # another process may have written it since
                self._write()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else reads what is there to add to it meanwhile, in whatever process."""
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self.path.parent):
                yield

    def _read(self) -> None:
        stamp = _stamp(self.path)
        if stamp == self._saved:
            return
        if stamp is None:  # somebody removed it, to begin anew
            self._entries, self._saved = dict(self._unsaved), None
            return
        try:
            self.header, entries = from_text(self.path.read_bytes())
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ConfigurationError(
                f"{ascii(self.path.name)[1:-1]} is no cassette that can be read ({error}); restore "
                "it, or remove it and record again with sagents-nb test-notebook --record."
            ) from None
        self._entries = {key: msgspec.json.encode(entry) for key, entry in entries.items()}
        self._entries.update(self._unsaved)
        self._saved = stamp

    def _write(self) -> None:
        began = time.monotonic()
        recordings = [_decoded(text) for text in self._entries.values()]
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.new")
        try:
            with open(beside, "wb") as file:
                file.write(to_text(self.header, recordings))
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        finally:
            with suppress(OSError):
                beside.unlink()
        self._saved, self._unsaved = _stamp(self.path), {}
        # All of it is written each time: a large one is not written for every answer.
        now = time.monotonic()
        took = now - began
        self._next = now + min(10 * took, LATEST) if took > SLOW else 0.0


def _decoded(text: bytes) -> Recording:
    return msgspec.json.decode(text, type=Recording)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder itself is locked, so that no file of ours lies in somebody's repository."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:  # some network disks have no locks
                break
        yield
    finally:
        os.close(held)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def _same(text: bytes | None, recording: Recording) -> bool:
    """Whether it says the same: tokens, times and ids of answers differ each time."""
    if text is None:
        return False
    old, new = _decoded(text).message, recording.message
    return (old.parts, old.stop_reason) == (new.parts, new.stop_reason)


# The file


def to_text(header: dict[str, Any], recordings: Iterable[Recording]) -> bytes:
    """The file; the same recordings always give the same bytes."""
    systems: dict[str, Any] = {}
    tools: dict[str, Any] = {}
    entries: list[Entry] = []
    ended: dict[str, str] = {}  # by digest of a history: the key of the recording that ends so
    for recording in recordings:
        request = msgspec.json.decode(recording.request)
        messages = request["messages"]
        entry: Entry = {"key": recording.key, "model": request["model"]}
        if request["options"]:
            entry["options"] = request["options"]
        if request["system"]:
            entry["system"] = _named(systems, request["system"])
        if request["tools"]:
            entry["tools"] = _named(tools, request["tools"])
        start = _continued(ended, messages)
        if start:
            entry["continues"] = ended[_digest(messages[:start])]
        entry["messages"] = [_readable(message) for message in messages[start:]]
        entry["answer"] = msgspec.json.decode(msgspec.json.encode(recording.message))
        if recording.shape:
            entry["shape"] = _wrapped(recording.shape)
        entries.append(entry)
        ended.setdefault(_digest([*messages, _as_asked(recording.message)]), recording.key)
    data = {"version": VERSION, **header, "systems": systems, "tools": tools}
    text = json.dumps(lined({**data, "recordings": entries}), ensure_ascii=False, indent=1)
    return text.encode() + b"\n"


def from_text(text: bytes) -> tuple[dict[str, Any], dict[str, Recording]]:
    """The header and the recordings by key; raises ValueError, KeyError or TypeError."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ValueError(f"its version is not {VERSION}")
    data = unlined(data)
    histories: dict[str, list[Any]] = {}
    recordings: dict[str, Recording] = {}
    for entry in data["recordings"]:
        messages = [*histories.get(entry.get("continues", ""), ()), *entry["messages"]]
        request = {
            "model": entry["model"],
            "options": entry.get("options", {}),
            "system": data["systems"][entry["system"]] if "system" in entry else "",
            "tools": data["tools"][entry["tools"]] if "tools" in entry else [],
            "messages": messages,
        }
        message = msgspec.convert(entry["answer"], Message)
        key = str(entry["key"])
        shape = "".join(entry.get("shape", ())).strip()
        raw = msgspec.Raw(msgspec.json.encode(request, order="sorted"))
        recordings[key] = Recording(key, raw, message, shape)
        histories[key] = [*messages, _as_asked(message)]
    header = {k: v for k, v in data.items() if k not in _OWN}
    return header, recordings


def _named(table: dict[str, Any], value: Any) -> str:
    name = _digest(value)[:12]
    table[name] = value
    return name


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def _as_asked(message: Message) -> Any:
    """An answer as it stands in the request that follows it."""
    return msgspec.json.decode(msgspec.json.encode(message_form(message), order="sorted"))


def _continued(ended: dict[str, str], messages: list[Any]) -> int:
    """How many of ``messages`` some recording's history already holds."""
    for end in range(len(messages), 0, -1):
        if messages[end - 1].get("role") == "assistant" and _digest(messages[:end]) in ended:
            return end
    return 0


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
