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
from ..redaction import masked, secrets_of_names
from ..tools import Tool, ToolOutput, tool
from .interpolate import describe, describe_at_length, is_frame

_SHOWN = 10_000


class NotebookTools(Middleware):
    """``run_python``, ``inspect_variables`` and ``show_frame``, on the main thread.

    People are asked before ``run_python``, and no tool hands out what looks like a secret.

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

    def _masked(self, text: str) -> str:
        """``text`` without the secrets that the notebook's variables hold."""
        return masked(text, secrets_of_names(self.shell.user_ns))

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
            hidden = self.shell.user_ns_hidden  # the history of cells among them
            shown = {
                name: value
                for name, value in self.shell.user_ns.items()
                if not name.startswith("_") and name not in hidden
            }
            if names:
                return self._masked(
                    "\n\n".join(
                        f"{name}: {describe(shown[name])}"
                        if name in shown
                        else f"{name}: there is no such variable"
                        for name in names
                    )
                )
            lines = [
                f"{name}: {type(value).__name__} {describe(value, 80)!s}".replace("\n", " ")
                for name, value in shown.items()
            ]
            return self._masked("\n".join(lines)) or "The notebook has no variables yet."

        @tool(run_on="main", display_text="Looking at a data frame")
        def show_frame(name: str, rows: int = 10) -> str:
            """Show a data frame: its columns, statistics, values and first rows.

            Args:
                name: the variable that holds it
                rows: how many rows to show, at most 50
            """
            frame = self.shell.user_ns.get(name)
            if not is_frame(frame):
                raise ValueError(f"{name!r} is no data frame of this notebook.")
            return self._masked(describe_at_length(frame, min(rows, 50), _SHOWN))

        @tool(run_on="main", needs_approval=True, display_text="Running Python in the notebook")
        def run_python(code: str) -> ToolOutput:
            """Run Python code with the notebook's variables; gives what it prints and its value.

            Args:
                code: the code; the value of a last expression is shown
            """
            output = run_code(code, self.shell.user_ns)
            output.content = self._masked(output.content)
            return output

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
