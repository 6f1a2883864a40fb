"""langgraph's SqliteSaver: each checkpoint is a row with all messages."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import _journal
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver


class Checkpointed:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        self.saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
        self.saver.setup()
        self.config = {"configurable": {"thread_id": "c", "checkpoint_ns": ""}}
        self.messages = [HumanMessage(_journal.text(n), id=str(n)) for n in range(messages)]

    def add(self, number: int) -> None:
        """A checkpoint, as the graph puts one after each step."""
        self.messages.append(HumanMessage(_journal.text(number), id=str(number)))
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": self.messages}
        checkpoint["channel_versions"] = {"messages": f"{number:032}.0"}
        metadata = {"source": "loop", "step": number, "parents": {}}
        versions = checkpoint["channel_versions"]
        self.config = self.saver.put(self.config, checkpoint, metadata, versions)


class Langgraph:
    """See `Contestant`."""

    begin = Checkpointed


if __name__ == "__main__":
    _journal.main("langgraph", Langgraph(), "langgraph-checkpoint-sqlite")
