"""A server that is restarted, away for a while, or ends connections, while sessions are at work.

What was acknowledged is there once, nothing ran twice, people see all of it, and each failure was
told in one sentence. ``make soak`` does it at length.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest
from sagents_nb.store.journal import Journal
from tests.store import postgres
from tests.store.journals import database_of, kept, note
from tests.store.test_server import Proxy
from tests.talking import PATIENCE, agent_of, call

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
    """A session in which a tool has effects, while something happens to its server."""

    def __init__(self, store: sa.ConversationStore) -> None:
        self.effects: list[str] = []
        self.sentences: list[str] = []
        self.acknowledged: list[str] = []

        def act(what: str) -> str:
            """Do it."""
            self.effects.append(what)
            return f"did {what}"

        self.agent = agent_of(*[self._answer] * 1000, tools=[sa.tool(act)])
        self.store = store
        self.session = patiently(lambda: sa.Session(self.agent, store=store))

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
            if self._attempt(lambda n=n: self.session.send(f"m{n}")):  # type: ignore[misc]
                self.acknowledged.append(f"m{n}")
            self._come_to_rest(lambda: not hurting.is_alive())
        hurting.join(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while not self._come_to_rest(lambda: True) and time.monotonic() < deadline:
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

    def _attempt(self, begin: Callable[[], Any]) -> bool:
        """Whether it began; what it fails with is noted."""
        try:
            run = begin()
        except sa.StoreError as error:
            self.sentences.append(str(error))
            return False
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


@pytest.mark.parametrize("kind", HURTS)
def test_what_happens_to_a_server_loses_and_doubles_nothing(
    server: postgres.Server, kind: str
) -> None:
    lives(server, kind, times=2 if kind == "away" else 6, seed=1)


def test_a_commit_that_a_crash_undid_is_not_taken_for_that_of_somebody_else(
    server: postgres.Server,
) -> None:
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
