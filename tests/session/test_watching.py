"""Those who listen: late, behind the scenes, or with something to say themselves."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import Debug, Event, StatusChanged
from sagents_nb.store import ConversationStore
from tests.middleware.delegating import helper, look, parent_of, task
from tests.talking import PATIENCE, agent_of, all_of, call, of, session_of, types


@pytest.mark.spec("S1.11.16")
def test_who_comes_late_is_first_told_the_status_and_nobody_else_is() -> None:
    session = session_of("one", "two")
    early: list[Any] = []
    session.subscribe(early.append)
    session.send("go").result()
    heard = len(early)
    late: list[Any] = []
    session.subscribe(late.append)
    (snapshot,) = of(StatusChanged, late)
    assert (snapshot.status, snapshot.reason, snapshot.seq) == ("idle", "snapshot", early[-1].seq)
    assert len(early) == heard
    session.send("again").result()
    assert types(late[1:]) == types(early[heard:])


@pytest.mark.spec("S1.11.16")
def test_who_asks_for_what_was_needs_no_snapshot() -> None:
    session = session_of("one")
    session.send("go").result()
    late: list[Any] = []
    session.subscribe(late.append, since=0)
    assert [event.seq for event in late] == sorted({event.seq for event in late})
    assert "snapshot" not in [event.reason for event in of(StatusChanged, late)]


@pytest.mark.spec("S1.11.16")
def test_subscribing_twice_is_hearing_once() -> None:
    session, heard = session_of("one"), list[Any]()
    session.subscribe(heard.append)
    session.subscribe(heard.append)
    session.send("go").result()
    assert len({event.seq for event in heard}) == len(heard)


def test_who_was_removed_hears_nothing_more_not_even_of_the_event_that_is_being_told() -> None:
    session, heard = session_of("one"), list[Any]()

    def first(event: Any) -> None:
        leave()

    session.subscribe(first)
    leave = session.subscribe(heard.append)
    session.send("go").result()
    assert heard == []


@pytest.mark.spec("S1.11.3")
def test_every_event_says_which_session_and_run_it_belongs_to() -> None:
    session, heard = session_of("one"), list[Event]()
    session.subscribe(heard.append)
    run = session.send("go")
    run.result()
    assert {event.session_id for event in heard} == {session.id}
    assert {event.run_id for event in heard if event.type != "status_changed"} == {run.id}


@pytest.mark.spec("S1.11.3")
def test_whatever_happens_in_a_run_names_the_run_also_once_people_have_answered(
    store: ConversationStore,
) -> None:
    todo = call("write_todos", "t", merge=False, todos=[{"content": "a"}])
    turn = [todo, call("look", "l"), task("s")]
    agent = parent_of(
        *(turn, "done", "again"),
        subagents=[helper(call("look", "w"), "found")],
        middleware=[sa.TodoList()],
        tools=[look],
        interrupt_on={"look": True},
    )
    session, heard = sa.Session(agent, store=store), list[Any]()
    session.subscribe(heard.append, debug=True)
    first = session.send("go")
    first.result()
    resumed = session.approve()
    assert resumed is not None
    resumed.result()
    before = len(heard)
    second = session.send("more")
    second.result()
    assert {event.session_id for event in heard} == {session.id}
    for run, events in ((first, heard[:before]), (second, heard[before:])):
        assert {e.run_id for e in events if e.type != "status_changed"} == {run.id}
    assert resumed.id == first.id != second.id
    assert set(types(heard)) >= {
        *("interrupt", "decision", "todos_updated", "subagent_event", "debug"),
        *("display_message_saved", "display_message_updated", "tool_execution_end", "agent_end"),
    }


class Diary(sa.Middleware):
    """Writes down what it is told."""

    def handle_message(self, message: Any, state: sa.State, ctx: Any) -> sa.State:
        if message == "broken":
            raise ValueError("the pen is empty")
        return state.put_metadata("diary", message)


@pytest.mark.spec("S1.11.3", "S1.11.13")
def test_only_those_who_ask_hear_what_goes_on_behind_the_scenes() -> None:
    session = session_of("one", middleware=[Diary()])
    plain: list[Any] = []
    curious: list[Any] = []
    told = threading.Event()

    def listen(event: Any) -> None:
        curious.append(event)
        if isinstance(event, Debug):
            told.set()

    session.subscribe(plain.append)
    session.subscribe(listen, debug=True)
    session.notify_middleware("Diary", "rain")
    assert told.wait(PATIENCE)
    assert session.state.metadata["diary"] == "rain"
    session.send("go").result()
    assert of(Debug, plain) == []
    assert {event.kind for event in of(Debug, curious)} >= {"state_updated"}
    assert [e for e in curious if not isinstance(e, Debug)] == plain  # the same, with no gap
    assert [e.seq for e in plain] == list(range(plain[0].seq, plain[-1].seq + 1))


@pytest.mark.spec("S1.11.13")
def test_a_message_to_nobody_or_to_one_who_fails_is_logged_and_hurts_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = session_of("one", middleware=[Diary()])
    session.notify_middleware("nobody", "hello")
    session.notify_middleware("Diary", "broken")
    assert session.send("go").result().text == "one"
    assert "'nobody', which is not there" in caplog.text
    assert "the pen is empty" in caplog.text


@pytest.mark.spec("S1.11.3")
def test_a_failing_model_is_told_behind_the_scenes_with_its_kind() -> None:
    session, heard = session_of(ConnectionError("cable")), list[Any]()
    session.subscribe(heard.append, debug=True)
    with pytest.raises(sa.ModelError):
        session.send("go").result()
    (told,) = [event for event in of(Debug, heard) if event.kind == "llm_error"]
    assert "cable" in told.data["error"]
    assert told.data["error_type"]


@pytest.mark.spec("S1.11.3")
def test_nobody_else_hears_it_be_it_by_a_stream_a_run_or_later() -> None:
    session, plain = session_of(ConnectionError("cable"), "ok"), list[Any]()
    curious: list[Any] = []
    stream = session.events()
    session.subscribe(plain.append)
    leave = session.subscribe(curious.append, debug=True)
    run = session.send("go")
    with pytest.raises(sa.ModelError):
        run.result()
    assert {event.kind for event in of(Debug, curious)} == {"llm_error", "state_updated"}
    leave()
    heard = len(curious)
    session.send("again").result()
    late: list[Any] = []
    session.subscribe(late.append, since=0)
    session.close()
    assert len(curious) == heard
    for events in (plain, late, all_of(stream), all_of(run)):
        assert events
        assert of(Debug, events) == []


class Alarm(Event, frozen=True, tag="alarm"):
    """An event of somebody's own."""

    level: int


def test_anybody_may_publish_an_event_and_all_hear_it_as_the_next_one() -> None:
    session, heard = session_of("one"), list[Any]()
    session.subscribe(heard.append)
    session.send("go").result()
    session.publish(Alarm(level=3, session_id="forged", seq=999))
    assert (heard[-1].type, heard[-1].level) == ("alarm", 3)
    assert (heard[-1].seq, heard[-1].session_id) == (heard[-2].seq + 1, session.id)
    session.close()
    with pytest.raises(sa.NotRunning):
        session.publish(Alarm(level=4))


@pytest.mark.spec("S1.11.7")
def test_a_run_that_crashes_leaves_its_session_and_the_others_alive() -> None:
    class Bomb(sa.Middleware):
        armed = True

        def before_model(self, state: sa.State, ctx: Any) -> None:
            if self.armed:
                raise SystemExit("boom")

    bomb = Bomb()
    session = sa.Session(agent_of("fine", middleware=[bomb]))
    other = session_of("untouched")
    with pytest.raises(sa.AgentError, match="boom"):
        session.send("go").result()
    assert session.status == "error"
    bomb.armed = False
    assert session.send("again").result().text == "fine"
    assert other.send("hi").result().text == "untouched"


@pytest.mark.spec("S1.11.4")
def test_a_session_boots_with_its_hooks_and_then_says_its_status() -> None:
    order: list[str] = []

    class Booting(sa.Middleware):
        def on_session_start(self, state: sa.State, ctx: Any) -> sa.State:
            order.append("hook")
            return state.put_metadata("booted", True)

    class Failing(sa.Middleware):
        def on_session_start(self, state: sa.State, ctx: Any) -> None:
            raise ValueError("no power")

    session = sa.Session(agent_of("one", middleware=[Failing(), Booting()]))
    session.subscribe(lambda event: order.append(event.type))
    assert session.send("go").result().text == "one"
    assert order[:2] == ["hook", "status_changed"]
    assert session.state.metadata["booted"] is True


@pytest.mark.spec("S1.11.6")
def test_an_interrupt_is_told_before_the_status_and_an_error_before_its_reason() -> None:
    @sa.tool
    def hold() -> str:
        """Wait."""
        return "held"

    session = session_of(
        call("hold"), ConnectionError("cable"), tools=[hold], interrupt_on={"hold": True}
    )
    heard: list[Any] = []
    session.subscribe(heard.append)
    session.send("go").result()
    assert types(heard)[-3:] == ["interrupt", "agent_end", "status_changed"]
    assert heard[-1].status == "interrupted"
    run = session.approve()
    assert run is not None
    with pytest.raises(sa.ModelError):
        run.result()
    assert (heard[-1].status, heard[-2].type) == ("error", "agent_end")
    assert "cable" in heard[-1].reason
