"""The kernel's half of ``widgets/PROTOCOL.md``, against the examples that vitest reads too."""

from __future__ import annotations

import copy
import itertools
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb import events as ev
from sagents_nb.interrupts import Interrupt
from sagents_nb.panel import protocol
from sagents_nb.panel.protocol import merged, new_view_state, plain, reduce, snapshot_of, wire
from sagents_nb.panel.publisher import Publisher
from sagents_nb.state import to_data
from tests.panel.pages import events_of, plan, reduced, session_of, write
from tests.talking import until

ROOT = Path(__file__).parents[2]
EXAMPLES = {p.stem: p for p in sorted((ROOT / "tests/fixtures/protocol").glob("*.json"))}
REDUCTIONS = sorted(EXAMPLES.keys() - {"messages"})


def example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EXAMPLES[name].read_text())
    return found


@pytest.mark.parametrize("name", REDUCTIONS)
def test_golden_example(name: str) -> None:
    given = example(name)
    state = given["before"]
    for event in given["events"]:
        reduce(state, event)
    assert state == given["after"]


def test_the_examples_cover_all_that_the_reducer_knows() -> None:
    assert REDUCTIONS
    shown = {event["type"] for name in REDUCTIONS for event in example(name)["events"]}
    assert set(protocol.REDUCERS) <= shown


def test_the_written_table_is_what_the_reducer_knows() -> None:
    table = (ROOT / "widgets/PROTOCOL.md").read_text().split("Reduction, by event type")[1]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == set(protocol.REDUCERS)


def test_the_view_state_has_the_keys_of_the_examples() -> None:
    for name in REDUCTIONS:
        assert set(example(name)["after"]) == set(new_view_state("s", "m"))


# Numbers

ODD_NUMBERS = {
    "a": 1.0,
    "b": [-0.0, 0, {"c/d~e": float("nan")}],
    "f": float("-inf"),
    "g": float("inf"),
    "h": 2**53 + 1,
    "i": -(2**70),
    "j": 1e16,
    "k": 0.1,
    "l": True,
    "m": 2**53 - 1,
    "n": "1.0",
}
WRITTEN = {
    "/a": "1.0",
    "/b/0": "-0.0",
    "/b/2/c~1d~0e": "NaN",
    "/f": "-Infinity",
    "/g": "Infinity",
    "/h": "9007199254740993",
    "/i": "-1180591620717411303424",
    "/j": "1e+16",
}


def test_a_page_is_told_how_the_numbers_are_written_that_it_would_show_otherwise() -> None:
    @sa.tool
    def take(a: Any = None) -> str:
        """Take it."""
        return "Taken."

    call = sa.ToolCall("c1", "take", {"a": ODD_NUMBERS})
    expected = {f"/a{place}": text for place, text in WRITTEN.items()}
    model = sa.ScriptedModel([call, "Done."])
    session = sa.Session(sa.Agent(model, tools=[take], interrupt_on={"take": True}))
    events = events_of(session)
    session.send("Go.").result()
    until(lambda: session.interrupt is not None)
    state = reduced(events, join=False)
    assert state["interrupt"]["action_requests"][0]["numbers"] == expected
    assert state["entries"][-1]["message"]["parts"][0]["numbers"] == expected
    loaded = sa.Session(session.agent, state=session.state)  # no event tells of its question
    waiting = Publisher(loaded).state["interrupt"]
    assert waiting["action_requests"][0]["numbers"] == expected


def test_arguments_that_somebody_edited_come_with_the_result_and_their_numbers() -> None:
    asked = sa.Agent(
        sa.ScriptedModel([sa.ToolCall("c1", "pay", {"amount": 5.0}), "done"]),
        tools=[pay],
        interrupt_on={"pay": True},
    )
    session = sa.Session(asked)
    session.send("go").result()
    session.resume(sa.Edit({"amount": 500.0})).result()
    entry = protocol.shortened_message(to_data(session.messages[2]))["parts"][0]
    assert entry["content"] == "500.0 paid"
    assert entry["metadata"]["edited_arguments"] == {"amount": 500.0}
    assert entry["numbers"] == {"/amount": "500.0", "/tip": "1.0"}


def test_what_a_file_tool_refuses_is_no_failure_to_people() -> None:
    again = sa.ToolCall("w2", "write_file", {"file_path": "/report.md", "content": "B"})
    session = session_of(write(), again, "There it is.")
    events = events_of(session)
    session.send("Go.").result()
    state = reduced(events, join=False)
    results = [part for e in state["entries"] for part in e["message"].get("parts", ())]
    told = [part for part in results if part["type"] == "tool_result"]
    assert [part.get("status") for part in told] == [None, "declined"]
    assert told[1]["is_error"] is True
    assert "exists already" in told[1]["content"]
    assert [tool["status"] for tool in state["tools"].values()] == ["completed", "declined"]
    assert session.messages[-2].tool_results[0].status == "failed"  # to the model it is an error


def test_defaults_come_with_the_question_and_the_result_and_their_numbers() -> None:
    call = sa.ToolCall("c1", "pay", {"amount": 5.5})
    model = sa.ScriptedModel([call, "done"])
    session = sa.Session(sa.Agent(model, tools=[pay], interrupt_on={"pay": True}))
    session.send("go").result()
    (asked,) = protocol.interrupt_data(to_data(session.interrupt))["action_requests"]
    assert asked["defaults"] == {"tip": 1.0}
    assert asked["numbers"] == {"/tip": "1.0"}
    session.resume(sa.Approve()).result()
    entry = protocol.shortened_message(to_data(session.messages[2]))["parts"][0]
    assert entry["metadata"] == {"defaults": {"tip": 1.0}}
    assert entry["numbers"] == {"/tip": "1.0"}


def pay(amount: float, tip: float = 1.0) -> str:
    """Pay."""
    return f"{amount} paid"


def test_nothing_is_said_of_numbers_that_a_page_shows_as_they_are() -> None:
    arguments = {"a": [0, -1, 0.5, 1e-7, 2**53 - 1, True, None, "1.0"]}
    call = {"tool_call_id": "c1", "arguments": arguments}
    assert protocol.exact_call(call) == call
    assert protocol.exact_call({"tool_call_id": "c1"}) == {"tool_call_id": "c1"}


def test_numbers_are_found_deeper_than_the_stack_is() -> None:
    deep: Any = 1.0
    for _ in range(5_000):
        deep = [deep]
    assert list(protocol.exact_call({"arguments": {"a": deep}})["numbers"].values()) == ["1.0"]


# Merging

DELTAS = st.one_of(
    st.builds(sa.TextDelta, st.text(max_size=5)),
    st.builds(sa.ThinkingDelta, st.text(max_size=5)),
    st.builds(
        sa.ToolCallDelta,
        st.integers(0, 2),
        st.text(max_size=5),
        st.sampled_from([None, "c1", "c2"]),
        st.sampled_from([None, "ls"]),
    ),
)


def stream(deltas: list[Any]) -> list[ev.Event]:
    """A message of these deltas, with an event between them now and then."""
    numbers = itertools.count(1)
    events: list[ev.Event] = [
        ev.MessageStart(seq=next(numbers), run_id="r", message=sa.Message.assistant())
    ]
    for delta in deltas:
        if delta is None:
            events.append(ev.TurnStart(seq=next(numbers), run_id="r"))
        else:
            events.append(ev.MessageUpdate(seq=next(numbers), ts=1.0, run_id="r", delta=delta))
    return events


def texts(events: list[ev.Event]) -> dict[tuple[str, int], str]:
    """All text, by kind and index."""
    found: dict[tuple[str, int], str] = {}
    for event in events:
        if isinstance(event, ev.MessageUpdate):
            key = (type(event.delta).__name__, getattr(event.delta, "index", -1))
            found[key] = found.get(key, "") + event.delta.text
    return found


@given(st.lists(DELTAS | st.none(), max_size=30), st.sets(st.integers(0, 30)))
def test_merging_any_split_of_the_deltas_gives_the_same_view(
    deltas: list[Any], cuts: set[int]
) -> None:
    events = stream(deltas)
    places = [0, *sorted(c for c in cuts if c < len(events)), len(events)]
    batches = [merged(events[a:b]) for a, b in itertools.pairwise(places)]
    split = [event for batch in batches for event in batch]
    alone = reduced(events, join=False)
    assert reduced(split, join=False) == alone
    assert reduced(events, join=True) == alone
    assert texts(split) == texts(events)
    if events:
        assert split[-1].seq == events[-1].seq


@given(st.lists(DELTAS, max_size=30))
def test_merging_twice_is_merging_once_and_leaves_no_neighbours_of_a_kind(
    deltas: list[Any],
) -> None:
    once = merged(stream(deltas))
    assert merged(once) == once
    kinds = [
        (type(e.delta), getattr(e.delta, "index", -1))
        for e in once
        if isinstance(e, ev.MessageUpdate)
    ]
    assert all(a != b for a, b in itertools.pairwise(kinds))


def test_five_thousand_deltas_become_one() -> None:
    events = merged(stream([sa.TextDelta("word ")] * 5000))
    assert len(events) == 2
    assert events[1].seq == 5001


def test_deltas_of_two_runs_are_not_joined() -> None:
    one = ev.MessageUpdate(seq=1, run_id="a", delta=sa.TextDelta("x"))
    two = ev.MessageUpdate(seq=2, run_id="b", delta=sa.TextDelta("y"))
    assert merged([one, two]) == [one, two]


# The wire


def test_the_wire_leaves_out_what_another_event_says_and_all_defaults() -> None:
    message = sa.Message.assistant("hi")
    made = [
        ev.AgentStart(seq=1, ts=2.0, session_id="s", run_id="r"),
        ev.TurnEnd(seq=2, ts=2.0, session_id="s", run_id="r", message=message),
        ev.AgentEnd(
            seq=3, ts=2.0, session_id="s", run_id="r", messages=(message,), status="completed"
        ),
        ev.StatusChanged(seq=4, ts=2.0, session_id="s", status="idle"),
    ]
    assert [wire(event) for event in made] == [
        {"type": "agent_start", "seq": 1, "ts": 2.0, "run_id": "r"},
        {"type": "turn_end", "seq": 2},
        {"type": "agent_end", "seq": 3, "ts": 2.0, "run_id": "r", "status": "completed"},
        {"type": "status_changed", "seq": 4, "status": "idle"},
    ]


def told_result(content: Any, **metadata: Any) -> dict[str, Any]:
    result = sa.ToolResult("c1", "ls", content, metadata=metadata)
    event = ev.MessageEnd(seq=1, message=sa.Message.tool([result]))
    found: dict[str, Any] = wire(event)["message"]["parts"][0]
    return found


def test_a_long_tool_result_keeps_its_beginning_and_says_how_long_it_was() -> None:
    long = "0123456789" * 5000
    told = told_result(long)
    assert told["content"] == long[:20_000]
    assert told["shortened"] == 50_000


def ended(partial: list[dict[str, Any]], *parts: Any) -> list[dict[str, Any]]:
    """The parts of a finished message on the wire, after those deltas."""
    event = ev.MessageEnd(seq=1, message=sa.Message("assistant", parts))
    found: list[dict[str, Any]] = wire(event, {"partial": {"parts": partial}})["message"]["parts"]
    return found


def test_what_deltas_have_said_is_named_and_not_said_again() -> None:
    text = {"type": "text", "text": "I look."}
    assert ended([text], sa.TextPart("I look.")) == [{"type": "text", "streamed": 0}]
    assert ended([text], sa.TextPart("I looked.")) == [{"type": "text", "text": "I looked."}]
    thought = {"type": "thinking", "text": "Hm."}
    told = ended([thought, text], sa.TextPart("I look."), sa.TextPart("I look."))
    assert told == [{"type": "text", "streamed": 1}, text]
    assert wire(ev.MessageEnd(seq=1, message=sa.Message.assistant("Hi")))["message"]["parts"]


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ('{"a": 1, "b": [1.50, "x"]}', True),
        ('{"b": [1.5, "x"], "a": 1}', False),
        ('{"a": 1.0, "b": [1.5, "x"]}', False),
        ('{"a": true, "b": [1.5, "x"]}', False),
        ('{"a": 1, "b": [1.5, "x"]', False),
        ("", False),
        ("[" * 100_000, False),
    ],
)
def test_arguments_are_named_where_the_deltas_came_to_the_same(said: str, same: bool) -> None:
    arguments = {"a": 1, "b": [1.5, "x"]}
    delta = {"type": "tool_call", "index": 0, "id": "c1", "name": "f", "text": said}
    told = ended([delta], sa.ToolCall("c1", "f", arguments))[0]
    assert ("streamed" in told, told.get("arguments")) == (same, None if same else arguments)


def test_what_changes_nothing_for_a_page_does_not_travel() -> None:
    session = session_of(["x", write()], "y")
    events = events_of(session)
    session.send("Go").result()
    quiet = [event for event in events if not protocol.travels(event)]
    waits = {"run_id": "", "when": "steer", "text": "Go on"}
    assert {"turn_start", "message_start", "token_usage"} <= {event.type for event in quiet}
    for event in quiet:
        state = new_view_state("s", "m") | {"queued": [waits]}
        reduce(state, plain(wire(event)))
        assert state == new_view_state("s", "m") | {"queued": [waits]}


def test_a_page_is_told_of_images_that_stand_in_the_cell_too() -> None:
    assert told_result("done", shown_in_cell=True)["metadata"] == {"shown_in_cell": True}


def test_of_what_a_result_is_marked_with_a_page_is_told_the_arguments_that_were_edited() -> None:
    told = told_result("done", edited_arguments={"a": 1}, rows=[1, 2, 3])
    assert told["metadata"] == {"edited_arguments": {"a": 1}}
    assert "metadata" not in told_result("done", rows=[1, 2, 3])


def test_a_page_is_told_what_became_of_a_task_of_another_agent() -> None:
    task = {"id": "task-1f", "state": "completed", "artifacts": ["rain.csv"]}
    assert told_result("done", task=task)["metadata"] == {"task": task}
    assert "metadata" not in told_result("done", task="somebody's key")


def test_a_page_is_told_the_todos_that_were_done_and_cleared_and_no_others() -> None:
    todos = [{"content": "Look", "status": "completed", "id": 1}]
    assert told_result("done", todos=todos, cleared=True)["metadata"] == {"todos": todos}
    assert "metadata" not in told_result("done", todos=todos)


def test_a_tool_result_of_exactly_the_limit_is_whole() -> None:
    assert "shortened" not in told_result("x" * 20_000)


IMAGE = {"media_type": "image/png", "data": "QUJD"}


def test_the_texts_of_a_results_parts_travel_as_one_and_its_images_beside_them() -> None:
    file = sa.FilePart(data="QUJD" * 50_000)
    told = told_result([sa.TextPart("a"), sa.ImagePart("QUJD"), file, sa.TextPart("b")])
    assert told["content"] == "a\n[file]\nb"
    assert told["images"] == [IMAGE]
    jpeg = told_result([sa.ImagePart("QUJD", "image/jpeg")])
    assert jpeg["content"] == ""
    assert jpeg["images"] == [{"media_type": "image/jpeg", "data": "QUJD"}]
    assert "images" not in told_result("text")
    assert told_result([sa.ImagePart(url="https://example.org/a.png")])["content"] == "[image]"


def test_of_many_or_large_images_the_rest_is_named() -> None:
    told = told_result([sa.ImagePart("QUJD")] * 6)
    assert told["images"] == [IMAGE] * 4
    assert told["content"] == "[image of 3 bytes]\n[image of 3 bytes]"
    fits, too_large = "A" * 512 * 1024, "A" * (512 * 1024 + 4)
    told = told_result([sa.ImagePart(too_large), sa.ImagePart(fits)])
    assert [image["data"] for image in told["images"]] == [fits]
    assert told["content"] == "[image of 393,219 bytes]"


def test_of_a_persons_message_the_images_travel_that_fit_and_the_others_are_said_to_be() -> None:
    images = [sa.ImagePart("A" * (protocol.ATTACHED_IMAGES // 2)) for _ in range(3)]
    message = sa.Message.user([sa.TextPart("See"), *images])
    told = wire(ev.MessageEnd(seq=1, message=message))["message"]["parts"]
    assert [(part["type"], "data" in part) for part in told] == [
        ("text", False),
        ("image", True),
        ("image", True),
        ("image", False),
    ]
    state = new_view_state("s", "m")
    for seq in range(1, 4):
        reduce(state, plain(wire(ev.MessageEnd(seq=seq, message=message))))
    shown = [e["message"]["parts"] for e in snapshot_of(state)["entries"]]
    assert [["data" in part for part in parts[1:3]] for parts in shown] == [
        [False, False],
        [True, True],
        [True, True],
    ]


def test_a_snapshot_carries_the_newest_images_and_names_the_older_ones() -> None:
    size = protocol.LARGEST_IMAGE
    state = new_view_state("s", "m")
    for number in range(1, 11):
        result = sa.ToolResult("c1", "plot", [sa.TextPart(f"{number}"), sa.ImagePart("A" * size)])
        event = ev.MessageEnd(seq=number, message=sa.Message.tool([result]))
        reduce(state, plain(wire(event)))
    sent = [e["message"]["parts"][0] for e in snapshot_of(state)["entries"]]
    assert ["images" in part for part in sent] == [False] * 2 + [True] * 8
    assert sent[0]["content"] == "1\n[image of 393,216 bytes]"
    assert sent[-1]["content"] == "10"
    kept = [e["message"]["parts"][0] for e in state["entries"]]
    assert all("images" in part for part in kept)


def test_what_waits_for_approval_is_never_shortened() -> None:
    long = {"content": "x" * 300_000}
    request = sa.ActionRequest("w1", "write_file", long, digest="d")
    event = ev.Interrupt(seq=1, run_id="r", interrupt=Interrupt("hitl", (request,), id="i"))
    assert wire(event)["interrupt"]["action_requests"][0]["arguments"] == long


def test_a_file_travels_without_its_content() -> None:
    session = session_of()
    events = events_of(session)
    session.files.write("/a.md", "secret words")
    until(lambda: any(isinstance(e, ev.FileUpdated) for e in events))
    told = wire(next(e for e in events if isinstance(e, ev.FileUpdated)))
    assert "secret" not in json.dumps(told)
    assert told["entry"].keys() == {"path", "size", "modified", "mime_type", "is_directory"}
    assert told["entry"]["size"] == 12
    assert told["entry"]["modified"] > 1e9


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("\ud800 in the middle", "? in the middle"),
        ({"\udcff.txt": ["\udcff"]}, {"?.txt": ["?"]}),
        ([float("nan"), float("inf")], [None, None]),
        ({1: (2**70, True)}, {"1": [2**70, True]}),
    ],
)
def test_what_json_cannot_say_is_said_another_way(value: Any, seen: Any) -> None:
    assert plain(value) == seen


# The view state


def test_a_run_without_an_id_is_no_trouble() -> None:
    """Calls that a restored session cancels belong to no run."""
    state = new_view_state("s", "m")
    for event in (
        {"type": "message_start", "seq": 1, "message": {"role": "assistant"}},
        {"type": "message_update", "seq": 2, "delta": {"type": "text", "text": "x"}},
        {"type": "message_end", "seq": 3, "message": {"role": "assistant"}},
        {"type": "agent_end", "seq": 4, "status": "completed"},
    ):
        reduce(state, event)
    assert state["entries"] == [{"seq": 3, "run_id": "", "ts": 0, "message": {"role": "assistant"}}]
    assert state["runs"] == {"": {"status": "completed", "started": None, "ended": None}}


def test_a_snapshot_is_bounded() -> None:
    state = new_view_state("s", "m")
    for i in range(500):
        call = {"type": "tool_call", "id": f"c{i}", "name": "ls"}
        answer = {"role": "assistant", "parts": [call]}
        said = {"role": "tool", "parts": [{"type": "tool_result", "tool_call_id": f"c{i}"}]}
        reduce(state, {"type": "message_end", "seq": i, "run_id": "r", "message": answer})
        reduce(state, {"type": "tool_execution_start", "seq": i, "tool_call": call})
        ended = {"tool_call_id": f"c{i}", "tool_name": "ls", "status": "completed"}
        reduce(state, {"type": "tool_execution_end", "seq": i, **ended})
        decision = {"tool_call_id": f"c{i}", "decision": {"type": "approve"}}
        reduce(state, {"type": "decision", "seq": i, **decision})
        reduce(state, {"type": "message_end", "seq": i, "run_id": "r", "message": said})
    before = copy.deepcopy(state)
    shown = snapshot_of(state)
    assert state == before
    assert shown["entries"] == state["entries"][-200:]
    assert shown["earlier"] == 800
    assert list(shown["tools"]) == list(shown["decided"]) == [f"c{i}" for i in range(400, 500)]
    reduce(state, {"type": "message_end", "seq": 501, "message": {"role": "user"}})
    assert snapshot_of(state)["earlier"] == 801


def test_a_short_conversation_is_told_whole() -> None:
    state = new_view_state("s", "m")
    reduce(state, {"type": "message_end", "seq": 1, "message": {"role": "user"}})
    assert snapshot_of(state) == state
    assert snapshot_of(state)["earlier"] == 0


def test_a_snapshot_keeps_the_calls_that_wait_and_run_now() -> None:
    """Their message is no entry yet, or is the last one."""
    state = new_view_state("s", "m")
    for i in range(300):
        reduce(state, {"type": "message_end", "seq": i, "message": {"role": "user"}})
    call = {"type": "tool_call", "id": "now", "name": "ls"}
    reduce(state, {"type": "tool_execution_start", "seq": 400, "tool_call": call})
    requests = [{"tool_call_id": i, "tool_name": "ls"} for i in ("one", "two")]
    interrupt = {"type": "hitl", "action_requests": requests}
    reduce(state, {"type": "interrupt", "seq": 401, "interrupt": interrupt})
    decision = {"tool_call_id": "one", "decision": {"type": "approve"}}
    reduce(state, {"type": "decision", "seq": 402, **decision})
    shown = snapshot_of(state)
    assert "now" in shown["tools"]
    assert "one" in shown["decided"]


def test_a_whole_session_is_the_same_merged_and_not_merged() -> None:
    session = session_of(
        ["Let me plan.", plan("Look", "Write")], ["Now.", write()], "Done, all of it.", gate=True
    )
    events = events_of(session)
    session.send("Go").result()
    session.approve().result()
    state = reduced(events, join=True)
    assert state == reduced(events, join=False)
    assert state["status"] == "idle"
    assert [todo["content"] for todo in state["todos"]] == ["Look", "Write"]
    assert [file["path"] for file in state["files"]] == ["/report.md"]
    assert state["decided"] == {"w1": {"type": "approve", "by": "user"}}
    assert [e["message"]["role"] for e in state["entries"]].count("assistant") == 3
    assert state["partial"] is None
    assert state["interrupt"] is None
    assert {tool["status"] for tool in state["tools"].values()} == {"completed"}


def test_ten_thousand_files_are_no_trouble() -> None:
    state = new_view_state("s", "m")
    for i in range(10_000):
        path = f"/{(i * 7919) % 10_000:05}.md"
        reduce(state, {"type": "file_updated", "seq": i, "path": path, "entry": {"size": i}})
    paths = [file["path"] for file in state["files"]]
    assert paths == sorted(set(paths))
    assert len(paths) == 10_000


def test_the_wire_form_of_every_event_is_json() -> None:
    kinds = [k for k in vars(ev).values() if isinstance(k, type) and issubclass(k, ev.Event)]
    known = {k.__struct_config__.tag for k in kinds if k is not ev.Event}
    assert set(protocol.REDUCERS) <= known
    session = session_of(["x", write()], "y")
    events = events_of(session)
    session.send("Go").result()
    session.close()
    for event in events:
        told = wire(event)
        assert msgspec.json.decode(msgspec.json.encode(told)) == plain(told)
        assert "session_id" not in told
