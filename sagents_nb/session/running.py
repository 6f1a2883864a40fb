"""The runs of a session: one after the other, each to its end, and what becomes of it."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Mapping
from typing import Any

from ..budget import Meter
from ..errors import AgentError, Busy, ModelError, NotRunning
from ..interrupts import Decision
from ..loop.config import Outcome
from ..loop.execution import finished, new_run_id
from ..loop.loop import PAUSE_REASON, Loop
from ..loop.open_calls import open_calls
from ..messages import Message, Usage
from ..runtime.futures import outlast
from ..runtime.thread import runtime
from ..store.folding import LastRun
from .journal import RunRecorder
from .middleware_messages import Mailing
from .run import Run
from .transcript import ENDS


class Running(Mailing):
    """A session's runs. Everything here runs on the runtime loop."""

    _task: asyncio.Task[None] | None = None  # of the active run
    _recording: RunRecorder | None = None  # of the active run
    _meter: Meter | None = None  # of the last run, which may go on
    _answers: Mapping[str, Decision] | None = None  # all that a stopped run has to take yet
    _refused: Any = None  # why the answers to the active run could not be written

    def _start(
        self,
        run: Run,
        messages: list[Message],
        decisions: Mapping[str, Decision] | None = None,
        meter: Meter | None = None,
    ) -> Run:
        self._epoch += 1
        self.error = None
        self.current_run, self._run_id = run, run.id
        recording = None
        if self.recorder is not None:
            self.recorder.note(self._state)
            self.recorder.run(LastRun(run.id, "running", usage=self.usage))
        if self.recorder is not None or self.transcriber is not None:
            recording = RunRecorder(self.recorder, self.transcriber)
        self._recording = recording
        self._loop = loop = self.agent.loop(
            self._state,
            self._emitter.for_run(run.id),
            files=self.files,
            scope=self.scope,
            epoch=self._epoch,
            local=self.local,
            notify=self.notify,
            meter=meter,
            steering=self.queues.steering,
            follow_ups=self.queues.follow_ups,
            skip_rest=self.queues.skips_rest,
            should_pause=self.queues.takes_pause,
            recorder=recording,
        )
        self._meter = loop.ctx.meter
        self._set_status("running")
        self._task = None
        runtime.spawn(self._execute(run, loop, messages, decisions), run.context)
        return run

    def _start_next(self) -> Run:
        messages, run = self.queues.take()
        return self._start(run, messages, self._answers)  # what was answered is not lost to it

    async def _execute(
        self,
        run: Run,
        loop: Loop,
        messages: list[Message],
        decisions: Mapping[str, Decision] | None,
    ) -> None:
        began = time.perf_counter()
        if self._loop is loop:  # a task that is cancelled before its first step never ends a run
            self._task = asyncio.current_task()
        interrupt = loop.state.interrupt
        failure = await self._failure() or self._refused
        self._refused = None
        if failure is None:
            await self._booted(loop)
            outcome = await loop.run(messages, decisions, self._unfinished)
            refused = outcome.status == "interrupted" and loop.state.interrupt is interrupt
            if self._loop is loop and self.recorder is not None:
                if refused and interrupt is not None:
                    self.recorder.ask_again(interrupt)
                failure = await self._keep_end(run, loop, outcome)
                outcome.error = outcome.error or failure
                if failure is not None and outcome.status != "interrupted":
                    outcome.status = "error"
            if self._loop is loop:
                await self._tell_keepers(outcome)
            answers = None
        else:
            outcome, answers = self._not_begun(loop, messages, decisions, failure)
        go_on = False
        if self._loop is loop:  # else it was reset or closed: a late result changes nothing
            self._take_end(outcome, loop)
            self._answers = answers
            go_on = outcome.status == "completed" and self.queues.has_runs
            if not go_on:
                status = "idle" if outcome.status == "completed" else outcome.status
                self.queues.takes_pause()  # whoever asked too late does not mean the next run
                self._set_status(status, self.error or self._state.get_metadata(PAUSE_REASON))
            self.attendance.touch()
        run.resolve(lambda: finished(outcome, time.perf_counter() - began, {}, self.local))
        if go_on:
            self._start_next()
        while loop.mail:  # what came after the run had read the last
            self.notify(*loop.mail.popleft())

    def _not_begun(
        self,
        loop: Loop,
        messages: list[Message],
        decisions: Mapping[str, Decision] | None,
        failure: AgentError,
    ) -> tuple[Outcome, Mapping[str, Decision] | None]:
        """Nothing runs that is not written: messages wait on, decisions are asked for again."""
        if messages and self._loop is loop:
            self.queues.put_first(messages, Run(self.session, new_run_id()))
        status = "error" if decisions is None else "interrupted"
        answers = self._answers
        if answers is not None:  # those were written long ago
            status = "paused"
        outcome = Outcome(status, loop.state, [], Usage(), error=failure)
        outcome.unfinished = self._unfinished
        return outcome, answers

    async def _tell_keepers(self, outcome: Outcome) -> None:
        """Have transcript and state kept before the run's end is told, also when cancelled."""
        if isinstance(outcome.error, ModelError):
            self.debug("llm_error", error=str(outcome.error), error_type=outcome.error.kind)
        work = []
        if self.transcriber is not None:
            work.append(self.transcriber.end(outcome))
        if self.persister is not None:
            work.append(self.persister.keep(ENDS[outcome.status]))
        for kept in work:
            await outlast(asyncio.ensure_future(kept))

    def _take_end(self, outcome: Outcome, loop: Loop) -> None:
        self._state, self._loop, self._task = loop.state, None, None
        self._unfinished = outcome.unfinished
        self.usage += outcome.usage
        self.error = str(outcome.error) if outcome.error else None
        self.debug("state_updated", messages=len(self._state.messages))

    async def _keep_end(self, run: Run, loop: Loop, outcome: Outcome) -> AgentError | None:
        """Have the end of a run written; what middleware hears meanwhile belongs to it."""
        assert self.recorder is not None
        error = str(outcome.error) if outcome.error else None
        usage = self.usage + outcome.usage
        while True:
            self.recorder.note(loop.state)
            self.recorder.run(LastRun(run.id, outcome.status, error, usage))
            failure = await self._failure()
            if failure is not None or not loop.mail or self._loop is not loop:
                return failure
            await loop.read_mail()

    async def _failure(self) -> AgentError | None:
        """Wait until what happened so far is safe, also when cancelled; why it is not."""
        future = self.recorder.flush() if self.recorder is not None else None
        if future is None:
            return None
        done = runtime.loop.create_future()
        future.add_done_callback(lambda _: runtime.post(done.set_result, None))
        await outlast(done)
        error = future.exception()
        return error if error is None or isinstance(error, AgentError) else AgentError(str(error))

    def retry(self) -> Run:
        """Run again from the last user or tool message, or with what is queued, or go on."""
        self.check_open()
        if self.status in ("running", "interrupted"):
            raise Busy(f"Session {self.session.id!r} is {self.status}; retry needs it to be idle.")
        messages = self._state.messages
        last = messages[-1] if messages else Message("assistant")
        unanswered = last.role in ("user", "tool")
        if self._answers is not None or open_calls(self._state):
            run = Run(self.session, new_run_id())
            return self._start(run, [], decisions=self._answers, meter=self._meter)
        if self.status == "paused" and (unanswered or last.stop_reason == "pause_turn"):
            return self._start(Run(self.session, new_run_id()), [], meter=self._meter)
        while messages and messages[-1].role == "assistant" and messages[-1].error:
            self._state = self._state.set_messages(messages[:-1])
            messages = self._state.messages
        if not (messages and messages[-1].role in ("user", "tool")):
            if self.queues.has_runs:
                return self._start_next()
            if not (messages and self.queues.has_messages):
                raise NotRunning("There is nothing to retry: the last message is an answer.")
        return self._start(Run(self.session, new_run_id()), [])

    def pause(self, reason: str) -> None:
        """Ask the active run to stop after its next model call."""
        if self.status == "running":
            self.queues.ask_pause(reason)

    def cancel(self) -> None:
        """Stop the active run, or answer what waits as cancelled."""
        if self.status == "running" and self._loop is not None:
            self._loop.ctx.cancelled.set()
            self._stop_task()
        elif self.status in ("interrupted", "paused"):
            self._drop_interrupt("a person stopped the run")
            self._answers = None
            self._set_status("cancelled")

    def _stop_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _stop_now(self) -> None:
        """Let the active run go, whatever it still does, and all that waits for one."""
        if self._loop is not None:
            loop, self._loop = self._loop, None
            loop.ctx.cancelled.set()
            self._stop_task()
        if self._recording is not None:
            self._recording.stop()
        self._answers = None
        for run in self.queues.clear():
            self._never_begins(run)

    def _never_begins(self, run: Run) -> None:
        """Let who waits for that run know, once it is written; also if it cannot be."""
        tell = functools.partial(run.never_began, self._state)
        self.once_safe(tell, lambda error: tell())
