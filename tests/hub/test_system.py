"""What agents of a hub are made of: tools and middleware by tags, and what they may be told."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from tests.hub.world import World, chat, data_of, rest, say
from tests.talking import call, until


def look(at: str = "") -> str:
    """Look."""
    return f"seen {at}"


def system() -> AgentSystem:
    return AgentSystem(sa.ScriptedModel(["hi"] * 9))


def names(system: AgentSystem, *tags: str, **config: Any) -> set[str]:
    return set(system.agent(Blueprint("a", "Be.", tags=tags, config=config)).tools_by_name)


@pytest.mark.spec("H3.4.3")
def test_tags_select_tools_and_middleware() -> None:
    class Asks(sa.AskUser):
        tags = ("people",)

    made = system().defaults().add_tool(look, "travel")
    made.add_tool(sa.tool(look, name="usual"))
    made.use(Asks, ["travel"], key="asks")
    assert "look" not in names(made)
    assert {"usual", "write_todos", "read_file"} <= names(made)
    assert names(made, "travel") == {"look", "ask_user"}
    assert names(made, "people") == {"ask_user"}
    assert names(made, "planning") == {"write_todos"}
    assert {"default", "planning", "filesystem", "travel", "people"} <= made.tags


@pytest.mark.spec("H3.4.3")
def test_a_tag_that_selects_nothing_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    names(system(), "default", "nowhere")
    assert "nowhere" in caplog.text
    assert "default" not in caplog.text


def test_a_config_that_nothing_takes_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    names(system(), hitl={"tools": []}, plannig={})
    assert "plannig" in caplog.text
    assert "hitl" not in caplog.text


@pytest.mark.parametrize("name", ["lok", "pay", "ask_user"])
def test_people_are_asked_about_tools_that_the_tags_give_or_a_pattern_is_about(name: str) -> None:
    made = system().defaults().add_tool(look).add_tool(sa.tool(look, name="pay"), "shop")
    made.use(sa.AskUser, "shop")

    def gated(*names: str, **more: Any) -> Blueprint:
        return Blueprint("guide", "Be.", config={"hitl": {"tools": names}}, **more)

    with pytest.raises(sa.ConfigurationError, match=f"names '{name}', which its tags do not give"):
        made.check(gated("look", "task", name))
    made.check(gated("look", "task", "pay", "ask_user", "mcp_*", tags=["default", "shop"]))


@pytest.mark.parametrize(
    "config",
    [
        {"hitl": {"tool": ["look"]}},
        {"hitl": {}},
        {"hitl": {"tools": ["look"], "nope": 1}},
        {"HITL": {"tools": ["look"]}},
    ],
)
def test_a_config_by_which_nobody_would_be_asked_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(sa.ConfigurationError, match="hitl"):
        system().add_tool(look).check(Blueprint("guide", "Be.", config=config))


@pytest.mark.spec("H3.4.3")
@pytest.mark.parametrize("tool", [lambda at: at, functools.partial(look, "sea")])
def test_a_tool_without_a_name_is_refused(tool: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="has no name"):
        system().add_tool(tool)


@pytest.mark.spec("H3.4.4")
def test_of_tools_of_one_name_the_later_counts_and_a_middlewares_before_both() -> None:
    def described(text: str, name: str = "look") -> sa.Tool:
        return sa.tool(look, name=name, description=text)

    class Brings(sa.Middleware):
        def tools(self) -> list[sa.Tool]:
            return [described("a middleware's")]

    made = system().add_tool(described("first")).add_tool(described("second"))
    assert made.agent(Blueprint("a", "Be.")).tools_by_name["look"].description == "second"
    made.use(Brings)
    agent = made.agent(Blueprint("a", "Be."))
    assert agent.tools_by_name["look"].description == "a middleware's"


@pytest.mark.spec("H3.4.5")
def test_the_model_is_the_blueprints_else_the_default() -> None:
    made = AgentSystem("demo")
    assert made.agent(Blueprint("a", "Be.")).model.name == "demo"
    agent = made.agent(Blueprint("a", "Be.", model="openai:gpt-5"))
    assert agent.model.name == "gpt-5"


@pytest.mark.spec("H3.4.5")
def test_a_tool_that_a_hook_adds_is_there_in_that_call_and_in_the_state(world: World) -> None:
    class Adds(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> None:
            if "extra" not in ctx.tools:
                ctx.add_tools([sa.tool(look, name="extra")])

    world.system.use(Adds)
    thread = world.thread(call("extra", at="sea"), "done")
    say(thread, "a")
    assert ("tool", "seen sea") in chat(thread)
    assert "extra" in {tool.name for tool in world.model.requests[0].tools}
    assert "extra" in {tool["name"] for tool in thread.state()["state"]["tools"]}


@pytest.mark.spec("H3.4.1")
def test_todos_are_replaced_as_a_whole_and_mended(world: World) -> None:
    todos = [{"content": "x" * 3_000, "status": "begun"}, {"content": "b", "status": "completed"}]
    thread = world.thread(
        call("write_todos", todos=[{"content": "old", "status": "pending"}]),
        call("write_todos", "t2", todos=todos),
        "done",
    )
    say(thread, "a")
    seen = thread.state()["state"]["todos"]
    assert [(len(todo["content"]), todo["status"]) for todo in seen] == [
        (2_000, "pending"),
        (1, "completed"),
    ]
    assert "2" in [text for role, text in chat(thread) if role == "tool"][-1]


@pytest.mark.spec("H3.4.2")
def test_a_file_has_to_be_read_before_it_is_edited_also_in_an_earlier_run(world: World) -> None:
    def edit(id: str) -> sa.ToolCall:
        return call("edit_file", id, file_path="/a.md", old_string="x", new_string="y")

    thread = world.thread(
        call("write_file", "f1", file_path="/a.md", content="x"),
        edit("f2"),
        call("read_file", "f3", file_path="/a.md"),
        "read",
    )
    say(thread, "a")
    thread = world.reopened(thread, edit("f4"), "done")
    say(thread, "b")
    results = [text for role, text in chat(thread) if role == "tool"]
    assert results[1].startswith("Error:")
    assert "read" in results[1]
    assert thread.state()["state"]["files"] == {"/a.md": "y"}


@pytest.mark.spec("H3.1.4", "H3.5.3")
def test_a_run_asks_its_model_so_often_and_not_more(world: World) -> None:
    world.says(*[call("look", f"l{n}") for n in range(4)], "done")
    limited = world.hub.create_thread(world.agency, "clerk", variables={"MAX_ITERATIONS": 2})
    assert say(limited, "a") == "error"
    assert "2 calls" in data_of(world.events(limited), "agent.error")[0]["error"]
    world.says(*[call("look", f"l{n}") for n in range(250)], "done")
    unlimited = world.hub.create_thread(world.agency, "clerk", variables={"MAX_ITERATIONS": 0})
    assert say(unlimited, "a") == "completed"
    assert world.system.agent("clerk").max_runs == 200
    with pytest.raises(sa.ConfigurationError, match="MAX_ITERATIONS"):
        world.hub.create_thread(world.agency, "clerk", variables={"MAX_ITERATIONS": "many"})


@pytest.mark.spec("H3.1.4")
def test_a_blank_answer_is_asked_for_again(world: World) -> None:
    thread = world.thread("", "  ", "done")
    assert say(thread, "a") == "completed"
    assert chat(thread)[-1] == ("assistant", "done")
    assert world.told(thread, "run.tick") == ["run.tick"] * 3


@pytest.mark.spec("H3.1.5", "H3.5.3")
def test_the_calls_of_a_turn_run_side_by_side_and_25_at_most(world: World) -> None:
    most = at_work = 0

    async def wait() -> str:
        nonlocal most, at_work
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.02)
        at_work -= 1
        return "waited"

    world.system.add_tool(sa.tool(wait, description="Wait."))
    thread = world.thread([call("wait", f"w{n}") for n in range(60)], "done")
    assert say(thread, "a") == "completed"
    assert most == 25
    ids = [m["toolCallId"] for m in thread.state()["state"]["messages"] if m["role"] == "tool"]
    assert ids == [f"w{n}" for n in range(60)]
    assert len(world.model.requests) == 2


def test_variables_are_what_tools_are_told_from_the_next_run_on(stored_world: World) -> None:
    world = stored_world

    def where(ctx: sa.ToolContext) -> str:
        return str(ctx.values.get("city"))

    world.system.add_tool(sa.tool(where, description="Where."))
    world.says(call("where"), call("hold"), call("where", "w2"), "one", call("where", "w3"), "two")
    thread = world.hub.create_thread(world.agency, "clerk", variables={"city": "Oslo", "x": 1})
    thread.invoke([sa.Message.user("a")])
    world.holds.wait()
    world.hub.set_variables(world.agency, thread, {"city": "Bergen"})
    world.go_on.set()
    until(lambda: rest(thread) == "completed")
    say(thread, "b")
    told = [text for role, text in chat(thread) if role == "tool" and text != "held"]
    assert told == ["Oslo", "Oslo", "Bergen"]
    thread = world.reopened(thread)
    assert thread.record.variables == {"city": "Bergen", "x": 1}


def test_agents_without_options_share_the_file_tools_and_others_have_their_own() -> None:
    own = {"filesystem": {"enabled_tools": ["ls"]}}
    system = AgentSystem(sa.ScriptedModel([])).defaults()
    system.add_agent(Blueprint("one", "Be brief.")).add_agent(Blueprint("other", "Be kind."))
    system.add_agent(Blueprint("third", "Be quick.", config=own))
    one, other, third = (system.agent(name).tools_by_name for name in ("one", "other", "third"))
    assert one["ls"] is other["ls"]
    assert one["task"] is not other["task"]  # whose sub-agents are another thread's
    assert third["ls"] is not one["ls"]
    assert "write_file" not in third
