from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.interrupts import Decision, Interrupt
from sagents_nb.loop.approvals import join_interrupts
from sagents_nb.loop.config import Outcome, Unfinished
from sagents_nb.loop.open_calls import closing_message, in_doubt, open_calls
from sagents_nb.messages import ToolResult
from tests.grammar import ungrammatical
from tests.recorders import Book, recorded
from tests.talking import agent_of, call, results, unanswered

CALLS = [call("pay", "c1", to="Ada"), call("pay", "c2", to="Bob"), call("pay", "c3", to="Cyd")]


class Bank:
    """An agent that pays, and what a crash left: c1 had ended, c2 had started, c3 had not."""

    def __init__(self, *turns: Any, **options: Any) -> None:
        self.paid: list[str] = []

        def pay(to: str) -> str:
            self.paid.append(to)
            return f"paid {to}"

        self.agent = agent_of(*(turns or ("ok",)), tools=[pay], **options)
        self.book = Book()
        said = sa.Message.assistant(tool_calls=CALLS)
        self.interrupt = join_interrupts([in_doubt(CALLS[1:2])], "s1", 1)
        messages = [sa.Message.user("go"), said]
        self.state = sa.State(messages=messages, interrupt=self.interrupt)
        self.known = Unfinished(results={"c1": ToolResult("c1", "pay", "paid Ada before")})

    def answer(self, given: Any, recovered: Unfinished | None = None) -> Outcome:
        decisions = self.agent.checked(self.state.interrupt or self.interrupt, given)
        return self.run(decisions, recovered)

    def run(
        self,
        decisions: Mapping[str, Decision] | None = None,
        recovered: Unfinished | None = None,
        *messages: sa.Message,
    ) -> Outcome:
        known = recovered or self.known
        outcome = recorded(self.agent, self.book, messages, self.state, decisions, known)
        self.state = outcome.state
        return outcome


def test_the_question_names_what_had_started_and_what_may_be_said() -> None:
    interrupt = in_doubt(CALLS[1:2])
    assert interrupt.type == "in_doubt"
    assert interrupt.tool_call_ids == ["c2"]
    assert interrupt.action_requests[0].allowed_decisions == ("respond",)
    assert "pay" in str(interrupt.message)
    assert "'ran', 'did not run', 'retry'" in str(interrupt.message)
    assert interrupt.restorable


@pytest.mark.parametrize(
    ("answer", "said", "is_error"),
    [
        ("ran", "A person confirmed that this call ran; its result was lost.", False),
        ("did not run", "A person confirmed that this call did not run.", True),
    ],
)
def test_what_a_person_knows_is_the_result(answer: str, said: str, is_error: bool) -> None:
    bank = Bank()
    outcome = bank.answer(sa.Respond(answer))
    assert outcome.status == "completed"
    assert results(outcome.state) == ["paid Ada before", said, "paid Cyd"]
    assert outcome.state.messages[2].tool_results[1].is_error is is_error
    assert bank.paid == ["Cyd"]
    assert bank.book.results["c2"].text == said, "it is written down and not asked again"
    assert not ungrammatical(bank.book.events)


def test_a_call_that_is_run_again_is_written_down_again() -> None:
    bank = Bank()
    outcome = bank.answer(sa.Respond("retry"))
    assert results(outcome.state) == ["paid Ada before", "paid Bob", "paid Cyd"]
    assert sorted(bank.paid) == ["Bob", "Cyd"]
    starts = [line for line in bank.book.order if line.startswith("starting")]
    assert sorted(starts) == ["starting c2", "starting c3"]


@pytest.mark.parametrize(
    "given",
    [
        sa.Approve(),
        sa.Reject("no"),
        sa.Edit({"to": "Eve"}),
        sa.Respond("maybe"),
        sa.Respond(None),
        sa.Respond(["ran"]),
        sa.Respond({"answer": "ran"}),
        {"type": "approve"},
        {"c1": sa.Respond("ran")},
        [sa.Respond("ran"), sa.Respond("ran")],
    ],
)
def test_anything_else_is_no_answer_and_it_still_waits(given: Any) -> None:
    bank = Bank()
    before = bank.state
    with pytest.raises(sa.InvalidDecision):
        bank.answer(given)
    assert bank.state is before
    assert bank.paid == []


def test_an_answer_of_another_kind_says_which_there_are() -> None:
    bank = Bank()
    with pytest.raises(sa.InvalidDecision, match=r"pay ran: .*'ran'.*'did not run'.*'retry'"):
        bank.answer(sa.Respond("perhaps"))


def test_even_a_question_that_would_allow_it_cannot_be_approved() -> None:
    bank = Bank()
    asked = sa.ActionRequest("c2", "pay", {"to": "Bob"})
    with pytest.raises(sa.InvalidDecision, match="not known whether pay ran") as refused:
        bank.agent.checked(Interrupt("in_doubt", (asked,)), sa.Approve())
    assert refused.value.tool_call_id == "c2"


def test_without_an_answer_it_waits_on() -> None:
    bank = Bank()
    outcome = bank.run()
    assert (outcome.status, outcome.state.interrupt) == ("interrupted", bank.interrupt)
    assert "interrupt" in bank.book.order
    assert bank.paid == []
    assert bank.answer(sa.Respond("ran")).status == "completed"


def test_what_people_had_decided_still_holds_also_for_a_call_that_is_run_again() -> None:
    bank = Bank(interrupt_on={"pay": True})
    asked = [sa.ActionRequest(c.id, c.name, c.arguments) for c in CALLS]
    known = Unfinished(
        results=bank.known.results,
        decisions={"c2": (asked[1], sa.Edit({"to": "Bea"})), "c3": (asked[2], sa.Approve())},
    )
    outcome = bank.answer(sa.Respond("retry"), known)
    assert outcome.status == "completed"
    assert sorted(bank.paid) == ["Bea", "Cyd"]


def test_a_recorded_no_is_a_no_after_a_crash() -> None:
    bank = Bank(interrupt_on={"pay": True})
    bank.state = bank.state.with_interrupt(None)
    asked = [sa.ActionRequest(c.id, c.name, c.arguments) for c in CALLS]
    decisions = {"c2": (asked[1], sa.Reject("not him")), "c3": (asked[2], sa.Approve())}
    outcome = bank.run(None, Unfinished(results=bank.known.results, decisions=decisions))
    assert outcome.status == "completed"
    assert "not him" in results(outcome.state)[1]
    assert bank.paid == ["Cyd"]


def test_if_the_gate_asks_once_more_nothing_that_is_known_is_forgotten() -> None:
    """c3 has to be approved, for which nothing was recorded; meanwhile c1 and c2 must not run."""
    bank = Bank(interrupt_on={"pay": True})
    waiting = bank.answer(sa.Respond("ran"))
    assert waiting.status == "interrupted"
    assert waiting.state.interrupt is not None
    assert waiting.state.interrupt.tool_call_ids == ["c3"]
    assert waiting.unfinished is not None
    assert set(waiting.unfinished.results) == {"c1", "c2"}
    assert bank.paid == []
    outcome = bank.answer(sa.Approve(), waiting.unfinished)
    assert outcome.status == "completed"
    assert (bank.paid, outcome.unfinished) == (["Cyd"], None)
    assert results(outcome.state)[0] == "paid Ada before"


def test_a_message_instead_of_an_answer_ends_each_call_with_what_is_known_of_it() -> None:
    bank = Bank()
    outcome = bank.run(None, None, sa.Message.user("something else"))
    assert outcome.status == "completed"
    first, second, third = results(outcome.state)
    assert first == "paid Ada before"
    assert second.startswith("It is not known whether this call ran")
    assert third.startswith("Cancelled")
    assert bank.paid == []
    assert not unanswered(outcome.state.messages)


def test_what_closes_open_calls_elsewhere_says_the_same() -> None:
    bank = Bank()
    message = closing_message(bank.state, "it was closed", bank.known)
    assert message is not None
    texts = [result.text for result in message.tool_results]
    assert texts[0] == "paid Ada before"
    assert texts[1].startswith("It is not known")
    assert texts[2] == "Cancelled: it was closed."
    assert open_calls(bank.state) == CALLS
    assert closing_message(bank.state.add_message(message), "twice") is None


def test_a_turn_that_was_cut_off_goes_on_without_a_question_if_nothing_is_in_doubt() -> None:
    bank = Bank()
    bank.state = bank.state.with_interrupt(None)
    outcome = bank.run()
    assert outcome.status == "completed"
    assert results(outcome.state) == ["paid Ada before", "paid Bob", "paid Cyd"]
    assert not ungrammatical(bank.book.events)


def test_a_known_result_ends_the_run_if_the_run_was_for_it() -> None:
    bank = Bank("never", until_tool="pay")
    bank.state = bank.state.with_interrupt(None)
    outcome = bank.run()
    assert outcome.tool_result is not None
    assert outcome.tool_result.text == "paid Ada before"


def test_ids_that_come_again_in_a_later_turn_are_calls_of_their_own() -> None:
    bank = Bank([call("pay", "c1", to="Dan")], "ok")
    outcome = bank.answer(sa.Respond("did not run"))
    assert outcome.status == "completed"
    assert results(outcome.state)[-1] == "paid Dan"


def test_what_cannot_be_written_down_is_not_answered_either() -> None:
    bank = Bank()
    bank.book = Book(fails_at=1)
    outcome = bank.answer(sa.Respond("retry"))
    assert outcome.status == "error"
    assert bank.paid == []
    assert not unanswered(outcome.state.messages)
