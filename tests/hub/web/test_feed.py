"""What is told of a thread while it goes on, over sockets and event streams."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

import sagents_nb as sa
from sagents_nb.errors import NotFound
from sagents_nb.hub import AgentSystem, Blueprint
from sagents_nb.hub.event_log import ThreadEvent
from sagents_nb.hub.limits import Limits
from sagents_nb.hub.web.feed import Channel, Feed
from tests.hub.web.served import (
    TOKEN,
    Served,
    frames_of,
    protocol_of,
    request_of,
    serving,
)
from tests.talking import PATIENCE, call, run


@pytest.fixture(scope="module")
def served(path_of_module: Path | str) -> Iterator[Served]:
    with serving(path_of_module) as served:
        yield served


def kept(events: list[Any]) -> list[Any]:
    """Those that are not gone once they were told."""
    return [event for event in events if event["type"] != "model.delta"]


def invoke(served: Served, thread: str, text: str = "hi") -> None:
    said = {"messages": [{"content": text}]}
    answer = served.client.post(served.path(thread, "/invoke"), json=said)
    assert answer.status_code == 202


def events(served: Served, thread: str, since: int = 0) -> list[Any]:
    answer = served.client.get(served.path(thread, "/events"), params={"since": since})
    told: list[Any] = answer.json()["events"]
    return told


def streamed(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The events of a stream."""
    event: dict[str, Any] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            event["id"] = int(value)
        elif name == "event":
            event["event"] = value
        elif name == "data":
            event["data"] = json.loads(value)
        elif not line and event:
            yield event
            event = {}


def until(told: Iterator[Any], type: str) -> list[Any]:
    """As far as the first of that type."""
    seen = []
    for event in told:
        seen.append(event)
        if event["type"] == type:
            return seen
    raise AssertionError(f"It ended without {type}: {seen}")


@pytest.mark.spec("H3.1.7", "H3.1.8")
def test_a_socket_tells_each_event_once_and_in_order_with_the_pieces_of_the_text(
    served: Served,
) -> None:
    thread = served.thread()
    with served.socket(served.path(thread, "/ws")) as live:
        assert live.subprotocol == "sagents.v1"
        invoke(served, thread, "how are you?")
        seen = until(map(json.loads, live), "agent.completed")
    assert kept(seen) == events(served, thread)
    assert [event["seq"] for event in kept(seen)] == [1, 2, 3, 4, 5]
    pieces = [event for event in seen if event["type"] == "model.delta"]
    assert "".join(piece["data"]["delta"] for piece in pieces) == "You said: how are you?"
    assert {piece["seq"] for piece in pieces} <= {3}


def test_a_stream_tells_the_same_with_numbers_to_go_on_from(served: Served) -> None:
    thread = served.thread()
    with served.stream(served.path(thread, "/events")) as live:
        assert live.status_code == 200
        assert live.headers["content-type"].startswith("text/event-stream")
        assert live.headers["cache-control"] == "no-store"
        invoke(served, thread)
        seen = []
        for event in streamed(live.iter_lines()):
            assert event["id"] == event["data"]["seq"]
            assert event["event"] == event["data"]["type"]
            seen.append(event["data"])
            if event["event"] == "agent.completed":
                break
    assert kept(seen) == events(served, thread)
    with served.stream(served.path(thread, "/events?since=1"), **{"Last-Event-ID": "3"}) as live:
        assert [next(streamed(live.iter_lines()))["id"]] == [4]  # the later one of the two


def test_who_begins_to_read_when_the_run_is_over_is_told_the_pieces_it_was_there_for(
    served: Served,
) -> None:
    id = served.thread()
    thread = served.hub.thread(served.agency, id)

    async def read() -> list[ThreadEvent]:
        feed = await Feed.alone(thread, 0, partial(served.hub.events, served.agency, id))
        await asyncio.to_thread(invoke, served, id, "how are you?")
        await asyncio.to_thread(served.wait, id)
        seen = []
        async for told in feed:
            seen.append(told.event)
            if told.event.type == "agent.completed":
                break
        feed.end()
        return seen

    seen = run(read())
    pieces = [event for event in seen if event.type == "model.delta"]
    assert "".join(piece.data["delta"] for piece in pieces) == "You said: how are you?"
    assert [event.seq for event in seen if event not in pieces] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("since", ["-1", "x", "1.5", "9" * 19, "٣", "1e3", " "])
def test_what_is_no_number_of_an_event_is_refused(served: Served, since: str) -> None:
    thread = served.thread()
    path = served.path(thread, "/events")
    plain = served.client.get(path, params={"since": since})
    live = served.client.get(path, params={"since": since}, headers={"Accept": "text/event-stream"})
    for answer in (plain, live):
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("since is the number of an event")
    with pytest.raises(InvalidStatus) as refused:
        served.socket(served.path(thread, "/ws?since=x")).__enter__()
    assert refused.value.response.status_code == 400


def test_who_asks_for_what_comes_after_the_last_is_told_what_follows(served: Served) -> None:
    thread = served.thread()
    invoke(served, thread)
    served.wait(thread)
    assert events(served, thread, 5) == []
    with served.socket(served.path(thread, "/ws?since=5")) as live:
        invoke(served, thread)
        seen = kept(until(map(json.loads, live), "agent.completed"))
    assert [event["seq"] for event in seen] == list(range(6, 11))


@pytest.mark.parametrize("most_waiting", [256, 2])
def test_who_comes_and_goes_during_a_long_run_misses_nothing_and_hears_nothing_twice(
    path: Path | str, monkeypatch: pytest.MonkeyPatch, most_waiting: int
) -> None:
    monkeypatch.setattr("sagents_nb.hub.web.feed.MOST_WAITING", most_waiting)

    def turns() -> Iterator[Any]:
        for number in range(60):
            yield ["thinking about it", call("note", f"c{number}", text="x")]
        yield "done"

    def note(text: str) -> str:
        """Keep a note."""
        time.sleep(0.005)
        return text

    system = AgentSystem(sa.ScriptedModel(turns())).add_tool(note)
    system.add_agent(Blueprint("guide", "Be brief."))
    chance = random.Random(5)
    with serving(path, system) as served:
        thread = served.thread()
        told: dict[str, list[Any]] = {"ws": [], "sse": []}

        def last(way: str) -> int:
            return int(told[way][-1]["seq"]) if told[way] else 0

        def ended(way: str) -> bool:
            return bool(told[way]) and told[way][-1]["type"] == "agent.completed"

        def over_sockets() -> None:
            while not ended("ws"):
                with served.socket(served.path(thread, f"/ws?since={last('ws')}")) as live:
                    for frame in itertools.islice(live, chance.randrange(1, 40)):
                        told["ws"] += kept([json.loads(frame)])
                        if ended("ws"):
                            break

        def over_streams() -> None:
            while not ended("sse"):
                shown = {"Last-Event-ID": str(last("sse"))}
                with served.stream(served.path(thread, "/events"), **shown) as live:
                    lines = streamed(live.iter_lines())
                    for event in itertools.islice(lines, chance.randrange(1, 40)):
                        told["sse"] += kept([event["data"]])
                        if ended("sse"):
                            break

        readers = [threading.Thread(target=each) for each in (over_sockets, over_streams)]
        for reader in readers:
            reader.start()
        invoke(served, thread)
        for reader in readers:
            reader.join(3 * PATIENCE)
        everything = events(served, thread)
    assert len(everything) > 300
    assert told["ws"] == everything
    assert told["sse"] == everything


class Told:
    """A thread whose events the test tells; ``kept`` are those that can be read."""

    def __init__(self, last: int = 0) -> None:
        self.session = self.log = self
        self.last = last
        self.kept: list[ThreadEvent] = []
        self.reads = 0
        self.listener: Any = None

    def watch(self, name: str) -> Any:
        return lambda: None

    def listen(self, listener: Any) -> None:
        self.listener = listener

    def leave(self, listener: Any) -> None:
        self.listener = None

    def read(self, since: int) -> list[ThreadEvent]:
        self.reads += 1
        return [event for event in self.kept if event.seq > since]

    async def feed(self, since: int = 0) -> Feed:
        """What a reader is told."""
        return await Feed.alone(self, since, self.read)  # type: ignore[arg-type]

    async def tell(self, *numbers: int, end: bool = False) -> None:
        """Keep and tell these, then that nothing follows; all of it waits for the reader then."""
        events = [ThreadEvent("t", "", number, "run.tick", {}) for number in numbers]
        self.kept += events
        for event in (*events, *([None] if end else [])):
            self.listener(event)
        await asyncio.sleep(0)


def test_who_is_behind_when_the_thread_ends_is_told_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sagents_nb.hub.web.feed.MOST_WAITING", 2)

    async def read() -> list[int]:
        told = Told()
        feed = await told.feed()
        await told.tell(1)
        events = aiter(feed)
        seen = [await anext(events)]
        following = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.05)  # it has read what is kept, and waits for what follows
        await told.tell(2)
        seen.append(await following)
        await told.tell(3, 4, 5, 6, end=True)
        return [told.event.seq for told in [*seen, *[told async for told in events]]]

    assert run(read()) == [1, 2, 3, 4, 5, 6]


def test_who_has_all_that_is_kept_has_nothing_read() -> None:
    async def read() -> tuple[list[int], int]:
        told = Told(last=3)
        feed = await told.feed(since=3)
        await told.tell(4, 5, end=True)
        return [told.event.seq async for told in feed], told.reads

    assert run(read()) == ([4, 5], 0)


def test_who_comes_when_the_thread_has_ended_is_told_so() -> None:
    async def read() -> list[int]:
        told = Told()
        channel = Channel(told, asyncio.get_running_loop())  # type: ignore[arg-type]
        await channel.begun.wait()
        await told.tell(1, end=True)
        return [told.event.seq async for told in Feed(channel, 0, told.read)]

    assert run(read()) == [1]


def test_a_thread_is_heard_once_however_many_read_it(served: Served) -> None:
    id = served.thread()
    path, session = served.path(id), served.hub.thread(served.agency, id).session
    with served.socket(path + "/ws") as one, served.socket(path + "/ws") as other:
        assert len(session.viewers) == 1
        with served.stream(path + "/events"):
            assert len(session.viewers) == 1
        invoke(served, id)
        told = [until(map(json.loads, each), "agent.completed") for each in (one, other)]
    assert told[0] == told[1]
    deadline = time.monotonic() + PATIENCE
    while session.viewers:  # else it would never rest
        assert time.monotonic() < deadline


def test_nothing_is_compressed_for_each_reader_by_itself(served: Served) -> None:
    with served.socket(served.path(served.thread(), "/ws")) as live:
        assert live.request is not None
        assert "permessage-deflate" in live.request.headers["Sec-WebSocket-Extensions"]
        assert live.response is not None
        assert "Sec-WebSocket-Extensions" not in live.response.headers


def test_who_catches_up_with_a_thread_that_was_deleted_is_told_no_more() -> None:
    class Deleted(Told):
        def read(self, since: int) -> list[ThreadEvent]:
            raise NotFound("This agency has no such thread.")

    async def read() -> list[int]:
        return [told.event.seq async for told in await Deleted(last=3).feed()]

    assert run(read()) == []


def test_the_head_of_a_stream_keeps_no_place(path: Path | str) -> None:
    with serving(path, limits=Limits(sockets=1)) as served:
        at = served.path(served.thread(), "/events")
        with served.client_of(TOKEN, Accept="text/event-stream") as client:
            assert client.head(at).status_code == 200
            with served.stream(at) as stream:
                assert stream.status_code == 200


def test_a_socket_that_is_refused_is_no_error_of_the_hub(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    for token, status in (("wrong", 401), (TOKEN, 404)):
        with pytest.raises(InvalidStatus) as refused:
            served.socket(served.path("nothing", "/ws"), token).__enter__()
        assert refused.value.response.status_code == status
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@contextlib.contextmanager
def stalled(served: Served, path: str, way: str) -> Iterator[socket.socket]:
    """A client that has opened a socket or a stream, and reads nothing of it."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", served.port))
        headers = [("Host", f"127.0.0.1:{served.port}")]
        if way == "/ws":
            headers += [
                ("Connection", "Upgrade"),
                ("Upgrade", "websocket"),
                ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                ("X-SECRET", TOKEN),
            ]
        else:
            headers += [("Accept", "text/event-stream"), ("X-SECRET", TOKEN)]
        connection.sendall(request_of("GET", path + way, *headers))
        yield connection


def talker(turns: int, size: int) -> AgentSystem:
    """One whose tool says ``size`` characters, as often as that."""

    def note(text: str) -> str:
        """Keep a note."""
        return "x" * size

    said = [*(call("note", f"c{number}", text="x") for number in range(turns)), "done"]
    system = AgentSystem(sa.ScriptedModel(said)).add_tool(note)
    return system.add_agent(Blueprint("guide", "Be brief."))


@pytest.mark.parametrize("way", ["/ws", "/events"])
def test_who_reads_nothing_keeps_nobody_waiting_and_is_let_go_of(
    path: Path | str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("sagents_nb.hub.web.app.STALLED_SECONDS", 0.5)
    limits = Limits(sockets=2)
    with serving(path, talker(60, 200_000), limits) as served:
        thread = served.thread()
        at = served.path(thread)
        with stalled(served, at, way), served.socket(at + "/ws") as live:
            invoke(served, thread)
            seen = kept(until(map(json.loads, live), "agent.completed"))
            assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
            # There is room for two, so that a third one gets in only when one has gone.
            deadline = time.monotonic() + PATIENCE
            while True:
                with contextlib.suppress(InvalidStatus), served.socket(at + "/ws"):
                    break
                assert time.monotonic() < deadline


def test_a_socket_ends_with_its_thread(served: Served) -> None:
    thread = served.thread()
    invoke(served, thread)
    served.wait(thread)
    with (
        served.socket(served.path(thread, "/ws")) as live,
        served.stream(served.path(thread, "/events")) as stream,
    ):
        assert len(kept(until(map(json.loads, live), "agent.completed"))) == 5
        assert served.client.delete(served.path(thread)).status_code == 200
        assert frames_of(live) == []
        assert live.close_code == 1001
        told = [event["event"] for event in streamed(stream.iter_lines())]
    assert told[-1] == "agent.completed"
    with pytest.raises(InvalidStatus) as refused:
        served.socket(served.path(thread, "/ws")).__enter__()
    assert refused.value.response.status_code == 404
    missing = served.client.get(
        served.path(thread, "/events"), headers={"Accept": "text/event-stream"}
    )
    assert missing.status_code == 404


def test_a_thread_that_is_deleted_while_it_runs_ends_its_sockets(path: Path | str) -> None:
    begun, go = threading.Event(), threading.Event()

    def note(text: str) -> str:
        """Keep a note."""
        begun.set()
        go.wait(PATIENCE)
        return text

    system = AgentSystem(sa.ScriptedModel([call("note", text="x"), "done"])).add_tool(note)
    system.add_agent(Blueprint("guide", "Be brief."))
    with serving(path, system) as served:
        thread = served.thread()
        with served.socket(served.path(thread, "/ws")) as live:
            invoke(served, thread)
            assert begun.wait(PATIENCE)
            try:
                assert served.client.delete(served.path(thread)).status_code == 200
                frames_of(live)
            finally:
                go.set()
            assert live.close_code == 1001
        assert served.client.get(served.path(thread, "/state")).status_code == 404


def test_more_listeners_than_there_is_room_for_are_refused_before_they_are_any(
    path: Path | str,
) -> None:
    limits = Limits(sockets=3, sockets_of_agency=2)
    with serving(path, limits=limits) as served:
        other, _ = served.hub.create_agency()
        thread, third = served.thread(), served.thread()
        elsewhere = served.thread(agency=other)
        with contextlib.ExitStack() as open_:
            open_.enter_context(served.socket(served.path(thread, "/ws")))
            open_.enter_context(served.stream(served.path(third, "/events")))
            _is_refused(served, served.path(thread))
            open_.enter_context(served.socket(served.path(elsewhere, "/ws", other)))
            _is_refused(served, served.path(elsewhere, agency=other))
        _gets_in(served, served.path(thread, "/ws"))
        _gets_in(served, served.path(elsewhere, "/ws", other))


def _is_refused(served: Served, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        served.socket(path + "/ws").__enter__()
    assert refused.value.response.status_code == 429
    assert json.loads(refused.value.response.body or b"")["error"].startswith("So many clients")
    with served.stream(path + "/events") as stream:
        assert stream.status_code == 429
        assert list(json.loads(stream.read())) == ["error"]
    assert served.client.get(path + "/events").status_code == 200  # it is no listener


def _gets_in(served: Served, path: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(InvalidStatus), served.socket(path) as live:
            assert live.close_code is None
            return
        assert time.monotonic() < deadline


def test_a_message_that_is_too_long_closes_the_socket_and_others_are_heeded_by_nobody(
    served: Served,
) -> None:
    thread = served.thread()
    with served.socket(served.path(thread, "/ws")) as live:
        for said in ("hello", b"\x00", '{"type":"decide"}', "x" * 1_000_000):
            live.send(said)
        invoke(served, thread)
        assert until(map(json.loads, live), "agent.completed")
        with contextlib.suppress(ConnectionClosed):
            live.send("x" * 1_048_577)
        frames_of(live)
        assert live.close_code == 1009


def test_a_token_may_be_offered_as_a_protocol_and_is_never_the_chosen_one(served: Served) -> None:
    thread = served.thread()
    path = served.path(thread, "/ws")
    for token in (TOKEN, served.secret):
        with served.socket(path, token) as live:
            assert live.subprotocol == "sagents.v1"
            assert live.response is not None
            assert protocol_of(token) not in str(live.response.headers)
    for token in ("wrong", "", "é", None):
        with pytest.raises(InvalidStatus) as refused:
            served.socket(path, token).__enter__()
        assert refused.value.response.status_code == 401
