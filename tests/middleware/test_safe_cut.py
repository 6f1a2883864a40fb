from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagents_nb import Message, ScriptedModel, State, Summarization
from sagents_nb.middleware.patch_tool_calls import patched
from sagents_nb.middleware.summarization import safe_cut
from tests.middleware.histories import (
    TALK,
    answered,
    before_model,
    broken_histories,
    calling,
    context,
    one,
    said,
    summarise,
    user,
    whole_histories,
)
from tests.pairing import violations


@pytest.mark.spec("S1.5.4")
@pytest.mark.parametrize(
    ("messages", "keep", "cut"),
    [
        (TALK, 2, 3),
        ([user(), calling("a"), answered("a"), said()], 1, 3),
        ([user(), calling("a"), answered("a"), said()], 2, 1),
        ([user(), calling("a"), answered("a"), said()], 3, 1),
        ([calling("a"), answered("a"), said()], 2, None),
        ([user(), calling("a"), Message("note"), answered("a")], 1, 1),
        ([user(), calling("a"), Message("note"), user(), answered("a")], 2, 1),
        ([user(), calling("a", "b"), answered("a"), answered("b")], 1, 1),
        ([user(), calling("a"), answered("a"), calling("a"), answered("a")], 1, 3),
        ([user(), user(), answered("nobody's")], 1, None),
    ],
)
def test_the_cut_never_parts_a_call_from_its_result(
    messages: list[Message], keep: int, cut: int | None
) -> None:
    assert safe_cut(messages, keep) == cut


@pytest.mark.spec("S1.5.5")
def test_the_cut_before_a_result_moves_back_to_its_call() -> None:
    first = [user(), calling("c1"), answered("c1"), said(), user()]
    messages = [*first, calling("c2"), answered("c2"), said()]
    state = summarise(messages, keep=2)
    assert state is not None
    assert state.messages[2:] == messages[5:]


@pytest.mark.spec("S1.5.4")
def test_without_a_safe_cut_everything_is_kept_and_nobody_is_asked() -> None:
    model = ScriptedModel([])
    middleware = Summarization(1, keep=1, model=model, token_counter=one)
    state = State(messages=[calling("a"), answered("a")])
    assert before_model(middleware, state, context()) is None
    assert model.requests == []


@pytest.mark.spec("S1.5.4")
@settings(max_examples=200)
@given(broken_histories, st.integers(1, 6))
def test_in_any_history_a_kept_result_has_its_call(messages: list[Message], keep: int) -> None:
    cut = safe_cut(messages, keep)
    if cut is None:
        return
    assert 0 < cut <= len(messages) - keep
    called: set[str] = set()
    for message in messages[cut:]:
        assert {result.tool_call_id for result in message.tool_results} <= called
        called.update(tool_call.id for tool_call in message.tool_calls)


@pytest.mark.spec("S1.5.4", "S1.5.6")
@settings(max_examples=200)
@given(whole_histories(), st.integers(1, 6))
def test_a_whole_history_is_whole_after_it_was_summarised(
    messages: list[Message], keep: int
) -> None:
    assert not violations(messages)
    state = summarise(messages, keep=keep)
    if state is not None:
        assert not violations(state.messages)
        assert len(state.messages) <= len(messages) + 1  # two for at least one


@pytest.mark.spec("S1.5.4", "S1.6.2")
@settings(max_examples=200)
@given(broken_histories, st.integers(1, 6))
def test_any_history_can_be_summarised_and_patched_in_either_order(
    messages: list[Message], keep: int
) -> None:
    state = summarise(messages, keep=keep)
    assert not violations(patched(state.messages if state else messages))
    state = summarise(patched(messages), keep=keep)
    assert not violations(state.messages if state else patched(messages))
