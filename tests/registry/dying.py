"""Processes that delegate until they are killed, and say what they see through a pipe.

``ran KEY`` comes from inside a tool of a delegate, ``asked KEY`` is a question that the parent has
for people, ``doubt KEY`` one about a call that may have run, ``done`` the end.
"""

from __future__ import annotations

import os
import re
import signal
from multiprocessing.connection import Connection
from typing import Any

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest
from sagents_nb.store import ConversationStore
from tests.session.crashing import fork_server

LOADED = (sa.AgentRegistry, sa.Delegation, sa.Session, sa.ScriptedModel, fork_server)

TURNS = 6
ID = "parent"


def keys_of(turn: int) -> list[str]:
    """What is delegated in a turn; the last is paid for, which people approve."""
    return [f"{turn}a", f"{turn}b"]


def is_paid(key: str) -> bool:
    """Whether people are asked about it."""
    return key.endswith("b") and int(key[:-1]) % 2 == 1


def worker(tell: Any) -> sa.Agent:
    """The delegate: it notes or pays each key that it is given."""

    def note(key: str) -> str:
        "Note it."
        tell(("ran", key))
        return f"noted {key}"

    def pay(key: str) -> str:
        "Pay it."
        tell(("ran", key))
        return f"paid {key}"

    def answer(request: ModelRequest) -> Any:
        said = max(i for i, m in enumerate(request.messages) if m.role == "user")
        key = request.messages[said].text
        if len(request.messages) == said + 1:
            return sa.ToolCall("c1", "pay" if is_paid(key) else "note", {"key": key})
        return f"done {key}"

    return sa.Agent(
        sa.ScriptedModel([answer] * 10_000, chunk=1000),
        name="worker",
        description="Notes and pays.",
        tools=[note, pay],
        interrupt_on=["pay"],
        replace_default_middleware=True,
    )


def host(agents: sa.AgentRegistry) -> sa.Agent:
    """The parent: in each turn it delegates two keys at once."""

    def answer(request: ModelRequest) -> Any:
        said = max(i for i, m in enumerate(request.messages) if m.role == "user")
        turn = request.messages[said].text
        if len(request.messages) == said + 1:
            return [
                sa.ToolCall(f"c{n}", "agent__worker", {"instructions": key})
                for n, key in enumerate(keys_of(int(turn)))
            ]
        return f"done {turn}"

    return sa.Agent(
        sa.ScriptedModel([answer] * 10_000, chunk=1000),
        name="host",
        middleware=[sa.Delegation(agents)],
        replace_default_middleware=True,
    )


def live(pipe: Connection, url: str) -> None:
    """Open the conversation, or begin it, and go on to its end; for a process of its own."""
    store = ConversationStore(url)
    agents = sa.AgentRegistry(store)
    agents.add(worker(pipe.send))
    session = sa.sessions.start(host(agents), ID, store=store)
    pipe.send(("opened", session.status))
    while True:
        if session.status == "running":
            assert session.current_run is not None
            session.current_run.result()
        elif session.status == "interrupted":
            _answer(session, pipe)
        elif session.status in ("paused", "error") or session.info()["queued"]:
            session.retry().result()
        else:
            turn = sum(m.role == "user" for m in session.messages)
            if turn == TURNS:
                break
            session.send(str(turn)).result()
            pipe.send(("turn", str(turn)))
    session.close()
    pipe.send(("finished", ""))
    pipe.recv()
    os.kill(os.getpid(), signal.SIGKILL)


def _answer(session: sa.Session, pipe: Connection) -> None:
    """Answer all that the parent asks, as a person does who sees the question."""
    interrupt = session.interrupt
    assert interrupt is not None
    decisions: dict[str, Any] = {}
    for part in interrupt.parts or (interrupt,):
        doubtful = "in_doubt" in (part.type, part.data.get("interrupt", {}).get("type"))
        for request in interrupt.action_requests:
            if request.tool_call_id not in part.tool_call_ids:
                continue
            key = request.arguments["key"]
            pipe.send(("doubt" if doubtful else "asked", key))
            decisions[request.tool_call_id] = sa.Respond(pipe.recv()) if doubtful else sa.Approve()
    session.resume(decisions).result()


# In the background


def quick_worker(tell: Any) -> sa.Agent:
    """A delegate that notes what it is given."""

    def answer(request: ModelRequest) -> Any:
        key = request.messages[0].text
        if len(request.messages) == 1:
            return sa.ToolCall("c1", "note", {"key": key})
        return f"done {key}"

    def note(key: str) -> str:
        "Note it."
        tell(("ran", key))
        return f"noted {key}"

    return sa.Agent(
        sa.ScriptedModel([answer] * 10_000, chunk=1000),
        name="worker",
        description="Notes.",
        tools=[sa.Tool(note, idempotent=True)],
        replace_default_middleware=True,
    )


def background_host(agents: sa.AgentRegistry) -> sa.Agent:
    """The parent: it starts a task for each word that people say, and answers its news."""

    def answer(request: ModelRequest) -> Any:
        last = request.messages[-1]
        if last.role == "tool":
            return "begun"
        if last.text.startswith("(Background task"):
            done = re.search(r"done (\w+)", last.text)
            return f"heard {done[1] if done else last.text}"
        return [
            sa.ToolCall(f"c{n}", "start_task", {"agent": "worker", "instructions": key})
            for n, key in enumerate(last.text.split())
        ]

    return sa.Agent(
        sa.ScriptedModel([answer] * 10_000, chunk=1000),
        name="host",
        middleware=[sa.Delegation(agents, background=True)],
        replace_default_middleware=True,
    )


def live_in_background(pipe: Connection, url: str, turns: int) -> None:
    """Talk while tasks complete, until all are told; for a process of its own."""
    store = ConversationStore(url)
    agents = sa.AgentRegistry(store)
    agents.add(quick_worker(pipe.send))
    session = sa.sessions.start(background_host(agents), ID, store=store)
    session.subscribe(
        lambda event: (
            pipe.send(("said", event.message.text))
            if event.type == "message_end" and event.message.role == "assistant"
            else None
        )
    )
    agents.recover(session)
    while True:
        if session.status == "running":
            assert session.current_run is not None
            session.current_run.result()
        elif session.status in ("paused", "error") or session.info()["queued"]:
            try:
                session.retry().result()
            except (sa.Busy, sa.NotRunning):  # it was woken a moment before
                continue
        else:
            turn = sum(m.text.startswith("k") for m in session.messages if m.role == "user")
            if turn < turns:
                session.send(f"k{turn}a k{turn}b").result()
                pipe.send(("turn", str(turn)))
            elif not told_all(agents, session, turns):
                pipe.send(("waits", ""))
            else:
                break
    session.close()
    pipe.send(("finished", ""))
    pipe.recv()
    os.kill(os.getpid(), signal.SIGKILL)


def told_all(agents: sa.AgentRegistry, session: sa.Session, turns: int) -> bool:
    """Whether each task has ended, and its end been answered."""
    records = agents.store.tasks.list("completed", context=session.id)
    answered = sum(m.text.startswith("heard") for m in session.messages)
    return len(records) == answered == 2 * turns
