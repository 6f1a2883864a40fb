"""How often a process waits for the disk, where strace can follow it; only the standard library.

It says what it does by calls that nobody else makes: `with told("a turn")`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

SYNCS = ("fsync", "fdatasync")
# No call of ours has these paths.
BEGINS, ENDS = "/counted/begins/", "/counted/ends"


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Say to whoever follows the calls of this process that it does this now."""
    os.access(BEGINS + what, os.F_OK)
    yield
    os.access(ENDS, os.F_OK)


def follower(log: Path) -> list[str]:
    """What to begin a command with, so that its calls are in the log; [] where nobody can."""
    traced = f"trace=access,faccessat,faccessat2,{','.join(SYNCS)}"
    strace = ["strace", "-f", "-qq", "-s", "200", "-e", traced, "-o", str(log)]
    try:  # some machines have none, and some let nobody follow a process
        subprocess.run([*strace, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return strace


def counted(log: Path) -> Iterator[tuple[str, int]]:
    """What was done, and how many syncs each time."""
    what, count = "", 0
    for line in log.read_text().splitlines():
        if BEGINS in line:
            what, count = line.split(BEGINS)[1].partition('"')[0], 0
        elif ENDS in line:
            yield what, count
        else:
            count += any(f" {call}(" in line for call in SYNCS)
