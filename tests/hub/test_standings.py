"""What threads are and have used is known without opening them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest

from sagents_nb import Message, ScriptedModel, Usage
from sagents_nb.hub import AgentSystem, Blueprint, Hub
from sagents_nb.hub.standings import Standing
from sagents_nb.hub.threads import Thread
from sagents_nb.hub.web import agency_routes
from sagents_nb.hub.web.call import Call
from sagents_nb.hub.web.settings import Settings
from tests.talking import call, until


def note(text: str) -> str:
    """Keep a note."""
    return text


def spoken(request: Any) -> Any:
    """Notes, fails, or answers at a price."""
    last = request.messages[-1]
    if last.text == "note":
        return [call("note", "c1", text="a"), call("note", "c2", text="b")]
    if last.text == "fail":
        return ValueError("The model is away.")
    price = None if last.text == "for nothing" else 0.25
    used = Usage(input_tokens=10, cache_read_tokens=5, output_tokens=3, cost_usd=price)
    return Message.assistant("done", usage=used)


@pytest.fixture
def hub() -> Iterator[Hub]:
    system = AgentSystem(ScriptedModel(repeat(spoken))).add_tool(note)
    gated = {"hitl": {"tools": ["note"]}}
    made = Hub(system.add_agent(Blueprint("clerk", "Note.", config=gated)), "sqlite://")
    yield made
    made.close()


def told(hub: Hub, agency: Any, text: str, status: str) -> Thread:
    """A thread that was told that, once it is so and the log has it."""
    thread = hub.create_thread(agency, "clerk")
    thread.invoke([Message.user(text)])
    id = thread.record.id
    until(lambda: hub.standings(agency).get(id, Standing()).status == status)
    return thread


def asked(hub: Hub, handle: Any) -> Any:
    """What the function of a route answers."""
    return handle(Call(hub, Settings(token=""), {}, codes=None, query={}, headers={}, client=""))


def test_a_thread_that_nobody_spoke_to_has_no_standing(hub: Hub) -> None:
    agency, _ = hub.create_agency("Post")
    hub.create_thread(agency, "clerk")
    assert hub.standings(agency) == {}


def test_the_standing_is_that_of_the_last_event_and_says_which_tools_wait(hub: Hub) -> None:
    agency, _ = hub.create_agency("Post")
    waits = told(hub, agency, "note", "paused")
    failed = told(hub, agency, "fail", "error")
    done = told(hub, agency, "hello", "completed")
    found = hub.standings(agency)
    assert set(found) == {each.record.id for each in (waits, failed, done)}
    assert found[waits.record.id].reason == "hitl"
    assert found[waits.record.id].asks == ("note", "note")
    assert "The model is away." in (found[failed.record.id].reason or "")
    assert found[done.record.id].reason is None
    waits.cancel()
    until(lambda: hub.standings(agency)[waits.record.id].status == "canceled")
    assert hub.standings(agency)[waits.record.id].asks == ()


def test_an_agency_sees_only_its_own_threads(hub: Hub) -> None:
    agency, _ = hub.create_agency("Post")
    other, _ = hub.create_agency("Other")
    told(hub, agency, "hello", "completed")
    assert hub.standings(other) == {}
    assert hub.spent(other).threads == 0


def test_what_waits_for_people_is_found_in_all_agencies_the_longest_first(hub: Hub) -> None:
    agencies = [hub.create_agency(name)[0] for name in ("First", "Second")]
    threads = [told(hub, agency, "note", "paused") for agency in agencies]
    told(hub, agencies[0], "hello", "completed")
    found = asked(hub, agency_routes.approvals).approvals
    assert [each.thread_id for each in found] == [each.record.id for each in threads]
    assert [each.agency for each in found] == ["First", "Second"]
    assert found[0].tools == ["note", "note"]
    threads[0].approve(True, by="test")
    until(lambda: len(asked(hub, agency_routes.approvals).approvals) == 1)


def test_what_was_used_is_the_sum_of_all_answers_and_costs_what_they_say(hub: Hub) -> None:
    agency, _ = hub.create_agency("Post")
    empty, _ = hub.create_agency("Empty")
    told(hub, agency, "hello", "completed")
    told(hub, agency, "hello", "completed")
    told(hub, agency, "for nothing", "completed")
    (of_empty, used) = asked(hub, agency_routes.usage).usage
    assert (used.agency_id, used.threads, used.model_calls) == (agency.id, 3, 3)
    assert (used.input_tokens, used.output_tokens, used.cost_usd) == (45, 9, 0.5)
    assert (of_empty.agency_id, of_empty.threads, of_empty.cost_usd) == (empty.id, 0, None)


def test_a_thread_is_called_by_how_its_first_message_begins(hub: Hub) -> None:
    agency, _ = hub.create_agency("Post")
    thread = told(hub, agency, f"A letter\n  to {'Ada, ' * 30}", "completed")
    thread.invoke([Message.user("And another.")])
    until(lambda: hub.threads(agency)[0].title)
    title = hub.threads(agency)[0].title
    assert title.startswith("A letter to Ada, Ada, ")
    assert len(title) == 81
    assert title.endswith("…")
    assert thread.record.title == title


def test_a_thread_that_is_deleted_while_its_title_is_written_stays_deleted(hub: Hub) -> None:
    agency, _ = hub.create_agency("Post")
    thread = hub.create_thread(agency, "clerk")
    thread.invoke([Message.user("hello")])
    hub.delete_thread(agency, thread.record.id)
    assert hub.threads(agency) == []
