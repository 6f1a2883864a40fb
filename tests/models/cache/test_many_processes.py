"""Many processes share a cache while some of them are killed: nobody reads a wrong answer."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import diskcache
import pytest

from sagents_nb.models.cache import ResponseCache
from sagents_nb.models.cache.disk import StrictDisk
from tests.models.cache.asking import key, recording
from tests.talking import PATIENCE

THREADS = 4
QUESTIONS = 40

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")


def answer(number: int) -> str:
    """The one answer to that question: long, so that half of one would show."""
    return f"answer {number} " * (1 + number * 40)


def _work(folder: str, seed: int, operations: int) -> None:
    cache = ResponseCache(folder)
    problems: list[str] = []
    done = [0] * THREADS

    def one(thread: int) -> None:
        rng = random.Random(seed * 100 + thread)
        try:
            for _ in range(operations):
                number = rng.randrange(QUESTIONS)
                if rng.random() < 0.3:
                    cache.put(recording(str(number), answer(number)))
                else:
                    found = cache.get(key(str(number)).key)
                    if found is not None and found.message.text != answer(number):
                        problems.append(f"question {number}: {found.message.text[:80]!r}")
                done[thread] += 1
        except BaseException as error:
            problems.append(repr(error))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = {"done": sum(done), "problems": problems, "hits": cache.stats()["hits"]}
    path = Path(f"{folder}-report-{os.getpid()}")
    path.with_suffix(".new").write_text(json.dumps(report))
    path.with_suffix(".new").rename(path)  # whole or not at all, whoever is killed


def _campaign(folder: Path, processes: int, operations: int, kills: int) -> None:
    """``processes`` that are replaced when they are killed, one every 200 ms."""
    spawn = multiprocessing.get_context("spawn")
    rng = random.Random(7)
    seeds = iter(range(10_000))

    def started() -> Any:
        process = spawn.Process(target=_work, args=(str(folder), next(seeds), operations))
        process.start()
        return process

    def report(process: Any) -> Path:
        return Path(f"{folder}-report-{process.pid}")

    ResponseCache(folder).put(recording())
    alive = [started() for _ in range(processes)]
    killed = 0
    while killed < kills or not all(report(process).exists() for process in alive):
        time.sleep(0.2)
        working = [process for process in alive if not report(process).exists()]
        if killed < kills and not working:  # a fast machine: there is nobody left to kill
            alive.append(started())
        elif killed < kills:
            victim = rng.choice(working)
            victim.kill()
            victim.join()
            alive[alive.index(victim)] = started()
            killed += 1
    for process in alive:
        process.join(PATIENCE)
        assert process.exitcode == 0
        said = json.loads(report(process).read_text())
        assert said["problems"] == []
        assert said["done"] == THREADS * operations
        assert said["hits"] > 0
    assert killed == kills
    last = diskcache.Cache(str(folder), disk=StrictDisk)
    assert last.check() == []


def test_kills_leave_no_wrong_answer(tmp_path: Path) -> None:
    _campaign(tmp_path / "cache", processes=3, operations=150, kills=4)


@pytest.mark.soak
def test_many_kills_leave_no_wrong_answer(tmp_path: Path) -> None:
    _campaign(tmp_path / "cache", processes=8, operations=2_000, kills=150)
