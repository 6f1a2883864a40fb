"""What `from sagents_nb import Agent, Session, tool` costs.

The time is that of the processor beyond asyncio, json and sqlite3, which any program with an agent
has loaded anyway; the least of several fresh processes, whose modules have been compiled before.
With the path of another checkout both are measured in turn, and compared. The budget is 30 ms.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BUDGET_MS = 30
ROOT = Path(__file__).parents[1]
CODE = """
import asyncio, json, sqlite3, sys, time
before = set(sys.modules)
start = time.process_time()
from sagents_nb import Agent, Session, tool
duration = time.process_time() - start
print(json.dumps([duration * 1000, sorted(set(sys.modules) - before)]))
"""


def load(checkout: Path = ROOT) -> tuple[float, list[str]]:
    """The milliseconds of one process, and the names of the modules that it loaded."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", CODE]
    said = subprocess.check_output(command, env=kept | {"PYTHONPATH": str(checkout)}, cwd=checkout)
    milliseconds, modules = json.loads(said)
    return milliseconds, modules


def measure(*checkouts: Path, processes: int = 15) -> list[float]:
    """The least of their times, of processes in turn."""
    for checkout in checkouts:
        load(checkout)  # writes .pyc
    rounds = [[load(checkout)[0] for checkout in checkouts] for _ in range(processes)]
    return [min(times) for times in zip(*rounds, strict=True)]


if __name__ == "__main__":
    others = [Path(name).resolve() for name in sys.argv[1:2]]
    time, *theirs = measure(ROOT, *others)
    modules = load()[1]
    ours = sum(name.startswith("sagents_nb") for name in modules)
    verdict = "met" if time <= BUDGET_MS else "MISSED"
    print(f"{verdict:>6}  ≤ {BUDGET_MS} ms to import Agent, Session and tool: {time:.1f} ms")
    print(f"{len(modules)} modules, {ours} of them ours")
    for other, milliseconds in zip(others, theirs, strict=True):
        print(f"{other}: {milliseconds:.1f} ms; here it is {time / milliseconds:.2f} of that")
