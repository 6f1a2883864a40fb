"""A hub with one kind of agent, whose model says what a test has it say."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint, Hub, Thread
from sagents_nb.hub.event_log import ThreadEvent
from sagents_nb.hub.vocabulary import DELTA
from sagents_nb.runtime.thread import runtime
from tests.talking import PATIENCE, until

Turn = Any
RESTING = ("registered", "paused", "completed", "error", "canceled")


class World:
    """A ``hub`` over the database at ``url`` with one ``agency``.

    ``ran`` is what its tools did: "look", which anybody may, "pay", which people are asked about,
    and "hold", which waits until the test lets it go by ``go_on``; ``holds`` is set once it does.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.ran: list[str] = []
        self.holds, self.go_on = threading.Event(), threading.Event()
        self.model = sa.ScriptedModel([])
        self.system = self.system_of()
        self.hub = Hub(self.system, url)
        self.agency, self.secret = self.hub.create_agency()

    def system_of(self) -> AgentSystem:
        """The system, with a model that says nothing."""

        def look(at: str = "") -> str:
            self.ran.append(f"look {at}")
            return f"seen {at}"

        def pay(amount: int) -> dict[str, int]:
            self.ran.append(f"pay {amount}")
            return {"paid": amount}

        def hold() -> str:
            self.holds.set()
            assert self.go_on.wait(PATIENCE)
            self.ran.append("hold")
            return "held"

        system = AgentSystem(self.model).defaults()
        for tool in (look, pay, hold):
            system.add_tool(sa.tool(tool, description=tool.__name__))
        gated = {"hitl": {"tools": ["pay"]}}
        return system.add_agent(Blueprint("clerk", "Be brief.", config=gated))

    def held(self, turn: Turn) -> Turn:
        """A turn that the model says once the test lets it go on."""

        async def say(request: Any) -> Turn:
            self.holds.set()
            while not self.go_on.is_set():
                await asyncio.sleep(0.005)
            return turn

        return say

    def says(self, *turns: Turn) -> None:
        """Have the model of all threads say these from now on."""
        self.model = sa.ScriptedModel(turns, chunk=1000)
        self.system.default_model = self.model

    def thread(self, *turns: Turn) -> Thread:
        """A new thread whose model says these turns."""
        self.says(*turns)
        return self.hub.create_thread(self.agency, "clerk")

    def reopened(self, thread: Thread, *turns: Turn) -> Thread:
        """The thread in another hub, as after another start of the process."""
        self.hub.close()
        self.says(*turns)
        self.hub = Hub(self.system, self.url)
        return self.hub.thread(self.agency, thread.record.id)

    def events(self, thread: Thread, since: int = 0) -> list[ThreadEvent]:
        """What is kept of it; all of what was told."""
        thread.log.wait()
        return self.hub.events(self.agency, thread.record.id, since)

    def told(self, thread: Thread, *types: str) -> list[str]:
        """The types of its events, of these only if there are any."""
        found = [event.type for event in self.events(thread)]
        return [type for type in found if type in types] if types else found

    def close(self) -> None:
        """Let go of everything."""
        self.go_on.set()
        self.hub.close()


def rest(thread: Thread) -> str:
    """What it is once it does nothing any more, and all of that is told."""
    until(lambda: thread.status in RESTING)
    thread.log.wait()
    return thread.status


def say(thread: Thread, *texts: str, **more: Any) -> str:
    """What it is once it has dealt with these."""
    thread.invoke([sa.Message.user(text) for text in texts], **more)
    return rest(thread)


def chat(thread: Thread) -> list[tuple[str, str]]:
    """Who said what, as its clients see it."""
    messages = thread.state()["state"]["messages"]
    return [(message["role"], message.get("content", "")) for message in messages]


def data_of(events: Iterable[ThreadEvent], type: str) -> list[dict[str, Any]]:
    """What the events of that type tell."""
    return [event.data for event in events if event.type == type]


def is_dense(events: Iterable[ThreadEvent]) -> bool:
    """Whether their numbers are 1, 2, 3 and so on."""
    numbers = [event.seq for event in events]
    return numbers == list(range(1, len(numbers) + 1))


def listening(thread: Thread) -> list[ThreadEvent | None]:
    """What is told of it from now on, and None at the end."""
    heard: list[ThreadEvent | None] = []
    runtime.call(thread.log.listen, heard.append)
    return heard


def kept_of(heard: Iterable[ThreadEvent | None]) -> list[ThreadEvent]:
    """What of that is kept."""
    return [event for event in heard if event is not None and event.type != DELTA]
