"""What can be read of a session while it runs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import sagents_nb as sa
from tests.session.gates import Gate
from tests.talking import PATIENCE, call, session_of


class Halting(sa.ChatModel):
    """Says one piece after the other, and waits after the last one."""

    name = "halting"

    def __init__(self) -> None:
        self.said = threading.Event()
        self.go_on = threading.Event()

    async def stream(self, request: Any) -> Any:
        yield sa.messages.ThinkingDelta("hm")
        for piece in ("one ", "two"):
            yield piece
        yield sa.messages.ToolCallDelta(0, "{", "c1", "look")
        self.said.set()
        await asyncio.to_thread(self.go_on.wait, PATIENCE)
        yield sa.Message.assistant("one two three")


@pytest.mark.spec("A2.1.8")
def test_the_answer_so_far_can_be_read_while_it_is_streamed() -> None:
    model = Halting()
    session = sa.Session(sa.Agent(model, replace_default_middleware=True))
    seen: list[Any] = []
    session.subscribe(lambda event: seen.append((event.type, session.stream_message)))
    assert session.stream_message is None
    run = session.send("go")
    assert model.said.wait(PATIENCE)
    message = session.stream_message
    assert message is not None
    assert (message.role, message.text) == ("assistant", "one two")
    assert [type(part) for part in message.parts] == [sa.ThinkingPart, sa.TextPart]
    assert message.tool_calls == []
    assert session.status == "running"
    assert [m.role for m in session.messages] == ["user"]
    model.go_on.set()
    run.result()
    assert (session.stream_message, session.status) == (None, "idle")
    partials = [(kind, m.text if m else None) for kind, m in seen]
    assert ("message_update", "one ") in partials
    assert partials.index(("message_start", "")) < partials.index(("message_update", "one "))
    assert [m for kind, m in seen if kind == "message_end"] == [None, None]


@pytest.mark.spec("A2.1.8")
def test_a_call_is_pending_from_its_start_to_its_end() -> None:
    gate = Gate()
    turn = [call("hold", "a"), call("look", "b")]

    def look() -> str:
        return ""

    session = session_of(turn, "done", tools=[gate.tool, look], max_parallel_tools=1)
    pending: list[Any] = []
    session.subscribe(lambda event: pending.append((event.type, session.pending_tool_calls)))
    run = session.send("go")
    gate.wait()
    assert session.pending_tool_calls == ["a"]
    gate.open()
    run.result()
    told = [item for item in pending if item[0].startswith("tool_execution")]
    assert [ids for _, ids in told] == [["a"], [], ["b"], []]
    assert session.pending_tool_calls == []


@pytest.mark.spec("A2.1.8")
def test_a_session_that_was_reset_has_nothing_at_work() -> None:
    gate = Gate()
    session = session_of(call("hold"), tools=[gate.tool])
    session.send("go")
    gate.wait()
    session.reset()
    assert (session.pending_tool_calls, session.stream_message) == ([], None)
    gate.open()


@pytest.mark.spec("A2.1.8")
def test_the_error_of_a_run_is_there_until_the_next_one() -> None:
    session = session_of(ConnectionError("cable"), "fine")
    errors: list[Any] = []
    session.subscribe(lambda event: errors.append((event.type, session.error)))
    assert session.error is None
    with pytest.raises(sa.ModelError):
        session.send("go").result()
    assert "cable" in str(session.error)
    cut = len(errors)
    session.send("again").result()
    assert session.error is None
    assert {error for _, error in errors[cut:]} == {None}


@pytest.mark.spec("A2.1.8")
def test_a_list_of_messages_that_was_given_is_copied() -> None:
    session = session_of("fine")
    mine = [sa.Message.user("a"), sa.Message.assistant("b")]
    session.replace(state=sa.State(messages=mine))
    mine.clear()
    session.messages.clear()
    assert [m.text for m in session.messages] == ["a", "b"]
