"""What waits behind a run can be looked at and forgotten."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.runtime.thread import runtime
from sagents_nb.store import ConversationStore
from tests.session.gates import Gate
from tests.session.stored import folded
from tests.talking import PATIENCE, agent_of, call, session_of, until


def waiting(gate: Gate, **options: Any) -> tuple[sa.Session, sa.Run, sa.Run]:
    """A session at work with something in each queue, its run, and the one behind it."""
    agent = agent_of(call("hold"), *["said"] * 4, tools=[gate.tool])
    session = sa.Session(agent, id="c1", **options)
    session.steering_batch = "wait"
    run = session.send("first")
    gate.wait()
    session.steer("steered")
    session.follow_up("followed")
    return session, run, session.send("behind")


def users(session: sa.Session) -> list[str]:
    return [m.text for m in session.messages if m.role == "user"]


@pytest.mark.spec("A2.2.6")
@pytest.mark.parametrize(
    ("which", "left"),
    [
        ("steering", ["first", "followed", "behind"]),
        ("follow_up", ["first", "steered", "behind"]),
        ("all", ["first"]),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_a_queue_is_emptied_while_the_run_goes_on(
    which: str, left: list[str], stored: bool, gate: Gate, store: ConversationStore
) -> None:
    session, run, behind = waiting(gate, **({"store": store} if stored else {}))
    session.clear_queue(which)
    gate.open()
    assert run.result(PATIENCE).status == "completed"
    if which == "all":
        assert behind.result(PATIENCE).status == "cancelled"
    else:
        behind.result(PATIENCE)
    assert users(session) == left
    if stored:
        session.close()
        assert folded(store).queued == []
        assert [m.text for m in folded(store).state.messages if m.role == "user"] == left


@pytest.mark.parametrize("text", ["steered", "followed", "behind"])
@pytest.mark.parametrize("stored", [False, True])
def test_one_message_that_waits_is_taken_back_and_the_others_are_answered(
    text: str, stored: bool, gate: Gate, store: ConversationStore
) -> None:
    session, run, behind = waiting(gate, **({"store": store} if stored else {}))
    mine = next(queued.message for queued in session.queued if queued.message.text == text)
    session.withdraw(mine)
    assert text not in [queued.message.text for queued in session.queued]
    with pytest.raises(sa.NotRunning, match="does not wait any more"):
        session.withdraw(mine)
    gate.open()
    assert run.result(PATIENCE).status == "completed"
    assert behind.result(PATIENCE).status == ("cancelled" if text == "behind" else "completed")
    assert users(session) == [
        said for said in ("first", "steered", "followed", "behind") if said != text
    ]
    if stored:
        session.close()
        assert folded(store).queued == []


@pytest.mark.spec("A2.2.6")
@pytest.mark.parametrize("reopened", [False, True])
def test_all_that_waits_survives_a_cancellation_and_is_answered_later(
    reopened: bool, gate: Gate, store: ConversationStore
) -> None:
    session, run, behind = waiting(gate, store=store)
    run.cancel()
    assert run.result(PATIENCE).status == "cancelled"
    gate.open()
    assert session.info()["queued"] == 3
    if reopened:
        session.close()
        session = sa.Session.open("c1", agent=agent_of(*["said"] * 4), store=store)
        assert session.info()["queued"] == 3
    else:
        assert not behind.done
    session.retry().result(PATIENCE)
    until(lambda: users(session) == ["first", "steered", "followed", "behind"])
    until(lambda: session.status == "idle")
    assert session.info()["queued"] == 0


@pytest.mark.spec("A2.2.6")
@pytest.mark.parametrize("while_it_runs", [False, True])
def test_nothing_that_waits_survives_a_reset(
    while_it_runs: bool, gate: Gate, store: ConversationStore
) -> None:
    session, run, behind = waiting(gate, store=store)
    if not while_it_runs:
        run.cancel()
        run.result(PATIENCE)
    session.reset()
    gate.open()
    assert behind.result(PATIENCE).status == "cancelled"
    assert session.info()["queued"] == 0
    session.send("again").result(PATIENCE)
    assert users(session) == ["again"]
    session.close()
    assert folded(store).queued == []
    again = sa.Session.open("c1", agent=agent_of("said"), store=store)
    assert again.info()["queued"] == 0
    assert users(again) == ["again"]


def test_a_queue_that_there_is_not_is_named() -> None:
    with pytest.raises(sa.ConfigurationError, match="'steering', 'follow_up' or 'all'; not 'x'"):
        session_of().clear_queue("x")


def test_info_tells_how_long_nobody_has_used_it() -> None:
    session = sa.Session(agent_of("x"), inactivity_timeout=300)
    about = session.info()["inactivity"]
    assert about["timeout"] == 300
    assert about["timer_active"]
    assert 0 <= about["time_since_activity"] < 300
    unlimited = sa.Session(agent_of(), inactivity_timeout=None).info()["inactivity"]
    assert (unlimited["timeout"], unlimited["timer_active"]) == (None, False)


def test_a_session_at_work_is_not_about_to_rest(gate: Gate) -> None:
    session, run, _ = waiting(gate)
    assert not session.info()["inactivity"]["timer_active"]
    gate.open()
    run.result(PATIENCE)


# who waits for a run in the queue


def behind_one_that(ends: str, gate: Gate) -> tuple[sa.Session, sa.Run, sa.Run]:
    """A session, its run that ends so once the gate is open, and the one behind it."""

    def first(request: Any) -> Any:
        return ConnectionError("cable") if ends == "error" else "said"

    agent = agent_of(call("hold"), first, "said", "said", tools=[gate.tool])
    session = sa.Session(agent, id="c1")
    run = session.send("first")
    gate.wait()
    return session, run, session.send("behind")


@pytest.mark.parametrize("ends", ["error", "cancelled"])
def test_who_waits_for_a_run_behind_one_that_failed_is_told_that_it_stands(
    ends: str, gate: Gate
) -> None:
    session, _, behind = behind_one_that(ends, gate)
    heard: list[Any] = []
    waits = threading.Event()

    async def wait() -> None:
        waiting = asyncio.ensure_future(behind)
        await asyncio.sleep(0)
        waits.set()
        with pytest.raises(sa.NotRunning) as refused:
            await waiting
        heard.append(str(refused.value))

    waiter = threading.Thread(target=lambda: asyncio.run(wait()))
    waiter.start()
    assert waits.wait(PATIENCE)
    if ends == "cancelled":
        session.cancel()
    gate.open()
    waiter.join(PATIENCE)
    assert heard == [
        f"Run {behind.id} waits in the queue of session 'c1', which is {ends}; session.retry() or "
        "the next message goes on, and run.cancel() takes it out."
    ]
    with pytest.raises(sa.NotRunning, match="waits in the queue"):
        behind.result(PATIENCE)
    assert not behind.done
    if ends == "error":
        session.retry()
    else:
        session.send("more")
    assert behind.result(PATIENCE).text == "said"
    assert "behind" in users(session)


def test_a_run_that_stands_can_be_taken_out(gate: Gate) -> None:
    _, run, behind = behind_one_that("error", gate)
    gate.open()
    with pytest.raises(sa.ModelError):
        run.result(PATIENCE)
    with pytest.raises(sa.NotRunning, match="which is error"):
        behind.result(PATIENCE)
    behind.cancel()
    assert behind.result(PATIENCE).status == "cancelled"


def behind_a_question(gate: Gate) -> tuple[sa.Session, sa.Run]:
    """A session whose run asks, and the run that was queued while it was at work."""
    calls = [call("hold", "h"), call("ask")]
    agent = agent_of(*calls, "asked", "said", tools=[gate.tool, ask], interrupt_on={"ask": True})
    session = sa.Session(agent)
    first = session.send("first")
    gate.wait()
    behind = session.send("behind")
    gate.open()
    assert first.result(PATIENCE).status == "interrupted"
    return session, behind


def test_who_waits_behind_a_question_waits_for_its_answer(gate: Gate) -> None:
    session, behind = behind_a_question(gate)
    with pytest.raises(TimeoutError):
        behind.result(0.01)
    session.approve()
    assert behind.result(PATIENCE).text == "said"


def test_who_waits_behind_a_question_that_is_denied_by_a_stop_is_told(gate: Gate) -> None:
    session, behind = behind_a_question(gate)
    session.cancel()
    with pytest.raises(sa.NotRunning, match="which is cancelled"):
        behind.result(PATIENCE)


@sa.tool
def ask() -> str:
    """Asks."""
    return "asked"


@pytest.mark.parametrize("before", [[], ["waits"]])
def test_what_is_said_while_a_stopped_run_still_ends_is_answered(before: list[str]) -> None:
    ends, began = asyncio.Event(), threading.Event()

    @sa.tool
    async def slow() -> str:
        """Take long to end."""
        began.set()
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            await ends.wait()
        return "done"

    session = session_of(call("slow"), *["said"] * 3, tools=[slow])
    session.send("first")
    assert began.wait(PATIENCE)
    for text in before:
        session.send(text)
    session.cancel()
    run = session.send("after")
    runtime.loop.call_soon_threadsafe(ends.set)
    assert run.result(PATIENCE).text == "said"
    assert users(session) == ["first", *before, "after"]


def test_what_waited_when_a_run_was_stopped_waits_on(gate: Gate) -> None:
    session, *_ = waiting(gate)
    session.clear_queue("steering")
    session.clear_queue("follow_up")
    session.cancel()
    gate.open()
    until(lambda: session.status == "cancelled")
    assert session.info()["queued"]
    session.retry().result(PATIENCE)


def test_what_waits_can_be_looked_at_and_each_run_taken_back(gate: Gate) -> None:
    session, run, behind = waiting(gate)
    heard: list[sa.events.Event] = []
    session.subscribe(heard.append)
    assert [(q.when, q.run_id, q.message.text) for q in session.queued] == [
        ("steer", "", "steered"),
        ("follow_up", "", "followed"),
        ("queue", behind.id, "behind"),
    ]
    session.stop(behind.id)
    session.stop("no such run")
    assert behind.result(PATIENCE).status == "cancelled"
    assert [q.message.text for q in session.queued] == ["steered", "followed"]
    session.clear_queue("steering")
    gate.open()
    assert run.result(PATIENCE).status == "completed"
    withdrawn = [event for event in heard if event.type == "message_withdrawn"]
    assert [(event.run_id, event.message.text) for event in withdrawn] == [
        (behind.id, "behind"),
        ("", "steered"),
    ]


def test_a_stop_is_for_the_run_that_is_named(gate: Gate) -> None:
    session, run, behind = waiting(gate)
    session.stop(run.id)
    assert run.result(PATIENCE).status == "cancelled"
    assert not behind.done
    session.stop(run.id)  # it has ended: nothing
    gate.open()
    assert [q.message.text for q in session.queued] == ["steered", "followed", "behind"]


def test_a_stop_denies_what_waits_for_a_decision() -> None:
    session = session_of(
        call("go"), tools=[sa.tool(name="go")(lambda: "gone")], interrupt_on={"go": True}
    )
    run = session.send("Go.")
    assert run.result(PATIENCE).status == "interrupted"
    session.stop("another")
    assert session.status == "interrupted"
    session.stop(run.id)
    assert (session.status, session.interrupt) == ("cancelled", None)


@pytest.mark.parametrize("stored", [False, True])
def test_what_is_sent_while_older_messages_wait_waits_behind_them_and_says_so(
    stored: bool, tmp_path: Path
) -> None:
    gate = Gate()

    @sa.tool
    def ask() -> str:
        """Ask."""
        return "Yes."

    agent = agent_of(call("hold"), call("ask"), tools=[gate.tool, ask], interrupt_on={"ask": True})
    store = ConversationStore(tmp_path / "agents.db") if stored else None
    session = sa.Session(agent, id="c1", store=store)
    run = session.send("first")
    gate.wait()
    session.send("second")
    session.stop()
    assert run.result().status == "cancelled"
    told: list[Any] = []
    session.subscribe(told.append)
    third = session.send("third")
    until(lambda: session.status == "interrupted")
    assert users(session) == ["first", "second"]
    assert [message.text for run_id, when, message in session.queued] == ["third"]
    queued = [event for event in told if event.type == "message_queued"]
    assert [(event.run_id, event.message.text) for event in queued] == [(third.id, "third")]
    session.stop()
    with pytest.raises(sa.NotRunning, match="waits in the queue"):
        third.result()
