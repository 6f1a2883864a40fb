"""What a power cut may leave of the files of a process, whose system calls were recorded.

A disk may have lost any of what was written to a file since its last sync, be it sectors of one
write, and any name that was made or taken away since the last sync of its directory.
"""

from __future__ import annotations

import dataclasses
import os
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

CALLS = (
    "open,openat,creat,mkdir,mkdirat,write,writev,pwrite64,pwritev,ftruncate,truncate,fallocate,"
    "copy_file_range,fsync,fdatasync,link,linkat,rename,renameat,renameat2,unlink,unlinkat,rmdir"
)

Files = dict[Path, bytes | None]
"""What is below a directory: the bytes of each file, None for a directory."""


class Call(NamedTuple):
    """A system call that did something: what it was given, as text, and what it gave back."""

    name: str
    arguments: str
    result: int

    def texts(self) -> list[bytes]:
        """The texts among the arguments, as bytes."""
        return [_bytes(text) for text in re.findall(r'"((?:\\x..)*)"', self.arguments)]

    def numbers(self) -> list[int]:
        """The numbers behind the file and the text."""
        return [int(number) for number in re.findall(r", (\d+)(?=,|$)", self.arguments)]

    def file(self) -> Path:
        """Which file its first argument, a descriptor, is of."""
        found = re.match(r"\d+<((?:\\x..)*)>", self.arguments)
        return Path(os.fsdecode(_bytes(found[1]))) if found else Path()


def _bytes(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


def record(command: Sequence[str], root: Path, log: Path, cwd: Path) -> Iterator[Call]:
    """Run it to its end under strace: what it said, and did below ``root``, in that order."""
    tracer = [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-y",
        "-qq",
        "-xx",
        "-s",
        "100000000",
        "-e",
        "signal=none",
    ]
    done = subprocess.run(
        [*tracer, "-e", f"trace={CALLS}", "-o", str(log), *command],
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    begun: dict[str, str] = {}
    below = "".join(f"\\x{byte:02x}" for byte in os.fsencode(root))
    with log.open() as lines:
        for line in lines:
            process, text = line.split(maxsplit=1)
            if text.endswith("<unfinished ...>\n"):
                begun[process] = text.removesuffix("<unfinished ...>\n")
                continue
            if resumed := re.match(r"<\.\.\. \w+ resumed>", text):
                text = begun.pop(process) + text[resumed.end() :]
            called = re.match(r"(\w+)\((.*)\) += (\d+)", text)  # the others failed
            if called and (below in called[2] or is_said(called[1], called[2])):
                yield Call(called[1], called[2], int(called[3]))


def is_said(name: str, arguments: str) -> bool:
    """Whether it is written to standard output."""
    return name == "write" and arguments.startswith("1<")


class Write(NamedTuple):
    """Bytes that were written at a place."""

    at: int
    data: bytes


Change = Write | int
"""What was done to a file: a write, or the size to which it was cut."""


@dataclasses.dataclass
class File:
    """What the disk has for sure, and what was done since."""

    content: bytes = b""
    changes: list[Change] = dataclasses.field(default_factory=list)

    def sync(self) -> None:
        """From now on the disk has all of it."""
        content = bytearray(self.content)
        for change in self.changes:
            _apply(content, change, b"")
        self.content, self.changes = bytes(content), []

    def after_power_cut(self, chance: random.Random) -> bytes:
        """One of the contents that the disk may have."""
        content = bytearray(self.content)
        likely = chance.choice([0, 0.1, 0.5, 0.9, 1])
        sector = chance.choice([512, 4096])
        is_torn = chance.random() < 0.5
        filler = chance.choice([b"", chance.randbytes(4096)])
        for change in self.changes:
            if isinstance(change, int) or not is_torn:
                if chance.random() < likely:
                    _apply(content, change, filler)
                continue
            for part in _sectors(change, sector):
                if chance.random() < likely:
                    _apply(content, part, filler)
        return bytes(content)


def _sectors(write: Write, size: int) -> Iterator[Write]:
    at, end = write.at, write.at + len(write.data)
    while at < end:
        until = min(end, (at // size + 1) * size)
        yield Write(at, write.data[at - write.at : until - write.at])
        at = until


def _apply(content: bytearray, change: Change, filler: bytes) -> None:
    """``filler`` is what is found where nothing was written."""
    end = change if isinstance(change, int) else change.at
    if end > len(content):
        missing = end - len(content)
        content += (filler * (missing // len(filler) + 1))[:missing] if filler else bytes(missing)
    if isinstance(change, int):
        del content[change:]
    else:
        content[end : end + len(change.data)] = change.data


class Disk:
    """The files below a directory, which a process changes."""

    def __init__(self, root: Path, files: Files) -> None:
        self._root = root
        # What a name may be for, from what the disk has for sure to what it is now.
        self._names: dict[Path, list[File | str | None]] = {
            root / path: [_DIRECTORY if content is None else File(content)]
            for path, content in files.items()
        }

    def do(self, call: Call) -> None:
        """What a call does to the disk; nothing where it is about other files."""
        texts = call.texts()
        if call.name in ("write", "pwrite64", "ftruncate", "fsync", "fdatasync"):
            path = call.file()
        elif call.name in ("openat", "mkdir", "unlink"):
            path = Path(os.fsdecode(texts[0]))
        else:
            assert str(self._root) not in str(texts), f"{call.name} cannot be replayed"
            return
        if path != self._root and self._root not in path.parents:
            return
        found = self._now(path)
        if call.name == "openat":
            if "O_CREAT" in call.arguments and found is None:
                self._name(path, File())
            assert "O_TRUNC" not in call.arguments
        elif call.name == "mkdir":
            self._name(path, _DIRECTORY)
        elif call.name == "unlink":
            self._name(path, None)
        elif call.name in ("fsync", "fdatasync"):
            if isinstance(found, File):
                found.sync()
            else:
                self._sync_names(path)
        else:
            assert isinstance(found, File), f"{call.name} of {path}, which is no file"
            if call.name == "ftruncate":
                found.changes.append(call.numbers()[0])
            else:
                assert call.name == "pwrite64", f"{call.name} cannot be replayed"
                found.changes.append(Write(call.numbers()[-1], texts[0][: call.result]))

    def _now(self, path: Path) -> File | str | None:
        return self._names.get(path, [None])[-1]

    def _name(self, path: Path, what: File | str | None) -> None:
        self._names.setdefault(path, [None]).append(what)

    def _sync_names(self, directory: Path) -> None:
        for path, history in self._names.items():
            if path.parent == directory:
                del history[:-1]

    def after_power_cut(self, chance: random.Random) -> Files:
        """One of the states in which the disk may be."""
        likely = chance.choice([0, 0.5, 1])
        left: Files = {}
        for path, history in self._names.items():  # a directory comes before what is in it
            found = history[-1] if chance.random() < likely else chance.choice(history)
            if found is None or (path.parent != self._root and path.parent not in left):
                continue
            if not isinstance(found, File):
                left[path] = None
            elif path.name.endswith("-shm"):  # memory of the processes, of which nothing counts
                left[path] = chance.randbytes(len(found.after_power_cut(chance)))
            else:
                left[path] = found.after_power_cut(chance)
        return {path.relative_to(self._root): content for path, content in left.items()}


_DIRECTORY = "directory"


def write(files: Files, root: Path) -> None:
    """Make these files below a directory."""
    for path, content in files.items():
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)
