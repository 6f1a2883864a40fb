"""A tool that holds a run where a test wants it."""

from __future__ import annotations

import threading

import sagents_nb as sa
from tests.talking import PATIENCE


class Gate:
    """``tool`` says that it is ``reached`` and waits until the test calls ``open``."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = threading.Event()

        @sa.tool(name="hold")
        def hold() -> str:
            self.reached.set()
            assert self._open.wait(PATIENCE)
            return "held"

        self.tool = hold

    def open(self) -> None:
        self._open.set()

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE)
