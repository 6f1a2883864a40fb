"""What happened before a session was opened is in its frames as well."""

from __future__ import annotations

import sagents_nb as sa
from sagents_nb.store import ConversationStore
from tests.talking import agent_of, call


@sa.tool
def publish(text: str) -> str:
    """Publish it."""
    return f"published {text}"


def talk(store: ConversationStore) -> sa.Session:
    calls = [call("publish", "c1", text="a"), call("publish", "c2", text="b")]
    agent = agent_of(calls, "done", tools=[publish], interrupt_on={"publish": True})
    session = sa.Session(agent, "talk", store=store)
    session.send("go").result()
    session.approve("c1", by="ann")
    run = session.reject("c2", message="too early", by="bob")
    assert run is not None
    run.result()
    return session


def test_who_decided_what_and_when_is_known_after_it_is_opened_again(
    store: ConversationStore,
) -> None:
    session = talk(store)
    before = session.to_frame("decisions")
    session.close()
    again = sa.Session.open("talk", agent=agent_of("more", tools=[publish]), store=store)
    after = again.to_frame("decisions")
    known = ["tool_call_id", "decision", "by", "time"]
    assert after[known].to_dict("records") == before[known].to_dict("records")
    assert list(after["by"]) == ["ann", "bob"]
    assert store.to_frame("decisions")[known].to_dict("records") == before[known].to_dict("records")


def test_messages_and_calls_keep_their_times_and_what_became_of_them(
    store: ConversationStore,
) -> None:
    session = talk(store)
    calls = session.to_frame("tool_calls")
    session.close()
    again = sa.Session.open("talk", agent=agent_of("more", tools=[publish]), store=store)
    again.send("and now?").result()
    messages = again.to_frame("messages")
    assert len(messages) == len(again.messages)
    assert messages["time"].notna().all()
    assert messages["time"].is_monotonic_increasing
    opened = again.to_frame("tool_calls")
    assert list(opened["status"]) == list(calls["status"])
    assert list(opened["duration"]) == list(calls["duration"])


def test_nothing_is_there_twice_in_a_session_that_is_still_open(store: ConversationStore) -> None:
    session = talk(store)
    assert len(session.to_frame("decisions")) == 2
    assert len(session.to_frame("tool_calls")) == 2
    assert len(session.to_frame("messages")) == len(session.messages)
    assert len(session.to_frame("usage")) == 2
