"""A thousand sessions of one agent that do nothing: what one holds, and how many threads they take.

The memory is that of one session more, as `tracemalloc` sees it, beyond the messages that it
would hold as plain data; the agent is there already. Prints one JSON line per figure.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import _measure

sys.path.insert(0, str(Path(__file__).parents[2]))

import sagents_nb as sa
from sagents_nb.runtime.thread import runtime

COUNT = 1_000
TEXT = "what I would like to know is " * 7


def sessions(store: Any, messages: int) -> tuple[float, int]:
    """Bytes of one more that has said and heard so many messages, and the threads they took."""
    answers = [TEXT] * messages * (COUNT + 10)
    agent = sa.Agent(sa.ScriptedModel(answers, chunk=len(TEXT)))
    names = itertools.count()

    def make() -> sa.Session:
        id = f"c{messages}-{next(names)}"
        session = sa.Session(agent, id=id, store=store)
        for _ in range(messages // 2):
            session.send(TEXT).result()
        return session

    kept = [make()]
    before = threading.active_count()
    size = _measure.memory(make, COUNT)
    runtime.call(lambda: None)
    threads = threading.active_count() - before
    del kept
    return size - messages * _measure.memory(lambda: sa.Message.user(TEXT)), threads


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        for where, store in (
            ("in memory", None),
            ("in a store", sa.ConversationStore(Path(folder) / "idle.db")),
        ):
            for messages in (0, 2):
                size, threads = sessions(store, messages)
                item = f"{where}, {messages} messages"
                print(json.dumps({"item": f"bytes {item}", "value": size}), flush=True)
                print(json.dumps({"item": f"threads {item}", "value": threads}), flush=True)


if __name__ == "__main__":
    main()
