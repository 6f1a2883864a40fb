"""Running one ``%%agent`` cell: start, show, wait, and leave a readable result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from IPython.display import display
from msgspec.structs import replace

from ..errors import SagentsError
from ..events import (
    AgentEnd,
    AgentStart,
    Event,
    MessageEnd,
    MessageWithdrawn,
    ToolExecutionEnd,
)
from ..messages import Message, ToolResult
from ..result import RunResult
from ..runtime.main_thread import main_thread
from ..runtime.thread import runtime
from ..session import Run, Session
from ..session.headless import closed, decide, joined
from ..transcript import markdown
from .capture import close_shown
from .outputs import Place, awaited, here, run_again, shown_in
from .status_text import (
    cleaning,
    interrupt_text,
    kept_text,
    markdown_output,
    superseded_text,
    under_way_text,
)
from .widget import Panel, bundle_beside, display_id_of, note_shown, run_view, show, update

# How often it is looked whether something has happened, in seconds.
_LOOKING = 0.05
# How long after an interrupt the order to shut down may come, in seconds.
SHUTDOWN = 0.5
STOPPED = "The run was stopped."
_TOO_LATE = "The cell was interrupted as its run had just ended."


async def run_cell(
    session: Session,
    prompt: str | Message,
    *,
    typed: bool,
    unattended: bool,
    plain: bool,
    background: bool,
    wait: bool,
) -> RunResult | None:
    """Send the prompt, show the run below the cell, and return its result.

    ``typed``: what people see of the prompt stands in the cell. ``unattended``: nobody can click,
    so the session's headless policy decides.
    """
    wait = wait and not plain  # there would be nothing to click
    main_thread.attach(asyncio.get_running_loop())
    unanswered = session.interrupt
    run = session.send(prompt)
    if unanswered is not None:
        print(kept_text(superseded_text(unanswered)))
    output = CellOutput(session, run.id, live=not (unattended or plain), typed=typed)
    output.show(session)
    if background:
        output.follow(session)
        return None
    try:
        with output.awaited():
            result = await _final_result(session, run, unattended, wait)
    except asyncio.CancelledError:
        await _wait_for_shutdown(session, run)
        stop_run(session, run)
        stopped_result = await _stopped_result(session, run)
        output.finish(session, stopped_result)
        had_ended = stopped_result is not None and stopped_result.status == "completed"
        raise KeyboardInterrupt(_TOO_LATE if had_ended else STOPPED) from None
    except SagentsError as error:
        output.finish(session, getattr(error, "result", None))
        raise
    output.finish(session, result)
    if result.status == "interrupted" and plain and not unattended:
        print(kept_text(interrupt_text(session)))
        waiting = result.interrupt.action_requests if result.interrupt else ()
        if waiting and all("approve" in request.allowed_decisions for request in waiting):
            print("Answer with %agent approve or %agent reject REASON.")
    if result.status == "cancelled":  # Run All must not go on as if there were an answer
        raise KeyboardInterrupt(STOPPED)
    return result


async def _final_result(session: Session, run: Run, unattended: bool, wait: bool) -> RunResult:
    """The result once nothing is left to decide."""
    result = None
    while True:
        result = joined(result, await asyncio.wrap_future(run.awaited()))
        if result.status != "interrupted" or not (unattended or wait):
            return result
        if unattended:
            following = run_by_policy(session, result)
            if following is None:
                return result
        else:
            while still_asks(session, run):
                await asyncio.sleep(_LOOKING)
            following = run_after(session, run)
            if following is None:
                return stopped(result, session)
        run = following


def stopped(result: RunResult, session: Session) -> RunResult:
    """``result`` of a run that was stopped while it waited, or answered by a new message."""
    result.status = "cancelled"
    result.state = session.state
    return result


def run_by_policy(session: Session, result: RunResult) -> Run | None:
    """The run that goes on as the policy decides; None if only a person can, which is said."""
    interrupt = result.interrupt
    if interrupt is None or not interrupt.action_requests:
        return None
    decisions = decide(session.headless, interrupt)
    if decisions is None:
        print(kept_text(f"Nobody is there to decide. {interrupt_text(session)}"))
        return None
    return session.resume(decisions, by="policy")


def still_asks(session: Session, run: Run) -> bool:
    """Whether what that run asked waits for an answer."""
    return session.status == "interrupted" and session.current_run is run


def current_handle(session: Session, run: Run) -> Run | None:
    """The handle that the run has now, another one after a decision; None if it is not current."""
    current = session.current_run
    return current if current is not None and current.id == run.id else None


def run_after(session: Session, run: Run) -> Run | None:
    """The run that goes on after the decision, or None if there is none."""
    following = current_handle(session, run)
    return None if following is run else following


async def _wait_for_shutdown(session: Session, run: Run) -> None:
    """Give a kernel that is shut down the time to end: what waits is to wait in the next one.

    Jupyter interrupts a kernel just before it shuts it down or restarts it. So a call that is at
    work is not said to be cancelled, which it may do all of: the next kernel asks whether it ran.
    Nothing else begins meanwhile.
    """
    if current_handle(session, run) is None:  # it waits behind another
        return
    runtime.call(session.actor.wind_down)
    until = time.monotonic() + SHUTDOWN
    with suppress(asyncio.CancelledError):  # a second interrupt is impatience
        while time.monotonic() < until:
            if session.status != "interrupted" and not session.pending_tool_calls:
                break
            await asyncio.sleep(_LOOKING)


def stop_run(session: Session, run: Run) -> None:
    """Stop what this cell began, not what it waits behind."""
    if current_handle(session, run) is not None:
        session.cancel()
    else:
        run.cancel()


async def _stopped_result(session: Session, run: Run) -> RunResult | None:
    run = current_handle(session, run) or run
    for _ in range(20):
        if run.done:
            break
        await asyncio.sleep(_LOOKING)
    return result_if_ended(run)


def result_if_ended(run: Run) -> RunResult | None:
    """The result of a run, None if it has none, or none yet."""
    if not run.done or run.future.exception() is not None:
        return None
    result: RunResult = run.future.result()
    return result


def show_run(session: Session, run: Run) -> None:
    """Show a run below a cell that does not wait for it."""
    output = CellOutput(session, run.id, live=True, typed=False)
    output.show(session)
    output.follow(session)


class CellOutput:
    """What stands below the cell: the live panel, and at the end the transcript beside it.

    Without a panel the transcript alone is shown, once: nbval compares the first display.
    """

    def __init__(self, session: Session, run_id: str, *, live: bool, typed: bool) -> None:
        self.panel: Panel | None = run_view(session, run_id, typed=typed) if live else None
        self.run_id = run_id
        self.text = under_way_text(session)
        self.place = here()

    def show(self, session: Session) -> None:
        """Put the panel below the cell, if there is one."""
        if self.panel is not None:
            self._show(session, self.panel)

    def _show(self, session: Session, panel: Panel) -> None:
        note_shown(panel, self.place)
        bundle = bundle_beside(panel, self.text)
        with shown_in(self.place):
            show(session, display_id_of(panel), bundle, lambda _: markdown_output(self.text))

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """While the cell waits: where it is run again its page has the panel in the new output.

        The panel says so, since the new request comes after this one and does not replace it.
        """
        if self.panel is None:
            yield
            return
        self.panel.waiting = 1 + run_again()
        try:
            with awaited(self.place, self._move):
                yield
        finally:
            self.panel.waiting = 0

    def _move(self, place: Place) -> None:
        session = self.panel and self.panel.session
        if place != self.place and self.panel is not None and session is not None:
            self.place = place
            self.panel.waiting += 1
            self._show(session, self.panel)

    def finish(self, session: Session, result: RunResult | None) -> None:
        """Show how it ended, as far as that is known, and what comes if its view has it go on."""
        if result is None:
            self._tell(session, "*The run has no answer.*")
        else:
            close_shown(result.messages)
            self._tell_said(session, closed(result.messages, session.state))
        self.follow(session, told=result is not None)

    def follow(self, session: Session, told: bool = False) -> None:
        """Show how it ended whenever it has, though the cell has ended before.

        Of the ends so far that was ``told``. It may go on until another run begins.
        """
        if self.panel is None:
            return
        panel, said, is_past = self.panel, list[Message](), True
        has_ended = is_over = False
        leaving: list[Callable[[], None]] = []

        def hear(event: Event) -> None:
            nonlocal said, has_ended
            if event.run_id != self.run_id:
                if isinstance(event, AgentStart) and has_ended:
                    leave()
            elif isinstance(event, AgentStart):
                has_ended = False
            elif isinstance(event, MessageEnd):
                said.append(event.message)
                tell()
            elif isinstance(event, ToolExecutionEnd):
                said = [_with_answer(message, event.result) for message in said]
                tell()
            elif isinstance(event, MessageWithdrawn):  # it never begins
                leave()
            elif isinstance(event, AgentEnd):
                has_ended = True
                tell()

        def tell() -> None:
            if has_ended and (session := panel.session) is not None and not (told and is_past):
                main_thread.submit(self._tell_said, session, [*said])

        def leave() -> None:
            nonlocal is_over
            is_over = True
            for let_go in leaving:
                let_go()

        def begin() -> None:
            nonlocal is_past
            leaving.append(session.subscribe(hear, since=0))
            is_past = False
            if is_over:
                leave()

        runtime.call(begin)  # where all of it is heard, so that nothing comes between

    def _tell_said(self, session: Session, messages: list[Message]) -> None:
        self._tell(session, markdown(messages, cleaning()))

    def _tell(self, session: Session, text: str) -> None:
        self.text = text
        if self.panel is None:
            display(markdown_output(self.text)[0], raw=True)
        else:
            update(session, display_id_of(self.panel), bundle_beside(self.panel, self.text))


def _with_answer(message: Message, result: ToolResult) -> Message:
    """``message``, with the result in the place of the question that its call asked."""
    asks = [r for r in message.tool_results if r.is_interrupt]
    if result.is_interrupt or all(r.tool_call_id != result.tool_call_id for r in asks):
        return message
    parts = (
        result if isinstance(p, ToolResult) and p.tool_call_id == result.tool_call_id else p
        for p in message.parts
    )
    return replace(message, parts=tuple(parts))
