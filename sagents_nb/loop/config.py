"""What the turn loop is given, and what it gives back: values and functions."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from ..calls import SubAgentResult
from ..context import Instructions
from ..errors import AgentError
from ..interrupts import ActionRequest, Decision
from ..messages import Message, ToolCall, ToolResult, Usage
from ..middleware.chain import Chain
from ..models.base import ChatModel
from ..state import State

Messages = Sequence[Message]
Converter = (
    Callable[[Messages], Messages | Awaitable[Messages]]
    | Callable[[Messages, threading.Event], Messages | Awaitable[Messages]]
)
"""Changes what the model is shown; the second argument, if it takes one, is set on cancellation."""
Source = Callable[[], Messages | Awaitable[Messages]]
Transcribe = Callable[[Message], Coroutine[Any, Any, None] | None]
T = TypeVar("T")


async def settled(value: T | Awaitable[T]) -> T:
    """``value``, or what comes of awaiting it: what people pass may be sync or async."""
    return await value if isinstance(value, Awaitable) else value


class Recorder(Protocol):
    """Where a run is written down as it happens, so that a crash loses nothing.

    All are called on the runtime loop. What ``keep`` or ``starting`` give is done once that is
    safe, and None where it is already. What they raise, or that has, ends the run as an error,
    :class:`~sagents_nb.errors.StoreError` unless it is another AgentError, and they are not called
    again in that run.
    """

    def keep(
        self, state: State, *, begins: Sequence[ToolCall] = (), ends: bool = False
    ) -> Future[None] | None:
        """Have everything up to this state safe; what it tells is told after that.

        ``begins``: calls of its last message whose bodies are run then, as by ``starting``.
        ``ends``: the run has completed with it, unless a message comes meanwhile.
        """

    def starting(self, call: ToolCall) -> Future[None] | None:
        """Have it safe that the body of this call is run."""

    def finished(self, call: ToolCall, result: ToolResult) -> None:
        """Take the result of a call; it will be safe soon, with the next ``keep`` at the latest.

        Not called for a result that also changes the state or asks people, since only the state
        that ``keep`` is given next says all of it, nor for a body that would not stop.
        """


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the calls of a last message that has no tool results yet.

    A crash leaves that behind. By call id: the ``results`` of those that had ended, which are
    used as they are; the ``decisions``, with the requests they answer, on those that had not
    run; and as ``doubtful`` those that had started and whose end nobody knows.
    """

    results: Mapping[str, ToolResult] = {}
    decisions: Mapping[str, tuple[ActionRequest, Decision]] = {}
    doubtful: frozenset[str] = frozenset()


class LoopConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop needs from outside: values and functions, no class tree; None is not asked.

    ``steering`` gives messages to inject before the next model call, ``follow_ups`` messages
    to go on with when the run would end. ``max_runs`` is how often the model is called at most; 0
    is no limit. ``skip_rest`` says whether a message waits that
    makes the calls of a batch which have not started be skipped. ``should_pause`` is asked
    after each model call; a text is the reason. ``should_stop`` is given each turn's message
    and results. ``until_tool`` names tools whose result ends the run; with ``until_success``
    only a result that is no error does. ``tool_timeout`` is in seconds, for tools without one
    of their own. ``retry_blank`` has the model asked again after a blank answer. ``fallback_text``
    is the answer where ``max_runs`` are used up. So many ``max_failures``, of ``failures`` "turns"
    or "calls", in a row end the run; 0 is no limit.
    ``transform_context`` and then ``convert_to_llm``
    change what the model is shown, never what is kept. ``get_api_key`` is given the model's
    name before each model call. All but ``should_pause`` may be async. ``recorder`` is where
    it is written down; ``transcribe`` is given each message that is about to be safe and told,
    and what it gives is awaited in between. ``unanswered`` is set where the answer is to be a value
    of a type: it is given the error of a run that ended without one, with the messages, and says
    why.
    """

    model: ChatModel
    system: Instructions = ""
    chain: Chain = msgspec.field(default_factory=lambda: Chain(()))
    options: Mapping[str, Any] = {}
    max_runs: int = 50
    until_tool: frozenset[str] = frozenset()
    until_success: bool = False
    max_parallel_tools: int = 5
    tool_timeout: float | None = None
    retry_blank: bool = False
    fallback_text: str | None = None
    max_failures: int = 3
    failures: Literal["turns", "calls"] = "turns"
    epoch: int = 0
    steering: Source | None = None
    follow_ups: Source | None = None
    skip_rest: Callable[[], bool | Awaitable[bool]] | None = None
    should_pause: Callable[[], bool | str] | None = None
    should_stop: Callable[[Message, Sequence[ToolResult]], bool | Awaitable[bool]] | None = None
    transform_context: Converter | None = None
    convert_to_llm: Converter | None = None
    get_api_key: Callable[[str], str | Awaitable[str | None] | None] | None = None
    recorder: Recorder | None = None
    transcribe: Transcribe | None = None
    unanswered: Callable[[AgentError, Sequence[Message]], AgentError] | None = None


class Outcome(msgspec.Struct):
    """How a run ended.

    ``error`` is set if ``status`` is "error", and beside "interrupted" if the answers to the
    interrupt were refused, which then still stands. ``unfinished`` is what the next run has to
    be given as ``recovered`` if it goes on with the calls of this one's last message. ``typed``
    is whether the answer was to be a value of a type.
    """

    status: str
    state: State
    messages: list[Message]
    usage: Usage
    tool_result: ToolResult | None = None
    error: AgentError | None = None
    artifacts: dict[str, Any] = {}
    unfinished: Unfinished | None = None
    typed: bool = False
    sub_agents: Sequence[SubAgentResult] = ()
    model_calls: int = 0
