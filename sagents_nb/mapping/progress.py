"""A progress bar, where tqdm is installed: in a notebook a widget, in a terminal a line."""

from __future__ import annotations

import importlib
from typing import Any

from ..messages import Usage


class Progress:
    """How many rows are done, and what they have cost so far. Used by whoever waits."""

    def __init__(self, total: int, done: int, shown: bool) -> None:
        self._bar: Any = None
        if not shown or not total:
            return
        try:
            tqdm = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            return
        self._bar = tqdm(total=total, initial=done, unit="row")

    def show(self, done: int, failed: int, usage: Usage) -> None:
        """Draw it anew if something changed."""
        if self._bar is None or self._bar.n == done:
            return
        told = f"{usage.total_tokens:,} tokens"
        if usage.cost_usd is not None:
            told = f"${usage.cost_usd:,.4f}"
        if failed:
            told += f", {failed} failed"
        self._bar.set_postfix_str(told, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Leave it as it is."""
        if self._bar is not None:
            self._bar.close()
