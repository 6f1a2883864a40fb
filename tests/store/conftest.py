"""A database of each kind, new for every test."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.store.database.thread import Database
from sagents_nb.store.store import ScopedStore
from tests.store import postgres

Plan = list[str]
Selected = Callable[[sa.ConversationStore], contextlib.AbstractContextManager[dict[str, Plan]]]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL that runs for the whole of the tests."""
    if postgres.find_programs() is None:
        problem = "PostgreSQL is not installed; run python tests/store/postgres.py as root"
        if os.environ.get("CI"):
            pytest.fail(problem)
        pytest.skip(problem)
    with postgres.running() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_connection(postgres_server: str) -> Iterator[sql.Connection]:
    """A connection that makes databases."""
    engine = sql.create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@contextlib.contextmanager
def new_database(server: str, connection: sql.Connection) -> Iterator[str]:
    """The URL of an empty database of that PostgreSQL."""
    name = f"test_{next(_numbers)}"
    connection.exec_driver_sql(f"CREATE DATABASE {name}")
    url = sql.make_url(server).set(database=name)
    yield url.render_as_string(hide_password=False)
    connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgres_url(postgres_server: str, postgres_connection: sql.Connection) -> Iterator[str]:
    """The URL of an empty database of PostgreSQL."""
    with new_database(postgres_server, postgres_connection) as url:
        yield url


@pytest.fixture
def usual(postgres_url: str, postgres_connection: sql.Connection) -> Callable[[str, str], None]:
    """Makes a setting the usual one of that database, for the connections from then on."""

    def set_it(setting: str, value: str) -> None:
        name = sql.make_url(postgres_url).database
        statement = f"ALTER DATABASE {name} SET {setting} = '{value}'"
        postgres_connection.exec_driver_sql(statement)
        # A pool may have kept some, and takes a moment to see that they are gone.
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        postgres_connection.exec_driver_sql(ended, (name,))
        engine = sql.create_engine(postgres_url, poolclass=sql.NullPool)
        found = None
        while found != value:
            with contextlib.suppress(sql.exc.DBAPIError), engine.connect() as connection:
                found = connection.exec_driver_sql(f"SHOW {setting}").scalar()

    return set_it


@contextlib.contextmanager
def new_file() -> Iterator[str]:
    """In memory where the system has such files: a disk would take most of the time."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="sagents-", dir=place) as directory:
        yield f"sqlite:///{directory}/store.db"


@pytest.fixture
def sqlite_url() -> Iterator[str]:
    """The URL of an SQLite file that is not there yet."""
    with new_file() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, once of each kind."""
    name = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    return str(request.getfixturevalue(name))


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def open_store(request: pytest.FixtureRequest) -> Iterator[sa.ConversationStore]:
    """A store of each kind that stays open, since making tables is slow."""
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            url = stack.enter_context(new_file())
        else:
            url = request.getfixturevalue("postgres_server")
        store = sa.ConversationStore(url)
        yield store
        store.close()


@pytest.fixture
def store(open_store: sa.ConversationStore) -> sa.ConversationStore:
    """An empty store, once in each kind of database."""
    tables = open_store.database.tables
    for table in (tables.conversations, tables.tool_feedback):
        open_store.database.run(lambda connection, t=table: connection.execute(t.delete()))
    return open_store


@pytest.fixture
def mine(store: sa.ConversationStore) -> ScopedStore:
    """Alice's conversations."""
    return store.scoped(sa.Scope(user="alice"))


@pytest.fixture
def theirs(store: sa.ConversationStore) -> ScopedStore:
    """Bob's, in the same store."""
    return store.scoped(sa.Scope(user="bob"))


@pytest.fixture
def selected() -> Selected:
    """Hears what a store in SQLite selects: each text, with the steps of its plan."""

    @contextlib.contextmanager
    def hear(store: sa.ConversationStore) -> Iterator[dict[str, Plan]]:
        texts: list[str] = []
        plans: dict[str, Plan] = {}
        driver: Any = store.database.run(lambda c: c.connection.driver_connection)
        driver.set_trace_callback(texts.append)
        yield plans
        driver.set_trace_callback(None)
        for text in texts:
            if text.startswith("SELECT"):
                steps = driver.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
                plans[text] = [step[3] for step in steps]

    return hear


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is submitted to a database from now on."""
    found: list[Any] = []
    submit = Database.submit

    def counted(database: Database, work: Any, *more: Any, **options: Any) -> Any:
        found.append(work)
        return submit(database, work, *more, **options)

    monkeypatch.setattr(Database, "submit", counted)
    return found
