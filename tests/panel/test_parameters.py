"""Which arguments of a call that waits a form has a field of a kind for."""

from __future__ import annotations

import enum
from typing import Any, Literal

import sagents_nb as sa
from sagents_nb.panel.parameters import parameters_of
from sagents_nb.panel.publisher import Publisher
from tests.panel.pages import Wire, flush, hello


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


def ship(
    to: str,
    boxes: int,
    weight: float,
    fragile: bool,
    carrier: Literal["DHL", "UPS"],
    size: Size = Size.SMALL,
    tags: list[str] | None = None,
    floor: int | None = None,
) -> str:
    """Ship it."""
    return to


GIVEN = {"boxes": 3, "to": "Oslo", "weight": 2.5, "fragile": False, "carrier": "DHL"}
FIELDS: dict[str, Any] = {
    "to": {},
    "boxes": {"type": "integer"},
    "weight": {"type": "number"},
    "fragile": {"type": "boolean"},
    "carrier": {"enum": ["DHL", "UPS"]},
    "size": {"enum": ["l", "s"]},
    "tags": {},
    "floor": {},
}


def agent_of(*tools: Any) -> sa.Agent:
    call = sa.ToolCall("c1", "ship", GIVEN)
    return sa.Agent(sa.ScriptedModel([call]), tools=tools, interrupt_on={"ship": True})


def told(wire: Wire) -> list[Any]:
    """The fields of the call that waits, by what pages were sent last."""
    last = wire.sent[-1]
    if last["type"] == "snapshot":
        interrupt = last["state"]["interrupt"]
    else:
        (interrupt,) = [e["interrupt"] for e in last["events"] if e["type"] == "interrupt"]
    return [request.get("parameters") for request in interrupt["action_requests"]]


def test_a_page_is_told_as_the_question_comes_and_in_a_snapshot() -> None:
    session = sa.Session(agent_of(ship))
    publisher, wire = Publisher(session), Wire()
    hello(publisher, wire)
    session.send("Go").result()
    flush(publisher)
    assert told(wire) == [FIELDS]
    assert list(told(wire)[0]) == list(FIELDS)  # the schema's order
    hello(publisher, wire)
    assert wire.sent[-1]["type"] == "snapshot"
    assert told(wire) == [FIELDS]


def test_of_a_tool_that_the_agent_has_no_more_nothing_is_known() -> None:
    first = sa.Session(agent_of(ship))
    first.send("Go").result()
    session = sa.Session.restore(first.export_state(), sa.Agent("demo"), id="restored")
    publisher, wire = Publisher(session), Wire()
    hello(publisher, wire)
    assert told(wire) == [None]


def test_a_schema_of_others_may_say_anything() -> None:
    schema = {
        "properties": {
            "many": {"enum": list(range(51))},
            "large": {"enum": [2**60]},
            "nested": {"enum": [[1]]},
            "none": {"enum": []},
            "either": {"type": ["integer", "string"]},
            "elsewhere": {"$ref": "https://example.org/x"},
            "lost": {"$ref": "#/$defs/Lost"},
            "anything": True,
            "level": {"enum": ["low", 2, None, True]},
        },
    }
    request = {"arguments": dict.fromkeys([*schema["properties"], "unknown"], 1)}
    plain: dict[str, Any] = {name: {} for name in schema["properties"]}
    assert parameters_of(schema, request) == {**plain, "level": {"enum": ["low", 2, None, True]}}
    assert parameters_of({"properties": None}, request) == {}
    assert parameters_of({}, {}) == {}
