"""The pytest plugin: ``pytest --sagents notebooks/`` tests notebooks by nbval, replayed.

Without ``--sagents`` it adds that option and does nothing, and imports nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from queue import Empty
from typing import Any

import pytest

_START = 60  # seconds a kernel may take to import the guard
_LOOK = 1.0  # seconds between looks whether it lives


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--sagents``."""
    group = parser.getgroup("sagents", "notebooks with agents")
    group.addoption(
        "--sagents",
        action="store_true",
        help="test notebooks by nbval, with their models replayed and without a network",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have nbval test notebooks in this environment's kernel."""
    if not config.getoption("--sagents"):
        return
    option = config.option
    if not hasattr(option, "nbval"):
        raise pytest.UsageError("--sagents needs nbval; pip install 'sagents-nb[testing]'.")
    option.nbval = not option.nbval_lax
    option.nbval_current_env = option.nbval_kernel_name is None
    config.pluginmanager.register(Replay(), "sagents-replay")


class Replay:
    """What is done to each notebook's kernel."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Start the notebook's kernel in the environment of a replay, with the guard."""
        cell: Any = item
        notebook: Any = item.parent
        if not hasattr(notebook, "sanitize_patterns"):
            return (yield)
        from .comparison import comparing

        cell.compare_outputs = comparing(cell.compare_outputs)
        if notebook.kernel is not None:
            return (yield)
        from ..headless import retry_start
        from .environment import cassette_of, changed, replaying

        notebook.setup = partial(retry_start, notebook.setup)
        with changed(replaying(cassette_of(Path(notebook.path)))):
            result = yield  # nbval starts the kernel here
        _sanitize(notebook)
        _guard(notebook.kernel)
        kernel: Any = notebook.kernel
        kernel.get_message = partial(_message, kernel, kernel.get_message)
        return result


def _message(kernel: Any, get: Any, stream: str, timeout: float | None = None) -> Any:
    """What a kernel says next. nbval waits for one that has ended as long as a cell may take."""
    end = time.monotonic() + (math.inf if timeout is None else timeout)
    while True:
        try:
            return get(stream, timeout=max(0.0, min(_LOOK, end - time.monotonic())))
        except Empty:
            if not kernel.is_alive():
                raise RuntimeError("The kernel has ended while this cell ran.") from None
            if time.monotonic() >= end:
                raise


def _sanitize(notebook: Any) -> None:
    from nbval.plugin import get_sanitize_patterns

    text = Path(__file__).with_name("sanitize.cfg").read_text(encoding="utf-8")
    notebook.sanitize_patterns.update(get_sanitize_patterns(text))


def _guard(kernel: Any) -> None:
    from .comparison import TELL
    from .guard import GUARD

    id = kernel.kc.execute(f"{GUARD}\n{TELL}", silent=True, store_history=False, allow_stdin=False)
    while True:
        reply = kernel.kc.get_shell_msg(timeout=_START)
        if reply["parent_header"].get("msg_id") == id:
            break
    if reply["content"]["status"] != "ok":
        reason = reply["content"].get("evalue", "")
        raise RuntimeError(f"The kernel cannot import sagents_nb ({reason}); install it there.")
