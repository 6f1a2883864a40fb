from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import sagents_nb as sa
from sagents_nb.events import AgentEnd, MessageEnd, MessageStart, MessageUpdate, TurnEnd
from sagents_nb.models.base import ModelRequest
from tests.grammar import ungrammatical
from tests.recorders import Book, recorded
from tests.talking import (
    PATIENCE,
    agent_of,
    all_of,
    call,
    of,
    results,
    roles,
    session_of,
    streamed,
    types,
    unanswered,
)


@sa.tool
def look(at: str = "") -> str:
    """Look."""
    return f"saw {at}"


@sa.tool
def submit(answer: str = "") -> str:
    """Submit."""
    if answer == "bad":
        raise ValueError("not good enough")
    return f"submitted {answer}"


# the order of events


@pytest.mark.spec("A2.1.1", "S1.2.6")
def test_a_plain_answer_is_one_turn_with_the_prompt_first() -> None:
    events = streamed(agent_of("hello"), "hi")
    assert types(events) == [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start",
        "message_update",
        "message_end",
        "token_usage",
        "turn_end",
        "agent_end",
    ]
    end = of(AgentEnd, events)[0]
    assert (roles(end.messages), end.status, end.error) == (
        ["user", "assistant"],
        "completed",
        None,
    )
    assert of(TurnEnd, events)[0].tool_results == ()


@pytest.mark.spec("A2.1.1", "A2.1.5")
def test_only_the_new_messages_are_told_of() -> None:
    state = agent_of("one").run("first").state
    events = streamed(agent_of("two"), "second", state=state)
    assert [e.message.text for e in of(MessageEnd, events)] == ["second", "two"]
    assert [m.text for m in of(AgentEnd, events)[0].messages] == ["second", "two"]


def test_several_prompts_are_all_told_of_before_the_model_is_asked() -> None:
    agent = agent_of("ok")
    events = streamed(agent, [sa.Message.user("a"), sa.Message("note", (sa.TextPart("n"),))])
    assert types(events)[2:6] == ["message_start", "message_end"] * 2
    assert roles(agent.model.requests[0].messages) == ["user", "note"]  # type: ignore[attr-defined]


class Whole(sa.ChatModel):
    """A model that does not stream."""

    name = "whole"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        yield sa.Message.assistant("all at once")


@pytest.mark.spec("A2.1.3")
def test_a_model_that_only_gives_the_final_message_has_no_updates() -> None:
    events = streamed(sa.Agent(Whole(), replace_default_middleware=True))
    assert types(events)[4:6] == ["message_start", "message_end"]
    assert not of(MessageUpdate, events)


@pytest.mark.spec("A2.1.4")
def test_a_tool_turn_tells_of_the_call_its_result_and_then_of_the_next_turn() -> None:
    events = streamed(agent_of(call("look", at="sky"), "done", tools=[look]))
    assert types(events, "message_update", "token_usage")[4:] == [
        "message_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "message_start",
        "message_end",
        "turn_end",
        "turn_start",
        "message_start",
        "message_end",
        "turn_end",
        "agent_end",
    ]
    assert [r.text for r in of(TurnEnd, events)[0].tool_results] == ["saw sky"]


def test_the_updates_of_a_message_add_up_to_its_text() -> None:
    model = sa.ScriptedModel(["a longer answer, in pieces"], chunk=3)
    events = streamed(sa.Agent(model, replace_default_middleware=True))
    pieces = [e.delta.text for e in of(MessageUpdate, events)]
    assert len(pieces) > 5
    assert "".join(pieces) == "a longer answer, in pieces"
    assert of(MessageStart, events)[1].message.text == ""


# turn rules


@pytest.mark.spec("P2", "S1.2.9")
def test_a_final_answer_on_the_last_allowed_call_is_a_success() -> None:
    assert agent_of("yes", max_runs=1).run("go").status == "completed"
    two = agent_of(call("look"), "yes", tools=[look], max_runs=2)
    assert two.run("go").text == "yes"


@pytest.mark.spec("P2", "S1.2.9", "P18")
def test_a_model_that_never_stops_wanting_tools_is_stopped_and_can_be_continued() -> None:
    turns = [call("look", f"c{n}") for n in range(3)]
    agent = agent_of(*turns, "at last", tools=[look], max_runs=3)
    with pytest.raises(sa.MaxRunsExceeded, match="continue") as raised:
        agent.run("go")
    result = raised.value.result
    assert result.status == "error"
    assert len(agent.model.requests) == 3  # type: ignore[attr-defined]
    assert not unanswered(result.state.messages)
    assert "limit of 3" in results(result.state)[-1]
    assert agent.run("go on", state=result.state).text == "at last"


@pytest.mark.spec("S1.2.9")
def test_the_limit_can_be_given_per_run() -> None:
    agent = agent_of(call("look"), call("look", "c2"), tools=[look])
    with pytest.raises(sa.MaxRunsExceeded):
        agent.run("go", max_runs=2)


@pytest.mark.spec("H3.1.4")
def test_without_a_limit_a_model_may_go_on_for_as_long_as_it_wants() -> None:
    turns = [call("look", f"c{n}") for n in range(60)]
    assert agent_of(*turns, "at last", tools=[look], max_runs=0).run("go").text == "at last"
    agent = agent_of(*turns, "at last", tools=[look])
    assert agent.run("go", max_runs=0).text == "at last"
    with pytest.raises(sa.BudgetExceeded):  # which is another limit
        agent_of(*turns, tools=[look], max_runs=0, budget=sa.Budget(model_calls=3)).run("go")


@pytest.mark.spec("H3.1.4")
@pytest.mark.parametrize(
    "blank",
    [
        "",
        " \n ",
        sa.Message.assistant([]),
        sa.Message.assistant([sa.ThinkingPart("Hm."), sa.TextPart(" ")]),
    ],
)
def test_a_blank_answer_is_asked_for_again_where_that_is_wanted(blank: Any) -> None:
    agent = agent_of(blank, blank, "at last", retry_blank=True)
    result = agent.run("go")
    assert (result.text, roles(result.messages)) == ("at last", ["user", *["assistant"] * 3])
    assert [len(r.messages) for r in agent.model.requests] == [1, 2, 3]  # type: ignore[attr-defined]
    assert agent_of(blank, "never").run("go").text.strip() == ""


@pytest.mark.spec("H3.1.4")
def test_blank_answers_count_among_the_calls_of_a_run_which_can_be_continued() -> None:
    agent = agent_of(call("look"), " ", " ", "at last", tools=[look], retry_blank=True, max_runs=3)
    with pytest.raises(sa.MaxRunsExceeded) as raised:
        agent.run("go")
    assert agent.run([], raised.value.result).text == "at last"


def test_an_answer_that_was_cut_or_is_no_text_is_not_blank() -> None:
    cut = sa.Message.assistant("", stop_reason="max_tokens")
    shown = sa.Message.assistant([sa.JsonPart({"a": 1})])
    for answer in (cut, shown, "0"):
        agent = agent_of(answer, "never", retry_blank=True)
        assert len(agent.run("go").messages) == 2


def test_a_model_that_only_pauses_is_stopped_by_the_limit_too() -> None:
    pause = sa.Message.assistant("…", stop_reason="pause_turn")
    assert agent_of(pause, "done").run("go").text == "done"
    with pytest.raises(sa.MaxRunsExceeded):
        agent_of(*[pause] * 9, max_runs=3).run("go")


def test_a_conversation_that_ends_with_a_pause_or_with_open_calls_can_go_on() -> None:
    pause = sa.Message.assistant("…", stop_reason="pause_turn")
    calls = sa.Message.assistant("", [call("look")])
    for last, told in (pause, []), (calls, ["saw "]):
        said = [sa.Message.user("go"), last]
        for prompt in said, sa.State(messages=said):
            for bare in (True, False):
                model = sa.ScriptedModel(["done"])
                agent = sa.Agent(model, tools=[look], replace_default_middleware=bare)
                result = agent.run(prompt)
                assert result.text == "done"
                assert results(result.state) == told


@pytest.mark.spec("P17")
@pytest.mark.parametrize("reason", ["max_tokens", "end_turn", "stop_sequence"])
def test_no_tool_runs_unless_the_model_stopped_for_tools(reason: Any) -> None:
    ran: list[int] = []

    def act() -> None:
        ran.append(1)

    cut = sa.Message.assistant("", [call("act")], stop_reason=reason)
    result = agent_of(cut, "sorry", tools=[act]).run("go")
    assert not ran
    assert result.text == "sorry"
    assert results(result.state) == [
        f"Not run: The message ended with {reason!r} before it was done."
    ]


@pytest.mark.spec("P17")
def test_a_message_that_gives_no_reason_to_stop_runs_no_tool_and_the_call_says_so() -> None:
    silent = sa.Message("assistant", (call("look"),))
    [told] = results(agent_of(silent, "sorry", tools=[look]).run("go").state)
    assert told == (
        "Not run: The message does not say why it ended (stop_reason), so it may have been cut."
    )


@pytest.mark.spec("P17")
def test_unreadable_arguments_are_told_to_the_model_and_nothing_runs() -> None:
    broken = sa.ToolCall("c1", "look", {}, error="the arguments are no JSON")
    result = agent_of(broken, "sorry", tools=[look]).run("go")
    assert results(result.state) == ["Not run: the arguments are no JSON"]


def test_a_model_that_calls_a_tool_where_there_is_none_is_told_so() -> None:
    result = agent_of(call("look"), "sorry").run("go")
    assert results(result.state) == ["There is no tool 'look'. Tools: none."]


def test_the_error_of_failing_turns_names_the_call_that_failed_last() -> None:
    def fail(n: int) -> str:
        raise ValueError(f"number {n}")

    def break_off(n: int) -> str:
        raise KeyError(f"key {n}")

    turns = [[call("fail", "a", n=n), call("break_off", "b", n=n)] for n in (1, 2, 3)]
    with pytest.raises(sa.FailuresExceeded, match=r"3 turns in a row, last break_off: .*key 3"):
        agent_of(*turns, tools=[fail, break_off]).run("go")


def test_calls_that_were_skipped_are_no_failures() -> None:
    turns = [[call("look", "a")], [call("look", "b")], [call("look", "c")]]
    outcome = recorded(
        agent_of(*turns, "ok", tools=[look]), Book(), [sa.Message.user("go")],
        skip_rest=lambda: True,
    )  # fmt: skip
    assert (outcome.status, outcome.messages[-1].text) == ("completed", "ok")


@pytest.mark.parametrize(
    "odd", [{1, 2}, frozenset("ab"), pytest.importorskip("pandas").DataFrame({"a": ["x"]}), 5]
)
def test_what_only_happens_to_have_items_is_no_prompt(odd: Any) -> None:
    agent = agent_of("hi")
    with pytest.raises(sa.ConfigurationError, match=r"A prompt is text, .* not "):
        agent.run(odd)
    assert not agent.model.requests  # type: ignore[attr-defined]


def test_two_calls_with_one_id_are_not_both_run() -> None:
    turn = [call("look", "same", at="a"), call("look", "same", at="b")]
    result = agent_of(turn, "ok", tools=[look]).run("go")
    assert results(result.state)[0] == "saw a"
    assert "'same' too" in results(result.state)[1]


# how a run ends


async def returning(self: Any, request: Any) -> Any:
    return sa.Message.assistant("x")


def listing(self: Any, request: Any) -> Any:
    return [sa.Message.assistant("x")]


async def yielding(self: Any, request: Any) -> Any:
    yield {"role": "assistant", "content": "x"}


@pytest.mark.spec("S1.2.11")
def test_until_tool_ends_the_run_with_its_result_and_asks_the_model_no_more() -> None:
    agent = agent_of(call("look"), call("submit", "c2", answer="42"), tools=[look, submit])
    result = agent.with_(until_tool="submit").run("go")
    assert result.status == "completed"
    assert result.tool_result == sa.ToolResult("c2", "submit", "submitted 42")
    assert roles(result.messages)[-1] == "tool"


@pytest.mark.spec("S1.2.11")
def test_until_tool_ends_the_run_also_with_an_error() -> None:
    result = agent_of(call("submit", answer="bad"), tools=[submit]).run("go", until_tool="submit")
    assert result.tool_result is not None
    assert result.tool_result.is_error


@pytest.mark.spec("S1.2.11")
def test_the_first_of_several_names_ends_the_run() -> None:
    agent = agent_of(call("look"), tools=[look, submit], until_tool=["submit", "look"])
    assert agent.run("go").tool_result.name == "look"  # type: ignore[union-attr]


@pytest.mark.spec("S1.2.11", "P18")
def test_a_model_that_never_calls_it_is_an_error() -> None:
    with pytest.raises(sa.UntilToolNotCalled, match="submit") as raised:
        agent_of("no", tools=[submit], until_tool="submit").run("go")
    assert raised.value.result.text == "no"


@pytest.mark.spec("S1.2.11")
def test_a_name_that_is_no_tool_is_refused_before_any_model_call() -> None:
    agent = agent_of("x", tools=[look])
    with pytest.raises(sa.ConfigurationError, match=r"submit.*look"):
        agent.run("go", until_tool="submit")
    assert agent.model.requests == []  # type: ignore[attr-defined]


@pytest.mark.spec("S1.2.14")
def test_until_tool_success_lets_the_model_try_again() -> None:
    turns = [call("submit", answer="bad"), call("submit", "c2", answer="good")]
    agent = agent_of(*turns, tools=[submit], until_tool_success="submit")
    assert agent.run("go").tool_result.text == "submitted good"  # type: ignore[union-attr]
    with pytest.raises(sa.ConfigurationError, match="exclude"):
        agent.with_(until_tool="submit")


@pytest.mark.spec("S1.2.12", "S1.2.13")
def test_until_tool_is_remembered_over_an_approval() -> None:
    agent = agent_of(
        call("look"), call("submit", "c2"), tools=[look, submit], interrupt_on={"look": True}
    )
    first = agent.run("go", until_tool="submit")
    assert agent.resume(first, sa.Approve()).tool_result.name == "submit"  # type: ignore[union-attr]

    turns = [call("submit"), call("submit"), "what else?"]
    gated = agent_of(*turns, tools=[submit], interrupt_on={"submit": True})
    one, other = (gated.run("go", until_tool="submit") for _ in range(2))
    assert gated.resume(one, sa.Approve()).tool_result.text == "submitted "  # type: ignore[union-attr]
    with pytest.raises(sa.UntilToolNotCalled):
        gated.resume(other, sa.Reject())


@pytest.mark.spec("P18", "A2.3.3")
def test_a_failing_model_raises_and_what_it_had_said_is_kept_and_marked() -> None:
    class Breaks(sa.ChatModel):
        name = "breaks"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            yield sa.ThinkingDelta("hm")
            yield "half an "
            yield "answer"
            yield sa.ToolCallDelta(0, '{"a', "c1", "look")
            raise ConnectionError("cable out")

    agent = sa.Agent(Breaks(), replace_default_middleware=True)
    with pytest.raises(sa.ModelError, match="ConnectionError: cable out") as raised:
        agent.run("go")
    result = raised.value.result
    said = result.state.messages[-1]
    assert (said.text, said.thinking, said.tool_calls) == ("half an answer", "hm", [])
    assert (said.stop_reason, said.error) == ("error", str(raised.value))
    assert result.status == "error"


@pytest.mark.spec("S1.2.7")
def test_a_stream_that_ends_without_a_message_is_an_error() -> None:
    class Cut(sa.ChatModel):
        name = "cut"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            yield "half"

    with pytest.raises(sa.ModelError, match="without a final Message") as raised:
        sa.Agent(Cut(), replace_default_middleware=True).run("go")
    assert raised.value.kind == "cut_stream"


@pytest.mark.spec("S1.2.7")
def test_a_message_that_says_it_failed_fails_the_run() -> None:
    failed = sa.Message("assistant", (sa.TextPart("so f"),), stop_reason="error", error="cut")
    with pytest.raises(sa.ModelError, match="cut"):
        agent_of(failed).run("go")


@pytest.mark.spec("S1.2.7")
def test_an_answer_that_a_content_filter_refused_fails_the_run_with_what_it_said() -> None:
    refused = sa.Message("assistant", (sa.TextPart("Not that."),), stop_reason="refusal")
    with pytest.raises(sa.ModelError, match="declined to answer: Not that") as raised:
        agent_of(refused).run("go")
    assert (raised.value.kind, raised.value.result.status) == ("refusal", "error")


@pytest.mark.spec("S1.2.7")
def test_calls_of_a_message_that_says_it_failed_are_not_run() -> None:
    ran: list[str] = []

    def act() -> None:
        ran.append("act")

    failed = sa.Message("assistant", (call("act"),), stop_reason="error", error="cut")
    with pytest.raises(sa.ModelError, match="cut") as raised:
        agent_of(failed, "never", tools=[act]).run("go")
    assert ran == []
    assert not unanswered(raised.value.result.state.messages)


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()])
def test_a_model_cannot_end_the_runtime_thread(error: BaseException) -> None:
    def leave(request: ModelRequest) -> Any:
        raise error

    with pytest.raises(sa.ModelError):
        agent_of(leave).run("go")
    assert agent_of("alive").run("?").text == "alive"


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (returning, "gave a coroutine; write it as 'async def' with 'yield'"),
        (listing, "gave a list; write it as 'async def' with 'yield'"),
        (yielding, "gave a dict, and a stream gives text, deltas and last of all one Message"),
    ],
)
def test_a_model_that_is_written_as_people_first_write_one_is_told_how(
    stream: Any, said: str
) -> None:
    class Mine(sa.ChatModel):
        name = "mine"

    Mine.stream = stream  # type: ignore[method-assign]
    with pytest.raises(sa.ModelError, match=re.escape(said)):
        sa.Agent(Mine()).run("go")


def test_leaving_a_stream_early_cancels_the_run() -> None:
    begun, stopped = threading.Event(), threading.Event()

    async def forever() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    async def leave_early() -> None:
        stream = agent_of(call("forever"), tools=[forever]).stream("go")
        async for event in stream:
            if event.type == "tool_execution_start":  # the tool may begin after it was told
                await asyncio.to_thread(begun.wait, PATIENCE)
                break
        await stream.aclose()  # type: ignore[attr-defined]

    all_of(_one(leave_early()))
    assert stopped.wait(PATIENCE)


async def _one(coroutine: Any) -> AsyncIterator[Any]:
    yield await coroutine


# hooks


class Recorder(sa.Middleware):
    """Writes down when its hooks are called."""

    def __init__(self, id: str, told: list[str]) -> None:
        self.id = id
        self.told = told

    def _tell(self, hook: str) -> None:
        self.told.append(f"{self.id}.{hook}")

    def before_run(self, state: sa.State, ctx: sa.RunContext) -> None:
        self._tell("before_run")

    async def before_model(self, state: sa.State, ctx: sa.RunContext) -> None:
        self._tell("before_model")

    def after_model(self, state: sa.State, ctx: sa.RunContext) -> None:
        self._tell("after_model")

    def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> None:
        self._tell("before_tool")

    async def after_tool(
        self, call: sa.ToolCall, result: sa.ToolResult, ctx: sa.RunContext
    ) -> None:
        self._tell("after_tool")

    def after_run(self, state: sa.State, ctx: sa.RunContext) -> None:
        self._tell("after_run")


@pytest.mark.spec("P1")
def test_hooks_go_around_the_run_the_model_and_the_tools_in_order_and_back() -> None:
    told: list[str] = []
    stack = [Recorder("a", told), Recorder("b", told)]
    agent_of(call("look"), "done", tools=[look], middleware=stack).run("go")
    model = ["a.before_model", "b.before_model", "b.after_model", "a.after_model"]
    tool = ["a.before_tool", "b.before_tool", "b.after_tool", "a.after_tool"]
    assert told == [
        *("a.before_run", "b.before_run"),
        *model,
        *tool,
        *model,
        *("b.after_run", "a.after_run"),
    ]


@pytest.mark.spec("P1", "S1.2.2")
def test_after_run_is_not_called_after_an_interrupt_or_an_error() -> None:
    told: list[str] = []
    options = {"tools": [look], "interrupt_on": {"look": True}}
    agent = agent_of(call("look"), "done", middleware=[Recorder("a", told)], **options)
    waiting = agent.run("go")
    assert "a.after_run" not in told
    agent.resume(waiting, sa.Approve())
    assert told.count("a.after_run") == 1
    assert told.count("a.before_run") == 2
    told.clear()
    with pytest.raises(sa.ModelError):
        agent_of(ValueError("x"), middleware=[Recorder("a", told)]).run("go")
    assert "a.after_run" not in told


@pytest.mark.spec("S1.2.3")
@pytest.mark.parametrize("hook", ["before_run", "before_model"])
def test_a_hook_that_raises_ends_the_run_names_itself_and_loses_no_message(hook: str) -> None:
    def fail(self: Any, state: sa.State, ctx: sa.RunContext) -> None:
        raise ValueError("no quota")

    kind = type("Quota", (sa.Middleware,), {hook: fail})
    agent = agent_of("never said", middleware=[kind()])
    with pytest.raises(sa.MiddlewareError, match=rf"Quota\.{hook} failed: ValueError: no quota"):
        agent.run("precious words")
    assert agent.model.requests == []  # type: ignore[attr-defined]

    session = sa.Session(agent)
    heard: list[Any] = []
    session.subscribe(heard.append)
    with pytest.raises(sa.MiddlewareError):
        session.send("precious words").result()
    assert [m.text for m in session.messages] == ["precious words"]
    assert not ungrammatical(heard)


@pytest.mark.parametrize("hook", ["after_model", "after_run"])
def test_a_late_hook_that_raises_leaves_a_valid_history(hook: str) -> None:
    def fail(self: Any, state: sa.State, ctx: sa.RunContext) -> None:
        raise ValueError("no")

    kind = type("Late", (sa.Middleware,), {hook: fail})
    turns = [call("look"), "done"] if hook == "after_model" else ["done"]
    with pytest.raises(sa.MiddlewareError, match=hook) as raised:
        agent_of(*turns, tools=[look], middleware=[kind()]).run("go")
    assert not unanswered(raised.value.result.state.messages)


def test_hooks_may_change_the_state_the_call_and_the_result() -> None:
    class Changes(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> sa.State:
            return state.put_metadata("asked", state.get_metadata("asked", 0) + 1)

        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> Any:
            return sa.ToolCall("another id", call.name, {"at": call.arguments["at"].upper()})

        def after_tool(self, call: sa.ToolCall, result: sa.ToolResult, ctx: sa.RunContext) -> Any:
            return sa.ToolResult("another id", "another name", result.text + "!")

    agent = agent_of(call("look", at="sky"), "done", tools=[look], middleware=[Changes()])
    result = agent.run("go")
    assert result.state.metadata == {"asked": 2}
    assert result.state.messages[2].tool_results == [sa.ToolResult("c1", "look", "saw SKY!")]
    assert result.state.messages[1].tool_calls == [call("look", at="sky")]


@pytest.mark.spec("A2.3.6")
def test_a_hook_may_answer_a_call_in_the_tools_place() -> None:
    class Block(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> Any:
            return sa.ToolResult("?", "?", "not on Sundays", is_error=True)

    events = streamed(agent_of(call("look"), "ok", tools=[look], middleware=[Block()]))
    end = next(e for e in events if e.type == "tool_execution_end")
    assert (end.status, end.result) == (  # type: ignore[attr-defined]
        "failed",
        sa.ToolResult("c1", "look", "not on Sundays", is_error=True),
    )


@pytest.mark.spec("A2.3.6")
@pytest.mark.parametrize("text", ["from the cache", ""])
def test_an_answer_of_a_hook_is_a_result_like_any_other_and_the_tool_is_not_run(text: str) -> None:
    ran: list[str] = []

    def act() -> None:
        ran.append("act")

    class Cached(sa.Middleware):
        async def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> Any:
            return sa.ToolResult("?", "?", text, metadata={"cached": True})

    agent = agent_of(call("act"), "ok", tools=[act], middleware=[Cached()])
    events = streamed(agent)
    end = next(e for e in events if e.type == "tool_execution_end")
    answer = sa.ToolResult("c1", "act", text, metadata={"cached": True})
    assert (end.status, end.result) == ("completed", answer)  # type: ignore[attr-defined]
    assert agent.model.requests[1].messages[-1].tool_results == [answer]  # type: ignore[attr-defined]
    assert ran == []


@pytest.mark.spec("A2.3.6")
def test_each_hook_is_given_the_call_and_the_result_as_the_last_one_left_them() -> None:
    class Adds(sa.Middleware):
        def __init__(self, id: str) -> None:
            self.id = id

        async def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> Any:
            return replace(call, arguments={"at": call.arguments["at"] + self.id})

        async def after_tool(self, call: sa.ToolCall, result: sa.ToolResult, ctx: Any) -> Any:
            return replace(result, content=f"{result.text}<{self.id}{call.arguments['at']}")

    stack = [Adds("a"), Adds("b")]
    agent = agent_of(call("look", at="x"), "ok", tools=[look], middleware=stack)
    assert results(agent.run("go").state) == ["saw xab<bxab<axab"]


@pytest.mark.spec("A2.3.6")
def test_a_call_that_a_hook_blocks_without_a_reason_still_has_an_answer() -> None:
    class Block(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> Any:
            return sa.ToolResult("?", "?", "", is_error=True)

    result = agent_of(call("look"), "ok", tools=[look], middleware=[Block()]).run("go")
    (answer,) = result.state.messages[2].tool_results
    assert (answer.is_error, answer.text) == (True, "Blocked: this call was not run.")


@pytest.mark.spec("A2.3.6")
def test_hooks_are_asked_about_calls_that_fit_and_what_they_change_must_fit_too() -> None:
    asked: list[Any] = []

    class Spoil(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> Any:
            asked.append(call.arguments)
            return sa.ToolCall(call.id, call.name, {"at": 7})

    turn = [
        call("look", "a", at=5),
        call("look", "b", at="sky"),
        call("nothing", "c"),
        sa.ToolCall("d", "look", error="it was cut off"),
    ]
    result = agent_of(turn, "ok", tools=[look], middleware=[Spoil()]).run("go")
    assert asked == [{"at": "sky"}]
    answers = result.state.messages[2].tool_results
    said = ["Invalid", "Invalid", "There", "Not"]
    assert [(r.is_error, r.text.split()[0]) for r in answers] == [(True, word) for word in said]


@pytest.mark.spec("A2.3.6")
def test_a_hook_that_raises_before_a_tool_ends_the_run_and_nothing_ran() -> None:
    ran: list[str] = []

    def act() -> None:
        ran.append("act")

    class Broken(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> None:
            raise ValueError("no policy")

    session = session_of(call("act"), tools=[act], middleware=[Broken()])
    with pytest.raises(sa.MiddlewareError, match=r"Broken\.before_tool failed.*no policy"):
        session.send("go").result()
    (answer,) = session.messages[-1].tool_results
    assert (ran, answer.is_error) == ([], True)


@pytest.mark.spec("A2.3.6")
@pytest.mark.parametrize("broken", ["a", "b", "c"])
def test_a_hook_that_raises_on_one_call_keeps_the_whole_turn_from_running(broken: str) -> None:
    ran: list[str] = []

    def act(n: str) -> None:
        ran.append(n)

    class Broken(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> None:
            if call.id == broken:
                raise ValueError("no policy")

    agent = agent_of([call("act", n, n=n) for n in "abc"], tools=[act], middleware=[Broken()])
    with pytest.raises(
        sa.MiddlewareError, match=r"Broken\.before_tool failed.*no policy"
    ) as raised:
        agent.run("go")
    answers = raised.value.result.state.messages[-1].tool_results
    assert (ran, [answer.is_error for answer in answers]) == ([], [True] * 3)
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]


@pytest.mark.spec("A2.3.6")
def test_what_a_hook_changes_in_place_is_what_runs() -> None:
    class Shout(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> None:
            call.arguments["at"] = call.arguments["at"].upper()

    agent = agent_of(call("look", at="sky"), "ok", tools=[look], middleware=[Shout()])
    assert results(agent.run("go").state) == ["saw SKY"]


@pytest.mark.spec("A2.3.6")
@pytest.mark.parametrize(
    "field",
    [{"content": "other"}, {"metadata": {"k": 1}}, {"is_error": True}],
)
def test_a_hook_may_replace_one_field_of_a_result(field: dict[str, Any]) -> None:
    class Change(sa.Middleware):
        def after_tool(self, call: sa.ToolCall, result: sa.ToolResult, ctx: sa.RunContext) -> Any:
            return replace(result, **field)

    agent = agent_of(call("look", at="sky"), "ok", tools=[look], middleware=[Change()])
    plain = sa.ToolResult("c1", "look", "saw sky")
    assert agent.run("go").state.messages[2].tool_results == [replace(plain, **field)]
    changed = agent.model.requests[1].messages[-1].tool_results  # type: ignore[attr-defined]
    assert changed == [replace(plain, **field)]


@pytest.mark.spec("A2.3.6")
def test_a_hook_may_make_a_failure_good() -> None:
    @sa.tool
    def fail() -> str:
        raise ValueError("cable out")

    class Mends(sa.Middleware):
        def after_tool(self, call: sa.ToolCall, result: sa.ToolResult, ctx: Any) -> Any:
            assert (result.is_error, result.text) == (True, "ValueError: cable out")
            assert "cable out" in result.metadata["traceback"]
            return sa.ToolResult(call.id, call.name, "the spare cable is in")

    result = agent_of(call("fail"), "ok", tools=[fail], middleware=[Mends()]).run("go")
    (answer,) = result.state.messages[2].tool_results
    assert answer == sa.ToolResult("c1", "fail", "the spare cable is in")


def test_what_tools_did_is_kept_when_a_hook_after_them_raises() -> None:
    class Audit(sa.Middleware):
        def after_tool(self, call: sa.ToolCall, result: sa.ToolResult, ctx: sa.RunContext) -> None:
            if call.id == "c1":
                raise ValueError("disk full")

    turn = [call("look", at="a"), call("look", "c2", at="b")]
    session = session_of(turn, tools=[look], middleware=[Audit()])
    heard: list[Any] = []
    session.subscribe(heard.append)
    with pytest.raises(sa.MiddlewareError, match="after_tool"):
        session.send("go").result()
    assert results(session.state) == ["saw a", "saw b"]
    assert not ungrammatical(heard)


@pytest.mark.parametrize("hook", ["before_run", "before_model", "before_tool", "after_tool"])
def test_a_hook_that_returns_something_odd_is_named(hook: str) -> None:
    kind = type("Odd", (sa.Middleware,), {hook: lambda self, *rest: "text"})
    with pytest.raises(sa.MiddlewareError, match=rf"Odd\.{hook} returned str"):
        agent_of(call("look"), "done", tools=[look], middleware=[kind()]).run("go")


def test_a_result_of_a_hook_that_nobody_could_read_again_is_named() -> None:
    class Odd(sa.Middleware):
        def after_tool(self, call: sa.ToolCall, result: sa.ToolResult, ctx: Any) -> Any:
            return sa.ToolResult(call.id, call.name, self.content)

        def __init__(self, content: Any) -> None:
            self.content = content

    for given in ([sa.TextPart(5)], [sa.TextPart(Path("a"))], Decimal("1.5")):  # type: ignore[arg-type]
        session = session_of(call("look"), "done", tools=[look], middleware=[Odd(given)])
        with pytest.raises(sa.MiddlewareError, match=r"Odd\.after_tool returned what cannot be"):
            session.send("go").result()
        assert session.send("again").result().text == "done"


def test_a_text_of_a_model_that_is_none_is_its_error_and_the_session_goes_on() -> None:
    class Odd(sa.ChatModel):
        asked = 0

        async def stream(self, request: Any) -> Any:
            self.asked += 1
            odd = sa.Message("assistant", (sa.TextPart(Path("a")),))  # type: ignore[arg-type]
            yield odd if self.asked == 1 else sa.Message.assistant("fine")

    session = sa.Session(sa.Agent(Odd()))
    with pytest.raises(sa.ModelError, match=r"gave a message that cannot be kept: .*Path"):
        session.send("go").result()
    assert session.send("again").result().text == "fine"


def test_a_hook_that_watches_sees_every_event_and_cannot_hurt() -> None:
    seen: list[str] = []

    class Watch(sa.Middleware):
        def on_event(self, event: Any, ctx: sa.RunContext) -> None:
            seen.append(event.type)
            raise ValueError("I only watch")

    events = streamed(agent_of(call("look"), "done", tools=[look], middleware=[Watch()]))
    assert seen == types(events)
    assert session_of("fine", middleware=[Watch()]).send("go").result().text == "fine"
