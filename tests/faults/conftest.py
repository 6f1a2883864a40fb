from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.serving import serving


@pytest.fixture
def server() -> Iterator[Any]:
    with serving() as made:
        yield made
