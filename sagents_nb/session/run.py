"""A handle on one execution of a session."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, Protocol

from .. import kinds
from ..errors import AgentError, NotRunning
from ..events import AnyEvent, Event
from ..events import Interrupt as InterruptEvent
from ..interrupts import Interrupt
from ..messages import Usage
from ..result import RunResult
from ..runtime.event_stream import EventStream, TextStream
from ..runtime.face import asked_face
from ..runtime.futures import RunHandle
from ..state import State
from .headless import joined


class Conversing(Protocol):
    """The session of a run, as far as its handle needs it; from any thread."""

    @property
    def id(self) -> str:
        """What names it."""

    @property
    def current_run(self) -> Run | None:
        """The active run, or the last one; None before the first."""

    def follow(self, stream: EventStream, run_id: str, since: int = 0) -> None:
        """Feed ``stream`` with the events of one run, up to its next end."""

    def subscribe(self, callback: Callable[[AnyEvent], Any]) -> Callable[[], None]:
        """Call ``callback`` for every further event; gives the unsubscribe."""

    def hand(self, interrupt: Interrupt) -> None:
        """Whoever calls is handed it now: its next answer is meant for that."""

    def cancel_run(self, run: Run) -> None:
        """Stop that run, or take it out of the queue."""

    def by_policy(self, run: Run, result: RunResult) -> Run | None:
        """The run that goes on after ``run`` by itself, since nobody can be asked."""


class Run(RunHandle):
    """One execution: await it on any loop, wait for it in any thread, iterate its events.

    :meth:`Session.send` and those like it make it, of their ``session``, the id of the run
    (``run_id``), the last event before it (``since``) and its ``overrides``.
    ``for event in run`` waits for each event, ``async for`` lets others work meanwhile.

    A run that was resumed after an interrupt is a new handle with the same ``id``.

    >>> import sagents_nb as sa
    >>> run = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"]))).send("hi")
    >>> run.result(timeout=60).text, run.status, run.done
    ('Hello!', 'completed', True)
    """

    def __init__(
        self,
        session: Conversing,
        run_id: str,
        since: int = 0,
        overrides: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self.overrides = overrides  # of what the agent is, while it lasts
        self.session = session
        self.owner_id = session.id
        self.id = run_id
        self.since = since  # events up to this one belong to an earlier handle with this id
        self.context = contextvars.copy_context()  # tools see who sent it, also from the queue
        self.future.set_running_or_notify_cancel()  # an abandoned await must not cancel it
        self._in_line: Future[RunResult] | None = None  # who waits while it is queued waits for it

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.session.id!r}: {self.status}>"

    @property
    def done(self) -> bool:
        """Whether it has ended; an interrupt is an end of this handle."""
        return self.future.done()

    @property
    def status(self) -> str:
        """How it ended, or "running"."""
        if not self.future.done():
            return "running"
        error = self.future.exception()
        return "error" if error else self.future.result().status

    def ahead(self) -> Sequence[RunHandle]:
        """The active run, if this one waits in the queue."""
        now = self.session.current_run
        return () if now is None else (now,)

    def awaited(self) -> Future[RunResult]:
        """What those who wait for it wait for now: its end, or word that it cannot begin."""
        return self._in_line or self.future

    def wait_in_line(self) -> None:
        """It has others before it, which run; called on the runtime loop, as :meth:`stand`."""
        if self._in_line is None:
            self.future.add_done_callback(self._leave_line)
        if self._in_line is None or self._in_line.done():
            self._in_line = Future()
            self._in_line.set_running_or_notify_cancel()

    def stand(self, status: str) -> None:
        """Nothing before it runs any more, and nothing is under way that would start it.

        ``status`` is that of its session.
        """
        if self._in_line is not None and not self._in_line.done():
            self._in_line.set_exception(
                NotRunning(
                    f"Run {self.id} waits in the queue of session {self.owner_id!r}, which is "
                    f"{status}; session.retry() or the next message goes on, and run.cancel() "
                    "takes it out."
                )
            )

    def begin(self) -> None:
        """It is the active one; who waits from now on waits for its end."""
        if self._in_line is not None and self._in_line.done():
            self._in_line = None

    def _leave_line(self, ended: Future[RunResult]) -> None:
        in_line, self._in_line = self._in_line, None
        if in_line is not None and not in_line.done():
            error = ended.exception()
            in_line.set_exception(error) if error else in_line.set_result(ended.result())

    @kinds.checked
    def result(self, timeout: float | None = None, *, wait: bool = False) -> RunResult:
        """Its result, for a thread that waits up to ``timeout`` seconds; None waits for ever.

        With ``wait`` it is waited for through what people have to decide on the way: it is shown
        below the cell, and answered in the panel there while the cell runs. Then it goes on after
        ``timeout`` seconds, and :class:`~sagents_nb.errors.ConfigurationError` is raised where no
        panel would be heard meanwhile, and KeyboardInterrupt when it is stopped.

        Raises :class:`~sagents_nb.errors.AgentError` for a run that failed, TimeoutError, and as
        :meth:`RunHandle.result` says :class:`~sagents_nb.errors.Busy` and
        :class:`~sagents_nb.errors.NotRunning`.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> session.send("hi").result(timeout=60).text
        'Hello!'
        """
        if wait:
            return asked_face().wait(self, timeout)
        result = super().result(timeout)
        further = self.session.by_policy(self, result)
        return result if further is None else joined(result, further.result(timeout))

    async def _end(self) -> RunResult:
        result = await super()._end()
        further = self.session.by_policy(self, result)
        return result if further is None else joined(result, await further)

    def received(self, result: RunResult) -> None:
        """Whoever waited has its result now."""
        if result.status == "interrupted" and result.interrupt is not None:
            self.session.hand(result.interrupt)

    def _read(self, event: Event) -> None:
        if type(event) is InterruptEvent:
            self.session.hand(event.interrupt)

    def __iter__(self) -> Iterator[AnyEvent]:
        """Its events in a thread, up to its end; to leave the loop stops nothing."""
        return self.read(self.__aiter__())

    def text_stream(self) -> TextStream:
        """The answer piece by piece, for ``for`` and ``async for``.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> "".join(session.send("hi").text_stream())
        'Hello!'
        """
        return TextStream(self)

    def __aiter__(self) -> EventStream:
        stream = EventStream((), self._read, self.interrupt_check(), self.awaited_in_cell)
        self.session.follow(stream, self.id, self.since)
        self.future.add_done_callback(lambda _: stream.close())  # a queued run may never begin
        return stream

    def resolve(self, make: Callable[[], RunResult]) -> None:
        """It has ended with what ``make`` returns, or raises."""
        try:
            self.future.set_result(make())
        except AgentError as error:
            self.future.set_exception(error)

    def never_began(self, state: State) -> None:
        """It was taken out of the queue; ``state`` is that of its session."""
        cancelled = RunResult(
            status="cancelled",
            state=state,
            messages=[],
            usage=Usage(),
            duration=0.0,
            session_id=self.owner_id,
        )
        self.future.set_result(cancelled)

    def refused(self, error: BaseException) -> None:
        """Its message was not taken, as ``error`` says."""
        self.future.set_exception(error)

    def cancel(self) -> None:
        """Stop it if it is the active one, or take its message from the queue.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello! " * 99], delay=60)))
        >>> run = session.send("hi")
        >>> run.cancel()
        >>> run.result().status
        'cancelled'
        """
        self.session.cancel_run(self)

    @kinds.checked
    def events(self, callback: Callable[[AnyEvent], None]) -> Callable[[], None]:
        """Call ``callback`` for each further event of this run; returns the unsubscribe.

        It is called on the runtime loop, so it must not block.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello! " * 99], delay=60)))
        >>> run = session.send("hi")
        >>> types = []
        >>> stop = run.events(lambda event: types.append(event.type))
        >>> run.cancel()
        >>> run.result().status
        'cancelled'
        >>> stop()
        """
        return self.session.subscribe(
            lambda event: callback(event) if event.run_id == self.id else None
        )
