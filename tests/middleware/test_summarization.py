from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb import (
    Message,
    PatchToolCalls,
    ScriptedModel,
    State,
    Summarization,
    ThinkingPart,
    ToolCall,
)
from sagents_nb.budget import Budget, Meter
from sagents_nb.errors import BudgetExceeded
from sagents_nb.events import Compaction
from sagents_nb.middleware.summarization import PROMPT
from tests.middleware.histories import (
    TALK,
    answered,
    before_model,
    calling,
    context,
    one,
    said,
    summarise,
    user,
)
from tests.pairing import violations
from tests.talking import agent_of, call, of, roles, run

# When


@pytest.mark.spec("S1.5.1")
def test_it_starts_at_170_000_tokens_and_keeps_six_messages() -> None:
    middleware = Summarization()
    assert (middleware.max_tokens, middleware.keep) == (170_000, 6)


@pytest.mark.spec("S1.5.1")
@pytest.mark.parametrize(("limit", "happens"), [(4, True), (5, True), (6, False)])
def test_it_happens_when_the_estimate_reaches_the_limit(limit: int, happens: bool) -> None:
    model = ScriptedModel(["what was said"])
    middleware = Summarization(limit, keep=2, model=model, token_counter=one)
    state = before_model(middleware, State(messages=TALK), context())
    assert (state is not None, len(model.requests)) == (happens, int(happens))


@pytest.mark.spec("S1.5.3")
@pytest.mark.parametrize("keep", [5, 6])
def test_nothing_happens_to_as_many_messages_as_are_kept(keep: int) -> None:
    assert summarise(TALK, keep=keep) is None
    assert summarise([Message.system("Be brief."), *TALK], keep=keep) is None


def test_options_that_make_no_sense_are_refused() -> None:
    for name in ("max_tokens", "keep"):
        with pytest.raises(sa.ConfigurationError, match=name):
            Summarization(**{name: 0})


# What comes of it


@pytest.mark.spec("S1.5.6", "S1.5.3")
def test_a_request_and_its_summary_stand_for_what_was_said_after_the_system_message() -> None:
    system = Message.system("Be brief.")
    state = summarise([system, *TALK])
    assert state is not None
    first, request, summary, *kept = state.messages
    assert first is system
    assert (request.role, request.metadata) == ("user", {"summary_request": True})
    assert (summary.role, summary.text) == ("assistant", "what was said")
    assert summary.metadata == {"summary": True, "summarized": 3}
    assert kept == TALK[3:]


@pytest.mark.spec("S1.5.6")
def test_what_no_summary_tells_of_is_kept_too() -> None:
    note, rule = Message("note", (sa.TextPart("private"),)), Message.system("Be kind.")
    model = ScriptedModel(["what was said"])
    state = summarise([user("one"), note, rule, *TALK], model=model)
    assert state is not None
    assert roles(state.messages) == ["note", "system", "user", "assistant", "assistant", "user"]
    assert "private" not in model.requests[0].messages[0].text


@pytest.mark.spec("S1.5.6")
def test_a_summary_is_not_summarised_by_itself_even_if_what_is_kept_is_too_long() -> None:
    model = ScriptedModel(["one", "two"])
    middleware = Summarization(1, keep=2, model=model, token_counter=one)
    ctx = context()
    state = before_model(middleware, State(messages=TALK), ctx)
    assert before_model(middleware, state, ctx) is None
    assert before_model(middleware, state.add_message(said("third")), ctx) is not None
    assert len(model.requests) == 2


@pytest.mark.spec("S1.5.6")
def test_after_a_summary_the_conversation_grows_to_the_limit_before_there_is_another() -> None:
    model = ScriptedModel(["what was said"])
    middleware = Summarization(5, keep=1, model=model, token_counter=one)
    ctx = context()
    state = before_model(middleware, State(messages=TALK), ctx)
    assert len(state.messages) == 3
    assert before_model(middleware, state.add_message(said("third")), ctx) is None


def test_kept_turns_lose_their_thinking_which_no_provider_would_take_back() -> None:
    thought = ThinkingPart("hm", "signature", "anthropic")
    call = ToolCall("a", "look", {})
    thinking = Message("assistant", (thought, call), stop_reason="tool_use")
    state = summarise([*TALK, thinking, answered("a")])
    assert state is not None
    assert state.messages[-2].parts == (call,)
    assert not any(message.thinking for message in state.messages)


def test_the_model_reads_what_was_said_called_and_found() -> None:
    model = ScriptedModel(["what was said"])
    odd = ToolCall("b", "save", {"text": "\udc00"})
    long = sa.ToolResult("b", "save", "x" * 20_000, is_error=True)
    parts = [sa.TextPart("see"), sa.ImagePart(url="u"), sa.FilePart(name="a.pdf"), sa.JsonPart([1])]
    asked = Message.assistant(tool_calls=[odd])
    summarise([Message.user(parts), asked, Message.tool([long]), *TALK], model=model)
    text = model.requests[0].messages[0].text
    for told in ("[user] see", "(an image)", "(the file a.pdf)", "[user] [1]", "[user] one"):
        assert told in text
    assert '[assistant calls save] {"text":' in text
    assert "[result of save, failed] xxx" in text
    assert "12,000 characters left out" in text
    assert model.requests[0].tools == ()


@pytest.mark.spec("S1.5.8")
def test_the_agents_model_is_asked_unless_another_is_given() -> None:
    own, agents = ScriptedModel(["own"]), ScriptedModel(["agent's"])
    for model, text in ((None, "agent's"), (own, "own")):
        middleware = Summarization(1, 2, model, token_counter=one)
        state = before_model(middleware, State(messages=TALK), context(model=agents))
        assert state.messages[1].text == text
    assert own.requests[0].system == PROMPT


@pytest.mark.spec("S1.5.8")
def test_the_prompt_can_be_another() -> None:
    model = ScriptedModel(["own"])
    summarise(TALK, model=model, prompt="In one word.")
    assert model.requests[0].system == "In one word."


@pytest.mark.spec("S1.5.8")
def test_in_a_run_the_agents_model_summarises_with_the_prompt_of_summaries_and_no_other() -> None:
    middleware = Summarization(1, 2, token_counter=one)
    agent = agent_of("summary", "hi", system_prompt="You are a pirate.", middleware=[middleware])
    result = agent.run("go", State(messages=TALK))
    assert [m.text for m in result.state.messages if m.metadata.get("summary")] == ["summary"]
    asked = [request.system for request in agent.model.requests]  # type: ignore[attr-defined]
    assert asked == [PROMPT, "You are a pirate."]


@pytest.mark.spec("S1.5.8")
def test_in_a_run_of_another_model_that_one_summarises() -> None:
    agent = agent_of(middleware=[Summarization(1, 2, token_counter=one)])
    other = ScriptedModel(["summary", "hi"])
    assert agent.run("go", State(messages=TALK), model=other).text == "hi"
    assert other.requests[0].system == PROMPT


@pytest.mark.spec("S1.5.8")
def test_model_and_prompt_of_summaries_are_options_of_the_default_middleware() -> None:
    own, model = ScriptedModel(["summary"]), ScriptedModel(["hi"])
    options = {"max_tokens": 1, "keep": 2, "model": own, "prompt": "In one word."}
    agent = sa.Agent(model, summarization_options=options)
    assert agent.run("go", State(messages=TALK)).text == "hi"
    assert [request.system for request in own.requests] == ["In one word."]
    assert len(model.requests) == 1


@pytest.mark.spec("S1.5.8")
def test_the_model_of_summaries_may_be_named() -> None:
    middleware = Summarization(1, 2, "demo", token_counter=one)
    agents = ScriptedModel(["agent's"])
    assert before_model(middleware, State(messages=TALK), context(model=agents)) is not None
    assert agents.requests == []


# When it fails


@pytest.mark.spec("S1.5.7")
@pytest.mark.parametrize(
    "turn",
    [
        ValueError("cable"),
        "",
        Message.assistant("half a summ", stop_reason="max_tokens"),
        Message.assistant("No.", stop_reason="refusal"),
    ],
    ids=["raises", "empty", "cut", "refused"],
)
def test_without_a_whole_summary_all_is_kept_with_a_warning(
    turn: Any, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    assert summarise(TALK, turn, heard=heard) is None
    assert [event.status for event in heard] == ["started", "failed"]
    assert "all 5 messages are kept" in caplog.text


@pytest.mark.spec("S1.5.7")
def test_without_a_model_all_is_kept_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    middleware = Summarization(1, 2, token_counter=one)
    assert before_model(middleware, State(messages=TALK), context()) is None
    assert "no model" in caplog.text


@pytest.mark.spec("S1.5.7")
def test_a_run_goes_on_when_its_summary_fails(caplog: pytest.LogCaptureFixture) -> None:
    middleware = Summarization(1, 1, ScriptedModel([ValueError("cable")]), token_counter=one)
    agent = agent_of("fine", middleware=[middleware])
    result = agent.run("go", State(messages=TALK))
    assert (result.status, result.text, len(result.state.messages)) == ("completed", "fine", 7)


@pytest.mark.spec("S1.5.7")
def test_after_a_failure_it_is_tried_again_when_there_is_more_to_summarise() -> None:
    model = ScriptedModel([ValueError("cable"), "what was said"])
    middleware = Summarization(1, 2, model, token_counter=one)
    ctx, state = context(), State(messages=TALK)
    assert before_model(middleware, state, ctx) is None
    assert before_model(middleware, state, ctx) is None
    assert len(model.requests) == 1
    assert before_model(middleware, state.add_message(said()), ctx) is not None


@pytest.mark.spec("S1.5.7")
def test_events_say_when_it_starts_and_what_it_gained() -> None:
    heard: list[Any] = []
    summarise(TALK, heard=heard)
    started, completed = heard
    assert (started.type, started.status, started.summarized) == ("compaction", "started", 3)
    assert (completed.status, completed.summarized) == ("completed", 3)
    assert (completed.tokens_before, completed.tokens_after) == (5, 4)


def test_a_run_that_is_cancelled_in_the_middle_of_a_summary_says_that_it_is_over() -> None:
    heard: list[Any] = []
    model = ScriptedModel([lambda request: asyncio.sleep(3600)])
    middleware = Summarization(1, 2, model, token_counter=one)

    async def cancelled() -> None:
        hook = middleware.before_model(State(messages=TALK), context(heard))
        assert hook is not None
        task = asyncio.ensure_future(hook)
        while len(heard) < 1:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancelled())
    assert [event.status for event in heard] == ["started", "failed"]


def test_a_summary_counts_against_the_budget_and_says_what_it_used() -> None:
    usage = sa.Usage(100, 10)
    answer = Message.assistant("what was said", usage=usage)
    meter = Meter(Budget(model_calls=1))
    middleware = Summarization(1, 2, ScriptedModel([answer, answer]), token_counter=one)
    state = before_model(middleware, State(messages=TALK), context(meter=meter))
    assert (meter.usage, state.messages[1].usage) == (usage, usage)
    with pytest.raises(BudgetExceeded):
        before_model(middleware, State(messages=TALK), context(meter=meter))


def test_a_summary_that_the_budget_refused_while_it_waited_is_not_counted() -> None:
    meter, model = Meter(Budget(tokens=5)), ScriptedModel(["first", "never"])

    async def used_up_by_others(seconds: float) -> None:
        meter.add(sa.Usage(9))

    limited = sa.Limited(model, per_minute=1, sleep=used_up_by_others, clock=lambda: 0.0)
    agent_of("unused").with_(model=limited).run("go")
    middleware = Summarization(1, 2, limited, token_counter=one)
    assert before_model(middleware, State(messages=TALK), context(meter=meter)) is None
    assert (len(model.requests), meter.model_calls) == (1, 0)


# In a run


@pytest.mark.spec("P1", "P16", "S1.5.6")
def test_inside_a_long_run_requests_only_grow_except_at_a_summary() -> None:
    helper = ScriptedModel([f"summary {i}" for i in range(50)])
    turns = [call("ask" if i % 10 == 5 else "look", f"c{i}") for i in range(49)]
    agent = agent_of(
        *turns,
        "done",
        tools=[look, ask],
        middleware=[Summarization(40, 6, helper, token_counter=one), PatchToolCalls()],
        interrupt_on={"ask": True},
        max_runs=60,
    )
    session = sa.Session(agent, state=State(messages=[user(), calling("A"), user(), said()]))
    heard: list[Any] = []
    session.subscribe(heard.append)
    result = session.send("go").result()
    while result.status == "interrupted":
        result = session.resume(sa.Approve()).result()
    session.close()

    requests = [list(request.messages) for request in agent.model.requests]  # type: ignore[attr-defined]
    steps = itertools.pairwise(requests)
    rewritten = [now for before, now in steps if now[: len(before)] != before]
    assert len(requests) == 50
    assert len(rewritten) == len(helper.requests) == 3
    assert all(now[1].metadata["summary"] for now in rewritten)
    told = of(Compaction, heard)
    assert [event.status for event in told] == ["started", "completed"] * 3
    assert max(map(len, requests)) < 40
    assert not any(violations(request) for request in requests)


def ask() -> str:
    return "asked"


def test_each_message_is_counted_once_however_long_the_run() -> None:
    counted: list[int] = []

    def counter(message: Message) -> int:
        counted.append(1)
        return 1

    turns = [call("look", f"c{i}") for i in range(40)]
    agent = agent_of(
        *turns, "done", tools=[look], middleware=[Summarization(10**9, token_counter=counter)]
    )
    session = sa.Session(agent, state=State(messages=[user(), said()] * 500))
    session.send("go").result()
    assert len(session.messages) == 1000 + 1 + 80 + 1
    assert len(counted) == len(session.messages) - 1  # all but the answer, before the last call
    agent.model.turns += ["again"]  # type: ignore[attr-defined]
    session.send("go on").result()
    assert len(counted) == len(session.messages) - 1
    session.close()


def look() -> str:
    return "saw"


def test_no_message_is_counted_before_there_are_more_than_are_kept() -> None:
    counted: list[Message] = []

    def count(message: Message) -> int:
        counted.append(message)
        return 1

    agent = agent_of("one", "two", middleware=[Summarization(keep=2, token_counter=count)])
    first = agent.run("go")
    assert counted == []
    agent.run("on", first.state)
    assert [message.text for message in counted] == ["go", "one", "on"]


# by turns


def summarizing(*turns: Any, **options: Any) -> sa.Agent:
    stack = [Summarization(**options)]
    return sa.Agent(ScriptedModel(turns), middleware=stack, defaults=False)


@pytest.mark.spec("R4.2.4")
def test_what_is_older_than_so_many_turns_is_folded_into_the_summary_at_each_new_one() -> None:
    summaries = ScriptedModel(["S1", "S2"])
    agent = summarizing(*"123456", turns=3, model=summaries)
    result = None
    for prompt in "abcde":
        result = agent.run(prompt, state=result)
    shown = [m.text for m in agent.model.requests[-1].messages]  # type: ignore[attr-defined]
    assert shown[1:] == ["S1", "b", "2", "c", "3", "d", "4", "e"]
    agent.run("f", state=result)
    shown = [m.text for m in agent.model.requests[-1].messages]  # type: ignore[attr-defined]
    assert shown[1:] == ["S2", "c", "3", "d", "4", "e", "5", "f"]
    assert "S1" in summaries.requests[1].messages[0].text


@pytest.mark.spec("R4.2.4")
def test_an_initial_summary_is_used_at_once_and_folded_into_the_next_one() -> None:
    summaries = ScriptedModel(["S1"])
    agent = summarizing(*"123", turns=1, model=summaries, initial_summary="They know Oslo.")
    result = agent.run("a")
    first = [m.text for m in agent.model.requests[0].messages]  # type: ignore[attr-defined]
    assert first[1:] == ["They know Oslo.", "a"]
    result = agent.run("c", state=agent.run("b", state=result))
    assert "They know Oslo." in summaries.requests[0].messages[0].text
    assert agent.middleware[0].summary(result.state) == "S1"  # type: ignore[attr-defined]


@pytest.mark.spec("R4.2.4")
def test_a_summary_can_be_read_and_set_and_goes_with_a_reset() -> None:
    agent = summarizing("1", "2", "3", turns=5)
    (item,) = agent.middleware
    assert isinstance(item, Summarization)
    session = sa.Session(agent)
    session.send("a").result()
    assert item.summary(session.state) is None
    session.replace(state=item.with_summary(session.state, "They greeted."))
    assert item.summary(session.state) == "They greeted."
    session.replace(state=item.with_summary(session.state, "They met."))
    session.send("b").result()
    shown = [m.text for m in agent.model.requests[-1].messages]  # type: ignore[attr-defined]
    assert shown[1:] == ["They met.", "a", "1", "b"]
    session.reset()
    assert item.summary(session.state) is None


@pytest.mark.spec("R4.2.4")
def test_a_summary_by_turns_is_the_same_in_a_new_process_and_its_failure_loses_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = sa.ConversationStore("sqlite://")
    agent = summarizing(*"123", turns=1, model=ScriptedModel(["S1"]))
    session = sa.Session(agent, store=store, id="talk")
    for prompt in "abc":
        session.send(prompt).result()
    session.close()
    failing = summarizing("4", turns=1, model=ScriptedModel([sa.ModelError("down", kind="auth")]))
    session = sa.Session.open("talk", agent=failing, store=store)
    session.send("d").result()
    shown = [m.text for m in failing.model.requests[-1].messages]  # type: ignore[attr-defined]
    assert shown[1:] == ["S1", "b", "2", "c", "3", "d"]
    assert "No summary was made" in caplog.text
    session.close()
    store.close()
