"""One thread: what is said to it, what waits for people, and what stops it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

import sagents_nb as sa
from sagents_nb.hub import Hub, Thread, standings
from sagents_nb.hub.threads import NothingWaits
from sagents_nb.runtime.thread import runtime
from tests.hub.world import World, chat, data_of, is_dense, kept_of, listening, rest, say
from tests.talking import PATIENCE, call, in_threads, until

ERROR = sa.ModelError("The cable is cut.")
PAY = call("pay", "p1", amount=5)


def users(thread: Thread) -> list[str]:
    return [text for role, text in chat(thread) if role == "user"]


# invoke


@pytest.mark.spec("H3.1.1")
def test_a_thread_is_registered_until_it_is_invoked(stored_world: World) -> None:
    thread = stored_world.thread("Hello!")
    assert thread.status == "registered"
    run = thread.invoke([sa.Message.user("hi")])
    assert run["runId"]
    assert run["status"] in ("running", "completed")
    assert rest(thread) == "completed"
    assert chat(thread) == [("user", "hi"), ("assistant", "Hello!")]


@pytest.mark.spec("H3.1.1", "H3.1.6", "H3.5.3")
def test_each_invoke_of_a_thread_that_rests_starts_a_run_and_keeps_what_was_said(
    world: World,
) -> None:
    thread = world.thread("one", ERROR, "three", call("hold"), "four")
    assert say(thread, "a") == "completed"
    assert say(thread, "b") == "error"
    assert say(thread, "c") == "completed"
    thread.invoke([sa.Message.user("d")])
    world.holds.wait()
    thread.cancel()
    assert rest(thread) == "canceled"
    assert say(thread, "e") == "completed"
    assert users(thread) == ["a", "b", "c", "d", "e"]
    starts = data_of(world.events(thread), "run.started")
    assert len({start["runId"] for start in starts}) == 5


@pytest.mark.spec("H3.1.1")
def test_messages_to_a_thread_that_runs_are_heard_together_by_that_run(world: World) -> None:
    thread = world.thread(call("hold"), "done")
    thread.invoke([sa.Message.user("a")])
    world.holds.wait()
    assert thread.invoke([sa.Message.user("b"), sa.Message.user("c")])["status"] == "running"
    assert chat(thread)[-2:] == [("user", "b"), ("user", "c")]
    world.go_on.set()
    rest(thread)
    assert chat(thread)[-4:] == [
        ("tool", "held"),
        ("user", "b"),
        ("user", "c"),
        ("assistant", "done"),
    ]
    assert world.told(thread, "run.started") == ["run.started"]


def test_of_a_turn_that_the_end_of_a_hub_cuts_off_only_what_may_have_run_is_asked_about(
    stored_world: World,
) -> None:
    world = stored_world
    thread = world.thread([call("look", "l1", at="sea"), call("hold", "h1")])
    heard = listening(thread)
    thread.invoke([sa.Message.user("go")])
    world.holds.wait()
    until(lambda: any(event and event.type == "tool.output" for event in heard))
    thread = world.reopened(thread, "done")
    assert thread.status == "paused"
    waiting = thread.session.interrupt
    assert waiting is not None
    assert (waiting.type, waiting.tool_call_ids) == ("in_doubt", ["h1"])
    thread.approve(True, answers={"h1": "ran"}, by="test")
    assert rest(thread) == "completed"
    assert ("tool", "seen sea") in chat(thread)
    assert world.ran == ["look sea"]


class Slow(sa.Middleware):
    """Has its first run take time to end, once the model has answered."""

    def __init__(self) -> None:
        self.ends, self.go_on = asyncio.Event(), asyncio.Event()

    async def after_run(self, state: sa.State, ctx: sa.RunContext) -> None:
        self.ends.set()
        await self.go_on.wait()


@pytest.mark.spec("H3.1.1")
def test_a_message_that_comes_as_a_run_ends_is_heard_by_a_further_one(world: World) -> None:
    slow = Slow()
    world.system.use(lambda: slow, ["default"], key="slow")
    thread = world.thread("one", "two")
    thread.invoke([sa.Message.user("a")])
    until(slow.ends.is_set)
    assert thread.invoke([sa.Message.user("b")])["status"] == "running"
    runtime.call(slow.go_on.set)
    until(lambda: len(world.model.requests) == 2)
    assert rest(thread) == "completed"
    assert [text for _, text in chat(thread)] == ["a", "one", "b", "two"]


@pytest.mark.spec("H3.1.1", "H3.1.6")
def test_what_a_run_that_failed_did_not_hear_is_heard_by_the_next_and_first(world: World) -> None:
    thread = world.thread(world.held(ERROR), "done")
    thread.invoke([sa.Message.user("a")])
    world.holds.wait()
    thread.invoke([sa.Message.user("b")])
    world.go_on.set()
    assert rest(thread) == "error"
    assert users(thread) == ["a", "b"]
    thread = world.reopened(thread, "done")
    assert thread.status == "error"
    assert say(thread, "c") == "completed"
    assert [text for _, text in chat(thread)] == ["a", "b", "c", "done"]


@pytest.mark.spec("H3.1.2")
def test_without_messages_and_files_the_model_is_asked_all_the_same(world: World) -> None:
    thread = world.thread("one", "two")
    assert say(thread) == "completed"
    assert say(thread) == "completed"
    assert [text for _, text in chat(thread)] == ["one", "two"]


@pytest.mark.spec("H3.1.2", "H3.3.7")
def test_files_overwrite_single_paths_and_others_stay(stored_world: World) -> None:
    thread = stored_world.thread("ok", "ok")
    say(thread, "a", files={"/a.md": "1", "b.md": "2"})
    say(thread, "b", files={"/a.md": "3"})
    thread = stored_world.reopened(thread)
    assert thread.state()["state"]["files"] == {"/a.md": "3", "/b.md": "2"}


def test_only_people_and_systems_speak_to_a_thread(world: World) -> None:
    thread = world.thread()
    with pytest.raises(sa.ConfigurationError, match="role user or system, not 'assistant'"):
        thread.invoke([sa.Message.assistant("I said so.")], {"/a.md": "x"})
    assert thread.status == "registered"
    assert thread.state()["state"]["files"] == {}


def test_of_two_who_invoke_at_once_both_are_heard(stored_world: World) -> None:
    thread = stored_world.thread(*["ok"] * 16)
    in_threads(8, lambda n: thread.invoke([sa.Message.user(str(n))]))
    until(lambda: thread.status == "completed" and not thread.session.queued)
    assert sorted(users(thread)) == [str(n) for n in range(8)]
    assert is_dense(stored_world.events(thread))


# idempotency


def test_what_has_the_same_key_is_done_once_also_after_reopening(stored_world: World) -> None:
    thread = stored_world.thread("one", "two")
    say(thread, "a", idempotency_key="k")
    say(thread, "a", idempotency_key="k", files={"/a.md": "x"})
    assert chat(thread) == [("user", "a"), ("assistant", "one")]
    thread = stored_world.reopened(thread, "two")
    say(thread, "a", idempotency_key="k")
    assert chat(thread) == [("user", "a"), ("assistant", "one")]
    assert thread.state()["state"]["files"] == {}
    accepted = data_of(stored_world.events(thread), "request.accepted")
    assert accepted == [{"idempotencyKey": "k"}]


def test_a_key_without_a_message_is_known_after_reopening_too(world: World) -> None:
    thread = world.thread("one", "two")
    say(thread, idempotency_key="k")
    thread = world.reopened(thread, "two")
    say(thread, idempotency_key="k")
    assert chat(thread) == [("assistant", "one")]


def test_a_key_is_known_after_its_message_left_the_conversation(world: World) -> None:
    thread = world.thread("one")
    say(thread, "a", idempotency_key="k")
    thread.session.reset()
    thread = world.reopened(thread, "two")
    say(thread, "a", idempotency_key="k")
    assert chat(thread) == []


def test_of_eight_who_say_the_same_with_one_key_one_is_heard(world: World) -> None:
    thread = world.thread(*["ok"] * 8)
    said = [sa.Message.user("a")]
    in_threads(8, lambda n: thread.invoke(said, idempotency_key="k"))
    rest(thread)
    assert chat(thread) == [("user", "a"), ("assistant", "ok")]


# approvals


@pytest.mark.spec("H3.2.1", "H3.2.2", "H3.2.4", "H3.5.3")
def test_a_watched_call_pauses_its_whole_batch_until_it_is_approved(stored_world: World) -> None:
    world = stored_world
    thread = world.thread([call("look", "l1", at="sea"), PAY], "done")
    assert say(thread, "a") == "paused"
    assert world.ran == []
    assert thread.run["reason"] == "hitl"
    waiting = thread.state()["state"]["interrupt"]
    assert [request["tool_name"] for request in waiting["action_requests"]] == ["pay"]
    thread = world.reopened(thread, "done")
    assert thread.status == "paused"
    assert thread.run["reason"] == "hitl"
    thread.approve(True, by="test")
    assert rest(thread) == "completed"
    assert sorted(world.ran) == ["look sea", "pay 5"]
    events = world.events(thread)
    assert data_of(events, "hitl.interrupt") == [
        {"proposedToolCalls": [{"toolName": "pay", "args": {"amount": 5}}]}
    ]
    assert data_of(events, "hitl.resume") == [{"approved": True}]
    assert is_dense(events)


@pytest.mark.spec("H3.2.1", "H3.2.4")
def test_tools_that_are_not_watched_pause_nothing(world: World) -> None:
    thread = world.thread(call("look", at="sea"), "done")
    assert say(thread, "a") == "completed"
    assert world.ran == ["look sea"]
    assert "run.paused" not in world.told(thread)


@pytest.mark.spec("H3.2.4")
def test_a_message_to_a_paused_thread_is_heard_after_the_approved_call(world: World) -> None:
    thread = world.thread(PAY, "done")
    say(thread, "a")
    assert thread.invoke([sa.Message.user("b")])["status"] == "paused"
    assert chat(thread)[-1] == ("user", "b")
    thread = world.reopened(thread, "done")
    assert thread.status == "paused"
    assert chat(thread)[-1] == ("user", "b")
    thread.approve(True, by="test")
    assert rest(thread) == "completed"
    assert world.ran == ["pay 5"]
    assert chat(thread)[2:] == [("tool", '{"paid":5}'), ("user", "b"), ("assistant", "done")]


@pytest.mark.spec("H3.2.2", "H3.5.3")
def test_a_call_runs_with_the_arguments_that_it_was_approved_with(world: World) -> None:
    thread = world.thread([PAY, call("pay", "p2", amount=7)], "done")
    say(thread, "a")
    thread.approve(True, {"p1": {"amount": 1}, "p2": {"amount": 7}}, by="test")
    rest(thread)
    assert sorted(world.ran) == ["pay 1", "pay 7"]
    assert data_of(world.events(thread), "hitl.resume") == [
        {"approved": True, "modifiedToolCalls": [{"id": "p1", "args": {"amount": 1}}]}
    ]


@pytest.mark.spec("H3.2.2")
@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"p1": {"amount": 1}, "p2": {"amount": 7}, "x": {}}, "No call 'x' waits.* p1, p2"),
        ({"p1": {"amount": 1}}, "p2 is left out"),
        ({"p1": {"amount": "much"}, "p2": {"amount": 7}}, "amount"),
    ],
)
def test_changed_calls_are_those_that_wait_and_all_of_them(
    world: World, edits: dict[str, Any], said: str
) -> None:
    thread = world.thread([PAY, call("pay", "p2", amount=7)], "done")
    say(thread, "a")
    with pytest.raises(sa.InvalidDecision, match=said):
        thread.approve(True, edits, by="test")
    assert thread.status == "paused"
    thread.approve(True, by="test")
    rest(thread)
    assert sorted(world.ran) == ["pay 5", "pay 7"]


@pytest.mark.spec("H3.2.3")
def test_a_rejection_runs_nothing_that_was_watched_and_the_run_goes_on(world: World) -> None:
    thread = world.thread([PAY, call("pay", "p2", amount=7)], "I leave it.")
    say(thread, "a")
    thread.approve(False, by="test")
    assert rest(thread) == "completed"
    assert world.ran == []
    answers = [text for role, text in chat(thread) if role == "tool"]
    assert len(answers) == 2
    assert all("rejected" in text for text in answers)
    assert chat(thread)[-1] == ("assistant", "I leave it.")
    assert data_of(world.events(thread), "hitl.resume") == [{"approved": False}]


def killed(world: World, copy: Path) -> Hub:
    """A hub over a copy of what was written so far, as after a kill of the process."""
    path = str(make_url(world.url).database)
    with closing(sqlite3.connect(path)) as before, closing(sqlite3.connect(copy)) as after:
        before.backup(after)
        named = "select name from sqlite_master where type = 'table' and name like '%lease%'"
        for (name,) in after.execute(named).fetchall():
            after.execute(f'delete from "{name}"')
        after.commit()
    return Hub(world.system, copy)


@pytest.mark.parametrize(("answer", "ran"), [("ran", 1), ("did not run", 1), ("retry", 2)])
def test_a_call_that_a_kill_cut_off_is_answered_and_neither_approved_nor_rejected(
    world: World, tmp_path: Path, answer: str, ran: int
) -> None:
    thread = world.thread(call("hold", "h1"), "done")
    thread.invoke([sa.Message.user("a")])
    assert world.holds.wait(PATIENCE)
    hub = killed(world, tmp_path / "copy.db")
    try:
        world.go_on.set()
        rest(thread)
        world.says("done")
        again = hub.thread(world.agency, thread.record.id)
        assert again.state()["state"]["interrupt"]["type"] == "in_doubt"
        needed = """'h1' of hold needs an answer; .*"ran" or "did not run" or "retry"."""
        for approved, answers in ((True, {}), (False, {}), (True, {"h1": "perhaps"})):
            with pytest.raises(sa.InvalidDecision, match=needed):
                again.approve(approved, answers=answers, by="test")
        again.approve(True, answers={"h1": answer}, by="test")
        assert rest(again) == "completed"
        assert world.ran == ["hold"] * ran
    finally:
        hub.close()


def test_of_several_calls_those_that_ask_are_answered_and_others_approved_or_rejected(
    world: World,
) -> None:
    def bill(amount: int) -> sa.Interrupt:
        """Ask for money."""
        return sa.Interrupt("payment", message=f"Pay {amount}?")

    world.system.add_tool(bill).use(sa.AskUser, "default")
    question = call("ask_user", "q1", question="Where?", response_type="freeform")
    thread = world.thread([PAY, call("bill", "b1", amount=3), question], "done")
    say(thread, "a")
    with pytest.raises(sa.InvalidDecision, match="'p1' of pay asks nothing"):
        thread.approve(True, answers={"p1": "yes"}, by="test")
    thread.approve(True, by="test")
    rest(thread)
    with pytest.raises(sa.InvalidDecision, match="'q1' of ask_user needs an answer"):
        thread.approve(True, answers={"b1": "paid"}, by="test")
    with pytest.raises(sa.InvalidDecision, match="'b1' of bill needs an answer"):
        thread.approve(False, by="test")
    thread.approve(False, answers={"b1": "paid"}, by="test")
    assert rest(thread) == "completed"
    assert world.ran == ["pay 5"]
    answers = [text for role, text in chat(thread) if role == "tool"]
    assert "paid" in answers
    assert any("They said: Rejected." in text for text in answers)


@pytest.mark.spec("H3.2.2")
def test_where_nothing_waits_an_approval_is_refused(world: World) -> None:
    thread = world.thread(ERROR, "done")
    for _ in range(3):  # registered, in error, completed
        with pytest.raises(NothingWaits):
            thread.approve(True, by="test")
        say(thread, "a")


def test_of_eight_who_approve_at_once_one_does(stored_world: World) -> None:
    thread = stored_world.thread(PAY, "done", PAY)
    say(thread, "a")
    outcomes = in_threads(8, lambda n: thread.approve(n % 2 == 0, by=str(n)))
    refused = [outcome for outcome in outcomes if outcome is not None]
    assert len(refused) == 7
    assert all(isinstance(each, NothingWaits | sa.StaleApproval) for each in refused)
    assert rest(thread) == "completed"
    assert len(stored_world.ran) == (1 if outcomes.index(None) % 2 == 0 else 0)


def test_an_answer_to_what_waited_before_is_stale(world: World) -> None:
    thread = world.thread(PAY, call("pay", "p2", amount=7), "done")
    say(thread, "a")
    waiting = thread.session.interrupt
    assert waiting is not None
    thread.approve(True, by="test")
    rest(thread)
    with pytest.raises(sa.StaleApproval):
        thread.approve(True, interrupt_id=waiting.id, by="test")
    assert world.ran == ["pay 5"]


# cancel


@pytest.mark.spec("H3.2.5", "H3.3.1")
def test_what_was_cancelled_while_it_waited_cannot_be_approved_any_more(
    stored_world: World,
) -> None:
    world = stored_world
    thread = world.thread(PAY, "done")
    say(thread, "a")
    thread.cancel()
    assert thread.status == "canceled"
    with pytest.raises(NothingWaits):
        thread.approve(True, by="test")
    thread = world.reopened(thread, "done")
    assert thread.status == "canceled"
    with pytest.raises(NothingWaits):
        thread.approve(True, by="test")
    assert world.ran == []
    assert say(thread, "b") == "completed"


@pytest.mark.spec("H3.3.1", "H3.5.3")
def test_cancelling_is_told_once_in_each_status_but_completed(world: World) -> None:
    thread = world.thread(ERROR, call("hold"), PAY, "done")

    def cancelled() -> int:
        for _ in range(2):
            thread.cancel()
        assert rest(thread) == "canceled"
        return world.told(thread).count("run.canceled")

    assert cancelled() == 1  # registered
    assert say(thread, "a") == "error"
    assert cancelled() == 2
    thread.invoke([sa.Message.user("b")])
    world.holds.wait()
    assert cancelled() == 3
    assert say(thread, "c") == "paused"
    assert cancelled() == 4
    assert say(thread, "d") == "completed"
    thread.cancel()
    assert thread.status == "completed"
    assert world.told(thread).count("run.canceled") == 4


@pytest.mark.spec("H3.3.1")
def test_what_a_tool_returns_after_it_was_cancelled_is_dropped(world: World) -> None:
    thread = world.thread(call("hold"), "done")
    thread.invoke([sa.Message.user("a")])
    world.holds.wait()
    thread.cancel()
    assert rest(thread) == "canceled"
    before = chat(thread)
    world.go_on.set()
    until(lambda: world.ran == ["hold"])
    assert chat(thread) == before
    assert "held" not in str(before)


def test_a_message_right_after_a_cancel_is_heard_by_a_run_of_its_own(world: World) -> None:
    thread = world.thread(call("hold"), "done")
    thread.invoke([sa.Message.user("a")])
    world.holds.wait()
    thread.cancel()
    thread.invoke([sa.Message.user("b")])
    until(lambda: chat(thread)[-1] == ("assistant", "done"))
    assert rest(thread) == "completed"
    assert users(thread) == ["a", "b"]


def test_what_was_said_before_a_cancel_is_not_lost(world: World) -> None:
    thread = world.thread(PAY, "done")
    say(thread, "a")
    thread.invoke([sa.Message.user("b")])
    thread.cancel()
    thread = world.reopened(thread, "done")
    assert thread.status == "canceled"
    assert users(thread) == ["a", "b"]
    assert say(thread, "c") == "completed"
    assert users(thread) == ["a", "b", "c"]


# what is told


def test_what_is_told_live_is_what_is_kept_and_pieces_are_not(stored_world: World) -> None:
    world = stored_world
    thread = world.thread([call("look", at="sea"), PAY], "done")
    heard = listening(thread)
    say(thread, "a", idempotency_key="k")
    thread.approve(True, by="test")
    rest(thread)
    kept = world.events(thread)
    assert kept_of(heard) == kept
    deltas = [(n, e) for n, e in enumerate(heard) if e is not None and e.type == "model.delta"]
    assert deltas
    for place, delta in deltas:
        before = heard[place - 1]
        assert before is not None
        assert delta.seq == before.seq
    assert "".join(delta.data["delta"] for _, delta in deltas) == "done"


@pytest.mark.spec("H3.1.8")
def test_numbers_go_on_where_they_were_after_reopening(stored_world: World) -> None:
    world = stored_world
    thread = world.thread("one")
    say(thread, "a")
    before = world.events(thread)
    for turn in ("two", "three"):
        thread = world.reopened(thread, turn)
        assert world.events(thread) == before
        heard = listening(thread)
        say(thread, "again")
        after = world.events(thread)
        assert after[: len(before)] == before
        assert kept_of(heard) == after[len(before) :]
        before = after
    assert is_dense(before)
    assert data_of(before, "run.tick") == [
        {"runId": start["runId"], "step": step}
        for step, start in enumerate(data_of(before, "run.started"))
    ]


def test_a_run_that_a_hub_ended_is_paused_when_it_is_opened_again(world: World) -> None:
    thread = world.thread(call("hold"), "done")
    thread.invoke([sa.Message.user("a")])
    world.holds.wait()
    heard = listening(thread)
    thread = world.reopened(thread, "done", "again")
    assert heard[-1] is None
    assert thread.status == "paused"
    assert thread.run["reason"] == "hitl", "nobody knows whether it ran"
    assert world.told(thread)[-2:] == ["hitl.interrupt", "run.paused"]
    assert not {"agent.error", "run.canceled"} & {*world.told(thread)}
    thread.approve(True, answers={"c1": "did not run"}, by="test")
    assert rest(thread) == "completed"
    assert say(thread, "b") == "completed"
    assert is_dense(world.events(thread))


# state


@pytest.mark.spec("H3.3.7", "H3.5.1")
def test_the_state_says_what_the_thread_is(world: World) -> None:
    todo = {"content": "greet", "status": "pending"}
    thread = world.thread(call("write_todos", todos=[todo]), "done")
    say(thread, "a", files={"/a.md": "x"})
    seen = thread.state()
    state, run = seen["state"], seen["run"]
    assert state["thread"] == {
        "id": thread.record.id,
        "createdAt": thread.record.created_at.isoformat(),
        "request": {},
        "agentType": "clerk",
        "agencyId": world.agency.id,
    }
    assert state["threadId"] == thread.record.id
    assert state["agentType"] == "clerk"
    assert state["model"] == "scripted"
    assert state["todos"] == [todo]
    assert state["files"] == {"/a.md": "x"}
    assert not {"subagents", "parent", "interrupt"} & state.keys()
    assert {"look", "pay", "write_todos", "read_file"} <= {tool["name"] for tool in state["tools"]}
    assert (run["status"], run["step"]) == ("completed", 2)


# what a process that ended did not tell


def forget(world: World, thread: Thread, *types: str) -> None:
    """As if the process had ended before it told these."""
    thread.close("to forget")
    tables, id = world.hub.store.database.tables, thread.record.id
    t, s = tables.hub_events, tables.hub_standings

    def untell(connection: Any) -> None:
        connection.execute(t.delete().where(t.c.conversation_id == id, t.c.type.in_(types)))
        connection.execute(s.delete().where(s.c.conversation_id == id))
        left = connection.execute(t.select().where(t.c.conversation_id == id).order_by(t.c.seq))
        standings.note(connection, tables, id, left.mappings().all())

    world.hub.store.database.run(untell)


@pytest.mark.parametrize(
    ("turn", "end", "status"),
    [
        ("Hello!", "agent.completed", "completed"),
        (ERROR, "agent.error", "error"),
        (PAY, "run.paused", "paused"),
    ],
)
def test_the_end_of_a_run_that_was_not_told_is_told_once_it_is_opened_again(
    world: World, turn: Any, end: str, status: str
) -> None:
    thread = world.thread(turn)
    say(thread, "a")
    (before,) = data_of(world.events(thread), end)
    forget(world, thread, end, "hitl.interrupt")
    for _ in range(2):
        thread = world.reopened(thread)
        assert thread.status == status
        assert data_of(world.events(thread), end) == [before]
    assert is_dense(world.events(thread))


def test_a_cancel_that_was_not_told_is_told_once_it_is_opened_again(world: World) -> None:
    thread = world.thread(PAY)
    say(thread, "a")
    thread.cancel()
    forget(world, thread, "run.canceled")
    thread = world.reopened(thread)
    assert thread.status == "canceled"
    assert world.told(thread)[-2:] == ["run.paused", "run.canceled"]


def test_a_run_that_was_cut_off_and_had_nothing_to_answer_is_paused(world: World) -> None:
    thread = world.thread(world.held("one"))
    thread.invoke()
    world.holds.wait()
    thread = world.reopened(thread, "two")
    assert thread.status == "paused"
    assert say(thread) == "completed"
    assert chat(thread) == [("assistant", "two")]


def test_what_was_said_as_a_run_ended_and_nobody_heard_is_heard_after_reopening(
    world: World,
) -> None:
    thread = world.thread("one")
    say(thread, "a")
    thread.session.steer("b")
    thread = world.reopened(thread, "two")
    assert thread.status == "paused"
    assert say(thread) == "completed"
    assert [text for _, text in chat(thread)] == ["a", "one", "b", "two"]


def test_a_run_that_was_cut_off_before_it_told_anything_is_paused(world: World) -> None:
    thread = world.thread(call("hold"), "done")
    thread.invoke([sa.Message.user("a")])
    world.holds.wait()
    thread.close("to forget")
    forget(world, thread, *world.told(thread))
    thread = world.reopened(thread)
    assert thread.status == "paused"
    assert world.told(thread) == ["hitl.interrupt", "run.paused"]


@pytest.mark.parametrize(
    ("said", "files"),
    [("", {"/x": "new", "/old": "new"}), ("Go.", {"/a": "x", "/old": "new", "/a/b": "y"})],
)
def test_files_of_what_is_refused_are_as_they_were(
    world: World, said: str, files: dict[str, str]
) -> None:
    thread = world.thread("Done.")
    thread.session.files.write("/old", "old")
    with pytest.raises(sa.SagentsError):
        thread.invoke([sa.Message.user(said)], files)
    assert thread.session.files.list() == ["/old"]
    assert thread.session.files.read("/old").text == "old"
