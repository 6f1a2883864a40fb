"""The code of a page of the documentation, run as somebody who reads it would run it.

Each Python block is a cell of one IPython shell, so that a page's blocks share their names, magics
work, and what a cell shows last is printed. A block without a language, or of ``text``, is a cell
if it begins with ``%%agent`` or ``%agent``. What an ``output`` block says has to be what the cell
before it printed, where ``...`` stands for anything. Shell commands are not run.

A Python block whose title is the name of another package stands beside one of ours, is code for
that package, and is compiled, not run: ```` ```python title="chatlas" ````. One with the title
``sagents_nb`` is run like any other. A block with words of another kind is an error.

Comments of Markdown, which no reader sees, say what else is meant::

    <!-- not run: why the next block is not -->
    <!-- invisible-code-block: python
    code that the page does not show
    -->
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from sybil import Document, Example, Region, Sybil
from sybil.parsers.markdown.lexers import DirectiveInHTMLCommentLexer, RawFencedCodeBlockLexer

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RECIPES = ROOT / "docs" / "recipes"
"""Of whose pages what stands below each heading is a program by itself."""

FENCES = RawFencedCodeBlockLexer(re.compile(r"[ \t]*(?P<language>[^\n`]*)$\n", re.MULTILINE))
UNSEEN = DirectiveInHTMLCommentLexer("invisible-code-block", arguments="python")
TITLED = re.compile(r'(?P<language>\S*)(?: title="(?P<title>[^"]+)")?')
NOT_RUN = DirectiveInHTMLCommentLexer("not run", arguments=r"\S.*?")

OURS = "sagents_nb"
AS_DOCTEST = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(document: Document) -> Iterable[Region]:
    """What of a page is run or compared."""
    for region in FENCES(document):
        words = region.lexemes["language"].strip()
        fence = TITLED.fullmatch(words)
        assert fence, f"{document.path}: ```{words} is no language with a title"
        language, title = fence["language"], fence["title"] or OURS
        source = region.lexemes["source"].text
        magic = language in ("", "text") and source.startswith(("%%agent", "%agent"))
        if language == "python" and title != OURS:
            yield Region(region.start, region.end, source, read)
        elif language == "python" or magic:
            yield Region(region.start, region.end, source, run)
        elif language == "output":
            yield Region(region.start, region.end, source, compare)
    for region in UNSEEN(document):
        yield Region(region.start, region.end, region.lexemes["source"].text, run)
    for region in NOT_RUN(document):
        yield Region(region.start, region.end, region.lexemes["arguments"], leave_out)


def leave_out(example: Example) -> None:
    """The next block is not run."""
    example.namespace["left_out"] = True


def read(example: Example) -> None:
    """Code of another package is Python, as a cell of a notebook is; nobody has to have it here."""
    source = TransformerManager().transform_cell(example.parsed)
    try:
        compile(source, example.path, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        where = f"{example.path}:{example.line}"
        raise AssertionError(f"{where}\n{example.parsed}\n{error}") from None
    example.namespace["printed"] = None


def run(example: Example) -> None:
    """Run a block as a cell, and keep what it printed."""
    if example.namespace.pop("left_out", False):
        example.namespace["printed"] = None
        return
    shell: InteractiveShell = example.namespace["shell"]
    with capture_output(display=False) as captured:
        result = shell.run_cell(example.parsed)
    where = f"{example.path}:{example.line}"
    try:
        result.raise_error()
    except BaseException as error:
        problem = f"{where}\n{example.parsed}\n{type(error).__name__}: {error}"
        raise AssertionError(problem) from None
    example.namespace["printed"] = re.sub(r"(?m)^Out\[\d+\]: ?\n?", "", captured.stdout)
    example.namespace["ran"] += 1


def compare(example: Example) -> None:
    """What the page shows is what came."""
    said, came = example.parsed, example.namespace.get("printed")
    if example.namespace.pop("left_out", False) or came is None:
        return
    same = doctest.OutputChecker().check_output(said, came, AS_DOCTEST)
    assert same, f"{example.path}:{example.line} shows\n{said}\nbut this came:\n{came}"


def run_page(path: Path, shell: InteractiveShell) -> int:
    """Run a page from top to bottom; how many blocks were run."""
    document = Sybil([blocks], path=str(path.parent)).parse(path)
    namespace: dict[str, Any] = document.namespace
    namespace |= {"shell": shell, "ran": 0}
    for example in document.examples():
        example.evaluate()
    return int(namespace["ran"])
