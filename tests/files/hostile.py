"""Paths, links and other things that want out of a directory.

The paths are of the kinds that the OWASP fuzzing database, the test suites of Werkzeug, tarfile and
other file tools, and Microsoft's "Naming Files" know; the links are like those of the Linux
kernel's self-test of openat2.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

UPWARDS = [
    *(
        "../",
        "..\\",
        "..//",
        ".././",
        "./../",
        "%2e%2e/",
        "%2e%2e%2f",
        "..%2f",
        "..%5c",
        "%252e%252e/",
    ),
    *(
        "..%c0%af",
        "..%255c",
        "..;/",
        "....//",
        "..././",
        ".../",
        "..\0/",
        "\uff0e\uff0e/",
        "‥/",
        "．．/",
    ),
    *(
        "..\u2215",
        "..\u2044",
        "..\u29f8",
        "\u202e../",
        "..\n/",
        ".. /",
        " ../",
        "..\t/",
        "~/../",
        "a/../../",
    ),
]
TARGETS = ["secret.txt", "etc/passwd", "outside/secret.txt", "windows/win.ini", "", "root2/x"]
PLACES = [
    *(
        "",
        "/",
        "//",
        "///",
        "\\",
        "\\\\",
        "file://",
        "file:///",
        "C:\\",
        "C:/",
        "c:",
        "\\\\?\\C:\\",
    ),
    *("\\\\.\\C:\\", "\\\\server\\share\\", "//server/share/", "~/", "~root/", "$HOME/", "%HOME%/"),
    *("/proc/self/root/", "/proc/self/cwd/", "/dev/fd/", "/dev/", "/etc/", "/tmp/", "{outside}/"),
]
WORDS = [
    *(
        ".",
        "..",
        "...",
        "~",
        "-",
        " ",
        "\0",
        "\r\n",
        "\u2028",
        "\ud800",
        "\ufeff",
        "a\0.md",
        "a\n.md",
    ),
    *("NUL", "con.txt", "aux.tar.gz", "COM¹", "lpt².md", "a:b", "a::$DATA", "a.md:Zone.Identifier"),
    *("*", "?", "<", ">", "|", '"', "`id`", "$(id)", ";id", "&", "%00", "%0a", "%", "SAGENT~1"),
    *(".sagents", ".SAGENTS", ".sagents/files/index.jsonl", ".sagents/files/tmp/x", ".git/config"),
    *("x" * 255, "x" * 256, "é" * 127, "é" * 128, "漢" * 86, "." * 255, " " * 255, "x" * 5000),
    *("/".join(["d" * 100] * 40), "/".join(["d" * 100] * 41), "/".join("a" * 2050), "a/" * 30),
]


def paths(outside: str, seed: int = 1, count: int = 1200) -> list[str]:
    """At least ``count`` different paths; some of them are good ones, if odd."""
    found = dict.fromkeys(WORDS)
    for up in UPWARDS:
        for depth in (1, 2, 5, 12):
            for target in TARGETS:
                found[up * depth + target] = None
    for place in PLACES:
        for target in TARGETS:
            found[place.replace("{outside}", outside) + target] = None
    chance = random.Random(seed)
    pieces = [*UPWARDS, *WORDS[:30], *TARGETS, "a", "b.md", "d", "/", "\\", ".", outside]
    while len(found) < count:
        found["".join(chance.choice(pieces) for _ in range(chance.randint(1, 6)))] = None
    return list(found)


LINKS = {
    "to_file": "{outside}/secret.txt",
    "to_directory": "{outside}",
    "to_parent": "..",
    "to_sibling": "../root2",
    "to_file_by_parents": "../outside/secret.txt",
    "to_etc": "/etc",
    "to_passwd": "/etc/passwd",
    "to_slash": "/",
    "garbage_to_slash": "/../../../../../../..",
    "cheeky": "etc/../../outside/secret.txt",
    "through_self": "self/../../outside/secret.txt",
    "self": "../root/",
    "loop": "loop",
    "loop_a": "loop_b",
    "loop_b": "loop_a",
    "dangling_inside": "not_there",
    "dangling_outside": "{outside}/not_there",
    "deep_dangling": "{outside}/no/such/place",
    "to_proc_root": "/proc/self/root",
    "to_proc_cwd": "/proc/self/cwd",
    "to_executable": "/proc/self/exe",
    "inside": "etc/passwd",
    "inside_directory": "etc",
    "chain": "to_directory/secret.txt",
    "to_side_file": ".sagents/files",
}
SECRET = "SECRET: nobody may read or change this"


def make_outside(place: Path) -> Path:
    """A directory, beside which "root" will lie, that must stay as it is."""
    outside = place / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "secret.txt").write_text(SECRET)
    (outside / "deep/secret.txt").write_text(SECRET)
    (place / "root2").mkdir()
    (place / "root2/secret.txt").write_text(SECRET)
    (place / "secret.txt").write_text(SECRET)
    return outside


def make_links(root: Path, outside: Path) -> list[str]:
    """A directory full of links and devices, and their names."""
    (root / "etc").mkdir(parents=True)
    (root / "etc/passwd").write_text("inside")
    names = []
    for name, target in LINKS.items():
        for directory in ("", "etc/"):
            (root / f"{directory}{name}").symlink_to(target.format(outside=outside))
            names.append(f"{directory}{name}")
    (root / "hard_link").hardlink_to(outside / "secret.txt")
    os.mkfifo(root / "fifo")
    names += ["hard_link", "fifo"]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as server:
        with contextlib.chdir(root):  # the address has few characters
            server.bind("socket")
        names.append("socket")
    with contextlib.suppress(OSError):  # needs root
        os.mknod(root / "device", 0o666 | 0o020000, os.makedev(1, 5))  # /dev/zero never ends
        names.append("device")
    return names


def state(*places: Path) -> dict[str, tuple[object, ...]]:
    """All that lies in the places: kinds, targets, contents, modes and times."""
    return dict(_state(places))


def _state(places: tuple[Path, ...]) -> Iterator[tuple[str, tuple[object, ...]]]:
    for place in places:
        for path in (place, *sorted(place.rglob("*"))):
            status = path.lstat()
            # The number of links is left out: a hard link to it may be removed by a person.
            known: tuple[object, ...] = (status.st_mode, status.st_ino, status.st_uid)
            if path.is_symlink():
                known += (os.readlink(path),)
            elif path.is_file():
                known += (path.read_bytes(), status.st_mtime_ns)
            elif path.is_dir():
                known += (status.st_mtime_ns,)
            yield str(path), known
