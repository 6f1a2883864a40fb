"""AG-UI: what its clients say and hear of a thread, as a map, and over a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from ag_ui._generated.models import Event as AnyAguiEvent
from pydantic import TypeAdapter

import sagents_nb as sa
from sagents_nb.errors import ConfigurationError, InvalidDecision, StaleApproval
from sagents_nb.events import (
    AgentEnd,
    Event,
    FileMoved,
    FileUpdated,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    MessageWithdrawn,
    StatusChanged,
    TodosUpdated,
    TokenUsage,
    ToolExecutionEnd,
)
from sagents_nb.events import Interrupt as Asked
from sagents_nb.hub import Blueprint
from sagents_nb.hub.dialects.agui import (
    History,
    Map,
    ResumeEntry,
    RunAgentInput,
    Told,
    answers_to,
    frames,
    interrupts_of,
    new_messages,
)
from sagents_nb.hub.web import agui_routes
from sagents_nb.hub.web.agui_routes import AgentRun
from sagents_nb.interrupts import ActionRequest, Approve, Edit, Reject, Respond
from sagents_nb.interrupts import Interrupt as Waiting
from sagents_nb.messages import ToolCallDelta, Usage
from sagents_nb.state import Todo
from tests.hub.web.served import Served, serving
from tests.hub.world import World, rest
from tests.talking import PATIENCE, call, of, run, session_of, until

VALID: TypeAdapter[Any] = TypeAdapter(AnyAguiEvent)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A hub with an agency, and a clerk."""
    made = World(f"sqlite:///{tmp_path}/hub.db")
    made.system.add_agent(Blueprint("guide", "Be brief."))
    yield made
    made.close()


def asking(*said: str, **more: Any) -> RunAgentInput:
    """What a client asks that says these, with ids "u0", "u1" and so on."""
    messages = [
        {"id": f"u{n}", "role": "user", "content": content} for n, content in enumerate(said)
    ]
    data = {"threadId": "tab", "runId": "run", "messages": messages, **more}
    return msgspec.convert(data, RunAgentInput)


def read(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream, each of which AG-UI's own models take."""
    told = [json.loads(part[6:]) for part in data.decode().split("\n\n") if part[:6] == "data: "]
    for event in told:
        VALID.validate_python(event, strict=False)
    check_order(told)
    return told


PAIRS = {
    "TEXT_MESSAGE": ("START", "CONTENT", "END"),
    "REASONING": ("START", "", "END"),
    "REASONING_MESSAGE": ("START", "CONTENT", "END"),
    "TOOL_CALL": ("START", "ARGS", "END"),
}


def check_order(told: Iterable[dict[str, Any]]) -> None:
    """What is told is open, what begins is closed, and at the end of a run nothing is open."""
    is_open: set[tuple[str, str]] = set()
    for event in told:
        about, _, what = event["type"].rpartition("_")
        which = (about, event.get("toolCallId") or event.get("messageId", ""))
        if event["type"] == "RUN_FINISHED":
            assert is_open == set()
        elif about in PAIRS and what in PAIRS[about]:
            assert (which in is_open) == (what != "START"), event
            if what == "START":
                is_open.add(which)
            elif what == "END":
                is_open.remove(which)


def told_of(events: Iterable[Event], map: Map | None = None) -> list[dict[str, Any]]:
    """What a client is told of these."""
    map = map or a_map()
    told: list[Told] = [each for event in events for each in map.translate(event)]
    return read(frames(told))


def a_map(*messages: sa.Message, **more: Any) -> Map:
    """Of a run that begins after these messages."""
    return Map(asking("hi"), History("thread-", messages), **more)


def types(told: Iterable[dict[str, Any]]) -> list[str]:
    """Their types, in order."""
    return [event["type"] for event in told]


def answer(*deltas: Any, message: sa.Message | None = None) -> list[Event]:
    """The events of an answer in these pieces."""
    whole = message or sa.Message.assistant("".join(getattr(d, "text", "") for d in deltas))
    pieces = [MessageUpdate(delta=delta) for delta in deltas]
    return [MessageStart(message=sa.Message("assistant")), *pieces, MessageEnd(message=whole)]


def ended(status: str, **more: Any) -> list[Event]:
    """The end of a run, and the status after it."""
    after = "idle" if status == "completed" else status
    return [
        AgentEnd(messages=(), status=status, **more),
        StatusChanged(status=after, previous="running"),
    ]


def events_of(*turns: Any, **options: Any) -> list[Event]:
    """What a session tells of one run with these turns."""
    session, heard = session_of(*turns, **options), list[Event]()
    session.subscribe(heard.append)
    session.send("go").result()
    until(lambda: session.status != "running")
    session.close()
    return [event for event in heard if getattr(event, "status", "") != "closed"]


def waiting(*names: str, **more: Any) -> Waiting:
    """What waits, with a call of each of these tools."""
    requests = [
        ActionRequest(f"c{n}", name, {"n": n}, digest=f"d{n}", **more)
        for n, name in enumerate(names)
    ]
    return Waiting("hitl", tuple(requests), id="abc123")


def resume(id: str, payload: Any = None, status: str = "resolved") -> ResumeEntry:
    """The answer to one."""
    return ResumeEntry(interrupt_id=id, status=status, payload=payload)  # type: ignore[arg-type]


# What is told of a run.


def test_an_answer_is_told_in_the_pieces_that_it_comes_in() -> None:
    told = told_of(answer(sa.TextDelta("Hel"), sa.TextDelta(""), sa.TextDelta("lo")))
    assert types(told) == [
        "TEXT_MESSAGE_START",
        *["TEXT_MESSAGE_CONTENT"] * 2,
        "TEXT_MESSAGE_END",
    ]
    assert [event.get("delta") for event in told[1:3]] == ["Hel", "lo"]
    assert {event["messageId"] for event in told} == {"thread-0"}


def test_half_a_character_ends_no_stream() -> None:
    whole = sa.Message.assistant("Oh \ud83d", tool_calls=[call("look", at="\ud83d")])
    told = told_of(answer(sa.TextDelta("Oh "), sa.TextDelta("\ud83d"), message=whole))
    assert types(told)[-2:] == ["TEXT_MESSAGE_END", "TOOL_CALL_END"]
    read(frames(a_map(whole).begin()))


def test_a_run_ends_once_the_thread_can_be_asked_again_and_not_with_its_agent() -> None:
    end, status = ended("completed")
    map = a_map()
    assert told_of([end], map) == []
    assert not map.done
    (finished,) = told_of([status], map)
    assert finished["outcome"] == {"type": "success"}
    assert map.done
    assert told_of(ended("error"), map) == []  # of the next one nothing is told here


def test_a_run_that_ends_as_something_is_said_is_not_the_one_that_hears_it() -> None:
    map, message = a_map(), sa.Message.user("And?", agui_id="u7")
    map.begin([message])
    assert told_of(ended("completed"), map) == []
    (finished,) = told_of([MessageEnd(message=message), *ended("completed")], map)
    assert finished["outcome"] == {"type": "success"}
    taken_back = a_map()
    taken_back.begin([message])
    assert told_of([MessageWithdrawn(message=message), *ended("completed")], taken_back)


def test_what_it_thinks_is_reasoning_that_ends_before_it_speaks() -> None:
    whole = sa.Message("assistant", (sa.ThinkingPart("Hm …"), sa.TextPart("Yes.")))
    pieces = sa.ThinkingDelta("Hm"), sa.ThinkingDelta(" …"), sa.TextDelta("Yes.")
    told = told_of(answer(*pieces, message=whole))
    assert types(told) == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        *["REASONING_MESSAGE_CONTENT"] * 2,
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
    ]


def test_calls_are_told_with_their_arguments_and_results() -> None:
    def look(at: str) -> str:
        "Look."
        return f"seen {at}"

    told = told_of(events_of(call("look", at="Oslo"), "It is there.", tools=[look]))
    of_call = [event for event in told if event["type"].startswith("TOOL_CALL")]
    assert types(of_call) == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ]
    assert json.loads(of_call[1]["delta"]) == {"at": "Oslo"}
    assert of_call[3]["content"] == "seen Oslo"
    assert {event["toolCallId"] for event in of_call} == {"c1"}
    assert told[-1]["outcome"] == {"type": "success"}


def test_a_call_whose_id_was_there_before_is_known_by_another() -> None:
    before = [
        sa.Message.user("go"),
        sa.Message.assistant("", tool_calls=[call("look")]),
        sa.Message("tool", (sa.ToolResult("c1", "look", "seen"),)),
    ]
    deltas = [ToolCallDelta(0, id="c1", name="look"), ToolCallDelta(0, "{}")]
    again = sa.Message.assistant("", tool_calls=[call("look")])
    result = sa.ToolResult("c1", "look", "seen again")
    end = ToolExecutionEnd(tool_call_id="c1", tool_name="look", result=result, status="completed")
    told = told_of([*answer(*deltas, message=again), end], a_map(*before))
    ids = {event["toolCallId"] for event in told}
    assert len(ids) == 1
    assert ids != {"c1"}
    history = History("thread-", [*before, again, sa.Message("tool", (result,))])
    known = [each["id"] for message in history.messages for each in message.get("toolCalls", ())]
    assert known == ["c1", *ids]
    assert [m["toolCallId"] for m in history.messages if m["role"] == "tool"] == known


def test_an_answer_that_came_in_no_pieces_is_told_whole() -> None:
    parts = (sa.ThinkingPart("Hm"), sa.TextPart("I look."), call("look", at="Oslo"))
    told = told_of(answer(message=sa.Message("assistant", parts)))
    deltas = [event["delta"] for event in told if "delta" in event]
    assert deltas == ["Hm", "I look.", '{"at":"Oslo"}']
    assert types(told)[-2:] == ["TEXT_MESSAGE_END", "TOOL_CALL_END"]


def test_an_answer_that_begins_anew_is_another_message() -> None:
    first = answer(sa.TextDelta("Half an an"))[:-1]
    told = told_of([*first, *answer(sa.TextDelta("All of it."))])
    begun = [event["messageId"] for event in told if event["type"] == "TEXT_MESSAGE_START"]
    assert len(set(begun)) == 2
    assert types(told).count("TEXT_MESSAGE_END") == 2


def test_the_state_is_told_when_it_has_changed_and_once_for_a_call() -> None:
    end = ToolExecutionEnd(
        tool_call_id="c1",
        tool_name="write",
        result=sa.ToolResult("c1", "write", "done"),
        status="completed",
    )
    todos = TodosUpdated(todos=(Todo("Look"),))
    files = [FileUpdated(path="/b"), FileUpdated(path="/a"), FileMoved(old_path="/b", path="/c")]
    map = a_map()
    (_, state) = told_of([todos, *files, end], map)
    assert state["snapshot"] == {
        "todos": [{"content": "Look", "status": "pending"}],
        "files": ["/a", "/c"],
    }
    assert types(told_of([todos, FileUpdated(path="/a"), end], map)) == ["TOOL_CALL_RESULT"]


def test_what_there_is_already_is_told_at_the_beginning_of_a_thread_that_goes_on() -> None:
    map = a_map(sa.Message.user("hi"), sa.Message.assistant("Hello"), files=["/a"])
    told = read(frames(map.begin([sa.Message.user("And?", agui_id="u7")])))
    assert types(told) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]
    assert told[0]["protocolVersion"] == "1.0"
    assert [m["content"] for m in told[1]["messages"]] == ["hi", "Hello", "And?"]
    assert told[1]["messages"][-1]["id"] == "u7"
    assert types(read(frames(a_map().begin()))) == ["RUN_STARTED"]


def test_each_call_that_waits_is_an_interrupt_with_the_answers_that_it_takes() -> None:
    def pay(amount: int) -> str:
        "Pay."
        return "paid"

    calls = sa.Message.assistant(
        "", tool_calls=[call("pay", "c1", amount=1), call("pay", "c2", amount=2)]
    )
    heard = events_of(calls, tools=[pay], interrupt_on={"pay": ["approve", "reject"]})
    asked = of(Asked, heard)[-1].interrupt
    outcome = told_of(heard)[-1]["outcome"]
    assert outcome["type"] == "interrupt"
    one, two = outcome["interrupts"]
    assert [one["toolCallId"], two["toolCallId"]] == ["c1", "c2"]
    assert asked.id in one["id"]
    assert asked.action_requests[0].digest in one["id"]
    assert one["metadata"]["sagents_nb"]["arguments"] == {"amount": 1}
    assert set(one["responseSchema"]["properties"]) == {"approved", "reason"}


def test_a_question_takes_an_answer() -> None:
    question = {"question": "Which city?", "response_type": "freeform"}
    heard = events_of(call("ask_user", **question), middleware=[sa.AskUser()])
    (asked,) = told_of(heard)[-1]["outcome"]["interrupts"]
    assert (asked["reason"], asked["message"]) == ("input_required", "Which city?")
    assert asked["responseSchema"]["required"] == ["answer"]


def test_a_wait_for_other_threads_is_no_end() -> None:
    link = {"subagents": {"childThreadId": "x"}}
    both = waiting("task", "pay")
    parts = (
        Waiting("tool", both.action_requests[:1], data=link),
        Waiting("hitl", both.action_requests[1:]),
    )
    alone = Waiting("tool", both.action_requests[:1], data=link, id="abc123")
    map = a_map()
    pause = StatusChanged(status="interrupted", previous="running")
    assert told_of([Asked(interrupt=alone), pause], map) == []
    assert not map.done
    mixed = msgspec.structs.replace(both, parts=parts)
    told = told_of([Asked(interrupt=mixed), pause], map)
    assert [each["toolCallId"] for each in told[-1]["outcome"]["interrupts"]] == ["c1"]


def test_a_halt_is_an_interrupt_of_no_call() -> None:
    (asked,) = interrupts_of(Waiting("halt", message="Closed today.", id="abc123"))
    assert (asked.reason, asked.message) == ("sagents_nb:halt", "Closed today.")
    assert answers_to(Waiting("halt", id="abc123"), [resume(asked.id)]).decisions == {}


@pytest.mark.parametrize("status", ["cancelled", "paused"])
def test_a_run_that_was_stopped_is_cancelled(status: str) -> None:
    told = told_of([*answer(sa.TextDelta("Half"))[:-1], *ended(status)])
    assert types(told)[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert told[-1]["outcome"] == {"type": "cancelled"}


def test_a_run_that_failed_says_why() -> None:
    (told,) = told_of(ended("error", error="The model is away."))
    assert told == {"type": "RUN_ERROR", "message": "The model is away."}
    (told,) = told_of([StatusChanged(status="closed", previous="running")])
    assert told["type"] == "RUN_ERROR"


def test_what_a_run_took_is_told_by_model() -> None:
    used = Usage(10, 5, 3, 2)
    told = told_of([TokenUsage(usage=used, model="m"), TokenUsage(usage=used, model="m")])
    assert told == []
    (finished,) = told_of(
        [
            TokenUsage(usage=used, model="m"),
            TokenUsage(usage=used, model="m"),
            TokenUsage(usage=Usage(), model="n"),
            *ended("completed"),
        ]
    )
    assert finished["usage"] == [
        {
            "model": "m",
            "inputTokens": 30,
            "outputTokens": 10,
            "totalTokens": 40,
            "cachedInputTokens": 6,
            "cacheWriteInputTokens": 4,
        }
    ]


def test_a_conversation_has_the_ids_that_its_stream_had() -> None:
    thinks = sa.Message("assistant", (sa.ThinkingPart("Hm"), sa.TextPart("Yes.")))
    told = told_of(answer(message=thinks), a_map(sa.Message.user("hi")))
    history = History("thread-", [sa.Message.user("hi", agui_id="u0"), thinks])
    assert [message["id"] for message in history.messages] == [
        "u0",
        *dict.fromkeys(event["messageId"] for event in told),
    ]


def test_a_conversation_says_of_pictures_failures_and_questions_what_they_are() -> None:
    failed = sa.ToolResult("c1", "look", "It is dark.", is_error=True)
    asked = sa.ToolResult("c2", "pay", "?", is_interrupt=True)
    history = History(
        "thread-",
        [
            sa.Message.system("What the application says:\nx", agui_context=True),
            sa.Message.user(["Look:", sa.ImagePart("AAAA"), sa.FilePart(url="https://x.no/a")]),
            sa.Message.assistant("", tool_calls=[call("look"), call("pay", "c2")]),
            sa.Message("tool", (failed, asked)),
        ],
    )
    user, _, result = history.messages
    assert [part["type"] for part in user["content"]] == ["text", "image", "document"]
    assert user["content"][1]["source"]["mimeType"] == "image/png"
    assert result["error"] == result["content"] == "It is dark."
    read(frames(Map(asking("hi"), history).begin()))


def any_events(random: Random) -> Iterator[Event]:
    """What a thread might tell of a run, whole messages or not, in any pieces."""
    for _ in range(random.randrange(1, 6)):
        calls = [call("look", f"c{random.randrange(4)}") for _ in range(random.randrange(3))]
        calls = list({each.id: each for each in calls}.values())
        pieces: list[Any] = [sa.TextDelta("a"), sa.TextDelta(""), sa.ThinkingDelta("b")]
        for number, each in enumerate(calls):
            pieces += [
                ToolCallDelta(number, id=each.id, name=each.name),
                ToolCallDelta(number, "{"),
            ]
        heard = [piece for piece in pieces * 2 if random.random() < 0.5]
        parts = [sa.ThinkingPart("b"), sa.TextPart("a")][random.randrange(3) :]
        whole = sa.Message("assistant", (*parts, *calls))
        events = answer(*heard, message=whole)
        yield from events[random.random() < 0.2 : None if random.random() < 0.8 else -1]
        for each in calls:
            result = sa.ToolResult(each.id, each.name, "seen")
            status = random.choice(["completed", "failed", "interrupted"])
            yield ToolExecutionEnd(
                tool_call_id=each.id, tool_name=each.name, result=result, status=status
            )
        if random.random() < 0.5:
            yield MessageEnd(message=sa.Message.user("And?"))
    yield from ended(random.choice(["completed", "cancelled", "error"]))


@pytest.mark.parametrize("seed", range(100))
def test_whatever_a_thread_tells_is_valid_and_in_order(seed: int) -> None:
    random = Random(seed)
    map = a_map(*(sa.Message.assistant("", tool_calls=[call("look", "c1")]),) * (seed % 2))
    begin = map.begin() if seed % 3 else []
    told = read(
        frames([*begin, *(e for event in any_events(random) for e in map.translate(event))])
    )
    assert told[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")


# What a client says.


def said(asked: RunAgentInput, *known: sa.Message) -> list[str]:
    """The texts of what is new."""
    return [message.text for message in new_messages(asked, known, "thread-")]


def test_only_what_follows_the_last_message_that_is_known_is_said() -> None:
    asked = asking("One", "Two", "Three")
    assert said(asked) == ["One", "Two", "Three"]
    assert said(asked, sa.Message.user("Two", agui_id="u1")) == ["Three"]  # "One" is in a summary
    assert said(asked, sa.Message.user("Three", agui_id="u2")) == []


def test_what_the_thread_said_itself_is_known() -> None:
    messages = [
        {"id": "thread-0", "role": "user", "content": "said elsewhere"},
        {"id": "thread-1", "role": "assistant", "content": "Hello"},
        {"id": "greeting", "role": "assistant", "content": "How can I help?"},
        {"id": "new", "role": "user", "content": "So?"},
    ]
    assert said(asking(messages=messages)) == ["So?"]


def test_what_an_application_tells_is_said_when_it_has_changed() -> None:
    context = [{"description": "City", "value": "Oslo"}]
    first, second = new_messages(asking("One", context=context), [], "thread-")
    assert (first.role, first.text) == ("system", "What the application says:\nCity: Oslo")
    assert second.text == "One"
    assert said(asking("One", context=context), first) == ["One"]
    context[0]["value"] = "Bergen"
    assert len(said(asking("One", context=context), first)) == 2


def test_a_message_has_text_pictures_and_documents() -> None:
    source = {"type": "data", "value": "AAAA", "mimeType": "image/png"}
    link = {"type": "url", "value": "https://x.no/a"}
    content = [
        {"type": "text", "text": "Look:"},
        {"type": "image", "source": source},
        {"type": "image", "source": link},
        {"type": "document", "source": {**source, "mimeType": "application/pdf"}},
        {"type": "document", "source": link},
    ]
    (message,) = new_messages(
        asking(messages=[{"id": "u", "role": "user", "content": content}]), [], "thread-"
    )
    assert message.parts == (
        sa.TextPart("Look:"),
        sa.ImagePart("AAAA"),
        sa.ImagePart(url="https://x.no/a"),
        sa.FilePart("AAAA", "application/pdf"),
        sa.FilePart(url="https://x.no/a"),
    )


@pytest.mark.parametrize("content", [None, [{"type": "audio", "source": {}}], ["text"], 7])
def test_what_no_agent_hears_is_refused(content: Any) -> None:
    asked = asking(messages=[{"id": "u", "role": "user", "content": content}])
    with pytest.raises(ConfigurationError):
        new_messages(asked, [], "thread-")


def test_tools_of_a_client_are_refused() -> None:
    tool = {"name": "alert", "description": "Show it."}
    with pytest.raises(ConfigurationError, match="leave out tools"):
        asking("hi", tools=[tool]).check()
    asking("hi", tools=[]).check()


GATED = [
    ({"approved": True}, Approve()),
    ({"approved": True, "editedArgs": {"n": 0}}, Approve()),
    ({"approved": True, "editedArgs": {"n": 7}}, Edit({"n": 7})),
    ({"approved": False, "reason": "No."}, Reject("No.")),
    ({"approved": False}, Reject("Rejected.")),
]


@pytest.mark.parametrize(("payload", "decision"), GATED)
def test_an_answer_is_a_decision_on_what_was_shown(payload: Any, decision: Any) -> None:
    answers = answers_to(waiting("pay"), [resume("abc123.d0", payload)])
    assert answers.decisions == {"c0": decision}
    assert (answers.id, answers.digests) == ("abc123", {"c0": "d0"})


def test_what_is_abandoned_is_rejected_and_a_question_is_answered() -> None:
    asked = waiting("pay")
    answers = answers_to(asked, [resume("abc123.d0", status="cancelled")])
    assert answers.decisions == {"c0": Reject("Cancelled.")}
    question = waiting("ask_user", allowed_decisions=("respond", "reject"))
    answers = answers_to(question, [resume("abc123.d0", {"answer": "Oslo"})])
    assert answers.decisions == {"c0": Respond("Oslo")}


WRONG: list[Sequence[ResumeEntry]] = [
    [resume("unknown", {"approved": True})],
    [resume("abc123.d0", {"approved": True})],  # the other one waits, too
    [resume("abc123.d0", {"approved": True})] * 2,
    [resume("abc123.d0", {"answer": 7}), resume("abc123.d1", {"approved": True})],
    [
        resume("abc123.d0", {"approved": True, "editedArgs": 7}),
        resume("abc123.d1", {"approved": True}),
    ],
    [resume("abc123.d0"), resume("abc123.d1", {"approved": True})],
]


@pytest.mark.parametrize("entries", WRONG)
def test_an_answer_that_does_not_fit_is_refused(entries: Sequence[ResumeEntry]) -> None:
    with pytest.raises(InvalidDecision):
        answers_to(waiting("pay", "pay"), entries)


@pytest.mark.parametrize("id", ["abc124.d0", "abc123.d9"])
def test_an_answer_to_what_waits_no_more_is_stale(id: str) -> None:
    with pytest.raises(StaleApproval):
        answers_to(waiting("pay"), [resume(id, {"approved": True})])
    with pytest.raises(StaleApproval):
        answers_to(None, [resume(id, {"approved": True})])


# A run of a thread.


def collected(begun: AgentRun) -> list[dict[str, Any]]:
    """All that it tells."""

    async def collect() -> bytes:
        return b"".join([chunk async for chunk in begun.chunks()])

    try:
        return read(run(collect()))
    finally:
        begun.close()


def text_of(told: Iterable[dict[str, Any]]) -> str:
    """What the agent says in it."""
    return "".join(e["delta"] for e in told if e["type"] == "TEXT_MESSAGE_CONTENT")


def begun(world: World, asked: RunAgentInput) -> AgentRun:
    """A run of the thread "tab"."""
    made = AgentRun(world.hub.named_thread(world.agency, "clerk", asked.thread_id), asked)
    made.begin()
    return made


def test_a_thread_of_a_name_is_the_same_after_another_start(world: World) -> None:
    world.says("Hello.")
    collected(begun(world, asking("hi")))
    thread = world.hub.named_thread(world.agency, "clerk", "tab")
    again = world.reopened(thread, "Still here.")
    assert again is world.hub.named_thread(world.agency, "clerk", "tab")
    told = collected(begun(world, asking("hi", "And?")))
    assert [message["content"] for message in told[1]["messages"]] == ["hi", "Hello.", "And?"]
    assert text_of(told) == "Still here."


def test_two_names_and_two_agencies_are_other_threads_and_no_id_is_told_by_a_name(
    world: World, tmp_path: Path
) -> None:
    other, _ = world.hub.create_agency("Other")
    ids = {
        world.hub.named_thread(agency, "clerk", name).record.id
        for agency in (world.agency, other)
        for name in ("tab", "tab 2")
    }
    assert len(ids) == 4
    elsewhere = World(f"sqlite:///{tmp_path}/other.db")
    try:
        same = msgspec.structs.replace(elsewhere.agency, id=world.agency.id)
        kept = elsewhere.hub.store.database.tables.hub_agencies
        renamed = kept.update().values(id=same.id)
        elsewhere.hub.store.database.run(lambda connection: connection.execute(renamed))
        assert elsewhere.hub.named_thread(same, "clerk", "tab").record.id not in ids
    finally:
        elsewhere.close()


def test_a_run_that_says_nothing_new_has_the_agent_go_on(world: World) -> None:
    world.says("Hello.", "As I said.")
    collected(begun(world, asking("hi")))
    assert text_of(collected(begun(world, asking("hi")))) == "As I said."


class Halting(sa.ScriptedModel):
    """Says half of it, and the rest once the world goes on."""

    def __init__(self, world: World) -> None:
        super().__init__([])
        self.world = world

    async def stream(self, request: Any) -> Any:
        yield sa.TextDelta("Half of it, ")
        self.world.holds.set()
        while not self.world.go_on.is_set():
            await asyncio.sleep(0.005)
        yield sa.TextDelta("and the rest.")
        yield sa.Message.assistant("Half of it, and the rest.")


def test_a_run_goes_on_without_its_reader_and_another_one_hears_all_of_it(world: World) -> None:
    world.system.default_model = Halting(world)
    first = begun(world, asking("hi"))
    assert world.holds.wait(PATIENCE)
    first.close()
    second = begun(world, asking("hi"))
    world.go_on.set()
    told = collected(second)
    pieces = [event["delta"] for event in told if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert pieces == ["Half of it, ", "and the rest."]
    thread = world.hub.named_thread(world.agency, "clerk", "tab")
    assert rest(thread) == "completed"
    assert len(thread.session.messages) == 2
    assert thread.session.viewers == []


def test_who_joins_between_an_answer_and_its_end_hears_it_once() -> None:
    hi, hello = sa.Message.user("hi"), sa.Message.assistant("Hello")
    map = a_map(hi, hello)
    assert map.join(sa.Message.assistant("Hello")) == []
    assert told_of([MessageEnd(message=hello)], map) == []
    assert told_of(answer(sa.TextDelta("And")), map)[0]["messageId"] == "thread-2"


def test_a_reader_who_waits_is_woken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agui_routes, "HEARTBEAT", 10_000.0)
    world.system.default_model = Halting(world)
    reader = begun(world, asking("hi"))

    async def read_on() -> bytes:
        got = b""
        async for chunk in reader.chunks():
            got += chunk
            if b"Half of it" in got:
                world.go_on.set()
        return got

    assert text_of(read(run(read_on()))) == "Half of it, and the rest."
    reader.close()


def test_a_stream_says_that_it_is_alive(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agui_routes, "HEARTBEAT", 0.01)
    world.system.default_model = Halting(world)
    reader = begun(world, asking("hi"))

    async def read_on() -> list[bytes]:
        got = []
        async for chunk in reader.chunks():
            got.append(chunk)
            if chunk.startswith(b":"):
                world.go_on.set()
        return got

    assert b": alive\n\n" in run(read_on())
    reader.close()


def test_who_reads_too_slowly_is_told_so_and_the_run_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agui_routes, "MOST_BYTES", 500)
    world.says("word " * 3_000)
    world.model.chunk = 5
    slow = begun(world, asking("hi"))
    thread = world.hub.named_thread(world.agency, "clerk", "tab")
    assert rest(thread) == "completed"
    (told,) = collected(slow)
    assert told["type"] == "RUN_ERROR"
    assert "run again" in told["message"]


def test_what_is_ready_is_one_chunk(world: World) -> None:
    world.says("word " * 1_000)
    world.model.chunk = 5
    ready = begun(world, asking("hi"))
    rest(world.hub.named_thread(world.agency, "clerk", "tab"))

    async def chunks() -> list[bytes]:
        return [chunk async for chunk in ready.chunks()]

    (chunk,) = run(chunks())
    ready.close()
    assert text_of(read(chunk)) == "word " * 1_000


# Over a server.


@pytest.fixture
def at(world: World) -> Iterator[Served]:
    """That hub on a server."""
    with serving(world.hub) as here:
        yield here


def post(at: Served, world: World, type: str = "clerk", **body: Any) -> Any:
    """What is answered."""
    asked = {**asking_json(), **body}
    return at.client.post(f"/agency/{world.agency.id}/agui/{type}", json=asked)


def asking_json(*messages: Any) -> dict[str, Any]:
    """What a client asks, as it is sent."""
    return {"threadId": "tab", "runId": "run", "messages": messages}


USER = {"id": "u0", "role": "user", "content": "hi"}


def test_a_run_is_an_event_stream(world: World, at: Served) -> None:
    world.says("Hello.")
    answered = post(at, world, messages=[USER])
    assert answered.headers["content-type"].startswith("text/event-stream")
    assert types(read(answered.content))[-1] == "RUN_FINISHED"


def test_a_client_that_goes_away_leaves_a_run_that_goes_on(world: World, at: Served) -> None:
    world.system.default_model = Halting(world)
    path, asked = f"/agency/{world.agency.id}/agui/clerk", asking_json(USER)
    with at.client.stream("POST", path, json=asked) as answered:
        assert b"RUN_STARTED" in next(answered.iter_raw())
    assert world.holds.wait(PATIENCE)
    thread = world.hub.named_thread(world.agency, "clerk", "tab")
    until(lambda: thread.session.viewers == [])
    world.go_on.set()
    assert rest(thread) == "completed"
    assert thread.answer == "Half of it, and the rest."


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"type": "nobody", "messages": [USER]}, 404, "no blueprint"),
    ({"messages": [USER], "tools": [{"name": "x", "description": "y"}]}, 400, "leave out tools"),
    ({"messages": [{**USER, "content": None}]}, 400, "content"),
    ({"messages": []}, 400, "send messages"),
    ({"messages": [USER], "threadId": ""}, 400, "threadId"),
    ({"messages": [], "resume": [{"interruptId": "x", "status": "resolved"}]}, 400, "interrupt"),
    ({"messages": "hi"}, 400, "does not fit"),
]


@pytest.mark.parametrize(("body", "status", "why"), REFUSED)
def test_what_is_refused_says_why_and_changes_nothing(
    world: World, at: Served, body: dict[str, Any], status: int, why: str
) -> None:
    answered = post(at, world, **body)
    assert answered.status_code == status
    assert why in answered.json()["error"]
    assert world.hub.threads(world.agency) == []


def test_a_thread_is_of_one_kind(world: World, at: Served) -> None:
    world.says("Hello.")
    post(at, world, messages=[USER])
    answered = post(at, world, "guide", messages=[USER])
    assert answered.status_code == 400
    assert "of the kind 'clerk'" in answered.json()["error"]


def test_a_thread_that_waits_takes_an_answer_before_anything_else(world: World, at: Served) -> None:
    world.says(call("pay", amount=5), "Paid.")
    waits = read(post(at, world, messages=[USER]).content)[-1]["outcome"]["interrupts"]
    more = {"id": "u1", "role": "user", "content": "And?"}
    refused = post(at, world, messages=[USER, more])
    assert refused.status_code == 409
    assert "waits for an answer" in refused.json()["error"]
    assert read(post(at, world, messages=[USER]).content)[-1]["outcome"]["interrupts"] == waits
    assert world.ran == []
    yes = {"interruptId": waits[0]["id"], "status": "resolved", "payload": {"approved": True}}
    told = read(post(at, world, messages=[USER, more], resume=[yes]).content)
    assert told[-1]["outcome"] == {"type": "success"}
    assert world.ran == ["pay 5"]
    thread = world.hub.named_thread(world.agency, "clerk", "tab")
    assert [m.text for m in thread.session.messages if m.role == "user"] == ["hi", "And?"]
