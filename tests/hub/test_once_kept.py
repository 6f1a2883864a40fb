"""What clients are told of a thread is kept before they hear of it."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import sagents_nb as sa
from sagents_nb.hub.event_log import ThreadEvent
from sagents_nb.hub.once_kept import OnceKept
from sagents_nb.runtime.thread import runtime
from tests.hub.world import World
from tests.talking import PATIENCE, call, until


def results_in(path: str) -> int:
    """How many ends of calls the journal has, as another process would see it."""
    with closing(sqlite3.connect(path)) as connection:
        rows = "SELECT count(*) FROM sagents_journal WHERE kind = 'call' AND data LIKE '%result%'"
        return int(connection.execute(rows).fetchone()[0])


def test_a_result_is_kept_before_it_is_told_while_other_calls_still_run(world: World) -> None:
    thread = world.thread([call("look", "l1", at="sea"), call("hold", "h1")], "done")
    path, seen = world.url.removeprefix("sqlite:///"), []

    def hear(event: ThreadEvent | None) -> None:
        if event is not None and event.type == "tool.output":
            seen.append(results_in(path))

    runtime.call(thread.log.listen, hear)
    thread.invoke([sa.Message.user("go")])
    world.holds.wait()
    until(lambda: seen == [1])
    assert thread.status == "running"


def test_things_are_told_in_their_order_once_what_was_before_them_is_written(
    world: World,
) -> None:
    thread, told = world.thread(), []
    once, go_on = OnceKept(thread.session), threading.Event()
    database = world.hub.store.database

    def tell_three() -> None:
        once.tell(lambda: told.append("at once"))
        assert told == ["at once"]
        database.submit(lambda connection: go_on.wait(PATIENCE))
        thread.session.actor.send([sa.Message.user("x")], "queue", {})
        once.tell(lambda: once.tell(lambda: told.append("third")))
        once.tell(lambda: told.append("second"))

    runtime.call(tell_three)
    assert told == ["at once"]
    go_on.set()
    until(lambda: told == ["at once", "second", "third"])
