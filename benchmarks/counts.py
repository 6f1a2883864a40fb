"""What work takes in counts: transactions, statements, syncs, calls, blocks of memory, modules.

No machine is slow at these, so ``tests/test_counts.py`` compares them with ``counts.json``, which
holds what each was when it was last looked at: one that grows fails there. Where that is meant,
or one has become less, ``--write`` keeps the new ones.

Usage: python benchmarks/counts.py [--write | --json]
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import sagents_nb as sa
import sagents_nb.sql
from benchmarks.imports import load
from benchmarks.peers._syncs import counted, follower, told
from sagents_nb.files import DiskStorage, FileSystem, Mount
from sagents_nb.sql import driver_of
from sagents_nb.store import ConversationStore

KEPT = Path(__file__).parent / "counts.json"
MANY, TIMES = 50, 3
# Whatever this machine's SQLite may use.
MODES = {"rollback": "syncs", "wal": "syncs with a write-ahead log"}

Work = Callable[[], Any]
Measured = dict[str, int]


@sa.tool
def look(where: str) -> str:
    """Look there."""
    return "nothing"


def agent(*, calls: int = 0, tool: sa.Tool = look) -> sa.Agent:
    """One that calls the tool so often in each turn, then answers."""
    numbers = itertools.count()
    script: list[Any] = []
    for _ in range(MANY + 10):
        made = (f"c{next(numbers)}" for _ in range(calls))
        script += [sa.ToolCall(id, tool.name, {"where": "there"}) for id in made]
        script.append("It is fine.")
    return sa.Agent(sa.ScriptedModel(script, chunk=1000), tools=[tool], max_runs=calls + 2)


@contextlib.contextmanager
def stored_work(folder: Path) -> Iterator[tuple[ConversationStore, dict[str, Work]]]:
    """A store, and what is done with it."""
    with contextlib.closing(ConversationStore(folder / "store.db")) as store:
        plain = sa.Session(agent(), store=store)
        acting = sa.Session(agent(calls=1), store=store)
        long = sa.Session(agent(), store=store, id="long")
        for session, turns in ((plain, 1), (acting, 1), (long, MANY)):
            for _ in range(turns):
                session.send("go").result()
        long.close()
        ours = agent()
        yield (
            store,
            {
                "a stored turn": lambda: plain.send("go").result(),
                "a stored turn with a tool": lambda: acting.send("go").result(),
                "a new stored session": lambda: sa.Session(ours, store=store),
                "a session of 100 messages again": lambda: sa.Session.open(
                    "long", agent=ours, store=store
                ),
                "a list of conversations": lambda: store.list_conversations(50),
            },
        )


def all_done(store: ConversationStore) -> None:
    """Wait until the store has nothing left to do."""
    store.database.run(lambda connection: None)


def close(made: Any) -> None:
    """Close what was opened: the next time it is opened again."""
    if isinstance(made, sa.Session):
        made.close()


def least(found: Measured, name: str, count: int) -> None:
    """What is done at the same time may be in one transaction with it, or in the next."""
    found[name] = min(count, found.get(name, count))


def statements(folder: Path) -> Measured:
    """Transactions and statements of what is done with a store."""
    found: Measured = {}
    with stored_work(folder) as (store, works):
        counted: Counter[str] = Counter()

        def count(statement: str) -> None:
            counted[statement.split(maxsplit=1)[0]] += 1

        store.database.run(lambda c: driver_of(c).set_trace_callback(count))
        for name, work in works.items():
            for _ in range(TIMES):
                all_done(store)
                counted.clear()
                made = work()
                all_done(store)
                begun = counted.pop("BEGIN", 0) - 1  # that of the line above
                counted.pop("COMMIT", 0)
                least(found, f"{name}: transactions", begun)
                least(found, f"{name}: statements", counted.total())
                close(made)
        store.database.run(lambda c: driver_of(c).set_trace_callback(None))
    return found


def told_work(folder: Path, with_wal: bool) -> None:
    """Does the work, and says to whoever follows its calls what is which."""
    sagents_nb.sql.wal_is_safe = lambda version: with_wal  # nobody else has the file
    with stored_work(folder) as (store, works):
        if not with_wal:
            works |= {"a new file on a disk": new_files(folder)}
        for name, work in works.items():
            for _ in range(TIMES):
                all_done(store)
                with told(name):
                    made = work()
                    all_done(store)
                close(made)


def new_files(folder: Path) -> Work:
    """Writes one of them each time."""
    (folder / "files").mkdir()
    files = FileSystem(("counted", 1), [Mount("data", DiskStorage(folder / "files"))])
    numbers = itertools.count()

    def write() -> None:
        files.write(f"/data/{next(numbers)}.md", "x" * 2000)
        files.flush()

    write()
    return write


def syncs(mode: str) -> Measured:
    """How often the same work waits for the disk, where ``strace`` can follow a process."""
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "calls"
        if not (strace := follower(log)):
            return {}
        subprocess.run([*strace, sys.executable, __file__, "--work", name, mode], check=True)
        found: Measured = {}
        for what, count in counted(log):
            least(found, f"{what}: {MODES[mode]}", count)
    return found


def calls() -> Measured:
    """How many functions a turn with a tool, and a row of a map, call on the thread of agents.

    It is the median of many: where another thread is late, the loop turns once more.
    """
    count = made = 0
    counts: list[int] = []

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    def passed() -> None:
        """Count what happens between each two calls of this, from the tenth to the last."""
        nonlocal count, made
        made += 1
        if made > 10:
            counts.append(count)
        count = 0
        if made in (10, 10 + MANY):
            sys.setprofile(seen if made == 10 else None)

    def median() -> int:
        nonlocal made
        found = statistics.median_low(counts)
        made = 0
        counts.clear()
        return found

    @sa.tool
    async def look(where: str) -> str:
        """Look there."""
        passed()
        return "nothing"

    class Quick(sa.ChatModel):
        name = "quick"

        async def stream(self, request: sa.ModelRequest) -> AsyncIterator[Any]:
            passed()
            yield sa.Message.assistant("Yes.")

    agent(calls=10 + MANY, tool=look).run("go")
    found = {"a turn with a tool, in memory: calls": median()}
    sa.Agent(Quick()).map([f"Is {n} prime?" for n in range(10 + MANY)], progress=False)
    return found | {"a row of a map: calls": median()}


def blocks(make: Callable[[], Any]) -> int:
    """How many blocks of memory one more of these is."""
    made = [make() for _ in range(MANY)]
    gc.collect()
    before = sys.getallocatedblocks()
    made += [make() for _ in range(MANY)]
    gc.collect()
    return round((sys.getallocatedblocks() - before) / MANY)  # one that was free or not is none


def memory() -> Measured:
    """What an agent and a session are that do nothing."""
    model = sa.ScriptedModel([])
    one = agent()
    return {
        "an agent: blocks": blocks(lambda: sa.Agent(model, "Be brief.", [look])),
        "a session: blocks": blocks(lambda: sa.Session(one)),
    }


def modules() -> Measured:
    """What is imported first."""
    _, loaded = load()
    return {
        "the import: modules": len(loaded),
        "the import: modules of ours": sum(m.partition(".")[0] == "sagents_nb" for m in loaded),
    }


def measure() -> Measured:
    """All of them, by name."""
    with tempfile.TemporaryDirectory() as folder:
        found = statements(Path(folder))
    for mode in MODES:
        found |= syncs(mode)
    return found | calls() | memory() | modules()


def main() -> None:
    """Print them beside what was kept."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="keep them in counts.json")
    parser.add_argument("--json", action="store_true", help="print them as JSON, and nothing else")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        folder, mode = options.work
        told_work(Path(folder), mode == "wal")
        return
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    found = measure()
    if options.json:
        print(json.dumps(found))
        return
    print("| | now | kept |\n|---|---:|---:|")
    for name, count in found.items():
        print(f"| {name} | {count:,} | {kept.get(name, '–')} |")
    if options.write:
        KEPT.write_text(json.dumps(kept | found, indent=2) + "\n")


if __name__ == "__main__":
    main()
