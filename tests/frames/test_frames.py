from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb import events as ev
from sagents_nb.frames import COLUMNS, Conversation, frame_of
from sagents_nb.frames.rows import MAKERS
from sagents_nb.transcript import markdown
from tests.session.stored import disk
from tests.talking import PATIENCE, agent_of, call, session_of

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def session() -> sa.Session:
    """A conversation with everything in it."""

    def look(at: str) -> str:
        if at == "void":
            raise ValueError("nothing there")
        return f"saw {at}"

    def plan() -> Any:
        return sa.ToolOutput("ok", update={"todos": [sa.Todo("a"), sa.Todo("b", "completed")]})

    answer = sa.Message.assistant("done", usage=sa.Usage(10, 5, cost_usd=0.25))
    session = session_of(
        [call("look", "c1", at="sky"), call("look", "c2", at="void"), call("plan", "c3")],
        answer,
        tools=[look, plan],
        interrupt_on={"look": True},
    )
    session.send("go").result()
    session.resume([sa.Approve(), sa.Approve()], by="alice").result()
    session.files.write("/notes.md", "hello")
    return session


@pytest.mark.parametrize("kind", MAKERS)
def test_columns_and_dtypes_do_not_depend_on_the_rows(session: sa.Session, kind: str) -> None:
    full, empty = session.to_frame(kind), frame_of(kind, [])
    assert len(full) > 0
    assert len(empty) == 0
    assert list(full.columns) == list(empty.columns) == list(COLUMNS[kind])
    for name, column in COLUMNS[kind].items():
        assert str(full[name].dtype) == str(empty[name].dtype) == column.dtype
        if column.categories:
            assert tuple(full[name].cat.categories) == column.categories


def test_messages_are_rows_with_the_time_and_run_of_their_event(session: sa.Session) -> None:
    messages = session.to_frame("messages")
    assert list(messages.role) == ["user", "assistant", "tool", "assistant"]
    assert messages.text[2].splitlines()[0] == "saw sky"
    assert messages.time.is_monotonic_increasing
    assert set(messages.run_id) == {session.current_run.id}  # type: ignore[union-attr]
    assert list(messages.output_tokens.fillna(-1)) == [-1, 0, -1, 5]


def test_tool_calls_are_rows_with_how_they_ended(session: sa.Session) -> None:
    calls = session.to_frame("tool_calls")
    assert list(calls.tool_call_id) == ["c1", "c2", "c3"]
    assert list(calls.status) == ["completed", "failed", "completed"]
    assert list(calls.is_error) == [False, True, False]
    assert calls.arguments[0] == '{"at":"sky"}'
    assert (calls.duration >= 0).all()


def test_todos_usage_files_and_decisions_are_rows(session: sa.Session) -> None:
    assert list(session.to_frame("todos").status) == ["pending", "completed"]
    usage = session.to_frame("usage")
    assert (usage.input_tokens.sum(), usage.cost_usd.sum()) == (10, 0.25)
    files = session.to_frame("files")
    assert (files.path[0], files["size"][0]) == ("/notes.md", 5)
    decisions = session.to_frame("decisions")
    assert list(decisions.name) == ["look", "look"]
    assert list(decisions.decision) == ["approve", "approve"]
    assert (decisions.waited >= 0).all()
    assert set(decisions.by) == {"alice"}


def test_events_say_how_long_what_they_end_has_taken(session: sa.Session) -> None:
    events = session.to_frame("events").set_index("type")
    ended = ["message_end", "turn_end", "agent_end", "tool_execution_end", "decision"]
    assert events.duration[ended].ge(0).all()
    assert events.duration[["message_start", "token_usage", "status_changed"]].isna().all()
    assert sorted(events.name["tool_execution_end"]) == ["look", "look", "plan"]
    assert list(events.status["decision"]) == ["approve", "approve"]


def test_every_row_says_whose_it_is_and_several_sessions_are_one_frame(session: sa.Session) -> None:
    other = sa.Session(agent_of("hi"), id="other")
    other.send("hello").result()
    both = sa.to_frame("messages", [session, other])
    assert list(both.session_id.unique()) == [session.id, "other"]
    assert both.dtypes.astype(str).equals(session.to_frame("messages").dtypes.astype(str))
    assert sa.to_frame("messages", session).equals(session.to_frame("messages"))


def test_what_sub_agents_did_is_told_beside_their_id() -> None:
    inner = [
        ev.ToolExecutionStart(ts=1.0, run_id="r-2", tool_call=call("look", "c9", at="sea")),
        ev.ToolExecutionEnd(
            ts=3.0,
            run_id="r-2",
            tool_call_id="c9",
            tool_name="look",
            result=sa.ToolResult("c9", "look", "saw it"),
            status="completed",
            duration=2.0,
        ),
        ev.TokenUsage(ts=4.0, usage=sa.Usage(7), model="small"),
    ]
    told = [ev.SubagentEvent(sub_agent_id="s-1", tool_call_id="c1", event=e) for e in inner]
    told.append(ev.TokenUsage(ts=5.0, usage=sa.Usage(2), model="large"))
    conversation = Conversation("c", sa.State(), told)
    calls = frame_of("tool_calls", [conversation])
    assert calls.iloc[0][["name", "result", "duration", "sub_agent"]].to_list() == [
        "look",
        "saw it",
        2.0,
        "s-1",
    ]
    usage = frame_of("usage", [conversation])
    assert usage.sub_agent.astype(object).fillna("").to_list() == ["s-1", ""]
    assert usage.input_tokens.sum() == 9


ODD = "half \ud800, nul \0, bidi \u202e, é 🙂"


def test_odd_content_neither_breaks_a_frame_nor_changes_its_dtypes() -> None:
    arguments = {"none": None, "deep": {"a": [1, {"b": 10**40}]}, "half": "\ud800", "nan": 1e308}
    odd_call = sa.ToolCall("c\ud800", "tool \0", arguments)
    state = sa.State(
        messages=[
            sa.Message.user(ODD),
            sa.Message.assistant(ODD, [odd_call], usage=sa.Usage(10**30, -1)),
            sa.Message.tool([sa.ToolResult("c\ud800", "tool \0", [sa.JsonPart({"x": None})])]),
            sa.Message("my own role", ()),
        ],
        todos=[sa.Todo(ODD, id="a")],
    )
    messages = frame_of("messages", [Conversation("s", state)])
    assert messages.text[0] == ODD.replace("\ud800", "\ufffd")
    assert messages.input_tokens.isna().all()
    assert messages.output_tokens[1] == -1
    assert messages.text[3] == ""
    assert "my own role" in messages.role.cat.categories
    calls = frame_of("tool_calls", [Conversation("s", state)])
    assert str(10**40) in calls.arguments[0]
    assert calls.result[0] == '{"x":null}'
    for kind in MAKERS:
        made = frame_of(kind, [Conversation("s", state)])
        assert list(map(str, made.dtypes)) == [c.dtype for c in COLUMNS[kind].values()]


def test_what_no_event_tells_of_is_missing_and_not_wrong(session: sa.Session) -> None:
    restored = sa.Session.restore(session.export_state(), agent=session.agent, id=session.id)
    calls = restored.to_frame("tool_calls")
    assert list(calls.result) == list(session.to_frame("tool_calls").result)
    assert calls.time.isna().all()
    assert list(calls.status) == ["completed", "failed", "completed"]  # the results say it


def test_a_frame_that_does_not_exist_is_refused(session: sa.Session) -> None:
    with pytest.raises(sa.ConfigurationError, match="messages, tool_calls"):
        session.to_frame("rows")
    with pytest.raises(sa.ConfigurationError, match=r"agent\.map"):
        session.to_frame("map")
    for refused in (session.to_frame, lambda kind: sa.to_frame(kind, [])):
        with pytest.raises(sa.ConfigurationError, match=r"messages, [a-z_, ]*decisions\.$"):
            refused("conversations")


def test_calls_whose_ids_are_used_again_keep_their_own_results() -> None:
    """Some local models number the calls of each turn from 0."""
    count = iter(range(10))

    @sa.tool
    def draw() -> str:
        """Draws."""
        return f"number {next(count)}"

    turns = [call("draw", "call_0"), call("draw", "call_0"), "done"]
    session = session_of(*turns, call("draw", "call_0"), "done", tools=[draw])
    session.send("go").result(PATIENCE)
    session.send("again").result(PATIENCE)
    frame = session.to_frame("tool_calls")
    assert list(frame["result"]) == ["number 0", "number 1", "number 2"]
    runs = list(frame["run_id"])
    assert runs[0] == runs[1] != runs[2]


def test_decisions_of_a_conversation_that_was_opened_again_have_names() -> None:
    with disk() as place:
        store = place.store()
        agent = agent_of(call("draw"), "done", tools=[draw], interrupt_on={"draw": True})
        first = sa.Session(agent, id="c1", store=store)
        assert first.send("go").result(PATIENCE).status == "interrupted"
        first.close()
        session = sa.Session.open("c1", agent=agent, store=store)
        session.approve().result(PATIENCE)
        (row,) = session.to_frame("decisions").to_dict("records")
        assert (row["name"], row["decision"]) == ("draw", "approve")


def test_what_was_decided_in_another_branch_is_of_no_call_of_this_one() -> None:
    """Some models use the same ids again; each question has an answer in both branches."""

    def pay(euros: int) -> str:
        return f"paid {euros}"

    with disk() as place:
        store = place.store()
        script = [call("pay", euros=5), "Paid.", call("pay", euros=900), "Not paid."]
        agent = agent_of(*script, tools=[pay], interrupt_on={"pay": True})
        session = sa.Session(agent, store=store)
        session.send("go").result(PATIENCE)
        session.approve().result(PATIENCE)
        session.send("go on", instead_of=0).result(PATIENCE)
        assert list(session.to_frame("decisions").decision) == []
        assert "approved" not in session.to_markdown()
        session.reject().result(PATIENCE)
        assert list(session.to_frame("decisions").decision) == ["reject"]
        session.close()
        assert list(store.to_frame("decisions").decision) == ["reject"]


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (sa.Approve(), None),
        (sa.Edit({"at": "sea", "n": 1}), '{"at":"sea","n":1}'),
        (sa.Edit({}), "{}"),
        (sa.Reject("Not now."), "Not now."),
        (sa.Reject(), None),
        (sa.Respond("did not run"), "did not run"),
        (sa.Respond({"selected": ["a"]}), '{"selected":["a"]}'),
        (sa.Respond(False), "false"),
        (sa.Respond(0), "0"),
        (sa.Respond(""), None),
        (sa.Respond(), None),
    ],
)
def test_a_decision_tells_what_was_said_with_it(decision: Any, said: str | None) -> None:
    told = [ev.DecisionMade(tool_call_id="c1", decision=decision)]
    (row,) = frame_of("decisions", [Conversation("s", events=told)]).to_dict("records")
    assert (row["message"] if pd.notna(row["message"]) else None) == said


@sa.tool
def draw() -> str:
    """Draws."""
    return "drawn"


def test_a_call_that_a_person_edited_is_shown_with_what_it_was_run_with() -> None:
    def look(at: str) -> str:
        return f"saw {at}"

    session = session_of(call("look", at="sky"), "done", tools=[look], interrupt_on={"look": True})
    session.send("go").result()
    run = session.resume(sa.Edit({"at": "sea"}))
    run.result()
    frame = session.to_frame("tool_calls")
    assert frame["arguments"].tolist() == ['{"at":"sea"}']
    assert frame["asked"].tolist() == ['{"at":"sky"}']
    shown = "`look(at='sea')` (edited by `user`; the model asked for `look(at='sky')`) gave"
    assert shown in markdown(session.messages)
