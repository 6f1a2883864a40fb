"""A server that is restarted, away for a while, or ends connections, while sessions are at work.

Or the connection is cut in a commit, or the process is killed.

What was acknowledged is there once, nothing ran twice, people see all of it, and each failure was
told in one sentence. ``make soak`` does it at length.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest
from sagents_nb.store.database import connection
from sagents_nb.store.journal import Journal
from tests.store import postgres
from tests.store.journals import database_of, kept, note
from tests.store.test_server import Proxy
from tests.talking import PATIENCE, agent_of, call, until

T = TypeVar("T")

MESSAGES = 8


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """One that the tests of this module may stop."""
    if postgres.find_programs() is None:
        pytest.skip("PostgreSQL is not installed; run python tests/store/postgres.py as root")
    with postgres.serving() as server:
        yield server


def restart(server: postgres.Server, away: float = 0.0) -> None:
    """Stop it at once, as a crash would, and start it after a while."""
    server.stop()
    time.sleep(away)
    server.start()


def end_connections(server: postgres.Server) -> None:
    """Have it end all connections but the one that asks for it."""
    _of_others(server, "SELECT pg_terminate_backend(pid)")


def kill_a_process_of_it(server: postgres.Server) -> None:
    """Kill one, after which it starts again by itself."""
    for pid in _of_others(server, "SELECT pid")[:1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _of_others(server: postgres.Server, what: str) -> list[Any]:
    engine = sql.create_engine(server.url)
    others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
    with suppress(sql.exc.DBAPIError), engine.connect() as connection:
        found = connection.exec_driver_sql(f"{what} FROM pg_stat_activity WHERE {others}")
        return list(found.scalars())
    engine.dispose()
    return []


HURTS = {
    "restarted": restart,
    "away": lambda server: restart(server, 0.5),
    "ended": end_connections,
    "killed": kill_a_process_of_it,
}


def patiently(ask: Callable[[], T]) -> T:
    """What it gives once the server is back."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except sa.StoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


class Life:
    """A session in which a tool has effects, while something happens to its server.

    ``tell`` hears of each effect, and of each message that was acknowledged, at once.
    """

    def __init__(
        self,
        store: sa.ConversationStore,
        id: str | None = None,
        tell: Callable[[str, str], None] = lambda what, text: None,
    ) -> None:
        self.effects: list[str] = []
        self.sentences: list[str] = []
        self.acknowledged: list[str] = []
        self.tell = tell

        def act(what: str) -> str:
            """Do it."""
            tell("effect", what)
            self.effects.append(what)
            return f"did {what}"

        self.agent = agent_of(*[self._answer] * 1000, tools=[sa.tool(act)])
        self.store = store
        self.session = patiently(lambda: self._begun(id))

    def _begun(self, id: str | None) -> sa.Session:
        if id is not None and self.store.find_conversation(id):
            return sa.Session.open(id, agent=self.agent, store=self.store)
        return sa.Session(self.agent, id=id, store=self.store)

    def _answer(self, request: ModelRequest) -> Any:
        last = request.messages[-1]
        if last.role == "user":
            return [f"I do {last.text}.", call("act", id=f"c {last.text}", what=last.text)]
        return f"Done: {len(request.messages)}"

    def live(self, hurt: Callable[[], None], after: float) -> None:
        """Say this and that; ``hurt`` happens after so many seconds."""
        hurting = threading.Timer(after, hurt)
        hurting.start()
        for n in range(MESSAGES):
            self.say(f"m{n}", lambda: not hurting.is_alive())
        hurting.join(PATIENCE)
        self.go_on()

    def say(self, text: str, is_over: Callable[[], bool] = lambda: True) -> None:
        """Send it, and see to what comes of it, until nothing will happen any more."""
        if self._attempt(lambda: self.session.send(text), text):
            self.acknowledged.append(text)
        self._come_to_rest(is_over)

    def go_on(self) -> None:
        """Do what is left to be done."""
        deadline = time.monotonic() + PATIENCE
        while not self._come_to_rest(lambda: True):
            assert time.monotonic() < deadline, f"it hangs: {self.session.info()}"
            time.sleep(0.05)

    def _come_to_rest(self, is_over: Callable[[], bool]) -> bool:
        """Do what a person would who is told of a failure; whether nothing is left to be done."""
        session = self.session
        if session.status == "interrupted":  # it is not known whether a call ran
            assert session.interrupt is not None
            answers = [
                sa.Respond(answer="ran" if r.arguments["what"] in self.effects else "did not run")
                for r in session.interrupt.action_requests
            ]
            self._attempt(lambda: session.resume(answers))
        elif session.status in ("error", "paused"):
            with suppress(sa.NotRunning):  # there is nothing to retry
                self._attempt(session.retry)
        rests = session.status == "idle" and not session.info()["queued"]
        return rests or (is_over() and session.status == "error" and not self._waits())

    def _waits(self) -> bool:
        last = self.session.messages[-1:]
        return bool(last) and (last[0].role != "assistant" or bool(last[0].tool_calls))

    def _attempt(self, begin: Callable[[], Any], text: str = "") -> bool:
        """Whether it began; what it fails with is noted."""
        try:
            run = begin()
        except sa.StoreError as error:
            self.sentences.append(str(error))
            return False
        if text:
            self.tell("sent", text)
        try:
            with suppress(sa.NotRunning):  # it waits in the queue of a session that failed
                run.result(PATIENCE)
        except sa.StoreError as error:
            self.sentences.append(str(error))
        return True

    def look(self) -> None:
        """What is there when somebody opens it again."""
        with suppress(sa.StoreError):
            self.session.close()
        id = self.session.id
        again = patiently(
            lambda: sa.Session.open(id, agent=self.agent, store=self.store, take_over=True)
        )
        said = [message.text for message in again.messages if message.role == "user"]
        assert [text for text in self.acknowledged if text not in said] == []
        assert len(said) == len(set(said))
        assert len(self.effects) == len(set(self.effects))
        assert again.info()["problems"] == []
        texts = [m.text for m in again.messages if m.role != "tool" and m.text]
        rows = patiently(lambda: self.store.load_display_messages(id))
        shown = [
            row.content["text"]
            for row in rows
            if row.content_type == "text" and row.message_type in ("user", "assistant")
        ]
        assert shown == texts
        statuses = {row.status for row in rows if row.content_type == "tool_call"}
        assert not statuses & {"pending", "executing"}
        for sentence in self.sentences:
            assert sentence.startswith(("The store postgresql://", "Entries of conversation")), (
                sentence
            )
            assert "\n" not in sentence
        again.close()


def lives(server: postgres.Server, kind: str, times: int, seed: int) -> None:
    """So many sessions to whose server that happens."""
    chance = random.Random(seed)
    store = sa.ConversationStore(server.url)
    for _ in range(times):
        life = Life(store)
        life.live(lambda: HURTS[kind](server), chance.uniform(0, 0.15))
        life.look()
    store.close()


def cut_lives(server: postgres.Server, times: int, away: float, seed: int) -> None:
    """So many sessions whose connection is cut in a commit, with nobody to be asked for a while."""
    chance = random.Random(seed)
    url = sql.make_url(server.url)
    between = Proxy(url.port or 5432)
    store = sa.ConversationStore(url.set(port=between.port).render_as_string(hide_password=False))

    def hurt() -> None:
        between.cut = chance.choice(["before", "after", "away"])
        while between.cut:
            time.sleep(0.001)
        if between.refuses:
            time.sleep(away)
            between.refuses = False

    for number in range(1, times + 1):
        life = Life(store)
        life.live(hurt, chance.uniform(0, 0.1))
        life.look()
        assert between.cuts == number
    store.close()
    between.close()


def talk_until_killed(pipe: Connection, url: str, id: str) -> None:
    """In a process of its own: say what is acknowledged, and what has an effect."""
    life = Life(sa.ConversationStore(url), id, lambda *said: pipe.send(said))
    for n in range(1000):
        life.say(f"m{n}")


def kill_lives(url: str, times: int, seed: int) -> None:
    """So many sessions whose process is killed; somebody else goes on with each."""
    chance = random.Random(seed)
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    store = sa.ConversationStore(url)
    for number in range(times):
        here, there = context.Pipe()
        said: list[tuple[str, str]] = []
        process = context.Process(target=talk_until_killed, args=(there, url, f"killed {number}"))
        process.start()
        there.close()
        with suppress(EOFError, ConnectionResetError):
            for _ in range(chance.randint(1, 3 * MESSAGES)):
                said.append(here.recv())
            time.sleep(chance.uniform(0, 0.01))
            process.kill()
            while True:  # what it said before it died
                said.append(here.recv())
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL, "it ended by itself"
        life = Life(store, f"killed {number}")
        life.effects += [text for what, text in said if what == "effect"]
        life.acknowledged += [text for what, text in said if what == "sent"]
        life.go_on()
        life.say("last")
        life.look()
    store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 of a fork server's child")
def test_whose_process_is_killed_loses_and_doubles_nothing(url: str) -> None:
    kill_lives(url, 6, seed=1)


@pytest.mark.soak
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 of a fork server's child")
def test_sixty_whose_processes_are_killed_lose_and_double_nothing(url: str) -> None:
    kill_lives(url, 60, seed=int(time.time()))


def test_whose_commits_are_cut_loses_and_doubles_nothing(server: postgres.Server) -> None:
    cut_lives(server, 2, away=0.3, seed=2)


@pytest.mark.soak
def test_twenty_whose_commits_are_cut_lose_and_double_nothing(server: postgres.Server) -> None:
    cut_lives(server, 20, away=3.0, seed=int(time.time()))


@pytest.mark.parametrize("kind", HURTS)
def test_what_happens_to_a_server_loses_and_doubles_nothing(
    server: postgres.Server, kind: str
) -> None:
    lives(server, kind, times=2 if kind == "away" else 6, seed=1)


def test_a_commit_that_a_crash_undid_is_not_taken_for_that_of_somebody_else(
    server: postgres.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "DOUBT_SECONDS", PATIENCE)  # however long a start takes
    url = sql.make_url(server.url)
    between = Proxy(url.port or 5432)
    with database_of(server.url, "crashed"):
        pass
    through = url.set(port=between.port).render_as_string(hide_password=False)
    with database_of(through, "crashed") as database, database_of(server.url, "other") as other:
        journal, _, _ = Journal.open(database, "crashed")
        noting, _, _ = Journal.open(other, "other")
        between.cut, between.at_cut = "before", lambda: restart(server)
        future = journal.append([note("once")])
        until(lambda: not between.cut)
        for n in range(20):  # which get the numbers that a crash has taken back
            patiently(lambda n=n: noting.append([note(n)]).result(PATIENCE))  # type: ignore[misc]
        between.refuses = False
        assert future.exception(PATIENCE) is None
        assert kept(database, "crashed") == ["once"]
    between.close()


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "times"), [("restarted", 60), ("ended", 60), ("killed", 60)])
def test_sixty_times_nothing_is_lost_or_doubled(
    server: postgres.Server, kind: str, times: int
) -> None:
    lives(server, kind, times, seed=int(time.time()))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_server_that_is_away_for_half_a_minute(server: postgres.Server) -> None:
    store = sa.ConversationStore(server.url)
    for _ in range(20):
        life = Life(store)
        life.live(lambda: restart(server, 30.0), 0.05)
        life.look()
    store.close()
