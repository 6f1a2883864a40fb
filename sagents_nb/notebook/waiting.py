"""``wait=True``: a cell of sync code waits for a run, and for what people answer it meanwhile.

Answers reach a kernel that is busy with its cell on the comm of commands: see ``control.py``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any

from ..agent import Agent
from ..errors import ConfigurationError, SagentsError
from ..events import Event, StatusChanged
from ..loop.execution import Prompt, check_unanswered, starting_point
from ..result import RunResult
from ..runtime.main_thread import main_thread
from ..session import Run, Session
from ..session.headless import joined
from ..state import State
from .cell import (
    STOPPED,
    CellOutput,
    current_handle,
    result_if_ended,
    run_after,
    run_by_policy,
    still_asks,
    stop_run,
    stopped,
)
from .cells import unattended
from .widget import heard_while_busy

# After so many seconds of waiting it is said that no page is heard.
PATIENCE = 10.0
# How long a stopped run may take to end before the cell is left, in seconds.
ENDING = 1.0

UNHEARD = (
    "No page is heard while this cell runs, so what is clicked may do nothing before it ends. "
    "Interrupt the kernel, and use %%agent or 'await run' here instead."
)


class NotebookFace:
    """Shows runs below the cells that wait for them, and waits for their answers."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def run(
        self, agent: Agent, prompt: Prompt, state: State | None, overrides: Mapping[str, Any]
    ) -> RunResult:
        """Run the agent to its end, in a session of its own."""
        self._check()
        base, messages = starting_point(prompt, state)
        check_unanswered(base, messages)
        session = Session(agent.overridden(overrides), state=base, filesystem=agent.files)
        return self.wait(session.send(messages) if messages else session.retry(), None)

    def wait(self, run: Run, timeout: float | None) -> RunResult:
        """Wait up to ``timeout`` seconds for the run's end; its session is asked meanwhile."""
        self._check()
        session = run.session
        assert isinstance(session, Session)
        end = None if timeout is None else time.monotonic() + timeout
        unheard = unattended(self._shell)
        try:
            output = CellOutput(session, run.id, live=not unheard, typed=False)
        except KeyboardInterrupt:  # at the worst moment
            stop_run(session, run)
            raise
        try:
            output.show(session)
            with output.awaited():
                result = _final_result(session, run, unheard, end)
        except KeyboardInterrupt:
            stop_run(session, run)
            output.finish(session, _result_of_stopped(session, run))
            raise
        except TimeoutError:
            output.follow(session)
            raise
        except SagentsError as error:
            output.finish(session, getattr(error, "result", None))
            raise
        output.finish(session, result)
        if result.status == "cancelled":  # Run All must not go on as if there were an answer
            raise KeyboardInterrupt(STOPPED)
        return result

    def _check(self) -> None:
        kernel = getattr(self._shell, "kernel", None)
        if unattended(self._shell) or kernel is None:
            return
        if "kernel subshells" not in getattr(kernel, "kernel_info", {}).get(
            "supported_features", ()
        ):
            raise ConfigurationError(
                "wait=True needs a kernel that hears clicks while a cell runs, ipykernel 7 or "
                "newer; here use %%agent, or 'await agent.arun(…)' and 'await run'."
            )


def _final_result(session: Session, run: Run, unheard: bool, end: float | None) -> RunResult:
    """The result once nothing is left to decide; ``end`` is a time of the monotonic clock."""
    result = None
    while True:
        result = joined(result, run.result(_left(end)))
        if result.status != "interrupted":
            return result
        if unheard:
            following = run_by_policy(session, result)
            if following is None:
                return result
        else:
            _await_answer(session, run, end)
            following = run_after(session, run)
            if following is None:
                return stopped(result, session)
        run = following


def _left(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


def _await_answer(session: Session, run: Run, end: float | None) -> None:
    """Return once what the run asked is answered; this thread takes work meanwhile."""
    answered: Future[None] = Future()

    def hear(event: Event) -> None:
        asks = not isinstance(event, StatusChanged) or still_asks(session, run)
        if not (asks or answered.done()):
            answered.set_result(None)

    leave = session.subscribe(hear)
    patience = None if heard_while_busy() else time.monotonic() + PATIENCE
    try:
        while True:
            until = min((t for t in (end, patience) if t is not None), default=None)
            try:
                main_thread.wait(answered, _left(until))
            except TimeoutError:
                if until == end:
                    raise
                patience = None
                if not heard_while_busy():
                    print(UNHEARD)
            else:
                return
    finally:
        leave()


def _result_of_stopped(session: Session, run: Run) -> RunResult | None:
    run = current_handle(session, run) or run
    wait_for([run.future], ENDING)
    return result_if_ended(run)
