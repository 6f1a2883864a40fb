"""How long a client may take to read what it is sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sagents_nb.hub.web.patience import Patience
from tests.talking import run

MESSAGE = {"type": "websocket.send", "text": "hi"}


async def never(message: Any) -> None:
    """Send to somebody who reads nothing."""
    await asyncio.Event().wait()


def test_who_reads_nothing_is_waited_for_no_longer_than_that() -> None:
    async def send() -> None:
        sends = Patience(0.02).sends(never)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await sends(MESSAGE)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run(send())


def test_who_reads_is_sent_all_and_nobody_looks_any_more() -> None:
    async def send() -> list[Any]:
        sent = []

        async def some(message: Any) -> None:
            await asyncio.sleep(0)
            sent.append(message)

        sends = Patience(0.02).sends(some)
        for number in range(3):
            await sends({"number": number})
        await asyncio.sleep(0.05)
        return sent

    assert run(send()) == [{"number": 0}, {"number": 1}, {"number": 2}]


def test_what_somebody_else_cancels_is_cancelled() -> None:
    async def send() -> None:
        sending = asyncio.ensure_future(Patience(60).sends(never)(MESSAGE))
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    run(send())


def test_each_has_a_time_of_its_own() -> None:
    async def send() -> None:
        patience = Patience(0.2)
        late = asyncio.ensure_future(patience.sends(never)(MESSAGE))
        while not late.done():
            await patience.sends(asyncio.sleep)(0)  # type: ignore[arg-type]
        with pytest.raises(TimeoutError):
            await late

    run(send())
