"""What the loop costs beside the model: ours, four peers and a loop written by hand, in one run.

The model is scripted and answers at once. Each contestant is a script of benchmarks/peers/ in a
process of its own; a peer has an environment of its own below .venv-peers/, made by --peers.

Usage: python benchmarks/agent_loop.py [--peers] [--only ours,chatlas]

--peers measures all four and installs those that are missing; without it, those that are there.
--only measures these, and installs those that are missing.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from peers._environments import PEERS, Missing, environment, last_line

HERE = Path(__file__).parent
ROOT = HERE.parent

# What their users import first.
IMPORTED = {
    "ours": "from sagents_nb import Agent, Session, tool",
    "chatlas": "from chatlas import Chat",
    "pydantic-ai": "from pydantic_ai import Agent",
    "openai-agents": "from agents import Agent, Runner, function_tool",
    "deepagents": "from deepagents import create_deep_agent",
}
NAMES = ["floor", *IMPORTED]

# Beyond what any program with an agent has loaded anyway.
IMPORT = """
import asyncio, json, sqlite3, sys, time
sys.path.insert(0, {root!r})
start = time.perf_counter()
{statement}
print((time.perf_counter() - start) * 1e3)
"""

# Label, item, from seconds or bytes to the unit, digits.
ROWS = [
    ("µs per tool turn (50 turns)", "turn", 1e6, 1),
    ("µs per delta (5,000 deltas)", "delta", 1e6, 2),
    ("µs per turn after 10 messages", "turn at 10", 1e6, 1),
    ("µs per turn after 5,000 messages", "turn at 5000", 1e6, 1),
    ("s for 100 at once × 10 × 20 ms", "together", 1, 3),
    ("kB of an idle agent", "idle", 1e-3, 1),
    ("ms to import", "import", 1, 0),
    ("µs per turn, tool in a thread", "plain turn", 1e6, 1),
    ("ms once to read 5,000 messages", "first run", 1e3, 1),
    ("kB of an idle agent and session", "idle session", 1e-3, 1),
]
SHARE, TURN_GOAL, DELTA_GOAL, FLAT, TOGETHER = 1 / 3, 80, 3, 1.5, 0.30

Figures = dict[str, float | str]


def import_ms(python: str, statement: str, processes: int = 5) -> float:
    """The median of some fresh processes, after one that writes the .pyc files."""
    code = IMPORT.format(root=str(ROOT), statement=statement)
    times = [
        float(subprocess.check_output([python, "-c", code], text=True))
        for _ in range(processes + 1)
    ]
    return statistics.median(times[1:])


def measured(name: str, install: bool) -> Figures:
    """The figures of one contestant."""
    python = environment(name, PEERS[name], install) if name in PEERS else sys.executable
    script = HERE / "peers" / f"run_{name.replace('-', '_')}.py"
    done = subprocess.run([python, str(script)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"failed: {last_line(done.stderr)}")
    lines = map(json.loads, done.stdout.splitlines())
    figures: Figures = {line["item"]: line["value"] for line in lines}
    if name in IMPORTED:
        figures["import"] = import_ms(python, IMPORTED[name])
    return figures


def table(results: dict[str, Figures]) -> None:
    width = 15
    print(f"{'':34}" + "".join(f"{name:>{width}}" for name in results))
    versions = [str(figures.get("version", "")) for figures in results.values()]
    if any(versions):
        print(f"{'':34}" + "".join(f"{version:>{width}}" for version in versions))
    for label, item, scale, digits in ROWS:
        cells = [
            f"{float(figures[item]) * scale:,.{digits}f}" if item in figures else "–"
            for figures in results.values()
        ]
        print(f"{label:34}" + "".join(f"{cell:>{width}}" for cell in cells))


def verdicts(results: dict[str, Figures]) -> None:
    """Ours against the fastest peer of this run, and against the targets."""
    ours = {k: float(v) for k, v in results["ours"].items()}

    def say(good: bool, text: str) -> None:
        print(f"{'met' if good else 'MISSED':>6}  {text}")

    for item, what, goal in (("turn", "tool turn", TURN_GOAL), ("delta", "delta", DELTA_GOAL)):
        peers = {n: float(f[item]) for n, f in results.items() if n in PEERS}
        if peers:
            fastest = min(peers, key=peers.__getitem__)
            ratio = ours[item] / peers[fastest]
            say(ratio <= SHARE, f"≤ 1/3 of the fastest peer ({fastest}) per {what}: {ratio:.2f}")
        mine = ours[item] * 1e6
        say(mine <= goal, f"goal of {goal} µs per {what}: {mine:.2f}")
    growth = ours["turn at 5000"] / ours["turn at 10"]
    say(growth <= FLAT, f"≤ {FLAT} × the cost per turn after 5,000 messages: {growth:.2f}")
    say(
        ours["together"] <= TOGETHER,
        f"≤ {TOGETHER:.2f} s for 100 at once × 10 × 20 ms: {ours['together']:.3f}",
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", action="store_true", help="install the peers that are missing")
    parser.add_argument("--only", help=f"some of {','.join(NAMES)}")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else NAMES
    if unknown := sorted(set(names) - set(NAMES)):
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(NAMES)}")
    install = options.peers or bool(options.only)
    results: dict[str, Figures] = {}
    missing: dict[str, str] = {}
    print(f"{platform.python_implementation()} {platform.python_version()}", flush=True)
    for name in names:
        try:
            results[name] = measured(name, install)
        except Missing as error:
            missing[name] = str(error)
    table(results)
    print()
    for name, why in missing.items():
        print(f"{name} {why}")
    if "ours" in results:
        verdicts(results)
    sys.exit("ours" in missing)


if __name__ == "__main__":
    main()
