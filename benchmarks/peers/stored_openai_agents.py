"""openai-agents with its SQLiteSession, which reads all items in each turn."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import _stored
from _measure import exchanges
from agents import Runner, SQLiteSession
from run_openai_agents import Scripted, agent, item


class Kept:
    """See `Conversation`."""

    def __init__(self, path: Path) -> None:
        self.session = SQLiteSession("s", path.with_suffix(".db"))
        with sqlite3.connect(path.with_suffix(".db")) as connection:  # as its own are
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        self.agent = agent(Scripted())

    async def turn(self) -> Any:
        """`Runner.run`."""
        assert (await Runner.run(self.agent, "go", session=self.session)).final_output == "done"

    def close(self) -> None:
        """The session."""
        self.session.close()


class OpenAIAgents:
    """See `Contestant`."""

    async def begin(self, path: Path, messages: int) -> Kept:
        """All items at once."""
        made = Kept(path)
        await made.session.add_items([item(*kind) for kind in exchanges(messages)])
        return made


if __name__ == "__main__":
    _stored.main(OpenAIAgents(), "openai-agents")
