"""Variables of an agency: its tools are told, and nobody else."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint, Hub
from tests.hub.houses import Speaking, a_hub, still


def spy(ctx: sa.ToolContext) -> str:
    """Say what there is."""
    return ", ".join(f"{name}={ctx.values[name]}" for name in sorted(ctx.values))


def told(hub: Hub, agency: object, thread: object) -> str:
    thread.invoke([sa.Message.user("Go.")])  # type: ignore[attr-defined]
    assert still(thread, "completed")  # type: ignore[arg-type]
    messages = thread.state()["state"]["messages"]  # type: ignore[attr-defined]
    return str(next(m["content"] for m in reversed(messages) if m["role"] == "tool"))


@pytest.mark.spec("H3.5.2")
def test_tools_are_told_those_of_the_agency_and_of_their_thread(tmp_path: Path) -> None:
    call = sa.ToolCall("c1", "spy", {})
    with a_hub(tmp_path / "hub.db", {"guide": [call, "Done.", call, "Done."]}) as hub:
        hub.system.add_tool(spy)
        agency, _ = hub.create_agency()
        hub.save_variables(agency, {"city": "Oslo", "unit": "C"})
        thread = hub.create_thread(agency, "guide", variables={"unit": "F"})
        assert told(hub, agency, thread) == "city=Oslo, unit=F"
        hub.set_variables(agency, thread, {"day": "today"})
        assert told(hub, agency, thread) == "city=Oslo, day=today, unit=F"


@pytest.mark.spec("H3.5.2")
def test_a_name_with_a_dollar_is_the_variable_of_the_process_if_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWN", "Bergen")
    monkeypatch.setenv("HIDDEN", "nobody may know")
    system = Speaking({"guide": [sa.ToolCall("c1", "spy", {}), "Done."]}).add_tool(spy)
    hub = Hub(system, tmp_path / "hub.db", environment=["TOWN"])
    agency, _ = hub.create_agency()
    for name in ("$HIDDEN", "$TOWNS"):
        with pytest.raises(sa.ConfigurationError, match=rf"'b' cannot be \{name}: .* environment"):
            hub.save_variables(agency, {"a": "$TOWN", "b": name})
    assert hub.variables(agency) == []
    hub.save_variables(agency, {"a": "$TOWN", "c": "$5", "d": 5})
    thread = hub.create_thread(agency, "guide")
    assert told(hub, agency, thread) == "a=Bergen, c=$5, d=5"
    hub.close()


def test_what_a_hub_allowed_before_and_allows_no_more_is_left_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIDDEN", "nobody may know")
    system = Speaking({"guide": [sa.ToolCall("c1", "spy", {}), "Done."]}).add_tool(spy)
    hub = Hub(system, tmp_path / "hub.db", environment=["HIDDEN"])
    agency, _ = hub.create_agency()
    hub.save_variables(agency, {"a": "$HIDDEN"})
    hub.close()
    hub = Hub(system, tmp_path / "hub.db")
    assert told(hub, agency, hub.create_thread(agency, "guide")) == "a=$HIDDEN"
    hub.close()


def test_values_are_in_no_state_no_event_and_no_list(tmp_path: Path) -> None:
    secret = "tell-nobody-4711"
    with a_hub(tmp_path / "hub.db", {"guide": ["Done."]}) as hub:
        agency, _ = hub.create_agency()
        hub.save_variables(agency, {"key": secret})
        thread = hub.create_thread(agency, "guide")
        thread.invoke([sa.Message.user("Go.")])
        assert still(thread, "completed")
        shown = [thread.state(), hub.events(agency, thread.record.id), hub.variables(agency)]
        assert secret not in repr([*shown, thread.record, thread, hub])
        assert hub.variables(agency) == ["key"]


def test_max_iterations_bounds_the_calls_of_the_model_and_zero_does_not(tmp_path: Path) -> None:
    call = sa.ToolCall("c1", "spy", {})
    with a_hub(tmp_path / "hub.db", {"guide": [call, call, "Done."] * 2}) as hub:
        hub.system.add_tool(spy)
        agency, _ = hub.create_agency()
        hub.save_variables(agency, {"MAX_ITERATIONS": 2})
        thread = hub.create_thread(agency, "guide")
        thread.invoke([sa.Message.user("Go.")])
        assert still(thread, "error")
        endless = hub.create_thread(agency, "guide", variables={"MAX_ITERATIONS": 0})
        endless.invoke([sa.Message.user("Go.")])
        assert still(endless, "completed")
        with pytest.raises(sa.ConfigurationError, match="MAX_ITERATIONS"):
            hub.create_thread(agency, "guide", variables={"MAX_ITERATIONS": -1})
        for wrong in ("x", -1, None, "5"):
            with pytest.raises(sa.ConfigurationError, match="MAX_ITERATIONS"):
                hub.save_variables(agency, {"MAX_ITERATIONS": wrong, "other": 1})
        assert hub.variables(agency) == ["MAX_ITERATIONS"]


def test_a_variable_is_of_one_agency(tmp_path: Path) -> None:
    with a_hub(tmp_path / "hub.db", {}) as hub:
        hub.system.add_agent(Blueprint("guide", "Guide."))
        (mine, _), (theirs, _) = hub.create_agency(), hub.create_agency()
        hub.save_variables(mine, {"city": "Oslo"})
        assert hub.variables(theirs) == []
        with pytest.raises(sa.NotFound):
            hub.delete_variable(theirs, "city")
        hub.delete_variable(mine, "city")
        assert hub.variables(mine) == []


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "\n", "x" * 101, "å"])
def test_a_name_that_could_be_no_address_is_refused(tmp_path: Path, name: str) -> None:
    with contextlib.closing(Hub(AgentSystem("demo"), tmp_path / "hub.db")) as hub:
        agency, _ = hub.create_agency()
        with pytest.raises(sa.ConfigurationError, match="no name of a variable"):
            hub.save_variables(agency, {"city": "Oslo", name: 1})
        assert hub.variables(agency) == []
