"""A journal beside a list, over all that can happen to it."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sagents_nb.errors import StaleOwner, StoreError
from sagents_nb.store.database.thread import Database
from sagents_nb.store.entries import Entry
from sagents_nb.store.journal import Journal
from tests.store.database.test_thread import hold
from tests.store.journals import begin, note
from tests.talking import PATIENCE


class Journals(RuleBasedStateMachine):
    """A journal beside a list: whatever is done to it, what was acknowledged is what is kept."""

    def __init__(self) -> None:
        super().__init__()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a disk would be slow
        self.place = tempfile.TemporaryDirectory(dir=memory)
        self.url = f"sqlite:///{self.place.name}/store.db"
        self.database = Database(self.url)
        begin(self.database, "c")
        self.journal = Journal.open(self.database, "c")[0]
        self.stale: list[Journal] = []
        self.model: list[tuple[int, Any]] = []
        self.next = 0

    def teardown(self) -> None:
        self.database.close()
        self.place.cleanup()

    def notes(self, count: int) -> list[Entry]:
        self.next += count
        return [note(n) for n in range(self.next - count, self.next)]

    @rule(sizes=st.lists(st.integers(0, 3), max_size=4))
    def append(self, sizes: list[int]) -> None:
        batches = [self.notes(size) for size in sizes]
        futures = [self.journal.append(batch) for batch in batches]
        for batch, future in zip(batches, futures, strict=True):
            first = future.result(PATIENCE) - len(batch) + 1
            self.model += [(first + n, entry.data["says"]) for n, entry in enumerate(batch)]

    @rule(more=st.integers(0, 2))
    def append_to_a_full_disk(self, more: int) -> None:
        self.database.run(lambda c: c.exec_driver_sql("PRAGMA max_page_count=1").scalar())
        go_on, _ = hold(self.database)  # what is appended once the first is told is written
        futures = [self.journal.append([note("x" * 50_000)])]
        futures += [self.journal.append([note("behind")]) for _ in range(more)]
        go_on.set()
        for future in futures:
            assert isinstance(future.exception(PATIENCE), StoreError)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        gone = data.draw(st.sets(st.sampled_from([seq for seq, _ in self.model])))
        self.journal.compact(gone).result(PATIENCE)
        self.model = [row for row in self.model if row[0] not in gone]

    def reopen(self, take_over: bool) -> None:
        epoch = self.journal.epoch
        self.journal, entries, problems = Journal.open(self.database, "c", take_over=take_over)
        assert self.journal.epoch > epoch
        assert not problems
        assert [(entry.seq, entry.data["says"]) for entry in entries] == self.model

    @rule()
    def take_over(self) -> None:
        self.stale.append(self.journal)
        self.reopen(take_over=True)

    @rule()
    def release(self) -> None:
        self.stale.append(self.journal)
        self.journal.release().result(PATIENCE)
        self.reopen(take_over=False)

    @rule()
    def begin_anew(self) -> None:
        self.database.close()
        self.stale.clear()
        self.database = Database(self.url)
        self.reopen(take_over=False)

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def be_a_zombie(self, data: st.DataObject) -> None:
        zombie = data.draw(st.sampled_from(self.stale))
        for future in (zombie.append([note("zombie")]), zombie.compact([1, 2, 3])):
            assert isinstance(future.exception(PATIENCE), StaleOwner)
        zombie.release().result(PATIENCE)

    @invariant()
    def numbers_grow(self) -> None:
        seqs = [seq for seq, _ in self.model]
        assert seqs == sorted(set(seqs))
        assert self.journal.last_seq >= max(seqs, default=0)


TestJournals = Journals.TestCase
TestJournals.settings = settings(max_examples=25, stateful_step_count=20)


@pytest.mark.soak
def test_many_more_lives_of_a_journal() -> None:
    run_state_machine_as_test(
        Journals, settings=settings(max_examples=1000, stateful_step_count=50)
    )
