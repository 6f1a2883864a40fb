"""Who runs the rows: here, several at a time; or, by the same two lines, other machines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Protocol

from ..errors import ConfigurationError
from .rows import Answer, Row

Work = Callable[[Row], Awaitable[Answer]]


class Engine(Protocol):
    """What ``agent.map(…, engine=…)`` takes.

    :meth:`run` takes the next row from ``rows`` whenever it has room for one, and yields the
    answers as they come, in any order. Taking rows late lets a budget end the map in time. It
    is called on the runtime loop and closed when the map is stopped; then it stops its rows.

    ``work(row)`` runs a row in this process. An engine with other machines leaves ``work`` alone,
    sends them the rows, which are plain data, and lets them call
    :func:`~sagents_nb.batch.run_row` with an agent that was made there.
    """

    def run(self, rows: Iterator[Row], work: Work) -> AsyncGenerator[Answer, None]:
        """Yield the answer to each row; an ``async def`` with ``yield``."""
        ...


class LocalEngine:
    """At most ``concurrency`` rows at a time, in this process."""

    def __init__(self, concurrency: int) -> None:
        if not isinstance(concurrency, int) or concurrency < 1:
            raise ConfigurationError(
                f"concurrency must be a whole number from 1, not {concurrency!r}."
            )
        self.concurrency = concurrency

    async def run(self, rows: Iterator[Row], work: Work) -> AsyncGenerator[Answer, None]:
        """Yield the answers as they come."""
        answers: asyncio.Queue[Answer | asyncio.Task[None]] = asyncio.Queue()

        workers: list[asyncio.Task[None]] = []

        async def worker() -> None:
            for row in rows:
                if len(workers) < self.concurrency:  # no more of them than there are rows
                    start()
                answers.put_nowait(await work(row))

        def start() -> None:
            workers.append(asyncio.ensure_future(worker()))
            workers[-1].add_done_callback(answers.put_nowait)

        start()
        ended = 0
        try:
            while ended < len(workers):
                answer = await answers.get()
                if isinstance(answer, asyncio.Task):
                    answer.result()  # raises what ends the whole map
                    ended += 1
                else:
                    yield answer
        finally:
            for task in workers:
                task.cancel()
            await asyncio.wait(workers)
            for task in workers:
                _ = task.cancelled() or task.exception()  # has been heard, or came too late
