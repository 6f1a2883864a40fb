"""What a session promises, it does: faults that were seen from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import Debug, DisplayMessageSaved
from tests.session.hours import Hours
from tests.talking import PATIENCE, agent_of, call, of, session_of


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
    ],
)
@pytest.mark.spec("S1.4.5")
def test_b23_what_people_answered_is_a_row_of_theirs(
    kind: str, answer: Any, text: str, tmp_path: Path
) -> None:
    store = sa.ConversationStore(f"sqlite:///{tmp_path / 'c.db'}")
    question = call(
        "ask_user", question="Color?", response_type=kind, options=OPTIONS, allow_other=True
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
