"""What all tests share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import sagents_nb.loop.loop
from sagents_nb.runtime.main_thread import main_thread
from tests.pairing import watched
from tests.session.hours import Hours
from tests.specification import ids_of
from tests.talking import PATIENCE

# How long an example takes says nothing.
settings.register_profile(
    "patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")

PRIVATE_PREFIXES = ("ANTHROPIC_", "OPENAI_", "SAGENTS_")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on, or spends money with, the keys of the person who runs it."""
    for name in list(os.environ):
        if name.startswith(PRIVATE_PREFIXES):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def paired_requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """No run of any test asks a model with a call and its result apart.

    A test that means to clears the list.
    """
    problems: list[str] = []
    call_model = watched(sagents_nb.loop.model_call.call_model, problems)
    monkeypatch.setattr("sagents_nb.loop.model_call.call_model", call_model)
    yield problems
    assert not problems, "a provider would have refused a request"


@pytest.fixture(autouse=True)
def patient_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool for the main thread is taken however long it takes to get there."""
    monkeypatch.setattr(main_thread, "grace", PATIENCE)


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Hours:
    """The time in which nobody uses a session, which passes when the test says so."""
    hours = Hours()
    monkeypatch.setattr("sagents_nb.session.presence.time", hours)
    monkeypatch.setattr("sagents_nb.session.presence.runtime", hours)
    return hours


@pytest.fixture
def small_disk() -> Callable[[], AbstractContextManager[None]]:
    """Within it no file can have more than 16 kB, as on a disk that is full."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def small() -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return small


def pytest_configure() -> None:
    """Let Ctrl-C be sent, also where a shell that began this in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Files that take long, since their tests start kernels or other processes: each worker is given
# whole files, and none should be left with one of these when all others have ended.
_LONG = ("notebook/testing", "project", "export", "docs", "notebook", "batch", "store")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fail on unknown spec ids; begin with the files that take long, and end with browsers."""
    for item in items:
        ids_of(item)
    places = [Path(__file__).parent / name for name in _LONG]

    def order(item: pytest.Item) -> tuple[bool, bool, int]:
        # Playwright's event loop stays in the main thread from its first test on, and would be
        # in the way of every later asyncio.run().
        in_browser, packaging = (
            item.get_closest_marker(name) is not None for name in ("browser", "packaging")
        )
        above = item.path.parents
        place = next((n for n, place in enumerate(places) if place in above), len(places))
        return in_browser, packaging, place

    items.sort(key=order)
