"""What hooks and tools are told about the run they act in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

from . import kinds
from .budget import Budget, Meter
from .errors import ConfigurationError
from .events import Emitter, Event
from .interrupts import Decision, Decisions, Interrupt
from .messages import Usage
from .state import State

if TYPE_CHECKING:
    from .calls import SubAgentResult

Instructions = str | Callable[["RunContext"], str | Awaitable[str]]
"""A system prompt: text, or a function of the run's context that gives it."""


def joined_prompt(*prompts: Instructions) -> Instructions:
    """Prompts as one, parted by empty lines; a function if one of them is."""
    if all(isinstance(prompt, str) for prompt in prompts):
        return "\n\n".join(filter(None, prompts))  # type: ignore[arg-type]

    async def joined(ctx: RunContext) -> str:
        texts = []
        for prompt in prompts:
            text = prompt if isinstance(prompt, str) else prompt(ctx)
            if isinstance(text, Awaitable):
                text = await text
            if not isinstance(text, str):
                raise ConfigurationError(
                    f"A function for the system prompt gave {type(text).__name__}; return text."
                )
            texts.append(text)
        return "\n\n".join(filter(None, texts))

    return joined


@runtime_checkable
class AgentProtocol(Protocol):
    """An :class:`~sagents_nb.Agent`, as what stands below it needs it."""

    agent_id: str
    name: str
    description: str
    system_prompt: Instructions
    tool_context: dict[str, Any]
    budget: Budget | None

    @property
    def tools(self) -> Sequence[Any]:
        """All its tools."""

    @property
    def own_tools(self) -> Sequence[Any]:
        """Those that are not of its middleware."""

    @property
    def middleware(self) -> Sequence[Any]:
        """Its middleware, in order."""

    def with_(self, **changes: Any) -> Self:
        """A changed copy."""

    def checked(
        self, interrupt: Interrupt, given: Decisions, local: Mapping[str, Any] | None = None
    ) -> dict[str, Decision]:
        """``given`` by call id; raises InvalidDecision if it does not answer ``interrupt``."""

    def to_add(self, tools: Any, interrupt_on: Any, gates: Any) -> tuple[dict[str, Any], Any]:
        """Further tools by their names, and what asks people about those among them."""

    def new_run(self, state: State, emitter: Emitter, **options: Any) -> Any:
        """The :class:`~sagents_nb.loop.loop.Loop` of one run, which has not begun."""


class Caller(NamedTuple):
    """For whom a run works that another agent has asked for, by whatever way.

    ``chain`` are the names of the agents before it, the first one first, and at most ``max_depth``
    may be in it, None for any number. ``meter`` is what the run's own counting draws on.
    """

    chain: tuple[str, ...] = ()
    max_depth: int | None = None
    meter: Meter | None = None


ADDED = "RunContext.added"
"""Where ``ctx.local`` has the tools that were added, and what asks people about them."""

_adding = threading.Lock()


class RunContext:
    """One run, as middleware hooks see it. Never stored: it may hold keys and scopes.

    ``values`` is the agent's ``tool_context``; ``files`` the virtual filesystem, or None, and is
    given as it is or as a function that makes it, which is called when it is first asked for;
    ``cancelled`` a :class:`threading.Event` that is set when the run is cancelled, and
    ``is_cancelled`` whether it is; ``agent`` the agent that runs, ``tools`` its tools by name.
    ``scope`` is whose the conversation is, or None, and ``state`` the conversation now.
    ``local`` holds values of this conversation that live as long as the process and are never
    stored. ``usage`` is the sum over the model calls of this run so far, those of sub-agents and
    summaries too. ``spawn`` starts a background task on the runtime loop, and
    ``notify(middleware_id, message)`` calls that middleware's ``handle_message`` between turns, or
    soon after the run; both from the runtime loop only. ``decided`` is what people decided on
    calls of this run, by call id, as their results keep it: with who did and when.
    ``sub_agents`` are those that have ended in it. ``emitter`` sends its events, and ``meter``
    counts what it uses of its budget.

    >>> from sagents_nb import Agent, Middleware, RunContext, ScriptedModel, State
    >>> class Greets(Middleware):
    ...     def before_run(self, state: State, ctx: RunContext):
    ...         return state.put_metadata("user", ctx.values["user"])
    >>> model = ScriptedModel(["Hello!"])
    >>> agent = Agent(model, middleware=[Greets()], tool_context={"user": "Ada"})
    >>> agent.run("hi").state.metadata
    {'user': 'Ada'}
    """

    def __init__(
        self,
        *,
        emitter: Emitter,
        agent: Any = None,
        scope: Any = None,
        values: Mapping[str, Any] | None = None,
        files: Any = None,
        tools: Mapping[str, Any] | None = None,
        meter: Meter | None = None,
        local: dict[str, Any] | None = None,
        spawn: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
        notify: Callable[[str, Any], None] | None = None,
        state: State | None = None,
    ) -> None:
        self.emitter = emitter
        self.agent = agent
        self.scope = scope
        self.values: Mapping[str, Any] = values or {}
        if callable(files):
            self._make_files = files
        else:
            self.files = files
        self.tools: Mapping[str, Any] = tools or {}
        self.meter = meter or Meter()
        self.local = {} if local is None else local
        if ADDED in self.local:
            added, self.gates = self.local[ADDED]
            self.tools = {**self.tools, **added, **self.tools}  # the agent's first, in both senses
        self.spawn = spawn or asyncio.ensure_future
        self.notify = notify or (lambda middleware_id, message: None)
        self.usage = Usage()
        self.state = State() if state is None else state
        self.held: list[tuple[type[Event], dict[str, Any]]] | None = None
        self.decided: Mapping[str, dict[str, Any]] = {}
        self.sub_agents: tuple[SubAgentResult, ...] = ()

    gates: Any = None
    """The :class:`~sagents_nb.HumanInTheLoop` that asks about tools that were added, or None."""

    def add_tools(
        self,
        tools: Sequence[Any],
        interrupt_on: Mapping[str, Any] | Sequence[str] | str | None = None,
    ) -> None:
        """Let the model call further ``tools`` from its next call on, in this conversation.

        They are functions, and what :func:`~sagents_nb.tools.tool` makes of them, and stay until
        the conversation or its agent is replaced, or the process ends: whoever adds them in
        ``before_run`` has them there again. Added again, a tool takes the place of the one of its
        name. ``interrupt_on`` names those that ask people first, also by globs; they do whatever
        the agent itself says of their names. So a tool of another agent takes its gate along:
        ``ctx.add_tools(other.own_tools, other.interrupt_on)``. The agent's own ``interrupt_on``
        holds for them, too, and so does what a tool says of itself (``needs_approval``). A tool
        that adds tools says ``ctx.run.add_tools(…)``.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no tool, a name that the
        agent has already, and a gate without its tool.

        >>> from sagents_nb import Agent, Middleware, ScriptedModel, ToolCall
        >>> def tides(port: str) -> str:
        ...     "When the tide is high."
        ...     return "At 6."
        >>> class Harbour(Middleware):
        ...     def before_run(self, state, ctx):
        ...         ctx.add_tools([tides])
        >>> model = ScriptedModel([ToolCall("c1", "tides", {"port": "Bergen"}), "At 6."])
        >>> result = Agent(model, middleware=[Harbour()]).run("When is high tide?")
        >>> result.messages[2].tool_results[0].text
        'At 6.'
        """
        if self.agent is None:
            raise ConfigurationError(
                "This run is of no Agent, so it keeps the tools that it began with."
            )
        with _adding:  # tools in threads may add some at once
            before, gates = self.local.get(ADDED, ({}, None))
            added, self.gates = self.agent.to_add(tools, interrupt_on, gates)
            self.local[ADDED] = {**before, **added}, self.gates
            self.tools = {**self.tools, **added}

    _cancelled: threading.Event | None = None
    within: RunContext | None = None
    """The run of whose sub-agent this one is: with it, it is cancelled at once."""
    caller: Caller = Caller()
    """For whom it works, where another agent delegated to this one."""

    @property
    def chain(self) -> tuple[str, ...]:
        """The names of the agents through which this work came, this one last."""
        before = self.caller.chain if self.within is None else self.within.chain
        return (*before, str(getattr(self.agent, "name", "")))

    @property
    def max_depth(self) -> int | None:
        """How many agents may be in :attr:`chain`, as the first of them said; None for any."""
        return self.caller.max_depth if self.within is None else self.within.max_depth

    @cached_property
    def files(self) -> Any:
        """The virtual filesystem, or None."""
        # Tools in threads may ask at once: the one that comes first is everybody's.
        return vars(self).setdefault("files", self._make_files())

    @property
    def cancelled(self) -> threading.Event:
        """Set when the run is cancelled; made when it is first asked for, which is rare."""
        # Whoever cancels and whoever waits may ask at once: the one that comes first is both's.
        return self._cancelled or vars(self).setdefault("_cancelled", threading.Event())

    @property
    def is_cancelled(self) -> bool:
        """Whether the run was cancelled, or the one that it is ``within``."""
        if self._cancelled is not None and self._cancelled.is_set():
            return True
        return self.within is not None and self.within.is_cancelled

    @property
    def agent_id(self) -> str:
        """The agent's id."""
        return str(getattr(self.agent, "agent_id", ""))

    @property
    def model(self) -> Any:
        """The model that answers."""
        return getattr(self.agent, "model", None)

    @property
    def session_id(self) -> str:
        """The session's id; an agent's own id outside of a session."""
        return self.emitter.session_id

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.emitter.run_id

    def spend(self, usage: Usage | None) -> None:
        """Count ``usage``, that of a model call of this run."""
        if usage is not None:
            usage = self.meter.add(usage)
            if usage is not None:
                self.usage += usage

    def publish(self, kind: type[Event], /, **fields: Any) -> None:
        """Emit an event of class ``kind`` with these ``fields``; from the runtime loop only.

        >>> import sagents_nb as sa
        >>> class Step(sa.events.Event, frozen=True, tag="step"):
        ...     number: int
        >>> class Counts(sa.Middleware):
        ...     def before_model(self, state, ctx):
        ...         ctx.publish(Step, number=len(state.messages))
        >>> agent = sa.Agent(sa.ScriptedModel(["Hello!"]), middleware=[Counts()])
        >>> [event.number for event in agent.stream("hi") if isinstance(event, Step)]
        [1]
        """
        self.emitter.emit(kind, **fields)

    def publish_kept(self, kind: type[Event], /, **fields: Any) -> None:
        """:meth:`publish` once the state that this hook returns is safe, so that it stays true.

        ``kind`` and ``fields`` are as there.
        """
        if self.held is None:
            self.emitter.emit(kind, **fields)
        else:
            self.held.append((kind, fields))


_FRACTION = kinds.or_none(
    kinds.Kind(
        "a number from 0 to 1", lambda value: kinds.number(0).fits(value) and value <= 1 + 1e-9
    ),
    "where it is not known",
)


class _Told:
    """Nothing to wait for: lets ``progress`` be called from sync and async tools alike."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


class ToolContext:
    """One tool call, as the tool sees it.

    A parameter annotated ``ToolContext`` receives it and is absent from the tool's schema. It is
    made of the ``run``, the ``state`` before the call, the ``tool_call_id``, and ``on_progress``,
    which hears of :meth:`progress`.

    >>> from sagents_nb import Agent, ScriptedModel, ToolCall, ToolContext
    >>> def who(ctx: ToolContext) -> str:
    ...     "Say who asks."
    ...     return ctx.values["user"]
    >>> model = ScriptedModel([ToolCall("c1", "who", {}), "Hello, Ada."])
    >>> agent = Agent(model, tools=[who], tool_context={"user": "Ada"})
    >>> agent.run("Who am I?").messages[-2].tool_results[0].text
    'Ada'
    """

    def __init__(
        self,
        run: RunContext,
        state: State,
        tool_call_id: str,
        on_progress: Callable[[str, float | None], None],
    ) -> None:
        self.run = run
        self.state = state
        self.tool_call_id = tool_call_id
        self._on_progress = on_progress

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.run.session_id

    @property
    def scope(self) -> Any:
        """The caller's scope, or None."""
        return self.run.scope

    @property
    def values(self) -> Mapping[str, Any]:
        """The agent's ``tool_context``."""
        return self.run.values

    @property
    def files(self) -> Any:
        """The virtual filesystem, or None."""
        return self.run.files

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled: a long sync tool should look now and then."""
        return self.run.is_cancelled

    @kinds.checked(fraction=_FRACTION)
    def progress(self, text: str, fraction: float | None = None) -> Awaitable[None]:
        """Tell people in a ``text`` how far the tool is; ``fraction`` is 0 to 1.

        Awaiting it is optional. Raises :class:`~sagents_nb.errors.ConfigurationError` for a
        ``fraction`` that is none.

        >>> from sagents_nb import Agent, ScriptedModel, ToolCall, ToolContext
        >>> def load(ctx: ToolContext) -> str:
        ...     "Load data."
        ...     ctx.progress("Half of it is there.", 0.5)
        ...     return "Loaded."
        >>> agent = Agent(ScriptedModel([ToolCall("c1", "load", {}), "Done."]), tools=[load])
        >>> [event.text for event in agent.stream("Load.") if event.type == "tool_execution_update"]
        ['Half of it is there.']
        """
        self._on_progress(text, fraction)
        return _Told()
