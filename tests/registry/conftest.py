"""A registry for the tests of tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sagents_nb as sa
from tests.session.gates import Gate


@pytest.fixture
def agents() -> Iterator[sa.AgentRegistry]:
    """A registry with a store of its own, in memory."""
    made = sa.AgentRegistry()
    yield made
    made.store.close()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A tool that holds a run; it is opened at the end, so that nothing hangs."""
    gate = Gate()
    yield gate
    gate.open()
