"""One tool call, run: where its function belongs, whatever it does, to a result as data."""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
import traceback
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import CoroutineType, MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from ..context import ToolContext
from ..errors import AgentError, ConfigurationError, pass_on
from ..interrupts import ActionRequest, Interrupt
from ..messages import DECLINED, NOT_RUN, TRACEBACK, ToolCall, ToolResult
from ..redaction import secrets_of_names, texts_in, without, without_known
from ..runtime.caller import run_on_caller
from ..runtime.foreign import TURN, clock, stepwise, took
from ..runtime.futures import CancelScope, executing, in_tool, wait_uncancelled, woken_by
from ..runtime.main_thread import main_thread
from ..runtime.workers import outcome_of, workers
from ..serialization import unreadable
from ..text import logger_of, said_by, whole
from ..tools import Tool, ToolOutput
from .open_calls import cancelled_result
from .tool_values import NO_OUTPUT, PLAIN, Tell, content_of, drained, drained_async, text_of

logger = logger_of(__name__)

# How long a tool that is cancelled may clean up after itself, in seconds.
GRACE = 2.0

# And how long one on the main thread may take to say what it has done until it was interrupted,
# or interrupted once more: code in C may not hear of that for a long time, and somebody waits.
LAST_WORDS = 0.7

NO_CHANGE: Mapping[str, Any] = MappingProxyType({})


class Executed(msgspec.Struct, frozen=True):
    """One call with its result, and what it wants changed or asked.

    ``status`` is that of :class:`~sagents_nb.events.ToolExecutionEnd`, ``raised`` what the tool
    itself raised.
    """

    result: ToolResult
    status: str = "completed"
    error: AgentError | None = None
    update: Mapping[str, Any] = NO_CHANGE
    interrupt: Interrupt | None = None
    artifact: Any = None
    terminate: bool = False
    raised: BaseException | None = None


async def invoke(
    tool: Tool,
    call: ToolCall,
    arguments: Mapping[str, Any],
    context: ToolContext,
    timeout: float | None = None,
) -> Executed:
    """Run the tool. Whatever it raises is a result; only a cancelled run gets through.

    ``timeout``, in seconds, is for a tool without one of its own. What is async ends with the
    seconds of a budget, too.
    """
    timeout = timeout if tool.timeout is None else tool.timeout
    meter = context.run.meter
    left = meter.seconds_left if meter.limited and tool.is_async else None
    ends_run = left is not None and (timeout is None or left < timeout)
    if ends_run:
        timeout = left
    if tool.arguments.context_parameter:
        arguments = {**arguments, tool.arguments.context_parameter: context}
    scope = CancelScope()
    scope.enter()  # in the context of the call's own task, for good
    try:
        work = _call(tool, arguments, context)
        if timeout is None or timeout == math.inf:
            value = await work
        else:
            value = await _within(timeout, work, tool)
        executed = _executed(call, value)
        if executed.update:
            context.state.update(executed.update)  # an impossible one is the tool's error
        return executed
    except asyncio.CancelledError:
        scope.cancel()
        if context.cancelled:
            raise
        return _failure(call, "CancelledError: something that the tool waited for was cancelled")
    except KeyboardInterrupt:
        if tool.run_on != "main":
            return _failure(call, "KeyboardInterrupt: a person stopped this call")
        context.run.cancelled.set()
        result = cancelled_result(call)
        return Executed(result, result.status)
    except _TimedOut as late:
        scope.cancel()
        if ends_run:
            spent = meter.out_of_time()
            return replace(_failure(call, f"Stopped: {spent}"), error=spent)
        more = " It may still be working in the background." if late.goes_on else ""
        return _failure(call, f"Timed out after {timeout:g} seconds.{more}", done=late.done)
    except BaseException as error:  # SystemExit too: it would end the runtime thread
        pass_on(error)
        told = _told(error, context)
        logger.warning("The tool %s raised:\n%s", tool.name, told)
        said = without(said_by(error), secrets_of_names(context.values))
        return _failure(call, said + _advice(error), told, error)


class _TimedOut(Exception):
    """The tool took longer than it may; it may go on if it cannot be stopped.

    ``done`` is what it says that it has done until it was.
    """

    def __init__(self, goes_on: bool, done: ToolOutput | None = None) -> None:
        super().__init__()
        self.goes_on = goes_on
        self.done = done


async def _within(timeout: float, work: Awaitable[Any], tool: Tool) -> Any:
    """What ``work`` gives in that time.

    In a task of its own, so that one which takes no notice of being cancelled is left to itself.
    """
    task = asyncio.ensure_future(_outcome(work))
    try:
        await asyncio.wait([task], timeout=timeout)
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=GRACE)
            if not task.done():
                _abandon(task, tool)
                raise _TimedOut(goes_on=True)
            if task.cancelled():
                raise _TimedOut(goes_on=not tool.is_async)  # a thread goes on
            value, error = task.result()
            if isinstance(error, KeyboardInterrupt):
                raise _TimedOut(goes_on=False)
            if isinstance(value, ToolOutput) and value.metadata.get(NOT_RUN) == "cancelled":
                raise _TimedOut(goes_on=False, done=value)
    except asyncio.CancelledError:
        task.cancel()
        await wait_uncancelled(task)
        if task.cancelled():
            raise
    value, error = task.result()
    if error is not None:
        raise error
    return value


_Outcome = tuple[Any, BaseException | None]


async def _outcome(work: Awaitable[Any]) -> _Outcome:
    """What it gives and what it raises: SystemExit in a task would end the runtime thread."""
    try:
        return await work, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error


_ON_CALLER = (
    " An async tool runs on a loop of its own; @tool(run_on='caller') runs it on the one that "
    "started the run, where what it uses was made."
)


def _advice(error: BaseException) -> str:
    """What to do about an object of the caller's loop: asyncio's words are the only sign of it."""
    other_loop = issubclass(type(error), RuntimeError) and "different loop" in text_of(error)
    return _ON_CALLER if other_loop else ""


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def _turn() -> asyncio.Lock:
    """Held by the one tool that runs on the loop itself: many may be ready at once."""
    loop = asyncio.get_running_loop()
    return _turns.get(loop) or _turns.setdefault(loop, asyncio.Lock())


def _call(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Awaitable[Any]:
    """To await for what the function returns or raises, wherever it runs."""
    if not tool.is_async or tool.run_on == "caller":
        return _call_elsewhere(tool, arguments, context)
    _still_wanted(context)
    in_tool.set(executing.get())  # in the context of the call's own task, for good
    value = tool.function(**arguments)
    work = value if type(value) is CoroutineType else _work(value, context.progress)
    return stepwise(work, "The tool", tool.function)


async def _call_elsewhere(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Any:
    function = partial(tool.function, **arguments)
    if tool.run_on == "caller":
        return await run_on_caller(_awaited, function, context)
    body = partial(_ready, function, context)
    if tool.run_on == "main":
        outcome = await _on_main_thread(body, context)
    elif tool.run_on == "pool":
        outcome = await _in_thread(tool, body)
    else:
        async with _turn():
            began = clock()
            outcome = outcome_of(body)
            took(began, "The tool", function)
            if clock() - began > TURN:  # the next one waits, and others have their turn before
                await asyncio.sleep(0)
    value, error = outcome
    if error is not None:
        raise error
    if type(value) not in PLAIN and _has_more(value):
        in_tool.set(executing.get())
        return await stepwise(_work(value, context.progress), "The tool", function)
    return value


async def _on_main_thread(function: Callable[[], Any], context: ToolContext) -> _Outcome:
    """Its outcome there; of one that was interrupted, by whomever, what it has done until then.

    What that would still await is not begun.
    """
    work = main_thread.submit_call(outcome_of, function)
    try:
        await woken_by(work)
    except asyncio.CancelledError:  # by a timeout, or with the run
        if not work.cancel():
            main_thread.interrupt(work)
            await asyncio.wait([woken_by(work)], timeout=LAST_WORDS)
        if not work.done():
            raise
    if work.by_person:
        context.run.cancelled.set()
        if (run := executing.get()) is not None:
            run.interrupt_all()
    if work.cancelled():
        return None, KeyboardInterrupt()
    outcome, error = outcome_of(work.result)
    value, error = outcome or (None, error)
    return (None, KeyboardInterrupt()) if work.interrupted and _has_more(value) else (value, error)


def _still_wanted(context: ToolContext) -> None:
    """Raise CancelledError if the run was cancelled while the call was on its way to its place."""
    if context.run.is_cancelled:
        raise asyncio.CancelledError


def _ready(function: Callable[[], Any], context: ToolContext) -> Any:
    """What the function gives, as far as can be as content: where it ran, that holds up nobody."""
    _still_wanted(context)
    value = drained(function, context.progress)
    output = value if isinstance(value, ToolOutput) else None
    inner = value if output is None else output.content
    plain = type(inner) in PLAIN and type(inner) is not dict  # which may hold anything
    if plain or isinstance(inner, Interrupt | ToolResult) or _has_more(inner):
        return value
    output = ToolOutput() if output is None else copy.copy(output)
    output.content = content_of(inner)
    return output


def _has_more(value: Any) -> bool:
    """Whether a sync function gave what has to be awaited."""
    return inspect.isawaitable(value) or inspect.isasyncgen(value)


async def _awaited(function: Callable[[], Any], context: ToolContext) -> Any:
    _still_wanted(context)
    return await _work(function(), context.progress)


def _work(value: Any, tell: Tell) -> Awaitable[Any]:
    """What an async function gave, to await: a generator's pieces are gathered."""
    work: Awaitable[Any] = drained_async(value, tell) if inspect.isasyncgen(value) else value
    return work


async def _in_thread(tool: Tool, function: partial[Any]) -> Any:
    future = workers.submit(outcome_of, function)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:  # by a timeout, or with the run: it goes on, as threads do
        _abandon(future, tool)
        raise


def _abandon(work: Future[Any] | asyncio.Future[Any], tool: Tool) -> None:
    run = executing.get()
    workers.abandon(work, run.owner_id if run else "", tool.name)


def _failure(
    call: ToolCall,
    text: str,
    told: str = "",
    raised: BaseException | None = None,
    done: ToolOutput | None = None,
) -> Executed:
    """The call failed, which ``text`` says; behind what it says that it had ``done``."""
    metadata = {TRACEBACK: told} if told else {}
    content: Any = text_of(text)
    if done is not None:
        before = content_of(done.content)
        metadata |= {name: value for name, value in done.metadata.items() if name != NOT_RUN}
        content = f"{before}\n{content}" if isinstance(before, str) else [*before, content]
    result = ToolResult(call.id, call.name, content_of(content), is_error=True, metadata=metadata)
    return Executed(result, "failed", raised=raised)


_PACKAGE = str(Path(__file__).parents[1])
_MOST_TOLD = 8_000  # characters of a traceback, its end


def _told(error: BaseException, context: ToolContext) -> str:
    """The traceback from the tool's own code on, without secrets."""
    try:
        began = error.__traceback__
        while began is not None and began.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            began = began.tb_next
        lines = traceback.format_exception(type(error), error, began)
    except BaseException as odd:  # of an exception that cannot be told
        pass_on(odd)
        return ""
    text = whole("".join(lines)).rstrip()[-_MOST_TOLD:]
    return without(without_known(text), texts_in(dict(context.values)))


async def refusal(
    tool: Tool, call: ToolCall, arguments: dict[str, Any], context: ToolContext
) -> ToolResult | None:
    """The result of a call that its tool would refuse, as it says itself; None if it would not.

    Whatever goes wrong there, and what takes longer than the tool may: it is asked about then.
    """
    try:
        work = tool.refusal(arguments, context)
        output = await work if tool.timeout is None else await _within(tool.timeout, work, tool)
        if not isinstance(output, ToolOutput):
            return None
        metadata = {**output.metadata, DECLINED: True}
        return _result(call, output.content, True, metadata)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if context.cancelled or (task is not None and task.cancelling()):
            raise
    except BaseException as error:
        pass_on(error)
    return None


def _executed(call: ToolCall, value: Any) -> Executed:
    if type(value) in PLAIN:
        text = NO_OUTPUT if value is None else text_of(value)
        return Executed(ToolResult(call.id, call.name, text))
    if isinstance(value, Interrupt):
        if value.type == "halt":
            halted = ToolResult(call.id, call.name, "The run was halted here.")
            return Executed(halted, "interrupted", interrupt=value)
        placeholder = value.message or "Waiting for a person's answer."
        if not value.action_requests:
            request = ActionRequest(call.id, call.name, call.arguments, value.message, ("respond",))
            value = replace(value, action_requests=(request,))
        waiting = ToolResult(call.id, call.name, placeholder, is_interrupt=True)
        return Executed(waiting, "interrupted", interrupt=value)
    if not isinstance(value, ToolOutput):
        result = _result(call, value)
        return Executed(result, result.status)
    result = _result(call, value.content, value.is_error, value.metadata)
    return Executed(
        result,
        result.status,
        update=value.update,
        terminate=value.terminate,
        artifact=value.artifact,
    )


def _readable(result: ToolResult) -> ToolResult:
    """It; raises for what a tool put together by hand and nobody could read again."""
    if why := unreadable(result, ToolResult):
        raise ConfigurationError(f"The tool {result.name} gave what cannot be kept: {why}.")
    return result


def _result(
    call: ToolCall, content: Any, is_error: bool = False, metadata: Mapping[str, Any] = {}
) -> ToolResult:
    if isinstance(content, ToolResult):
        return _readable(replace(content, tool_call_id=call.id, name=call.name))
    result = ToolResult(
        call.id, call.name, content_of(content), is_error=is_error, metadata=dict(metadata)
    )
    return result if isinstance(result.content, str) else _readable(result)
