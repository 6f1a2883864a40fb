"""Whatever a server does, a call ends with the whole answer or a sentence, and the next works."""

from __future__ import annotations

import asyncio
import gzip
import socket
import socketserver
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from sagents_nb.errors import ModelError
from sagents_nb.models.providers.clients import close_clients
from tests.models.loopback import ANSWERS, KEY, MODELS, Heard, hear, model_for, recorded

Body = bytes
Fault = Callable[["Talk", Body], None]


class Talk:
    """One connection: ``send`` bytes, and ``drip`` until nobody listens."""

    def __init__(self, connection: socket.socket, stopping: threading.Event) -> None:
        self.connection = connection
        self.stopping = stopping

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.sendall(piece)

    def hold(self, first: Callable[[], None], piece: bytes = b"") -> None:
        first()
        self.drip(piece)

    def drip(self, piece: bytes = b"") -> None:
        self.connection.settimeout(0.01)
        while not self.stopping.is_set():
            if piece:
                self.connection.sendall(piece)
            with suppress(TimeoutError):
                if not self.connection.recv(1):
                    return

    def reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def respond(
        self,
        body: Body,
        status: str = "200 OK",
        *headers: str,
        then: Callable[[], None] = lambda: None,
        before: bytes = b"",
    ) -> None:
        lines = [f"HTTP/1.1 {status}", "connection: close", *headers]
        if not any(line.lower().startswith("content-type") for line in headers):
            lines.append("content-type: text/event-stream")
        self.send(before + "\r\n".join(lines).encode() + b"\r\n\r\n", body)
        then()


def chunked(body: Body, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n0\r\n%s\r\n" % (len(body), extension, body, trailer)


CHUNKED = "transfer-encoding: chunked"
ERROR = b'{"error": {"type": "some_error", "message": "your key ' + KEY.encode() + b' is odd"}}'
JSON = "content-type: application/json"
HTML = b"<!doctype html><html><body>" + b"<p>Gateway</p>" * 200

BOMB = gzip.compress(b"{" * 20_000_000)

# The whole answer comes all the same.
HARMLESS: dict[str, Fault] = {
    "by the book": lambda t, b: t.respond(b),
    "HTTP/1.0": lambda t, b: t.send(b"HTTP/1.0 200 OK\r\n\r\n", b),
    "in chunks with extensions and trailers": lambda t, b: t.respond(
        chunked(b, b";a=b", b"x-sum: 1\r\n"), "200 OK", CHUNKED
    ),
    "byte by byte": lambda t, b: t.respond(
        b"", then=lambda: t.send(*(b[i : i + 1] for i in range(len(b))))
    ),
    "continue first": lambda t, b: t.respond(b, before=b"HTTP/1.1 100 Continue\r\n\r\n"),
    "early hints first": lambda t, b: t.respond(
        b, before=b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    ),
    "a mark of UTF-8 and line ends of Windows": lambda t, b: t.respond(
        b"\xef\xbb\xbf" + b.replace(b"\n", b"\r\n")
    ),
    "line ends of old Macs": lambda t, b: t.respond(b.replace(b"\n", b"\r")),
    "comments in between": lambda t, b: t.respond(b.replace(b"\n\n", b"\n: hm\n\n: hm\n\n")),
    "events that nobody knows": lambda t, b: t.respond(b"event: new\ndata: {}\n\n" + b),
    "the end twice": lambda t, b: t.respond(b + b.rstrip().rpartition(b"\n\n")[2] + b"\n\n"),
    "noise behind the end": lambda t, b: t.respond(b + b"\n\n\xff\xfe{]\n\n" + b),
    "packed": lambda t, b: t.respond(gzip.compress(b), "200 OK", "content-encoding: gzip"),
    "called plain text": lambda t, b: t.respond(b, "200 OK", "content-type: text/plain"),
    "called nothing": lambda t, b: t.respond(b, "200 OK", "content-type:"),
    "a length that is right and more behind it": lambda t, b: t.respond(
        b + b"HTTP/1.1 500 No\r\n\r\n", "200 OK", f"content-length: {len(b)}"
    ),
    "no end of the connection": lambda t, b: (
        t.respond(chunked(b)[:-5], "200 OK", CHUNKED),
        t.drip(),
    )[0],
}

# Nothing of it may be taken for an answer.
HARMFUL: dict[str, Fault] = {
    "a closed door": lambda t, b: None,
    "a reset": lambda t, b: t.reset(),
    "silence": lambda t, b: t.drip(),
    "half a status line": lambda t, b: t.send(b"HTTP/1."),
    "a status line and silence": lambda t, b: t.hold(lambda: t.send(b"HTTP/1.1 200 OK\r\n")),
    "a head that drips": lambda t, b: t.hold(lambda: t.send(b"HTTP/1.1 200 OK\r\nx: "), b"y"),
    "headers without an end": lambda t, b: t.hold(
        lambda: t.send(b"HTTP/1.1 200 OK\r\n"), b"a: b\r\n"
    ),
    "no HTTP": lambda t, b: t.send(b"220 mail.example ESMTP\r\n" * 9),
    "binary": lambda t, b: t.send(bytes(range(256)) * 99),
    "HTTP/2": lambda t, b: t.send(b"\0\0\x12\x04\0\0\0\0\0" + b"\0" * 18),
    "TLS": lambda t, b: t.send(b"\x15\x03\x03\0\x02\x02\x46"),
    "a header of 200 kB": lambda t, b: t.respond(b, "200 OK", "x: " + "y" * 200_000),
    "20,000 headers": lambda t, b: t.respond(b, "200 OK", *(f"x{n}: y" for n in range(20_000))),
    "a header without a colon": lambda t, b: t.respond(b, "200 OK", "nothing at all"),
    "a length below zero": lambda t, b: t.respond(b, "200 OK", "content-length: -1"),
    "a length that is none": lambda t, b: t.respond(b, "200 OK", "content-length: many"),
    "a length that is too small": lambda t, b: t.respond(b, "200 OK", "content-length: 20"),
    "a length that is too large": lambda t, b: t.respond(
        b[: len(b) // 2], "200 OK", "content-length: 999999"
    ),
    "chunks of a size that is none": lambda t, b: t.respond(b"xyz\r\n" + b, "200 OK", CHUNKED),
    "a chunk of 16 EB": lambda t, b: t.respond(b"ffffffffffffffff\r\n" + b[:40], "200 OK", CHUNKED),
    "a chunk that is cut": lambda t, b: t.respond(chunked(b)[: len(b) // 2], "200 OK", CHUNKED),
    "half the answer and a reset": lambda t, b: t.respond(b[: len(b) // 2], then=t.reset),
    "half the answer and silence": lambda t, b: t.hold(lambda: t.respond(b[: len(b) // 2])),
    "half the answer and comments": lambda t, b: (t.respond(b[: len(b) // 2]), t.drip(b": a\n\n"))[
        0
    ],
    "half an event that goes on": lambda t, b: t.hold(lambda: t.respond(b"data: "), b"x"),
    "an event of 2 MB": lambda t, b: t.respond(b"data: " + b"x" * 2_000_000 + b"\n\n" + b),
    "nothing in it": lambda t, b: t.respond(b""),
    "no content": lambda t, b: t.respond(b"", "204 No Content"),
    "a page": lambda t, b: t.respond(HTML, "200 OK", "content-type: text/html"),
    "a page called a stream": lambda t, b: t.respond(HTML),
    "an answer that is no stream": lambda t, b: t.respond(b'{"id": "x"}', "200 OK", JSON),
    "an error called fine": lambda t, b: t.respond(ERROR, "200 OK", JSON),
    "UTF-16": lambda t, b: t.respond(b.decode("utf-8", "replace").encode("utf-16")),
    "zeros": lambda t, b: t.respond(b"\0" * 100_000),
    "events that are no JSON": lambda t, b: t.respond(b.replace(b'"', b"'")),
    "events that are lists": lambda t, b: t.respond(b"data: [1, 2]\n\ndata: 3\n\ndata: null\n\n"),
    "an event that nests 50,000 deep": lambda t, b: t.respond(
        b'data: {"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n\n"
    ),
    "packed, it says": lambda t, b: t.respond(b, "200 OK", "content-encoding: gzip"),
    "packed and cut": lambda t, b: t.respond(
        gzip.compress(b)[:60], "200 OK", "content-encoding: gzip"
    ),
    "packed in a way of its own": lambda t, b: t.respond(b, "200 OK", "content-encoding: zpaq"),
    "a bomb": lambda t, b: t.respond(
        gzip.compress(b"\0" * 5_000_000), "200 OK", "content-encoding: gzip"
    ),
    "a redirect to nowhere": lambda t, b: t.respond(b"", "307 Elsewhere"),
    "a redirect to another host": lambda t, b: t.respond(
        b, "307 Elsewhere", "location: http://127.0.0.2:9/v1"
    ),
    "a redirect in a circle": lambda t, b: t.respond(b"", "308 Again", "location: /v1/again"),
    "a redirect that drops the body": lambda t, b: t.respond(b, "303 Other", "location: /"),
    **{
        f"status {status}": lambda t, b, status=status: t.respond(ERROR, f"{status} No", JSON)
        for status in (400, 401, 403, 404, 408, 413, 418, 422, 429, 500, 502, 503, 529, 599, 999)
    },
    "a page with status 502": lambda t, b: t.respond(HTML, "502 Bad", "content-type: text/html"),
    "an error of 3 MB": lambda t, b: t.respond(ERROR + b"x" * 3_000_000, "500 No", JSON),
    "an error that drips": lambda t, b: (
        t.respond(b"{", "500 No", "content-length: 99"),
        t.drip(b" "),
    )[0],
    "an error without an end": lambda t, b: t.hold(
        lambda: t.respond(b"{", "500 No"), b"x" * 99_999
    ),
    "an error that is a bomb": lambda t, b: t.respond(BOMB, "500 No", "content-encoding: gzip"),
    "an error packed twice": lambda t, b: t.respond(
        gzip.compress(BOMB), "400 No", "content-encoding: gzip, gzip"
    ),
    "an error without words": lambda t, b: t.respond(b"", "500 No"),
    "a time to wait that is none": lambda t, b: t.respond(
        ERROR, "429 No", JSON, "retry-after: soon"
    ),
}


@pytest.fixture
def misbehaving() -> Iterator[Any]:
    """A server whose ``fault`` and ``body`` say what it does."""
    stopping = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            data = b""
            with suppress(OSError):
                while b"\r\n\r\n" not in data:
                    data += self.request.recv(65536) or b"\r\n\r\n"
                head, _, rest = data.partition(b"\r\n\r\n")
                length = int((head.lower().partition(b"content-length:")[2].split() or [b"0"])[0])
                while len(rest) < length:
                    rest += self.request.recv(65536)
                server.fault(Talk(self.request, stopping), server.body)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        fault: Fault = staticmethod(lambda talk, body: None)
        body = b""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    stopping.set()
    server.shutdown()
    server.server_close()


async def twice(server: Any, provider: str, fault: Fault) -> tuple[Heard, Heard]:
    """What is heard while the server does that, and after it."""
    url = f"http://127.0.0.1:{server.server_address[1]}"
    server.fault, server.body = fault, recorded(ANSWERS[provider]).rstrip() + b"\n\n"
    # No hurry where the whole answer has to come.
    waits = 0.3 if fault in HARMFUL.values() else 60
    heard = await hear(model_for(provider, url, timeout=waits))
    server.fault = HARMLESS["by the book"]
    again = await hear(model_for(provider, url))
    await close_clients()
    return heard, again


@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize("fault", HARMLESS)
def test_what_does_no_harm_is_read_as_the_whole_answer(
    misbehaving: Any, provider: str, fault: str
) -> None:
    heard, again = asyncio.run(twice(misbehaving, provider, HARMLESS[fault]))
    assert heard.error is None
    assert again.message is not None
    assert heard.message is not None
    assert (heard.message.parts, heard.message.stop_reason) == (
        again.message.parts,
        again.message.stop_reason,
    )


@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize("fault", HARMFUL)
def test_what_does_harm_is_one_sentence_and_the_next_call_works(
    misbehaving: Any, monkeypatch: pytest.MonkeyPatch, provider: str, fault: str
) -> None:
    monkeypatch.setattr("sagents_nb.models.providers.streaming.LONGEST_EVENT", 1_000_000)
    heard, again = asyncio.run(twice(misbehaving, provider, HARMFUL[fault]))
    assert heard.message is None
    assert not heard.may_run
    assert isinstance(heard.error, ModelError)
    text = str(heard.error)
    assert "\n" not in text
    assert text.endswith((".", "…", '"'))
    assert KEY not in text
    assert len(text) < 1000
    assert again.error is None
    assert again.message is not None


@pytest.mark.parametrize("fault", ["an error without an end", "an error that is a bomb"])
def test_of_the_body_of_an_error_no_more_is_unpacked_and_kept_than_is_looked_at(
    misbehaving: Any, fault: str
) -> None:
    asyncio.run(twice(misbehaving, "anthropic", HARMLESS["by the book"]))  # what is loaded once
    tracemalloc.start()
    try:
        heard, _ = asyncio.run(twice(misbehaving, "anthropic", HARMFUL[fault]))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "HTTP 500" in str(heard.error)
    assert most < 5_000_000
