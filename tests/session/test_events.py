from __future__ import annotations

import gc
import logging
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import sagents_nb as sa
from sagents_nb.events import (
    AgentEnd,
    DisplayMessageSaved,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    SubagentEvent,
    TurnStart,
)
from sagents_nb.runtime import foreign
from sagents_nb.session import event_log
from sagents_nb.session.event_log import EventLog, spoken
from tests.grammar import ungrammatical
from tests.session.gates import Gate
from tests.talking import agent_of, all_of, call, calls_of, of, run, session_of, types, until


def test_subscribers_hear_every_event_once_in_order() -> None:
    session = session_of("one", "two")
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.subscribe(heard.append)  # the same one again is one subscription
    session.send("a").result()
    session.send("b").result()
    assert [e.seq for e in heard] == list(range(1, len(heard) + 1))
    assert {e.session_id for e in heard} == {session.id}
    assert types(heard)[0] == "status_changed"
    assert types(heard)[-1] == "status_changed"


@pytest.mark.spec("A2.1.6")
def test_subscribing_tells_nothing_by_itself_and_unsubscribing_ends_it() -> None:
    session = session_of("one", "two")
    heard: list[Any] = []
    unsubscribe = session.subscribe(heard.append)
    session.steering_mode = "all"
    assert heard == []
    session.send("a").result()
    unsubscribe()
    unsubscribe()
    count = len(heard)
    session.send("b").result()
    assert len(heard) == count > 0


def test_late_subscribers_may_ask_for_what_was(caplog: pytest.LogCaptureFixture) -> None:
    session = session_of("one")
    early: list[Any] = []
    session.subscribe(early.append)
    session.send("a").result()
    late: list[Any] = []
    session.subscribe(late.append, since=0)
    told = [e for e in early if not isinstance(e, MessageUpdate)]
    assert late == told  # the pieces of a finished message are in the message
    later: list[Any] = []
    session.subscribe(later.append, since=early[-2].seq)
    assert later == early[-1:]


def test_a_subscriber_that_raises_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    session = session_of("one", "two")
    heard: list[Any] = []

    def broken(event: Any) -> None:
        raise SystemExit("I am broken")

    session.send("a").result()
    with caplog.at_level(logging.ERROR):
        session.subscribe(broken, since=0)
        session.subscribe(heard.append)
        assert session.send("b").result().text == "two"
    assert types(heard).count("agent_end") == 1
    assert "A subscriber raised" in caplog.text


def test_what_a_subscriber_causes_is_told_to_all_after_what_caused_it() -> None:
    session = session_of("one", "two", "three")
    first: list[int] = []
    second: list[int] = []

    def meddle(event: Any) -> None:
        first.append(event.seq)
        if event.type == "agent_end" and len(session.messages) == 2:
            session.follow_up("and then")
            session.send("again")

    session.subscribe(meddle)
    session.subscribe(lambda event: second.append(event.seq))
    session.send("a").result()
    assert session.current_run is not None
    session.current_run.result()
    assert first == second == sorted(first)


def test_a_subscriber_cannot_wait_for_what_waits_for_it() -> None:
    session = session_of("one")
    raised: list[Exception] = []

    def wait(event: Any) -> None:
        try:
            assert session.current_run is not None
            session.current_run.result()
        except sa.Busy as error:
            raised.append(error)

    session.subscribe(wait)
    session.send("a").result()
    assert "await" in str(raised[0])


def test_the_events_of_a_session_can_be_iterated_from_any_number() -> None:
    session = session_of("one", "two")
    session.send("a").result()
    session.send("b").result()
    session.close()
    everything = all_of(session.events())
    numbers = [e.seq for e in everything]
    assert numbers == sorted(set(numbers))
    assert all_of(session.events(since=numbers[4])) == everything[5:]


def test_a_run_can_be_iterated_while_it_goes_on_and_afterwards() -> None:
    gate = Gate()
    session = session_of(call("hold"), "done", tools=[gate.tool])
    running = session.send("go")

    async def read() -> list[Any]:
        events = []
        async for event in running:
            events.append(event)
            if event.type == "tool_execution_start":
                gate.open()
        return events

    live = run(read())
    assert not ungrammatical(live)
    assert isinstance(live[-1], AgentEnd)
    assert said(all_of(running)) == said(live)


def test_iterating_a_run_shows_that_run_only() -> None:
    session = session_of("one", "two")
    first, second = session.send("a"), session.send("b")
    second.result()
    for which in (first, second):
        events = all_of(which)
        assert {e.run_id for e in events} == {which.id}
        assert types(events).count("agent_start") == types(events).count("agent_end") == 1


def test_a_resumed_run_is_iterated_from_the_decision_on() -> None:
    def act() -> str:
        return ""

    session = session_of(call("act"), "done", tools=[act], interrupt_on={"act": True})
    first = session.send("go")
    first.result()
    resumed = session.resume(sa.Approve())
    assert resumed.id == first.id
    events = all_of(resumed)
    assert types(events)[:2] == ["decision", "agent_start"]
    assert of(AgentEnd, events)[0].status == "completed"
    assert of(AgentEnd, all_of(first))[0].status == "interrupted"


def test_iterating_a_run_that_never_begins_ends() -> None:
    gate = Gate()
    session = session_of(call("hold"), "done", tools=[gate.tool])
    session.send("go")
    gate.wait()
    queued = session.send("no")

    async def read() -> list[Any]:
        stream = queued.__aiter__()
        queued.cancel()
        return [event async for event in stream]

    assert types(run(read())) == ["message_queued", "message_withdrawn"]
    gate.open()


def test_a_reader_who_went_away_costs_nothing() -> None:
    session = session_of("one", "two")
    before = len(session.actor.log.subscribers)

    async def look_once() -> None:
        async for _ in session.events():
            return

    session.send("a").result()
    run(look_once())
    gc.collect()
    session.send("b").result()
    assert len(session.actor.log.subscribers) == before
    assert len(session.actor.log.streams) == 0


def log_of(number: int) -> EventLog:
    """A log with so many listeners."""
    log = EventLog()
    for _ in range(number):
        log.subscribe(lambda event: None)
    return log


def test_a_listener_costs_the_same_to_come_and_to_go_among_few_and_among_many() -> None:
    def come_and_go(log: EventLog) -> int:
        heard: list[Any] = []
        each = calls_of(lambda: (log.subscribe(heard.append), log.unsubscribe(heard.append)))
        log.push(TurnStart(seq=1))
        assert heard == []
        return each

    assert come_and_go(log_of(1_000)) == come_and_go(log_of(1))


def test_an_event_to_many_listeners_costs_little_more_than_to_call_them() -> None:
    log = log_of(1_000)
    log.push(TurnStart(seq=1))
    assert calls_of(lambda: log.push(TurnStart(seq=2))) < 1_100


def test_of_many_subscribers_those_are_named_among_whom_one_held_up_the_loop(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, held = log_of(1_000), 0.0

    def slow(event: Any) -> None:
        nonlocal held
        held += 1.0

    real = foreign.clock
    for module in (foreign, event_log):
        monkeypatch.setattr(module, "clock", lambda: real() + held)
    log.subscribe(slow)
    log.push(TurnStart(seq=1))
    assert f"The subscriber {log_of.__qualname__}.<locals>.<lambda> or {slow.__qualname__}" in (
        caplog.text
    )


def test_a_listener_that_cannot_be_a_key_hears_like_any_other() -> None:
    @dataclass
    class Count:  # equal ones are equal, so it has no hash
        events: list[str] = field(default_factory=list)

        async def __call__(self, event: sa.Event) -> None:
            self.events.append(event.type)

    session = session_of("one", "two")
    count, other = Count(), Count()
    forget = session.subscribe(count)
    session.subscribe(other)
    assert session.send("go").result().text == "one"
    until(lambda: "agent_end" in count.events and "agent_end" in other.events)
    forget()
    heard = len(count.events)
    assert session.send("again").result().text == "two"
    assert len(count.events) == heard


def test_todos_are_told_of_as_the_whole_list() -> None:
    def plan() -> Any:
        return sa.ToolOutput("ok", update={"todos": [sa.Todo("a"), sa.Todo("b")]})

    session = session_of(call("plan"), "done", tools=[plan])
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    (event,) = [e for e in heard if e.type == "todos_updated"]
    assert list(event.todos) == session.todos == [sa.Todo("a", id=1), sa.Todo("b", id=2)]


def test_file_changes_are_told_of_with_the_run_that_made_them() -> None:
    session = sa.Session(sa.Agent(sa.ScriptedModel([call_write(), "done"])))
    heard: list[Any] = []
    session.subscribe(heard.append)
    running = session.send("go")
    running.result()
    session.files.write("/by-hand.txt", "x")
    session.cancel()  # has the runtime loop turn once more
    told = [(e.path, e.run_id) for e in heard if e.type == "file_updated"]
    assert told == [("/a.txt", running.id), ("/by-hand.txt", "")]


def call_write() -> sa.ToolCall:
    return call("write_file", file_path="/a.txt", content="x")


def test_a_run_begins_with_running_and_ends_with_idle() -> None:
    session = session_of("one")
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("a").result()
    changes = [(e.previous, e.status) for e in heard if e.type == "status_changed"]
    assert changes == [("idle", "running"), ("running", "idle")]
    assert types(heard)[1] == "agent_start"
    assert types(heard)[-2:] == ["agent_end", "status_changed"]


def test_an_agent_streams_the_same_events_as_a_session() -> None:
    async def read() -> list[Any]:
        return [event async for event in agent_of("hi").stream("a")]

    session = session_of("hi")
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("a").result()
    assert types(run(read())) == types(heard, "status_changed")


def test_deltas_of_a_sub_agent_are_dropped_with_the_end_of_its_message() -> None:
    talker = sa.CompiledSubAgent("talker", "Talks.", sa.Agent(sa.ScriptedModel(["long"], chunk=1)))
    delegate = call("task", instructions="Talk.", subagent_type="talker")
    session = session_of(delegate, "done", middleware=[sa.SubAgents([talker])])
    live: list[Any] = []
    session.subscribe(live.append)
    session.send("go").result()
    later: list[Any] = []
    session.actor.log.subscribe(later.append, since=0)
    inner, kept = ([e.event.type for e in of(SubagentEvent, told)] for told in (live, later))
    assert inner.count("message_update") == len("long")
    assert kept == [kind for kind in inner if kind != "message_update"]


def said(events: list[Any]) -> list[Any]:
    """What was told, and what was said with the pieces of each part joined."""
    pieces: list[Any] = []
    for event in events:
        inner = event.event if isinstance(event, SubagentEvent) else event
        if not isinstance(inner, MessageUpdate):
            pieces.append((event.type, inner.type))
            continue
        delta = inner.delta
        about = (event.type, type(delta), getattr(delta, "index", 0))
        if pieces and pieces[-1][0] == about:
            pieces[-1] = (about, pieces[-1][1] + delta.text)
        else:
            pieces.append((about, delta.text))
    return pieces


def test_a_run_that_was_quicker_than_its_reader_is_read_with_all_that_was_said() -> None:
    talking = sa.Agent(sa.ScriptedModel(["Let me talk."], chunk=1))
    talker = sa.CompiledSubAgent("talker", "Talks.", talking)
    thought = sa.Message("assistant", [sa.ThinkingPart("Hm …"), sa.TextPart("Done.")])
    delegate = call("task", instructions="Talk.", subagent_type="talker")
    session = session_of(["I ask.", delegate], thought, middleware=[sa.SubAgents([talker])])
    early: list[Any] = []
    session.subscribe(early.append)
    sent = session.send("go")
    sent.result()
    late = list(sent)
    numbers = [event.seq for event in late]
    assert numbers == sorted(set(numbers))
    assert said(late) == said([event for event in early if event.run_id == sent.id])
    assert "".join(sent.text_stream()) == "I ask.Done."


def test_a_reader_who_comes_in_between_reads_each_piece_once() -> None:
    gate = Gate()
    session = session_of(["One.", call("hold")], "Two.", tools=[gate.tool])
    sent = session.send("go")
    gate.wait()
    reading = iter(sent)
    first = next(reading)
    gate.open()
    events = [first, *reading]
    assert [e.delta.text for e in of(MessageUpdate, events)] == ["One.", "{}", "Two."]


SPEAKERS = ["", "a", "b"]


@st.composite
def told_events(draw: st.DrawFn) -> list[Any]:
    """What a session and two sub-agents say at the same time, in pieces, and what comes between."""
    waiting: dict[str, list[Any]] = {}
    for speaker in SPEAKERS:
        waiting[speaker] = []
        for number in range(draw(st.integers(0, 3))):
            kinds = draw(st.lists(st.sampled_from([sa.TextPart, sa.ThinkingPart]), max_size=2))
            parts = [kind(f"{speaker}{number}{place}") for place, kind in enumerate(kinds)]
            waiting[speaker].append(MessageStart(message=sa.Message("assistant")))
            for part in parts:
                delta = sa.TextDelta if isinstance(part, sa.TextPart) else sa.ThinkingDelta
                size = draw(st.integers(1, len(part.text)))
                for piece in (part.text[:size], part.text[size:]):
                    waiting[speaker] += [MessageUpdate(delta=delta(piece))] if piece else []
            waiting[speaker].append(MessageEnd(message=sa.Message("assistant", parts)))
    events: list[Any] = []
    while left := [speaker for speaker in SPEAKERS if waiting[speaker]]:
        if draw(st.integers(0, 3)) == 0:
            events.append(DisplayMessageSaved(display_message={}))
        speaker = draw(st.sampled_from(left))
        event = waiting[speaker].pop(0)
        if speaker:
            event = SubagentEvent(sub_agent_id=speaker, tool_call_id="c", event=event)
        events.append(event)
    return [replace(event, seq=seq) for seq, event in enumerate(events, 1)]


@given(told_events(), st.data())
def test_whenever_a_reader_comes_it_reads_all_that_was_said_in_ascending_numbers(
    events: list[Any], data: st.DataObject
) -> None:
    log = EventLog()
    arrives = data.draw(st.integers(0, len(events)))
    for event in events[:arrives]:
        log.push(event)
    heard = [*spoken(log.kept()), *events[arrives:]]
    numbers = [event.seq for event in heard]
    assert numbers == sorted(set(numbers))
    for speaker in SPEAKERS:
        of_one = [
            inner
            for event in heard
            for inner in [getattr(event, "event", event)]
            if getattr(event, "sub_agent_id", "") == speaker
        ]
        pieces = "".join(event.delta.text for event in of(MessageUpdate, of_one))
        parts = [part for event in of(MessageEnd, of_one) for part in event.message.parts]
        assert pieces == "".join(part.text for part in parts)
        kinds = [event.type for event in of_one if event.type != "display_message_saved"]
        assert re.fullmatch("((start )(update )*(end ))*", "".join(f"{k[8:]} " for k in kinds))


def test_a_message_that_came_in_fewer_pieces_than_it_has_parts_leaves_out_the_first() -> None:
    parts = [sa.ThinkingPart("Hm"), sa.TextPart("Hello")]
    log = EventLog()
    for seq, event in enumerate(
        [
            MessageStart(message=sa.Message("assistant")),
            MessageUpdate(delta=sa.TextDelta("Hello")),
            MessageEnd(message=sa.Message("assistant", parts)),
        ],
        1,
    ):
        log.push(replace(event, seq=seq))
    told = [event.delta for event in of(MessageUpdate, spoken(log.kept()))]
    assert told == [sa.TextDelta("Hello")]
