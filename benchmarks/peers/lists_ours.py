"""What it costs to list conversations and to search them, in a small store and in a large one.

Prints one JSON line per figure, in seconds; "raw" is the same by Python's sqlite3 alone, by the
same index. The best of many rounds, in which the stores take turns.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import sagents_nb as sa

LISTED = (10, 100_000)  # conversations
SEARCHED = (100, 10_000)  # conversations with six texts of 1,000 characters
RARE, FREQUENT = "zebrafish", "please"
ROUNDS = 100
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)

LIST = (
    "SELECT id, title, metadata, created_at, updated_at FROM sagents_conversations "
    "WHERE owner = '' ORDER BY updated_at DESC, id DESC LIMIT 50"
)
SEARCH = (
    "SELECT rows.* FROM sagents_search CROSS JOIN sagents_display_messages AS rows "
    "ON rows.id = sagents_search.rowid WHERE sagents_search MATCH ? AND search_text LIKE ? "
    "ORDER BY sagents_search.rowid DESC LIMIT 50"
)


def begin(path: Path, count: int) -> sa.ConversationStore:
    """A store of so many conversations, which nobody has open."""
    store = sa.ConversationStore(path)
    tables = store.database.tables
    conversations, leases = [], []
    for n in range(count):
        id, at = f"{n:08d}", BEGUN + timedelta(seconds=n * 7919 % count)
        own = {"owner": "", "title": f"What to do about {n}", "metadata": {"n": n}}
        conversations.append({"id": id, **own, "created_at": BEGUN, "updated_at": at})
        nobody = {"epoch": 1, "owner": "", "host": "", "pid": 0}
        leases.append({"conversation_id": id, **nobody, "began_at": at, "heartbeat_at": at})
    store.database.run(lambda c: c.execute(tables.conversations.insert(), conversations))
    store.database.run(lambda c: c.execute(tables.leases.insert(), leases))
    return store


def texts() -> Iterator[str]:
    """Of words of which some are frequent and some are not."""
    chance = random.Random(1)
    letters = "eeeettaaooiinnsshrrdllucmwfgypbvk"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(5000)]
    shares = [1 / n for n in range(1, len(words) + 1)]
    number = 0
    while True:
        said = chance.choices(words, shares, k=170)
        said += [FREQUENT] * (number % 2) + [RARE] * (number % 150 == 7 and number < 600)
        number += 1
        yield " ".join(said)


def talk(store: sa.ConversationStore, count: int) -> None:
    """Six texts in each conversation, and an index of them."""
    table, said = store.database.tables.display_messages, texts()
    rows = []
    for number in range(6 * count):
        text, at = next(said), BEGUN + timedelta(milliseconds=number)
        row: dict[str, Any] = {"conversation_id": f"{number % count:08d}", "message_type": "user"}
        row |= {"content_type": "text", "content": {"text": text}, "status": "completed"}
        row |= {"metadata": {}, "inserted_at": at, "sequence": 0, "search_text": text}
        rows.append(row)
    store.database.run(lambda connection: connection.execute(table.insert(), rows))
    while indexed(store) < len(rows):
        store.search_messages(RARE)


def indexed(store: sa.ConversationStore) -> int:
    state = "SELECT max(indexed) FROM sagents_search_state"
    try:
        return store.database.run(lambda c: c.exec_driver_sql(state).scalar()) or 0
    except sa.StoreError:  # there is none yet
        return -1


def best(works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The shortest time of each; they take turns."""
    times = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def raw(path: Path, statement: str, *values: str) -> Callable[[], list[Any]]:
    connection = sqlite3.connect(path, check_same_thread=False)
    return lambda: connection.execute(statement, values).fetchall()


def main() -> None:
    """Measure and print."""
    works: dict[str, Callable[[], Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in LISTED:
            path = Path(folder) / f"listed {count}.db"
            store = begin(path, count)
            works[f"list of 10 at {count}"] = lambda store=store: store.list_conversations(10)
            works[f"list at {count}"] = store.list_conversations
            works[f"raw list at {count}"] = raw(path, LIST)
        for count in SEARCHED:
            path = Path(folder) / f"searched {count}.db"
            store = begin(path, count)
            talk(store, count)
            for kind, term in (("rare", RARE), ("frequent", FREQUENT)):
                pieces = " AND ".join(f'"{term[at : at + 3]}"' for at in range(len(term) - 2))
                name = f"search of a {kind} word at {count}"
                works[name] = lambda store=store, term=term: store.search_messages(term)
                works[f"raw {name}"] = raw(path, SEARCH, pieces, f"%{term}%")
        for item, value in best(works).items():
            print(json.dumps({"item": item, "value": value}))


if __name__ == "__main__":
    main()
