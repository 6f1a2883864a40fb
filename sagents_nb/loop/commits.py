"""How what happens becomes part of a conversation: the state, then the journal, then the events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from ..context import RunContext
from ..errors import AgentError, NotRunning, StoreError
from ..events import MessageEnd, MessageStart, TodosUpdated, TokenUsage
from ..messages import Message, ToolCall, ToolResult
from ..runtime.futures import woken_by
from ..state import State
from .config import Recorder, Transcribe
from .model_call import ModelAnswer


class Commits:
    """The commits of one run: nothing is told as kept that the recorder could not keep.

    Without a recorder everything is safe at once. A commit that waits is always waited for, also
    by a run that is cancelled meanwhile: then ``ctx.cancelled`` is set, where the loop looks.
    ``messages`` are the new ones that were told, ``model`` is the one that said last what it had
    used; after a ``failure`` the recorder is left alone, and what was added to the state is
    ``left`` without being transcribed.
    """

    def __init__(
        self, ctx: RunContext, recorder: Recorder | None, transcribe: Transcribe | None
    ) -> None:
        self.ctx = ctx
        self.messages: list[Message] = []
        self.left: list[Message] = []
        self.model = ""
        self.failure: AgentError | None = None
        self.records = recorder is not None or transcribe is not None
        self._recorder = recorder
        self._transcribe = transcribe
        self._stopped = False
        self._kept: State | None = None
        self._todos = ctx.state.todos
        if self.records:
            ctx.held = []

    def stop(self) -> None:
        """Commit no more: whoever had this run goes on without it."""
        self._stopped = True

    async def keep(self, **more: Any) -> None:
        """Return once the state is safe, having told what waited for it; raises AgentError.

        ``more`` as for :meth:`~sagents_nb.loop.config.Recorder.keep`.
        """
        ctx = self.ctx
        if self.records:
            if self._kept is not ctx.state:
                state = ctx.state
                await self._commit(partial(self._keep, state, more))
                self._kept = state
            if ctx.held:
                held, ctx.held = ctx.held, []
                for kind, fields in held:
                    ctx.emitter.emit(kind, **fields)

    async def append(self, message: Message) -> None:
        """Make it a part of the conversation."""
        self.ctx.state = self.ctx.state.add_message(message)
        if self.records:
            await self._keep_message(message)
        self.messages.append(message)
        emitter = self.ctx.emitter
        if emitter.sink is not None:
            emitter.emit(MessageStart, message=message)
            emitter.emit(MessageEnd, message=message)

    async def append_answer(
        self, answer: ModelAnswer, *, begins: Sequence[ToolCall] = (), ends: bool = False
    ) -> None:
        """Make what the model said, whose beginning was told, a part of the conversation.

        ``begins`` and ``ends`` as for :meth:`~sagents_nb.loop.config.Recorder.keep`.
        """
        message, ctx = answer.message, self.ctx
        ctx.state = ctx.state.add_message(message)
        if self.records:
            await self._keep_message(message, begins=begins, ends=ends)
        self.messages.append(message)
        if message.usage is not None:
            self.model = answer.model
        if ctx.emitter.sink is not None:
            ctx.emitter.emit(MessageEnd, message=message)
            if message.usage is not None:
                ctx.emitter.emit(TokenUsage, usage=message.usage, model=answer.model)

    async def _keep_message(self, message: Message, **more: Any) -> None:
        if self.failure is not None:  # it may yet be no part of the conversation
            self.left.append(message)
            raise self.failure
        transcribing = None if self._transcribe is None else self._transcribe(message)
        try:
            await self.keep(**more)
        except BaseException:
            if transcribing is not None:
                transcribing.close()
            raise
        if transcribing is not None:
            loop = asyncio.get_running_loop()
            await self._commit(partial(asyncio.run_coroutine_threadsafe, transcribing, loop))

    async def tell_changes(self) -> None:
        """Tell what changed in the state besides messages."""
        if self.ctx.state.todos is not self._todos:
            await self.keep()
            self._todos = self.ctx.state.todos
            self.ctx.emitter.emit(TodosUpdated, todos=tuple(self._todos))
        elif self.ctx.held:
            await self.keep()

    async def starting(self, call: ToolCall) -> None:
        """Return once its body may run; raises AgentError if it must not."""
        if self.records:
            await self._commit(partial(self._starting, call))
            self._check()

    def finished(self, call: ToolCall, result: ToolResult) -> None:
        """Note the result of a call whose body was run; raises AgentError."""
        if self.records:
            try:
                self._check()
                if self._recorder is not None:
                    self._recorder.finished(call, result)
            except Exception as error:
                self.failure = self.failure or _store_error(error)
                raise self.failure from error

    def _check(self) -> None:
        if self._stopped:
            raise NotRunning("The session went on without this run, so nothing of it is kept.")

    def _keep(self, state: State, more: Mapping[str, Any]) -> Future[None] | None:
        self._check()
        return None if self._recorder is None else self._recorder.keep(state, **more)

    def _starting(self, call: ToolCall) -> Future[None] | None:
        self._check()
        return None if self._recorder is None else self._recorder.starting(call)

    async def _commit(self, write: Callable[[], Future[None] | None]) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            safe = write()
            while safe is not None and not safe.done():
                try:
                    await woken_by(safe)
                except asyncio.CancelledError:
                    self.ctx.cancelled.set()
            if safe is not None:
                safe.result()
        except Exception as error:
            self.failure = _store_error(error)
            raise self.failure from error


def _store_error(error: BaseException) -> AgentError:
    if isinstance(error, AgentError):
        return error
    return StoreError(
        f"The journal could not be written: {type(error).__name__}: {error}; "
        "the conversation goes on as soon as it can be."
    )
