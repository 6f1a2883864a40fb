"""Hubs for tests: each kind of agent says what it is told to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sagents_nb as sa
from sagents_nb.hub import Agency, AgentSystem, Blueprint, Hub, Thread
from tests.talking import until

STILL = ("registered", "paused", "completed", "error", "canceled")


class Speaking(AgentSystem):
    """A system whose agents have models of their own: by the names of their blueprints."""

    def __init__(self, models: Mapping[str, Any]) -> None:
        super().__init__("demo")
        self.defaults()
        for name, turns in models.items():
            self.models[name] = turns if hasattr(turns, "stream") else sa.ScriptedModel(turns)
            self.add_agent(Blueprint(name, f"You are the {name}."))

    @property
    def models(self) -> dict[str, Any]:
        """By the name of a blueprint."""
        return self.__dict__.setdefault("_models", {})

    def agent(self, blueprint: Any, variables: Any = None, delegate: Any = None) -> sa.Agent:
        """With the model of its kind."""
        name = blueprint if isinstance(blueprint, str) else blueprint.name
        self.default_model = self.models.get(name, self.default_model)
        return super().agent(blueprint, variables or {}, delegate)


@contextmanager
def a_hub(path: Path | str, models: Mapping[str, Sequence[Any] | Any]) -> Iterator[Hub]:
    """A hub over that file."""
    hub = Hub(Speaking(models), path)
    try:
        yield hub
    finally:
        hub.close()


def still(thread: Thread, status: str | None = None) -> str:
    """What it is once it does nothing by itself any more, or has that status."""
    until(lambda: thread.status == status if status else thread.status in STILL)
    return thread.status


def told(hub: Hub, agency: Agency, thread: Thread) -> list[str]:
    """The types of what was told of it."""
    return [event.type for event in hub.events(agency, thread.record.id)]


def task(id: str, description: str, kind: str = "worker", **more: Any) -> sa.ToolCall:
    """A call of the tool ``task``."""
    return sa.ToolCall(id, "task", {"description": description, "subagentType": kind, **more})
