"""What the tests of the panel share: a page in Python, and sessions worth looking at."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from jupyter_client.session import json_packer, json_unpacker

import sagents_nb as sa
from sagents_nb.events import Event
from sagents_nb.panel.protocol import merged, new_view_state, plain, reduce, wire
from sagents_nb.panel.publisher import Publisher
from sagents_nb.panel.requests import answer
from sagents_nb.runtime.thread import runtime
from tests.talking import PATIENCE, until


class Page:
    """The store of a page, as ``widgets/src/store.ts`` has it."""

    def __init__(self, hello: Callable[[int], None]) -> None:
        self.state: dict[str, Any] | None = None
        self.seq = 0
        self.asked = False
        self.closed = False
        self.gaps = 0
        self._hello = hello

    def ask(self) -> None:
        """Say hello, unless no answer to the last one has come."""
        if not self.asked:
            self.asked = True
            self._hello(self.seq)

    def receive(self, message: dict[str, Any]) -> None:
        """Take a message of the kernel."""
        if message["type"] == "snapshot" and (self.state is None or message["seq"] >= self.seq):
            self.asked = False
            self.seq, self.state = message["seq"], copy.deepcopy(message["state"])
        elif message["type"] == "closed":
            self.closed = True
        elif message["type"] == "events" and self.state is not None:
            if message["after"] == self.seq:
                self.asked = False
                self.seq = message["seq"]
                for event in message["events"]:
                    reduce(self.state, copy.deepcopy(event))
            elif message["seq"] > self.seq:
                self.gaps += not self.asked
                self.ask()


class Wire:
    """A listener that remembers what was sent, and when, as Jupyter would send it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.sent: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.sizes: list[int] = []
        self.pages: list[Page] = []

    def __call__(self, message: dict[str, Any]) -> None:
        data = json_packer(message)
        self.times.append(self.clock())
        self.sizes.append(len(data))
        self.sent.append(json_unpacker(data))
        for page in self.pages:
            page.receive(self.sent[-1])

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The messages of that type."""
        return [message for message in self.sent if message["type"] == kind]


def hello(publisher: Publisher, wire: Wire, have: int = 0) -> None:
    """A page says hello."""
    runtime.call(publisher.hello, wire, have)


def flush(publisher: Publisher) -> None:
    """Send what waits now, without waiting for the clock."""
    runtime.call(publisher.flush)


def session_of(*turns: Any, gate: bool = False, tools: Sequence[Any] = (), **options: Any) -> Any:
    """A session whose model says these turns; with ``gate`` it asks before it writes files."""
    model = sa.ScriptedModel(
        turns, **{k: options.pop(k) for k in ("delay", "chunk") if k in options}
    )
    gated = {"write_file": True} if gate else None
    return sa.Session(sa.Agent(model, tools=tools, interrupt_on=gated), **options)


def write(path: str = "/report.md", text: str = "# Report", id: str = "w1") -> sa.ToolCall:
    """A call that writes a file."""
    return sa.ToolCall(id, "write_file", {"file_path": path, "content": text})


def plan(*contents: str, id: str = "t1") -> sa.ToolCall:
    """A call that writes the to-do list."""
    todos = [{"id": i, "content": c, "status": "pending"} for i, c in enumerate(contents, 1)]
    return sa.ToolCall(id, "write_todos", {"merge": False, "todos": todos})


def events_of(session: Any) -> list[Event]:
    """A list that fills with the session's events, from its first on."""
    events: list[Event] = []
    session.subscribe(events.append, since=0)
    return events


def reduced(events: Sequence[Event], *, join: bool) -> dict[str, Any]:
    """The view state after these events, one by one or merged as for the wire."""
    state = new_view_state("s", "m")
    for event in merged(events) if join else events:
        reduce(state, plain(wire(event)))
    return state


def ask(session: Any, request: Any) -> dict[str, Any]:
    """The one answer to a request, which no page has made before: its id says only whose it is."""
    answers: list[dict[str, Any]] = []
    asked = request
    if isinstance(id := request.get("id"), str):
        asked = {**request, "id": f"{id} {next(_numbers)}"}
    runtime.call(answer, session, asked, answers.append)
    until(lambda: answers)
    assert len(answers) == 1
    json_packer(answers[0])
    return {**answers[0], "id": id} if answers[0]["id"] == asked.get("id") else answers[0]


_numbers = itertools.count()


def page_of(session: Any) -> Page:
    """A page that shows the session."""
    wire = Wire()
    publisher = Publisher(session)
    page = Page(lambda have: hello(publisher, wire, have))
    wire.pages.append(page)
    page.ask()
    return page


def held_session(*turns: Any) -> tuple[Any, Any, threading.Event]:
    """A session in the middle of a run, that run, and what lets it go on."""
    began, release = threading.Event(), threading.Event()

    @sa.tool
    def hold() -> str:
        """Wait."""
        began.set()
        assert release.wait(PATIENCE)
        return "done"

    session = session_of(sa.ToolCall("h1", "hold", {}), *turns, tools=[hold])
    run = session.send("Go.")
    assert began.wait(PATIENCE)
    return session, run, release
