"""A conversation as Markdown that every renderer may show: see ``transcript.inert``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from ..transcript import as_entities, bounded, fenced, inert, one_line, unstyled
from .document import Argument, Call, Document, File, Given, Note, Picture, Text, Thought, Turn

TODO_MARKS = {"completed": "✓", "in_progress": "▸", "cancelled": "–", "pending": "○"}
_SIMPLE = 120  # characters of a value that stands in the line of its name
# GitHub and JupyterLab make links of ftp:// by themselves, as of the web's addresses.
_MEANS_SOMETHING = re.compile(r"[^\w ,;:./'-]|_|(?<=ftp:)/", re.I)
_OPENS = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")


def markdown_of(document: Document) -> str:
    """The whole document."""
    blocks = [heading(document), *(turn_markdown(turn) for turn in document.turns)]
    blocks += appendix(document)
    return "\n\n".join(block for block in blocks if block) + "\n"


def heading(document: Document) -> str:
    """The title, and which conversation it is."""
    title = plain(document.title or document.id or "Conversation")
    told = [part for part in (document.id if document.title else "", document.models) if part]
    return f"# {title}" + (f"\n\n{plain(', '.join(told))}" if told else "")


def turn_markdown(turn: Turn) -> str:
    """One message: people's as a quote, calls and thoughts folded."""
    if turn.role == "user":
        said = [part_markdown(part) for part in turn.parts if not isinstance(part, Given)]
        text = "\n\n".join(said)
        quote = "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))
        # Not in the quote: some renderers end a fold there.
        given = [part_markdown(part) for part in turn.parts if isinstance(part, Given)]
        return "\n\n".join([quote, *given])
    blocks = [part_markdown(part) for part in turn.parts]
    if turn.role != "assistant":
        blocks.insert(0, f"**{plain(turn.role)}**")
    return "\n\n".join(block for block in blocks if block)


def part_markdown(part: Text | Thought | Note | Picture | Call | Given) -> str:
    """One part of a message."""
    match part:
        case Text():
            return prose(part.text)
        case Thought():
            return folded("Thinking", [code(part.text)])
        case Note():
            return f"**{plain(part.text)}**" if part.is_error else plain(part.text)
        case Picture():
            return picture(part)
        case Call():
            fold = folded(call_line(part), call_blocks(part))
            return "\n\n".join([fold, *map(picture, part.pictures)])
        case Given():
            return folded(part.line, list(_arguments(part.fields, "")))


def call_line(call: Call) -> str:
    """A call in a line: its name, what became of it, who decided."""
    return f"{call.name}: {call.outcome(call.status)}"


def call_blocks(call: Call) -> Iterator[str]:
    """What a call shows when it is unfolded."""
    yield from _arguments(call.arguments, call.name)
    if call.asked is not None:
        yield "The model had asked for:"
        yield from _arguments(call.asked, call.name)
    if call.inside:
        yield "\n".join(f"- {plain(line)}" for line in call.inside)
    for part in call.told:
        yield code(part.text) if isinstance(part, Text) else part_markdown(part)


def _arguments(arguments: tuple[Argument, ...], tool: str) -> Iterator[str]:
    for name, value in arguments:
        if "\n" in value or len(value) > _SIMPLE:
            yield f"{plain(name)}:"
            yield code(value, "python" if (tool, name) == ("run_python", "code") else "text")
        else:
            yield f"{plain(name)}: {_span(value)}"


def appendix(document: Document) -> Iterator[str]:
    """To-do list, files and usage, a block for each."""
    if document.todos:
        lines = [f"- {TODO_MARKS[t.status]} {plain(t.content)}" for t in document.todos]
        yield "## To-do list\n\n" + "\n".join(lines)
    if document.files:
        yield "\n\n".join(["## Files", *(file_markdown(file) for file in document.files)])
    yield f"## Usage\n\n{document.used}"


def file_markdown(file: File) -> str:
    """One file, folded."""
    shown = (
        code(file.content.text) if isinstance(file.content, Text) else part_markdown(file.content)
    )
    return folded(f"{file.path} ({file.size:,} bytes)", [shown])


def folded(summary: str, blocks: Iterator[str] | list[str]) -> str:
    """Blocks of Markdown under a line of text."""
    body = "\n\n".join(block for block in blocks if block)
    line = escape(one_line(unstyled(summary)))
    return f"<details><summary>{line}</summary>\n\n{body}\n\n</details>"


def prose(text: str) -> str:
    """A model's or a person's Markdown, which ends where it ends: its last code block too."""
    text = bounded(text.strip("\n"))
    fence = ""
    for line in text.split("\n"):
        if not fence and (opens := _OPENS.match(line)):
            fence = opens[1]
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
    return inert(f"{text}\n{fence}" if fence else text, local=False)


def code(text: str, language: str = "text") -> str:
    """``text`` as it is."""
    return inert(fenced(text, language))


def plain(text: str) -> str:
    """``text`` in a line of Markdown, as it is.

    >>> plain("a.md: 1 * 2")
    'a.md: 1 &#42; 2'
    """
    return _MEANS_SOMETHING.sub(lambda found: as_entities(found[0]), one_line(unstyled(text)))


def _span(text: str) -> str:
    if not text or "`" in text or text != text.strip():
        return f"<code>{as_entities(text)}</code>"
    return inert(f"`{text}`")


def picture(part: Picture) -> str:
    """An image that is in the file itself."""
    return f"![{as_entities(part.name)}](data:{part.mime_type};base64,{part.data})"
