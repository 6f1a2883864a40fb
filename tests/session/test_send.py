from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import AgentEnd, MessageEnd, MessageQueued
from tests.session.gates import Gate
from tests.talking import agent_of, call, of, roles, session_of, types, unanswered


def held(gate: Gate, *turns: Any) -> tuple[sa.Session, sa.Run]:
    """A session whose first run waits inside a tool."""
    session = session_of(call("hold"), *turns, tools=[gate.tool])
    run = session.send("first")
    gate.wait()
    return session, run


def test_a_message_is_answered_and_the_conversation_grows() -> None:
    session = session_of("one", "two")
    assert session.send("a").result().text == "one"
    assert session.send("b").result().text == "two"
    assert [m.text for m in session.messages] == ["a", "one", "b", "two"]
    assert session.status == "idle"


def test_anything_that_is_a_prompt_can_be_sent() -> None:
    session = session_of(*"abc")
    session.send(sa.Message.user("message", source="cell 1")).result()
    session.send(sa.TextPart("part")).result()
    session.send([sa.Message.user("two"), sa.Message.user("at once")]).result()
    texts = [m.text for m in session.messages if m.role == "user"]
    assert texts == ["message", "part", "two", "at once"]
    assert session.messages[0].metadata == {"source": "cell 1"}


@pytest.mark.parametrize("prompt", [5, None, [5], [], {"role": "user"}, sa.State()])
def test_what_is_no_prompt_is_refused_and_nothing_starts(prompt: Any) -> None:
    session = session_of("x")
    with pytest.raises(sa.ConfigurationError):
        session.send(prompt)
    assert (session.status, session.messages) == ("idle", [])


# while a run is active


@pytest.mark.spec("P6", "S1.11.2")
def test_by_default_a_message_waits_and_then_has_its_own_run(gate: Gate) -> None:
    session, first = held(gate, "one", "two", "three")
    heard: list[Any] = []
    session.subscribe(heard.append)
    later = [session.send("second"), session.send("third")]
    assert session.info()["queued"] == 2
    assert [r.status for r in later] == ["running", "running"]
    gate.open()
    assert [r.result().text for r in (first, *later)] == ["one", "two", "three"]
    assert [e.message.text for e in of(MessageQueued, heard)] == ["second", "third"]
    assert [m.text for m in session.messages if m.role == "user"] == ["first", "second", "third"]
    assert types(heard).count("agent_end") == 3


@pytest.mark.spec("S1.11.2")
def test_no_idle_status_is_told_between_runs_that_wait(gate: Gate) -> None:
    session, _ = held(gate, "one", "two")
    heard: list[Any] = []
    session.subscribe(heard.append)
    last = session.send("second")
    gate.open()
    last.result()
    changes = [e.status for e in heard if e.type == "status_changed" and e.reason != "snapshot"]
    assert changes == ["idle"]


@pytest.mark.spec("S1.11.2")
def test_a_cancel_between_two_runs_finds_nothing_to_stop(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    session, first = held(gate, "one", "two")
    second = session.send("second")
    first.future.add_done_callback(lambda _: session.cancel())
    gate.open()
    assert second.result().text == "two"
    raised = [record for record in caplog.records if record.name == "concurrent.futures"]
    assert raised == []  # it logs what a callback raises


@pytest.mark.spec("S1.11.2")
def test_each_message_that_waits_has_a_run_of_its_own_with_the_id_of_its_handle(gate: Gate) -> None:
    session, first = held(gate, "one", "two", "three")
    heard: list[Any] = []
    session.subscribe(heard.append, since=0)
    second, third = session.send("second"), session.send("third")
    gate.open()
    third.result()
    asked = {e.message.text: e.run_id for e in of(MessageEnd, heard) if e.message.role == "user"}
    assert asked == {"first": first.id, "second": second.id, "third": third.id}
    assert [e.run_id for e in of(AgentEnd, heard)] == [first.id, second.id, third.id]
    assert len(set(asked.values())) == 3


def paused(session: sa.Session, first: sa.Run) -> str:
    session.pause()
    return "paused"


def cancelled(session: sa.Session, first: sa.Run) -> str:
    first.cancel()
    return "cancelled"


ENDS: dict[str, tuple[Any, Any]] = {
    "asks": (call("look", "c2"), lambda session, first: "interrupted"),
    "fails": (ConnectionError("cable"), lambda session, first: "error"),
    "pauses": (call("free", "c2"), paused),
    "is cancelled": ("first done", cancelled),
}


@pytest.mark.spec("S1.11.2")
@pytest.mark.parametrize("how", ENDS)
def test_what_waits_stays_behind_a_run_that_did_not_complete_until_it_has(
    how: str, gate: Gate
) -> None:
    turn, end = ENDS[how]
    tools = [gate.tool, sa.Tool(lambda: "", name="look"), sa.Tool(lambda: "", name="free")]
    turns = [turn] if how == "is cancelled" else [turn, "first done"]
    agent = agent_of(call("hold"), *turns, "second done", tools=tools, interrupt_on={"look": True})
    session = sa.Session(agent)
    first = session.send("first")
    gate.wait()
    behind = session.send("second")
    status = end(session, first)
    gate.open()
    with suppress(sa.ModelError):
        first.result()
    assert (first.status, session.info()["queued"]) == (status, 1)
    assert not behind.done
    again = session.approve() if how == "asks" else session.retry()
    assert again is not None
    assert again.result().text == "first done"
    assert behind.result().text == "second done"
    texts = [m.text for m in session.messages if m.role in ("user", "assistant") and m.text]
    assert texts == ["first", "first done", "second", "second done"]


@pytest.mark.spec("S1.11.1")
def test_a_message_may_insist_on_not_waiting(gate: Gate) -> None:
    session, _ = held(gate, "one")
    with pytest.raises(sa.Busy, match="steer"):
        session.send("now!", when="raise")
    with pytest.raises(sa.ConfigurationError, match="when"):
        session.send("now!", when="soon")
    assert session.info()["queued"] == 0


def test_a_steered_message_reaches_the_active_run_before_its_next_model_call(gate: Gate) -> None:
    session, first = held(gate, "as you wish")
    assert session.send("rather this", when="steer") is first
    gate.open()
    assert first.result().text == "as you wish"
    assert roles(session.messages) == ["user", "assistant", "tool", "user", "assistant"]
    assert session.messages[3].text == "rather this"
    assert not unanswered(session.messages)


@pytest.mark.spec("A2.2.1")
def test_steered_messages_come_one_a_turn_unless_all_are_wanted(gate: Gate) -> None:
    session, first = held(gate, "one", "two")
    session.steer("a")
    session.steer("b")
    gate.open()
    assert first.result().text == "two"
    assert [m.text for m in session.messages][3:] == ["a", "one", "b", "two"]

    other = Gate()
    session, first = held(other, "both")
    session.steering_mode = "all"
    session.steer("a")
    session.steer("b")
    other.open()
    assert first.result().text == "both"
    assert [m.text for m in session.messages][3:] == ["a", "b", "both"]


@pytest.mark.spec("A2.2.1")
def test_what_was_steered_before_a_run_is_heard_by_its_first_model_call() -> None:
    session = session_of("ok")
    session.steer("also this")
    session.send("do it").result()
    assert [m.text for m in session.messages] == ["do it", "also this", "ok"]


@pytest.mark.spec("A2.2.5")
def test_follow_ups_go_on_in_the_same_run_one_turn_each(gate: Gate) -> None:
    session, first = held(gate, "one", "two", "three")
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.follow_up("then a")
    session.follow_up("then b")
    gate.open()
    assert first.result().text == "three"
    assert [m.text for m in session.messages][3:] == ["one", "then a", "two", "then b", "three"]
    assert types(heard).count("agent_end") == 1


@pytest.mark.spec("A2.2.5")
def test_steering_comes_before_follow_ups(gate: Gate) -> None:
    session, first = held(gate, "one", "two")
    session.follow_up("later")
    session.steer("now")
    gate.open()
    first.result()
    assert [m.text for m in session.messages][3:] == ["now", "one", "later", "two"]


def test_a_queue_has_only_the_modes_there_are() -> None:
    session = session_of()
    session.follow_up_mode = "all"
    assert (session.steering_mode, session.follow_up_mode) == ("one-at-a-time", "all")
    with pytest.raises(sa.ConfigurationError, match="one-at-a-time"):
        session.steering_mode = "some"


def nested(levels: int) -> list[Any]:
    """Lists in lists, deeper than Python can look at."""
    deep: list[Any] = []
    for _ in range(levels):
        deep = [deep]
    return deep


@pytest.mark.parametrize("name", ["steering_mode", "follow_up_mode", "steering_batch"])
@pytest.mark.parametrize("value", ["some", None, float("nan"), ["all"], nested(100_000)])
def test_what_a_queue_may_do_is_one_of_its_words(name: str, value: Any) -> None:
    session = session_of("One.")
    before = getattr(session, name)
    with pytest.raises(sa.ConfigurationError, match="is '"):
        setattr(session, name, value)
    assert getattr(session, name) == before


@pytest.mark.spec("P12", "S1.11.2")
def test_queues_survive_a_cancellation_and_not_a_reset(gate: Gate) -> None:
    session, first = held(gate, "steered", "second")
    session.steer("s")
    waiting = session.send("waits")
    first.cancel()
    assert first.result().status == "cancelled"
    assert not waiting.done
    assert session.info()["queued"] == 2
    session.reset()
    assert session.info()["queued"] == 0
    assert waiting.result().status == "cancelled"
    assert session.messages == []


@pytest.mark.spec("S1.11.2")
def test_what_an_earlier_stop_left_waiting_comes_first() -> None:
    gate = Gate()
    session, first = held(gate, "to the second", "to the third")
    second = session.send("second")
    first.cancel()
    first.result()
    third = session.send("third")
    gate.open()
    assert (second.result().text, third.result().text) == ("to the second", "to the third")


def test_a_queued_message_can_be_taken_back(gate: Gate) -> None:
    session, first = held(gate, "one")
    second = session.send("no, sorry")
    second.cancel()
    assert second.result().status == "cancelled"
    gate.open()
    first.result()
    assert "no, sorry" not in [m.text for m in session.messages]


# again


@pytest.mark.spec("A2.3.3", "S1.11.7")
def test_a_failed_answer_can_be_asked_for_again_without_a_new_message() -> None:
    session = session_of(ConnectionError("cable"), "here I am")
    with pytest.raises(sa.ModelError):
        session.send("hello?").result()
    assert (session.status, "cable" in (session.error or "")) == ("error", True)
    assert session.retry().result().text == "here I am"
    assert [m.text for m in session.messages] == ["hello?", "here I am"]
    assert (session.status, session.error) == ("idle", None)


@pytest.mark.spec("S1.11.7", "H3.1.6")
def test_after_a_failure_the_next_message_works() -> None:
    session = session_of(ConnectionError("cable"), "back")
    with pytest.raises(sa.ModelError):
        session.send("hello?").result()
    assert session.send("and now?").result().text == "back"


@pytest.mark.spec("A2.1.5")
def test_there_is_nothing_to_retry_after_an_answer_or_before_the_first_message() -> None:
    session = session_of("answer")
    with pytest.raises(sa.NotRunning):
        session.retry()
    session.send("a").result()
    with pytest.raises(sa.NotRunning):
        session.retry()


@pytest.mark.spec("H3.1.2")
def test_a_run_without_a_message_asks_the_model_all_the_same() -> None:
    session = session_of("first", "second", "third")
    assert session.proceed().result().text == "first"
    assert session.proceed().result().text == "second"
    session.send("a", model=sa.ScriptedModel(["of another"])).result()
    assert session.proceed().result().text == "third"  # whatever was for the last run alone
    assert roles(session.messages) == [*["assistant"] * 2, "user", *["assistant"] * 2]
    assert session.status == "idle"


def test_a_run_without_a_message_does_first_what_is_left_to_do(gate: Gate) -> None:
    session = session_of(sa.ModelError("down"), "answer", "more")
    with pytest.raises(sa.ModelError):
        session.send("a").result()
    assert session.proceed().result().text == "answer"  # what failed is taken back
    assert [message.text for message in session.messages] == ["a", "answer"]
    session.steer("b")
    assert session.proceed().result().text == "more"
    assert [message.text for message in session.messages[2:]] == ["b", "more"]
    waits = session_of(call("hold"), "done", tools=[gate.tool], interrupt_on=["hold"])
    waits.send("a").result()
    with pytest.raises(sa.Busy, match="waits for an answer"):
        waits.proceed()
    running = waits.resume(sa.Approve())
    gate.wait()
    with pytest.raises(sa.Busy, match="then proceed"):
        waits.proceed()
    gate.open()
    running.result()
    waits.close()
    with pytest.raises(sa.NotRunning, match="closed"):
        waits.proceed()


@pytest.mark.parametrize("reason", ["max_tokens", "context_window"])
def test_a_cut_answer_is_taken_back_by_retry(reason: str) -> None:
    cut = sa.Message.assistant("The first h", stop_reason=reason)
    session = session_of(cut, "All of it.")
    session.send("Go.").result()
    assert session.retry().result().text == "All of it."
    assert [message.text for message in session.messages] == ["Go.", "All of it."]


def test_a_run_cannot_be_retried_while_it_runs(gate: Gate) -> None:
    session, _ = held(gate, "one")
    with pytest.raises(sa.Busy):
        session.retry()


def test_the_usage_of_all_runs_adds_up() -> None:
    def costs(tokens: int) -> sa.Message:
        return sa.Message.assistant("a", usage=sa.Usage(tokens, 1))

    session = session_of(costs(10), costs(20))
    session.send("a").result()
    session.send("b").result()
    assert session.usage == sa.Usage(30, 2)


def test_the_same_agent_serves_many_conversations() -> None:
    agent = agent_of(*("ok" for _ in range(4)))
    sessions = [sa.Session(agent) for _ in range(4)]
    for number, session in enumerate(sessions):
        session.send(str(number))
    texts = [s.current_run.result().state.messages[0].text for s in sessions if s.current_run]
    assert texts == ["0", "1", "2", "3"]
