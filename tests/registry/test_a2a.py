"""The JSON of A2A, as its own SDK reads and writes it."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.registry import a2a
from sagents_nb.tasks import STATES, Artifact, TaskRecord
from tests.talking import PATIENCE, agent_of, call

# What protocol buffers can hold: whole characters.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
RAW = st.binary(min_size=1, max_size=20).map(lambda raw: base64.b64encode(raw).decode())
PARTS = st.one_of(
    st.builds(sa.TextPart, NAMES),
    st.builds(sa.JsonPart, DATA),
    st.builds(sa.FilePart, RAW, st.just("application/pdf"), NAMES),
    st.builds(lambda url: sa.FilePart(None, "text/csv", "a.csv", url), NAMES),
    st.builds(sa.ImagePart, RAW, st.just("image/png")),
)
SOME_PARTS = st.lists(PARTS, min_size=1, max_size=4).map(tuple)
ARTIFACTS = st.builds(
    Artifact,
    name=TEXTS,
    description=TEXTS,
    parts=SOME_PARTS,
    metadata=st.dictionaries(NAMES, DATA, max_size=2),
)
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def through_sdk(data: dict[str, Any], kind: Any) -> dict[str, Any]:
    """As the SDK writes what it has read."""
    written: dict[str, Any] = MessageToDict(ParseDict(data, kind()))
    return written


@st.composite
def records(draw: st.DrawFn) -> TaskRecord:
    state = draw(st.sampled_from(STATES))
    time = draw(TIMES)
    done = state == "completed"
    return TaskRecord(
        id=draw(NAMES),
        agent=draw(TEXTS),
        caller=draw(TEXTS),
        context=draw(TEXTS),
        chain=tuple(draw(st.lists(NAMES, max_size=3))),
        state=state,
        input=draw(SOME_PARTS),
        output=draw(SOME_PARTS) if done else (),
        message="" if done else draw(TEXTS),
        updated_at=time,
        completed_at=time if done else None,
    )


@given(records(), st.lists(ARTIFACTS, max_size=3))
def test_a_task_comes_back_equal(record: TaskRecord, made: list[Artifact]) -> None:
    from msgspec.structs import replace

    numbered = [replace(each, task_id=record.id, index=n) for n, each in enumerate(made)]
    data = a2a.task_to_a2a(record, numbered)
    assert through_sdk(data, a2a_pb2.Task) == data
    again, artifacts = a2a.task_from_a2a(through_sdk(data, a2a_pb2.Task))
    assert again == record
    assert artifacts == numbered


@given(st.lists(NAMES, max_size=3, unique=True), st.lists(NAMES, max_size=3, unique=True), TEXTS)
def test_a_card_comes_back_equal(capabilities: list[str], tools: list[str], said: str) -> None:
    card = sa.AgentCard(
        name="weather", description=said, capabilities=tuple(capabilities), tools=tuple(tools)
    )
    data = card.to_a2a("https://example.org/a2a")
    assert through_sdk(data, a2a_pb2.AgentCard) == data
    assert sa.AgentCard.from_a2a(through_sdk(data, a2a_pb2.AgentCard)) == card


def test_a_task_that_was_done_is_read_by_the_sdk(agents: sa.AgentRegistry) -> None:
    async def report(ctx: sa.TaskContext) -> str:
        await ctx.emit_artifact("tides", {"high": [6, 18]}, "When it is high.")
        return f"The tides of {await ctx.request_input('Which port?')}"

    agents.add(report)
    task = agents.delegate("Report.", to="report").wait(PATIENCE)
    asks = ParseDict(task.to_a2a(), a2a_pb2.Task())
    assert asks.status.state == a2a_pb2.TASK_STATE_INPUT_REQUIRED
    assert asks.status.message.parts[0].text == "Which port?"
    done = ParseDict(task.respond("Bergen").wait(PATIENCE).to_a2a(), a2a_pb2.Task())
    assert done.status.state == a2a_pb2.TASK_STATE_COMPLETED
    assert done.status.message.role == a2a_pb2.ROLE_AGENT
    assert done.status.message.parts[0].text == "The tides of Bergen"
    assert done.history[0].parts[0].text == "Report."
    assert done.artifacts[0].parts[0].data.struct_value["high"][1] == 18
    assert done.status.timestamp.ToDatetime(tzinfo=UTC) == task.record.updated_at


def test_every_state_has_its_name_there() -> None:
    known = set(a2a_pb2.TaskState.keys())
    for state in STATES:
        record = TaskRecord(id="task-1", agent="a", state=state)
        assert a2a.task_to_a2a(record)["status"]["state"] in known


def test_numbers_that_json_cannot_hold_are_said_another_way() -> None:
    part = sa.JsonPart({"large": 2**60, "none": float("nan"), "some": 1.5})
    assert a2a.part_to_a2a(part) == {"data": {"large": str(2**60), "none": None, "some": 1.5}}


def test_a_card_of_an_agent_names_its_tools(agents: sa.AgentRegistry) -> None:
    def tides(port: str) -> str:
        "When the tide is high."
        return port

    agents.add(agent_of(call("tides"), name="harbour", tools=[tides]), ["sea"], avatar="⚓")
    data = agents.card("harbour").to_a2a("https://example.org/a2a")
    read = ParseDict(data, a2a_pb2.AgentCard())
    assert [skill.name for skill in read.skills] == ["harbour", "tides"]
    assert list(read.skills[0].tags) == ["agent", "sea"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "'' is no state of a task"),
        ({"id": "t", "status": {"state": "TASK_STATE_ASLEEP"}}, "is no state of a task"),
        ({"status": {"state": "TASK_STATE_WORKING"}}, "'id' is a text"),
        ({"id": "t", "status": []}, "'status' is an object"),
        ({"id": 7, "status": {"state": "TASK_STATE_WORKING"}}, "'id' is a text"),
        (
            {"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": [1]},
            "'artifacts' is a list of objects",
        ),
        (
            {"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": [{"parts": [{}]}]},
            "A part has 'text', 'data', 'raw' or 'url'",
        ),
    ],
)
def test_what_is_no_task_is_refused_in_a_sentence(data: dict[str, Any], said: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=said):
        a2a.task_from_a2a(data)


def test_what_is_no_card_is_refused_in_a_sentence() -> None:
    for data in ({}, {"name": 7}, {"name": "a", "skills": [{}]}, {"name": " "}):
        with pytest.raises(sa.ConfigurationError):
            sa.AgentCard.from_a2a(data)
