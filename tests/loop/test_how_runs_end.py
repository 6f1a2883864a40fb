"""How a run ends: why it did, what it says at its limits, and who may have it go on."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import sagents_nb as sa
from tests.talking import call, results, session_of, unanswered, until


@sa.tool
def look() -> str:
    """Look."""
    return "saw it"


@sa.tool
def break_off() -> str:
    """Break off."""
    raise ValueError("no key")


def agent_of(*turns: Any, **options: Any) -> sa.Agent:
    return sa.Agent(sa.ScriptedModel(turns), tools=[look, break_off], defaults=False, **options)


def calls(*names: str) -> sa.Message:
    return sa.Message.assistant("", [call(name, f"c{n}") for n, name in enumerate(names)])


# the reason


@pytest.mark.spec("R4.1.9")
def test_a_result_has_its_calls_the_number_of_its_turns_and_the_usage_of_all() -> None:
    used = sa.Usage(10, 5)
    first = sa.Message.assistant("", [call("look", "a"), call("break_off", "b")], usage=used)
    last = sa.Message.assistant("Seen.", usage=used)
    result = agent_of(first, last).run("go")
    assert [(c.call.name, c.status) for c in result.tool_calls] == [
        ("look", "completed"),
        ("break_off", "failed"),
    ]
    assert result.model_calls == 2
    assert result.usage.total_tokens == 30
    assert result.finish_reason == "completed"


def test_a_result_says_why_it_ended() -> None:
    wants = calls("look")
    agent = agent_of(wants)
    assert agent.run("go", until_tool="look").finish_reason == "until_tool"
    assert agent_of(wants).run("go", should_pause=lambda: True).finish_reason == "paused"
    asks = agent_of(wants, interrupt_on=["look"])
    assert asks.run("go").finish_reason == "interrupted"
    for reason, options in (
        ("max_runs", {"max_runs": 1}),
        ("budget", {"budget": sa.Budget(tool_calls=0)}),
        ("max_failures", {"max_failures": 1}),
    ):
        with pytest.raises(sa.AgentError) as raised:
            agent_of(calls("break_off"), **options).run("go")
        assert raised.value.result.finish_reason == reason
    with pytest.raises(sa.ModelError) as failed:
        agent_of(sa.ModelError("down", kind="auth")).run("go")
    assert failed.value.result.finish_reason == "error"


@pytest.mark.spec("R4.1.6")
def test_a_run_that_was_cancelled_gives_the_calls_so_far_and_tells_its_tool_and_its_end() -> None:
    told: list[bool] = []

    @sa.tool
    async def linger(ctx: sa.ToolContext) -> str:
        """Linger."""
        import asyncio

        try:
            await asyncio.sleep(60)
        finally:
            told.append(ctx.cancelled)
        return "never"

    model = sa.ScriptedModel([sa.Message.assistant("", [call("look", "a"), call("linger", "b")])])
    stream = sa.Agent(model, tools=[look, linger], defaults=False).stream("go")
    events = []
    for event in stream:
        events.append(event.type)
        if event.type == "tool_execution_end":
            stream.cancel()
    result = stream.result
    assert result.finish_reason == "cancelled"
    assert told == [True]
    assert events.count("agent_end") == 1
    assert [(c.call.name, c.status) for c in result.tool_calls] == [
        ("look", "completed"),
        ("linger", "cancelled"),
    ]


def test_results_kept_by_an_earlier_version_have_no_number_of_model_calls() -> None:
    result = agent_of("Hello!").run("hi")
    for name in ("model_calls", "finish_reason"):
        del result.__dict__[name]
    again = pickle.loads(pickle.dumps(result))
    assert again.text == "Hello!"
    assert again.model_calls is None
    assert again.finish_reason == "completed"


# the text for the end of all calls


@pytest.mark.spec("R4.1.4")
def test_where_no_model_call_is_left_the_fallback_text_is_the_answer() -> None:
    agent = agent_of(calls("look"), calls("look"), "never", max_runs=2, fallback_text="Too hard.")
    result = agent.run("go")
    assert result.status == "completed"
    assert result.text == "Too hard."
    assert result.finish_reason == "max_runs"
    assert result.model_calls == 2
    assert [c.status for c in result.tool_calls] == ["completed", "cancelled"]
    assert not unanswered(result.state.messages)
    assert len(agent.model.requests) == 2  # type: ignore[attr-defined]


@pytest.mark.spec("R4.1.4")
def test_without_one_it_is_an_error_and_its_result_has_all_that_was_done() -> None:
    with pytest.raises(sa.MaxRunsExceeded) as raised:
        agent_of(calls("look"), calls("look"), max_runs=2).run("go")
    result = raised.value.result
    assert len(result.tool_calls) == 2
    assert result.model_calls == 2


def test_the_fallback_text_is_kept_and_told_like_an_answer_and_talking_goes_on() -> None:
    session = session_of(
        *(calls("look"), "Better."), tools=[look], max_runs=1, fallback_text="Too hard."
    )
    said: list[str] = []
    session.subscribe(lambda e: said.append(e.message.text) if e.type == "message_end" else None)
    assert session.send("go").result().text == "Too hard."
    assert said[-1] == "Too hard."
    assert session.send("again").result().text == "Better."
    assert [m.role for m in session.messages][-4:] == ["tool", "assistant", "user", "assistant"]


def test_a_value_is_never_a_fallback_text() -> None:
    agent = agent_of(calls("look"), fallback_text="Sorry.")
    with pytest.raises(sa.AgentError):
        agent.extract("How many?", int, max_runs=1)


@pytest.mark.parametrize("wrong", ["", "  ", 3])
def test_a_fallback_text_that_says_nothing_is_refused(wrong: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="fallback_text"):
        agent_of("x", fallback_text=wrong)


# failures


@pytest.mark.spec("R4.1.5")
def test_a_success_begins_the_count_of_failing_calls_anew() -> None:
    bad, good = calls("break_off"), calls("look")
    agent = agent_of(bad, bad, good, bad, bad, "Done.", failures="calls")
    assert agent.run("go").text == "Done."
    with pytest.raises(sa.FailuresExceeded, match="3 calls in a row"):
        agent_of(bad, bad, bad, "never", failures="calls").run("go")


@pytest.mark.spec("R4.1.5")
def test_each_failing_call_of_a_batch_counts_and_one_success_in_it_is_enough() -> None:
    with pytest.raises(sa.FailuresExceeded):
        agent_of(calls("break_off", "break_off", "break_off"), "never", failures="calls").run("go")
    mixed = calls("break_off", "break_off", "look", "break_off")
    assert agent_of(mixed, mixed, "Done.", failures="calls").run("go").text == "Done."
    with pytest.raises(sa.FailuresExceeded):  # by turns, each of them had a failing call
        agent_of(mixed, mixed, mixed, "never").run("go")


@pytest.mark.spec("R4.1.5")
def test_what_a_hook_makes_of_an_error_for_the_model_leaves_that_it_was_one() -> None:
    class Kindly(sa.Middleware):
        def after_tool(self, call: sa.ToolCall, result: sa.ToolResult, ctx: Any) -> Any:
            import msgspec

            return msgspec.structs.replace(result, content="Try something else.")

    agent = agent_of(calls("break_off"), "Done.", middleware=[Kindly()])
    result = agent.run("go")
    (record,) = result.tool_calls
    assert results(result.state)[0] == "Try something else."
    assert record.result is not None
    assert record.result.is_error
    assert "no key" in record.result.metadata["traceback"]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_so_many_failures_end_a_run_and_no_fewer(most: int) -> None:
    bad = calls("break_off")
    agent = agent_of(*[bad] * (most - 1), "Done.", max_failures=most)
    assert agent.run("go").text == "Done."
    with pytest.raises(sa.FailuresExceeded, match=f"in {most} turns"):
        agent_of(*[bad] * most, "never", max_failures=most).run("go")


def test_without_a_limit_failures_end_nothing() -> None:
    agent = agent_of(*[calls("break_off")] * 8, "Done.", max_failures=0)
    assert agent.run("go").text == "Done."


@pytest.mark.parametrize("wrong", [{"max_failures": -1}, {"failures": "all"}])
def test_a_limit_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(sa.ConfigurationError, match=next(iter(wrong))):
        agent_of("x", **wrong)


# before it stops


class Insists(sa.Middleware):
    """Asks so many times whether that is all."""

    def __init__(self, times: int = 1) -> None:
        self.left = times
        self.seen: list[str] = []

    def before_stop(self, state: sa.State, ctx: sa.RunContext) -> sa.Message | None:
        self.seen.append(state.messages[-1].text)
        if not self.left:
            return None
        self.left -= 1
        return sa.Message.user("Is that all?")


def test_what_a_hook_asks_before_the_end_is_answered_first() -> None:
    hook = Insists()
    result = agent_of("Half.", "All of it.", middleware=[hook]).run("go")
    assert [m.text for m in result.messages] == ["go", "Half.", "Is that all?", "All of it."]
    assert hook.seen == ["Half.", "All of it."]
    assert result.model_calls == 2


@pytest.mark.spec("R4.1.3")
def test_such_questions_end_with_the_model_calls() -> None:
    hook = Insists(times=100)
    result = agent_of("1", "2", "3", "never", middleware=[hook], max_runs=3).run("go")
    assert result.status == "completed"
    assert result.text == "3"
    assert hook.seen == ["1", "2"]


def test_a_message_that_waits_has_a_run_of_its_own_and_comes_after_such_questions() -> None:
    @sa.tool
    def wait_for_people() -> str:
        """Wait."""
        session.send("and then?")
        return "said"

    turns = (calls("wait_for_people"), "1", "2", "3")
    session = session_of(*turns, tools=[wait_for_people], middleware=[Insists()])
    session.send("go").result()
    until(lambda: session.status == "idle")
    said = [m.text for m in session.messages if m.role == "user"]
    assert said == ["go", "Is that all?", "and then?"]


def test_a_stored_run_whose_end_is_asked_about_is_not_over_before() -> None:
    store = sa.ConversationStore("sqlite://")
    seen: list[str] = []

    class Looks(sa.Middleware):
        def before_stop(self, state: sa.State, ctx: sa.RunContext) -> sa.Message | None:
            seen.append(ctx.state.messages[-1].text)
            return sa.Message.user("More?") if len(seen) == 1 else None

    agent = agent_of("Half.", "All.", middleware=[Looks()])
    session = sa.Session.open("s1", agent=agent, store=store, create=True)
    session.send("go").result()
    session.close()
    again = sa.Session.open("s1", agent=agent, store=store)
    assert [m.text for m in again.messages] == ["go", "Half.", "More?", "All."]
    again.close()
    store.close()


@pytest.mark.parametrize("wrong", ["More?", sa.Message.assistant("More?"), 3])
def test_anything_but_a_message_of_a_user_is_refused(wrong: Any) -> None:
    class Wrong(sa.Middleware):
        def before_stop(self, state: sa.State, ctx: sa.RunContext) -> Any:
            return wrong

    with pytest.raises(sa.MiddlewareError, match=r"Wrong\.before_stop returned .*Message\.user"):
        agent_of("Hello!", middleware=[Wrong()]).run("hi")


def test_a_misspelt_hook_is_named() -> None:
    class Wrong(sa.Middleware):
        def before_stops(self, state: sa.State, ctx: sa.RunContext) -> Any:
            return None

    with pytest.raises(sa.ConfigurationError, match="did you mean before_stop"):
        agent_of("x", middleware=[Wrong()])
