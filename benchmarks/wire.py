"""What a streamed answer costs between kernel and page, without a browser.

A real panel streams 20 kB in 5,000 deltas over some seconds to one page. Counted is what a
kernel would put on the wire: the whole Jupyter message, with header, parent and envelope. Beside
it, for the same stream: a text trait that grows with each delta, and one message per delta.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import comm
from comm.base_comm import BaseComm
from jupyter_client.session import Session as Jupyter

import sagents_nb as sa
from sagents_nb.events import Event, MessageUpdate
from sagents_nb.notebook.widget import Panel
from sagents_nb.panel.protocol import wire
from sagents_nb.panel.publisher import publisher_of
from sagents_nb.runtime.thread import runtime

DELTAS = 5_000
SECONDS = 3.0
MOST_BYTES = 150_000
MOST_MESSAGES = 25  # in any second

JUPYTER = Jupyter(key=b"a key, so that messages are signed")
PARENT = JUPYTER.msg("execute_request", {"code": ""})["header"]


def size(data: dict[str, Any]) -> int:
    """The bytes of one comm message with that data."""
    message = JUPYTER.msg("comm_msg", {"comm_id": "c" * 32, "data": data}, parent=PARENT)
    return sum(len(frame) for frame in JUPYTER.serialize(message))


class RecordingComm(BaseComm):  # type: ignore[misc]
    """Keeps when each message was sent and how large it was."""

    sent: ClassVar[list[tuple[float, int]]] = []

    def publish_msg(self, msg_type: str, data: Any = None, **rest: Any) -> None:
        """Take a message."""
        if msg_type == "comm_msg":
            self.sent.append((time.monotonic(), size(data)))


class Steady(sa.ChatModel):
    """Says the deltas, spread over some seconds."""

    name = "steady"

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """Say it."""
        pieces = [f"{i % 1000:03} " for i in range(DELTAS)]
        for i, piece in enumerate(pieces):
            if i % 50 == 0:
                await asyncio.sleep(SECONDS * 50 / DELTAS)
            yield piece
        yield sa.Message.assistant("".join(pieces), usage=sa.Usage(10, DELTAS))


def busiest_second(times: list[float]) -> int:
    """The most messages within one second."""
    return max(bisect_left(times, began + 1) - i for i, began in enumerate(times))


def measure() -> tuple[list[tuple[float, int]], list[Event]]:
    """What was sent, and the events it was made from."""
    comm.create_comm = RecordingComm
    session = sa.Session(sa.Agent(Steady()))
    panel = Panel(session)
    RecordingComm.sent.clear()
    events: list[Event] = []
    session.subscribe(events.append)
    hello = {"method": "custom", "content": {"type": "hello", "have": 0}}
    panel.comm.handle_msg({"content": {"data": hello}, "buffers": []})
    session.send("Tell me everything.").result()
    publisher = publisher_of(session)
    while not runtime.call(lambda: publisher.idle):
        time.sleep(0.01)
    return RecordingComm.sent, events


def growing_trait(events: list[Event]) -> tuple[int, int]:
    """Bytes and messages when each delta sends the text so far."""
    text, total, count = "", 0, 0
    for event in events:
        if isinstance(event, MessageUpdate):
            text += event.delta.text
            total += size({"method": "update", "state": {"text": text}, "buffer_paths": []})
            count += 1
    return total, count


def message_per_delta(events: list[Event]) -> tuple[int, int]:
    """Bytes and messages when each event travels alone."""
    total = 0
    for event in events:
        content = {"type": "events", "after": event.seq - 1, "seq": event.seq}
        total += size({"method": "custom", "content": {**content, "events": [wire(event)]}})
    return total, len(events)


def main() -> None:
    """Print the table."""
    sent, events = measure()
    times, sizes = [t for t, _ in sent], [n for _, n in sent]
    seconds = times[-1] - times[0]
    characters = sum(len(e.delta.text) for e in events if isinstance(e, MessageUpdate))
    print(f"{characters:,} characters in {DELTAS:,} deltas over {seconds:.1f} s\n")
    print(f"{'':24}{'bytes':>14}{'messages':>11}{'per second':>13}")
    rows = [
        ("growing trait", *growing_trait(events)),
        ("one message per delta", *message_per_delta(events)),
        ("the panel", sum(sizes), len(sizes)),
    ]
    for name, total, count in rows:
        print(f"{name:24}{total:>14,}{count:>11,}{count / seconds:>13,.1f}")
    most = busiest_second(times)
    for text, good in (
        (f"< {MOST_BYTES // 1000} kB: {sum(sizes) / 1000:.1f} kB", sum(sizes) < MOST_BYTES),
        (f"≤ {MOST_MESSAGES} messages in any second: {most}", most <= MOST_MESSAGES),
    ):
        print(f"{'met' if good else 'MISSED':>6}  {text}")


if __name__ == "__main__":
    main()
