"""Who watches a session, and what it does when nobody needs it."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import (
    AgentShutdown,
    Frozen,
    NodeTransferred,
    NodeTransferring,
    StatusChanged,
)
from sagents_nb.runtime.thread import runtime
from sagents_nb.store import ConversationStore
from tests.session.gates import Gate
from tests.session.hours import Hours
from tests.session.stored import Disk
from tests.talking import PATIENCE, agent_of, call, of, until

SOON = 60.0


def living(*turns: Any, tools: Any = (), gated: Any = None, **around: Any) -> sa.Session:
    return sa.Session(agent_of(*turns, tools=tools, interrupt_on=gated), **around)


class Heard:
    """The events of a session, and a way to wait for one."""

    def __init__(self, session: sa.Session) -> None:
        self.events: list[Any] = []
        self._new = threading.Condition()
        session.subscribe(self._take)

    def _take(self, event: Any) -> None:
        with self._new:
            self.events.append(event)
            self._new.notify_all()

    def wait_for(self, kind: type[Any]) -> Any:
        with self._new:
            assert self._new.wait_for(lambda: of(kind, self.events), PATIENCE), kind
            return of(kind, self.events)[-1]


@pytest.mark.spec("S1.11.9")
def test_a_session_that_nobody_uses_rests_and_says_since_when(hours: Hours) -> None:
    session = living("a", inactivity_timeout=SOON)
    heard = Heard(session)
    session.send("go").result()
    used = hours.time()
    hours.pass_by(SOON)
    shutdown = heard.wait_for(AgentShutdown)
    assert shutdown.reason == "inactivity"
    assert used == shutdown.last_activity_at <= shutdown.shutdown_at
    assert session.status == "closed"
    assert [m.text for m in session.messages] == ["go", "a"]


@pytest.mark.spec("S1.11.9")
def test_a_run_that_takes_longer_than_the_timeout_is_not_stopped(gate: Gate, hours: Hours) -> None:
    session = living(call("hold"), "done", tools=[gate.tool], inactivity_timeout=SOON)
    run = session.send("go")
    gate.wait()
    hours.pass_by(4 * SOON)
    assert session.status == "running"
    gate.open()
    assert run.result().text == "done"
    heard = Heard(session)
    hours.pass_by(SOON)
    heard.wait_for(AgentShutdown)


@pytest.mark.spec("S1.11.9")
def test_reading_is_no_use_but_touching_is(hours: Hours) -> None:
    session = living("a", inactivity_timeout=4 * SOON)
    heard = Heard(session)
    for _ in range(8):
        session.touch()
        hours.pass_by(SOON)
    assert session.status == "idle"
    for _ in range(3):  # reading all the time does not keep it awake
        _ = session.messages, session.state, session.info()
        hours.pass_by(SOON)
    assert heard.wait_for(AgentShutdown).reason == "inactivity"


@pytest.mark.spec("S1.11.9")
def test_without_a_timeout_it_stays(hours: Hours) -> None:
    session = living("a", inactivity_timeout=None)
    hours.pass_by(1000 * SOON)
    assert session.status == "idle"


@pytest.mark.parametrize("wrong", [0, -1, "soon"])
def test_a_timeout_is_a_number_of_seconds(wrong: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match=r"inactivity_timeout=….* is a number"):
        living("a", inactivity_timeout=wrong)


@pytest.mark.spec("S1.10.6", "S1.11.9")
def test_a_message_wakes_a_session_that_rests_and_who_listened_still_hears(hours: Hours) -> None:
    session = living("a", "b", inactivity_timeout=SOON)
    heard = Heard(session)
    session.send("one").result()
    hours.pass_by(SOON)
    heard.wait_for(AgentShutdown)
    heard.events.clear()
    assert session.send("two").result().text == "b"
    assert [m.text for m in session.messages] == ["one", "a", "two", "b"]
    assert [e.status for e in of(StatusChanged, heard.events)][:2] == ["running", "idle"]


@pytest.mark.spec("S1.10.6")
def test_an_answer_wakes_a_session_that_rests_and_is_applied_once(gate: Gate, hours: Hours) -> None:
    gate.open()
    session = living(
        call("hold"),
        "done",
        tools=[gate.tool],
        gated={"hold": True},
        inactivity_timeout=SOON,
    )
    heard = Heard(session)
    session.send("go").result()
    hours.pass_by(SOON)
    assert heard.wait_for(AgentShutdown).restorable
    heard.events.clear()
    run = session.approve()
    assert run is not None
    assert run.result().text == "done"
    assert of(StatusChanged, heard.events)[0].status == "running"  # no flash of the question
    with pytest.raises((sa.NotRunning, sa.StaleApproval)):
        session.approve()


def test_a_stored_session_that_rests_lets_go_of_its_conversation_and_finds_it_again(
    store: ConversationStore, hours: Hours
) -> None:
    first = sa.Session(agent_of("a", "d"), "c1", store=store, inactivity_timeout=SOON)
    heard = Heard(first)
    first.send("one").result()
    hours.pass_by(SOON)
    heard.wait_for(AgentShutdown)
    second = sa.Session.open("c1", agent=agent_of("b"), store=store, inactivity_timeout=None)
    with pytest.raises(sa.SagentsError, match="c1"):
        first.send("too early")
    second.send("two").result()
    second.close()
    assert first.send("three").result().text == "d"
    assert [m.text for m in first.messages] == ["one", "a", "two", "b", "three", "d"]


@pytest.mark.spec("H3.1.8")
def test_events_are_numbered_on_also_where_another_had_the_conversation_meanwhile(
    store: ConversationStore, hours: Hours
) -> None:
    run: list[sa.RunContext] = []

    class Keeps(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> None:
            run.append(ctx)

    agent = agent_of("a", "d", middleware=[Keeps()])
    first = sa.Session(agent, "c1", store=store, inactivity_timeout=SOON)
    heard = Heard(first)
    first.send("one").result()
    hours.pass_by(SOON)
    heard.wait_for(AgentShutdown)
    second = sa.Session.open("c1", agent=agent_of("b"), store=store, inactivity_timeout=None)
    between = Heard(second)
    second.send("two").result()
    second.close()
    asleep = len(heard.events)
    first.send("three").result()
    runtime.call(run[0].publish, Frozen)  # as what a hook began before that may do
    first.publish(Frozen())
    numbers = [e.seq for e in [*heard.events[:asleep], *between.events, *heard.events[asleep:]]]
    assert [e.type for e in heard.events[-2:]] == ["frozen", "frozen"]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1


def test_a_session_that_was_closed_is_not_woken() -> None:
    session = living("a")
    session.close()
    with pytest.raises(sa.NotRunning, match="closed"):
        session.send("go")


@pytest.mark.spec("S1.11.10")
def test_without_viewers_it_rests_after_the_delay_and_not_before_anybody_came(hours: Hours) -> None:
    session = living("a", inactivity_timeout=None, presence_timeout=SOON)
    heard = Heard(session)
    hours.pass_by(3 * SOON)
    assert session.status == "idle"
    leave = session.watch("page")
    leave()
    hours.pass_by(SOON)
    assert heard.wait_for(AgentShutdown).reason == "no_viewers"


@pytest.mark.spec("S1.11.10")
def test_a_viewer_who_comes_back_in_time_keeps_it(hours: Hours) -> None:
    session = living("a", inactivity_timeout=None, presence_timeout=4 * SOON)
    session.watch("page")()
    hours.pass_by(3 * SOON)
    stay = session.watch("page")
    hours.pass_by(8 * SOON)
    assert session.status == "idle"
    assert session.viewers == ["page"]
    stay()


@pytest.mark.spec("S1.11.10")
def test_the_delay_begins_when_the_last_viewer_leaves_and_anew_each_time(hours: Hours) -> None:
    session = living("a", inactivity_timeout=None, presence_timeout=4 * SOON)
    heard = Heard(session)
    first, second = session.watch("page"), session.watch("other page")
    first()
    hours.pass_by(8 * SOON)
    assert session.status == "idle"
    second()
    hours.pass_by(3 * SOON)
    session.watch("page")()
    hours.pass_by(3 * SOON)
    assert session.status == "idle"
    hours.pass_by(SOON)
    assert heard.wait_for(AgentShutdown).reason == "no_viewers"


@pytest.mark.spec("S1.11.10")
def test_who_runs_or_waits_for_people_is_not_stopped_by_their_absence(
    gate: Gate, hours: Hours
) -> None:
    session = living(
        call("hold"),
        "done",
        tools=[gate.tool],
        gated={"hold": True},
        inactivity_timeout=None,
        presence_timeout=SOON,
    )
    session.watch("page")()
    session.send("go").result()
    hours.pass_by(3 * SOON)
    assert session.status == "interrupted"
    heard = Heard(session)
    run = session.approve()
    gate.wait()
    hours.pass_by(3 * SOON)
    assert session.status == "running"
    gate.open()
    assert run is not None
    run.result()
    hours.pass_by(SOON - 1)
    assert session.status == "idle"
    hours.pass_by(1)
    assert heard.wait_for(AgentShutdown).reason == "no_viewers"  # asked again when the run ended


@pytest.mark.spec("S1.11.10")
@pytest.mark.parametrize(
    "let_go",
    [
        lambda session: session.cancel(),
        lambda session: session.reset(),
        lambda session: session.replace(state=sa.State()),
    ],
    ids=["cancel", "reset", "replace"],
)
def test_a_question_that_is_let_go_while_nobody_watches_begins_the_delay(
    let_go: Any, gate: Gate, hours: Hours
) -> None:
    session = living(
        call("hold"),
        tools=[gate.tool],
        gated={"hold": True},
        inactivity_timeout=None,
        presence_timeout=SOON,
    )
    session.watch("page")()
    session.send("go").result()
    hours.pass_by(3 * SOON)
    heard = Heard(session)
    let_go(session)
    hours.pass_by(SOON - 1)
    assert session.status in ("idle", "cancelled")
    hours.pass_by(1)
    assert heard.wait_for(AgentShutdown).reason == "no_viewers"


@pytest.mark.spec("S1.11.9", "S1.11.10")
@pytest.mark.parametrize(
    ("around", "reason"),
    [
        ({"inactivity_timeout": SOON}, "inactivity"),
        ({"inactivity_timeout": None, "presence_timeout": SOON}, "no_viewers"),
    ],
)
def test_a_reset_of_a_run_that_took_longer_than_the_timeout_begins_it_anew(
    around: dict[str, Any], reason: str, gate: Gate, hours: Hours
) -> None:
    session = living(call("hold"), tools=[gate.tool], **around)
    session.watch("page")()
    session.send("go")
    gate.wait()
    hours.pass_by(3 * SOON)
    heard = Heard(session)
    session.reset()
    assert session.status == "idle"
    hours.pass_by(SOON)
    assert heard.wait_for(AgentShutdown).reason == reason


def test_who_watches_keeps_a_session_awake(hours: Hours) -> None:
    session = living("a", inactivity_timeout=SOON)
    leave = session.watch("page")
    hours.pass_by(3 * SOON)
    assert session.status == "idle"
    leave()
    heard = Heard(session)
    hours.pass_by(SOON)
    heard.wait_for(AgentShutdown)


@pytest.mark.spec("S1.11.16")
def test_a_viewer_that_dies_does_not_watch_any_more() -> None:
    class Page:
        pass

    session, page = living("a"), Page()
    session.watch("page", owner=page)
    assert session.viewers == ["page"]
    del page
    gc.collect()
    runtime.call(lambda: None)
    assert session.viewers == []


def test_a_session_is_not_kept_by_those_who_watch() -> None:
    class Page:
        pass

    session, page = living("a"), Page()
    session.watch("page", owner=page)
    gone = weakref.ref(session)
    del session
    until(lambda: gc.collect() >= 0 and gone() is None)


def test_the_same_viewer_twice_is_one_and_leaves_once() -> None:
    session = living("a")
    first, second = session.watch("page"), session.watch("page")
    first()
    runtime.call(lambda: None)
    assert session.viewers == ["page"]
    second()
    runtime.call(lambda: None)
    assert session.viewers == []


def test_a_forgotten_session_is_not_kept_by_its_timer() -> None:
    session = living("a", inactivity_timeout=1000)
    gone = threading.Event()
    weakref.finalize(session, gone.set)
    del session
    runtime.call(lambda: None)
    gc.collect()
    assert gone.is_set()


@pytest.mark.spec("S1.11.11")
def test_the_summary_of_a_session_says_who_where_and_since_when(gate: Gate) -> None:
    began = time.time()
    session = living(call("hold"), "b", tools=[gate.tool], scope=sa.Scope(user="ann"))
    session.watch("page")
    info = session.info()
    assert began <= info["started_at"] <= info["last_activity_at"] <= time.time()
    assert (info["id"], info["status"], info["viewers"]) == (session.id, "idle", ["page"])
    assert info["scope"] == sa.Scope(user="ann").owner_id
    assert ":" in info["node"]
    run = session.send("go")
    gate.wait()
    assert session.info()["status"] == "running"
    gate.open()
    run.result()
    assert session.info()["last_activity_at"] >= info["last_activity_at"]


@pytest.mark.spec("S1.11.12")
def test_a_session_that_leaves_for_another_process_says_so(
    store: ConversationStore, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sa.Session(agent_of("a"), "c1", store=store)
    session.send("one").result()
    heard = Heard(session)
    session.transfer()
    assert heard.wait_for(NodeTransferring).node == session.info()["node"]
    assert heard.wait_for(AgentShutdown).reason == "transferring"
    monkeypatch.setattr("sagents_nb.session.opening.here", lambda: "elsewhere:1")
    monkeypatch.setattr("sagents_nb.session.actor.here", lambda: "elsewhere:1")
    there = sa.Session.open("c1", agent=agent_of("b"), store=store)
    told = Heard(there)
    assert told.wait_for(NodeTransferred).node == "elsewhere:1"
    assert [e.type for e in told.events][:2] == ["node_transferred", "status_changed"]
    assert [m.text for m in there.messages] == ["one", "a"]
