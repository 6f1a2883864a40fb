"""What travels to the pages: nothing unasked, nothing twice, never too much, never too little."""

from __future__ import annotations

import gc
import itertools
import json
import time
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupyter_client.session import json_packer

import sagents_nb as sa
from sagents_nb import events as ev
from sagents_nb.panel import publisher as module
from sagents_nb.panel.protocol import new_view_state, reduce, snapshot_of
from sagents_nb.panel.publisher import Publisher
from sagents_nb.runtime.thread import runtime
from sagents_nb.store import ConversationStore
from tests.panel.pages import (
    Page,
    Wire,
    events_of,
    flush,
    hello,
    page_of,
    plan,
    reduced,
    session_of,
    write,
)
from tests.session.gates import Gate
from tests.session.hours import Hours
from tests.talking import agent_of, call, calls_of, until


@pytest.fixture
def no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches travel when the test flushes."""
    monkeypatch.setattr(module, "INTERVAL", 1000.0)


@pytest.fixture
def passing(hours: Hours, monkeypatch: pytest.MonkeyPatch) -> Hours:
    """Batches travel when the test has time pass."""
    monkeypatch.setattr(module, "runtime", hours)
    return hours


def published(session: Any, clock: Any = time.monotonic) -> tuple[Publisher, Wire]:
    wire = Wire(clock)
    return Publisher(session), wire


def test_nothing_travels_before_a_page_says_hello(passing: Hours) -> None:
    session = session_of("Hello there, world.")
    publisher, wire = published(session)
    session.send("hi").result()
    passing.pass_by(60)
    assert wire.sent == []
    hello(publisher, wire)
    assert [message["type"] for message in wire.sent] == ["snapshot"]


def test_hello_is_answered_with_what_there_is() -> None:
    session = session_of("Hello there.", "And again.")
    publisher, wire = published(session)
    session.send("hi").result()
    hello(publisher, wire)
    state = wire.sent[0]["state"]
    assert [e["message"]["role"] for e in state["entries"]] == ["user", "assistant"]
    assert state["status"] == "idle"
    assert state["session_id"] == session.id
    assert state["model"] == "scripted"
    assert wire.sent[0]["seq"] == publisher.seq > 0


def test_who_has_something_is_sent_what_is_missing_and_no_more(no_clock: None) -> None:
    session = session_of("One.", "Two.", "Three.")
    publisher, wire = published(session)
    hello(publisher, wire)
    seqs = []
    for _ in range(3):
        session.send("Go").result()
        flush(publisher)
        seqs.append(wire.sent[-1]["seq"])
    first = len(wire.sent)
    hello(publisher, wire, seqs[0])
    again = wire.sent[first:]
    assert [(m["type"], m["after"], m["seq"]) for m in again] == [
        ("events", seqs[0], seqs[1]),
        ("events", seqs[1], seqs[2]),
    ]
    assert again[0] == wire.sent[2]


def test_who_has_everything_is_told_so(no_clock: None) -> None:
    session = session_of("One.")
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go").result()
    flush(publisher)
    seq = wire.sent[-1]["seq"]
    hello(publisher, wire, seq)
    assert wire.sent[-1] == {"type": "events", "after": seq, "seq": seq, "events": []}


def test_hello_also_brings_what_was_waiting(no_clock: None) -> None:
    session = session_of("One.", "Two.")
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go").result()
    flush(publisher)
    seq = wire.sent[-1]["seq"]
    session.send("Go").result()
    hello(publisher, wire, seq)
    assert wire.sent[-1]["type"] == "events"
    assert wire.sent[-1]["after"] == seq
    before = len(wire.sent)
    flush(publisher)
    assert len(wire.sent) == before


@pytest.mark.parametrize("have", [3, -1, 10_000, True])
def test_who_has_what_the_kernel_does_not_know_gets_a_snapshot(no_clock: None, have: int) -> None:
    session = session_of("One.")
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go").result()
    flush(publisher)
    hello(publisher, wire, have)
    assert wire.sent[-1]["type"] == "snapshot"


def test_who_is_too_far_behind_gets_a_snapshot(
    no_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BACKLOG_BYTES", 5_000)
    session = session_of(*["word " * 300] * 6)
    publisher, wire = published(session)
    seqs = []
    for _ in range(6):
        hello(publisher, wire)
        session.send("Go").result()
        flush(publisher)
        seqs.append(wire.sent[-1]["seq"])
    hello(publisher, wire, seqs[0])
    assert wire.sent[-1]["type"] == "snapshot"
    hello(publisher, wire, seqs[-2])
    assert wire.sent[-1]["type"] == "events"
    assert publisher.backlog_bytes == sum(len(batch[2]) for batch in publisher.backlog) <= 5_000


def test_a_page_that_lost_a_message_asks_and_has_everything_again(no_clock: None) -> None:
    session = session_of("One.", "Two.", "Three.")
    publisher, wire = published(session)
    page = Page(lambda have: hello(publisher, wire, have))
    wire.pages.append(page)
    page.ask()
    for lost in (False, True, False):
        if lost:
            wire.pages.clear()
        session.send("Go").result()
        flush(publisher)
        wire.pages[:] = [page]
    assert page.gaps == 1
    assert page.state == publisher.state
    assert len(page.state["entries"]) == 6


def test_a_page_that_lost_the_last_message_learns_of_it_and_asks_for_what_is_missing(
    passing: Hours,
) -> None:
    session = session_of("Well.", "Done.")
    session.send("Begin.").result()
    publisher, wire = published(session, passing.monotonic)
    page = Page(lambda have: hello(publisher, wire, have))
    wire.pages.append(page)
    page.ask()
    wire.pages.clear()  # the line is broken
    session.send("Go.").result()
    passing.pass_by(0.5)
    lost = len(wire.sent)
    wire.pages.append(page)
    assert page.state is not None
    assert len(page.state["entries"]) == 2
    passing.pass_by(0.6)
    assert page.gaps == 1
    assert page.seq == publisher.seq
    assert page.state == publisher.state
    assert [message["type"] for message in wire.sent[lost:]] == ["events"] * 2
    assert wire.sent[-1]["after"] > 0, "not all of it again"


def test_a_session_at_rest_is_told_of_three_times_and_then_no_more(passing: Hours) -> None:
    session = session_of("Done.")
    publisher, wire = published(session, passing.monotonic)
    hello(publisher, wire)
    session.send("Go.").result()
    passing.pass_by(0.5)
    told = len(wire.sent)
    passing.pass_by(3600)
    assert (
        wire.sent[told:]
        == [{"type": "events", "after": publisher.seq, "seq": publisher.seq, "events": []}] * 3
    )


def test_what_reminds_pages_keeps_no_session() -> None:
    session = session_of("Done.")
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go.").result()
    flush(publisher)
    reference = weakref.ref(publisher)
    del session, publisher
    until(lambda: gc.collect() >= 0 and reference() is None)


def test_only_who_asks_is_answered_and_all_who_asked_hear_what_happens(no_clock: None) -> None:
    session = session_of("One.", "Two.")
    publisher, first = published(session)
    second = Wire()
    hello(publisher, first)
    session.send("Go").result()
    hello(publisher, second)
    assert [message["type"] for message in first.sent] == ["snapshot", "events"]
    assert [message["type"] for message in second.sent] == ["snapshot"]
    assert second.sent[0]["seq"] == first.sent[1]["seq"] == publisher.seq
    session.send("Go").result()
    flush(publisher)
    assert first.sent[2] == second.sent[1]
    assert first.sent[2]["events"]
    hello(publisher, second, publisher.seq)
    assert (len(first.sent), len(second.sent)) == (3, 3)


def test_a_listener_that_raises_is_told_of_and_the_others_hear_everything(
    no_clock: None, caplog: pytest.LogCaptureFixture
) -> None:
    session = session_of("One.", "Two.")
    publisher, wire = published(session)

    def dead(message: dict[str, Any]) -> None:
        raise ConnectionError("The socket is closed.")

    runtime.call(publisher.hello, dead, 0)
    page = Page(lambda have: hello(publisher, wire, have))
    wire.pages.append(page)
    page.ask()
    session.send("Go").result()
    flush(publisher)
    assert (page.state, page.gaps) == (publisher.state, 0)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["A listener raised on snapshot", "A listener raised on events"]
    runtime.call(publisher.leave, dead)
    session.send("Go").result()
    flush(publisher)
    assert (page.state, page.gaps) == (publisher.state, 0)
    assert len(caplog.records) == 2


def test_who_leaves_hears_no_more_and_is_sent_what_was_missed_on_coming_back(
    no_clock: None,
) -> None:
    session = session_of("One.", "Two.", "Three.")
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go").result()
    flush(publisher)
    runtime.call(publisher.leave, wire)
    before, seq = len(wire.sent), wire.sent[-1]["seq"]
    for _ in range(2):
        session.send("Go").result()
        flush(publisher)
    assert len(wire.sent) == before
    hello(publisher, wire, seq)
    missed = wire.sent[before:]
    assert [message["type"] for message in missed] == ["events", "events"]
    assert (missed[0]["after"], missed[1]["seq"]) == (seq, publisher.seq)


class Steady(sa.ChatModel):
    """Says ``pieces``, 5000 of them a second."""

    name = "steady"

    def __init__(self, pieces: list[str], hours: Hours) -> None:
        self.pieces, self.hours = pieces, hours

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        for i, piece in enumerate(self.pieces):
            if i % 50 == 0:
                self.hours.pass_by(0.01)
            yield piece
        yield sa.Message.assistant("".join(self.pieces), usage=sa.Usage(1, 1))


def test_what_is_kept_of_a_conversation_travels_once(tmp_path: Path, no_clock: None) -> None:
    """The rows of the transcript say again what the messages say, and nothing shortens them."""
    store = ConversationStore(tmp_path / "agents.db")
    session = session_of("One.", store=store)
    heard = events_of(session)
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go").result()
    until(lambda: any(isinstance(event, ev.DisplayMessageSaved) for event in heard))
    flush(publisher)
    sent = [event["type"] for message in wire.of("events") for event in message["events"]]
    assert "message_end" in sent
    assert not [kind for kind in sent if kind.startswith("display_message")]
    session.close()
    store.close()


def test_at_most_fifteen_messages_a_second(passing: Hours) -> None:
    session = sa.Session(sa.Agent(Steady(["word "] * 20_000, passing)))
    publisher, wire = published(session, passing.monotonic)
    hello(publisher, wire)
    session.send("Go").result()
    while not publisher.idle:
        passing.pass_by(0.01)
    times = wire.times[1:]  # the snapshot is not one of them
    assert len(times) >= 50
    for i, began in enumerate(times):
        assert sum(1 for t in times[i:] if t < began + 1.0) <= 15
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert min(gaps) > 0.069


def test_large_batches_stay_under_a_megabyte_a_second(passing: Hours) -> None:
    text = "x" * 40_000

    @sa.tool
    def big(n: int) -> str:
        """Say much."""
        passing.pass_by(0.02)
        return text

    turns = [[text, sa.ToolCall(f"c{i}", "big", {"n": i})] for i in range(30)]
    session = session_of(*turns, "Done.", tools=[big], chunk=20_000)
    publisher, wire = published(session, passing.monotonic)
    page = Page(lambda have: hello(publisher, wire, have))
    wire.pages.append(page)
    page.ask()
    session.send("Go").result()
    while not publisher.idle:
        passing.pass_by(0.01)
    assert page.gaps == 0
    assert page.state == publisher.state
    assert sum(wire.sizes) > 1_500_000
    assert max(wire.sizes) < 300_000
    for i in range(len(wire.times)):  # what was sent before a message had its time
        sent = sum(wire.sizes[:i])
        assert sent <= 1_050_000 * wire.times[i] + 20_000


def sent_for(call: sa.ToolCall, tools: Sequence[Any] = ()) -> tuple[dict[str, int], str]:
    """What a page is sent for a run with that call: the bytes by type of event, and all of it."""
    session = session_of([sa.ThinkingPart("A thought."), "I begin.", call], "Done.", tools=tools)
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go").result()
    flush(publisher)
    sizes: Counter[str] = Counter()
    for message in wire.of("events"):
        for event in message["events"]:
            sizes[event["type"]] += len(json_packer(event))
    assert len(publisher.state["entries"]) == 4
    return sizes, json.dumps(wire.of("events"))


def test_what_a_model_and_its_tools_say_travels_once(no_clock: None) -> None:
    @sa.tool
    def look(where: str) -> str:
        """Look."""
        return "What was seen: " + "much " * 400

    sizes, text = sent_for(sa.ToolCall("c1", "look", {"where": "In the attic. " * 50}), [look])
    for said in ("A thought.", "I begin.", "In the attic. " * 50, "What was seen:", "Done."):
        assert text.count(said) == 1, said
    assert max(sizes, key=lambda kind: sizes[kind]) == "message_end"
    assert sizes["tool_execution_start"] + sizes["tool_execution_end"] < 300


@pytest.mark.parametrize(
    ("call", "most"),
    [
        (sa.ToolCall("c1", "ls", {}), 2_300),
        (plan(*[f"Do the thing number {i} of all" for i in range(20)]), 6_000),
        (write(text="word " * 400), 4_700),
    ],
    ids=["a call", "20 to-dos", "a file of 2 kB"],
)
def test_a_run_with_one_call_sends_few_bytes(no_clock: None, call: sa.ToolCall, most: int) -> None:
    sizes, _ = sent_for(call)
    assert sum(sizes.values()) < most, dict(sizes)


def test_one_event_that_cannot_travel_does_not_end_the_stream(
    no_clock: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = session_of("One.")
    publisher, wire = published(session)
    page = Page(lambda have: hello(publisher, wire, have))
    wire.pages.append(page)
    page.ask()
    original = module.wire

    def broken(event: ev.Event, *about: Any) -> dict[str, Any]:
        if isinstance(event, ev.MessageEnd) and event.message.text == "Go":
            raise ValueError("no")
        return original(event, *about)

    monkeypatch.setattr(module, "wire", broken)
    session.send("Go").result()
    flush(publisher)
    assert "A page cannot be told of message_end" in caplog.text
    assert page.gaps == 0
    assert page.state == publisher.state
    assert [e["message"]["parts"][0]["text"] for e in page.state["entries"]] == ["One."]


def test_text_that_is_not_unicode_travels_too(no_clock: None) -> None:
    @sa.tool
    def names() -> str:
        """List names."""
        return "caf\udce9.txt"

    session = session_of(sa.ToolCall("c1", "names", {}), "Done.", tools=[names])
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go").result()
    flush(publisher)
    hello(publisher, wire)
    results = [
        part["content"]
        for e in wire.sent[-1]["state"]["entries"]
        for part in e["message"]["parts"]
        if part["type"] == "tool_result"
    ]
    assert results == ["caf?.txt"]


def test_a_call_whose_tool_is_gone_says_so_until_it_is_there(no_clock: None) -> None:
    def double(n: int) -> int:
        """Double."""
        return 2 * n

    def agent(*tools: Any) -> sa.Agent:
        calls = [sa.ToolCall("d1", "double", {"n": 2}), write()]
        names = ["double", "write_file"] if tools else ["write_file"]
        return sa.Agent(
            sa.ScriptedModel([calls]), tools=tools, interrupt_on=dict.fromkeys(names, True)
        )

    def missing() -> list[bool]:
        hello(publisher, wire)
        requests = wire.sent[-1]["state"]["interrupt"]["action_requests"]
        return ["missing" in request for request in requests]

    first = sa.Session(agent(double))
    first.send("Go").result()
    session = sa.Session.restore(first.export_state(), agent(), id="restored")
    publisher, wire = published(session)
    assert missing() == [True, False]
    session.replace(agent=agent(double))
    flush(publisher)
    assert missing() == [False, False]


def test_calls_that_a_restored_session_drops_do_not_end_the_stream(no_clock: None) -> None:
    """They belong to no run of this process."""
    first = session_of(write(), gate=True)
    first.send("Go").result()
    agent = sa.Agent(sa.ScriptedModel(["Well."]), interrupt_on={"write_file": True})
    session = sa.Session.restore(first.export_state(), agent, id="restored")
    publisher, wire = published(session)
    hello(publisher, wire)
    assert wire.sent[0]["state"]["status"] == "interrupted"
    assert wire.sent[0]["state"]["interrupt"]["action_requests"][0]["tool_call_id"] == "w1"
    assert wire.sent[0]["state"]["interrupt"]["run_id"] == ""
    session.send("Never mind.").result()
    flush(publisher)
    hello(publisher, wire)
    state = wire.sent[-1]["state"]
    assert state["interrupt"] is None
    assert [e["message"]["role"] for e in state["entries"]] == [m.role for m in session.messages]


def test_a_restored_session_shows_its_old_messages() -> None:
    first = session_of([plan("Look")], "Hello.", "More.")
    first.send("hi").result()
    first.files.write("/kept.md", "x")
    agent = sa.Agent(sa.ScriptedModel(["Back again."]))
    session = sa.Session.restore(first.export_state(), agent, id="old")
    publisher, wire = published(session)
    hello(publisher, wire)
    state = wire.sent[0]["state"]
    assert [e["message"]["role"] for e in state["entries"]] == [m.role for m in first.messages]
    assert state["entries"][0]["message"]["parts"] == [{"type": "text", "text": "hi"}]
    assert [t["content"] for t in state["todos"]] == ["Look"]
    assert {e["run_id"] for e in state["entries"]} == {""}
    session.send("And?").result()
    until(lambda: wire.of("events"))
    assert publisher.state["entries"][-1]["message"]["parts"][0]["text"] == "Back again."
    assert len(publisher.state["entries"]) == len(first.messages) + 2


def test_a_page_goes_on_with_a_conversation_that_was_opened_again(
    tmp_path: Path, no_clock: None
) -> None:
    store = ConversationStore(tmp_path / "agents.db")
    session = session_of("One.", store=store)
    publisher, wire = published(session)
    page = Page(lambda have: None)
    hello(publisher, wire)
    session.send("Go").result()
    flush(publisher)
    for message in wire.sent:
        page.receive(message)
    had = page.seq
    session.close()
    agent = sa.Agent(sa.ScriptedModel(["Two."]))
    again = sa.Session.open(session.id, agent=agent, store=store)
    publisher, wire = published(again)
    hello(publisher, wire, had)  # it was never told that this is another session
    again.send("More").result()
    flush(publisher)
    for message in wire.sent:
        page.receive(message)
    assert [message["type"] for message in wire.sent] == ["snapshot", "events"]
    assert page.state is not None
    assert len(page.state["entries"]) == 4
    assert (page.seq > had, page.gaps) == (True, 0)
    store.close()


def test_calls_of_a_fork_say_in_the_words_of_their_tools_what_they_are() -> None:
    @sa.tool(display_text=lambda arguments: f"Looking at {arguments['frame']}")
    def look(frame: str) -> str:
        "Look."
        return "seen"

    @sa.tool
    def silent() -> str:
        "Say nothing."
        return "done"

    model = sa.ScriptedModel([[call("look", frame="df"), call("silent", "c2")], "Seen."])
    session = sa.Session(sa.Agent(model, tools=[look, silent]))
    session.send("Look.").result()
    publisher, wire = published(session.fork())
    hello(publisher, wire)
    asked = wire.sent[0]["state"]["entries"][1]["message"]["parts"]
    assert [part.get("display_text") for part in asked] == ["Looking at df", None]


def test_a_publisher_that_comes_late_knows_what_happened() -> None:
    session = session_of(["Plan.", plan("A", "B")], [write()], "Done.", gate=True)
    events = events_of(session)
    session.send("Go").result()
    session.approve().result()
    publisher, _ = published(session)
    early = reduced(events, join=False)
    assert {**publisher.state, "files": []} == {
        **early,
        "files": [],
        "session_id": session.id,
        "model": "scripted",
    }
    assert [f["path"] for f in publisher.state["files"]] == ["/report.md"]


def test_what_came_before_a_snapshot_of_a_long_conversation_is_counted() -> None:
    state = sa.State(messages=[sa.Message.user(str(i)) for i in range(1000)])
    session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=state)
    publisher, wire = published(session)
    hello(publisher, wire)
    told = wire.sent[0]["state"]
    assert len(told["entries"]) == 200
    assert told["earlier"] == 800
    assert told["entries"][0]["message"]["parts"][0]["text"] == "800"


def test_a_panel_of_a_longer_conversation_looks_at_no_more_of_it() -> None:
    def cost(length: int) -> int:
        state = sa.State(messages=[sa.Message.user(str(i)) for i in range(length)])
        session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=state)
        Publisher(session)
        return runtime.call(calls_of, lambda: Publisher(session))

    assert cost(3_000) == cost(300)


@pytest.mark.parametrize("how", ["reset", "replace"])
def test_another_conversation_replaces_what_pages_show(no_clock: None, how: str) -> None:
    session = session_of("Hello.", "Again.")
    publisher, wire = published(session)
    page = Page(lambda have: hello(publisher, wire, have))
    wire.pages.append(page)
    hello(publisher, wire)
    session.send("hi").result()
    flush(publisher)
    if how == "reset":
        session.reset()
    else:
        session.replace(state=sa.State(messages=[sa.Message.user("Elsewhere")]))
    session.send("once more").result()
    flush(publisher)
    assert page.state is not None
    texts = [e["message"]["parts"][0]["text"] for e in page.state["entries"]]
    assert texts == [*(["Elsewhere"] if how == "replace" else []), "once more", "Again."]
    late, late_wire = published(session)
    hello(late, late_wire)
    assert [e["message"] for e in late_wire.of("snapshot")[0]["state"]["entries"]] == [
        e["message"] for e in page.state["entries"]
    ]


def delegating(*said: Any) -> Any:
    """A session that gives a sub-agent, which says these turns, a task."""
    model = sa.ScriptedModel(said, chunk=1)
    helper = sa.CompiledSubAgent("helper", "Helps.", sa.Agent(model))
    arguments = {"instructions": "Plan.", "subagent_type": "helper"}
    turns = [sa.ToolCall("t0", "task", arguments), "done"]
    return sa.Session(sa.Agent(sa.ScriptedModel(turns), subagent_options={"subagents": [helper]}))


def test_what_sub_agents_say_and_do_is_told_by_the_call_that_they_are_of() -> None:
    session = delegating(plan("x"), "All is planned.")
    page = page_of(session)
    session.send("Go").result()
    until(lambda: len(page.state["entries"]) == 4)
    (progress,) = [t for t in page.state["tools"].values() if t["name"] == "task"]
    assert progress["status"] == "completed"
    agent = page.state["agents"]["t0"]
    asked, planned, result, said = [entry["message"] for entry in agent["entries"]]
    assert asked["role"] == "user"
    assert planned["parts"][0]["name"] == "write_todos"
    assert result["parts"][0]["tool_call_id"] == planned["parts"][0]["id"]
    assert said["parts"] == [{"type": "text", "text": "All is planned."}]
    assert [tool["status"] for tool in agent["tools"].values()] == ["completed"]
    assert "Plan." not in str(page.state["entries"][2:])  # no entry of the session itself


def test_deltas_of_a_sub_agent_travel_in_one_event_a_batch(no_clock: None) -> None:
    session = delegating("a long answer " * 40)
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go").result()
    flush(publisher)
    told = [e for m in wire.of("events") for e in m["events"] if e["type"] == "subagent_event"]
    written = [e for e in told if e["event"]["type"] == "message_update"]
    assert "".join(e["event"]["delta"]["text"] for e in written) == "a long answer " * 40
    assert len(written) == 1


def test_of_a_sub_agents_results_a_page_is_told_the_beginnings() -> None:
    def long() -> str:
        """Much."""
        return "x" * 30_000

    helper = sa.CompiledSubAgent(
        "helper",
        "Helps.",
        sa.Agent(sa.ScriptedModel([sa.ToolCall("l", "long", {}), "ok"]), tools=[long]),
    )
    arguments = {"instructions": "Plan.", "subagent_type": "helper"}
    model = sa.ScriptedModel([sa.ToolCall("t0", "task", arguments), "done"])
    session = sa.Session(sa.Agent(model, subagent_options={"subagents": [helper]}))
    page = page_of(session)
    session.send("Go").result()
    until(lambda: len(page.state["entries"]) == 4)
    (result,) = page.state["agents"]["t0"]["entries"][2]["message"]["parts"]
    assert (len(result["content"]), result["shortened"]) == (2_000, 30_000)


def test_of_a_sub_agent_that_says_much_the_newest_is_kept() -> None:
    steps = [plan(str(n), id=f"p{n}") for n in range(40)]
    session = delegating(*steps, "ok")
    page = page_of(session)
    session.send("Go").result()
    until(lambda: len(page.state["entries"]) == 4)
    agent = page.state["agents"]["t0"]
    assert len(agent["entries"]) == 30
    assert agent["earlier"] == 82 - 30  # the task, forty calls with their results, the answer
    assert agent["entries"][-1]["message"]["parts"] == [{"type": "text", "text": "ok"}]


def test_a_snapshot_has_what_the_newest_sub_agents_did() -> None:
    state = new_view_state("s", "m")
    inner = {"type": "message_start", "seq": 1, "message": {"role": "assistant"}}
    for n in range(30):
        event = {"type": "subagent_event", "seq": n, "tool_call_id": f"t{n}", "event": inner}
        reduce(state, event)
    assert list(snapshot_of(state)["agents"]) == [f"t{n}" for n in range(10, 30)]


def test_the_end_of_a_session_is_told() -> None:
    session = session_of("One.")
    publisher, wire = published(session)
    hello(publisher, wire)
    session.send("Go").result()
    session.close()
    until(lambda: wire.of("closed"))
    assert publisher.state["status"] == "closed"
    assert wire.sent[-1] == {"type": "closed"}
    hello(publisher, wire)
    assert [m["type"] for m in wire.sent[-2:]] == ["snapshot", "closed"]
    late, late_wire = published(session)
    hello(late, late_wire)
    assert [m["type"] for m in late_wire.sent] == ["snapshot", "closed"]
    assert late_wire.sent[0]["state"]["status"] == "closed"


def test_who_says_hello_before_the_end_was_told_hears_of_it_once() -> None:
    session = session_of("One.")
    publisher, _ = published(session)
    other, late = Wire(), Wire()
    runtime.call(publisher.hello, other, 0)
    session.send("Go").result()

    def end() -> None:
        publisher.push(ev.StatusChanged(seq=publisher.seq + 99, status="closed"))
        publisher.hello(late, 0)
        publisher.flush()

    runtime.call(end)
    for heard in (other, late):
        assert [m["type"] for m in heard.sent].count("closed") == 1


def test_the_model_of_a_snapshot_is_the_one_that_answers_now() -> None:
    session = session_of("One.")
    publisher, wire = published(session)
    other = sa.ScriptedModel(["x"])
    other.name = "another"
    session.replace(agent=session.agent.with_(model=other))
    hello(publisher, wire)
    assert wire.sent[-1]["state"]["model"] == "another"


# A page that comes late sees what one sees that was there all along.

ITEMS = st.lists(
    st.sampled_from(["Some words. ", "ünï 🦜 ", "plan", "write", "ls", "fails", "tells"]),
    min_size=1,
    max_size=4,
)
STEPS = st.lists(
    st.tuples(st.lists(ITEMS, max_size=3), st.sampled_from(["approve", "reject", "message"])),
    min_size=1,
    max_size=3,
)


@sa.tool
def fails() -> str:
    """Fail."""
    raise ValueError("no luck")


@sa.tool
async def tells(ctx: sa.ToolContext) -> str:
    """Tell how far it is."""
    await ctx.progress("half way", 0.5)
    return "told"


def turn_of(items: list[str], number: int) -> list[Any]:
    made: list[Any] = []
    for i, item in enumerate(items):
        id = f"c{number}.{i}"
        if item == "plan":
            made.append(plan(f"Step {number}", "Rest", id=id))
        elif item == "write":
            made.append(write(f"/{number}/{i}.md", id=id))
        elif item in ("ls", "fails", "tells"):
            made.append(sa.ToolCall(id, item, {}))
        else:
            made.append(item)
    return made


def recorded(steps: Any, fail: bool) -> list[ev.Event]:
    """The events of a session that went through these steps."""
    numbers = itertools.count()
    session = session_of(gate=True, tools=[fails, tells], chunk=3)
    events = events_of(session)
    for turns, answer in steps:
        script = [turn_of(items, next(numbers)) for items in turns]
        if script and not any(isinstance(x, sa.ToolCall) for x in script[-1]):
            script[-1] = [*script[-1], "."]
        session.agent.model.turns += [*script, "The end."]
        # A text without a call ends a run: the next message goes on with the script.
        try:
            session.send("Go on.").result()
            while session.status == "interrupted" and answer != "message":
                run = session.approve() if answer == "approve" else session.reject(message="no")
                run.result()
        except sa.AgentError:
            pass
    if fail:
        session.agent.model.turns.append(sa.ModelError("gone"))
        for _ in session.agent.model.turns:
            try:
                session.send("Once more.").result()
            except sa.AgentError:
                break
    session.close()
    until(lambda: events and events[-1].type == "status_changed")
    return events


@settings(max_examples=25, deadline=None)
@given(STEPS, st.booleans(), st.data())
def test_a_late_page_sees_what_an_early_one_sees(steps: Any, fail: bool, data: Any) -> None:
    events = recorded(steps, fail)
    # What happens between two events: the batch travels, somebody comes, a message is lost.
    moments = st.lists(
        st.sampled_from(["-", "-", "flush", "flush", "come", "lose"]),
        min_size=len(events),
        max_size=len(events),
    )
    happenings = data.draw(moments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "INTERVAL", 1000.0)
        publisher, wire = published(session_of())

        def come() -> None:
            page = Page(lambda have: hello(publisher, wire, have))
            wire.pages.append(page)
            page.ask()

        def play() -> None:
            come()
            for event, happens in zip(events, happenings, strict=True):
                publisher.push(event)
                if happens == "flush":
                    publisher.flush()
                elif happens == "come":
                    come()
                elif happens == "lose":
                    away, wire.pages[:] = wire.pages[:1], wire.pages[1:]
                    publisher.flush()
                    wire.pages[:0] = away
            publisher.flush()
            come()

        runtime.call(play)
    alone = reduced(events, join=False)
    expected = {**alone, "session_id": publisher.state["session_id"], "model": "scripted"}
    assert publisher.state == expected
    for page in wire.pages:
        assert page.state == expected


def shown(session: Any) -> tuple[Publisher, Page]:
    """A page that was told all that there is."""
    publisher = Publisher(session)
    page = Page(lambda have: runtime.call(publisher.hello, page.receive, have))
    page.ask()
    return publisher, page


def test_views_of_runs_keep_them_when_the_conversation_is_reset(no_clock: None) -> None:
    session = session_of("First answer.", "Second answer.")
    publisher, page = shown(session)
    first = session.send("One.")
    first.result()
    session.reset()
    second = session.send("Two.")
    second.result()
    flush(publisher)
    state = page.state
    assert state is not None
    assert [entry["message"]["role"] for entry in state["past"]] == ["user", "assistant"]
    assert {entry["run_id"] for entry in state["past"]} == {first.id}
    assert {entry["run_id"] for entry in state["entries"]} == {second.id}
    assert state["runs"][first.id]["status"] == "completed"


def test_a_run_that_a_reset_stops_is_shown_as_stopped(no_clock: None) -> None:
    gate = Gate()
    session = sa.Session(agent_of(call("hold"), "x", tools=[gate.tool]))
    publisher, page = shown(session)
    run = session.send("One.")
    gate.wait()
    session.reset()
    gate.open()
    flush(publisher)
    assert page.state is not None
    assert page.state["runs"][run.id]["status"] == "cancelled"


def test_another_agent_leaves_what_was_said_where_it_is(no_clock: None) -> None:
    session = session_of("First answer.")
    publisher, page = shown(session)
    run = session.send("One.")
    run.result()
    session.replace(agent=sa.Agent(sa.DemoModel()))
    flush(publisher)
    state = page.state
    assert state is not None
    assert state["model"] == "demo"
    assert [entry["run_id"] for entry in state["entries"]] == [run.id, run.id]


def test_what_a_conversation_has_cost_is_counted_from_its_first_message_on(no_clock: None) -> None:
    def costs(tokens: int) -> sa.Message:
        return sa.Message.assistant("a", usage=sa.Usage(tokens, 1, cost_usd=tokens / 100))

    session = session_of(costs(10), costs(20))
    session.send("One.").result()
    later = sa.Session.restore(session.export_state(), agent=session.agent, id="later")
    publisher, page = shown(later)
    later.send("Two.").result()
    flush(publisher)
    assert page.state is not None
    expected = {"input_tokens": 30, "output_tokens": 2, "cost_usd": pytest.approx(0.3)}
    assert page.state["usage"] == expected
    later.replace(state=later.state.set_messages([]))
    flush(publisher)
    assert page.state["usage"] == expected


def test_a_page_knows_how_much_its_model_takes_also_after_another_was_chosen() -> None:
    session = session_of("Hello.")
    page = page_of(session)
    assert page.state is not None
    assert page.state["context_window"] is None
    other = sa.ScriptedModel(["Bye."])
    other.context_window = 1_000
    session.replace(agent=session.agent.with_(model=other))
    until(lambda: page.state is not None and page.state["context_window"] == 1_000)
    session.reset()
    session.send("And now?").result()
    until(lambda: page.state is not None and page.state["entries"])
    assert page.state["context_window"] == 1_000


def test_a_branch_that_is_shown_again_says_of_no_call_what_one_of_another_branch_did() -> None:
    """Models begin to count the ids of their calls again in each."""
    read = call("read_file", "c1", file_path="/a.md")
    delete = call("delete_file", "c1", file_path="/b.md")
    session = session_of(read, "Read.", delete, "Deleted.")
    publisher, wire = published(session)
    hello(publisher, wire)

    def doing() -> str:
        flush(publisher)
        state = publisher.state
        (part,) = (
            part
            for entry in state["entries"]
            for part in entry["message"]["parts"]
            if part["type"] == "tool_call"
        )
        return str(state["tools"].get("c1", part)["display_text"])

    session.send("Read it.").result()
    session.send("Delete it.", instead_of=0).result()
    assert doing() == "Deleting /b.md"
    session.switch_branch(0, 0)
    assert doing() == "Reading /a.md"
    session.switch_branch(0, 1)
    assert doing() == "Deleting /b.md"


def test_a_branch_that_is_shown_again_says_of_its_calls_what_it_said_before() -> None:
    """Also where those of another branch have their ids: what they took is of them."""
    calls = [call("read_file", "c1", file_path=path) for path in ("/a.md", "/b.md")]
    session = session_of(calls[0], "Read.", calls[1], "Read, too.")
    publisher, wire = published(session)
    hello(publisher, wire)

    def told() -> Any:
        flush(publisher)
        return publisher.state["tools"]["c1"]

    session.send("Read it.").result()
    first = told()
    session.send("Read the other.", instead_of=0).result()
    second = told()
    assert first["duration"] != second["duration"]
    session.switch_branch(0, 0)
    assert told() == first
    session.switch_branch(0, 1)
    assert told() == second


def test_pages_know_whether_a_store_has_the_conversation(tmp_path: Path) -> None:
    with sa.ConversationStore(tmp_path / "kept.db") as store:
        kept = session_of("Hello!", store=store)
        publisher, _ = published(kept)
        assert publisher.state["kept"]
        kept.reset()
        flush(publisher)
        assert publisher.state["kept"]
        kept.close()
    publisher, _ = published(session_of("Hello!"))
    assert "kept" not in publisher.state
