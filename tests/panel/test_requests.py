"""What a page may ask: one reply or one error each, and nothing a page sends does harm."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.messages import Field, fields_of, message_of
from sagents_nb.panel.requests import KEPT_ANSWERS, answer
from sagents_nb.runtime.thread import runtime
from sagents_nb.store import ConversationStore
from tests.panel.pages import ask, held_session, page_of, session_of, write
from tests.session.hours import Hours
from tests.talking import until

MESSAGES = Path(__file__).parents[2] / "tests/fixtures/protocol/messages.json"


def waiting_session(*more: Any) -> Any:
    """A session that waits for a decision on ``write_file``."""
    session = session_of(write(), *(more or ("Done.",)), gate=True)
    assert session.send("Write.").result().status == "interrupted"
    return session


def decision(session: Any, **changed: Any) -> dict[str, Any]:
    """The message that approves what waits."""
    interrupt = session.interrupt
    request = interrupt.action_requests[0]
    decisions = {"w1": {"type": "approve", "digest": request.digest, **changed.pop("w1", {})}}
    asked = {"type": "decide", "id": "1", "interrupt_id": interrupt.id, "decisions": decisions}
    return {**asked, **changed}


def test_send_starts_a_run() -> None:
    session = session_of("Hello.")
    reply = ask(session, {"type": "send", "id": "7", "text": "hi"})
    assert reply == {"type": "reply", "id": "7", "run_id": session.current_run.id}
    assert session.current_run.result().text == "Hello."


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a store"])
def test_a_session_that_rests_is_shown_as_it_wakes_and_an_answer_wakes_it(
    kept: bool, tmp_path: Path, hours: Hours
) -> None:
    store = ConversationStore(tmp_path / "agents.db") if kept else None
    session = session_of(write(), "Done.", gate=True, store=store, inactivity_timeout=60)
    early = page_of(session)
    session.send("Write.").result()
    hours.pass_by(60)
    assert session.status == "closed"
    session.actor.ended.result()  # it has let go of its conversation
    late = page_of(session)
    for page in (early, late):
        until(lambda page=page: page.state["status"] == "interrupted")
        assert page.state["interrupt"] is not None
    answers: list[dict[str, Any]] = []
    runtime.call(answer, session, decision(session), answers.append)
    until(lambda: answers == [{"type": "reply", "id": "1"}])
    for page in (early, late):
        until(lambda page=page: page.state["status"] == "idle")
        assert [file["path"] for file in page.state["files"]] == ["/report.md"]
        assert not page.closed
    session.close()
    if store is not None:
        store.close()


def test_a_page_is_answered_once_what_it_asked_for_is_kept(tmp_path: Path) -> None:
    with closing(ConversationStore(tmp_path / "agents.db")) as store:
        session = session_of("Hello.", store=store)
        answers: list[dict[str, Any]] = []

        def ask_now() -> list[dict[str, Any]]:
            answer(session, {"type": "send", "id": "7", "text": "hi"}, answers.append)
            return answers[:]

        assert runtime.call(ask_now) == []  # nothing is written in the turn that takes it
        until(lambda: answers)
        assert answers[0]["type"] == "reply"
        assert store.history(session.id).state.messages[0].text == "hi"
        session.close()


def test_a_decision_on_what_was_taken_over_is_an_error(tmp_path: Path) -> None:
    first, second = (ConversationStore(tmp_path / "agents.db") for _ in range(2))
    session = session_of(write(), "Done.", gate=True, store=first)
    session.send("Write.").result()
    asked = decision(session)
    taken = sa.Session.open(session.id, agent=session.agent, store=second, take_over=True)
    answers: list[dict[str, Any]] = []
    runtime.call(answer, session, asked, answers.append)
    until(lambda: answers)
    assert [(reply["type"], reply["kind"]) for reply in answers] == [("error", "StaleOwner")]
    assert "was taken over" in answers[0]["message"]
    assert taken.status == "interrupted"
    taken.close()
    for store in (first, second):
        store.close()


def test_send_while_a_run_is_active_waits_behind_it() -> None:
    session = session_of("word " * 40, "Second.", delay=0.005)
    first = session.send("one")
    assert ask(session, {"type": "send", "id": "1", "text": "two"})["type"] == "reply"
    first.result()
    until(lambda: session.status == "idle")
    assert session.messages[-1].text == "Second."


def test_a_steered_message_goes_to_the_active_run() -> None:
    session, run, release = held_session("Shorter, then.")
    reply = ask(session, {"type": "send", "id": "1", "text": "Shorter", "when": "steer"})
    assert reply == {"type": "reply", "id": "1", "run_id": run.id}
    release.set()
    assert run.result().text == "Shorter, then."
    assert [m.text for m in session.messages if m.role == "user"] == ["Go.", "Shorter"]


def attaching(session: Any, text: str, *files: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """The answer to a message with these files."""
    sent = [{"name": name, "text": content} for name, content in files]
    answers: list[dict[str, Any]] = []
    request = {"type": "send", "id": "1", "text": text, "files": sent, **more}
    runtime.call(answer, session, request, answers.append)
    until(lambda: answers)
    return answers[0]


PNG = {"media_type": "image/png", "data": "iVBORw0KGgo="}


@pytest.mark.parametrize("text", ["What is this?", ""])
def test_images_are_parts_of_the_message_and_the_page_shows_them(text: str) -> None:
    session = session_of("A penguin.")
    page = page_of(session)
    reply = ask(session, {"type": "send", "id": "1", "text": text, "images": [PNG, PNG]})
    assert reply["type"] == "reply"
    session.current_run.result()
    image = sa.ImagePart("iVBORw0KGgo=", "image/png")
    said = [sa.TextPart(text)] if text else []
    assert list(session.messages[0].parts) == [*said, image, image]
    until(lambda: page.state["status"] == "idle" and page.state["entries"])
    shown = page.state["entries"][0]["message"]["parts"]
    assert [part["data"] for part in shown if part["type"] == "image"] == [PNG["data"]] * 2


@pytest.mark.parametrize(
    "images",
    [
        [PNG] * 9,
        [{**PNG, "media_type": "image/svg+xml"}],
        [{**PNG, "data": "no base64!"}],
        [{**PNG, "data": ""}],
        [{**PNG, "data": "A" * 6_700_000}],
        [{**PNG, "data": None}],
        [{}],
        ["x"],
        "x",
        {"a": PNG},
    ],
)
def test_what_is_no_image_or_too_large_is_refused_and_nothing_is_sent(images: Any) -> None:
    session = session_of("Hello.")
    reply = ask(session, {"type": "send", "id": "1", "text": "See", "images": images})
    assert reply["type"] == "error"
    assert len(reply["message"]) < 300
    assert session.messages == []


def test_texts_are_saved_beside_what_is_there_and_named_in_the_message() -> None:
    session = session_of("Read.")
    session.files.write("/uploads/data.csv", "mine")
    files = [("data.csv", "a,b"), ("C:\\tmp\\notes.txt", "n"), ("notes.txt", "m")]
    assert attaching(session, "Look", *files)["type"] == "reply"
    session.current_run.result()
    saved = {path: session.files.read(path).text for path in session.files.list()}
    assert saved == {
        "/uploads/data.csv": "mine",
        "/uploads/data-2.csv": "a,b",
        "/uploads/notes.txt": "n",
        "/uploads/notes-2.txt": "m",
    }
    assert session.messages[0].text == (
        "Look\n\nAttached file: /uploads/data-2.csv\nAttached file: /uploads/notes.txt\n"
        "Attached file: /uploads/notes-2.txt"
    )


@pytest.mark.parametrize(
    "file", [("..", "x"), ("", "x"), ("a.txt", None), ("a.txt", "x" * 5_000_001), (None, "x")]
)
def test_a_file_that_cannot_be_saved_leaves_nothing_behind(file: tuple[Any, Any]) -> None:
    session = session_of("Hello.")
    assert attaching(session, "Look", ("good.txt", "x"), file)["type"] == "error"
    assert session.files.list() == []
    assert session.messages == []


def test_files_of_a_message_that_is_refused_are_not_kept() -> None:
    session = session_of("Hello.")
    session.close()
    assert attaching(session, "Look", ("good.txt", "x"))["kind"] == "NotRunning"
    assert session.files.list() == []


def edited(session: Any, instead: Any, **more: Any) -> dict[str, Any]:
    return ask(session, {"type": "send", "id": "1", "text": "Edited", "instead": instead, **more})


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a store"])
def test_an_edited_message_goes_on_from_before_the_last(kept: bool, tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "agents.db") if kept else None
    session = session_of("One.", "Two.", "Three.", store=store, id="c1")
    page = page_of(session)
    session.send("First").result()
    session.send("Second").result()
    assert edited(session, "Second")["type"] == "reply"
    session.current_run.result()
    said = ["First", "One.", "Edited", "Three."]
    assert [message.text for message in session.messages] == said

    def shown() -> list[str]:
        return [entry["message"]["parts"][0]["text"] for entry in page.state["entries"]]

    until(lambda: shown() == said)
    session.close()
    if store is not None:
        opened = sa.Session.open("c1", agent=session.agent, store=store)
        assert [message.text for message in opened.messages] == said
        opened.close()
        store.close()


@pytest.mark.parametrize("instead", ["First", "", "Third", 3, ["Second"]])
def test_an_edit_of_what_is_not_the_last_message_changes_nothing(instead: Any) -> None:
    session = session_of("One.", "Two.", "Three.")
    session.send("First").result()
    session.send("Second").result()
    assert edited(session, instead)["kind"] == "ValueError"
    assert [m.text for m in session.messages] == ["First", "One.", "Second", "Two."]


def test_an_earlier_message_is_edited_and_a_page_switches_between_what_followed() -> None:
    session = session_of("One.", "Two.", "Three.")
    page = page_of(session)
    session.send("First").result()
    session.send("Second").result()
    assert edited(session, "First", later=1)["type"] == "reply"
    session.current_run.result()
    until(lambda: len(page.state["entries"]) == 2)
    branch = page.state["entries"][0]["message"]["metadata"]["branch"]
    assert page.state["branches"] == {branch: {"current": 1, "count": 2}}

    asked = {"type": "switch", "id": "1", "branch": branch}
    assert ask(session, {**asked, "to": 0}) == {"type": "reply", "id": "1"}
    until(lambda: len(page.state["entries"]) == 4)
    assert page.state["branches"] == {branch: {"current": 0, "count": 2}}
    assert page.state["entries"][0]["message"]["metadata"]["branch"] == branch
    assert ask(session, {**asked, "to": 2})["kind"] == "ConfigurationError"
    assert ask(session, {**asked, "branch": "other", "to": 0})["kind"] == "ValueError"


def test_what_people_see_of_a_message_says_of_which_branches_it_is() -> None:
    def spelled(message: sa.Message, ctx: Any) -> Any:
        return message, sa.Message.user("for the model")

    session = session_of("One.", "Two.", message_preprocessor=spelled)
    page = page_of(session)
    session.send("First").result()
    assert edited(session, "First")["type"] == "reply"
    session.current_run.result()
    until(
        lambda: (
            [e["message"]["parts"][0]["text"] for e in page.state["entries"]] == ["Edited", "Two."]
        )
    )
    assert page.state["entries"][0]["message"]["metadata"]["branch"] in page.state["branches"]


def test_what_came_before_is_read_from_the_newest_back_to_the_first() -> None:
    state = sa.State(messages=[sa.Message.user(str(i)) for i in range(330)])
    session = session_of("One.", state=state)
    page = page_of(session)
    session.send("330").result()
    until(lambda: len(page.state["entries"]) == 202)
    found = list(page.state["entries"])
    before = page.state["earlier"]
    while before:
        reply = ask(session, {"type": "read_entries", "id": "1", "before": before})
        assert 0 < len(reply["entries"]) <= 100
        found, before = [*reply["entries"], *found], before - len(reply["entries"])
    texts = [entry["message"]["parts"][0]["text"] for entry in found]
    assert texts == [*map(str, range(331)), "One."]
    assert ask(session, {"type": "read_entries", "id": "1", "before": 0})["entries"] == []


def test_entries_that_events_told_are_read_like_those_that_none_did() -> None:
    session = session_of(
        *(f"{n}." for n in range(3)), state=sa.State(messages=[sa.Message.user("a")])
    )
    page = page_of(session)
    for n in range(3):
        session.send(str(n)).result()
    until(lambda: len(page.state["entries"]) == 7)
    for place in range(8):
        reply = ask(session, {"type": "read_entries", "id": "1", "before": place})
        assert reply["entries"] == page.state["entries"][:place]


@pytest.mark.parametrize("before", [-1, "3", None, 1.5, True])
def test_entries_before_no_place_are_refused(before: Any) -> None:
    reply = ask(session_of("One."), {"type": "read_entries", "id": "1", "before": before})
    assert reply["kind"] == "ValueError"


@pytest.mark.parametrize("later", [-1, 1, 2, "0", None, False])
def test_an_edit_of_a_message_that_is_not_there_changes_nothing(later: Any) -> None:
    session = session_of("One.", "Two.")
    session.send("First").result()
    assert edited(session, "First", later=later)["kind"] == "ValueError"
    assert [m.text for m in session.messages] == ["First", "One."]


def test_while_a_run_is_active_or_waits_nothing_is_edited() -> None:
    session, run, release = held_session("Done.")
    assert edited(session, "Go.")["kind"] == "Busy"
    release.set()
    assert run.result().text == "Done."
    waiting = waiting_session()
    assert edited(waiting, "Write.")["kind"] == "Busy"
    assert waiting.status == "interrupted"


def test_what_an_edit_would_replace_stays_if_the_message_is_refused() -> None:
    def refuse(message: Any, ctx: Any) -> Any:
        if message.text == "Edited":
            raise ValueError("Not that.")
        return message, message

    session = session_of("One.", "Two.", message_preprocessor=refuse)
    session.send("First").result()
    assert edited(session, "First")["type"] == "error"
    assert [message.text for message in session.messages] == ["First", "One."]


def test_steering_where_nothing_runs_starts_a_run() -> None:
    session = session_of("Hello.")
    ask(session, {"type": "send", "id": "1", "text": "hi", "when": "steer"})
    assert session.current_run.result().text == "Hello."


@pytest.mark.parametrize("when", ["raise", "later", None, ["steer"]])
def test_a_message_is_queued_or_steered_and_nothing_else(when: Any) -> None:
    session = session_of("Hello.")
    reply = ask(session, {"type": "send", "id": "1", "text": "hi", "when": when})
    assert (reply["type"], reply["kind"]) == ("error", "ValueError")
    assert session.messages == []


def test_each_message_that_waits_is_taken_back_as_the_page_knows_it() -> None:
    session, run, release = held_session("Done.")
    page = page_of(session)
    session.steer("Shorter")
    session.follow_up("And then?")
    session.send("Next")
    until(lambda: len(page.state["queued"]) == 3)
    for waits in page.state["queued"]:
        reply = ask(session, {"type": "withdraw", "id": "1", **waits})
        assert reply["message"]["parts"] == [{"type": "text", "text": waits["text"]}]
    until(lambda: page.state["queued"] == [])
    reply = ask(session, {"type": "withdraw", "id": "2", **waits})
    assert reply["type"] == "error"
    assert "does not wait any more" in reply["message"]
    release.set()
    assert run.result().text == "Done."
    assert [m.text for m in session.messages if m.role == "user"] == ["Go."]


def test_retry_asks_again_after_a_failure() -> None:
    session = session_of(ConnectionError("cable"), "Hello.")
    with pytest.raises(sa.ModelError):
        session.send("hi").result()
    reply = ask(session, {"type": "retry", "id": "1"})
    assert reply == {"type": "reply", "id": "1", "run_id": session.current_run.id}
    assert session.current_run.result().text == "Hello."


def test_retry_goes_on_as_the_run_that_a_view_shows_if_it_is_the_last() -> None:
    session = session_of(ConnectionError("cable"), ConnectionError("cable"), "Hello.")
    runs = [session.send(text) for text in ("hi", "hello")]
    for run in runs:
        with pytest.raises(sa.ModelError):
            run.result()
    reply = ask(session, {"type": "retry", "id": "1", "run_id": runs[0].id})
    assert (reply["type"], reply["kind"]) == ("error", "NotRunning")
    assert "Another run has begun since" in reply["message"]
    assert ask(session, {"type": "retry", "id": "2", "run_id": 3})["type"] == "error"
    reply = ask(session, {"type": "retry", "id": "3", "run_id": runs[1].id})
    assert reply == {"type": "reply", "id": "3", "run_id": runs[1].id}
    assert session.current_run.result().text == "Hello."


def test_retry_where_all_is_answered_says_so_in_a_sentence() -> None:
    session = session_of("Hello.")
    session.send("hi").result()
    reply = ask(session, {"type": "retry", "id": "1"})
    assert (reply["type"], reply["kind"]) == ("error", "NotRunning")
    assert reply["message"] == "There is nothing to retry: the last message is an answer."


@pytest.mark.parametrize("text", ["", "   \n", None, 3, ["hi"], {"a": 1}])
def test_there_must_be_something_to_send(text: Any) -> None:
    session = session_of("Hello.")
    reply = ask(session, {"type": "send", "id": "1", "text": text})
    assert (reply["type"], reply["kind"]) == ("error", "ValueError")
    assert reply["message"] == "There is nothing to send."
    assert session.messages == []


def test_send_to_a_closed_session_says_so() -> None:
    session = session_of("Hello.")
    session.close()
    reply = ask(session, {"type": "send", "id": "1", "text": "hi"})
    assert (reply["type"], reply["kind"]) == ("error", "NotRunning")


def test_an_approval_runs_the_call() -> None:
    session = waiting_session()
    assert ask(session, decision(session)) == {"type": "reply", "id": "1"}
    until(lambda: session.status == "idle")
    assert session.files.read("/report.md").text == "# Report"


def test_an_edit_and_a_rejection_are_taken() -> None:
    session = waiting_session()
    edit = {"type": "edit", "arguments": {"file_path": "/other.md", "content": "mine"}}
    assert ask(session, decision(session, w1=edit))["type"] == "reply"
    until(lambda: session.status == "idle")
    assert session.files.list() == ["/other.md"]
    session = waiting_session()
    assert (
        ask(session, decision(session, w1={"type": "reject", "message": "no"}))["type"] == "reply"
    )
    until(lambda: session.status == "idle")
    assert session.files.list() == []
    assert "They said: no" in session.messages[-2].tool_results[0].text


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    "changed",
    [
        {"w1": {"digest": "0" * 64}},
        {"w1": {"digest": ""}},
        {"w1": {"digest": None}},
        {"interrupt_id": "another"},
        {"interrupt_id": None},
    ],
)
def test_an_approval_of_something_else_is_stale_and_runs_nothing(changed: Any) -> None:
    session = waiting_session()
    reply = ask(session, decision(session, **changed))
    assert (reply["type"], reply["id"], reply["kind"]) == ("error", "1", "StaleApproval")
    assert session.status == "interrupted"
    assert session.files.list() == []
    assert ask(session, decision(session))["type"] == "reply"


@pytest.mark.spec("P4")
def test_the_second_answer_is_stale() -> None:
    session = waiting_session()
    asked = decision(session)
    assert ask(session, asked)["type"] == "reply"
    until(lambda: session.status == "idle")
    reply = ask(session, asked)
    assert reply["kind"] == "StaleApproval"
    assert len(session.messages) == 4


@pytest.mark.spec("P4")
def test_an_approval_of_the_last_epoch_is_stale() -> None:
    """The same call with the same id and arguments was asked for again."""
    session = waiting_session(write(), "Done.")
    old = decision(session)
    session.reject().result()
    assert session.status == "interrupted"
    assert ask(session, old)["kind"] == "StaleApproval"
    assert ask(session, {**old, "interrupt_id": session.interrupt.id})["kind"] == "StaleApproval"
    assert session.files.list() == []


@pytest.mark.parametrize(
    "decisions",
    [
        {},
        {"w9": {"type": "approve", "digest": "x"}},
        {"w1": {"type": "explode"}},
        {"w1": {}},
        {"w1": {"type": "edit"}},
        {"w1": {"type": "edit", "arguments": {"nonsense": 1}}},
        {"w1": {"type": "respond", "answer": 1}},
        {"w1": {"type": "reject", "message": "x" * 10_001}},
        {"w1": "approve"},
        {"w1": None},
        [],
        "approve",
        None,
    ],
)
def test_a_decision_that_makes_no_sense_changes_nothing(decisions: Any) -> None:
    session = waiting_session()
    good = decision(session)
    digest = good["decisions"]["w1"]["digest"]
    if isinstance(decisions, dict) and isinstance(decisions.get("w1"), dict):
        decisions = {"w1": {"digest": digest, **decisions["w1"]}}
    reply = ask(session, {**good, "decisions": decisions})
    assert (reply["type"], reply["kind"]) == ("error", "InvalidDecision")
    assert session.status == "interrupted"
    assert session.files.list() == []
    assert ask(session, good)["type"] == "reply"


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "edit", "arguments": {"amount": "many"}},
        {"type": "edit", "arguments": {}, "json": "{"},
        {"type": "edit", "arguments": {}, "json": "[" * 200 + "]" * 200},
        {"type": "respond", "answer": 1},
        {"type": "explode"},
    ],
)
def test_the_error_of_a_decision_that_does_not_fit_says_which_call_it_is_about(
    changed: dict[str, Any],
) -> None:
    session, ordered = session_with_two_orders()
    good = decisions_on(session)
    bad = {**good, "decisions": {**good["decisions"]}}
    bad["decisions"]["o2"] = {"digest": good["decisions"]["o2"]["digest"], **changed}
    reply = ask(session, bad)
    assert (reply["kind"], reply["tool_call_id"]) == ("InvalidDecision", "o2")
    assert set(reply) == set(example_of_error("InvalidDecision"))
    assert session.status == "interrupted"
    assert ordered == []
    assert ask(session, good)["type"] == "reply"
    until(lambda: session.status == "idle")
    assert ordered == [5, 400]


@pytest.mark.spec("P4")
def test_the_error_of_a_stale_approval_says_which_call_it_is_about() -> None:
    session, ordered = session_with_two_orders()
    asked = decisions_on(session)
    session.approve("o2")
    reply = ask(session, asked)
    assert (reply["kind"], reply["tool_call_id"]) == ("StaleApproval", "o2")
    assert set(reply) == set(example_of_error("StaleApproval"))
    assert ordered == []
    session.close()


def test_an_error_that_is_about_no_one_call_names_none() -> None:
    session = waiting_session()
    reply = ask(session, decision(session, interrupt_id="another"))
    assert reply["kind"] == "StaleApproval"
    assert set(reply) == set(example_of_error("ValueError"))


def session_with_two_orders() -> tuple[Any, list[int]]:
    """A session that waits for leave to run two calls, and what was ordered."""
    ordered: list[int] = []

    @sa.tool
    def order(amount: int) -> str:
        """Order that much."""
        ordered.append(amount)
        return "Ordered."

    calls = [sa.ToolCall("o1", "order", {"amount": 5}), sa.ToolCall("o2", "order", {"amount": 400})]
    agent = sa.Agent(
        sa.ScriptedModel([calls, "Done."]),
        tools=[order],
        interrupt_on={"order": True},
        max_parallel_tools=1,
    )
    session = sa.Session(agent)
    assert session.send("Go.").result().status == "interrupted"
    return session, ordered


def decisions_on(session: Any) -> dict[str, Any]:
    """The message that approves all that waits."""
    requests = session.interrupt.action_requests
    approvals = {r.tool_call_id: {"type": "approve", "digest": r.digest} for r in requests}
    return {
        "type": "decide",
        "id": "1",
        "interrupt_id": session.interrupt.id,
        "decisions": approvals,
    }


def example_of_error(kind: str) -> dict[str, Any]:
    """The error of this kind that the protocol's examples hold."""
    found = json.loads(MESSAGES.read_text())["from_kernel"]
    return next(m for m in found if m["type"] == "error" and m["kind"] == kind)


def test_cancel_as_often_as_you_like() -> None:
    session = waiting_session()
    for i in range(3):
        assert ask(session, {"type": "cancel", "id": str(i)}) == {"type": "reply", "id": str(i)}
    assert session.status == "cancelled"
    session.close()
    assert ask(session, {"type": "cancel", "id": "c"})["type"] == "reply"


@pytest.mark.parametrize(
    ("content", "shown", "truncated"),
    [
        ("# Report", "# Report", False),
        ("", "", False),
        (b"plain bytes", "plain bytes", False),
        (b"\x89PNG\x00\x01", None, False),
        ("x" * 200_000, "x" * 200_000, False),
        ("ü" * 200_001, "ü" * 200_000, True),
    ],
)
def test_read_file(content: Any, shown: str | None, truncated: bool) -> None:
    session = session_of()
    entry = session.files.write("/a/b.md", content)
    reply = ask(session, {"type": "read_file", "id": "1", "path": "/a/b.md"})
    assert reply["file"] == {
        "path": "/a/b.md",
        "size": entry.size,
        "content": shown,
        "truncated": truncated,
        "media_type": entry.mime_type,
    }


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/missing.md", "FileMissing"),
        ("/a", "WrongKind"),
        ("/../etc/passwd", "InvalidPath"),
        ("", None),
        (None, None),
        (["/a/b.md"], None),
        ("/\ud800", None),
        ("/" + "x" * 1_000_000, None),
    ],
)
def test_read_file_of_what_is_no_file(path: Any, kind: str | None) -> None:
    session = session_of()
    session.files.write("/a/b.md", "x")
    reply = ask(session, {"type": "read_file", "id": "1", "path": path})
    assert reply["type"] == "error"
    assert kind in (None, reply["kind"])


def test_read_result_gives_the_whole_of_what_was_shortened() -> None:
    long = "0123456789" * 10_000

    @sa.tool
    def much() -> str:
        """Say much."""
        return long

    session = session_of(sa.ToolCall("c1", "much", {}), "Done.", tools=[much])
    session.send("Go").result()
    reply = ask(session, {"type": "read_result", "id": "1", "tool_call_id": "c1"})
    assert reply["result"]["content"] == long
    reply = ask(session, {"type": "read_result", "id": "2", "tool_call_id": "c2"})
    assert (reply["type"], reply["kind"]) == ("error", "ValueError")


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"type": None},
        {"type": []},
        {"type": {"a": 1}},
        {"type": "bundle of joy", "id": "1"},
        {"type": "__class__"},
        {"type": "send"},
        {"type": "decide"},
        {"type": "decide", "decisions": {"w1": {"type": "approve"}}},
        {"type": "read_file"},
        {"type": "read_result"},
        {"type": "read_result", "tool_call_id": {"not": "hashable"}},
        {"type": "x" * 1_000_000},
    ],
)
def test_a_bad_request_is_an_error_of_one_short_sentence(request_: dict[str, Any]) -> None:
    session = waiting_session()
    reply = ask(session, request_)
    assert reply["type"] == "error"
    assert reply["id"] == request_.get("id", "")
    assert 0 < len(reply["message"]) < 300
    assert session.status == "interrupted"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KINDS = st.sampled_from(["decide", "read_file", "read_result", "cancle", "hello", ""])
FIELDS = st.sampled_from(["id", "decisions", "interrupt_id", "path", "tool_call_id", "text"])


@settings(max_examples=150)
@given(KINDS, st.dictionaries(FIELDS, JSON))
def test_whatever_a_page_sends_is_answered_once(kind: str, fields: dict[str, Any]) -> None:
    session = SHARED[0] if SHARED else waiting_session()
    SHARED[:] = [session]
    reply = ask(session, {"type": kind, **fields})
    assert reply["type"] == "error"
    assert session.status == "interrupted"
    assert session.files.list() == []


SHARED: list[Any] = []


def nested(levels: int) -> Any:
    """Lists and objects in each other."""
    data: Any = {}
    for level in range(levels):
        data = {"a": data} if level % 2 else [data]
    return data


@pytest.mark.parametrize("levels", [200, 950, 3_000, 100_000])
@pytest.mark.parametrize(
    "request_",
    [
        lambda deep: {"type": deep, "id": "1"},
        lambda deep: {"type": "send", "id": "1", "text": deep},
        lambda deep: {"type": "read_file", "id": "1", "path": deep},
        lambda deep: {"type": "read_result", "id": "1", "tool_call_id": deep},
        lambda deep: {"type": "decide", "id": "1", "interrupt_id": "i", "decisions": deep},
        lambda deep: {"type": "cancel", "id": "1", "more": deep},
        lambda deep: {"type": "cancel", "id": deep},
    ],
    ids=["type", "text", "path", "call", "decisions", "more", "id"],
)
def test_a_message_that_nests_too_deep_is_an_error(request_: Any, levels: int) -> None:
    session = waiting_session()
    reply = ask(session, request_(nested(levels)))
    assert reply["type"] == "error"
    assert reply["id"] in ("1", "")
    assert "100 levels" in reply["message"]
    assert session.status == "interrupted"


def session_that_asks_for(arguments: dict[str, Any]) -> tuple[Any, list[Any]]:
    """A session that waits for leave to call a tool with these, and what the tool was given."""
    given: list[Any] = []

    @sa.tool
    def take(data: Any) -> str:
        """Take it."""
        given.append(data)
        return "Taken."

    model = sa.ScriptedModel([sa.ToolCall("w1", "take", arguments), "Done."])
    session = sa.Session(sa.Agent(model, tools=[take], interrupt_on={"take": True}))
    assert session.send("Go.").result().status == "interrupted"
    return session, given


@pytest.mark.parametrize("levels", [200, 3_000])
@pytest.mark.parametrize("written", [False, True])
def test_an_edit_that_nests_too_deep_is_an_error_and_the_question_stays(
    levels: int, written: bool
) -> None:
    session, given = session_that_asks_for({"data": 1})
    deep = nested(levels)
    edit: dict[str, Any] = {"type": "edit", "arguments": {"data": deep}}
    if written:
        text = "[" * levels + "]" * levels
        edit = {"type": "edit", "arguments": {}, "json": f'{{"data": {text}}}'}
    assert ask(session, decision(session, w1=edit))["type"] == "error"
    assert session.status == "interrupted"
    assert ask(session, decision(session))["type"] == "reply"
    until(lambda: session.status == "idle")
    assert given == [1]


def test_the_numbers_of_an_edit_are_those_that_were_written() -> None:
    session, given = session_that_asks_for({"data": [0]})
    edit = {
        "type": "edit",
        "arguments": {"data": [1, 0, None, 9007199254740992]},  # as a page knows them
        "json": '{"data": [1.0, -0.0, NaN, 9007199254740993]}',
    }
    assert ask(session, decision(session, w1=edit))["type"] == "reply"
    until(lambda: session.status == "idle")
    assert repr(given) == "[[1.0, -0.0, nan, 9007199254740993]]"


def test_defaults_that_a_form_has_shown_and_nobody_changed_are_no_edit() -> None:
    @sa.tool
    def ship(to: str, carrier: str = "DHL", weight: float = 1.0, days: int = True) -> str:
        """Ship."""
        return f"{to} {carrier} {weight} {days!r}"

    call = sa.ToolCall("w1", "ship", {"to": "Oslo"})
    agent = sa.Agent(sa.ScriptedModel([call, "Done."]), tools=[ship], interrupt_on=["ship"])
    session = sa.Session(agent)
    session.send("go").result()
    form = {"to": "Rome", "carrier": "DHL", "weight": 1, "days": 1}
    edit = {"type": "edit", "arguments": form, "json": '{"weight": 1.0, "days": 1}'}
    assert ask(session, decision(session, w1=edit))["type"] == "reply"
    until(lambda: session.status == "idle")
    result = session.messages[2].tool_results[0]
    assert result.text == "Rome DHL 1.0 1"
    assert result.metadata["edited_arguments"] == {"to": "Rome", "days": 1}
    assert result.metadata["defaults"] == {"carrier": "DHL", "weight": 1.0}


def test_a_page_shows_half_characters_and_an_edit_keeps_them() -> None:
    data = {"path": "/a\udcff.txt", "more": [{"z\udcff": "\ud83d"}], "n": 1}
    session, given = session_that_asks_for({"data": data})
    page = page_of(session)
    (asked,) = page.state["interrupt"]["action_requests"]
    shown = asked["arguments"]["data"]
    assert shown["path"] == "/a\U0010dcff.txt"
    assert shown["more"] == [{"z\U0010dcff": "\U0010d83d"}]
    edit = {"type": "edit", "arguments": {"data": {**shown, "n": 2}}}
    assert ask(session, decision(session, w1=edit))["type"] == "reply"
    until(lambda: session.status == "idle")
    assert given == [{**data, "n": 2}]
    ran = session.messages[2].tool_results[0].metadata["edited_arguments"]
    assert ran == {"data": {**data, "n": 2}}
    until(lambda: page.state["status"] == "idle")
    told = page.state["entries"][2]["message"]["parts"][0]["metadata"]["edited_arguments"]
    assert told == {"data": {**shown, "n": 2}}


def test_what_an_edit_leaves_alone_keeps_the_order_of_its_names() -> None:
    given: list[Any] = []

    @sa.tool
    def put(path: str, columns: Any) -> str:
        """Put."""
        given.append(columns)
        return "put"

    columns = {"2": "b", "1": "a", "name": {"y": 1, "x": 2}}
    call = sa.ToolCall("w1", "put", {"path": "/a", "columns": columns})
    agent = sa.Agent(sa.ScriptedModel([call, "Done."]), tools=[put], interrupt_on=["put"])
    session = sa.Session(agent)
    session.send("go").result()
    # A page has the names that are numbers first.
    other = {"1": "a", "2": "b", "name": {"x": 2, "y": 1}}
    edit = {"type": "edit", "arguments": {"path": "/b", "columns": other}}
    assert ask(session, decision(session, w1=edit))["type"] == "reply"
    until(lambda: session.status == "idle")
    assert repr(given) == repr([columns])


@pytest.mark.parametrize("text", ["", "[1]", "{", "7", 7, None, {}])
def test_an_edit_with_json_that_is_no_object_is_an_error(text: Any) -> None:
    session, given = session_that_asks_for({"data": 1})
    edit = {"type": "edit", "arguments": {"data": 2}, "json": text}
    assert ask(session, decision(session, w1=edit))["type"] == "error"
    assert session.status == "interrupted"
    assert given == []


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script><img src=x onerror=alert(1)>",
        "](javascript:alert(1)) `${process.exit()}` {{7*7}} %s %d \x00\x1b[2J\u202e",
        "\ud800 half a pair",
        "x" * 5_000_000,
    ],
    ids=["html", "templates", "surrogate", "huge"],
)
def test_odd_text_arrives_as_it_is(text: str) -> None:
    seen: list[str] = []

    def say(request: Any) -> str:
        seen.append(request.messages[-1].text)
        return "Ok."

    session = session_of(say)
    assert ask(session, {"type": "send", "id": "1", "text": text})["type"] == "reply"
    assert session.current_run.result().text == "Ok."
    assert seen == [text]


def test_the_examples_of_the_protocol_are_answered() -> None:
    session = waiting_session()
    for request in json.loads(MESSAGES.read_text())["from_page"]:
        if request["type"] not in ("bundle", "hello"):
            assert ask(session, request)["id"] == request["id"]


def forked(session: Any, **asked: Any) -> dict[str, Any]:
    """The answer to a wish for a fork."""
    return ask(session, {"type": "fork", "id": "1", **asked})


def test_a_fork_has_the_message_that_was_meant_and_what_answered_it() -> None:
    session = session_of("One.", "Two.", "Three.")
    for text in ("1", "2", "3"):
        session.send(text).result()
    reply = forked(session, text="2", later=1)
    fork = sa.sessions.get(reply["session_id"])
    assert [message.text for message in fork.messages] == ["1", "One.", "2", "Two."]
    whole = sa.sessions.get(forked(session, text="3", later=0)["session_id"])
    assert whole.messages == session.messages
    for each in (fork, whole):
        sa.sessions.stop(each.id)


@pytest.mark.parametrize("asked", [{"text": "2"}, {"text": "1", "later": 4}, {"text": None}, {}])
def test_a_fork_of_what_is_not_there_makes_nothing(asked: dict[str, Any]) -> None:
    session = session_of("One.")
    session.send("1").result()
    before = sa.sessions.count()
    assert forked(session, **asked)["type"] == "error"
    assert sa.sessions.count() == before


def test_an_edited_message_keeps_what_its_names_stood_for() -> None:
    session = session_of("Plotted.", "Again.", "Once more.")
    df = Field("df", "2 rows × 1 column", "DataFrame, 2 rows", appended=True)
    session.send(message_of("Plot {df}.", {"df": df})).result()
    page = page_of(session)
    assert page.state is not None
    seen = page.state["entries"][0]["message"]
    assert seen["parts"] == [{"type": "text", "text": "Plot {df}."}]
    assert seen["metadata"]["fields"][0]["brief"] == "2 rows × 1 column"
    edited = {"text": "Draw {df}, and {x}.", "instead": "Plot {df}.", "later": 0}
    assert ask(session, {"type": "send", "id": "1", **edited})["type"] == "reply"
    session.current_run.result()
    (asked,) = (message for message in session.messages if message.role == "user")
    assert asked.text == "Draw `df`, and {x}.\n\n`df` is a DataFrame, 2 rows"
    assert asked.shown.text == "Draw {df}, and {x}."
    assert fields_of(asked) == [df]
    ask(session, {"type": "send", "id": "2", "text": "Nothing of {that}."})
    session.current_run.result()
    assert session.messages[-2].text == "Nothing of {that}."


def answers_to(session: Any, request: dict[str, Any], times: int) -> list[dict[str, Any]]:
    """What a page hears that asks the same so often."""
    answers: list[dict[str, Any]] = []
    for _ in range(times):
        runtime.call(answer, session, request, answers.append)
    return answers


def test_a_message_that_comes_twice_is_said_once_and_answered_twice() -> None:
    session = session_of("One.", "Two.")
    first, again = answers_to(session, {"type": "send", "id": "p-1", "text": "Go."}, 2)
    assert first == again == {"type": "reply", "id": "p-1", "run_id": session.current_run.id}
    session.current_run.result()
    assert [message.text for message in session.messages] == ["Go.", "One."]
    assert ask(session, {"type": "send", "id": "p-2", "text": "Go."})["type"] == "reply"
    session.current_run.result()
    assert len(session.messages) == 4


@pytest.mark.parametrize("ended", [False, True], ids=["it waits", "it was answered"])
def test_a_message_that_comes_again_after_an_end_of_the_process_is_said_once(
    tmp_path: Path, ended: bool
) -> None:
    asked = {"type": "send", "id": "p-1", "text": "Go."}
    with closing(ConversationStore(tmp_path / "agents.db")) as store:
        session = session_of("One.", id="talk", store=store, delay=0 if ended else 3600)
        if not ended:
            session.send("First.")
        answers_to(session, asked, 1)
        until(lambda: session.status == "idle" if ended else session.queued)
        session.close()
        again = sa.Session.open("talk", agent=session.agent, store=store)
        assert [reply["type"] for reply in answers_to(again, asked, 1)] == ["reply"]
        said = [each.message.text for each in again.queued]
        said += [message.text for message in again.messages if message.role == "user"]
        assert said.count("Go.") == 1
        again.close()


def test_a_stop_that_comes_again_later_stops_no_other_run() -> None:
    session = waiting_session("Done.", "More.")
    cancel = {"type": "cancel", "id": "p-1"}
    answers_to(session, cancel, 1)
    until(lambda: session.status == "cancelled")
    session.send("Go on.").result()
    answers_to(session, {"type": "send", "id": "p-2", "text": "More."}, 1)
    run = session.current_run
    answers_to(session, cancel, 1)
    run.result()
    assert run.status != "cancelled"


def test_an_approval_that_comes_twice_is_no_error() -> None:
    session = waiting_session("Done.")
    interrupt = session.interrupt
    decisions = {
        r.tool_call_id: {"type": "approve", "digest": r.digest} for r in interrupt.action_requests
    }
    asked = {"type": "decide", "id": "p-1", "interrupt_id": interrupt.id, "decisions": decisions}
    assert answers_to(session, asked, 2) == [{"type": "reply", "id": "p-1"}] * 2


def test_one_that_comes_again_while_a_file_is_saved_waits_for_the_same_answer() -> None:
    session = session_of("One.", "Two.")
    answers: list[dict[str, Any]] = []
    files = [{"name": "a.txt", "text": "a"}]
    request = {"type": "send", "id": "p-1", "text": "Read.", "files": files}

    def both() -> None:
        answer(session, request, answers.append)
        answer(session, request, answers.append)

    runtime.call(both)
    until(lambda: answers)
    session.current_run.result()
    assert [reply["id"] for reply in answers] == ["p-1"]
    assert [entry.path for entry in session.files.entries() if not entry.is_directory] == [
        "/uploads/a.txt"
    ]


def test_the_newest_answers_are_kept() -> None:
    session = session_of()
    for n in range(KEPT_ANSWERS + 1):
        ask(session, {"type": "withdraw", "id": str(n), "run_id": "", "when": "steer", "text": "x"})
    first = answers_to(session, {"type": "nothing of the kind", "id": "p-1"}, 1)
    for n in range(KEPT_ANSWERS):
        answers_to(session, {"type": "cancel", "id": f"q-{n}"}, 1)
    assert answers_to(session, {"type": "cancel", "id": "p-1"}, 1) != first
