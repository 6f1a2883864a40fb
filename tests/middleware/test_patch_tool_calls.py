from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

import sagents_nb as sa
from sagents_nb import Message, PatchToolCalls, State, ToolCall, ToolResult
from sagents_nb.events import ToolCallsPatched
from sagents_nb.middleware import patch_tool_calls
from sagents_nb.middleware.patch_tool_calls import is_paired, patched
from tests.middleware.histories import (
    answered,
    broken_histories,
    calling,
    context,
    said,
    user,
    whole_histories,
)
from tests.pairing import sent, violations
from tests.talking import agent_of, call, of, roles, streamed


def ids(message: Message) -> list[str]:
    return [result.tool_call_id for result in message.tool_results]


@pytest.mark.spec("S1.6.1")
def test_a_call_that_another_message_followed_is_answered_right_after_it() -> None:
    messages = [user("one"), calling("A"), user("two")]
    repaired = patched(messages)
    assert roles(repaired) == ["user", "assistant", "tool", "user"]
    (result,) = repaired[2].tool_results
    assert (result.tool_call_id, result.name, result.is_error) == ("A", "look", True)
    for told in ("look", "A", "cancelled", "another message came"):
        assert told in result.text
    assert [repaired[0], repaired[1], repaired[3]] == messages


@pytest.mark.spec("S1.6.2")
def test_two_calls_without_results_get_two() -> None:
    assert ids(patched([calling("A", "B"), user()])[1]) == ["A", "B"]
    repaired = patched([calling("A"), user(), calling("B"), user()])
    assert roles(repaired) == ["assistant", "tool", "user"] * 2


@pytest.mark.spec("S1.6.2")
@pytest.mark.parametrize("known", ["A", "B"])
def test_of_two_calls_only_the_missing_one_is_made_up(known: str) -> None:
    given = answered(known)
    repaired = patched([calling("A", "B"), given, user()])
    assert ids(repaired[1]) == ["A", "B"]
    made_up = [r.tool_call_id for r in repaired[1].tool_results if r.metadata.get("patched")]
    assert made_up == [{"A": "B", "B": "A"}[known]]
    assert given.tool_results[0] in repaired[1].tool_results


@pytest.mark.spec("S1.6.2")
def test_a_result_among_others_counts() -> None:
    messages = [calling("A", "B"), answered("A", "B"), user()]
    repaired = patched(messages)
    assert all(now is before for now, before in zip(repaired, messages, strict=True))


@pytest.mark.spec("S1.6.2")
def test_a_result_before_the_call_does_not_count() -> None:
    repaired = patched([user(), answered("A"), calling("A"), user()])
    assert roles(repaired) == ["user", "assistant", "tool", "user"]
    assert repaired[2].tool_results[0].metadata["patched"]


@pytest.mark.spec("S1.6.2")
def test_a_call_in_the_last_message_is_answered_too() -> None:
    assert roles(patched([user(), calling("A")])) == ["user", "assistant", "tool"]


@pytest.mark.spec("S1.6.2")
@pytest.mark.parametrize("messages", [None, [], [user(), said(), user()], [calling()]])
def test_a_history_without_calls_stays_as_it_is(messages: list[Message] | None) -> None:
    repaired = patched(messages)
    assert all(now is before for now, before in zip(repaired, messages or [], strict=True))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        # too late, and with another message between
        ([calling("A"), user(), answered("A")], ["A", "user"]),
        # in several messages
        ([calling("A", "B"), answered("A"), answered("B")], ["AB"]),
        ([calling("A", "B"), answered("B"), answered("A"), said()], ["AB", "assistant"]),
        # in another order
        ([calling("A", "B"), answered("B", "A")], ["AB"]),
        # twice
        ([calling("A"), answered("A"), answered("A")], ["A"]),
        # an id that comes again
        ([calling("A"), answered("A"), calling("A"), answered("A")], ["A", "assistant", "A"]),
        ([calling("A"), calling("A"), answered("A")], ["A", "assistant", "A"]),
        # in a message of the user, as some providers have it
        ([calling("A"), Message("user", (ToolResult("A", "look", "saw"),))], ["A"]),
        # two calls of one id
        ([calling("A", "A"), answered("A", "A")], ["AA"]),
        # a message no model reads
        ([calling("A"), Message("note"), answered("A")], ["note", "A"]),
    ],
)
def test_results_are_where_they_belong(messages: list[Message], expected: list[str]) -> None:
    repaired = patched(messages)
    assert ["".join(ids(m)) or m.role for m in repaired[1:]] == expected
    assert not violations(repaired)


def test_calls_that_no_assistant_made_are_left_out() -> None:
    asked = Message("user", (sa.TextPart("do it"), ToolCall("A", "look")))
    assert patched([asked, answered("A")]) == [user("do it")]


@settings(max_examples=300)
@given(broken_histories)
@pytest.mark.spec("S1.6.2")
def test_any_history_is_repaired_once_and_stays_so(messages: list[Message]) -> None:
    repaired = patched(messages)
    assert not violations(repaired)
    assert not violations(sent(repaired))
    again = patched(repaired)
    assert all(now is before for now, before in zip(again, repaired, strict=True))
    assert is_paired(messages) == (not violations(messages))
    texts = [m.text for m in messages if m.text]
    assert [m.text for m in repaired if m.text] == texts  # nobody's words are lost
    given = [r for m in messages for r in m.tool_results]
    for message in repaired:
        assert all(r.metadata.get("patched") or r in given for r in message.tool_results)


@settings(max_examples=100)
@given(whole_histories())
def test_a_whole_history_stays_as_it_is(messages: list[Message]) -> None:
    repaired = patched(messages)
    assert all(now is before for now, before in zip(repaired, messages, strict=True))


# The middleware


@pytest.mark.spec("S1.6.3")
def test_an_event_says_how_many_were_patched() -> None:
    heard: list[Any] = []
    state = State(messages=[calling("A", "B"), answered("A"), user(), calling("C"), user()])
    repaired = PatchToolCalls().before_model(state, context(heard))
    assert repaired is not None
    assert [(event.type, event.count) for event in heard] == [("tool_calls_patched", 2)]


@pytest.mark.spec("S1.6.3")
@pytest.mark.parametrize(
    ("messages", "made_up"),
    [
        ([calling("A", "B", "C"), user()], 3),
        ([calling("A", "B"), user(), answered("A"), user()], 1),
        ([calling("A"), user(), answered("A")], 0),
        ([user(), answered("X"), user()], 0),
    ],
    ids=["three of one message", "one came late, one never", "one came late", "nobody's result"],
)
def test_only_results_that_were_made_up_are_counted(messages: list[Message], made_up: int) -> None:
    heard: list[Any] = []
    repaired = PatchToolCalls().before_model(State(messages=messages), context(heard))
    assert repaired is not None
    assert [event.count for event in heard] == [made_up]
    patches = [r.metadata.get("patched") for m in repaired.messages for r in m.tool_results]
    assert patches.count(True) == made_up


@pytest.mark.spec("S1.6.2")
def test_a_whole_history_is_no_event_and_no_change() -> None:
    heard: list[Any] = []
    assert PatchToolCalls().before_model(State(messages=[user()]), context(heard)) is None
    assert heard == []


@pytest.mark.spec("S1.6.1", "S1.6.3", "P16")
def test_a_repair_is_made_once_and_kept() -> None:
    agent = agent_of(call("look"), "fine", "again", tools=[look], middleware=[PatchToolCalls()])
    session = sa.Session(agent, state=State(messages=[user(), calling("A"), user(), said()]))
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    session.send("go on").result()
    assert roles(session.messages)[:3] == ["user", "assistant", "tool"]
    assert not violations(session.messages)
    assert [event.count for event in of(ToolCallsPatched, heard)] == [1]
    first, *later = (list(r.messages) for r in agent.model.requests)  # type: ignore[attr-defined]
    assert all(request[: len(first)] == first for request in later)
    session.close()


def look() -> str:
    return "saw"


@pytest.mark.spec("S1.6.1")
def test_broken_messages_given_as_a_prompt_are_repaired_before_they_are_sent() -> None:
    agent = agent_of("fine", middleware=[PatchToolCalls()])
    result = agent.run([user(), calling("A"), user()])
    assert roles(result.state.messages) == ["user", "assistant", "tool", "user", "assistant"]


def test_what_other_middleware_broke_in_the_middle_of_a_run_is_repaired() -> None:
    class Careless(sa.Middleware):
        def before_model(self, state: State, ctx: Any) -> State:
            return state.set_messages([m for m in state.messages if m.role != "tool"])

    agent = agent_of(call("look"), "fine", tools=[look], middleware=[Careless(), PatchToolCalls()])
    (event,) = of(ToolCallsPatched, streamed(agent))
    assert event.count == 1


def test_calls_that_wait_for_a_person_are_left_to_them() -> None:
    agent = agent_of(
        call("look"),
        "fine",
        tools=[look],
        middleware=[PatchToolCalls()],
        interrupt_on={"look": True},
    )
    waiting = agent.run("go")
    assert waiting.status == "interrupted"
    result = agent.resume(waiting, sa.Approve())
    assert [r.text for m in result.state.messages for r in m.tool_results] == ["saw"]


def test_a_message_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def counting(messages: list[Message]) -> bool:
        looked.append(len(messages))
        return is_paired(messages)

    monkeypatch.setattr(patch_tool_calls, "is_paired", counting)
    turns = [call("look", f"c{i}") for i in range(10)]
    agent = agent_of(*turns, "fine", "again", tools=[look], middleware=[PatchToolCalls()])
    session = sa.Session(agent, state=State(messages=[user(), said()] * 100))
    session.send("go").result()
    session.send("go on").result()
    assert looked == [201, *[2] * 10, 2]
    session.close()
