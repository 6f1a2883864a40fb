from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import StoreError
from sagents_nb.events import AgentEnd, Compaction, MessageEnd, ToolExecutionEnd, TurnEnd
from sagents_nb.middleware import HumanInTheLoop, Summarization, TodoList
from sagents_nb.runtime.thread import runtime
from tests.recorders import Book, loop_of, recorded
from tests.talking import PATIENCE, agent_of, call, of, results, roles, run, unanswered

GO = [sa.Message.user("go")]


class Looks(sa.Middleware):
    """It looks at each call, so nothing begins with the message."""

    def before_tool(self, call: sa.ToolCall, ctx: Any) -> None:
        pass


def after(order: list[str], first: str, second: str) -> bool:
    return first in order and second in order and order.index(first) < order.index(second)


CANCELLED = "Cancelled: the run was cancelled."


async def quick() -> str:
    return "quick"


def test_a_message_is_told_once_it_is_kept_and_a_tool_runs_once_its_start_is() -> None:
    book = Book()

    async def work() -> str:
        book.happened.append("body")
        return "done"

    outcome = recorded(agent_of(call("work"), "ok", tools=[work]), book, GO)
    assert (outcome.status, outcome.messages[-1].text) == ("completed", "ok")
    without = ("turn_start", "turn_end", "message_update", "message_start", "token_usage")
    assert [line for line in book.order if line not in without] == [
        "agent_start",
        "keep",
        "message_end",  # of the user
        "keep and starting c1",
        "message_end",  # of the model
        "tool_execution_start",
        "body",
        "finished c1",
        "tool_execution_end",
        "keep",
        "message_end",  # of the tool
        "keep",
        "message_end",
        "agent_end",
    ]
    assert book.safe == outcome.state


def test_whatever_is_told_is_in_what_was_kept_last() -> None:
    """At each event that tells a part of the conversation, the kept state already has it."""
    book = Book()
    wrong: list[str] = []

    def listen(event: Any) -> None:
        book.happened.append(event.type)
        if isinstance(event, MessageEnd) and event.message not in list(book.safe.messages):
            wrong.append(event.message.role)
        if event.type == "todos_updated" and list(event.todos) != list(book.safe.todos):
            wrong.append("todos")
        if event.type == "interrupt" and book.safe.interrupt != event.interrupt:
            wrong.append("interrupt")
        if isinstance(event, AgentEnd) and loop.state != book.safe:
            wrong.append("end")

    def guarded() -> str:
        return "never"

    todos = call(
        "write_todos", merge=False, todos=[{"id": "1", "content": "a", "status": "pending"}]
    )
    agent = agent_of(
        [todos, call("quick", "c2")],
        call("guarded", "c3"),
        tools=[quick, guarded],
        middleware=[TodoList()],
        interrupt_on={"guarded": True},
    )
    book.sink = listen  # type: ignore[method-assign]
    loop = loop_of(agent, book)
    outcome = runtime.submit(loop.run(GO)).result(PATIENCE)
    assert outcome.status == "interrupted"
    assert {"todos_updated", "interrupt", "agent_end"} <= set(book.happened)
    assert not wrong


def test_a_question_and_its_placeholder_are_kept_in_one_commit() -> None:
    def ask() -> sa.Interrupt:
        return sa.Interrupt("tool", message="Which one?")

    book = Book()
    seen: list[bool] = []
    keep = book.keep

    def watching(state: sa.State, **hints: bool) -> Future[None]:
        if any(r.is_interrupt for m in state.messages for r in m.tool_results):
            seen.append(state.interrupt is not None)
        return keep(state, **hints)

    book.keep = watching  # type: ignore[method-assign]
    assert recorded(agent_of(call("ask"), tools=[ask]), book, GO).status == "interrupted"
    assert seen
    assert all(seen)
    assert "finished c1" not in book.happened, "its result alone does not say what it asks"


def test_a_result_that_changes_the_state_is_kept_with_the_tool_message_only() -> None:
    def note() -> sa.ToolOutput:
        return sa.ToolOutput("noted", update={"metadata": {"note": 1}})

    book = Book()
    outcome = recorded(agent_of(call("note"), "ok", tools=[note]), book, GO)
    assert "finished c1" not in book.happened
    assert book.safe.metadata == outcome.state.metadata == {"note": 1}


def test_a_compaction_is_told_once_the_shorter_history_is_kept() -> None:
    book = Book()
    kept: list[int] = []

    def listen(event: Any) -> None:
        if isinstance(event, Compaction) and event.status == "completed":
            kept.append(len(book.safe.messages))

    book.sink = listen  # type: ignore[method-assign]
    history = [m for i in range(9) for m in (sa.Message.user(f"{i}"), sa.Message.assistant("ok"))]
    short = Summarization(10, keep=2, model=sa.ScriptedModel(["short"]))
    agent = agent_of("fine", middleware=[short])
    outcome = recorded(agent, book, GO, sa.State(messages=history))
    assert outcome.status == "completed"
    assert kept
    assert kept[0] < len(history)


def test_only_calls_that_run_are_said_to_start() -> None:
    def typed(n: int) -> str:
        return str(n)

    book = Book()
    bad = [call("typed", "c1", n="x"), call("nothing", "c2"), call("typed", "c3", n=1)]
    recorded(agent_of(bad, "ok", tools=[typed]), book, GO)
    assert [line for line in book.order if "starting" in line] == ["keep and starting c3"]
    assert list(book.results) == ["c3"]


def starts(book: Book) -> list[str]:
    """The commits that say that calls begin."""
    return [line for line in book.order if "starting" in line]


async def work(n: int) -> str:
    return f"did {n}"


WORK = [call("work", f"c{n}", n=n) for n in (1, 2, 3)]


def test_as_many_calls_as_run_at_once_begin_with_their_message() -> None:
    def begun(calls: Any = WORK, **options: Any) -> list[str]:
        book = Book()
        agent = agent_of(calls, "ok", **{"tools": [work], **options})
        assert recorded(agent, book, GO).status == "completed"
        return starts(book)

    together = "keep and starting c1 and starting c2 and starting c3"
    assert begun() == [together]
    assert begun(max_parallel_tools=2) == ["keep and starting c1 and starting c2", "starting c3"]
    one_by_one = ["keep and starting c1", "starting c2", "starting c3"]
    assert begun(max_parallel_tools=1) == one_by_one
    for_itself = [sa.Tool(work, name="work", sequential=True)]
    assert begun(tools=for_itself) == one_by_one
    assert begun(WORK[:2], tools=for_itself) == one_by_one[:2]
    assert begun(WORK[:1], tools=for_itself) == one_by_one[:1]
    assert begun(tools=[work, quick], interrupt_on={"quick": True}) == [together]
    assert begun(budget=sa.Budget(tool_calls=3)) == [together]


class LooksAfter(sa.Middleware):
    def after_model(self, state: sa.State, ctx: Any) -> None:
        pass


class Gates(HumanInTheLoop):
    def before_tool(self, call: sa.ToolCall, ctx: Any) -> sa.Interrupt | None:
        return super().before_tool(call, ctx)


APART = ["starting c1", "starting c2", "starting c3"]


@pytest.mark.parametrize(
    ("options", "config", "expected"),
    [
        ({"middleware": [Looks()]}, {}, APART),
        ({"middleware": [LooksAfter()]}, {}, APART),
        ({"middleware": [Gates({"other": True})]}, {}, APART),
        ({"interrupt_on": {"work": True}}, {}, []),
        ({"budget": sa.Budget(tool_calls=2)}, {}, APART[:2]),
        ({"max_runs": 1}, {}, []),
        ({}, {"should_pause": lambda: True}, []),
        ({}, {"skip_rest": lambda: True}, []),
    ],
)
def test_where_something_may_come_between_no_call_begins_with_its_message(
    options: dict[str, Any], config: dict[str, Any], expected: list[str]
) -> None:
    book = Book()
    outcome = recorded(agent_of(WORK, "ok", tools=[work], **options), book, GO, **config)
    assert starts(book) == expected
    ran = [result for result in results(outcome.state) if result.startswith("did")]
    assert len(ran) == len(expected)


def test_what_skips_the_rest_is_asked_before_a_call_begins_and_never_after() -> None:
    book = Book()
    answers = iter([False, True, True])
    outcome = recorded(
        agent_of(WORK, "ok", tools=[work], max_parallel_tools=1),
        book, GO, skip_rest=lambda: next(answers),
    )  # fmt: skip
    assert starts(book) == ["keep and starting c1"]
    skipped = "Skipped: a message came from the user instead."
    assert results(outcome.state) == ["did 1", skipped, skipped]


@pytest.mark.parametrize("looks", [False, True])
def test_whether_to_pause_is_asked_once_for_each_answer(looks: bool) -> None:
    asked: list[str] = []
    agent = agent_of(WORK, "ok", tools=[work], middleware=[Looks()] if looks else [])
    recorded(agent, Book(), GO, should_pause=lambda: bool(asked.append("pause?")))
    assert len(asked) == 2


def test_a_budget_that_ends_while_calls_begin_answers_them_and_runs_none() -> None:
    class Slow(Book):
        def keep(self, state: sa.State, **more: Any) -> Future[None]:
            safe = super().keep(state, **more)
            if more.get("begins"):
                safe.add_done_callback(lambda done: setattr(loop.ctx.meter, "tool_calls", 3))
            return safe

    book = Slow()
    agent = agent_of(WORK, "ok", tools=[work], budget=sa.Budget(tool_calls=3))
    loop = loop_of(agent, book)
    outcome = runtime.submit(loop.run(GO)).result(PATIENCE)
    assert isinstance(outcome.error, sa.BudgetExceeded)
    assert all(result.startswith("Not run: ") for result in results(outcome.state))
    assert list(book.results) == ["c1", "c2", "c3"], "each that began has its end"


def test_a_call_is_written_down_as_it_is_run() -> None:
    def typed(n: int) -> str:
        return str(n)

    started: list[Any] = []

    class Reader(Book):
        def starting(self, call: sa.ToolCall) -> None:
            started.append((call.arguments, call.name))

    agent = agent_of(call("typed", n=1), "ok", tools=[typed], interrupt_on={"typed": True})
    asked = recorded(agent, Reader(), GO)
    assert not started
    decisions = {"c1": sa.Edit({"n": 2})}
    recorded(agent, Reader(), (), asked.state, decisions)
    assert started == [({"n": 2}, "typed")]


@pytest.mark.parametrize(
    ("looks", "fails_at"), [*((False, n) for n in range(1, 7)), *((True, n) for n in range(1, 8))]
)
def test_when_it_cannot_be_written_nothing_runs_and_nothing_is_told(
    looks: bool, fails_at: int
) -> None:
    book = Book(fails_at)

    async def work() -> str:
        book.happened.append("body")
        return "done"

    script = [call("work"), call("work", "c2")], call("work", "c3"), "ok"
    agent = agent_of(*script, tools=[work], middleware=[Looks()] if looks else [])
    outcome = recorded(agent, book, GO)
    assert outcome.status == "error"
    assert isinstance(outcome.error, StoreError)
    assert "the disk is full" in str(outcome.error)
    started = sum(line.count("starting") for line in book.order if not line.startswith("no "))
    assert book.happened.count("body") == started
    told = [event.message for event in of(MessageEnd, book.events)]
    assert told == list(book.safe.messages)
    (end,) = of(AgentEnd, book.events)
    assert list(end.messages) == outcome.messages == told
    assert end.status == "error"
    at_once = 2 if looks and fails_at == 3 else 1  # both calls of the first turn start together
    assert book.calls == fails_at + at_once - 1, "it is not asked again in this run"
    assert len(of(TurnEnd, book.events)) == book.happened.count("turn_start")
    assert not unanswered(outcome.state.messages), "and what there is can go on"


def test_what_could_not_be_written_is_in_the_state_that_comes_next() -> None:
    book = Book(fails_at=4)
    agent = agent_of(call("quick"), "ok", "again", tools=[quick])
    failed = recorded(agent, book, GO)
    assert failed.status == "error"
    better = Book()
    outcome = recorded(agent, better, [sa.Message.user("again?")], failed.state)
    assert outcome.status == "completed"
    assert better.safe.messages[: len(failed.state.messages)] == failed.state.messages[:]


def test_the_error_of_a_recorder_that_knows_better_stays_what_it_is() -> None:
    stale = sa.NotRunning("Somebody else has it.")
    outcome = recorded(agent_of("hi"), Book(1, stale), GO)
    assert outcome.error is stale


def test_the_first_error_of_writing_results_down_is_that_of_the_run() -> None:
    class Torn(Book):
        def finished(self, call: sa.ToolCall, result: sa.ToolResult) -> None:
            raise OSError(f"no room for {call.id}")

    async def work(n: int) -> str:
        return f"did {n}"

    calls = [call("work", f"c{n}", n=n) for n in (1, 2)]
    outcome = recorded(agent_of(calls, tools=[work], max_parallel_tools=1), Torn(), GO)
    assert "no room for c1" in str(outcome.error)


def test_one_call_that_cannot_be_written_leaves_the_others_their_results() -> None:
    book = Book(fails_at=3)  # the question, the answer with the first call

    async def work(n: int) -> str:
        return f"did {n}"

    calls = [call("work", f"c{n}", n=n) for n in (1, 2, 3)]
    outcome = recorded(agent_of(calls, tools=[work], max_parallel_tools=1), book, GO)
    first, second, third = results(outcome.state)
    assert first == "did 1"
    assert second.startswith("Not run: The journal could not be written")
    assert third.startswith("Not run")
    assert "finished c1" in book.happened


class LooksAtTheEnd(sa.Middleware):
    def after_run(self, state: sa.State, ctx: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("options", "config", "ended_at"),
    [
        ({}, {}, [4]),
        ({"middleware": [LooksAtTheEnd()]}, {}, []),
        ({"middleware": [LooksAfter()]}, {}, []),
        ({"until_tool": "work"}, {}, []),
        ({"budget": sa.Budget(cost_usd=1)}, {}, []),
    ],
)
def test_a_run_ends_with_its_last_answer_where_nothing_else_may_come(
    options: dict[str, Any], config: dict[str, Any], ended_at: list[int]
) -> None:
    book = Book()
    recorded(agent_of(WORK, "ok", tools=[work], **options), book, GO, **config)
    assert book.ended_at == ended_at


def test_a_run_that_was_let_go_keeps_nothing_more() -> None:
    book = Book()

    async def work() -> str:
        loop.commits.stop()  # as a session does that goes on without it
        return "done"

    loop = loop_of(agent_of(call("work"), "never", tools=[work]), book)
    outcome = runtime.submit(loop.run(GO)).result(PATIENCE)
    assert isinstance(outcome.error, sa.NotRunning)
    assert len(book.safe.messages) == 2, "the question and the wish to run it"
    assert "finished c1" not in book.happened


def test_a_message_instead_of_an_answer_says_so_in_place_of_the_question() -> None:
    def ask() -> sa.Interrupt:
        return sa.Interrupt("tool", message="Which one?")

    agent = agent_of(call("ask"), "so be it", tools=[ask])
    asked = recorded(agent, Book(), GO).state
    assert asked.interrupt is not None
    book = Book()
    outcome = recorded(agent, book, [sa.Message.user("never mind")], asked)
    assert (outcome.status, outcome.state.interrupt) == ("completed", None)
    assert results(asked) == ["Which one?"]
    assert results(outcome.state) == results(asked.clean_stale_interrupts())
    assert "lost" in results(outcome.state)[0]
    assert book.safe == outcome.state


def test_a_hook_is_not_told_as_done_when_the_state_it_left_could_not_be_kept() -> None:
    history = [m for i in range(9) for m in (sa.Message.user(f"{i}"), sa.Message.assistant("ok"))]
    short = Summarization(10, keep=2, model=sa.ScriptedModel(["short"]))
    book = Book(fails_at=2)
    outcome = recorded(agent_of(middleware=[short]), book, GO, sa.State(messages=history))
    assert outcome.status == "error"
    assert [e.status for e in of(Compaction, book.events)] == ["started"]


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("looks", "commit"), [*((False, n) for n in (1, 2, 3)), *((True, n) for n in (1, 2, 3, 4))]
)
def test_a_cancelled_run_finishes_the_commit_that_is_under_way(looks: bool, commit: int) -> None:
    """The question, the answer with the start of the tool or without, its result."""
    bodies: list[str] = []

    async def work() -> str:
        bodies.append("ran")
        return "done"

    book = Book()

    async def cancel_meanwhile() -> Any:
        gate = asyncio.Event()
        middleware = [Looks()] if looks else []
        agent = agent_of(call("work"), "never", tools=[work], middleware=middleware)
        loop = loop_of(agent, book)
        task = asyncio.ensure_future(loop.run(GO))
        while book.calls < commit:
            book.gate = gate if book.calls == commit - 1 else None
            await asyncio.sleep(0)
        await until(lambda: book.waits)
        loop.ctx.cancelled.set()
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done(), "it waits for the commit"
        task.cancel()  # also for somebody impatient
        await asyncio.sleep(0.01)
        assert not task.done()
        book.gate = None
        gate.set()
        return await task

    outcome = runtime.submit(cancel_meanwhile()).result(PATIENCE)
    assert outcome.status == "cancelled"
    assert [event.message for event in of(MessageEnd, book.events)] == outcome.messages
    assert book.safe == outcome.state
    last = commit == (4 if looks else 3)
    assert bodies == (["ran"] if last else [])
    assert not unanswered(outcome.state.messages)
    if commit > 2:
        assert results(outcome.state) == ["done" if last else CANCELLED]


def test_a_tool_that_is_cancelled_has_a_result_and_one_that_is_left_to_itself_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sagents_nb.loop.tool_calls.GRACE", 0.02)
    book = Book()

    async def soft() -> None:
        await asyncio.sleep(3600)

    async def cancel() -> Any:
        free = asyncio.Event()

        async def stubborn() -> None:
            book.happened.append("body")
            while not free.is_set():
                try:
                    await free.wait()
                except asyncio.CancelledError:
                    continue

        agent = agent_of([call("soft"), call("stubborn", "c2")], tools=[soft, stubborn])
        loop = loop_of(agent, book)
        task = asyncio.ensure_future(loop.run(GO))
        await until(lambda: "body" in book.happened)
        loop.ctx.cancelled.set()
        task.cancel()
        outcome = await task
        free.set()
        await asyncio.sleep(0.01)  # what comes from it now is too late
        return outcome

    outcome = runtime.submit(cancel()).result(PATIENCE)
    assert outcome.status == "cancelled"
    assert list(book.results) == ["c1"]
    assert [e.status for e in of(ToolExecutionEnd, book.events)] == ["cancelled", "cancelled"]


def test_a_slow_commit_holds_up_its_own_run_only() -> None:
    async def both() -> list[str]:
        slow, fast = Book(), Book()
        slow.gate = asyncio.Event()
        first = asyncio.ensure_future(loop_of(agent_of("slow"), slow).run(GO))
        second = await loop_of(agent_of("fast"), fast).run(GO)
        assert not first.done()
        slow.gate.set()
        return [(await first).messages[-1].text, second.messages[-1].text]

    assert runtime.submit(both()).result(PATIENCE) == ["slow", "fast"]


def test_a_message_that_came_too_late_is_kept_in_the_end() -> None:
    book = Book()

    async def cancelled_at_once() -> Any:
        loop = loop_of(agent_of("never"), book)
        loop.ctx.cancelled.set()
        return await loop.run(GO)

    outcome = runtime.submit(cancelled_at_once()).result(PATIENCE)
    assert outcome.status == "cancelled"
    assert roles(book.safe.messages) == ["user"]
    assert after(book.order, "keep", "message_end")


def test_without_a_recorder_no_task_is_made_for_it() -> None:
    async def count() -> int:
        made: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.set_task_factory(
            lambda loop, coro, **more: made.append(coro) or asyncio.Task(coro, loop=loop, **more)
        )
        from sagents_nb.events import Emitter

        plain = agent_of("hi").new_run(sa.State(), Emitter(lambda event: None))
        await plain.run(GO)
        return len(made)

    assert run(count()) == 0


@pytest.mark.parametrize("fails_at", range(1, 7))
def test_what_comes_after_a_failed_commit_is_left_to_whoever_knows_what_becomes_of_it(
    fails_at: int,
) -> None:
    book = Book(fails_at=fails_at)
    early: list[sa.Message] = []

    def transcribe(message: sa.Message) -> None:
        assert not any(line.startswith("no ") for line in book.happened)
        early.append(message)

    agent = agent_of(call("quick"), "ok", tools=[quick], middleware=[Looks()])
    loop = loop_of(agent, book, transcribe=transcribe)
    outcome = runtime.submit(loop.run(GO)).result(PATIENCE)
    assert outcome.status == ("error" if book.calls >= fails_at else "completed")
    assert [*early, *loop.commits.left] == list(outcome.state.messages)
