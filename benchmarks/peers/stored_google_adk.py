"""google-adk with its SqliteSessionService, which reads all events in each turn.

It opens its file for each, so that a write-ahead log would not spare the disk anything.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import _stored
from _measure import exchanges
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

WHERE = {"app_name": "a", "user_id": "u"}


class Scripted(BaseLlm):
    """Answers."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        """The whole answer."""
        yield LlmResponse(content=content("model", types.Part(text="done")))


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def content(role: str, part: types.Part) -> types.Content:
    return types.Content(role=role, parts=[part])


def event(kind: str, n: int) -> Event:
    call, name = f"h{n}", "add"
    if kind == "user":
        return Event(author="user", content=content("user", types.Part(text=f"turn number {n}")))
    if kind == "call":
        asked = types.FunctionCall(id=call, name=name, args={"a": n, "b": 1})
        return Event(author="t", content=content("model", types.Part(function_call=asked)))
    if kind == "result":
        given = types.FunctionResponse(id=call, name=name, response={"result": n + 1})
        return Event(author="t", content=content("user", types.Part(function_response=given)))
    return Event(author="t", content=content("model", types.Part(text="done")))


class Kept:
    """See `Conversation`."""

    def __init__(self, path: Path) -> None:
        agent = LlmAgent(name="t", model=Scripted(), instruction="Be brief.", tools=[add])
        service = SqliteSessionService(str(path))
        self.runner = Runner(app_name="a", agent=agent, session_service=service)

    async def turn(self) -> Any:
        """`Runner.run_async`."""
        asked = content("user", types.Part(text="go"))
        async for each in self.runner.run_async(user_id="u", session_id="s", new_message=asked):
            last = each
        assert last.content.parts[0].text == "done"

    def close(self) -> None:
        """It keeps no file open."""


class GoogleADK:
    """See `Contestant`."""

    async def begin(self, path: Path, messages: int) -> Kept:
        """Event by event, in memory, which is quicker."""
        path = path.with_suffix(".db")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            service = SqliteSessionService(str(Path(folder, "s.db")))
            session = await service.create_session(**WHERE, session_id="s")
            for item in exchanges(messages):
                await service.append_event(session, event(*item))
            shutil.copy(Path(folder, "s.db"), path)
        with sqlite3.connect(path) as connection:  # as its own are
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        return Kept(path)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    _stored.main(GoogleADK(), "google-adk")
