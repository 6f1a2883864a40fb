"""What happens when PostgreSQL is slow, gone, or lost in the middle of a commit."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa
import sagents_nb.sql
from sagents_nb.errors import StoreError
from sagents_nb.store.database import connection
from sagents_nb.store.database.thread import Database
from sagents_nb.store.journal import Journal
from tests.store.journals import database_of, kept, note
from tests.talking import PATIENCE, agent_of


@contextlib.contextmanager
def locked(database: Database, id: str) -> Iterator[None]:
    """Somebody else has the lease of that conversation locked."""
    engine = sql.create_engine(database.url)
    table = database.tables.leases
    with engine.connect() as other:
        other.execute(table.update().where(table.c.conversation_id == id).values(pid=0))
        yield
    engine.dispose()


def test_a_row_that_stays_locked_is_told_and_recovered_from(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", 0.1)
    with database_of(postgres_url, "c", "d") as database:
        c, d = Journal.open(database, "c")[0], Journal.open(database, "d")[0]
        with locked(database, "c"):
            with pytest.raises(StoreError, match="another program has had it locked"):
                c.append([note("lost")]).result(PATIENCE)
            d.append([note("free")]).result(PATIENCE)
        c.append([note("then")]).result(PATIENCE)
        assert (kept(database), kept(database, "d")) == (["then"], ["free"])


def test_the_newest_call_of_an_id_waits_for_no_older_one(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", 0.1)
    store = sa.ConversationStore(postgres_url)
    store.create_conversation(id="c")
    older, newest = [
        store.append_display_message(
            "c",
            {
                "message_type": "assistant",
                "content_type": "tool_call",
                "content": {"call_id": "c1", "name": "ls", "arguments": {}},
                "status": "pending",
            },
        )
        for _ in range(2)
    ]
    engine = sql.create_engine(postgres_url)
    table = store.database.tables.display_messages
    with engine.connect() as other:
        other.execute(table.update().where(table.c.id == older.id).values(status="executing"))
        assert store.complete_tool_call("c1").id == newest.id
    engine.dispose()
    store.close()


def end(url: str, connection: int) -> None:
    """Have the server end a connection."""
    engine = sql.create_engine(url)
    # Behind a pool it may be the one that asks for it.
    with contextlib.suppress(sql.exc.OperationalError), engine.connect() as own:
        own.execute(sql.select(sql.func.pg_terminate_backend(connection))).one()
    engine.dispose()


def number_of(connection: sql.Connection) -> int:
    """By which the server knows it."""
    found: int = connection.execute(sql.select(sql.func.pg_backend_pid())).scalar_one()
    return found


def test_a_connection_that_was_lost_between_two_transactions_goes_unnoticed(
    postgres_url: str,
) -> None:
    with database_of(postgres_url) as database:
        journal, _, _ = Journal.open(database, "c")
        for n in range(3):
            end(postgres_url, database.run(number_of))
            journal.append([note(n)]).result(PATIENCE)
        assert kept(database) == [0, 1, 2]


def test_a_transaction_whose_connection_was_lost_is_done_again(postgres_url: str) -> None:
    with database_of(postgres_url) as database:
        tries = []

        def work(connection: sql.Connection) -> Any:
            tries.append(1)
            if len(tries) == 1:
                end(postgres_url, number_of(connection))
            return connection.scalar(sql.text("SELECT 7"))

        assert database.run(work) == 7
        assert len(tries) == 2


def test_entries_whose_connection_was_lost_are_written_with_those_behind_them(
    postgres_url: str,
) -> None:
    with database_of(postgres_url) as database:
        journal, _, _ = Journal.open(database, "c")
        lost = []

        def lose(connection: sql.Connection) -> None:
            if not lost:
                lost.append(1)
                end(postgres_url, number_of(connection))
                number_of(connection)

        database.submit(lambda _: time.sleep(0.05))  # so that both are in one transaction
        first, second = journal.append([note(1)], lose), journal.append([note(2)])
        assert (first.result(PATIENCE), second.result(PATIENCE)) == (1, 2) or lost
        assert kept(database) == [1, 2]


def test_a_server_that_is_gone_is_told_without_the_password(postgres_url: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        url = sql.make_url(postgres_url).set(port=port, password="hunter2")
        for address in (url, url.set(password=None).update_query_dict({"password": "hunter2"})):
            database = Database(address)
            with pytest.raises(StoreError, match="see that the server runs") as caught:
                database.run(lambda _: None)
            error: BaseException | None = caught.value
            while error is not None:
                assert "hunter2" not in f"{error} {error!r}"
                error = error.__cause__ or error.__context__
            assert "hunter2" not in repr(database)
            database.close()


def test_transactions_that_are_in_each_others_way_are_done_again(postgres_url: str) -> None:
    with database_of(postgres_url, "a", "b") as one, database_of(postgres_url) as two:
        both = threading.Barrier(2)

        def work(first: str, second: str) -> Callable[[sql.Connection], int]:
            met: list[int] = []

            def change(connection: sql.Connection) -> int:
                table = one.tables.conversations
                for id in (first, second):
                    query = table.update().where(table.c.id == id).values(title=first)
                    connection.execute(query)
                    if not met:
                        met.append(both.wait(PATIENCE))
                return len(met)

            return change

        futures = [one.submit(work("a", "b")), two.submit(work("b", "a"))]
        assert [future.result(PATIENCE) for future in futures] == [1, 1]


class Proxy:
    """Stands before a server and cuts the connection at a COMMIT: before it, or after it.

    Or the server gets the COMMIT ``late``: once somebody was told that it is in progress.
    """

    def __init__(self, port: int) -> None:
        self.cut = ""
        self.cuts = 0
        self.refuses = False
        self.refused = 0
        self.at_cut: Callable[[], None] | None = None
        self._told = threading.Event()
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses:
                self.refused += 1
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._server))
            except OSError:  # it may be starting again
                client.close()
                continue
            silent = threading.Event()
            threading.Thread(target=self._up, args=(client, server, silent), daemon=True).start()
            threading.Thread(target=self._down, args=(server, client, silent), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, silent: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                cut = self.cut if b"COMMIT\0" in data else ""
                if cut:
                    silent.set()
                    self.refuses |= cut == "away" or self.at_cut is not None
                    self.cut, self.cuts = "", self.cuts + 1  # last: tests wait for it
                if cut and self.at_cut is not None:
                    self.at_cut()
                if cut == "before":
                    break
                if cut == "late":
                    self._told.clear()
                    client.shutdown(socket.SHUT_RDWR)
                    assert self._told.wait(PATIENCE)
                server.sendall(data)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        client.close()

    def _down(self, server: socket.socket, client: socket.socket, silent: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if silent.is_set():  # the answer to the commit
                    break
                client.sendall(data)
                if b"in progress" in data:
                    self._told.set()
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[tuple[Proxy, str]]:
    url = sql.make_url(postgres_url)
    made = Proxy(url.port or 5432)
    yield made, url.set(port=made.port).render_as_string(hide_password=False)
    made.close()


@pytest.mark.parametrize("cut", ["before", "after", "late"])
def test_what_is_committed_when_the_connection_is_lost_is_written_once(
    proxy: tuple[Proxy, str], cut: str
) -> None:
    between, url = proxy
    with database_of(url) as database:
        journal, _, _ = Journal.open(database, "c")
        expected = []
        for n in range(5):
            between.cut = cut
            future = journal.append([note(n)])
            if future.exception(PATIENCE) is None:
                expected.append(n)
        assert between.cuts == 5
        assert kept(database) == expected == list(range(5))


def test_a_server_that_starts_again_is_asked_what_became_of_a_commit(
    proxy: tuple[Proxy, str],
) -> None:
    between, url = proxy
    with database_of(url) as database:
        journal, _, _ = Journal.open(database, "c")
        between.cut = "away"
        future = journal.append([note("once")])
        while between.refused < 3:
            time.sleep(0.01)
        assert not future.done()
        between.refuses = False
        assert future.result(PATIENCE) == 1
        assert kept(database) == ["once"]


def test_what_nobody_knows_of_is_not_there_twice_when_it_is_written_again(
    proxy: tuple[Proxy, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "DOUBT_SECONDS", 0.1)
    between, url = proxy
    with database_of(url) as database:
        journal, _, _ = Journal.open(database, "c")
        journal.append([note("before")]).result(PATIENCE)
        between.cut = "away"
        with pytest.raises(StoreError, match="nobody said whether it was saved"):
            journal.append([note("once"), note("too")]).result(PATIENCE)
        between.refuses = False
        rows = sql.select(database.tables.journal.c.seq)
        assert database.run(lambda c: c.scalars(rows).all()) == [1, 2, 3]  # it was committed
        journal.append([note("once"), note("too")]).result(PATIENCE)
        journal.append([note("after")]).result(PATIENCE)
        journal.release().result(PATIENCE)
        assert kept(database) == ["before", "once", "too", "after"]


def test_rows_of_a_transcript_of_which_nobody_knows_are_there_once(
    proxy: tuple[Proxy, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "DOUBT_SECONDS", 0.1)
    between, url = proxy
    store = sa.ConversationStore(url)
    session = sa.Session(agent_of("one", "two"), store=store, id="c")
    session.send("first").result()
    between.cut = "away"
    with pytest.raises(StoreError, match="nobody said whether it was saved"):
        session.send("second").result()
    between.refuses = False
    session.send("second").result()
    session.close()
    shown = [row.content["text"] for row in store.load_display_messages("c")]
    assert [text for text in shown if text in ("first", "one", "second", "two")] == [
        "first", "one", "second", "two",
    ]  # fmt: skip
    again = sa.Session.open("c", agent=agent_of(), store=store)
    assert [message.text for message in again.messages] == ["first", "one", "second", "two"]
    assert again.info()["problems"] == []
    again.close()
    store.close()


def appended(store: sa.ConversationStore, ids: list[str], times: int) -> list[BaseException]:
    """What several threads at once are told that append to these conversations."""
    refused: list[BaseException] = []

    def append(seed: int) -> None:
        chosen = random.Random(seed)
        for _ in range(times):
            try:
                store.append_text_message(chosen.choice(ids), "user", "x")
            except StoreError as error:
                refused.append(error)

    threads = [threading.Thread(target=append, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return refused


@pytest.mark.parametrize("level", ["read committed", "serializable"])
def test_nobody_is_refused_where_many_write_to_the_same_conversations(
    postgres_url: str, usual: Callable[[str, str], None], level: str
) -> None:
    usual("default_transaction_isolation", level)
    stores = [sa.ConversationStore(postgres_url) for _ in range(3)]
    ids = [f"s{n}" for n in range(4)]
    for id in ids:
        stores[0].create_conversation(id=id)
    with ThreadPoolExecutor(len(stores)) as pool:
        refused = list(pool.map(lambda store: appended(store, ids, 15), stores))
    assert refused == [[], [], []]
    assert sum(len(stores[0].load_display_messages(id)) for id in ids) == 3 * 8 * 15
    for store in stores:
        store.close()


def test_while_one_conversation_is_locked_all_others_go_on(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", PATIENCE)
    with database_of(postgres_url, "c", "d") as database:
        c, d = Journal.open(database, "c")[0], Journal.open(database, "d")[0]
        with locked(database, "c"):
            waiting = [c.append([note(n)]) for n in range(3)]
            for n in range(20):
                d.append([note(n)]).result(PATIENCE)
            assert not any(future.done() for future in waiting)
        assert [future.result(PATIENCE) for future in waiting] == [1, 2, 3]
        assert kept(database) == [0, 1, 2]


def test_nobody_waits_for_a_process_that_stands_still_in_a_transaction(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", 1.0)
    go_on = threading.Event()
    with database_of(postgres_url, "c") as frozen:
        table, tries = frozen.tables.conversations, []

        def stand_still(connection: sql.Connection) -> None:
            tries.append(1)
            connection.execute(table.update().where(table.c.id == "c").values(title="frozen"))
            if len(tries) == 1:
                assert go_on.wait(PATIENCE)

        future = frozen.submit(stand_still)
        while not tries:
            time.sleep(0.01)
        monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", PATIENCE)
        store = sa.ConversationStore(postgres_url)
        store.update_conversation("c", title="alive")
        go_on.set()
        future.result(PATIENCE)  # it is done again
        assert len(tries) == 2
        assert store.get_conversation("c").title == "frozen"
        store.close()


def test_of_many_that_make_the_same_conversation_one_does(postgres_url: str) -> None:
    stores = [sa.ConversationStore(postgres_url) for _ in range(4)]

    def make(number: int) -> str:
        try:
            return stores[number % 4].create_conversation(id=f"c{number // 4}").id
        except sa.ConfigurationError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(make, range(80)))
    for n in range(20):
        taken = f"The id 'c{n}' is taken; choose another."
        assert sorted(told[4 * n : 4 * n + 4]) == sorted([f"c{n}", taken, taken, taken])
    for store in stores:
        store.close()


@pytest.mark.parametrize(
    ("setting", "statement", "told"),
    [
        ("", "SELECT pg_sleep(0) FROM nowhere", "a part of it is gone .*restore it from a backup"),
        ("", "SET ROLE pg_monitor; SELECT * FROM pg_authid", "lacks a right .*grant it"),
        (
            "statement_timeout=300ms",
            "SELECT pg_sleep(300)",
            "ended what took too long .*raise its statement_timeout",
        ),
        (
            "default_transaction_read_only=on",
            "CREATE TABLE t (x int)",
            "takes no writes .*connect to one that does",
        ),
        ("", "DROP INDEX nowhere", "a part of it is gone .*restore it from a backup"),
        ("", "DO $$BEGIN RAISE SQLSTATE 'XX001'; END$$", "XX001.*see that the server is well"),
        ("", "DO $$BEGIN RAISE SQLSTATE '53100'; END$$", "disk of the server is full; free some"),
        ("", "DO $$BEGIN RAISE SQLSTATE '53300'; END$$", "no more connections .*a pool before it"),
    ],
)
def test_what_a_server_refuses_is_told_with_what_to_do(
    postgres_url: str,
    usual: Callable[[str, str], None],
    setting: str,
    statement: str,
    told: str,
) -> None:
    with database_of(postgres_url):
        pass
    if setting:
        usual(*setting.split("="))
    database = Database(postgres_url)
    with pytest.raises(StoreError, match=told) as caught:
        database.run(lambda connection: connection.exec_driver_sql(statement))
    assert "\n" not in str(caught.value)
    assert str(caught.value).count(". ") == 0
    database.close()


def test_a_process_that_stood_still_is_told_so(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database_of(postgres_url) as database:
        database.run(number_of)
        monkeypatch.setattr(sagents_nb.sql, "LOCK_SECONDS", 0.5)

        def stand_still(connection: sql.Connection) -> None:
            gone = sql.text("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = :pid")
            pid = {"pid": number_of(connection)}
            engine = sql.create_engine(database.url)
            with engine.connect() as other:
                while not other.scalar(gone, pid):
                    other.rollback()
            engine.dispose()
            number_of(connection)

        told = r"stood still in a transaction .*; try again|connection was lost"  # behind a pool
        with pytest.raises(StoreError, match=told):
            database.run(stand_still)


def test_what_a_url_asks_that_nobody_knows_is_told(postgres_url: str) -> None:
    with pytest.raises(StoreError, match='"foo"; correct the URL'):
        sa.ConversationStore(f"{postgres_url}?foo=1")


WRITER = """
import json, random, sys, threading, time
import sagents_nb as sa
from sagents_nb.store.journal import Journal
from tests.store.journals import note
url, number, seconds, share = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
store = sa.ConversationStore(url)
own = [store.create_conversation(id=f"own {number}.{n}").id for n in range(8)]
refused, written = [], [0] * 8
end = time.monotonic() + seconds
def write(n):
    journal, _, _ = Journal.open(store.database, own[n])
    chance = random.Random(number * 8 + n)
    while time.monotonic() < end:
        try:
            if chance.random() < share:
                store.append_text_message(f"shared {chance.randrange(6)}", "user", "x")
            else:
                journal.append([note(written[n])]).result()
            written[n] += 1
        except sa.StoreError as error:
            refused.append(str(error))
    journal.release().result()
threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
store.close()
print(json.dumps([sum(written), refused]))
"""


def crowd(url: str, seconds: float, share: float) -> int:
    """How much twelve processes of eight threads wrote, that share of it where all write."""
    command = [sys.executable, "-c", WRITER, url]
    running = [
        subprocess.Popen(
            [*command, str(number), str(seconds), str(share)], stdout=subprocess.PIPE, text=True
        )
        for number in range(12)
    ]
    found = [json.loads(process.communicate()[0]) for process in running]
    assert [refused for _, refused in found] == [[]] * 12
    return sum(written for written, _ in found)


@pytest.mark.parametrize(
    "seconds", [6, pytest.param(120, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
def test_a_crowd_that_writes_to_the_same_conversations_is_not_refused(
    postgres_url: str, seconds: float
) -> None:
    store = sa.ConversationStore(postgres_url)
    for n in range(6):
        store.create_conversation(id=f"shared {n}")
    written = crowd(postgres_url, seconds, share=0.5)
    rows = [store.load_display_messages(f"shared {n}") for n in range(6)]
    for shown in rows:
        times = [(row.inserted_at, row.sequence) for row in shown]
        assert times == sorted(set(times))
    own = [kept(store.database, f"own {number}.{n}") for number in range(12) for n in range(8)]
    for values in own:
        assert values == sorted(set(values))
    assert sum(map(len, rows)) + sum(map(len, own)) == written
    store.close()
