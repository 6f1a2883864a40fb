"""A provider on the loopback: it serves bodies byte for byte, and misbehaves on request."""

from __future__ import annotations

import asyncio
import copy
import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from sagents_nb.messages import Delta, Message
from sagents_nb.models import AnthropicModel, ModelRequest, OpenAIChatModel, OpenAIModel
from sagents_nb.models.providers.clients import close_clients

STREAMS = Path(__file__).parent.parent / "fixtures" / "streams"
KEY = "sk-canary-8d1f6c3b5a7e9024-never-to-be-seen"


@dataclass
class Answer:
    """What the server sends. Without ``chunked`` or ``length`` only its EOF ends a body."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    framing: str = "close"  # or "chunked", "length"
    end: str = "eof"  # or "reset", "stall"
    pieces: list[bytes] | None = None
    delay: float = 0.0  # seconds before each piece
    hold: float = 0.0  # seconds before anything


@dataclass
class Recorded:
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Provider:
    """The server; ``answer`` is an Answer or a function of the request."""

    def __init__(self) -> None:
        self.answer: Answer | Callable[[Recorded], Answer] = Answer()
        self.requests: list[Recorded] = []
        self.disconnected = threading.Event()
        self.stopping = threading.Event()
        provider = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                try:
                    provider.serve(self.request)
                except OSError:
                    provider._gone()

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 64

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def _gone(self) -> None:
        self.disconnected.set()

    def serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = b""
        while True:
            while b"\r\n\r\n" not in buffer:
                if not (got := connection.recv(65536)):
                    return
                buffer += got
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines)}
            length = int(headers.get("content-length", 0))
            while len(buffer) < length:
                buffer += connection.recv(65536)
            request = Recorded(first.split()[1], headers, buffer[:length])
            buffer = buffer[length:]
            self.requests.append(request)
            answer = self.answer(request) if callable(self.answer) else self.answer
            if not self._answer(connection, answer):
                return

    def _answer(self, connection: socket.socket, answer: Answer) -> bool:
        if answer.hold:
            self.stopping.wait(answer.hold)
        headers = {"content-type": "text/event-stream"} | answer.headers
        pieces = [answer.body] if answer.pieces is None else answer.pieces
        if answer.framing == "chunked":
            headers["transfer-encoding"] = "chunked"
            pieces = [b"%x\r\n%s\r\n" % (len(p), p) for p in pieces if p]
            if answer.end == "eof":
                pieces.append(b"0\r\n\r\n")
        elif answer.framing == "length":
            headers["content-length"] = str(sum(map(len, pieces)))
        else:
            headers["connection"] = "close"
        lines = [f"HTTP/1.1 {answer.status} Whatever", *(f"{k}: {v}" for k, v in headers.items())]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        if answer.delay:
            for piece in pieces:
                self.stopping.wait(answer.delay)
                connection.sendall(piece)
        else:
            connection.sendall(b"".join(pieces))
        if answer.end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            return False
        if answer.end == "stall":
            connection.settimeout(0.01)
            while not self.stopping.is_set():
                try:
                    if not connection.recv(1):
                        self._gone()
                        return False
                except TimeoutError:
                    continue
        return answer.framing != "close" and answer.end == "eof"


MODELS = {"anthropic": AnthropicModel, "openai": OpenAIModel, "openai-chat": OpenAIChatModel}


def model_for(provider: str, url: str, **options: Any) -> Any:
    """A model of that provider that talks to ``url``."""
    base = url if provider == "anthropic" else url + "/v1"
    return MODELS[provider]("some-model", api_key=KEY, base_url=base, **options)


def provider_of(stream: str) -> str:
    """Which provider a recorded stream came from."""
    if stream.startswith("anthropic"):
        return "anthropic"
    return "openai" if "responses" in stream else "openai-chat"


def recorded(name: str) -> bytes:
    """The bytes of a recorded stream."""
    return (STREAMS / f"{name}.sse").read_bytes()


RECORDED = sorted(path.stem for path in STREAMS.glob("*.sse"))


@dataclass
class Heard:
    """What came out of a model: its deltas, then a message or an error."""

    deltas: list[Delta] = field(default_factory=list)
    message: Message | None = None
    error: Exception | None = None

    @property
    def may_run(self) -> bool:
        """Whether the loop would run a tool because of this."""
        message = self.message
        return bool(
            message is not None
            and message.stop_reason == "tool_use"
            and any(call.error is None for call in message.tool_calls)
        )


async def hear(model: Any, request: ModelRequest | None = None) -> Heard:
    """Everything a model says to a request."""
    heard = Heard()
    try:
        async for item in model.stream(request or ModelRequest([Message.user("hi")])):
            if isinstance(item, Message):
                heard.message = item
            else:
                heard.deltas.append(item)
    except Exception as error:
        heard.error = error
    return heard


def ask(model: Any, request: ModelRequest | None = None) -> Heard:
    """:func:`hear`, from sync code."""

    async def main() -> Heard:
        try:
            return await hear(model, request)
        finally:
            await close_clients()

    return asyncio.run(main())


def say(provider: Provider, name: str, events: list[Any], names: bool = True) -> Heard:
    """What the model makes of these events; text is sent as it is."""
    body = ""
    for event in events:
        if isinstance(event, str):
            body += event
        else:
            head = f"event: {event['type']}\n" if names and "type" in event else ""
            body += f"{head}data: {json.dumps(event)}\n\n"
    provider.answer = Answer(body.encode(), framing="chunked")
    return ask(model_for(name, provider.url))


def message_of(heard: Heard) -> Message:
    """The message that was heard, which is the same after a trip through the store."""
    assert heard.error is None
    assert heard.message is not None
    data = msgspec.json.encode(heard.message)
    assert msgspec.json.decode(data, type=Message) == heard.message
    return heard.message


ANSWERS = {
    "anthropic": "anthropic_tool_use",
    "openai": "openai_responses_text",
    "openai-chat": "openai_chat_text",
}


def sent(provider: Provider, name: str, messages: list[Message], **more: Any) -> dict[str, Any]:
    """The body that the server received."""
    options = more.pop("options", {})
    request = ModelRequest(messages, more.pop("system", ""), more.pop("tools", ()), options)
    before = copy.deepcopy(request)
    provider.answer = Answer(recorded(ANSWERS[name]), framing="chunked")
    heard = ask(model_for(name, provider.url, **more), request)
    assert heard.error is None
    assert request == before
    body = provider.requests[-1].body
    assert body.pop("stream") is True
    return body
