"""The panel's own protocol over a socket: what a page of a notebook hears and says, here too.

Frames are the messages of widgets/PROTOCOL.md as JSON text. A request has the same id when a page
asks again after it was cut off, and is done once.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from functools import partial
from typing import Any

import msgspec
from starlette.websockets import WebSocket

from ... import kinds
from ...errors import ConfigurationError
from ...panel.publisher import publisher_of
from ...panel.requests import answer
from ...runtime.thread import runtime
from ...session import Session
from ..once_kept import OnceKept
from ..threads import Thread

MOST_WAITING = 256
MOST_BYTES = 1_000_000
"""What waits for a page that reads slowly; beyond either it is given a snapshot once it reads."""

_MADE_ANEW = ("events", "snapshot")


class Stream:
    """One page that looks at ``thread`` over ``socket``, on the loop of the server.

    It is made, and ended, in a thread: whatever asks the runtime's loop may have to wait for a
    tool, and the server must not.
    """

    def __init__(self, socket: WebSocket, thread: Thread, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = socket
        self._thread = thread
        self._loop = loop
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._behind = False
        self._woken = asyncio.Event()
        self._publisher = publisher_of(thread.session)
        self._once_kept = OnceKept(thread.session)
        self._unwatch = thread.session.watch(f"page-{uuid.uuid4().hex[:12]}")

    def end(self) -> None:
        """Tell that page nothing any more."""
        runtime.post(self._publisher.leave, self._tell)
        self._unwatch()

    def _tell(self, message: dict[str, Any]) -> None:
        """On the runtime's loop: a message is read at once, since it may change afterwards."""
        take = partial(self._take, message.get("type", ""), msgspec.json.encode(message))
        self._once_kept.tell(partial(self._loop.call_soon_threadsafe, take))

    def _take(self, kind: str, frame: bytes) -> None:
        if len(self._waiting) >= MOST_WAITING or self._bytes + len(frame) > MOST_BYTES:
            self._waiting = deque(each for each in self._waiting if each[0] not in _MADE_ANEW)
            self._bytes = sum(len(each[1]) for each in self._waiting)
            self._behind = self._behind or bool(self._waiting or kind in _MADE_ANEW)
        if not (self._behind and kind in _MADE_ANEW):
            self._waiting.append((kind, frame))
            self._bytes += len(frame)
        self._woken.set()

    async def tell(self) -> None:
        """Send what waits, until the thread is closed."""
        while True:
            self._woken.clear()
            while self._waiting:
                kind, frame = self._waiting.popleft()
                self._bytes -= len(frame)
                await self._socket.send_text(frame.decode())
                if kind == "closed":
                    return
            if self._behind:
                self._behind = False
                self._hello(0)
            await self._woken.wait()

    async def hear(self) -> None:
        """Do what the page asks, until it is gone."""
        while (message := await self._socket.receive())["type"] != "websocket.disconnect":
            try:
                said = msgspec.json.decode(message.get("text") or message.get("bytes") or b"")
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                said = None
            if not isinstance(said, dict):
                refusal = {"type": "error", "id": "", "message": "A frame is a JSON object."}
                runtime.post(self._tell, refusal)
            elif said.get("type") == "hello":
                have: Any = said.get("have")
                self._hello(have if kinds.whole(0).fits(have) else 0)
            else:
                runtime.post(answer, self._thread.session, said, self._tell, _no_fork)

    def _hello(self, have: int) -> None:
        runtime.post(self._publisher.hello, self._tell, have)


def _no_fork(session: Session, before: int | None) -> tuple[Session, str]:
    raise ConfigurationError("A thread of a hub is not forked; make a new one of its kind.")
