"""Running code in the notebook's namespace like a cell, within limits, and leaving no trace in it.

Neither ``In`` and ``Out``, ``_``, nor the number of the next cell change.
"""

from __future__ import annotations

import ast
import contextlib
import contextvars
import inspect
import itertools
import linecache
import math
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from IPython.core.autocall import ExitAutocall

from ..messages import NOT_RUN, SHOWN_IN_CELL
from ..redaction import secrets_of_names
from ..runtime.futures import CancelScope
from ..runtime.main_thread import Work, main_thread
from ..tools import ToolOutput
from ..transcript import folded
from .capture import Capture, replaced
from .cells import full_traceback, short_traceback, unattended

T = TypeVar("T")

_SCRIPTS = "IPython.core.magics.script"  # where %%bash and its like are
STOPPED = "The code was stopped before its end."
NOT_BEGUN = "The code was stopped before it began."
SHOWING_STOPPED = "The code ended; showing what it made was stopped."
_AWAITS = (
    "run_python cannot await, since the notebook's loop runs the cell that waits for "
    "it; run the coroutine on a loop of its own: "
    "concurrent.futures.ThreadPoolExecutor().submit(asyncio.run, main()).result()"
)
_NO_COMMANDS = (
    "run_python runs no shell commands (!, %sx, %pip, %%bash): use Python, or insert_cell "
    "so that the person runs the command."
)
_numbers = itertools.count(1)


class TimeIsUp(BaseException):
    """The code took longer than it may."""


def within(seconds: float, function: Callable[[], T]) -> T:
    """``function()``; raises TimeIsUp if that was interrupted since it took so many seconds.

    It is interrupted as by Ctrl-C, so what never comes back to Python is not. Only the main
    thread can be: on another one there is no limit.
    """
    outer, scope, is_late = main_thread.innermost(), CancelScope(), False

    def entered() -> T:
        scope.enter()
        return function()

    def interrupt() -> None:
        nonlocal is_late
        is_late = True
        main_thread.interrupt(work)
        scope.cancel()  # and so what works for it there

    work = Work(partial(contextvars.copy_context().run, entered), part_of=outer)

    limit = threading.Timer(min(seconds, threading.TIMEOUT_MAX), interrupt)
    limit.name, limit.daemon = "sagents-time-limit", True
    limited = seconds < math.inf and threading.current_thread() is threading.main_thread()
    runs, outer.runs = outer.runs, False  # so that the limit is taken away in any case
    try:
        if limited:
            limit.start()
        main_thread.perform(work)
    finally:
        limit.cancel()
        if runs:
            outer.resume()
    try:
        return work.result()
    except KeyboardInterrupt:
        if is_late and not main_thread.is_interrupted():
            raise TimeIsUp from None
        raise


def run_code(
    code: str,
    shell: Any,
    *,
    timeout: float = math.inf,
    max_output: int = 10_000,
    tell: Callable[[str], Any] | None = None,
) -> ToolOutput:
    """Run code in that shell's namespace: what it puts out, then the value of a last expression.

    Magics work; shell commands and a top-level ``await`` do not. What it displays, figures of
    matplotlib too, is shown in the cell, and in the ``content`` as text and images; what looks
    like a secret is masked in both. The ``artifact`` is the value. ``timeout`` is in seconds,
    ``max_output`` in characters. ``tell`` hears of the last line of what it prints, while it runs.
    Whatever the code raises is in the content, and that it was stopped; the result is "cancelled"
    then, unless only the showing was.
    """
    main_thread.innermost().runs = False  # the code alone may be interrupted
    capture = Capture(shell, max_output, partial(secrets_of_names, shell.user_ns), tell)
    run = _Run(code, shell, capture)
    not_run = {}
    try:
        within(timeout, run)
    except TimeIsUp:
        run.fail(
            f"It was stopped after {timeout:g} seconds, the most that run_python may take; do "
            "less at once, or ask the person to run it in a cell of their own."
        )
    except KeyboardInterrupt:
        if run.has_ended:
            capture.write(SHOWING_STOPPED)
        else:
            not_run = {NOT_RUN: "cancelled"}
            run.fail(STOPPED if run.has_begun else NOT_BEGUN)
    content = capture.content()
    return ToolOutput(
        content or "It ran and printed nothing.",
        artifact=run.value,
        is_error=run.failed,
        metadata={SHOWN_IN_CELL: True} | not_run,
    )


class _Run:
    """One run of code."""

    def __init__(self, code: str, shell: Any, capture: Capture) -> None:
        self.code = code
        self.shell = shell
        self.capture = capture
        self.value: Any = None
        """That of its last expression."""
        self.has_begun = False
        self.has_ended = False
        """Whether the code is over, and only what it made or raised is still to be shown."""
        self.failed = False
        self.filename = f"<run_python {next(_numbers)}>"

    def fail(self, text: str) -> None:
        """Say that, and that the code did not do what it should."""
        self.failed = True
        self.capture.write(text)

    def _show_traceback(self, error: BaseException) -> None:
        """Show all of it to people, folded: often the model mends it by itself."""
        if unattended(self.shell):
            return  # it names this machine's paths, and outputs of tests are to stay the same
        full = full_traceback(error, self.filename)
        html = folded(f"run_python: {full.splitlines()[-1]}", full)
        self.capture.show({"text/plain": full, "text/html": html}, {})

    def __call__(self) -> None:
        """Run it; the value of its last expression is captured, or what it raised is told."""
        work = main_thread.innermost()
        work.runs = False  # but where the code does: what is taken from the shell is given back
        try:
            self._execute(work)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: it would end the kernel
            self.failed = self.has_ended = True
            try:
                work.resume()
                self.fail(short_traceback(error, self.shell))
                self._show_traceback(error)
            finally:
                work.runs = False

    def _execute(self, work: Work[Any]) -> None:
        shell, names = self.shell, self.shell.user_ns
        body, last = self._compiled()
        with (
            self.capture.capturing(),
            shell.builtin_trap,
            _staying(names),
            _without_commands(shell),
            replaced(
                shell,
                run_cell=partial(_run_cell, shell.run_cell),
                showtraceback=self._error,
                showsyntaxerror=self._error,
            ),
        ):
            try:
                work.resume()
                self.has_begun = True
                exec(body, names)
                if last is not None:
                    self.value = eval(last, names)
                self.has_ended = True
                if self.value is not None and not self.code.rstrip().endswith(";"):
                    self.capture.value(self.value)
            finally:
                work.runs = False

    def _compiled(self) -> tuple[Any, Any]:
        """The code without its last expression, and that expression; as the shell reads cells."""
        shell = self.shell
        source = shell.transform_cell(self.code)
        # For tracebacks, and for inspect: as IPython does it for cells.
        lines = source.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(source), None, lines, self.filename)
        tree = shell.transform_ast(shell.compile.ast_parse(source, filename=self.filename))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with shell.compile.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
            body = shell.compile(tree, self.filename, "exec")
            value = last and shell.compile(ast.Expression(last.value), self.filename, "eval")
        if any(part and part.co_flags & inspect.CO_COROUTINE for part in (body, value)):
            raise SyntaxError(_AWAITS)
        return body, value

    def _error(self, *args: Any, **kwargs: Any) -> None:
        """What a magic shows of an error, instead of raising it, is one of the code."""
        error = sys.exc_info()[1]
        if isinstance(error, KeyboardInterrupt) and main_thread.is_interrupted():
            raise error  # it ends what is around the magic, too
        if error is not None:
            self.fail(short_traceback(error, self.shell))


def _run_cell(run_cell: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a cell within the code, as ``%%capture`` does: an interrupt ends what is around it, too.

    IPython takes it for the cell's own.
    """
    result = run_cell(*args, **kwargs)
    if isinstance(result.error_in_exec, KeyboardInterrupt) and main_thread.is_interrupted():
        raise result.error_in_exec
    return result


@contextlib.contextmanager
def _staying(namespace: dict[str, Any]) -> Iterator[None]:
    """Let ``exit()`` end the code; IPython's would end the kernel."""
    ending = {n: v for n, v in namespace.items() if isinstance(v, ExitAutocall)}
    namespace.update(dict.fromkeys(ending, sys.exit))
    try:
        yield
    finally:
        namespace.update({n: v for n, v in ending.items() if namespace.get(n) is sys.exit})


@contextlib.contextmanager
def _without_commands(shell: Any) -> Iterator[None]:
    """Let no magic run a command of the system's, also not inside of another magic."""
    run = shell.run_cell_magic

    def run_cell_magic(name: str, line: str, cell: str) -> Any:
        if getattr(shell.find_cell_magic(name), "__module__", "") == _SCRIPTS:
            _refuse()
        return run(name, line, cell)

    refused = {"system": _refuse, "getoutput": _refuse}
    with replaced(shell, run_cell_magic=run_cell_magic, **refused):
        yield


def _refuse(*args: Any, **kwargs: Any) -> None:
    raise RuntimeError(_NO_COMMANDS)
