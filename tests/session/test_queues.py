"""What waits behind a run can be looked at and forgotten."""

from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
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
    with pytest.raises(sa.ConfigurationError, match="'steering', 'follow_up' or 'all', not 'x'"):
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
