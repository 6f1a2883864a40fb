"""Work for many paths: here if it is quick, on threads if it is waiting."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from sagents_nb.files.loading import THREADS, together
from sagents_nb.runtime.workers import workers
from tests.session.hours import Hours
from tests.talking import PATIENCE


@pytest.fixture
def clock(hours: Hours, monkeypatch: pytest.MonkeyPatch) -> Hours:
    monkeypatch.setattr("sagents_nb.files.loading.time", hours)
    return hours


def test_quick_work_stays_on_its_thread_and_slow_work_is_shared(clock: Hours) -> None:
    two = threading.Barrier(2, timeout=PATIENCE)
    paths = [str(number) for number in range(100)]

    def quick(part: Sequence[str]) -> tuple[set[int], list[str]]:
        return {threading.get_ident()}, list(part)

    def slow(part: Sequence[str]) -> tuple[set[int], list[str]]:
        if threading.current_thread() is threading.main_thread():
            clock.pass_by(0.006 * len(part))
        else:
            two.wait()
        return quick(part)

    results = together(quick, paths)
    assert set.union(*(ids for ids, _ in results)) == {threading.get_ident()}
    assert [path for _, part in results for path in part] == paths
    results = together(slow, paths)
    assert len(set.union(*(ids for ids, _ in results)) - {threading.get_ident()}) > 1
    assert sorted(path for _, part in results for path in part) == sorted(paths)
    assert together(slow, []) == []


def test_where_no_more_threads_are_started_the_work_is_done_here(
    clock: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*args: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(workers, "submit", none)

    def slow(part: Sequence[str]) -> int:
        clock.pass_by(0.006 * len(part))
        return len(part)

    assert sum(together(slow, ["x"] * THREADS)) == THREADS
