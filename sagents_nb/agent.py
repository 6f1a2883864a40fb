"""The agent: immutable configuration, and one-off runs of it."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from msgspec.structs import replace

from .calls import checked_decisions
from .context import RunContext
from .errors import AgentError, ConfigurationError, InvalidDecision
from .events import Emitter, Event
from .eventstream import EventStream
from .files import open_filesystem
from .interrupts import Decision, Decisions
from .loop import Loop, LoopConfig, Outcome
from .mainthread import main_thread
from .messages import Message, Part
from .middleware import FileSystem, HumanInTheLoop, Middleware, TodoList
from .middleware.base import Chain
from .models import ChatModel, default_model, resolve_model
from .result import RunResult
from .runtime import runtime
from .state import State
from .tools import Tool, as_tool

logger = logging.getLogger(__name__)

Prompt = str | Message | Part | Iterable[Message] | State


class Agent:
    """What an agent can do. Frozen and shareable; it holds no conversation.

    ``model`` is a spec such as "anthropic:claude-sonnet-4-5", a ChatModel, or None for the
    default model. ``interrupt_on`` names the tools that ask people first. ``max_runs`` bounds
    the model calls of one run. See the README for the whole list.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> Agent(ScriptedModel(["Hello!"])).run("hi").text
    'Hello!'
    """

    def __init__(
        self,
        model: str | ChatModel | None = None,
        system_prompt: str = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        middleware: Sequence[Middleware] = (),
        *,
        replace_default_middleware: bool = False,
        interrupt_on: Mapping[str, Any] | None = None,
        filesystem_scope: Any = None,
        tool_context: Mapping[str, Any] | None = None,
        max_runs: int = 50,
        until_tool: str | Iterable[str] | None = None,
        until_tool_success: str | Iterable[str] | None = None,
        name: str | None = None,
        agent_id: str | None = None,
        max_parallel_tools: int = 5,
        options: Mapping[str, Any] | None = None,
        todo_options: Mapping[str, Any] | None = None,
        filesystem_options: Mapping[str, Any] | None = None,
    ) -> None:
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        put = super().__setattr__
        put("_config", config)
        put("model", default_model() if model is None else resolve_model(model))
        put("name", name or "Agent")
        put("agent_id", agent_id or f"agent-{uuid.uuid4().hex[:12]}")
        put("filesystem_scope", filesystem_scope)
        put("tool_context", dict(tool_context or {}))
        put("options", dict(options or {}))
        if not isinstance(max_runs, int) or max_runs < 1:
            raise ConfigurationError(f"max_runs must be a whole number from 1, not {max_runs!r}.")
        put("max_runs", max_runs)
        put("max_parallel_tools", max_parallel_tools)

        stack: list[Middleware] = []
        if not replace_default_middleware:
            stack = [TodoList(**(todo_options or {})), FileSystem(**(filesystem_options or {}))]
        stack += middleware
        if interrupt_on:
            stack.append(HumanInTheLoop(interrupt_on))
        put("_chain", Chain(stack))
        put("middleware", self._chain.middleware)

        by_name: dict[str, Tool] = {}
        for tool in [*map(as_tool, tools), *self._chain.tools()]:
            if tool.name in by_name:
                raise ConfigurationError(
                    f"Two tools are called {tool.name!r}; rename one with @tool(name=…)."
                )
            by_name[tool.name] = tool
        put("_tools", by_name)
        self._check_names("interrupt_on", [n for n, v in (interrupt_on or {}).items() if v])
        put("until_tool", self._names("until_tool", until_tool))
        put("until_tool_success", self._names("until_tool_success", until_tool_success))
        if self.until_tool and self.until_tool_success:
            raise ConfigurationError(
                "until_tool and until_tool_success exclude each other; give one of them."
            )
        prompts = [system_prompt, *self._chain.prompts()]
        put("assembled_system_prompt", "\n\n".join(text for text in prompts if text))

    model: ChatModel
    name: str
    agent_id: str
    filesystem_scope: Any
    tool_context: dict[str, Any]
    options: dict[str, Any]
    max_runs: int
    max_parallel_tools: int
    middleware: tuple[Middleware, ...]
    until_tool: frozenset[str]
    until_tool_success: frozenset[str]
    assembled_system_prompt: str
    _config: dict[str, Any]
    _chain: Chain
    _tools: dict[str, Tool]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"An Agent cannot be changed; use agent.with_({name}=…) for a copy.")

    def __repr__(self) -> str:
        return f"<Agent {self.name!r}: {self.model!r}, {len(self._tools)} tools>"

    @property
    def tools(self) -> list[Tool]:
        """Its own tools, then those of its middleware."""
        return list(self._tools.values())

    def with_(self, **changes: Any) -> Agent:
        """A changed copy; takes the arguments of :class:`Agent`."""
        unknown = sorted(set(changes) - set(self._config))
        if unknown:
            raise ConfigurationError(f"An Agent has no {', '.join(unknown)}; see help(Agent).")
        return Agent(**{**self._config, "agent_id": self.agent_id, **changes})

    def _names(self, option: str, value: str | Iterable[str] | None) -> frozenset[str]:
        names = [value] if isinstance(value, str) else list(value or ())
        self._check_names(option, names)
        return frozenset(names)

    def _check_names(self, option: str, names: Iterable[str]) -> None:
        missing = [name for name in names if name not in self._tools]
        if missing:
            raise ConfigurationError(
                f"{option} names {', '.join(missing)}, but the tools are "
                f"{', '.join(self._tools) or 'none'}."
            )

    # running

    def run(self, prompt: Prompt, state: State | None = None, **overrides: Any) -> RunResult:
        """Run to the end and return the result; from any thread, also in a notebook cell.

        ``overrides`` are ``max_runs``, ``until_tool`` and ``until_tool_success`` for this run
        and its resumption. Raises :class:`~sagents_nb.errors.AgentError` subclasses, with the
        result so far in ``.result``; an interrupt is a result.
        """
        return self._start(prompt, state, overrides).wait()

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
        return self._resume(result, decisions).wait()

    async def aresume(self, result: RunResult, decisions: Decisions) -> RunResult:
        """:meth:`resume`, to await on any loop."""
        return await self._resume(result, decisions)

    def _start(
        self,
        prompt: Prompt,
        state: State | None,
        overrides: dict[str, Any],
        sink: Callable[[Event], None] = lambda event: None,
    ) -> Execution:
        base, messages = starting_point(prompt, state)
        agent = self._overridden(overrides)
        emitter = Emitter(sink, session_id=agent.agent_id, run_id=new_run_id())
        return Execution(agent.loop(base, emitter), messages, None, overrides)

    def _resume(self, result: RunResult, given: Decisions) -> Execution:
        interrupt = result.interrupt
        if interrupt is None:
            raise InvalidDecision("This result waits for nothing; run again instead of resuming.")
        agent = self._overridden(result.overrides)
        decisions = checked_decisions(interrupt, given, agent._tools)
        emitter = Emitter(lambda event: None, session_id=agent.agent_id, run_id=new_run_id())
        return Execution(agent.loop(result.state, emitter), [], decisions, result.overrides)

    def _overridden(self, overrides: dict[str, Any]) -> Agent:
        given = {name: value for name, value in overrides.items() if value is not None}
        unknown = sorted(set(given) - {"max_runs", "until_tool", "until_tool_success"})
        if unknown:
            raise ConfigurationError(
                f"A run has no option {', '.join(unknown)}; it takes max_runs, until_tool and "
                "until_tool_success."
            )
        return self.with_(**given) if given else self

    def loop(
        self,
        state: State,
        emitter: Emitter,
        *,
        files: Any = None,
        scope: Any = None,
        epoch: int = 0,
        steering: Callable[[], Sequence[Message]] | None = None,
        follow_ups: Callable[[], Sequence[Message]] | None = None,
    ) -> Loop:
        """The turn loop of one run of this agent, ready to be run on the runtime loop."""
        if files is None:
            files = open_filesystem(self.filesystem_scope or ("agent", self.agent_id))
        ctx = RunContext(
            emitter=emitter,
            agent_id=self.agent_id,
            scope=scope,
            values=self.tool_context,
            files=files,
            tools=self._tools,
        )
        observers = self._chain.hooks["on_event"]
        if observers:
            emitter.sink = observed(emitter.sink, [hook for _, hook in observers], ctx)
        config = LoopConfig(
            model=self.model,
            system=self.assembled_system_prompt,
            chain=self._chain,
            options=self.options,
            max_runs=self.max_runs,
            until_tool=self.until_tool or self.until_tool_success,
            until_success=bool(self.until_tool_success),
            max_parallel_tools=self.max_parallel_tools,
            epoch=epoch,
        )
        if steering is not None and follow_ups is not None:
            config = replace(config, steering=steering, follow_ups=follow_ups)
        return Loop(config, ctx, state)


def observed(
    sink: Callable[[Event], None], hooks: Sequence[Callable[..., Any]], ctx: RunContext
) -> Callable[[Event], None]:
    """``sink``, with every event shown to the ``on_event`` hooks as well."""

    def both(event: Event) -> None:
        sink(event)
        for hook in hooks:
            try:
                hook(event, ctx)
            except Exception:  # who only watches cannot end the run
                logger.exception("An on_event hook raised on %s", event.type)

    return both


def new_run_id() -> str:
    """A fresh run id, such as "run-3f0c9a1b22d4"."""
    return f"run-{uuid.uuid4().hex[:12]}"


def starting_point(prompt: Prompt, state: State | None) -> tuple[State, list[Message]]:
    """The state a run starts from and the messages it adds.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for anything that is no message.
    """
    if isinstance(prompt, State):
        return (state.merge(prompt) if state else prompt), []
    if isinstance(prompt, Message):
        messages = [prompt]
    elif isinstance(prompt, str | Part):
        messages = [Message.user(prompt)]
    elif not isinstance(prompt, Iterable):
        raise ConfigurationError(
            f"A prompt is text, a Message, a list of them or a State, not {type(prompt).__name__}."
        )
    else:
        messages = list(prompt)
        for message in messages:
            if not isinstance(message, Message):
                raise ConfigurationError(
                    f"A prompt is text, a Message, a list of them or a State; the list holds "
                    f"{type(message).__name__}."
                )
    return state or State(), messages


class Execution:
    """A loop that was handed to the runtime thread: wait for it, await it, cancel it."""

    def __init__(
        self,
        loop: Loop,
        messages: Sequence[Message],
        decisions: Mapping[str, Decision] | None,
        overrides: dict[str, Any],
    ) -> None:
        self.loop = loop
        self.overrides = overrides
        self._task: asyncio.Task[Any] | None = None
        self.future: Future[RunResult] = runtime.submit(self._run(messages, decisions))

    async def _run(
        self, messages: Sequence[Message], decisions: Mapping[str, Decision] | None
    ) -> RunResult:
        self._task = asyncio.current_task()
        began = time.perf_counter()
        outcome = await self.loop.run(messages, decisions)
        return finished(outcome, time.perf_counter() - began, self.overrides)

    def cancel(self) -> None:
        """Stop it; from any thread, and harmless once it has ended."""
        self.loop.ctx.cancelled.set()

        def stop() -> None:
            if self._task is not None:
                self._task.cancel()

        runtime.post(stop)

    def wait(self) -> RunResult:
        """The result, blocking. An interrupt of the kernel cancels the run."""
        runtime.refuse_here("A blocking run", "use 'await agent.arun(…)' there")
        try:
            return main_thread.wait(self.future)
        except KeyboardInterrupt:
            self.cancel()
            raise

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._wait().__await__()

    async def _wait(self) -> RunResult:
        try:
            return await asyncio.wrap_future(self.future)
        except asyncio.CancelledError:
            self.cancel()
            raise


def finished(outcome: Outcome, duration: float, overrides: dict[str, Any]) -> RunResult:
    """The result of an outcome; raises its error, with the result attached."""
    result = RunResult(
        status=outcome.status,
        state=outcome.state,
        messages=outcome.messages,
        usage=outcome.usage,
        duration=duration,
        tool_result=outcome.tool_result,
        artifacts=outcome.artifacts,
        overrides=overrides,
    )
    error: AgentError | None = outcome.error
    if error is not None:
        error.result = result
        raise error
    return result
