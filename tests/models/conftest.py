from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.models.loopback import Provider


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider on the loopback."""
    server = Provider()
    yield server
    server.close()
