"""What many writers and one long reader cost on a PostgreSQL that is started for it.

Twelve processes of eight threads write to their own conversations alone, and then half of it to
six that all of them write to. A frame is made of 10,000 conversations of ten messages, beside what
pandas takes to read the same rows by one query, while somebody of the same store and another
process append to journals.

Usage: python benchmarks/server.py [SECONDS of each crowd]
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

CONVERSATIONS, MESSAGES = 10_000, 10
SHARE, TIMES, SECONDS = 0.7, 2.0, 0.1


def fill(store: Any) -> None:
    """As sessions would have written it."""
    from sagents_nb.store.entries import Entry, Tally, encoded, row_checksum

    tables, now = store.database.tables, datetime.now(UTC)
    text = "about the weather in Oslo and such things " * 3

    def some(connection: Any, first: int) -> None:
        made: dict[str, list[dict[str, Any]]] = {"conversations": [], "leases": [], "journal": []}
        for id in (f"c{n:05}" for n in range(first, first + 500)):
            times = {"created_at": now, "updated_at": now}
            made["conversations"].append({"id": id, "owner": "", "metadata": {}, **times})
            said = [
                {
                    "n": n,
                    "role": ("user", "assistant")[n % 2],
                    "content": [{"type": "text", "text": f"{n} {id} {text}"}],
                }
                for n in range(1, MESSAGES + 1)
            ]
            entries = [Entry("begin", {"version": 1}), *(Entry("message", each) for each in said)]
            sums = []
            for seq, entry in enumerate(entries, 1):
                data, escaped = encoded(entry.data)
                sums.append(row_checksum(id, seq, entry.kind.encode(), data.encode(), escaped))
                row = {"conversation_id": id, "seq": seq, "kind": entry.kind, "data": data}
                row |= {"escaped": escaped, "checksum": sums[-1], "at": now}
                made["journal"].append(row)
            tally = Tally().plus(sums, len(sums)).text(id)
            lease = {"conversation_id": id, "epoch": 1, "owner": "", "host": "h", "pid": 1}
            lease |= {"began_at": now, "heartbeat_at": now, "tally": tally}
            made["leases"].append(lease)
        for name, rows in made.items():
            connection.execute(getattr(tables, name).insert(), rows)

    for first in range(0, CONVERSATIONS, 500):
        store.database.run(lambda connection, first=first: some(connection, first))
    # As a server does by itself, after a while.
    store.database.run(lambda connection: connection.exec_driver_sql("ANALYZE"))


def append_until(url: str, id: str, stopped: Any) -> float:
    """Append to a journal a hundred times a second; the longest that it took."""
    import sagents_nb as sa
    from sagents_nb.store.entries import Entry
    from sagents_nb.store.journal import Journal

    store = url if isinstance(url, sa.ConversationStore) else sa.ConversationStore(url)
    store.create_conversation(id=id)
    journal, _, _ = Journal.open(store.database, id)
    longest = 0.0
    while not stopped():
        since = time.perf_counter()
        journal.append([Entry("metadata", {"key": "k", "value": since})]).result()
        longest = max(longest, time.perf_counter() - since)
        time.sleep(0.01)
    journal.release().result()
    return longest


@contextlib.contextmanager
def appending(store: Any, url: str, round: int) -> Iterator[dict[str, float]]:
    """Somebody of this store and another process append; the longest of each, afterwards."""
    found: dict[str, float] = {}
    over = threading.Event()

    def here() -> None:
        found["same store"] = append_until(store, f"here {round}", over.is_set)

    thread = threading.Thread(target=here)
    other = subprocess.Popen(
        [sys.executable, __file__, "append", url, f"there {round}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout is not None
    other.stdout.readline()
    thread.start()
    yield found
    over.set()
    thread.join()
    found["other process"] = float(other.communicate("")[0])


def in_another_process(url: str, id: str) -> None:
    """What the other process does until nobody listens to it any more."""
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    print("ready", flush=True)
    print(append_until(url, id, over.is_set))


def verdict(good: bool, what: str, measured: str) -> None:
    """A line of the table."""
    print(f"  {'met   ' if good else 'MISSED'} {what}: {measured}", flush=True)


def measure_crowd(url: str, seconds: float) -> None:
    """Own conversations alone, and half of it shared."""
    import sagents_nb as sa
    from tests.store.test_server import crowd

    store = sa.ConversationStore(url)
    alone = crowd(url, seconds, share=0.0)
    for n in range(6):
        store.create_conversation(id=f"shared {n}")
    for conversation in store.list_conversations(1000):
        if conversation.id.startswith("own"):
            store.delete_conversation(conversation.id)
    shared = crowd(url, seconds, share=0.5)
    store.close()
    what = f"12 processes × 8 threads, half of it shared, ≥ {SHARE} × their own alone"
    told = f"{shared / seconds:,.0f} /s, alone {alone / seconds:,.0f} /s: {shared / alone:.2f} ×"
    verdict(shared >= SHARE * alone, what, told)


def measure_frame(url: str) -> None:
    """A frame of all, beside pandas and those who write."""
    import pandas

    import sagents_nb as sa

    store = sa.ConversationStore(url, "frames_")
    fill(store)
    engine, names = store.database.connection.engine, store.database.tables
    query = names.journal.select().order_by(names.journal.c.conversation_id, names.journal.c.seq)
    ours, theirs, waits = [], [], {"same store": 0.0, "other process": 0.0}
    for round in range(3):
        since = time.perf_counter()
        with engine.connect() as connection:
            assert len(pandas.read_sql_query(query, connection)) >= CONVERSATIONS * MESSAGES
        theirs.append(time.perf_counter() - since)
        since = time.perf_counter()
        assert len(store.to_frame("messages")) == CONVERSATIONS * MESSAGES
        ours.append(time.perf_counter() - since)
        with appending(store, url, round) as found:
            store.to_frame("messages")
        waits = {name: max(found[name], waits[name]) for name in waits}
    store.close()
    what = f"messages of {CONVERSATIONS:,} conversations as a frame, ≤ {TIMES:g} × pandas"
    told = f"{min(ours):.2f} s, pandas {min(theirs):.2f} s: {min(ours) / min(theirs):.1f} ×"
    verdict(min(ours) <= TIMES * min(theirs), what, told)
    for name, longest in waits.items():
        what = f"an append meanwhile, {name}, ≤ {SECONDS * 1000:.0f} ms"
        verdict(longest <= SECONDS, what, f"{longest * 1000:.0f} ms at most")


def main() -> None:
    """Run them on a server of their own."""
    from tests.store import postgres

    with postgres.running() as url:
        measure_frame(url)
        measure_crowd(url, float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["append"]:
        in_another_process(*sys.argv[2:])
    else:
        main()
