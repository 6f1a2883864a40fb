"""A process that talks its way through a scripted conversation until it is killed.

What it does for others to see goes through a pipe to whoever started it, who is still there
afterwards: ``ran KEY`` from inside a tool, ``sent N``, ``heard ROLE TEXT`` and ``decided KEY``
once the session has said so. ``asked KEY`` is a request as a person is shown it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest
from sagents_nb.store import ConversationStore

# All that such a process needs is loaded once, before it is forked.
LOADED = (sa.Session, sa.ScriptedModel, sa.tool, sa.HumanInTheLoop)

TURNS = 20
ID = "crashing"


def fork_server() -> Any:
    """Where such processes come from, ready in a moment."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def calls_of(turn: int) -> list[tuple[str, str]]:
    """The two calls of a turn: tool and key."""
    tools = [("note", "note"), ("pay", "note"), ("pay", "pay"), ("look", "note")][turn % 4]
    return [(tool, f"{turn}{letter}") for tool, letter in zip(tools, "ab", strict=True)]


def turn_of(key: str) -> int:
    """The turn that a key belongs to."""
    return int(key[:-1])


def decision_on(key: str) -> sa.Approve | sa.Edit | sa.Reject:
    """What the person says to a payment."""
    kind = turn_of(key) % 3
    if kind == 0:
        return sa.Approve()
    return sa.Edit({"key": f"{key}!"}) if kind == 1 else sa.Reject("too much")


def answer(request: ModelRequest) -> Any:
    """The model: what it says follows from what was said last."""
    said = max(i for i, m in enumerate(request.messages) if m.role == "user")
    turn = int(request.messages[said].text)
    if len(request.messages) == said + 1:
        return [sa.ToolCall(f"c{i}", tool, {"key": key}) for i, (tool, key) in
                enumerate(calls_of(turn))]  # fmt: skip
    return f"done {turn}"


def agent_with(ran: Callable[[str], None]) -> sa.Agent:
    """The agent; its tools say ``ran``."""

    def make(name: str, *, idempotent: bool = False) -> sa.Tool:
        def body(key: str) -> str:
            ran(key)
            return f"{name} {key}"

        return sa.Tool(body, name=name, description=name, idempotent=idempotent)

    return sa.Agent(
        sa.ScriptedModel([answer] * 10_000, chunk=1000),
        tools=[make("note"), make("pay"), make("look", idempotent=True)],
        interrupt_on={"pay": True},
        replace_default_middleware=True,
    )


def live(pipe: Connection, url: str, die_at: int = 0) -> None:
    """Open the conversation, or begin it, and go on to its end; for a process of its own."""
    tell = pipe.send
    store = ConversationStore(url)
    agent = agent_with(lambda key: tell(("ran", key)))
    session = sa.sessions.start(agent, ID, store=store)
    session.subscribe(lambda event: _hear(event, tell))
    tell(("opened", session.status))
    problems = session.info()["problems"]
    assert not problems, problems
    while True:
        if session.status == "running":
            assert session.current_run is not None
            session.current_run.result()
        elif session.status == "interrupted":
            _decide(session, pipe)
        elif session.status in ("paused", "error") or session.info()["queued"]:
            session.retry().result()
        else:
            turn = sum(m.role == "user" for m in session.messages)
            if turn == TURNS:
                break
            # Not behind a turn that asks: a message would be taken instead of the answer.
            for one in (turn, turn + 1) if turn % 4 == 0 else (turn,):
                session.send(str(one))
                tell(("sent", str(one)))
    session.close()
    tell(("finished", ""))
    pipe.recv()
    os.kill(os.getpid(), signal.SIGKILL)


def _hear(event: Any, tell: Callable[[Any], None]) -> None:
    if event.type == "message_end":
        message = event.message
        text = message.text or " ".join(r.text for r in message.tool_results)
        tell(("heard", f"{message.role} {text}"))


def _decide(session: sa.Session, pipe: Connection) -> None:
    interrupt = session.interrupt
    assert interrupt is not None
    run = None
    taken = session.actor.approvals.taken
    for request in interrupt.action_requests:
        if request.tool_call_id in taken:
            continue
        key = request.arguments["key"]
        decision: Any
        if interrupt.type == "in_doubt":
            pipe.send(("doubt", key))
            decision = sa.Respond(pipe.recv())
        else:
            pipe.send(("asked", key))
            decision = decision_on(key)
        run = session.decide(
            {request.tool_call_id: decision},
            interrupt_id=interrupt.id,
            digests={request.tool_call_id: request.digest},
            by="user",
        )
        if interrupt.type != "in_doubt":
            pipe.send(("decided", key))
    assert run is not None
    run.result()


def hold(pipe: Connection, url: str) -> None:
    """Have the conversation open, and do nothing."""
    store = ConversationStore(url)
    sa.sessions.start(agent_with(lambda key: None), ID, store=store)
    pipe.send("open")
    pipe.recv()
