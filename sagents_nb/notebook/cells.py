"""The cells of a notebook: what they put out, one that failed and why, one that is offered."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..redaction import masked_start

_OURS = ("%%agent", "%agent")


class FailedCell(NamedTuple):
    """A cell that failed: its number if it has one, its source, and its short traceback."""

    number: int | None
    source: str
    traceback: str
    cell_id: str | None


class Failures:
    """Remembers which cell of one shell failed last, until it ran well.

    Texts only: a traceback would keep the frames, and with them all their variables.
    """

    def __init__(self, shell: Any) -> None:
        self.last: FailedCell | None = None
        self._shell = weakref.ref(shell)
        # Not post_execute, which messages of widgets trigger too (ipykernel#1564).
        shell.events.register("post_run_cell", self.note)

    def note(self, result: Any) -> None:
        """Look at how a cell ended; IPython gives None for one that was interrupted."""
        info = getattr(result, "info", None)
        source = str(getattr(info, "raw_cell", "") or "")
        if not source.strip() or source.lstrip().startswith(_OURS):
            return
        cell_id = getattr(info, "cell_id", None)
        error = result.error_before_exec or result.error_in_exec
        if error is None:
            last = self.last
            if last and (source == last.source or (cell_id and cell_id == last.cell_id)):
                self.last = None
        elif not isinstance(error, KeyboardInterrupt):  # a person stopped it
            number = result.execution_count if getattr(info, "store_history", 0) else None
            self.last = FailedCell(number, source, short_traceback(error, self._shell()), cell_id)


_failures: WeakKeyDictionary[Any, Failures] = WeakKeyDictionary()


def failures_of(shell: Any) -> Failures:
    """What is remembered of that shell, from the first call on."""
    found = _failures.get(shell)
    if found is None:
        found = _failures[shell] = Failures(shell)
    return found


def forget_failures(shell: Any) -> None:
    """Remember nothing of that shell any more."""
    found = _failures.pop(shell, None)
    if found is not None:
        shell.events.unregister("post_run_cell", found.note)


def cells_text(shell: Any, numbers: list[int], most: int, secrets: Iterable[str] = ()) -> str:
    """The source of these cells and the text that they put out, each at most ``most`` characters.

    What then are the ``secrets`` is masked.

    Raises ValueError for a number that no cell has.
    """
    sources = shell.history_manager.input_hist_raw
    for number in numbers:
        if not 0 < number < len(sources):
            known = f"1 to {len(sources) - 1}" if len(sources) > 1 else "none yet"
            raise ValueError(f"There is no cell {number}; the numbers are {known}.")
    blocks = []
    for number in numbers:
        history = shell.history_manager
        out = _cut(_outputs(history, number, most), most, secrets)
        if failed := getattr(history, "exceptions", {}).get(number):
            why = _cut(str(failed.get("evalue")), most, secrets)
            out += f"It failed: {failed.get('ename')}: {why}"
        source = _cut(sources[number], most, secrets)
        blocks.append(f"In [{number}]:\n{source}\n\n{out}".rstrip())
    return "\n\n".join(blocks)


def latest_numbers(shell: Any, count: int) -> list[int]:
    """The numbers of the last ``count`` cells, without the one that is being run."""
    end = len(shell.history_manager.input_hist_raw)
    if getattr(shell.displayhook, "exec_result", None) is not None:
        end = min(end, shell.displayhook.exec_result.execution_count or end)
    return list(range(max(1, end - count), end))


def _outputs(history: Any, number: int, most: int) -> str:
    """What a cell printed, displayed and gave, as far as IPython keeps it."""
    texts: list[str] = []
    size = 0
    for output in getattr(history, "outputs", {}).get(number, ()):
        pieces = output.bundle.get("stream") or [output.bundle.get("text/plain", "")]
        head = f"Out[{number}]: " if output.output_type == "execute_result" else ""
        for piece in [head, *map(str, pieces)]:
            if size <= most:  # a cell may have printed without end
                texts.append(piece)
                size += len(piece)
        if texts and not texts[-1].endswith("\n"):
            texts.append("\n")
    if not texts and number in history.output_hist_reprs:
        texts.append(f"Out[{number}]: {history.output_hist_reprs[number]}\n")
    return "".join(texts)


def _cut(text: str, most: int, secrets: Iterable[str]) -> str:
    shown = masked_start(text, most, secrets)
    return shown if len(text) <= most else f"{shown}… (cut)\n"


# What is offered

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")
_PYTHON = ("python", "python3", "py", "ipython", "ipython3")


def last_python(text: str) -> str | None:
    r"""The last Python code block of a Markdown text; one of no language where none is Python.

    >>> last_python("Try this:\n```python\nx = 1\n```\nIt prints:\n```\n1\n```")
    'x = 1'
    """
    found: dict[bool, str] = {}
    lines: list[str] = []
    fence = language = ""
    for line in text.splitlines():
        opens = _FENCE.fullmatch(line)
        if not fence:
            if opens:
                (fence, language), lines = opens.groups(), []
        elif opens and opens[1].startswith(fence) and line.strip() == opens[1]:
            if not language or language.strip("{}.").lower() in _PYTHON:
                found[bool(language)] = "\n".join(lines)
            fence = ""
        else:
            lines.append(line)
    return found.get(True, found.get(False))


def code_block(text: str, language: str) -> str:
    """``text`` as a Markdown code block, whatever fences are in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def unattended(shell: Any) -> bool:
    """Whether nobody can click: nbclient, nbval and papermill run cells without stdin."""
    kernel = getattr(shell, "kernel", None)
    return kernel is None or not getattr(kernel, "_allow_stdin", False)


def takes_cells(shell: Any) -> bool:
    """Whether code can be offered now: a cell is run, and its front end hears what comes of it."""
    return getattr(shell.displayhook, "exec_result", None) is not None and not unattended(shell)


def offer(shell: Any, code: str, *, replace: bool = False) -> bool:
    """Offer ``code`` as the next cell, or with ``replace`` in the place of this one.

    False where that is not possible. JupyterLab and Notebook 7 do it when the cell ends well,
    with what was offered last; other editors may take no notice.
    """
    if not takes_cells(shell):
        return False
    shell.set_next_input(code, replace=replace)
    return True


# tracebacks of code in a notebook, with the frames of people's own code and no others

_LIBRARIES = (os.path.dirname(os.path.dirname(__file__)), *sysconfig.get_paths().values())
_NUMBERED = re.compile(r"(<run_python) \d+>")
_FRAMES = 10  # at most: what calls itself without end has a thousand


def _is_own(filename: str) -> bool:
    return not filename.startswith((*_LIBRARIES, "<frozen "))


def own_frames(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Those in cells and in people's own files; none in a library, Python's or ours."""
    return [f for f in frames if _is_own(f.filename)]


@contextmanager
def with_own_frames(error: BaseException) -> Iterator[None]:
    """Meanwhile the tracebacks of an error, and of what caused it, have own frames alone.

    That of the error itself stays as it is where it has none.
    """
    whole: dict[int, tuple[BaseException, TracebackType | None]] = {}
    part: BaseException | None = error
    while part is not None and id(part) not in whole:
        whole[id(part)] = part, part.__traceback__
        part = part.__cause__ or (None if part.__suppress_context__ else part.__context__)
    try:
        for each, trace in whole.values():
            if (own := _own_trace(trace)) is not None or each is not error:
                each.__traceback__ = own
        yield
    finally:
        for each, trace in whole.values():
            each.__traceback__ = trace


def _own_trace(trace: TracebackType | None) -> TracebackType | None:
    steps = []
    while trace is not None:
        steps.append(trace)
        trace = trace.tb_next
    own = None
    for step in reversed(steps):
        if _is_own(step.tb_frame.f_code.co_filename):
            own = TracebackType(own, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return own


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
