"""The base of all middleware: what a capability may say, bring and do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..context import RunContext
from ..events import Event
from ..interrupts import Decision, Interrupt
from ..messages import Message, ToolCall, ToolResult
from ..models.base import ModelRequest
from ..serialization import StateSchema
from ..state import State
from ..tools import Tool


class Middleware:
    """One capability: a prompt, tools, and hooks around the run, the model and the tools.

    Every method is optional. Hooks may be sync or async and return None for "unchanged", a
    new State, or an Interrupt that stops the run until people answer. An exception in a hook
    ends the run with a :class:`~sagents_nb.errors.MiddlewareError` that names it.

    Hooks are given the conversation as ``state`` (:class:`~sagents_nb.State`) and the run as
    ``ctx`` (:class:`~sagents_nb.RunContext`); those around a tool its ``call`` and its ``result``.

    >>> from sagents_nb import Agent, Middleware, ScriptedModel
    >>> class Polite(Middleware):
    ...     def system_prompt(self):
    ...         return "Say please."
    ...     def before_model(self, state, ctx):
    ...         return state.put_metadata("asked", len(state.messages))
    >>> result = Agent(ScriptedModel(["Hello!"]), middleware=[Polite()]).run("hi")
    >>> result.state.metadata
    {'asked': 1}
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
        """Raise ConfigurationError if it cannot work in this ``agent``, which was just made."""

    def before_run(self, state: State, ctx: RunContext) -> Any:
        """Once per run or resume, before anything else; in list order."""

    def before_model(self, state: State, ctx: RunContext) -> Any:
        """Before every model call; in list order."""

    def before_model_request(self, request: ModelRequest, ctx: RunContext) -> Any:
        """What the model is about to be asked, once more for each call of it; in list order.

        None, or a changed ``request`` for this call alone, which ``msgspec.structs.replace`` makes:
        other ``messages``, ``system`` or ``options``, fewer ``tools`` (one that is left out is not
        run in that turn), or another ``model``, by its spec ("openai:gpt-6.1-sol") or a ChatModel.
        """

    def on_answer(self, message: Message, ctx: RunContext) -> Any:
        """What the model has said, its ``message``, just before it becomes part of the state.

        None, or a dict of metadata to keep with it: sync only, and quick. Calls of tools and texts
        stay as they are.
        """

    def after_model(self, state: State, ctx: RunContext) -> Any:
        """After every model call; in reverse order."""

    def before_stop(self, state: State, ctx: RunContext) -> Any:
        """Where the run would end: None, or a user's Message that the model is to answer before.

        In list order. It is asked at each such place, and not when ``max_runs`` are used up.
        """

    def after_run(self, state: State, ctx: RunContext) -> Any:
        """Once, on a normal end; in reverse order."""

    def before_tool(self, call: ToolCall, ctx: RunContext) -> Any:
        """Before a call runs: None, a changed call, a result instead of running, an Interrupt."""

    def after_tool(self, call: ToolCall, result: ToolResult, ctx: RunContext) -> Any:
        """After a call: None, or another result; in reverse order."""

    def on_event(self, event: Event, ctx: RunContext) -> Any:
        """Sees every ``event``, on the runtime loop: sync only, and quick."""

    def on_session_start(self, state: State, ctx: RunContext) -> Any:
        """Once, when a session starts."""

    def handle_message(self, message: Any, state: State, ctx: RunContext) -> Any:
        """The ``message`` that ``ctx.notify`` or ``session.notify_middleware`` sent here.

        It gives None or a State.
        """

    def check_decisions(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> None:
        """Raise InvalidDecision for answers that do not fit an ``interrupt`` of this middleware.

        Called before anything changes, with the ``decisions`` by ``tool_call_id``; sync.
        """

    def handle_resume(
        self,
        interrupt: Interrupt,
        decisions: Mapping[str, Decision],
        state: State,
        ctx: RunContext,
    ) -> Any:
        """Go on after an ``interrupt`` of this middleware.

        ``decisions`` are by ``tool_call_id``. None means that it is somebody else's; a State that
        it is resolved (its placeholder results replaced); an Interrupt that something still waits.
        """

    def repeats(self, call: ToolCall) -> bool:
        """Whether a ``call`` of a tool that it adds to runs may be run again after a crash.

        Of the tools that it brings they themselves say that (``idempotent``).
        """
        return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def middleware_id(item: Middleware) -> str:
    """Its ``id``, or the name of its class."""
    return item.id or type(item).__name__
