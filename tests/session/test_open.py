"""A conversation that is opened again, where it was left: by a close or by a crash."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from typing import Any, ClassVar

import pytest

import sagents_nb as sa
from sagents_nb.errors import Owned, StaleOwner
from sagents_nb.events import AgentShutdown, StatusChanged, TodosUpdated
from sagents_nb.serialization import VERSION
from sagents_nb.store import ConversationStore
from sagents_nb.store.entries import Entry
from sagents_nb.store.journal import Journal
from tests.middleware.delegating import helper, parent_of, task
from tests.session.gates import Gate
from tests.session.stored import Disk, folded, rows_of
from tests.talking import (
    PATIENCE,
    agent_of,
    call,
    in_threads,
    of,
    results,
    roles,
    unanswered,
    until,
)

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    RAN.clear()


@sa.tool
def write(path: str) -> str:
    """Write."""
    RAN.append(path)
    return f"wrote {path}"


GATED: dict[str, Any] = {"tools": [write], "interrupt_on": {"write": True}}


def session_in(store: ConversationStore, *turns: Any, **options: Any) -> sa.Session:
    return sa.Session(agent_of(*turns, **options), id="c1", store=store)


def opened(store: ConversationStore, *turns: Any, **options: Any) -> sa.Session:
    return sa.Session.open("c1", agent=agent_of(*turns, **options), store=store)


def reopened(session: sa.Session, *turns: Any, **options: Any) -> sa.Session:
    """Closed, and opened again with another agent."""
    store = session.options.store
    session.close()
    return opened(store, *turns, **options)


# what is there again


def test_a_conversation_goes_on_where_it_was_left(store: ConversationStore) -> None:
    def plan() -> sa.ToolOutput:
        update = {"todos": [sa.Todo("a")], "metadata": {"conversation_title": "Trip"}}
        return sa.ToolOutput("ok", update=update)

    usage = sa.Usage(3, 4)
    first = session_in(
        store, call("plan"), sa.Message.assistant("planned", usage=usage), tools=[plan]
    )
    first.send("go").result()
    again = reopened(first, "more")
    assert (again.state, again.status) == (first.state, "idle")
    assert again.state.get_metadata("conversation_title") == "Trip"
    assert again.usage == first.usage != sa.Usage()
    assert again.initial_messages == first.messages
    assert again.send("next").result().text == "more"
    assert [m.text for m in reopened(again).messages][-2:] == ["next", "more"]


def test_a_session_can_begin_in_a_store_with_a_state(store: ConversationStore) -> None:
    state = sa.State(messages=[sa.Message.user("hi")], metadata={"k": 1})
    session = sa.Session(agent_of("hello"), "c1", state, store=store)
    assert folded(store).state == state
    assert session.retry().result().text == "hello"


def test_a_state_that_was_only_saved_is_where_its_session_begins(store: ConversationStore) -> None:
    state = sa.State(messages=[sa.Message.user("hi"), sa.Message.assistant("hello")])
    store.create_conversation(id="c1")
    store.save_agent_state("c1", state.export())
    assert opened(store).state == state
    assert folded(store).state == state


def test_metadata_that_are_no_json_come_back_by_their_schema(store: ConversationStore) -> None:
    class Sets(sa.Middleware):
        state_schema: ClassVar = {"seen": (sorted, set)}

        def before_run(self, state: sa.State, ctx: Any) -> sa.State:
            return state.put_metadata("seen", state.get_metadata("seen", set()) | {"b", "a"})

    session = session_in(store)
    session.replace(agent=agent_of("x", middleware=[Sets()]))
    session.send("go").result()
    assert reopened(session, middleware=[Sets()]).state.metadata == {"seen": {"a", "b"}}


# who may


def test_a_conversation_that_is_there_is_not_made_again(store: ConversationStore) -> None:
    session_in(store).close()
    with pytest.raises(sa.ConfigurationError, match=r"Session\.open"):
        session_in(store)


def test_what_is_not_there_or_somebody_elses_is_not_found(store: ConversationStore) -> None:
    from sagents_nb.store import Scope

    alice, bob = Scope(user="alice"), Scope(user="bob")
    sa.Session(agent_of(), id="c1", store=store, scope=alice).close()
    for id, scope in (("c2", alice), ("c1", bob), ("c1", None)):
        with pytest.raises(sa.NotFound):
            sa.Session.open(id, agent=agent_of(), store=store, scope=scope)
    assert sa.Session.open("c1", agent=agent_of(), store=store, scope=alice).status == "idle"


def test_start_opens_what_is_there_and_makes_what_is_not(store: ConversationStore) -> None:
    first = sa.sessions.start(agent_of("hello"), "started", store=store)
    assert sa.sessions.start(agent_of(), "started", store=store) is first
    first.send("hi").result()
    sa.sessions.stop("started")
    again = sa.sessions.start(agent_of(), "started", store=store)
    assert again is not first
    assert [m.text for m in again.messages] == ["hi", "hello"]
    sa.sessions.stop("started")


def test_who_opens_what_is_live_elsewhere_is_told_where_and_how_to_take_it(
    disk: Disk, store: ConversationStore
) -> None:
    session = session_in(store)
    elsewhere = disk.store(store.database.name)
    [error] = in_threads(1, lambda _: opened(elsewhere))  # as in another process
    assert isinstance(error, Owned)
    assert "take_over=True" in str(error)
    assert error.pid
    session.close()
    assert opened(elsewhere).status == "idle"


def test_who_lost_the_conversation_closes_with_the_reason_and_runs_no_further_tool(
    disk: Disk, store: ConversationStore, gate: Gate
) -> None:
    turns = [call("hold"), call("write", path="/late"), "done"]
    session = session_in(store, *turns, tools=[gate.tool, write])
    heard: list[Any] = []
    session.subscribe(heard.append)
    run = session.send("go")
    gate.wait()
    taken = sa.Session.open(
        "c1", agent=agent_of("mine"), store=disk.store(store.database.name), take_over=True
    )
    gate.open()
    with pytest.raises(StaleOwner):
        run.result()
    assert (session.status, RAN) == ("closed", [])
    session.close()  # until that is told
    assert "taken over" in of(AgentShutdown, heard)[0].reason
    with pytest.raises(sa.NotRunning):
        session.send("hello?")
    assert taken.interrupt is not None
    assert taken.resume(sa.Respond("ran")).result().text == "mine"


def test_a_session_that_is_idle_finds_out_that_it_lost_the_conversation(
    disk: Disk, store: ConversationStore
) -> None:
    session = session_in(store, "x")
    sa.Session.open("c1", agent=agent_of(), store=disk.store(store.database.name), take_over=True)
    with pytest.raises(StaleOwner):
        session.send("hello?")
    assert session.status == "closed"


# what waits


@pytest.mark.spec("S1.10.5")
def test_an_approval_waits_in_an_opened_session_and_can_be_answered(
    store: ConversationStore,
) -> None:
    session = session_in(store, call("write", path="/a"), "done", **GATED)
    session.send("go").result()
    again = reopened(session, "done", **GATED)
    assert (again.status, again.interrupt) == ("interrupted", session.interrupt)
    request = session.interrupt.action_requests[0]  # type: ignore[union-attr]
    run = again.decide(
        {"c1": sa.Approve()},
        interrupt_id=session.interrupt.id,  # type: ignore[union-attr]
        digests={"c1": request.digest},
        by="a page that was open all the time",
    )
    assert run is not None
    assert run.result().text == "done"
    assert RAN == ["/a"]


@pytest.mark.spec("S1.10.5")
def test_a_question_waits_in_an_opened_session(disk: Disk, store: ConversationStore) -> None:
    question = call("ask_user", "q", question="Why?", response_type="freeform")
    asks: dict[str, Any] = {"middleware": [sa.AskUser()]}
    session = session_in(store, question, "thanks", **asks)
    session.send("go").result()
    again = disk.crashed(session, "thanks", **asks)
    assert (again.status, again.interrupt) == ("interrupted", session.interrupt)
    assert again.resume(sa.Respond("So.")).result().text == "thanks"
    assert "So." in results(again.state)[0]


def test_an_answer_that_was_recorded_is_not_lost_to_a_message(
    disk: Disk, store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = call("ask_user", "q", question="Why?", response_type="freeform")
    asks: dict[str, Any] = {"middleware": [sa.AskUser()]}
    session = session_in(store, question, "thanks", **asks)
    session.send("go").result()
    copies = []
    monkeypatch.setattr(
        Journal,
        "append",
        lambda j, *what, append=Journal.append: _copied(disk, append, j, what, copies),
    )
    session.resume(sa.Respond("So.")).result()
    monkeypatch.undo()
    again = sa.Session.open(
        "c1", agent=agent_of("both", **asks), store=disk.store(copies[0]), take_over=True
    )
    assert again.status == "paused"
    assert again.send("and this").result().text == "both"
    assert "So." in results(again.state)[0]
    assert [m.text for m in again.messages if m.role == "user"] == ["go", "and this"]


def _copied(disk: Disk, append: Any, journal: Any, what: Any, copies: list[Any]) -> Any:
    future = append(journal, *what)
    future.result()
    copies.append(disk.snapshot(disk.stores[0]))
    return future


def two_writes(store: ConversationStore) -> sa.Session:
    calls = [call("write", "c1", path="/a"), call("write", "c2", path="/b")]
    session = session_in(store, calls, "done", **GATED)
    session.send("go").result()
    return session


def test_decisions_that_were_made_are_not_asked_for_again(
    disk: Disk, store: ConversationStore
) -> None:
    session = two_writes(store)
    session.reject("c1", message="no")
    again = disk.crashed(session, "done", **GATED)
    assert again.status == "interrupted"
    with pytest.raises(sa.StaleApproval):
        again.approve("c1")
    assert again.approve().result().text == "done"
    assert RAN == ["/b"]
    assert "rejected" in results(again.state)[0]


@pytest.mark.spec("P4")
def test_what_was_approved_is_not_asked_or_run_again_when_the_model_fails_after_it(
    disk: Disk, store: ConversationStore
) -> None:
    for n in range(20):
        RAN.clear()
        session = sa.Session(
            agent_of(call("write", path="/a"), sa.ModelError("500"), **GATED), f"c{n}", store=store
        )
        session.send("go").result()
        with pytest.raises(sa.ModelError):
            session.approve().result()  # type: ignore[union-attr]
        again = disk.crashed(session, "done", **GATED) if n % 4 == 0 else reopened_as(session)
        assert (again.status, again.interrupt) == ("paused", None)
        assert again.retry().result().text == "done"
        assert RAN == ["/a"]


def reopened_as(session: sa.Session) -> sa.Session:
    store = session.options.store
    session.close()
    return sa.Session.open(session.id, agent=agent_of("done", **GATED), store=store)


@pytest.mark.spec("P4")
def test_a_stale_digest_of_an_earlier_owner_is_refused_for_a_call_that_looks_the_same(
    store: ConversationStore,
) -> None:
    session = session_in(store, call("write", path="/a"), "done", **GATED)
    session.send("go").result()
    old = session.interrupt
    assert old is not None
    session.reject().result()
    again = reopened(session, call("write", path="/a"), "done", **GATED)
    again.send("go").result()
    digests = {"c1": old.action_requests[0].digest}
    for interrupt_id in (old.id, again.interrupt.id):  # type: ignore[union-attr]
        with pytest.raises(sa.StaleApproval):
            again.decide({"c1": sa.Approve()}, interrupt_id=interrupt_id, digests=digests, by="x")
    assert RAN == []


def test_a_halt_waits_to_be_dismissed(disk: Disk, store: ConversationStore) -> None:
    class Halts(sa.Middleware):
        def before_model(self, state: sa.State, ctx: Any) -> sa.Interrupt:
            return sa.Interrupt("halt", message="Stop.")

    session = session_in(store, "x", middleware=[Halts()])
    session.send("go").result()
    again = disk.crashed(session, "on")
    assert (again.status, again.interrupt.type) == ("interrupted", "halt")  # type: ignore[union-attr]
    again.dismiss()
    assert again.send("go").result().text == "on"


@pytest.mark.spec("S1.10.5")
def test_what_a_sub_agent_asked_is_lost_with_its_process(
    disk: Disk, store: ConversationStore
) -> None:
    config = helper(call("write", path="/x"), "written", **GATED)
    session = sa.Session(parent_of(task("t1"), "alone", subagents=[config]), "c1", store=store)
    assert session.send("go").result().status == "interrupted"
    again = disk.crashed(session, agent=parent_of("alone", subagents=[config]))
    assert (again.status, again.interrupt) == ("paused", None), "its parent has an error to read"
    assert "its work was lost" in results(again.state)[0]
    assert again.retry().result().text == "alone"
    assert (RAN, unanswered(again.messages)) == ([], [])


def test_a_sub_agent_that_was_at_work_is_a_clear_error(
    disk: Disk, store: ConversationStore, gate: Gate
) -> None:
    config = helper(call("hold"), "held", tools=[gate.tool])
    session = sa.Session(parent_of(task("t1"), "alone", subagents=[config]), "c1", store=store)
    run = session.send("go")
    gate.wait()
    again = disk.crashed(session, agent=parent_of("alone", subagents=[config]))
    gate.open()
    run.result()
    assert (again.status, again.interrupt) == ("paused", None)
    assert again.retry().result().text == "alone"
    assert "The sub-agent was at work" in results(again.state)[0]
    assert again.messages[2].tool_results[0].is_error


# what only has to go on


def test_a_message_that_was_being_answered_waits_for_retry(
    disk: Disk, store: ConversationStore
) -> None:
    class Slow(sa.Middleware):
        async def before_model(self, state: sa.State, ctx: Any) -> None:
            reached.set()
            while not late.is_set():
                await asyncio.sleep(0.01)

    late, reached = threading.Event(), threading.Event()
    session = session_in(store, "too late", middleware=[Slow()])
    run = session.send("hi")
    assert reached.wait(PATIENCE)
    again = disk.crashed(session, "hello")
    late.set()
    run.result()
    assert (again.status, [m.text for m in again.messages]) == ("paused", ["hi"])
    assert again.retry().result().text == "hello"
    assert again.status == "idle"


def test_a_first_message_that_had_not_begun_is_what_a_retry_begins_with(
    disk: Disk, store: ConversationStore
) -> None:
    class Slow(sa.Middleware):
        async def before_run(self, state: sa.State, ctx: Any) -> sa.State:
            reached.set()
            while not late.is_set():
                await asyncio.sleep(0.01)
            return state

    late, reached = threading.Event(), threading.Event()
    session = session_in(store, "too late", middleware=[Slow()])
    session.send("hi")
    assert reached.wait(PATIENCE)
    again = disk.crashed(session, "hello")
    late.set()
    assert (again.status, again.messages, again.info()["queued"]) == ("paused", [], 1)
    assert again.retry().result().text == "hello"
    assert [m.text for m in again.messages] == ["hi", "hello"]


def test_a_queue_survives_and_nothing_runs_by_itself(
    disk: Disk, store: ConversationStore, gate: Gate
) -> None:
    session = session_in(store, call("hold"), *["on"] * 4, tools=[gate.tool])
    session.send("first")
    gate.wait()
    session.send([sa.Message.user("second"), sa.Message.user("and this")])
    session.send("third")
    session.steer("steered")
    again = disk.crashed(session, *["then"] * 5, tools=[gate.tool])
    gate.open()
    assert (again.status, again.info()["queued"]) == ("interrupted", 3)
    again.resume(sa.Respond("ran")).result()
    last = again.send("last")
    last.result()
    said = [m.text for m in again.messages if m.role == "user"]
    assert said == ["first", "steered", "second", "and this", "third", "last"]
    assert folded(disk.stores[-1]).queued == []


def test_a_queue_that_is_all_that_was_left_begins_by_retry(store: ConversationStore) -> None:
    session = session_in(store, Exception("no model"), "x")
    with pytest.raises(sa.AgentError):
        session.send("first").result()
    gate = Gate()
    session.replace(agent=agent_of(call("hold"), Exception("gone"), tools=[gate.tool]))
    run = session.retry()
    gate.wait()
    session.send("second")
    gate.open()
    with pytest.raises(sa.AgentError):
        run.result()
    again = reopened(session, "one", "two", tools=[gate.tool])
    assert again.info()["queued"] == 1
    again.retry().result()
    until(lambda: again.status == "idle" and not again.info()["queued"])
    assert [m.text for m in again.messages if m.text][-3:] == ["one", "second", "two"]


class Fails(sa.Middleware):
    def before_model(self, state: sa.State, ctx: Any) -> None:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("script", "around"),
    [
        (["x"], {"middleware": [Fails()]}),
        ([sa.ModelError("500")], {}),
        ([call("write", path="/a")] * 2, {"tools": [write], "max_runs": 1}),
    ],
    ids=["before the model was asked", "in the model", "after a tool"],
)
def test_what_a_failed_run_left_unanswered_waits_for_retry(
    store: ConversationStore, script: list[Any], around: dict[str, Any]
) -> None:
    session = session_in(store)
    session.replace(agent=agent_of(*script, **around))
    with pytest.raises(sa.AgentError):
        session.send("go").result()
    assert session.status == "error"
    again = reopened(session, "done", tools=[write])
    assert (again.status, again.error) == ("paused", session.error)
    assert again.retry().result().text == "done"
    assert (again.status, again.error) == ("idle", None)
    assert [m.text for m in again.messages if m.role == "user"] == ["go"]


def test_what_a_person_stopped_does_not_wait_to_go_on(store: ConversationStore, gate: Gate) -> None:
    session = session_in(store, call("hold"), "x", tools=[gate.tool])
    run = session.send("go")
    gate.wait()
    run.cancel()
    gate.open()
    assert run.result().status == "cancelled"
    assert reopened(session).status == "idle"


def test_what_was_stopped_while_it_waited_for_people_does_not_wait_to_go_on(
    store: ConversationStore,
) -> None:
    session = session_in(store, call("write", path="/a"), tools=[write], interrupt_on=["write"])
    assert session.send("go").result().status == "interrupted"
    session.cancel()
    assert reopened(session).status == "idle"


def test_a_paused_session_goes_on_after_a_crash(disk: Disk, store: ConversationStore) -> None:
    class Pauses(sa.Middleware):
        def after_model(self, state: sa.State, ctx: Any) -> None:
            session.pause("enough")

    session = session_in(store, call("write", path="/a"), "x", tools=[write], middleware=[Pauses()])
    assert session.send("go").result().status == "paused"
    again = disk.crashed(session, "done", tools=[write])
    assert (again.status, again.state.get_metadata("pause_reason")) == ("paused", "enough")
    assert again.retry().result().text == "done"
    assert RAN == ["/a"]


def test_the_usage_of_a_run_that_crashed_counts(
    disk: Disk, store: ConversationStore, gate: Gate
) -> None:
    said = sa.Message.assistant("", [call("hold")], usage=sa.Usage(5, 6))
    before = sa.Message.assistant("hello", usage=sa.Usage(1, 1))
    session = session_in(store, before, said, "x", tools=[gate.tool])
    session.send("hi").result()
    session.send("go")
    gate.wait()
    again = disk.crashed(session)
    gate.open()
    assert again.usage == sa.Usage(6, 7)


# another version of the code


def test_an_agent_that_changed_in_code_just_works(disk: Disk, store: ConversationStore) -> None:
    session = two_writes(store)
    session.approve("c1")
    again = disk.crashed(session, "done")  # without the tool
    assert again.approve().result().text == "done"
    assert all("no tool 'write'" in text for text in results(again.state))


@pytest.mark.spec("S1.10.8")
def test_middleware_that_comes_sets_its_defaults_and_that_goes_leaves_its_metadata(
    store: ConversationStore,
) -> None:
    class Old(sa.Middleware):
        def before_run(self, state: sa.State, ctx: Any) -> sa.State:
            return state.put_metadata("old", [1])

    class New(sa.Middleware):
        def before_model(self, state: sa.State, ctx: Any) -> sa.State | None:
            return None if "new" in state.metadata else state.put_metadata("new", "default")

    session = session_in(store, "x", middleware=[Old()])
    session.send("go").result()
    again = reopened(session, "y", middleware=[New()])
    again.send("go").result()
    assert reopened(again).state.metadata == {"old": [1], "new": "default"}


def change(store: ConversationStore, statement: str, *values: Any) -> None:
    with contextlib.closing(sqlite3.connect(store.database.name, timeout=PATIENCE)) as database:
        database.execute(statement, values)
        database.commit()


def test_a_newer_version_is_refused_unwritten(disk: Disk, store: ConversationStore) -> None:
    session = session_in(store, "hello")
    session.send("hi").result()
    session.close()
    change(store, "UPDATE sagents_journal SET checksum = NULL")  # as if these were right
    change(store, "UPDATE sagents_journal SET data = '{\"version\":99}' WHERE kind = 'begin'")
    change(store, "UPDATE sagents_journal SET data = '{\"spin\":1}' WHERE seq = 3")
    before = rows_of(store.database.name)
    with pytest.raises(sa.ConfigurationError, match="upgrade sagents_nb"):
        opened(store)
    assert rows_of(store.database.name) == before
    change(store, "UPDATE sagents_journal SET data = '{\"version\":1}' WHERE kind = 'begin'")
    assert opened(store).messages == session.messages  # and nobody has it


# damage


@pytest.mark.parametrize("what", ["not JSON", '{"n":3}', "[]"])
def test_a_damaged_row_is_told_and_the_rest_opens(
    disk: Disk, store: ConversationStore, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    session = session_in(store, "one", [call("write", path="/a")], "two", "three", tools=[write])
    session.send("a").result()
    session.send("b").result()
    session.close()
    lost = next(seq for seq, kind, data in rows_of(store.database.name)
                if kind == "message" and data["role"] == "tool")  # fmt: skip
    change(store, "UPDATE sagents_journal SET data = ? WHERE seq = ?", what, lost)
    again = opened(store, "three", tools=[write])
    [problem] = again.info()["problems"]
    assert problem in caplog.text
    assert [m.text for m in again.messages if m.text] == ["a", "one", "b", "two"]
    assert unanswered(again.messages) == []
    again.send("c").result()
    fine = reopened(again)
    assert fine.info()["problems"] == []
    assert fine.messages == again.messages


@pytest.mark.parametrize(
    "how", ["DELETE FROM sagents_journal", "UPDATE sagents_journal SET kind = 'x'"]
)
def test_a_journal_of_which_nothing_is_left_is_told_and_begins_anew(
    store: ConversationStore, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    session = session_in(store, "hello")
    session.send("hi").result()
    session.close()
    change(store, how)
    again = opened(store, "again")
    assert not again.messages
    problems = again.info()["problems"]
    assert problems
    assert all(problem in caplog.text for problem in problems)
    again.send("still there?").result()
    fine = reopened(again)
    assert fine.info()["problems"] == []
    assert [m.text for m in fine.messages] == ["still there?", "again"]


def test_a_lost_tail_is_told_and_the_conversation_goes_on(store: ConversationStore) -> None:
    session = session_in(store, "one", "two")
    session.send("a").result()
    session.send("b").result()
    session.close()
    last = max(seq for seq, kind, _ in rows_of(store.database.name) if kind == "message")
    change(store, "DELETE FROM sagents_journal WHERE seq >= ?", last)
    again = opened(store, "three")
    [problem] = again.info()["problems"]
    assert problem.startswith("The journal was damaged: it had ")
    assert [m.text for m in again.messages] == ["a", "one", "b"]
    again.send("c").result()
    assert reopened(again).info()["problems"] == []


def test_what_is_cut_after_a_message_that_was_none_is_what_was_meant(
    store: ConversationStore,
) -> None:
    session = session_in(store, "one")
    session.send("a").result()
    session.close()
    journal, _, _ = Journal.open(store.database, "c1")
    journal.append([Entry("message", {"n": 99})]).result(PATIENCE)
    journal.release().result(PATIENCE)
    again = opened(store, ConnectionError("cable"), "two")
    assert len(again.info()["problems"]) == 1
    with pytest.raises(sa.ModelError):
        again.send("b").result()
    again.retry().result()
    fine = reopened(again)
    assert [m.text for m in fine.messages] == ["a", "one", "b", "two"]
    assert fine.info()["problems"] == []


def test_a_journal_that_lost_its_version_has_one_again(store: ConversationStore) -> None:
    session = session_in(store, "one")
    session.send("a").result()
    session.close()
    change(store, "UPDATE sagents_journal SET data = 'x' WHERE kind = 'begin'")
    opened(store).close()
    versions = [data for _, kind, data in rows_of(store.database.name) if kind == "begin"]
    assert versions == [{"version": VERSION}]


def test_whatever_row_is_damaged_the_conversation_opens_and_goes_on(
    disk: Disk, store: ConversationStore
) -> None:
    session = two_writes(store)
    session.approve("c1")
    path = disk.snapshot(store)
    for seq, kind, _ in rows_of(path):
        copy = disk.store(disk.snapshot(disk.store(path)))
        change(copy, "UPDATE sagents_journal SET data = 'x' WHERE seq = ?", seq)
        again = sa.Session.open(
            "c1", agent=agent_of(*["done"] * 4, **GATED), store=copy, take_over=True
        )
        assert len(again.info()["problems"]) == 1, kind
        if (asked := again.interrupt) is not None and asked.type == "in_doubt":
            again.resume([sa.Respond("did not run")] * len(asked.action_requests)).result()
        elif asked is not None:
            again.reject()
        again.send("go on").result()
        assert again.messages[-1].text == "done"
        assert unanswered(again.messages) == []


# how it begins


@pytest.mark.spec("S1.11.4")
def test_hooks_of_the_start_run_first_and_one_that_fails_is_logged_only(
    store: ConversationStore, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(sa.Middleware):
        id = "fails"

        def on_session_start(self, state: sa.State, ctx: Any) -> Any:
            raise ValueError("not today")

    class Starts(sa.Middleware):
        async def on_session_start(self, state: sa.State, ctx: Any) -> sa.State:
            return state.put_metadata("starts", state.get_metadata("starts", 0) + 1)

        def before_run(self, state: sa.State, ctx: Any) -> None:
            RAN.append(f"run after {state.metadata['starts']}")

    both: dict[str, Any] = {"middleware": [Fails(), Starts()]}
    session = session_in(store, "hi", **both)
    session.send("go").result()
    assert "not today" in caplog.text
    again = reopened(session, "hi", **both)
    again.send("go").result()
    assert RAN == ["run after 1", "run after 2"]
    plain = sa.Session(agent_of("hi", **both))  # also without a store
    plain.send("go").result()
    assert plain.state.metadata == {"starts": 1}


@pytest.mark.spec("S1.11.4")
def test_who_watches_an_opened_session_is_told_its_status(store: ConversationStore) -> None:
    session = session_in(store, call("write", path="/a"), "done", **GATED)
    session.send("go").result()
    again = reopened(session, "done", **GATED)
    heard: list[Any] = []
    again.subscribe(heard.append)
    assert [e.status for e in of(StatusChanged, heard)] == ["interrupted"]
    later: list[Any] = []
    again.subscribe(later.append, since=0)
    assert [e.status for e in of(StatusChanged, later)] == ["interrupted"]


@pytest.mark.spec("H3.1.2")
def test_what_a_run_without_a_message_said_is_there_again(
    disk: Disk, store: ConversationStore
) -> None:
    session = session_in(store, "one", "two")
    session.send("go").result()
    assert session.proceed().result().text == "two"
    again = disk.crashed(session, "three")
    assert again.status == "idle"
    assert again.proceed().result().text == "three"
    assert [m.text for m in again.messages] == ["go", "one", "two", "three"]


@pytest.mark.spec("H3.1.8")
@pytest.mark.parametrize("crashes", [False, True])
def test_the_numbers_of_events_ascend_over_reopening(
    disk: Disk, store: ConversationStore, crashes: bool
) -> None:
    session = session_in(store, "hi")
    numbers: list[int] = []
    for _ in range(3):
        session.subscribe(lambda event: numbers.append(event.seq))
        assert session.send("go").result().text == "hi"
        if crashes:  # nobody wrote down how many there were
            store = disk.store(disk.snapshot(store))
            session = sa.Session.open("c1", agent=agent_of("hi"), store=store, take_over=True)
        else:
            session = reopened(session, "hi")
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1


@pytest.mark.spec("H3.1.8")
def test_numbers_of_events_are_those_that_a_page_can_count(store: ConversationStore) -> None:
    session_in(store, "hi").close()
    epochs = store.database.tables.leases.update().values(epoch=2**25 - 1)
    store.database.run(lambda connection: connection.execute(epochs))
    run = opened(store, "hi").send("go")
    assert all(2**52 < event.seq < 2**53 for event in run)  # JavaScript's safe integers


@pytest.mark.spec("S1.10.6")
def test_an_answer_wakes_a_sleeping_conversation_without_a_flash_of_the_question(
    store: ConversationStore,
) -> None:
    session = session_in(store, call("write", path="/a"), "done", **GATED)
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    session.close()
    assert of(AgentShutdown, heard)[0].restorable  # whoever shows the question goes on doing so
    again = opened(store, "done", **GATED)
    run = again.resume(sa.Approve())
    heard = []
    again.subscribe(heard.append, since=0)
    with pytest.raises(sa.NotRunning):
        again.resume(sa.Approve())
    assert run.result().text == "done"
    assert [e.status for e in of(StatusChanged, heard)] == ["running", "idle"]
    assert RAN == ["/a"]


@pytest.mark.spec("S1.9.8")
def test_todos_of_an_opened_session_are_told_once(store: ConversationStore) -> None:
    state = sa.State(todos=[sa.Todo("a"), sa.Todo("b", "completed")])
    session = sa.Session(agent_of(), "c1", state, store=store)
    again = reopened(session, "hi")
    again.send("go").result()
    heard: list[Any] = []
    again.subscribe(heard.append, since=0)
    assert [[t.content for t in e.todos] for e in of(TodosUpdated, heard)] == [["a", "b"]]


def test_a_run_that_is_answered_after_a_crash_is_the_same_run(
    disk: Disk, store: ConversationStore
) -> None:
    session = two_writes(store)
    again = disk.crashed(session, "done", **GATED)
    run = again.approve()
    assert session.current_run is not None
    assert run.id == session.current_run.id  # type: ignore[union-attr]
    run.result()  # type: ignore[union-attr]
    assert roles(again.messages) == ["user", "assistant", "tool", "assistant"]
