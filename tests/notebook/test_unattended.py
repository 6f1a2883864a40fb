"""Who decides where nobody can click."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.interrupts import Interrupt
from sagents_nb.loop.open_calls import in_doubt
from sagents_nb.notebook.cells import unattended
from sagents_nb.session.headless import DENIED, decide


def waiting(count: int) -> Interrupt:
    return Interrupt("hitl", tuple(sa.ActionRequest(f"c{i}", "t") for i in range(count)))


def test_deny_and_approve_answer_every_call() -> None:
    assert decide("deny", waiting(2)) == [sa.Reject(DENIED, unattended=True)] * 2
    assert decide("approve", waiting(3)) == [sa.Approve()] * 3


def test_a_list_is_used_up_from_its_front_and_the_rest_is_denied() -> None:
    policy: list[Any] = [sa.Approve(), {"type": "reject"}, sa.Edit({"a": 1})]
    assert decide(policy, waiting(1)) == [sa.Approve()]
    assert decide(policy, waiting(1)) == [{"type": "reject"}]
    assert decide(policy, waiting(2)) == [sa.Edit({"a": 1}), sa.Reject(DENIED, unattended=True)]
    assert policy == []
    assert decide(policy, waiting(1)) == [sa.Reject(DENIED, unattended=True)]


def asking(*allowed: str) -> Interrupt:
    return Interrupt("tool", (sa.ActionRequest("c1", "t", allowed_decisions=allowed),))


def test_a_question_that_cannot_be_approved_is_denied() -> None:
    assert decide("approve", asking("respond", "reject")) == [sa.Reject(DENIED, unattended=True)]


@pytest.mark.parametrize("policy", ["deny", "approve", []])
def test_whether_a_call_ran_before_a_crash_no_policy_knows(policy: Any) -> None:
    doubt = in_doubt([sa.ToolCall("c1", "pay", {})])
    assert decide(policy, doubt) is None
    assert decide([sa.Respond("ran")], doubt) == [sa.Respond("ran")]


def test_a_list_that_does_not_answer_all_that_only_a_person_can_is_not_used_up() -> None:
    policy: list[Any] = [sa.Respond("ran")]
    doubt = in_doubt([sa.ToolCall("c1", "pay", {}), sa.ToolCall("c2", "pay", {})])
    assert decide(policy, doubt) is None
    assert policy == [sa.Respond("ran")]


@pytest.mark.parametrize("policy", ["maybe", None, True, ("approve",)])
def test_any_other_policy_says_what_it_may_be(policy: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="'deny', 'approve' or a list"):
        decide(policy, waiting(1))


@pytest.mark.parametrize(
    ("shell", "alone"),
    [
        (None, True),
        (SimpleNamespace(), True),
        (SimpleNamespace(kernel=None), True),
        (SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=False)), True),
        (SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=True)), False),
    ],
)
def test_a_front_end_is_one_that_could_be_asked(shell: Any, alone: bool) -> None:
    assert unattended(shell) is alone
