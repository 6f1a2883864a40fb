"""Who leaves the events of a run early cancels it: nothing runs after that."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.loop.execution import ExecutionEvents
from sagents_nb.runtime.thread import runtime
from sagents_nb.runtime.workers import workers
from tests.loop.test_reading import kinds_of
from tests.talking import PATIENCE, agent_of, call, run


class Left(Exception):
    """Raised by who reads."""


class Work:
    """A run that looks, as long as that takes, and would send a mail after it."""

    def __init__(self) -> None:
        self.goes_on, self.ended = threading.Event(), threading.Event()
        self.sent: list[str] = []
        self.status = ""

        def look() -> str:
            self.goes_on.wait(PATIENCE)
            return "seen"

        def mail() -> str:
            self.sent.append("mail")
            return "sent"

        class Watcher(sa.Middleware):
            def on_event(_, event: Any, ctx: Any) -> None:
                if event.type == "agent_end":
                    self.status = event.status
                    self.ended.set()

        turns = [["Let me look.", call("look")], call("mail", "c2"), "Done."]
        self.agent = agent_of(*turns, tools=[look, mail], middleware=[Watcher()])

    def begin(self, named: bool = True) -> ExecutionEvents:
        """Its events, which it keeps in ``stream`` if they have a name."""
        stream = self.agent.stream("go")
        if named:
            self.stream = stream
        return stream

    def outcome(self) -> tuple[str, list[str]]:
        """How the run ended, where nothing keeps it from going on, and the mails that it sent."""
        self.goes_on.set()
        assert self.ended.wait(PATIENCE)
        return self.status, self.sent


CANCELLED: tuple[str, list[str]] = ("cancelled", [])
COMPLETED = ("completed", ["mail"])


def is_far(item: Any) -> bool:
    """Whether the run is so far as to be left: it said something, or looks."""
    return isinstance(item, str) or item.type == "tool_execution_start"


def read(items: Any, error: type[Left] | None) -> None:
    """Leave a ``for`` loop by a ``break``, or by the error."""
    for item in items:
        if is_far(item):
            if error is not None:
                raise error
            break
    else:
        pytest.fail("it was read to its end")


async def read_async(items: Any, error: type[Left] | None) -> None:
    """Leave an ``async for`` loop by a ``break``, or by the error."""
    async for item in items:
        if is_far(item):
            if error is not None:
                raise error
            break
    else:
        pytest.fail("it was read to its end")


def how_left(error: type[Left] | None) -> AbstractContextManager[Any]:
    """Expect that error, and keep its frames for as long as a test, with all that they hold."""
    return nullcontext() if error is None else pytest.raises(Left)


def events(run: Any) -> Any:
    return run


def text(run: Any) -> Any:
    return run.text_stream()


WHAT = pytest.mark.parametrize("what", [events, text])
HOW = pytest.mark.parametrize("error", [None, Left], ids=["break", "error"])
NAMED = pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])


@WHAT
@HOW
@NAMED
def test_leaving_for_cancels_the_run(what: Any, error: type[Left] | None, named: bool) -> None:
    work = Work()
    with how_left(error) as raised:
        read(what(work.begin(named)), error)
    assert work.outcome() == CANCELLED
    del raised


@WHAT
@HOW
@NAMED
def test_leaving_async_for_cancels_the_run(
    what: Any, error: type[Left] | None, named: bool
) -> None:
    work = Work()

    async def leave() -> None:
        with how_left(error) as raised:
            await read_async(what(work.begin(named)), error)
        assert work.outcome() == CANCELLED  # at once: the loop has not turned since
        del raised

    run(leave())


def test_the_result_of_a_run_that_was_left_waits_for_its_end() -> None:
    work = Work()
    stream = work.begin()
    read(stream, None)
    work.goes_on.set()
    assert stream.result.status == "cancelled"
    assert work.sent == []

    async def leave() -> sa.RunResult:
        again = Work()
        stream = again.begin()
        await read_async(stream, None)
        again.goes_on.set()
        return stream.result

    assert run(leave()).status == "cancelled"


def test_what_came_until_a_run_was_left_can_be_read_to_its_end() -> None:
    work = Work()
    stream = work.begin()
    read(stream, None)
    rest = list(stream)
    assert kinds_of(rest)[-1] == "agent_end"
    assert list(stream) == []
    assert work.outcome() == CANCELLED


def test_leaving_at_the_last_event_cancels_nothing() -> None:
    work = Work()
    work.goes_on.set()
    stream = work.begin()
    for event in stream:
        if event.type == "agent_end":
            break
    assert stream.result.status == "completed"
    assert work.outcome() == COMPLETED


def test_one_event_by_hand_cancels_nothing() -> None:
    work = Work()
    stream = work.begin()
    assert next(stream).type == "agent_start"
    assert run(anext(stream)).type == "turn_start"
    work.goes_on.set()
    assert kinds_of(stream)[-1] == "agent_end"
    with pytest.raises(StopIteration):
        next(stream)
    assert stream.result.status == "completed"
    assert work.outcome() == COMPLETED


def test_to_ask_whether_it_can_be_read_cancels_nothing() -> None:
    work = Work()
    stream = work.begin()
    next(stream)
    iter(stream), aiter(stream), iter(stream.text_stream()), aiter(stream.text_stream())
    work.goes_on.set()
    assert kinds_of(stream)[-1] == "agent_end"
    assert work.outcome() == COMPLETED


@HOW
def test_the_end_of_a_with_block_cancels_the_run(error: type[Left] | None) -> None:
    work = Work()
    with how_left(error), work.begin() as stream:
        next(stream)
        if error is not None:
            raise error
    assert work.outcome() == CANCELLED
    assert stream.result.status == "cancelled"


@HOW
def test_the_end_of_an_async_with_block_cancels_the_run(error: type[Left] | None) -> None:
    work = Work()

    async def use() -> None:
        async with work.begin() as stream:
            await anext(stream)
            if error is not None:
                raise error

    with how_left(error):
        run(use())
    assert work.outcome() == CANCELLED
    assert work.stream.result.status == "cancelled"


def test_a_block_that_reads_all_has_the_whole_result() -> None:
    work = Work()
    work.goes_on.set()
    with work.begin() as stream:
        assert kinds_of(stream)[-1] == "agent_end"
    assert stream.result.text == "Done."
    assert work.outcome() == COMPLETED


def test_who_cancels_reads_on_to_the_end() -> None:
    work = Work()
    stream = work.begin()
    seen = []
    for event in stream:
        seen.append(event)
        if is_far(event):
            stream.cancel()
    assert seen[-1].type == "agent_end"
    assert work.outcome() == CANCELLED
    stream.cancel()
    assert stream.result.status == "cancelled"


def began(work: Work) -> bool:
    """Whether anything of it has run: its model was asked."""
    model = work.agent.model
    assert isinstance(model, sa.ScriptedModel)
    return bool(model.requests)


def cancelled_first(work: Work) -> None:
    work.begin().cancel()


def left_unread(work: Work) -> None:
    with work.begin():
        pass


async def left_unread_async(work: Work) -> None:
    async with work.begin():
        pass


NEVER_BEGUN = pytest.mark.parametrize(
    "leave", [cancelled_first, left_unread, lambda work: run(left_unread_async(work))]
)


@NEVER_BEGUN
def test_a_run_that_is_cancelled_before_it_begins_never_does(leave: Any) -> None:
    work = Work()
    work.goes_on.set()
    leave(work)
    assert list(work.stream) == list(work.stream.text_stream()) == []
    assert run(read_all(work.stream)) == []
    assert next(work.stream, None) is None
    with pytest.raises(sa.NotRunning, match="cancelled before it began"):
        _ = work.stream.result
    assert not began(work)


async def read_all(stream: Any) -> list[Any]:
    return [event async for event in stream]


@pytest.mark.parametrize("threads", [True, False], ids=["threads", "tasks"])
def test_those_who_read_one_stream_share_its_events_and_all_come_to_its_end(threads: bool) -> None:
    work = Work()
    work.goes_on.set()
    stream = work.begin()

    async def together() -> list[list[Any]]:
        def reading() -> Any:
            return asyncio.to_thread(list, stream) if threads else read_all(stream)

        async with asyncio.timeout(PATIENCE):
            return await asyncio.gather(*(reading() for _ in range(8)))

    shares = run(together())
    seen = sorted((event for share in shares for event in share), key=lambda event: event.seq)
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert kinds_of(seen)[-1] == "agent_end"
    assert work.outcome() == COMPLETED


def test_a_stream_that_cannot_begin_says_why_to_each_reader() -> None:
    stream = agent_of("Hello!").stream("")
    for _ in range(2):
        with pytest.raises(sa.ConfigurationError, match="prompt is empty"):
            list(stream)
    with pytest.raises(sa.ConfigurationError, match="prompt is empty"):
        _ = stream.result


class Held:
    """A pool that begins nothing before a test says so, as a busy machine may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: list[Any] = []
        self.futures: list[Future[Any]] = []
        self.handed = threading.Event()
        monkeypatch.setattr(workers, "submit", self.submit)

    def submit(self, *work: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.held.append(work)
        self.futures.append(future)
        self.handed.set()
        return future

    def begin(self) -> None:
        for future, (function, *args) in zip(self.futures, self.held, strict=True):
            outcome = function(*args)
            if not future.cancelled():
                future.set_result(outcome)


def test_a_call_that_waits_for_its_thread_does_not_begin_once_the_run_was_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = Held(monkeypatch)
    sent: list[str] = []

    def mail() -> str:
        sent.append("mail")
        return "sent"

    agent = agent_of(call("mail"), "Done.", tools=[sa.tool(mail, run_on="pool")])
    with agent.stream("go") as stream:
        for event in stream:
            if event.type == "tool_execution_start":
                assert held.handed.wait(PATIENCE)
                break
    held.begin()
    assert sent == []
    assert stream.result.status == "cancelled"


def test_nor_does_one_of_a_sub_agent_before_that_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    sent: list[str] = []

    @sa.tool(run_on="pool")
    def mail() -> str:
        """Send it."""
        sent.append("mail")
        return "sent"

    helper = sa.CompiledSubAgent("helper", "Helps.", agent_of(call("mail"), "Done.", tools=[mail]))
    delegate = call("task", instructions="Go.", subagent_type="helper")
    agent = agent_of(delegate, "Done.", middleware=[sa.SubAgents([helper])])
    loop_goes_on = threading.Event()
    with agent.stream("go") as stream:
        for event in stream:
            if event.type == "subagent_event" and event.event.type == "tool_execution_start":
                assert held.handed.wait(PATIENCE)
                runtime.post(loop_goes_on.wait, PATIENCE)
                break
    held.begin()
    assert sent == []
    loop_goes_on.set()
    assert stream.result.status == "cancelled"


def test_an_async_tool_reads_on_before_it_asks_for_the_result() -> None:
    inner = Work()
    seen: list[str] = []

    async def delegate() -> str:
        stream = inner.begin()
        await read_async(stream, None)
        with pytest.raises(sa.Busy, match="async for"):
            _ = stream.result
        seen.extend(kinds_of([event async for event in stream]))
        return stream.result.status

    outer = agent_of(call("delegate"), "Done.", tools=[delegate])
    assert outer.run("go").messages[2].tool_results[0].text == "cancelled"
    assert seen[-1] == "agent_end"
    assert inner.outcome() == CANCELLED


@WHAT
def test_a_run_of_a_session_goes_on_when_it_is_left(what: Any) -> None:
    work = Work()
    read(what(sa.Session(work.agent).send("go")), None)
    assert work.outcome() == COMPLETED

    async def leave() -> None:
        again = Work()
        await read_async(what(sa.Session(again.agent).send("go")), None)
        assert again.outcome() == COMPLETED

    run(leave())
