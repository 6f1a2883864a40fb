"""Runs that end with a value of a type, and runs that are another agent's for once."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

import msgspec
import pytest

import sagents_nb as sa
from sagents_nb.store import ConversationStore
from tests.session.conftest import disk, store  # noqa: F401
from tests.session.gates import Gate
from tests.talking import PATIENCE, agent_of, call, roles, run, session_of


@dataclasses.dataclass
class City:
    name: str
    people: int


OSLO = City("Oslo", 700_000)


def submit(id: str = "c1", **fields: Any) -> sa.ToolCall:
    """The model's answer."""
    return sa.ToolCall(id, "submit", fields or {"name": "Oslo", "people": 700_000})


def test_a_run_ends_with_a_value_of_the_agents_type() -> None:
    agent = agent_of(submit(), output_type=City)
    result = agent.run("Which is the capital of Norway?")
    assert (result.status, result.output) == ("completed", OSLO)
    assert [tool.name for tool in agent.tools] == []
    (request,) = agent.model.requests  # type: ignore[attr-defined]
    assert [tool.name for tool in request.tools] == ["submit"]
    assert run(agent_of(submit(), output_type=City).arun("?")).output == OSLO


def test_without_a_type_the_output_is_the_text() -> None:
    assert agent_of("Oslo").run("?").output == "Oslo"


def test_a_type_may_be_for_one_run_only() -> None:
    agent = agent_of(submit(), "It is Oslo.", submit(value=["Oslo"]))
    assert agent.run("?", output_type=City).output == OSLO
    assert agent.run("?").output == "It is Oslo."
    assert agent.run("?", output_type=list[str]).output == ["Oslo"]


def test_what_does_not_fit_and_text_alone_go_back_to_the_model() -> None:
    agent = agent_of(
        "Oslo!", submit(name="Oslo"), submit("c2", name="Oslo", people="700000"), output_type=City
    )
    result = agent.run("?")
    assert result.output == OSLO
    texts = [m.text for m in result.messages if m.role == "user"]
    assert texts == ["?", "Call submit with your answer; text alone is not read."]
    assert "missing required field `people`" in result.messages[4].tool_results[0].text


def test_a_model_that_never_gives_one_fails_the_run() -> None:
    with pytest.raises(sa.AgentError, match="gave no City in 5 calls, last: it gave text alone"):
        agent_of(*["Oslo"] * 9, output_type=City).run("?")
    with pytest.raises(sa.AgentError) as raised:
        agent_of(*[submit(name=1)] * 3, output_type=City, max_runs=2).run("?")
    assert raised.value.result.output is None
    with pytest.raises(sa.AgentError, match="in 5 calls") as raised:
        agent_of(*["Oslo"] * 9, output_type=City, max_runs=0).run("?")
    assert "max_runs" not in str(raised.value)


def test_a_session_ends_its_runs_so_too_and_talks_on_between() -> None:
    session = session_of(submit(), "You are welcome.", submit("c2", value="yes"))
    first = session.send("?", output_type=City).result(PATIENCE)
    assert first.output == OSLO
    assert session.send("Thanks!").result(PATIENCE).output == "You are welcome."
    answer = session.send("Sure?", output_type=Literal["yes", "no"]).result(PATIENCE)
    assert answer.output == "yes"
    assert roles(session.messages) == [
        *("user", "assistant", "tool"),
        *("user", "assistant"),
        *("user", "assistant", "tool"),
    ]
    always = sa.Session(agent_of(submit(), output_type=City))
    assert always.send("?").result(PATIENCE).output == OSLO


def test_what_is_queued_keeps_its_own_type_and_follow_ups_come_before_the_reminder() -> None:
    session = session_of("Hm.", submit(), submit("c2", value=3))
    session.follow_up("The one with the opera.")
    first = session.send("?", output_type=City)
    second = session.send("How many?", output_type=int)
    assert first.result(PATIENCE).output == OSLO
    assert second.result(PATIENCE).output == 3
    assert [m.text for m in session.messages if m.role == "user"] == [
        "?",
        "The one with the opera.",
        "How many?",
    ]


@pytest.mark.parametrize("stored", [False, True])
def test_a_run_that_asked_people_still_ends_with_the_value(
    stored: bool,
    store: ConversationStore,  # noqa: F811
) -> None:
    @sa.tool
    def look() -> str:
        """Look."""
        return "seen"

    options: dict[str, Any] = {"tools": [look], "interrupt_on": {"look": True}}
    agent = agent_of(call("look", "c0"), submit(), **options)
    waiting = agent.run("?", output_type=City)
    assert (waiting.status, waiting.output) == ("interrupted", None)
    assert agent.resume(waiting, sa.Approve()).output == OSLO
    session = sa.Session(
        agent_of(call("look", "c0"), submit(), **options), store=store if stored else None
    )
    assert session.send("?", output_type=City).result(PATIENCE).output is None
    assert session.resume(sa.Approve()).result(PATIENCE).output == OSLO


def test_sub_agents_answer_in_words() -> None:
    task = call("task", "t1", instructions="Look.", subagent_type="general-purpose")
    model = sa.ScriptedModel([task, "seen", submit()])
    result = sa.Agent(model, output_type=City).run("?")
    assert result.output == OSLO
    assert result.messages[2].tool_results[0].text == "seen"


def test_a_map_takes_the_agents_type() -> None:
    agent = sa.Agent(sa.ScriptedModel([submit(), submit()]), output_type=City)
    frame = agent.map(["a", "b"], progress=False, concurrency=1)
    assert list(frame.name) == ["Oslo", "Oslo"]


def test_a_type_that_cannot_be_is_refused_where_it_is_written() -> None:
    for attempt in (
        lambda: agent_of(output_type=object()),
        lambda: agent_of().run("?", output_type=object),
        lambda: session_of().send("?", output_type=lambda: 1),
    ):
        with pytest.raises(sa.ConfigurationError, match="No answer can be a"):
            attempt()


def test_a_run_may_have_another_model_prompt_options_and_context() -> None:
    seen: list[Any] = []

    @sa.tool
    def look(ctx: sa.ToolContext) -> str:
        """Look."""
        seen.append(dict(ctx.values))
        return "seen"

    other = sa.ScriptedModel([call("look"), "other"])
    agent = agent_of(
        "own",
        tools=[look],
        system_prompt="Own.",
        options={"temperature": 1, "top_p": 0.5},
        tool_context={"who": "a", "lang": "no"},
    )
    overrides: dict[str, Any] = {
        "model": other,
        "system_prompt": "Other.",
        "options": {"temperature": 0},
        "tool_context": {"who": "b"},
    }
    for start in (agent.run, lambda *a, **o: sa.Session(agent).send(*a, **o).result(PATIENCE)):
        assert start("go", **overrides).text == "other"
        request = other.requests[-1]
        assert request.system == "Other."
        assert request.options == {"temperature": 0, "top_p": 0.5}
        assert seen.pop() == {"who": "b", "lang": "no"}
        other.__init__([call("look"), "other"])  # type: ignore[misc]
    assert agent.run("go").text == "own"
    assert agent.model.requests[-1].options == agent.options  # type: ignore[attr-defined]


def test_what_a_run_does_not_have_is_named() -> None:
    with pytest.raises(sa.ConfigurationError, match="has no tools=…; it has model"):
        agent_of().run("go", tools=[])
    session = session_of()
    with pytest.raises(sa.ConfigurationError, match="has no colour="):
        session.send("go", colour="red")
    with pytest.raises(sa.ConfigurationError, match="no run of its own, so it has no budget"):
        session.send("go", "steer", budget=sa.Budget())
    assert session.messages == []


def test_another_agent_is_refused_while_a_run_waits_that_could_not_be_its() -> None:
    @sa.tool
    def look() -> str:
        """Look."""
        return "seen"

    gate = Gate()
    session = session_of(call("hold"), RuntimeError("bad"), tools=[look, gate.tool])
    run = session.send("go", until_tool="look")
    gate.wait()
    queued = session.send("again", until_tool="look")
    gate.open()
    with pytest.raises(sa.ModelError):
        run.result(PATIENCE)
    assert not queued.done
    other = agent_of("one", "two", "three")
    with pytest.raises(sa.ConfigurationError, match="until_tool names look"):
        session.replace(agent=other)
    assert session.agent is not other
    session.clear_queue()
    session.replace(agent=other)
    assert session.retry().result(PATIENCE).text  # as the new agent does it, with no until_tool


@pytest.mark.parametrize("wrong", ["many", 9])
def test_a_run_whose_answers_never_fit_says_what_was_wrong_as_extract_does(wrong: Any) -> None:
    scripted = [sa.ToolCall(f"c{n}", "submit", {"value": wrong}) for n in range(9)]
    fits = Annotated[int, msgspec.Meta(le=5)]
    for ask in (
        lambda agent: agent.run("How many?", output_type=fits),
        lambda agent: sa.Session(agent.with_(output_type=fits)).send("How many?").result(),
        lambda agent: agent.extract("How many?", fits),
    ):
        with pytest.raises(sa.MaxRunsExceeded, match=r"gave no .* in 5 calls, last: Expected") as e:
            ask(sa.Agent(sa.ScriptedModel(scripted)))
        assert "submit" not in str(e.value)
        assert len(e.value.result.messages) > 5
