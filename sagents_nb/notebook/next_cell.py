"""Code that an agent wrote, offered as a cell: in the place of this one, or below it."""

from __future__ import annotations

import re
from typing import Any

from .unattended import unattended

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
