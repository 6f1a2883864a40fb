"""What it costs to have a conversation on the disk: a message, and a whole turn of a user.

A message beside its row by sqlite3 alone, in both modes of SQLite; with a write-ahead log beside
openai-agents' SQLiteSession, too. A turn, after a few messages and after many, beside all peers,
each with the store that it has, or with what its users write who need one. With a write-ahead log
means with a newer SQLite, of pysqlite3, where this Python's has the bug that makes it unsafe.

Each contestant is a script of benchmarks/peers/ in a process of its own; all live at once and take
turns. A peer has an environment of its own below .venv-peers/, made by --peers. The files are in
the directory for temporary files, so set TMPDIR to measure another disk.

Usage: python benchmarks/stored.py [--peers]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from peers._environments import PEERS, Missing, environment, last_line, newer_sqlite
from peers._syncs import counted, follower

HERE = Path(__file__).parent
SIZES = (12, 5_000)  # messages that are there before
ROUNDS, TURNS = 15, 3
RAW, PEER = 2, 1
WAL = "write-ahead log"

Command = Callable[[bool], list[str]]


def by_us(install: bool) -> list[str]:
    return [sys.executable]


def by_peer(name: str) -> Command:
    return lambda install: [environment(name, PEERS[name], install)]


# How to run it, the script, and its arguments.
CONTESTANTS: dict[str, tuple[Command, list[str]]] = {
    "ours": (by_us, ["stored_ours.py"]),
    f"ours, {WAL}": (newer_sqlite, ["stored_ours.py"]),
    "openai-agents": (by_peer("openai-agents"), ["stored_openai_agents.py"]),
    "deepagents": (by_peer("deepagents"), ["stored_deepagents.py"]),
    "google-adk": (by_peer("google-adk"), ["stored_google_adk.py"]),
    "strands, synced": (by_peer("strands"), ["stored_strands.py", "synced"]),
    "strands": (by_peer("strands"), ["stored_strands.py"]),
    "pydantic-ai, rows": (by_peer("pydantic-ai"), ["stored_pydantic_ai.py"]),
    "smolagents, rows": (by_peer("smolagents"), ["stored_smolagents.py"]),
    "chatlas, rows": (by_peer("chatlas"), ["stored_chatlas.py"]),
}
OURS = [name for name in CONTESTANTS if name.startswith("ours")]
STORES = ["openai-agents", "deepagents", "google-adk", "strands, synced", "strands"]

Figures = dict[str, Any]


class Contestant:
    """A process that does what it is told."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._folder = folder
        self._begun = 0
        self._complaints = folder / "complaints"
        with self._complaints.open("w") as complaints:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )
        self.version = self._answer()["version"]

    def _answer(self) -> Figures:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Missing(f"failed: {last_line(self._complaints.read_text())}")
        told: Figures = json.loads(line)
        return told

    def _ask(self, *words: object) -> Figures:
        assert self._process.stdin is not None
        print(*words, file=self._process.stdin, flush=True)
        return self._answer()

    def begin(self, size: int) -> None:
        """A conversation of so many messages, in the place of the one before."""
        self._begun += 1
        self._ask("begin", size, self._folder / f"{size}-{self._begun}")

    def turns(self, size: int, times: int = TURNS) -> Figures:
        """What each took, in seconds."""
        return self._ask("turns", size, times)

    def end(self) -> None:
        """Wait for it."""
        self._process.communicate()


def command_of(name: str, install: bool) -> list[str]:
    command, (script, *arguments) = CONTESTANTS[name]
    return [*command(install), str(HERE / "peers" / script), *arguments]


def turns(install: bool) -> tuple[dict[str, Figures], dict[str, str]]:
    """What a turn took each contestant, the least of rounds; and why somebody has no figures."""
    found: dict[str, Figures] = {}
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        contestants: dict[str, Contestant] = {}

        def each(do: Callable[[str, Contestant], None]) -> None:
            for name, one in list(contestants.items()):
                try:
                    do(name, one)
                except Missing as error:
                    missing[name] = str(error)
                    del contestants[name]

        def measure(size: int, name: str, one: Contestant) -> None:
            if size == SIZES[0]:  # it would not stay so short
                one.begin(size)
            for kind, taken in one.turns(size).items():
                item = f"{kind} at {size}"
                found[name][item] = min(
                    statistics.median(taken), found[name].get(item, float("inf"))
                )

        for name in CONTESTANTS:
            try:
                (folder / name).mkdir()
                one = Contestant(command_of(name, install), folder / name)
                stack.callback(one.end)
                contestants[name] = one
                found[name] = {"version": one.version}
            except Missing as error:
                missing[name] = str(error)
        each(lambda name, one: one.begin(SIZES[1]))
        for _ in range(ROUNDS):
            for size in SIZES:
                each(lambda name, one, size=size: measure(size, name, one))
        for name in contestants:
            found[name]["syncs"] = syncs(command_of(name, install))
    return {name: found[name] for name in contestants}, missing


def syncs(command: list[str]) -> float | None:
    """How often a turn waits for the disk; None where nobody can follow a process."""
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "calls"
        if not (strace := follower(log)):
            return None
        one = Contestant([*strace, *command], Path(name))
        one.begin(SIZES[0])
        for _ in range(TURNS):
            one.turns(SIZES[0], 1)
        one.end()
        return min(count for what, count in counted(log) if what == "turns")


def table(results: dict[str, Figures]) -> None:
    """A line per contestant."""
    items = [f"{kind} at {size}" for size in SIZES for kind in ("wall", "cpu")]
    heads = [f"{kind} at {size:,}" for size in SIZES for kind in ("ms", "ms of cpu")]
    print("| a turn | version | " + " | ".join(heads) + " | syncs |")
    print("|---|---|" + "---:|" * (len(items) + 1))
    for name, figures in results.items():
        cells = [f"{figures[item] * 1e3:,.2f}" for item in items]
        count = "–" if figures["syncs"] is None else figures["syncs"]
        print(f"| {name} | {figures['version']} | {' | '.join(cells)} | {count} |")


def verdict(ratio: float, limit: float, what: str, more: str = "") -> None:
    print(f"{'met' if ratio <= limit else 'MISSED':>6}  {what}: {ratio:.2f}{more}")


def messages(install: bool) -> None:
    """Measure and print what a message takes."""
    script = str(HERE / "peers" / "messages_ours.py")
    for command in (by_us, newer_sqlite):
        try:
            figures = figures_of([*command(install), script])
        except Missing as error:
            print(f"a message in a {WAL} {error}")
            continue
        names = [name for name in ("ours", "by hand", "openai-agents") if name in figures]
        told = ", ".join(f"{name} {figures[name] * 1e6:.0f} µs" for name in names)
        mode = WAL if figures["mode"] == "wal" else "rollback journal"
        print(f"a message in a {mode}: {told}, with SQLite {figures['sqlite']}")
        ratio = figures["ours to by hand"]
        verdict(ratio, RAW, f"≤ {RAW} × its row by hand, a message in a {mode}")
        if ratio := figures.get("ours to openai-agents"):
            what = f"≤ openai-agents' SQLiteSession, a message in a {mode}"
            verdict(ratio, PEER, what)


def verdicts(results: dict[str, Figures]) -> None:
    """Ours, in what the fastest peer of its kind took."""
    peers = [name for name in results if name not in OURS]
    synced = [name for name in peers if results[name]["syncs"] != 0]
    kinds = {
        "with a store": [name for name in synced if name in STORES],
        "whose user writes rows": [name for name in synced if name not in STORES],
        "that never syncs": [name for name in peers if name not in synced],
    }
    for size in SIZES:
        for ours in (name for name in OURS if name in results):
            for kind, names in kinds.items():
                if not names:
                    continue
                fastest = min(names, key=lambda name: float(results[name][f"wall at {size}"]))
                wall, cpu = (
                    results[ours][f"{clock} at {size}"] / results[fastest][f"{clock} at {size}"]
                    for clock in ("wall", "cpu")
                )
                what = f"≤ the fastest peer {kind} ({fastest.partition(',')[0]})"
                what += f", a turn after {size:,} messages, {ours}"
                verdict(wall, PEER, what, f" ({cpu:.2f} of the processor)")


def figures_of(command: list[str]) -> Figures:
    """The figures that a script prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"failed: {last_line(done.stderr)}")
    return {line["item"]: line["value"] for line in map(json.loads, done.stdout.splitlines())}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", action="store_true", help="install the peers that are missing")
    options = parser.parse_args()
    messages(options.peers)
    results, missing = turns(options.peers)
    print()
    table(results)
    print()
    for name, why in missing.items():
        print(f"{name} {why}")
    verdicts(results)
    sys.exit(OURS[0] in missing)


if __name__ == "__main__":
    main()
