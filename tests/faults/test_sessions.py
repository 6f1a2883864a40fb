"""What a session promises, it does: faults that were seen from outside."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import Debug, DisplayMessageSaved, FileDeleted
from sagents_nb.files import DiskStorage, FileSystem, Mount, StorageFailed
from tests.files.doubles import DictStorage
from tests.session.hours import Hours
from tests.talking import PATIENCE, agent_of, call, of, session_of, until


@pytest.mark.parametrize("inactivity", [300.0, None])
def test_b07_without_viewers_it_rests_also_while_it_may_be_inactive_for_longer(
    hours: Hours, inactivity: float | None
) -> None:
    session = sa.Session(agent_of("x"), presence_timeout=2.0, inactivity_timeout=inactivity)
    leave = session.watch("page")
    session.send("x").result(PATIENCE)
    leave()
    session.info()  # the leaving is done by then
    hours.pass_by(1.9)
    assert session.status == "idle"
    hours.pass_by(0.2)
    assert session.status == "closed"
    assert session.resting == "idle"


def test_b07_also_where_the_last_viewer_left_while_people_were_asked(hours: Hours) -> None:
    def act() -> str:
        return "acted"

    agent = agent_of(call("act"), "done", tools=[act], interrupt_on={"act": True})
    session = sa.Session(agent, presence_timeout=2.0, inactivity_timeout=300.0)
    leave = session.watch("page")
    session.send("go").result(PATIENCE)
    leave()
    hours.pass_by(10.0)
    assert session.status == "interrupted"
    session.approve().result(PATIENCE)  # type: ignore[union-attr]
    hours.pass_by(2.1)
    assert session.status == "closed"


def test_b15_a_debug_event_can_be_published_by_whoever_uses_a_session_and_by_a_hook() -> None:
    class Tells(sa.Middleware):
        def before_model(self, state: sa.State, ctx: Any) -> None:
            ctx.publish(Debug, kind="middleware_action", data={"from": "hook"})
            ctx.publish_kept(Debug, kind="middleware_action", data={"from": "kept"})

    session = session_of("x", middleware=[Tells()])
    heard: list[Any] = []
    session.subscribe(heard.append, debug=True)
    session.publish(Debug(kind="middleware_action", data={"from": "me"}))
    session.send("go").result(PATIENCE)
    told = [e.data for e in of(Debug, heard) if e.kind == "middleware_action"]
    assert told == [{"from": "me"}, {"from": "hook"}, {"from": "kept"}]


OPTIONS = [{"label": "Deep red", "value": "r"}, {"label": "Blue", "value": "b"}]


@pytest.mark.parametrize(
    ("kind", "answer", "text"),
    [
        ("single_select", "b", "Blue"),
        ("multi_select", ["r", "b"], "Deep red, Blue"),
        ("single_select", {"other_text": "Green"}, "Green"),
        ("multi_select", {"selected": ["b"], "other_text": "Green"}, "Blue, Green"),
        ("freeform", "Like the sea", "Like the sea"),
    ],
)
@pytest.mark.spec("S1.4.5")
def test_b23_what_people_answered_is_a_row_of_theirs(
    kind: str, answer: Any, text: str, tmp_path: Path
) -> None:
    store = sa.ConversationStore(f"sqlite:///{tmp_path / 'c.db'}")
    options = [] if kind == "freeform" else OPTIONS
    question = call(
        "ask_user", question="Color?", response_type=kind, options=options, allow_other=True
    )
    session = sa.Session(agent_of(question, "ok", middleware=[sa.AskUser()]), id="c", store=store)
    session.send("x").result(PATIENCE)
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.resume(sa.Respond(answer)).result(PATIENCE)
    session.close()
    rows = store.load_display_messages("c")
    assert [r.message_type for r in rows if r.content_type == "text"] == [
        "user",
        "user",
        "assistant",
    ]
    (row,) = [r for r in rows if r.content == {"text": text}]
    assert row.metadata["tool_call_id"] == "c1"
    told = [e.display_message["content"] for e in of(DisplayMessageSaved, heard)]
    assert {"text": text} in told


@pytest.mark.spec("S1.4.5")
def test_b23_what_people_answered_to_several_questions_is_a_row_for_each(tmp_path: Path) -> None:
    store = sa.ConversationStore(f"sqlite:///{tmp_path / 'c.db'}")
    about: dict[str, Any] = {"response_type": "single_select", "options": OPTIONS}
    turn = [call("ask_user", id, question=f"Color {id}?", **about) for id in "abc"]
    session = sa.Session(agent_of(turn, "ok", middleware=[sa.AskUser()]), id="c", store=store)
    session.send("x").result(PATIENCE)
    session.resume(
        {"a": sa.Respond("b"), "b": sa.Respond({"cancel": True}), "c": sa.Respond("r")}
    ).result(PATIENCE)
    session.close()
    rows = [r for r in store.load_display_messages("c") if r.content_type == "text"]
    assert [(r.message_type, r.content["text"]) for r in rows] == [
        ("user", "x"),
        ("user", "Blue"),
        ("user", "Deep red"),
        ("assistant", "ok"),
    ]
    assert [r.metadata["tool_call_id"] for r in rows[1:3]] == ["a", "c"]


def test_b23_a_question_that_was_left_unanswered_is_no_row(tmp_path: Path) -> None:
    store = sa.ConversationStore(f"sqlite:///{tmp_path / 'c.db'}")
    question = call("ask_user", question="Color?", response_type="single_select", options=OPTIONS)
    agent = agent_of(question, "ok", middleware=[sa.AskUser()])
    session = sa.Session(agent, id="c", store=store)
    session.send("x").result(PATIENCE)
    session.reject().result(PATIENCE)  # type: ignore[union-attr]
    session.close()
    rows = store.load_display_messages("c")
    assert [r.message_type for r in rows if r.content_type == "text"] == ["user", "assistant"]


class Kept:
    """Keeps one state, as somebody's program does."""

    def __init__(self, fails: bool = False) -> None:
        self.exported: Any = None
        self.fails = fails

    def save_state(self, scope: Any, id: str, exported: Any, context: str) -> None:
        self.exported = exported

    def load_state(self, scope: Any, id: str) -> Any:
        if self.fails:
            raise SystemExit("no database")
        return self.exported


class KeptLater(Kept):
    async def load_state(self, scope: Any, id: str) -> Any:  # type: ignore[override]
        return self.exported


@pytest.mark.parametrize("kind", [Kept, KeptLater])
def test_b25_a_session_goes_on_with_what_its_persistence_has_kept(kind: Any) -> None:
    kept = kind()
    first = sa.Session(agent_of("one"), id="c", agent_persistence=kept)
    assert first.messages == []
    first.send("x").result(PATIENCE)
    first.close()
    again = sa.Session(agent_of("two"), id="c", agent_persistence=kept)
    assert [m.text for m in again.messages] == ["x", "one"]
    assert again.send("y").result(PATIENCE).text == "two"
    given = sa.Session(agent_of("z"), id="c", state=sa.State(), agent_persistence=kept)
    assert given.messages == []


def test_b25_what_waits_for_people_waits_again() -> None:
    def act() -> str:
        return "acted"

    kept = Kept()
    agent = agent_of(call("act"), "done", tools=[act], interrupt_on={"act": True})
    sa.Session(agent, id="c", agent_persistence=kept).send("go").result(PATIENCE)
    again = sa.Session(agent, id="c", agent_persistence=kept)
    assert again.status == "interrupted"
    assert again.approve().result(PATIENCE).text == "done"  # type: ignore[union-attr]


def test_b25_a_state_that_cannot_be_read_stops_nobody_and_is_told() -> None:
    for kept in (Kept(fails=True), Kept()):
        kept.exported = {"version": "odd"}
        session = sa.Session(agent_of("one"), id="c", agent_persistence=kept)
        (problem,) = session.info()["problems"]
        assert problem.startswith("The kept state could not be read, so it begins anew: ")
        assert session.send("x").result(PATIENCE).text == "one"


def test_b19_a_title_that_comes_after_the_run_is_in_the_next_runs_state() -> None:
    begun, go_on = threading.Event(), threading.Event()

    async def title(request: Any) -> str:
        begun.set()
        await asyncio.to_thread(go_on.wait, PATIENCE)
        return "Slow query"

    model = sa.ScriptedModel([title, "never"])
    agent = agent_of(*["answer"] * 10_000, middleware=[sa.ConversationTitle(model)])
    first = agent.run("x")
    assert "conversation_title" not in first.state.metadata
    assert begun.wait(PATIENCE)
    second = agent.run("y", state=first.state)
    go_on.set()
    state = second.state
    titles: list[str] = []

    def titled() -> bool:
        title = agent.run("z", state=state).state.get_metadata("conversation_title")
        titles.append(title)
        return bool(title)

    until(titled)
    assert titles[-1] == "Slow query"
    assert len(model.requests) == 1


def test_b20_reset_may_empty_the_sessions_own_files(tmp_path: Path) -> None:
    session = sa.Session(sa.Agent(sa.ScriptedModel([])))
    session.files.mount(Mount("kept", DiskStorage(tmp_path), debounce=300))
    session.files.write("/a", "in memory")
    session.files.write("/kept/b", "1")
    session.files.write("/kept/b", "2")  # waits to be saved
    (tmp_path / "c").write_text("from outside")
    session.reset()
    assert session.files.list() == ["/a", "/kept/b", "/kept/c"]
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.reset(files=True)
    assert session.files.list() == ["/kept/b", "/kept/c"]
    assert (tmp_path / "b").read_text() == "2"
    assert session.files.read("/kept/b").content == "2"
    until(lambda: of(FileDeleted, heard))
    assert "/a" in [e.path for e in of(FileDeleted, heard)]


@pytest.mark.parametrize("options", [{"filesystem": FileSystem(("mine",))}, {}])
def test_b20_files_that_are_not_the_sessions_own_are_never_emptied(options: Any) -> None:
    agent = sa.Agent(sa.ScriptedModel(["x"]), filesystem_scope=None if options else ("ours", 20))
    session = sa.Session(agent, **options)
    session.send("hi").result()
    session.files.write("/a", "1")
    with pytest.raises(sa.ConfigurationError, match=r"not its own.*session\.files\.reset\(\)"):
        session.reset(files=True)
    assert session.files.list() == ["/a"]
    assert len(session.messages) == 2
    session.files.close()


def test_b20_what_cannot_be_saved_resets_nothing() -> None:
    storage = DictStorage()
    session = sa.Session(sa.Agent(sa.ScriptedModel(["x"])))
    session.files.mount(Mount("kept", storage, debounce=300))
    session.send("hi").result()
    session.files.write("/kept/a", "1")
    session.files.write("/kept/a", "2")
    storage.broken = lambda what, path: what == "save"
    with pytest.raises(StorageFailed):
        session.reset(files=True)
    assert len(session.messages) == 2
    assert session.files.read("/kept/a").content == "2"
    storage.broken = lambda what, path: False
    session.reset(files=True)
    assert session.messages == []


def failing_with_a_queue(*turns: Any, queue: str) -> tuple[sa.Session, sa.Run | None]:
    """A session whose run failed while something waited behind it, and the run that waits."""
    began, gate = threading.Event(), threading.Event()

    @sa.tool
    def hold() -> str:
        """Hold."""
        began.set()
        gate.wait(PATIENCE)
        return "held"

    session = session_of(call("hold"), RuntimeError("bad"), *turns, tools=[hold])
    run = session.send("first")
    began.wait(PATIENCE)
    waiting = session.send("second") if queue == "run" else session.follow_up("second")
    gate.set()
    with pytest.raises(sa.ModelError, match="bad"):
        run.result(PATIENCE)
    assert session.info()["queued"] == 1
    return session, waiting


@pytest.mark.parametrize("queue", ["run", "follow_up"])
def test_what_waited_while_a_run_failed_is_sent_with_the_next(queue: str) -> None:
    session, waiting = failing_with_a_queue("to one", "to two", queue=queue)
    session.send("third").result(PATIENCE)
    if waiting is not None:
        waiting.result(PATIENCE)
    assert session.info()["queued"] == 0
    users = [m.text for m in session.messages if m.role == "user"]
    assert sorted(users) == ["first", "second", "third"]
    assert [m.text for m in session.messages if m.role == "assistant"][-2:] == ["to one", "to two"]


@pytest.mark.parametrize("queue", ["run", "follow_up"])
def test_retry_asks_again_for_what_failed_and_then_for_what_waited(queue: str) -> None:
    session, waiting = failing_with_a_queue("to one", "to two", queue=queue)
    session.retry().result(PATIENCE)
    if waiting is not None:
        waiting.result(PATIENCE)
    texts = [m.text for m in session.messages if m.role != "tool"]
    assert texts == ["first", "", "to one", "second", "to two"]
    with pytest.raises(sa.NotRunning, match="nothing to retry"):
        session.retry()


def test_events_go_on_after_an_error() -> None:
    session = session_of(RuntimeError("bad"), "fine")

    async def main() -> list[tuple[str, str]]:
        heard = []
        with pytest.raises(sa.ModelError):
            await session.send("one")
        run = None
        async for event in session.events():  # what was, and what comes
            if event.type in ("agent_end", "status_changed"):
                heard.append((event.type, event.status))  # type: ignore[attr-defined]
            if event.type == "status_changed" and event.status == "error":  # type: ignore[attr-defined]
                run = session.send("two")
            if event.type == "status_changed" and event.status == "idle":  # type: ignore[attr-defined]
                break
        assert run is not None
        assert (await run).text == "fine"
        return heard

    async def limited() -> list[tuple[str, str]]:
        async with asyncio.timeout(PATIENCE):
            return await main()

    assert asyncio.run(limited()) == [
        ("status_changed", "running"),
        ("agent_end", "error"),
        ("status_changed", "error"),
        ("status_changed", "running"),
        ("agent_end", "completed"),
        ("status_changed", "idle"),
    ]
