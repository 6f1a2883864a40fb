"""A store for the sessions of a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sagents_nb.store import ConversationStore
from tests.session import stored
from tests.session.gates import Gate


@pytest.fixture
def disk() -> Iterator[stored.Disk]:
    """Where stores are, and what crashes leave."""
    with stored.disk() as disk:
        yield disk


@pytest.fixture
def store(disk: stored.Disk) -> ConversationStore:
    """A store in a file of its own."""
    return disk.store()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A tool that holds a run; it is opened at the end, so that nothing hangs."""
    gate = Gate()
    yield gate
    gate.open()
