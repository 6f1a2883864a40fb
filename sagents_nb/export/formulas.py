"""Formulas in Markdown: which text is one, by the rules of the panel, and how a page shows it.

``widgets/src/formulas.ts`` has the same rules, and ``tests/fixtures/formulas.json`` holds both to
them: by pandoc's a "$" opens before no space, and closes behind none and before no digit, so
prices stay what they are. A page has each as MathML, which browsers show without a script.
"""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any, NamedTuple
from xml.etree import ElementTree

# In characters: to look for the end of one costs as much.
_LONGEST = 2_000
_LONGEST_BLOCK = 10_000
_MOST_LINES = 1_000
_MOST_TRIES = 8  # signs that close nothing
_PAIRS = (("$$", "$$", True), ("\\[", "\\]", True), ("\\(", "\\)", False), ("$", "$", False))
_BEGIN = re.compile(r" {0,3}(\$\$|\\\[)")
_BLANK = re.compile(r"\n[ \t]*\n")
_REST = re.compile(r"[ \t]*(?:\n|$)")


class Formula(NamedTuple):
    """A formula in TeX, on a line of its own or not, and how it was written."""

    tex: str
    display: bool
    raw: str


def formula_at(source: str, place: int = 0, end: int | None = None) -> Formula | None:
    """The formula that begins there, before ``end``.

    >>> formula_at("$x$ and $5"), formula_at("$5 and $6")
    (Formula(tex='x', display=False, raw='$x$'), None)
    """
    pair = next((pair for pair in _PAIRS if source.startswith(pair[0], place)), None)
    if pair is None:
        return None
    opens, closes, display = pair
    text = source[place : place + _LONGEST][: None if end is None else end - place]
    at = _index_of_close(text, closes, len(opens))
    for _ in range(_MOST_TRIES):
        if at < 0:
            break
        tex = text[len(opens) : at]
        # A blank line ends a paragraph, and code is code.
        if _BLANK.search(tex) or "`" in tex or not tex.strip():
            return None
        if opens == "$" and tex[0].isspace():
            return None
        price = opens == "$" and (tex[-1].isspace() or "0" <= text[at + 1 : at + 2] <= "9")
        if not price:
            return Formula(tex.strip(), display, text[: at + len(closes)])
        at = _index_of_close(text, closes, at + 1)
    return None


def block_at(source: str) -> Formula | None:
    """The formula on lines of its own that a text begins with."""
    begin = _BEGIN.match(source)
    if begin is None:
        return None
    closes = "$$" if begin[1] == "$$" else "\\]"
    text = source[:_LONGEST_BLOCK]
    blank, at = _BLANK.search(text), _index_of_close(text, closes, begin.end())
    if at < 0 or (blank is not None and blank.start() < at):
        return None
    rest, tex = _REST.match(text, at + len(closes)), text[begin.end() : at].strip()
    return Formula(tex, True, text[: rest.end()]) if rest is not None and tex else None


def _index_of_close(text: str, closes: str, start: int) -> int:
    """Where that stands in ``text``; what a backslash is before is not it."""
    found = re.compile(rf"{re.escape(closes)}|\\.", re.S).finditer(text, start)
    return next((match.start() for match in found if match[0] == closes), -1)


def add_formulas(markdown: Any) -> None:
    """Have a MarkdownIt read formulas, and write each as MathML, or as the code that it is."""
    markdown.inline.ruler.before("escape", "formula", _inline_rule)
    markdown.block.ruler.before("fence", "formula", _block_rule)
    markdown.add_render_rule("formula", _rendered)


def _inline_rule(state: Any, silent: bool) -> bool:
    found = formula_at(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("formula", "", 0).meta = found
    state.pos += len(found.raw)
    return True


def _block_rule(state: Any, start: int, end: int, silent: bool) -> bool:
    place = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith(("$$", "\\["), place):
        return False
    lines = min(end, start + _MOST_LINES)
    found = block_at(state.getLines(start, lines, state.blkIndent, False))
    if found is None:
        return False
    if not silent:
        state.push("paragraph_open", "p", 1)
        state.push("formula", "", 0).meta = found
        state.push("paragraph_close", "p", -1)
    state.line = start + found.raw.removesuffix("\n").count("\n") + 1
    return True


def _rendered(renderer: Any, tokens: Any, place: int, options: Any, environment: Any) -> str:
    found: Formula = tokens[place].meta
    return mathml(found.tex, found.display) or f"<code>{escape(found.raw.strip())}</code>"


# What converters do not know by that name.
_OTHER_NAMES = (("{aligned}", "{split}"), ("{gathered}", "{matrix}"))


def mathml(tex: str, display: bool) -> str | None:
    r"""The formula as MathML; None where latex2mathml is not installed, or does not know it all.

    >>> mathml(r"\notacommand", False) is None
    True
    """
    convert = _converter()
    if convert is None:
        return None
    for name, known in _OTHER_NAMES:
        tex = tex.replace(name, known)
    try:
        math = convert(tex, display="block" if display else "inline")
    except (Exception, RecursionError):  # whatever a model writes, the rest of the page is made
        return None
    for element in math.iter():
        element.text = element.text and unescape(element.text)
        if (element.text or "").startswith("\\") or (element.text == "&" and "\\&" not in tex):
            return None  # which would be shown as it was written, in the middle of a formula
    return ElementTree.tostring(math, encoding="unicode")


def _converter() -> Any:
    try:
        from latex2mathml.converter import convert_to_element
    except ImportError:
        return None
    return convert_to_element
