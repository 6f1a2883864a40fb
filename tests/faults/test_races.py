"""Several processes want the same conversation at the same moment."""

from __future__ import annotations

import threading
from collections import Counter

import sagents_nb as sa
from sagents_nb.session.registry import Sessions
from tests.talking import PATIENCE, agent_of, in_threads

ROUNDS = 20


def test_p13_who_starts_a_session_that_another_starts_is_told_who_has_it(url: str) -> None:
    processes = [(Sessions(), sa.ConversationStore(url)) for _ in range(4)]
    together = threading.Barrier(len(processes))

    def start(number: int) -> Counter[str]:
        sessions, store = processes[number]
        told: Counter[str] = Counter()
        for n in range(ROUNDS):
            together.wait(PATIENCE)
            try:
                session = sessions.start(agent_of("fine"), f"c{n}", store=store)
                assert session.send("hello").result(PATIENCE).text == "fine"
                told["started"] += 1
            except sa.SagentsError as error:
                told[type(error).__name__] += 1
        return told

    told = sum(in_threads(len(processes), start), Counter())
    assert told == {"started": ROUNDS, "Owned": ROUNDS * (len(processes) - 1)}
    for sessions, store in processes:
        for id in sessions.list():
            sessions.stop(id)
        store.close()


def test_p13_who_opens_what_another_opens_is_told_who_has_it(url: str) -> None:
    stores = [sa.ConversationStore(url) for _ in range(4)]
    for n in range(ROUNDS):
        stores[0].create_conversation(id=f"c{n}")
    together = threading.Barrier(len(stores))

    def opened(number: int) -> list[sa.Session | None]:
        held: list[sa.Session | None] = []
        for n in range(ROUNDS):
            together.wait(PATIENCE)
            try:
                held.append(sa.Session.open(f"c{n}", agent=agent_of("fine"), store=stores[number]))
            except sa.Owned:
                held.append(None)
        return held

    everybody = in_threads(len(stores), opened)
    for of_one in zip(*everybody, strict=True):
        (session,) = [each for each in of_one if each is not None]
        assert session.send("mine").result(PATIENCE).text == "fine"
        session.close()
    for store in stores:
        store.close()
