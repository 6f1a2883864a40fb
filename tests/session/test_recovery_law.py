"""The law of the journal: what is read is what was written, whatever happened, at each commit."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import sagents_nb as sa
from sagents_nb.errors import StoreError
from sagents_nb.runtime.thread import runtime
from sagents_nb.session import journal as recording
from sagents_nb.session.journal import SessionJournal
from sagents_nb.store.folding import LastRun, fold
from tests.session.journals import MemoryJournal, on_the_loop, recorder_on
from tests.talking import PATIENCE

TEXT = st.text(max_size=5)  # NUL, U+FFFE and lone surrogates too
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
INTERRUPTS = st.none() | st.builds(
    lambda id, text: sa.Interrupt(
        "hitl",
        (sa.ActionRequest("c1", "write", {"text": text}, digest=text),),
        text,
        {"by": text},
        f"i{id}",
    ),
    st.integers(0, 2),
    TEXT,
)
MESSAGES = st.lists(st.builds(sa.Message.user, TEXT, told=JSON), max_size=3)
KEYS = st.sampled_from(["a", "b", "\ud800"])

CHANGES: st.SearchStrategy[tuple[str, Any]] = st.one_of(
    st.tuples(st.just("add"), MESSAGES),
    st.tuples(st.just("keep"), st.tuples(st.integers(0, 6), MESSAGES)),
    st.tuples(st.just("fork"), st.tuples(st.integers(0, 6), MESSAGES)),
    st.tuples(st.just("result"), TEXT),
    st.tuples(st.just("todos"), st.lists(st.builds(sa.Todo, TEXT.filter(bool)), max_size=2)),
    st.tuples(st.just("put"), st.tuples(KEYS, JSON)),
    st.tuples(st.just("forget"), KEYS),
    st.tuples(st.just("interrupt"), INTERRUPTS),
    st.tuples(st.just("reset"), st.none()),
)
DEEDS = st.one_of(
    CHANGES,
    st.tuples(st.just("queue"), st.tuples(TEXT, st.sampled_from(["queue", "steer"]))),
    st.tuples(st.just("take"), st.integers(0, 3)),
    st.tuples(st.just("withdraw"), st.integers(0, 3)),
    st.tuples(st.just("fail"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
)


def changed(state: sa.State, how: str, with_: Any) -> sa.State:
    if how == "add":
        return state.add_messages(with_)
    if how == "keep":  # what a summary or a repair does: new messages behind some of the old
        return state.set_messages([*state.messages[: with_[0]], *with_[1]])
    if how == "fork":  # the same, and some of the old behind the new
        return state.set_messages([*with_[1], *state.messages[with_[0] :]])
    if how == "result":
        return state.add_message(sa.Message.tool([sa.ToolResult("c1", "write", with_)]))
    if how == "todos":
        return state.set_todos(with_)
    if how == "put":
        return state.put_metadata(*with_)
    if how == "forget":
        return sa.State(
            messages=state.messages,
            todos=state.todos,
            metadata={k: v for k, v in state.metadata.items() if k != with_},
            interrupt=state.interrupt,
        )
    return state.with_interrupt(with_) if how == "interrupt" else state.reset()


def said(state: sa.State) -> Any:
    """The state as its rows, so that 1 and True are two."""
    return {**state.export(), "serialized_at": ""}


class Story:
    """A session's writing, and what it has written so far by all rights."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.recorder = recorder_on(self.journal)
        self.state = sa.State()
        self.waiting: list[sa.Message] = []
        self.fails = False
        self.journal.fails = self._fails

    def _fails(self) -> bool:
        fails, self.fails = self.fails, False
        return fails

    def do(self, how: str, with_: Any) -> None:
        if how == "queue":
            text, when = with_
            self.waiting += self.recorder.queue([sa.Message.user(text)], "r1", when)
        elif how == "take":
            taken, self.waiting = self.waiting[:with_], self.waiting[with_:]
            self.state = self.state.add_messages(taken)
        elif how == "withdraw":
            self.recorder.withdraw(self.waiting[:with_])
            del self.waiting[:with_]
        elif how == "fail":
            self.fails = True
            self.state = self.state.add_message(sa.Message.user("late"))
        elif how == "reopen":
            self.reopen()
        else:
            self.state = changed(self.state, how, with_)
        self.recorder.note(self.state)
        future = self.recorder.flush()
        failed = future is not None and future.exception() is not None
        assert failed == (how == "fail")
        if not failed:
            self.check()

    def reopen(self) -> None:
        folded = self.journal.folded()
        self.recorder = SessionJournal(self.journal, {})
        self.recorder.go_on(folded.rows, folded.state, folded.queued)
        self.state = folded.state
        self.waiting = [waiting.message for waiting in folded.queued]

    def check(self) -> None:
        folded = self.journal.folded()
        assert folded.problems == []
        assert said(folded.state) == said(self.state)
        assert [w.message for w in folded.queued] == self.waiting
        live = len(folded.rows)
        assert len(self.journal.rows) <= 2 * live + recording.SPARE + 10, "it is not bounded"


@settings(max_examples=300)
@given(st.lists(DEEDS, max_size=25), st.sampled_from([0, 3, 100]))
def test_what_is_read_is_what_was_written_after_each_commit(deeds: Any, spare: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "SPARE", spare)
        story = Story()

        def live() -> None:
            for how, with_ in deeds:
                if how == "fail" or not story.fails:
                    story.do(how, with_)
            story.do("add", [sa.Message.user("last")])

        on_the_loop(live)


@settings(max_examples=100)
@given(st.lists(CHANGES, min_size=1, max_size=12), st.data())
def test_a_row_that_cannot_be_read_costs_itself_only(changes: Any, data: Any) -> None:
    story = Story()
    on_the_loop(lambda: [story.do(*change) for change in changes])
    rows = story.journal.read()
    position = data.draw(st.integers(0, len(rows) - 1))
    seq, kind, _ = rows[position]
    without = fold([*rows[:position], *rows[position + 1 :]])
    for damage in (None, 5, "text", {"n": "1"}, [["x"]]):
        read = fold([*rows[:position], (seq, kind, damage), *rows[position + 1 :]])
        assert all(isinstance(problem, str) for problem in read.problems)
        if kind == "message":
            assert read.problems
            assert said(read.state) == said(without.state)
    assert without.problems == []


def test_a_history_that_grows_is_written_row_by_row_and_never_again() -> None:
    journal = MemoryJournal()
    recorder = recorder_on(journal)

    def grow() -> None:
        state = sa.State()
        for number in range(200):
            state = state.add_message(sa.Message.user(str(number)))
            recorder.note(state)
            recorder.flush()

    on_the_loop(grow)
    assert [kinds for kinds in journal.batches[1:] if kinds != ["message"]] == []


def test_a_run_that_goes_on_after_its_end_was_written_is_at_work_again() -> None:
    journal = MemoryJournal()
    recorder = recorder_on(journal)
    run = LastRun("r1", "running")
    on_the_loop(recorder.run, run)
    recorder.ending = lambda: replace(run, status="completed")
    state = sa.State()
    statuses = []
    for text, ends in (("hi", False), ("hello", True), ("and?", False), ("so", True)):
        state = state.add_message(sa.Message.user(text))
        on_the_loop(partial(recorder.keep, state, ends=ends)).result(PATIENCE)
        kept = journal.folded().run
        assert kept is not None
        statuses.append(kept.status)
    assert statuses == ["running", "completed", "running", "completed"]
    on_the_loop(recorder.run, replace(run, status="completed"))
    assert not recorder.is_behind, "that is written"


def test_what_could_not_be_written_goes_before_what_came_meanwhile() -> None:
    journal = MemoryJournal()
    recorder = recorder_on(journal)

    class Slow(MemoryJournal):
        def append(self, entries: Any, along: Any = None) -> Any:
            first: Future[int] = Future()
            appended.append(([entry.data.get("n") for entry in entries], first))
            return first

    appended: list[Any] = []
    state = sa.State()

    def say(text: str) -> Any:
        nonlocal state
        state = state.add_message(sa.Message.user(text))
        recorder.note(state)
        return recorder.flush()

    def write() -> None:
        recorder.flush()
        recorder.journal = Slow()
        first, second, third = say("a"), say("b"), say("c")
        assert second is third
        assert first is not second
        [(numbers, future)] = appended  # one batch is on its way at a time
        future.set_exception(StoreError("full"))
        assert first.exception() is not None
        assert not second.done()
        assert appended[1][0] == [*numbers, numbers[0] + 1, numbers[0] + 2]
        appended[1][1].set_result(10)
        assert second.exception() is None

    on_the_loop(write)


def test_who_waits_is_told_of_the_commit_also_where_the_rows_cannot_be_compacted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recording, "SPARE", 0)
    journal = MemoryJournal()
    recorder = recorder_on(journal)

    def write() -> None:
        recorder.note(sa.State().put_todo(sa.Todo("a")))
        recorder.flush()
        journal.rows.clear()
        for text in "bcde":
            recorder.note(sa.State().put_todo(sa.Todo(text)))
            future = recorder.flush()
            assert future is not None
            assert future.done()

    on_the_loop(write)
    assert "not counted right" in caplog.text


def test_who_let_go_of_a_conversation_writes_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    class Talks:
        def take(self) -> Any:
            return lambda connection: None

        def taken(self, error: Any, undone: Any) -> None: ...

    monkeypatch.setattr(recording, "LAG", 0.0)
    journal = MemoryJournal()
    recorder = recorder_on(journal)

    def let_go() -> int:
        recorder.carry(Talks())
        recorder.release()
        recorder.soon()
        return len(journal.batches)

    written = on_the_loop(let_go)
    runtime.submit(asyncio.sleep(0.01)).result(PATIENCE)  # what is due sooner was done by then
    assert len(journal.batches) == written


def test_metadata_that_only_look_equal_are_written() -> None:
    journal = MemoryJournal()
    recorder = recorder_on(journal)

    def change() -> None:
        for value in (1, True, 1.0, {"a": 1}, {"a": 1}):
            recorder.note(sa.State(metadata={"k": value}))
        recorder.flush()

    on_the_loop(change)
    assert [kind for _, kind, _ in journal.read()].count("metadata") == 4


def test_a_value_whose_schema_fails_is_told_and_the_rest_is_kept(caplog: Any) -> None:
    def fail(value: Any) -> Any:
        raise ValueError("no")

    journal = MemoryJournal()
    recorder = SessionJournal(journal, {"bad": (fail, fail)})

    def write() -> None:
        recorder.begin()
        recorder.note(sa.State(metadata={"bad": 1, "good": 2}))
        recorder.flush()

    on_the_loop(write)
    assert journal.folded().state.metadata == {"good": 2}
    assert "metadata['bad'] cannot be written" in caplog.text


# versions


def test_a_newer_version_is_refused_and_told_what_to_do() -> None:
    with pytest.raises(sa.ConfigurationError, match="upgrade sagents_nb"):
        fold([(1, "begin", {"version": 99}), (2, "spin", {})])


def test_an_older_version_is_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    from sagents_nb import serialization
    from sagents_nb.store import folding

    def shout(data: dict[str, Any]) -> dict[str, Any]:
        for message in data["messages"]:
            message["role"] = message.pop("speaker")
        return data

    monkeypatch.setattr(folding, "VERSION", 2)
    monkeypatch.setattr(serialization, "VERSION", 2)
    monkeypatch.setitem(serialization.MIGRATIONS, 1, shout)
    old = {"speaker": "user", "parts": []}
    queued = {"id": 2, "run_id": "r", "when": "queue", "message": old}
    folded = fold(
        [(1, "begin", {"version": 1}), (2, "message", {"n": 1, **old}), (3, "queued", queued)]
    )
    assert folded.version == 1
    assert [m.role for m in folded.state.messages] == ["user"]
    assert [w.message.role for w in folded.queued] == ["user"]
