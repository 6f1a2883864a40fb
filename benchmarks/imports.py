"""What `from sagents_nb import Agent, Session, tool` costs.

The time is that beyond asyncio, json and sqlite3, which any program with an agent has loaded
anyway; the median of several fresh processes. The budget is 80 ms.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

BUDGET_MS = 80
CODE = """
import asyncio, json, sqlite3, sys, time
before = set(sys.modules)
start = time.perf_counter()
from sagents_nb import Agent, Session, tool
duration = time.perf_counter() - start
print(json.dumps([duration * 1000, sorted(set(sys.modules) - before)]))
"""


def measure(processes: int = 9) -> tuple[float, list[str]]:
    """The median time in milliseconds, and the names of the modules that were loaded."""
    subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True)  # writes .pyc
    results = [
        json.loads(subprocess.check_output([sys.executable, "-c", CODE])) for _ in range(processes)
    ]
    return statistics.median(time for time, _ in results), results[0][1]


if __name__ == "__main__":
    milliseconds, modules = measure()
    print(
        f"from sagents_nb import Agent, Session, tool: {milliseconds:.1f} ms (budget {BUDGET_MS})"
    )
    print(
        f"{len(modules)} modules, {sum(m.startswith('sagents_nb') for m in modules)} of them ours"
    )
