"""The hub: threads that are open here, each once, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import sagents_nb as sa
from sagents_nb.errors import Owned, StaleOwner
from sagents_nb.files import FileError
from sagents_nb.hub import Blueprint, Hub
from sagents_nb.runtime.thread import runtime
from tests.hub.houses import a_hub
from tests.hub.world import World, chat, is_dense, kept_of, listening, rest, say
from tests.talking import call, in_threads, until


def test_of_eight_who_need_a_thread_at_once_all_get_the_same(stored_world: World) -> None:
    wanted = stored_world.thread("hi").record.id
    stored_world.hub.close()
    stored_world.hub = Hub(stored_world.system, stored_world.url)
    found = in_threads(8, lambda n: stored_world.hub.thread(stored_world.agency, wanted))
    assert len({*map(id, found)}) == 1
    assert found[0].record.id == wanted


@pytest.mark.spec("H3.1.2", "H3.4.4")
def test_an_unknown_kind_of_agent_is_not_found_and_no_thread_is_made(stored_world: World) -> None:
    with pytest.raises(sa.NotFound, match="'nobody'"):
        stored_world.hub.create_thread(stored_world.agency, "nobody")
    assert stored_world.hub.threads(stored_world.agency) == []


@pytest.mark.spec("H3.1.2")
def test_a_thread_that_was_never_registered_is_not_found(stored_world: World) -> None:
    stored_world.hub.store.scoped(stored_world.agency).create_conversation(id="no-thread")
    for id in ("no-thread", "nothing"):
        with pytest.raises(sa.NotFound, match=f"'{id}'"):
            stored_world.hub.thread(stored_world.agency, id)
    assert stored_world.hub.threads(stored_world.agency) == []


def test_threads_are_listed_the_newest_first_without_being_opened(stored_world: World) -> None:
    hub, agency = stored_world.hub, stored_world.agency
    made = [hub.create_thread(agency, "clerk", request={"ip": str(n)}).record.id for n in range(3)]
    hub.close()
    stored_world.hub = hub = Hub(stored_world.system, stored_world.url)
    listed = hub.threads(agency)
    assert [record.id for record in listed] == made[::-1]
    assert [record.request for record in listed] == [{"ip": "2"}, {"ip": "1"}, {"ip": "0"}]
    assert "0 threads are open" in repr(hub)


def test_a_thread_that_is_deleted_is_gone_with_its_events_and_files(stored_world: World) -> None:
    world = stored_world
    thread = world.thread(call("hold"))
    heard = listening(thread)
    thread.invoke([sa.Message.user("a")], {"/a.md": "x"})
    world.holds.wait()
    id = thread.record.id
    world.hub.delete_thread(world.agency, id)
    assert heard[-1] is None
    for ask in (world.hub.thread, world.hub.events, world.hub.delete_thread):
        with pytest.raises(sa.NotFound):
            ask(world.agency, id)
    tables = world.hub.store.database.tables
    rows = world.hub.store.database.run(lambda c: c.execute(tables.hub_events.select()).all())
    assert rows == []
    assert world.hub.active_runs() == 0


def test_what_another_process_has_open_is_owned_until_it_lets_go(stored_world: World) -> None:
    world = stored_world
    thread = world.thread("one")
    say(thread, "a")
    other = Hub(world.system, world.url)
    # Of one thread of a process the later session would take the earlier one's place.
    for ask in (other.thread, other.delete_thread):
        (outcome,) = in_threads(1, lambda n, ask=ask: ask(world.agency, thread.record.id))
        assert isinstance(outcome, Owned)
    assert len(other.events(world.agency, thread.record.id)) == 5
    world.hub.close()
    world.says("two")
    again = other.thread(world.agency, thread.record.id)
    assert say(again, "b") == "completed"
    assert is_dense(other.events(world.agency, thread.record.id))
    other.close()


def test_a_thread_that_another_process_took_and_left_is_opened_anew(stored_world: World) -> None:
    world = stored_world
    thread = world.thread("one")
    say(thread, "a")
    store = sa.ConversationStore(world.url)
    agent = world.system.agent(Blueprint("clerk", "Be brief."))
    with (
        sa.Session.open(
            thread.record.id, agent=agent, store=store, scope=world.agency, take_over=True
        ),
        pytest.raises(sa.AgentError),
    ):
        thread.invoke([sa.Message.user("b")])
    store.close()
    world.says("two")
    again = world.hub.thread(world.agency, thread.record.id)
    assert again is not thread
    assert say(again, "c") == "completed"
    assert chat(again)[-2:] == [("user", "c"), ("assistant", "two")]


@pytest.mark.parametrize("left", [False, True], ids=["has it", "had it"])
def test_nothing_is_kept_of_a_thread_that_another_process_took(
    stored_world: World, left: bool
) -> None:
    world = stored_world
    thread = world.thread("one")
    say(thread, "a", files={"/a.md": "before"})
    before, heard = world.events(thread), listening(thread)
    store = sa.ConversationStore(world.url)
    agent = world.system.agent(Blueprint("clerk", "Be brief."))
    taken = sa.Session.open(
        thread.record.id, agent=agent, store=store, scope=world.agency, take_over=True
    )
    if left:
        taken.close()
    thread.tell([("tool.output", {"toolName": "look", "output": "late"})])
    with pytest.raises(StaleOwner):
        world.hub.set_variables(world.agency, thread, {"late": 1})
    with pytest.raises(FileError):
        thread.session.files.write("/late.md", "late")
    with pytest.raises(FileError):
        thread.session.files.delete("/a.md")
    assert thread.session.files.stats().dirty == 0  # it is not tried again for ever
    assert heard == []
    taken.close()
    store.close()
    again = Hub(world.system, world.url)
    (record,) = again.threads(world.agency)
    assert record.variables == {}
    assert again.events(world.agency, record.id)[: len(before)] == before
    assert "tool.output" not in world.told(thread)
    (there,) = in_threads(1, lambda n: again.thread(world.agency, record.id))
    assert [entry.path for entry in there.session.files.contents()] == ["/a.md"]
    again.close()


def test_a_thread_that_rested_goes_on_as_it_was(world: World) -> None:
    thread = world.thread(call("pay", amount=5), "done")
    heard = listening(thread)
    say(thread, "a")

    runtime.call(thread.session.actor.rest, "inactivity")
    assert thread.status == "paused"
    thread.approve(True, by="test")
    assert rest(thread) == "completed"
    assert world.ran == ["pay 5"]
    assert None not in heard
    assert is_dense(world.events(thread))


def test_a_hub_that_is_closed_opens_nothing(stored_world: World) -> None:
    thread = stored_world.thread("hi")
    stored_world.hub.close()
    with pytest.raises(sa.SagentsError, match="closed"):
        stored_world.hub.thread(stored_world.agency, thread.record.id)
    stored_world.hub.close()


def test_a_store_of_somebodys_stays_open_and_has_all_that_was_told(stored_world: World) -> None:
    store = sa.ConversationStore(stored_world.url)
    hub = Hub(stored_world.system, store)
    stored_world.says("hi")
    thread = hub.create_thread(stored_world.agency, "clerk")
    thread.invoke([sa.Message.user("a")])
    rest(thread)
    hub.close()
    again = Hub(stored_world.system, store)
    told = [event.type for event in again.events(stored_world.agency, thread.record.id)]
    assert told[-1] == "agent.completed"
    again.close()
    store.close()


@pytest.mark.parametrize("number", range(8))
def test_what_was_told_as_a_hub_closed_is_kept(world: World, number: int) -> None:
    thread = world.thread("hi")
    heard = listening(thread)
    thread.invoke([sa.Message.user("a")])
    thread = world.reopened(thread)
    told = kept_of(heard)
    assert world.events(thread)[: len(told)] == told


def test_changes_of_variables_at_once_are_all_kept(stored_world: World) -> None:
    world = stored_world
    thread = world.thread()
    in_threads(8, lambda n: world.hub.set_variables(world.agency, thread, {str(n): n}))
    thread = world.reopened(thread)
    assert thread.record.variables == {str(n): n for n in range(8)}


def has_let_go(session: sa.Session) -> bool:
    """Whether it rests, and another hub may open its conversation, which comes a moment later."""
    return session.resting is not None and session.actor.ended.done()


def test_a_thread_that_rested_knows_what_was_done_with_it_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.hub.open_threads.RESTS_AFTER", 0.05)
    path = tmp_path / "hub.db"
    with a_hub(path, {"guide": ["one", "never"]}) as hub, a_hub(path, {"guide": ["two"]}) as other:
        agency, _ = hub.create_agency()
        thread = hub.create_thread(agency, "guide")
        thread.invoke([sa.Message.user("First.")])
        until(lambda: has_let_go(thread.session))
        there = other.thread(agency, thread.record.id)
        there.invoke([sa.Message.user("Second.")], idempotency_key="k")
        until(lambda: has_let_go(there.session))
        again = hub.thread(agency, thread.record.id)
        again.invoke([sa.Message.user("Second.")], idempotency_key="k")
        said = [m["content"] for m in again.state()["state"]["messages"]]
        assert said == ["First.", "one", "Second.", "two"]
        seqs = [event.seq for event in hub.events(agency, thread.record.id)]
        assert seqs == list(range(1, len(seqs) + 1))
