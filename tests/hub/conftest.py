"""Hubs over a database of each kind, and what they keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.world import World
from tests.store.conftest import (
    new_database,
    postgres_connection,
    postgres_server,
    postgres_url,
    sqlite_url,
    url,
)

KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)]

__all__ = ["postgres_connection", "postgres_server", "postgres_url", "sqlite_url", "url"]


@pytest.fixture
def world(sqlite_url: str) -> Iterator[World]:
    """A hub over a file, with an agency."""
    world = World(sqlite_url)
    yield world
    world.close()


@pytest.fixture
def stored_world(url: str) -> Iterator[World]:
    """The same, once over each kind of database."""
    world = World(url)
    yield world
    world.close()


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a hub keeps all: in a file; `make soak` has it in PostgreSQL, too."""
    if request.param == "sqlite":
        return tmp_path / "hub.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture(scope="module", params=KINDS)
def path_of_module(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path | str]:
    """The same, for all tests of a file."""
    if request.param == "sqlite":
        yield tmp_path_factory.mktemp("hub") / "hub.db"
        return
    server = request.getfixturevalue("postgres_server")
    with new_database(server, request.getfixturevalue("postgres_connection")) as url:
        yield url
