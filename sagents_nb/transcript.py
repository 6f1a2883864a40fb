"""A conversation as text that is readable everywhere: plain, Markdown and folded HTML."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .calls import CallRecord, call_records
from .citations import citations_of
from .messages import (
    CUT_SHORT,
    DECLINED,
    NOT_RUN,
    SHOWN_IN_CELL,
    FilePart,
    ImagePart,
    Message,
    ToolResult,
    Usage,
    brief_of,
    fields_of,
    image_of,
)
from .text import visible

_SHOWN = 2000
_UNFOLDED = 8  # lines of a result that stand below its call; more are folded
# A result below its call as `markdown` writes it, and as `inert` leaves it.
_RESULT = re.compile(
    r"^(- `[^\n]*)\n\n( {2}(`{3,})text\n(?: {2}[^\n]*\n)*? {2}\3| {2}<pre>[^\n]*</pre>)$",
    re.MULTILINE,
)

MOST = 100_000
"""Characters of a transcript that a notebook keeps; up to twice as many, to begin at a question."""

MOST_IMAGE = 1_000_000
"""Bytes of an image that an export holds, and a transcript."""

MOST_IMAGES = 4_000_000
"""Characters of base64 of all images that a transcript holds, the newest first."""

LATEST_IMAGES = 1_400_000
"""As many of the latest turns, of which a page is told anew after each run: at least one image."""


def one_line(text: str) -> str:
    r"""``text`` as :func:`visible` makes it, in one line: a name begins no quote and no heading.

    >>> one_line("ls\n\n> Yes.")
    'ls > Yes.'
    """
    return visible(" ".join(text.split()))


_LONGEST_TITLE = 60  # characters


def title_of(messages: Iterable[Message], clean: Callable[[str], str] = str) -> str:
    """What a conversation without a title is called: its first question, shortened.

    Of a prompt that is its first paragraph: what {variables} stand for comes after it. ``clean``
    takes secrets out before it is cut.
    """
    texts = (m.shown.text for m in messages if m.role == "user")
    asked = (one_line(clean(text).strip().partition("\n\n")[0]) for text in texts)
    first = next(filter(None, asked), "")
    if len(first) <= _LONGEST_TITLE:
        return first
    return f"{first[: _LONGEST_TITLE - 1].rstrip()}…"


# Renderers of Markdown, JupyterLab's among them, call themselves for each level of nesting, and
# take time by the square of a paragraph, or worse: a few kB that nobody would write by hand took
# the page of a notebook its stack, or minutes. What is beyond a bound is shown as plain text.
_DEEPEST = 30  # levels of quotes and items, at most as many as their markers and steps of indent
_RUN = 3_000_000  # characters of a paragraph times what in it may open or close something
_RUNS = 10 * _RUN  # of all of them
_LINES = 1_000  # of a paragraph, which may be one of a list
_MARKER = re.compile(r">|(?:[*+-]|\d{1,9}[.)])(?=[ \t]|$)|[ \t]")
_MARK = re.compile(r"[*_~`\[\]<!()\\&]")
_ITEM = re.compile(r"[ \t]*(?:[*+-]|(\d{1,9})[.)])[ \t]+\S")
_RULE = re.compile(r"[ \t]*:?-+:?[ \t]*")
_FENCE = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})")  # not indented: it is in no list, and ends one
_RAW_HTML = re.compile(
    r"[ \t]*(?:(?:[>*+-]|\d{1,9}[.)])[ \t]*)*<(?:script|pre|style|textarea|!|\?)", re.I
)


def bounded(text: str) -> str:
    """Markdown that renderers can bear: ``text``, or it as plain text in a code block.

    >>> bounded("*hello*")
    '*hello*'
    >>> print(bounded("- " * 31 + "hello"))
    ```text
    - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - hello
    ```
    """
    return fenced(text) if _too_much(text) else text


def _too_much(text: str) -> bool:
    length = marks = lines = total = 0
    # In HTML what looks like a fence is none, so where there may be HTML it hides nothing.
    raw_html = any(_RAW_HTML.match(line) for line in text.split("\n"))
    closing: re.Pattern[str] | None = None
    above, rows, items = "", False, False
    for line in [*text.split("\n"), ""]:
        if closing is not None:
            if closing.fullmatch(line):
                closing = None
            continue
        if _depth(line) > _DEEPEST:
            return True
        fence = None if raw_html else _FENCE.match(line)
        blank = fence is not None or not line.strip()
        item = _ITEM.match(line)
        # An item begins a paragraph of its own, but in a paragraph only the first of a list does.
        items = not blank and (
            items or (item is not None and (not above or item[1] in (None, "1")))
        )
        rows = not blank and (rows or _heads_table(above, line))
        if blank or rows or (item and items):
            total += length * marks
            if length * marks > _RUN or total > _RUNS or lines > _LINES:
                return True
            length = marks = lines = 0
        if fence:
            closing = re.compile(rf" {{0,3}}{fence[1][0]}{{{len(fence[1])},}}[ \t]*")
        above = "" if blank else line
        if above:
            length, marks, lines = (
                length + len(line) + 1,
                marks + len(_MARK.findall(line)),
                lines + 1,
            )
    return False


def _heads_table(line: str, below: str) -> bool:
    """Whether a table begins, of which each row is a paragraph of its own."""
    head, rules = (row.strip().strip("|").split("|") for row in (line, below))
    plain = "\\" not in line and "`" not in line
    return plain and "|" in below and len(head) == len(rules) and all(map(_RULE.fullmatch, rules))


def _depth(line: str) -> int:
    """How deep a line may nest: it has a marker or two columns of indent for each level."""
    place = levels = columns = 0
    while levels <= _DEEPEST and (found := _MARKER.match(line, place)):
        place = found.end()
        if found[0] in " \t":
            columns += 4 if found[0] == "\t" else 1
            levels += columns // 2
            columns %= 2
        else:
            levels, columns = levels + 1, -1  # the space behind a marker is its own
    return levels if line.strip() else 0


def fenced(text: str, language: str = "text") -> str:
    """``text`` as a code block of Markdown, whatever is in it.

    >>> print(fenced("1 + 1", "python"))
    ```python
    1 + 1
    ```
    """
    fence = "`" * max(3, 1 + max((len(m) for m in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


_MARKUP = re.compile(
    r"[`*~$\\]|\](?=[(\[:])|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|&(?=#|\w+;)"
    r"|^\s*(?:#+(?:\s|$)|>|[+-](?:\s|$)|\d+[.)](?:\s|$))"
)


def spanned(text: str) -> str:
    """``text`` in a line of Markdown, as it is: as code, where anything in it would be markup.

    No escape would do: a notebook's page sets formulas in all text but code.

    >>> spanned("body_mass_g & more"), spanned("<b>5 $</b>"), spanned("a`b")
    ('body_mass_g & more', '`<b>5 $</b>`', '``a`b``')
    >>> spanned("of [patient]"), spanned("[patient](http://a.example)")
    ('of [patient]', '`[patient](http://a.example)`')
    """
    text = one_line(text)
    if not _MARKUP.search(text):
        return text
    ticks = "`" * (1 + max((len(m) for m in re.findall("`+", text)), default=0))
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{blank}{text}{blank}{ticks}"


# The page of a notebook trusts what its cells have put out: HTML in their Markdown is run, an
# image is fetched, a link goes where it says. So is the notebook's export to HTML.
_TAG = re.compile(r"<(?=[A-Za-z/!?])")  # else it is no HTML: a number may be < another
_ADDRESSED = re.compile(r"(\]\(|\]:)(?=\s*([^\s)]{0,101}))")
_ABSOLUTE = re.compile(r"https?://|mailto:", re.I)
# Or local: a path without anything that a renderer or a browser may turn into a second slash at
# its beginning, behind which there would be the name of another host.
_NAME = r"[\w.~%+=@,;!$*'(-]"
_SAFE = re.compile(rf"{_ABSOLUTE.pattern}|/?(?:{_NAME}{{1,100}}/|{_NAME}{{0,100}}(?:[?#]|$))", re.I)
# JupyterLab and nbconvert draw it as the diagram it is, which may load images and hold HTML.
_DRAWN = re.compile(r"((?:(?<!`)`{3,}+|(?<!~)~{3,}+)(?:[^\S\n]|\ufeff)*+)mermaid", re.I)
# What gives formulas an address or a style: MathJax, which sets them on these pages, lets styles
# name images, and links lead anywhere. It reads the page, so entities must not spell them either.
_STYLED = re.compile(
    r"\\(?=(?:style|mmlToken|bbox|fcolorbox|unicode|href|url|class|cssId|data|require"
    r"|includegraphics|html\w+)(?![A-Za-z]))"
)
_SPELLS = re.compile(r"&(?=#|(?:bsol|dollar);)")
_FTP = re.compile(r"(?<=ftp:)/", re.I)  # some make links of such addresses, too
_SPECIAL = re.compile(r"[^\w ]", re.ASCII)
_NEWLINE = f"&#{ord(chr(10))};"
_OPENS = re.compile(r"([ \t>]*)(`{3,}|~{3,})[^`]*$")
_TICKS = re.compile(r"`+|\n[ \t>]*\n")  # and where a paragraph ends, and what is in it
_MATH = re.compile(r"(\$\$[^$]+\$\$|\$[^$\n]+\$)")


def inert(text: str, *, local: bool = True) -> str:
    """Markdown as a notebook may show it: no HTML of its own, no image, no link that is a script.

    A diagram in Mermaid is shown as its code, and in a formula no command is run that links or
    loads.

    Where that is in code, the code is HTML of ours, in which nothing but letters stands for
    itself; wherever a renderer sees code and this does not, an escape is seen, and no more.
    Links may be ``local``: to what lies beside the notebook, or is on its server.

    >>> inert("1 < 2, *so* <b>bold</b> ![it](http://x/y.png) [is](javascript:alert)")
    '1 < 2, *so* &lt;b>bold&lt;/b> &#33;[it](http://x/y.png) [is]&#40;javascript:alert)'
    >>> inert("`a<b>`")
    '<code>a&#60;b&#62;</code>'
    """
    safe = _SAFE if local else _ABSOLUTE
    if _harmless(text, safe) == text:
        return text
    blocks: list[str] = []
    lines: list[str] = []
    fence = indent = ""
    for line in text.split("\n"):
        opens = None if fence else _OPENS.match(line)
        if opens is not None:
            blocks += [_inert_prose("\n".join(lines), safe)] if lines else []
            lines, (indent, fence) = [], opens.groups()
        lines.append(line)
        end = "" if opens else line.strip(" \t>")
        if fence and end.startswith(fence) and not end.strip(fence[0]):
            blocks.append(_inert_block(lines, indent, safe))
            lines, fence = [], ""
    if lines:  # an answer may be cut in the middle of its code
        blocks.append(
            _inert_block(lines, indent, safe) if fence else _inert_prose("\n".join(lines), safe)
        )
    return "\n".join(blocks)


def _inert_block(lines: list[str], indent: str, safe: re.Pattern[str]) -> str:
    text = "\n".join(lines)
    if _harmless(text, safe) == text:
        return text
    code = [line.removeprefix(indent) for line in lines[1:]]
    if code and not code[-1].strip(" \t>`~"):
        code.pop()
    return f"{indent}<pre>{as_entities(chr(10).join(code))}</pre>"


def _inert_prose(text: str, safe: re.Pattern[str]) -> str:
    marks = list(_TICKS.finditer(text))
    closing: list[int | None] = []  # by mark: where its code ends, if it begins some
    last: dict[str, int] = {}
    for place in range(len(marks) - 1, -1, -1):
        mark = marks[place][0]
        closing.append(last.get(mark))
        if mark[0] == "`":
            last[mark] = place
        else:
            last.clear()
    closing.reverse()
    parts: list[str] = []
    end = place = 0
    while place < len(marks):
        if (close := closing[place]) is None or marks[place][0][0] != "`":
            place += 1
            continue
        opened, closed = marks[place], marks[close]
        span = text[opened.end() : closed.start()]
        parts.append(_inert_text(text[end : opened.start()], safe))
        whole = text[opened.start() : closed.end()]
        as_it_is = _harmless(whole, safe) == whole
        parts.append(whole if as_it_is else f"<code>{as_entities(span)}</code>")
        end, place = closed.end(), close + 1
    return "".join([*parts, _inert_text(text[end:], safe)])


def _inert_text(text: str, safe: re.Pattern[str]) -> str:
    pieces = _MATH.split(text)  # every other one is a formula, in which no entity counts
    less = ("&lt;", "< ")
    return "".join(_harmless(piece, safe, less[n % 2]) for n, piece in enumerate(pieces))


def _harmless(text: str, safe: re.Pattern[str], less: str = "&lt;") -> str:
    def without_script(link: re.Match[str]) -> str:
        mark, address = link.groups()
        return mark if safe.match(address) else f"]&#{ord(mark[1])};"

    text = _FTP.sub("&#47;", unstyled(_SPELLS.sub("&amp;", text)))
    text = _DRAWN.sub(r"\1text", _TAG.sub(less, text).replace("![", "&#33;["))
    return _ADDRESSED.sub(without_script, text)


def unstyled(text: str) -> str:
    r"""``text`` whose formulas have no style, no address and no package to load.

    Pages set formulas in all text but code, however it is escaped.

    >>> print(unstyled(r"$\style{cursor: url(x)}{y}$"))
    $\ style{cursor: url(x)}{y}$
    """
    return _STYLED.sub(r"\\ ", text)


def as_entities(text: str) -> str:
    """``text`` as HTML in which nothing but letters stands for itself, for Markdown as well.

    >>> as_entities("*a*")
    '&#42;a&#42;'
    """
    return _SPECIAL.sub(lambda special: f"&#{ord(special[0])};", text)


def with_folds(text: str) -> str:
    r"""A transcript that is :func:`inert`, with the long results of calls folded under a line.

    >>> result = fenced("\n".join("abcdefghij")).replace("\n", "\n  ")
    >>> print(with_folds(f"- `ls()` gave\n\n  {result}").splitlines()[2])
      <details><summary>10 lines</summary>
    """

    def fold(found: re.Match[str]) -> str:
        call, result, fence = found.groups()
        lines = result.count("\n") - 1 if fence else result.count(_NEWLINE) + 1
        if lines <= _UNFOLDED:
            return found[0]
        summary = f"<details><summary>{lines} lines</summary>"
        return f"{call}\n\n  {summary}\n\n{result}\n\n  </details>"

    return _RESULT.sub(fold, text)


def run_summary(status: str, messages: Sequence[Message]) -> str:
    """One stable line: no time, no ids."""
    turns = sum(1 for m in messages if m.role == "assistant")
    calls = sum(len(m.tool_calls) for m in messages)
    parts = [f"{turns} turn{'' if turns == 1 else 's'}"]
    if calls:
        parts.append(f"{calls} tool call{'' if calls == 1 else 's'}")
    answers = [m for m in messages if m.role == "assistant"]
    if status == "completed" and answers and answers[-1].stop_reason in CUT_SHORT:
        status = f"completed, cut ({answers[-1].stop_reason})"
    return f"Agent run {status}: {', '.join(parts)}"


def usage_line(usage: Usage) -> str:
    """Tokens and, where it is known, money.

    >>> usage_line(Usage(1200, 34, cost_usd=0.5))
    '1,234 tokens: 1,200 in, 34 out; 0.5000 USD'
    """
    line = f"{usage.total_tokens:,} tokens: {usage.input_tokens:,} in, {usage.output_tokens:,} out"
    if usage.cache_read_tokens or usage.cache_write_tokens:
        line += f", {usage.cache_read_tokens:,} read from the cache"
        line += f", {usage.cache_write_tokens:,} written to it"
    return line if usage.cost_usd is None else f"{line}; {usage.cost_usd:.4f} USD"


ESTIMATED = (
    "The demo only estimates what a language model would take for the same: it counts each call's "
    "whole conversation and tools, asks no provider, and costs nothing."
)
"""What is said beside tokens of the demo."""


class Block(NamedTuple):
    """Some paragraphs of a transcript: as ``text``, and ``beside`` images that it need not name."""

    text: str
    images: tuple[ImagePart, ...] = ()
    beside: str = ""
    indent: str = ""


class Transcript(str):
    """A transcript as text, which names its images, and as Markdown that shows them.

    An image of it is a part of a message or a result. What somebody wrote never becomes one.
    """

    __slots__ = ("blocks",)
    blocks: tuple[Block, ...]

    def __new__(cls, blocks: Iterable[Block], most: int = MOST_IMAGES) -> Transcript:
        """Of these blocks; the oldest of too many images, for ``most`` characters, are named."""
        kept: list[Block] = []
        left = most
        for block in reversed([block for block in blocks if block.text or block.images]):
            size = sum(len(part.data or "") for part in block.images)
            checked = (checked_image(part.data or "") for part in block.images if size <= left)
            images = tuple(image for image in checked if image is not None)
            whole = len(images) == len(block.images)
            left -= size if whole else 0
            kept.append(block._replace(images=images) if whole else Block(block.text))
        kept.reverse()
        made = super().__new__(cls, "\n\n".join(block.text for block in kept if block.text))
        made.blocks = tuple(kept)
        return made

    def with_images(self, safe: Callable[[str], str]) -> str:
        """Markdown with the images, of whose texts ``safe`` makes what may be shown."""
        pieces: list[str] = []
        texts: list[str] = []
        for text, images, beside, indent in [*self.blocks, Block("")]:
            texts += [beside if images else text]
            if images or not text:  # before an image, and at the end
                said = "\n\n".join(filter(None, texts))
                pieces += [safe(said)] if said else []
                texts = []
            pieces += [f"{indent}![image](data:{i.mime_type};base64,{i.data})" for i in images]
        return "\n\n".join(pieces)


_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")


def checked_image(data: str) -> ImagePart | None:
    """What is an image by its bytes, whatever it is said to be; None for a large one, too.

    >>> checked_image("iVBORw0KGgo=").mime_type, checked_image("PHN2Zy8+")
    ('image/png', None)
    """
    if len(data) > 1.4 * MOST_IMAGE or not _BASE64.fullmatch(data):
        return None
    try:
        content = base64.b64decode(data)
    except binascii.Error:
        return None
    return image_of(content) if len(content) <= MOST_IMAGE else None


def markdown(messages: Iterable[Message], clean: Callable[[str], str] = str) -> Transcript:
    """The messages as Markdown: what people said, tool calls as one line with their results.

    ``clean`` takes secrets out of texts, before these are cut.
    """
    return Transcript(_blocks(messages, clean))


def _blocks(messages: Iterable[Message], clean: Callable[[str], str]) -> Iterator[Block]:
    messages = list(messages)
    records = iter(call_records(messages))
    for message in messages:
        text = bounded(visible(clean(message.shown.text)).strip())
        images = _images(message.shown.parts)
        if message.role == "user":
            if fields := fields_of(message):
                text += f"\n\n({visible(clean(brief_of(fields)))})"
            said = "\n".join(f"> {line}" for line in text.splitlines())
            yield Block(said, images, said)
        elif message.role == "assistant":
            said = _closed(text)
            yield Block(said, images, said)
            cited = [f"- {spanned(clean(str(citation)))}" for citation in citations_of(message)]
            yield Block("\n".join(cited))
            yield from (_call_block(next(records), clean) for _ in message.tool_calls)
            if note := message.error or CUT_SHORT.get(message.stop_reason or ""):
                note = visible(clean(note))
                as_it_is = "\n" in note or _too_much(note)
                yield Block(fenced(note) if as_it_is else f"**{note}**")


def _closed(text: str) -> str:
    """``text`` whose last code block ends with it, as of an answer that was cut in its code."""
    fence = ""
    for line in text.split("\n"):
        if not fence and (opens := _FENCE.match(line)):
            fence = opens[1]
        elif fence and (end := line.strip(" \t")).startswith(fence) and not end.strip(fence[0]):
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _images(parts: Iterable[Any]) -> tuple[ImagePart, ...]:
    """The images of a message or a result, () where one of them lies elsewhere."""
    images = tuple(part for part in parts if isinstance(part, ImagePart))
    return images if all(image.data for image in images) else ()


def latest_markdown(messages: Sequence[Message], clean: Callable[[str], str] = str) -> Transcript:
    """The latest turns as Markdown, about MOST characters of it, below a word on those before.

    ``clean`` is as for :func:`markdown`. What is shown as the last line of a cell is kept in the
    notebook's file. Of a turn that has more than that again, its latest messages are shown.
    """
    steps: list[list[Block]] = []
    shown, end = 0, len(messages)
    while end and (shown < MOST or (shown < 2 * MOST and messages[end].role != "user")):
        first = end - 1
        while first and messages[first].role == "tool":  # results are shown with their calls
            first -= 1
        steps.append(list(_blocks(messages[first:end], clean)))
        shown, end = shown + sum(len(block.text) for block in steps[-1]), first
    if end:
        what = "message is" if end == 1 else "messages are"
        said = f"*{end:,} earlier {what} not shown here; to_frame('messages') has them.*"
        steps.append([Block(said)])
    return Transcript((block for step in reversed(steps) for block in step), LATEST_IMAGES)


def _call_block(record: CallRecord, clean: Callable[[str], str]) -> Block:
    name = _name(clean(record.call.name))
    line = f"- `{name}({_arguments(record.arguments, clean)})`"
    if record.edited is not None:
        by = _name(str((record.decision or {}).get("by", "user")))
        asked = f"{name}({_arguments(record.call.arguments, clean)})"
        line += f" (edited by `{by}`; the model asked for `{asked}`)"
    result = record.result
    if result is None:
        return Block(f"{line} waits for {'an answer' if record.said else 'a decision'}")
    not_run = result.metadata.get(NOT_RUN)
    if not_run is None and result.metadata.get(DECLINED) is True:
        not_run = "not done"
    word = f"was {not_run}" if not_run else "failed" if result.is_error else "gave"
    # What stands in the cell of the call is kept there.
    images = () if result.metadata.get(SHOWN_IN_CELL) is True else _images(_parts(result))
    text = f"{line} {word}\n\n{_result_block(result, _UNSEEN, clean)}"
    if not images:
        return Block(text)
    beside = _result_block(result, (FilePart,), clean)
    return Block(text, images, f"{line} {word}\n\n{beside}".rstrip(), "  ")


def _result_block(result: ToolResult, named: Iterable[type], clean: Callable[[str], str]) -> str:
    """The text of a result, with what of these is in it named; "" beside images alone."""
    shown = _short(visible(clean(result.text)))
    for kind in named:
        one, more = _UNSEEN[kind]
        if count := sum(isinstance(part, kind) for part in _parts(result)):
            what = one if count == 1 else f"{count} {more}"
            shown = f"{shown}\n[{what}]".lstrip("\n")
    return _indent(fenced(shown)) if shown or ImagePart in named else ""


_SEEN = "shown in the panel and exports"
# What is no text and is named instead: one, and several.
_UNSEEN: dict[type, tuple[str, str]] = {
    ImagePart: (f"an image, {_SEEN}", f"images, {_SEEN}"),
    FilePart: ("a file", "files"),
}


def _parts(result: ToolResult) -> Sequence[Any]:
    return () if isinstance(result.content, str) else result.content


def _name(text: str) -> str:
    """For a span of code, which ends at a backtick and before an empty line."""
    return one_line(text).replace("`", "'")


def _arguments(arguments: dict[str, Any], clean: Callable[[str], str]) -> str:
    shown = ", ".join(f"{one_line(n)}={_value(value, clean)}" for n, value in arguments.items())
    return visible(shown).replace("`", "'")


def _value(value: object, clean: Callable[[str], str]) -> str:
    if isinstance(value, str):
        value = clean(value)
    if isinstance(value, list):
        return f"[{len(value)} item{'' if len(value) == 1 else 's'}]"
    if isinstance(value, dict):
        return "{...}" if value else "{}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]}...'"


def _short(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}\n... {len(text) - _SHOWN:,} more characters"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def folded(summary: str, transcript: str) -> str:
    """HTML: the summary line with the transcript folded under it. Everything is escaped text."""
    import html

    body = html.escape(transcript)
    return (
        f"<details><summary>{html.escape(unstyled(summary))}</summary>"
        f'<pre style="white-space: pre-wrap">{body}</pre></details>'
    )
