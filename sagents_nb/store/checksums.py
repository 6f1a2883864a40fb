"""By what one notices that a journal is not what was written: a row altered, lost, or another's.

Each row has the checksum of what it holds and of where it belongs. The lease of its conversation,
which lies in another table, has the tally of all rows; it changes in the transactions that
add rows or delete them, at the same cost however many there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

import msgspec

from ..serialization import escaped

# What the tally's sum is kept to. Unlike a chain, from row to row, a sum allows for rows to be
# deleted anywhere.
_RANGE = 2**64

UNKNOWN = "The journal was damaged: how many entries it had is not known any more."
"""What is told of a journal whose tally is lost."""


class Tally(msgspec.Struct, frozen=True):
    """How many rows a journal has, the highest number one ever had, and the sum of checksums."""

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

    def differs(self, found: Tally) -> str | None:
        """A sentence on how the rows that were found are not these, or None."""
        if self.rows != found.rows:
            return (
                f"The journal was damaged: it had {self.rows} entries, and {found.rows} are there."
            )
        if self.total != found.total:
            return "The journal was damaged: its entries are not all those that were written."
        return None


def row_checksum(
    conversation_id: str, seq: int, kind: bytes, data: bytes, is_escaped: object
) -> int:
    """The checksum of a row; ``kind`` and ``data`` are UTF-8.

    Its time is left out: no message is worth losing for it.
    """
    head = b"%d %d %s " % (seq, bool(is_escaped), kind)
    return _checksum(conversation_id, head + data)


def _checksum(conversation_id: str, said: bytes) -> int:
    """As any database takes it for a number."""
    head = ascii(escaped(conversation_id)).encode()
    digest = hashlib.blake2b(head + b" " + said, digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
