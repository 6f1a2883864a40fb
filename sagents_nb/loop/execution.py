"""One-off executions of a loop on the runtime thread, and what they start from and end with."""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import threading
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from typing import Any, Self

from ..budget import Meter
from ..context import RunContext
from ..errors import (
    AgentError,
    BudgetExceeded,
    ConfigurationError,
    FailuresExceeded,
    MaxRunsExceeded,
    NotRunning,
    pass_on,
)
from ..events import AnyEvent, Event
from ..foreign_messages import is_foreign_message, messages_from
from ..interrupts import Decision
from ..messages import FALLBACK, Message, Part, TextPart, image_of
from ..result import RunResult
from ..runtime.event_stream import EventStream, TextStream
from ..runtime.foreign import clock, took
from ..runtime.futures import RunHandle, enter, refuse_stopped
from ..runtime.thread import runtime
from ..serialization import unreadable
from ..state import State
from ..text import logger_of
from .config import Outcome
from .loop import Loop
from .model_call import is_blank
from .open_calls import open_calls

logger = logger_of(__name__)

Prompt = str | Message | Part | Mapping[str, Any] | Iterable[Any] | State


def observed(
    sink: Callable[[Event], None] | None, hooks: Sequence[Callable[..., Any]], ctx: RunContext
) -> Callable[[Event], None]:
    """``sink``, with every event shown to the ``on_event`` hooks as well."""

    def both(event: Event) -> None:
        if sink is not None:
            sink(event)
        for hook in hooks:
            began = clock()
            try:
                hook(event, ctx)
            except BaseException as error:  # who only watches cannot end the run
                pass_on(error)
                logger.exception("An on_event hook raised on %s", event.type)
            took(began, "The hook", hook)

    return both


# Our own: programs seed the common one to repeat themselves, and no run may have another's id.
_chance = random.Random()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_chance.seed)


def new_run_id() -> str:
    """A fresh run id, such as "run-3f0c9a1b22d4"."""
    return f"run-{_chance.getrandbits(48):012x}"


def starting_point(prompt: Prompt, state: State | None) -> tuple[State, list[Message]]:
    """The state a run starts from and the messages it adds.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for anything that is no message.
    """
    if isinstance(prompt, State):
        return (state.merge(prompt) if state else prompt), []
    return state or State(), messages_of(prompt)


def messages_of(prompt: Prompt) -> list[Message]:
    """What a prompt adds to a conversation, nothing for a state; raises ConfigurationError."""
    messages = [] if isinstance(prompt, State) else _messages_of(prompt)
    for number, message in enumerate(messages, start=1):
        if not isinstance(prompt, str) and (why := unreadable(message, Message)):
            raise ConfigurationError(f"Message {number} of the prompt cannot be kept: {why}.")
        if message.role == "user" and not _says_something(message):
            raise ConfigurationError("The prompt is empty; say something in it.")
    return messages


def _says_something(message: Message) -> bool:
    return any(not isinstance(p, TextPart) or p.text.strip() for p in message.parts)


def check_unanswered(state: State, messages: Sequence[Message]) -> None:
    """Raise NotRunning if a run would have nothing to answer: providers refuse to be asked so."""
    if messages:
        if _is_answer(messages[-1]):
            raise NotRunning(
                "There is nothing to answer: the prompt ends with an answer; end it with a message "
                "of the user, or give what came before as the state."
            )
        return
    if open_calls(state):
        return
    if not state.messages:
        raise NotRunning("There is nothing to answer: give the run a message.")
    if _is_answer(state.messages[-1]):
        raise NotRunning(
            "There is nothing to answer: the state ends with an answer; give the run a message."
        )


def _is_answer(message: Message) -> bool:
    asks = message.tool_calls or message.stop_reason == "pause_turn"
    return message.role == "assistant" and not asks and not is_blank(message)


def _messages_of(prompt: Any) -> list[Message]:
    if isinstance(prompt, str):
        return [Message.user(prompt)]
    if isinstance(prompt, Message) or is_foreign_message(prompt):
        return messages_from([prompt])
    if isinstance(prompt, Part | Mapping) or image_of(prompt) is not None:
        return [Message.user(prompt)]
    # Not everything that has items: a frame has the names of its columns, a set no order.
    if isinstance(prompt, bytes) or not isinstance(prompt, Sequence | Iterator):
        hint = "; write str(…), or name it in the text" if hasattr(prompt, "__iter__") else ""
        raise ConfigurationError(
            "A prompt is text, a Message, a list of them or a State, not "
            f"{type(prompt).__name__}{hint}."
        )
    items = list(prompt)
    if any(isinstance(item, Message) or is_foreign_message(item) for item in items):
        return messages_from(items)
    return [Message.user(items)] if items else []


class Execution(RunHandle):
    """A loop that was handed to the runtime thread: wait for it, await it, cancel it."""

    def __init__(
        self,
        loop: Loop,
        messages: Sequence[Message],
        decisions: Mapping[str, Decision] | None,
        overrides: dict[str, Any],
    ) -> None:
        super().__init__()
        refuse_stopped()
        self.loop = loop
        self.overrides = overrides
        self._task: asyncio.Task[Any] | None = None
        self.future = runtime.submit(self._run(messages, decisions))

    async def _run(
        self, messages: Sequence[Message], decisions: Mapping[str, Decision] | None
    ) -> RunResult:
        self._task = asyncio.current_task()
        enter(self)
        began = time.perf_counter()
        outcome = await self.loop.run(messages, decisions)
        self._task = None  # whose context has this one: the two would stay, with all they hold
        duration = time.perf_counter() - began
        ctx = self.loop.ctx
        return run_result(outcome, duration, self.overrides, ctx.local, ctx.meter)

    def cancel(self) -> None:
        """Stop it; from any thread, and harmless once it has ended."""
        self.loop.ctx.cancelled.set()

        def stop() -> None:
            if self._task is not None:
                self._task.cancel()
            self.inside.cancel()

        runtime.post(stop)


class ExecutionEvents:
    """The events of one run, for any loop or a thread, and its ``result`` at their end.

    The run begins with the first event that is asked for. Leaving ``for`` or ``async for`` before
    the last one cancels it, by ``break``, ``return`` or an exception, and so does the end of a
    ``with`` or ``async with`` block, or letting go of the object. The run does not wait for who
    reads, so what it did meanwhile is done, and may still be read. ``next`` and ``anext`` take one
    event and cancel nothing. Those who read the same one, in several threads or tasks, share its
    events. After its last event a run that failed raises its error.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> stream = Agent(ScriptedModel(["Hello! " * 99], delay=60)).stream("hi")
    >>> for event in stream:
    ...     if event.type == "turn_start":
    ...         break
    >>> stream.result.status
    'cancelled'
    """

    def __init__(
        self, begin: Callable[[EventStream], Execution | Coroutine[Any, Any, Execution]]
    ) -> None:
        self._begin = begin
        self._events = EventStream()
        self._execution: Execution | None = None
        self._lock = threading.RLock()  # many may read, begin and cancel it at once
        self._begins = False  # once, by the first who reads it, or never, since it was cancelled
        self._left = False  # it was cancelled
        self._failure: Exception | None = None  # why it did not begin

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        return _Reading(self)

    async def __anext__(self) -> AnyEvent:
        try:
            if (beginning := self._begin_once()) is not None:
                with self._noted():
                    self._began(await beginning)
            return await self._events.__anext__()
        except StopAsyncIteration:
            if (execution := self._started()) is not None:
                await execution  # raises what the run failed with
            raise
        except asyncio.CancelledError:
            self.cancel()
            raise

    def __iter__(self) -> Iterator[AnyEvent]:
        try:
            yield from self._read()
        except (GeneratorExit, KeyboardInterrupt):  # the loop was left
            self.cancel()
            raise

    def __next__(self) -> AnyEvent:
        return next(self._read())

    def _read(self) -> Iterator[AnyEvent]:
        if inspect.iscoroutinefunction(self._begin):
            raise ConfigurationError("These events are read by 'async for' alone.")
        self._begin_once()
        if (execution := self._started()) is not None:
            yield from execution.read(self._events)
            execution.future.result()  # raises what the run failed with

    def _begin_once(self) -> Coroutine[Any, Any, Execution] | None:
        """Begin it, unless somebody has or nobody shall; what is still to be awaited for that."""
        with self._lock:
            if self._begins:
                return None
            self._begins = True
            with self._noted():
                begun = self._begin(self._events)
            if not isinstance(begun, Execution):
                return begun
            self._began(begun)
            return None

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Others who wait for it hear why it cannot begin."""
        try:
            yield
        except BaseException as error:
            self._failure = error if isinstance(error, Exception) else None
            self._events.close()
            raise

    def _began(self, execution: Execution) -> None:
        with self._lock:
            self._execution = execution
        events = self._events  # not self: whoever lets go of it stops the run
        execution.future.add_done_callback(lambda _: events.close())
        if self._left:
            execution.cancel()

    def _started(self) -> Execution | None:
        """The run, or None while there is none; raises why it could not begin."""
        if self._failure is not None:
            raise self._failure
        return self._execution

    def text_stream(self) -> TextStream:
        """The answer piece by piece, for ``for`` and ``async for``; leaving them cancels, too."""
        return TextStream(self)

    @property
    def result(self) -> RunResult:
        """What the run came to; raises its error, or NotRunning before the last event.

        Of a run that was cancelled, or left, it is there without reading on: what is still to end
        is waited for, which raises :class:`~sagents_nb.errors.Busy` in an async tool or hook.
        """
        execution = self._started()
        if execution is not None and execution.future.done():
            return execution.future.result()
        if execution is None and self._left:
            raise NotRunning("The run was cancelled before it began; make another stream.")
        if execution is None or not execution.loop.ctx.is_cancelled:
            raise NotRunning("The run has not ended yet; read its events to the end first.")
        runtime.refuse_here("Waiting for the end of a run", "read on by 'async for' there")
        return execution.result()

    def cancel(self) -> None:
        """Stop the run, from any thread; its last events still come, and nothing is raised.

        One that has not begun never does, and has no events. Harmless once it has ended.
        """
        with self._lock:
            self._left = True
            if not self._begins:
                self._begins = True
                self._events.close()
            execution = self._execution
        if execution is not None and not execution.future.done():
            execution.cancel()

    abort = cancel  # an older name

    async def aclose(self) -> None:
        """Cancel the run, as the end of a ``contextlib.aclosing`` block does."""
        self.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.cancel()

    def __del__(self) -> None:
        if hasattr(self, "_failure"):  # its making did not fail
            self.cancel()


class _Reading:
    """An ``async for`` over the events, which cancels the run once nobody holds it any more.

    No async generator: those end only when their loop gets to it.
    """

    def __init__(self, events: ExecutionEvents) -> None:
        self._events = events
        self._reads = False

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Coroutine[Any, Any, AnyEvent]:
        self._reads = True
        return self._events.__anext__()

    def __del__(self) -> None:
        if self._reads:  # else somebody only asked whether it can be read
            self._events.cancel()


_OF_ERRORS: tuple[tuple[type[AgentError], str], ...] = (
    (MaxRunsExceeded, "max_runs"),
    (FailuresExceeded, "max_failures"),
    (BudgetExceeded, "budget"),
)


def _finish_reason(outcome: Outcome) -> str:
    """In a word why it ended, as :class:`RunResult` says it."""
    if outcome.status == "error":
        return next(
            (reason for kind, reason in _OF_ERRORS if isinstance(outcome.error, kind)), "error"
        )
    if outcome.status != "completed":
        return outcome.status
    if outcome.tool_result is not None and not outcome.typed:
        return "until_tool"
    last = outcome.messages[-1:]
    return str(last[0].metadata.get(FALLBACK, "completed")) if last else "completed"


def run_result(
    outcome: Outcome,
    duration: float,
    overrides: dict[str, Any],
    local: dict[str, Any],
    meter: Meter | None = None,
    session_id: str = "",
) -> RunResult:
    """The result of an outcome; raises its error, with the result attached."""
    result = RunResult(
        status=outcome.status,
        state=outcome.state,
        messages=outcome.messages,
        usage=outcome.usage,
        duration=duration,
        tool_result=outcome.tool_result,
        artifacts=outcome.artifacts,
        overrides=overrides,
        local=local,
        meter=meter,
        typed=outcome.typed,
        session_id=session_id,
        sub_agents=outcome.sub_agents,
        model_calls=outcome.model_calls,
        finish_reason=_finish_reason(outcome),
    )
    error: AgentError | None = outcome.error
    if error is not None:
        error.result = result
        raise error
    return result
