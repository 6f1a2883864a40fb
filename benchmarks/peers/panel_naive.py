"""A widget as one writes it in ten minutes: a text that is synced whole, each time it has grown."""

from __future__ import annotations

import asyncio
import threading

import anywidget
import traitlets
from _answer import pieces


class Naive(anywidget.AnyWidget):
    """Shows its text."""

    text = traitlets.Unicode().tag(sync=True)

    def answer(self, size: int) -> None:
        """Say it, from a thread, so that the cell ends."""
        threading.Thread(target=lambda: asyncio.run(self._answer(size))).start()

    async def _answer(self, size: int) -> None:
        text = ""
        async for piece in pieces(size):
            text += piece
            self.text = text
