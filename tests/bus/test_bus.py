"""One suite for the bus of a process and for a real NATS server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.bus import Bus, BusMessage
from sagents_nb.bus.base import LONGEST
from tests.bus.conftest import NatsServer

Body = Callable[[Bus, Bus], Awaitable[None]]


@pytest.fixture(params=["local", "nats"])
def run(request: pytest.FixtureRequest) -> Callable[[Body], None]:
    """Runs a test with one who publishes and one who hears, over NATS in two connections."""
    url = ""
    if request.param == "nats":
        server: NatsServer = request.getfixturevalue("nats_server")
        url = server.url

    @asynccontextmanager
    async def buses() -> AsyncIterator[tuple[Bus, Bus]]:
        one: Bus = sa.NatsBus(url) if url else sa.LocalBus()
        other: Bus = sa.NatsBus(url) if url else one
        try:
            yield one, other
        finally:
            await one.close()
            await other.close()

    def ran(body: Body) -> None:
        async def main() -> None:
            async with asyncio.timeout(300), buses() as (one, other):
                await body(one, other)

        asyncio.run(main())

    return ran


class Heard:
    """A handler that keeps what it hears, and lets wait for so many."""

    def __init__(self) -> None:
        self.messages: list[BusMessage] = []
        self._changed = asyncio.Event()

    def __call__(self, message: BusMessage) -> None:
        self.messages.append(message)
        self._changed.set()

    async def wait(self, count: int) -> list[str]:
        while len(self.messages) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.texts

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]


Run = Callable[[Body], None]


def test_what_is_published_is_heard_in_order(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        heard = Heard()
        await other.subscribe("tides.bergen", heard)
        for n in range(100):
            await one.publish("tides.bergen", str(n))
        assert await heard.wait(100) == [str(n) for n in range(100)]
        assert {message.subject for message in heard.messages} == {"tides.bergen"}

    run(body)


@pytest.mark.spec("R4.4.1")
def test_a_star_stands_for_one_name_and_the_end_for_one_or_more(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        star, rest, all_of = Heard(), Heard(), Heard()
        await other.subscribe("a.*", star)
        await other.subscribe("a.>", rest)
        await other.subscribe("*.*.c", all_of)
        for subject in ("a", "a.b", "a.b.c", "b.b.c", "ab.c", "end.now"):
            await one.publish(subject, subject)
        last = Heard()
        await other.subscribe("end.>", last)
        await one.publish("end.now", "end")
        await last.wait(1)
        assert await star.wait(1) == ["a.b"]
        assert await rest.wait(2) == ["a.b", "a.b.c"]
        assert await all_of.wait(2) == ["a.b.c", "b.b.c"]

    run(body)


@pytest.mark.spec("R4.4.1")
def test_of_a_queue_one_hears_each_message_and_of_others_all(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        workers, plain, other_queue = [Heard() for _ in range(3)], Heard(), Heard()
        for worker in workers:
            await other.subscribe("jobs.*", worker, queue="workers")
        await one.subscribe("jobs.>", plain)
        await other.subscribe("jobs.new", other_queue, queue="loggers")
        for n in range(60):
            await one.publish("jobs.new", str(n))
        every = {str(n) for n in range(60)}
        assert set(await plain.wait(60)) == every
        assert set(await other_queue.wait(60)) == every
        while sum(len(worker.messages) for worker in workers) < 60:
            await asyncio.sleep(0)
        each = [text for worker in workers for text in worker.texts]
        assert sorted(each) == sorted(every)
        assert all(worker.texts for worker in workers)

    run(body)


@pytest.mark.spec("R4.4.1")
def test_a_request_has_the_first_answer(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        async def answers(message: BusMessage) -> dict[str, Any]:
            await asyncio.sleep(0)
            return {"high": message.json()["hour"] + 6}

        await other.subscribe("tides.*", answers)
        answer = await one.request("tides.bergen", {"hour": 1})
        assert answer.json() == {"high": 7}
        several = [one.request("tides.oslo", {"hour": n}) for n in range(20)]
        got = await asyncio.gather(*several)
        assert [message.json()["high"] for message in got] == [n + 6 for n in range(20)]

    run(body)


@pytest.mark.spec("R4.4.1")
def test_a_request_without_an_answer_times_out(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        await other.subscribe("tides.*", lambda message: None)
        with pytest.raises(TimeoutError, match=r"'tides\.bergen' within 0\.05 s"):
            await one.request("tides.bergen", timeout=0.05)
        with pytest.raises(TimeoutError, match=r"Nobody listens to 'nobody\.here'"):
            await one.request("nobody.here", timeout=300)

    run(body)


@pytest.mark.spec("R4.4.1")
def test_after_unsubscribing_nothing_is_heard_and_twice_is_fine(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        heard, still = Heard(), Heard()
        subscription = await other.subscribe("a.b", heard)
        await other.subscribe("a.b", still)
        await one.publish("a.b", "1")
        await heard.wait(1)
        await subscription.unsubscribe()
        await subscription.unsubscribe()
        await one.publish("a.b", "2")
        await still.wait(2)
        assert heard.texts == ["1"]
        await other.close()
        await subscription.unsubscribe()

    run(body)


@pytest.mark.spec("R4.4.1")
def test_a_handler_that_fails_hurts_nobody(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def body(one: Bus, other: Bus) -> None:
        heard = Heard()
        calls: list[str] = []

        def fails(message: BusMessage) -> None:
            calls.append(message.text)
            raise ValueError("out of order")

        await other.subscribe("a.b", fails)
        await other.subscribe("a.b", heard)
        await one.publish("a.b", "1")
        await one.publish("a.b", "2")
        assert await heard.wait(2) == ["1", "2"]
        while len(calls) < 2:
            await asyncio.sleep(0)

    run(body)
    assert "What hears 'a.b' failed with a message on 'a.b'" in caplog.text
    assert "out of order" in caplog.text


def test_a_subscription_can_be_iterated_and_ends_with_the_bus(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        tides = await other.subscribe("tides.*")
        for n in range(3):
            await one.publish("tides.bergen", str(n))
        got: list[str] = []
        async for message in tides:
            got.append(message.text)
            if len(got) == 3:
                await other.close()
        assert got == ["0", "1", "2"]
        with pytest.raises(sa.NotRunning):
            await other.publish("tides.bergen", "late")
        with pytest.raises(sa.NotRunning):
            await other.subscribe("tides.*")

    run(body)


@pytest.mark.parametrize(
    ("data", "told"), [(b"\x00\xff", b"\x00\xff"), ("höher", "höher".encode()), ([1], b"[1]")]
)
def test_data_is_bytes_text_or_json(run: Run, data: Any, told: bytes) -> None:
    async def body(one: Bus, other: Bus) -> None:
        heard = Heard()
        await other.subscribe("a", heard)
        await one.publish("a", data)
        await heard.wait(1)
        assert heard.messages[0].data == told

    run(body)


@pytest.mark.parametrize(
    "subject", ["", "a b", "a..b", ".a", "a.", "a.*", "a.>", "a\r\nPUB b", "\ud800", "x" * 1001, 5]
)
def test_what_is_no_subject_is_refused(run: Run, subject: Any) -> None:
    async def body(one: Bus, other: Bus) -> None:
        with pytest.raises(sa.ConfigurationError, match="no subject to publish on"):
            await one.publish(subject, "x")
        with pytest.raises(sa.ConfigurationError, match="subject"):
            await one.request(subject, "x")

    run(body)


@pytest.mark.parametrize(("subject", "queue"), [("a.>.b", ""), ("a b", ""), ("", ""), ("a", "b c")])
def test_what_cannot_be_heard_is_refused(run: Run, subject: str, queue: str) -> None:
    async def body(one: Bus, other: Bus) -> None:
        with pytest.raises(sa.ConfigurationError):
            await one.subscribe(subject, print, queue=queue)

    run(body)


def test_what_is_no_data_is_refused(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        with pytest.raises(sa.ConfigurationError, match="bytes, text, or what JSON can hold"):
            await one.publish("a", object())

    run(body)


def test_it_goes_between_threads_with_loops_of_their_own(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        heard, asked_on = Heard(), set()

        def notes(message: BusMessage) -> None:
            asked_on.add(threading.get_ident())
            heard(message)

        await other.subscribe("a.*", notes)

        def publishes(n: int) -> None:
            async def some() -> None:
                for k in range(25):
                    await one.publish("a.b", f"{n}.{k}")

            asyncio.run(some())

        await asyncio.gather(*(asyncio.to_thread(publishes, n) for n in range(4)))
        got = await heard.wait(100)
        assert sorted(got) == sorted(f"{n}.{k}" for n in range(4) for k in range(25))
        for n in range(4):
            mine = [text for text in got if text.startswith(f"{n}.")]
            assert mine == [f"{n}.{k}" for k in range(25)]
        assert asked_on == {threading.get_ident()}

    run(body)


def test_an_agents_async_tool_uses_it(run: Run) -> None:
    async def body(one: Bus, other: Bus) -> None:
        await other.subscribe("tides.*", lambda message: "At 6.")

        async def tides(port: str) -> str:
            """When the tide is high."""
            return (await one.request(f"tides.{port}")).text

        wants = sa.ToolCall("c1", "tides", {"port": "bergen"})
        agent = sa.Agent(sa.ScriptedModel([wants, "Done."]), tools=[tides], defaults=False)
        (asked,) = (await agent.arun("go")).tool_calls
        assert asked.result is not None
        assert asked.result.text == "At 6."

    run(body)


# a bus within a process


def test_one_who_is_slow_misses_the_oldest_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        bus = sa.LocalBus()
        heard = Heard()
        await bus.subscribe("a", heard)
        for n in range(LONGEST + 5):
            await bus.publish("a", str(n))
        assert (await heard.wait(LONGEST))[0] == "5"

    asyncio.run(main())
    assert "missed 5 messages" in caplog.text


@pytest.mark.spec("R4.4.1")
def test_what_waits_is_not_heard_after_unsubscribing() -> None:
    async def main() -> list[str]:
        bus = sa.LocalBus()
        heard, last = Heard(), Heard()
        subscription = await bus.subscribe("a", heard)
        await bus.publish("a", "waits")
        await subscription.unsubscribe()
        await bus.subscribe("a", last)
        await bus.publish("a", "later")
        await last.wait(1)
        return heard.texts

    assert asyncio.run(main()) == []


def test_one_whose_loop_has_ended_is_left_out() -> None:
    bus = sa.LocalBus()

    async def hears() -> None:
        await bus.subscribe("a", print, queue="q")

    async def publishes() -> None:
        heard = Heard()
        await bus.publish("a", "nobody is there")
        await bus.subscribe("a", heard, queue="q")
        await bus.publish("a", "1")
        await bus.publish("a", "2")
        assert await heard.wait(2) == ["1", "2"]

    asyncio.run(hears())
    asyncio.run(publishes())


# NATS


def test_what_is_too_large_for_the_server_says_where_it_goes(nats_server: NatsServer) -> None:
    async def main() -> None:
        bus = sa.NatsBus(nats_server.url)
        with pytest.raises(sa.ConfigurationError, match="put it into a BlobStore"):
            await bus.publish("a", bytes(2_000_000))
        await bus.close()

    asyncio.run(main())


def test_a_server_that_is_not_there_is_told_at_once_and_no_password_is() -> None:
    async def main() -> None:
        bus = sa.NatsBus("nats://me:hush-hush-9173@127.0.0.1:1")
        assert "hush" not in repr(bus)
        with pytest.raises(ConnectionError, match=r"NATS at 127\.0\.0\.1:1 could not be") as caught:
            await bus.publish("a", "x")
        error = caught.value
        assert "refused" in str(error) or "Connect call failed" in str(error)  # no timeout
        assert "hush" not in f"{error} {error.__context__!r} {error.__cause__!r}"

    asyncio.run(main())


def test_a_connection_that_broke_comes_back_with_its_subscriptions(tmp_path: Any) -> None:
    server = NatsServer(tmp_path)
    try:

        async def main() -> None:
            one, other = sa.NatsBus(server.url), sa.NatsBus(server.url)
            heard = Heard()
            await other.subscribe("a", heard)
            await one.publish("a", "before")
            await heard.wait(1)
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
            async with asyncio.timeout(300):
                while heard.texts[-1:] != ["after"]:  # what is sent meanwhile may be lost
                    await one.publish("a", "after")
                    await asyncio.sleep(0.1)
            await one.close()
            await other.close()

        asyncio.run(main())
    finally:
        server.stop()


@pytest.mark.parametrize("url", ["", "127.0.0.1", "nats://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(sa.ConfigurationError, match="such as 'nats://"):
        sa.NatsBus(url)
