"""One question to a model outside of any conversation."""

from __future__ import annotations

from contextlib import aclosing

from msgspec.structs import replace

from ..errors import ModelError
from ..messages import Message, told_usage
from ..runtime.telemetry import current
from .base import ChatModel, ModelRequest, stream_of

# All others mean that the answer is not whole.
_WHOLE = ("end_turn", "stop_sequence", "tool_use", None)


async def ask(model: ChatModel, system: str, text: str) -> Message:
    """The whole answer to ``text``, without tools and history; nothing of it is an event.

    Raises :class:`~sagents_nb.errors.ModelError` if the model fails, or if its answer is cut
    off, refused or without text.
    """
    request = ModelRequest([Message.user(text)], system, model=model.name)
    tracing = current()
    if tracing is None:
        answer = await _last(model, request)
    else:
        with tracing.chat(model) as record:
            answer = await _last(model, request)
            record(answer, model.name, None)
    if answer.stop_reason not in _WHOLE:
        how = f"ended with {answer.stop_reason!r}" if answer.stop_reason else "has no stop_reason"
        reason = f": {answer.error}" if answer.error else ""
        raise ModelError(f"The answer of {model!r} {how}{reason}.")
    if not answer.text.strip():
        raise ModelError(f"The answer of {model!r} has no text.")
    return answer


async def _last(model: ChatModel, request: ModelRequest) -> Message:
    answer: Message | None = None
    stream = stream_of(model, request)
    async with aclosing(stream):
        async for item in stream:
            if isinstance(item, Message):
                answer = item
    if answer is None:
        raise ModelError(f"{model!r} ended its stream without a final Message.", kind="cut_stream")
    if answer.usage is not None:
        answer = replace(answer, usage=told_usage(answer.usage, model.name))
    return answer
