from __future__ import annotations

import asyncio
from typing import Any

import pytest

import sagents_nb as sa
from tests.talking import agent_of, call, in_threads, results, roles, run


def named(name: str) -> sa.Tool:
    return sa.Tool(lambda: name, name=name)


class Extra(sa.Middleware):
    def __init__(self, id: str, prompt: Any = "", tools: tuple[str, ...] = ()) -> None:
        self.id = id
        self._prompt = prompt
        self._tools = tools

    def system_prompt(self) -> Any:
        return self._prompt

    def tools(self) -> list[sa.Tool]:
        return [named(name) for name in self._tools]


# building


@pytest.mark.spec("S1.1.2")
def test_prompts_are_joined_once_and_empty_ones_leave_no_gap() -> None:
    stack = [Extra("1", ""), Extra("2", "B"), Extra("3", ["C", "D"])]
    agent = agent_of("x", system_prompt="A", middleware=stack)
    assert agent.assembled_system_prompt == "A\n\nB\n\nC\n\nD"
    agent.run("go")
    assert agent.model.requests[0].system == "A\n\nB\n\nC\n\nD"  # type: ignore[attr-defined]


def test_own_tools_come_first_then_those_of_the_middleware_in_order() -> None:
    stack = [Extra("1", tools=("c", "b")), Extra("2", tools=("a",))]
    agent = agent_of("x", tools=[named("z")], middleware=stack)
    assert [t.name for t in agent.tools] == ["z", "c", "b", "a"]
    agent.run("go")
    assert [t.name for t in agent.model.requests[0].tools] == ["z", "c", "b", "a"]  # type: ignore[attr-defined]


def test_functions_become_tools() -> None:
    def look(at: str) -> str:
        """Look."""
        return at

    assert agent_of(tools=[look]).tools[0].description == "Look."


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": [named("a"), named("a")]}, "Two tools are called 'a'"),
        ({"tools": [named("a")], "middleware": [Extra("m", tools=("a",))]}, "Two tools"),
        ({"tools": ["a"]}, "is no tool"),
        ({"middleware": [Extra("m"), Extra("m")]}, "Two middlewares have the id 'm'"),
        ({"middleware": ["m"]}, "is no middleware"),
        ({"middleware": [Extra]}, "is no middleware"),
        ({"max_runs": -1}, "max_runs"),
        ({"max_runs": "many"}, "max_runs"),
        ({"interrupt_on": {"nothing": True}}, "interrupt_on names nothing"),
        ({"until_tool": "nothing"}, "until_tool names nothing"),
    ],
)
def test_an_agent_that_cannot_work_is_refused_when_it_is_made(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(sa.ConfigurationError, match=said):
        agent_of(**options)


def test_ids_are_generated_and_differ() -> None:
    assert agent_of().agent_id != agent_of().agent_id
    assert agent_of(agent_id="mine").agent_id == "mine"


def test_gating_is_last_and_only_there_if_something_is_gated() -> None:
    def stack(**options: Any) -> list[str]:
        return [type(m).__name__ for m in sa.Agent(sa.ScriptedModel([]), **options).middleware]

    assert stack()[:2] == ["TodoList", "FileSystem"]
    for empty in (None, {}):
        assert "HumanInTheLoop" not in stack(interrupt_on=empty)
    options = {"middleware": [Extra("m")], "interrupt_on": {"ls": True}}
    assert stack(**options)[-2:] == ["Extra", "HumanInTheLoop"]
    assert stack(replace_default_middleware=True) == []


def test_an_agent_cannot_be_changed_but_copied_with_a_change() -> None:
    agent = agent_of("x", system_prompt="A", tools=[named("a")])
    with pytest.raises(AttributeError, match="with_"):
        agent.system_prompt = "B"  # type: ignore[attr-defined]
    changed = agent.with_(system_prompt="B")
    assert (agent.assembled_system_prompt, changed.assembled_system_prompt) == ("A", "B")
    assert (changed.agent_id, changed.model) == (agent.agent_id, agent.model)
    assert [t.name for t in changed.tools] == ["a"]
    with pytest.raises(sa.ConfigurationError, match="colour"):
        agent.with_(colour="red")


# running


def test_a_run_starts_from_text_messages_a_part_or_a_state() -> None:
    state = sa.State(messages=[sa.Message.user("from a state")])
    for prompt, last in (
        ("text", "text"),
        (sa.Message.user("message"), "message"),
        (sa.TextPart("part"), "part"),
        ([sa.Message.user("one"), sa.Message.user("two")], "two"),
        (state, "from a state"),
    ):
        result = agent_of("ok").run(prompt)
        assert result.state.messages[-2].text == last


@pytest.mark.spec("S1.1.8")
@pytest.mark.parametrize("prompt", [5, None, [5], [None], {"role": "user"}, "", "  ", object()])
def test_what_is_no_message_is_refused_before_any_model_call(prompt: Any) -> None:
    agent = agent_of("never")
    with pytest.raises(sa.ConfigurationError):
        agent.run(prompt)
    assert agent.model.requests == []  # type: ignore[attr-defined]


def test_a_conversation_goes_on_from_the_state_of_a_result() -> None:
    agent = agent_of("one", "two")
    first = agent.run("a")
    second = agent.run("b", state=first.state)
    assert [m.text for m in second.state.messages] == ["a", "one", "b", "two"]
    assert [m.text for m in second.messages] == ["b", "two"]
    assert len(first.state.messages) == 2


def test_an_agent_keeps_nothing_of_its_runs() -> None:
    agent = agent_of("one", "two")
    agent.run("a")
    assert roles(agent.run("b").state.messages) == ["user", "assistant"]


def test_options_and_context_reach_the_model_and_the_tools() -> None:
    def look(ctx: sa.ToolContext) -> str:
        return ctx.values["key"]  # type: ignore[no-any-return]

    agent = agent_of(
        call("look"), "ok", tools=[look], options={"max_tokens": 5}, tool_context={"key": "v"}
    )
    assert results(agent.run("go").state) == ["v"]
    assert agent.model.requests[0].options == {"max_tokens": 5}  # type: ignore[attr-defined]


def test_running_awaiting_and_resuming_give_the_same() -> None:
    def act() -> str:
        return "acted"

    def agent() -> sa.Agent:
        return agent_of(call("act"), "done", tools=[act], interrupt_on={"act": True})

    async def awaited() -> sa.RunResult:
        one = agent()
        return await one.aresume(await one.arun("go"), sa.Approve())

    blocking = agent()
    one = blocking.resume(blocking.run("go"), sa.Approve())
    other = run(awaited())
    assert one.state == other.state
    assert (one.status, other.status) == ("completed", "completed")


def test_an_option_that_a_run_does_not_have_is_refused() -> None:
    with pytest.raises(sa.ConfigurationError, match="temperature"):
        agent_of("x").run("go", temperature=1)


def test_one_agent_runs_in_many_threads_and_loops_at_once() -> None:
    agent = agent_of(*["ok"] * 60)

    async def three() -> list[str]:
        return [r.text for r in await asyncio.gather(*(agent.arun("go") for _ in range(3)))]

    answers = in_threads(10, lambda n: run(three()) if n % 2 else [agent.run("go").text] * 3)
    assert answers == [["ok"] * 3] * 10


def test_usage_and_duration_are_told() -> None:
    answer = sa.Message.assistant("ok", usage=sa.Usage(3, 4))
    result = agent_of(answer).run("go")
    assert result.usage == sa.Usage(3, 4)
    assert 0 <= result.duration < 5


# the public face


@pytest.mark.parametrize("name", sorted(sa.__all__))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(sa, name) is not None


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        sa.nonsense  # noqa: B018


@pytest.mark.spec("S1.2.8")
def test_when_a_model_fails_the_next_answers_the_same_question() -> None:
    asked: list[str] = []
    heard: list[str] = []
    first = sa.ScriptedModel([sa.ModelError("No such key.", kind="authentication")])
    second = sa.ScriptedModel(["I am the other one."])
    agent = sa.Agent(
        first,
        fallback_models=[second],
        before_fallback=lambda model, request: asked.append(type(model).__name__),
    )
    session = sa.Session(agent)
    session.subscribe(lambda event: heard.append(event.type))
    assert session.send("hi").result().text == "I am the other one."
    assert asked == ["ScriptedModel", "ScriptedModel"]
    assert second.requests[0].messages == first.requests[0].messages
    assert "model_retry" in heard
    assert agent.model is first


@pytest.mark.spec("S1.1.6")
@pytest.mark.spec("R4.1.1")
def test_what_is_not_given_has_its_default_and_zero_is_none() -> None:
    agent = agent_of("Hello.")
    assert (agent.max_runs, agent.max_parallel_tools, agent.max_failures) == (50, 5, 3)
    search, delegation = sa.ToolSearch(), sa.Delegation(sa.AgentRegistry())
    assert (search.min_score, sa.ConfidenceCheck().minimum) == (0.3, 80)
    assert (delegation.limit, delegation.min_score, sa.SlidingWindow().turns) == (3, 0.5, 10)
    assert agent_of("Hello.", max_runs=0, max_failures=0).run("Go.").text == "Hello."
    for made in (
        lambda: agent_of(max_parallel_tools=0),
        lambda: sa.ToolSearch(limit=0),
        lambda: sa.Delegation(sa.AgentRegistry(), limit=0),
    ):
        with pytest.raises(sa.ConfigurationError):
            made()


def test_the_default_stack_has_its_order_and_the_gate_is_last() -> None:
    class Own(sa.Middleware):
        pass

    def stack(**options: Any) -> list[str]:
        agent = sa.Agent(sa.ScriptedModel([]), middleware=[Own()], **options)
        return [type(item).__name__ for item in agent.middleware]

    standard = ["TodoList", "FileSystem", "SubAgents", "Summarization", "PatchToolCalls", "Own"]
    assert stack(interrupt_on={"write_file": True}) == [*standard, "HumanInTheLoop"]
    assert stack(interrupt_on={}) == stack() == standard
    assert stack(replace_default_middleware=True) == ["Own"]
    bare = sa.Agent(sa.ScriptedModel([]), replace_default_middleware=True)
    assert bare.middleware == ()


OF_ONE_SERVER = {
    "api_key": "api_key",
    "base_url": "base_url",
    "headers": "headers",
    "extra_headers": "headers",
    "default_headers": "headers",
    "extra_query": "extra_query",
    "timeout": "timeout",
    "max_retries": "retries",
    "api-key": "api_key",
    "X-API-Key": "api_key",
    "access_token": "api_key",
    "credentials": "api_key",
    "password": "api_key",
    "cookies": "headers",
    "organization": "headers",
    "proxy": "options",
    "client": "options",
}


@pytest.mark.parametrize(("name", "argument"), OF_ONE_SERVER.items())
def test_what_is_of_one_server_is_no_option_of_all_requests(name: str, argument: str) -> None:
    secret = {name: {"authorization": "Bearer s3cr3t"}}
    model = sa.ScriptedModel(["never"])
    agent = sa.Agent(model)
    for made in (
        lambda: sa.Agent(model, options=secret),
        lambda: agent.with_(options=secret),
        lambda: agent.run("hi", options=secret),
        lambda: sa.Session(agent).send("hi", options=secret),
        lambda: sa.AgentLoopConfig(model, options=secret),
    ):
        with pytest.raises(sa.ConfigurationError, match=rf"\('NAME', {argument}=…\)") as raised:
            made()
        assert "s3cr3t" not in str(raised.value)
    assert model.requests == []


def test_nor_is_it_in_a_body_of_all_requests() -> None:
    for name in ("api_key", "Api-Key", "password"):
        with pytest.raises(sa.ConfigurationError, match=rf"{name}.*'NAME', extra_body=…") as raised:
            sa.Agent(sa.ScriptedModel([]), options={"extra_body": {name: "s3cr3t", "top_k": 5}})
        assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"extra_body": {"tools": [{"type": "mcp", "authorization": "s3cr3t"}]}}, "authorization"),
        ({"web": {"login": {"password": "s3cr3t"}}}, "password"),
    ],
)
def test_nor_is_it_deeper_in_an_option(options: Any, named: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=rf"{named}': ….*fallbacks too") as raised:
        sa.Agent(sa.ScriptedModel([]), options=options)
    assert "s3cr3t" not in str(raised.value)


def test_what_only_sounds_like_it_goes_into_all_requests() -> None:
    options = {"prompt_cache_key": "k", "max_tokens": 9, "extra_body": {"top_k": 5, "eos_token": 2}}
    model = sa.ScriptedModel(["fine"])
    sa.Agent(model, options=options).run("hi")
    assert model.requests[0].options == options
