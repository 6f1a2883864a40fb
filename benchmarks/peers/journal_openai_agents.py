"""openai-agents' SQLiteSession: a row per item."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import _journal
from agents import SQLiteSession


def item(number: int) -> Any:
    return {"role": "user", "content": _journal.text(number)}


class Remembered:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        self.session = SQLiteSession("c", path)
        self.runner = asyncio.Runner()
        self.runner.run(self.session.add_items([item(n) for n in range(messages)]))

    def add(self, number: int) -> None:
        """One item, as after each turn."""
        self.runner.run(self.session.add_items([item(number)]))


class OpenAIAgents:
    """See `Contestant`."""

    begin = Remembered


if __name__ == "__main__":
    _journal.main("openai-agents", OpenAIAgents(), "openai-agents")
