"""Tools that see the notebook: its variables, its frames, its cells, its Python."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from .. import kinds
from ..context import ToolContext
from ..messages import SHOWN_IN_CELL, image_of
from ..middleware import Middleware
from ..redaction import KEY, Secrets, hides, masked, secrets_of_names
from ..tools import Tool, ToolOutput, tool
from .capture import shown_in_cell
from .cells import cells_text, failures_of, latest_numbers, offer
from .execution import TimeIsUp, run_code, within
from .interpolate import describe, describe_at_length, is_frame, without_secret_entries

T = TypeVar("T")

_NAMES = 200  # variables that are listed at once
_LINE = 80  # characters of a value in the list
_LOOK = 30.0  # seconds that looking and drawing may take at most
_CELLS = 20  # cells that are read at once
_POINTS = 20_000  # rows of a frame that are drawn

_TIMEOUT = kinds.or_none(kinds.number(0, "seconds", over=True), "for no limit")


class NotebookTools(Middleware):
    """Tools that see the notebook and act in it, on the main thread.

    ``inspect_variables``, ``show_frame``, ``plot``, ``read_cell`` and ``last_error`` look;
    ``insert_cell`` offers a cell; ``run_python`` runs code after people were asked. No tool
    hands out what looks like a secret.

    ``timeout`` is how many seconds code may run, None for no limit; ``max_output`` how many
    characters of its output the model is handed, as of what the others say.

    They act on the notebook's own variables, so they need a running IPython ``shell``, which is the
    notebook's own unless given.

    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> from sagents_nb import Agent, NotebookTools, ScriptedModel, ToolCall
    >>> shell = InteractiveShell()
    >>> _ = shell.run_cell("rows = 3")
    >>> model = ScriptedModel([ToolCall("c1", "inspect_variables", {}), "There are 3."])
    >>> result = Agent(model, middleware=[NotebookTools(shell)]).run("How many rows?")
    >>> "rows" in result.messages[2].tool_results[0].text
    True
    """

    @kinds.checked(timeout=_TIMEOUT, max_output=kinds.whole(1))
    def __init__(
        self, shell: Any = None, *, timeout: float | None = 300.0, max_output: int = 10_000
    ) -> None:
        self._shell = shell
        self.timeout = math.inf if timeout is None else timeout
        self.max_output = max_output

    @property
    def shell(self) -> Any:
        """The IPython shell; raises RuntimeError outside of one."""
        shell = self._known_shell()
        if shell is None:
            raise RuntimeError("NotebookTools needs IPython; use it inside a notebook.")
        return shell

    def _known_shell(self) -> Any:
        if self._shell is None:
            from IPython import get_ipython

            self._shell = get_ipython()
        return self._shell

    @property
    def _secrets(self) -> Secrets:
        """Those that the notebook's variables hold."""
        return secrets_of_names(self.shell.user_ns)

    @property
    def _patience(self) -> float:
        return min(_LOOK, self.timeout)

    def _in_time(self, function: Callable[[], T]) -> T:
        """``function()``; raises ValueError where that takes too long."""
        try:
            return within(self._patience, function)
        except TimeIsUp:
            raise ValueError(
                f"That takes over {self._patience:g} seconds; look at a part of it instead."
            ) from None

    def _variables(self) -> dict[str, Any]:
        """The notebook's own variables, the oldest first."""
        hidden = self.shell.user_ns_hidden  # the history of cells among them
        return {
            name: value
            for name, value in self.shell.user_ns.items()
            if not name.startswith("_") and name not in hidden
        }

    def _described(self, described: dict[str, Any], line: int | None) -> str:
        """Each of these variables as text, as far as the limits allow; and what is left out.

        In a line of so many characters, or at length. Of a secret its name only.
        """
        secrets = self._secrets
        blocks: list[str] = []
        left = self.max_output

        def look() -> None:
            nonlocal left
            for name, value in described.items():
                if hides(name, value):
                    block = f"{name}: {KEY}"
                elif line is None:
                    block = f"{name}: {describe(value, min(4000, self.max_output), secrets)}"
                else:
                    text = describe(value, line, secrets).replace("\n", " ")
                    block = f"{name}: {type(value).__name__} {text}"
                left -= len(block)
                if left < 0 and blocks:
                    return
                blocks.append(block)

        reason = "there is no room for them"
        try:
            within(self._patience, look)
        except TimeIsUp:
            reason = f"looking took over {self._patience:g} seconds"
        if rest := list(described)[len(blocks) :]:
            blocks.append(f"Left out, since {reason}: {', '.join(rest)[:2000]}")
        return ("\n\n" if line is None else "\n").join(blocks)

    def system_prompt(self) -> str:
        """What the model is told of the notebook."""
        return (
            "You work inside a Jupyter notebook. Use inspect_variables to see what it holds, "
            "show_frame for a data frame before you answer questions about data, and plot to see "
            "its columns. read_cell reads its cells, last_error what went wrong in one. run_python "
            "runs code with the notebook's variables; people are asked before it runs. insert_cell "
            "offers people code to run and keep."
        )

    def tools(self) -> list[Tool]:
        """The tools, by the names that the class says."""
        if (shell := self._known_shell()) is not None:
            failures_of(shell)  # from now on it is known which cell failed last

        @tool(run_on="main", display_text="Looking at the notebook's variables")
        def inspect_variables(names: list[str] | None = None) -> str:
            """List the notebook's variables with their types, or describe some of them.

            Args:
                names: which variables to describe; all are listed without it
            """
            shown = self._variables()
            if names:
                known = {name: shown[name] for name in names if name in shown}
                gone = [f"{n}: there is no such variable" for n in names if n not in shown]
                return "\n\n".join(filter(None, [self._described(known, None), *gone]))
            if not shown:
                return "The notebook has no variables yet."
            older = len(shown) - _NAMES
            listed = self._described(dict(list(shown.items())[-_NAMES:]), _LINE)
            if older > 0:
                listed += f"\nLeft out: {older:,} older variables; ask for them by name."
            return listed

        @tool(run_on="main", display_text="Looking at a data frame")
        def show_frame(name: str, rows: int = 10) -> str:
            """Show a data frame: its columns, statistics, values and first rows.

            Args:
                name: the variable that holds it
                rows: how many rows to show, at most 50
            """
            frame = self._frame(name)

            secrets = self._secrets

            def shown() -> str:
                told = describe_at_length(frame, min(rows, 50), self.max_output, secrets)
                return masked(told, secrets)

            return self._in_time(shown)

        @tool(run_on="main", display_text="Drawing a plot")
        def plot(
            name: str,
            columns: list[str] | None = None,
            x: str | None = None,
            kind: Literal["line", "bar", "barh", "hist", "box", "area", "scatter"] = "line",
        ) -> ToolOutput:
            """Draw columns of a data frame; the person sees the plot too.

            Args:
                name: the variable that holds the data frame
                columns: which columns to draw; all that are numbers without it
                x: the column along the x axis; the index without it
                kind: what to draw; a scatter needs x
            """
            return self._in_time(lambda: self._plot(name, columns, x, kind))

        @tool(run_on="main", display_text="Reading cells of the notebook")
        def read_cell(number: int | None = None, last: int = 1) -> str:
            """Read cells that were run: their source, and the text that they put out.

            Args:
                number: the number of one cell, as in In [3]; the last ones without it
                last: how many of the last ones, at most 20
            """
            latest = latest_numbers(self.shell, max(1, min(last, _CELLS)))
            numbers = [number] if number is not None else latest
            if not numbers:
                return "No cell of this notebook was run before this one."
            share = self.max_output // (2 * len(numbers))
            return cells_text(self.shell, numbers, share, self._secrets)

        @tool(run_on="main", display_text="Looking at the last error")
        def last_error() -> str:
            """Show the cell that failed last: its source and its traceback."""
            failed = failures_of(self.shell).last
            if failed is None:
                return "No cell has failed, or the one that did runs by now."
            where = "A cell" if failed.number is None else f"Cell {failed.number}"
            share, secrets = self.max_output // 2, self._secrets
            source, traceback = masked(failed.source, secrets), masked(failed.traceback, secrets)
            return f"{where} failed:\n{source[:share]}\n\n{traceback[-share:]}"

        @tool(run_on="main", display_text="Offering a cell")
        def insert_cell(code: str) -> str:
            """Offer code to the person as a new cell below; it is not run.

            Args:
                code: the whole code of the cell; a second one takes the place of the first
            """
            if offer(self.shell, code):
                return "The cell appears below when this answer ends; the person may run it."
            return (
                "No cell can be inserted here: that works while an %%agent cell of JupyterLab or "
                "Notebook 7 is run. Show the code to the person in your answer instead."
            )

        @tool(run_on="main", needs_approval=True, display_text="Running Python in the notebook")
        def run_python(
            ctx: ToolContext,
            code: Annotated[str, "the code; the value of a last expression is shown"],
        ) -> ToolOutput:
            """Run Python code with the notebook's variables; gives what it prints and its value.

            Plots and what display() shows are seen by you and by the person. Magics such as
            %timeit work, shell commands and await do not.
            """
            return run_code(
                code,
                self.shell,
                timeout=self.timeout,
                max_output=self.max_output,
                tell=ctx.progress,
            )

        return [
            *(inspect_variables, show_frame, plot),
            *(read_cell, last_error, insert_cell, run_python),
        ]

    def _frame(self, name: str) -> Any:
        frame = self.shell.user_ns.get(name)
        if not is_frame(frame):
            raise ValueError(f"{name!r} is no data frame of this notebook.")
        if hides(name, frame):
            raise ValueError(f"{name!r} has the name of a secret, so nothing of it is shown.")
        return frame

    def _plot(self, name: str, columns: list[str] | None, x: str | None, kind: str) -> ToolOutput:
        frame = without_secret_entries(self._frame(name))
        if importlib.util.find_spec("matplotlib") is None:
            raise ValueError("plot needs matplotlib; pip install matplotlib.")
        from matplotlib.figure import Figure  # not pyplot's: the person's own figures stay as is

        unknown = [c for c in [*(columns or ()), *([x] if x else ())] if c not in frame.columns]
        if unknown:
            raise ValueError(f"{name!r} has no column {', '.join(map(repr, unknown))}.")
        if kind == "scatter" and (x is None or not columns):
            raise ValueError("A scatter needs x and columns.")
        step = -(-len(frame) // _POINTS) or 1
        drawn = frame.iloc[::step]
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for column in columns if columns and kind == "scatter" else ():
            axes.scatter(drawn[x], drawn[column], s=12, label=column)
        if kind == "scatter":
            axes.set_xlabel(str(x))
        else:
            chosen = drawn if columns is None else drawn[[*columns, *([x] if x else ())]]
            chosen.plot(kind=kind, x=x, ax=axes) if x else chosen.plot(kind=kind, ax=axes)
        if axes.get_legend_handles_labels()[0]:  # beside what is drawn, not over it
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        image = image_of(figure)
        assert image is not None
        text = f"A {kind} plot of {name}"
        text += f", of every {step}th of {len(frame):,} rows" if step > 1 else ""
        shown_in_cell(self.shell)({"text/plain": text, image.mime_type: image.data}, {})
        return ToolOutput([f"{text}:", image], metadata={SHOWN_IN_CELL: True})
