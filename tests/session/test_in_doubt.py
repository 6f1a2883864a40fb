"""Calls that were at work when the process ended, and each point at which it may end."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import StoreError
from sagents_nb.store import ConversationStore
from sagents_nb.store.journal import Journal
from tests.session.gates import Gate
from tests.session.stored import Disk, folded
from tests.talking import agent_of, call, results, unanswered, until


def cut_off(store: ConversationStore, disk: Disk, gate: Gate, *turns: Any, **options: Any) -> Any:
    """A session as a crash leaves it while its tool is at work, and where that is kept."""
    session = sa.Session(agent_of(call("hold"), "over", tools=[gate.tool]), id="c1", store=store)
    run = session.send("go")
    gate.wait()
    again = disk.crashed(session, *turns, **options)
    gate.open()
    run.result()
    return again


def again_tool(ran: list[str], **options: Any) -> sa.Tool:
    def hold() -> str:
        ran.append("hold")
        return "held again"

    return sa.Tool(hold, **options)


def damaged(disk: Disk, store: ConversationStore, row: str) -> Path:
    """A copy of the store in which the last message of that role is not what was written."""
    path = disk.snapshot(store)
    with contextlib.closing(sqlite3.connect(path)) as copy:
        where = f"kind='message' AND data LIKE '%\"role\":\"{row}\"%'"
        changed = copy.execute(
            "UPDATE sagents_journal SET data = replace(data, 'role', 'rule') WHERE seq = "
            f"(SELECT max(seq) FROM sagents_journal WHERE {where})"
        )
        assert changed.rowcount == 1
        copy.commit()
    return path


# what is asked, and what the answers do


def test_a_call_that_was_at_work_is_asked_about_also_where_its_message_is_lost(
    store: ConversationStore, disk: Disk, gate: Gate
) -> None:
    session = sa.Session(agent_of(call("hold"), "over", tools=[gate.tool]), id="c1", store=store)
    run = session.send("go")
    gate.wait()
    path = damaged(disk, store, "assistant")
    gate.open()
    run.result()
    ran: list[str] = []
    turns = agent_of("well", tools=[again_tool(ran, name="hold")])
    again = sa.Session.open("c1", agent=turns, store=disk.store(path), take_over=True)
    assert (again.status, again.interrupt.type) == ("interrupted", "in_doubt")
    assert again.interrupt.tool_call_ids == ["c1"]
    assert again.resume([sa.Respond("ran")]).result().text == "well"
    assert ran == []


def test_calls_of_which_all_is_lost_that_came_later_are_asked_about(
    store: ConversationStore, disk: Disk
) -> None:
    ran: list[str] = []
    tools = [again_tool(ran, name="hold")]
    session = sa.Session(agent_of(call("hold"), "over", tools=tools), id="c1", store=store)
    session.send("go").result()
    path = damaged(disk, store, "tool")
    with contextlib.closing(sqlite3.connect(path)) as copy:  # and what came after and before it
        copy.execute("DELETE FROM sagents_journal WHERE data LIKE '%over%' OR kind = 'call'")
        copy.commit()
    again = sa.Session.open(
        "c1", agent=agent_of("well", tools=tools), store=disk.store(path), take_over=True
    )
    assert (again.status, again.interrupt.type) == ("interrupted", "in_doubt")
    assert ran == ["hold"]


def test_a_call_that_was_at_work_is_asked_about(
    store: ConversationStore, disk: Disk, gate: Gate
) -> None:
    again = cut_off(store, disk, gate)
    interrupt = again.interrupt
    assert (again.status, interrupt.type) == ("interrupted", "in_doubt")
    assert interrupt.tool_call_ids == ["c1"]
    assert interrupt.action_requests[0].allowed_decisions == ("respond",)
    assert "hold" in interrupt.message
    with pytest.raises(sa.InvalidDecision):
        again.approve()
    with pytest.raises(sa.InvalidDecision):
        again.resume(sa.Respond("perhaps"))
    assert again.status == "interrupted"


@pytest.mark.parametrize(
    ("word", "runs", "told"),
    [
        ("ran", 0, "confirmed that this call ran"),
        ("did not run", 0, "confirmed that this call did not run"),
        ("retry", 1, "held again"),
    ],
)
def test_only_retry_runs_it_again(
    store: ConversationStore, disk: Disk, gate: Gate, word: str, runs: int, told: str
) -> None:
    ran: list[str] = []
    again = cut_off(store, disk, gate, "done", tools=[again_tool(ran)])
    assert again.resume(sa.Respond(word)).result().text == "done"
    assert len(ran) == runs
    assert told in results(again.state)[0]
    assert unanswered(again.messages) == []


def test_what_was_answered_is_told_by_the_frames(
    store: ConversationStore, disk: Disk, gate: Gate
) -> None:
    pytest.importorskip("pandas")
    again = cut_off(store, disk, gate, "done")
    again.resume([sa.Respond("did not run")]).result()
    (row,) = again.to_frame("decisions").to_dict("records")
    assert (row["decision"], row["message"]) == ("respond", "did not run")


def test_an_idempotent_tool_is_run_again_without_a_question(
    store: ConversationStore, disk: Disk, gate: Gate
) -> None:
    ran: list[str] = []
    again = cut_off(store, disk, gate, "done", tools=[again_tool(ran, idempotent=True)])
    assert (again.status, again.interrupt, ran) == ("paused", None, [])
    assert again.retry().result().text == "done"
    assert results(again.state) == ["held again"]


def test_a_message_instead_of_an_answer_says_that_nobody_knows(
    store: ConversationStore, disk: Disk, gate: Gate
) -> None:
    ran: list[str] = []
    again = cut_off(store, disk, gate, "well", tools=[again_tool(ran)])
    assert again.send("never mind").result().text == "well"
    assert (ran, unanswered(again.messages)) == ([], [])
    assert "not known whether this call ran" in results(again.state)[0]


def test_an_answer_that_was_given_is_not_asked_for_again_but_a_new_doubt_is(
    store: ConversationStore, disk: Disk, gate: Gate
) -> None:
    second = Gate()
    again = cut_off(store, disk, gate, "x", tools=[second.tool])
    run = again.resume(sa.Respond("retry"))
    second.wait()  # it is at work again, by the user's word, and the process ends again
    path = disk.snapshot(again.options.store)
    second.open()
    run.result()
    ran: list[str] = []
    third = sa.Session.open(
        "c1",
        agent=agent_of("done", tools=[again_tool(ran)]),
        store=disk.store(path),
        take_over=True,
    )
    assert third.interrupt is not None
    assert third.interrupt.type == "in_doubt"
    assert third.resume(sa.Respond("ran")).result().text == "done"
    assert ran == []


def test_of_several_calls_those_with_a_result_keep_it_and_each_other_is_asked_about(
    store: ConversationStore, disk: Disk, gate: Gate
) -> None:
    ran: list[str] = []

    @sa.tool
    def quick(n: int) -> str:
        ran.append(f"quick {n}")
        return f"quick {n}"

    turn = [call("quick", "c1", n=1), call("hold", "c2"), call("quick", "c3", n=3)]
    tools = [quick, gate.tool]
    session = sa.Session(
        agent_of(turn, "over", tools=tools, max_parallel_tools=1), id="c1", store=store
    )
    run = session.send("go")
    gate.wait()
    again = disk.crashed(session, "done", tools=[quick, again_tool(ran)], max_parallel_tools=1)
    gate.open()
    run.result()
    ran.clear()
    assert again.interrupt.tool_call_ids == ["c2"]  # type: ignore[union-attr]
    assert again.resume(sa.Respond("ran")).result().text == "done"
    assert ran == ["quick 3"]
    assert [t.split(";")[0] for t in results(again.state)] == [
        "quick 1",
        "A person confirmed that this call ran",
        "quick 3",
    ]


@pytest.mark.parametrize("count", [1, 3, 10])
@pytest.mark.parametrize("goes_on", ["message", "answers", "cancel"])
def test_calls_that_were_cut_off_have_one_result_each_however_it_goes_on(
    store: ConversationStore, disk: Disk, gate: Gate, count: int, goes_on: str
) -> None:
    ran: list[str] = []
    turn = [call("hold", f"c{n}") for n in range(count)]
    options: dict[str, Any] = {"max_parallel_tools": 10}
    session = sa.Session(agent_of(turn, "over", tools=[gate.tool], **options), id="c1", store=store)
    run = session.send("go")
    gate.wait()
    until(lambda: len(folded(store).calls) >= count)
    again = disk.crashed(session, "on", "more", tools=[again_tool(ran)], **options)
    gate.open()
    run.result()
    if goes_on == "message":
        again.send("leave it").result()
    elif goes_on == "answers":
        words = [sa.Respond(("ran", "did not run", "retry")[n % 3]) for n in range(count)]
        again.resume(words).result()
    else:
        again.cancel()
        again.send("leave it").result()
    assert len(ran) == (count // 3 if goes_on == "answers" else 0)
    assert len(results(again.state)) == count
    assert unanswered(again.messages) == []
    assert folded(disk.stores[-1]).state == again.state


def test_a_call_that_people_edited_is_shown_and_run_again_as_they_edited_it(
    store: ConversationStore, disk: Disk
) -> None:
    inside = Gate()
    ran: list[str] = []

    def pay(amount: int) -> str:
        ran.append(f"paid {amount}")
        return inside.tool.function()

    options: dict[str, Any] = {"tools": [pay], "interrupt_on": {"pay": True}}
    session = sa.Session(agent_of(call("pay", amount=1000), "x", **options), id="c1", store=store)
    session.send("go").result()
    run = session.resume(sa.Edit({"amount": 10}))
    inside.wait()
    again = disk.crashed(session, "done", **options)
    inside.open()
    run.result()
    [request] = again.interrupt.action_requests  # type: ignore[union-attr]
    assert request.arguments == {"amount": 10}
    assert again.resume(sa.Respond("retry")).result().text == "done"
    assert ran == ["paid 10", "paid 10"]


# each point at which a process may end


class Points:
    """Copies of the store before and after each commit, and what had run by then."""

    def __init__(self, disk: Disk, store: ConversationStore, patch: pytest.MonkeyPatch) -> None:
        self.disk = disk
        self.store = store
        self.found: dict[str, tuple[Path, int]] = {}
        self.ran = self.said = 0
        self.active = False
        append = Journal.append

        def watched(journal: Journal, entries: Any, along: Any = None) -> Any:
            if not (self.active and journal.database is store.database):
                return append(journal, entries, along)  # another test's session may be ending
            name = named(entries)
            if name == "said":
                self.said += 1
                name = f"said {self.said}"
            self.note(f"before {name}")
            future = append(journal, entries, along)
            future.result()  # so that what comes next is behind it
            self.note(f"after {name}")
            return future

        patch.setattr(Journal, "append", watched)

    def note(self, point: str) -> None:
        self.found[point] = self.disk.snapshot(self.store), self.ran


def named(entries: Any) -> str:
    """What a commit is about."""
    kinds = [entry.kind for entry in entries]
    if kinds == ["run"]:
        return "stopped" if entries[0].data["status"] == "interrupted" else "end"
    if "message" in kinds and entries[kinds.index("message")].data["role"] == "tool":
        return "results"
    for kind, name in (
        ("queued", "sent"),
        ("taken", "message"),
        ("decision", "decided"),
        ("call", "started"),
        ("interrupt", "asked"),
        ("message", "said"),
    ):
        if kind in kinds:
            return name
    return "begun"


# What a session is when it is opened there, and how often the tool has run once it went on to the
# end, for a tool that must not run twice and for one that may. Where somebody is asked whether
# it ran, they tell the truth.
FREE = {
    "before sent": ("nothing", 0, 0),
    "after sent": ("paused", 1, 1),
    "before started": ("paused", 1, 1),
    "after started": ("in doubt", 1, 1),
    "before results": ("in doubt", 1, 2),
    "after results": ("paused", 1, 1),
    "before said 1": ("paused", 1, 1),
    "after said 1": ("idle", 1, 1),
}
GATED = {
    **{point: FREE[point] for point in list(FREE)[:2]},
    "before said 1": ("paused", 1, 1),
    "after said 1": ("paused", 1, 1),
    "before asked": ("paused", 1, 1),
    "after asked": ("interrupted", 1, 1),
    "before stopped": ("interrupted", 1, 1),
    "after stopped": ("interrupted", 1, 1),
    "before decided": ("interrupted", 1, 1),
    "after decided": ("paused", 1, 1),
    **{point: FREE[point] for point in list(FREE)[2:6]},
    "before said 2": ("paused", 1, 1),
    "after said 2": ("idle", 1, 1),
}
REJECTED = {
    point: (status, 0, 0) for point, (status, _, _) in GATED.items() if "started" not in point
} | {"before results": ("paused", 0, 0)}
TABLES = {"free": FREE, "approve": GATED, "edit": GATED, "reject": REJECTED}
DECISIONS = {
    "approve": sa.Approve(),
    "edit": sa.Edit({"path": "/edited"}),
    "reject": sa.Reject("no"),
}
KINDS = [(way, idempotent) for way in TABLES for idempotent in (False, True)]


@pytest.mark.parametrize(("way", "idempotent"), KINDS)
def test_each_point_at_which_a_process_may_end_is_as_the_table_says(
    store: ConversationStore,
    disk: Disk,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    idempotent: bool,
) -> None:
    points = Points(disk, store, monkeypatch)

    def body(path: str) -> str:
        points.ran += 1
        return f"wrote {path}"

    def agent(*turns: Any, function: Callable[..., Any] = body) -> sa.Agent:
        tool = sa.Tool(function, name="write", description="Write.", idempotent=idempotent)
        gated = {} if way == "free" else {"interrupt_on": {"write": True}}
        return agent_of(*turns, tools=[tool], **gated)

    script = [call("write", path="/a"), "done"]
    session = sa.Session(agent(*script), id="c1", store=store)
    points.active = True
    session.send("go").result()
    if way != "free":
        session.resume(DECISIONS[way]).result()
    points.active = False
    outcomes = {
        point: outcome(disk, path, before, agent, script, way)
        for point, (path, before) in points.found.items()
    }
    expected = {
        point: ("paused" if idempotent and status == "in doubt" else status, runs[idempotent])
        for point, (status, *runs) in TABLES[way].items()
    }
    assert outcomes == expected


def outcome(
    disk: Disk, path: Path, before: int, agent: Any, script: list[Any], way: str
) -> tuple[str, int]:
    """How a session is when it is opened on that file, and how often its tool has run then."""
    ran = before

    def body(path: str) -> str:
        nonlocal ran
        ran += 1
        return f"wrote {path}"

    store = disk.store(path)
    rest = script if not folded(store).state.messages[1:] else script[1:]
    session = sa.Session.open("c1", agent=agent(*rest, function=body), store=store, take_over=True)
    status = session.status
    if status == "idle" and not session.messages:
        return "nothing", ran
    if session.interrupt is not None and session.interrupt.type == "in_doubt":
        status = "in doubt"
    while session.status != "idle":
        if session.status == "paused":
            session.retry().result()
        elif session.interrupt is not None and session.interrupt.type == "in_doubt":
            session.resume(sa.Respond("ran" if before else "retry")).result()
        else:
            session.resume(DECISIONS[way]).result()
    assert [m.text for m in session.messages if m.text] == ["go", "done"]
    assert unanswered(session.messages) == []
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return status, ran


def test_an_answer_that_was_recorded_is_taken_wherever_the_process_ends_then(
    store: ConversationStore, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = Points(disk, store, monkeypatch)

    class Plans(sa.Middleware):
        def before_run(self, state: sa.State, ctx: Any) -> sa.State:
            return state.set_todos([sa.Todo(f"{len(state.messages)}")])  # which is told, so kept

    def agent(*turns: Any) -> sa.Agent:
        return agent_of(*turns, middleware=[sa.AskUser(), Plans()])

    question = call("ask_user", "q", question="Why?", response_type="freeform")
    session = sa.Session(agent(question, "thanks"), id="c1", store=store)
    session.send("go").result()
    points.active = True
    session.resume(sa.Respond("So.")).result()
    points.active = False
    after = list(points.found)[list(points.found).index("after decided") :]
    assert len(after) > 4
    for point in after:
        path, _ = points.found[point]
        again = sa.Session.open("c1", agent=agent("thanks"), store=disk.store(path), take_over=True)
        assert again.status in ("paused", "idle"), point
        if again.status == "paused":
            assert again.retry().result().text == "thanks"
        assert "So." in results(again.state)[0], point
        assert unanswered(again.messages) == []


@pytest.mark.parametrize("way", list(TABLES))
def test_a_commit_that_fails_wherever_it_is_runs_nothing_twice_and_loses_nothing(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    append = Journal.append
    left = 10**9

    def failing(journal: Journal, entries: Any, along: Any = None) -> Any:
        nonlocal left
        left -= 1
        if left == 0:

            def fail(connection: Any) -> None:
                raise StoreError("The store cannot be used: the disk is full.")

            return journal.database.submit(fail)
        return append(journal, entries, along)

    monkeypatch.setattr(Journal, "append", failing)
    for nth in range(1, 12):
        ran: list[str] = []

        def body(path: str, ran: list[str] = ran) -> str:
            ran.append(path)
            return f"wrote {path}"

        gated = {} if way == "free" else {"interrupt_on": {"write": True}}
        tool = sa.Tool(body, name="write", description="Write.")
        agent = agent_of(call("write", path="/a"), *["done"] * 3, tools=[tool], **gated)
        store = disk.store()
        session = sa.Session(agent, id="c1", store=store)
        left = nth
        failed = _talk(session, way)
        assert left < 1 or not failed  # what is behind the answer may fail after it
        left = 10**9
        if not session.messages:  # the message was refused
            _talk(session, way)
        for _ in range(3):  # the disk has room again
            if session.status in ("error", "paused"):
                with contextlib.suppress(sa.NotRunning):  # it failed behind the answer
                    session.retry().result()
            elif session.status == "interrupted":
                session.resume(DECISIONS[way]).result()
        session.send("and?").result()
        assert len(ran) <= (0 if way == "reject" else 1)
        assert [m.text for m in session.messages if m.role == "user"] == ["go", "and?"]
        assert unanswered(session.messages) == []
        now = folded(store)
        assert (now.state, now.queued, now.damaged) == (session.state, [], {})


def _talk(session: sa.Session, way: str) -> bool:
    """Send, and answer what is asked; whether a commit failed on the way."""
    try:
        session.send("go").result()
        if session.status == "interrupted":
            session.resume(DECISIONS[way]).result()
    except StoreError:
        until(lambda: session.status != "running")
        return True
    return False
