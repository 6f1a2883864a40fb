"""One run for each row of a series, a frame or an iterable: ``agent.map`` and ``agent.amap``."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from .. import kinds
from ..budget import Budget, SharedBudget, meter_of
from ..errors import BudgetExceeded, ConfigurationError
from ..extract import Asking
from ..messages import Usage
from ..models.base import tells_cost
from ..runtime.futures import RunHandle, refuse_stopped
from ..runtime.main_thread import main_thread
from ..runtime.thread import runtime
from ..runtime.workers import workers
from ..text import logger_of
from .journal import BatchJournal, journal_at
from .rows import Answer, Row, answer_to, keyed, not_asked, prompts_of, with_attempt
from .table import tabled

if TYPE_CHECKING:
    import pandas

    from ..agent import Agent

# How often the bar is drawn, and how soon a kernel whose cell awaits notices its Stop button.
_TICK = 0.1
_PATIENCE = 0.8  # seconds that a stopped map waits for its rows to end

# What the last map that was stopped had finished, if nothing else keeps it.
stopped_answers: dict[str, Answer] = {}

logger = logger_of(__name__)


class Progress:
    """How many rows are done, and what they have cost so far. Used by whoever waits."""

    def __init__(self, total: int, done: int, shown: bool) -> None:
        self._bar: Any = None
        if not shown or not total:
            return
        try:
            tqdm = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            return
        self._bar = tqdm(total=total, initial=done, unit="row")

    def show(self, done: int, failed: int, usage: Usage) -> None:
        """Draw it anew if something changed."""
        if self._bar is None or self._bar.n == done:
            return
        cost = f"{usage.total_tokens:,} tokens"
        if usage.cost_usd is not None:
            cost = f"${usage.cost_usd:,.4f}"
        failures = f", {failed} failed" if failed else ""
        self._bar.set_postfix_str(f"{cost}{failures}", refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Leave it as it is."""
        if self._bar is not None:
            self._bar.close()


class MapRun:
    """The rows of one map, on their way; all but :meth:`cancel` belongs to the runtime loop."""

    def __init__(
        self,
        agent: Agent,
        inputs: Any,
        prompt: str | Callable[[Any], Any] | None,
        output: Any,
        cache: Any,
        budget: Budget | None,
        concurrency: int,
        engine: Engine | None,
    ) -> None:
        refuse_stopped()
        self._engine = engine or LocalEngine(concurrency)
        prompts, self.index = prompts_of(inputs, prompt)
        output = agent.output_type if output is None else output
        self.asker = agent if output is None else Asking(agent, output, agent.max_runs)
        self.rows = keyed(self.asker, (() if isinstance(p, str) else p for p in prompts))
        self.journal: BatchJournal | None = None if cache is None else journal_at(cache)
        self.answers: dict[str, Answer] = {}
        self._failed_before: dict[str, Answer] = {}  # which are asked anew, and have cost something
        earlier = stopped_answers if self.journal is None else self.journal.read()
        for row, messages in zip(self.rows, prompts, strict=True):
            if isinstance(messages, str):  # why there are none
                self.answers[row.key] = not_asked(row, "failed", messages)
            elif (answer := earlier.get(row.key)) is None:
                continue
            elif answer.status == "completed":
                self.answers[row.key] = answer
            else:
                self._failed_before[row.key] = answer
        self.earlier = self.answers.keys() & earlier.keys()
        self.failed = len(self.answers) - len(self.earlier)
        self._taken = set(self.answers)  # more than the answers, which are those that are safe
        if budget is not None and not isinstance(budget, Budget):
            raise ConfigurationError(f"budget is a Budget(…); not {type(budget).__name__}.")
        self.meter = meter_of(budget)
        # Of a pot that the agent's own runs draw on the rows have taken already.
        self._is_drawn_on = isinstance(budget, SharedBudget) and agent.budget is budget
        self._tells_cost = tells_cost(agent.model)
        self._spent: BudgetExceeded | None = None
        self._task: asyncio.Task[Any] | None = None
        self._ended = threading.Event()

    def start(self) -> concurrent.futures.Future[None]:
        """Begin, on the runtime thread."""
        return runtime.submit(self._run())

    async def _run(self) -> None:
        if self._ended.is_set():  # it was stopped before it had begun
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        self.meter.begin()
        try:
            async with aclosing(self._engine.run(self._unanswered(), self._work)) as answers:
                async for answer in answers:
                    self._take(answer)
        finally:
            if self.journal is not None:
                await self.journal.close()
            self._ended.set()

    def _unanswered(self) -> Iterator[Row]:
        """The rows that have no answer yet, as long as the budget lasts."""
        for row in self.rows:
            if row.key in self._taken:
                continue
            try:
                self.meter.check(self._tells_cost)
            except BudgetExceeded as error:
                self._spent = error
                return
            yield row

    async def _work(self, row: Row) -> Answer:
        answer = await answer_to(row, self.asker)
        safe = self._take(answer)  # at once: the map may be stopped before its engine hands it on
        if safe is not None:  # before the next row: a crash costs no more than ran at once
            await safe
        return answer

    def _take(self, answer: Answer) -> asyncio.Future[None] | None:
        """Count an answer that is new; what is done once it is safe, if it is not yet."""
        if answer.key in self._taken:
            return None
        self._taken.add(answer.key)
        if self._is_drawn_on:
            self.meter.usage += answer.usage
        elif answer.status == "completed" or answer.usage.total_tokens:
            self.meter.add(answer.usage)
        if not self._is_drawn_on:
            self.meter.add_calls(answer.model_calls, answer.tool_calls)
        if (before := self._failed_before.get(answer.key)) is not None:
            answer = with_attempt(answer, before)
        is_kept = answer.status == "completed" or answer.model_calls > 0
        if self.journal is None or not is_kept:
            self._acknowledge(answer)
            return None
        return self.journal.keep(answer, self._acknowledge)

    def _acknowledge(self, answer: Answer) -> None:
        self.answers[answer.key] = answer
        self.failed += answer.status != "completed"

    def cancel(self) -> None:
        """Stop the rows that run; from any thread."""

        def stop() -> None:
            if self._task is None:
                self._ended.set()
            else:
                self._task.cancel()

        runtime.post(stop)

    def end(self) -> None:
        """Stop the rows that run, and wait a little for them; not on the runtime thread."""
        self.cancel()
        self._ended.wait(_PATIENCE)

    def show(self, bar: Progress) -> None:
        """Tell the bar how far it is."""
        bar.show(len(self.answers), self.failed, self.meter.usage)

    def note(self, error: BaseException) -> None:
        """Say in the error what is kept of the rows, and see that it is."""
        done = sum(a.status == "completed" for a in self.answers.values())
        if self.journal is None:
            stopped_answers.clear()
            stopped_answers.update(self._failed_before)
            stopped_answers.update((k, a) for k, a in self.answers.items() if a.model_calls)
        where = " in this process" if self.journal is None else ""
        note = (
            f"{done} of {len(self.rows)} rows are done and kept{where}: "
            "run it again, and only the others run."
        )
        error.add_note(note)
        if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
            # Which IPython asks for: a page of how we wait tells nobody who stopped it anything.
            vars(error)["_render_traceback_"] = partial(list, [f"{type(error).__name__}: {note}"])

    def frame(self) -> pandas.DataFrame:
        """The answers, once all are there."""
        if self.journal is None:
            for key in (*self.earlier, *self._failed_before):
                stopped_answers.pop(key, None)
        try:
            self.meter.check_cost()
        except BudgetExceeded as error:  # all rows had begun before the first told no price
            logger.warning("The budget of the map was not kept: %s", error)
        why = self._spent or "The engine gave no answer to this row."
        answers = [self.answers.get(r.key) or self._not_run(r, why) for r in self.rows]
        output = self.asker.output if isinstance(self.asker, Asking) else None
        return tabled(self.rows, answers, output, self.index, self.earlier)

    def _not_run(self, row: Row, why: Exception | str) -> Answer:
        answer, before = not_asked(row, "not_run", why), self._failed_before.get(row.key)
        return answer if before is None else with_attempt(answer, before)


class _Rows(RunHandle):
    """A map as what waits for it in a tool of a run: whoever stops that run stops it."""

    def __init__(self, run: MapRun) -> None:
        super().__init__()
        self._run = run

    def cancel(self) -> None:
        """Stop it; from any thread."""
        self._run.cancel()


@kinds.checked
def map_rows(agent: Agent, progress: bool, **options: Any) -> pandas.DataFrame:
    """See :meth:`Agent.map <sagents_nb.agent.Agent.map>`; whoever interrupts it stops it."""
    runtime.refuse_here("agent.map", "use 'await agent.amap(…)' there")
    run = MapRun(agent, **options)
    bar = Progress(len(run.rows), len(run.answers), progress)
    try:
        future = run.start()
        with _Rows(run).waited():
            while True:
                try:
                    main_thread.wait(future, _TICK)
                    break
                except TimeoutError:
                    if future.done():
                        raise
                    run.show(bar)
        run.show(bar)
    except BaseException as error:
        run.end()
        run.note(error)
        raise
    finally:
        bar.close()
    return run.frame()


@kinds.checked
async def amap_rows(agent: Agent, progress: bool, **options: Any) -> pandas.DataFrame:
    """See :meth:`Agent.amap <sagents_nb.agent.Agent.amap>`; whoever cancels it stops it."""
    run = MapRun(agent, **options)
    bar = Progress(len(run.rows), len(run.answers), progress)
    future = asyncio.wrap_future(run.start())
    try:
        with _Rows(run).waited():
            while not (await asyncio.wait([future], timeout=_TICK))[0]:
                run.show(bar)
        future.result()
        run.show(bar)
    except BaseException as error:
        await workers.run(run.end)
        if future.done() and not future.cancelled():
            future.exception()  # which has been heard
        run.note(error)
        raise
    finally:
        bar.close()
    return run.frame()


# who runs the rows: here, several at a time; or, by the same two lines, other machines

Work = Callable[[Row], Awaitable[Answer]]


class Engine(Protocol):
    """What ``agent.map(…, engine=…)`` takes.

    :meth:`run` takes the next row from ``rows`` whenever it has room for one, and yields the
    answers as they come, in any order. Taking rows late lets a budget end the map in time. It
    is called on the runtime loop and closed when the map is stopped; then it stops its rows.

    ``work(row)`` runs a row in this process. An engine with other machines leaves ``work`` alone,
    sends them the rows, which are plain data, and lets them call
    :func:`~sagents_nb.batch.run_row` with an agent that was made there.
    """

    def run(self, rows: Iterator[Row], work: Work) -> AsyncGenerator[Answer, None]:
        """Yield the answer to each row; an ``async def`` with ``yield``."""
        ...


class LocalEngine:
    """At most ``concurrency`` rows at a time, in this process."""

    def __init__(self, concurrency: int) -> None:
        if not isinstance(concurrency, int) or concurrency < 1:
            raise ConfigurationError(
                f"concurrency must be a whole number from 1, not {concurrency!r}."
            )
        self.concurrency = concurrency

    async def run(self, rows: Iterator[Row], work: Work) -> AsyncGenerator[Answer, None]:
        """Yield the answers as they come."""
        came: deque[Answer | asyncio.Task[None]] = deque()
        news = asyncio.Event()  # for all that came meanwhile; a queue would be asked for each
        workers: list[asyncio.Task[None]] = []

        def tell(item: Answer | asyncio.Task[None]) -> None:
            came.append(item)
            news.set()

        async def worker() -> None:
            for row in rows:
                if len(workers) < self.concurrency:  # no more of them than there are rows
                    start()
                tell(await work(row))

        def start() -> None:
            workers.append(asyncio.ensure_future(worker()))
            workers[-1].add_done_callback(tell)

        start()
        ended = 0
        try:
            while ended < len(workers):
                await news.wait()
                news.clear()
                while came:
                    item = came.popleft()
                    if isinstance(item, asyncio.Task):
                        item.result()  # raises what ends the whole map
                        ended += 1
                    else:
                        yield item
        finally:
            for task in workers:
                task.cancel()
            await asyncio.wait(workers)
            for task in workers:
                _ = task.cancelled() or task.exception()  # has been heard, or came too late
