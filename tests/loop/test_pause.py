from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from tests.grammar import ungrammatical
from tests.talking import agent_of, call, results, roles, session_of, unanswered

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    RAN.clear()


@sa.tool
def look() -> str:
    """Look."""
    RAN.append("look")
    return "saw it"


def pausing(*turns: Any, **options: Any) -> sa.Session:
    """A session that is asked to pause while the model says its first turn."""

    def first(request: Any) -> Any:
        session.pause()
        return turns[0]

    session = session_of(first, *turns[1:], tools=[look], **options)
    return session


@pytest.mark.spec("S1.2.10")
def test_a_run_pauses_before_the_tools_and_a_later_one_goes_on_there() -> None:
    agent = agent_of(call("look"), "done", tools=[look])
    first = agent.run("go", should_pause=lambda: True)
    assert (first.status, RAN) == ("paused", [])
    assert roles(first.state.messages) == ["user", "assistant"]
    assert first.interrupt is None
    for again in (agent_of("done", tools=[look]).run([], first.state), agent.run(first.state)):
        assert (again.status, again.text) == ("completed", "done")
        assert results(again.state) == ["saw it"]
    assert RAN == ["look"] * 2


@pytest.mark.spec("S1.2.10")
def test_the_reason_of_a_pause_is_kept_until_the_run_goes_on() -> None:
    agent = agent_of(call("look"), "done", tools=[look])
    first = agent.run("go", sa.State(metadata={"k": 1}), should_pause=lambda: "lunch")
    assert first.state.metadata == {"k": 1, "pause_reason": "lunch"}
    assert agent.run([], first.state).state.metadata == {"k": 1}


@pytest.mark.spec("S1.2.10")
def test_a_final_answer_is_not_held_back_by_a_pause() -> None:
    result = agent_of("done").run("go", should_pause=lambda: True)
    assert (result.status, result.text) == ("completed", "done")


@pytest.mark.spec("S1.2.10")
def test_it_is_asked_after_each_model_call() -> None:
    asked: list[int] = []

    def later() -> bool:
        asked.append(1)
        return len(asked) == 2

    agent = agent_of(call("look"), call("look", "c2"), "done", tools=[look])
    result = agent.run("go", should_pause=later)
    assert (result.status, RAN) == ("paused", ["look"])
    assert agent.run([], result.state).text == "done"
    assert RAN == ["look", "look"]


@pytest.mark.spec("S1.2.10", "S1.2.5")
def test_a_paused_turn_is_still_gated() -> None:
    agent = agent_of(call("look"), "done", tools=[look], interrupt_on={"look": True})
    paused = agent.run("go", should_pause=lambda: True)
    assert (paused.status, paused.interrupt) == ("paused", None)
    waiting = agent.run([], paused.state)
    assert (waiting.status, RAN) == ("interrupted", [])
    assert agent.resume(waiting, sa.Approve()).text == "done"


# sessions


@pytest.mark.spec("S1.2.10")
def test_a_session_pauses_when_asked_and_goes_on_when_told() -> None:
    session = pausing(call("look"), "done")
    heard: list[Any] = []
    session.subscribe(heard.append)
    assert session.send("go").result().status == "paused"
    assert (session.status, RAN) == ("paused", [])
    assert not ungrammatical(heard)
    assert session.retry().result().text == "done"
    assert (session.status, RAN) == ("idle", ["look"])
    assert not unanswered(session.messages)


def test_a_paused_run_goes_on_as_itself_where_its_id_is_given() -> None:
    session = pausing(call("look"), "done")
    heard: list[Any] = []
    session.subscribe(heard.append)
    run = session.send("go")
    run.result()
    further = session.retry(run.id)
    assert (further.id, further.result().text, RAN) == (run.id, "done", ["look"])
    (end,) = [i for i, event in enumerate(heard) if event.type == "agent_end"][:-1]
    assert not ungrammatical(heard[: end + 1])
    assert not ungrammatical(heard[end + 1 :])
    assert {e.run_id for e in heard if e.type == "agent_start"} == {run.id}


def test_only_the_last_run_goes_on_as_itself() -> None:
    session = pausing(call("look"), "as you wish", "never said")
    first = session.send("go")
    first.result()
    session.send("rather not").result()
    with pytest.raises(sa.NotRunning, match="Another run has begun since"):
        session.retry(first.id)
    assert (session.status, RAN) == ("idle", [])


def test_the_reason_is_told_with_the_status() -> None:
    def first(request: Any) -> Any:
        session.pause("lunch")
        return call("look")

    session = session_of(first, "done", tools=[look])
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    told = [e.reason for e in heard if e.type == "status_changed" and e.status == "paused"]
    assert told == ["lunch"]
    assert session.state.metadata == {"pause_reason": "lunch"}


def test_a_message_to_a_paused_session_answers_its_calls_and_goes_on() -> None:
    session = pausing(call("look"), "as you wish")
    session.send("go").result()
    assert session.send("rather not").result().text == "as you wish"
    assert RAN == []
    assert not unanswered(session.messages)


def test_a_paused_session_can_be_cancelled() -> None:
    session = pausing(call("look"), "next")
    session.send("go").result()
    session.cancel()
    assert session.status == "cancelled"
    assert not unanswered(session.messages)
    assert session.send("and now?").result().text == "next"


def test_a_paused_session_goes_on_after_a_restart() -> None:
    session = pausing(call("look"), "never said here")
    session.send("go").result()
    fork = sa.Session.restore(session.export_state(), agent=agent_of("done", tools=[look]))
    assert fork.retry().result().text == "done"
    assert results(fork.state) == ["saw it"]


@pytest.mark.spec("S1.2.10")
def test_a_pause_after_a_blank_answer_is_gone_on_from() -> None:
    session = pausing(" ", "done", retry_blank=True)
    assert session.send("go").result().status == "paused"
    assert session.retry().result().text == "done"


def test_a_pause_keeps_what_is_queued_for_later() -> None:
    session = pausing("one", "two")
    session.follow_up("then this")
    assert session.send("go").result().status == "paused"
    assert [m.text for m in session.messages] == ["go", "one", "then this"]
    assert session.retry().result().text == "two"


def test_asking_an_idle_session_to_pause_does_not_mean_its_next_run() -> None:
    session = session_of(call("look"), "done", tools=[look])
    session.pause()
    assert session.send("go").result().status == "completed"
    late = pausing("answer", call("look"), "done")
    late.send("go").result()
    assert late.send("more").result().status == "completed"
