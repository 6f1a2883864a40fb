"""What a journal says: which of its rows still count, and the state they come to.

Nothing here knows a session, so that a store can read a conversation that nobody has open.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import msgspec

from ..errors import ConfigurationError
from ..frozenlist import FrozenList
from ..interrupts import ActionRequest, Decision, Interrupt
from ..messages import Message, ToolResult, Usage
from ..serialization import VERSION, migrated
from ..state import LooseTodo, State, Todo, numbered
from .entries import StoredMessage

JournalRow = tuple[int, str, Any]
"""A row of a journal: its number, its kind and its data."""

# Of these there is one row per name, of the others one at all.
_NAMES = {
    "metadata": ("key",),
    "queued": ("id",),
    "decision": ("interrupt_id", "tool_call_id"),
    "call": ("tool_call_id",),
}
_SINGLE = ("todos", "interrupt", "run")
_OF_TURN = ("call", "decision")


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
        self._of_turn: list[tuple[Any, ...]] = []  # slots that the next message empties

    def __len__(self) -> int:
        """How many rows count."""
        return len(self.messages) + len(self.slots)

    def take(self, seq: int, kind: str, data: Any) -> None:
        """Take the next row; raises ValueError, TypeError or LookupError if it is damaged."""
        if kind == "message":
            number = data.n if type(data) is StoredMessage else data["n"]
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
                self._drop_all("decision", data.get("id", ""))
            self._drop(*slot)
            if kind in _OF_TURN:
                self._of_turn.append(slot)
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
        for slot in self._of_turn:
            self._drop(*slot)
        self._of_turn.clear()

    def _drop(self, *slot: Any) -> None:
        seq = self.slots.pop(slot, None)
        if seq is not None:
            self.superseded.append(seq)

    def _drop_all(self, *slot: Any) -> None:
        for found in [found for found in self.slots if found[: len(slot)] == slot]:
            self._drop(*found)


class QueuedMessage(msgspec.Struct, frozen=True):
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
    at: float = 0.0  # seconds; 0 where an older version wrote it


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

    The metadata of ``state`` are as they were written, without any ``state_schema``. The rows
    that could not be read are ``damaged``, a reason by number; the rest stands.
    """

    rows: Rows
    state: State
    version: int
    queued: list[QueuedMessage]
    calls: list[Call]
    decisions: list[Decided]
    run: LastRun | None
    damaged: dict[int, str]

    @property
    def problems(self) -> list[str]:
        """A sentence about each row that could not be read."""
        return [f"Journal entry {seq} was set aside: {why}." for seq, why in self.damaged.items()]


def fold(journal: Iterable[JournalRow]) -> Folded:
    """What the rows of a journal come to, damaged ones left out.

    Raises :class:`~sagents_nb.errors.ConfigurationError` if a newer version wrote it.
    """
    rows, values, damaged = Rows(), dict[int, Any](), dict[int, str]()
    for seq, kind, data in journal:
        try:
            if kind == "begin" and data["version"] > VERSION:
                raise ConfigurationError(
                    f"This conversation was written by a newer sagents_nb (version "
                    f"{data['version']}, this one reads {VERSION}); upgrade sagents_nb."
                )
            rows.take(seq, kind, data)
        except ConfigurationError:
            raise
        except (ValueError, TypeError, LookupError, OverflowError, AttributeError) as error:
            damaged[seq] = f"it is no {kind} ({error})"
            continue
        values[seq] = data

    def found(kind: str) -> list[tuple[int, Any]]:
        return [(seq, values[seq]) for slot, seq in rows.slots.items() if slot[0] == kind]

    def only(kind: str) -> tuple[int, Any]:
        return next(iter(found(kind)), (0, None))

    def read(pairs: Iterable[tuple[int, Any]], kind: Any) -> list[Any]:
        whole = []
        for seq, value in pairs:
            if type(value) is StoredMessage:
                whole.append(value.message)
                continue
            try:
                whole.append(msgspec.convert(value, kind))
            except (msgspec.ValidationError, ConfigurationError) as error:
                damaged[seq] = f"it cannot be read ({error})"
        return whole

    version = (only("begin")[1] or {}).get("version", VERSION)
    messages: Iterable[tuple[int, Any]] = ((seq, values[seq]) for seq in rows.messages)
    queued = found("queued")
    metadata = {row["key"]: row["value"] for _, row in found("metadata")}
    todos, interrupt = only("todos"), only("interrupt")
    if version != VERSION:
        plain = [(s, m.data if type(m) is StoredMessage else m) for s, m in messages]
        data = {
            "messages": [message for _, message in plain],
            "todos": todos[1] or [],
            "metadata": metadata,
            "interrupt": interrupt[1],
        }
        data = migrated(data, version)
        # A migration may join messages or part them, and then none has a row.
        seqs = [seq for seq, _ in plain if len(plain) == len(data["messages"])]
        messages = zip_longest(seqs, data["messages"], fillvalue=0)
        todos, interrupt = (todos[0], data["todos"]), (interrupt[0], data["interrupt"])
        metadata = data["metadata"]
        old = migrated({"messages": [row.get("message") for _, row in queued]}, version)
        pairs = zip(queued, old["messages"], strict=True)
        queued = [(seq, {**row, "message": message}) for (seq, row), message in pairs]

    def numbered_rows(pairs: Iterable[tuple[int, Any]]) -> list[tuple[int, Any]]:
        return [(seq, {**row, "seq": seq}) for seq, row in pairs]

    def optional(pair: tuple[int, Any], kind: Any) -> Any:
        return None if pair[1] is None else next(iter(read([pair], kind)), None)

    state = State(
        messages=FrozenList(read(messages, Message)),
        todos=_todos(optional(todos, list[LooseTodo]) or [], todos[0], damaged),
        metadata=metadata,
        interrupt=optional(interrupt, Interrupt),
    )
    return Folded(
        rows=rows,
        state=state,
        version=version,
        queued=read(queued, QueuedMessage),
        calls=read(numbered_rows(found("call")), Call),
        decisions=read(numbered_rows(found("decision")), Decided),
        run=optional(only("run"), LastRun),
        damaged=damaged,
    )


def _todos(loose: list[LooseTodo], seq: int, damaged: dict[int, str]) -> FrozenList[Todo]:
    todos = []
    for one in loose:
        try:
            todos.append(one.todo)
        except ConfigurationError as error:
            damaged[seq] = f"it holds a todo that is none ({error})"
    return numbered(todos)
