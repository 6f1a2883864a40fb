"""The base of all middleware, and the chain that an agent compiles its middleware into."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from ..context import RunContext
from ..errors import AgentError, ConfigurationError, MiddlewareError
from ..events import Event
from ..interrupts import Decision, Interrupt
from ..messages import ToolCall, ToolResult
from ..serialization import StateSchema
from ..state import State
from ..tools import Tool, as_tool

logger = logging.getLogger(__name__)

HookResult = State | Interrupt | None
ToolHookResult = ToolCall | ToolResult | Interrupt | None

HOOKS = (
    "before_run",
    "before_model",
    "after_model",
    "after_run",
    "before_tool",
    "after_tool",
    "on_event",
    "on_session_start",
)
_REVERSED = ("after_model", "after_run", "after_tool")


class Middleware:
    """One capability: a prompt, tools, and hooks around the run, the model and the tools.

    Every method is optional. Hooks may be sync or async and return None for "unchanged", a
    new State, or an Interrupt that stops the run until people answer. An exception in a hook
    ends the run with a :class:`~sagents_nb.errors.MiddlewareError` that names it.
    """

    id: str = ""
    state_schema: StateSchema = MappingProxyType({})
    """Per key of ``state.metadata``: (serialize, deserialize), for values that are no JSON.

    ``deserialize`` is given what ``serialize`` returned, after a round trip through JSON.
    """

    def system_prompt(self) -> str | list[str]:
        """Text for the system prompt; read once, when the agent is made."""
        return ""

    def tools(self) -> Sequence[Tool | Callable[..., Any]]:
        """Tools this middleware brings."""
        return []

    def check_agent(self, agent: Any) -> None:
        """Raise ConfigurationError if it cannot work in this agent, which was just made."""

    def before_run(self, state: State, ctx: RunContext) -> Any:
        """Once per run or resume, before anything else; in list order."""

    def before_model(self, state: State, ctx: RunContext) -> Any:
        """Before every model call; in list order."""

    def after_model(self, state: State, ctx: RunContext) -> Any:
        """After every model call; in reverse order."""

    def after_run(self, state: State, ctx: RunContext) -> Any:
        """Once, on a normal end; in reverse order."""

    def before_tool(self, call: ToolCall, ctx: RunContext) -> Any:
        """Before a call runs: None, a changed call, a result instead of running, an Interrupt."""

    def after_tool(self, call: ToolCall, result: ToolResult, ctx: RunContext) -> Any:
        """After a call: None, or another result; in reverse order."""

    def on_event(self, event: Event, ctx: RunContext) -> Any:
        """Sees every event, on the runtime loop: sync only, and quick."""

    def on_session_start(self, state: State, ctx: RunContext) -> Any:
        """Once, when a session starts."""

    def handle_message(self, message: Any, state: State, ctx: RunContext) -> Any:
        """What ``ctx.notify`` or ``session.notify_middleware`` sent here: None or a State."""

    def check_decisions(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> None:
        """Raise InvalidDecision for answers that do not fit an interrupt of this middleware.

        Called before anything changes, with the decisions by ``tool_call_id``; sync.
        """

    def handle_resume(
        self,
        interrupt: Interrupt,
        decisions: Mapping[str, Decision],
        state: State,
        ctx: RunContext,
    ) -> Any:
        """Go on after an interrupt of this middleware.

        None means that it is somebody else's; a State that it is resolved (its placeholder
        results replaced); an Interrupt that something still waits.
        """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Chain:
    """The middleware of one agent, ready to be called.

    Only hooks that a class overrides are kept, so an agent pays for what it uses.
    """

    def __init__(self, middleware: Sequence[Middleware]) -> None:
        self.middleware = tuple(middleware)
        seen: set[str] = set()
        for item in self.middleware:
            if not isinstance(item, Middleware):
                raise ConfigurationError(
                    f"{item!r} is no middleware; pass an instance of a Middleware subclass."
                )
            name = middleware_id(item)
            if name in seen:
                raise ConfigurationError(
                    f"Two middlewares have the id {name!r}; give one of them its own 'id'."
                )
            seen.add(name)
        self.hooks: dict[str, tuple[tuple[Middleware, Callable[..., Any]], ...]] = {}
        for hook in HOOKS:
            found = [
                (item, getattr(item, hook))
                for item in self.middleware
                if getattr(type(item), hook) is not getattr(Middleware, hook)
            ]
            self.hooks[hook] = tuple(reversed(found) if hook in _REVERSED else found)
        self.state_schema: StateSchema = _joined_schemas(self.middleware)

    def prompts(self) -> list[str]:
        """The non-empty prompts, in list order."""
        texts: list[str] = []
        for item in self.middleware:
            prompt = item.system_prompt()
            texts += [prompt] if isinstance(prompt, str) else prompt
        return [text for text in texts if text]

    def tools(self) -> list[Tool]:
        """The tools, in list order."""
        return [as_tool(tool) for item in self.middleware for tool in item.tools()]

    async def state_hooks(self, hook: str, state: State, ctx: RunContext) -> State:
        """Run a hook over the state; an Interrupt ends up in ``state.interrupt``."""
        for item, function in self.hooks[hook]:
            outcome = await call_hook(item, hook, function, state, ctx)
            if outcome is None:
                continue
            if isinstance(outcome, Interrupt):
                return state.with_interrupt(outcome)
            if not isinstance(outcome, State):
                raise MiddlewareError(
                    f"{middleware_id(item)}.{hook} returned {type(outcome).__name__}; "
                    "return None, a State or an Interrupt."
                )
            state = ctx.state = outcome
        return state

    async def handle_message(self, id: str, message: Any, state: State, ctx: RunContext) -> State:
        """Deliver a message to the middleware with that id; what goes wrong is only logged."""
        item = next((m for m in self.middleware if middleware_id(m) == id), None)
        if item is None:
            logger.warning("A message came for the middleware %r, which is not there", id)
            return state
        try:
            outcome = await call_hook(
                item, "handle_message", item.handle_message, message, state, ctx
            )
        except AgentError:
            logger.exception("A message was not handled")
            return state
        return outcome if isinstance(outcome, State) else state

    def check_decisions(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> None:
        """Ask every middleware; raises InvalidDecision."""
        for item in self.middleware:
            item.check_decisions(interrupt, decisions)

    async def handle_resume(
        self,
        interrupt: Interrupt,
        decisions: Mapping[str, Decision],
        state: State,
        ctx: RunContext,
    ) -> State | Interrupt | None:
        """The answer of the first middleware that claims the interrupt, or None."""
        for item in self.middleware:
            outcome = await call_hook(
                item, "handle_resume", item.handle_resume, interrupt, decisions, state, ctx
            )
            if isinstance(outcome, State | Interrupt):
                return outcome
            if outcome is not None:
                raise MiddlewareError(
                    f"{middleware_id(item)}.handle_resume returned {type(outcome).__name__}; "
                    "return None, a State or an Interrupt."
                )
        return None

    async def before_tool(
        self, call: ToolCall, ctx: RunContext
    ) -> tuple[ToolCall, ToolResult | Interrupt | None]:
        """The call as the hooks leave it, and what stands in its way.

        Where several hooks interrupt, people are asked once, about the call as the last hook
        left it, and may only decide what all of them allow.
        """
        interrupts: list[Interrupt] = []
        for item, function in self.hooks["before_tool"]:
            outcome = await call_hook(item, "before_tool", function, call, ctx)
            if isinstance(outcome, ToolResult):
                return call, outcome
            if isinstance(outcome, Interrupt):
                interrupts.append(outcome)
            elif isinstance(outcome, ToolCall):  # whose answer it needs does not change
                call = replace(outcome, id=call.id, name=call.name)
            elif outcome is not None:
                raise MiddlewareError(
                    f"{middleware_id(item)}.before_tool returned {type(outcome).__name__}; "
                    "return None, a ToolCall, a ToolResult or an Interrupt."
                )
        return call, asked_once(interrupts, call) if interrupts else None

    async def after_tool(self, call: ToolCall, result: ToolResult, ctx: RunContext) -> ToolResult:
        """The result as the hooks leave it."""
        for item, function in self.hooks["after_tool"]:
            outcome = await call_hook(item, "after_tool", function, call, result, ctx)
            if outcome is None:
                continue
            if not isinstance(outcome, ToolResult):
                raise MiddlewareError(
                    f"{middleware_id(item)}.after_tool returned {type(outcome).__name__}; "
                    "return None or a ToolResult."
                )
            result = replace(outcome, tool_call_id=call.id, name=call.name)
        return result


def _joined_schemas(middleware: Sequence[Middleware]) -> StateSchema:
    joined: dict[str, Any] = {}
    owners: dict[str, str] = {}
    for item in middleware:
        for key, functions in item.state_schema.items():
            name = middleware_id(item)
            pair = isinstance(functions, tuple) and len(functions) == 2
            if not pair or not all(map(callable, functions)):
                raise ConfigurationError(
                    f"{name}.state_schema[{key!r}] must be (serialize, deserialize), two functions."
                )
            if key in joined and joined[key] != functions:
                raise ConfigurationError(
                    f"{owners[key]} and {name} both serialize metadata[{key!r}]; "
                    "rename the key in one of them."
                )
            joined[key], owners[key] = functions, name
    return joined


def asked_once(interrupts: Sequence[Interrupt], call: ToolCall) -> Interrupt:
    """One interrupt that asks about one call for all who want it asked."""
    first = interrupts[0]
    requests = [request for interrupt in interrupts for request in interrupt.action_requests]
    if not requests:
        return first
    allowed = [
        decision
        for decision in requests[0].allowed_decisions
        if all(decision in request.allowed_decisions for request in requests)
    ]
    request = replace(
        requests[0],
        tool_call_id=call.id,
        tool_name=call.name,
        arguments=call.arguments,
        allowed_decisions=tuple(allowed) or ("reject",),
    )
    return replace(first, action_requests=(request,))


def middleware_id(item: Middleware) -> str:
    """Its ``id``, or the name of its class."""
    return item.id or type(item).__name__


async def call_hook(item: Middleware, hook: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a hook, sync or async; what it raises becomes an error that names it."""
    try:
        outcome = function(*args)
        if inspect.isawaitable(outcome):
            outcome = await _wait(outcome)
        return outcome
    except AgentError:
        raise
    except Exception as error:
        raise MiddlewareError(
            f"{middleware_id(item)}.{hook} failed: {type(error).__name__}: {error}"
        ) from error


async def _wait(outcome: Awaitable[Any]) -> Any:
    return await outcome
