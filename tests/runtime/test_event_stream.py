from __future__ import annotations

import asyncio
import threading

import pytest

from sagents_nb.events import AgentStart, Event
from sagents_nb.runtime.event_stream import EventStream
from tests.talking import all_of, run


def event(number: int) -> Event:
    return AgentStart(seq=number)


def test_what_was_there_comes_first_and_the_end_ends_it() -> None:
    stream = EventStream([event(1)])
    stream.push(event(2))
    stream.close()
    assert [e.seq for e in all_of(stream)] == [1, 2]
    assert all_of(stream) == []


def test_a_reader_is_woken_by_another_thread() -> None:
    stream = EventStream()
    reading = threading.Event()

    async def read() -> list[int]:
        reading.set()
        return [e.seq async for e in stream]

    def write() -> None:
        reading.wait()
        stream.push(event(1))
        stream.close()

    threading.Thread(target=write).start()
    assert run(read()) == [1]


@pytest.mark.usefixtures("eager_switching")
def test_no_wake_up_is_lost_however_the_threads_switch() -> None:
    """Each event is pushed as the reader has just taken the one before: the worst moment."""
    stream = EventStream()
    taken = threading.Semaphore(0)

    def write() -> None:
        for number in range(3000):
            stream.push(event(number))
            taken.acquire()
        stream.close()

    async def read() -> list[int]:
        numbers = []
        async for e in stream:
            numbers.append(e.seq)
            taken.release()
        return numbers

    threading.Thread(target=write).start()
    assert run(read()) == list(range(3000))


def test_writing_to_a_reader_whose_loop_is_closed_is_harmless() -> None:
    stream = EventStream()

    async def begin_to_read() -> None:
        task = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        task.cancel()

    run(begin_to_read())
    stream.push(event(1))
    stream.close()
    assert [e.seq for e in all_of(stream)] == [1]


def test_a_reader_may_give_up_and_another_go_on() -> None:
    stream = EventStream()

    async def give_up_and_go_on() -> int:
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        stream.push(event(7))
        return (await anext(stream)).seq

    assert run(give_up_and_go_on()) == 7
