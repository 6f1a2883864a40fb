"""What a journal says: which of its rows still count, and the state they come to.

Nothing here knows a session, so that a store can read a conversation that nobody has open.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import msgspec

from ..errors import ConfigurationError
from ..frozenlist import FrozenList
from ..interrupts import ActionRequest, Decision, Interrupt
from ..messages import Message, ToolResult, Usage
from ..serialization import VERSION, migrated
from ..state import State
from ..todos import LooseTodo, numbered

Row = tuple[int, str, Any]
"""A row of a journal: its number, its kind and its data."""

# Of these there is one row per name, of the others one at all.
_NAMES = {
    "metadata": ("key",),
    "queued": ("id",),
    "decision": ("interrupt_id", "tool_call_id"),
    "call": ("tool_call_id",),
}
_SINGLE = ("todos", "interrupt", "run")


class Rows:
    """Which rows of a journal still count; ``take`` is given each of them once, in order.

    ``messages`` are the rows of the history, and ``numbers`` the numbers that its messages
    have in the conversation. ``slots`` holds the newest row of whatever has one value only, by
    kind and name. The ``superseded`` rows can be deleted, if all of them are.
    """

    def __init__(self) -> None:
        self.messages = array("q")
        self.numbers = array("q")
        self.slots: dict[tuple[Any, ...], int] = {}
        self.superseded: list[int] = []

    def __len__(self) -> int:
        """How many rows count."""
        return len(self.messages) + len(self.slots)

    def take(self, seq: int, kind: str, data: Any) -> None:
        """Take the next row; raises ValueError, TypeError or LookupError if it is damaged."""
        if kind == "message":
            number = data["n"]
            if self.numbers and number <= self.numbers[-1]:
                raise ValueError(f"message {number} comes after message {self.numbers[-1]}")
            self.numbers.append(number)
            self.messages.append(seq)
            self._end_turn()
        elif kind == "cut":
            self._cut(data["from"])
            self.superseded.append(seq)
        elif kind == "begin":
            self._cut(0)
            self.superseded += self.slots.values()
            self.slots = {(kind,): seq}
        elif kind == "taken":
            for id in list(data["ids"]):
                self._drop("queued", id)
            self.superseded.append(seq)
        elif kind in _NAMES or kind in _SINGLE:
            slot = (kind, *(data[field] for field in _NAMES.get(kind, ())))
            if kind == "interrupt" and data is not None:  # it is asked, or asked again
                self._drop_all("decision", data["id"])
            self._drop(*slot)
            if data is None or (kind == "metadata" and "value" not in data):
                self.superseded.append(seq)
            else:
                self.slots[slot] = seq
        else:
            raise ValueError(f"there is no kind {kind!r}")

    def _cut(self, number: int) -> None:
        kept = bisect_left(self.numbers, number)
        self.superseded += self.messages[kept:]
        del self.messages[kept:], self.numbers[kept:]
        self._end_turn()

    def _end_turn(self) -> None:
        self._drop_all("call")
        self._drop_all("decision")

    def _drop(self, *slot: Any) -> None:
        seq = self.slots.pop(slot, None)
        if seq is not None:
            self.superseded.append(seq)

    def _drop_all(self, *slot: Any) -> None:
        for found in [found for found in self.slots if found[: len(slot)] == slot]:
            self._drop(*found)


class Waiting(msgspec.Struct, frozen=True):
    """A message that was acknowledged and is no part of the history yet.

    ``when`` is "queue", "steer" or "follow_up"; those of one ``run_id`` belong together.
    """

    id: int
    run_id: str
    when: str
    message: Message


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a tool call without a tool message: it started, or has a result.

    ``seq`` is the row's, so that one can tell what came first.
    """

    tool_call_id: str
    name: str
    result: ToolResult | None = None
    seq: int = 0


class Decided(msgspec.Struct, frozen=True, omit_defaults=True):
    """What somebody said to one request of an interrupt.

    ``in_doubt``: they were asked whether the call had run.
    """

    interrupt_id: str
    tool_call_id: str
    decision: Decision
    request: ActionRequest
    by: str = "user"
    in_doubt: bool = False
    seq: int = 0


class LastRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """The newest run: "running" if it has not ended.

    ``usage`` is that of all runs, without that of the messages from number ``since`` on if it
    has not ended.
    """

    run_id: str
    status: str
    error: str | None = None
    usage: Usage = Usage()
    since: int = 0


class Folded(msgspec.Struct):
    """What a whole journal comes to.

    The metadata of ``state`` are as they were written, without any ``state_schema``.
    ``problems`` are sentences about rows that could not be read; the rest stands.
    """

    rows: Rows
    state: State
    version: int
    queued: list[Waiting]
    calls: list[Call]
    decisions: list[Decided]
    run: LastRun | None
    problems: list[str]


def fold(journal: Iterable[Row]) -> Folded:
    """What the rows of a journal come to, damaged ones left out.

    Raises :class:`~sagents_nb.errors.ConfigurationError` if a newer version wrote it.
    """
    rows, values, problems = Rows(), dict[int, Any](), list[str]()
    for seq, kind, data in journal:
        try:
            if kind == "begin" and data["version"] > VERSION:
                raise ConfigurationError(
                    f"This conversation was written by a newer sagents_nb (version "
                    f"{data['version']}, this one reads {VERSION}); upgrade sagents_nb."
                )
            rows.take(seq, kind, data)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            if isinstance(error, ConfigurationError):
                raise
            problems.append(f"Row {seq} ({kind}) cannot be read: {error}.")
            continue
        values[seq] = data

    def named(kind: str) -> list[Any]:
        found = [seq for slot, seq in rows.slots.items() if slot[0] == kind]
        return [{**values[seq], "seq": seq} for seq in found]

    def only(kind: str) -> Any:
        return values.get(rows.slots.get((kind,), -1))

    version = (only("begin") or {}).get("version", VERSION)
    data = {
        "messages": [values[seq] for seq in rows.messages],
        "todos": only("todos") or [],
        "metadata": {row["key"]: row["value"] for row in named("metadata")},
        "interrupt": only("interrupt"),
    }
    queued = named("queued")
    if version != VERSION:
        data = migrated(data, version)
        messages = [row.get("message") for row in queued]
        messages = migrated({"messages": messages}, version)["messages"]
        queued = [{**row, "message": m} for row, m in zip(queued, messages, strict=True)]

    def read(values: Any, kind: Any, what: str) -> list[Any]:
        return list(_readable(values if isinstance(values, list) else [], kind, what, problems))

    interrupts = read([data["interrupt"]], Interrupt | None, "interrupt")
    runs = read([only("run")], LastRun | None, "run")
    state = State(
        messages=FrozenList(read(data["messages"], Message, "message")),
        todos=numbered(read(data["todos"], LooseTodo, "todo")),
        metadata=data["metadata"],
        interrupt=interrupts[0] if interrupts else None,
    )
    return Folded(
        rows=rows,
        state=state,
        version=version,
        queued=read(queued, Waiting, "queued message"),
        calls=read(named("call"), Call, "call"),
        decisions=read(named("decision"), Decided, "decision"),
        run=runs[0] if runs else None,
        problems=problems,
    )


def _readable(values: Iterable[Any], kind: Any, what: str, problems: list[str]) -> Iterable[Any]:
    for value in values:
        try:
            found = msgspec.convert(value, kind)
            yield found.todo if isinstance(found, LooseTodo) else found
        except (msgspec.ValidationError, ConfigurationError) as error:
            problems.append(f"A stored {what} cannot be read: {error}.")
