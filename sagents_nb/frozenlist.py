"""An immutable list whose ``append`` is O(1).

A conversation only grows, and every step of a run hands out a snapshot of it. Copying the
history for each snapshot would make the cost of a turn grow with its length, so snapshots
share one list and each remembers how much of it is theirs. Appending to a snapshot that is
no longer the newest copies, so a fork never sees its sibling's items.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")

# One lock for all lists: it guards a length check and a list append, well under 1 µs.
lock = threading.Lock()


def _new_lock() -> None:
    global lock
    lock = threading.Lock()


# Another thread may hold it at the moment of a fork, and is not there to let it go.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


class Root:
    """What lists that continue each other have in common; see :attr:`FrozenList.root`."""

    __slots__ = ("__weakref__",)


class FrozenList(Sequence[T], Generic[T]):
    """A sequence that cannot change; compares equal to a list or tuple of the same items.

    >>> a = FrozenList([1, 2])
    >>> b = a.append(3)
    >>> list(a), list(b), b[-1], b == [1, 2, 3]
    ([1, 2], [1, 2, 3], 3, True)
    """

    __slots__ = ("_items", "_length", "root")

    _items: list[T]
    _length: int
    root: Root
    """Of this list, of those it continues and of those that continue it, and of no other.

    A weak key for what somebody remembers of the items: it is gone with the last of the lists.
    """

    def __init__(self, items: Iterable[T] = ()) -> None:
        # To ask an abstract class about a tuple takes longer than all the rest.
        if type(items) is not tuple and isinstance(items, FrozenList):
            self._items, self._length, self.root = items._items, items._length, items.root
        else:
            self._items = list(items)
            self._length = len(self._items)
            self.root = Root()

    def append(self, item: T) -> FrozenList[T]:
        """A new list with ``item`` at the end."""
        new: FrozenList[T] = FrozenList.__new__(FrozenList)
        with lock:
            shared = self._items
            if len(shared) == self._length:
                shared.append(item)
                new._items, new._length, new.root = shared, self._length + 1, self.root
                return new
        return self._with((item,))

    def extend(self, items: Iterable[T]) -> FrozenList[T]:
        """A new list with ``items`` at the end."""
        return self._with(tuple(items))

    def _with(self, added: tuple[T, ...]) -> FrozenList[T]:
        new: FrozenList[T] = FrozenList.__new__(FrozenList)
        with lock:
            shared, new.root = self._items, self.root
            if len(shared) != self._length:  # somebody appended after this snapshot: fork
                shared, new.root = shared[: self._length], Root()
            shared.extend(added)
            new._items = shared
            new._length = self._length + len(added)
        return new

    def continues(self, earlier: FrozenList[T]) -> bool:
        """Whether this is ``earlier`` with nothing or more at its end, known in O(1).

        So who remembers something about ``earlier`` has to look at the rest only. False says
        nothing: the lists may still be equal.
        """
        return self._items is earlier._items and self._length >= earlier._length

    def since(self, earlier: FrozenList[T] | None) -> list[T]:
        """What comes after ``earlier``, which this continues; all of it where it does not."""
        known = 0 if earlier is None or not self.continues(earlier) else earlier._length
        return self._items[known : self._length]

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step > 0:
                return self._items[start:stop:step]
            return [self._items[i] for i in range(start, stop, step)]
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError("list index out of range")
        return self._items[position]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    def __add__(self, other: Iterable[T]) -> FrozenList[T]:
        return self.extend(other)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, FrozenList | list | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # equal to lists, so not hashable either

    def __reduce__(self) -> tuple[type[FrozenList[T]], tuple[list[T]]]:
        return FrozenList, (self[:],)  # without what others appended to the shared list

    def __repr__(self) -> str:
        return repr(self[:])
