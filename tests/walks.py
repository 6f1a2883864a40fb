"""The two walks of docs/architecture.md, taken with a tracer that sees every call on every thread.

Run as a program, so that the tracer is there before the first thread: ``python -m tests.walks
message`` or ``approve`` prints the calls into the package in the order in which they were made,
one ``file:function`` a line, each that follows itself once.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import sagents_nb as sa
from sagents_nb.session import Session

PACKAGE = f"{Path(sa.__file__).parent}/"


class Tracer:
    """The calls since :meth:`start`, of all threads, in one list."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._on = False
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def start(self) -> None:
        self._on = True

    def stop(self) -> None:
        self._on = False
        threading.setprofile(None)
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if self._on and event == "call" and code.co_filename.startswith(PACKAGE):
            call = f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}"
            if self.calls[-1:] != [call]:
                self.calls.append(call)


def session_in(folder: str, *script: Any, **options: Any) -> Session:
    """A stored session of a scripted agent."""
    from sagents_nb.store import ConversationStore

    agent = sa.Agent(sa.ScriptedModel(script), replace_default_middleware=True, **options)
    return sa.Session(agent, store=ConversationStore(f"{folder}/agents.db"))


def message(tracer: Tracer, folder: str) -> None:
    """A message of the user, up to its answer, which is stored."""
    session = session_in(folder, "Hello!")
    tracer.start()
    session.send("Hi").result()
    tracer.stop()
    session.close()


def approve(tracer: Tracer, folder: str) -> None:
    """A click on Approve, up to the tool's result, which is stored."""
    from sagents_nb.notebook.widget import panel_of

    @sa.tool
    def write(path: str) -> str:
        """Write a file."""
        return "Written."

    call = sa.ToolCall("c1", "write", {"path": "/a"})
    session = session_in(folder, call, "Done.", tools=[write], interrupt_on={"write": True})
    session.send("Write it.").result()
    panel, ended = panel_of(session), threading.Event()
    assert session.interrupt is not None
    (request,) = session.interrupt.action_requests
    content = {
        "type": "decide",
        "id": "1",
        "interrupt_id": session.interrupt.id,
        "decisions": {"c1": {"type": "approve", "digest": request.digest}},
    }

    def hear(event: Any) -> None:
        if event.type == "status_changed" and event.status == "idle":
            ended.set()

    session.subscribe(hear)
    tracer.start()
    data = {"method": "custom", "content": content}
    panel.comm.handle_msg({"content": {"data": data}, "buffers": []})
    ended.wait()
    tracer.stop()
    session.close()


WALKS: dict[str, Callable[[Tracer, str], None]] = {"message": message, "approve": approve}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        tracer = Tracer()
        WALKS[sys.argv[1]](tracer, folder)
        print("\n".join(tracer.calls))
