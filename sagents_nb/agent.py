"""The agent: immutable configuration, and the ways to run it."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from msgspec.structs import replace

from . import kinds
from .errors import ConfigurationError, InvalidDecision
from .tools import Tool, as_tool

# Here for type checkers; when it runs, by _load().
if TYPE_CHECKING:
    import pandas

    from .batch import Engine
    from .budget import Budget, Meter, meter_of
    from .context import ADDED, Instructions, RunContext, joined_prompt
    from .events import Emitter, Event
    from .extract import Asking, Extracted
    from .files import VirtualFilesystem
    from .interrupts import Decision, Decisions, Interrupt
    from .loop.approvals import check_decisions
    from .loop.config import LoopConfig
    from .loop.execution import (
        Execution,
        ExecutionEvents,
        Prompt,
        check_unanswered,
        new_run_id,
        observed,
        starting_point,
    )
    from .loop.loop import Loop
    from .middleware.base import Middleware
    from .middleware.chain import Chain
    from .middleware.defaults import default_middleware, with_gates
    from .middleware.human_in_the_loop import UNSAID, Gates, HumanInTheLoop, is_glob, said_of
    from .middleware.sub_agent_config import SubAgent
    from .middleware.sub_agents import SubAgents, tool_of
    from .models import default_model, resilient, resolve_model
    from .models.base import ChatModel, refuse_of_one_server
    from .result import RunResult
    from .runtime.face import asked_face
    from .runtime.thread import runtime
    from .state import State

T = TypeVar("T")

# What may be given for one run only; remembered when it is resumed.
_OVERRIDES = (
    *("model", "system_prompt", "options", "tool_context", "output_type", "max_runs"),
    *("until_tool", "until_tool_success", "tool_timeout", "max_parallel_tools", "budget"),
)

_ROW_PROMPT = kinds.or_none(
    kinds.Kind(
        "text, or a function of a row", lambda value: isinstance(value, str) or callable(value)
    )
)
_INTERRUPT_ON = kinds.or_none(
    kinds.Kind(
        "a dict by the names of tools, or a list of names",
        lambda value: (
            kinds.of(Mapping[str, Any]).fits(value)
            or isinstance(value, str)
            or (kinds.LIST.fits(value) and all(isinstance(name, str) for name in value))
        ),
    )
)
_BUDGET = kinds.or_none(
    kinds.Kind("a Budget, such as Budget(model_calls=5)", lambda value: isinstance(value, Budget))
)
_SAID = kinds.or_none(
    kinds.Kind("text", lambda value: isinstance(value, str) and bool(value.strip()))
)
_ENGINE = kinds.or_none(kinds.having("an engine, as LocalEngine()", "run"))
_INSTRUCTIONS = kinds.Kind(
    "text, or a function of the run's context",
    lambda value: isinstance(value, str) or callable(value),
)


def _state_of(before: State | RunResult | None) -> State | None:
    """The state, also of an earlier run's result."""
    return None if before is None else getattr(before, "state", before)  # type: ignore[arg-type]


def _gates_of(given: Mapping[str, Any] | Iterable[str] | None) -> Mapping[str, Any]:
    """What asks people first, by the names of tools, that may be given alone."""
    if isinstance(given, Mapping):
        return given
    return dict.fromkeys([given] if isinstance(given, str) else given or (), True)


def _as_said(name: Any) -> str:
    return name if isinstance(name, str) and name.isprintable() else repr(name)


@cache
def _load() -> None:
    """Load what makes and runs agents, with the first of them: importing the package stays light.

    Into this module, and not where each name is used: an import costs a microsecond also when
    the module is there, and a run would take six.
    """
    global Budget, Chain, Emitter, Execution, ExecutionEvents, Loop, LoopConfig, RunContext
    global SubAgents, meter_of, tool_of
    global check_decisions, check_unanswered, default_middleware, default_model, with_gates
    global joined_prompt, new_run_id, observed, resilient, resolve_model, runtime, starting_point
    global refuse_of_one_server
    global asked_face, ADDED, Gates, HumanInTheLoop, UNSAID, is_glob, said_of
    from .budget import Budget, meter_of
    from .context import ADDED, RunContext, joined_prompt
    from .events import Emitter
    from .loop.approvals import check_decisions
    from .loop.config import LoopConfig
    from .loop.execution import (
        Execution,
        ExecutionEvents,
        check_unanswered,
        new_run_id,
        observed,
        starting_point,
    )
    from .loop.loop import Loop
    from .middleware.chain import Chain
    from .middleware.defaults import default_middleware, with_gates
    from .middleware.human_in_the_loop import UNSAID, Gates, HumanInTheLoop, is_glob, said_of
    from .middleware.sub_agents import SubAgents, tool_of
    from .models import default_model, resilient, resolve_model
    from .models.base import refuse_of_one_server
    from .runtime.face import asked_face
    from .runtime.thread import runtime


class Agent:
    """What an agent can do. Frozen and shareable; it holds no conversation.

    - ``model``: a spec such as "anthropic:claude-sonnet-4-5", a ChatModel, or None for the default
      model. What may pass (no connection, a time-out, a rate limit, a server that is overloaded or
      fails) is tried again up to four times with growing waits, or as often as the ``retries`` of
      the model says; then ``fallback_models`` are asked in its place, ``before_fallback`` before
      each. ``options`` are of each request: ``temperature``, ``max_tokens``, ``thinking``, and
      whatever the provider knows; keys, headers, time-outs are of one server, and so of its model.
    - ``system_prompt``: text, or a function of the :class:`~sagents_nb.context.RunContext`, async
      or not, that is asked before each model call.
    - ``tools``: functions, and what :func:`~sagents_nb.tools.tool` makes of them. ``tool_context``
      is what they see as ``ctx.values``. ``interrupt_on`` names those that ask people first, by
      globs too (``{"mcp_*": True}``), which also hold for tools that a hook adds to a run.
      ``tool_timeout``, in seconds, is for those without one of their own (``task``, which waits for
      sub-agents, has none), and up to ``max_parallel_tools`` of a turn run at once.
    - ``output_type``: a type as :meth:`extract` takes it; a run ends with a value of it, which is
      ``result.output``.
    - ``max_runs``: how often a run may call the model at most, 0 is without limit; ``budget``
      limits more. A run ends with the result of an ``until_tool``, or with one that is no error of
      ``until_tool_success``. With ``retry_blank`` the model is asked again where it answers with
      nothing, or with spaces alone. Where ``max_runs`` are used up, ``fallback_text`` is the answer
      in the place of an error. So many ``max_failures`` in a row end a run with an error, 0 is
      without limit: ``failures`` "turns" that had a failing call, or "calls" with no other between.
    - ``middleware``: more capabilities, after the default ones. These are, in this order:
      :class:`~sagents_nb.TodoList` (the tool ``write_todos``), :class:`~sagents_nb.FileSystem`
      (``ls``, ``read_file``, ``write_file``, ``edit_file``, ``search_text``, ``edit_lines``,
      ``delete_file`` and ``move_file``, for virtual files), :class:`~sagents_nb.SubAgents`
      (``task``), :class:`~sagents_nb.Summarization` of a long history, and
      :class:`~sagents_nb.PatchToolCalls`. ``todo_options``, ``filesystem_options``,
      ``subagent_options`` and ``summarization_options`` are arguments of the first four;
      ``defaults=False`` (or ``replace_default_middleware=True``) leaves all out.
    - ``subagents``: agents with a ``name`` and a ``description``, to which the model may delegate
      by the tool ``task``; also SubAgentConfig and CompiledSubAgent objects.
    - ``filesystem_scope``: whose files it works in, such as ``("user", 1)``; None is its own.
    - ``name``, ``description`` and ``agent_id`` are for people, other agents and traces.
      ``otel_attributes`` go to every span of its runs, also of those of sub-agents, where
      OpenTelemetry is configured.

    All it was given can be read; beside that ``own_tools`` are those without its middleware's,
    ``tools_by_name`` all of them, ``middleware_chain`` the middleware as the loop calls it, and
    ``assembled_system_prompt`` what the model is told, but for what a function says at each call.
    Raises :class:`~sagents_nb.errors.ConfigurationError` for what cannot work.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> agent = Agent(ScriptedModel(["Hello!"]), "You are brief.")
    >>> agent.run("hi").text
    'Hello!'
    >>> [tool.name for tool in agent.tools]  # doctest: +NORMALIZE_WHITESPACE
    ['write_todos', 'ls', 'read_file', 'write_file', 'edit_file', 'search_text', 'edit_lines',
     'delete_file', 'move_file', 'task']
    >>> Agent(ScriptedModel(["Hello!"]), defaults=False).tools
    []
    """

    @kinds.checked(
        load=_load,
        system_prompt=_INSTRUCTIONS,
        tools=kinds.LIST,
        middleware=kinds.LIST,
        subagents=kinds.LIST,
        max_runs=kinds.whole(0),
        max_parallel_tools=kinds.whole(1),
        max_failures=kinds.whole(0),
        failures=kinds.one_of("turns", "calls"),
        fallback_text=_SAID,
        tool_timeout=kinds.or_none(kinds.number(0, "seconds", over=True)),
        interrupt_on=_INTERRUPT_ON,
        budget=_BUDGET,
    )
    def __init__(
        self,
        model: str | ChatModel | None = None,
        system_prompt: Instructions = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        middleware: Sequence[Middleware] = (),
        *,
        replace_default_middleware: bool = False,
        interrupt_on: Mapping[str, Any] | Iterable[str] | None = None,
        fallback_models: Sequence[str | ChatModel] = (),
        before_fallback: Callable[..., Any] | None = None,
        filesystem_scope: Any = None,
        tool_context: Mapping[str, Any] | None = None,
        max_runs: int = 50,
        until_tool: str | Iterable[str] | None = None,
        until_tool_success: str | Iterable[str] | None = None,
        name: str | None = None,
        description: str = "",
        subagents: Sequence[Agent | SubAgent] = (),
        defaults: bool = True,
        agent_id: str | None = None,
        max_parallel_tools: int = 5,
        tool_timeout: float | None = None,
        retry_blank: bool = False,
        fallback_text: str | None = None,
        max_failures: int = 3,
        failures: Literal["turns", "calls"] = "turns",
        budget: Budget | None = None,
        output_type: Any = None,
        options: Mapping[str, Any] | None = None,
        otel_attributes: Mapping[str, Any] | None = None,
        todo_options: Mapping[str, Any] | None = None,
        filesystem_options: Mapping[str, Any] | None = None,
        subagent_options: Mapping[str, Any] | None = None,
        summarization_options: Mapping[str, Any] | None = None,
    ) -> None:
        interrupt_on = _gates_of(interrupt_on)
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        put = super().__setattr__
        config["model"] = default_model() if model is None else resolve_model(model)
        put("_own", {})
        put("_config", config)  # with the model itself: copies share its connections
        put("model", config["model"])
        put("system_prompt", system_prompt)
        put("_resilient_model", resilient(self.model, fallback_models, before_fallback))
        put("name", name or "Agent")
        put("description", description)
        put("agent_id", agent_id or f"agent-{uuid.uuid4().hex[:12]}")
        if filesystem_scope is not None:
            from .files.paths import check_scope

            check_scope(filesystem_scope)
        put("filesystem_scope", filesystem_scope)
        put("tool_context", dict(tool_context or {}))
        put("options", dict(options or {}))
        refuse_of_one_server(self.options)
        put("otel_attributes", dict(otel_attributes or {}))
        put("max_runs", max_runs)
        put("max_parallel_tools", max_parallel_tools)
        put("tool_timeout", tool_timeout)
        put("retry_blank", retry_blank)
        put("fallback_text", fallback_text)
        put("max_failures", max_failures)
        put("failures", failures)
        put("budget", budget)
        put("output_type", output_type)
        put("_asking", None)

        stack: list[Middleware] = []
        if defaults and not replace_default_middleware:
            stack = default_middleware(
                *(todo_options, filesystem_options, subagent_options, summarization_options),
                subagents,
            )
        elif subagents:
            stack = [SubAgents(subagents)]
        stack += middleware
        chain = Chain(stack)
        put("own_tools", tuple(map(as_tool, tools)))
        every = [*self.own_tools, *chain.tools()]
        gated = with_gates(stack, every, interrupt_on)
        put("middleware_chain", chain if gated is stack else Chain(gated))
        put("middleware", self.middleware_chain.middleware)

        by_name: dict[str, Tool] = {}
        for tool in every:
            if tool.name in by_name:
                raise ConfigurationError(
                    f"Two tools are called {tool.name!r}; rename one with @tool(name=…)."
                )
            by_name[tool.name] = tool
        put("tools_by_name", by_name)
        given = interrupt_on if isinstance(interrupt_on, Gates) else Gates(interrupt_on)
        put("interrupt_on", given)
        asked = [n for n, v in self.interrupt_on.items() if v or isinstance(v, Mapping)]
        self._check_names("interrupt_on", (name for name in asked if not is_glob(name)))
        put("until_tool", self._names("until_tool", until_tool))
        put("until_tool_success", self._names("until_tool_success", until_tool_success))
        if self.until_tool and self.until_tool_success:
            raise ConfigurationError(
                "until_tool and until_tool_success exclude each other; give one of them."
            )
        prompts = [system_prompt, *self.middleware_chain.prompts()]
        put("_instructions", joined_prompt(*prompts))
        texts = [text for text in prompts if isinstance(text, str)]
        whole = len(texts) == len(prompts)
        put("assembled_system_prompt", self._instructions if whole else joined_prompt(*texts))
        if output_type is not None:
            from .extract import Asking

            put("_asking", Asking(self, output_type, max_runs))
        for item in self.middleware:
            item.check_agent(self)

    model: ChatModel
    system_prompt: Instructions
    name: str
    description: str
    agent_id: str
    filesystem_scope: Any
    tool_context: dict[str, Any]
    options: dict[str, Any]
    otel_attributes: dict[str, Any]
    max_runs: int
    max_parallel_tools: int
    tool_timeout: float | None
    retry_blank: bool
    fallback_text: str | None
    max_failures: int
    failures: Literal["turns", "calls"]
    budget: Budget | None
    output_type: Any
    middleware: tuple[Middleware, ...]
    middleware_chain: Chain
    own_tools: tuple[Tool, ...]
    tools_by_name: Mapping[str, Tool]
    interrupt_on: Mapping[str, Any]
    until_tool: frozenset[str]
    until_tool_success: frozenset[str]
    assembled_system_prompt: str
    _config: dict[str, Any]  # what it was made with
    _own: dict[str, Any]  # what it and its copies keep alive: files that are theirs alone
    _resilient_model: ChatModel
    _instructions: Instructions
    _asking: Asking[Agent] | None  # has its runs end with a value of the output_type

    @property
    def files(self) -> VirtualFilesystem:
        """The files that its runs without a session work in."""
        from .files import filesystems, open_filesystem

        if self.filesystem_scope:
            return open_filesystem(self.filesystem_scope)
        files = self._own["files"] = filesystems.lend(("agent", self.agent_id))
        return files

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"An Agent cannot be changed; use agent.with_({name}=…) for a copy.")

    if not TYPE_CHECKING:  # for type checkers there is nothing else

        def __getattr__(self, name: str) -> Any:
            return kinds.no_attribute(self, name)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Agent {self.name!r}: {self.model!r}, {len(self.tools_by_name)} tools>"

    @property
    def tools(self) -> list[Tool]:
        """Its own tools, then those of its middleware."""
        return list(self.tools_by_name.values())

    def with_(self, **changes: Any) -> Agent:
        """A changed copy; takes the arguments of :class:`Agent` as ``changes``.

        What is not among them stays as it is, the ``agent_id`` too. Raises
        :class:`~sagents_nb.errors.ConfigurationError` as :class:`Agent` does.

        >>> from sagents_nb import Agent, ScriptedModel
        >>> Agent(ScriptedModel([])).with_(max_runs=3).max_runs
        3
        """
        kinds.refuse_unknown("Agent.with_", changes, self._config)
        same = {"agent_id": self.agent_id, "interrupt_on": self.interrupt_on}
        made = Agent(**{**self._config, **same, **changes})
        if made.agent_id == self.agent_id:
            object.__setattr__(made, "_own", self._own)
        return made

    @kinds.checked
    def as_tool(self, name: str | None = None, description: str | None = None) -> Tool:
        """A tool that gives this agent a task and returns its answer, as a sub-agent's.

        Their defaults are the agent's own ``name`` and ``description``. What it asks people, it
        asks in the name of the agent that has the tool. Raises
        :class:`~sagents_nb.errors.ConfigurationError` without a name or a description.

        >>> from sagents_nb import Agent, ScriptedModel, ToolCall
        >>> historian = Agent(ScriptedModel(["In 1048."]), name="historian")
        >>> ask = historian.as_tool("ask_historian", "Knows when things happened.")
        >>> call = ToolCall("c1", "ask_historian", {"instructions": "When was Oslo founded?"})
        >>> Agent(ScriptedModel([call, "Oslo is old."]), tools=[ask]).run("How old is Oslo?").text
        'Oslo is old.'
        """
        return tool_of(self, name, description)

    def checked(
        self, interrupt: Interrupt, given: Decisions, local: Mapping[str, Any] | None = None
    ) -> dict[str, Decision]:
        """The decisions ``given`` by call id, if they answer ``interrupt``.

        They are given as to :meth:`resume`. ``local`` is the conversation's ``ctx.local``, which
        knows the tools that were added to it. Raises
        :class:`~sagents_nb.errors.InvalidDecision` for what does not fit; nothing has changed then.

        >>> from sagents_nb import Agent, Approve, ScriptedModel, ToolCall
        >>> def book(city: str) -> str:
        ...     "Book a room."
        ...     return f"Booked in {city}."
        >>> model = ScriptedModel([ToolCall("c1", "book", {"city": "Oslo"})])
        >>> agent = Agent(model, tools=[book], interrupt_on=["book"])
        >>> agent.checked(agent.run("Book a room.").interrupt, Approve())
        {'c1': Approve(always=False)}
        """
        added: Mapping[str, Tool] = local[ADDED][0] if local and ADDED in local else {}
        tools = {**added, **self.tools_by_name}
        return check_decisions(interrupt, given, tools, self.middleware_chain)

    @kinds.checked(tools=kinds.LIST, interrupt_on=_INTERRUPT_ON)
    def to_add(
        self,
        tools: Sequence[Tool | Callable[..., Any]],
        interrupt_on: Mapping[str, Any] | Iterable[str] | None = None,
        gates: HumanInTheLoop | None = None,
    ) -> tuple[dict[str, Tool], HumanInTheLoop | None]:
        """Further ``tools`` by their names, and what asks people about those among them.

        It is what :meth:`RunContext.add_tools <sagents_nb.RunContext.add_tools>` adds to a run of
        this agent, with ``interrupt_on`` as there; ``gates`` are those of tools that were added
        before. Raises :class:`~sagents_nb.errors.ConfigurationError` as it does.

        >>> from sagents_nb import Agent, ScriptedModel
        >>> def tides(port: str) -> str:
        ...     "When the tide is high."
        ...     return "At 6."
        >>> Agent(ScriptedModel([])).to_add([tides])
        ({'tides': <Tool tides>}, None)
        """
        added: dict[str, Tool] = {}
        for tool in map(as_tool, tools):
            if tool.name in self.tools_by_name or tool.name in added:
                raise ConfigurationError(
                    f"Two tools are called {tool.name!r}; rename the added one with @tool(name=…)."
                )
            added[tool.name] = tool
        given = _gates_of(interrupt_on)
        self._check_names("interrupt_on", (n for n in given if not is_glob(n)), added)
        mine = [m.interrupt_on for m in self.middleware if isinstance(m, HumanInTheLoop)]
        said = {} if gates is None else dict(gates.interrupt_on)
        for name, tool in added.items():
            said.pop(name, None)  # it was of the tool that had the name
            value = said_of(given, name)
            if value is UNSAID and tool.needs_approval:
                value = all(said_of(of_agent, name) is UNSAID for of_agent in mine)
            if value is not UNSAID:
                said[name] = value
        return added, HumanInTheLoop(said) if said else None

    # running it

    @kinds.checked(prompt=kinds.ANYTHING)
    def run(
        self,
        prompt: Prompt,
        state: State | RunResult | None = None,
        *,
        wait: bool = False,
        **overrides: Any,
    ) -> RunResult:
        """Run to the end and return the result; from any thread, also in a notebook cell.

        ``prompt`` is text, a Message, a list of both, or a State; an empty list says nothing new.
        ``state`` is what it goes on from: a State, or the result of an earlier run.

        With ``wait`` it is shown below the cell, what it asks is answered in the panel there while
        the cell runs, and the result is that of the whole run; ``should_pause`` is not for such a
        run. Raises :class:`~sagents_nb.errors.ConfigurationError` where no panel would be heard
        meanwhile, and KeyboardInterrupt when it is stopped. In a notebook that runs unattended
        approvals are denied.

        ``overrides`` are for this run and its resumption: ``model``, ``system_prompt``,
        ``output_type``, ``max_runs``, ``until_tool``, ``until_tool_success``, ``tool_timeout``,
        ``max_parallel_tools`` and ``budget`` stand for the agent's own; ``options`` and
        ``tool_context`` are added to them; a pickle of the result has no key of the former, and not
        the latter. ``should_pause`` is a function without arguments that is asked after each model
        call whether to stop there. Raises :class:`~sagents_nb.errors.AgentError` subclasses, with
        the result so far in ``.result``; an interrupt is a result.

        >>> from sagents_nb import Agent, ScriptedModel
        >>> agent = Agent(ScriptedModel(["Hello!", "Bye!"]))
        >>> result = agent.run("hi")
        >>> result = agent.run("bye", state=result.state, max_runs=3)
        >>> result.text, len(result.messages), len(result.state.messages)
        ('Bye!', 2, 4)
        """
        if wait:
            return asked_face().run(self, prompt, _state_of(state), overrides)
        return self._start(prompt, state, overrides).result()

    @kinds.checked(prompt=kinds.ANYTHING)
    async def arun(
        self, prompt: Prompt, state: State | RunResult | None = None, **overrides: Any
    ) -> RunResult:
        """:meth:`run`, to await on any loop. Cancelling the await cancels the run.

        ``prompt``, ``state``, ``overrides`` and the errors are those of :meth:`run`.

        >>> import asyncio
        >>> from sagents_nb import Agent, ScriptedModel
        >>> asyncio.run(Agent(ScriptedModel(["Hello!"])).arun("hi")).text
        'Hello!'
        """
        return await self._start(prompt, state, overrides)

    @kinds.checked(prompt=kinds.ANYTHING)
    def stream(
        self, prompt: Prompt, state: State | RunResult | None = None, **overrides: Any
    ) -> ExecutionEvents:
        """The events of a run as they happen; leaving the loop early cancels the run.

        It is for ``for`` and for ``async for``, and has a ``result`` at its end, as what an
        interrupted run is resumed with. A ``break`` leaves the loop, and so does an error in it;
        ``cancel()`` and the end of ``with agent.stream(…) as stream:`` cancel, too. ``prompt``,
        ``state`` and ``overrides`` are those of :meth:`run`. A run that failed raises after its
        last event, the errors of :meth:`run`. ``text_stream()`` gives the pieces of the answer
        alone.

        >>> from sagents_nb import Agent, ScriptedModel
        >>> stream = Agent(ScriptedModel(["Hello!"])).stream("hi")
        >>> types = [event.type for event in stream]
        >>> types[0], types[-1], stream.result.text
        ('agent_start', 'agent_end', 'Hello!')
        >>> list(Agent(ScriptedModel(["Hello!"])).stream("hi").text_stream())
        ['Hell', 'o!']
        """
        return ExecutionEvents(lambda events: self._start(prompt, state, overrides, events.push))

    @kinds.checked(decisions=kinds.ANYTHING)
    def resume(self, result: RunResult, decisions: Decisions) -> RunResult:
        """Go on after an interrupt; the result of the rest of the run, which may ask again.

        ``result`` is that of the interrupted run. ``decisions`` are one for all that waits, a list
        in the order of the requests, or a dict by their ``tool_call_id``. Raises
        :class:`~sagents_nb.errors.InvalidDecision` for what does not fit, and then nothing has
        changed, and what :meth:`run` raises.

        A result is resumed once in a process, since what was approved has run then: again it
        raises :class:`~sagents_nb.errors.StaleApproval`. A session of a store promises that
        across processes.

        >>> from sagents_nb import Agent, Approve, ScriptedModel, ToolCall, tool
        >>> @tool
        ... def book(city: str) -> str:
        ...     "Book a room."
        ...     return f"Booked in {city}."
        >>> model = ScriptedModel([ToolCall("c1", "book", {"city": "Oslo"}), "Done."])
        >>> agent = Agent(model, tools=[book], interrupt_on={"book": True})
        >>> result = agent.run("Book a room in Oslo.")
        >>> result.status, result.interrupt.action_requests[0].arguments
        ('interrupted', {'city': 'Oslo'})
        >>> agent.resume(result, Approve()).text
        'Done.'
        """
        return self._resume(result, decisions).result()

    @kinds.checked(decisions=kinds.ANYTHING)
    async def aresume(self, result: RunResult, decisions: Decisions) -> RunResult:
        """:meth:`resume`, to await on any loop. Cancelling the await cancels the run.

        ``result``, ``decisions`` and the errors are those of :meth:`resume`.

        >>> import asyncio
        >>> from sagents_nb import Agent, Reject, ScriptedModel, ToolCall
        >>> def book(city: str) -> str:
        ...     "Book a room."
        ...     return f"Booked in {city}."
        >>> model = ScriptedModel([ToolCall("c1", "book", {"city": "Oslo"}), "I leave it."])
        >>> agent = Agent(model, tools=[book], interrupt_on=["book"])
        >>> async def ask_and_decide():
        ...     result = await agent.arun("Book a room in Oslo.")
        ...     return await agent.aresume(result, Reject("Too late."))
        >>> asyncio.run(ask_and_decide()).text
        'I leave it.'
        """
        return await self._resume(result, decisions)

    @overload
    def extract(
        self, prompt: Prompt, output_type: type[T], max_runs: int = ..., *, full: Literal[True]
    ) -> Extracted[T]: ...
    @overload
    def extract(
        self,
        prompt: Prompt,
        output_type: type[T] | None = ...,
        max_runs: int = ...,
        *,
        full: Literal[False] = ...,
        type: type[T] | None = ...,
    ) -> T: ...
    @kinds.checked(
        max_runs=kinds.whole(1),
        prompt=kinds.ANYTHING,
        output_type=kinds.ANYTHING,
        type=kinds.ANYTHING,
    )
    def extract(
        self,
        prompt: Prompt,
        output_type: Any = None,
        max_runs: int = 5,
        *,
        full: bool = False,
        type: Any = None,
    ) -> Any:
        """The answer to ``prompt`` as a value of ``output_type``, in at most ``max_runs`` calls.

        The type is a dataclass, TypedDict, msgspec.Struct or pydantic model, or any type of plain
        data such as ``list[str]`` or ``Literal["yes", "no"]``. An answer that does not fit goes
        back to the model with what is wrong. The agent's tools can be used on the way. With
        ``full`` it comes as ``.value``, beside its ``.usage`` and the ``.result`` of the run.
        ``type`` is an older name of ``output_type``. Raises
        :class:`~sagents_nb.errors.ConfigurationError` without a type or for one that cannot be
        asked for, and :class:`~sagents_nb.errors.AgentError`, with ``.result``, if there is no
        value.

        >>> from sagents_nb import Agent, ScriptedModel, ToolCall
        >>> model = ScriptedModel([ToolCall("c1", "submit", {"value": ["Oslo", "Bergen"]})])
        >>> Agent(model).extract("Which cities are named?", list[str])
        ['Oslo', 'Bergen']
        """
        from .extract import extract, type_given

        found = extract(self, prompt, type_given(output_type, type, "type"), max_runs)
        return found if full else found.value

    @overload
    async def aextract(
        self, prompt: Prompt, output_type: type[T], max_runs: int = ..., *, full: Literal[True]
    ) -> Extracted[T]: ...
    @overload
    async def aextract(
        self,
        prompt: Prompt,
        output_type: type[T] | None = ...,
        max_runs: int = ...,
        *,
        full: Literal[False] = ...,
        type: type[T] | None = ...,
    ) -> T: ...
    @kinds.checked(
        max_runs=kinds.whole(1),
        prompt=kinds.ANYTHING,
        output_type=kinds.ANYTHING,
        type=kinds.ANYTHING,
    )
    async def aextract(
        self,
        prompt: Prompt,
        output_type: Any = None,
        max_runs: int = 5,
        *,
        full: bool = False,
        type: Any = None,
    ) -> Any:
        """:meth:`extract`, to await on any loop.

        ``prompt``, ``output_type``, ``max_runs``, ``full``, ``type`` and the errors are those of
        :meth:`extract`.

        >>> import asyncio
        >>> from sagents_nb import Agent, ScriptedModel, ToolCall
        >>> model = ScriptedModel([ToolCall("c1", "submit", {"value": 1048})])
        >>> asyncio.run(Agent(model).aextract("When was Oslo founded?", int))
        1048
        """
        from .extract import aextract, type_given

        found = await aextract(self, prompt, type_given(output_type, type, "type"), max_runs)
        return found if full else found.value

    @kinds.checked(concurrency=kinds.whole(1), engine=_ENGINE, prompt=_ROW_PROMPT)
    def map(
        self,
        inputs: Any,
        prompt: str | Callable[[Any], Any] | None = None,
        output_type: Any = None,
        *,
        output: Any = None,
        concurrency: int = 10,
        cache: Any = None,
        progress: bool = True,
        budget: Budget | None = None,
        engine: Engine | None = None,
    ) -> pandas.DataFrame:
        """One run for each row, several at a time; a frame with the index of ``inputs``.

        ``inputs`` is a Series or an iterable of prompts, or a DataFrame with a ``prompt`` such as
        ``"Translate to {language}: {text}"``, which names at least one of its columns; the prompt
        for a Series, or for one column, says ``{}`` or its name where the value goes. Any column
        can be named, and behind the name stand ``!r``, ``!s`` or a format such as ``:.2f``;
        attributes and items of values are not looked up. A function as
        ``prompt`` makes that of each row. The columns, ``prompt``, ``text``, ``status`` and more,
        are those of the kind "map" in :data:`sagents_nb.frames.COLUMNS`; with ``output_type``, as
        for :meth:`extract` (``output`` is its older name), its fields are columns too
        (``output_text`` if there is a ``text`` already). An error is in its row, and the other rows
        go on.

        Up to ``concurrency`` rows are run at a time, and ``progress`` shows how far it is.
        ``cache`` names a file, a directory or a ResponseCache that keeps finished rows: those
        are not run again, after a restart or a power cut either. Without one, what a stopped
        map had finished is kept until the next map of this process. ``budget`` is for all rows
        that are run: once it is used up no row is begun, and those that run may end. ``engine``
        runs the rows elsewhere; see :class:`sagents_nb.batch.Engine`. Raises
        ConfigurationError for wrong arguments and ModelError if no row can be answered, as
        without a key.

        >>> from sagents_nb import Agent, ScriptedModel
        >>> agent = Agent(ScriptedModel(["Hei"]))
        >>> agent.map(["Hello"], progress=False)[["prompt", "text", "status"]]
          prompt text     status
        0  Hello  Hei  completed
        """
        from .batch import map_rows

        return map_rows(
            self,
            progress,
            inputs=inputs,
            prompt=prompt,
            output=output if output_type is None else output_type,
            concurrency=concurrency,
            cache=cache,
            budget=budget,
            engine=engine,
        )

    @kinds.checked(concurrency=kinds.whole(1), engine=_ENGINE, prompt=_ROW_PROMPT)
    async def amap(
        self,
        inputs: Any,
        prompt: str | Callable[[Any], Any] | None = None,
        output_type: Any = None,
        *,
        output: Any = None,
        concurrency: int = 10,
        cache: Any = None,
        progress: bool = True,
        budget: Budget | None = None,
        engine: Engine | None = None,
    ) -> pandas.DataFrame:
        """:meth:`map`, to await on any loop.

        ``inputs``, ``prompt``, ``output_type``, ``output``, ``concurrency``, ``cache``,
        ``progress``, ``budget``, ``engine`` and the errors are those of :meth:`map`.

        >>> import asyncio
        >>> from sagents_nb import Agent, ScriptedModel
        >>> agent = Agent(ScriptedModel(["Hei"]))
        >>> rows = asyncio.run(agent.amap(["Hello"], "Say it in Norwegian: {}", progress=False))
        >>> rows["text"].tolist()
        ['Hei']
        """
        from .batch import amap_rows

        return await amap_rows(
            self,
            progress,
            inputs=inputs,
            prompt=prompt,
            output=output if output_type is None else output_type,
            concurrency=concurrency,
            cache=cache,
            budget=budget,
            engine=engine,
        )

    def new_run(
        self,
        state: State,
        emitter: Emitter,
        *,
        files: Any = None,
        scope: Any = None,
        local: dict[str, Any] | None = None,
        meter: Meter | None = None,
        notify: Callable[[str, Any], None] | None = None,
        middleware_messages: deque[tuple[str, Any]] | None = None,
        **config: Any,
    ) -> Loop:
        """The turn loop of one run of this agent, to be run on the runtime loop.

        ``state`` is what it goes on from, ``emitter`` sends its events. ``files`` and ``scope`` are
        what its context has, by default the agent's own files; ``local`` holds values that live as
        long as the process; ``meter`` counts what it uses. ``notify`` takes what hooks and tools
        tell a middleware; by default the run delivers it itself, as what is in
        ``middleware_messages``. ``config`` holds further fields of
        :class:`~sagents_nb.loop.config.LoopConfig`; None leaves the default.
        """
        if self._asking is not None:
            return self._asking.new_run(
                state,
                emitter,
                files=files,
                scope=scope,
                local=local,
                meter=meter,
                notify=notify,
                middleware_messages=middleware_messages,
                **config,
            )
        if files is None:
            files = self.files
        ctx = RunContext(
            emitter=emitter,
            agent=self,
            scope=scope,
            values=self.tool_context,
            files=files,
            tools=self.tools_by_name,
            local=local,
            meter=meter or meter_of(self.budget),
            spawn=runtime.spawn,
            state=state,
        )
        observers = self.middleware_chain.hooks["on_event"]
        if observers:
            emitter.sink = observed(emitter.sink, [hook for _, hook in observers], ctx)
        given = {name: value for name, value in config.items() if value is not None}
        loop_config = replace(self._loop_config, **given) if given else self._loop_config
        loop = Loop(loop_config, ctx, state, middleware_messages)
        waiting = loop.middleware_messages  # and not the loop, which holds ctx: both would stay
        ctx.notify = notify or (lambda *message: waiting.append(message))
        return loop

    loop = new_run  # its name of before

    @cached_property
    def _loop_config(self) -> LoopConfig:
        """What is the same for all its runs."""
        return LoopConfig(
            model=self._resilient_model,
            system=self._instructions,
            chain=self.middleware_chain,
            options=self.options,
            max_runs=self.max_runs,
            until_tool=self.until_tool or self.until_tool_success,
            until_success=bool(self.until_tool_success),
            max_parallel_tools=self.max_parallel_tools,
            tool_timeout=self.tool_timeout,
            retry_blank=self.retry_blank,
            fallback_text=self.fallback_text,
            max_failures=self.max_failures,
            failures=self.failures,
        )

    def _start(
        self,
        prompt: Prompt,
        state: State | RunResult | None,
        overrides: dict[str, Any],
        sink: Callable[[Event], None] | None = None,
    ) -> Execution:
        base, messages = starting_point(prompt, None if state is None else _state_of(state))
        check_unanswered(base, messages)
        overrides = dict(overrides)
        should_pause = overrides.pop("should_pause", None)
        if should_pause is not None and not callable(should_pause):
            raise ConfigurationError(
                "should_pause is a function without arguments, asked after each model call."
            )
        agent = self.overridden(overrides)
        emitter = Emitter(sink, session_id=agent.agent_id, run_id=new_run_id())
        loop = agent.new_run(base, emitter, local={}, should_pause=should_pause)
        return Execution(loop, messages, None, overrides)

    def _resume(self, result: RunResult, given: Decisions) -> Execution:
        interrupt = result.interrupt
        if interrupt is None:
            raise InvalidDecision("This result waits for nothing; run again instead of resuming.")
        if result.session_id:  # where others may decide it, and what was approved is remembered
            raise InvalidDecision(
                f"This result is of session {result.session_id!r}, which waits for the decision; "
                "give it there, by session.approve(…), reject(…) or resume(…)."
            )
        agent = self.overridden(result.overrides)
        decisions = agent.checked(interrupt, given, result.local)
        result.take_answer()
        emitter = Emitter(session_id=agent.agent_id, run_id=new_run_id())
        loop = agent.new_run(result.state, emitter, local=result.local, meter=result.meter)
        return Execution(loop, [], decisions, result.overrides)

    def overridden(self, overrides: Mapping[str, Any]) -> Agent:
        """This agent as one run is to have it, with the ``overrides`` of :meth:`run`.

        None among them leaves the agent's own. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for what a run cannot have of its own.

        >>> from sagents_nb import Agent, ScriptedModel
        >>> agent = Agent(ScriptedModel([]), options={"max_tokens": 100})
        >>> agent.overridden({"options": {"temperature": 0}, "max_runs": 3}).options
        {'max_tokens': 100, 'temperature': 0}
        """
        given = {name: value for name, value in overrides.items() if value is not None}
        kinds.refuse_unknown("Agent.run", given, _OVERRIDES)
        for name in {"options", "tool_context"} & given.keys():
            if isinstance(given[name], Mapping):  # else with_() says what it is
                given[name] = {**getattr(self, name), **given[name]}
        return self.with_(**given) if given else self

    def _names(self, option: str, value: str | Iterable[str] | None) -> frozenset[str]:
        names = [value] if isinstance(value, str) else list(value or ())
        self._check_names(option, names)
        return frozenset(names)

    def _check_names(
        self, option: str, names: Iterable[str], tools: Mapping[str, Tool] | None = None
    ) -> None:
        known = self.tools_by_name if tools is None else tools
        missing = [n for n in names if not isinstance(n, str) or n not in known]
        if missing:
            raise ConfigurationError(
                f"{option} names {', '.join(map(_as_said, missing))}, but the tools are "
                f"{', '.join(known) or 'none'}."
            )
