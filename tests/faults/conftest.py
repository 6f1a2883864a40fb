from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.serving import serving
from tests.store.conftest import postgres_connection, postgres_server, postgres_url, sqlite_url, url

__all__ = ["postgres_connection", "postgres_server", "postgres_url", "sqlite_url", "url"]


@pytest.fixture
def server() -> Iterator[Any]:
    with serving() as made:
        yield made
