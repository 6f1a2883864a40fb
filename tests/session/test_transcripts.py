"""The rows that people see: when they are saved, and what happens when they cannot be."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import Debug, DisplayMessageSaved, DisplayMessageUpdated, StatusChanged
from sagents_nb.runtime.thread import runtime
from sagents_nb.session import journal as journaling
from sagents_nb.session import transcript as transcribing
from sagents_nb.store import ConversationStore
from sagents_nb.store import store as storing
from sagents_nb.store.database.connection import StoreConnection
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.middleware.delegating import helper, parent_of, task
from tests.session.stored import Disk, folded
from tests.talking import agent_of, call, of, types, until


@sa.tool
def look(where: str) -> str:
    """Look there."""
    if where == "nowhere":
        raise ValueError("there is nothing")
    return f"{where} is fine"


def stored(store: ConversationStore, *turns: Any, gated: bool = False, **around: Any) -> sa.Session:
    agent = agent_of(*turns, tools=[look], interrupt_on={"look": gated})
    return sa.Session(agent, "c1", store=store, **around)


def rows(store: ConversationStore) -> list[tuple[str, str, str]]:
    found = store.load_display_messages("c1")
    return [(row.message_type, row.content_type, row.status) for row in found]


@pytest.mark.spec("S1.11.5", "S1.12.3")
def test_a_row_is_saved_before_its_message_is_told_and_a_status_before_idle(
    store: ConversationStore,
) -> None:
    session = stored(store, ["Let me see.", call("look", where="here")], "Fine.")
    events: list[Any] = []
    session.subscribe(events.append)
    session.send("go").result()
    told = types(events)
    ends = [i for i, kind in enumerate(told) if kind == "message_end"]
    saved = [i for i, kind in enumerate(told) if kind == "display_message_saved"]
    per_message = [0, *ends]
    counts = [
        sum(1 for i in saved if before < i < end)
        for before, end in zip(per_message, ends, strict=False)
    ]
    assert counts == [1, 2, 1, 1]  # each message's rows, and only they, come right before its end
    assert told[-1] == "status_changed"
    assert max(saved) < len(told) - 1
    assert rows(store) == [
        ("user", "text", "completed"),
        ("assistant", "text", "completed"),
        ("assistant", "tool_call", "completed"),
        ("tool", "tool_result", "completed"),
        ("assistant", "text", "completed"),
    ]
    sequences = [row.sequence for row in store.load_display_messages("c1")]
    assert sequences == [0, 0, 1, 0, 0]


def test_of_calls_with_one_id_the_first_is_run_and_the_others_are_failed_from_the_beginning(
    store: ConversationStore,
) -> None:
    calls = [call("look", "c", where=where) for where in ("here", "there", "nowhere")]
    session = stored(store, calls, "Fine.")
    changed: list[Any] = []

    def hear(event: Any) -> None:
        if isinstance(event, DisplayMessageUpdated):
            changed.append((event.display_message["sequence"], event.display_message["status"]))

    session.subscribe(hear)
    session.send("go").result()
    assert changed == [(0, "executing"), (0, "completed")]
    shown = [row for row in store.load_display_messages("c1") if row.content_type == "tool_call"]
    assert [row.status for row in shown] == ["completed", "failed", "failed"]


def test_the_answer_to_the_first_of_calls_with_one_id_takes_the_place_of_what_stood_for_it(
    store: ConversationStore,
) -> None:
    asking = [
        call("ask_user", "c", question=question, response_type="freeform")
        for question in ("Tea?", "Milk?")
    ]
    agent = agent_of(asking, "Fine.", middleware=[sa.AskUser()])
    session = sa.Session(agent, "c1", store=store)
    session.send("go").result()
    session.resume(sa.Respond(answer="Yes")).result()
    found = store.load_display_messages("c1")
    results = [row.content for row in found if row.content_type == "tool_result"]
    assert "is_interrupt" not in results[0]
    assert "Yes" in results[0]["content"]
    assert [row.status for row in found if row.content_type == "tool_call"] == [
        "completed",
        "failed",
    ]


@pytest.mark.spec("S1.11.5", "S1.12.5")
def test_a_call_is_pending_then_executing_then_what_became_of_it(store: ConversationStore) -> None:
    session = stored(store, [call("look", where="here"), call("look", "c2", where="nowhere")], "")
    seen: list[tuple[str, str]] = []

    def hear(event: Any) -> None:
        if isinstance(event, DisplayMessageSaved | DisplayMessageUpdated):
            row = event.display_message
            if row["content_type"] == "tool_call":
                seen.append((row["content"]["call_id"], row["status"]))

    session.subscribe(hear)
    session.send("go").result()
    assert [s for i, s in seen if i == "c1"] == ["pending", "executing", "completed"]
    assert [s for i, s in seen if i == "c2"] == ["pending", "executing", "failed"]


@pytest.mark.spec("S1.11.6", "S1.12.5")
def test_a_call_that_waits_is_interrupted_before_the_status_says_so_and_keeps_the_decision(
    store: ConversationStore,
) -> None:
    calls = [call("look", where="here"), call("look", "c2", where="there")]
    session = stored(store, calls, "done", gated=True)
    events: list[Any] = []
    session.subscribe(events.append)
    session.send("go").result()
    told = types(events)
    last_row = len(told) - 1 - told[::-1].index("display_message_updated")
    assert told[-1] == "status_changed"
    assert last_row < len(told) - 1
    assert rows(store)[-2:] == [("assistant", "tool_call", "interrupted")] * 2
    run = session.resume([sa.Approve(), sa.Reject("no")])
    run.result()
    first, second, result, *_ = store.load_display_messages("c1")[1:]
    assert (first.status, first.metadata["hitl_decision"]) == ("completed", "approved")
    assert (second.status, second.metadata["hitl_decision"]) == ("failed", "rejected")
    assert result.content_type == "tool_result"


@pytest.mark.spec("S1.4.5")
def test_an_answer_takes_the_place_of_what_stood_for_it(store: ConversationStore) -> None:
    question = call(
        "ask_user",
        question="Which?",
        response_type="single_select",
        options=[{"label": "A", "value": "a"}, {"label": "B", "value": "b"}],
    )
    agent = agent_of(question, "done", middleware=[sa.AskUser()])
    session = sa.Session(agent, "c1", store=store)
    session.send("go").result()
    session.resume(sa.Respond(answer={"selected": ["b"]})).result()
    results = [r for r in store.load_display_messages("c1") if r.content_type == "tool_result"]
    assert len(results) == 1
    assert "B" in results[0].content["content"]
    asked = next(r for r in store.load_display_messages("c1") if r.content_type == "tool_call")
    assert asked.metadata["hitl_decision"] == "answered"
    assert not results[0].content.get("is_interrupt")


def test_an_answer_takes_the_place_of_what_stood_for_it_also_after_a_crash(
    disk: Disk, store: ConversationStore
) -> None:
    question = call("ask_user", question="Why?", response_type="freeform")
    session = sa.Session(agent_of(question, middleware=[sa.AskUser()]), "c1", store=store)
    session.send("go").result()
    again = disk.crashed(session, "done", middleware=[sa.AskUser()])
    again.resume(sa.Respond("So.")).result()
    shown = disk.stores[-1].load_display_messages("c1")
    [result] = [row.content for row in shown if row.content_type == "tool_result"]
    assert "So." in result["content"]
    assert not result.get("is_interrupt")
    assert ("user", "So.") in [(row.message_type, row.content.get("text")) for row in shown]


@pytest.mark.parametrize("how", ["another message", "cancelled", "a crash"])
def test_a_question_that_nobody_can_answer_any_more_is_a_failed_call(
    how: str, disk: Disk, store: ConversationStore
) -> None:
    asking = helper(call("look", where="here"), "seen", tools=[look], interrupt_on={"look": True})
    session = sa.Session(parent_of(task("t1"), "on", subagents=[asking]), "c1", store=store)
    assert session.send("go").result().status == "interrupted"
    if how == "a crash":
        session = disk.crashed(session, agent=parent_of("on", subagents=[asking]))
        session.retry().result()
    elif how == "cancelled":
        session.cancel()
        session.send("on?").result()
    else:
        session.send("Never mind.").result()
    shown = disk.stores[-1].load_display_messages("c1")
    [asked] = [row for row in shown if row.content_type == "tool_call"]
    [result] = [row.content for row in shown if row.content_type == "tool_result"]
    status, why = {
        "a crash": ("failed", "This call was interrupted and its work was lost."),
        "cancelled": ("cancelled", "Cancelled: a person stopped the run."),
    }.get(how, ("cancelled", "Cancelled: another message came."))
    assert asked.status == status
    assert result["content"] == why
    assert not result.get("is_interrupt")
    for frame in (session.to_frame("tool_calls"), disk.stores[-1].to_frame("tool_calls")):
        assert frame.status.tolist() == [status]


class FailingModel(sa.ChatModel):
    """Says something, or nothing, and fails."""

    name = "failing"

    def __init__(self, said: str, kind: str) -> None:
        self.said = said
        self.kind = kind

    async def stream(self, request: Any) -> Any:
        if self.said:
            yield self.said
        raise sa.ModelError("it failed", kind=self.kind)


def failing(store: ConversationStore, said: str, kind: str) -> sa.Session:
    agent = sa.Agent(FailingModel(said, kind), replace_default_middleware=True)
    return sa.Session(agent, "c1", store=store)


@pytest.mark.spec("S1.11.6", "S1.12.11")
def test_a_failure_is_a_row_of_its_own_unless_the_text_that_arrived_is_marked(
    store: ConversationStore,
) -> None:
    session = failing(store, "", "context_window")
    with pytest.raises(sa.ModelError):
        session.send("go").result()
    row = store.load_display_messages("c1")[-1]
    assert (row.message_type, row.content_type) == ("system", "error")
    assert row.content["error_type"] == "context_window"


@pytest.mark.spec("S1.12.10", "S1.12.11")
def test_what_arrived_of_a_cut_stream_is_kept_and_marked_and_no_apology_is_added(
    store: ConversationStore,
) -> None:
    session = failing(store, "It is", "cut_stream")
    with pytest.raises(sa.ModelError):
        session.send("go").result()
    row = store.load_display_messages("c1")[-1]
    assert (row.content_type, row.content["text"]) == ("text", "It is")
    assert row.content["stop_reason"] == "stream_error"


@pytest.mark.spec("S1.12.11")
def test_too_many_runs_are_an_error_row_with_that_type(store: ConversationStore) -> None:
    turns = [call("look", f"c{n}", where="here") for n in range(3)]
    session = sa.Session(agent_of(*turns, tools=[look], max_runs=2), "c1", store=store)
    with pytest.raises(sa.MaxRunsExceeded):
        session.send("go").result()
    assert store.load_display_messages("c1")[-1].content["error_type"] == "exceeded_max_runs"


@pytest.mark.spec("S1.12.11")
def test_a_cancelled_run_leaves_a_notification_that_is_no_message(store: ConversationStore) -> None:
    session = stored(store, call("look", where="here"), gated=True)

    def stop(event: Any) -> None:
        if event.type == "tool_execution_start":
            session.cancel()

    session.subscribe(stop)
    session.send("go").result()
    run = session.approve()
    assert run is not None
    assert run.result().status == "cancelled"
    row = store.load_display_messages("c1")[-1]
    assert (row.message_type, row.content_type) == ("system", "notification")
    assert row.content["stop_reason"] == "cancelled"
    assert all(m.role != "system" for m in session.messages)


class Transcript:
    """Somebody's own, in plain lists, with plain functions; fails while ``broken``."""

    def __init__(self) -> None:
        self.broken = False
        self.calls: list[tuple[Any, ...]] = []

    def _take(self, *what: Any) -> Any:
        if self.broken:
            raise OSError("no room")
        self.calls.append(what)

    def save_message(self, scope: Any, conversation_id: str, message: sa.Message) -> Any:
        self._take("message", scope, conversation_id, message.role, message.text)
        return [{"text": message.text}]

    def save_row(self, scope: Any, conversation_id: str, row: Any) -> Any:
        self._take("row", scope, conversation_id, row.content_type)

    def update_tool_status(self, scope: Any, conversation_id: str, *what: Any) -> Any:
        self._take("status", scope, conversation_id, *what[:2])

    def record_decision(self, scope: Any, conversation_id: str, *what: Any) -> Any:
        self._take("decision", scope, conversation_id, *what)

    def resolve_tool_result(self, scope: Any, conversation_id: str, *what: Any) -> Any:
        self._take("resolved", scope, conversation_id, *what)


def kept(transcript: Transcript, *turns: Any, **around: Any) -> sa.Session:
    agent = agent_of(*turns, tools=[look])
    return sa.Session(agent, "c1", display_persistence=transcript, **around)


@pytest.mark.spec("S1.12.3", "S1.12.7")
def test_anybody_may_keep_the_transcript_and_is_told_the_scope_first() -> None:
    transcript, scope = Transcript(), sa.Scope(user="ann")
    session = kept(transcript, call("look", where="here"), "fine", scope=scope)
    session.send("go").result()
    assert transcript.calls == [
        ("message", scope, "c1", "user", "go"),
        ("message", scope, "c1", "assistant", ""),
        ("status", scope, "c1", "c1", "executing"),
        ("status", scope, "c1", "c1", "completed"),
        ("message", scope, "c1", "tool", ""),
        ("message", scope, "c1", "assistant", "fine"),
    ]
    assert "ann" not in str(session.export_state())


class Told(Transcript):
    """Keeps the state too; ``log`` tells in one line what was kept and which status came."""

    def __init__(self, *turns: Any, gated: bool = False) -> None:
        super().__init__()
        self.log: list[str] = []
        agent = agent_of(*turns, tools=[look], interrupt_on={"look": gated})
        self.session = sa.Session(agent, "c1", display_persistence=self, agent_persistence=self)
        self.session.subscribe(self._hear)

    def _take(self, kind: str, *what: Any) -> None:
        super()._take(kind, *what)
        if kind in ("row", "status"):
            self.log.append(f"{kind} {what[-1]}")

    def save_state(self, scope: Any, conversation_id: str, exported: Any, context: str) -> None:
        self.log.append(context)

    def load_state(self, scope: Any, conversation_id: str) -> None:
        return None

    def _hear(self, event: Any) -> None:
        if event.type == "interrupt":
            self.log.append(event.type)
        elif event.type == "status_changed":
            waits = self.session.interrupt is not None
            self.log.append(f"{event.status}, {event.reason}, {'asking' if waits else 'done'}")


@pytest.mark.spec("S1.11.6")
def test_what_waits_is_told_marked_and_kept_before_the_status_says_that_it_waits() -> None:
    told = Told([call("look", where="here"), call("look", "c2", where="there")], gated=True)
    told.session.send("go").result()
    *earlier, status = told.log
    assert status == "interrupted, None, asking"
    assert earlier == [
        *("running, None, done", "interrupt"),
        *("status interrupted", "status interrupted", "on_interrupt"),
    ]


@pytest.mark.spec("S1.11.6")
@pytest.mark.parametrize("limit", [False, True])
def test_a_failure_has_its_row_and_its_state_before_the_status_says_why(limit: bool) -> None:
    told = Told(call("look", where="here"), *([] if limit else [ConnectionError("cable")]))
    with pytest.raises(sa.AgentError) as raised:
        told.session.send("go", **({"max_runs": 1} if limit else {})).result()
    *earlier, status = told.log
    assert status == f"error, {raised.value}, done"
    # The row before the state, which the original keeps the other way round.
    assert earlier[-2:] == ["row error", "on_error"]
    assert told.session.error == str(raised.value)


@pytest.mark.spec("S1.12.2", "S1.12.3")
def test_a_transcript_that_fails_stops_nothing_is_told_and_catches_up_in_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transcript = Transcript()
    transcript.broken = True
    session = kept(transcript, "one", "two")
    events: list[Any] = []
    session.subscribe(events.append, debug=True)
    assert session.send("go").result().text == "one"
    assert "message_end" in types(events)
    assert "no room" in of(Debug, events)[0].data["problem"]
    assert "no room" in caplog.text
    transcript.broken = False
    session.send("again").result()
    assert [what[-1] for what in transcript.calls] == ["go", "one", "again", "two"]


def test_a_row_that_can_never_be_saved_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transcribing, "TRIES", 2)
    transcript = Transcript()
    keep = transcript.save_message

    def refuse_one(scope: Any, conversation_id: str, message: sa.Message) -> Any:
        if message.text == "poison":
            raise ValueError("never")
        return keep(scope, conversation_id, message)

    transcript.save_message = refuse_one  # type: ignore[method-assign]
    session = kept(transcript, "one", "two", "three")
    session.send("poison").result()
    session.send("go").result()
    session.close()
    assert [what[-1] for what in transcript.calls] == ["one", "go", "two"]


def test_a_transcript_that_hangs_holds_a_run_up_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transcribing, "PATIENCE", 0.05)
    released = asyncio.Event()

    class Hanging(Transcript):
        async def save_message(self, scope: Any, conversation_id: str, message: Any) -> Any:
            await released.wait()

    session = kept(Hanging(), "one")
    assert session.send("go").result().text == "one"
    runtime.call(released.set)


# in the transactions of the journal


def test_a_message_and_its_rows_are_in_the_store_together_or_not_at_all(
    disk: Disk, store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[Path] = []
    commit = StoreConnection.commit

    def copying(connection: StoreConnection, *given: Any) -> Any:
        outcomes = commit(connection, *given)
        if connection is store.database.connection:
            copies.append(disk.snapshot(store))
        return outcomes

    session = stored(store, [call("look", where="here")], "Fine.")
    monkeypatch.setattr(StoreConnection, "commit", copying)
    session.send("go").result()
    monkeypatch.undo()
    seen = []
    for path in copies:
        there = disk.store(path)
        said = [m for m in folded(there).state.messages if m.text or m.tool_calls or m.tool_results]
        shown = there.load_display_messages("c1")
        assert [m.role for m in said] == [row.message_type for row in shown]
        seen.append([row.status for row in shown if row.content_type == "tool_call"])
    assert seen[-1] == ["completed"]


def test_rows_cost_no_transaction_of_their_own(
    store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaling, "LAG", 1e9)
    session = stored(store, [call("look", where="here")], "Fine.", "Again.")
    session.send("go").result()
    appended, submit = [], Database.submit

    def counted(database: Database, work: Any, *more: Any, **options: Any) -> Any:
        appended.append(work)
        return submit(database, work, *more, **options)

    monkeypatch.setattr(Database, "submit", counted)
    session.send("and?").result()
    assert len(appended) == 2
    assert [row.message_type for row in store.load_display_messages("c1")][-2:] == [
        "user", "assistant",
    ]  # fmt: skip


def test_a_row_that_comes_when_nothing_else_does_is_saved_soon(
    store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaling, "LAG", 0.01)
    calls = [call("look", where="here"), call("look", "c2", where="there")]
    session = stored(store, calls, "done", gated=True)
    session.send("go").result()
    session.approve("c1")

    def decided() -> bool:
        first = store.load_display_messages("c1")[1]
        return first.metadata.get("hitl_decision") == "approved"

    until(decided)


def test_a_row_that_cannot_be_saved_takes_nothing_else_with_it(
    store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcribing, "TRIES", 2)
    rows_of = storing.rows_of

    def poisoned(message: sa.Message) -> Any:
        if message.text == "poison":
            raise ValueError("never")
        return rows_of(message)

    monkeypatch.setattr(storing, "rows_of", poisoned)
    session = stored(store, "one", "two")
    events: list[Any] = []
    session.subscribe(events.append, debug=True)
    assert session.send("poison").result().text == "one"
    assert session.send("go").result().text == "two"
    session.close()
    shown = [row.content["text"] for row in store.load_display_messages("c1")]
    assert shown == ["one", "go", "two"]
    assert [m.text for m in folded(store).state.messages] == ["poison", "one", "go", "two"]
    assert "never" in of(Debug, events)[0].data["problem"]


def test_a_session_that_woke_to_another_conversation_says_that_it_was_replaced(
    store: ConversationStore,
) -> None:
    session = stored(store, "one", "three", inactivity_timeout=None)
    session.send("go").result()
    events: list[Any] = []
    session.subscribe(events.append)
    runtime.call(session.actor.rest, "inactivity")
    until(lambda: "closed" in [event.status for event in of(StatusChanged, events)])
    other = sa.Session.open("c1", agent=agent_of("two"), store=store)
    other.send("elsewhere").result()
    other.close()
    session.send("and?").result()
    assert "replaced" in [event.reason for event in of(StatusChanged, events)]
    shown = [row.content["text"] for row in store.load_display_messages("c1")]
    assert shown == ["go", "one", "elsewhere", "two", "and?", "three"]


def test_a_session_that_woke_keeps_its_rows(store: ConversationStore) -> None:
    session = stored(store, "one", "two", inactivity_timeout=None)
    session.send("go").result()
    runtime.call(session.actor.rest, "inactivity")
    session.send("and?").result()
    session.close()
    shown = [row.content["text"] for row in store.load_display_messages("c1")]
    assert shown == ["go", "one", "and?", "two"]


def test_a_call_that_was_given_up_is_not_shown_as_one_that_waits(
    store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = stored(store, call("look", where="here"), "Fine.")
    append, fails = Journal.append, [False, True]

    def failing(journal: Journal, *what: Any) -> Any:
        if fails and fails.pop(0):
            return journal.database.submit(fail)
        return append(journal, *what)

    def fail(connection: Any) -> None:
        raise sa.StoreError("The disk is full.")

    monkeypatch.setattr(Journal, "append", failing)
    with pytest.raises(sa.StoreError):
        session.send("go").result()
    session.send("go on").result()
    assert session.messages[2].tool_results[0].text == "Cancelled: the run failed."
    assert rows(store) == [
        ("user", "text", "completed"),
        ("assistant", "tool_call", "cancelled"),
        ("tool", "tool_result", "completed"),
        ("system", "error", "completed"),
        ("user", "text", "completed"),
        ("assistant", "text", "completed"),
    ]
