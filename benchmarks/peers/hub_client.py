"""A client of the servers of hub.py, in a process of its own, so that its work is not theirs.

It writes the bytes of its requests and reads those of the answers: what it takes itself is some
microseconds a request and a frame. It prints one JSON line per figure.

Usage: hub_client.py PART PORT PID, where PID is the process of the server
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import resource
import socket
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any

from _hub import (
    AT_ONCE,
    CALLERS,
    DELTAS,
    HOLD,
    KINDS,
    LISTENERS,
    LIVE,
    LONG,
    SHORT,
    SOCKETS,
    STALLED,
    STEADY,
    STEADY_PIECES,
    STEADY_SECONDS,
    STEADY_TURNS,
    TOKEN,
)

HOST = "127.0.0.1"
PATIENCE = 60.0  # seconds for what takes at most a few
KEPT_OPEN = 2.0  # seconds, of a connection on which nothing is asked

ROUNDS = 3
POSTS, RUNS, ANSWERS, EVENTS = 40, 15, 5, 7  # in a round
CALLING, THREADS = 4.0, 4  # seconds, and the threads of a caller, which take turns
FIRST, OPENING = 200, 100  # sockets that are there before, and that are opened at once

LAST = re.compile(rb'"messageId":"([^"]+)"')
TS = b'"ts":"'


class Refused(Exception):
    """The server did not do it."""


class Http:
    """One connection of HTTP/1.1 that is kept open; anew after a while, as servers end it."""

    def __init__(self, port: int) -> None:
        self._port = port

    @staticmethod
    async def open(port: int) -> Http:
        """One to the server at that port."""
        made = Http(port)
        await made._connect()
        return made

    async def _connect(self) -> None:
        made = await asyncio.open_connection(HOST, self._port, limit=1 << 22)
        self._reader, self._writer = made
        self._used = time.monotonic()

    def close(self) -> None:
        """End it."""
        self._writer.close()

    async def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """What is answered, as it came; of a stream all of it, once it has ended."""
        content = b"" if body is None else json.dumps(body).encode()
        if time.monotonic() > self._used + KEPT_OPEN:
            self.close()
            await self._connect()
        self._writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Accept: text/event-stream, application/json\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        async with asyncio.timeout(PATIENCE):
            head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            if b"\r\ntransfer-encoding: chunked" in head:
                answer = await self._chunked()
            else:
                _, _, length = head.partition(b"\r\ncontent-length: ")
                answer = await self._reader.readexactly(int(length.split(b"\r\n")[0] or b"0"))
        self._used = time.monotonic()
        if not head.startswith(b"http/1.1 2"):
            raise Refused(f"{method} {path}: {answer[:300].decode()}")
        return answer

    async def _chunked(self) -> bytes:
        answer = bytearray()
        while not (answer == b"0\r\n\r\n" or answer.endswith(b"\r\n0\r\n\r\n")):
            piece = await self._reader.read(1 << 16)
            if not piece:
                raise Refused("the server closed the connection")
            answer += piece
        return bytes(answer)

    async def get(self, path: str) -> Any:
        """What is answered, read."""
        return json.loads(await self.ask("GET", path))

    async def post(self, path: str, body: Any = None) -> Any:
        """The same, of what is said."""
        return json.loads(await self.ask("POST", path, body or {}))


def dechunked(raw: bytes) -> bytes:
    """A chunked body without its frame; not timed."""
    body, place = bytearray(), 0
    while True:
        line, _, _ = raw[place : place + 20].partition(b"\r\n")
        size = int(line, 16)
        if size == 0:
            return bytes(body)
        place += len(line) + 2
        body += raw[place : place + size]
        place += size + 2


def handshake(path: str) -> bytes:
    """As browsers say it."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nX-SECRET: {TOKEN}\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
    ).encode()


class Socket(asyncio.Protocol):
    """One socket; ``told`` is called with each text, as the server said it."""

    __slots__ = ("_data", "_path", "_told", "_transport", "opened")

    def __init__(self, path: str, told: Callable[[bytes], object]) -> None:
        self._path, self._told = path, told
        self._data = b""
        self._transport: Any = None
        self.opened = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a socket."""
        self._transport = transport
        self._transport.write(handshake(self._path))

    def data_received(self, data: bytes) -> None:
        """Read frames as far as they are here."""
        data = self._data + data if self._data else data
        if not self.opened.done():
            head, found, rest = data.partition(b"\r\n\r\n")
            if not found:
                self._data = data
                return
            if head.startswith(b"HTTP/1.1 101"):
                self.opened.set_result(b"permessage-deflate" in head.lower())
            else:
                self.opened.set_exception(Refused(data[:300].decode()))
            data = rest
        place, end = 0, len(data)
        while end - place >= 2:
            first, size, begin = data[place], data[place + 1], place + 2
            if size > 125:
                wide = 2 if size == 126 else 8
                size = int.from_bytes(data[begin : begin + wide], "big")
                begin += wide
            if begin + size > end:
                break
            if first & 15 == 9:  # a ping
                self._transport.write(
                    b"\x8a" + bytes([0x80 | size]) + bytes(4) + data[begin:][:size]
                )
            elif first & 15 == 1:
                self._told(data[begin : begin + size])
            place = begin + size
        self._data = data[place:]

    def connection_lost(self, error: Exception | None) -> None:
        """Open no more."""
        if not self.opened.done():
            self.opened.set_exception(Refused("the server closed the connection"))

    def close(self) -> None:
        """End it."""
        self._transport.abort()


class Hub:
    """One of ours, at ``port``, that is process ``pid``, with an agency."""

    def __init__(self, port: int, pid: int, http: Http, agency: str) -> None:
        self.port, self.pid, self.http, self.agency = port, pid, http, agency

    @staticmethod
    async def at(port: int, pid: int) -> Hub:
        """The one there."""
        http = await Http.open(port)
        made = await http.post("/agencies")
        return Hub(port, pid, http, f"/agency/{made['id']}")

    async def thread(self) -> str:
        """The path of a new thread."""
        made = await self.http.post(f"{self.agency}/agents", {"agentType": "speaker"})
        return f"{self.agency}/agent/{made['id']}"

    async def socket(
        self, path: str, told: Callable[[bytes], object] = lambda said: None, number: int = 0
    ) -> Socket:
        """A socket; of several addresses of this machine, since each has only so many ports."""
        loop = asyncio.get_running_loop()
        place = (f"127.0.0.{2 + number // 5_000}", 0)
        _, one = await loop.create_connection(
            lambda: Socket(path, told), HOST, self.port, local_addr=place
        )
        async with asyncio.timeout(PATIENCE):
            await one.opened
        return one

    async def sockets(
        self, count: int, path: Callable[[int], str], told: Callable[[bytes], object]
    ) -> list[Socket]:
        """So many, some at once."""
        numbers = iter(range(count))
        opened: list[Socket] = []

        async def some() -> None:
            for number in numbers:
                opened.append(await self.socket(path(number), told, number))

        await asyncio.gather(*(some() for _ in range(OPENING)))
        return opened

    def processor(self) -> float:
        """Seconds of the processor that its process has had."""
        with open(f"/proc/{self.pid}/stat") as stat:
            times = stat.read().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Bytes that its process has in memory."""
        with open(f"/proc/{self.pid}/status") as status:
            line = next(line for line in status if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024.0

    async def settled_memory(self) -> float:
        """The same, once it stays as it is."""
        before, now = 0.0, self.memory()
        for _ in range(20):
            if abs(now - before) < 1e6:
                break
            await asyncio.sleep(0.5)
            before, now = now, self.memory()
        return now


def saying(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def timed(work: Awaitable[Any]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def best_of(rounds: int, work: Callable[[], Awaitable[list[float]]]) -> list[float]:
    """The times of the round with the least median."""
    return min([await work() for _ in range(rounds)], key=statistics.median)


def tell(item: str, value: float) -> None:
    print(json.dumps({"item": item, "value": value}), flush=True)


def tell_times(item: str, times: list[float]) -> None:
    """The median, and the longest."""
    tell(f"{item}, p50", statistics.median(times))
    tell(f"{item}, longest", max(times))


class Heard:
    """What one socket told, until somebody waits for it."""

    def __init__(self) -> None:
        self._told: asyncio.Queue[bytes] = asyncio.Queue()
        self.take = self._told.put_nowait

    async def until(self, what: bytes) -> None:
        """Wait for a text with that in it."""
        async with asyncio.timeout(PATIENCE):
            while what not in await self._told.get():
                pass


COMPLETED = b'"type":"agent.completed"'


async def invoke(hub: Hub) -> None:
    """How long it takes until what somebody says is kept, and how many can say something."""
    thread = await hub.thread()
    heard = Heard()
    listening = await hub.socket(f"{thread}/ws", heard.take)

    async def one_after_the_other() -> list[float]:
        times = []
        for _ in range(POSTS):
            times.append(await timed(hub.http.post(f"{thread}/invoke", saying(SHORT))))
            await heard.until(COMPLETED)
        return times

    tell_times("invoke", await best_of(ROUNDS, one_after_the_other))
    listening.close()
    threads = [[await hub.thread() for _ in range(THREADS)] for _ in range(CALLERS)]
    connections = [await Http.open(hub.port) for _ in threads]
    times: list[float] = []
    had, began = hub.processor(), time.perf_counter()

    async def caller(http: Http, mine: list[str]) -> None:
        number = 0
        while time.perf_counter() - began < CALLING:
            at = f"{mine[number % THREADS]}/invoke"
            times.append(await timed(http.post(at, saying(SHORT))))
            number += 1

    await asyncio.gather(*map(caller, connections, threads))
    seconds = time.perf_counter() - began
    tell_times(f"invoke, {CALLERS} callers", times)
    tell("invokes a second", len(times) / seconds)
    tell("processor of an invoke and its run", (hub.processor() - had) / len(times))
    said = 0
    for thread in (each for mine in threads for each in mine):
        while (state := await hub.http.get(f"{thread}/state"))["run"]["status"] == "running":
            await asyncio.sleep(0.02)
        said += sum(message["role"] == "user" for message in state["state"]["messages"])
    if said != len(times):
        raise Refused(f"{len(times)} messages were accepted, and {said} are there")
    tell("runs a second", len(times) / (time.perf_counter() - began))


async def runs(hub: Hub) -> None:
    """From what somebody says to the end of its run, as a listener hears of it."""
    thread = await hub.thread()
    heard = Heard()
    listening = await hub.socket(f"{thread}/ws", heard.take)

    async def run() -> None:
        await hub.http.ask("POST", f"{thread}/invoke", saying(SHORT))
        await heard.until(COMPLETED)

    async def one_after_the_other() -> list[float]:
        return [await timed(run()) for _ in range(RUNS)]

    tell_times("post to end", await best_of(ROUNDS, one_after_the_other))
    listening.close()


def run_of(thread: str, text: str, known: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """What a client of AG-UI asks; ``known`` are the messages before."""
    message = {"id": os.urandom(8).hex(), "role": "user", "content": text}
    rest: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    messages = [*(known or []), message]
    return {"threadId": thread, "runId": os.urandom(8).hex(), "messages": messages, **rest}


async def agui(port: int, path: str) -> None:
    """A long answer over AG-UI: of a new conversation, of one that goes on, and many at once."""
    http = await Http.open(port)

    def new() -> dict[str, Any]:
        return run_of(os.urandom(8).hex(), LONG)

    async def answered(http: Http, body: dict[str, Any]) -> tuple[float, bytes]:
        began = time.perf_counter()
        raw = await http.ask("POST", path, body)
        seconds, told = time.perf_counter() - began, dechunked(raw)
        if (
            count := told.count(b'"TEXT_MESSAGE_CONTENT"')
        ) != DELTAS or b"RUN_FINISHED" not in told:
            raise Refused(f"of {DELTAS} deltas {count} came: {told[-300:].decode()}")
        return seconds, told

    async def in_new_ones() -> list[float]:
        return [(await answered(http, new()))[0] for _ in range(ANSWERS)]

    async def in_one() -> list[float]:
        first = new()
        known, times = first["messages"], []
        _, told = await answered(http, first)
        for _ in range(ANSWERS):
            found = LAST.findall(told)
            known = [*known, {"id": found[-1].decode(), "role": "assistant", "content": "words"}]
            body = run_of(first["threadId"], LONG, known)
            known = body["messages"]
            seconds, told = await answered(http, body)
            times.append(seconds)
        return times

    async def at_once() -> list[float]:
        connections = [await Http.open(port) for _ in range(AT_ONCE)]
        taken = await timed(asyncio.gather(*(answered(each, new()) for each in connections)))
        for each in connections:
            each.close()
        return [taken]

    await answered(http, new())
    tell_times("deltas, new", await best_of(ROUNDS, in_new_ones))
    tell_times("deltas, again", await best_of(ROUNDS, in_one))
    first = (await at_once())[0]
    rest = [(await at_once())[0] for _ in range(ROUNDS - 1 if first < 5 else 0)]
    tell("deltas, at once", min([first, *rest]))
    await answered_shortly(http, path)


async def answered_shortly(http: Http, path: str) -> None:
    """From a post to the end of its run, over AG-UI."""

    async def one_after_the_other() -> list[float]:
        return [
            await timed(http.ask("POST", path, run_of(os.urandom(8).hex(), SHORT)))
            for _ in range(RUNS)
        ]

    tell_times("post to end, agui", await best_of(ROUNDS, one_after_the_other))


async def langgraph(port: int) -> None:
    """The same of langgraph's server, in its own protocol."""
    http = await Http.open(port)
    thread = (await http.post("/threads"))["thread_id"]

    async def run(text: str, mode: str) -> bytes:
        asked = {"assistant_id": "agent", "input": saying(text), "stream_mode": [mode]}
        return await http.ask("POST", f"/threads/{thread}/runs/stream", asked)

    await run(SHORT, "updates")
    tell_times("post to end", [await timed(run(SHORT, "updates")) for _ in range(8)])
    times = []
    for _ in range(ANSWERS):
        began = time.perf_counter()
        raw = await run(LONG, "messages-tuple")
        times.append(time.perf_counter() - began)
        count = dechunked(raw).count(b"event: messages")
        if count < DELTAS:
            raise Refused(f"of {DELTAS} deltas {count} came")
    tell_times("deltas, again", times)


async def idle(hub: Hub, kind: str) -> None:
    """What a socket costs on which nothing is told."""
    paths = [f"{await hub.thread()}/{kind}" for _ in range(10)]

    def path(number: int) -> str:
        return paths[number % len(paths)]

    some = await hub.sockets(FIRST, path, lambda said: None)
    before = await hub.settled_memory()
    had, began = hub.processor(), time.perf_counter()
    more = await hub.sockets(SOCKETS, path, lambda said: None)
    tell(f"to open them, {kind}", time.perf_counter() - began)
    tell(f"processor to open one, {kind}", (hub.processor() - had) / SOCKETS)
    tell(f"bytes of a socket, {kind}", (await hub.settled_memory() - before) / SOCKETS)
    for each in (*some, *more):
        each.close()


async def fanout(hub: Hub) -> None:
    """How long one event takes to all who listen to its thread.

    The thread runs, and takes in a request without a message: that is told by one event.
    """
    thread = await hub.thread()
    last = 0.0
    count, events = 0, 0
    all_heard = asyncio.Event()
    told_at = ""

    def take(said: bytes) -> None:
        nonlocal last, count, told_at
        if b'"request.accepted"' not in said:
            return
        count += 1
        if count == 1:
            at = said.index(TS) + len(TS)
            told_at = said[at : said.index(b'"', at)].decode()
        if count == LISTENERS:
            last = time.time()
            all_heard.set()

    listening = await hub.sockets(LISTENERS, lambda number: f"{thread}/ws", take)
    await hub.http.post(f"{thread}/invoke", saying(HOLD))
    times, posts = [], []
    had = hub.processor()
    for events in range(1, EVENTS + 1):
        await asyncio.sleep(0.5)
        count = 0
        all_heard.clear()
        posted = time.time()
        await hub.http.post(f"{thread}/invoke", {"idempotencyKey": f"{events}"})
        async with asyncio.timeout(PATIENCE):
            await all_heard.wait()
        times.append(last - datetime.fromisoformat(told_at).timestamp())
        posts.append(last - posted)
    tell_times("event to all", times)
    tell_times("post to all", posts)
    tell("processor of an event", (hub.processor() - had) / EVENTS)
    await hub.http.post(f"{thread}/cancel")
    for each in listening:
        each.close()


def stalling(port: int, path: str) -> socket.socket:
    """A client that opens a socket and reads nothing of it."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect((HOST, port))
    one.sendall(handshake(path))
    return one


async def stalled(hub: Hub) -> None:
    """Whether those who read nothing hold up those who do, and what they cost."""
    thread = await hub.thread()
    times: list[float] = []
    ended = size = pieces = 0

    def take(said: bytes) -> None:
        nonlocal ended, size, pieces
        now = time.time()
        at = said.index(TS) + len(TS)
        told = datetime.fromisoformat(said[at : said.index(b'"', at)].decode())
        times.append(now - told.timestamp())
        size += len(said)
        ended += COMPLETED in said
        pieces += b'"type":"model.delta"' in said

    listening = await hub.sockets(LIVE, lambda number: f"{thread}/ws", take)
    silent = [stalling(hub.port, f"{thread}/ws") for _ in range(STALLED)]
    await asyncio.sleep(1.0)
    before = most = await hub.settled_memory()
    await hub.http.post(f"{thread}/invoke", saying(STEADY))
    until = time.perf_counter() + STEADY_SECONDS + PATIENCE
    while ended < LIVE and time.perf_counter() < until:
        most = max(most, hub.memory())
        await asyncio.sleep(0.1)
    if ended < LIVE:
        raise Refused(f"{ended} of {LIVE} readers heard the end")
    times.sort()
    tell("live p50", times[len(times) // 2])
    tell("live p99", times[int(len(times) * 0.99)])
    tell("live longest", times[-1])
    tell("missed", LIVE * STEADY_TURNS * STEADY_PIECES + LIVE - pieces)
    tell("growth", most - before)
    tell("told", size / LIVE)
    got = 0
    silent[0].setblocking(False)
    while True:
        try:
            piece = silent[0].recv(1 << 16)
        except BlockingIOError:
            break
        got += len(piece)
    tell("on the way", got)
    for one in silent:
        one.close()
    for each in listening:
        each.close()


OF_OURS: dict[str, Callable[[Hub], Awaitable[None]]] = {
    "invoke": invoke,
    "runs": runs,
    "fanout": fanout,
    "stalled": stalled,
    **{f"idle {kind}": partial(idle, kind=kind) for kind in KINDS},
}


async def main() -> None:
    part, port, pid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if part == "agui":
        hub = await Hub.at(port, pid)
        await agui(port, f"{hub.agency}/agui/speaker")
    elif part == "pydantic-ai":
        await agui(port, "/")
    elif part == "langgraph":
        await langgraph(port)
    else:
        await OF_OURS[part](await Hub.at(port, pid))


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main())
