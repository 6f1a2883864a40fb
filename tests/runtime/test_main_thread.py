from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import itertools
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.runtime.main_thread import MainThread, Work, main_thread
from tests.talking import PATIENCE, agent_of, call, ctrl_c, results, run, session_of, until


@sa.tool(run_on="main")
def where() -> bool:
    """Whether this is the main thread."""
    return threading.current_thread() is threading.main_thread()


def test_a_tool_runs_on_the_main_thread_while_that_waits_for_the_result() -> None:
    session = session_of(call("where"), "done", tools=[where])
    assert session.send("go").result().text == "done"
    assert results(session.state) == ["true"]
    assert results(agent_of(call("where"), "done", tools=[where]).run("go").state) == ["true"]


@pytest.mark.parametrize("patience", [float("inf"), 1e308])
def test_any_number_of_seconds_is_waited(patience: float) -> None:
    may_end = threading.Event()

    def answer(request: Any) -> str:
        may_end.wait(PATIENCE)
        return "done"

    for in_thread in (True, False):
        may_end.clear()
        running = sa.Session(sa.Agent(sa.ScriptedModel([answer]))).send("go")
        threading.Timer(0.05, may_end.set).start()
        if in_thread:
            with ThreadPoolExecutor() as pool:
                assert pool.submit(running.result, patience).result().text == "done"
        else:
            assert running.result(patience).text == "done"


def test_several_at_once_take_turns() -> None:
    turn = [call("where", f"c{n}") for n in range(4)]
    assert results(agent_of(turn, "done", tools=[where]).run("go").state) == ["true"] * 4


def test_without_anybody_there_the_model_is_told_so_and_how_to_change_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(main_thread, "grace", 0.01)

    async def elsewhere() -> sa.RunResult:
        return await agent_of(call("where"), "done", tools=[where]).arun("go")

    (text,) = results(run(elsewhere()).state)
    assert "busy elsewhere" in text
    assert "run.result()" in text


def test_a_run_that_is_quicker_than_its_caller_waits_for_the_main_thread() -> None:
    session = session_of(call("where"), "done", tools=[where])
    asked = threading.Event()
    session.subscribe(lambda event: asked.set() if event.type == "tool_execution_start" else None)
    running = session.send("go")
    assert asked.wait(PATIENCE)
    time.sleep(0.01)  # the tool is asked for, and nobody is there yet
    assert running.result().text == "done"
    assert results(session.state) == ["true"]


def test_a_loop_that_turns_on_the_main_thread_can_take_the_work() -> None:
    async def kernel() -> sa.RunResult:
        main_thread.attach(asyncio.get_running_loop())
        return await agent_of(call("where"), "done", tools=[where]).arun("go")

    try:
        assert results(run(kernel()).state) == ["true"]
    finally:
        main_thread.attach(None)


def test_a_tool_on_the_main_thread_may_fail_or_be_interrupted() -> None:
    @sa.tool(run_on="main")
    def fail() -> None:
        raise ValueError("no plot")

    @sa.tool(run_on="main")
    def stop() -> None:
        raise KeyboardInterrupt

    result = agent_of([call("fail"), call("stop", "c2")], "done", tools=[fail, stop]).run("go")
    assert results(result.state)[0] == "ValueError: no plot"
    assert results(result.state)[1] == "Cancelled: the run was cancelled."


def test_it_sees_the_context_of_the_run() -> None:
    name = contextvars.ContextVar("name", default="nobody")

    @sa.tool(run_on="main")
    def who() -> str:
        return name.get()

    token = name.set("alice")
    try:
        assert results(agent_of(call("who"), "ok", tools=[who]).run("go").state) == ["alice"]
    finally:
        name.reset(token)


def test_other_threads_simply_wait() -> None:
    thread, future = MainThread(), Future[str]()
    threading.Timer(0.01, future.set_result, ["done"]).start()
    outcome: list[str] = []
    waiting = threading.Thread(target=lambda: outcome.append(thread.wait(future, PATIENCE)))
    waiting.start()
    waiting.join(PATIENCE)
    assert outcome == ["done"]


def test_the_time_limit_holds_also_when_work_comes_in_between() -> None:
    thread, never = MainThread(), Future[None]()
    thread.grace = 0.001
    over = threading.Event()

    def keep_busy() -> None:
        while not over.is_set():
            try:
                thread.submit(time.sleep, 0.001).result()
            except RuntimeError:  # nobody waits any more, or not yet
                time.sleep(0.001)

    worker = threading.Thread(target=keep_busy)
    worker.start()
    try:
        with pytest.raises(TimeoutError):
            thread.wait(never, timeout=0.1)
    finally:
        over.set()
        worker.join(PATIENCE)


def test_work_that_comes_at_the_last_moment_is_done_or_refused_and_never_forgotten() -> None:
    thread = MainThread()
    thread.grace = 0.001
    for _ in range(300):
        future: Future[None] = Future()
        outcomes: list[Any] = []

        def work(future: Future[None] = future, outcomes: list[Any] = outcomes) -> None:
            future.set_result(None)
            try:
                outcomes.append(thread.submit(lambda: "done").result())
            except RuntimeError as error:
                outcomes.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        thread.wait(future)
        worker.join(PATIENCE)
        assert outcomes[0] == "done" or "busy elsewhere" in str(outcomes[0])


def when_begun(session: sa.Session, do: Callable[[], Any]) -> threading.Thread:
    """A thread that does it once a tool of the session says that it has begun."""
    begun = threading.Event()
    session.subscribe(lambda event: begun.set() if event.type == "tool_execution_update" else None)

    def work() -> None:
        assert begun.wait(PATIENCE)
        do()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@sa.tool(run_on="main")
def compute(ctx: sa.ToolContext) -> None:
    """Compute for ever."""
    ctx.progress("begun")
    while True:
        pass


@sa.tool(run_on="main")
def sleep(ctx: sa.ToolContext) -> None:
    """Sleep for ever, as far as a test goes."""
    ctx.progress("begun")
    time.sleep(10 * PATIENCE)


@sa.tool(run_on="main")
def ignore(ctx: sa.ToolContext) -> None:
    """Compute for ever, and catch whatever is raised meanwhile."""
    ctx.progress("begun")
    while True:
        try:
            compute.function(ctx)
        except:  # noqa: E722
            continue


def forever(step: Callable[[], object]) -> None:
    """Do that again and again, and catch whatever is raised meanwhile."""
    while True:
        try:
            step()
        except:  # noqa: E722
            continue


@sa.tool(run_on="main")
def tidy_up(ctx: sa.ToolContext) -> None:
    """The same by functions that have something to do at their end, or pass on what they catch."""
    tidied: list[object] = []

    def step() -> None:
        try:
            compute.function(ctx)
        except BaseException as error:
            tidied.append(error)
            raise
        finally:
            tidied.clear()

    forever(step)


@sa.tool(run_on="main")
def catch_twice(ctx: sa.ToolContext) -> None:
    """The same where what one handler raises comes to another of the same function."""
    while True:
        try:
            try:
                compute.function(ctx)
            except:  # noqa: E722
                ctx.progress("one")
        except:  # noqa: E722
            ctx.progress("two")


@sa.tool(run_on="main")
def loop_in_a_loop(ctx: sa.ToolContext) -> None:
    """The same where a loop that was left begins anew."""
    forever(lambda: forever(lambda: compute.function(ctx)))


@sa.tool(run_on="main")
def loop_in_one_function(ctx: sa.ToolContext) -> None:
    """The same where both are in one function."""
    while True:
        try:
            while True:
                try:
                    compute.function(ctx)
                except:  # noqa: E722
                    continue
        except:  # noqa: E722
            continue


@sa.tool(run_on="main")
def call_back(ctx: sa.ToolContext) -> None:
    """The same in functions that C calls, which have no more lines when they have caught it."""
    ctx.progress("begun")

    def key(number: int) -> None:
        with contextlib.suppress(BaseException):
            time.sleep(0.001)

    deque(map(key, itertools.count()), maxlen=0)


@sa.tool(run_on="main")
def trace_itself(ctx: sa.ToolContext) -> None:
    """The same in code that is traced by itself, as by a debugger."""
    sys.settrace(lambda *_: None)
    try:
        ignore.function(ctx)
    finally:
        sys.settrace(None)


@sa.tool(run_on="main")
def hide_name(ctx: sa.ToolContext) -> None:
    """The same in code of no module."""
    ctx.progress("begun")
    exec("while True:\n    try:\n        while True: pass\n    except: pass", {"__name__": 3})


def test_who_stops_a_run_that_runs_a_command_ends_what_it_does_after_that() -> None:
    @sa.tool(run_on="main")
    def command(ctx: sa.ToolContext) -> None:
        ctx.progress("begun")
        os.system("sleep 1.2")  # C ignores SIGINT meanwhile
        while True:
            pass

    @sa.tool(run_on="main")
    def short(ctx: sa.ToolContext) -> None:
        ctx.progress("begun")
        os.system("sleep 0.3")

    for busy in (command, short, compute):
        session = session_of(call(busy.name), "done", tools=[busy])
        thread = when_begun(session, session.cancel)
        assert session.send("go").result().status == "cancelled"
        thread.join(PATIENCE)


def test_what_somebody_else_does_on_the_main_thread_meanwhile_goes_on() -> None:
    goes_on, finish = threading.Event(), threading.Event()

    @sa.tool
    def hold() -> None:
        goes_on.wait(PATIENCE)

    inner = session_of(call("hold"), "never", tools=[hold])

    @sa.tool(run_on="main")
    def ask_inner(ctx: sa.ToolContext) -> None:
        ctx.progress("begun")
        inner.send("go").result()

    @sa.tool(run_on="main")
    def work(ctx: sa.ToolContext) -> str:
        ctx.progress("begun")
        while not finish.is_set():
            pass
        return "worked"

    asking = session_of(call("ask_inner"), "never", tools=[ask_inner])
    other = session_of(call("work"), "done", tools=[work])

    def stop() -> None:
        asking.cancel()
        until(lambda: asking.status == inner.status == "cancelled")
        finish.set()

    stopping = when_begun(other, stop)
    sent: list[sa.Run] = []
    asked = when_begun(asking, lambda: sent.append(other.send("go")))
    assert asking.send("go").result().status == "cancelled"
    for thread in (stopping, asked):
        thread.join(PATIENCE)
    assert sent[0].result().text == "done"
    assert results(other.state) == ["worked"]


def test_a_function_of_pythons_own_is_interrupted_too() -> None:
    over, ended = threading.Event(), list[bool]()

    def interrupt() -> None:
        until(work.running)
        time.sleep(0.02)  # it waits, mostly
        main_thread.interrupt(work)
        wait([work], PATIENCE / 4)
        ended.append(work.done())
        over.set()

    work = main_thread.submit(over.wait, PATIENCE)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        main_thread.wait(work)
    thread.join(PATIENCE)
    assert ended == [True]


TRACE = """
def trace(frame, event, _):
    if comes(frame, event):
        signal.raise_signal(signal.SIGINT)
    return trace
"""


def test_an_interrupt_at_any_place_of_this_package_leaves_no_lock_and_no_run_behind() -> None:
    inner = agent_of(*["Hello."] * 999)
    inner.run("Hi.")  # from now on its way is the same each time

    def interrupted_at(place: int) -> bool:
        """Whether there is such a place."""
        places = itertools.count()

        def comes(frame: Any, event: str) -> bool:
            of_generator = frame.f_code.co_flags & inspect.CO_GENERATOR  # which may be dropped
            return event == "return" and not of_generator and next(places) == place

        names: dict[str, Any] = {"__name__": "threading", "comes": comes, "signal": signal}
        exec(TRACE, names)  # which is not taken for the tool's own code

        @sa.tool(run_on="main")
        def ask_inner() -> None:
            sys.settrace(names["trace"])
            try:
                inner.run("Hi.")
            finally:
                sys.settrace(None)

        session = session_of(call("ask_inner"), *["done"] * 2, tools=[ask_inner])
        with contextlib.suppress(KeyboardInterrupt):
            session.send("go").result(PATIENCE)
        until(lambda: session.status != "running")
        assert session.send("And now?").result(PATIENCE).text
        return next(places) > place

    before = sys.gettrace()
    assert sum(1 for _ in itertools.takewhile(interrupted_at, range(999))) > 50
    sys.settrace(before)


@pytest.fixture
def patient_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stops a run waits for the tool, however slow the machine is."""
    monkeypatch.setattr("sagents_nb.loop.invoke.LAST_WORDS", PATIENCE)
    monkeypatch.setattr("sagents_nb.loop.tool_calls.GRACE", PATIENCE)
    monkeypatch.setattr("sagents_nb.runtime.futures.ENDING", PATIENCE)


# How a run is stopped, and whether whoever waits for it on the main thread is interrupted, too.
WAYS = {
    "session.cancel": (sa.Session.cancel, False),
    "session.stop": (sa.Session.stop, True),
    "Ctrl-C": (lambda session: ctrl_c(), True),
}


def ended_by(session: sa.Session, way: str) -> str:
    """Stop a run of that session once it is in its tool, and how it ended."""
    stop, is_raised = WAYS[way]
    thread = when_begun(session, lambda: stop(session))
    running = session.send("go")
    with pytest.raises(KeyboardInterrupt) if is_raised else contextlib.nullcontext():
        running.result()
    assert session.status == "cancelled"
    thread.join(PATIENCE)
    return running.result().status


def handlers_of_signals() -> list[Any]:
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGURG)]


def compute_until_stopped(ctx: sa.ToolContext) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        ctx.progress("begun")  # from here on it may be interrupted
        while True:
            pass


@pytest.mark.usefixtures("patient_stop")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "busy",
    [
        *(compute, sleep, ignore, tidy_up, catch_twice),
        *(loop_in_a_loop, loop_in_one_function, call_back, hide_name, trace_itself),
    ],
    ids=lambda tool: tool.name,
)
def test_whoever_stops_a_run_ends_what_it_does_on_the_main_thread(busy: sa.Tool, way: str) -> None:
    handlers, frame = handlers_of_signals(), inspect.currentframe()
    assert frame is not None
    traced = sys.gettrace(), sys.getprofile(), frame.f_trace
    session = session_of(call(busy.name), "done", tools=[busy])
    assert ended_by(session, way) == "cancelled"
    assert results(session.state) == ["Cancelled: the run was cancelled."]
    assert handlers_of_signals() == handlers
    assert (sys.gettrace(), sys.getprofile(), frame.f_trace) == traced
    assert sys.exc_info() == (None, None, None)


@pytest.mark.usefixtures("patient_stop")
@pytest.mark.parametrize("way", WAYS)
def test_what_goes_on_there_begins_no_run_once_it_was_stopped(way: str) -> None:
    inner, raised = agent_of("Never."), list[str]()

    @sa.tool(run_on="main")
    def outer(ctx: sa.ToolContext) -> None:
        compute_until_stopped(ctx)
        for begin in (inner.run, sa.Session(inner).send):
            try:
                begin("go")
            except KeyboardInterrupt as error:
                raised.append(str(error))

    session = session_of(call("outer"), "done", tools=[outer])
    assert ended_by(session, way) == "cancelled"
    assert raised == ["This call was stopped, so it begins no run any more."] * 2
    assert inner.model.requests == []  # type: ignore[union-attr]


@pytest.mark.usefixtures("patient_stop")
@pytest.mark.parametrize("way", WAYS)
def test_what_is_around_code_that_takes_long_to_end_tidies_up(way: str) -> None:
    lock = threading.Lock()

    def slow(ctx: sa.ToolContext) -> None:
        try:
            compute.function(ctx)
        finally:
            while True:
                pass

    def release() -> None:
        lock.release()

    def close() -> None:
        release()

    @sa.tool(run_on="main")
    def hold(ctx: sa.ToolContext) -> None:
        lock.acquire()
        try:
            with contextlib.suppress(BaseException):
                slow(ctx)
        finally:
            close()

    @sa.tool(run_on="main")
    def again_and_again(ctx: sa.ToolContext) -> None:
        forever(lambda: hold.function(ctx))

    session = session_of(call("again_and_again"), "done", tools=[again_and_again])
    assert ended_by(session, way) == "cancelled"
    assert lock.acquire(blocking=False)


def test_a_lock_that_it_holds_then_is_let_go_as_it_was_taken() -> None:
    condition, begun = threading.Condition(), threading.Event()

    def step() -> None:
        with condition:
            begun.set()
            condition.wait(10 * PATIENCE)

    def interrupt() -> None:
        assert begun.wait(PATIENCE)
        main_thread.interrupt(work)

    work = main_thread.submit(forever, step)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt) as raised:
        main_thread.wait(work)
    thread.join(PATIENCE)
    error: BaseException | None = raised.value
    while error is not None:
        assert isinstance(error, KeyboardInterrupt)
        error = error.__context__


@pytest.mark.usefixtures("patient_stop")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("timeout", [None, PATIENCE])
def test_what_a_tool_has_done_until_it_was_stopped_is_its_result(
    timeout: float | None, way: str
) -> None:
    @sa.tool(run_on="main", timeout=timeout)
    def count(ctx: sa.ToolContext) -> str:
        compute_until_stopped(ctx)
        return "counted so far"

    session = session_of(call("count"), "done", tools=[count])
    assert ended_by(session, way) == "cancelled"
    assert results(session.state) == ["counted so far"]


def test_an_interrupt_that_comes_once_work_has_given_something_loses_nothing() -> None:
    """Between a function's last line and the end of the work an interrupt may come, too."""
    work: Work[str] = Work(lambda: "given")

    def interrupt(frame: Any, event: str, _: Any) -> Any:
        if work.interrupted or not frame.f_code.co_qualname.startswith("Work."):
            return interrupt
        if event == "line" and frame.f_locals.get("given"):
            work.interrupted = True
            raise KeyboardInterrupt
        return interrupt

    trace = sys.gettrace()
    sys.settrace(interrupt)
    try:
        outcome = work.outcome()
    finally:
        sys.settrace(trace)
    assert work.interrupted
    assert outcome == ("given", None)


def test_work_that_is_interrupted_just_before_it_begins_does_not() -> None:
    begun: list[bool] = []
    work: Work[None] = Work(lambda: begun.append(True))
    assert work.set_running_or_notify_cancel()  # so it cannot be cancelled any more
    main_thread.interrupt(work)
    _, error = work.outcome()
    assert isinstance(error, KeyboardInterrupt)
    assert not begun


@pytest.mark.usefixtures("patient_stop")
def test_what_a_stopped_tool_would_still_await_is_not_begun() -> None:
    begun = threading.Event()
    given: list[Any] = []

    async def more() -> str:
        begun.set()
        return "more"

    @sa.tool(run_on="main")
    def count(ctx: sa.ToolContext) -> Any:
        compute_until_stopped(ctx)
        given.append(more())
        return given[0]

    session = session_of(call("count"), "done", tools=[count])
    thread = when_begun(session, session.cancel)
    assert session.send("go").result().status == "cancelled"
    thread.join(PATIENCE)
    assert not begun.is_set()
    given[0].close()


def test_a_tool_that_is_out_of_time_leaves_the_main_thread() -> None:
    slow = sa.tool(compute.function, name="slow", run_on="main", timeout=0.01)
    result = agent_of(call("slow"), "done", tools=[slow]).run("go")
    assert results(result.state) == ["Timed out after 0.01 seconds."]
    assert result.text == "done"


def test_who_waits_for_a_run_that_is_stopped_is_interrupted_as_by_ctrl_c() -> None:
    session = session_of(call("compute"), "done", tools=[compute])
    running = session.send("go")
    thread = when_begun(session, running.stop)
    with pytest.raises(KeyboardInterrupt):
        running.result()
    thread.join(PATIENCE)
    assert running.result().status == "cancelled"  # and is told what there is, if it asks again
    assert session.send("go on").result().text == "done"


def test_who_waits_for_another_run_goes_on_waiting() -> None:
    goes_on = threading.Event()

    @sa.tool
    def wait() -> None:
        goes_on.wait(PATIENCE)

    waited_for = session_of(call("wait"), "done", tools=[wait])
    busy = session_of(call("compute"), "done", tools=[compute])

    def stop() -> None:
        stopped.stop()
        until(lambda: stopped.done)
        goes_on.set()

    thread = when_begun(busy, stop)
    stopped = busy.send("go")
    assert waited_for.send("go").result().text == "done"
    thread.join(PATIENCE)
    assert stopped.result().status == "cancelled"


def test_a_run_that_waits_for_another_takes_that_along() -> None:
    inner = session_of(call("compute"), "done", tools=[compute])

    @sa.tool(run_on="main")
    def outer() -> str:
        return inner.send("go").result().status

    session = session_of(call("outer"), "done", tools=[outer])
    thread = when_begun(inner, session.cancel)
    assert session.send("go").result().status == "cancelled"
    thread.join(PATIENCE)
    until(lambda: inner.status == "cancelled")


def test_an_interrupt_that_comes_too_late_reaches_nobody() -> None:
    thread, over = MainThread(), Future[None]()
    current: list[Work[Any]] = []

    def interrupt() -> None:
        while not over.done():
            if current:
                thread.interrupt(current[-1])
            time.sleep(0)  # else nobody else comes to the lock

    def work() -> None:
        for _ in range(300):
            future = thread.submit(sum, range(2000))
            current.append(future)
            with contextlib.suppress(KeyboardInterrupt):
                future.result(PATIENCE)
        over.set_result(None)

    threads = [threading.Thread(target=target) for target in (work, interrupt)]
    for each in threads:
        each.start()
    thread.wait(over, PATIENCE)  # nothing is raised here
    for each in threads:
        each.join(PATIENCE)
