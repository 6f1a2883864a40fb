from __future__ import annotations

import itertools
import time

import msgspec
import pytest

import sagents_nb as sa
from sagents_nb import events
from sagents_nb.events import AgentStart, Emitter, Event, MessageEnd

NAMES = (
    "agent_start turn_start message_start message_update message_end tool_execution_start "
    "tool_execution_update tool_execution_end turn_end agent_end status_changed todos_updated "
    "token_usage interrupt decision title_generated display_message_saved "
    "display_message_updated message_queued message_withdrawn agent_shutdown "
    "node_transferring node_transferred file_updated file_deleted file_moved subagent_event"
)


def test_the_vocabulary_has_what_is_documented() -> None:
    kinds = {  # one may have its name of before, too
        kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Event)
    }
    tags = [kind.__struct_config__.tag for kind in kinds if kind is not Event]
    assert set(tags) >= set(NAMES.split())
    assert len(set(tags)) == len(tags)
    assert all(kind.__struct_config__.frozen for kind in kinds)


def test_an_event_knows_its_type_and_says_it_in_json() -> None:
    event = MessageEnd(message=sa.Message.user("hi"))
    assert event.type == "message_end"
    assert msgspec.to_builtins(event)["type"] == "message_end"


def test_an_emitter_stamps_sequence_time_and_ids() -> None:
    heard: list[Event] = []
    emitter = Emitter(heard.append, session_id="s", run_id="r")
    before = time.time()
    emitter.emit(AgentStart)
    emitter.emit(AgentStart)
    assert [(e.seq, e.session_id, e.run_id) for e in heard] == [(1, "s", "r"), (2, "s", "r")]
    assert before <= heard[0].ts <= heard[1].ts <= time.time()


def test_the_runs_of_a_session_share_one_sequence() -> None:
    heard: list[Event] = []
    session = Emitter(heard.append, session_id="s")
    for emitter in (session, session.for_run("r1"), session.for_run("r2"), session):
        emitter.emit(AgentStart)
    assert [(e.seq, e.run_id) for e in heard] == [(1, ""), (2, "r1"), (3, "r2"), (4, "")]


def test_a_sequence_can_go_on_from_a_number() -> None:
    heard: list[Event] = []
    Emitter(heard.append, first=8).emit(AgentStart)
    Emitter(heard.append, counter=itertools.count(3)).emit(AgentStart)
    assert [event.seq for event in heard] == [8, 3]


def test_where_nobody_listens_no_event_is_made() -> None:
    class Never(Event, frozen=True, tag="never"):
        def __post_init__(self) -> None:
            raise AssertionError("it was made")

    Emitter().emit(Never)
    with pytest.raises(AssertionError):
        Emitter(lambda event: None).emit(Never)
