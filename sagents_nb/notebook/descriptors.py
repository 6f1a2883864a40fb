"""Taking what is written to the process's standard output, past Python: by C code, by commands."""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any

_WATCHED = (1, 2)
_AT_ONCE = 65_536  # bytes


@contextlib.contextmanager
def taken(write: Callable[[str], Any]) -> Iterator[None]:
    """Have ``write`` called, on another thread, with what goes to descriptors 1 and 2 meanwhile.

    A kernel of ipykernel reads these and puts the text below the cell, as it is. All that was
    written has been taken at the end; what a process that was left behind writes later is dropped.
    """
    reading, writing = os.pipe()
    mark = secrets.token_bytes(16)  # what stands before it in the pipe was written before the end
    seen = threading.Event()
    thread = threading.Thread(
        target=_read, args=(reading, mark, seen, write), name="sagents-descriptors", daemon=True
    )
    thread.start()
    _flush()
    before = {number: os.dup(number) for number in _WATCHED}
    try:
        for number in _WATCHED:
            os.dup2(writing, number)
        yield
    finally:
        _flush()
        for number, copy in before.items():
            os.dup2(copy, number)
            os.close(copy)
        os.write(writing, mark)
        os.close(writing)
        seen.wait()


def _read(reading: int, mark: bytes, seen: threading.Event, write: Callable[[str], Any]) -> None:
    """Read until nobody can write any more, and pass on what comes before the mark."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    held = b""  # which may begin the mark
    try:
        while data := os.read(reading, _AT_ONCE):
            if seen.is_set():
                continue
            before, found, _ = (held + data).partition(mark)
            held = b"" if found else before[len(before) - len(mark) + 1 :]
            if text := decoder.decode(before[: len(before) - len(held)], final=bool(found)):
                write(text)
            if found:
                seen.set()
    finally:
        seen.set()  # whatever happened, nobody waits for ever
        os.close(reading)


def _flush() -> None:
    """Have C's own buffers written out."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
