"""What the demo model makes of a cell that failed: it mends a name with one close name, no more.

The prompt of ``%agent fix`` holds the cell and its traceback. Which names there are is asked of
the notebook; where not exactly one is close, nothing is changed.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import io
import re
import tokenize
from collections.abc import Iterable

import msgspec

from .frames import frames_in
from .history import FAILED_CELL, Fact

_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt|Warning))(?:: (.*))?$", re.M)
_MEANT = re.compile(r"Did you mean: '([^']+)'")
_LISTED = re.compile(r"^([A-Za-z_]\w*): ", re.MULTILINE)
_CLOSE = 0.78


class FailedCell(msgspec.Struct, frozen=True):
    """A cell, the kind and the message of its error, and what people wish beside."""

    source: str
    kind: str
    message: str
    wish: str

    @property
    def wrong(self) -> str:
        """The name that is not there, "" if the error is of another kind."""
        message = self.message
        if self.kind == "NameError":
            match = re.match(r"name '(\w+)' is not defined", message)
        elif self.kind == "AttributeError":
            match = re.search(r"has no attribute '(\w+)'", message)
        elif self.kind == "KeyError":
            text = re.sub(r"^(['\"])(.*)\1$", r"\2", message)
            text = text.removeprefix("Column not found: ")
            listed = re.match(r"\"?\[['\"]([^'\"]+)['\"]\] not in index\"?$", text)
            return listed[1] if listed else text
        else:
            return ""
        return match[1] if match else ""


def failed_cell(task: str) -> FailedCell | None:
    """The failed cell that a task hands over to be mended, None if it is no such task."""
    match = FAILED_CELL.match(task.lstrip())
    if match is None:
        return None
    errors = _ERROR.findall(match[4])
    kind, message = errors[-1] if errors else ("", match[4].strip().rpartition("\n")[2])
    return FailedCell(match[2], kind, message, match[5] or "")


def names_in(cell: FailedCell) -> list[str]:
    """The names that a cell uses, in their order."""
    return list(dict.fromkeys(t.string for t in _tokens(cell.source) if t.type == tokenize.NAME))


def mended(cell: FailedCell, facts: Iterable[Fact]) -> str:
    """What is said of the cell: the mended one as a code block, else that it cannot be."""
    known = "\n\n".join(fact.text for fact in facts if fact.status == "ok")
    error = f"{cell.kind}: {cell.message}" if cell.kind else cell.message
    close = _close(cell, known)
    source = _replaced(cell, close) if close else cell.source
    if source == cell.source:
        return (
            f"I am a planner without a language model, and I cannot mend “{error[:300]}”: choose a "
            "model that can with `%agent model PROVIDER:NAME`, such as `%agent model "
            "anthropic:NAME`."
        )
    left = f" I left out “{cell.wish}”, which takes a language model." if cell.wish else ""
    return (
        f"There is no `{cell.wrong}`, and `{close}` is the one name close to it: I put it "
        f"in its place throughout the cell.{left}\n\n```python\n{source}\n```"
    )


def _close(cell: FailedCell, known: str) -> str:
    """The only name close to the wrong one, "" where there is none or several."""
    candidates = set(_MEANT.findall(cell.message))
    if cell.kind == "NameError":
        candidates |= {*dir(builtins), *_LISTED.findall(known), *_bound(cell.source)}
    else:
        candidates |= {column.name for frame in frames_in(known) for column in frame.columns}
    wrong = cell.wrong
    near = difflib.get_close_matches(wrong, candidates - {wrong}, n=2, cutoff=_CLOSE)
    return near[0] if len(near) == 1 else ""


def _bound(source: str) -> set[str]:
    """The names that a cell itself gives to something."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
    return found | {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):  # such as that of a magic
        return []


def _replaced(cell: FailedCell, close: str) -> str:
    """The cell with another name in the places of the wrong one, and in no others."""
    lines = cell.source.splitlines(keepends=True)
    before = ""
    places: list[tuple[int, int, int, str]] = []
    for token in _tokens(cell.source):
        (row, begin), (last, end) = token.start, token.end
        attribute = before == "."
        before = token.string
        if row != last:
            continue
        key = token.type == tokenize.STRING and _value(token.string) == cell.wrong
        if key and cell.kind == "KeyError" and close.isprintable():
            quote = token.string[-1]
            places.append((row, begin, end, f"{quote}{close}{quote}"))
        named = token.type == tokenize.NAME and token.string == cell.wrong
        if named and cell.kind == ("AttributeError" if attribute else "NameError"):
            places.append((row, begin, end, close))
    for row, begin, end, text in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:begin] + text + line[end:]
    return "".join(lines)


def _value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):  # an f-string
        return None
