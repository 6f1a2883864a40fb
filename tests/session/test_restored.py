"""Sessions that go on from a state: what waits, what is lost, and what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import TodosUpdated
from sagents_nb.store import ConversationStore
from tests.middleware.delegating import helper, parent_of, task
from tests.session.stored import rows_of
from tests.talking import agent_of, call, of, results, session_of, unanswered, unbound

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    RAN.clear()


@sa.tool
def write(path: str) -> str:
    """Write."""
    RAN.append(path)
    return f"wrote {path}"


def restored(session: sa.Session, agent: sa.Agent | None = None) -> sa.Session:
    return sa.Session.restore(session.export_state(), agent=agent or session.agent)


def asking_parent(*more: Any) -> sa.Session:
    """A session whose sub-agent waits for an approval, and maybe others too."""
    config = helper(
        call("write", path="/x"), "written", tools=[write], interrupt_on={"write": True}
    )
    agent = parent_of(
        [task("t1"), *more], "on my own", subagents=[config], middleware=[sa.AskUser()]
    )
    session = sa.Session(agent)
    assert session.send("go").result().status == "interrupted"
    return session


# what is not taken along


class Keeps:
    """Keeps what a session gives, as somebody's program does."""

    def __init__(self) -> None:
        self.contexts: list[str] = []
        self.texts: list[str] = []

    def save_state(self, scope: Any, id: str, exported: dict[str, Any], context: str) -> None:
        self.contexts.append(context)
        self.texts.append(json.dumps(exported))

    def load_state(self, scope: Any, id: str) -> None:
        return None


@pytest.mark.spec("S1.10.7")
def test_neither_an_export_nor_a_journal_nor_a_keeper_has_what_is_of_the_process_or_its_user(
    store: ConversationStore,
) -> None:
    used: list[Any] = []

    @sa.tool
    def look(ctx: sa.ToolContext) -> str:
        """Look."""
        used.append((dict(ctx.values), ctx.scope))
        ctx.run.local["handle"] = "canary-handle"
        return "saw"

    agent = agent_of(
        *(call("look"), call("write", "w", path="/a"), "done", "again"),
        tools=[look, write],
        interrupt_on={"write": True},
        agent_id="canary-agent",
        system_prompt="canary-prompt",
        tool_context={"key": "canary-key"},
        filesystem_scope=("user", "canary-files"),
        options={"api": "canary-option"},
        otel_attributes={"team": "canary-team"},
    )
    keeps, mine = Keeps(), sa.Scope(user="canary-user")
    session = sa.Session(agent, "c1", store=store, scope=mine, agent_persistence=keeps)
    given = {"tool_context": {"more": "canary-more"}, "options": {"top": "canary-top"}}
    session.send("go", **given).result()
    exports = [json.dumps(session.export_state())]
    session.approve().result()  # type: ignore[union-attr]
    session.send("and on", **given).result()
    exports.append(json.dumps(session.export_state()))
    session.close()
    assert used == [({"key": "canary-key", "more": "canary-more"}, mine)]
    assert keeps.contexts == ["on_interrupt", "on_completion", "on_completion", "on_shutdown"]
    journal = json.dumps(rows_of(store.database.name))
    for text in (*exports, *keeps.texts, journal):
        assert "/a" in text
        assert "canary" not in text


# what waits


@pytest.mark.spec("S1.10.5")
def test_a_held_call_waits_in_a_restored_session_with_the_same_data() -> None:
    session = session_of(
        call("write", path="/a"), "done", tools=[write], interrupt_on={"write": True}
    )
    session.send("go").result()
    fork = restored(session)
    assert fork.status == "interrupted"
    assert unbound(fork.interrupt) == unbound(session.interrupt)
    assert fork.resume(sa.Approve()).result().text == "done"
    assert RAN == ["/a"]


QUESTION = call("ask_user", "q", question="Why?", response_type="freeform")


@pytest.mark.spec("S1.10.5")
def test_questions_wait_in_a_restored_session_one_or_several() -> None:
    def plain() -> Any:
        return sa.Interrupt("tool", message="And?")

    for turn, answers in (
        ([QUESTION], {"q": sa.Respond("So.")}),
        ([QUESTION, call("plain", "p")], {"q": sa.Respond("So."), "p": sa.Respond("Yes.")}),
    ):
        agent = agent_of(turn, "thanks", tools=[plain], middleware=[sa.AskUser()])
        session = sa.Session(agent)
        session.send("go").result()
        fork = restored(session)
        assert fork.status == "interrupted"
        assert unbound(fork.interrupt) == unbound(session.interrupt)
        assert fork.resume(answers).result().text == "thanks"
        assert "So." in results(fork.state)[0]


@pytest.mark.spec("S1.10.5")
@pytest.mark.parametrize("more", [[], [QUESTION]])
def test_what_a_sub_agent_asked_is_lost_with_it_and_the_model_is_told(more: Any) -> None:
    fork = restored(asking_parent(*more))
    assert (fork.status, fork.interrupt) == ("idle", None)
    answers = fork.messages[-1].tool_results
    assert len(answers) == 1 + len(more)
    for answer in answers:
        assert (answer.is_error, answer.is_interrupt) == (True, False)
        assert "its work was lost" in answer.text
    with pytest.raises(sa.NotRunning):
        fork.approve()
    assert fork.retry().result().text == "on my own"
    assert (unanswered(fork.messages), RAN) == ([], [])


@pytest.mark.spec("S1.10.5")
def test_a_restored_session_whose_sub_agent_is_gone_takes_a_message() -> None:
    fork = restored(asking_parent())
    assert fork.send("leave it").result().text == "on my own"
    assert not unanswered(fork.messages)


@pytest.mark.spec("S1.10.5")
def test_several_questions_that_are_none_and_placeholders_without_one_do_not_wait() -> None:
    placeholder = sa.ToolResult("c1", "write", "Waiting.", is_interrupt=True)
    history = [
        sa.Message.user("go"),
        sa.Message.assistant("", [call("write", path="/a")]),
        sa.Message.tool([placeholder]),
    ]
    for interrupt in (sa.Interrupt("multiple"), None):
        state = sa.State(messages=history).with_interrupt(interrupt)
        session = sa.Session.restore(state.export(), agent=agent_of("on"))
        assert (session.status, session.interrupt) == ("idle", None)
        assert session.messages[-1].tool_results[0].is_error


# todos


def todos_told(session: sa.Session) -> list[Any]:
    told: list[Any] = []
    session.subscribe(told.append, since=0)
    session.cancel()  # has the runtime loop turn once more
    return [[todo.content for todo in event.todos] for event in of(TodosUpdated, told)]


@pytest.mark.spec("S1.9.8")
def test_todos_of_a_restored_session_are_told_once() -> None:
    exported = sa.State(todos=[sa.Todo("a"), sa.Todo("b", "completed")]).export()
    session = sa.Session.restore(exported, agent=agent_of("hi"))
    assert todos_told(session) == [["a", "b"]]
    session.send("go").result()
    assert todos_told(session) == [["a", "b"]]
    late: list[Any] = []
    session.subscribe(late.append)
    assert [event.reason for event in late] == ["snapshot"]  # nothing else is said again
    assert todos_told(sa.Session(agent_of("hi"))) == []


@pytest.mark.spec("S1.9.8")
def test_todos_are_told_as_the_full_list_and_the_empty_one_when_all_is_done() -> None:
    def write_todos(merge: bool, *todos: dict[str, Any]) -> Any:
        return call("write_todos", merge=merge, todos=list(todos))

    session = session_of(
        write_todos(False, {"content": "a"}, {"content": "b"}),
        write_todos(True, {"id": 1, "status": "completed"}),
        write_todos(True, {"id": 2, "status": "completed"}),
        "done",
        middleware=[sa.TodoList()],
    )
    session.send("go").result()
    assert todos_told(session) == [["a", "b"], ["a", "b"], []]
    assert session.todos == []


@pytest.mark.spec("S1.9.8")
def test_todos_that_a_hook_changes_are_told() -> None:
    class Plans(sa.Middleware):
        def before_run(self, state: sa.State, ctx: sa.RunContext) -> sa.State:
            return state.set_todos([*state.todos, sa.Todo("b")])

        def before_model(self, state: sa.State, ctx: sa.RunContext) -> sa.State:
            return state.put_metadata("k", 1)

    state = sa.State(todos=[sa.Todo("a")])
    session = sa.Session(agent_of("done", middleware=[Plans()]), state=state)
    session.send("go").result()
    assert todos_told(session) == [["a"], ["a", "b"]]


@pytest.mark.spec("S1.9.8")
def test_todos_that_go_or_come_with_another_state_are_told() -> None:
    session = sa.Session(agent_of(), state=sa.State(todos=[sa.Todo("a")]))
    told: list[Any] = []
    session.subscribe(told.append)
    session.reset()
    session.replace(state=sa.State(todos=[sa.Todo("b")]))
    session.reset()
    session.reset()
    lists = [[todo.content for todo in event.todos] for event in of(TodosUpdated, told)]
    assert lists == [[], ["b"], []]


@pytest.mark.spec("S1.10.4")
def test_where_a_cache_is_broken_a_new_session_can_stand_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = agent_of("on")
    kept = sa.State().add_message(sa.Message.user("hi")).export()
    assert sa.Session.restore_or_new(kept, agent).messages[0].text == "hi"
    assert sa.Session.restore_or_new(None, agent).messages == []
    assert caplog.records == []
    session = sa.Session.restore_or_new({"messages": "cut o"}, agent, id="s1")
    assert (session.id, session.status, session.messages) == ("s1", "idle", [])
    (record,) = caplog.records
    assert "no 'state'" in record.getMessage()


@pytest.mark.parametrize("restore", [sa.Session.restore, sa.Session.restore_or_new])
def test_what_is_restored_into_a_store_is_kept_there(restore: Any, tmp_path: Path) -> None:
    exported = sa.State().add_message(sa.Message.user("hi")).export()
    agent = agent_of("on")
    with restore(exported, agent, id="moved", store=tmp_path / "chats.db") as session:
        session.retry().result()
    with sa.Session.open("moved", agent=agent, store=tmp_path / "chats.db") as again:
        assert [message.text for message in again.messages] == ["hi", "on"]
