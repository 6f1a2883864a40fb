"""What cannot work, said to a session in a store: a clear sentence, and nothing half-written."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sagents_nb as sa
import sagents_nb.sql
from sagents_nb.errors import StoreError
from sagents_nb.store import ConversationStore
from tests.session.stored import Disk, folded, rows_of
from tests.talking import agent_of, call, unanswered

ODD = "NUL \0, half \ud800, other half \udc00, \ufffe, 🜚"
ANN, BOB = sa.Scope(user="ann"), sa.Scope(user="bob")
RAN: list[str] = []


@sa.tool
def write(path: str) -> str:
    """Write."""
    RAN.append(path)
    return f"wrote {path}"


GATED: dict[str, Any] = {"tools": [write], "interrupt_on": {"write": True}}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock is not waited for long, and nothing ran yet."""
    monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", 0.1)
    RAN.clear()


def session_in(store: ConversationStore, *turns: Any, **options: Any) -> sa.Session:
    return sa.Session(agent_of(*turns, **options), id="c1", store=store, scope=ANN)


def opened(store: ConversationStore, *turns: Any, **options: Any) -> sa.Session:
    return sa.Session.open("c1", agent=agent_of(*turns, **options), store=store, scope=ANN)


def said(kind: type[Exception], act: Callable[[], Any]) -> str:
    """The one sentence of the error."""
    with pytest.raises(kind) as caught:
        act()
    text = str(caught.value)
    assert re.fullmatch(r"[A-Z][^\n]+\.", text), text
    return text


def rows(store: ConversationStore) -> list[Any]:
    return rows_of(store.database.name)


@contextlib.contextmanager
def untouched(store: ConversationStore) -> Iterator[None]:
    """The journal is afterwards what it was."""
    before = rows(store)
    yield
    assert rows(store) == before


def test_a_conversation_of_another_scope_is_not_found_and_stays_as_it_is(
    store: ConversationStore,
) -> None:
    session_in(store, "hi").send("go").result()
    with untouched(store):
        for take_over in (False, True):
            text = said(
                sa.NotFound,
                lambda take_over=take_over: sa.Session.open(  # type: ignore[misc]
                    "c1", agent=agent_of(), store=store, scope=BOB, take_over=take_over
                ),
            )
            assert "'c1'" in text
            assert "ann" not in text
        said(sa.SagentsError, lambda: sa.Session(agent_of(), id="c1", store=store, scope=BOB))


def test_a_closed_session_says_how_its_conversation_is_opened(store: ConversationStore) -> None:
    session = session_in(store, call("write", path="a"), "done", **GATED)
    session.send("go").result()
    session.close()
    with untouched(store):
        for act in (
            lambda: session.send("x"),
            lambda: session.steer("x"),
            lambda: session.follow_up("x"),
            session.approve,
            session.reject,
            lambda: session.resume(sa.Approve()),
            session.retry,
            session.reset,
            session.replace,
        ):
            assert "Session.open" in said(sa.NotRunning, act)
    again = opened(store, "done", **GATED)
    assert again.approve().result().text == "done"  # type: ignore[union-attr]
    assert RAN == ["a"]


def test_an_interrupt_of_another_conversation_is_refused_and_its_own_still_waits(
    store: ConversationStore,
) -> None:
    session = session_in(store, call("write", path="a"), "done", **GATED)
    session.send("go").result()
    foreign = sa.Session(agent_of(call("write", path="b"), **GATED))
    foreign.send("go").result()
    own, other = session.interrupt, foreign.interrupt
    assert own is not None
    assert other is not None
    digests = {"c1": other.action_requests[0].digest}
    by = {"digests": digests, "by": "ann"}
    with untouched(store):
        for id in (other.id, own.id, "", ODD):
            decide = lambda id=id: session.decide({"c1": sa.Approve()}, interrupt_id=id, **by)  # noqa: E731
            said(sa.StaleApproval, decide)
        frame = pd.DataFrame({"a": [1]})
        shown = {"interrupt_id": own.id, "digests": {"c1": frame}, "by": "ann"}
        for odd in (shown, {"interrupt_id": frame, **by}):
            said(sa.StaleApproval, lambda odd=odd: session.decide({"c1": sa.Approve()}, **odd))
        assert "open are ['c1']" in said(sa.StaleApproval, lambda: session.approve("c2"))
        assert (RAN, session.status) == ([], "interrupted")
    assert session.approve().result().text == "done"  # type: ignore[union-attr]
    assert RAN == ["a"]


@pytest.mark.parametrize("damage", ["{", "null", '{"n": "1"}', "[[]]", "\x00"])
def test_a_damaged_row_is_set_aside_and_the_rest_goes_on(
    store: ConversationStore, disk: Disk, damage: str
) -> None:
    session = session_in(store, call("write", path="a"), "one", "two", tools=[write])
    session.send("go").result()
    session.send("on").result()
    session.close()
    path = disk.snapshot(store)
    victims = [seq for seq, kind, _ in rows_of(path) if kind == "message"]
    for victim in victims:
        copy = disk.store(disk.snapshot(store))
        with contextlib.closing(sqlite3.connect(copy.database.name)) as database, database:
            database.execute("UPDATE sagents_journal SET data = ? WHERE seq = ?", (damage, victim))
        again = opened(copy, "three", tools=[write])
        problems = again.info()["problems"]
        assert problems
        assert all(re.fullmatch(r"[^\n]+", problem) for problem in problems)
        assert again.send("still there?").result().text == "three"
        assert not unanswered(again.messages)
        again.close()
        third = opened(copy)
        assert (third.state, third.info()["problems"]) == (again.state, [])


BIG = "x" * 100_000


def test_a_message_that_finds_the_disk_full_is_told_and_can_be_sent_later(
    store: ConversationStore,
) -> None:
    session = session_in(store, "hi", "again", "at last")
    session.send("go").result()
    # As far as the file goes now; the next connection has more room.
    store.database.run(lambda c: c.exec_driver_sql("PRAGMA max_page_count=1").scalar())
    assert "the disk is full; free" in said(StoreError, lambda: session.send(BIG))
    assert session.current_run is not None
    said(StoreError, session.current_run.result)
    assert session.send(BIG).result().text == "again"
    assert session.send("on").result().text == "at last"
    assert [m.text for m in session.messages] == ["go", "hi", BIG, "again", "on", "at last"]
    assert folded(store).state == session.state


def test_a_message_that_finds_the_file_locked_is_told_and_can_be_sent_later(
    store: ConversationStore,
) -> None:
    session = session_in(store, "hi", "again", "at last")
    session.send("go").result()
    with untouched(store):
        other = sqlite3.connect(store.database.name, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert "has had it locked" in said(StoreError, lambda: session.send(BIG))
        assert session.current_run is not None
        said(StoreError, session.current_run.result)
        assert session.status == "error"
    other.rollback()
    other.close()
    assert session.send(BIG).result().text == "again"
    assert session.send("on").result().text == "at last"
    assert [m.text for m in session.messages] == ["go", "hi", BIG, "again", "on", "at last"]
    assert folded(store).state == session.state


def test_odd_texts_are_kept_word_for_word_wherever_people_and_models_put_them(
    store: ConversationStore, disk: Disk
) -> None:
    turns = [call("write", id=ODD, path=ODD), ODD]
    session = session_in(store, *turns, **GATED)
    session.send(ODD).result()
    copy = disk.store(disk.snapshot(store))
    waiting = sa.Session.open("c1", agent=agent_of(**GATED), store=copy, scope=ANN, take_over=True)
    assert waiting.state == session.state
    session.approve(ODD, by=ODD).result()  # type: ignore[union-attr]
    session.follow_up(ODD)
    session.close(ODD)
    again = opened(store, "end")
    assert [m.text for m in again.messages if m.text] == [ODD, ODD]
    assert (again.state, RAN) == (session.state, [ODD])
    assert again.retry().result().text == "end"
    assert again.messages[-2].text == ODD


@pytest.mark.parametrize("id", ["x" * 300, 7, b"c"])
def test_an_id_that_no_store_can_keep_is_refused(store: ConversationStore, id: Any) -> None:
    said(sa.ConfigurationError, lambda: sa.Session(agent_of("hi"), id=id, store=store))
    assert store.list_conversations() == []


@pytest.mark.parametrize("id", [ODD, "\0", "\ud800", "../c1", "c1' OR 1=1 --"])
def test_an_odd_id_is_that_of_one_conversation(store: ConversationStore, id: str) -> None:
    session_in(store, "hi").send("go").result()
    with untouched(store), pytest.raises(sa.NotFound):
        sa.Session.open(id, agent=agent_of(), store=store)
    session = sa.Session(agent_of("hi"), id=id, store=store)
    session.send(ODD).result()
    session.close()
    assert sa.Session.open(id, agent=agent_of(), store=store).state == session.state


def test_an_id_without_a_character_is_refused() -> None:
    with pytest.raises(sa.ConfigurationError, match="a character at least"):
        sa.Session(agent_of(), id="")


ODD_FIELDS = {
    "usage": {"usage": sa.Usage(input_tokens=12.5)},  # type: ignore[arg-type]
    "error": {"error": 5},
    "metadata": {"metadata": [1]},
    "stop_reason": {"stop_reason": "banana"},
    "id": {"parts": (sa.ToolCall(7, "pay", {}),)},  # type: ignore[arg-type]
    "signature": {"parts": (sa.ThinkingPart("t", signature=5), sa.ToolCall("c1", "pay", {}))},  # type: ignore[arg-type]
}


@pytest.mark.parametrize("field", [f for f in ODD_FIELDS if f != "usage"])  # not told, then
def test_an_answer_that_nobody_could_read_again_runs_nothing_and_is_an_error(
    field: str, tmp_path: Path
) -> None:
    ran: list[str] = []
    pay = sa.Tool(lambda: ran.append("paid"), name="pay")
    whole = {"parts": (sa.ToolCall("c1", "pay", {}),), "stop_reason": "tool_use"}
    odd = sa.Message("assistant", **{**whole, **ODD_FIELDS[field]})  # type: ignore[arg-type]
    with contextlib.closing(sa.ConversationStore(tmp_path / "c.db")) as store:
        agent = sa.Agent(sa.ScriptedModel([lambda request: odd, "better"]), tools=[pay])
        session = sa.Session(agent, id="c1", store=store)
        with pytest.raises(sa.AgentError, match=r"a message that cannot be kept: .*nothing of it"):
            session.send("go").result()
        assert session.send("again").result().text == "better"
        kept = session.messages
        session.close()
        again = sa.Session.open("c1", agent=agent, store=store)
        assert (list(again.messages), again.info()["problems"], ran) == (list(kept), [], [])
        again.close()


@pytest.mark.parametrize("field", ["usage", "error", "metadata", "stop_reason"])
def test_a_message_that_nobody_could_read_again_is_refused(field: str, tmp_path: Path) -> None:
    odd = sa.Message("user", (sa.TextPart("hi"),), **ODD_FIELDS[field])  # type: ignore[arg-type]
    agent = sa.Agent(sa.ScriptedModel(["fine"]))
    with contextlib.closing(sa.ConversationStore(tmp_path / "c.db")) as store:
        session = sa.Session(agent, id="c1", store=store)
        with pytest.raises(sa.ConfigurationError, match="Message 1 of the prompt cannot be kept"):
            session.send(odd)
        with pytest.raises(sa.ConfigurationError, match="Message 1 of the state cannot be kept"):
            sa.Session(agent, id="c2", store=store, state=sa.State(messages=[odd]))
        assert session.send("hi").result().text == "fine"
        assert [one.id for one in store.list_conversations()] == ["c1"]
        session.close()
