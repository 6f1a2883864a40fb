"""One answer of a model outside of any conversation: its text, or a value of a type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from .. import kinds
from ..errors import ConfigurationError, ModelError
from ..json_schema import JSONSchema
from ..messages import Message, TextDelta, ToolCall, Usage, told_usage
from ..runtime.telemetry import current
from ..tools import Tool, as_tool
from .base import ChatModel, ModelRequest, stream_of
from .fallback import resilient
from .output_type import Output
from .response_format import ResponseFormat, closed, read_format, requires_all

# All others mean that the answer is not whole.
_WHOLE = ("end_turn", "stop_sequence", "tool_use", None)

OnText = Callable[[str], Any]


class Completion(msgspec.Struct, frozen=True):
    """What a model answered: its ``message``, and the ``value`` of what it was to answer in.

    That is data of a ``response_format`` of JSON, or a value of the type that was given for one;
    None of a text.

    >>> from sagents_nb import ScriptedModel
    >>> ScriptedModel(['{"high": 6}']).complete("?", response_format={"type": "json_object"}).value
    {'high': 6}
    """

    message: Message
    value: Any = None

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.message.text

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls that the model wants; none of them was run."""
        return self.message.tool_calls

    @property
    def usage(self) -> Usage | None:
        """The tokens that it took, where the model says so."""
        return self.message.usage

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"Completion({self.message.text!r})"


class Asked(msgspec.Struct, frozen=True):
    """What is asked of a model, and how its answer is read."""

    request: ModelRequest
    read: Callable[[str], Any] | None = None
    tool_choice: Any = None


def asked_for(
    model: ChatModel,
    prompt: Any,
    system: str,
    tools: Sequence[Tool | Callable[..., Any]],
    tool_choice: Any,
    response_format: Any,
    options: Mapping[str, Any],
) -> Asked:
    """What :meth:`~sagents_nb.ChatModel.complete` is to ask, with what it was given."""
    if isinstance(prompt, Message):
        prompt = [prompt]
    is_history = isinstance(prompt, list | tuple) and any(isinstance(m, Message) for m in prompt)
    messages = list(prompt) if is_history else [Message.user(prompt)]
    if not all(isinstance(message, Message) for message in messages):
        raise ConfigurationError("A history is a list of messages; one of it is none.")
    specs = tuple(as_tool(each).spec for each in tools)
    options = dict(options)
    if tool_choice is not None:
        if not specs and tool_choice not in ("auto", "none"):
            raise ConfigurationError("tool_choice names what to call, but there are no tools=….")
        if specs:
            options["tool_choice"] = tool_choice
    read = None
    if response_format is not None:
        wanted, read = _read_as(response_format)
        options["response_format"] = wanted
    request = ModelRequest(messages, system, specs, options, model=model.name)
    return Asked(request, read, tool_choice)


def _read_as(given: Any) -> tuple[dict[str, Any], Callable[[str], Any] | None]:
    """A response format as a request has it, and what reads the answer."""
    if not isinstance(given, Mapping):
        output = Output(given)
        schema = closed(output.schema)
        details = {"name": "answer", "schema": schema, "strict": requires_all(schema)}
        return {"type": "json_schema", "json_schema": details}, lambda text: output.read(
            _data(text)
        )
    form = read_format(given)
    return dict(given), _reader(form)


def _reader(form: ResponseFormat) -> Callable[[str], Any] | None:
    if form.kind == "text":
        return None
    if form.schema is None:
        return _data
    schema = JSONSchema(form.schema, "response_format")
    return lambda text: schema.checked(_data(text))


def _data(text: str) -> Any:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data


async def completed(model: ChatModel, asked: Asked, on_text: OnText | None = None) -> Completion:
    """Ask ``model``, again if that may help; ``on_text`` is given each piece of the text.

    What that raises ends the answer and is raised. Raises
    :class:`~sagents_nb.errors.ModelError` as :meth:`~sagents_nb.ChatModel.complete` says.
    """
    message = await _whole(resilient(model), asked.request, on_text)
    calls = bool(message.tool_calls)
    if asked.tool_choice == "none" and calls:
        raise ModelError(f"{model!r} called a tool, though tool_choice is 'none'.")
    if asked.tool_choice in ("required", "any") and not calls:
        raise ModelError(f"{model!r} called no tool, though tool_choice is {asked.tool_choice!r}.")
    if asked.read is None or calls:
        return Completion(message)
    try:
        return Completion(message, asked.read(message.text))
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:300]
    raise ModelError(
        f"The answer of {model!r} is not of its response_format: {reason}; ask again, or use a "
        "model that knows it."
    )


async def ask(model: ChatModel, system: str, text: str) -> Message:
    """The whole answer to ``text``, without tools and history; nothing of it is an event.

    Raises :class:`~sagents_nb.errors.ModelError` if the model fails, or if its answer is cut
    off, refused or without text.
    """
    answer = await _whole(model, ModelRequest([Message.user(text)], system, model=model.name))
    if not answer.text.strip():
        raise ModelError(f"The answer of {model!r} has no text.")
    return answer


async def _whole(model: ChatModel, request: ModelRequest, on_text: OnText | None = None) -> Message:
    tracing = current()
    if tracing is None:
        answer = await _last(model, request, on_text)
    else:
        with tracing.chat(model) as record:
            answer = await _last(model, request, on_text)
            record(answer, model.name, None)
    if answer.stop_reason not in _WHOLE:
        how = f"ended with {answer.stop_reason!r}" if answer.stop_reason else "has no stop_reason"
        reason = f": {answer.error}" if answer.error else ""
        raise ModelError(f"The answer of {model!r} {how}{reason}.")
    return answer


async def _last(model: ChatModel, request: ModelRequest, on_text: OnText | None) -> Message:
    answer: Message | None = None
    stream = stream_of(model, request)
    async with aclosing(stream):
        async for item in stream:
            if isinstance(item, Message):
                answer = item
            elif on_text is not None and isinstance(item, str | TextDelta):
                on_text(item if isinstance(item, str) else item.text)
    if answer is None:
        raise ModelError(f"{model!r} ended its stream without a final Message.", kind="cut_stream")
    if answer.usage is not None:
        answer = replace(answer, usage=told_usage(answer.usage, model.name))
    return answer
