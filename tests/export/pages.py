"""Reads a page strictly: whatever is in it that could run, ask for something or lead astray."""

from __future__ import annotations

import re
from html.parser import HTMLParser

TEXT_ONLY = {
    "p", "br", "hr", "em", "strong", "s", "del", "a", "code", "pre", "span", "div", "ol", "ul",
    "li", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th",
    "td", "section", "sup", "details", "summary", "img", "dl", "dt", "dd", "main", "header",
    "footer", "aside",
    # Formulas, without <maction>, <semantics> and what may hold another language.
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup",
    "msubsup", "munder", "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "mphantom",
}  # fmt: skip
FRAME = {"html", "head", "body", "meta", "title", "style"}
_HARMLESS = {
    "class", "title", "id", "start", "alt", "rel", "lang", "data-status", "open", "align",
    "aria-level", "tabindex",
    # Of formulas.
    "display", "mathvariant", "stretchy", "fence", "form", "separator", "minsize", "maxsize",
    "lspace", "rspace", "linethickness", "width", "displaystyle", "scriptlevel", "mathcolor",
    "columnalign", "rowspacing", "columnspacing", "accent", "accentunder",
}  # fmt: skip
_VALUES = {
    "href": re.compile(r"https?://[^\s]+|mailto:[^\s]+|#[\w%.~!$&'()*+,;=:@/?-]*", re.I),
    "src": re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}"),
    "style": re.compile(r"text-align: ?(left|right|center);?"),
}


def leads_nowhere_else(address: str) -> bool:
    """Whether a link is to the web, to a mailbox, or to what is beside the page or on its host."""
    # As browsers read it: what of control characters they leave out, and a "\\" as a "/".
    read = re.sub("[\t\n\r]", "", address).strip("".join(map(chr, range(33)))).replace("\\", "/")
    named = re.match(r"([a-z][a-z\d+.-]*):|//", read, re.I)
    return named is None or re.match("https?://|mailto:", read, re.I) is not None


class Page(HTMLParser):
    """``live`` is what is in a page beside text; ``text`` is that."""

    def __init__(self, html: str, frame: bool = False) -> None:
        super().__init__(convert_charrefs=True)
        self.live: list[str] = []
        self.text = ""
        self.metas: list[dict[str, str | None]] = []
        self._allowed = TEXT_ONLY | (FRAME if frame else set())
        self._frame = frame
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self._allowed:
            self.live.append(f"<{tag}>")
        if tag == "meta":
            self.metas.append(dict(attrs))
            return
        for name, value in attrs:
            known = _VALUES.get(name)
            fine = name in _HARMLESS if known is None else known.fullmatch(value or "")
            if not fine:
                self.live.append(f"{tag} {name}={value}")

    def handle_decl(self, decl: str) -> None:
        if not (self._frame and decl == "DOCTYPE html"):
            self.live.append(f"<!{decl}>")

    def handle_comment(self, data: str) -> None:
        self.live.append(f"<!--{data}-->")

    def handle_pi(self, data: str) -> None:
        self.live.append(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        self.live.append(f"<![{data}]>")

    def handle_data(self, data: str) -> None:
        self.text += data
