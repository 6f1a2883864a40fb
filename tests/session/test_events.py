from __future__ import annotations

import gc
import logging
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.events import (
    AgentEnd,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    SubagentEvent,
    TurnStart,
)
from sagents_nb.models.replay import deltas_of
from sagents_nb.runtime import foreign
from sagents_nb.runtime.event_stream import EventStream
from sagents_nb.session import event_log
from sagents_nb.session.event_log import EventLog
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


@pytest.mark.spec("R4.1.11")
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


def test_what_a_store_says_between_the_pieces_and_the_end_of_a_message_has_its_own_number() -> None:
    store = sa.ConversationStore("sqlite://")
    store.create_conversation(id="c1")
    thought = sa.Message("assistant", [sa.ThinkingPart("Hm …"), sa.TextPart("Done.")])
    with sa.Session.open("c1", store=store, agent=agent_of(["I ask.", call("look")], thought)) as s:
        early: list[Any] = []
        s.subscribe(early.append)
        sent = s.send("go")
        sent.result()
        late = list(sent)
    assert not ungrammatical(late)
    assert "display_message_saved" in types(late)
    by_number = {event.seq: event for event in early}
    assert len({event.seq for event in late}) == len(late)
    for event in late:
        assert event.type == by_number[event.seq].type
        assert event.ts == by_number[event.seq].ts


def test_of_a_message_that_never_came_to_its_end_the_next_one_says_nothing() -> None:
    log = EventLog()
    log.push(MessageStart(seq=1, message=sa.Message("assistant")))
    log.push(MessageUpdate(seq=2, delta=sa.TextDelta("Gone.")))
    log.push(MessageStart(seq=3, message=sa.Message("assistant")))
    log.push(MessageUpdate(seq=4, delta=sa.TextDelta("Said.")))
    log.push(MessageEnd(seq=5, message=sa.Message.assistant("Said.")))
    assert [(event.seq, event.type) for event in log.spoken(1)] == [
        (3, "message_start"),
        (4, "message_update"),
        (5, "message_end"),
    ]


class Speaker:
    """The session's model, or that of a sub-agent: it says one message after the other."""

    def __init__(self, way: tuple[str, ...]) -> None:
        self.way = way
        self.left: list[sa.events.Delta] | None = None  # while it speaks
        self.message = sa.Message("assistant")
        self.inner = 0  # how many events there were in each sub-agent

    def event(self, seq: int, kind: type[Event], **fields: Any) -> Event:
        self.inner += 1
        event = kind(seq=self.inner if self.way else seq, run_id="r", **fields)
        for id in reversed(self.way):
            event = SubagentEvent(
                seq=seq, run_id="r", tool_call_id="t", sub_agent_id=id, event=event
            )
        return event


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """What a run may tell: several speak at once, and other things happen in between.

    Each letter is said once in all, so that one that is told twice is seen.
    """
    letters = map(chr, range(0x4E00, 0x9FFF))

    def text() -> str:
        return "".join(next(letters) for _ in range(draw(st.integers(1, 3))))

    def part() -> Any:
        match draw(st.integers(0, 2)):
            case 0:
                return sa.TextPart(text())
            case 1:
                return sa.ThinkingPart(text())
        return call("look", at=text())

    speakers = [Speaker(()), Speaker(("a",)), Speaker(("b",)), Speaker(("a", "c"))]
    told: list[Event] = []
    for number in draw(st.lists(st.integers(0, len(speakers)), max_size=40)):
        seq = len(told) + 1
        if number == len(speakers):
            told.append(TurnStart(seq=seq, run_id="r"))
            continue
        speaker = speakers[number]
        if speaker.left is None:
            parts = [part() for _ in range(draw(st.integers(0, 3)))]
            speaker.message = sa.Message("assistant", parts)
            pieces = list(deltas_of(speaker.message, tuple))
            # Some models tell nothing before the end, or not all.
            speaker.left = pieces[: draw(st.sampled_from([0, 1, len(pieces), len(pieces)]))]
            event = speaker.event(seq, MessageStart, message=sa.Message("assistant"))
        elif speaker.left:
            event = speaker.event(seq, MessageUpdate, delta=speaker.left.pop(0))
        else:
            speaker.left = None
            event = speaker.event(seq, MessageEnd, message=speaker.message)
        told.append(event)
    return told


def innermost(event: Any) -> tuple[tuple[str, ...], Any]:
    way = ()
    while isinstance(event, SubagentEvent):
        way, event = (*way, event.sub_agent_id), event.event
    return way, event


def pieces_in(events: list[Any]) -> dict[tuple[str, ...], str]:
    """All that each speaker said in pieces."""
    said: dict[tuple[str, ...], str] = {}
    for way, event in map(innermost, events):
        if isinstance(event, MessageUpdate):
            said[way] = said.get(way, "") + event.delta.text
    return said


def without_pieces(events: list[Any]) -> list[Any]:
    return [event for event in events if not isinstance(innermost(event)[1], MessageUpdate)]


def read_late(log: EventLog, since: int = 0) -> list[Any]:
    """What somebody reads of the run who comes now, and has read up to ``since``."""
    stream = EventStream()
    log.follow(stream, since, "r")
    stream.close()
    return list(stream.blocking(lambda arrival: None))


@given(histories())
def test_however_late_a_run_is_read_its_numbers_ascend_and_one_can_go_on_after_each(
    told: list[Any],
) -> None:
    log = EventLog()
    for event in told:
        log.push(event)
    late = read_late(log)
    numbers = [event.seq for event in late]
    assert numbers == sorted(set(numbers))
    for way in {innermost(event)[0] for event in late}:
        inner = [within.seq for whose, within in map(innermost, late) if whose == way]
        assert inner == sorted(set(inner))
    for place, event in enumerate(late, start=1):
        assert read_late(log, event.seq) == late[place:]
    # Who heard the first of them when they came goes on after any of these, too.
    for since in range(len(told) + 1):
        heard, rest = told[:since], read_late(log, since)
        assert without_pieces(rest) == without_pieces(told[since:])
        letters = [*"".join([*pieces_in(heard).values(), *pieces_in(rest).values()])]
        chinese = [letter for letter in letters if letter >= "\u4e00"]
        assert len(chinese) == len(set(chinese))


@given(histories())
def test_a_run_that_is_read_late_says_all_that_was_told_in_pieces(told: list[Any]) -> None:
    log = EventLog()
    for event in told:
        log.push(event)
        late = pieces_in(read_late(log))
        for way, text in pieces_in(told[: event.seq]).items():
            assert set(text) <= set(late.get(way, ""))
