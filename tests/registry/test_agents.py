"""Agents are found by words, by what they can do, and by how well they did it."""

from __future__ import annotations

import re

import pytest

import sagents_nb as sa
from sagents_nb.frames.columns import MEASURED
from sagents_nb.store import tasks as rows
from sagents_nb.tasks import TaskRecord
from tests.talking import PATIENCE, agent_of


def named(name: str, description: str = "", **options: object) -> sa.Agent:
    return agent_of(name=name, description=description, **options)


def did(agents: sa.AgentRegistry, agent: str, states: str, seconds: float, cost: float) -> None:
    """Tasks that it has completed (c) or failed (f)."""
    tasks = agents.store.tasks
    for number, state in enumerate(states):
        id = f"{agent}-{number}"
        tasks.run(rows.create, TaskRecord(id=id, agent=agent))
        tasks.run(rows.change, id, "working")
        ended = {"c": "completed", "f": "failed"}[state]
        tasks.run(rows.change, id, ended, seconds=seconds, cost_usd=cost)


@pytest.mark.spec("R4.3.3")
def test_a_search_finds_all_and_one_for_delegates_those_that_take_tasks(
    agents: sa.AgentRegistry,
) -> None:
    agents.add(named("weather", "Forecasts for sailing."))
    agents.add(named("harbour", "Berths for sailing boats."), delegable=False)
    agents.add(named("museums", "When they are open."))
    found = agents.search("sailing tomorrow")
    assert sorted(found["name"]) == ["harbour", "weather"]
    assert found["score"].max() == 1.0
    assert agents.search("sailing", delegable=True)["name"].tolist() == ["weather"]
    assert len(agents.search("")) == 3
    assert len(agents.search("nothing of that")) == 0
    assert agents.search("sailing", limit=1)["name"].tolist() == ["weather"]


def test_a_search_says_how_they_did(agents: sa.AgentRegistry) -> None:
    agents.add(named("weather", "Forecasts."))
    did(agents, "weather", "cccf", seconds=2.0, cost=0.5)
    [row] = agents.search("forecasts").to_dict("records")
    assert row == {
        "name": "weather",
        "score": 1.0,
        "calls": 4,
        "success_rate": 0.75,
        "latency": 2.0,
        "cost": 0.5,
    }
    agents.add(named("fresh", "Forecasts, too."))
    assert agents.search("forecasts").set_index("name")["latency"].isna()["fresh"]


def test_a_search_says_that_its_latency_is_measured(agents: sa.AgentRegistry) -> None:
    assert agents.search("").attrs[MEASURED] == ["latency"]
    assert agents.search_tools("forecasts").attrs[MEASURED] == []


@pytest.mark.spec("R4.4.6")
def test_the_route_goes_to_the_best_that_fits(agents: sa.AgentRegistry) -> None:
    for name in ("slow", "dear", "poor", "fresh"):
        agents.add(named(name), capabilities=["weather"])
    did(agents, "slow", "cccc", seconds=9.0, cost=0.01)
    did(agents, "dear", "cccc", seconds=1.0, cost=2.00)
    did(agents, "poor", "cffc", seconds=1.0, cost=0.01)
    assert agents.route("Weather", max_latency=2, max_cost_usd=0.05).name == "fresh"
    agents.remove("fresh")
    assert agents.route("weather", max_latency=2, max_cost_usd=0.05).name == "poor"
    assert agents.route("weather", min_success_rate=0.9).name == "dear"
    assert agents.route("weather", max_cost_usd=1, min_success_rate=0.9).name == "slow"
    with pytest.raises(sa.NotFound, match=r"No agent fits 'weather'; .* but not within the limits"):
        agents.route("weather", max_latency=0.5)
    with pytest.raises(sa.NotFound, match="No agent fits 'museums'"):
        agents.route("museums")


@pytest.mark.spec("R4.4.6")
def test_without_the_word_the_route_goes_by_the_description(agents: sa.AgentRegistry) -> None:
    agents.add(named("meteo", "Weather forecasts for sailing."))
    agents.add(named("museums", "When museums are open."))
    assert agents.route("Will the weather be fine?").name == "meteo"


@pytest.mark.spec("R4.4.7")
def test_tools_of_all_agents_are_searched(agents: sa.AgentRegistry) -> None:
    def tides(port: str) -> str:
        "The tide table of a port."
        return port

    def tide_levels(port: str) -> str:
        "The tide levels of a port."
        return port

    def cities(country: str) -> str:
        "The largest cities."
        return country

    agents.add(named("harbour", tools=[tides, cities]))
    agents.add(named("coast", tools=[tide_levels]))
    assert agents.search_tools("tide table")["tool"].tolist() == [
        "harbour/tides",
        "coast/tide_levels",
    ]
    without = agents.search_tools("tide table", exclude=["harbour/tides"])
    assert without["tool"].tolist() == ["coast/tide_levels"]
    recent = agents.search_tools("tide table", recent=["tides"])
    assert set(recent["tool"]) == {"harbour/tides", "coast/tide_levels"}
    scores = dict(zip(recent["tool"], recent["score"], strict=True))
    assert scores["harbour/tides"] < 1.0


def test_who_is_added_again_takes_the_place(agents: sa.AgentRegistry) -> None:
    agents.add(named("weather", "Forecasts."))
    agents.add(agent_of("Sun.", name="weather", description="Sailing."))
    assert len(agents) == 1
    assert agents.search("forecasts").empty
    assert agents.delegate("Sailing?").wait(PATIENCE).text == "Sun."
    assert "weather" in agents
    assert [card.name for card in agents] == ["weather"]


@pytest.mark.spec("R4.4.4")
@pytest.mark.parametrize("avatar", ["", "🌦", "👩‍🔬", "🇳🇴", "👍🏽", "https://example.org/a.png"])
def test_the_picture_of_an_agent_is_any_text(agents: sa.AgentRegistry, avatar: str) -> None:
    agents.add(named("weather"), avatar=avatar)
    assert agents.card("weather").avatar == avatar
    with pytest.raises(sa.ConfigurationError, match="avatar"):
        agents.add(named("weather"), avatar=7)


@pytest.mark.spec("R4.1.10")
@pytest.mark.parametrize("name", ["weather/oslo", "weather man", "vær", "a.b"])
def test_the_tool_of_an_agent_of_any_name_is_legal_and_leads_to_it(
    agents: sa.AgentRegistry, name: str
) -> None:
    card = agents.add(named(name))
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", card.tool_name)
    call = sa.ToolCall("c1", card.tool_name, {"instructions": "Go."})
    agents.add(agent_of("Sun.", name=name))
    host = agent_of(call, "Good.", name="host", middleware=[sa.Delegation(agents)])
    assert host.run("Go.").messages[2].tool_results[0].text == "Sun."
    with pytest.raises(sa.ConfigurationError, match="would be called by one tool"):
        agents.add(named(re.sub("[^a-zA-Z0-9_-]", "_", name)))


@pytest.mark.spec("R4.1.10")
def test_bad_input_changes_nothing(agents: sa.AgentRegistry) -> None:
    agents.add(named("weather man"))
    wrong = [
        (lambda: agents.add(named("weather_man")), "would be called by one tool"),
        (lambda: agents.add(agent_of()), "needs a name"),
        (lambda: agents.add(named("x"), name="y"), "goes by its own name"),
        (lambda: agents.add(named("x" * 58)), "has 1 to 57 characters"),
        (lambda: agents.add(named("x\ud800")), "cannot be shown"),
        (lambda: agents.add(lambda text: text, name="x\0"), "cannot be shown"),
        (lambda: agents.add("weather"), "an Agent, or a function"),
        (lambda: agents.add(named("x"), capabilities=7), "list of words"),
        (lambda: agents.search("x", limit=-1), "whole number"),
        (lambda: agents.search("x", min_score=2), "from 0 to 1"),
        (lambda: agents.delegate("", to="weather man"), "empty"),
        (lambda: agents.delegate(7, to="weather man"), "A prompt is"),
        (lambda: agents.delegate("x", to="weather man", timeout=0), "over 0"),
        (lambda: agents.delegate("x", to="weather man", budget=7), "budget"),
        (lambda: agents.route("x", max_latency=-1), "from 0"),
        (lambda: agents.store.tasks.list("asleep"), "state"),
        (lambda: agents.store.tasks.list(limit=-1), "limit"),
        (lambda: sa.Delegation("agents"), "agents"),
        (lambda: sa.Delegation(agents, limit=0), "limit"),
        (lambda: sa.Delegation(agents, max_depth=0), "max_depth"),
        (lambda: sa.AgentRegistry(7), "store"),
    ]
    for act, said in wrong:
        with pytest.raises(sa.ConfigurationError, match=said):
            act()
    for missing in (lambda: agents.remove("x"), lambda: agents.task("x"), lambda: agents.card("x")):
        with pytest.raises(sa.NotFound):
            missing()
    assert [card.name for card in agents] == ["weather man"]
    assert agents.store.tasks.list() == []
