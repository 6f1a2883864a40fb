"""Tools that see the notebook: its variables, its frames, its Python."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from IPython.core.autocall import ExitAutocall

from ..middleware import Middleware
from ..tools import Tool, ToolOutput, tool
from .interpolate import describe, is_frame

_SHOWN = 10_000


class NotebookTools(Middleware):
    """``run_python`` (gate it), ``inspect_variables`` and ``show_frame``, on the main thread.

    They act on the notebook's own variables, so they need a running IPython shell.
    """

    def __init__(self, shell: Any = None) -> None:
        self._shell = shell

    @property
    def shell(self) -> Any:
        """The IPython shell; raises RuntimeError outside of one."""
        if self._shell is None:
            from IPython import get_ipython

            self._shell = get_ipython()
        if self._shell is None:
            raise RuntimeError("NotebookTools needs IPython; use it inside a notebook.")
        return self._shell

    def system_prompt(self) -> str:
        """What the model is told of the notebook."""
        return (
            "You work inside a Jupyter notebook. Use inspect_variables to see what it holds and "
            "show_frame for a data frame before you answer questions about data. run_python "
            "runs code with the notebook's variables; people are asked before it runs."
        )

    def tools(self) -> list[Tool]:
        """The three tools."""

        @tool(run_on="main", display_text="Looking at the notebook's variables")
        def inspect_variables(names: list[str] | None = None) -> str:
            """List the notebook's variables with their types, or describe some of them.

            Args:
                names: which variables to describe; all are listed without it
            """
            namespace = self.shell.user_ns
            if names:
                return "\n\n".join(
                    f"{name}: {describe(namespace[name])}"
                    if name in namespace
                    else f"{name}: there is no such variable"
                    for name in names
                )
            hidden = self.shell.user_ns_hidden
            lines = [
                f"{name}: {type(value).__name__} {describe(value, 80)!s}".replace("\n", " ")
                for name, value in namespace.items()
                if not name.startswith("_") and name not in hidden
            ]
            return "\n".join(lines) or "The notebook has no variables yet."

        @tool(run_on="main", display_text="Looking at a data frame")
        def show_frame(name: str, rows: int = 10) -> str:
            """Show a data frame: its columns, its statistics and its first rows.

            Args:
                name: the variable that holds it
                rows: how many rows to show, at most 50
            """
            frame = self.shell.user_ns.get(name)
            if not is_frame(frame):
                raise ValueError(f"{name!r} is no data frame of this notebook.")
            head = frame.head(min(rows, 50)).to_csv(index=False)
            statistics = frame.describe(include="all").to_csv()
            return f"{describe(frame, _SHOWN)}\n\nStatistics:\n{statistics}\nRows:\n{head}"

        @tool(run_on="main", needs_approval=True, display_text="Running Python in the notebook")
        def run_python(code: str) -> ToolOutput:
            """Run Python code with the notebook's variables; gives what it prints and its value.

            Args:
                code: the code; the value of a last expression is shown
            """
            return run_code(code, self.shell.user_ns)

        return [inspect_variables, show_frame, run_python]


@contextlib.contextmanager
def _staying(namespace: dict[str, Any]) -> Iterator[None]:
    """Let ``exit()`` end the code; IPython's would end the kernel."""
    ending = {n: v for n, v in namespace.items() if isinstance(v, ExitAutocall)}
    namespace.update(dict.fromkeys(ending, sys.exit))
    try:
        yield
    finally:
        namespace.update({n: v for n, v in ending.items() if namespace.get(n) is sys.exit})


def run_code(code: str, namespace: dict[str, Any]) -> ToolOutput:
    """Run code in that namespace, like a cell: output, then the value of a last expression."""
    out = io.StringIO()
    value: Any = None
    try:
        body = ast.parse(code)
        last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
        with (
            _staying(namespace),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            exec(compile(body, "<run_python>", "exec"), namespace)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<run_python>", "eval"), namespace)
    except (Exception, SystemExit):
        trace = traceback.format_exc(limit=-3)
        return ToolOutput(f"{out.getvalue()}{trace}"[-_SHOWN:], is_error=True)
    text = out.getvalue()
    if value is not None:
        text += describe(value, _SHOWN)
    return ToolOutput(text[:_SHOWN] or "It ran and printed nothing.", artifact=value)
