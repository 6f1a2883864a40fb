"""The middleware of one agent, compiled into the calls that its runs make."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from .. import kinds
from ..context import RunContext
from ..errors import (
    AgentError,
    ConfigurationError,
    InvalidDecision,
    MiddlewareError,
    pass_on,
)
from ..interrupts import ActionRequest, Decision, Interrupt
from ..messages import Message, ToolCall, ToolResult
from ..models.base import ModelRequest
from ..runtime import foreign
from ..runtime.telemetry import current
from ..serialization import StateSchema, unreadable
from ..state import State
from ..text import logger_of, said_by
from ..tools import Tool, as_tool
from .base import Middleware, middleware_id
from .human_in_the_loop import HumanInTheLoop, decisions_on, passing

logger = logger_of(__name__)

HOOKS = (
    "before_run",
    "before_model",
    "before_model_request",
    "on_answer",
    "after_model",
    "before_stop",
    "after_run",
    "before_tool",
    "after_tool",
    "on_event",
    "on_session_start",
)
_ALL = ("approve", "edit", "reject", "respond")
_REVERSED = ("after_model", "after_run", "after_tool")


@lru_cache(maxsize=256)
def _no_hook(classes: tuple[Any, ...]) -> str:
    """What to say of a method that was meant to be a hook and that nobody would ever call."""
    ours = set(dir(Middleware))
    for cls in classes:
        for name in sorted(set(dir(cls)) - ours):
            own = not name.startswith("_") and callable(getattr(cls, name))
            if own and (near := kinds.meant(name, HOOKS, 0.85)):
                where = f"{cls.__name__}.{name}"
                return f"{where} is no hook, so nothing calls it; did you mean {near}?"
    return ""


class Chain:
    """The middleware of one agent, ready to be called.

    Only hooks that a class overrides are kept, so an agent pays for what it uses.
    """

    def __init__(self, middleware: Sequence[Middleware]) -> None:
        self.middleware = tuple(middleware)
        names: set[str] = set()
        for item in self.middleware:
            if not isinstance(item, Middleware):
                raise ConfigurationError(
                    f"{kinds.shown(item)} is no middleware; pass an instance of a Middleware "
                    "subclass."
                )
            name = middleware_id(item)
            if name in names:
                raise ConfigurationError(
                    f"Two middlewares have the id {name!r}; give one of them its own 'id'."
                )
            names.add(name)
        if wrong := _no_hook(tuple(map(type, self.middleware))):
            raise ConfigurationError(wrong)
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
            prompt = _asked(item, "system_prompt")
            own = [prompt] if isinstance(prompt, str) else prompt
            if not isinstance(own, list | tuple) or not all(isinstance(t, str) for t in own):
                raise ConfigurationError(
                    f"{middleware_id(item)}.system_prompt returned {type(prompt).__name__}; "
                    "return text or a list of texts."
                )
            texts += own
        return [text for text in texts if text]

    def tools(self) -> list[Tool]:
        """The tools, in list order."""
        tools: list[Tool] = []
        for item in self.middleware:
            own = _asked(item, "tools")
            if not isinstance(own, list | tuple):
                raise ConfigurationError(
                    f"{middleware_id(item)}.tools returned {type(own).__name__}; return a list."
                )
            tools += map(as_tool, own)
        return tools

    def noted(self, message: Message, ctx: RunContext) -> Message:
        """What a model said, with what ``on_answer`` hooks keep with it."""
        for item, function in self.hooks["on_answer"]:
            try:
                kept = {**message.metadata, **(function(message, ctx) or {})}
            except BaseException as error:  # the answer is there, whatever is thought of it
                pass_on(error)
                logger.exception("%s.on_answer raised", middleware_id(item))
            else:
                message = replace(message, metadata=kept)
        return message

    async def state_hooks(self, hook: str, state: State, ctx: RunContext) -> State:
        """Run a hook over the state; an Interrupt ends up in ``state.interrupt``."""
        for item, function in self.hooks[hook]:
            outcome = await call_hook(item, hook, function, state, ctx)
            if outcome is None:
                continue
            if isinstance(outcome, Interrupt):
                name = middleware_id(item)
                return state.with_interrupt(_answerable(outcome, f"{name}.{hook}", name, None))
            if not isinstance(outcome, State):
                raise MiddlewareError(
                    f"{middleware_id(item)}.{hook} returned {type(outcome).__name__}; "
                    "return None, a State or an Interrupt."
                )
            state = ctx.state = outcome
        return state

    async def model_request(self, request: ModelRequest, ctx: RunContext) -> ModelRequest:
        """The request as the hooks leave it."""
        for item, function in self.hooks["before_model_request"]:
            outcome = await call_hook(item, "before_model_request", function, request, ctx)
            if outcome is None:
                continue
            if not isinstance(outcome, ModelRequest):
                raise MiddlewareError(
                    f"{middleware_id(item)}.before_model_request returned "
                    f"{type(outcome).__name__}; return None or a ModelRequest."
                )
            request = outcome
        return request

    async def before_stop(self, state: State, ctx: RunContext) -> list[Message]:
        """What the hooks want to have answered before the run ends."""
        said: list[Message] = []
        for item, function in self.hooks["before_stop"]:
            outcome = await call_hook(item, "before_stop", function, state, ctx)
            if outcome is None:
                continue
            if not isinstance(outcome, Message) or outcome.role != "user":
                raise MiddlewareError(
                    f"{middleware_id(item)}.before_stop returned {kinds.shown(outcome)}; return "
                    "None or a Message.user(…)."
                )
            if why := unreadable(outcome, Message):
                raise MiddlewareError(
                    f"{middleware_id(item)}.before_stop returned what cannot be kept: {why}."
                )
            said.append(outcome)
        return said

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
        if outcome is not None and not isinstance(outcome, State):
            kind = type(outcome).__name__
            logger.warning("%s.handle_message returned %s; return None or a State", id, kind)
            return state
        return outcome or state

    def check_decisions(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> None:
        """Ask every middleware; raises InvalidDecision."""
        for item in self.middleware:
            try:
                item.check_decisions(interrupt, decisions)
            except InvalidDecision as error:
                if not error.tool_call_id and len(decisions) == 1:  # it can be about no other
                    error.tool_call_id = next(iter(decisions))
                raise
            except AgentError:
                raise
            except BaseException as error:
                pass_on(error)
                raise _failed(item, "check_decisions", error) from error

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

    def asks(self, interrupt: Interrupt) -> bool:
        """Whether it is a hook that asks, and about no call."""
        ids = {f"{middleware_id(item)}.{hook}" for item in self.middleware for hook in HOOKS}
        return not ids.isdisjoint(interrupt.tool_call_ids)

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
                interrupts.append(_answerable(outcome, call.id, call.name, call))
            elif isinstance(outcome, ToolCall):
                if outcome.name != call.name:  # which others have looked at, and the model reads
                    raise MiddlewareError(
                        f"{middleware_id(item)}.before_tool made {outcome.name!r} of a call of "
                        f"{call.name!r}; change its arguments, or answer it with a ToolResult."
                    )
                call = replace(outcome, id=call.id)  # whose answer it needs does not change
            elif outcome is not None:
                raise MiddlewareError(
                    f"{middleware_id(item)}.before_tool returned {type(outcome).__name__}; "
                    "return None, a ToolCall, a ToolResult or an Interrupt."
                )
        if ctx.gates is not None and (gate := ctx.gates.before_tool(call, ctx)) is not None:
            interrupts.append(gate)
        return call, asked_once(interrupts, call) if interrupts else None

    def allows_always(self, name: str, ctx: RunContext) -> bool:
        """Whether a gate would hold calls of that tool, had nobody allowed them all."""
        of_run = ctx.gates is not None and decisions_on(ctx.gates, name)
        return name in passing(ctx.local) and bool(of_run or self.holds(name))

    def holds(self, name: str) -> bool:
        """Whether a gate of the agent has people asked before calls of that tool."""
        gates = (item for item, _ in self.hooks["before_tool"] if isinstance(item, HumanInTheLoop))
        return any(decisions_on(gate, name) for gate in gates)

    def lets_pass(self, name: str, gates: HumanInTheLoop | None = None) -> bool:
        """Whether no hook looks at calls of that tool before they run; ``gates`` are of the run."""
        if gates is not None and decisions_on(gates, name):
            return False
        return all(
            isinstance(item, HumanInTheLoop)
            and type(item).before_tool is HumanInTheLoop.before_tool
            and not decisions_on(item, name)
            for item, _ in self.hooks["before_tool"]
        )

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
            if why := unreadable(result, ToolResult):
                raise MiddlewareError(
                    f"{middleware_id(item)}.after_tool returned what cannot be kept: {why}."
                )
        return result


def _answerable(interrupt: Interrupt, id: str, name: str, call: ToolCall | None) -> Interrupt:
    """A hook's question, about a call or none, with a request to be answered by."""
    if interrupt.action_requests or interrupt.type == "halt":
        return interrupt
    # Without a call there are no arguments to edit.
    decisions = ("approve", "reject", "respond") if call is None else _ALL
    arguments = {} if call is None else call.arguments
    request = ActionRequest(id, name, arguments, interrupt.message, decisions)
    return replace(interrupt, action_requests=(request,))


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


async def call_hook(item: Middleware, hook: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a hook, sync or async; what it raises becomes an error that names it."""
    tracing = current()
    try:
        if tracing is not None:
            with tracing.hook(middleware_id(item), hook):
                return await _awaited(_called(function, args), function)
        outcome = _called(function, args)
        # Most hooks change nothing; to ask whether None can be awaited costs more than they do.
        return None if outcome is None else await _awaited(outcome, function)
    except AgentError:
        raise
    except BaseException as error:
        pass_on(error)
        raise _failed(item, hook, error) from error


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    began = foreign.clock()
    outcome = function(*args)
    if foreign.clock() - began > foreign.HELD:  # asked here, since calling took() costs as much
        foreign.took(began, "The hook", function)
    return outcome


async def _awaited(outcome: Any, function: Callable[..., Any]) -> Any:
    if not inspect.isawaitable(outcome):
        return outcome
    return await foreign.stepwise(outcome, "The hook", function)


def _failed(item: Middleware, hook: str, error: BaseException) -> MiddlewareError:
    return MiddlewareError(f"{middleware_id(item)}.{hook} failed: {said_by(error)}")


def _asked(item: Middleware, what: str) -> Any:
    """What a middleware says of itself when the agent is made."""
    try:
        return getattr(item, what)()
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{middleware_id(item)}.{what} failed ({said_by(error)}); it is called "
            "when the agent is made."
        ) from error
