from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

import sagents_nb as sa
from sagents_nb.events import AgentEnd, MessageEnd, MessageUpdate, TurnEnd
from sagents_nb.messages import ToolCallDelta
from sagents_nb.models.base import ModelRequest
from tests.grammar import ungrammatical
from tests.talking import PATIENCE, all_of, call, of, roles, run, types, unanswered


@sa.tool
def look(at: str = "") -> str:
    """Look."""
    return f"saw {at}"


def config_of(*turns: Any, **options: Any) -> sa.AgentLoopConfig:
    """A config whose model says these turns."""
    return sa.AgentLoopConfig(sa.ScriptedModel(turns, chunk=1000), **options)


def asked(config: sa.AgentLoopConfig) -> list[ModelRequest]:
    """What the model was asked."""
    assert isinstance(config.model, sa.ScriptedModel)
    return config.model.requests


@pytest.mark.spec("A2.1.1", "A2.4.1")
def test_without_an_agent_the_events_are_the_same_and_only_new_messages_are_told_of() -> None:
    context = sa.AgentContext("Be brief.", [sa.Message.user("old"), sa.Message.assistant("times")])
    config = config_of("hello")
    events = all_of(sa.agent_loop("hi", context, config))
    assert types(events, "token_usage") == [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start",
        "message_update",
        "message_end",
        "turn_end",
        "agent_end",
    ]
    end = of(AgentEnd, events)[0]
    assert [m.text for m in end.messages] == ["hi", "hello"]
    assert of(TurnEnd, events)[0].tool_results == ()
    assert asked(config)[0].system == "Be brief."
    assert [m.text for m in asked(config)[0].messages] == ["old", "times", "hi"]
    assert len(context.messages) == 2


@pytest.mark.spec("A2.1.2")
def test_a_message_of_an_own_role_is_told_of_and_no_provider_sees_it() -> None:
    note = sa.Message("notification", (sa.TextPart("file saved"),))
    config = config_of("ok")
    events = all_of(sa.agent_loop([sa.Message.user("a"), note], sa.AgentContext(), config))
    assert types(events)[2:6] == ["message_start", "message_end"] * 2
    assert [m.role for m in of(AgentEnd, events)[0].messages] == [
        "user",
        "notification",
        "assistant",
    ]
    (request,) = asked(config)
    for model in (sa.AnthropicModel("m"), sa.OpenAIModel("m"), sa.OpenAIChatModel("m")):
        assert "file saved" not in repr(model.body(request, {}))  # type: ignore[attr-defined]


@pytest.mark.spec("A2.1.4", "A2.4.2")
@pytest.mark.parametrize("is_async", [False, True])
def test_tools_without_an_agent(is_async: bool) -> None:
    async def look_later(at: str, ctx: sa.ToolContext) -> str:
        """Look."""
        ctx.progress("half way", 0.5)
        await asyncio.sleep(0)
        return f"saw {at}, {ctx.values['who']}"

    def look_now(at: str, ctx: sa.ToolContext) -> str:
        """Look."""
        ctx.progress("half way", 0.5)
        return f"saw {at}, {ctx.values['who']}"

    tool = sa.tool(name="look")(look_later if is_async else look_now)
    config = config_of(call("look", at="sky"), "done", tool_context={"who": "me"})
    events = all_of(sa.agent_loop("go", sa.AgentContext(tools=[tool]), config))
    assert types(events, "message_update", "token_usage")[4:] == [
        "message_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_update",
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
    assert [r.text for r in of(TurnEnd, events)[0].tool_results] == ["saw sky, me"]
    assert roles(of(AgentEnd, events)[0].messages) == ["user", "assistant", "tool", "assistant"]
    assert [t.name for t in asked(config)[0].tools] == ["look"]


@pytest.mark.spec("A2.1.6", "A2.4.1")
def test_errors_of_tools_have_both_events_and_the_loop_goes_on() -> None:
    def fail() -> str:
        raise ValueError("cable out")

    turn = [call("nothing", "a"), call("look", "b", town="x"), call("fail", "c")]
    context = sa.AgentContext(tools=[look, fail])
    events = all_of(sa.agent_loop("go", context, config_of(turn, "sorry")))
    ends = [e for e in events if e.type == "tool_execution_end"]
    assert len(ends) == types(events).count("tool_execution_start") == 3
    assert all(e.result.is_error for e in ends)  # type: ignore[attr-defined]
    assert "ValueError: cable out" in [e.result.text for e in ends]  # type: ignore[attr-defined]
    assert of(AgentEnd, events)[0].messages[-1].text == "sorry"
    assert not ungrammatical(events)


# what the model is shown


@pytest.mark.spec("A2.1.7", "A2.4.2")
@pytest.mark.parametrize("is_async", [False, True])
def test_context_is_transformed_then_converted_on_every_turn_and_the_key_asked_for(
    is_async: bool,
) -> None:
    order: list[str] = []

    def transform(messages: Any) -> Any:
        order.append("transform")
        return [*messages, sa.Message.user("extra")]

    def convert(messages: Any) -> Any:
        order.append("convert")
        assert messages[-1].text == "extra"
        return [m for m in messages if m.role != "note"]

    def key(model: str) -> str:
        order.append("key")
        return f"key of {model}, {order.count('key')}"

    def maybe(function: Any) -> Any:
        async def later(*args: Any) -> Any:
            await asyncio.sleep(0)
            return function(*args)

        return later if is_async else function

    def said(turn: Any) -> Any:
        def model(request: ModelRequest) -> Any:
            order.append("model")
            return turn

        return model

    config = config_of(
        said(call("look")),
        said("done"),
        transform_context=maybe(transform),
        convert_to_llm=maybe(convert),
        get_api_key=maybe(key),
        options={"thinking": "high", "thinking_budgets": {"high": 9}},
        session_id="s1",
    )
    note = sa.Message("note", (sa.TextPart("for the transcript"),))
    context = sa.AgentContext(messages=[note], tools=[look])
    events = all_of(sa.agent_loop("go", context, config))
    assert order == ["transform", "convert", "key", "model"] * 2
    assert [roles(r.messages) for r in asked(config)] == [
        ["user", "user"],
        ["user", "assistant", "tool", "user"],
    ]
    assert [r.api_key for r in asked(config)] == ["key of scripted, 1", "key of scripted, 2"]
    assert {r.session_id for r in asked(config)} == {"s1"} == {e.session_id for e in events}
    assert asked(config)[0].options == {"thinking": "high", "thinking_budgets": {"high": 9}}
    assert roles(of(AgentEnd, events)[0].messages) == ["user", "assistant", "tool", "assistant"]
    assert context.messages == [note]


@pytest.mark.spec("A2.1.7")
def test_each_turn_is_made_from_what_is_kept_and_not_from_what_was_shown_before() -> None:
    given: list[list[str]] = []

    def newest(messages: Any) -> Any:
        given.append([m.text or m.role for m in messages])
        return [sa.Message.user("only this")]

    turns = [call("look", "a"), call("look", "b"), "done"]
    config = config_of(*turns, transform_context=newest)
    seen: list[Any] = []

    def stop(message: sa.Message, results: Any) -> bool:
        seen.append([r.text for r in results])
        return False

    config = msgspec.structs.replace(config, should_stop_after_turn=stop)
    events = all_of(sa.agent_loop("go", sa.AgentContext(tools=[look]), config))
    more = ["assistant", "tool"]
    assert given == [["go"], ["go", *more], ["go", *more, *more]]
    assert seen == [["saw "], ["saw "], []]
    texts = [[m.text for m in request.messages] for request in asked(config)]
    assert texts == [["only this"]] * 3
    assert roles(of(AgentEnd, events)[0].messages) == ["user", *more, *more, "assistant"]


@pytest.mark.spec("A2.1.7")
def test_thinking_that_is_off_reaches_the_model_as_off() -> None:
    config = config_of("ok", options={"thinking": "off"})
    all_of(sa.agent_loop("go", sa.AgentContext(), config))
    (request,) = asked(config)
    assert sa.OpenAIChatModel("m").body(request, dict(request.options))["reasoning_effort"] == (
        "none"
    )


@pytest.mark.spec("A2.3.4")
@pytest.mark.parametrize("name", ["transform_context", "convert_to_llm", "get_api_key"])
def test_a_function_that_raises_ends_the_run_with_an_error_message(name: str) -> None:
    def fail(*args: Any) -> Any:
        raise ValueError("no")

    events: list[Any] = []

    async def listen() -> None:
        async for event in sa.agent_loop("go", sa.AgentContext(), config_of("x", **{name: fail})):
            events.append(event)

    with pytest.raises(sa.AgentError, match="ValueError: no"):
        run(listen())
    assert types(events) == [
        "agent_start",
        "turn_start",
        *["message_start", "message_end"] * 2,
        "turn_end",
        "agent_end",
    ]
    last = events[-1].messages[-1]
    assert (last.role, last.parts, last.stop_reason) == ("assistant", (), "error")
    assert "ValueError: no" in last.error
    assert events[-2].message == last


@pytest.mark.spec("A2.3.4")
@pytest.mark.parametrize("name", ["get_steering_messages", "get_follow_up_messages"])
def test_a_queue_that_raises_ends_the_run_with_whole_events(name: str) -> None:
    asked_for: list[int] = []

    def fail() -> Any:
        asked_for.append(1)
        if name == "get_follow_up_messages" or len(asked_for) > 1:
            raise ValueError("no")
        return []

    events: list[Any] = []

    async def listen() -> None:
        async for event in sa.agent_loop("go", sa.AgentContext(), config_of("x", **{name: fail})):
            events.append(event)

    with pytest.raises(sa.AgentError, match="ValueError: no") as raised:
        run(listen())
    assert not ungrammatical(events)
    assert events[-1].messages[-1].error == str(raised.value)
    assert roles(events[-1].messages) == ["user", "assistant", "assistant"]


# going on


@pytest.mark.spec("A2.1.5", "A2.3.1")
@pytest.mark.parametrize("tail", ["user", "tool"])
def test_a_context_is_continued_without_telling_of_its_messages_again(tail: str) -> None:
    messages = [sa.Message.user("go")]
    if tail == "tool":
        messages += [
            sa.Message.assistant("", [call("look")]),
            sa.Message.tool([sa.ToolResult("c1", "look", "saw it")]),
        ]
    events = all_of(sa.agent_loop([], sa.AgentContext(messages=messages), config_of("done")))
    assert [e.message.text for e in of(MessageEnd, events)] == ["done"]
    assert [m.text for m in of(AgentEnd, events)[0].messages] == ["done"]


@pytest.mark.spec("A2.3.1")
def test_there_is_nothing_to_continue_without_messages_or_after_an_answer() -> None:
    with pytest.raises(sa.NotRunning, match="give agent_loop"):
        sa.agent_loop([], sa.AgentContext(), config_of("x"))
    answered = sa.AgentContext(messages=[sa.Message.user("a"), sa.Message.assistant("b")])
    with pytest.raises(sa.NotRunning, match="is an answer"):
        all_of(sa.agent_loop([], answered, config_of("x")))


@pytest.mark.spec("A2.3.1")
@pytest.mark.parametrize("queue", ["get_steering_messages", "get_follow_up_messages"])
def test_after_an_answer_what_is_queued_is_run_one_by_one(queue: str) -> None:
    waiting = [sa.Message.user("one"), sa.Message.user("two")]
    answered = sa.AgentContext(messages=[sa.Message.user("a"), sa.Message.assistant("b")])
    config = config_of("1", "2", **{queue: lambda: [waiting.pop(0)] if waiting else []})
    events = all_of(sa.agent_loop([], answered, config))
    end = of(AgentEnd, events)[0]
    assert [m.text for m in end.messages] == ["one", "1", "two", "2"]
    assert types(events).count("agent_end") == 1


@pytest.mark.spec("A2.3.3", "P18")
def test_a_failing_model_ends_the_events_as_any_run_and_raises_after_them() -> None:
    class Breaks(sa.ChatModel):
        name = "breaks"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            yield "half"
            raise ConnectionError("cable out")

    events: list[Any] = []

    async def listen() -> None:
        async for event in sa.agent_loop("go", sa.AgentContext(), sa.AgentLoopConfig(Breaks())):
            events.append(event)

    with pytest.raises(sa.ModelError, match="cable out"):
        run(listen())
    end = events[-1]
    assert (end.type, end.status, end.messages[-1].stop_reason) == ("agent_end", "error", "error")
    assert "cable out" in end.error
    again = sa.AgentContext(messages=end.messages[:-1])
    events = all_of(sa.agent_loop([], again, config_of("here")))
    assert [m.text for m in of(AgentEnd, events)[0].messages] == ["here"]


# stopping


class Endless(sa.ChatModel):
    """Says a word and a half, and would go on for ever."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        yield "one "
        yield ToolCallDelta(0, "{", "c1", "look")
        await asyncio.Event().wait()


@pytest.mark.spec("A2.3.2")
def test_aborting_ends_the_events_without_raising() -> None:
    config = sa.AgentLoopConfig(Endless())

    async def abort() -> list[Any]:
        stream = sa.agent_loop("go", sa.AgentContext(tools=[look]), config)
        events = []
        async for event in stream:
            events.append(event)
            if isinstance(event, MessageUpdate):
                stream.cancel()
        stream.cancel()
        return events

    events = run(abort())
    end = events[-1]
    assert (end.type, end.status) == ("agent_end", "cancelled")
    last = end.messages[-1]
    assert (last.stop_reason, last.tool_calls) == ("aborted", [])
    assert last.error
    assert of(TurnEnd, events)[0].tool_results == ()
    assert not ungrammatical(events)


def test_a_reader_who_is_cancelled_aborts_the_loop() -> None:
    async def read() -> list[Any]:
        stream = sa.agent_loop("go", sa.AgentContext(), sa.AgentLoopConfig(Endless()))
        events: list[Any] = []
        began = asyncio.Event()

        async def reading() -> None:
            async for event in stream:
                events.append(event)
                if isinstance(event, MessageUpdate):
                    began.set()

        task = asyncio.ensure_future(reading())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE):
            events += [event async for event in stream]
        return events

    end = run(read())[-1]
    assert (end.type, end.status) == ("agent_end", "cancelled")


@pytest.mark.spec("A2.3.2", "A2.4.1")
def test_tools_see_that_the_loop_is_aborted() -> None:
    saw = threading.Event()
    began = threading.Event()

    def work(ctx: sa.ToolContext) -> str:
        began.set()
        while not ctx.cancelled:
            began.wait(0.001)
        saw.set()
        return "late"

    async def abort() -> list[Any]:
        stream = sa.agent_loop("go", sa.AgentContext(tools=[work]), config_of(call("work")))
        events = []
        async for event in stream:
            events.append(event)
            if event.type == "tool_execution_start":
                await asyncio.to_thread(began.wait, 5)
                stream.cancel()
        return events

    events = run(abort())
    assert saw.wait(PATIENCE)
    assert not unanswered(events[-1].messages)
    assert events[-1].status == "cancelled"


def test_letting_go_of_the_events_stops_the_run() -> None:
    begun, stopped = threading.Event(), threading.Event()

    async def forever() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    async def leave() -> None:
        stream = sa.agent_loop("go", sa.AgentContext(tools=[forever]), config_of(call("forever")))
        async for event in stream:
            if event.type == "tool_execution_start":  # the tool may begin after it was told
                await asyncio.to_thread(begun.wait, PATIENCE)
                break

    run(leave())
    gc.collect()
    assert stopped.wait(PATIENCE)


def test_nothing_happens_before_the_first_event_is_asked_for() -> None:
    config = config_of("never")
    sa.agent_loop("go", sa.AgentContext(), config)
    assert asked(config) == []


@pytest.mark.spec("A2.3.7")
@pytest.mark.parametrize("is_async", [False, True])
def test_the_loop_may_be_told_to_stop_after_a_turn(is_async: bool) -> None:
    seen: list[Any] = []

    def stop(message: sa.Message, results: Any) -> bool:
        seen.append((message.tool_calls[0].name, [r.text for r in results]))
        return True

    async def stop_later(message: sa.Message, results: Any) -> bool:
        return stop(message, results)

    config = config_of(
        call("look", at="a"), "never", should_stop_after_turn=stop_later if is_async else stop
    )
    events = all_of(sa.agent_loop("go", sa.AgentContext(tools=[look]), config))
    assert seen == [("look", ["saw a"])]
    assert (of(AgentEnd, events)[0].status, len(asked(config))) == ("completed", 1)


@pytest.mark.spec("A2.3.7")
@pytest.mark.parametrize("is_async", [False, True])
def test_the_loop_asks_after_each_turn_whether_to_stop_and_goes_on_until_then(
    is_async: bool,
) -> None:
    seen: list[Any] = []
    follow_ups = [sa.Message.user("and then"), sa.Message.user("never heard")]

    def stop(message: sa.Message, results: Any) -> bool:
        seen.append((message.text, [r.text for r in results]))
        return message.text == "two"

    async def stop_later(message: sa.Message, results: Any) -> bool:
        return stop(message, results)

    config = config_of(
        *(call("look", at="a"), "one", "two", "never"),
        should_stop_after_turn=stop_later if is_async else stop,
        get_follow_up_messages=lambda: [follow_ups.pop(0)],
    )
    events = all_of(sa.agent_loop("go", sa.AgentContext(tools=[look]), config))
    assert seen == [("", ["saw a"]), ("one", []), ("two", [])]
    end = of(AgentEnd, events)[0]
    assert (end.status, end.messages[-1].text, len(asked(config))) == ("completed", "two", 3)
    assert [m.text for m in follow_ups] == ["never heard"]


@pytest.mark.parametrize(
    ("context", "options", "said"),
    [
        ({"tools": [look, look]}, {}, "Two tools are called 'look'"),
        ({"tools": ["look"]}, {}, "each of it a function"),
        ({"messages": ["text"]}, {}, "each of it a Message"),
        ({}, {"steering_batch": "never"}, "steering_batch"),
    ],
)
def test_a_loop_that_cannot_work_is_refused_at_once(
    context: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(sa.ConfigurationError, match=said):
        sa.agent_loop("go", sa.AgentContext(**context), config_of("x", **options))


def test_a_converter_with_a_second_parameter_is_told_of_the_runs_end() -> None:
    given: list[Any] = []

    def transform(messages: list[sa.Message], signal: threading.Event) -> list[sa.Message]:
        given.append(signal)
        return messages

    async def convert(messages: list[sa.Message], keep: int = 20) -> list[sa.Message]:
        given.append(keep)
        return messages[-keep:]

    config = config_of("done", transform_context=transform, convert_to_llm=convert)
    all_of(sa.agent_loop("go", sa.AgentContext(), config))
    signal, keep = given
    assert isinstance(signal, threading.Event)
    assert not signal.is_set()
    assert keep == 20


def test_a_tool_that_fails_in_turn_after_turn_ends_the_run() -> None:
    async def fails() -> str:
        raise ValueError("no such table")

    context = sa.AgentContext("", [], [sa.tool(fails)])
    config = config_of(*[call("fails", f"c{n}") for n in range(9)])
    with pytest.raises(sa.AgentError, match="Tools failed in 3 turns in a row, last fails"):
        all_of(sa.agent_loop("go", context, config))
    assert len(asked(config)) == 3
