"""pydantic-ai, which has no store: each turn's messages are written by hand, as its docs do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import _stored
from _measure import exchanges
from pydantic_ai.messages import ModelMessagesTypeAdapter
from run_pydantic_ai import NO_LIMIT, agent, message, model


class Kept:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        self.messages = [message(*item) for item in exchanges(messages)]
        encoded = (ModelMessagesTypeAdapter.dump_json([m]).decode() for m in self.messages)
        self.rows = _stored.Rows(path.with_suffix(".db"), encoded)
        self.agent = agent(model())

    async def turn(self) -> Any:
        """`Agent.run`, which is given the history."""
        history = self.messages
        result = await self.agent.run("go", message_history=history, usage_limits=NO_LIMIT)
        assert result.output == "done"
        self.rows.add(result.new_messages_json().decode())
        self.messages = result.all_messages()

    def close(self) -> None:
        """The file."""
        self.rows.close()


class PydanticAI:
    """See `Contestant`."""

    begin = Kept


if __name__ == "__main__":
    _stored.main(PydanticAI(), "pydantic-ai-slim")
