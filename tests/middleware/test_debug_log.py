from __future__ import annotations

import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb import DebugLog, Message, TextDelta
from sagents_nb.events import (
    AgentEnd,
    AgentStart,
    Emitter,
    Event,
    FileUpdated,
    MessageEnd,
    MessageUpdate,
    SubagentEvent,
    TodosUpdated,
    ToolExecutionUpdate,
    TurnEnd,
)
from tests.middleware.histories import context
from tests.talking import agent_of, call


def look(at: str = "") -> str:
    return f"saw {at}"


def text_of(log: DebugLog, session_id: str = "s1") -> str:
    return log.path(session_id).read_text(encoding="utf-8")


def logged(directory: Path, *events: Any, **options: Any) -> str:
    """The file after these events of one run: (kind, fields) each."""
    log = DebugLog(directory)
    ctx = context(**options)
    emitter = Emitter(lambda event: log.on_event(event, ctx), session_id="s1")
    emitter.emit(AgentStart)
    for kind, fields in events:
        emitter.emit(kind, **fields)
    emitter.emit(AgentEnd, messages=(), status="completed")
    return text_of(log)


@pytest.mark.spec("S1.14.6")
def test_a_session_has_one_file_that_tells_what_happened(tmp_path: Path) -> None:
    log = DebugLog(tmp_path / "deep" / "logs")
    agent = agent_of(call("look", at="home"), "done", tools=[look], middleware=[log])
    session = sa.Session(agent, id="mine")
    session.send("go").result()
    session.close()
    text = text_of(log, "mine")
    assert [path.name for path in log.directory.iterdir()] == ["mine.log"]
    for told in (
        "user\n    go",
        'look c1 {"at":"home"}',
        "look c1 completed in",
        "saw home",
        "done",
    ):
        assert told in text
    heads = [line for line in text.splitlines() if not line.startswith(" ")]
    pattern = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d #\d+ (\w+)( .*)?"
    types = [match[1] for line in heads if (match := re.fullmatch(pattern, line))]
    assert len(types) == len(heads)
    assert (types[0], types[-1]) == ("agent_start", "agent_end")
    assert "message_update" not in types


@pytest.mark.spec("S1.14.6")
def test_later_runs_are_added_and_other_sessions_have_their_own_file(tmp_path: Path) -> None:
    log = DebugLog(tmp_path)
    agent = agent_of("one", "two", "three", middleware=[log])
    first, second = sa.Session(agent, id="first"), sa.Session(agent, id="second")
    for session in (first, first, second):
        session.send("go").result()
        session.close() if session is second else None
    first.close()
    assert text_of(log, "first").count("agent_end completed") == 2
    assert "three" in text_of(log, "second")
    assert "three" not in text_of(log, "first")


@pytest.mark.spec("S1.14.6")
def test_when_it_is_not_enabled_nothing_is_written(tmp_path: Path) -> None:
    log = DebugLog(tmp_path / "logs", enabled=False)
    agent_of("done", middleware=[log]).run("go")
    assert not log.directory.exists()


def test_it_writes_where_the_notebook_was_when_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = DebugLog()
    assert log.directory == tmp_path / ".sagents" / "logs"


def test_it_writes_at_the_end_of_turns_and_not_in_between(tmp_path: Path) -> None:
    log = DebugLog(tmp_path)
    ctx = context()
    emitter = Emitter(lambda event: log.on_event(event, ctx), session_id="s1")
    emitter.emit(AgentStart)
    emitter.emit(MessageEnd, message=Message.user("hi"))
    assert not log.path("s1").exists()
    emitter.emit(TurnEnd, message=Message.assistant("ho"))
    assert "hi" in text_of(log)
    emitter.emit(ToolExecutionUpdate, tool_call_id="c1", text="half way", fraction=0.5)
    assert "half way" not in text_of(log)
    emitter.emit(AgentEnd, messages=(), status="error", error="cable")
    assert "half way" in text_of(log)
    assert text_of(log).endswith("agent_end error, 0 new messages: cable\n")
    emitter.emit(FileUpdated, path="/a.txt")  # between two runs
    assert 'file_updated path="/a.txt"' in text_of(log)


def test_secrets_of_the_tool_context_and_keys_are_not_written(tmp_path: Path) -> None:
    values = {"token": "hunter2hunter2", "more": {"list": ["correct horse"]}, "lang": "en"}
    said = "en: hunter2hunter2, correct horse, sk-ant-api03-abcdef and Bearer abcdef"
    text = logged(tmp_path, (MessageEnd, {"message": Message.user(said)}), values=values)
    assert "    en: [key], [key], [key] and [key]" in text


def test_what_a_terminal_would_act_on_is_written_out(tmp_path: Path) -> None:
    text = logged(tmp_path, (MessageEnd, {"message": Message.user("a\x1b[2Jb\u202ec\udc00")}))
    assert "a\\x1b[2Jb\\u202ec" in text


def test_a_text_cannot_pretend_to_be_an_event(tmp_path: Path) -> None:
    fake = "x\n2026-11-22 01:02:03.456+00:00 #9 agent_end completed\rboo"
    text = logged(tmp_path, (MessageEnd, {"message": Message.user(fake)}))
    assert "\n2026-11-22 01:02:03.456+00:00 #9" not in text


def test_long_texts_are_shortened(tmp_path: Path) -> None:
    text = logged(tmp_path, (MessageEnd, {"message": Message.user("x" * 100_000)}))
    assert "98,000 more characters" in text
    assert len(text) < 3_000


def test_events_of_subagents_say_whose_they_are_and_have_no_pieces(tmp_path: Path) -> None:
    inner: list[Event] = [
        MessageEnd(message=Message.assistant("found it")),
        MessageUpdate(delta=TextDelta("fou")),
        SubagentEvent(sub_agent_id="deeper", tool_call_id="c2", event=AgentStart()),
    ]
    fields = [{"sub_agent_id": "helper", "tool_call_id": "c1", "event": e} for e in inner]
    text = logged(tmp_path, *((SubagentEvent, f) for f in fields))
    assert "subagent_event helper message_end assistant end_turn\n    found it" in text
    assert "subagent_event helper subagent_event deeper agent_start" in text
    assert text.count("subagent_event helper") == 2


@pytest.mark.spec("S1.14.6")
def test_todos_interrupts_decisions_and_failures_are_told(tmp_path: Path) -> None:
    log = DebugLog(tmp_path)
    agent = agent_of(
        call("look", at="x"),
        ValueError("cable"),
        tools=[look],
        middleware=[log],
        interrupt_on={"look": True},
    )
    session = sa.Session(agent, id="s1")
    session.send("go").result()
    with pytest.raises(sa.ModelError):
        session.resume(sa.Reject("no")).result()
    session.close()
    text = text_of(log)
    assert 'interrupt hitl\n    look c1 {"at":"x"}' in text
    assert "look c1 rejected" in text
    assert "cable" in text
    todo = logged(tmp_path / "b", (TodosUpdated, {"todos": (sa.Todo("plan", id=1),)}))
    assert "todos_updated\n    1. [pending] plan" in todo


@pytest.mark.parametrize("odd", ["../../etc/passwd", "a/b", "", ".", "x" * 300, "a:b\0", "ü"])
def test_any_session_id_is_a_file_in_the_directory(tmp_path: Path, odd: str) -> None:
    log = DebugLog(tmp_path)
    path = log.path(odd)
    assert path.parent == tmp_path
    assert path != log.path(f"{odd}_")
    path.write_text("")


def test_a_log_that_cannot_be_written_is_one_warning_and_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "logs").write_text("a file is in the way")
    agent = agent_of(call("look"), "done", tools=[look], middleware=[DebugLog(tmp_path / "logs")])
    assert agent.run("go").text == "done"
    assert caplog.text.count("is not written") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    logged(tmp_path)
    assert stat.S_IMODE((tmp_path / "s1.log").stat().st_mode) == 0o600
