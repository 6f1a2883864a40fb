"""A process that has threads of a hub at work, is stopped, and goes on when another has them.

What it is told are lines on its standard input; what it did are lines of JSON on its output.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import sagents_nb as sa
from sagents_nb.hub import Agency, AgentSystem, Blueprint, Hub, Thread
from sagents_nb.models.base import ModelRequest
from sagents_nb.store.database import leases


def answer(request: ModelRequest) -> Any:
    """The model: one call after the other, until it hears that it is over."""
    last = request.messages[-1]
    if last.text == "over" or (last.role == "tool" and last.tool_results[-1].text == "over"):
        return "done"
    return sa.ToolCall(f"c{len(request.messages)}", "work", {"number": len(request.messages)})


def system_with(done: Callable[[int], str]) -> AgentSystem:
    """A system whose tool says what ``done`` does; nobody knows whether it ran where it was cut."""

    def work(number: int) -> str:
        "Work."
        return done(number)

    model = sa.ScriptedModel(iter(lambda: answer, None), chunk=1000)
    return AgentSystem(model).defaults().add_tool(work).add_agent(Blueprint("clerk", "Work."))


def late_writes(hub: Hub, agency: Agency, thread: Thread) -> dict[str, Callable[[], object]]:
    """All that somebody may have done with a thread, by what it is."""
    said = [sa.Message.user("late")]
    id = thread.record.id
    return {
        "invoke": lambda: thread.invoke(said),
        "invoke with a key": lambda: thread.invoke(said, idempotency_key="late"),
        "invoke with files": lambda: thread.invoke(said, {"/late-invoke.md": "late"}),
        "send": lambda: thread.session.send("late"),
        "steer": lambda: thread.session.steer("late"),
        "approve": lambda: thread.approve(True, by="late"),
        "report": lambda: thread.report("child", "late"),
        "cancel": thread.cancel,
        "retry": lambda: thread.session.retry(),
        "variables": lambda: hub.set_variables(agency, thread, {"late": 1}),
        "files": lambda: thread.session.files.write("/late.md", "late"),
        "events": lambda: thread.tell([("tool.output", {"toolName": "work", "output": "late"})]),
        "delete": lambda: hub.delete_thread(agency, id),
        "open": lambda: hub.thread(agency, id).invoke(said),
    }


def main(url: str, beat: float) -> None:
    """Do what is said."""
    leases.RENEWED_EVERY = beat
    begun: list[int] = []

    def done(number: int) -> str:
        begun.append(number)
        time.sleep(0.002)
        return f"worked {number}"

    hub = Hub(system_with(done), url)
    agency = next(iter(hub.agencies()), None) or hub.create_agency()[0]
    thread: Thread
    tell: Callable[..., None] = lambda **said: print(json.dumps(said), flush=True)  # noqa: E731
    tell(ready=True)
    for line in sys.stdin:
        what, *words = line.split()
        if what == "begin":
            thread = hub.create_thread(agency, "clerk")
            thread.invoke([sa.Message.user("go")], {"/a.md": "before"})
            while len(begun) < 5 + int(words[0]):
                threading.Event().wait(0.005)
            tell(thread=thread.record.id)
        elif what == "late":
            chance, refused = random.Random(words[0]), {}
            before = len(begun)
            writes = late_writes(hub, agency, thread)
            for name in chance.sample(sorted(writes), len(writes)):
                try:
                    writes[name]()
                    refused[name] = ""
                except Exception as error:
                    refused[name] = f"{type(error).__name__}: {error}"
            thread.log.wait()
            tell(refused=refused, began=begun[before:], status=thread.session.status)
            begun.clear()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
