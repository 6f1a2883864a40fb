"""The panel's own protocol: what a page of a notebook hears and says, here over a socket.

Frames are the messages of widgets/PROTOCOL.md as JSON text. A request has the same id when a page
asks again after it was cut off, and is done once. Who only hears may have an event stream.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any, NamedTuple

import msgspec
from starlette.websockets import WebSocket

from ... import kinds
from ...errors import ConfigurationError, SagentsError
from ...panel.publisher import publisher_of
from ...panel.requests import Reply, answer
from ...runtime.thread import runtime
from ...serialization import encoded
from ...session import Session
from ..event_log import ThreadEvent
from ..once_kept import OnceKept
from ..threads import Thread
from .patience import MOST_WAITING

MOST_BYTES = 1_000_000
"""What waits for a page that reads slowly; beyond it, or too many, it is given a snapshot."""

_MADE_ANEW = ("events", "snapshot")
_BEGINS = ("send", "retry")
"""Requests by which a thread that does nothing begins a run."""


class Frame(NamedTuple):
    """One message to a page: its type, the number of the last event in it, and JSON."""

    kind: str
    seq: int | None
    data: bytes


class Stream:
    """One page that looks at ``thread``, on the ``loop`` of the server.

    ``room`` is taken by a run that is about to begin; entering it raises where there is none. It is
    made, and ended, in a thread: whatever asks the runtime's loop may have to wait for a tool, and
    the server must not.
    """

    def __init__(
        self,
        thread: Thread,
        loop: asyncio.AbstractEventLoop,
        room: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._thread = thread
        self._loop = loop
        self._room = room
        self._waiting: deque[Frame] = deque()
        self._bytes = 0
        self._behind = False
        self._woken = asyncio.Event()
        self._publisher = publisher_of(thread.session)
        self._once_kept = OnceKept(thread.session)
        self._unwatch = thread.session.watch(f"page-{uuid.uuid4().hex[:12]}")
        self._in_notebook = thread.record.in_notebook
        if self._in_notebook:  # its session goes on when it is shown no more
            runtime.call(thread.log.listen, self._hear_end)

    def end(self) -> None:
        """Tell that page nothing any more."""
        runtime.post(self._publisher.leave, self._tell)
        runtime.post(self._thread.log.leave, self._hear_end)
        self._unwatch()

    def _hear_end(self, event: ThreadEvent | None) -> None:
        if event is None:
            self._tell({"type": "closed"})

    def _tell(self, message: dict[str, Any]) -> None:
        """On the runtime's loop: a message is read at once, since it may change afterwards."""
        data = encoded(message)
        take = partial(self._take, Frame(message.get("type", ""), message.get("seq"), data))
        self._once_kept.tell(partial(self._loop.call_soon_threadsafe, take))

    def _take(self, frame: Frame) -> None:
        size = len(frame.data)
        if len(self._waiting) >= MOST_WAITING or self._bytes + size > MOST_BYTES:
            self._waiting = deque(each for each in self._waiting if each.kind not in _MADE_ANEW)
            self._bytes = sum(len(each.data) for each in self._waiting)
            self._behind = self._behind or bool(self._waiting or frame.kind in _MADE_ANEW)
        if not (self._behind and frame.kind in _MADE_ANEW):
            self._waiting.append(frame)
            self._bytes += size
        self._woken.set()

    async def frames(self) -> AsyncIterator[Frame]:
        """What waits, and what comes, until the thread is closed."""
        while True:
            self._woken.clear()
            while self._waiting:
                frame = self._waiting.popleft()
                self._bytes -= len(frame.data)
                yield frame
                if frame.kind == "closed":
                    return
            if self._behind:
                self._behind = False
                self.hello(0)
            await self._woken.wait()

    async def tell(self, socket: WebSocket) -> None:
        """Send what there is to tell."""
        async for frame in self.frames():
            await socket.send_text(frame.data.decode())

    async def hear(self, socket: WebSocket) -> None:
        """Do what the page asks, until it is gone."""
        while (message := await socket.receive())["type"] != "websocket.disconnect":
            try:
                said = msgspec.json.decode(message.get("text") or message.get("bytes") or b"")
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                said = None
            if not isinstance(said, dict):
                no_object = {"type": "error", "id": "", "message": "A frame is a JSON object."}
                runtime.post(self._tell, no_object)
            elif said.get("type") == "hello":
                have: Any = said.get("have")
                self.hello(have if kinds.whole(0).fits(have) else 0)
            elif said.get("type") in _BEGINS:
                await asyncio.to_thread(self._begin, said)
            else:
                runtime.post(self._answer, said, self._tell)

    def hello(self, have: int) -> None:
        """Tell what came after the event of that number; 0 is nothing."""
        runtime.post(self._publisher.hello, self._tell, have)

    def _answer(self, said: dict[str, Any], tell: Reply) -> bool:
        """On the runtime's loop; whether that is told of it."""
        # In a notebook it says who decided: somebody there, or here.
        how = (_elsewhere, "hub") if self._in_notebook else (_no_fork,)
        return answer(self._thread.session, said, tell, *how)

    def _begin(self, said: dict[str, Any]) -> None:
        """Do what may begin a run, which has room until that is answered; in a thread."""
        room = ExitStack()
        try:
            room.enter_context(self._room())
        except SagentsError as error:
            kind, id = type(error).__name__, said.get("id", "")
            refusal = {"type": "error", "id": id, "kind": kind, "message": str(error)}
            runtime.post(self._tell, refusal)
            return

        def give_back() -> None:  # which may wait for others who look whether there is room
            self._loop.call_soon_threadsafe(self._loop.run_in_executor, None, room.close)

        def tell(message: dict[str, Any]) -> None:
            give_back()
            self._tell(message)

        def begin() -> None:
            if not self._answer(said, tell):
                give_back()

        runtime.post(begin)


def _no_fork(session: Session, before: int | None) -> tuple[Session, str]:
    raise ConfigurationError("A thread of a hub is not forked; make a new one of its kind.")


def _elsewhere(session: Session, before: int | None) -> tuple[Session, str]:
    raise ConfigurationError("A notebook's conversation is forked there: in its panel, by Fork.")


class KeptStream:
    """One page that looks at what is kept: it is told that, and that nothing can be asked."""

    def __init__(self, snapshot: dict[str, Any]) -> None:
        self._snapshot = snapshot

    def end(self) -> None:
        """Nothing was told that would go on."""

    def hello(self, have: int) -> None:
        """It is told all there is, once."""

    async def frames(self) -> AsyncIterator[Frame]:
        """What is kept, and that it is all."""
        for message in (self._snapshot, {"type": "closed"}):
            seq = message.get("seq")
            kind = str(message["type"])
            yield Frame(kind, seq if isinstance(seq, int) else None, encoded(message))

    async def tell(self, socket: WebSocket) -> None:
        """Send it."""
        async for frame in self.frames():
            await socket.send_text(frame.data.decode())

    async def hear(self, socket: WebSocket) -> None:
        """Do nothing, until the page is gone."""
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
