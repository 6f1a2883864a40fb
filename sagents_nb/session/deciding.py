"""What people decide in a session: checked, written down, and taken once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import NotRunning, StaleApproval
from ..events import DecisionMade
from ..interrupts import Decision, Decisions, Interrupt
from ..loop.approvals import checked_decisions
from ..loop.execution import new_run_id
from .run import Run
from .running import Running


class Deciding(Running):
    """Answers to what waits. Everything here runs on the runtime loop, so one is the first."""

    def _waiting(self) -> Interrupt:
        self.check_open()
        interrupt = self._state.interrupt
        if self.status != "interrupted" or interrupt is None:
            raise NotRunning(
                f"Session {self.session.id!r} is {self.status}: nothing waits for a decision."
            )
        return interrupt

    def resume(self, given: Decisions, by: str) -> Run:
        """Take a decision for everything that waits."""
        interrupt = self._waiting()
        decisions = checked_decisions(interrupt, given, self.agent._tools, self.agent._chain)
        run = self._take(interrupt, decisions, by)
        assert run is not None
        return run

    def decide_all(self, ids: tuple[str, ...], decision: Decision, by: str) -> Run | None:
        """Take one decision for these calls, or for all that are open."""
        interrupt = self._waiting()
        self._approvals.check_open(interrupt, ids)
        given = dict.fromkeys(ids or self._approvals.open_ids(interrupt), decision)
        return self._take(interrupt, self._approvals.checked(self.agent, interrupt, given), by)

    def decide_seen(
        self,
        decisions: Mapping[str, Any],
        interrupt_id: str,
        digests: Mapping[str, str],
        by: str,
    ) -> Run | None:
        """Take decisions on requests as somebody saw them."""
        self.check_open()
        interrupt = self._state.interrupt
        if self.status != "interrupted" or interrupt is None or interrupt.id != interrupt_id:
            raise StaleApproval("This request was already answered; nothing was run for it now.")
        self._approvals.check_seen(interrupt, decisions, digests)
        return self._take(interrupt, self._approvals.checked(self.agent, interrupt, decisions), by)

    def _take(self, interrupt: Interrupt, decisions: Mapping[str, Decision], by: str) -> Run | None:
        run = Run(self.session, self._run_id or new_run_id(), since=self.log.last)
        emitter = self._emitter.for_run(run.id)
        before = self._approvals.taken
        complete = self._approvals.add(interrupt, decisions)
        if self.recorder is not None:
            self.recorder.decided(interrupt, decisions, by)

        def tell() -> None:
            for tool_call_id, decision in decisions.items():
                emitter.emit(DecisionMade, tool_call_id=tool_call_id, decision=decision, by=by)

        def take_back(error: BaseException) -> None:
            """What cannot be written was not decided; it may be decided again."""
            self._approvals.restore(before)
            self._refused = error if complete is not None else None

        self.once_safe(tell, take_back)
        return None if complete is None else self._start(run, [], complete, self._meter)

    def dismiss(self) -> None:
        """Let go of a halt."""
        interrupt = self._waiting()
        if interrupt.type != "halt":
            raise NotRunning(f"This {interrupt.type} interrupt needs an answer; decide it.")
        self._drop_interrupt("the halt was dismissed")
        self._set_status("idle")
