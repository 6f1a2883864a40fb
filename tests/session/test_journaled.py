"""When a session says that something is done, it is in the store."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import StoreError
from sagents_nb.events import MessageEnd, MessageQueued
from sagents_nb.store import ConversationStore
from sagents_nb.store.journal import Journal
from tests.session.gates import Gate
from tests.session.hours import Hours
from tests.session.stored import Disk, folded, rows_of
from tests.talking import PATIENCE, agent_of, call, of, roles, run, types, unanswered, until

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    RAN.clear()


@sa.tool
def write(path: str) -> str:
    """Write."""
    RAN.append(path)
    return f"wrote {path}"


def session_in(store: ConversationStore, *turns: Any, **options: Any) -> sa.Session:
    return sa.Session(agent_of(*turns, **options), id="c1", store=store)


def texts(store: ConversationStore) -> list[str]:
    return [message.text for message in folded(store).state.messages]


class Slow:
    """Appends that do not end before the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may = threading.Event()
        self.tried = 0
        self.waits_from = 10**9
        append = Journal.append
        monkeypatch.setattr(Journal, "append", lambda j, *what: self._append(append, j, *what))

    def _append(self, append: Any, journal: Journal, *what: Any) -> Any:
        self.tried += 1
        if self.tried >= self.waits_from:
            journal.database.submit(lambda connection: self.may.wait(PATIENCE))
        return append(journal, *what)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Any:
    slow = Slow(monkeypatch)
    yield slow
    slow.may.set()


# what is there when


def test_a_sent_message_is_in_the_store_when_send_returns(store: ConversationStore) -> None:
    gate = Gate()
    session = session_in(store, call("hold"), *["on"] * 9, tools=[gate.tool])
    session.send("first")
    gate.wait()
    session.send("second")
    assert [w.message.text for w in folded(store).queued] == ["second"]
    session.steer("third")
    session.follow_up("fourth")
    assert [w.when for w in folded(store).queued] == ["queue", "steer", "follow_up"]
    gate.open()
    session.send("last").result()
    assert folded(store).queued == []


def test_every_message_is_in_the_store_when_its_end_is_told(store: ConversationStore) -> None:
    session = session_in(store, [call("write", path="/a")], "done", tools=[write])
    told: list[tuple[Any, Any]] = []

    def hear(event: Any) -> None:
        if event.type == "message_end":
            told.append((event.message, folded(store).state.messages[-1]))

    session.subscribe(hear)
    session.send("go").result()
    assert len(told) == 4
    assert all(message == kept for message, kept in told)


def test_a_tool_runs_once_it_is_written_that_it_will(store: ConversationStore) -> None:
    seen: list[Any] = []

    @sa.tool
    def look() -> str:
        seen.append([(c.tool_call_id, c.result) for c in folded(store).calls])
        return "seen"

    session_in(store, call("look"), "done", tools=[look]).send("go").result()
    assert seen == [[("c1", None)]]
    assert folded(store).calls == []


def test_what_is_told_of_an_interrupt_and_of_decisions_is_in_the_store(
    store: ConversationStore,
) -> None:
    session = session_in(
        store,
        [call("write", "c1", path="/a"), call("write", "c2", path="/b")],
        "done",
        tools=[write],
        interrupt_on={"write": True},
    )
    told: list[Any] = []

    def hear(event: Any) -> None:
        if event.type in ("interrupt", "decision", "status_changed"):
            now = folded(store)
            told.append((event.type, now.state.interrupt, len(now.decisions), now.run))

    session.subscribe(hear)
    session.send("go").result()
    assert session.approve("c1") is None
    assert [d.tool_call_id for d in folded(store).decisions] == ["c1"]
    session.approve().result()
    by_type = [(kind, decisions) for kind, _, decisions, _ in told]
    assert ("decision", 1) in by_type
    assert ("decision", 2) in by_type
    assert next(i for kind, i, _, _ in told if kind == "interrupt") is not None
    assert told[-1][3].status == "completed"


def test_the_end_of_a_run_is_told_after_its_commit(store: ConversationStore, slow: Slow) -> None:
    class Looks(sa.Middleware):
        def after_run(self, state: sa.State, ctx: Any) -> None:
            """So the answer may not be the end."""

    session = session_in(store, "hello", middleware=[Looks()])
    heard: list[Any] = []
    session.subscribe(heard.append)
    slow.waits_from = slow.tried + 3  # the message and the answer come before
    run = session.send("hi")
    until(lambda: types(heard)[-1:] == ["agent_end"])
    assert not run.done
    assert [e.status for e in heard if e.type == "status_changed"][-1] == "running"
    slow.may.set()
    assert run.result().text == "hello"
    assert [e.status for e in heard if e.type == "status_changed"][-1] == "idle"


def test_the_end_of_a_run_is_written_with_its_last_answer(
    store: ConversationStore, slow: Slow
) -> None:
    session = session_in(store, sa.Message.assistant("hello", usage=sa.Usage(3, 4)), "more")
    heard: list[Any] = []
    session.subscribe(heard.append)
    slow.waits_from = slow.tried + 2  # the message comes before
    run = session.send("hi")
    until(lambda: slow.tried == slow.waits_from)
    assert "agent_end" not in types(heard)
    slow.may.set()
    assert run.result().text == "hello"
    assert slow.tried == slow.waits_from
    kept = folded(store).run
    assert kept is not None
    assert (kept.run_id, kept.status, kept.usage) == (run.id, "completed", session.usage)


def test_todos_metadata_usage_and_the_end_are_kept(store: ConversationStore) -> None:
    def plan() -> sa.ToolOutput:
        return sa.ToolOutput("ok", update={"todos": [sa.Todo("a")], "metadata": {"k": {"x": 1}}})

    usage = sa.Usage(3, 4)
    session = session_in(
        store,
        sa.Message.assistant("", [call("plan")], usage=usage),
        sa.Message.assistant("done", usage=usage),
        tools=[plan],
    )
    session.send("go").result()
    now = folded(store)
    assert ([t.content for t in now.state.todos], now.state.metadata) == (["a"], {"k": {"x": 1}})
    assert now.run is not None
    assert (now.run.status, now.run.usage) == ("completed", usage + usage)


def test_changes_between_runs_are_in_the_store_when_the_call_returns(
    store: ConversationStore,
) -> None:
    class Notes(sa.Middleware):
        def handle_message(self, message: Any, state: sa.State, ctx: Any) -> sa.State:
            return state.put_metadata("note", message)

    session = session_in(
        store, call("write", path="/a"), "x", tools=[write], interrupt_on={"write": True},
        middleware=[Notes()],
    )  # fmt: skip
    session.send("go").result()
    session.cancel()
    assert roles(folded(store).state.messages) == ["user", "assistant", "tool"]
    assert folded(store).state.interrupt is None
    session.replace(state=sa.State(messages=[sa.Message.user("other")], todos=[sa.Todo("t")]))
    assert texts(store) == ["other"]
    session.notify_middleware("Notes", "n")
    until(lambda: session.state.metadata == {"note": "n"})
    session.reset()
    assert folded(store).state == sa.State()
    session.notify_middleware("Notes", "m")
    session.pause()
    session.cancel()
    until(lambda: folded(store).state.metadata == {"note": "m"})


def test_a_reset_forgets_what_was_queued_also_in_the_store(
    store: ConversationStore, gate: Gate
) -> None:
    session = session_in(store, call("hold"), "one", tools=[gate.tool])
    session.send("first")
    gate.wait()
    late = session.send("second")
    session.steer("third")
    session.reset()
    assert late.result().status == "cancelled"
    gate.open()
    now = folded(store)
    assert (now.queued, now.state) == ([], sa.State())


def test_a_message_that_is_taken_back_is_not_in_the_store(
    store: ConversationStore, gate: Gate
) -> None:
    session = session_in(store, call("hold"), "one", tools=[gate.tool])
    session.send("first")
    gate.wait()
    late, told = session.send("second"), []
    late.future.add_done_callback(lambda _: told.append(folded(store).queued))
    late.cancel()
    assert told == [[]]


def test_the_same_message_may_be_sent_twice(store: ConversationStore, gate: Gate) -> None:
    session = session_in(store, call("hold"), "one", "two", "three", tools=[gate.tool])
    message = sa.Message.user("again")
    session.send(message)
    gate.wait()
    session.send(message)
    last = session.send(message)
    assert len(folded(store).queued) == 2
    gate.open()
    last.result()
    assert texts(store).count("again") == 3
    assert folded(store).queued == []


def test_nobody_sees_a_message_that_was_refused(store: ConversationStore, full: Full) -> None:
    session = session_in(store, "hello")
    heard: list[Any] = []
    session.subscribe(heard.append)
    full.full = lambda kinds: True
    with pytest.raises(StoreError, match="disk is full"):
        session.send("refused")
    until(lambda: session.status == "error")
    full.full = lambda kinds: False
    assert session.send("taken").result().text == "hello"
    session.close()
    shown = [row.content["text"] for row in store.load_display_messages("c1")]
    assert [text for text in shown if "disk is full" not in text] == ["taken", "hello"]
    assert [e.message.text for e in of(MessageEnd, heard)] == ["taken", "hello"]


def test_a_message_that_waited_in_line_waits_on_when_its_run_cannot_be_written(
    store: ConversationStore, full: Full
) -> None:
    gate = Gate()
    session = session_in(store, call("hold"), "one", "two", tools=[gate.tool])
    first = session.send("a")
    gate.wait()
    second = session.send("b", when="queue")
    full.full = lambda kinds: "taken" in kinds and "run" in kinds
    gate.open()
    assert first.result().text == "one"
    with pytest.raises(StoreError, match="disk is full"):
        second.result()
    assert [w.message.text for w in folded(store).queued] == ["b"]
    assert [m.text for m in session.messages if m.role == "user"] == ["a"]
    full.full = lambda kinds: False
    assert session.retry().result().text == "two"
    assert [m.text for m in folded(store).state.messages if m.role == "user"] == ["a", "b"]
    assert folded(store).queued == []


def test_a_hook_at_the_beginning_of_a_run_waits_for_the_message_to_be_safe(
    store: ConversationStore, slow: Slow
) -> None:
    seen: list[list[str]] = []

    class Looks(sa.Middleware):
        def before_run(self, state: sa.State, ctx: Any) -> None:
            seen.append([w.message.text for w in folded(store).queued])

    session_in(store, "hello", middleware=[Looks()]).send("hi").result()
    assert seen == [["hi"]]


def test_a_plain_turn_is_two_transactions(store: ConversationStore, slow: Slow) -> None:
    session = session_in(store, "one", "two")
    for text in ("one", "two"):
        before = slow.tried
        assert session.send("go").result().text == text
        assert slow.tried - before == 2
    assert texts(store) == ["go", "one", "go", "two"]


def test_calls_cost_two_transactions_for_each_turn(store: ConversationStore, slow: Slow) -> None:
    @sa.tool(run_on="loop")  # in a thread one might end a transaction later than the other
    def look(where: str) -> str:
        """Look there."""
        return where

    turns = [[call("look", f"c{n}", where="a"), call("look", f"d{n}", where="b")] for n in (1, 2)]
    session = sa.Session(agent_of(*turns, "ok", tools=[look]), id="c1", store=store)
    before = slow.tried
    assert session.send("go").result().text == "ok"
    assert slow.tried - before == 2 + 2 * len(turns)


# where waiting would block


def test_send_on_an_event_loop_returns_at_once_and_the_run_waits_for_the_commit(
    store: ConversationStore, slow: Slow
) -> None:
    session = session_in(store, "hello")
    heard: list[Any] = []
    session.subscribe(heard.append)
    slow.waits_from = slow.tried + 1

    async def talk() -> str:
        run = session.send("hi")
        await asyncio.sleep(0.05)
        assert session.status == "running"
        assert types(heard, "status_changed") == ["agent_start", "turn_start"]
        assert session.agent.model.requests == []  # type: ignore[attr-defined]
        assert texts(store) == []
        slow.may.set()
        return (await run).text

    assert run(talk()) == "hello"


def test_send_in_a_thread_waits_for_the_commit(store: ConversationStore, slow: Slow) -> None:
    session = session_in(store, "hello")
    slow.waits_from = slow.tried + 1
    runs: list[sa.Run] = []
    thread = threading.Thread(target=lambda: runs.append(session.send("hi")))
    thread.start()
    thread.join(0.05)
    assert runs == []
    slow.may.set()
    thread.join(PATIENCE)
    assert runs[0].result().text == "hello"


def test_a_run_that_is_stopped_before_its_beginning_is_written_keeps_the_message(
    store: ConversationStore, slow: Slow
) -> None:
    session = session_in(store, "hello")
    slow.waits_from = slow.tried + 1

    async def talk() -> str:
        run = session.send("hi")
        await asyncio.sleep(0.02)
        run.cancel()
        slow.may.set()
        return (await run).status

    assert run(talk()) == "cancelled"
    assert (session.status, texts(store)) == ("cancelled", ["hi"])


# what cannot be written


class Full:
    """A disk that is full when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full: Any = lambda kinds: False
        append = Journal.append

        def try_to(journal: Journal, entries: Any, along: Any = None) -> Any:
            if self.full([entry.kind for entry in entries]):

                def fail(connection: Any) -> None:
                    raise StoreError("The store cannot be used: the disk is full.")

                return journal.database.submit(fail)
            return append(journal, entries, along)

        monkeypatch.setattr(Journal, "append", try_to)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Full:
    return Full(monkeypatch)


def test_a_message_that_cannot_be_written_is_refused_and_not_sent_later(
    store: ConversationStore, full: Full
) -> None:
    session = session_in(store, "hello", "again")
    full.full = lambda kinds: True
    for _ in range(9):
        with pytest.raises(StoreError, match="disk is full"):
            session.send("hi")
    until(lambda: session.status == "error")
    assert (session.status, session.messages) == ("error", [])
    assert session.error is not None
    full.full = lambda kinds: False
    with pytest.raises(sa.NotRunning, match="nothing to retry"):
        session.retry()
    assert session.send("now").result().text == "hello"
    session.close()
    assert texts(store) == ["now", "hello"]
    again = sa.Session.open("c1", agent=agent_of("again"), store=store)
    assert again.send("then").result().text == "again"
    assert [m.text for m in again.messages] == ["now", "hello", "then", "again"]


@pytest.mark.parametrize("when", ["queue", "steer", "follow_up"])
def test_a_message_for_a_session_at_work_that_cannot_be_written_is_refused(
    store: ConversationStore, full: Full, gate: Gate, when: str
) -> None:
    session = session_in(store, call("hold"), "done", "never", tools=[gate.tool])
    run = session.send("go")
    gate.wait()
    heard: list[Any] = []
    session.subscribe(heard.append)
    full.full = lambda kinds: True
    with pytest.raises(StoreError, match="disk is full"):
        session.follow_up("no") if when == "follow_up" else session.send("no", when=when)
    full.full = lambda kinds: False
    gate.open()
    assert run.result().text == "done"
    assert session.status == "idle"
    assert of(MessageQueued, heard) == []
    session.close()
    assert [text for text in texts(store) if text] == ["go", "done"]


@pytest.mark.parametrize("kind", ["call", "message", "run"])
def test_a_run_whose_commit_fails_ends_with_the_reason_and_runs_nothing_more(
    store: ConversationStore, full: Full, kind: str
) -> None:
    session = session_in(store, call("write", path="/a"), "done", "again", tools=[write])
    full.full = lambda kinds: kind in kinds and "queued" not in kinds
    with pytest.raises(StoreError, match="disk is full"):
        session.send("go").result()
    assert session.status == "error"
    assert ([] if kind in ("call", "message") else ["/a"]) == RAN
    assert session.messages[0].text == "go"
    full.full = lambda kinds: False
    session.send("next").result()
    assert folded(store).state.messages == session.messages
    assert not unanswered(session.messages)
    assert folded(store).problems == []


def test_a_decision_that_cannot_be_written_was_not_made(
    store: ConversationStore, full: Full
) -> None:
    session = session_in(
        store, call("write", path="/a"), "done", tools=[write], interrupt_on={"write": True}
    )
    session.send("go").result()
    told: list[Any] = []
    session.subscribe(told.append)
    full.full = lambda kinds: "decision" in kinds
    with pytest.raises(StoreError, match="disk is full"):
        session.approve()
    until(lambda: session.status == "interrupted")
    assert (session.status, RAN) == ("interrupted", [])
    assert of(sa_decision(), told) == []
    full.full = lambda kinds: False
    assert session.reject().result().text == "done"
    assert RAN == []
    assert unanswered(session.messages) == []


def sa_decision() -> Any:
    from sagents_nb.events import DecisionMade

    return DecisionMade


def test_a_change_between_runs_that_cannot_be_written_is_an_error_and_goes_first_later(
    store: ConversationStore, full: Full
) -> None:
    session = session_in(store, "one", "two")
    session.send("go").result()
    full.full = lambda kinds: True
    with pytest.raises(StoreError):
        session.replace(state=sa.State(messages=[sa.Message.user("other")]))
    assert session.status == "error"
    full.full = lambda kinds: False
    session.retry().result()
    assert texts(store) == ["other", "two"]


def test_a_session_with_something_unwritten_does_not_rest(
    store: ConversationStore, full: Full, hours: Hours
) -> None:
    session = sa.Session(agent_of("one", "two"), id="c1", store=store, inactivity_timeout=60)
    full.full = lambda kinds: "run" in kinds and "queued" not in kinds
    with pytest.raises(StoreError):
        session.send("go").result()
    hours.pass_by(600)
    assert session.status == "error"
    full.full = lambda kinds: False
    session.send("next").result()
    hours.pass_by(60)
    assert session.status == "closed"
    assert texts(store) == ["go", "one", "next", "two"]


# the file


def test_the_journal_stays_bounded_while_the_same_thing_changes(store: ConversationStore) -> None:
    def plan(n: int) -> sa.ToolOutput:
        return sa.ToolOutput("ok", update={"metadata": {"n": n}})

    turns = [turn for n in range(150) for turn in (call("plan", f"c{n}", n=n), "ok")]
    session = session_in(store, *turns, tools=[plan])
    for _ in range(75):
        session.send("go").result()
        session.reset()
    session.close()
    assert len(rows_of(store.database.name)) < 130
    assert folded(store).state == sa.State()


def test_a_session_without_a_store_needs_none_and_writes_nothing(disk: Disk) -> None:
    session = sa.Session(agent_of("hi"))
    assert session.actor.journal is None
    session.send("x").result()
    assert disk.stores == []
