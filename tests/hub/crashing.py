"""A process that has a hub, and one thread of it at work, until it is killed.

What others may rely on goes through a pipe: ``said N`` once an invoke has returned, ``told N`` of
an event with its number, ``ran N`` from inside a tool.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from typing import Any

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint, Hub, Thread
from sagents_nb.hub.event_log import ThreadEvent
from sagents_nb.models.base import ModelRequest
from sagents_nb.runtime.thread import runtime
from tests.hub.world import rest

# All that such a process needs is loaded once, before it is forked.
LOADED = (sa.ScriptedModel, sa.ToolCall, AgentSystem, Blueprint, Hub)


def fork_server() -> Any:
    """Where such processes come from, ready in a moment."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def answer(request: ModelRequest) -> Any:
    """The model: each message of a person has one call and one answer."""
    last = request.messages[-1]
    if last.role == "user":
        return sa.ToolCall(f"c{last.text}", "work", {"number": int(last.text)})
    return "done"


def system_with(ran: Any) -> AgentSystem:
    """A system whose tool tells ``ran`` what it does."""

    def work(number: int) -> str:
        "Work."
        ran(number)
        return f"worked {number}"

    model = sa.ScriptedModel([answer] * 10_000, chunk=1000)
    return AgentSystem(model).add_tool(work).add_agent(Blueprint("clerk", "Work."))


def the_thread(hub: Hub) -> Thread:
    """The one that there is, or a new one."""
    agency = next(iter(hub.agencies()), None) or hub.create_agency()[0]
    known = hub.threads(agency)
    return hub.thread(agency, known[0].id) if known else hub.create_thread(agency, "clerk")


def system_that_looks_and_holds() -> AgentSystem:
    """A system whose agent calls two tools at once, of which one ends."""

    def look() -> str:
        "Look."
        return "seen"

    def hold() -> str:
        "Hold."
        threading.Event().wait()
        return "never"

    both = [sa.ToolCall("c1", "look", {}), sa.ToolCall("c2", "hold", {})]
    model = sa.ScriptedModel([both, "done"])
    system = AgentSystem(model).add_tool(look).add_tool(hold)
    return system.add_agent(Blueprint("clerk", "Work."))


def die_as_it_is_told(url: str) -> None:
    """End, killed, in the moment in which a client is told what a tool gave; for a process."""
    hub = Hub(system_that_looks_and_holds(), url)
    thread = the_thread(hub)

    def hear(event: ThreadEvent | None) -> None:
        if event is not None and event.type == "tool.output":
            os.kill(os.getpid(), signal.SIGKILL)

    runtime.call(thread.log.listen, hear)
    thread.invoke([sa.Message.user("go")])
    threading.Event().wait()


def live(pipe: Connection, url: str, first: int) -> None:
    """Say one number after the other, from ``first`` on; for a process of its own."""
    tell = pipe.send
    hub = Hub(system_with(lambda number: tell(("ran", number))), url)
    thread = the_thread(hub)
    runtime.call(thread.log.listen, lambda event: event and tell(("told", event.seq)))
    if thread.session.interrupt is not None:  # whether a call ran is not known
        thread.cancel()
    for number in range(first, first + 10_000):
        thread.invoke([sa.Message.user(str(number))], idempotency_key=str(number))
        tell(("said", number))
        if number % 3:
            rest(thread)
