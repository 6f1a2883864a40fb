"""Tracebacks of code in a notebook, with the frames of people's own code and no others."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from typing import Any

_LIBRARIES = (os.path.dirname(os.path.dirname(__file__)), *sysconfig.get_paths().values())
_NUMBERED = re.compile(r"(<run_python) \d+>")
_FRAMES = 10  # at most: what calls itself without end has a thousand


def own_frames(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Those in cells and in people's own files; none in a library, Python's or ours."""
    return [f for f in frames if not f.filename.startswith((*_LIBRARIES, "<frozen "))]


def short_traceback(error: BaseException, shell: Any = None) -> str:
    """What a model needs of an error: the last of people's own frames, and what was raised.

    The code of ``shell`` has no files but the numbers of its cells, so that a traceback is the
    same in every kernel.

    >>> def halve(n):
    ...     return n / 0
    >>> try:
    ...     halve(1)
    ... except ZeroDivisionError as error:
    ...     print(short_traceback(error).splitlines()[-1])
    ZeroDivisionError: division by zero
    """
    told = traceback.TracebackException.from_exception(error, compact=True)
    left: list[traceback.TracebackException | None] = [told]
    while left:
        part = left.pop()
        if part is None:
            continue
        part.stack[:] = own_frames(part.stack)[-_FRAMES:]
        for frame in part.stack:
            frame.filename = _name(frame.filename, shell)
        if isinstance(getattr(part, "filename", None), str):  # of a SyntaxError
            part.filename = _name(part.filename, shell)
        left += [part.__cause__, part.__context__, *(part.exceptions or ())]
    return "".join(told.format()).rstrip()


def _name(filename: str, shell: Any) -> str:
    named = None if shell is None else shell.compile.format_code_name(filename)
    if named:
        return f"<{' '.join(named)}>"
    return _NUMBERED.sub(r"\1>", filename)


def full_traceback(error: BaseException, filename: str) -> str:
    """For people: every frame from the first one in ``filename`` on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != filename:
        trace = trace.tb_next
    shown = error.__traceback__ if trace is None else trace
    return "".join(traceback.format_exception(type(error), error, shown)).rstrip()
