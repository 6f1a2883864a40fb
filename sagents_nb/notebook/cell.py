"""Running one ``%%agent`` cell: start, show, wait, and leave a readable result."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from IPython.display import display, update_display

from ..errors import SagentsError
from ..messages import Message, Usage
from ..result import RunResult
from ..runtime.main_thread import main_thread
from ..session import Run, Session
from ..state import State
from ..transcript import inert, markdown
from .status_text import interrupt_text
from .unattended import decide
from .widget import MimeBundle, Panel, run_view, show

# An idle loop does not notice the kernel's interrupt before something wakes it.
HEARTBEAT = 0.1
# How long after an interrupt the order to shut down may come, in seconds.
SHUTDOWN = 0.5


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

    ``typed``: the prompt stands in the cell as it is sent. ``unattended``: nobody can click, so
    the session's headless policy decides.
    """
    wait = wait and not plain  # there would be nothing to click
    main_thread.attach(asyncio.get_running_loop())
    run = session.send(prompt)
    output = _CellOutput(session, run, live=not (unattended or plain), typed=typed)
    if background:
        return None
    try:
        result = await _final_result(session, run, unattended, wait)
    except asyncio.CancelledError:
        await _wait_for_shutdown(session)
        _stop(session, run)
        output.finish(await _stopped_result(session, run))
        raise KeyboardInterrupt("The run was stopped.") from None
    except SagentsError as error:
        output.finish(getattr(error, "result", None))
        raise
    output.finish(result)
    if result.status == "cancelled":  # Run All must not go on as if there were an answer
        raise KeyboardInterrupt("The run was stopped.")
    return result


async def _final_result(session: Session, run: Run, unattended: bool, wait: bool) -> RunResult:
    """The result once nothing is left to decide."""
    messages: list[Message] = []
    usage, duration = Usage(), 0.0
    while True:
        result = await _heartbeat(run)
        messages = [*_answered(messages, result.state), *result.messages]
        usage += result.usage
        duration += result.duration
        result.messages, result.usage, result.duration = messages, usage, duration
        interrupt = result.interrupt
        if result.status != "interrupted" or interrupt is None:
            return result
        if unattended and interrupt.action_requests:
            decisions = decide(session.headless, interrupt)
            if decisions is None:
                print(f"Nobody is there to decide. {interrupt_text(session)}")
                return result
            run = session.resume(decisions, by="policy")
            continue
        if unattended or not wait:
            return result
        following = await _run_after_decision(session, run)
        if following is None:  # stopped while it waited, or answered by a new message
            result.status = "cancelled"
            result.state = session.state
            return result
        run = following


def _answered(messages: list[Message], state: State) -> list[Message]:
    """With the answers of people, where something stood for them until they came."""
    waited = [m for m in messages if any(r.is_interrupt for r in m.tool_results)]
    if not waited:
        return messages
    now = {r.tool_call_id: m for m in state.messages for r in m.tool_results}
    found = {id(m): now.get(m.tool_results[0].tool_call_id, m) for m in waited}
    return [found.get(id(m), m) for m in messages]


async def _heartbeat(run: Run) -> RunResult:
    waiting = asyncio.wrap_future(run.awaited())
    while not waiting.done():
        await asyncio.wait({waiting}, timeout=HEARTBEAT)
    return waiting.result()


async def _run_after_decision(session: Session, run: Run) -> Run | None:
    """The run that goes on after the decision, or None if there is none."""
    while session.status == "interrupted" and session.current_run is run:
        await asyncio.sleep(HEARTBEAT / 2)
    following = session.current_run
    if following is None or following is run or following.id != run.id:
        return None
    return following


async def _wait_for_shutdown(session: Session) -> None:
    """Give a kernel that is shut down the time to end: what waits is to wait in the next one.

    Jupyter interrupts a kernel just before it shuts it down or restarts it.
    """
    if session.status == "interrupted":
        with suppress(asyncio.CancelledError):  # a second interrupt is impatience
            await asyncio.sleep(SHUTDOWN)


def _stop(session: Session, run: Run) -> None:
    """Stop what this cell began, not what it waits behind."""
    current = session.current_run
    if current is not None and current.id == run.id:  # after a decision it is another handle
        session.cancel()
    else:
        run.cancel()


async def _stopped_result(session: Session, run: Run) -> RunResult | None:
    current = session.current_run
    if current is not None and current.id == run.id:
        run = current
    for _ in range(20):
        if run.done:
            break
        await asyncio.sleep(HEARTBEAT / 2)
    if not run.done or run.future.exception() is not None:
        return None
    result: RunResult = run.future.result()
    return result


class _CellOutput:
    """What stands below the cell: the live panel, and at the end the transcript beside it.

    Without a panel the transcript alone is shown, once: nbval compares the first display.
    """

    def __init__(self, session: Session, run: Run, *, live: bool, typed: bool) -> None:
        self.panel: Panel | None = run_view(session, run.id, typed=typed) if live else None
        self.display_id = f"sagents-{run.id}"
        self.text = "*The agent is working.*"
        if self.panel is not None:
            bundle = self.panel.mimebundle(self.text)
            show(session, self.display_id, bundle, lambda _: self._static())

    def _static(self) -> MimeBundle:
        return {"text/plain": self.text, "text/markdown": inert(self.text)}, {}

    def finish(self, result: RunResult | None) -> None:
        """Show how it ended, if that is known."""
        if result is None:
            return
        self.text = markdown(result.messages)
        if self.panel is None:
            display(self._static()[0], raw=True)
        else:
            data, metadata = self.panel.mimebundle(self.text)
            update_display(data, metadata=metadata, raw=True, display_id=self.display_id)
