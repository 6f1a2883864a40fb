"""What was said to a session, wherever it is by now, and news that nobody waits for."""

from __future__ import annotations

from typing import Any

import sagents_nb as sa
from tests.talking import PATIENCE, agent_of, call, session_of


def test_what_a_run_has_taken_and_not_yet_answered_was_said() -> None:
    heard: list[list[str]] = []

    class Looks(sa.Middleware):
        def before_run(self, state: sa.State, ctx: Any) -> None:
            heard.append([message.text for message in session.said()])

    session = sa.Session(agent_of("Hello!", "Then so.", middleware=[Looks()]))
    session.follow_up("And then?")
    session.send("Hi").result(PATIENCE)
    assert heard == [["Hi", "And then?"]]


def test_news_begin_a_run() -> None:
    session = session_of("I will look.")
    run = session.wake("The report is there.")
    assert run is not None
    assert run.result(PATIENCE).text == "I will look."


def test_news_leave_what_waits_for_people_alone() -> None:
    def pay() -> str:
        "Pay."
        return "paid"

    session = session_of(call("pay"), "Paid.", "Good.", tools=[pay], interrupt_on=["pay"])
    session.send("Pay.").result(PATIENCE)
    assert session.wake("The report is there.") is None
    assert session.status == "interrupted"
    assert session.resume(sa.Approve()).result(PATIENCE).text == "Good."
