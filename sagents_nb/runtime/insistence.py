"""Ending code that goes on in spite of its interrupt."""

from __future__ import annotations

import opcode
import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

PACKAGE = __name__.partition(".")[0]
_NOT_OWN = {PACKAGE, *sys.stdlib_module_names}
_HANDLER = opcode.opmap["PUSH_EXC_INFO"]
# So many times in all code that was interrupted may tidy up.
_PATIENCE = 3
_SPARED = 200  # lines


class Insistence:
    """Code that caught its interrupt is not to go on by catching the next one.

    Loops with a bare ``except:`` catch every interrupt, and so are never ended by one. From
    :meth:`begin` on whatever line the code goes on with raises, and whatever function of its own it
    calls, in one function after the other, until it is left; as long as ``runs()``. What was
    traced before is so again from :meth:`end` on, on the same thread.

    What handles the interrupt is not disturbed, nor the end of a ``with`` block, nor a ``finally``:
    locks are to be let go. Code for which even that is endless has none of this from the third
    time on. Python ends the tracing when a trace function raises, so a profile function begins it
    again, and the other way round.
    """

    def __init__(self, runs: Callable[[], bool]) -> None:
        self._runs = runs
        self._before: tuple[Any, Any] = None, None
        self._traced: dict[FrameType, Any] = {}  # and what traced them before
        self._caught: dict[FrameType, int] = {}  # which went on, and lines that were spared since
        self._latest: BaseException | None = None
        self._times = 0

    def prepare(self) -> None:
        """The code is about to run, on this thread."""
        self._before = sys.gettrace(), sys.getprofile()

    def begin(self, frame: FrameType | None) -> BaseException:
        """The code is interrupted in ``frame`` once more; to be raised there."""
        self._times += 1
        while frame is not None:
            if package_of(frame) != PACKAGE:
                self._traced.setdefault(frame, frame.f_trace)
                frame.f_trace = self._trace
            frame = frame.f_back
        sys.settrace(_not_traced)
        return self._next_error()

    def end(self) -> None:
        """The code has ended."""
        if not self._traced:
            return
        trace, profile = self._before
        sys.settrace(trace)
        sys.setprofile(profile if callable(profile) else None)  # cProfile's cannot be set again
        for frame, before in self._traced.items():  # some go on, as the kernel's
            frame.f_trace = before
        self._traced.clear()
        self._caught.clear()
        self._latest = None

    def _next_error(self) -> BaseException:
        sys.setprofile(self._profile)
        self._latest = error = KeyboardInterrupt()
        return error

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        # Not where a handler begins: Python would take what it handles for handled ever after.
        begins = frame.f_code.co_code[frame.f_lasti] == _HANDLER
        if event == "line" and not begins and self._goes_on(frame) and self._is_out(frame):
            raise self._next_error()
        return self._trace

    def _is_out(self, frame: FrameType) -> bool:
        """Whether it would not be caught there by a function that has caught one before.

        Where a ``try`` begins it is not, though another is around that.
        """
        spared = self._caught.get(frame, -1)
        tries = _shape_of(frame.f_code).tries
        if 0 <= spared < _SPARED and any(frame.f_lasti in covered for covered in tries):
            self._caught[frame] = spared + 1
            return False
        self._caught[frame] = 0
        return True

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        caller = frame.f_back
        if caller is None or event not in ("call", "return"):
            return
        if caller in self._traced:
            caller.f_trace = self._trace
        sys.settrace(_not_traced)
        # What Python's own library calls, and what ends an object, is not the code's own.
        own = package_of(frame) not in _NOT_OWN and frame.f_code.co_name != "__del__"
        if event == "call" and own and package_of(caller) != PACKAGE and self._goes_on(caller):
            raise self._next_error()

    def _goes_on(self, frame: FrameType) -> bool:
        """Whether it does something else there than to tidy up."""
        if not self._runs():
            return False
        if self._times >= _PATIENCE:
            return True
        handled, seen = sys.exc_info()[1], 0
        while handled is not None and seen < 100:  # a chain may be a ring
            if handled is self._latest:
                return False
            handled, seen = handled.__context__, seen + 1
        at: FrameType | None = frame  # or who called it does
        while at is not None and package_of(at) != PACKAGE:
            if at.f_lineno in _shape_of(at.f_code).tidying:
                return False
            at = at.f_back
        return True


def _not_traced(frame: FrameType, event: str, argument: Any) -> None:
    """What is called from now on is not; its callers are, where they have functions for it."""


def package_of(frame: FrameType) -> str:
    """The first word of the name of the module that the code of that frame is of."""
    name = frame.f_globals.get("__name__")
    return name.partition(".")[0] if isinstance(name, str) else ""


class _Shape(NamedTuple):
    tidying: set[int | None]
    """The lines of ``with`` statements, and of what stands in a ``finally``.

    What is in a ``finally`` is there twice, for when something was raised and for when not.
    """
    tries: list[range]
    """What stands in a ``try``, as the places of instructions."""


@lru_cache(maxsize=64)
def _shape_of(code: CodeType) -> _Shape:
    import dis

    bytecode = dis.Bytecode(code)
    entries: list[Any] = bytecode.exception_entries  # type: ignore[attr-defined]
    covered = [(range(entry.start, entry.end), entry.lasti) for entry in entries]
    handlers = [places for places, in_handler in covered if in_handler]
    withs, handling, other = set[int | None](), set[int | None](), set[int | None]()
    for instruction in bytecode:
        line = instruction.positions and instruction.positions.lineno
        if instruction.opname == "WITH_EXCEPT_START":
            withs.add(line)
        in_handler = any(instruction.offset in places for places in handlers)
        (handling if in_handler else other).add(line)
    tries = [places for places, in_handler in covered if not in_handler]
    return _Shape(withs | (handling & other), tries)
