"""The Python of a page as modules that a type checker reads.

Each block stands at its own lines, so that what is said of a module is said of the page. A magic
is an expression of any type.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from sybil import Document
from sybil.region import Region

from tests.docs.pages import FENCES, OURS, RECIPES, TITLED, UNSEEN

MAGIC = re.compile(r"^(\s*(?:\w+ = )?)[%!].*", re.MULTILINE)


def modules_of(page: Path) -> Iterator[str]:
    """The code of a page, those blocks too that are not run or not shown; each recipe by itself."""
    text = page.read_text(encoding="utf-8")
    first = 0
    for part in re.split(r"(?m)^(?=## )", text) if page.parent == RECIPES else [text]:
        if code := code_of(Document(part, str(page))):
            yield "\n" * first + code
        first += part.count("\n")


def code_of(document: Document) -> str:
    """The blocks of a text at their lines; "" if there are none."""
    lines = [""] * (document.text.count("\n") + 1)
    for block in (*filter(is_ours, FENCES(document)), *UNSEEN(document)):
        source = block.lexemes["source"]
        first = document.text.count("\n", 0, block.start + source.offset)
        code = MAGIC.sub(r'\1eval("")', textwrap.dedent(source.text)).splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines) if any(lines) else ""


def is_ours(block: Region) -> bool:
    """Whether it is Python, and not another package's."""
    words = TITLED.fullmatch(str(block.lexemes["language"]).strip())
    return words is not None and words["language"] == "python" and words["title"] in (None, OURS)
