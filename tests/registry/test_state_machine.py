"""Whatever people do to a task, and in whatever order: it is what the rules of its states say."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import sagents_nb as sa
from sagents_nb.store import tasks as rows
from sagents_nb.tasks import NEXT, STATES, TERMINAL, TaskRecord
from tests.talking import PATIENCE, until


class Tasks(RuleBasedStateMachine):
    """A function that does what it is told, question by question, and people who disturb it."""

    @initialize(delegates=st.booleans())
    def begin(self, delegates: bool) -> None:
        self.agents = sa.AgentRegistry()
        self.answers: list[str] = []
        self.ended: list[Any] = []

        async def work(ctx: sa.TaskContext) -> str:
            try:
                while True:
                    answer = await ctx.request_input(f"Question {len(self.answers)}?")
                    self.answers.append(answer)
                    if answer == "done":
                        return "It is done."
                    if answer == "fail":
                        raise ValueError("It went wrong.")
            except asyncio.CancelledError:
                self.ended.append("cancelled")
                raise

        self.agents.add(work)
        self.task = self.agents.delegate("Go.", to="work").wait(PATIENCE)
        self.expected = "input_required"
        self.given: list[str] = []
        self.seen: list[TaskRecord] = []
        self.asks_again()

    def asks_again(self) -> None:
        assert self.task.wait(PATIENCE).state == self.expected

    @rule(answer=st.sampled_from(["more", "more", "done", "fail"]))
    def respond(self, answer: str) -> None:
        if self.expected == "input_required":
            self.task.respond(answer)
            self.given.append(answer)
            self.expected = {"done": "completed", "fail": "failed"}.get(answer, self.expected)
            self.asks_again()
        else:
            self.refused(lambda: self.task.respond(answer))

    @rule()
    def cancel(self) -> None:
        if self.expected in TERMINAL:
            self.refused(self.task.cancel)
        else:
            self.task.cancel()
            self.expected = "canceled"
            self.asks_again()
            until(lambda: self.ended == ["cancelled"])

    @rule()
    def retry(self) -> None:
        self.refused(self.task.retry)

    @rule(decision=st.sampled_from([sa.Approve(), sa.Reject("no"), {"x": sa.Approve()}]))
    def answer_what_is_not_asked(self, decision: Any) -> None:
        before = self.agents.store.tasks.get(self.task.id)
        with pytest.raises((sa.NotRunning, sa.InvalidDecision)):
            self.task.respond(decision)
        assert self.agents.store.tasks.get(self.task.id) == before

    @rule()
    def look_from_elsewhere(self) -> None:
        assert self.agents.task(self.task.id) is self.task

    def refused(self, act: Callable[[], Any]) -> None:
        before = self.agents.store.tasks.get(self.task.id)
        with pytest.raises(sa.NotRunning):
            act()
        assert self.agents.store.tasks.get(self.task.id) == before

    @precondition(lambda self: hasattr(self, "task"))
    @invariant()
    def it_is_what_the_rules_say(self) -> None:
        record = self.agents.store.tasks.get(self.task.id)
        assert record == self.task.record
        assert record.state == self.task.state == self.expected
        assert self.answers == self.given
        assert (record.completed_at is not None) == (record.state in TERMINAL) == record.is_terminal
        if self.seen:
            last = self.seen[-1]
            if last.is_terminal:
                assert record == last
            if record.change > last.change:
                assert record.updated_at is not None
                assert last.updated_at is not None
                assert record.updated_at > last.updated_at
        self.seen.append(record)

    def teardown(self) -> None:
        if hasattr(self, "agents"):
            if self.expected not in TERMINAL:
                self.task.cancel()
                self.task.wait(PATIENCE)
            self.agents.store.close()


@pytest.mark.spec("R4.3.1", "R4.3.4")
def test_a_task_is_what_the_rules_of_its_states_say() -> None:
    few = settings(max_examples=15, stateful_step_count=8, deadline=None)
    run_state_machine_as_test(Tasks, settings=few)


@pytest.mark.soak
def test_many_tasks_are_what_the_rules_of_their_states_say() -> None:
    many = settings(max_examples=200, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(Tasks, settings=many)


@pytest.mark.spec("R4.3.1")
def test_a_row_goes_from_state_to_state_as_the_rules_say(agents: sa.AgentRegistry) -> None:
    tasks = agents.store.tasks
    paths: dict[str, list[str]] = {
        "submitted": [],
        "working": ["working"],
        "input_required": ["working", "input_required"],
        "completed": ["working", "completed"],
        "failed": ["failed"],
        "canceled": ["canceled"],
        "rejected": ["rejected"],
    }
    for number, (first, then) in enumerate(itertools.product(STATES, STATES)):
        record = TaskRecord(id=f"task-{number}", agent="a")
        assert tasks.run(rows.create, record)
        assert not tasks.run(rows.create, record)
        for state in paths[first]:
            assert tasks.run(rows.change, record.id, state)[0]
        before = tasks.get(record.id)
        done, after = tasks.run(rows.change, record.id, then, message="said")
        assert done == (then in NEXT.get(first, ()))
        assert after == tasks.get(record.id)
        assert after.state == (then if done else first)
        if not done:
            assert after == before
