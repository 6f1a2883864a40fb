"""The state, given to whoever keeps it at the turns of a session's life."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import Debug, TitleGenerated
from tests.session.gates import Gate
from tests.session.hours import Hours
from tests.talking import PATIENCE, agent_of, call, of


class States:
    """Somebody's own; fails while ``broken``."""

    def __init__(self) -> None:
        self.broken = False
        self.kept: list[tuple[str, int]] = []
        self.states: list[sa.State] = []
        self.scopes: list[Any] = []
        self.log: list[str] = []

    async def save_state(
        self, scope: Any, conversation_id: str, exported: dict[str, Any], context: str
    ) -> None:
        if self.broken:
            raise OSError("no room")
        assert conversation_id == "c1"
        self.scopes.append(scope)
        self.kept.append((context, len(exported["state"]["messages"])))
        self.states.append(sa.State.restore(exported))
        self.log.append(context)

    def load_state(self, scope: Any, conversation_id: str) -> None:
        return None


def keeping(states: Any, *turns: Any, tools: Any = (), gated: Any = None, **around: Any) -> Any:
    agent = agent_of(*turns, tools=tools, interrupt_on=gated)
    return sa.Session(agent, "c1", agent_persistence=states, **around)


@pytest.mark.spec("S1.12.2", "S1.11.5")
def test_a_state_is_kept_before_the_end_of_a_run_is_told() -> None:
    states = States()
    session = keeping(states, "hi")
    session.subscribe(lambda e: states.log.append(e.status) if e.type == "status_changed" else None)
    session.send("go").result()
    assert states.log == ["running", "on_completion", "idle"]
    assert states.kept == [("on_completion", 2)]


@pytest.mark.spec("S1.12.2", "S1.11.6")
def test_each_way_a_run_ends_has_its_context(gate: Gate) -> None:
    states = States()
    session = keeping(
        states, call("hold"), ConnectionError("cable"), call("hold"), tools=[gate.tool]
    )
    run = session.send("go")
    gate.wait()
    run.cancel()
    assert run.result().status == "cancelled"
    with pytest.raises(sa.ModelError):
        session.send("go").result()
    session.pause("enough")
    session.close()
    assert [context for context, _ in states.kept] == ["on_cancel", "on_error", "on_shutdown"]

    waiting = States()
    session = keeping(waiting, call("hold"), tools=[gate.tool], gated={"hold": True})
    session.send("go").result()
    assert waiting.kept == [("on_interrupt", 2)]


@pytest.mark.spec("S1.12.2")
def test_a_pause_is_kept_as_a_completion(gate: Gate) -> None:
    states = States()
    session = keeping(states, call("hold"), call("hold", "c2"), "b", tools=[gate.tool])
    run = session.send("go")
    gate.wait()
    session.pause("enough")
    gate.open()
    assert run.result().status == "paused"
    assert [context for context, _ in states.kept] == ["on_completion"]


@pytest.mark.spec("S1.11.14", "S1.12.2")
def test_a_title_is_kept_and_told() -> None:
    states = States()
    title = sa.ConversationTitle(model=sa.ScriptedModel(["Birds"]))
    agent = sa.Agent(sa.ScriptedModel(["hi"]), replace_default_middleware=True, middleware=[title])
    session = sa.Session(agent, "c1", agent_persistence=states)
    titled = threading.Event()
    session.subscribe(lambda e: titled.set() if e.type == "title_generated" else None)
    session.send("go").result()
    assert titled.wait(PATIENCE)
    session.close()
    assert "on_title_generated" in [context for context, _ in states.kept]


@pytest.mark.spec("S1.12.2")
@pytest.mark.parametrize("while_it_runs", [False, True])
def test_the_state_that_is_kept_at_a_new_title_has_it(while_it_runs: bool, gate: Gate) -> None:
    class Titles(States):
        async def save_state(self, scope: Any, id: str, exported: Any, context: str) -> None:
            await super().save_state(scope, id, exported, context)
            if context == "on_title_generated":
                kept.set()

    states, kept = Titles(), threading.Event()

    class Named(sa.Middleware):
        def handle_message(self, message: Any, state: sa.State, ctx: sa.RunContext) -> sa.State:
            ctx.publish_kept(TitleGenerated, title=message)
            return state.put_metadata("title", message)

    agent = agent_of(call("hold"), "hi", tools=[gate.tool], middleware=[Named()])
    session = sa.Session(agent, "c1", agent_persistence=states)
    run = session.send("go")
    gate.wait()
    if while_it_runs:
        session.notify_middleware("Named", "Birds")
        gate.open()
    else:
        gate.open()
        run.result()
        session.notify_middleware("Named", "Birds")
    assert kept.wait(PATIENCE)
    contexts = [context for context, _ in states.kept]
    at_the_title = states.states[contexts.index("on_title_generated")]
    assert at_the_title.metadata == {"title": "Birds"}


@pytest.mark.spec("S1.12.2")
def test_a_title_is_that_of_the_conversation_in_the_store(store: sa.ConversationStore) -> None:
    title = sa.ConversationTitle(model=sa.ScriptedModel(["Birds"]))
    agent = sa.Agent(sa.ScriptedModel(["hi"]), replace_default_middleware=True, middleware=[title])
    session = sa.Session(agent, "c1", store=store, scope=sa.Scope(user="alice"))
    titled = threading.Event()
    session.subscribe(lambda e: titled.set() if e.type == "title_generated" else None)
    session.send("go").result()
    assert titled.wait(PATIENCE)
    session.close()
    [conversation] = store.scoped(sa.Scope(user="alice")).list_conversations()
    assert conversation.title == "Birds"


@pytest.mark.spec("S1.12.2")
def test_who_cannot_keep_it_stops_nothing_and_is_given_it_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    states = States()
    states.broken = True
    session = keeping(states, "one", "two")
    events: list[Any] = []
    session.subscribe(events.append, debug=True)
    assert session.send("go").result().text == "one"
    told = [event for event in of(Debug, events) if event.kind == "persistence_failed"]
    assert "no room" in told[0].data["problem"]
    assert "no room" in caplog.text
    states.broken = False
    session.send("again").result()
    assert states.kept == [("on_completion", 4)]


@pytest.mark.spec("S1.12.2")
@pytest.mark.parametrize("broken", [False, True])
def test_at_each_turn_the_state_of_that_moment_is_given_and_the_agent_goes_on(
    broken: bool, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    states = States()
    states.broken = broken
    title = sa.ConversationTitle(model=sa.ScriptedModel(["Birds"]))
    turns = ["hi", call("look"), call("hold", "c2"), ConnectionError("cable"), call("look", "c3")]
    agent = agent_of(
        *turns,
        middleware=[title],
        tools=[gate.tool, sa.Tool(lambda: "", name="look")],
        interrupt_on={"look": True},
    )
    session = sa.Session(agent, "c1", agent_persistence=states)
    titled = threading.Event()
    session.subscribe(lambda e: titled.set() if e.type == "title_generated" else None)
    moments: list[sa.State] = []

    def ended(run: sa.Run | None, status: str) -> None:
        assert run is not None
        with suppress(sa.ModelError):
            run.result()
        assert session.status == status
        moments.append(session.state)

    ended(session.send("go"), "idle")
    assert titled.wait(PATIENCE)
    ended(session.send("look"), "interrupted")
    run = session.approve()
    gate.wait()
    session.cancel()
    ended(run, "cancelled")
    ended(session.send("again"), "error")
    ended(session.retry(), "interrupted")
    session.close()
    moments.append(session.state)
    contexts = ["on_completion", "on_interrupt", "on_cancel", "on_error", "on_interrupt"]
    contexts += ["on_shutdown"]
    if broken:
        assert states.kept == []
        for context in [*contexts, "on_title_generated"]:
            assert f"not saved {context}: OSError: no room" in caplog.text
        return
    assert caplog.text == ""
    kept = list(zip((context for context, _ in states.kept), states.states, strict=True))
    given = [(context, state) for context, state in kept if context != "on_title_generated"]
    assert [context for context, _ in given] == contexts
    assert [state.messages for _, state in given] == [state.messages for state in moments]
    assert [state.interrupt for _, state in given] == [state.interrupt for state in moments]
    assert len(kept) == len(given) + 1


@pytest.mark.spec("S1.12.2")
def test_without_anybody_who_keeps_it_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    session = sa.Session(agent_of("one"))
    session.send("go").result()
    session.close()
    assert caplog.text == ""


@pytest.mark.spec("S1.12.2", "S1.12.7")
def test_a_plain_function_will_do_and_the_scope_comes_first_and_stays_out_of_the_state() -> None:
    class Plain(States):
        def save_state(self, scope: Any, conversation_id: str, exported: Any, context: str) -> None:  # type: ignore[override]
            self.scopes.append(scope)
            self.kept.append((context, str(exported).count("ann")))

    states, scope = Plain(), sa.Scope(user="ann")
    session = keeping(states, "one", scope=scope)
    session.send("go").result()
    assert states.scopes == [scope]
    assert states.kept == [("on_completion", 0)]
    again = sa.Session.restore(session.export_state(), agent=session.agent)
    assert again.scope is None  # a restored session has its new caller's


@pytest.mark.spec("S1.11.9", "S1.12.2")
def test_a_session_that_rests_is_kept_first(hours: Hours) -> None:
    states, ended = States(), threading.Event()
    session = keeping(states, "one", inactivity_timeout=60)

    def hear(event: Any) -> None:
        if event.type == "agent_shutdown":
            states.log.append(event.type)
            ended.set()

    session.subscribe(hear)
    session.send("go").result()
    hours.pass_by(60)
    assert ended.wait(PATIENCE)
    assert states.log[-2:] == ["on_shutdown", "agent_shutdown"]
