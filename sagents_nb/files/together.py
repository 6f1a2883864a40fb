"""The same slow work for many paths, on a few threads at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

# More threads than processors: most of the work is waiting for a disk or a network.
THREADS = 8


def together(function: Callable[[Sequence[str]], T], paths: Sequence[str]) -> list[T]:
    """What ``function`` gives for parts of ``paths``; it must not raise.

    The threads are new ones: those of a shared pool might all be waiting here.
    """
    if len(paths) < THREADS:
        return [function(paths)]
    parts = [paths[first::THREADS] for first in range(THREADS)]
    try:
        with ThreadPoolExecutor(THREADS, "sagents-files") as pool:
            return list(pool.map(function, parts))
    except RuntimeError:  # the process is ending and starts no more threads
        return [function(paths)]
