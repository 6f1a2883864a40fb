"""Runs all benchmarks, one after the other, and writes the table of what they found into README.md.

Each prints what it measured, and for each target whether it is met: what ours took in that of a
floor or of a peer in the same run, mostly. These lines, with the counts, are the table.

Usage: python benchmarks/all.py [NAME…]; with names, it runs only these and writes nothing.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
NAMES = (
    "counts", "imports", "agent_loop", "providers", "cache", "sessions",
    "stored", "files", "map", "frames", "server", "hub", "wire", "panel", "tool_choice", "bus",
    "documents",
)  # fmt: skip
OPTIONS = {"providers": ["--quick"]}
BEGINS, ENDS = "<!-- made by make bench -->\n", "<!-- until here -->"

_VERDICT = re.compile(r"\s*(met|MISSED)\s+(.+): (.+)")
_ROW = re.compile(r"\| (?P<what>[^|]+) \| (?P<rest>.+) \|")


def output(name: str) -> str:
    """What a benchmark prints, which is shown as it comes."""
    command = [sys.executable, str(HERE / f"{name}.py"), *OPTIONS.get(name, [])]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if running.returncode:
        sys.exit(f"{name} failed.")
    return "".join(lines)


def rows(name: str, printed: str) -> Iterator[str]:
    """The lines of the table that a benchmark adds."""
    for line in printed.splitlines():
        if verdict := _VERDICT.fullmatch(line):
            good, what, measured = verdict.groups()
            yield f"| {name} | {what} | {measured} | {good} |"
        elif name == "files" and (row := _ROW.fullmatch(line)) and "by hand" not in line:
            ours, by_hand, ratio, goal = row["rest"].split(" | ")
            limit, _, good = goal.strip().rpartition(" ")
            told = f"{ours}, by hand {by_hand}: {ratio} ×"
            yield f"| {name} | {row['what']}{f', {limit}' if limit else ''} | {told} | {good} |"
        elif name == "counts" and (row := _ROW.fullmatch(line)):
            now = row["rest"].split(" | ")[0]
            if now.replace(",", "").isdecimal():
                yield f"| {name} | {row['what']} | {now} | |"


def main() -> None:
    """Run them."""
    chosen = sys.argv[1:] or NAMES
    table = ["| | | measured | |", "|---|---|---:|---|"]
    for name in chosen:
        print(f"\n== {name}", flush=True)
        table += rows(name, output(name))
    if chosen is not NAMES:
        print("\n".join(table))
        return
    made = f"Of {time.strftime('%Y-%m-%d')}, Python {platform.python_version()}.\n\n"
    readme = HERE / "README.md"
    before, _, rest = readme.read_text().partition(BEGINS)
    _, _, after = rest.partition(ENDS)
    readme.write_text(f"{before}{BEGINS}\n{made}" + "\n".join(table) + f"\n\n{ENDS}{after}")


if __name__ == "__main__":
    main()
