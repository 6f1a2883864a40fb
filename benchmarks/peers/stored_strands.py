"""strands with its FileSessionManager, which never syncs; with "synced", each file is."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import _stored
from _measure import exchanges
from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models.model import Model
from strands.session.file_session_manager import FileSessionManager


class Scripted(Model):
    """Answers."""

    def update_config(self, **kwargs: Any) -> None:
        """None."""

    def get_config(self) -> Any:
        """Its name."""
        return {"model_id": "scripted"}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """Never asked."""
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """The whole answer."""
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 0}}}


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b


def message(kind: str, n: int) -> Any:
    call = f"h{n}"
    if kind == "user":
        return {"role": "user", "content": [{"text": f"turn number {n}"}]}
    if kind == "call":
        use = {"toolUseId": call, "name": "add", "input": {"a": n, "b": 1}}
        return {"role": "assistant", "content": [{"toolUse": use}]}
    if kind == "result":
        result = {"toolUseId": call, "status": "success", "content": [{"text": str(n + 1)}]}
        return {"role": "user", "content": [{"toolResult": result}]}
    return {"role": "assistant", "content": [{"text": "done"}]}


class Synced(FileSessionManager):
    """One whose files, and their names, are on the disk when they are written."""

    is_begun = False

    def _write_file(self, path: str, data: dict[str, Any]) -> None:
        super()._write_file(path, data)
        for each in (path, os.path.dirname(path)) if self.is_begun else ():
            opened = os.open(each, os.O_RDONLY)
            os.fsync(opened)
            os.close(opened)


class Kept:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        kind = Synced if "synced" in sys.argv else FileSessionManager
        manager = kind(session_id="s", storage_dir=str(path))
        self.agent = Agent(
            model=Scripted(),
            tools=[add],
            system_prompt="Be brief.",
            callback_handler=None,
            session_manager=manager,
            agent_id="a",
            conversation_manager=NullConversationManager(),
        )
        for item in exchanges(messages):
            self.agent.messages.append(message(*item))
            manager.append_message(self.agent.messages[-1], self.agent)
        manager.is_begun = True

    async def turn(self) -> Any:
        """`Agent.invoke_async`."""
        assert str(await self.agent.invoke_async("go")).strip() == "done"

    def close(self) -> None:
        """It keeps no file open."""


class Strands:
    """See `Contestant`."""

    begin = Kept


if __name__ == "__main__":
    _stored.main(Strands(), "strands-agents")
