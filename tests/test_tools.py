from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import math
import sys
import threading
import weakref
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

import sagents_nb as sa
from sagents_nb.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from tests.talking import PATIENCE, agent_of, call, of, results, run, session_of, streamed, types


def ask(tool: Any, **arguments: Any) -> sa.ToolResult:
    """The result of one call of the tool, as the model reads it and as it is kept."""
    tool = tool if isinstance(tool, sa.Tool) else sa.tool(tool)
    agent = agent_of(call(tool.name, **arguments), "done", tools=[tool])
    result = agent.run("go")
    assert result.text == "done"
    (answer,) = result.state.messages[2].tool_results
    _, request = agent.model.requests  # type: ignore[attr-defined]
    assert request.messages[-1].tool_results == [answer]
    return answer


# what a tool is


class Place(msgspec.Struct):
    name: str


def visit(place: Place, days: int = 1) -> str:
    """Go there."""
    return place.name


def test_what_a_function_takes_is_found_out_once_for_all_agents() -> None:
    first, second = (agent_of(tools=[visit]).tools_by_name["visit"] for _ in range(2))
    assert first is not second
    assert first.arguments is second.arguments
    assert sa.tool(name="go")(visit).arguments is not first.arguments


def test_what_wraps_or_makes_a_function_anew_shares_its_arguments_too() -> None:
    def made(limit: int) -> sa.Tool:
        def look(path: str, most: int = limit) -> None:
            """Look at a file."""

        @functools.wraps(look)
        def logged(*args: Any, **kwargs: Any) -> None:
            look(*args, **kwargs)

        return sa.tool(logged)

    first, second, third = made(1), made(1), made(2)
    assert first.arguments is second.arguments
    assert first.arguments is not third.arguments
    assert third.schema["properties"]["most"]["default"] == 2
    one, other = (sa.FileSystem().tools() for _ in range(2))
    assert [tool.arguments for tool in one] == [tool.arguments for tool in other]


def test_a_function_that_takes_something_else_by_now_is_another_tool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class City(msgspec.Struct):
        mayor: str

    before = sa.tool(visit).schema
    monkeypatch.setitem(globals(), "Place", City)  # as a cell does that is run again
    assert "mayor" in str(sa.tool(visit).schema)
    monkeypatch.undo()
    monkeypatch.setattr(visit, "__defaults__", (True,))
    assert sa.tool(visit).schema["properties"]["days"]["default"] is True
    monkeypatch.undo()
    assert sa.tool(visit).schema == before


def test_a_default_that_has_changed_is_shown_as_it_is() -> None:
    favourites = ["Rome"]

    def travel(to: list[str] = favourites) -> None:
        """Go there."""

    assert sa.tool(travel).schema["properties"]["to"]["default"] == ["Rome"]
    favourites.append("Oslo")
    assert sa.tool(travel).schema["properties"]["to"]["default"] == ["Rome", "Oslo"]


def test_what_functions_take_keeps_none_of_them() -> None:
    def made() -> weakref.ref[Any]:
        class Trip(msgspec.Struct):
            def back(self) -> Any:
                return plan

        def plan(trip: Trip) -> None:
            """Plan it."""

        sa.tool(plan)
        return weakref.ref(plan)

    plans = [made() for _ in range(2_000)]
    gc.collect()
    assert sum(plan() is not None for plan in plans) < 1_000


def test_a_decorated_function_stays_callable() -> None:
    @sa.tool
    def add(a: int, b: Annotated[int, Meta(ge=0)] = 1) -> int:
        """Add two numbers."""
        return a + b

    assert add(2, b=3) == 5
    assert (add.name, add.description, add.__doc__) == ("add",) + ("Add two numbers.",) * 2
    assert add.spec.schema == add.schema


def test_options_replace_what_the_function_says() -> None:
    @sa.tool(name="plus", description="Sum.", idempotent=True, timeout=3.0, run_on="loop")
    def add(a: int) -> int:
        """Other."""
        return a

    assert (add.name, add.description, add.idempotent) == ("plus", "Sum.", True)
    assert (add.timeout, add.run_on) == (3.0, "loop")


@pytest.mark.spec("R4.1.10")
@pytest.mark.parametrize("name", ["", "two words", "x" * 65, "ünï", "a.b", "agent/action"])
def test_a_name_that_providers_refuse_is_refused_at_once(name: str) -> None:
    with pytest.raises(sa.ConfigurationError, match="tool name"):
        sa.Tool(lambda: "", name=name or " ")


def test_a_place_to_run_that_does_not_exist_is_refused() -> None:
    with pytest.raises(sa.ConfigurationError, match="run_on"):
        sa.tool(name="f", run_on="gpu")(lambda: "")  # type: ignore[call-overload]
    with pytest.raises(sa.ConfigurationError, match="async"):

        @sa.tool(run_on="main")
        async def never_there() -> str:
            return ""


# what it gives back


class Opaque:
    def __str__(self) -> str:
        return "an opaque thing"

    __repr__ = __str__


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


@dataclass
class Point:
    x: int


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.spec("S1.2.17")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        ("", ""),
        ({"a": None}, '{"a":null}'),
        (3, "3"),
        ({"a": [1, True]}, '{"a":[1,true]}'),
        ([], "[]"),
        (Opaque(), "an opaque thing"),
        ({"a": [Opaque(), {"b": Opaque()}]}, '{"a":["an opaque thing",{"b":"an opaque thing"}]}'),
        ({1, 2}, "[1,2]"),
        (Point(1), '{"x":1}'),
        (math.nan, "null"),
        (CIRCLE, "[[...]]"),
        (Unspeakable(), "<Unspeakable: its text failed with ValueError>"),
        ("half a \ud800 character", "half a ? character"),
    ],
)
def test_any_value_becomes_text(value: Any, text: str) -> None:
    def give() -> Any:
        return value

    answer = ask(give)
    assert (answer.content, answer.is_error) == (text, False)


@pytest.mark.spec("S1.2.17")
@pytest.mark.spec("H3.1.5")
def test_a_tool_that_gives_nothing_has_no_output() -> None:
    def nothing() -> None:
        pass

    async def later() -> None:
        pass

    def wrapped() -> sa.ToolOutput:
        return sa.ToolOutput(None, metadata={"n": 1})

    assert [ask(tool).content for tool in (nothing, later, wrapped)] == ["(no output)"] * 3
    assert ask(wrapped).metadata == {"n": 1}


@pytest.mark.spec("S1.2.17")
def test_parts_stay_parts() -> None:
    image, file = sa.ImagePart(data="aGk="), sa.FilePart(data="aGk=", name="a.pdf")
    data = sa.JsonPart({"a": [1]})

    def given(value: Any) -> Any:
        def draw() -> Any:
            return value

        return ask(draw).content

    for part in (sa.TextPart("look"), image, file, data):
        assert given(part) == [part]
    assert given([sa.TextPart("look"), image, data]) == [sa.TextPart("look"), image, data]
    assert given(("look", image)) == [sa.TextPart("look"), image]
    assert given(sa.ToolOutput([image])) == [image]


@pytest.mark.spec("S1.2.17")
def test_a_result_that_a_tool_made_itself_is_the_answer_to_its_call() -> None:
    def give() -> Any:
        return sa.ToolResult("another id", "another name", "made", is_error=True, metadata={"k": 1})

    made = sa.ToolResult("c1", "give", "made", is_error=True, metadata={"k": 1})
    assert ask(give) == made


@pytest.mark.spec("S1.2.18", "P15")
def test_an_output_has_content_artifact_metadata_and_a_change_of_the_state() -> None:
    table = object()

    def plan() -> Any:
        return sa.ToolOutput(
            "planned",
            artifact=table,
            update={"todos": [sa.Todo("a")], "metadata": {"k": 1}},
            metadata={"rows": 3},
        )

    seen: list[Any] = []

    def look(ctx: sa.ToolContext) -> str:
        seen.append((ctx.state.todos[:], ctx.state.metadata))
        return ""

    agent = agent_of(call("plan"), call("look", "c2"), "done", tools=[plan, look])
    result = agent.run("go")
    assert result.artifacts == {"c1": table}
    assert result.state.messages[2].tool_results[0].metadata == {"rows": 3}
    assert seen == [([sa.Todo("a", id=1)], {"k": 1})]
    assert len(result.state.messages) == 6


def test_an_impossible_change_of_the_state_is_the_tools_error() -> None:
    def rewrite() -> Any:
        return sa.ToolOutput("fine", update={"messages": []})

    answer = ask(rewrite)
    assert answer.is_error
    assert "todos" in answer.text


def test_a_tool_may_say_that_its_content_is_an_error() -> None:
    def fail() -> Any:
        return sa.ToolOutput("no such city", is_error=True)

    assert ask(fail).is_error


# what it raises


@pytest.mark.spec("A2.1.6")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("bad city"), "ValueError: bad city"),
        (StopIteration(), "StopIteration"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (TimeoutError("the server is slow"), "TimeoutError: the server is slow"),
        (asyncio.CancelledError(), "CancelledError"),
        (Unspeakable, "TypeError"),
        (ExceptionGroup("several", [ValueError("a")]), "several"),
    ],
)
def test_whatever_a_tool_raises_is_an_error_for_the_model_and_the_run_goes_on(
    error: Any, said: str, is_async: bool
) -> None:
    def fail() -> str:
        raise error

    async def fail_later() -> str:
        raise error

    answer = ask(fail_later if is_async else fail)
    assert answer.is_error
    assert said in answer.text


def test_after_a_tool_that_exits_other_runs_go_on() -> None:
    def leave() -> str:
        sys.exit(1)

    ask(leave)
    assert agent_of("alive").run("?").text == "alive"


# where it runs


def test_sync_tools_run_in_workers_and_async_tools_on_the_runtime_loop() -> None:
    names: dict[str, str] = {}

    def work() -> None:
        names["work"] = threading.current_thread().name

    async def loop() -> None:
        names["loop"] = threading.current_thread().name

    @sa.tool(run_on="loop")
    def quick() -> None:
        names["quick"] = threading.current_thread().name

    for tool in (work, loop, quick):
        ask(tool)
    assert names["work"].startswith("sagents-tool")
    assert names["loop"] == names["quick"] == "sagents-runtime"


def test_a_function_that_returns_an_awaitable_is_awaited() -> None:
    async def later() -> str:
        return "now"

    def wrapped() -> Any:
        return later()

    assert ask(wrapped).text == "now"


request_id = contextvars.ContextVar("request_id", default="nobody")


@pytest.mark.parametrize("is_async", [False, True])
def test_context_variables_of_the_caller_are_seen_inside(is_async: bool) -> None:
    def who() -> str:
        return request_id.get()

    async def who_async() -> str:
        return request_id.get()

    tool = who_async if is_async else who
    token = request_id.set("alice")
    try:
        assert ask(tool).text == "alice"
        session = session_of(call(tool.__name__), "done", tools=[tool])
        session.send("go").result()
        assert results(session.state) == ["alice"]
    finally:
        request_id.reset(token)


def test_a_message_that_waited_in_the_queue_still_runs_in_its_senders_context() -> None:
    gate = threading.Event()

    def who() -> str:
        gate.wait(PATIENCE)
        return request_id.get()

    session = session_of(call("who"), "done", call("who", "c2"), "done", tools=[who])

    def send_as(name: str) -> sa.Run:
        request_id.set(name)
        return session.send("go")

    contextvars.copy_context().run(send_as, "alice")
    last = contextvars.copy_context().run(send_as, "bob")
    gate.set()
    last.result()
    assert results(session.state) == ["alice", "bob"]


# the context


@pytest.mark.spec("S1.2.19")
def test_a_tool_is_told_about_its_call() -> None:
    seen: list[Any] = []

    def look(ctx: sa.ToolContext) -> str:
        seen.append((ctx.session_id, ctx.tool_call_id, ctx.scope, dict(ctx.values), ctx.cancelled))
        seen.append([m.role for m in ctx.state.messages])
        seen.append((ctx.run.agent_id, list(ctx.run.tools)))
        return ""

    agent = agent_of(call("look"), "done", tools=[look], tool_context={"db": "handle"})
    sa.Session(agent, id="s1", scope="alice").send("go").result()
    assert seen == [
        ("s1", "c1", "alice", {"db": "handle"}, False),
        ["user", "assistant"],
        (agent.agent_id, ["look"]),
    ]


@pytest.mark.spec("S1.10.1")
def test_keys_and_scopes_are_for_tools_only_and_never_exported() -> None:
    def look(ctx: sa.ToolContext) -> str:
        return str(len(ctx.values["api_key"]))

    agent = agent_of(call("look"), "done", tools=[look], tool_context={"api_key": "sk-secret"})
    session = sa.Session(agent, scope="tenant-42")
    session.send("go").result()
    exported = msgspec.json.encode(session.export_state()).decode()
    assert results(session.state) == ["9"]
    assert "sk-secret" not in exported
    assert "api_key" not in exported
    assert "tenant-42" not in exported
    assert agent.agent_id not in exported


@pytest.mark.parametrize("name", ["api_key", "password", "db_token"])
def test_an_error_of_a_tool_does_not_tell_the_model_its_keys(name: str) -> None:
    def log_in(ctx: sa.ToolContext) -> str:
        raise LookupError(f"{ctx.values['database']} refuses {ctx.values[name]}")

    given = {name: "canary-1a2B3c4d5E6f", "database": "sales.db"}
    state = agent_of(call("log_in"), "done", tools=[log_in], tool_context=given).run("go").state
    assert results(state) == ["LookupError: sales.db refuses [key]"]
    assert b"canary" not in msgspec.json.encode(state.export())


@pytest.mark.spec("A2.1.4")
@pytest.mark.parametrize("is_async", [False, True])
def test_progress_is_told_between_start_and_end_from_sync_and_async_tools(is_async: bool) -> None:
    def work(ctx: sa.ToolContext) -> str:
        ctx.progress("half way", 0.5)
        ctx.progress("nearly")
        return "ok"

    async def work_async(ctx: sa.ToolContext) -> str:
        await ctx.progress("half way", 0.5)
        await ctx.progress("nearly")
        return "ok"

    tool = work_async if is_async else work
    events = streamed(agent_of(call(tool.__name__), "done", tools=[tool]))
    kinds = types(of(ToolExecutionStart | ToolExecutionUpdate | ToolExecutionEnd, events))  # type: ignore[arg-type]
    assert kinds == [
        "tool_execution_start",
        "tool_execution_update",
        "tool_execution_update",
        "tool_execution_end",
    ]
    updates = of(ToolExecutionUpdate, events)
    assert [(u.tool_call_id, u.text, u.fraction) for u in updates] == [
        ("c1", "half way", 0.5),
        ("c1", "nearly", None),
    ]


# time limits


def test_an_async_tool_that_takes_too_long_is_stopped() -> None:
    stopped = threading.Event()

    @sa.tool(timeout=0.02)
    async def slow() -> str:
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()
        return ""

    answer = ask(slow)
    assert (answer.text, answer.is_error) == ("Timed out after 0.02 seconds.", True)
    assert stopped.is_set()


@pytest.mark.spec("A2.3.7")
def test_a_sync_tool_that_takes_too_long_is_left_behind_and_its_late_progress_dropped() -> None:
    gate, left = threading.Event(), threading.Event()

    @sa.tool(timeout=0.02)
    def slow(ctx: sa.ToolContext) -> str:
        gate.wait(PATIENCE)
        ctx.progress("too late")
        left.set()
        return ""

    def open_gate() -> str:
        gate.set()
        left.wait(PATIENCE)
        return ""

    events = streamed(
        agent_of(call("slow"), call("open_gate", "c2"), "done", tools=[slow, open_gate])
    )
    ends = of(ToolExecutionEnd, events)
    assert ends[0].result.text.startswith("Timed out after 0.02 seconds. It may still")
    assert [e.status for e in ends] == ["failed", "completed"]
    assert not of(ToolExecutionUpdate, events)


# what people read


def test_people_read_the_display_text_also_when_it_depends_on_the_arguments() -> None:
    @sa.tool(display_text=lambda arguments: f"Weather in {arguments['city']}")
    def weather(city: str) -> str:
        return "sun"

    agent = agent_of(call("weather", city="Oslo"), call("weather", "c2"), "done", tools=[weather])
    starts = of(ToolExecutionStart, streamed(agent))
    assert [s.display_text for s in starts] == ["Weather in Oslo", None]  # no city, no text


def test_unknown_tools_and_wrong_arguments_are_errors_for_the_model() -> None:
    def weather(city: str) -> str:
        return "sun"

    turns = [call("wether", city="Oslo"), call("weather", "c2", town="Oslo"), "done"]
    events = streamed(agent_of(*turns, tools=[weather]))
    ends = of(ToolExecutionEnd, events)
    assert [e.status for e in ends] == ["failed", "failed"]
    assert ends[0].result.text == "There is no tool 'wether'. Tools: weather."
    assert "`city`" in ends[1].result.text or "`town`" in ends[1].result.text
    assert len(of(ToolExecutionStart, events)) == 2


def test_tools_can_be_used_from_several_loops_at_once() -> None:
    def inc(n: int) -> int:
        return n + 1

    async def one() -> str:
        agent = agent_of(call("inc", n=1), "done", tools=[inc])
        return results((await agent.arun("go")).state)[0]

    assert [run(one()) for _ in range(3)] == ["2"] * 3
