"""The turn loop by itself: events from messages, a context and a config, without an Agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from .. import kinds
from ..context import RunContext
from ..errors import ConfigurationError, NotRunning
from ..events import Emitter
from ..messages import Message, ToolResult
from ..models import ChatModel, resolve_model
from ..models.base import refuse_of_one_server
from ..models.fallback import resilient
from ..runtime.event_stream import EventStream
from ..runtime.thread import runtime
from ..state import State
from ..tools import Tool, as_tool
from .config import Converter, LoopConfig, settled
from .execution import Execution, ExecutionEvents, Prompt, messages_of, new_run_id, starting_point
from .loop import Loop
from .open_calls import open_calls

Source = Callable[[], Prompt | Awaitable[Prompt]]


class AgentContext(msgspec.Struct, frozen=True):
    """What the model knows when the loop begins; the loop does not change it.

    ``system_prompt`` is its text, ``messages`` are what was said before, and ``tools`` are
    functions or what :func:`~sagents_nb.tools.tool` makes of them.

    >>> from sagents_nb import AgentContext, Message
    >>> context = AgentContext("You are brief.", [Message.user("hi"), Message.assistant("Hello!")])
    >>> len(context.messages)
    2
    """

    system_prompt: str = ""
    messages: Sequence[Message] = ()
    tools: Sequence[Tool | Callable[..., Any]] = ()

    def __post_init__(self) -> None:
        kinds.check_fields(self)


class AgentLoopConfig(msgspec.Struct, frozen=True):
    """How the loop works; every function may be sync or async.

    ``model`` is a ChatModel or a spec. ``transform_context`` and then ``convert_to_llm`` change
    what the model is shown, never what is kept; one with a second parameter is given a
    :class:`threading.Event` that is set when the run is cancelled. ``get_api_key`` is given the
    model's name before each model call. ``get_steering_messages`` is asked before each model call
    and before each tool call; what it gives goes to the model next, and with
    ``steering_batch="skip"`` the calls of the turn that have not started are skipped.
    ``get_follow_up_messages`` is asked when the loop would end. ``should_stop_after_turn`` is given
    each turn's message and tool results. ``max_parallel_tools``, ``max_runs`` and ``options`` are
    as for an :class:`~sagents_nb.Agent`; ``tool_context`` is what tools see as ``ctx.values``.
    ``session_id`` is that of its events. Raises :class:`~sagents_nb.errors.ConfigurationError` for
    what cannot work.

    >>> import asyncio
    >>> from sagents_nb import AgentContext, AgentLoopConfig, ScriptedModel, agent_loop
    >>> model = ScriptedModel(["Hello!", "Bye!"])
    >>> waiting = ["bye"]
    >>> def more():
    ...     return waiting.pop() if waiting else []
    >>> async def talk():
    ...     config = AgentLoopConfig(model, get_follow_up_messages=more)
    ...     async for event in agent_loop("hi", AgentContext(), config):
    ...         if event.type == "agent_end":
    ...             return [message.text for message in event.messages]
    >>> asyncio.run(talk())
    ['hi', 'Hello!', 'bye', 'Bye!']
    """

    model: ChatModel | str
    convert_to_llm: Converter | None = None
    transform_context: Converter | None = None
    get_api_key: Callable[[str], str | Awaitable[str | None] | None] | None = None
    get_steering_messages: Source | None = None
    get_follow_up_messages: Source | None = None
    should_stop_after_turn: (
        Callable[[Message, Sequence[ToolResult]], bool | Awaitable[bool]] | None
    ) = None
    steering_batch: Literal["skip", "wait"] = "skip"
    max_parallel_tools: int = 5
    max_runs: int = 50
    options: Mapping[str, Any] = {}
    tool_context: Mapping[str, Any] = {}
    session_id: str = ""

    def __post_init__(self) -> None:
        kinds.check_fields(self, max_parallel_tools=kinds.whole(1), max_runs=kinds.whole(0))
        refuse_of_one_server(self.options)


@kinds.checked(messages=kinds.ANYTHING)
def agent_loop(messages: Prompt, context: AgentContext, config: AgentLoopConfig) -> AgentLoopEvents:
    """The events of one run that begins with ``messages``, to iterate on any loop.

    ``context`` is what the model knows already, and ``config`` says how the loop works. Empty
    ``messages`` continue the context: from a user or tool message, else with what the queues hold,
    else :class:`~sagents_nb.errors.NotRunning` is raised. The last event, "agent_end", has the new
    messages. A failed run raises its error after that one.
    :class:`~sagents_nb.errors.ConfigurationError` is raised for what cannot work, such as two tools
    of one name.

    >>> import asyncio
    >>> from sagents_nb import AgentContext, AgentLoopConfig, ScriptedModel, agent_loop
    >>> async def say(text):
    ...     config = AgentLoopConfig(ScriptedModel(["Hello!"]))
    ...     async for event in agent_loop(text, AgentContext("You are brief."), config):
    ...         if event.type == "agent_end":
    ...             return event.messages[-1].text
    >>> asyncio.run(say("hi"))
    'Hello!'
    """
    if config.steering_batch not in ("skip", "wait"):
        raise ConfigurationError(
            f"steering_batch is 'skip' or 'wait', not {config.steering_batch!r}."
        )
    tools: dict[str, Tool] = {}
    for tool in map(as_tool, context.tools):
        if tool.name in tools:
            raise ConfigurationError(f"Two tools are called {tool.name!r}; rename one of them.")
        tools[tool.name] = tool
    state, prompts = starting_point(messages, State().add_messages(context.messages))
    if not prompts and not state.messages:
        raise NotRunning("There is nothing to continue: give agent_loop a message.")
    return AgentLoopEvents(state, prompts, context.system_prompt, tools, config)


class AgentLoopEvents(ExecutionEvents):
    """What :func:`agent_loop` gives: events for ``async for``, which can be cancelled.

    The run begins with the first event that is asked for. Leaving the loop early cancels it.
    """

    def __init__(
        self,
        state: State,
        prompts: list[Message],
        system: str,
        tools: dict[str, Tool],
        config: AgentLoopConfig,
    ) -> None:
        queues = _Queues(config)
        loop_config = LoopConfig(
            model=resilient(resolve_model(config.model)),
            system=system,
            options=config.options,
            max_runs=config.max_runs,
            max_parallel_tools=config.max_parallel_tools,
            steering=queues.steering,
            follow_ups=queues.follow_ups,
            skip_rest=None if config.get_steering_messages is None else queues.skips_rest,
            should_stop=config.should_stop_after_turn,
            transform_context=config.transform_context,
            convert_to_llm=config.convert_to_llm,
            get_api_key=config.get_api_key,
        )

        async def begin(events: EventStream) -> Execution:
            ctx = RunContext(
                emitter=Emitter(events.push, config.session_id, new_run_id()),
                values=config.tool_context,
                tools=tools,
                spawn=runtime.spawn,
            )
            messages = await queues.beginning(state, prompts)
            return Execution(Loop(loop_config, ctx, state), messages, None, {})

        super().__init__(begin)


class _Queues:
    """The two sources, asked as the loop wants it: nothing that they gave is lost."""

    def __init__(self, config: AgentLoopConfig) -> None:
        self._steering = config.get_steering_messages
        self._follow_ups = config.get_follow_up_messages
        self._skip = config.steering_batch == "skip"
        self.taken: list[Message] = []
        self._asking = asyncio.Lock()  # calls of one batch must not take several turns' worth

    async def beginning(self, state: State, prompts: list[Message]) -> list[Message]:
        """What the loop begins with; raises NotRunning where there is nothing to continue."""
        if prompts or state.messages[-1].role != "assistant" or open_calls(state):
            return prompts
        if not await self.steers():
            prompts = await self.follow_ups()
        if not prompts and not self.taken:
            raise NotRunning(
                "There is nothing to continue: the last message is an answer, and no "
                "message waits; give agent_loop one."
            )
        return prompts

    async def steering(self) -> list[Message]:
        taken, self.taken = self.taken, []
        return taken or await _asked(self._steering)

    async def follow_ups(self) -> list[Message]:
        return await _asked(self._follow_ups)

    async def skips_rest(self) -> bool:
        return self._skip and await self.steers()

    async def steers(self) -> bool:
        async with self._asking:
            self.taken = self.taken or await _asked(self._steering)
        return bool(self.taken)


async def _asked(source: Source | None) -> list[Message]:
    if source is None:
        return []
    given: Any = source()
    given = await settled(given)
    return messages_of(given) if given else []
