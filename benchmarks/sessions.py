"""What it costs to keep a conversation: one message more, in a short one and in a long one.

And what a session costs that does nothing, as most of a thousand do: memory and threads; what a
turn in a store takes of the processor, beside what it cannot do without; what it costs to list
conversations and to search them, be they few or many; and to make an agent or a session, to open a
long conversation, to tell a thousand listeners, and to have two hundred sessions at work.

Each contestant is a script of benchmarks/peers/ in a process of its own; a peer has an environment
of its own below .venv-peers/, made by --peers. The files are in the directory for temporary
files, so set TMPDIR to measure another disk. Linux only: it tells how much is written.

Usage: python benchmarks/sessions.py [--peers]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from peers._environments import Missing, environment, last_line
from peers._journal import SIZES
from peers.lists_ours import LISTED, SEARCHED

HERE = Path(__file__).parent

# The script, its arguments, and what it needs; nothing for what is ours.
CONTESTANTS: dict[str, tuple[list[str], list[str]]] = {
    "ours": (["journal_ours.py"], []),
    "whole state": (["journal_ours.py", "whole"], []),
    "langgraph": (["journal_langgraph.py"], ["langgraph-checkpoint-sqlite"]),
    "openai-agents": (["journal_openai_agents.py"], ["openai-agents"]),
}
# Label, item, from seconds or bytes to the unit, digits.
ROWS = [
    ("ms per message", "time", 1e3, 2),
    ("kB written per message", "written", 1e-3, 1),
    ("kB kept per message", "kept", 1e-3, 1),
]
FLAT = 1.2
IDLE_KB = 30
TURN_LIMIT = 2.5
TRANSACTIONS = {"plain": 2, "tool": 4}
LIST_FLOOR = 10
SEARCH_FLAT = 2
# A figure, in a floor that is measured with it, is at most that.
TO_FLOOR = [
    ("a session made in a store", "made", 4),
    ("20,000 messages opened", "opened", 2),
    ("an event to 1,000 listeners", "told", 2.5),
]
AGENT_KB = 10
AT_ONCE, LONGEST_WAIT = 0.8, 2

Figures = dict[str, float | str]


def measured(name: str, install: bool) -> Figures:
    """The figures of one contestant."""
    (script, *arguments), requirements = CONTESTANTS[name]
    python = sys.executable
    if requirements:
        python = environment(name, requirements, install)
    return figures_of([python, str(HERE / "peers" / script), *arguments])


def figures_of(command: list[str]) -> Figures:
    """The figures that a script prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"failed: {last_line(done.stderr)}")
    return {line["item"]: line["value"] for line in map(json.loads, done.stdout.splitlines())}


def table(results: dict[str, Figures]) -> None:
    def line(*cells: str) -> None:
        print(f"{cells[0]:36}" + "".join(f"{cell:>15}" for cell in cells[1:]))

    line("", *results)
    line("", *(str(figures.get("version", "")) for figures in results.values()))
    for label, item, scale, digits in ROWS:
        for size in SIZES:
            values = [float(figures[f"{item} at {size}"]) for figures in results.values()]
            line(f"{label} after {size:,}", *(f"{v * scale:,.{digits}f}" for v in values))
        ratios = [growth(figures, item) for figures in results.values()]
        line("  10,000 to 10", *(f"{ratio:,.2f} ×" for ratio in ratios))


def growth(figures: Figures, item: str) -> float:
    """What it costs at the largest size, in what it costs at the smallest."""
    return float(figures[f"{item} at {SIZES[-1]}"]) / float(figures[f"{item} at {SIZES[0]}"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", action="store_true", help="install the peers that are missing")
    options = parser.parse_args()
    results: dict[str, Figures] = {}
    missing: dict[str, str] = {}
    for name in CONTESTANTS:
        try:
            results[name] = measured(name, options.peers)
        except Missing as error:
            missing[name] = str(error)
    table(results)
    print()
    for name, why in missing.items():
        print(f"{name} {why}")
    if "ours" in results:
        together = {item: float(results["ours"][item]) for item in ("at once", "in turn", "call")}
        print(
            "ours, 100 conversations with a message each: {:.1f} ms at once, {:.0f} ms one after "
            "the other; {:.1f} µs on the caller's thread".format(
                together["at once"] * 1e3, together["in turn"] * 1e3, together["call"] * 1e6
            )
        )
        for label, item, _, _ in ROWS:
            ratio = growth(results["ours"], item)
            verdict = "met" if ratio <= FLAT else "MISSED"
            print(f"{verdict:>6}  ≤ {FLAT} × the {label} after 10,000 as after 10: {ratio:.2f}")
    idle()
    turns()
    lists()
    many()
    sys.exit("ours" in missing)


def idle() -> None:
    """Measure and print what a thousand sessions cost that do nothing."""
    figures = figures_of([sys.executable, str(HERE / "peers" / "idle_ours.py")])
    for item, value in figures.items():
        kind, where = item.split(" ", 1)
        if kind == "bytes":
            told = f"{float(value) / 1e3:.1f} kB of an idle session {where}"
            verdict = "met" if float(value) <= IDLE_KB * 1e3 else "MISSED"
            print(f"{verdict:>6}  ≤ {IDLE_KB} kB: {told}")
        else:
            verdict = "met" if value == 0 else "MISSED"
            print(f"{verdict:>6}  no thread for 1,000 idle sessions {where}: {value}")


def turns() -> None:
    """Measure and print what turns in a store cost, beside the same in memory and by hand."""
    found = figures_of([sys.executable, str(HERE / "peers" / "turns_ours.py")])
    figures = {item: float(value) for item, value in found.items()}
    for kind, most in TRANSACTIONS.items():
        stored, memory, by_hand = (
            figures[f"{kind} {what}"] * 1e3 for what in ("stored", "memory", "by hand")
        )
        print(
            f"ms of the processor for a {kind} turn: {stored:.2f} in a store, {memory:.2f} in "
            f"memory, {by_hand:.2f} to write its rows by hand"
        )
        ratio = stored / (memory + by_hand)
        verdict = "met" if ratio <= TURN_LIMIT else "MISSED"
        print(f"{verdict:>6}  ≤ {TURN_LIMIT} × both, for a {kind} turn: {ratio:.2f}")
        number = figures[f"{kind} transactions"]
        verdict = "met" if number <= most else "MISSED"
        print(f"{verdict:>6}  ≤ {most} transactions for a {kind} turn: {number:.0f}")


def lists() -> None:
    """Measure and print what lists and searches cost, beside the same by sqlite3 alone."""
    found = figures_of([sys.executable, str(HERE / "peers" / "lists_ours.py")])
    figures = {item: float(value) for item, value in found.items()}
    for item, value in figures.items():
        if not item.startswith("raw"):
            floor = (
                f" (sqlite3: {figures[raw] * 1e3:.2f})" if (raw := f"raw {item}") in figures else ""
            )
            print(f"{value * 1e3:6.2f} ms  {item}{floor}")
    list_small, list_large = (f"list of 10 at {count}" for count in LISTED)
    limits = [("a list", FLAT, list_large, list_small)]
    limits += [
        ("a list, to sqlite3's", LIST_FLOOR, f"list at {LISTED[1]}", f"raw list at {LISTED[1]}")
    ]
    for kind in ("rare", "frequent"):
        small, large = (f"search of a {kind} word at {count}" for count in SEARCHED)
        limits += [(f"a search of a {kind} word", SEARCH_FLAT, large, small)]
    for label, limit, one, other in limits:
        ratio = figures[one] / figures[other]
        verdict = "met" if ratio <= limit else "MISSED"
        print(f"{verdict:>6}  ≤ {limit:g} × {label}: {one}, to {other}: {ratio:.2f}")


def many() -> None:
    """Measure and print what it takes to make, to open and to tell, and to have many at once."""
    found = figures_of([sys.executable, str(HERE / "peers" / "many_ours.py")])
    figures = {item: float(value) for item, value in found.items()}
    kb = figures["bytes of an agent"] / 1e3
    print(f"{figures['agent'] * 1e6:6.0f} µs of the processor for one agent more, with a tool")
    print(
        f"{'met' if kb <= AGENT_KB else 'MISSED':>6}  ≤ {AGENT_KB} kB of one agent more: {kb:.1f}"
    )
    for label, item, limit in TO_FLOOR:
        ours, floor = figures[item] * 1e3, figures[f"{item} raw"] * 1e3
        verdict = "met" if ours <= limit * floor else "MISSED"
        print(
            f"{verdict:>6}  ≤ {limit:g} × by hand, {label}: {ours / floor:.2f} "
            f"({ours:.2f} ms, {floor:.2f})"
        )
    rate, longest = figures["turns at once"], figures["longest wait"]
    verdict = "met" if rate >= AT_ONCE else "MISSED"
    print(f"{verdict:>6}  ≥ {AT_ONCE} × the processor's turns a second, of 200 at once: {rate:.2f}")
    verdict = "met" if longest <= LONGEST_WAIT else "MISSED"
    print(f"{verdict:>6}  ≤ {LONGEST_WAIT} × the mean wait, the longest: {longest:.2f}")


if __name__ == "__main__":
    main()
