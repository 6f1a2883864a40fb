"""One tool call, run: where its function belongs, whatever it does, to a result as data."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ..context import ToolContext
from ..errors import AgentError
from ..interrupts import ActionRequest, Interrupt
from ..messages import ContentPart, ToolCall, ToolResult
from ..runtime.main_thread import main_thread
from ..runtime.thread import runtime
from ..text import whole
from ..tools import Tool, ToolOutput


class Executed:
    """One call with its result, and what it wants changed or asked."""

    __slots__ = ("artifact", "error", "interrupt", "result", "status", "terminate", "update")

    def __init__(self, result: ToolResult) -> None:
        self.result = result
        self.status = "cancelled"
        self.error: AgentError | None = None
        self.update: dict[str, Any] = {}
        self.interrupt: Interrupt | None = None
        self.artifact: Any = None
        self.terminate = False


async def invoke(
    tool: Tool, call: ToolCall, arguments: Mapping[str, Any], context: ToolContext
) -> Executed:
    """Run the tool. Whatever it raises is a result; only a cancelled run gets through."""
    if tool.arguments.context_parameter:
        arguments = {**arguments, tool.arguments.context_parameter: context}
    limit: asyncio.Timeout | None = None
    try:
        if tool.timeout is None:
            value = await _call(tool, arguments)
        else:
            async with asyncio.timeout(tool.timeout) as limit:
                value = await _call(tool, arguments)
        executed = _executed(call, value)
        if executed.update:
            context.state.update(executed.update)  # an impossible one is the tool's error
        return executed
    except GeneratorExit:
        raise
    except asyncio.CancelledError:
        if context.cancelled:
            raise
        return _failure(call, "CancelledError: something that the tool waited for was cancelled")
    except KeyboardInterrupt:
        if tool.run_on == "main":  # a person stopped the kernel, so the whole run
            context.run.cancelled.set()
        return _failure(call, "KeyboardInterrupt: a person stopped this call")
    except BaseException as error:  # SystemExit too: it would end the runtime thread
        if isinstance(error, TimeoutError) and limit is not None and limit.expired():
            more = "" if tool.is_async else " It may still be working in the background."
            return _failure(call, f"Timed out after {tool.timeout:g} seconds.{more}")
        return _failure(call, f"{type(error).__name__}: {text_of(error)}")


async def _call(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    """What the function returns or raises, wherever it runs."""
    if tool.is_async:
        return await tool.function(**arguments)
    if tool.run_on == "main":
        outcome = await asyncio.wrap_future(
            main_thread.submit(_outcome, tool.function, arguments),
        )
    elif tool.run_on == "pool":
        run = contextvars.copy_context().run
        loop = asyncio.get_running_loop()
        outcome = await loop.run_in_executor(runtime.pool, run, _outcome, tool.function, arguments)
    else:
        outcome = _outcome(tool.function, arguments)
    value, error = outcome
    if error is not None:
        raise error
    return await value if inspect.isawaitable(value) else value


def _outcome(
    function: Callable[..., Any], arguments: Mapping[str, Any]
) -> tuple[Any, BaseException | None]:
    # As a value, since a future cannot carry every exception: StopIteration would be lost and
    # the run would wait for ever, SystemExit would end the thread that reads it.
    try:
        return function(**arguments), None
    except BaseException as error:
        return None, error


def _failure(call: ToolCall, text: str) -> Executed:
    return Executed(ToolResult(call.id, call.name, text_of(text), is_error=True))


def _executed(call: ToolCall, value: Any) -> Executed:
    if isinstance(value, Interrupt):
        if value.type == "halt":
            executed = Executed(ToolResult(call.id, call.name, "The run was halted here."))
            executed.interrupt = value
            return executed
        placeholder = value.message or "Waiting for a person's answer."
        executed = Executed(ToolResult(call.id, call.name, placeholder, is_interrupt=True))
        if not value.action_requests:
            request = ActionRequest(call.id, call.name, call.arguments, value.message, ("respond",))
            value = replace(value, action_requests=(request,))
        executed.interrupt = value
        return executed
    output = value if isinstance(value, ToolOutput) else ToolOutput(value)
    content = output.content
    if isinstance(content, ToolResult):
        executed = Executed(replace(content, tool_call_id=call.id, name=call.name))
    else:
        executed = Executed(
            ToolResult(
                call.id,
                call.name,
                content_of(content),
                is_error=output.is_error,
                metadata=output.metadata,
            )
        )
    executed.update = output.update
    executed.terminate = output.terminate
    executed.artifact = output.artifact
    return executed


def content_of(value: Any) -> str | list[ContentPart]:
    """A tool's value as content for the model: parts stay parts, the rest becomes text."""
    if isinstance(value, ContentPart):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(v, ContentPart) for v in value):
        return list(value)
    return text_of(value)


def text_of(value: Any) -> str:
    """Text as it is, other values as JSON, and what JSON cannot say as ``str``.

    Half characters (lone surrogates, as in some file names) become "?": no provider and no
    store takes them.
    """
    if not isinstance(value, str):
        try:
            return msgspec.json.encode(value).decode()
        except (TypeError, ValueError, RecursionError):
            value = _str(value)
    return str(whole(value))


def _str(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__}: its text failed with {type(error).__name__}>"
