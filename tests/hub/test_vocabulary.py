"""What happens in a session, in the words of a hub's clients."""

from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub.vocabulary import as_chat, chats, reason_of, status_of
from tests.hub.world import World, chat, data_of, say
from tests.talking import call


@pytest.mark.spec("H3.1.3", "H3.5.3")
def test_an_answer_at_once_is_one_tick(world: World) -> None:
    thread = world.thread("Hello!")
    say(thread, "a")
    assert world.told(thread) == [
        "run.started",
        "run.tick",
        "model.started",
        "model.completed",
        "agent.completed",
    ]
    events = world.events(thread)
    assert data_of(events, "agent.completed") == [
        {"result": {"role": "assistant", "content": "Hello!"}}
    ]
    assert data_of(events, "model.started") == [{"model": "scripted"}]
    assert data_of(events, "model.completed") == [{"usage": {"inputTokens": 0, "outputTokens": 0}}]


@pytest.mark.spec("H3.1.3", "H3.5.3")
def test_each_tick_asks_the_model_once_and_then_runs_its_tools(world: World) -> None:
    thread = world.thread(call("look", at="a"), call("look", "c2", at="b"), "done")
    say(thread, "a")
    tick = ["run.tick", "model.started", "model.completed"]
    tools = ["tool.started", "tool.output"]
    assert world.told(thread) == [
        "run.started",
        *tick,
        *tools,
        *tick,
        *tools,
        *tick,
        "agent.completed",
    ]
    assert [data["step"] for data in data_of(world.events(thread), "run.tick")] == [0, 1, 2]
    assert thread.run["step"] == 3


@pytest.mark.spec("H3.1.3")
def test_the_tick_after_an_approval_asks_no_model(world: World) -> None:
    thread = world.thread(call("pay", amount=5), "done")
    say(thread, "a")
    before = len(world.events(thread))
    thread.approve(True, by="test")
    say(thread)
    told = [event.type for event in world.events(thread, before)]
    assert told[:5] == ["hitl.resume", "run.resumed", "run.tick", "tool.started", "tool.output"]


@pytest.mark.spec("H3.1.5", "H3.5.3")
def test_what_tools_return_is_told_and_what_they_raise(world: World) -> None:
    def table() -> dict[str, int]:
        return {"rows": 2}

    def nothing() -> None: ...

    def broken() -> str:
        raise ValueError("no fuse")

    for tool in (table, nothing, broken):
        world.system.add_tool(sa.tool(tool, description="Do."))
    calls = [call(name, name) for name in ("table", "nothing", "broken", "strange")]
    thread = world.thread([*calls, call("look", "look", at="sea")], "done")
    assert say(thread, "a") == "completed"
    events = world.events(thread)
    assert sorted(data["toolName"] for data in data_of(events, "tool.started")) == sorted(
        ["table", "nothing", "broken", "strange", "look"]
    )
    outputs = {data["toolName"]: data["output"] for data in data_of(events, "tool.output")}
    assert outputs == {"table": '{"rows":2}', "look": "seen sea"}
    errors = {data["toolName"]: data["error"] for data in data_of(events, "tool.error")}
    assert errors.keys() == {"broken", "strange"}
    assert "no fuse" in errors["broken"]
    seen = thread.state()["state"]["messages"]
    results = {m["toolCallId"]: m["content"] for m in seen if m["role"] == "tool"}
    assert list(results) == ["table", "nothing", "broken", "strange", "look"]
    assert results["table"] == '{"rows":2}'
    assert results["nothing"] == "(no output)"
    assert results["broken"].startswith("Error: ")
    assert results["strange"].startswith("Error: ")


@pytest.mark.spec("H3.1.6")
def test_a_model_that_fails_is_an_error_and_says_nothing(world: World) -> None:
    thread = world.thread(sa.ModelError("The cable is cut."), "done")
    assert say(thread, "a") == "error"
    assert thread.run["reason"] == "The cable is cut."
    assert data_of(world.events(thread), "agent.error") == [{"error": "The cable is cut."}]
    assert chat(thread) == [("user", "a")]
    assert say(thread, "b") == "completed"
    assert chat(thread) == [("user", "a"), ("user", "b"), ("assistant", "done")]


@pytest.mark.spec("H3.1.7")
def test_a_question_to_people_is_told_before_the_pause(world: World) -> None:
    thread = world.thread([call("look", "c1"), call("pay", "c2", amount=5)])
    say(thread, "a")
    assert world.told(thread)[-2:] == ["hitl.interrupt", "run.paused"]


@pytest.mark.spec("H3.4.6")
def test_a_message_with_text_and_calls_keeps_both() -> None:
    said = sa.Message.assistant("I look.", [sa.ToolCall("c1", "look", {"at": "sea"})])
    assert as_chat(said) == [
        {
            "role": "assistant",
            "content": "I look.",
            "toolCalls": [{"id": "c1", "name": "look", "args": {"at": "sea"}}],
        }
    ]


def test_results_are_a_message_each_and_questions_none() -> None:
    results = [
        sa.ToolResult("c1", "look", "seen"),
        sa.ToolResult("c2", "look", "fog", is_error=True),
        sa.ToolResult("c3", "look", "?", is_interrupt=True),
    ]
    assert chats([sa.Message.tool(results)]) == [
        {"role": "tool", "content": "seen", "toolCallId": "c1"},
        {"role": "tool", "content": "Error: fog", "toolCallId": "c2"},
    ]


@pytest.mark.parametrize(
    ("session", "last", "status"),
    [
        ("idle", None, "registered"),
        ("running", None, "running"),
        ("running", "run.paused", "running"),
        ("interrupted", "run.resumed", "paused"),
        ("idle", "run.started", "running"),
        ("idle", "agent.completed", "completed"),
        ("paused", "agent.error", "error"),
        ("paused", "run.paused", "paused"),
        ("cancelled", "run.canceled", "canceled"),
        ("closed", "agent.completed", "completed"),
    ],
)
def test_a_thread_is_what_was_told_last_but_for_what_is_about_to_be(
    session: str, last: str | None, status: str
) -> None:
    assert status_of(session, last) == status


@pytest.mark.parametrize(
    ("data", "reason"),
    [([{}], "hitl"), ([{"subagents": ["t1"]}], "subagent"), ([{"subagents": ["t1"]}, {}], "hitl")],
)
def test_a_run_waits_for_people_or_only_for_other_threads(
    data: list[dict[str, Any]], reason: str
) -> None:
    parts = tuple(sa.Interrupt("tool", data=each) for each in data)
    joined = parts[0] if len(parts) == 1 else sa.Interrupt("multiple", parts=parts)
    assert reason_of(joined) == reason
    assert reason_of(None) == "error"
