"""The ways to run an agent: at once, awaited, streamed, resumed, for a value, for each row."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .budget import Budget
from .errors import ConfigurationError, InvalidDecision
from .events import Emitter, Event
from .interrupts import Decisions
from .loop.execution import Execution, Prompt, new_run_id, starting_point
from .result import RunResult
from .runtime.event_stream import EventStream
from .state import State

if TYPE_CHECKING:
    import pandas

    from .agent import Agent
    from .batch import Engine

T = TypeVar("T")

# What may be given for one run only; remembered when it is resumed.
_OVERRIDES = ("max_runs", "until_tool", "until_tool_success", "budget")


class Runnable:
    """The part of an agent that runs it."""

    def run(self, prompt: Prompt, state: State | None = None, **overrides: Any) -> RunResult:
        """Run to the end and return the result; from any thread, also in a notebook cell.

        ``overrides`` are ``max_runs``, ``until_tool``, ``until_tool_success`` and ``budget``
        for this run and its resumption, and ``should_pause``, a function that is asked after
        each model call whether to stop there. Raises :class:`~sagents_nb.errors.AgentError`
        subclasses, with the result so far in ``.result``; an interrupt is a result.
        """
        return self._start(prompt, state, overrides).result()

    async def arun(self, prompt: Prompt, state: State | None = None, **overrides: Any) -> RunResult:
        """:meth:`run`, to await on any loop. Cancelling the await cancels the run."""
        return await self._start(prompt, state, overrides)

    async def stream(
        self, prompt: Prompt, state: State | None = None, **overrides: Any
    ) -> AsyncIterator[Event]:
        """The events of a run as they happen; leaving the loop early cancels the run."""
        events = EventStream()
        execution = self._start(prompt, state, overrides, events.push)
        execution.future.add_done_callback(lambda _: events.close())
        try:
            async for event in events:
                yield event
        finally:
            execution.cancel()
        await execution

    def resume(self, result: RunResult, decisions: Decisions) -> RunResult:
        """Go on after an interrupt; raises InvalidDecision, and then nothing has changed."""
        return self._resume(result, decisions).result()

    async def aresume(self, result: RunResult, decisions: Decisions) -> RunResult:
        """:meth:`resume`, to await on any loop."""
        return await self._resume(result, decisions)

    def extract(self, prompt: Prompt, type: type[T], max_runs: int = 5) -> T:
        """The answer as a value of ``type``, in at most ``max_runs`` model calls.

        ``type`` is a dataclass, TypedDict, msgspec.Struct or pydantic model, or any type of
        plain data such as ``list[str]`` or ``Literal["yes", "no"]``. An answer that does not
        fit goes back to the model with what is wrong. The agent's tools can be used on the way.
        Raises :class:`~sagents_nb.errors.AgentError`, with ``.result``, if there is none.

        >>> from sagents_nb import Agent, ScriptedModel, ToolCall
        >>> model = ScriptedModel([ToolCall("c1", "submit", {"value": ["Oslo", "Bergen"]})])
        >>> Agent(model).extract("Which cities are named?", list[str])
        ['Oslo', 'Bergen']
        """
        from .extract import extract

        return extract(self._agent, prompt, type, max_runs)

    async def aextract(self, prompt: Prompt, type: type[T], max_runs: int = 5) -> T:
        """:meth:`extract`, to await on any loop."""
        from .extract import aextract

        return await aextract(self._agent, prompt, type, max_runs)

    def map(
        self,
        inputs: Any,
        prompt: str | None = None,
        output: Any = None,
        *,
        concurrency: int = 10,
        cache: Any = None,
        progress: bool = True,
        budget: Budget | None = None,
        engine: Engine | None = None,
    ) -> pandas.DataFrame:
        """One run for each row, several at a time; a frame with the index of ``inputs``.

        ``inputs`` is a Series or an iterable of prompts, or a DataFrame with a ``prompt`` such as
        ``"Translate to {language}: {text}"``. The columns are those of the kind "map" in
        :data:`sagents_nb.frames.COLUMNS`; with ``output``, a type as for :meth:`extract`, its
        fields are columns too (``output_text`` if there is a ``text`` already). An error is in
        its row, and the other rows go on.

        ``cache`` names a file, a directory or a ResponseCache that keeps finished rows: those
        are not run again, after a restart either. Without one, what a stopped map had finished
        is kept until the next map of this process. ``budget`` is for all rows that are run: once
        it is used up no row is begun, and those that run may end. ``engine`` runs the rows
        elsewhere; see :class:`sagents_nb.batch.Engine`. Raises ConfigurationError for wrong
        arguments and ModelError if no row can be answered, as without a key.

        >>> from sagents_nb import Agent, ScriptedModel
        >>> agent = Agent(ScriptedModel(["Hei"]))
        >>> agent.map(["Hello"], progress=False)[["text", "status"]]
          text     status
        0  Hei  completed
        """
        from .batch import map_rows

        return map_rows(
            self._agent,
            progress,
            inputs=inputs,
            prompt=prompt,
            output=output,
            concurrency=concurrency,
            cache=cache,
            budget=budget,
            engine=engine,
        )

    async def amap(
        self,
        inputs: Any,
        prompt: str | None = None,
        output: Any = None,
        *,
        concurrency: int = 10,
        cache: Any = None,
        progress: bool = True,
        budget: Budget | None = None,
        engine: Engine | None = None,
    ) -> pandas.DataFrame:
        """:meth:`map`, to await on any loop."""
        from .batch import amap_rows

        return await amap_rows(
            self._agent,
            progress,
            inputs=inputs,
            prompt=prompt,
            output=output,
            concurrency=concurrency,
            cache=cache,
            budget=budget,
            engine=engine,
        )

    def _start(
        self,
        prompt: Prompt,
        state: State | None,
        overrides: dict[str, Any],
        sink: Callable[[Event], None] | None = None,
    ) -> Execution:
        base, messages = starting_point(prompt, state)
        overrides = dict(overrides)
        should_pause = overrides.pop("should_pause", None)
        agent = self._overridden(overrides)
        emitter = Emitter(sink, session_id=agent.agent_id, run_id=new_run_id())
        loop = agent.loop(base, emitter, local={}, should_pause=should_pause)
        return Execution(loop, messages, None, overrides)

    def _resume(self, result: RunResult, given: Decisions) -> Execution:
        interrupt = result.interrupt
        if interrupt is None:
            raise InvalidDecision("This result waits for nothing; run again instead of resuming.")
        agent = self._overridden(result.overrides)
        decisions = agent.checked(interrupt, given)
        emitter = Emitter(session_id=agent.agent_id, run_id=new_run_id())
        loop = agent.loop(result.state, emitter, local=result.local, meter=result.meter)
        return Execution(loop, [], decisions, result.overrides)

    def _overridden(self, overrides: dict[str, Any]) -> Agent:
        given = {name: value for name, value in overrides.items() if value is not None}
        unknown = sorted(set(given) - set(_OVERRIDES))
        if unknown:
            raise ConfigurationError(
                f"A run has no option {', '.join(unknown)}; it takes {', '.join(_OVERRIDES)} and "
                "should_pause."
            )
        return self._agent.with_(**given) if given else self._agent

    @property
    def _agent(self) -> Agent:
        return cast("Agent", self)
