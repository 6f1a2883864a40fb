"""What a journal's rows hold: their kinds, their text, and what makes one damaged.

Each row has the checksum of what it holds and of where it belongs. The lease of its conversation,
which lies in another table, has the tally of the rows up to some number, at the same cost however
many there are; those behind it have numbers without a gap. It is brought up to date when a run
ends, the journal is released or rows are deleted, and once it is ``BEHIND``: with each row it
would be a third of all that is written.
"""

from __future__ import annotations

import functools
import hashlib
import json
import struct
from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

from ..messages import Message
from ..serialization import VERSION, escaped, portable, unescaped

LAST_SEQ = 2**62
"""No entry has a higher number, so that there is always a next one."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened: ``data`` is JSON-ready, or a :class:`StoredMessage` that was read.

    ``seq`` is given by the journal, and when it was ``written``, as its table has it.
    """

    kind: str
    data: Any
    seq: int = 0
    written: Any = None

    @property
    def at(self) -> float:
        """When it was written, in seconds since 1970."""
        return _seconds(self.written)


class StoredMessage(msgspec.Struct, frozen=True, gc=False):
    """The row of a message, read straight into one: ``n`` is its number in the conversation."""

    n: int
    message: Message
    text: bytes

    @property
    def data(self) -> Any:
        """As any other entry is read."""
        return _decode(str(self.text, "utf-8"))


class _Number(msgspec.Struct):
    n: int


_number, _message = msgspec.json.Decoder(_Number).decode, msgspec.json.Decoder(Message).decode


BEHIND = 16
"""How many rows a tally may lack while a run goes on."""


def ends_run(entry: Entry) -> bool:
    """Whether nothing is expected to follow it soon."""
    return entry.kind == "run" and entry.data.get("status") != "running"


KINDS: dict[str, tuple[type, ...]] = {
    "begin": (dict,),
    "message": (dict,),
    "cut": (dict,),
    "todos": (list,),
    "metadata": (dict,),
    "interrupt": (dict, type(None)),
    "queued": (dict,),
    "taken": (dict,),
    "decision": (dict,),
    "call": (dict,),
    "run": (dict,),
}
"""What ``data`` is for each kind; what has to be in it is known to ``folding.py``."""


class Damaged(Exception):
    """A row that is no entry; the text says what it is and what is wrong with it."""

    def __init__(self, place: Any, seq: Any, reason: str) -> None:
        shown = "without a number" if seq is None else str(seq)
        super().__init__(f"Journal entry {shown} was set aside: {reason}.")
        self.place = place
        self.seq = seq
        self.reason = reason


def is_number(seq: Any) -> bool:
    """Whether an entry may have this number."""
    return isinstance(seq, int) and 0 < seq <= LAST_SEQ


def is_newer(entry: Entry) -> bool:
    """Whether a newer version of this package wrote what follows it."""
    version = entry.data.get("version") if entry.kind == "begin" else None
    return isinstance(version, int) and version > VERSION


def encoded(data: Any) -> tuple[str, bool]:
    """``data`` as JSON text that any database takes, and whether it is escaped."""
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
        if "\ufffe" not in text and "\\u0000" not in text:
            return text, False
    except (ValueError, TypeError, RecursionError):
        pass
    plain, escaped = portable(data)
    try:
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")), escaped
    except ValueError:  # a number of more digits than Python writes, or reads again
        return json.dumps(_without_huge(plain), ensure_ascii=False, separators=(",", ":")), escaped


def _without_huge(data: Any) -> Any:
    """``data`` with each integer of thousands of digits as hexadecimal text."""
    if isinstance(data, dict):
        return {key: _without_huge(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_huge(value) for value in data]
    return hex(data) if isinstance(data, int) and data.bit_length() > 2000 else data


StoredRow = tuple[Any, Any, Any, Any, Any, Any, Any]
"""A row of the table as it is: place, seq, kind, data, escaped, checksum and at.

The place is how it is found, kind and data are UTF-8. What is not of its column's type is None.
"""


def entry_of(conversation_id: str, row: StoredRow) -> tuple[Entry, int]:
    """The entry that a row holds, and the checksum that is right for it.

    Raises :class:`Damaged`; nothing but JSON is ever parsed.
    """
    place, seq, kind, data, escaped, checksum, at = row
    # Most rows: messages that are what was written. All else is looked at closely.
    if (
        kind == b"message"
        and data is not None
        and not escaped
        and is_number(seq)
        and checksum == _checksum(conversation_id, b"%d 0 message %s" % (seq, data))
    ):
        try:
            read = StoredMessage(_number(data).n, _message(data), data)
            return Entry("message", read, seq, at), checksum
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass  # what is wrong with it is said below, or where it is folded

    def damaged(reason: str) -> Damaged:
        return Damaged(place, seq, reason)

    if seq is None or kind is None or data is None:
        raise damaged("a column is not of its type")
    if not is_number(seq):
        raise damaged("there are no such numbers")
    try:
        name, text = str(kind, "utf-8"), str(data, "utf-8")
    except UnicodeDecodeError:
        raise damaged("it is not UTF-8") from None
    if name not in KINDS:
        raise damaged(f"its kind {name[:40]!r} is unknown")
    right = row_checksum(conversation_id, seq, kind, data, escaped)
    if checksum not in (None, right):
        raise damaged("it is not what was written, by its checksum")
    try:
        value = _decode(text)
        if escaped:
            value = unescaped(value)
    except RecursionError:  # of either: from Python 3.13 on, more is read than can be walked
        raise damaged("its JSON is too deep") from None
    except ValueError:
        raise damaged("it is not JSON") from None
    if not isinstance(value, KINDS[name]):
        raise damaged(f"its data is of type {type(value).__name__}, which no {name} is")
    return Entry(name, value, seq, at), right


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Made once: json.loads() would make one for each row.
_slowly = json.JSONDecoder(parse_constant=_no_constant).decode


def _decode(text: str) -> Any:
    """As ``json`` does: what is read more quickly has no halves of characters, say."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return _slowly(text)


def _seconds(at: Any) -> float:
    """SQLite keeps a time as text, of which nothing depends; 0.0 if it cannot be read."""
    try:
        moment = at if isinstance(at, datetime) else datetime.fromisoformat(f"{at}+00:00")
        return moment.timestamp()
    except (ValueError, OverflowError):
        return 0.0


# By what one notices that a row was altered, lost, or is another's.

# What the tally's sum is kept to. Unlike a chain, from row to row, a sum allows for rows to be
# deleted anywhere.
_RANGE = 2**64

UNKNOWN = "The journal was damaged: how many entries it had is not known any more."
"""What is told of a journal whose tally is lost."""


class Tally(msgspec.Struct, frozen=True):
    """How many rows a journal has up to ``last_seq``, which one has or had, and their checksums.

    ``total`` is the sum of these.
    """

    rows: int = 0
    last_seq: int = 0
    total: int = 0

    def plus(self, checksums: Collection[int], last_seq: int = 0) -> Tally:
        """With rows that have these checksums, the last of which has that number."""
        total = (self.total + sum(checksums)) % _RANGE
        return Tally(self.rows + len(checksums), max(self.last_seq, last_seq), total)

    def minus(self, checksums: Collection[int]) -> Tally:
        """Without rows that have these checksums."""
        total = (self.total - sum(checksums)) % _RANGE
        return Tally(self.rows - len(checksums), self.last_seq, total)

    def text(self, conversation_id: str) -> str:
        """As it is kept, so that no other conversation's is taken for it; see :meth:`read`."""
        said = f"{self.rows} {self.last_seq} {self.total}"
        return f"{said} {_checksum(conversation_id, said.encode())}"

    @classmethod
    def read(cls, text: Any, conversation_id: str) -> Tally | None:
        """None for what is none of this conversation's."""
        try:
            tally = cls(*map(int, text.split()[:3]))
        except (ValueError, TypeError, AttributeError):
            return None
        return tally if text == tally.text(conversation_id) else None

    def differs(
        self, found: Collection[int], later: Collection[int], odd: Collection[int]
    ) -> str | None:
        """A sentence on how the rows that were found are not those that were written, or None.

        ``found`` are the checksums up to ``last_seq``, and ``later`` the numbers of those behind
        it, of which none was left out; ``odd`` the checksums of rows that may be either.
        """
        had = self.rows + max(later, default=self.last_seq) - self.last_seq
        are_there = len(found) + len(later) + len(odd)
        if are_there < had or len(found) > self.rows:
            return f"The journal was damaged: it had {had} entries, and {are_there} are there."
        totals = sum(found) % _RANGE, (sum(found) + sum(odd)) % _RANGE
        if self.total not in totals:
            return "The journal was damaged: its entries are not all those that were written."
        return None


def row_checksum(
    conversation_id: str, seq: int, kind: bytes, data: bytes, is_escaped: object
) -> int:
    """The checksum of a row; ``kind`` and ``data`` are UTF-8.

    Its time is left out: no message is worth losing for it.
    """
    return _checksum(conversation_id, b"%d %d %s %s" % (seq, bool(is_escaped), kind, data))


_as_number = struct.Struct(">q").unpack


def _checksum(conversation_id: str, said: bytes) -> int:
    """As any database takes it for a number."""
    digest = _begun(conversation_id).copy()
    digest.update(said)
    return _as_number(digest.digest())[0]  # type: ignore[no-any-return]


@functools.lru_cache(256)  # there are many rows of one conversation
def _begun(conversation_id: str) -> hashlib.blake2b:
    return hashlib.blake2b(ascii(escaped(conversation_id)).encode() + b" ", digest_size=8)
