"""Server-sent events: bytes in, events out.

https://html.spec.whatwg.org/multipage/server-sent-events.html, as far as the providers use
it: ``event``, ``data`` and comments; lines end in LF, CRLF or CR.
"""

from __future__ import annotations

Event = tuple[str, bytes]
"""An event's name, "" if it has none, and its data."""


class EventDecoder:
    r"""Splits a body, fed in chunks of any size, into events.

    >>> decoder = EventDecoder()
    >>> decoder.feed(b"event: ping\ndata: {")
    []
    >>> decoder.feed(b"}\n\n")
    [('ping', b'{}')]
    """

    __slots__ = ("_data", "_name", "_rest", "_started", "seen")

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []
        self._started = False
        self.seen = False  # whether there was any event at all

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that ``chunk`` completes."""
        if self._rest:
            chunk = self._rest + chunk
        if not self._started and len(chunk) >= 3:
            self._started = True
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        if b"\r" in chunk:
            # A CR at the end may be half of a CRLF: it waits for what follows.
            held = b"\r" if chunk.endswith(b"\r") else b""
            chunk = chunk.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held
        lines = chunk.split(b"\n")
        self._rest = lines.pop()
        events: list[Event] = []
        for line in lines:
            self._line(line, events)
        return events

    def end(self) -> list[Event]:
        """The last event of a body that ended cleanly but without a final empty line."""
        events: list[Event] = []
        if self._rest:
            self._line(self._rest.removesuffix(b"\r"), events)
            self._rest = b""
        self._line(b"", events)
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif not line:
            if self._data:
                data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                events.append((self._name, data))
                self.seen = True
            self._data = []
            self._name = ""
        elif line.startswith(b"event:"):
            self._name = line[6:].strip().decode("utf-8", "replace")
