"""A hook that sees and changes what the model is about to be asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest
from tests.talking import agent_of, call, results, run

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran_yet() -> None:
    RAN.clear()


@sa.tool
def look() -> str:
    """Look."""
    RAN.append("look")
    return "seen"


@sa.tool
def wipe() -> str:
    """Wipe."""
    RAN.append("wipe")
    return "wiped"


class Asked(sa.Middleware):
    """Does with a request what it is told to."""

    def __init__(self, change: Callable[[ModelRequest, sa.RunContext], Any], id: str = "") -> None:
        self.id = id
        self.change = change

    def before_model_request(self, request: ModelRequest, ctx: sa.RunContext) -> Any:
        return self.change(request, ctx)


def requests(agent: sa.Agent) -> list[ModelRequest]:
    """What its scripted model was asked."""
    found: list[ModelRequest] = agent.model.requests  # type: ignore[attr-defined]
    return found


def test_it_changes_this_request_and_nothing_that_is_kept() -> None:
    def change(request: ModelRequest, ctx: sa.RunContext) -> ModelRequest | None:
        if len(ctx.state.messages) > 1:
            return None
        return replace(
            request,
            system="Speak Latin.",
            messages=[sa.Message.user("Salve!")],
            options={**request.options, "temperature": 0},
        )

    agent = agent_of(
        call("look"), "done", tools=[look], system_prompt="Own.", middleware=[Asked(change)]
    )
    result = agent.run("go")
    first, second = requests(agent)
    assert (first.system, first.options) == ("Speak Latin.", {"temperature": 0})
    assert [m.text for m in first.messages] == ["Salve!"]
    assert (second.system, second.options) == ("Own.", {})
    assert [m.text for m in second.messages] == ["go", "", ""]
    assert [m.text for m in result.state.messages] == ["go", "", "", "done"]


def test_several_change_it_one_after_the_other_sync_or_async() -> None:
    async def shout(request: ModelRequest, ctx: sa.RunContext) -> ModelRequest:
        return replace(request, system=request.system.upper())

    def add(request: ModelRequest, ctx: sa.RunContext) -> ModelRequest:
        return replace(request, system=request.system + " be brief.")

    agent = agent_of("done", middleware=[Asked(add, "add"), Asked(shout, "shout")])
    run(agent.arun("go"))
    assert requests(agent)[0].system == " BE BRIEF."


def test_a_tool_that_is_left_out_is_not_run_in_that_turn_even_if_the_model_calls_it() -> None:
    def careful(request: ModelRequest, ctx: sa.RunContext) -> ModelRequest:
        if len(ctx.state.messages) > 1:
            return request
        return replace(request, tools=tuple(t for t in request.tools if t.name != "wipe"))

    agent = agent_of(
        [call("wipe", "a"), call("look", "b")],
        call("wipe", "c"),
        "done",
        tools=[look, wipe],
        middleware=[Asked(careful)],
    )
    state = agent.run("go").state
    assert [tool.name for tool in requests(agent)[0].tools] == ["look"]
    assert results(state) == [
        "Not run: there is no tool 'wipe' in this turn. Tools: look.",
        "seen",
        "wiped",
    ]
    assert RAN == ["look", "wipe"]


def hiding(request: ModelRequest, ctx: sa.RunContext) -> ModelRequest:
    return replace(request, tools=tuple(t for t in request.tools if t.name != "wipe"))


@pytest.mark.parametrize("answer", [sa.Approve(), sa.Reject()])
def test_nor_when_people_decide_on_another_call_of_that_turn(answer: Any, tmp_path: Path) -> None:
    turns = [[call("look", "a"), call("wipe", "b")], "done"]
    options: dict[str, Any] = {
        "tools": [look, wipe],
        "interrupt_on": {"look": True},
        "middleware": [Asked(hiding)],
    }
    agent = agent_of(*turns, **options)
    agent.resume(agent.run("go"), answer)
    store = sa.ConversationStore(f"sqlite:///{tmp_path}/hidden.db")
    session = sa.Session(agent_of(*turns, **options), id="c", store=store)
    session.send("go").result()
    session.close()
    again = sa.Session.open("c", agent=agent_of("done", tools=[look, wipe]), store=store)
    again.resume(answer).result()
    store.close()
    assert "wipe" not in RAN


def test_nor_when_a_paused_run_goes_on() -> None:
    agent = agent_of(call("wipe"), "done", tools=[wipe], middleware=[Asked(hiding)])
    session = sa.Session(agent)
    paused = agent.run("go", should_pause=lambda: True)
    assert paused.status == "paused"
    session.replace(state=paused.state)
    session.retry().result()
    assert RAN == []


def test_another_model_may_be_asked_by_its_spec_or_as_it_is() -> None:
    other = sa.ScriptedModel(["from the other"])

    def turn_to(request: ModelRequest, ctx: sa.RunContext) -> ModelRequest:
        asked.append(request.model)
        return replace(request, model=choices.pop(0))

    asked: list[Any] = []
    choices: list[Any] = [other, "demo"]
    agent = agent_of(middleware=[Asked(turn_to)])
    assert agent.run("go").text == "from the other"
    assert other.requests[0].model == other.name
    assert "demo" in repr(sa.resolve_model("demo")).lower()
    assert agent.run("hello").text
    assert asked == ["scripted", "scripted"]
    assert requests(agent) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda request, ctx: "x", "before_model_request returned str; return None or a ModelReq"),
        (lambda request, ctx: 1 / 0, "before_model_request failed: ZeroDivisionError"),
        (lambda request, ctx: replace(request, model="nobody:x"), "nobody"),
    ],
)
def test_what_goes_wrong_ends_the_run_in_a_sentence(change: Any, sentence: str) -> None:
    agent = agent_of("never", middleware=[Asked(change)])
    with pytest.raises(sa.AgentError, match=sentence):
        agent.run("go")
    assert requests(agent) == []
