"""One model call, streamed: from a request to one assistant message, whatever happens."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from ..context import RunContext
from ..errors import BudgetExceeded, ModelError, pass_on
from ..events import Emitter, MessageStart, MessageUpdate, ModelRetry
from ..messages import (
    CUT_SHORT,
    Delta,
    Message,
    Part,
    ProviderPart,
    StopReason,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
    told_usage,
)
from ..models import resilient, resolve_model
from ..models.base import ChatModel, ModelRequest, RetryNotice, StreamItem, stream_of
from ..redaction import hush, without_known
from ..serialization import unreadable
from ..text import said_by
from ..tools import ToolSpec
from .config import LoopConfig, settled

_EMPTY = Message("assistant")

LONGEST_ANSWER = 32_000_000
"""Characters of one answer: its text, its thoughts and the arguments of its calls.

The longest that a model gives, 128,000 tokens, has some 600,000, or 5 million with what its
pieces count. Each event of an answer without an end may be short and in time.
"""
_OF_PIECE = 32  # what each piece counts beside its text, as it takes memory, too
_AT_ONCE = 16  # so many pieces are weighed together: of each it would take longer than the rest
MOST_CALLS = 4_096
_OF_CALL = LONGEST_ANSWER // MOST_CALLS  # what each call counts, however few its arguments


class Partial:
    """What has arrived of a message: pieces in lists, joined only if the stream breaks."""

    __slots__ = ("_kind", "_parts", "_pieces", "_unweighed", "size")

    def __init__(self) -> None:
        self.size = 0  # as LONGEST_ANSWER counts, of what is weighed
        self._unweighed = 0  # pieces, of the last part
        self._parts: list[tuple[type, list[str]]] = []
        self._kind: type | None = None  # of the last of them, and its pieces
        self._pieces: list[str] = []

    def add(self, delta: Delta) -> None:
        """Take one delta."""
        kind = type(delta)
        if self._unweighed and (kind is not self._kind or self._unweighed == _AT_ONCE):
            self.size += sum(map(len, self._pieces[-self._unweighed :]))
            self.size += self._unweighed * _OF_PIECE
            self._unweighed = 0
        self._unweighed += 1
        if kind is ToolCallDelta and delta.id is not None:  # type: ignore[union-attr]
            self.size += _OF_CALL
        if kind is self._kind:
            self._pieces.append(delta.text)
        else:
            self._kind, self._pieces = kind, [delta.text]
            self._parts.append((kind, self._pieces))

    def message(self, stop_reason: StopReason | None = None, error: str | None = None) -> Message:
        """The text and thinking so far. Calls are left out: half a call must never run."""
        parts: list[Part] = []
        for kind, pieces in self._parts:
            if kind is TextDelta:
                parts.append(TextPart("".join(pieces)))
            elif kind is ThinkingDelta:
                parts.append(ThinkingPart("".join(pieces)))
        return Message("assistant", tuple(parts), stop_reason=stop_reason, error=error)


def is_blank(message: Message) -> bool:
    """Whether it is a whole answer that says nothing: no text but spaces, and no call."""
    return (
        message.role == "assistant"
        and not (message.error or message.stop_reason in CUT_SHORT)
        and all(
            isinstance(part, ThinkingPart | ProviderPart)
            or (isinstance(part, TextPart) and not part.text.strip())
            for part in message.parts
        )
    )


def without_hidden(message: Message, request: ModelRequest, ctx: RunContext) -> Message:
    """The answer, its calls of tools that a hook left out of the request marked as not to be run.

    In the message itself, so that whoever goes on with it, from a store too, does not run them.
    """
    offered = {spec.name for spec in request.tools}

    def marked(part: Part) -> Part:
        if isinstance(part, ToolCall) and part.name in ctx.tools and part.name not in offered:
            known = ", ".join(sorted(offered)) or "none"
            error = f"there is no tool {part.name!r} in this turn. Tools: {known}."
            return msgspec.structs.replace(part, error=part.error or error)
        return part

    return msgspec.structs.replace(message, parts=tuple(map(marked, message.parts)))


class ModelAnswer(msgspec.Struct, frozen=True):
    """What a model said: ``failure`` is why no more came, ``model`` the one that answered."""

    message: Message
    model: str
    failure: BaseException | None


async def request_for(
    config: LoopConfig, ctx: RunContext, tools: tuple[ToolSpec, ...]
) -> tuple[ModelRequest, ChatModel]:
    """What is asked next, and of which model; raises whatever functions and hooks raise."""
    messages: Sequence[Message] = ctx.state.messages
    for change in (config.transform_context, config.convert_to_llm):
        if change is not None:
            messages = await settled(_changed(change, messages, ctx))
    system = config.system
    if not isinstance(system, str):
        system = await settled(system(ctx))
    key = await settled(config.get_api_key(config.model.name)) if config.get_api_key else None
    request = ModelRequest(
        messages=messages,
        system=system,
        tools=tools,
        options=dict(config.options),
        model=config.model.name,
        api_key=key,
        session_id=ctx.session_id,
    )
    if not config.chain.hooks["before_model_request"]:
        return request, config.model
    request = await config.chain.model_request(request, ctx)
    if request.model == config.model.name:
        return request, config.model
    model = resolve_model(request.model)
    return msgspec.structs.replace(request, model=model.name), resilient(model)


def _changed(change: Callable[..., Any], messages: Sequence[Message], ctx: RunContext) -> Any:
    """What comes of asking it; one with a second parameter is given the signal of the run's end."""
    return change(messages, ctx.cancelled) if _takes_signal(change) else change(messages)


def _takes_signal(change: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(change).parameters.values()
    except (TypeError, ValueError):  # of C code, say
        return False
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [p for p in parameters if p.kind in by_position and p.default is p.empty]
    return len(given) > 1


async def call_model(model: ChatModel, request: ModelRequest, emitter: Emitter) -> ModelAnswer:
    """Stream one message and emit its beginning and its pieces; its end is whoever keeps it.

    Never raises for what the model does: a failure is a message with the stop reason
    "error", a cancellation one with "aborted", each beside the exception it came from.
    """
    if emitter.sink is not None:
        emitter.emit(MessageStart, message=_EMPTY)
    partial = Partial()
    name = model.name  # of the one that answers: a fallback may take over
    message: Message | None = None
    failure: BaseException | None = None
    item: Any = ""
    try:
        stream = stream_of(model, request)
        try:
            async for item in stream:
                if type(item) is Message:
                    message = item
                    continue
                if type(item) is RetryNotice:
                    emitter.emit(ModelRetry, **msgspec.structs.asdict(item))
                    name = item.model or name
                    continue
                delta = TextDelta(item) if type(item) is str else item
                partial.add(delta)
                if partial.size > LONGEST_ANSWER:
                    raise ModelError(
                        f"The answer of {model!r} was cut off: it has over {LONGEST_ANSWER:,} "
                        f"characters or {MOST_CALLS:,} calls, more than any that ends; nothing of "
                        "it was run. Ask again, or another model.",
                        kind="cut_stream",
                    )
                if emitter.sink is not None:
                    emitter.emit(MessageUpdate, delta=delta)
        finally:
            await stream.aclose()
        if message is None:
            failure = ModelError(
                f"{model!r} ended its stream without a final Message; nothing of it was run.",
                kind="cut_stream",
            )
    except (ModelError, BudgetExceeded) as error:
        hush(error)
        failure = error
    except BaseException as error:
        failure = _failure(model, error)
        if issubclass(type(error), AttributeError | TypeError) and not isinstance(item, StreamItem):
            failure = ModelError(
                f"{model!r} gave a {type(item).__name__}, and a stream gives text, deltas and last "
                "of all one Message."
            )
    if failure is not None:
        if isinstance(failure, asyncio.CancelledError):
            message = partial.message("aborted", "The run was cancelled.")
        else:
            message = partial.message("error", str(failure))
    assert message is not None
    if message.usage is not None:
        usage = told_usage(message.usage, name)
        if usage is not message.usage:
            message = msgspec.structs.replace(message, usage=usage)
    says_why = message.error is not None and message.stop_reason is None
    if failure is None and (message.stop_reason == "error" or says_why):
        said = message.error and without_known(message.error)
        failure = ModelError(said or f"{model!r} ended with an error.")
        message = msgspec.structs.replace(message, stop_reason="error", error=said)
    answer = ModelAnswer(message, name, failure)
    for part in message.parts:  # with a text that is none, no later run could go on either
        kind = type(part)
        if (kind is TextPart or kind is ThinkingPart) and type(part.text) is not str:  # type: ignore[union-attr]
            return kept(answer, model)
    return answer


def kept(answer: ModelAnswer, model: ChatModel) -> ModelAnswer:
    """``answer``; a failure in the place of one that nobody could read again once it was kept."""
    if not (why := unreadable(answer.message, Message)):
        return answer
    failure = ModelError(
        f"{model!r} gave a message that cannot be kept: {why}; nothing of it was run."
    )
    message = Message("assistant", stop_reason="error", error=str(failure))
    return ModelAnswer(message, answer.model, failure)


def refusal(message: Message) -> ModelError:
    """What an answer comes to in which the model declined to give one."""
    details = message.metadata.get("stop_details") or {}
    why = str(details.get("explanation") or message.text).strip()
    return ModelError(f"The model declined to answer{f': {why}' if why else '.'}", kind="refusal")


def call_in_time(
    model: ChatModel, request: ModelRequest, ctx: RunContext
) -> Coroutine[Any, Any, ModelAnswer]:
    """Call the model as :func:`call_model` does, for the seconds that the budget leaves."""
    if not ctx.meter.limited or ctx.meter.seconds_left is None:
        return call_model(model, request, ctx.emitter)
    return _call_until(model, request, ctx)


async def _call_until(model: ChatModel, request: ModelRequest, ctx: RunContext) -> ModelAnswer:
    meter = ctx.meter
    async with asyncio.timeout(meter.seconds_left) as deadline:
        answer = await call_model(model, request, ctx.emitter)
    was_cut = deadline.expired() and isinstance(answer.failure, asyncio.CancelledError)
    if not was_cut or ctx.is_cancelled:
        return answer
    failure = meter.out_of_time()
    message = msgspec.structs.replace(answer.message, stop_reason="error", error=str(failure))
    return ModelAnswer(message, answer.model, failure)


def _failure(model: ChatModel, error: BaseException) -> BaseException:
    """What the model's exception comes to: a cancellation as it is, else an error of the model."""
    try:
        pass_on(error)
    except asyncio.CancelledError as cancelled:
        return cancelled
    failure = ModelError(f"{model!r} failed: {said_by(error)}")
    failure.__cause__ = error
    return failure
