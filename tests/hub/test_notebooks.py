"""Sessions of a notebook as threads of a hub: they stay as the notebook has them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import ConfigurationError, NotFound
from sagents_nb.hub import Agency, Hub, Thread
from sagents_nb.hub.threads import NoKernel
from tests.hub.world import World, data_of, is_dense, rest
from tests.talking import PATIENCE, agent_of, call, until

NOTEBOOK = "trip.ipynb"


class Notebook:
    """A session of the name "notebook-1" in the store of a hub, with what its model says."""

    def __init__(self, world: World, *turns: Any, **options: Any) -> None:
        self.hub = world.hub
        self.world = world
        self.session = sa.Session(
            agent_of(*turns, **options), id="notebook-1", store=world.hub.store
        )

    def show(self) -> Thread:
        """As a thread of the agency that the world has from now on."""
        thread = self.hub.show(NOTEBOOK, self.session)
        self.world.agency = self.agency
        return thread

    @property
    def agency(self) -> Agency:
        """The notebook's."""
        return next(each for each in self.hub.agencies() if each.is_notebook)

    def status(self) -> str:
        """As a list of threads says it."""
        return self.hub.standings(self.agency)["notebook-1"].status


@pytest.fixture
def world(stored_world: World) -> World:
    return stored_world


def test_what_was_said_before_is_told_once_however_often_it_is_shown(world: World) -> None:
    notebook = Notebook(world, "Hello!", "Bye!")
    notebook.session.send("hi").result()
    thread = notebook.show()
    assert notebook.show() is thread
    assert world.told(thread) == ["agent.completed"]
    notebook.session.send("bye").result()
    rest(thread)
    assert is_dense(world.hub.events(notebook.agency, "notebook-1"))
    assert world.told(thread)[-1] == "agent.completed"
    assert world.hub.thread(notebook.agency, "notebook-1") is thread
    assert [each.title for each in world.hub.threads(notebook.agency)] == ["notebook-1"]


def test_a_run_that_is_at_work_already_is_told_of_from_there(world: World) -> None:
    notebook = Notebook(world, world.held("Done."))
    run = notebook.session.send("hi")
    assert world.holds.wait(PATIENCE)
    thread = notebook.show()
    assert (thread.status, world.told(thread)) == ("running", ["run.started"])
    assert data_of(world.events(thread), "run.started") == [{"runId": run.id}]
    world.go_on.set()
    run.result()
    assert rest(thread) == "completed"
    assert world.told(thread, "run.started", "agent.completed") == [
        "run.started",
        "agent.completed",
    ]


def test_what_waits_already_can_be_approved(world: World) -> None:
    def pay(amount: int) -> str:
        return f"paid {amount}"

    notebook = Notebook(
        world, call("pay", amount=3), "Paid.", tools=[pay], interrupt_on={"pay": True}
    )
    notebook.session.send("pay").result()
    thread = notebook.show()
    assert world.told(thread) == ["hitl.interrupt", "run.paused"]
    thread.approve(True, by="http")
    until(lambda: notebook.session.status == "idle")
    assert notebook.session.messages[-1].text == "Paid."


def test_what_came_too_late_for_a_run_waits_for_the_next_as_in_the_notebook(world: World) -> None:
    notebook = Notebook(world, "Done.", "And that.")
    thread, session = notebook.show(), notebook.session
    session.subscribe(lambda event: event.type == "agent_end" and session.steer("later"))
    session.send("hi").result()
    assert rest(thread) == "completed"
    assert [queued.message.text for queued in session.queued] == ["later"]


def test_what_is_said_here_while_it_runs_is_heard_after_that(world: World) -> None:
    notebook = Notebook(world, world.held("Done."), "And that.")
    thread = notebook.show()
    notebook.session.send("hi")
    assert world.holds.wait(PATIENCE)
    assert thread.invoke([sa.Message.user("more")], idempotency_key="k")["status"] == "running"
    thread.invoke([sa.Message.user("more")], idempotency_key="k")
    world.go_on.set()
    until(lambda: len(notebook.session.messages) == 4)
    assert notebook.session.messages[-1].text == "And that."


def test_a_hub_that_ends_leaves_the_session_as_it_was(world: World) -> None:
    notebook = Notebook(world, "Hello!")
    modes = (notebook.session.steering_mode, notebook.session.steering_batch)
    thread = notebook.show()
    assert (notebook.session.steering_mode, notebook.session.steering_batch) == modes
    assert notebook.session.viewers == ["hub"]
    thread.close("the hub ends")
    until(lambda: notebook.session.viewers == [])
    assert notebook.session.send("hi").result().text == "Hello!"
    assert world.told(thread) == []


def test_it_is_deleted_from_the_page_only(world: World) -> None:
    notebook = Notebook(world, "Hello!")
    store = world.hub.store
    kept = {"agent": {"tools": ["look"]}}
    store.update_conversation("notebook-1", title="Trip", metadata=kept)
    notebook.session.files.write("/plan.md", "Oslo")
    thread = notebook.show()
    assert [each.title for each in world.hub.threads(notebook.agency)] == ["Trip"]
    agency = notebook.agency
    world.hub.delete_thread(agency, "notebook-1")
    assert world.hub.threads(agency) == []
    with pytest.raises(NotFound):
        world.hub.thread(agency, "notebook-1")
    assert store.get_conversation("notebook-1").metadata == kept
    assert notebook.session.send("hi").result().text == "Hello!"
    assert notebook.session.files.list() == ["/plan.md"]
    assert notebook.show() is not thread
    world.hub.delete_agency(notebook.agency)
    assert store.get_conversation("notebook-1").metadata == kept
    assert notebook.session.status == "idle"


def test_a_thread_whose_session_is_closed_is_read_and_never_opened(world: World) -> None:
    notebook = Notebook(world, "Hello!")
    notebook.session.send("hi").result()
    notebook.show()
    notebook.session.close()
    with pytest.raises(NoKernel, match="say %agent serve there"):
        world.hub.thread(notebook.agency, "notebook-1")
    kept = world.hub.kept(notebook.agency, "notebook-1")
    assert [message["content"] for message in kept.state()["state"]["messages"]] == ["hi", "Hello!"]
    assert kept.snapshot()["state"]["status"] == "closed"
    assert world.hub.recover() == 0
    again = sa.Session.open("notebook-1", agent=agent_of("Back."), store=world.hub.store)
    thread = world.hub.show(NOTEBOOK, again)
    again.send("there?").result()
    assert rest(thread) == "completed"
    assert is_dense(world.hub.events(notebook.agency, "notebook-1"))


def test_what_waits_where_no_kernel_is_waits_for_no_approval(world: World) -> None:
    def pay(amount: int) -> str:
        return f"paid {amount}"

    notebook = Notebook(world, call("pay", amount=3), tools=[pay], interrupt_on={"pay": True})
    notebook.show()
    notebook.session.send("pay").result()
    until(lambda: notebook.status() == "paused")
    notebook.session.close()
    standing = world.hub.standings(notebook.agency)["notebook-1"]
    assert (standing.status, standing.reason, standing.asks) == ("paused", "kernel", ())


def test_the_agency_of_a_notebook_has_its_name_or_one_like_it_and_is_the_same_each_time(
    world: World,
) -> None:
    taken, _ = world.hub.create_agency(NOTEBOOK)
    notebook = Notebook(world)
    notebook.show()
    assert (notebook.agency.name, notebook.agency.id == taken.id) == (f"{NOTEBOOK} (2)", False)
    assert world.hub.threads(taken) == []
    with pytest.raises(NotFound):
        world.hub.thread(taken, "notebook-1")
    first = notebook.agency
    world.hub.delete_agency(first)
    notebook.show()
    assert notebook.agency.id == first.id


def test_nothing_begins_in_the_agency_of_a_notebook(world: World) -> None:
    notebook = Notebook(world, "Hello!")
    thread, hub = notebook.show(), world.hub
    agency = notebook.agency
    for begin in (
        lambda: hub.create_thread(agency, "clerk"),
        lambda: hub.named_thread(agency, "clerk", "tab"),
        lambda: hub.agent(agency, "clerk"),
        lambda: hub.save_blueprint(agency, {"name": "made", "prompt": "Be kind."}),
        lambda: hub.blueprint_versions(agency, "clerk"),
        lambda: hub.save_variables(agency, {"city": "Oslo"}),
        lambda: hub.set_variables(agency, thread, {"city": "Oslo"}),
        lambda: hub.new_secret(agency),  # which would open the notebook
    ):
        with pytest.raises(ConfigurationError, match="notebook"):
            begin()
    assert hub.blueprints(agency) == []


def test_what_cannot_be_shown_says_why(world: World) -> None:
    with pytest.raises(ConfigurationError, match="is not kept where this hub looks"):
        world.hub.show(NOTEBOOK, sa.Session(agent_of(), id="elsewhere"))
    scoped = sa.Session(agent_of(), id="hers", store=world.hub.store, scope=sa.Scope(user="ada"))
    with pytest.raises(ConfigurationError, match="without a scope"):
        world.hub.show(NOTEBOOK, scoped)
    named = sa.Session(agent_of(), id="my trip", store=world.hub.store)
    with pytest.raises(ConfigurationError, match="'my trip' can be no address"):
        world.hub.show(NOTEBOOK, named)
    assert [each for each in world.hub.agencies() if each.is_notebook] == []


def test_several_who_show_it_at_once_make_one_thread(world: World) -> None:
    notebook = Notebook(world, "Hello!")
    found: list[Thread] = []
    threads = [threading.Thread(target=lambda: found.append(notebook.show())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(set(map(id, found))) == 1


def test_a_hub_keeps_threads_of_others_apart(world: World) -> None:
    thread = world.thread("Hello!")
    notebook = Notebook(world)
    notebook.show()
    with pytest.raises(NotFound):
        world.hub.thread(notebook.agency, thread.record.id)
    with pytest.raises(NotFound):
        world.hub.kept(world.agency, thread.record.id)
    assert isinstance(world.hub, Hub)
