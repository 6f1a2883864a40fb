"""Whatever a model, its tools and people do: events in order, and every call has one result."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from tests.grammar import ungrammatical
from tests.talking import agent_of, unanswered


def work(n: int) -> str:
    return f"worked {n}"


async def work_async(n: int, ctx: sa.ToolContext) -> str:
    await ctx.progress("half way")
    await asyncio.sleep(0)
    return f"worked {n}"


def fail(n: int) -> str:
    raise ValueError(f"failed {n}")


def gated(n: int) -> str:
    return f"gated {n}"


def also_gated(n: int) -> str:
    raise ValueError(f"failed {n}")


def ask(n: int) -> Any:
    return sa.ToolOutput("asked") if n % 2 else sa.Interrupt("tool", message=f"{n}?")


TOOLS = [work, work_async, fail, gated, also_gated, ask]
NAMES = [tool.__name__ for tool in TOOLS] + ["nowhere"]

calls = st.tuples(st.sampled_from(NAMES), st.sampled_from([1, 2, 3, "x"]))
turns = st.lists(
    st.just("words")
    | calls
    | st.lists(calls, min_size=1, max_size=4)
    | st.just(ValueError("cable")),
    max_size=5,
)
decisions = st.sampled_from(
    [sa.Approve(), sa.Reject("no"), sa.Edit({"n": 7}), sa.Edit({"n": "bad"}), sa.Respond("answer")]
)
plans = st.tuples(
    turns,
    st.lists(decisions, max_size=6),
    st.none() | st.integers(0, 40),  # cancel at this event
    st.lists(st.sampled_from(["queue", "steer", "follow_up"]), max_size=3),
)


def scripted(plan: list[Any]) -> list[Any]:
    ids = iter(range(100))

    def made(item: Any) -> Any:
        if isinstance(item, tuple):
            return sa.ToolCall(f"c{next(ids)}", item[0], {"n": item[1]})
        return [made(part) for part in item] if isinstance(item, list) else item

    return [made(item) for item in plan]


@pytest.mark.spec("R4.1.11")
@settings(max_examples=500)
@given(plans)
def test_any_conversation_has_its_events_in_order_and_one_result_per_call(plan: Any) -> None:
    script, answers, cancel_at, more = plan
    agent = agent_of(
        *scripted(script),
        *["the end"] * 6,
        tools=TOOLS,
        interrupt_on={"gated": True, "also_gated": True},
    )
    session = sa.Session(agent)
    heard: list[Any] = []

    def listen(event: Any) -> None:
        heard.append(event)
        if len(heard) == cancel_at:
            session.cancel()

    session.subscribe(listen)
    waiting = [session.send("go")]
    for when in more:
        if when == "follow_up":
            session.follow_up("more")
        else:
            waiting.append(session.send("more", when=when))
    replies = iter(answers)
    while True:
        settle(waiting[0])
        if session.status != "interrupted":
            break
        waiting[0] = answered(session, next(replies, sa.Reject()))
    for run in waiting:
        run.cancel()
        settle(run)

    session.close()
    assert heard[-1].type == "status_changed"
    numbers = [event.seq for event in heard]
    assert numbers == list(range(1, len(numbers) + 1))
    asked: set[str] = set()
    for part in runs_in(heard):
        assert not ungrammatical(part, asked)
    assert not unanswered(session.messages) or session.state.interrupt is not None
    assert_told(heard, session)


def settle(run: sa.Run) -> None:
    # The cable, the end of the script, or three failing turns.
    with suppress(sa.ModelError, sa.FailuresExceeded):
        run.result()


def answered(session: sa.Session, decision: Any) -> sa.Run:
    assert session.interrupt is not None  # the newest, whichever the runs ended with
    try:
        return session.resume(decision)
    except sa.InvalidDecision:
        assert session.status == "interrupted"
    try:
        return session.resume(sa.Reject())
    except sa.InvalidDecision:
        return session.resume(sa.Respond("an answer"))


def runs_in(heard: list[Any]) -> list[list[Any]]:
    """The events from each agent_start to its agent_end; between runs there are others."""
    parts: list[list[Any]] = []
    inside = False
    for event in heard:
        if event.type == "agent_start":
            assert not inside, "a run began inside another"
            inside = True
            parts.append([])
        if inside:
            parts[-1].append(event)
        if event.type == "agent_end":
            inside = False
    return parts


def assert_told(heard: list[Any], session: sa.Session) -> None:
    """What the events say was said is what the session remembers, in that order."""
    told = [e.message for e in heard if e.type == "message_end"]
    kept = [m for m in session.messages if m.role != "tool"]
    assert [m for m in told if m.role != "tool"] == kept
