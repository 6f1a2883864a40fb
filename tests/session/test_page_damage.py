"""Pages of a store's file are damaged: each conversation is what it was, or it is told."""

from __future__ import annotations

import collections
import random
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import SagentsError
from sagents_nb.store import ConversationStore
from tests.session.stored import Disk, disk
from tests.talking import agent_of

SENT = {"long": 40, "short": 4, "huge": 6, "one": 1, "other": 16, "twin": 16}
NEVER_OPENED = "empty"
KINDS = ("swap", "zero", "copy", "bytes", "older")


def agent_for(id: str, turns: int) -> sa.Agent:
    filler = " " + "x" * 9000 if id == "huge" else ""  # more than a page
    return agent_of(*(f"{id}: answer {n}{filler}" for n in range(turns)))


def talk(store: ConversationStore, first: int, last: int) -> None:
    """In every conversation, one after the other, the messages from ``first`` to ``last``."""
    for id, sent in SENT.items():
        here = range(sent)[first:last]
        if here:
            session = sa.Session.open(id, agent=agent_for(id, len(here)), store=store)
            for n in here:
                session.send(f"{id}: question {n}").result()
            session.close()


class Original:
    """A store's file, its pages as they once were, and what each conversation says."""

    def __init__(self, disk: Disk) -> None:
        path = disk.directory / "original.db"
        states: dict[str, sa.State] = {}
        for first, last in ((0, 3), (3, 30), (30, 100)):
            self.older = path.read_bytes() if path.exists() else b""
            store = ConversationStore(path)
            if first == 0:
                for id in (*SENT, NEVER_OPENED):
                    store.create_conversation(id=id)
            talk(store, first, last)
            states = {id: sa.State.restore(store.load_agent_state(id)) for id in SENT}
            store.close()
        self.states = states | {NEVER_OPENED: sa.State()}
        self.file = path.read_bytes()
        self.page = int.from_bytes(self.file[16:18], "big")

    def damaged(self, chance: random.Random, kind: str) -> bytes:
        """The file with a page or two of it damaged."""
        file, size = bytearray(self.file), self.page
        first, second = chance.sample(range(0, len(file), size), 2)
        here, there = slice(first, first + size), slice(second, second + size)
        if kind == "swap":
            file[here], file[there] = file[there], file[here]
        elif kind == "zero":
            file[here] = bytes(size)
        elif kind == "copy":
            file[here] = file[there]
        elif kind == "bytes":
            for _ in range(chance.choice([1, 1, 4, 40])):
                file[first + chance.randrange(size)] = chance.randrange(256)
        else:  # a write that never reached the disk
            first %= len(self.older)
            file[first : first + size] = self.older[first : first + size]
        return bytes(file)


def opened(store: ConversationStore, id: str) -> tuple[sa.State, list[str]] | None:
    """What the conversation says and what is told of it; None where an error tells it."""
    try:
        session = sa.Session.open(id, agent=agent_of(), store=store, take_over=True)
    except SagentsError:
        return None
    state, problems = session.state, session.info()["problems"]
    session.close()
    return state, problems


def outcomes(path: Path, states: dict[str, sa.State]) -> dict[str, str]:
    """What became of each conversation: it is exact, told, refused, or silently another one."""
    try:
        store = ConversationStore(path)
    except SagentsError:
        return dict.fromkeys(states, "refused")
    found: dict[str, str] = {}
    for id, expected in states.items():
        for _ in range(2):  # and once more, after what the first opening wrote
            again = opened(store, id)
            if again is None:
                found.setdefault(id, "refused")
                break
            state, problems = again
            if not all(message.text.startswith(f"{id}: ") for message in state.messages):
                found[id] = "silent: rows of another conversation"
            elif not problems and state != expected:
                found[id] = f"silent: {len(state.messages)} of {len(expected.messages)} messages"
            found.setdefault(id, "told" if problems else "exact")
            expected = state
    store.close()
    return found


@pytest.fixture(scope="module")
def original() -> Any:
    with disk() as made:
        yield Original(made)


def damage(original: Original, disk: Disk, seeds: range) -> None:
    counts: collections.Counter[str] = collections.Counter()
    silent = {}
    for seed in seeds:
        kind = KINDS[seed % len(KINDS)]
        path = disk.directory / f"damaged-{seed}.db"
        path.write_bytes(original.damaged(random.Random(seed), kind))
        for id, outcome in outcomes(path, original.states).items():
            counts[outcome.partition(":")[0]] += 1
            if outcome.startswith("silent"):
                silent[seed, kind, id] = outcome
        path.unlink()
    print(f"\n{len(seeds)} damages: {dict(counts)}")
    assert not silent
    assert counts["exact"]
    assert counts["told"] + counts["refused"]


def test_a_damaged_page_never_changes_a_conversation_silently(
    original: Original, disk: Disk
) -> None:
    damage(original, disk, range(30))


@pytest.mark.soak
def test_hundreds_of_damaged_pages_change_no_conversation_silently(
    original: Original, disk: Disk
) -> None:
    damage(original, disk, range(30, 530))
