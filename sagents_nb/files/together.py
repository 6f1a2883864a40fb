"""The same slow work for many paths, on a few threads at once if it is waiting that takes long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

# More threads than processors, since what they do is waiting for a network or for a disk.
THREADS = 8
# Seconds for one path. What is quicker is work of ours, which threads would only hold up.
SLOW = 0.005
PART = 16
LOOKS = 3


def together(function: Callable[[Sequence[str]], T], paths: Sequence[str]) -> list[T]:
    """What ``function`` gives for parts of ``paths``; it must not raise.

    The threads are new ones: those of a shared pool might all be waiting here.
    """
    results: list[T] = []
    times: list[float] = []
    done = 0
    while done < len(paths):
        part = paths[done : done + (PART if len(times) >= LOOKS else 1)]
        began = time.monotonic()
        results.append(function(part))
        done += len(part)
        times.append((time.monotonic() - began) / len(part))
        # One long time may be anything; several in a row are how it is here.
        if len(times) >= LOOKS and min(times[-LOOKS:]) > SLOW and len(paths) - done > 1:
            return results + _in_threads(function, paths[done:])
    return results


def _in_threads(function: Callable[[Sequence[str]], T], paths: Sequence[str]) -> list[T]:
    parts = [part for first in range(THREADS) if (part := paths[first::THREADS])]
    try:
        with ThreadPoolExecutor(len(parts), "sagents-files") as pool:
            return list(pool.map(function, parts))
    except RuntimeError:  # the process is ending and starts no more threads
        return [function(paths)]
