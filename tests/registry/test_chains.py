"""Chains of delegations: what would go in a circle or too deep is refused before it is done."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest
from tests.talking import PATIENCE

NAMES = "abcde"

CHAINS = [chain for length in range(2, 5) for chain in itertools.product(NAMES, repeat=length)]


class Asked:
    """Agents that hand a task on along the path that its text names; and who was asked how often.

    The text of a task is the path that is left, such as "bca".
    """

    def __init__(self, agents: sa.AgentRegistry, max_depth: int = 9) -> None:
        self.agents = agents
        self.calls: Counter[str] = Counter()
        self.refusals: list[str] = []
        self._lock = threading.Lock()
        self.by_name = {name: self._agent(name, max_depth) for name in NAMES}
        for agent in self.by_name.values():
            agents.add(agent)

    def _agent(self, name: str, max_depth: int) -> sa.Agent:
        def answer(request: ModelRequest) -> Any:
            with self._lock:
                self.calls[name] += 1
            last = request.messages[-1]
            if last.role == "user" and last.text != "-":
                following, rest = last.text[0], last.text[1:] or "-"
                return self.handing_on(following, rest)
            for result in last.tool_results:
                if result.is_error:
                    with self._lock:
                        self.refusals.append(result.text)
            return f"{name} is done"

        return sa.Agent(
            sa.ScriptedModel([answer] * 10_000, chunk=1000),
            name=name,
            description=f"Agent {name}.",
            middleware=[sa.Delegation(self.agents, limit=9, max_depth=max_depth)],
            replace_default_middleware=True,
        )

    def handing_on(self, following: str, rest: str) -> sa.ToolCall:
        return sa.ToolCall("c1", f"agent__{following}", {"instructions": rest})


def allowed(chain: Sequence[str]) -> list[str]:
    """Those of a chain who are asked: up to the first that is in it already."""
    seen: list[str] = []
    for name in chain:
        if name in seen:
            break
        seen.append(name)
    return seen


def expected(chain: Sequence[str]) -> Counter[str]:
    """How often each model is asked: the last once, those that handed on twice."""
    asked = allowed(chain)
    counts = Counter(dict.fromkeys(asked, 2))
    if len(asked) == len(chain):
        counts[asked[-1]] = 1
    return counts


@pytest.fixture
def asked(agents: sa.AgentRegistry) -> Asked:
    return Asked(agents)


@pytest.mark.spec("R4.3.5")
def test_no_chain_goes_in_a_circle(asked: Asked) -> None:
    follow(asked, [chain for chain in CHAINS if len(chain) < 4 and chain[0] < "c"] + CHAINS[-12:])


@pytest.mark.soak
def test_no_chain_of_up_to_four_goes_in_a_circle(asked: Asked) -> None:
    follow(asked, CHAINS)


def follow(asked: Asked, chains: Sequence[Sequence[str]]) -> None:
    for chain in chains:
        asked.calls.clear()
        asked.refusals.clear()
        asked.by_name[chain[0]].run("".join(chain[1:]))
        assert asked.calls == expected(chain), chain
        refused = len(allowed(chain)) < len(chain)
        assert len(asked.refusals) == refused, chain
        if refused:
            shown = " → ".join([*allowed(chain), chain[len(allowed(chain))]])
            assert shown in asked.refusals[0]
    tasks = asked.agents.store.tasks.list()
    assert len(tasks) == sum(len(allowed(chain)) - 1 for chain in chains)


@pytest.mark.spec("R4.3.5")
def test_fifty_chains_at_once_know_nothing_of_each_other(asked: Asked) -> None:
    chains = CHAINS[-50:]
    barrier = threading.Barrier(len(chains))

    def go(chain: Sequence[str]) -> None:
        barrier.wait(PATIENCE)
        asked.by_name[chain[0]].run("".join(chain[1:]))

    threads = [threading.Thread(target=go, args=[chain]) for chain in chains]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked.calls == sum(map(expected, chains), Counter[str]())
    assert len(asked.refusals) == sum(len(allowed(c)) < len(c) for c in chains)


@pytest.mark.spec("R4.3.5")
def test_a_sub_agent_stands_in_the_chain_of_its_parent(agents: sa.AgentRegistry) -> None:
    asked = Asked(agents)
    others = [name for name in NAMES if name != "a"]
    for inner, following in itertools.product(others, NAMES):
        asked.calls.clear()
        asked.refusals.clear()
        task = {"instructions": following, "subagent_type": inner}
        model = sa.ScriptedModel([sa.ToolCall("c1", "task", task), "done"])
        parent = sa.Agent(
            model,
            name="a",
            middleware=[sa.SubAgents([asked.by_name[inner]])],
            replace_default_middleware=True,
        )
        parent.run("go")
        circle = following in ("a", inner)
        assert asked.calls == Counter({inner: 2} if circle else {inner: 2, following: 1})
        assert [f"a → {inner} → {following}" in said for said in asked.refusals] == [True] * circle


@pytest.mark.spec("R4.3.5")
def test_a_chain_has_an_end(agents: sa.AgentRegistry) -> None:
    asked = Asked(agents, max_depth=3)
    asked.by_name["a"].run("bcde")
    assert asked.calls == Counter(a=2, b=2, c=2)
    assert "at most 3 agents may be in a chain (a → b → c → d)" in asked.refusals[0]


def test_who_comes_first_says_how_long_a_chain_may_be(agents: sa.AgentRegistry) -> None:
    asked = Asked(agents, max_depth=9)
    strict = asked.by_name["a"].with_(
        middleware=[sa.Delegation(agents, limit=9, max_depth=2)], replace_default_middleware=True
    )
    strict.run("bc")
    assert asked.calls == Counter(a=2, b=2)
    assert "(a → b → c)" in asked.refusals[0]


def test_a_chain_goes_on_after_a_process(agents: sa.AgentRegistry) -> None:
    asked = Asked(agents)
    asked.by_name["a"].run("bcd")
    [last] = agents.store.tasks.list(agent="d")
    assert (last.chain, last.caller, last.max_depth) == (("a", "b", "c", "d"), "c", 9)
