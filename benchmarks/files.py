"""Files: how long the virtual filesystem takes, beside plain pathlib and re.

10,000 files of 2 kB in 100 directories on a disk. Every figure stands beside the same work done
by hand in the same run; ours may take three times as long.
"""

from __future__ import annotations

import gc
import itertools
import random
import re
import resource
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sagents_nb.context import RunContext, ToolContext
from sagents_nb.events import Emitter
from sagents_nb.files import FileSystem, Mount
from sagents_nb.files.storages.disk import DiskStorage
from sagents_nb.middleware.filesystem import FileSystem as FileTools
from sagents_nb.state import State

FILES = 10_000
SIZE = 2_000
ROUNDS = 9
PATTERN = r"needle\d+"
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "value", "return", "x1", "=", "needle")


def make(root: Path) -> None:
    """The files: lines of a few words, of which one file in ten has a number after a needle."""
    chance = random.Random(1)
    for number in range(FILES):
        lines = []
        size = 0
        while size < SIZE:
            lines.append(" ".join(chance.choices(WORDS, k=8)))
            size += len(lines[-1]) + 1
        if number % 1000 == 7:
            lines[3] += " needle42"
        path = root / f"{number % 100:02}" / f"{number:05}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines)[:SIZE])


def taken(work: Callable[..., Any], *prepared: Any) -> float:
    """Seconds of one call."""
    gc.collect()
    began = time.perf_counter()
    work(*prepared)
    return time.perf_counter() - began


def opened(root: Path) -> FileSystem:
    """A filesystem over the directory."""
    mount = Mount("data", DiskStorage(root, fsync=False))
    return FileSystem(("bench", 1), [mount], max_total_size=10**10)


# Made once, as for an agent.
SEARCH = next(tool for tool in FileTools().tools() if tool.name == "search_text")


def search(fs: FileSystem) -> str:
    """What the tool search_text says."""
    run = RunContext(emitter=Emitter(lambda event: None), files=fs)
    context = ToolContext(run, State(), "c1", lambda text, fraction: None)
    return str(SEARCH(ctx=context, pattern=PATTERN).content)


def listed_by_hand(root: Path) -> list[tuple[str, int, float]]:
    """What an index needs: name, size and time of all files."""
    found = []
    for path in root.rglob("*"):
        status = path.stat()
        found.append((str(path), status.st_size, status.st_mtime))
    return found


def searched_by_hand(root: Path) -> list[tuple[str, int, str]]:
    """Every line of every file."""
    expression = re.compile(PATTERN)
    found = []
    for path in sorted(root.rglob("*.md")):
        for number, line in enumerate(path.read_text().split("\n"), start=1):
            if expression.search(line):
                found.append((str(path), number, line))
    return found


def searched_in_memory(texts: dict[str, str]) -> list[tuple[str, int, str]]:
    """The same for texts that were read before."""
    expression = re.compile(PATTERN)
    return [
        (path, number, line)
        for path, text in texts.items()
        for number, line in enumerate(text.split("\n"), start=1)
        if expression.search(line)
    ]


def replaced_by_hand(directory: Path, name: str, text: str) -> None:
    """A file that is there as a whole or not at all."""
    temporary = directory / "temporary"
    temporary.write_text(text)
    temporary.replace(directory / name)


def shown(number: float) -> str:
    """Three digits at least."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def row(
    what: str,
    unit: str,
    goal: float | None,
    ours: Callable[..., Any],
    by_hand: Callable[[], Any],
    *,
    prepare: Callable[[], tuple[Any, ...]] = tuple,
    times: int = 1,
) -> None:
    """One line of the table: the quickest of some rounds, in which the two take turns.

    ``prepare`` makes, outside of the time, what ours is given; each does its work so many
    ``times`` over.
    """
    pairs = [(taken(ours, *prepare()), taken(by_hand)) for _ in range(ROUNDS)]
    mine, theirs = (min(column) / times for column in zip(*pairs, strict=True))
    scale = {"s": 1.0, "ms": 1e3, "µs": 1e6}[unit]
    told = "" if goal is None else f"< {goal:g} {unit}"
    met = "" if goal is None else ("met" if mine * scale < goal else "MISSED")
    print(
        f"| {what} | {shown(mine * scale)} {unit} | {shown(theirs * scale)} {unit} | "
        f"{mine / theirs:.2f} | {told} {met} |",
        flush=True,
    )


def read_all(root: Path) -> None:
    """Open the directory and go through all contents."""
    for entry in opened(root).contents():
        assert entry.loaded


def compare(place: Path) -> None:
    """The table of times."""
    print("| | ours | by hand | ratio | goal |\n|---|---:|---:|---:|---|")
    root = place / "files"
    root.mkdir()
    make(root)
    fs = opened(root)
    assert len(fs.list("/data/*/*7.md")) == FILES // 10
    hits = len(searched_by_hand(root))
    assert search(fs).count("needle42") == hits == FILES // 1000
    row(
        f"open {FILES:,} files (the index)",
        "s",
        1.0,
        partial(opened, root),
        partial(listed_by_hand, root),
    )
    row(
        "ls of a glob",
        "ms",
        50,
        partial(fs.entries, "/data/*/*7.md"),
        lambda: [(path, path.stat()) for path in root.glob("*/*7.md")],
    )
    row(
        "ls of one folder among 10,000 files",
        "ms",
        None,
        partial(fs.entries, "/data/07/*.md"),
        lambda: [(path, path.stat()) for path in root.glob("07/*.md")],
    )
    row(
        "search_text over 20 MB, none read before",
        "s",
        1.5,
        search,
        partial(searched_by_hand, root),
        prepare=lambda: (opened(root),),
    )
    texts = {str(path): path.read_text() for path in sorted(root.rglob("*.md"))}
    row(
        "search_text over 20 MB in memory",
        "s",
        1.5,
        partial(search, fs),
        partial(searched_in_memory, texts),
    )
    row(
        "open and read all",
        "s",
        None,
        partial(read_all, root),
        lambda: [(path, path.read_text()) for path in root.rglob("*.md")],
    )
    text = "x" * SIZE
    memory = FileSystem()
    file = place / "one.md"

    def write_and_read() -> None:
        for _ in range(1000):
            memory.write("/notes/a.md", text)
            memory.read("/notes/a.md")

    def by_pathlib() -> None:
        for _ in range(1000):
            file.write_text(text)
            file.read_text()

    row("write and read one file in memory", "µs", 200, write_and_read, by_pathlib, times=1000)
    mounted = FileSystem(("bench", 2), [Mount("m", DiskStorage(place / "new", fsync=False))])
    (place / "hand").mkdir()
    count = itertools.count()

    def write_new() -> None:
        for _ in range(200):
            mounted.write(f"/m/{next(count)}.md", text)

    def write_new_by_hand() -> None:
        for _ in range(200):
            replaced_by_hand(place / "hand", f"{next(count)}.md", text)

    row("write a new file, without fsync", "µs", None, write_new, write_new_by_hand, times=200)


def memory() -> None:
    """What a gigabyte costs that is stored and not read: files with holes."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        for number in range(1000):
            with (root / f"{number}.bin").open("wb") as file:
                file.truncate(1_000_000)
        opened(root)
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tracemalloc.start()
        fs = opened(root)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident
        size = fs.stats().size
        print(
            f"\n{size / 1e9:.1f} GB in {len(fs.list()):,} files, opened: {held / 1e6:.2f} MB of "
            f"memory; the process has grown by {grown / 1e3:.1f} MB."
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        compare(Path(directory))
    memory()
