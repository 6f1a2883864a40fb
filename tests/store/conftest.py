"""A database of each kind, new for every test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.store.scoped import ScopedStore
from tests.store import postgres

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


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty schema of PostgreSQL."""
    schema = f"test_{next(_numbers)}"
    engine = sql.create_engine(postgres_server)
    with engine.begin() as connection:
        connection.execute(sql.schema.CreateSchema(schema))
    yield f"{postgres_server}?options=-csearch_path%3D{schema}"
    with engine.begin() as connection:
        connection.execute(sql.schema.DropSchema(schema, cascade=True))
    engine.dispose()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, once of each kind."""
    name = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    return str(request.getfixturevalue(name))


@pytest.fixture
def store(url: str) -> Iterator[sa.ConversationStore]:
    """An empty store, once in each kind of database."""
    made = sa.ConversationStore(url)
    yield made
    made.close()


@pytest.fixture
def mine(store: sa.ConversationStore) -> ScopedStore:
    """Alice's conversations."""
    return store.scoped(sa.Scope(user="alice"))


@pytest.fixture
def theirs(store: sa.ConversationStore) -> ScopedStore:
    """Bob's, in the same store."""
    return store.scoped(sa.Scope(user="bob"))
