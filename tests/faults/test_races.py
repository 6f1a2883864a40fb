"""Several processes want the same conversation at the same moment."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from multiprocessing.connection import Connection

import pytest

import sagents_nb as sa
from sagents_nb.files import FileSystem
from sagents_nb.files.errors import StorageFailed
from sagents_nb.session.registry import Sessions
from tests.store.test_outages import Life
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


def frozen_rounds(url: str, rounds: int, seed: int) -> None:
    """So often is a busy process stopped at some moment, its conversation taken, and let go on."""
    chance = random.Random(seed)
    store = sa.ConversationStore(url)
    context = multiprocessing.get_context("forkserver")
    for number in range(rounds):
        here, there = context.Pipe()
        id = f"frozen {number}"
        process = context.Process(target=talk_until_lost, args=(there, url, id))
        process.start()
        there.close()
        assert process.pid is not None
        said = [here.recv() for _ in range(chance.randint(1, 12))]
        time.sleep(chance.uniform(0, 0.02))
        os.kill(process.pid, signal.SIGSTOP)
        session = sa.Session.open(id, agent=agent_of(), store=store, take_over=True)
        while here.poll():
            said.append(here.recv())
        rows = store.load_display_messages(id)
        os.kill(process.pid, signal.SIGCONT)
        late: list[tuple[str, str]] = []
        while not late or late[-1][0] != "lost":
            late.append(here.recv())
        process.join(PATIENCE)
        # A body that had begun goes on, and no other begins; what was not taken is not said to be.
        assert [what for what, _ in late[:-1] if what != "sent"] in ([], ["effect"])
        taken = [*session.messages, *(waiting.message for waiting in session.queued)]
        texts = {message.text for message in taken}
        assert [text for what, text in late if what == "sent" and text not in texts] == []
        effects = [text for what, text in [*said, *late] if what == "effect"]
        assert len(effects) == len(set(effects))
        assert store.load_display_messages(id) == rows
        assert store.history(id).state.messages == session.messages
        assert session.info()["problems"] == []
        session.close()
    store.close()


def talk_until_lost(pipe: Connection, url: str, id: str) -> None:
    """In a process of its own: say what is acknowledged and has an effect, until it is lost."""
    life = Life(sa.ConversationStore(url), id, lambda *said: pipe.send(said))
    with contextlib.suppress(sa.NotRunning):
        for n in range(10_000):
            life.say(f"m{n}")
    pipe.send(("lost", ""))


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be stopped there")
def test_p05_a_process_that_stands_still_loses_its_conversation(postgres_url: str) -> None:
    frozen_rounds(postgres_url, 3, seed=1)


@pytest.mark.soak
@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be stopped there")
def test_p05_fifty_processes_that_stand_still_lose_their_conversations(postgres_url: str) -> None:
    frozen_rounds(postgres_url, 50, seed=int(time.time()))


def test_p21_a_former_owner_overwrites_no_file_and_adds_no_row(url: str) -> None:
    def begun(id: str | None) -> tuple[sa.Session, FileSystem]:
        files = FileSystem(("user", "both"), [sa.Mount(default=True, storage=sa.SQLStorage(url))])
        if id is None:
            return sa.Session(agent_of(*["a"] * 9), store=stores[0], filesystem=files), files
        return sa.Session.open(
            id, agent=agent_of("b"), store=stores[1], filesystem=files, take_over=True
        ), files

    stores = [sa.ConversationStore(url) for _ in range(2)]
    former, theirs = begun(None)
    former.send("hello").result(PATIENCE)
    former.files.write("/n.md", "before")
    theirs.flush()
    former.files.write("/n.md", "not saved yet")
    owner, ours = begun(former.id)
    owner.files.write("/n.md", "from the new owner")
    ours.flush()
    rows = stores[1].load_display_messages(former.id)
    with pytest.raises(StorageFailed, match="changed by somebody else"):
        theirs.flush()
    with pytest.raises(sa.StaleOwner):
        former.send("late").result(PATIENCE)
    assert FileSystem(("user", "both"), ours.mounts).read("/n.md").text == "from the new owner"
    assert stores[0].load_display_messages(former.id) == rows
    assert owner.send("mine").result(PATIENCE).text == "b"
    owner.close()
    theirs.reload("/n.md")
    for store in stores:
        store.close()
