"""The window: the model is shown the latest turns, and all are kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.frozenlist import FrozenList
from sagents_nb.middleware.turns import turns_of
from tests.middleware.histories import answered, calling, said, user
from tests.talking import call, unanswered


def asked(agent: sa.Agent, number: int = -1) -> list[str]:
    """The texts that the model was shown."""
    return [m.text for m in agent.model.requests[number].messages]  # type: ignore[attr-defined]


def talked(agent: sa.Agent, *prompts: str, state: Any = None) -> sa.RunResult:
    for prompt in prompts:
        state = agent.run(prompt, state=state)
    assert isinstance(state, sa.RunResult)
    return state


def agent_of(*turns: Any, turns_shown: int = 2, slack: int = 0, **options: Any) -> sa.Agent:
    window = sa.SlidingWindow(turns_shown, slack)
    return sa.Agent(sa.ScriptedModel(turns), middleware=[window], defaults=False, **options)


@pytest.mark.spec("R4.2.2", "R4.2.1")
def test_after_three_turns_a_window_of_two_shows_the_last_four_messages_and_the_new_one() -> None:
    agent = agent_of("1", "2", "3", "4")
    result = talked(agent, "a", "b", "c", "d")
    assert asked(agent) == ["b", "2", "c", "3", "d"]
    assert [m.text for m in result.state.messages] == ["a", "1", "b", "2", "c", "3", "d", "4"]


@pytest.mark.spec("R4.2.3")
def test_a_conversation_of_a_store_shows_its_last_turns_in_a_new_session_and_keeps_all() -> None:
    store = sa.ConversationStore("sqlite://")
    first = sa.Session(agent_of("1", "2", "3"), store=store, id="talk")
    for prompt in "abc":
        first.send(prompt).result()
    first.close()
    agent = agent_of("4")
    again = sa.Session.open("talk", agent=agent, store=store)
    again.send("d").result()
    assert asked(agent) == ["b", "2", "c", "3", "d"]
    assert len(again.messages) == 8
    other = sa.Session(agent_of("x"), store=store, id="other")
    assert list(other.messages) == []
    again.close()
    other.close()
    store.close()


@pytest.mark.spec("R4.2.2")
def test_a_call_and_its_result_stay_together() -> None:
    @sa.tool
    def look() -> str:
        """Look."""
        return "saw it"

    turns = (call("look"), "1", call("look", "c2"), "2", call("look", "c3"), "3")
    agent = agent_of(*turns, turns_shown=1, tools=[look])
    talked(agent, "a", "b", "c")
    for request in agent.model.requests:  # type: ignore[attr-defined]
        assert request.messages[0].role == "user"
        assert not unanswered(request.messages)
    assert asked(agent) == ["b", "", "", "2", "c", "", ""]


def test_with_slack_the_beginning_stays_the_same_for_several_turns() -> None:
    agent = agent_of(*"123456789", turns_shown=1, slack=2)
    talked(agent, *"abcdefghi")
    begins = [asked(agent, number)[0] for number in range(9)]
    assert begins == ["a", "a", "a", "a", "d", "d", "d", "g", "g"]


def test_instructions_and_a_summary_at_the_beginning_are_always_shown() -> None:
    request = sa.Message.user("Summarize.", summary_request=True)
    summary = sa.Message.assistant("They greeted.", summary=True)
    state = sa.State().add_messages([request, summary, user("a"), said("1"), user("b"), said("2")])
    agent = agent_of("3", turns_shown=0)
    talked(agent, "c", state=state)
    assert asked(agent) == ["Summarize.", "They greeted.", "c"]


def test_earlier_turns_lose_their_thinking_once_something_was_cut_and_the_present_keeps_it() -> (
    None
):
    thought = sa.Message("assistant", (sa.ThinkingPart("hm", "s", "anthropic"), sa.TextPart("1")))
    state = sa.State().add_messages([user("x"), said("0"), user("a"), thought])
    agent = agent_of(thought, turns_shown=1)
    result = talked(agent, "b", state=state)
    shown = agent.model.requests[0].messages  # type: ignore[attr-defined]
    assert [m.text for m in shown] == ["a", "1", "b"]
    assert not any(m.thinking for m in shown)
    assert result.state.messages[3].thinking == "hm"
    agent = agent_of(thought, turns_shown=2)
    talked(agent, "b", state=state)
    assert agent.model.requests[0].messages[3].thinking == "hm"  # type: ignore[attr-defined]


def test_another_branch_is_never_shown_in_the_place_of_this_one() -> None:
    agent = agent_of(*"12345678", turns_shown=2)
    session = sa.Session(agent)
    for prompt in "abcd":
        session.send(prompt).result()
    session.send("B", instead_of=2).result()  # what was said second, said anew
    session.send("C").result()
    session.send("D").result()
    assert asked(agent) == ["B", "5", "C", "6", "D"]


def test_what_a_transformation_shows_is_cut_too() -> None:
    class Shouts(sa.Middleware):
        def before_model_request(self, request: sa.ModelRequest, ctx: sa.RunContext) -> Any:
            import msgspec

            louder = [sa.Message(m.role, (sa.TextPart(m.text.upper()),)) for m in request.messages]
            return msgspec.structs.replace(request, messages=louder)

    model = sa.ScriptedModel(["1", "2", "3"])
    agent = sa.Agent(model, middleware=[Shouts(), sa.SlidingWindow(1)], defaults=False)
    talked(agent, "a", "b", "c")
    assert asked(agent) == ["B", "2", "C"]


@pytest.mark.parametrize("wrong", [{"turns": -1}, {"slack": -1}, {"turns": 1.5}])
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(sa.ConfigurationError, match=next(iter(wrong))):
        sa.SlidingWindow(**wrong)


# laws

_turn = st.one_of(
    st.just(("talk",)),
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(lambda sizes: ("work", *sizes)),
    st.just(("twice",)),
)


def history(turns: list[Any]) -> list[sa.Message]:
    messages = []
    for number, (kind, *sizes) in enumerate(turns):
        messages.append(user(f"u{number}"))
        if kind == "twice":
            messages.append(user(f"and {number}"))
        for step, size in enumerate(sizes):
            ids = [f"c{number}-{step}-{n}" for n in range(size)]
            messages += [calling(*ids), answered(*ids)]
        messages.append(said(f"a{number}"))
    return messages


_any = given(st.lists(_turn, max_size=12), st.integers(0, 4), st.integers(0, 3))


@pytest.mark.spec("R4.2.2")
@_any
@settings(max_examples=150, deadline=None)
def test_whatever_was_said_the_request_is_one_a_provider_takes(
    turns: list[Any], shown: int, slack: int
) -> None:
    check(turns, shown, slack)


@pytest.mark.soak
@_any
@settings(max_examples=10_000, deadline=None)
def test_of_ten_thousand_conversations_each_request_is_one_a_provider_takes(
    turns: list[Any], shown: int, slack: int
) -> None:
    check(turns, shown, slack)


def check(turns: list[Any], shown: int, slack: int) -> None:
    agent = agent_of("done", turns_shown=shown, slack=slack)
    state = sa.State().add_messages(history(turns))
    agent.run("now", state=state)
    messages = agent.model.requests[0].messages  # type: ignore[attr-defined]
    assert messages[0].role == "user"
    assert not unanswered(messages)
    assert messages[-1].text == "now"
    starts = [m.text for m in messages if m.role == "user" and m.text.startswith("u")]
    assert min(shown, len(turns)) <= len(starts) <= max(shown + slack, 0)
    assert list(messages) == [*state.messages, messages[-1]][-len(messages) :]


def test_a_long_conversation_is_looked_at_once() -> None:
    looked: list[int] = []

    class Counts(FrozenList[sa.Message]):
        __slots__ = ()

        def since(self, earlier: Any) -> list[sa.Message]:
            new = super().since(earlier)
            looked.append(len(new))
            return new

    messages = Counts(history([("talk",)] * 5_000))
    local: dict[str, Any] = {}
    turns_of(messages, local)
    for _ in range(5):
        turns_of(messages, local)
    assert looked == [10_000, 0, 0, 0, 0, 0]
