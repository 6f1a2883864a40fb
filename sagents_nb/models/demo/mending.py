"""What the demo model makes of a failed cell: it mends what is certain, and says what was wrong.

The prompt of ``%agent fix`` holds the cell and its traceback. It puts a name in the place of a
wrong one where exactly one is close, adds an import that is known, makes text of a number that is
joined to a text, and closes a line with a colon. Which names there are is asked of the notebook.
Of all else it says the line and the reason, and gives no cell.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import io
import keyword
import posixpath
import re
import sys
import tokenize
from collections.abc import Collection, Iterable
from typing import TypeGuard

import msgspec

from ...transcript import spanned
from .frames import frames_in
from .history import FAILED_CELL, Fact

_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt|Warning))(?:: (.*))?$", re.M)
_MEANT = re.compile(r"Did you mean: '([^']+)'")
_LISTED = re.compile(r"^([A-Za-z_]\w*): ", re.MULTILINE)
_PLACE = re.compile(r'^ *File "<Cell In\[\d+\]>", line (\d+)', re.MULTILINE)
_QUOTED = re.compile(r"'((?:[^'\\\n]|\\.)*)'")
_CLOSE = 0.78
_CLOSE_MODULE = 0.85  # somebody's own module may be called nearly as one of Python's
_SHOWN = 120  # characters of a line
# What people call the modules that they leave out.
_ALIASES = {
    "pd": "import pandas as pd",
    "np": "import numpy as np",
    "plt": "import matplotlib.pyplot as plt",
    "sns": "import seaborn as sns",
    "mpl": "import matplotlib as mpl",
    "pl": "import polars as pl",
    "Path": "from pathlib import Path",
    "Counter": "from collections import Counter",
    "defaultdict": "from collections import defaultdict",
    "timedelta": "from datetime import timedelta",
    "partial": "from functools import partial",
    "reduce": "from functools import reduce",
    "dataclass": "from dataclasses import dataclass",
    "sqrt": "from math import sqrt",
    "sleep": "from time import sleep",
}
_PACKAGES = ("pandas", "numpy", "matplotlib", "seaborn", "scipy", "sklearn", "polars", "requests")
# Modules that are installed by another name.
_INSTALLED = {"sklearn": "scikit-learn", "cv2": "opencv-python", "PIL": "pillow", "yaml": "pyyaml",
              "bs4": "beautifulsoup4", "skimage": "scikit-image"}  # fmt: skip


class FailedCell(msgspec.Struct, frozen=True):
    """A cell, the kind, the message and the line of its error, and what people wish beside.

    ``line`` is 0 where the traceback does not tell it.
    """

    source: str
    kind: str
    message: str
    wish: str
    line: int = 0

    @property
    def wrong(self) -> str:
        """The name that is not there, "" if the error is of another kind."""
        message = self.message
        if self.kind == "NameError":
            match = re.match(r"name '(\w+)' is not defined", message)
        elif self.kind == "AttributeError":
            match = re.search(r"has no attribute '(\w+)'", message)
        elif self.kind == "ModuleNotFoundError":
            match = re.match(r"No module named '(\w+)'", message)
        elif self.kind == "FileNotFoundError":
            match = re.search(r"No such file or directory: '([^'\n]+)'", message)
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
    lines = _PLACE.findall(match[4])
    return FailedCell(match[2], kind, message, match[5] or "", int(lines[-1]) if lines else 0)


def names_in(cell: FailedCell) -> list[str]:
    """The names that a cell uses, in their order."""
    return list(dict.fromkeys(t.string for t in _tokens(cell.source) if t.type == tokenize.NAME))


def code_for_files(cell: FailedCell) -> str:
    """Code that prints which files there are beside one that was not found, "" for other errors."""
    if cell.kind != "FileNotFoundError" or not cell.wrong:
        return ""
    return f"import os\n\nprint(sorted(os.listdir({posixpath.dirname(cell.wrong) or '.'!r})))"


def mended(cell: FailedCell, facts: Iterable[Fact]) -> str:
    """What is said of the cell: the mended one as a code block, else that it cannot be."""
    known = "\n\n".join(fact.text for fact in facts if fact.status == "ok")
    close = _close(cell, known)
    source, what = cell.source, ""
    if close:
        source = _replaced(cell, close)
        what = (
            f"There is no `{cell.wrong}`, and `{close}` is the one name close to it: I put it "
            "in its place throughout the cell."
        )
    elif cell.kind == "NameError" and (line := _import_of(cell)):
        source, what = (
            _with_import(cell.source, line),
            f"`{cell.wrong}` was not imported: I did it.",
        )
    elif cell.kind == "TypeError":
        source, joined = _as_text(cell)
        what = f"A text is joined to texts only: I made `{joined}` one with `str`."
    elif cell.kind == "SyntaxError" and cell.message.startswith("expected ':'"):
        source, what = (
            _with_colon(cell),
            f"Line {cell.line} lacks a colon at its end: I put it there.",
        )
    if source == cell.source:
        return _unmended(cell)
    left = f" I left out “{cell.wish}”, which takes a language model." if cell.wish else ""
    return f"{what}{left}\n\n```python\n{source}\n```"


def _unmended(cell: FailedCell) -> str:
    """What went wrong and where, as far as that is certain, and that it is not mended."""
    error = f"{cell.kind}: {cell.message}" if cell.kind else cell.message
    lines = cell.source.splitlines()
    where = ""
    if 0 < cell.line <= len(lines):
        text = lines[cell.line - 1].strip()
        shown = text[:_SHOWN]
        where = f"Line {cell.line}, {spanned(shown) if '`' in shown else f'`{shown}`'}, failed"
    why = _why(cell)
    told = f"{where}: {why}. " if where and why else f"{why[:1].upper()}{why[1:]}. " if why else ""
    told = told or (f"{where}. " if where else "")
    return (
        f"{told}I am a planner without a language model, and I cannot mend “{error[:300]}”: choose "
        "a model that can with `%agent model PROVIDER:NAME`, such as `%agent model anthropic:NAME`."
    )


def _why(cell: FailedCell) -> str:
    """What an error means, "" where its message says it as well."""
    wrong, message = cell.wrong, cell.message
    none = re.match(r"'NoneType' object has no attribute '(\w+)'", message)
    match cell.kind:
        case "ZeroDivisionError":
            return "what it divides by is 0 there"
        case "IndexError" if re.search(r"out[ -]of[ -](?:range|bounds)", message):
            return "it asks for a place that is behind the last one; the first is 0"
        case "KeyError" if wrong:
            return f"there is no `{wrong}` in it, and not exactly one name is close to that"
        case "NameError" if wrong:
            return f"nothing is called `{wrong}` here, and not exactly one name is close to that"
        case "AttributeError" if none:
            return f"what stands before `.{none[1]}` is None"
        case "AttributeError" if wrong:
            return f"it has no `{wrong}`, and not exactly one name is close to that"
        case "FileNotFoundError" if wrong:
            return (
                f"there is no file `{wrong}`, and not exactly one name beside it is close to that"
            )
        case "ModuleNotFoundError" if wrong:
            # A name that nobody knows may be a slip, and somebody else's package.
            package = _INSTALLED.get(wrong, wrong if wrong in _PACKAGES else "")
            install = f"; `%pip install {package}` installs it" if package else ""
            return f"no module `{wrong}` is installed here{install}"
    return ""


def _import_of(cell: FailedCell) -> str:
    """The line that imports a name that is known to be a module's, "" for others."""
    name = cell.wrong
    if name == "datetime":
        module = re.search(r"\bdatetime\.(?:datetime|date|time|timedelta|timezone)\b", cell.source)
        return "import datetime" if module else "from datetime import datetime"
    used = re.search(rf"(?<![\w.]){re.escape(name)}\.", cell.source)
    if used and (name in sys.stdlib_module_names or name in _PACKAGES):
        return f"import {name}"
    return _ALIASES.get(name, "")


def _with_import(source: str, line: str) -> str:
    """The cell with a line before all but the magic that it begins with."""
    lines = source.split("\n")
    first = 1 if lines[0].startswith("%%") else 0
    return "\n".join([*lines[:first], line, *lines[first:]])


def _with_colon(cell: FailedCell) -> str:
    lines = cell.source.split("\n")
    if not 0 < cell.line <= len(lines):
        return cell.source
    lines[cell.line - 1] = f"{lines[cell.line - 1].rstrip()}:"
    mended = "\n".join(lines)
    return mended if _nodes(mended) else cell.source


def _as_text(cell: FailedCell) -> tuple[str, str]:
    """The cell with the one part of a sum of texts that is none made one, and that part."""
    joins = re.match(
        r"can only concatenate str \(not \"(?:int|float|bool|\w+64)\"\) to str|"
        r"unsupported operand type\(s\) for \+: '(?:int|float)' and 'str'",
        cell.message,
    )
    sums = [n for n in _nodes(cell.source) if _is_sum(n) and n.lineno == cell.line] if joins else []
    inner = {id(n.left) for n in sums}
    outer = [n for n in sums if id(n) not in inner]
    if len(outer) != 1:
        return cell.source, ""
    parts: list[ast.expr] = []
    node: ast.expr = outer[0]
    while _is_sum(node):
        parts.append(node.right)
        node = node.left
    parts.append(node)
    others = [part for part in parts if not _is_text(part)]
    if len(others) != 1 or len(parts) < 2:
        return cell.source, ""
    (part,) = others
    text = ast.get_source_segment(cell.source, part) or ""
    if not isinstance(part, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant):
        return cell.source, ""
    if part.lineno != part.end_lineno or not text:
        return cell.source, ""
    lines = cell.source.split("\n")
    line = lines[part.lineno - 1].encode()
    begin, end = part.col_offset, part.end_col_offset or 0
    lines[part.lineno - 1] = (line[:begin] + f"str({text})".encode() + line[end:]).decode()
    return "\n".join(lines), text


def _is_sum(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _is_text(node: ast.AST) -> bool:
    """Whether it is a text that stands there, and no number in quotes."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and not node.value.strip().isdigit()
    return isinstance(node, ast.JoinedStr)


def _close(cell: FailedCell, known: str) -> str:
    """The only name close to the wrong one, "" where there is none or several."""
    wrong = cell.wrong
    if not wrong or (cell.kind == "NameError" and _import_of(cell)):
        return ""
    if cell.kind == "FileNotFoundError":
        folder, name = posixpath.split(wrong)
        found = _only_close(name, _QUOTED.findall(known))
        return posixpath.join(folder, found) if found else ""
    candidates = set(_MEANT.findall(cell.message))
    if cell.kind == "NameError":
        candidates |= {*dir(builtins), *keyword.kwlist}
        candidates |= {*_LISTED.findall(known), *_bound(cell.source)}
    elif cell.kind == "ModuleNotFoundError":
        return _only_close(wrong, {*sys.stdlib_module_names, *_PACKAGES}, _CLOSE_MODULE)
    else:
        if cell.kind == "KeyError" or re.match(r"'(?:DataFrame|Series)", cell.message):
            candidates |= {c.name for frame in frames_in(known) for c in frame.columns}
        candidates |= {
            *(_attributes(cell) if cell.kind == "AttributeError" else _keys(cell.source))
        }
    return _only_close(wrong, candidates)


def _only_close(wrong: str, names: Iterable[str], cutoff: float = _CLOSE) -> str:
    """The one name that is another writing of a wrong one: in case, or by a letter or two."""
    others = set(names) - {wrong}
    alike = [name for name in others if _plain(name) == _plain(wrong)]
    if not alike and len(wrong) >= 4:
        alike = [name for name in others if _is_turned(name, wrong)]
    found = alike or difflib.get_close_matches(wrong, sorted(others), n=2, cutoff=cutoff)
    return found[0] if len(found) == 1 else ""


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


def _is_turned(one: str, other: str) -> bool:
    """Whether two names differ by two letters that changed places."""
    if len(one) != len(other):
        return False
    places = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(places) != 2 or places[1] - places[0] != 1:
        return False
    i, j = places
    return one[i] == other[j] and one[j] == other[i]


def _keys(source: str) -> set[str]:
    """The keys of the dictionaries that stand in a cell."""
    keys = (key for node in _nodes(source) if isinstance(node, ast.Dict) for key in node.keys)
    return {k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}


def _attributes(cell: FailedCell) -> Collection[str]:
    """What a type or a module has that is named in the error, if it is loaded already."""
    module = re.match(r"module '([\w.]+)' has no attribute", cell.message)
    if module:
        return _public(sys.modules.get(module[1]))
    name = re.match(r"(?:type object )?'(\w+)' (?:object )?has no attribute", cell.message)
    if name is None:
        return ()
    pandas = sys.modules.get("pandas")
    return _public(getattr(builtins, name[1], None) or getattr(pandas, name[1], None))


def _public(held: object) -> set[str]:
    return {name for name in dir(held) if not name.startswith("_")} if held is not None else set()


def _bound(source: str) -> set[str]:
    """The names that a cell itself gives to something."""
    nodes = _nodes(source)
    found = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
    return found | {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def _nodes(source: str) -> list[ast.AST]:
    """All parts of a cell, [] where it cannot be parsed."""
    try:
        return list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return []


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
        if key and cell.kind in ("KeyError", "FileNotFoundError") and close.isprintable():
            quote = token.string[-1]
            places.append((row, begin, end, f"{quote}{close}{quote}"))
        named = token.type == tokenize.NAME and token.string == cell.wrong
        kinds = ("AttributeError",) if attribute else ("NameError", "ModuleNotFoundError")
        if named and cell.kind in kinds:
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
