"""A conversation as one HTML page that asks nobody for anything and looks like the panel.

There is no script in it, and its own policy forbids any. What is text is escaped; what is
Markdown is rendered, and then written anew with the few elements and attributes that are known
here, so that no mistake of a renderer becomes an element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from ..transcript import bounded
from .document import Argument, Call, Document, File, Given, Note, Picture, Text, Thought, Turn
from .formulas import add_formulas
from .markdown import TODO_MARKS

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_LINK = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x20]+", re.I)
_SIMPLE = 120  # characters of a value that stands in the line of its name
_STATUS_WORDS = {"completed": "done", "waiting": "waits for a decision"}


def html_of(document: Document) -> str:
    """The page; raises ConfigurationError where markdown-it-py is not installed."""
    title = document.title or document.id or "Conversation"
    side = "".join(_side(document))
    turns = "\n".join(_turn(turn) for turn in document.turns)
    columns = "columns" if side else "columns alone"
    files = "".join(_files(document.files))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="sagents-nb">
<title>{escape(title)}</title>
<style>{_style()}</style>
</head>
<body>
<main class="panel">
<header><span class="dot"></span><h1>{escape(title)}</h1>
<span class="model">{escape(document.models)}</span></header>
<div class="{columns}">
<div class="transcript">
{turns or '<p class="empty">Nothing was said.</p>'}
</div>
{f"<aside>{side}</aside>" if side else ""}
</div>
{files}
<footer>{escape(document.used)}</footer>
</main>
</body>
</html>
"""


@cache
def _style() -> str:
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def _turn(turn: Turn) -> str:
    if turn.role == "user":
        said = "".join(
            f'<div class="bubble">{escape(part.text)}</div>'
            if isinstance(part, Text)
            else _part(part)
            for part in turn.parts
        )
        return f'<section class="turn user"><h2 class="sr">You</h2>{said}</section>'
    parts = "".join(_part(part) for part in turn.parts)
    if turn.role == "assistant":
        label = '<h2 class="sr">Agent</h2>'
    else:
        label = f'<h2 class="label">{escape(turn.role)}</h2>'
    return f'<section class="turn">{label}{parts}</section>' if parts else ""


def _part(part: Text | Thought | Note | Picture | Call | Given) -> str:
    match part:
        case Text():
            return f'<div class="md">{rendered(part.text)}</div>'
        case Thought():
            return (
                '<details class="thinking"><summary>Thinking</summary>'
                f'<div class="thought">{escape(part.text)}</div></details>'
            )
        case Note():
            kind = "note error" if part.is_error else "note"
            return f'<p class="{kind}">{escape(part.text)}</p>'
        case Picture():
            return _picture(part)
        case Call():
            return _call(part)
        case Given():
            return (
                f'<details class="thinking given"><summary>{escape(part.line)}</summary>'
                f"{_arguments(part.fields)}</details>"
            )


def _call(call: Call) -> str:
    word = call.outcome(_STATUS_WORDS.get(call.status, call.status))
    short = [value for _, value in call.arguments if value not in ("", "true", "false", "null")]
    brief = next((value for value in short if "\n" not in value), "")[:_SIMPLE]
    body = [_arguments(call.arguments)]
    if call.asked is not None:
        body.append(f'<div class="label">The model had asked for</div>{_arguments(call.asked)}')
    if call.inside:
        lines = "".join(f"<li>{escape(line)}</li>" for line in call.inside)
        body.append(f'<div class="label">Inside</div><ul class="inside">{lines}</ul>')
    if call.told:
        body.append('<div class="label">Result</div>')
    # What a sub-agent answers is a model's word, as that of the agent is.
    as_prose = call.name == "task" and call.status == "completed"
    for part in call.told:
        shown = not as_prose and isinstance(part, Text)
        body.append(_exact(part.text) if shown and isinstance(part, Text) else _part(part))
    agent = " agent" if call.name == "task" else ""
    return (
        f'<details class="tool{agent}" data-status="{escape(call.status)}"><summary>'
        f'<span class="name">{escape(call.name)}</span> <span class="brief">{escape(brief)}</span>'
        f' <span class="word">{escape(word)}</span></summary>'
        f'<div class="body">{"".join(body)}</div></details>'
        f"{''.join(map(_picture, call.pictures))}"
    )


def _arguments(arguments: tuple[Argument, ...]) -> str:
    rows = []
    for name, value in arguments:
        long = "\n" in value or len(value) > _SIMPLE
        shown = _exact(value) if long else f'<span class="value">{escape(value)}</span>'
        rows.append(f"<dt>{escape(name)}</dt><dd>{shown}</dd>")
    return f"<dl>{''.join(rows)}</dl>" if rows else ""


def _exact(text: str) -> str:
    return f'<pre class="exact">{escape(text)}</pre>'


def _picture(picture: Picture) -> str:
    source = f"data:{picture.mime_type};base64,{picture.data}"
    return f'<img class="image" alt="{escape(picture.name)}" src="{escape(source)}">'


def _side(document: Document) -> Iterator[str]:
    if document.todos:
        items = "".join(
            f'<li data-status="{escape(todo.status)}">'
            f"<span>{TODO_MARKS[todo.status]}</span> <span>{escape(todo.content)}</span>"
            "</li>"
            for todo in document.todos
        )
        yield f"<h2>To-do list</h2><ul class='todos'>{items}</ul>"
    if document.files:
        items = "".join(
            f'<li><a href="#file-{number}">{escape(file.path)}</a> '
            f'<span class="faint">{file.size:,} B</span></li>'
            for number, file in enumerate(document.files, start=1)
        )
        yield f"<h2>Files</h2><ul class='files'>{items}</ul>"


def _files(files: Iterable[File]) -> Iterator[str]:
    for number, file in enumerate(files, start=1):
        content = file.content
        if isinstance(content, Text):
            is_markdown = file.path.lower().endswith((".md", ".markdown"))
            shown = _part(content) if is_markdown else _exact(content.text)
        else:
            shown = _part(content)
        yield (
            f'<details class="file" id="file-{number}"><summary><span class="name">'
            f'{escape(file.path)}</span> <span class="faint">{file.size:,} bytes</span></summary>'
            f'<div class="body">{shown}</div></details>\n'
        )


# Markdown


def rendered(text: str) -> str:
    """Markdown as HTML of :data:`ELEMENTS`, with the address of each link to be read.

    Raises :class:`~sagents_nb.errors.ConfigurationError` where markdown-it-py is not installed.
    """
    return sanitized(markdown_renderer().render(bounded(text)))


@cache
def markdown_renderer() -> Any:
    """What reads Markdown; it is asked for no image, and links are http, https and mailto."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise ConfigurationError(
            "An HTML page is made with markdown-it-py; pip install 'sagents-nb[export]'."
        ) from None
    made = MarkdownIt("js-default", {"html": False, "linkify": False, "typographer": False})
    made.validateLink = lambda url: _LINK.fullmatch(url) is not None  # type: ignore[method-assign]
    add_formulas(made)
    made.disable("image")  # its alternative text stays, as a link to where it lies
    return made


_PLAIN_MATH = "mrow mn mtext msqrt mroot msub msup msubsup mtr mphantom"
_PLAIN = "p h1 h2 h3 h4 h5 h6 ul li blockquote pre em strong s table thead tbody tr"
ELEMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_PLAIN.split(), ()),
    "a": ("href",),
    "ol": ("start",),
    "code": (),
    "td": ("style",),
    "th": ("style",),
    "br": (),
    "hr": (),
    # Formulas: MathML Core, without what links or loads.
    **dict.fromkeys(_PLAIN_MATH.split(), ()),
    **dict.fromkeys(["munder", "mover", "munderover"], ("accent", "accentunder")),
    "math": ("display",),
    "mi": ("mathvariant",),
    "mo": ("stretchy", "fence", "form", "separator", "minsize", "maxsize", "lspace", "rspace"),
    "mfrac": ("linethickness",),
    "mspace": ("width",),
    "mstyle": ("displaystyle", "scriptlevel", "mathcolor"),
    "mtable": ("displaystyle", "columnalign", "rowspacing", "columnspacing"),
    "mtd": ("columnalign",),
}
"""What Markdown may become, with the attributes that are kept."""

_VOID = ("br", "hr")
_OF_MATHML = re.compile(r"#?[\w. +-]{1,60}")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_SPEAKER = 2  # the level of the heading that says who speaks
_VALUES = {
    "href": _LINK,
    "start": re.compile(r"\d{1,9}"),
    "style": re.compile(r"text-align:(left|right|center)"),
}


def sanitized(html: str) -> str:
    """``html`` written anew: only :data:`ELEMENTS`, each closed, and everything else as text.

    Headings get their level in the page, where the agent's turn has the second.

    >>> sanitized('<p onclick="x()">a<script>b</script> <a href="javascript:c">d</a>')
    '<p>ab <a>d</a></p>'
    """
    writer = _Writer()
    writer.feed(html)
    writer.close()
    return writer.written()


class _Writer(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._open: list[str] = []
        self._link: tuple[str, int] | None = None  # the address, and where its text begins
        self._level = _SPEAKER  # that of the last heading

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ELEMENTS:
            return
        kept = [
            (name, value)
            for name, value in attrs
            if name in ELEMENTS[tag]
            and value is not None
            and _VALUES.get(name, _OF_MATHML).fullmatch(value)
        ]
        shown = "".join(f' {name}="{escape(value)}"' for name, value in kept)
        if tag == "a" and kept:
            shown += ' rel="noopener noreferrer nofollow"'
            self._link = (kept[0][1], len(self._parts) + 1)
        if tag in _HEADINGS:
            # Below who speaks, and never two levels below the one before, however a model counts.
            self._level = min(_SPEAKER + int(tag[1]), self._level + 1, len(_HEADINGS))
            shown += f' aria-level="{self._level}"'
        elif tag == "pre":
            shown += ' tabindex="0"'  # what is too wide is scrolled by keyboard too
        elif tag == "table":
            self._parts.append('<div class="table" tabindex="0">')
        self._parts.append(f"<{tag}{shown}>")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self._open:
            self._end(inner := self._open.pop())
            if inner == tag:
                break

    def _end(self, tag: str) -> None:
        self._parts.append("</table></div>" if tag == "table" else f"</{tag}>")
        if tag == "a" and self._link is not None:
            address, start = self._link
            self._link = None
            if "".join(self._parts[start:-1]) != escape(address):
                self._parts.append(f' <span class="address">({escape(address)})</span>')

    def handle_data(self, data: str) -> None:
        self._parts.append(escape(data))

    def written(self) -> str:
        while self._open:
            self._end(self._open.pop())
        return "".join(self._parts)
