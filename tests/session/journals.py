"""A journal in memory, as exact as one in a database, that can fail where a test wants it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from sagents_nb.errors import StoreError
from sagents_nb.runtime.thread import runtime
from sagents_nb.serialization import unescaped
from sagents_nb.session.journal import SessionJournal
from sagents_nb.store.entries import Entry, encoded
from sagents_nb.store.folding import Folded, JournalRow, fold


class MemoryJournal:
    """Rows as JSON text, by number. ``fails`` is asked before each append."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[str, str, bool]] = {}
        self.last = 0
        self.batches: list[list[str]] = []  # the kinds of each append that was tried
        self.fails: Callable[[], bool] = lambda: False

    def append(self, entries: list[Entry], along: Any = None) -> Future[int]:
        done: Future[int] = Future()
        self.batches.append([entry.kind for entry in entries])
        if self.fails():
            done.set_exception(StoreError("The store cannot be used: the disk is full; wait."))
            return done
        for entry in entries:
            self.last += 1
            self.rows[self.last] = (entry.kind, *encoded(entry.data))
        done.set_result(self.last)
        return done

    def compact(self, superseded: Iterable[int]) -> Future[None]:
        done: Future[None] = Future()
        for seq in superseded:
            del self.rows[seq]
        done.set_result(None)
        return done

    def release(self) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def read(self) -> list[JournalRow]:
        rows = []
        for seq, (kind, text, escaped) in self.rows.items():
            data: Any = json.loads(text)
            rows.append((seq, kind, unescaped(data) if escaped else data))
        return rows

    def folded(self) -> Folded:
        return fold(self.read())


def on_the_loop(function: Callable[..., Any], *args: Any) -> Any:
    """What a function returns that must run on the runtime loop."""
    return runtime.call(function, *args)


def recorder_on(journal: MemoryJournal) -> SessionJournal:
    """A recorder that has begun."""
    recorder = SessionJournal(journal, {})
    on_the_loop(recorder.begin)
    return recorder
