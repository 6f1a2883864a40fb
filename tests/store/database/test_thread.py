"""One thread, one transaction for what waits, and what a process leaves behind at its end."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections import Counter
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from sagents_nb.errors import Busy, ConfigurationError, StoreError
from sagents_nb.runtime.thread import runtime
from sagents_nb.sql import driver_of
from sagents_nb.store.database.thread import MOST_AT_ONCE, Database
from sagents_nb.store.journal import Journal
from tests.store.journals import begin, count, database_of, kept, note
from tests.talking import PATIENCE, in_threads

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
ROOT = Path(__file__).parents[2]


def hold(database: Database) -> tuple[threading.Event, Future[Any]]:
    """Keep the store's thread in a transaction until the event is set."""
    reached, go_on = threading.Event(), threading.Event()

    def work(connection: sql.Connection) -> bool:
        reached.set()
        return go_on.wait(PATIENCE)

    future = database.submit(work)
    assert reached.wait(PATIENCE)
    return go_on, future


def commits(database: Database) -> list[Any]:
    """A list that grows by each transaction from now on."""
    seen: list[Any] = []
    sql.event.listen(database.connection.engine, "commit", seen.append)
    return seen


def test_everything_runs_on_one_daemon_thread_that_starts_with_the_first_work(url: str) -> None:
    earlier = set(threading.enumerate())
    database = Database(url)
    name = "sagents-store"
    assert not [t for t in threading.enumerate() if t.name == name and t not in earlier]
    seen = in_threads(8, lambda index: database.run(lambda _: threading.current_thread()))
    assert {thread.name for thread in seen} == {name}
    assert len(set(seen)) == 1
    assert seen[0].daemon
    assert [t for t in threading.enumerate() if t.name == name and t not in earlier] == seen[:1]
    database.close()
    assert not seen[0].is_alive()


def test_what_waits_is_committed_together(url: str) -> None:
    with database_of(url) as database:
        go_on, held = hold(database)
        seen = commits(database)
        works = [database.submit(lambda _, n=n: n) for n in range(MOST_AT_ONCE + 10)]
        go_on.set()
        assert [future.result(PATIENCE) for future in works] == list(range(MOST_AT_ONCE + 10))
        assert held.result(PATIENCE)
        assert len(seen) == 3  # the one that was held, one that is full, and the rest


def test_a_hundred_that_append_at_once_cost_a_few_commits(url: str) -> None:
    names = [f"c{n}" for n in range(100)]
    with database_of(url, *names) as database:
        journals = [Journal.open(database, name)[0] for name in names]
        go_on, _ = hold(database)
        seen = commits(database)
        futures = [journal.append([note(0)]) for journal in journals]
        go_on.set()
        assert [future.result(PATIENCE) for future in futures] == [1] * 100
        assert len(seen) == 2


def test_one_that_fails_is_undone_alone(url: str) -> None:
    with database_of(url, "c", "d") as database:
        table = database.tables.leases
        go_on, _ = hold(database)

        def take(id: str, fails: bool) -> Any:
            def work(connection: sql.Connection) -> None:
                connection.execute(table.delete().where(table.c.conversation_id == id))
                connection.execute(
                    database.tables.agent_states.insert(),
                    {"conversation_id": id, "data": {}, "updated_at": datetime.now(UTC)},
                )
                if fails:
                    raise ZeroDivisionError

            return work

        good, bad = database.submit(take("c", False)), database.submit(take("d", True))
        last = database.submit(lambda connection: count(connection, database.tables.agent_states))
        go_on.set()
        good.result(PATIENCE)
        with pytest.raises(ZeroDivisionError):
            bad.result(PATIENCE)
        assert last.result(PATIENCE) == 1


def test_one_that_failed_is_not_asked_again_where_others_are_done_anew(sqlite_url: str) -> None:
    with database_of(sqlite_url, "c", "d") as database:
        leases = database.tables.leases
        asked: list[str] = []
        go_on, _ = hold(database)

        def forget(id: str, fails: bool) -> Any:
            def work(connection: sql.Connection) -> None:
                asked.append(id)
                connection.execute(leases.delete().where(leases.c.conversation_id == id))
                if fails:
                    raise ZeroDivisionError(id)

            return work

        def refuse(connection: sql.Connection) -> None:
            asked.append("nothing")
            raise ZeroDivisionError("nothing")

        refused, gone = database.submit(refuse), database.submit(forget("c", False))
        failed = database.submit(forget("d", True))
        last = database.submit(lambda connection: count(connection, leases))
        go_on.set()
        for future, what in ((refused, "nothing"), (failed, "d")):
            with pytest.raises(ZeroDivisionError, match=what):
                future.result(PATIENCE)
        gone.result(PATIENCE)
        assert last.result(PATIENCE) == 1
        assert Counter(asked) == {"nothing": 1, "c": 2, "d": 1}


def test_a_transaction_in_which_nothing_fails_has_no_savepoints(sqlite_url: str) -> None:
    with database_of(sqlite_url, "c") as database:
        said: list[str] = []
        database.run(lambda connection: driver_of(connection).set_trace_callback(said.append))
        said.clear()
        database.run(lambda connection: count(connection, database.tables.leases))
        database.run(lambda connection: driver_of(connection).set_trace_callback(None))
        assert [text.split()[0] for text in said[:3]] == ["BEGIN", "SELECT", "COMMIT"]


def test_a_future_is_done_when_others_can_see_the_work(url: str) -> None:
    with database_of(url, "first") as writer, database_of(url, "first") as reader:
        for n in range(20):
            begin(writer, f"c{n}")
            table = reader.tables.conversations
            assert reader.run(lambda connection, t=table: count(connection, t)) == n + 2


def test_waiting_for_it_where_that_would_be_for_ever_is_refused(url: str) -> None:
    with database_of(url) as database:
        with pytest.raises(Busy, match="store"):
            runtime.call(lambda: database.run(lambda _: None))
        with pytest.raises(Busy, match="connection it was given"):
            database.run(lambda _: database.run(lambda _: None))
        with pytest.raises(Busy, match="another thread"):
            runtime.call(database.close)
        assert runtime.call(lambda: database.submit(lambda _: 1)).result(PATIENCE) == 1


def test_work_that_was_handed_over_cannot_be_cancelled(url: str) -> None:
    with database_of(url) as database:
        go_on, _ = hold(database)
        future = database.submit(lambda _: "done")
        assert not future.cancel()
        go_on.set()
        assert future.result(PATIENCE) == "done"


def test_closing_commits_what_is_queued_and_gives_up_the_leases(url: str) -> None:
    with database_of(url) as other:
        database = Database(url)
        journal, _, _ = Journal.open(database, "c")
        futures = [journal.append([note(n)]) for n in range(50)]
        database.close()
        database.close()
        assert [future.result(0) for future in futures] == list(range(1, 51))
        with pytest.raises(StoreError, match="is closed; open it again"):
            database.run(lambda _: None)
        with pytest.raises(StoreError, match="is closed"):
            journal.append([note(0)]).result(PATIENCE)
        assert Journal.open(other, "c")[1][-1].data == {"says": 49}


def test_work_and_what_it_holds_are_let_go(url: str) -> None:
    class Big:
        pass

    with database_of(url) as database:
        big = Big()
        seen = weakref.ref(big)
        database.run(lambda _, big=big: big)
        del big
        database.run(lambda _: None)
        gc.collect()
        assert seen() is None


def test_a_store_in_memory_outlives_a_transaction_that_failed() -> None:
    with database_of("sqlite://") as database:
        journal, _, _ = Journal.open(database, "c")
        journal.append([note(1)]).result(PATIENCE)

        def lose(connection: sql.Connection) -> None:
            connection.exec_driver_sql("ROLLBACK")

        with pytest.raises(StoreError):
            database.run(lose)
        journal.append([note(2)]).result(PATIENCE)
        assert kept(database) == [1, 2]


def test_a_url_that_cannot_work_is_refused_without_showing_it() -> None:
    odd = "postgresql://u:hunter2@x:w/d@h/d"
    for url in (
        "://u:hunter2@h/d",
        odd,
        "mysql://u:hunter2@h/d",
        "sqlite:///file:x?hunter2",
        "hunter2",
    ):
        with pytest.raises(ConfigurationError) as caught:
            Database(url)
        assert "hunter2" not in str(caught.value)
        assert caught.value.__cause__ is None


QUEUES = """
import sys
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store.journals import note
journal, _, _ = Journal.open(Database(sys.argv[1]), "c")
for n in range(300):
    journal.append([note(n)])
"""


def test_what_is_queued_when_the_process_ends_is_committed(url: str) -> None:
    with database_of(url) as database:
        subprocess.run([sys.executable, "-c", QUEUES, url], cwd=ROOT, check=True)
        assert kept(database) == list(range(300))


# In processes of their own: what earlier tests have left to the collector may be SQLite's, and to
# close that in a child waits for ever if another thread was just inside SQLite.
# https://sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
def in_a_new_process(script: str, url: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", script, url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


FORKS_OFTEN = """
import gc, os, sys
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store.journals import kept, note
database = Database(sys.argv[1])
journal, _, _ = Journal.open(database, "c")
for n in range(10):
    journal.append([note(2 * n)])  # the fork falls into a transaction, or beside one
    if (pid := os.fork()) == 0:
        failed = journal.append([note("child")]).exception(60)
        gc.collect()
        os._exit(0 if "forked" in str(failed) else 1)
    journal.append([note(2 * n + 1)])
    assert os.waitpid(pid, 0)[1] == 0
journal.append([]).result()
print(kept(database) == list(range(20)))
"""


@forks
def test_a_forked_child_never_writes_and_its_parent_goes_on(url: str) -> None:
    with database_of(url):
        pass
    assert in_a_new_process(FORKS_OFTEN, url) == "True"


FORKS = """
import os, sys, threading
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store.journals import kept, note
database = Database(sys.argv[1])
journal, _, _ = Journal.open(database, "c")
reached, go_on = threading.Event(), threading.Event()
def hold(connection):
    reached.set()
    go_on.wait()
future = journal.append([note("held")], hold)
reached.wait()
if os.fork() == 0:
    sys.exit(0)  # an ordinary end, with all that Python does then
os.wait()
go_on.set()
future.result()
journal.append([note("after")]).result()
print(kept(database))
"""


@forks
def test_a_child_that_ends_undoes_no_transaction_of_its_parent(url: str) -> None:
    with database_of(url):
        pass
    assert in_a_new_process(FORKS, url) == "['held', 'after']"


FORKS_AND_OPENS = """
import os, sys
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store.journals import kept, note
database = Database(sys.argv[1])
journal, _, _ = Journal.open(database, "c")
if (pid := os.fork()) == 0:
    own = Database(sys.argv[1])
    Journal.open(own, "d")[0].append([note("child")]).result(60)
    own.close()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
journal.append([note("parent")]).result(60)
print(kept(database), kept(database, "d"))
"""


@forks
def test_a_forked_child_may_open_the_store_anew(sqlite_url: str) -> None:
    with database_of(sqlite_url, "c", "d"):
        pass
    assert in_a_new_process(FORKS_AND_OPENS, sqlite_url) == "['parent'] ['child']"


def test_two_databases_at_once_on_one_file_take_turns(url: str) -> None:
    with database_of(url, "c0", "c1") as one, database_of(url) as two:
        journals = [Journal.open(one, "c0")[0], Journal.open(two, "c1")[0]]
        in_threads(
            2,
            lambda index: wait([journals[index].append([note(n)]) for n in range(200)], PATIENCE),
        )
        for journal in journals:
            journal.append([]).result(PATIENCE)
        assert kept(one, "c0") == kept(two, "c1") == list(range(200))


def test_a_thread_that_cannot_be_started_is_started_with_the_next_work(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with contextlib.closing(Database(url)) as database:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", none_left)
            with pytest.raises(StoreError, match=r"cannot work now \(can't start new thread\)"):
                database.run(lambda _: None)
        assert database.run(lambda _: "done") == "done"
