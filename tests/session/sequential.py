"""A session as one thread sees it: what each call may answer, and what becomes of each message.

The calls of all threads are put in the order in which they took effect; :class:`Sequential` is
then told of one after the other, with what was seen of the session just before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import sagents_nb as sa
from sagents_nb.loop.open_calls import open_calls

BETWEEN = {"idle", "interrupted", "paused", "cancelled", "error"}
"""What a session may be after a run."""


class Step(NamedTuple):
    """A call at the moment when it took effect, and what was seen of the session then."""

    name: str
    args: tuple[Any, ...]
    before: str  # the status
    state: sa.State
    open: tuple[str, ...]  # the calls that nobody has decided
    waits: bool  # whether a message or a run is queued
    answered: bool  # whether a stopped run has all decisions
    outcome: Any  # an exception, or what was returned
    after: str


class Sequential:
    """The status, and the messages that were acknowledged, by the queue that took them."""

    def __init__(self, status: str = "idle") -> None:
        self.status = status
        self.said: dict[str, list[str]] = {"run": [], "steer": [], "follow_up": []}
        self.letters: list[Any] = []  # since the conversation began anew
        self.causes: set[str] = set()  # of an end that is no completion, since the run began
        self.hard = False  # a message was said that a model fails on, or asks people about

    def opened(self, steps: list[Step], kept: list[str] | None) -> Sequential:
        """The session that goes on; with ``kept``, with nothing but these messages."""
        again = Sequential(steps[0].before if steps else "idle")
        again.hard = self.hard
        again.said = {
            queue: [text for text in said if kept is None or text in kept]
            for queue, said in self.said.items()
        }
        return again

    def take(self, step: Step) -> None:
        """A call took effect; raises AssertionError if it could not."""
        self._ended(step)
        expected = getattr(self, f"_{step.name}")(step)
        told = type(step.outcome).__name__ if isinstance(step.outcome, Exception) else "ok"
        assert told == expected, f"{step.name} said {told} and not {expected}: {step}"
        assert step.after == self.status, f"it is {step.after} and not {self.status}: {step}"

    def _ended(self, step: Step) -> None:
        """Between two calls only runs change anything, and not to everything."""
        if step.before == self.status:
            return
        assert self.status == "running", f"{self.status} became {step.before}: {step}"
        assert step.before in BETWEEN, step
        if step.before in ("cancelled", "paused"):
            assert step.before in self.causes, f"nobody asked for {step.before}: {step}"
        if step.before in ("interrupted", "error"):
            assert self.hard, f"no message leads to {step.before}: {step}"
        self.status = step.before
        self.causes.clear()

    # what each call says, and does

    def _run(self) -> str:
        self.status = "running"
        self.causes.clear()
        return "ok"

    def _hear(self, messages: Iterable[sa.Message], queue: str) -> None:
        for message in messages:
            self.said[queue].append(message.text)
            self.hard |= not message.text.endswith("talk")

    def _send(self, step: Step) -> str:
        messages, when, _ = step.args
        if self.status == "closed":
            return "NotRunning"
        if self.status == "running" and when == "raise":
            return "Busy"
        steered = self.status == "running" and when == "steer"
        self._hear(messages, "steer" if steered else "run")
        return "ok" if self.status == "running" else self._run()

    def _enqueue(self, step: Step) -> str:
        if self.status == "closed":
            return "NotRunning"
        self._hear(*step.args)
        return "ok"

    def _resume(self, step: Step) -> str:
        interrupt = step.state.interrupt
        if self.status != "interrupted" or interrupt is None:
            return "NotRunning"
        if step.args[2] not in (None, interrupt.id):
            return "StaleApproval"
        if set(step.args[0]) != set(interrupt.tool_call_ids):
            return "InvalidDecision"
        if not set(step.args[0]) <= set(step.open):
            return "StaleApproval"
        return self._run()

    def _decide_all(self, step: Step) -> str:
        interrupt = step.state.interrupt
        if self.status != "interrupted" or interrupt is None:
            return "NotRunning"
        if step.args[3] not in (None, interrupt.id):
            return "StaleApproval"
        ids = step.args[0] or step.open
        if not set(ids) <= set(step.open):
            return "StaleApproval"
        if set(ids) < set(step.open):
            assert step.outcome is None
            return "ok"
        return self._run()

    def _cancel(self, step: Step) -> str:
        if self.status == "running":
            if "cancelled" in self.causes:  # twice: what is being read is stopped, too
                self.letters.clear()
            self.causes.add("cancelled")
        elif self.status in ("interrupted", "paused"):
            self.status = "cancelled"
        return "ok"

    def _pause(self, step: Step) -> str:
        if self.status == "running":
            self.causes.add("paused")
        return "ok"

    def _retry(self, step: Step) -> str:
        if self.status in ("running", "interrupted"):
            return "Busy"
        said = [m for m in step.state.messages if not m.error]
        unanswered = said and said[-1].role in ("user", "tool")
        more = step.waits or step.answered or open_calls(step.state)
        if self.status == "closed" or not (unanswered or more):
            return "NotRunning"
        if not unanswered and isinstance(step.outcome, sa.NotRunning):
            # What is only steered or a follow-up needs a conversation to go on with.
            return "ok" if said else "NotRunning"
        return self._run()

    def _reset(self, step: Step) -> str:
        if self.status == "closed":
            return "NotRunning"
        self.said = {queue: [] for queue in self.said}
        self.letters.clear()
        self.status = "idle"
        return "ok"

    def _replace(self, step: Step) -> str:
        if self.status in ("closed", "running"):
            return {"closed": "NotRunning", "running": "Busy"}[self.status]
        self._forget(in_history(step.state))
        self.letters.clear()
        self.status = "idle"
        return "ok"

    def _forget(self, texts: Iterable[str]) -> None:
        gone = set(texts)
        for queue in self.said.values():
            queue[:] = [text for text in queue if text not in gone]

    def _notify(self, step: Step) -> str:
        if self.status != "closed":
            self.letters.append(step.args[1])
        return "ok"

    def _close(self, step: Step) -> str:
        self.status = "closed"
        return "ok"


def in_history(state: sa.State) -> list[str]:
    """What people said, in order."""
    return [message.text for message in state.messages if message.role == "user"]
