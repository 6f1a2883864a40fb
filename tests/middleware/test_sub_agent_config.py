from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from tests.middleware.delegating import helper, look, parent_of, requests_of, task
from tests.talking import agent_of

GOOD: dict[str, Any] = {
    "name": "reader",
    "description": "Reads.",
    "system_prompt": "You read.",
    "tools": [look],
}


@pytest.mark.spec("S1.13.4")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": ""}, "name must be text"),
        ({"name": None}, "name must be text"),
        ({"name": "n" * 101}, "101 characters; at most 100"),
        ({"name": "general-purpose"}, "always there"),
        ({"description": " "}, "description must be text"),
        ({"description": "d" * 501}, "at most 500"),
        ({"system_prompt": ""}, "system_prompt must be text"),
        ({"system_prompt": None}, "system_prompt must be text"),
        ({"system_prompt": "p" * 10_001}, "at most 10,000"),
        ({"tools": []}, "has no tools"),
        ({"tools": None}, "has no tools"),
        ({"tools": ["look"]}, "no tool"),
        ({"until_tool": "submit"}, "until_tool names 'submit'"),
        ({"until_tool": ["look", "submit"]}, "until_tool names 'submit'"),
        ({"model": "gpt"}, "names no model"),
        ({"middleware": [sa.TodoList]}, "no middleware"),
    ],
)
def test_what_cannot_work_is_refused_at_once(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=said):
        sa.SubAgentConfig(**{**GOOD, **wrong})


@pytest.mark.spec("S1.13.4")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": ""}, "name must be text"),
        ({"agent": "demo"}, "agent must be an Agent"),
        ({"agent": sa.Agent}, "agent must be an Agent"),
        ({"initial_messages": "hi"}, "must be a list of Message objects, not str"),
        ({"initial_messages": [{"role": "user"}]}, "holds dict"),
        ({"extract_result": "text"}, "extract_result"),
    ],
)
def test_so_is_an_agent_that_is_none(wrong: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"name": "reader", "description": "Reads.", "agent": agent_of()}
    with pytest.raises(sa.ConfigurationError, match=said):
        sa.CompiledSubAgent(**{**good, **wrong})


@pytest.mark.spec("S1.13.4")
def test_the_longest_allowed_texts_are_allowed() -> None:
    longest = {"name": "n" * 100, "description": "d" * 500, "system_prompt": "p" * 10_000}
    config = sa.SubAgentConfig(**{**GOOD, **longest, "until_tool": "look"})
    assert [tool.name for tool in config.tools] == ["look"]  # type: ignore[union-attr]


@pytest.mark.spec("S1.13.4")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subagents": [helper(), helper()]}, "Two sub-agents are called 'helper'"),
        ({"subagents": ["helper"]}, "SubAgentConfig.*CompiledSubAgent"),
        ({"subagents": [helper(interrupt_on={"lok": True})]}, "'helper'.*lok"),
        ({"subagents": [helper(max_runs=-1)]}, "'helper'.*max_runs"),
        ({"subagents": [helper(tools=[look, look])]}, "'helper'.*Two tools"),
        ({"max_parallel": 0}, "max_parallel"),
        ({"max_depth": 0}, "max_depth"),
    ],
)
def test_an_agent_is_not_made_with_sub_agents_that_cannot_be(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(sa.ConfigurationError, match=said):
        sa.Agent(sa.ScriptedModel([]), subagent_options=options)


def test_a_configured_one_has_its_parents_model_and_options_unless_it_has_its_own() -> None:
    own = helper("from its own", name="own")
    shared = helper(name="shared", model=None)
    agent = parent_of(
        [task("a", "own"), task("b", "shared")],
        "from its parent",
        "done",
        subagents=[own, shared],
        options={"max_tokens": 7},
    )
    result = agent.run("go")
    (answers,) = [m.tool_results for m in result.state.messages if m.role == "tool"]
    assert [answer.text for answer in answers] == ["from its own", "from its parent"]
    assert requests_of(agent)[1].options["max_tokens"] == 7
    assert requests_of(own)[0].options["max_tokens"] == 7


def test_the_default_agent_delegates_and_can_be_told_to_whom() -> None:
    agent = sa.Agent(sa.ScriptedModel([]), subagent_options={"subagents": [helper()]})
    stack = [type(item).__name__ for item in agent.middleware]
    assert stack[:3] == ["TodoList", "FileSystem", "SubAgents"]
    assert "task" in {tool.name for tool in agent.tools}


@pytest.mark.parametrize(
    ("prompt", "delegates"),
    [
        ("Make a plan for the task and write a report to /report.md", False),
        ("List my files", False),
        ("Write 'the agent did its task' to /a.txt", False),
        ("Please ask a helper to list the files.", True),
    ],
)
def test_the_demo_model_delegates_only_when_it_is_told_to(prompt: str, delegates: bool) -> None:
    result = sa.Agent(sa.DemoModel()).run(prompt)
    called = {call.name for message in result.messages for call in message.tool_calls}
    assert ("task" in called) is delegates
    assert result.status == "completed"
