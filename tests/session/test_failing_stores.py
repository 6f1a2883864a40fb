"""Whatever fails to be written, and whatever people do meanwhile, the store tells the truth."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import SagentsError, StoreError
from sagents_nb.models.base import ModelRequest
from sagents_nb.session import journal as journaling
from sagents_nb.store.journal import Journal
from tests.session.stored import Disk, disk, folded
from tests.talking import PATIENCE, agent_of, call, until


@sa.tool
def look(where: str) -> str:
    """Look there."""
    return f"{where} is fine"


def full(connection: Any) -> None:
    raise StoreError("The store cannot be used: the disk is full.")


class Life:
    """One session, some threads that use it, and a disk that is full now and then."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch, place: Disk) -> None:
        self.chance = random.Random(seed)
        self.rate = 0.0
        self.taken: set[str] = set()
        self.refused: set[str] = set()
        append = Journal.append

        def failing(journal: Journal, *what: Any) -> Any:
            works = self.chance.random() >= self.rate
            future = append(journal, *what) if works else journal.database.submit(full)
            if self.chance.random() < 0.3:  # it has answered before anybody listens
                future.exception(PATIENCE)
            return future

        patch.setattr(Journal, "append", failing)
        patch.setattr(journaling, "LAG", 0.01)
        self.agent = agent_of(*[self._answer] * 1000, tools=[look])
        self.store = place.store()
        self.session = sa.Session(self.agent, "c1", store=self.store)

    def _answer(self, request: ModelRequest) -> Any:
        if request.messages[-1].role == "user" and self.chance.random() < 0.3:
            return call("look", f"c{self.chance.random()}", where="here")
        return "fine"

    def live(self) -> None:
        """Do this and that, and wait until all of it has ended."""
        self.rate = self.chance.choice((0.0, 0.1, 0.3))
        threads: list[threading.Thread] = []
        for number in range(25):
            doing = self.chance.random()
            if doing < 0.7:
                when = self.chance.choice(("queue", "queue", "steer", "follow_up"))
                threads.append(
                    threading.Thread(target=self._say, args=(f"m{number}", when), daemon=True)
                )
                threads[-1].start()
                if self.chance.random() < 0.5:
                    threads[-1].join(PATIENCE)
            elif doing < 0.8:
                with suppress(StoreError):
                    self.session.cancel()
            elif doing < 0.9:
                with suppress(SagentsError):
                    self.session.retry()
            else:
                time.sleep(0.001)
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        self.rate = 0.0
        until(lambda: self.session.status != "running")

    def _say(self, text: str, when: str) -> None:
        try:
            if when == "follow_up":
                self.session.follow_up(text)
            else:
                self.session.send(text, when=when)
            self.taken.add(text)
        except StoreError:
            self.refused.add(text)
        except SagentsError:  # it is not the time
            pass


def check(life: Life, place: Disk, crashes: bool) -> None:
    """Open what is in the store, as after a crash or a close."""
    if crashes:
        again = place.crashed(life.session, agent=life.agent)
    else:
        life.session.close()
        again = sa.Session.open("c1", agent=life.agent, store=life.store)
    assert again.info()["problems"] == []
    store = place.stores[-1]
    history = [m.text for m in again.messages if m.role == "user"]
    waiting = [w.message.text for w in folded(store).queued]
    assert not life.taken - {*history, *waiting}, "what was acknowledged is lost"
    assert not life.refused & {*history, *waiting}, "what was refused came all the same"
    assert len(set(history)) == len(history)
    rows = [row for row in store.load_display_messages("c1") if row.message_type == "user"]
    assert [row.content["text"] for row in rows] == history
    again.close()


def live(count: int, patch: pytest.MonkeyPatch) -> None:
    for seed in range(count):
        with disk() as place, patch.context() as patched:
            life = Life(seed, patched, place)
            life.live()
            check(life, place, crashes=seed % 2 == 0)


def test_who_hears_of_a_failure_at_once_does_not_take_it_for_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(journal: Journal, *what: Any) -> Any:
        future = journal.database.submit(full)
        assert future.exception(PATIENCE)
        return future

    asked: list[str] = []

    def answer(request: ModelRequest) -> str:
        asked.append(request.messages[-1].text)
        return "fine"

    with disk() as place, sa.Session(agent_of(answer, answer), store=place.store()) as session:
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "append", failing)
            with pytest.raises(StoreError, match="the disk is full"):
                session.send("lost").result(PATIENCE)
        assert asked == []
        assert session.messages == []
        assert session.send("kept").result(PATIENCE).text == "fine"
        assert asked == ["kept"]


def test_what_is_acknowledged_is_there_and_what_is_refused_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live(30, monkeypatch)


@pytest.mark.soak
def test_the_same_in_a_thousand_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    live(1000, monkeypatch)


def test_a_message_that_the_store_does_not_even_take_is_refused_and_nobody_waits_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left(*args: Any) -> Any:
        raise RuntimeError("can't start new thread")

    with disk() as place:
        session = sa.Session(agent_of(*["fine"] * 5), "c1", store=place.store())
        session.send("hi").result(PATIENCE)
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "append", none_left)
            with pytest.raises(StoreError, match="takes nothing now: can't start new thread"):
                session.send("lost").result(PATIENCE)
            until(lambda: session.status != "running")
        assert session.send("and now?").result(PATIENCE).text == "fine"
        assert [m.text for m in session.messages if m.role == "user"] == ["hi", "and now?"]


def test_what_could_not_be_written_is_written_once_it_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journaling, "AGAIN", 0.01)
    monkeypatch.setattr(journaling, "AGAIN_MOST", 0.02)
    append, fails = Journal.append, [False] + [True] * 20

    def failing(journal: Journal, *what: Any) -> Any:
        if fails and fails.pop(0):
            return journal.database.submit(fail)
        return append(journal, *what)

    def fail(connection: Any) -> None:
        raise StoreError("The store cannot be used: the server is away.")

    with disk() as place:
        store = place.store()
        session = sa.Session(agent_of("an answer"), "c1", store=store)
        monkeypatch.setattr(Journal, "append", failing)
        with pytest.raises(StoreError, match="away"):
            session.send("a question").result()
        until(lambda: len(folded(store).state.messages) == 2)  # nobody did anything
        assert [m.text for m in session.messages] == ["a question", "an answer"]
        shown = [row.content.get("text") for row in store.load_display_messages("c1")]
        assert shown[:2] == ["a question", "an answer"]
        session.close()


@pytest.mark.parametrize("script", [["fine"], [call("look", where="here"), "fine"]])
def test_the_end_of_a_run_that_cannot_be_written_is_told_at_once_to_all_who_hear_of_it(
    script: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failing = Journal.append, threading.Event()
    held: list[Future[int]] = []

    def locked(journal: Journal, *what: Any) -> Any:
        """The first is refused, those that come then are waited for as long as anybody does."""
        if not failing.is_set():
            return append(journal, *what)
        future: Future[int] = Future()
        if held:
            held.append(future)
            return future
        held.append(future)
        future.set_exception(StoreError("The store cannot be used: it is locked."))
        return future

    @sa.tool(name="look")
    def lock(where: str) -> str:
        """Look there."""
        failing.set()
        return "seen"

    def answer(request: ModelRequest) -> Any:
        if len(script) == 1:
            failing.set()
        return script[0]

    with disk() as place:
        store = place.store()
        session = sa.Session(agent_of(answer, *script[1:], tools=[lock]), "c1", store=store)
        events: list[Any] = []
        session.subscribe(events.append)
        monkeypatch.setattr(Journal, "append", locked)
        run = session.send("go")
        with pytest.raises(StoreError, match="it is locked"):
            run.result(PATIENCE)
        until(lambda: events[-1].type == "status_changed" and events[-1].status == "error")
        assert (session.status, run.status) == ("error", "error")
        [end] = [event for event in events if event.type == "agent_end"]
        assert end.status == "error"
        assert "it is locked" in end.error
        assert "it is locked" in events[-1].reason
        monkeypatch.setattr(Journal, "append", append)
        for future in held[1:]:
            future.set_exception(StoreError("The store cannot be used: it is locked."))
