"""One session, many threads, and a scheduler that switches as often as it can."""

from __future__ import annotations

import random
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest
from tests.session.gates import Gate
from tests.talking import agent_of, call, in_threads, run, session_of, unanswered

THREADS = 16


pytestmark = pytest.mark.usefixtures("eager_switching")


class Echo(sa.ChatModel):
    """Answers with what was said last."""

    name = "echo"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        yield sa.Message.assistant(f"re: {request.messages[-1].text}")


def echo() -> sa.Agent:
    return sa.Agent(Echo(), replace_default_middleware=True)


def said(session: sa.Session, role: str = "user") -> list[str]:
    return [m.text for m in session.messages if m.role == role]


def in_order(texts: list[str], thread: int) -> list[int]:
    """The numbers of one thread's messages, as they stand in the conversation."""
    return [int(t.split()[1]) for t in texts if t.split()[0] == str(thread)]


def test_sixteen_threads_on_one_session_lose_and_reorder_nothing() -> None:
    session, each = sa.Session(echo()), 40
    heard: list[Any] = []
    session.subscribe(heard.append)

    def talk(thread: int) -> list[str]:
        runs = [session.send(f"{thread} {n}") for n in range(each)]
        return [run.result().text for run in runs]

    for thread, answers in enumerate(in_threads(THREADS, talk)):
        assert answers == [f"re: {thread} {n}" for n in range(each)]
    texts = said(session)
    assert len(texts) == THREADS * each
    for thread in range(THREADS):
        assert in_order(texts, thread) == list(range(each))
    assert said(session, "assistant") == [f"re: {text}" for text in texts]
    assert [e.seq for e in heard] == list(range(1, len(heard) + 1))
    told = [e.message for e in heard if e.type == "message_end"]
    assert told == session.messages
    assert session.status == "idle"


def test_steering_and_following_up_from_sixteen_threads_loses_nothing() -> None:
    gate, each = Gate(), 10
    agent = agent_of(call("hold"), *["ok"] * 400, tools=[gate.tool], max_runs=500)
    session = sa.Session(agent)
    run = session.send("go")
    gate.wait()

    def talk(thread: int) -> None:
        for n in range(each):
            (session.steer if thread % 2 else session.follow_up)(f"{thread} {n}")

    in_threads(THREADS, talk)
    gate.open()
    run.result()
    texts = said(session)[1:]
    assert len(texts) == THREADS * each
    for thread in range(THREADS):
        assert in_order(texts, thread) == list(range(each))
    steered = [int(text.split()[0]) % 2 for text in texts]
    assert steered == sorted(steered, reverse=True)


def test_readers_always_see_a_conversation_that_only_grows() -> None:
    session = sa.Session(echo())
    over = threading.Event()

    def read(thread: int) -> None:
        before: list[sa.Message] = []
        while not over.is_set():
            now = session.state.messages
            assert now[: len(before)] == before
            before = now[:]
            session.info()
            session.export_state()

    def write(thread: int) -> None:
        for n in range(30):
            session.send(f"{thread} {n}").result()

    def work(thread: int) -> None:
        if thread < 4:
            read(thread)
        else:
            try:
                write(thread)
            finally:
                with lock:
                    remaining.pop()
                    if not remaining:
                        over.set()

    lock, remaining = threading.Lock(), [0] * 4
    assert in_threads(8, work) == [None] * 8


def test_two_hundred_random_lives_end_in_time_and_in_a_valid_history() -> None:
    """Start, approve, reject, cancel, reset, close from several threads: never a deadlock."""

    def act() -> str:
        return "acted"

    def live(seed: int) -> sa.Session:
        dice = random.Random(seed)
        turns = [[call("act", f"a{n}"), call("act", f"b{n}")] if n % 2 else "ok" for n in range(40)]
        session = session_of(*turns, tools=[act], interrupt_on={"act": True})
        runs: list[sa.Run | None] = []

        def meddle(thread: int) -> None:
            mine = random.Random(seed * 10 + thread)
            for _ in range(5):
                action = mine.choice(
                    [
                        lambda: runs.append(session.send("go")),
                        lambda: runs.append(session.approve()),
                        lambda: runs.append(session.resume([sa.Approve(), sa.Reject()])),
                        lambda: runs.append(session.reject(message="no")),
                        session.cancel,
                        lambda: session.steer("rather"),
                        session.reset if mine.random() < 0.2 else session.info,
                    ]
                )
                with suppress(sa.NotRunning, sa.StaleApproval, sa.InvalidDecision):
                    action()

        assert in_threads(3, meddle) == [None] * 3
        if dice.random() < 0.5:
            session.cancel()
        session.close()
        for started in runs:
            if started is not None:
                with suppress(sa.ModelError):  # the script was too short
                    started.result()
        return session

    for seed in range(200):
        session = live(seed)
        assert not unanswered(session.messages) or session.interrupt


def test_runs_of_many_sessions_do_not_get_in_each_others_way() -> None:
    sessions = [sa.Session(echo()) for _ in range(8)]

    def talk(thread: int) -> list[str]:
        session = sessions[thread % 8]
        return [session.send(f"{thread} {n}").result().text for n in range(25)]

    for thread, answers in enumerate(in_threads(THREADS, talk)):
        assert answers == [f"re: {thread} {n}" for n in range(25)]
    for index, session in enumerate(sessions):
        texts = said(session)
        assert len(texts) == 50
        assert {text.split()[0] for text in texts} == {str(index), str(index + 8)}


def test_a_stream_read_on_another_loop_misses_nothing() -> None:
    session = sa.Session(echo())

    async def read() -> list[int]:
        numbers = []
        async for event in session.events():
            numbers.append(event.seq)
        return numbers

    read_by: list[Any] = []

    def work(thread: int) -> None:
        if thread < 3:
            read_by.append(run(read()))
        else:
            for n in range(30):
                session.send(f"{thread} {n}").result()
            with lock:
                remaining.pop()
                if not remaining:
                    session.close()

    lock, remaining = threading.Lock(), [0] * 5
    assert in_threads(8, work) == [None] * 8
    last = session.actor.log.last
    whole = set(range(1, last + 1))
    for numbers in read_by:
        assert numbers == sorted(numbers)
        assert whole - set(numbers) <= set(), "a stream missed events"
