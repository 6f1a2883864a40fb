"""Who is first wins, alone: several answers to one approval, several owners of a conversation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import Owned, StaleOwner
from sagents_nb.events import AgentEnd, Event
from sagents_nb.store import ConversationStore
from tests.session import crashing
from tests.session.stored import Disk, folded
from tests.talking import PATIENCE, agent_of, call, in_threads, session_of, unanswered, until
from tests.talking import run as run_of

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


def four_callers(session: sa.Session) -> list[Callable[[], sa.Run | None]]:
    """Two pages that were shown the request, and two pieces of code."""
    interrupt = session.interrupt
    assert interrupt is not None
    digests = {request.tool_call_id: request.digest for request in interrupt.action_requests}

    def page(decision: Any) -> Callable[[], sa.Run | None]:
        return lambda: session.decide(
            dict.fromkeys(digests, decision), interrupt_id=interrupt.id, digests=digests, by="page"
        )

    return [
        page(sa.Approve()),
        page(sa.Reject("no")),
        lambda: session.approve(),
        lambda: session.resume(sa.Edit({"path": "/edited"})),
    ]


def race(store: ConversationStore, rounds: int) -> None:
    """Four callers answer each request at once."""
    turns = [turn for n in range(rounds) for turn in (call("write", path=f"/{n}"), f"done {n}")]
    session = sa.Session(agent_of(*turns, **GATED), id="c1", store=store)
    for n in range(rounds):
        session.send(str(n)).result()
        before = len(RAN)
        callers = four_callers(session)
        outcomes = in_threads(4, lambda i, callers=callers: callers[i]())
        [winner] = [o for o in outcomes if isinstance(o, sa.Run)]
        losers = [o for o in outcomes if o is not winner]
        assert all(isinstance(o, sa.StaleApproval | sa.NotRunning) for o in losers), losers
        assert winner.result().text == f"done {n}"
        which = outcomes.index(winner)
        assert RAN[before:] == [[f"/{n}"], [], [f"/{n}"], ["/edited"]][which]
        assert len(folded(store).decisions) == 0
    assert unanswered(session.messages) == []


@pytest.mark.spec("P4")
def test_of_four_who_answer_at_once_one_is_first_and_nothing_runs_twice(
    store: ConversationStore,
) -> None:
    race(store, 100)


@pytest.mark.soak
def test_of_four_who_answer_a_thousand_times_one_is_first_each_time(
    store: ConversationStore,
) -> None:
    race(store, 1000)


def test_four_who_answer_a_conversation_that_was_just_opened_are_one_and_three(
    disk: Disk, store: ConversationStore
) -> None:
    session = sa.Session(agent_of(call("write", path="/a"), **GATED), id="c1", store=store)
    session.send("go").result()
    path = disk.snapshot(store)
    for _ in range(10):
        copy = disk.store(disk.snapshot(disk.store(path)))
        again = sa.Session.open(
            "c1", agent=agent_of("done", **GATED), store=copy, take_over=True
        )  # fmt: skip
        callers = four_callers(again)
        outcomes = in_threads(4, lambda i, callers=callers: callers[i]())
        [winner] = [o for o in outcomes if isinstance(o, sa.Run)]
        assert winner.result().text == "done"
        assert len(RAN) <= 1
        RAN.clear()


@pytest.mark.spec("P4")
def test_an_approval_of_a_call_id_that_is_used_again_runs_nothing(
    store: ConversationStore,
) -> None:
    rounds = 50
    turns = [call("write", "call_1", path=f"/{n}") for n in range(rounds)]
    session = sa.Session(agent_of(*turns, **GATED, max_runs=100), id="c1", store=store)
    session.send("go").result()
    old = session.interrupt
    assert old is not None
    digests = {"call_1": old.action_requests[0].digest}
    for n in range(1, rounds):
        session.reject().result()
        now = session.interrupt
        assert now is not None
        assert now.action_requests[0].arguments == {"path": f"/{n}"}
        for interrupt_id in (old.id, now.id):
            with pytest.raises(sa.StaleApproval):
                session.decide(
                    {"call_1": sa.Approve()}, interrupt_id=interrupt_id, digests=digests, by="page"
                )
    assert RAN == []


@pytest.mark.spec("P4")
def test_another_sessions_approval_runs_nothing(store: ConversationStore) -> None:
    sessions = [
        sa.Session(agent_of(call("write", path="/a"), "x", **GATED), id=f"c{n}", store=store)
        for n in (1, 2)
    ]
    for session in sessions:
        session.send("go").result()
    mine, theirs = (session.interrupt for session in sessions)
    assert mine is not None
    assert theirs is not None
    digests = {"c1": theirs.action_requests[0].digest}
    for interrupt_id in (mine.id, theirs.id):
        with pytest.raises(sa.StaleApproval):
            sessions[0].decide(
                {"c1": sa.Approve()}, interrupt_id=interrupt_id, digests=digests, by="page"
            )
    assert RAN == []


# owners


def test_of_many_who_open_one_conversation_at_once_one_owns_it(
    disk: Disk, store: ConversationStore
) -> None:
    sa.Session(agent_of(), id="c1", store=store).close()
    stores = [disk.store(store.database.name) for _ in range(8)]
    for _ in range(5):
        outcomes = in_threads(8, lambda i: sa.Session.open("c1", agent=agent_of(), store=stores[i]))
        [owner] = [o for o in outcomes if isinstance(o, sa.Session)]
        assert sum(isinstance(o, Owned) for o in outcomes) == 7
        owner.close()


def test_of_two_processes_that_take_it_from_each_other_the_last_one_writes(
    disk: Disk, store: ConversationStore
) -> None:
    turns = [str(n) for n in range(40)]
    first = sa.Session(agent_of(*turns), id="c1", store=store)
    other = disk.store(store.database.name)
    sessions = [first]
    for n in range(10):
        mine = (other, store)[n % 2]
        sessions.append(sa.Session.open("c1", agent=agent_of(*turns), store=mine, take_over=True))
        with pytest.raises(StaleOwner):
            sessions[-2].send("mine?")
        sessions[-1].send(str(n)).result()
    users = [m.text for m in folded(store).state.messages if m.role == "user"]
    assert users == [str(n) for n in range(10)]
    assert [s.status for s in sessions[:-1]] == ["closed"] * 10


@pytest.mark.skipif(sys.platform == "win32", reason="a fork server's child")
def test_what_another_process_has_open_is_not_opened_until_it_ends(disk: Disk) -> None:
    context = crashing.fork_server()
    url = f"sqlite:///{disk.directory}/shared.db"
    here, there = context.Pipe()
    process = context.Process(target=crashing.hold, args=(there, url))
    process.start()
    assert here.recv() == "open"
    store = disk.store(disk.directory / "shared.db")
    with pytest.raises(Owned) as error:
        sa.Session.open(crashing.ID, agent=agent_of(), store=store)
    assert error.value.pid == process.pid
    process.kill()  # nobody has to wait for a heartbeat: it is seen that the process is dead
    process.join(PATIENCE)
    session = sa.Session.open(crashing.ID, agent=agent_of("hi"), store=store)
    assert session.send("hello").result().text == "hi"


# many who talk


def test_sixteen_threads_on_one_stored_session_lose_and_reorder_nothing(
    store: ConversationStore,
) -> None:
    session = sa.Session(agent_of(*["ok"] * 160), id="c1", store=store)

    def talk(thread: int) -> None:
        runs = [session.send(f"{thread} {n}") for n in range(10)]
        for run in runs:
            assert run.result().text == "ok"

    assert in_threads(16, talk) == [None] * 16
    now = folded(store)
    assert (now.state, now.queued) == (session.state, [])
    said = [m.text for m in now.state.messages if m.role == "user"]
    for thread in range(16):
        mine = [text for text in said if text.split()[0] == str(thread)]
        assert mine == [f"{thread} {n}" for n in range(10)]


def three_who_answer_what_they_were_shown(rounds: int) -> None:
    """Each waits for the run, and approves what its result asks; the slow ones come too late."""
    turns = [call("write", f"c{n}", path=f"/{n}") for n in range(rounds)]
    agent = agent_of(*turns, "done", **GATED, max_runs=rounds + 1)
    session = sa.Session(agent, id="c1")
    session.send("go")
    approved: list[str] = []

    def answer(_: int) -> None:
        while True:
            run = session.current_run
            assert run is not None
            interrupt = run.result(PATIENCE).interrupt
            if interrupt is None:
                return
            try:
                session.approve()
            except (sa.StaleApproval, sa.NotRunning):
                continue
            approved.append(interrupt.action_requests[0].arguments["path"])

    assert in_threads(3, answer) == [None] * 3
    assert [f"/{n}" for n in range(rounds)] == RAN
    assert sorted(approved) == sorted(RAN)


@pytest.mark.usefixtures("eager_switching")
def test_an_answer_that_comes_late_is_never_taken_for_the_next_question() -> None:
    three_who_answer_what_they_were_shown(300)


@pytest.mark.soak
@pytest.mark.usefixtures("eager_switching")
def test_of_ten_thousand_questions_none_is_answered_by_who_was_not_shown_it() -> None:
    for _ in range(20):
        RAN.clear()
        three_who_answer_what_they_were_shown(500)


def waiting_twice() -> tuple[sa.Session, sa.RunResult]:
    """A session that asks its second question, and the result that asked the first."""
    turns = [call("write", "c1", path="/1"), call("write", "c2", path="/2"), "done"]
    session = sa.Session(agent_of(*turns, **GATED), id="c1")
    first = session.send("go").result(PATIENCE)
    assert first.interrupt is not None

    def elsewhere(_: int) -> None:
        run = session.approve()
        assert run is not None
        run.result(PATIENCE)

    assert in_threads(1, elsewhere) == [None]
    return session, first


@pytest.mark.parametrize("way", ["approve", "reject", "resume"])
def test_who_was_shown_what_was_answered_meanwhile_is_told_what_is_open(way: str) -> None:
    session, first = waiting_twice()
    answer = {
        "approve": session.approve,
        "reject": session.reject,
        "resume": lambda **given: session.resume(sa.Approve(), **given),
    }[way]
    assert first.interrupt is not None
    for given in ({}, {"interrupt_id": first.interrupt.id}):
        with pytest.raises(sa.StaleApproval, match=r"open by now is write \(c2\)"):
            answer(**given)
    assert RAN == ["/1"]
    run = answer()  # now it is known
    assert run is not None
    run.result(PATIENCE)
    assert (["/1"] if way == "reject" else ["/1", "/2"]) == RAN


def test_an_answer_that_names_its_interrupt_is_taken_whoever_gives_it() -> None:
    session, _ = waiting_twice()
    interrupt = session.state.interrupt
    assert interrupt is not None
    run = session.approve(interrupt_id=interrupt.id)
    assert run is not None
    assert run.result(PATIENCE).text == "done"


def test_a_thread_that_was_handed_nothing_answers_what_is_open() -> None:
    session, _ = waiting_twice()

    def elsewhere(_: int) -> str:
        run = session.approve()
        assert run is not None
        return run.result(PATIENCE).text

    assert in_threads(1, elsewhere) == ["done"]


def test_who_reads_the_events_of_a_run_is_handed_its_question() -> None:
    session, _ = waiting_twice()

    async def watch() -> str:
        assert session.current_run is not None
        async for event in session.current_run:
            if event.type == "interrupt":
                break
        in_threads(1, lambda _: session.reject())
        with pytest.raises((sa.StaleApproval, sa.NotRunning)):
            session.approve()
        return session.status

    run_of(watch())
    assert RAN == ["/1"]


def test_a_run_that_is_stopped_as_it_begins_to_ask_people_asks_nobody() -> None:
    session = session_of(call("write", path="/a"), **GATED)

    def stop(event: Event) -> None:
        if isinstance(event, AgentEnd):  # a moment before the session waits
            session.cancel()

    session.subscribe(stop)
    session.send("go").result()
    until(lambda: session.status == "cancelled")
    assert session.interrupt is None
    with pytest.raises(sa.NotRunning):
        session.approve()
    assert unanswered(session.messages) == []
