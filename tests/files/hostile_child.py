"""A process of its own that does everything to hostile paths and reports what it touched.

An audit hook cannot be removed again, hence the process. Every path that the operating system is
given has to be a single name relative to a directory below the root, or the root itself, and
every file is opened without following links.

Usage: hostile_child.py PLACE (paths | links)
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from sagents_nb.files import FileError, FileSystem, Mount
from sagents_nb.files.entry import guessed_type, new_directory, new_file
from sagents_nb.files.storages.disk import DiskStorage
from tests.files import hostile

SCOPE = "user:1"
# Without arguments when it is only looked at, for doctests.
place, what = (Path(sys.argv[1]).resolve(), sys.argv[2]) if __name__ == "__main__" else (Path(), "")
root = place / "root"
touched: list[str] = []
seen: dict[str, int] = {}
watching = False

# event → (positions of paths, positions of their directories' descriptors)
EVENTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "os.mkdir": ((0,), (2,)),
    "os.remove": ((0,), (1,)),
    "os.rmdir": ((0,), (1,)),
    "os.rename": ((0, 1), (2, 3)),
    "os.link": ((0, 1), (2, 3)),
    "os.symlink": ((0, 1), (2, 2)),
    "os.chmod": ((0,), (2,)),
    "os.utime": ((0,), (3,)),
    "os.chown": ((0,), (3,)),
    "os.truncate": ((0,), ()),
    "os.listdir": ((0,), ()),
    "os.scandir": ((0,), ()),
    "os.chdir": ((0,), ()),
}


def inside(descriptor: int) -> bool:
    where = os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)")
    return where == str(root) or where.startswith(f"{root}/")


def watch(event: str, args: tuple[Any, ...]) -> None:
    global watching
    if not watching or not (event == "open" or event.startswith(("os.", "shutil."))):
        return
    watching = False  # what the hook does itself is not looked at
    try:
        seen[event] = seen.get(event, 0) + 1
        problem = judged(event, args)
    finally:
        watching = True
    if problem:
        touched.append(f"{problem}: {event} {args!r:.300}")


def judged(event: str, args: tuple[Any, ...]) -> str:
    if event == "open":
        path, mode, flags = args
        if isinstance(path, int):
            return "" if inside(path) else "a descriptor of elsewhere"
        if mode is not None:
            return "opened by path"
        if path == str(root):
            return ""
        return "" if name_only(path) and flags & os.O_NOFOLLOW else "not confined"
    if event not in EVENTS:
        return "unexpected"
    positions, directories = EVENTS[event]
    for number, position in enumerate(positions):
        path = args[position]
        if isinstance(path, int):
            if not inside(path):
                return "a descriptor of elsewhere"
        elif event == "os.mkdir" and path == str(root):
            continue
        elif not name_only(path):
            return "not a single name"
        elif not inside(args[directories[number]]):
            return "in a directory of elsewhere"
    return ""


def name_only(path: Any) -> bool:
    return isinstance(path, str) and "/" not in path and path not in ("", ".", "..")


def operations(fs: FileSystem, disk: DiskStorage, path: str) -> list[Any]:
    virtual = path if path.startswith("/") else f"/m/{path}"
    return [
        lambda: fs.read(virtual).content,
        lambda: fs.write(virtual, "new"),
        lambda: fs.write(path, "new"),
        lambda: fs.edit(virtual, lambda entry: "edited"),
        lambda: fs.mkdir(f"{virtual}/made"),
        lambda: fs.move(virtual, "/m/moved"),
        lambda: fs.move("/m/good.md", virtual),
        lambda: fs.update_entry(virtual, title="new"),
        lambda: fs.exists(virtual),
        lambda: fs.delete(virtual),
        lambda: fs.flush(),
        lambda: disk.load(SCOPE, path).content,
        lambda: disk.load(SCOPE, f"{path}/secret.txt").content,
        lambda: disk.save(SCOPE, new_file(path, "new")),
        lambda: disk.save(SCOPE, new_file(f"{path}/new.md", "new")),
        lambda: disk.save(SCOPE, new_directory(path)),
        lambda: disk.save_metadata(SCOPE, new_file(path, "new", title="new")),
        lambda: disk.move(SCOPE, path, "moved.md"),
        lambda: disk.move(SCOPE, "good.md", path),
        lambda: disk.delete(SCOPE, path),
        lambda: disk.delete(SCOPE, f"{path}/secret.txt"),
    ]


def warm_up() -> None:
    """Have the modules imported that are imported when they are needed."""
    other = place / "other"
    disk = DiskStorage(other)
    fs = FileSystem(("user", 2), [Mount("m", disk)])
    for operation in operations(fs, disk, "a.bin"):
        with contextlib.suppress(FileError, FileNotFoundError):
            operation()
    guessed_type("a.bin")
    fs.entries("/**/*.bin")
    fs.close()


def main() -> None:
    global watching
    outside = hostile.make_outside(place)
    if what == "links":
        found = hostile.make_links(root, outside)
        found += [f"{name}/secret.txt" for name in found] + [f"{name}/new" for name in found]
    else:
        found = hostile.paths(str(outside))
    warm_up()
    sys.addaudithook(watch)
    elsewhere = [outside, place / "root2", place / "secret.txt"]
    before = hostile.state(*elsewhere)
    links = {n: os.lstat(root / n) for n in found if os.path.lexists(root / n)}
    failures: dict[str, int] = {}
    leaks, done = [], 0
    watching = True
    disk = DiskStorage(root, fsync=False)
    fs = FileSystem(("user", 1), [Mount("m", disk, debounce=0)])
    listed = [entry.path for entry in disk.list(SCOPE)]
    disk.save(SCOPE, new_file("good.md", "good"))
    for number, path in enumerate(found):
        if number % (10 if what == "links" else 200) == 0:
            fs.reset()  # what could not be saved waits no more
        for operation in operations(fs, disk, path):
            try:
                if "SECRET" in str(operation()):
                    leaks.append(path)
            except Exception as error:
                failures[type(error).__name__] = failures.get(type(error).__name__, 0) + 1
            done += 1
        if number % 20 == 0:
            with contextlib.suppress(FileError):
                fs.entries(f"/m/{path}")
    list(disk.list(SCOPE))
    fs.reset()  # nothing waits any more
    fs.close()
    watching = False
    after = {n: os.lstat(root / n) for n in links if os.path.lexists(root / n)}
    print(
        json.dumps(
            {
                "paths": len(found),
                "operations": done,
                "touched": touched[:20],
                "leaks": leaks,
                "unchanged": hostile.state(*elsewhere) == before,
                "failures": failures,
                "listed": listed,
                "links_stay": [n for n in links if n not in after or after[n][:6] != links[n][:6]],
                "seen": seen,
            }
        )
    )


if __name__ == "__main__":
    main()
