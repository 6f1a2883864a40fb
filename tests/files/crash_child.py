"""A process that forks savers, kills each at a random time, and looks at what it left.

Usage: crash_child.py PLACE ROUNDS SEED; prints a report as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from sagents_nb.files.entry import new_file
from sagents_nb.files.storages.disk import DiskStorage

SCOPE = "user:1"
NAMES = ["a.md", "b.bin", "d/c.md", "d/e/f.md"]


def content(name: str, version: int) -> str | bytes:
    """A content that tells of which version it is, and whether it is whole."""
    body = f"{name} {version} " + "x" * (version * 7919 % 60_000)
    text = f"{hashlib.sha256(body.encode()).hexdigest()} {body}"
    return text.encode() if name.endswith(".bin") else text


def version_of(name: str, found: str | bytes | None) -> int:
    """The version that a content is; -1 if it is none."""
    text = found.decode() if isinstance(found, bytes) else str(found)
    digest, _, body = text.partition(" ")
    if hashlib.sha256(body.encode()).hexdigest() != digest or not body.startswith(f"{name} "):
        return -1
    return int(body.split(" ")[1])


def save_on_and_on(root: Path, first: int, pipe: int) -> None:
    """Save version after version, and say of each that it is safe."""
    disk = DiskStorage(root)
    for version in range(first, first + 10_000):
        for name in NAMES:
            entry = new_file(name, content(name, version), title=f"v{version}")
            disk.save(SCOPE, entry)
            os.write(pipe, f"{name} {version}\n".encode())
        disk.save(SCOPE, new_file("old.md", "moved"))
        disk.move(SCOPE, "old.md", "new.md")
        disk.delete(SCOPE, "new.md")


def main() -> None:
    place, rounds, chance = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    root = place / "root"
    safe = dict.fromkeys(NAMES, 0)
    problems: list[str] = []
    cut_off = saved = 0
    for number in range(rounds):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                save_on_and_on(root, max(safe.values()) + 1, writing)
            finally:
                os._exit(1)
        os.close(writing)
        if chance.random() < 0.8:  # else it may die before its first save
            select.select([reading], [], [], 10)
        time.sleep(chance.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(reading) as said:
            for line in said:
                name, version = line.split()
                safe[name] = int(version)
                saved += 1
        cut_off += bool(list(root.glob(".sagents/files/tmp/*")))
        problems += [f"round {number}: {problem}" for problem in look(root, safe)]
    print(json.dumps({"problems": problems, "cut_off": cut_off, "saved": saved}))


def look(root: Path, safe: dict[str, int]) -> list[str]:
    """What is not as it has to be; ``safe`` is then what is there."""
    problems = []
    disk = DiskStorage(root)
    listed = {entry.path: entry for entry in disk.list(SCOPE) if not entry.is_directory}
    if left := list(root.glob(".sagents/files/tmp/*")):
        problems.append(f"left behind: {left}")
    if unknown := set(listed) - {*NAMES, "old.md", "new.md"}:
        problems.append(f"unknown files: {unknown}")
    for name in NAMES:
        if name not in listed:
            if safe[name]:
                problems.append(f"{name} is lost")
            continue
        loaded = disk.load(SCOPE, name)
        version = version_of(name, loaded.content)
        if version < safe[name]:
            problems.append(f"{name}: {version} is there, {safe[name]} was safe")
        if isinstance(loaded.content, bytes) is not name.endswith(".bin"):
            problems.append(f"{name} has become {type(loaded.content).__name__}")
        if loaded.title != f"v{version}":
            problems.append(f"{name}: content {version} with the title {loaded.title}")
        if listed[name].sha256 != loaded.sha256:
            problems.append(f"{name}: another digest is listed")
        safe[name] = max(safe[name], version)
    return problems


if __name__ == "__main__":
    main()
