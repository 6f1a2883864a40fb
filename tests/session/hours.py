"""Time that passes when a test says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sagents_nb.runtime.thread import runtime


class Timer:
    """What the loop gives for a call that comes later."""

    def __init__(self, at: float, work: Callable[[], Any]) -> None:
        self.at = at
        self.work = work
        self.waits = True

    def cancel(self) -> None:
        self.waits = False


class Hours:
    """Stands for the clock and for the runtime with its loop, in a module that waits."""

    def __init__(self) -> None:
        self.loop = self
        self.call = runtime.call
        self._began = time.time()
        self._passed = 0.0
        self.slept: list[float] = []
        self._timers: list[Timer] = []

    def monotonic(self) -> float:
        return self._passed

    def time(self) -> float:
        return self._began + self._passed

    def call_later(self, seconds: float, function: Callable[..., Any], *args: Any) -> Timer:
        self._timers.append(Timer(self._passed + seconds, partial(function, *args)))
        return self._timers[-1]

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._pass_by(seconds)

    def pass_by(self, seconds: float) -> None:
        """So much time passes; who waited for it is called before this returns."""
        runtime.call(self._pass_by, seconds)

    def _pass_by(self, seconds: float) -> None:
        end = self._passed + seconds
        while due := [timer for timer in self._timers if timer.waits and timer.at <= end]:
            timer = min(due, key=lambda timer: timer.at)
            timer.waits = False
            self._passed = timer.at
            timer.work()
        self._passed = end
