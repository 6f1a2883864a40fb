"""The Python of a page as a module that a type checker reads.

Each block stands at its own lines, so that what is said of the module is said of the page. Magics
are left out.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from sybil import Document
from sybil.region import Region

from tests.docs.pages import FENCES, UNSEEN

MAGIC = re.compile(r"^(\s*)[%!].*", re.MULTILINE)


def module_of(page: Path) -> str:
    """The code of a page, those blocks too that are not run or not shown."""
    text = page.read_text(encoding="utf-8")
    document = Document(text, str(page))
    shown = [block for block in FENCES(document) if language(block) == "python"]
    lines = [""] * (text.count("\n") + 1)
    for block in (*shown, *UNSEEN(document)):
        source = block.lexemes["source"]
        first = text.count("\n", 0, block.start + source.offset)
        code = MAGIC.sub(r"\1pass", textwrap.dedent(source.text)).splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


def language(block: Region) -> str:
    return str(block.lexemes["language"]).strip()
