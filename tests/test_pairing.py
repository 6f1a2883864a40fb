from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb import Message, State, ToolCall, ToolResult
from tests.middleware.histories import answered, calling, said, user
from tests.pairing import violations
from tests.talking import agent_of, call


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user(), said(), user()],
        [user(), calling("a", "b"), answered("a", "b"), said()],
        [calling("a"), answered("a"), calling("a"), answered("a")],
        [calling("a"), Message("note"), Message.system("x"), answered("a")],
    ],
)
def test_whole_histories_are_fine(messages: list[Message]) -> None:
    assert violations(messages) == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([calling("a")], "['a'] have no result"),
        ([calling("a"), user()], "message 1 (user) answers [], but ['a'] wait"),
        ([answered("a")], "message 0 (tool) answers ['a'], but [] wait"),
        ([answered("a"), calling("a"), answered("a")], "message 0 (tool) answers ['a']"),
        ([calling("a", "b"), answered("b", "a")], "answers ['b', 'a'], but ['a', 'b'] wait"),
        ([calling("a", "b"), answered("a"), answered("b")], "answers ['a'], but ['a', 'b']"),
        ([calling("a"), answered("a", "a")], "answers ['a', 'a'], but ['a'] wait"),
        ([calling("a"), answered("a"), answered("a")], "message 2 (tool) answers ['a']"),
        ([calling("a"), user(), answered("a")], "message 1 (user) answers []"),
        ([calling("a"), Message("user", answered("a").parts)], "(user) holds results"),
        ([Message("user", (ToolCall("a", "look"),)), answered("a")], "(user) holds calls"),
    ],
)
def test_broken_histories_are_not(messages: list[Message], problem: str) -> None:
    assert problem in violations(messages)[0]


class Careless(sa.Middleware):
    """Loses what tools said."""

    def before_model(self, state: State, ctx: Any) -> State:
        return state.set_messages(m for m in state.messages if m.role != "tool")


def test_every_request_of_every_test_is_looked_at(paired_requests: list[str]) -> None:
    agent = agent_of(call("look"), "fine", tools=[look], middleware=[Careless()])
    agent.run("go")
    (problem,) = paired_requests
    assert "have no result" in problem
    paired_requests.clear()


def test_what_comes_later_in_a_session_is_looked_at_too(paired_requests: list[str]) -> None:
    session = sa.Session(agent_of("one", "two", tools=[look]))
    session.send("go").result()
    assert paired_requests == []
    orphan = Message.tool([ToolResult("x", "look", "saw")])
    session.send(orphan).result()
    assert len(paired_requests) == 1
    paired_requests.clear()
    session.close()


def look() -> str:
    return "saw"
