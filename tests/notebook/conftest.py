"""A shell in this process, and a kernel in another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import sagents_nb as sa
from tests.notebook.kernel import Kernel


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """IPython with the extension loaded; it leaves no sessions behind."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(config=config)
    made.history_manager.outputs.clear()  # IPython's, of all shells of a process
    made.user_ns["sa"] = sa
    before = sa.sessions.list()
    sa.load_ipython_extension(made)
    yield made
    sa.unload_ipython_extension(made)
    InteractiveShell.clear_instance()
    for id in sa.sessions.list():
        if id not in before:
            with contextlib.suppress(sa.SagentsError):
                sa.sessions.stop(id)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for all tests of a module; each starts with a conversation of its own."""
    made = Kernel(tmp_path_factory.mktemp("kernel"))
    yield made
    made.stop()


def value(result: Any) -> Any:
    """The value of a cell; raises what it raised."""
    result.raise_error()
    return result.result
