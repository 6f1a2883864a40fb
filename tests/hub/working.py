"""A process with a hub whose threads are at work until it is killed: runs, approvals, children.

What others may rely on goes through a pipe: ``made`` and ``said`` once a thread and a message were
acknowledged, ``approved`` once an answer was, ``told`` of each event with its number, and ``ran``
from inside a tool.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import sagents_nb as sa
from sagents_nb.errors import SagentsError
from sagents_nb.hub import Agency, AgentSystem, Blueprint, Hub, Thread
from sagents_nb.models.base import ModelRequest
from sagents_nb.runtime.thread import runtime
from tests.hub.houses import task
from tests.hub.world import rest

# All that such a process needs is loaded once, before it is forked.
LOADED = (sa.ScriptedModel, sa.ToolCall, AgentSystem, Blueprint, Hub)

KINDS = ("work", "pay", "split")


def fork_server() -> Any:
    """Where such processes come from, ready in a moment."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def answer(request: ModelRequest) -> Any:
    """The model: a call, or two children with one each, and an answer once it has the results."""
    last = request.messages[-1]
    if last.role != "user":
        return "done"
    kind, _, what = last.text.partition(" ")
    if kind == "split":
        return [task(f"{what}{part}", f"work {what}{part}", "clerk") for part in "ab"]
    return sa.ToolCall(f"{kind}-{what}", kind, {"what": what})


def system_with(ran: Callable[[str], object]) -> AgentSystem:
    """A system whose tools tell ``ran`` what they do; people are asked before it pays."""

    def work(what: str) -> str:
        "Work."
        ran(what)
        return f"worked {what}"

    def pay(what: str) -> str:
        "Pay."
        ran(what)
        return f"paid {what}"

    model = sa.ScriptedModel(iter(lambda: answer, None), chunk=1000)
    system = AgentSystem(model).defaults().add_tool(work).add_tool(pay)
    return system.add_agent(Blueprint("clerk", "Work.", config={"hitl": {"tools": ["pay"]}}))


def the_agency(hub: Hub) -> Agency:
    """The one that there is, or a new one."""
    return next(iter(hub.agencies()), None) or hub.create_agency()[0]


class _Teller:
    """Says things through a pipe, from any thread, one after the other."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def __call__(self, *said: str | int) -> None:
        with self._lock:
            self._pipe.send(said)

    def listen(self, thread: Thread) -> None:
        """Tell of what is told of that thread from now on."""
        id = thread.record.id
        runtime.call(thread.log.listen, lambda event: event and self("told", id, event.seq))


def live(pipe: Connection, url: str, first: int) -> None:
    """Go on with what there is, and begin more of each kind; for a process of its own."""
    tell = _Teller(pipe)
    hub = Hub(system_with(lambda what: tell("ran", what)), url)
    agency = the_agency(hub)
    hub.recover()

    def drive(place: int) -> None:
        kind = KINDS[place]
        for number in range(first + place, first + 10_000, len(KINDS)):
            thread = hub.create_thread(agency, "clerk")
            id = thread.record.id
            tell("made", id)
            tell.listen(thread)
            thread.invoke([sa.Message.user(f"{kind} {number}")], idempotency_key=f"{number}")
            tell("said", id, f"{kind} {number}")
            if rest(thread) == "paused" and kind == "pay":
                thread.approve(True, by="test")
                tell("approved", id)
            while rest(thread) == "paused":
                thread.wait()

    drivers = [threading.Thread(target=drive, args=(place,)) for place in range(len(KINDS))]
    for driver in drivers:
        driver.start()
    for record in hub.threads(agency):
        try:
            thread = hub.thread(agency, record.id)
        except SagentsError:
            continue
        if thread.status in ("running", "paused"):
            tell.listen(thread)
    for driver in drivers:
        driver.join()
