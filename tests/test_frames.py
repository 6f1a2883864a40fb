from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.frames import COLUMNS, frame
from tests.talking import call, session_of

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


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_and_dtypes_do_not_depend_on_the_rows(session: sa.Session, kind: str) -> None:
    full, empty = session.to_frame(kind), frame(kind, sa.State())
    assert len(full) > 0
    assert len(empty) == 0
    assert list(full.columns) == list(empty.columns) == list(COLUMNS[kind])
    for name, dtype in COLUMNS[kind].items():
        if isinstance(dtype, str) and dtype != "category":
            assert str(full[name].dtype) == str(empty[name].dtype) == dtype
        else:
            assert isinstance(full[name].dtype, pd.CategoricalDtype)
            assert isinstance(empty[name].dtype, pd.CategoricalDtype)


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
    assert list(decisions.decision) == ["approve", "approve"]
    assert set(decisions.by) == {"alice"}


def test_what_no_event_tells_of_is_missing_and_not_wrong(session: sa.Session) -> None:
    restored = sa.Session.restore(session.export_state(), agent=session.agent)
    calls = restored.to_frame("tool_calls")
    assert list(calls.result) == list(session.to_frame("tool_calls").result)
    assert calls.time.isna().all()
    assert calls.status.isna().all()


def test_a_frame_that_does_not_exist_is_refused(session: sa.Session) -> None:
    with pytest.raises(sa.ConfigurationError, match="messages, tool_calls"):
        session.to_frame("rows")
