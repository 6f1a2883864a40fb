"""deepagents with langgraph's SqliteSaver, as `invoke` uses it: each step is a checkpoint."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import _stored
from _measure import exchanges
from deepagents import create_deep_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from run_deepagents import Scripted, add, message

CONFIG = {"configurable": {"thread_id": "t"}, "recursion_limit": 10_000}


class Graph:
    """An agent whose checkpoints are in a file."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, check_same_thread=False)
        saver = SqliteSaver(self.connection)
        saver.setup()
        assert self.connection.execute("PRAGMA synchronous").fetchone() == (2,)
        self.agent = create_deep_agent(
            model=Scripted(), tools=[add], system_prompt="Be brief.", checkpointer=saver
        )


class Kept:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        # It grows by a hundred at a time, in memory: by exchanges it would take minutes.
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            grown = Graph(Path(folder, "s.db"))
            history = [message(*item) for item in exchanges(messages)]
            for first in range(0, messages, 100):
                some = {"messages": history[first : first + 100]}
                grown.agent.update_state(CONFIG, some, as_node="model")
            grown.connection.close()
            shutil.copy(Path(folder, "s.db"), path.with_suffix(".db"))
        self.graph = Graph(path.with_suffix(".db"))

    def turn(self) -> None:
        """`invoke`."""
        state: Any = self.graph.agent.invoke({"messages": [HumanMessage("go")]}, CONFIG)
        assert state["messages"][-1].content == "done"

    def close(self) -> None:
        """The file."""
        self.graph.connection.close()


class DeepAgents:
    """See `Contestant`."""

    begin = Kept


if __name__ == "__main__":
    _stored.main(DeepAgents(), "deepagents")
