"""Trees of delegations with budgets: nobody below uses more than all above them have left."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest

TOKENS = 2
"""Of each call of a model."""


class Tree:
    """Agents below agents, with a budget for the task of each; one hands on to all below it.

    An agent that is refused something goes on with what is left for it. ``calls`` are those that
    models answered, by agent.
    """

    def __init__(self, agents: sa.AgentRegistry, chance: random.Random) -> None:
        self.chance = chance
        self.calls: Counter[str] = Counter()
        self.above: dict[str, str | None] = {"a0": None}
        self.limits: dict[str, sa.Budget] = {}
        self._lock = threading.Lock()
        for number in range(1, chance.randint(2, 6)):
            self.above[f"a{number}"] = f"a{chance.randrange(number)}"
        for name in reversed(self.above):
            below = [each for each, parent in self.above.items() if parent == name]
            for each in below:
                self.limits[each] = self._budget()
            agents.add(self._agent(agents, name, below))
        self.limits["a0"] = self._budget()

    def _budget(self) -> sa.Budget:
        of_calls, of_tokens = (self.chance.choice([None, *range(13)]) for _ in range(2))
        return sa.Budget(model_calls=of_calls, tokens=of_tokens)

    def _agent(self, agents: sa.AgentRegistry, name: str, below: list[str]) -> sa.Agent:
        calls = [
            sa.ToolCall(f"c{i}", f"agent__{each}", {"instructions": "Go on."})
            for i, each in enumerate(below)
        ]
        at_once = self.chance.random() < 0.5
        rounds: list[Any] = [calls] if at_once and calls else list(calls)

        def answer(request: ModelRequest) -> sa.Message:
            with self._lock:
                self.calls[name] += 1
            turn = sum(message.role == "assistant" for message in request.messages)
            asked = rounds[turn] if turn < len(rounds) else []
            made = asked if isinstance(asked, list) else [asked]
            return sa.Message.assistant("On it.", made, usage=sa.Usage(1, TOKENS - 1))

        return sa.Agent(
            sa.ScriptedModel([answer] * 1_000, chunk=1000),
            name=name,
            description=f"Agent {name}.",
            middleware=[Delegations(agents, self.limits)],
            replace_default_middleware=True,
            max_failures=0,
        )

    def used(self, name: str) -> int:
        """The model calls of an agent and of all below it."""
        below = [each for each, parent in self.above.items() if parent == name]
        return self.calls[name] + sum(map(self.used, below))

    def check(self) -> None:
        for name, limit in self.limits.items():
            used = self.used(name)
            assert limit.model_calls is None or used <= limit.model_calls, (name, limit)
            # Of many at the same time each that is under way goes beyond it by its own call.
            many = sum(self.is_below(each, name) for each in self.above)
            most = None if limit.tokens is None else limit.tokens + TOKENS * many
            assert most is None or TOKENS * used <= most, (name, limit)

    def is_below(self, name: str | None, above: str) -> bool:
        while name not in (None, above):
            name = self.above[name]  # type: ignore[index]
        return name == above


class Delegations(sa.Delegation):
    """One that gives each delegate the budget that is written for it."""

    def __init__(self, agents: sa.AgentRegistry, limits: dict[str, sa.Budget]) -> None:
        super().__init__(agents, limit=9, max_depth=9)
        self._limits = limits

    async def delegate(self, ctx: sa.ToolContext, instructions: str, name: str) -> Any:
        of_this = sa.Delegation(self.agents, 9, max_depth=9, budget=self._limits.get(name))
        return await of_this.delegate(ctx, instructions, name)


def grow(trees: int, seed: int) -> Counter[str]:
    figures = Counter[str]()
    chance = random.Random(seed)
    for _ in range(trees):
        with sa.AgentRegistry().store as store:
            agents = sa.AgentRegistry(store)
            tree = Tree(agents, chance)
            try:
                agents.agent_named("a0").with_(budget=tree.limits["a0"]).run("Go.")
                figures["done"] += 1
            except sa.BudgetExceeded:
                figures["used up"] += 1
            tree.check()
            figures["calls"] += tree.calls.total()
            figures["tasks failed"] += len(store.tasks.list("failed", limit=100))
    return figures


@pytest.mark.spec("R4.3.6")
def test_nobody_uses_more_than_all_above_have_left() -> None:
    figures = grow(25, seed=7)
    assert min(figures["done"], figures["used up"], figures["tasks failed"]) > 0, figures


@pytest.mark.soak
def test_in_a_thousand_trees_nobody_uses_more_than_all_above_have_left() -> None:
    print(grow(1_000, seed=11))
