"""Hubs over a database of each kind, and what they keep."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hub.world import World
from tests.store.conftest import postgres_connection, postgres_server, postgres_url, sqlite_url, url

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
