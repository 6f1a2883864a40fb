"""A conversation as a notebook: a cell for each turn, what ran in Python as code."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from ..errors import ConfigurationError
from . import markdown
from .document import Call, Document, Picture, Turn

# Of a tool's call that is a cell by itself: its name, and the argument with the code.
CODE = ("run_python", "code")


def notebook_of(document: Document) -> str:
    """The notebook as JSON; raises ConfigurationError where nbformat is not installed."""
    try:
        import nbformat
    except ImportError:
        raise ConfigurationError(
            "A notebook is written by nbformat; pip install 'sagents-nb[export]'."
        ) from None
    library: Any = nbformat  # its functions have no types
    new = library.v4
    cells = [new.new_markdown_cell(markdown.heading(document))]
    for turn in document.turns:
        cells += _cells(turn, new)
    cells += [new.new_markdown_cell(block) for block in markdown.appendix(document)]
    for number, cell in enumerate(cells, start=1):
        cell["id"] = f"cell-{number}"  # the same each time
    made = new.new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
            "sagents_nb": {"exported_from": document.id, "version": version("sagents-nb")},
        },
    )
    library.validate(made)
    return f"{library.writes(made)}\n"


def _cells(turn: Turn, new: Any) -> Iterator[Any]:
    """The cells of a message; what is no code stands together in one."""
    together: list[Any] = []
    for part in turn.parts:
        if isinstance(part, Call) and (source := _source(part)) is not None:
            yield from _markdown(Turn(turn.role, tuple(together)), new)
            together = []
            yield from _code(part, source, new)
        else:
            together.append(part)
    yield from _markdown(Turn(turn.role, tuple(together)), new)


def _markdown(turn: Turn, new: Any) -> Iterator[Any]:
    if turn.parts:
        yield new.new_markdown_cell(markdown.turn_markdown(turn))


def _source(call: Call) -> str | None:
    name, argument = CODE
    return dict(call.arguments).get(argument) if call.name == name else None


def _code(call: Call, source: str, new: Any) -> Iterator[Any]:
    outputs = []
    stream = "stdout" if call.status == "completed" else "stderr"
    for part in call.result:
        if isinstance(part, Picture):
            outputs.append(new.new_output("display_data", {part.mime_type: part.data}))
        elif part.text:
            text = part.text if part.text.endswith("\n") else part.text + "\n"
            outputs.append(new.new_output("stream", name=stream, text=text))
    yield new.new_code_cell(source, outputs=outputs)
    asked = [] if call.asked is None else [markdown.code(dict(call.asked).get(CODE[1], ""))]
    if call.decisions or call.status != "completed" or asked:
        before = ["The model had asked for:", *asked] if asked else []
        line = markdown.call_line(call)
        yield new.new_markdown_cell(
            markdown.folded(line, before) if before else markdown.plain(line)
        )
