"""Faults that people met who tried the package with work of their own."""

from __future__ import annotations

import copy
import dataclasses
import functools
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import Field

import sagents_nb as sa
from tests.talking import PATIENCE, agent_of, call, results, session_of


@sa.tool
def scan() -> str:
    """Scan."""
    return "scanned"


class Asks(sa.Middleware):
    """Asks about every call, as briefly as it can."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> sa.Interrupt:
        return sa.Interrupt(self.kind, message="Pay?")


@pytest.mark.parametrize("kind", ["payment", "hitl", "question"])
@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (sa.Approve(), "scanned"),
        (sa.Reject("no"), "A person rejected this call"),
        (sa.Respond("later"), "later"),
    ],
)
def test_a_call_that_a_hook_asks_about_can_be_answered(kind: str, decision: Any, told: str) -> None:
    session = session_of(call("scan"), "done", tools=[scan], middleware=[Asks(kind)])
    (request,) = session.send("go").result(PATIENCE).interrupt.action_requests  # type: ignore[union-attr]
    assert (request.tool_call_id, request.tool_name) == ("c1", "scan")
    assert request.display_text == "Pay?"
    assert session.resume(decision).result(PATIENCE).text == "done"
    assert results(session.state)[0].startswith(told)


@pytest.mark.parametrize(
    ("gate", "sentence"),
    [
        ({"allowed_decisions": []}, r"nobody could answer"),
        ({"allowed_decisions": None}, r"nobody could answer"),
        ({"allowed": ["approve"]}, r"has allowed; its one key is allowed_decisions"),
        (1, r"is True, False, or a list"),
        (lambda call: True, r"is True, False, or a list"),
        ("approve", r"is True, False, or a list"),
        (["agree"], r"none of approve"),
    ],
)
def test_a_gate_that_nobody_could_open_is_refused(gate: Any, sentence: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=sentence):
        agent_of(tools=[scan], interrupt_on={"scan": gate})


def ends_with_a_value() -> Iterator[str]:
    """Works in steps."""
    yield "step 1"
    return {"mean": 4.2}


def ends_with_an_output() -> Iterator[Any]:
    """Works in steps."""
    yield "step 1"
    yield sa.ToolOutput("final", artifact=[1], update={"metadata": {"k": 1}})


async def ends_with_an_output_later() -> AsyncIterator[Any]:
    """Works in steps."""
    yield "step 1"
    yield sa.ToolOutput("final", artifact=[1], update={"metadata": {"k": 1}})


def gives_one_piece() -> Iterator[Any]:
    """Works in one step."""
    yield {"a": 1}


def test_what_a_generator_returns_or_yields_as_an_output_is_what_the_call_comes_to() -> None:
    def result(tool: Any) -> sa.RunResult:
        return agent_of(call(tool.__name__), "done", tools=[tool]).run("go")

    assert results(result(ends_with_a_value).state) == ['{"mean":4.2}']
    for tool in (ends_with_an_output, ends_with_an_output_later):
        given = result(tool)
        assert results(given.state) == ["final"]
        assert given.artifacts == {"c1": [1]}
        assert given.state.metadata == {"k": 1}
    assert results(result(gives_one_piece).state) == ['{"a":1}']


def test_a_generator_may_ask_people() -> None:
    def asks() -> Iterator[Any]:
        yield "looking"
        yield sa.Interrupt("question", message="Which?")

    agent = agent_of(call("asks"), "done", tools=[asks])
    waiting = agent.run("go")
    assert waiting.status == "interrupted"
    assert results(agent.resume(waiting, sa.Respond("that one")).state) == ["that one"]


def test_a_class_that_cannot_see_its_neighbour_is_named_with_the_tool() -> None:
    @dataclasses.dataclass
    class Point:
        x: float

    @dataclasses.dataclass
    class Route:
        points: list[Point]

    def length(route: Route) -> float:
        return 0.0

    with pytest.raises(sa.ConfigurationError, match=r"'length': 'route'.*Point.*in the module"):
        sa.tool(length)
    with pytest.raises(sa.ConfigurationError, match=r"No answer can be a Route.*in the module"):
        agent_of(output_type=Route)


def test_a_partial_is_a_tool_with_the_name_and_the_arguments_that_are_left() -> None:
    def area(w: float, h: float) -> float:
        """The area.

        Args:
            h: How high it is.
        """
        return w * h

    plain = functools.partial(area, 2.0)
    dressed = functools.update_wrapper(functools.partial(area, 2.0), area)
    for function in (plain, dressed):
        agent = agent_of(call("area", h=3), "done", tools=[function])
        (tool,) = agent.tools
        assert (tool.name, tool.description) == ("area", "The area.")
        described = {"type": "number", "description": "How high it is."}
        assert tool.schema["properties"] == {"h": described}
        assert results(agent.run("go").state) == ["6.0"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"timeout": 0}, "timeout=…\\) is a number of seconds over 0"),
        ({"timeout": -1}, "timeout=…\\) is a number of seconds over 0"),
        ({"timeout": "1"}, "timeout=…\\) is a number of seconds over 0"),
        ({"description": 5}, "description=…\\) is text or None; not 5"),
    ],
)
def test_a_tool_of_wrong_kinds_is_refused(options: Any, sentence: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=sentence):
        sa.tool(**options)(scan.function)
    with pytest.raises(sa.ConfigurationError, match="is a function; not str"):
        sa.Tool.from_schema("x", "", {"type": "object"}, "text")  # type: ignore[arg-type]


def test_what_is_no_store_state_or_agent_is_named() -> None:
    agent = agent_of()
    for attempt, sentence in (
        (lambda: sa.Session(agent, store=5), r"Session\(store=…\) is a sa.ConversationStore"),
        (lambda: sa.Session.open("c", agent=agent, store=5), "is a sa.Conversa"),
        (lambda: sa.Session(agent, state="x"), r"state=…\) is a State.*not str"),  # type: ignore[arg-type]
        (lambda: sa.Session(agent).replace(agent=5), r"agent=…\) is an Agent\(…\) or None; not 5"),  # type: ignore[arg-type]
        (lambda: sa.Session(agent).replace(state={}), r"state=…\) is a State.*not dict"),  # type: ignore[arg-type]
        (lambda: agent.run("go", should_pause=True), "should_pause is a function"),
        (lambda: agent.map(["a"], budget=5, progress=False), r"budget=…\) is a Budget"),  # type: ignore[arg-type]
    ):
        with pytest.raises(sa.ConfigurationError, match=sentence):
            attempt()


def test_a_map_keeps_answers_of_one_prompt_from_another(tmp_path: Path) -> None:
    model = sa.ScriptedModel(["bonjour", "guten Tag"])

    def answers(language: str) -> list[str]:
        agent = sa.Agent(
            model, lambda ctx: f"Answer in {language}.", replace_default_middleware=True
        )
        frame = agent.map(["hello"], cache=tmp_path / "rows", progress=False)
        return list(frame.text)

    assert answers("French") == ["bonjour"]
    assert answers("German") == ["guten Tag"]
    assert answers("French") == ["bonjour"]


def test_a_map_says_when_its_budget_of_money_was_not_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = agent_of(*["x"] * 3)
    with caplog.at_level(logging.WARNING):
        agent.map(["a", "b", "c"], budget=sa.Budget(cost_usd=1), progress=False)
    assert "does not say what its calls cost" in caplog.text


def test_the_reminder_of_a_typed_run_is_told_from_what_people_said() -> None:
    result = agent_of("Oslo!", call("submit", value="Oslo"), output_type=str).run("Where?")
    said = [m for m in result.messages if m.role == "user"]
    assert [bool(m.metadata.get("reminder")) for m in said] == [False, True]


@pytest.mark.parametrize("what", ["close", "reset", "transfer"])
def test_an_async_tool_cannot_end_its_own_session_under_itself(what: str) -> None:
    async def leave() -> str:
        """Leave."""
        getattr(session, what)()
        return "left"

    session = session_of(call("leave"), "done", tools=[leave])
    result = session.send("go").result(PATIENCE)
    assert result.text == "done"
    assert results(result.state)[0].startswith("Busy: ")
    assert "inside one of its own tools" in results(result.state)[0]
    getattr(session, what)()  # afterwards it may
    other = session_of("x")

    async def leave_another() -> str:
        """Leave another one."""
        other.close()
        return "left"

    agent = agent_of(call("leave_another"), "done", tools=[leave_another])
    assert results(sa.Session(agent).send("go").result(PATIENCE).state) == ["left"]


class Slow:
    """What says at length what it is."""

    def __init__(self, go_on: threading.Event) -> None:
        self.go_on = go_on

    def __str__(self) -> str:
        assert self.go_on.wait(PATIENCE)
        return "slow"


@pytest.mark.parametrize("wrapped", [lambda v: v, lambda v: {"a": v}, lambda v: sa.ToolOutput(v)])
def test_a_value_that_is_long_in_becoming_text_holds_up_its_own_session_only(wrapped: Any) -> None:
    go_on = threading.Event()

    def slow() -> Any:
        return wrapped(Slow(go_on))

    held = session_of(call("slow"), "done", tools=[slow]).send("go")
    assert session_of("at once").send("go").result(PATIENCE).text == "at once"
    go_on.set()
    assert results(held.result(PATIENCE).state)[0] in ("slow", '{"a":"slow"}')


def test_an_output_that_a_tool_gives_again_and_again_stays_what_it_is() -> None:
    kept = sa.ToolOutput([1, 2])

    def again() -> sa.ToolOutput:
        return kept

    agent = agent_of(call("again", "a"), call("again", "b"), "done", tools=[again])
    assert results(agent.run("go").state) == ["[1,2]", "[1,2]"]
    assert kept.content == [1, 2]


def test_a_hook_cannot_make_a_call_of_one_tool_a_call_of_another() -> None:
    class Renames(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> sa.ToolCall:
            return replace(call, name="other")

    agent = agent_of(call("scan"), "done", tools=[scan], middleware=[Renames()])
    with pytest.raises(sa.MiddlewareError, match="made 'other' of a call of 'scan'; change its"):
        agent.run("go")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_result_is_not_resumed_a_second_time(copied: Any) -> None:
    agent = agent_of(call("scan"), "done", "done", tools=[scan], interrupt_on={"scan": True})
    first = agent.run("go")
    other = copied(first)
    assert agent.resume(first, sa.Approve()).text == "done"
    with pytest.raises(sa.StaleApproval, match="was resumed before"):
        agent.resume(other, sa.Approve())


def test_what_a_session_asks_is_answered_there() -> None:
    agent = agent_of(call("scan"), "done", tools=[scan], interrupt_on={"scan": True})
    session = sa.Session(agent, id="c1")
    result = session.send("go").result(PATIENCE)
    assert result.session_id == "c1"
    with pytest.raises(sa.InvalidDecision, match="This result is of session 'c1'"):
        agent.resume(result, sa.Approve())
    assert session.approve().result(PATIENCE).text == "done"


def test_who_rejects_is_a_person_only_where_there_was_one() -> None:
    session = session_of(call("scan"), "done", tools=[scan], interrupt_on={"scan": True})
    session.send("go").result(PATIENCE)
    session.resume(sa.Reject(unattended=True)).result(PATIENCE)
    assert results(session.state) == ["This call was not run. Nobody was there to decide."]


@pytest.mark.parametrize("role", ["User", "human", "model", ""])
def test_a_message_as_a_dict_has_a_role_that_models_know(role: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=f"and this one has '{role}'; Message"):
        agent_of("done").run([{"role": role, "content": "Hello"}])


def test_what_openai_calls_developer_is_the_system() -> None:
    assert sa.Message.of({"role": "developer", "content": "Be brief."}).role == "system"


def test_a_prompt_that_ends_with_an_answer_is_refused_before_a_model_is_asked() -> None:
    prompt = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    agent = agent_of("done")
    with pytest.raises(sa.NotRunning, match="the prompt ends with an answer"):
        agent.run(prompt)
    session = sa.Session(agent)
    for say in (session.send, session.steer, session.follow_up):
        with pytest.raises(sa.NotRunning, match="the prompt ends with an answer"):
            say(prompt)
    assert agent.model.requests == []  # type: ignore[attr-defined]
    assert session.send([*prompt, sa.Message.user("Go on")]).result(PATIENCE).text == "done"


def test_a_tool_called_by_hand_has_the_defaults_that_fields_say() -> None:
    @sa.tool
    def scale(
        by: int = Field(3, gt=1),
        over: list[int] = Field(default_factory=list),  # noqa: B008 - as people write it
    ) -> str:
        return f"{by} {over}"

    @sa.tool
    def needs(name: str = Field(description="whose")) -> str:
        return name

    class Shop:
        @sa.tool
        def price(self, item: str, count: int = Field(2)) -> str:
            return f"{count} {item}"

    assert (scale(), scale(4), scale(over=[1])) == ("3 []", "4 []", "3 [1]")
    assert needs("x") == "x"
    with pytest.raises(TypeError, match="missing a required argument: 'name'"):
        needs()
    assert Shop().price("cups") == "2 cups"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2026-11-22 10:00", datetime(2026, 11, 22, 10)),
        ("2026-11-22T10:00", datetime(2026, 11, 22, 10)),
        ("2026-11-22", datetime(2026, 11, 22)),
        ("2026-11-22T10:00Z", datetime(2026, 11, 22, 10, tzinfo=UTC)),
    ],
)
def test_times_are_read_as_models_write_them(said: str, meant: datetime) -> None:
    seen: list[Any] = []

    @sa.tool
    def book(when: datetime, note: str, tags: list[str], end: datetime | None = None) -> str:
        seen.append((when, note, tags, end))
        return "booked"

    note = '["2026-11-22 10:00"]'
    arguments = {"when": said, "note": note, "tags": '["a"]', "end": said}
    agent = agent_of(call("book", **arguments), "done", tools=[book])
    assert results(agent.run("go").state) == ["booked"]
    assert seen == [(meant, note, ["a"], meant)]
    properties = book.schema["properties"]
    assert properties["when"] == {"type": "string", "format": "date-time"}
    assert properties["end"]["anyOf"][0] == {"type": "string", "format": "date-time"}


def test_a_time_that_is_none_is_refused_as_it_came() -> None:
    @sa.tool
    def book(when: datetime) -> str:
        return "booked"

    agent = agent_of(call("book", when="next Monday"), "done", tools=[book])
    (said,) = results(agent.run("go").state)
    assert said == "Invalid arguments: Invalid RFC3339 encoded datetime - at `$.when`"


def test_a_message_of_a_model_that_says_why_it_failed_is_a_failure() -> None:
    agent = agent_of(sa.Message("assistant", (sa.TextPart("half"),), error="The cable broke."))
    with pytest.raises(sa.ModelError, match=r"The cable broke\.") as failed:
        agent.run("go")
    assert failed.value.result.messages[-1].stop_reason == "error"  # type: ignore[union-attr]


def test_a_failure_that_a_hook_makes_good_is_none() -> None:
    class MakesGood(sa.Middleware):
        def after_tool(self, call: sa.ToolCall, result: sa.ToolResult, ctx: Any) -> sa.ToolResult:
            return replace(result, content="never mind", is_error=False)

    def fails() -> str:
        raise ValueError("broken")

    session = session_of(call("fails"), "done", tools=[fails], middleware=[MakesGood()])
    ends: list[Any] = []
    session.subscribe(lambda e: ends.append(e.status) if e.type == "tool_execution_end" else None)
    session.send("go").result(PATIENCE)
    assert results(session.state) == ["never mind"]
    assert ends == ["completed"]
