from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

import sagents_nb as sa
from tests.talking import agent_of, call, roles, run

pytestmark = pytest.mark.spec("S1.14.6")


@dataclass
class City:
    """A city and its people."""

    name: str
    people: int = 0
    districts: list[City] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.people < 0:
            raise ValueError("people cannot be negative")


class Card(TypedDict):
    title: str
    tags: NotRequired[list[str]]


class Point(msgspec.Struct):
    x: Annotated[float, msgspec.Meta(ge=0)]
    y: float = 0.0


class Size(pydantic.BaseModel):
    width: int = pydantic.Field(gt=0, description="in metres")


class Box(pydantic.BaseModel):
    size: Size
    kind: Literal["open", "closed"] = "open"


class Colour(enum.Enum):
    RED = "red"


def submit(id: str = "c1", **arguments: Any) -> sa.ToolCall:
    return sa.ToolCall(id, "submit", arguments)


@pytest.mark.parametrize(
    ("kind", "arguments", "value"),
    [
        (City, {"name": "Oslo", "people": 700_000}, City("Oslo", 700_000)),
        (City, {"name": "A", "districts": [{"name": "B"}]}, City("A", 0, [City("B")])),
        (Card, {"title": "Hi"}, {"title": "Hi"}),
        (Point, {"x": "1.5"}, Point(1.5)),
        (Box, {"size": {"width": 2}}, Box(size=Size(width=2))),
        (list[str], {"value": ["a", "b"]}, ["a", "b"]),
        (Literal["yes", "no"], {"value": "yes"}, "yes"),
        (int, {"value": 3}, 3),
        (int | None, {"value": None}, None),
        (dict[str, int], {"value": {"a": 1}}, {"a": 1}),
        (list[Box], {"value": [{"size": {"width": 1}}]}, [Box(size=Size(width=1))]),
        (Colour, {"value": "red"}, Colour.RED),
    ],
    ids=str,
)
def test_the_answer_is_a_value_of_the_type(kind: Any, arguments: Any, value: Any) -> None:
    assert agent_of(submit(**arguments)).extract("go", kind) == value


def test_the_tool_takes_exactly_the_fields_of_the_type() -> None:
    agent = agent_of(submit(name="Oslo"))
    agent.extract("go", City)
    (tool,) = agent.model.requests[0].tools  # type: ignore[attr-defined]
    assert tool.name == "submit"
    assert list(tool.schema["properties"]) == ["name", "people", "districts"]
    assert tool.schema["required"] == ["name"]
    assert tool.schema["description"] == "A city and its people."


@pytest.mark.parametrize("kind", [Box, list[Box]])
def test_references_between_pydantic_models_point_into_the_schema(kind: Any) -> None:
    agent = agent_of(submit(size={"width": 1}), submit(value=[]))
    if kind is Box:
        agent.extract("go", kind)
    else:
        with pytest.raises(sa.AgentError):
            agent_of().extract("go", kind)
    from sagents_nb.models.output_type import Output

    schema = Output(kind).schema
    assert schema["$defs"]["Size"]["properties"]["width"]["description"] == "in metres"
    assert str(schema).count("'$defs'") == 1


def test_what_is_wrong_goes_back_to_the_model() -> None:
    agent = agent_of(
        submit("c1", name="Oslo", people="many"),
        submit("c2", name="Oslo", people=-1),
        submit("c3", name="Oslo", poeple=1),
        submit("c4", people=1),
        submit("c5", name="Oslo", people="700000"),
    )
    assert agent.extract("go", City) == City("Oslo", 700_000)
    told = [r.messages[-1].tool_results[0].text for r in agent.model.requests[1:]]  # type: ignore[attr-defined]
    assert "Expected `int`" in told[0]
    assert "people cannot be negative" in told[1]
    assert "unknown field 'poeple'" in told[2]
    assert "missing required field `name`" in told[3]


def test_after_five_model_calls_it_says_what_was_wrong() -> None:
    agent = agent_of(*[submit(f"c{n}", name=n) for n in range(9)])
    with pytest.raises(sa.MaxRunsExceeded, match=r"no City in 5 calls.*Expected `str`") as error:
        agent.extract("go", City)
    assert len(agent.model.requests) == 5  # type: ignore[attr-defined]
    assert error.value.result.usage == sa.Usage()
    assert "\n" not in str(error.value)


def test_text_instead_of_a_call_is_answered_with_a_reminder() -> None:
    agent = agent_of("It is Oslo.", submit(name="Oslo"))
    assert agent.extract("go", City) == City("Oslo")
    assert "Call submit" in agent.model.requests[1].messages[-1].text  # type: ignore[attr-defined]


def test_a_model_that_only_talks_is_asked_no_more_than_allowed() -> None:
    agent = agent_of(*["No."] * 9)
    with pytest.raises(sa.MaxRunsExceeded, match="no City in 2 calls, last: it gave text alone"):
        agent.extract("go", City, max_runs=2)
    assert len(agent.model.requests) == 2  # type: ignore[attr-defined]


def test_its_own_tools_can_be_used_on_the_way() -> None:
    def submit_(of: str) -> int:
        return 700_000

    tools = [sa.tool(name="submit")(submit_)]
    answer = sa.ToolCall("c2", "submit_2", {"name": "Oslo", "people": 700_000})
    agent = agent_of(call("submit", of="Oslo"), answer, tools=tools)
    assert agent.extract("go", City).people == 700_000
    assert [tool.name for tool in agent.tools] == ["submit"]


def test_an_agent_with_an_end_of_its_own_can_be_asked_too() -> None:
    def done() -> str:
        return "ok"

    agent = agent_of(call("done"), submit("c2", value=1), tools=[done], until_tool="done")
    assert agent.extract("go", int) == 1


def test_a_run_that_waits_for_people_is_an_error_with_its_result() -> None:
    def wipe() -> None: ...

    agent = agent_of(call("wipe"), tools=[wipe], interrupt_on={"wipe": True})
    with pytest.raises(sa.AgentError, match=r"no City.*waits for a person.*wipe") as error:
        agent.extract("go", City)
    assert error.value.result.status == "interrupted"


def test_an_error_of_the_model_comes_with_what_was_used() -> None:
    wrong = sa.Message.assistant("", [submit()], usage=sa.Usage(10, 2))
    agent = agent_of(wrong, sa.ModelError("down", kind="invalid_request"))
    with pytest.raises(sa.ModelError, match="down") as error:
        agent.extract("go", City)
    assert error.value.result.usage.total_tokens == 12
    assert roles(error.value.result.messages)[:3] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("prompt", [[], sa.State(), [sa.Message.assistant("Oslo")]])
def test_where_there_is_nothing_to_answer_no_model_is_asked(prompt: Any) -> None:
    agent = agent_of(call("submit", value="Oslo"))
    with pytest.raises(sa.NotRunning, match="nothing to answer"):
        agent.extract(prompt, str)
    assert not agent.model.requests  # type: ignore[attr-defined]


def test_it_can_be_awaited() -> None:
    assert run(agent_of(submit(value=[1])).aextract("go", list[int])) == [1]


def test_a_type_that_no_json_can_hold_is_refused_before_the_model_is_asked() -> None:
    agent = agent_of()
    with pytest.raises(sa.ConfigurationError, match=r"No answer can be a Agent"):
        agent.extract("go", sa.Agent)
    assert agent.model.requests == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("limit", [0, -1, "many"])
def test_it_takes_at_least_one_model_call(limit: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="max_runs"):
        agent_of().extract("go", int, max_runs=limit)


ASKED = ["__eq__", "__hash__", "__bool__", "__repr__", "__str__", "__getattr__", "__getattribute__"]


def refuse(*of: Any, **given: Any) -> Any:
    raise RuntimeError("odd")


def odd_types(asked: str) -> Iterator[Any]:
    """Annotations that raise when they are looked at."""
    odd = type("Odd", (), {asked: refuse})()
    yield from (odd, list[odd])
    struct = msgspec.Struct
    for kind, base, name in ((type(struct), struct, "__module__"), (type, object, "__doc__")):
        with contextlib.suppress(RuntimeError):  # Python itself makes no such class
            made = type("Kind", (kind,), {asked: refuse})
            cls = made("Of", (base,), {"__annotations__": {"a": int}, name: __name__})
            yield from (cls, list[cls])


@pytest.mark.parametrize("asked", ASKED)
def test_a_type_that_raises_is_taken_or_refused_as_ours(asked: str) -> None:
    for kind in odd_types(asked):

        def look(at: Any) -> None: ...

        look.__annotations__["at"] = kind
        uses: list[Callable[..., Any]] = [
            lambda of: agent_of("x", output_type=of),
            lambda of: agent_of(call("submit", a=1), "x").extract("?", of, max_runs=1),
            lambda of: agent_of("x").map(["?"], output_type=of, progress=False),
            lambda of, look=look: sa.tool(look),
        ]
        for use in uses:
            with contextlib.suppress(sa.SagentsError):  # and no error of theirs
                use(kind)


@pytest.mark.parametrize("asked", ASKED[:-2])
def test_a_value_that_raises_is_an_answer_all_the_same(asked: str) -> None:
    kind: Any = dataclass(eq=False, repr=False)(
        type("Odd", (), {"__annotations__": {"a": int}, asked: refuse})
    )
    answer = call("submit", a=1)
    assert agent_of(answer, output_type=kind).run("?").output.a == 1
    found = agent_of(answer).extract("?", kind, full=True)
    assert found.value.a == 1
    assert repr(found).startswith("Extracted(<")
    assert agent_of(answer).map(["?"], output_type=kind, progress=False)["a"].tolist() == [1]


def test_a_default_that_raises_is_not_told_to_the_model() -> None:
    odd = type("Odd", (), {"__getattr__": refuse})()

    def look(at: int = odd) -> None: ...

    assert sa.tool(look).schema["properties"] == {"at": {"type": "integer"}}
