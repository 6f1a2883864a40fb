"""What the demo model reads of a conversation: its task, the calls so far, what they came to.

A result is a fact; of facts it makes tables, findings in a sentence or two, and reports.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import msgspec

from ...calls import edited_arguments
from ...messages import NOT_RUN, ImagePart, Message, ToolCall, ToolResult
from ...state import TODOS
from ...text import whole
from ...transcript import fenced, spanned
from ..base import ModelRequest
from .frames import described_apart
from .words import IDENTIFIER, QUANTITIES, fenced_apart, stems, superlative, word_set, words

Rows = list[dict[str, Any]]

# How a notebook hands over a cell that failed.
FAILED_CELL = re.compile(
    r"(?:A cell|Cell \d+) of this notebook failed:\n\n(`{3,})python\n(.*?)\n?\1\n\n"
    r"(`{3,})text\n(.*?)\n?\3\n\n(?:(.*?)\n\n)?Say in a sentence what was wrong",
    re.DOTALL,
)
_LONGEST = 20_000  # characters of a task that are read, and of a result that is shown as it is
_SHOWN = 600  # characters of a reason
_RECENT = 200  # messages to look back for what a follow-up question is about
_BY_PERSON = re.compile(
    r"\b(?:person|people|user|human|you)\b[^.\n]{0,40}\b(?:rejected|declined)\b", re.IGNORECASE
)
_COMMENT = re.compile(r"\bThey said:\s*(.*)", re.DOTALL)
_GO_ON = re.compile(
    r"\W*(?:please\W+|ok(?:ay)?\W+|now\W+)*(?:(?:try|do|ask)\b[\w ]*\bagain|again|retry|go on|"
    r"continue|carry on|proceed|once more)\b(?:\W+(?:please|now))*\W*",
    re.IGNORECASE,
)
_CANCELLED = re.compile(r"\bcancelled\b", re.IGNORECASE)
_CALL_ID = re.compile(r"call_(\d+)_\d+")
_STATISTICS = word_set("count mean std min max median 25% 50% 75% sum n index")
GROUPS = ("by", "group", "groupby", "group_by", "per", "category", "grouping")
_COUNTS = ("count", "n", "rows", "size", "number", "frequency")
_ASKED = {
    "median": ("median", "50%"),
    "maximum": ("max", "maximum"),
    "minimum": ("min", "minimum"),
    "total": ("sum", "total"),
    "sum": ("sum", "total"),
    "mean": ("mean", "average", "avg"),
    "average": ("mean", "average", "avg"),
    "many": _COUNTS,
    "count": _COUNTS,
}


class Fact(msgspec.Struct, frozen=True):
    """One call and what came of it; ``status`` is "ok", "error" or "rejected".

    It ran with ``arguments``, and with ``asked`` it was called: a person may have edited them.
    ``pictures`` are how many came of it, which stand above what is said of it.
    """

    step: str
    name: str
    arguments: dict[str, Any]
    text: str
    status: str
    asked: dict[str, Any]
    pictures: int = 0

    @property
    def edited(self) -> bool:
        """Whether it did something else than what was asked, so that it answers nothing."""
        return self.arguments != self.asked

    @property
    def rows(self) -> Rows:
        """The result as a table, [] if it is none."""
        return table_of(self.text) if self.status == "ok" else []


class Done(msgspec.Struct, frozen=True):
    """A call of the history and its result, None where there is none."""

    call: ToolCall
    result: ToolResult | None

    @property
    def status(self) -> str:
        """ "ok", "error" or "rejected"."""  # noqa: D210
        if self.result is None or self.result.is_error or self.result.is_interrupt:
            return "error"
        # As the loop marks what it did not run; a tool may return any words.
        return "rejected" if self.result.metadata.get(NOT_RUN) == "rejected" else "ok"

    @property
    def was_stopped(self) -> bool:
        """Whether it, or its run, was stopped."""
        return self.result is not None and self.result.status == "cancelled"

    def fact(self, step: str) -> Fact:
        """What it came to, as a fact about a step."""
        text = self.result.text if self.result else "there is no result"
        asked = self.call.arguments
        edited = edited_arguments(self.result) if self.result else None
        ran = asked if edited is None else edited
        content = self.result.content if self.result else ""
        pictures = sum(isinstance(part, ImagePart) for part in content)
        return Fact(step, self.call.name, ran, text, self.status, asked, pictures)


class Talk:
    """A conversation, cut where the present task begins.

    ``task`` is what people said since the last answer, but for cells that were handed over to be
    mended, and for fenced blocks, which are ``pasted`` and ask for nothing; ``newest`` is the last
    of it as a whole, and ``asked`` the same with the frames that a notebook describes after it;
    ``done`` are the calls since then, ``todos`` those that wrote the to-do list. ``earlier`` are
    the facts before, ``before`` what people said before, the newest first, ``turns`` the same, each
    with its facts, the oldest first; ``told`` are the answers before, the newest first, and
    ``answered`` is the last one.
    """

    def __init__(self, request: ModelRequest) -> None:
        messages = list(request.messages)[-_RECENT:]
        begin = _begin(messages)
        said = [whole(m.text) for m in messages[begin:] if _is_of_person(m)]
        self.asked = "\n\n".join(said)
        self.newest = said[-1] if said else ""
        told = (text for text in said if not FAILED_CELL.match(text.lstrip()))
        apart = [fenced_apart(described_apart(text)[0]) for text in told]
        self.task = "\n".join(text for text, _ in apart if text.strip())[:_LONGEST]
        self.pasted = [inside for _, blocks in apart for inside in blocks]
        answers = (m.text for m in reversed(messages[:begin]) if m.role == "assistant")
        self.told = [text for text in answers if text.strip()]
        self.answered = next(iter(self.told), "")
        before = [whole(m.text) for m in messages[:begin] if _is_of_person(m) and m.text.strip()]
        self.before = before[::-1]
        calls = _calls(messages[begin:])
        # What was stopped is done when somebody has it go on.
        self.done = [d for d in calls if d.call.name != TODOS and not d.was_stopped]
        self.todos = [d for d in calls if d.call.name == TODOS]
        self.earlier = [d.fact("") for d in _calls(messages[:begin]) if d.call.name != TODOS]
        self.turns: list[tuple[str, list[Fact]]] = []
        for message, call in _told(messages[:begin]):
            if message:
                self.turns.append((message, []))
            elif call is not None and self.turns:
                self.turns[-1][1].append(call.fact(""))
        self.turn = 1 + max(
            (int(m[1]) for c in _ids(messages) if (m := _CALL_ID.fullmatch(c))),
            default=sum(m.role == "assistant" for m in messages),
        )


def _is_of_person(message: Message) -> bool:
    return message.role == "user" and not message.metadata.get("reminder")


def _ids(messages: Sequence[Message]) -> list[str]:
    return [call.id for message in messages for call in message.tool_calls]


def _begin(messages: Sequence[Message]) -> int:
    """Where the present task begins: after the last answer that a person replied to."""
    replied = goes_on = False
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if _is_of_person(message):
            goes_on = goes_on if replied else _GO_ON.fullmatch(message.text) is not None
            replied = True
        elif replied and message.role == "assistant":
            # After one that broke off somebody may ask for the rest of it, or something else.
            if not goes_on if message.stop_reason == "error" else not message.tool_calls:
                return position + 1
        elif replied and any(
            # Of one that a crash cut off only its mark says that nobody waits for it any more.
            r.is_error and (r.metadata.get(NOT_RUN) == "cancelled" or _CANCELLED.search(r.text))
            for r in message.tool_results
        ):
            return position + 1
    return 0


def _calls(messages: Sequence[Message]) -> list[Done]:
    results: dict[str, ToolResult] = {}
    for message in messages:
        for result in message.tool_results:
            results[result.tool_call_id] = result
    return [Done(c, results.get(c.id)) for message in messages for c in message.tool_calls]


def _told(messages: Sequence[Message]) -> list[tuple[str, Done | None]]:
    """What people said and the calls that were made, in their order."""
    done = {d.call.id: d for d in _calls(messages)}
    told: list[tuple[str, Done | None]] = []
    for message in messages:
        if message.role == "user" and message.text.strip():
            told.append((whole(message.text), None))
        told += [("", done[call.id]) for call in message.tool_calls]
    return told


def rejection(fact: Fact) -> str:
    """That a call was rejected, in a sentence or two: by whom, and what they said with it."""
    if not _BY_PERSON.search(fact.text[:200]):
        why = fact.text.removeprefix("This call was not run.").strip()[:_SHOWN]
        return f"`{fact.name}` was not run, so I left that out. {why}".strip()
    match = _COMMENT.search(fact.text)
    because = f" (“{spanned(match[1].strip())}”)" if match and match[1].strip() else ""
    return f"You rejected `{fact.name}`{because}, so I left that out."


def as_asked(step: str) -> str:
    """A step in the words of who asked, as it is but for names in backticks."""
    return spanned(step) if "`" in spanned(re.sub(r"`[^`]+`", "", step)) else step


def columns_of(facts: Sequence[Fact]) -> list[str]:
    """Names of columns that results and arguments mention."""
    found: list[str] = []
    for fact in facts:
        if fact.status == "ok":
            found += [key for row in fact.rows[:1] for key in row if key]
            found += IDENTIFIER.findall(fact.text[:5000])
        found += [v for v in fact.arguments.values() if isinstance(v, str) and v.isidentifier()]
    return [name for name in dict.fromkeys(found) if name.lower() not in _STATISTICS]


def path_of(arguments: dict[str, Any]) -> str | None:
    """The path in the arguments of a call; the new one of a move."""
    paths = [v for k, v in arguments.items() if isinstance(v, str) and ("path" in k or "file" in k)]
    return paths[-1] if paths else None


# What results say


def table_of(text: str) -> Rows:
    """Records in a text: JSON of several shapes, or a Markdown table.

    >>> table_of('{"mean": {"a": 1, "b": 2}}')
    [{'': 'a', 'mean': 1}, {'': 'b', 'mean': 2}]
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _markdown_rows(text)
    if isinstance(value, dict):
        nested = [v for v in value.values() if isinstance(v, list) and v and _records(v)]
        if len(nested) == 1:  # {"data": [...]}
            return list(nested[0])
        if value and all(isinstance(v, dict) for v in value.values()):
            labels = dict.fromkeys(label for column in value.values() for label in column)
            return [{"": label, **{c: v.get(label) for c, v in value.items()}} for label in labels]
        if value and all(not isinstance(v, dict | list) for v in value.values()):
            numeric = [v for v in value.values() if _is_number(v)]
            if len(numeric) == len(value) > 1 and not set(value) & {"mean", "min", "max", "std"}:
                return [{"": label, "value": number} for label, number in value.items()]
            return [value]
        return []
    return list(value) if isinstance(value, list) and value and _records(value) else []


def _records(value: list[Any]) -> bool:
    return all(
        isinstance(r, dict) and r and not any(isinstance(v, dict | list) for v in r.values())
        for r in value
    )


def _markdown_rows(text: str) -> Rows:
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("|")]
    if len(lines) < 3 or not re.fullmatch(r"[|:\-\s]+", lines[1]):
        return []
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [
        {name: _parsed(cell) for name, cell in zip(cells[0], row, strict=False)}
        for row in cells[2:]
    ]


def _parsed(cell: str) -> Any:
    try:
        return float(cell) if "." in cell else int(cell)
    except ValueError:
        return cell


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number(value: Any) -> str:
    """A number as people write it.

    >>> number(5076.016), number(168), number(43.92193), number(0.12345), number(10.25)
    ('5,076', '168', '43.9', '0.123', '10.3')
    """
    if not _is_number(value):
        return "" if value is None else str(value)
    if float(value).is_integer():
        return f"{int(value):,}"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 3
    text = f"{rounded(value, digits):,f}"
    return text.rstrip("0").rstrip(".") if digits == 3 else text


def rounded(value: float, digits: int) -> Decimal:
    """The number with so many decimals, as it is written.

    In binary a half is rounded to an even digit, or is a bit less.

    >>> rounded(38.25, 1), round(38.25, 1)
    (Decimal('38.3'), 38.2)
    """
    return Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def numeric_columns(rows: Rows) -> list[str]:
    """The columns that hold numbers, and nothing else but gaps."""
    return [
        column
        for column in rows[0]
        if any(_is_number(row.get(column)) for row in rows)
        and all(_is_number(row.get(column)) or row.get(column) is None for row in rows)
    ]


def of_edited(fact: Fact) -> str:
    """What came of a call that a person changed: all of its result, and no claim about it."""
    what = "code" if "code" in fact.arguments else f"arguments of `{fact.name}`"
    return f"You changed the {what}. The result is:\n\n{fenced(fact.text.strip()[:_LONGEST])}"


def finding(fact: Fact, asked: str) -> str:
    """What a table says to a question, in a sentence or two; "" without one that answers it."""
    rows = fact.rows
    if not rows or fact.edited:
        return ""
    given = [str(v) for v in fact.arguments.values() if isinstance(v, str)]
    columns = numeric_columns(rows)
    labels = [c for c in rows[0] if c not in columns]
    # What it was grouped by is a label even where it is a number, such as a year.
    grouped = [v for name, v in fact.arguments.items() if name in GROUPS and v in rows[0]]
    label = next((c for c in [*grouped, *labels] if c in given), labels[0] if labels else "")
    columns = [c for c in columns if c != label]
    if len(rows) == 1 or label not in rows[0]:
        return _single(rows, columns, given)
    column = _column(columns, asked, given)
    if column is None:
        names = list(dict.fromkeys(spanned(str(row.get(label))) for row in rows))
        return f"There are {len(names)}: {listed(names[:12])}{', …' if len(names) > 12 else ''}."
    measured = next((g for g in given if g in columns or (g != label and "_" in g)), None)
    what = column.replace("_", " ") if column not in given else column
    if measured and measured != column and column.lower() not in _COUNTS and measured not in column:
        what = f"{column} {measured}"
    return _ranked(rows, label, column, what, asked)


def _column(columns: Sequence[str], asked: str, given: Sequence[str]) -> str | None:
    said = words(asked)
    for word in said:
        for name in _ASKED.get(word, ()):
            for column in columns:
                if name in re.split(r"[^a-z0-9%]+", column.lower()):
                    return column
    for column in columns:
        if column in given or re.search(
            r"(?:^|_)(?:mean|average|avg|value)(?:_|$)", column.lower()
        ):
            return column
    said_stems = stems(asked)
    mentioned = [c for c in columns if stems(c.replace("_", " ")) & said_stems]
    others = [c for c in columns if c.lower() not in (*_COUNTS, "index", "id")]
    return next(iter([*mentioned, *others, *columns]), None)


def _ranked(rows: Rows, label: str, column: str, what: str, asked: str) -> str:
    extreme = superlative(asked)
    counted = column.lower() in _COUNTS or _is_of_things(column, rows)
    measures = set(words(what)) & QUANTITIES
    if extreme and extreme[2] and measures and not measures & set(extreme[2]):
        extreme = None  # "the heaviest" says nothing about lengths, or how many there are
    more = extreme[1] if extreme else True
    ranked = sorted(
        (row for row in rows if _is_number(row.get(column))), key=lambda r: r[column], reverse=more
    )
    if not ranked:
        return ""
    (top, first), *rest = [(spanned(str(row.get(label))), number(row[column])) for row in ranked]
    others = listed([f"{name} {value}" for name, value in rest[:4]])
    tail = "" if len(rest) <= 4 else f", the last of {len(ranked)} is {rest[-1][0]} ({rest[-1][1]})"
    against = f", against {others}{tail}" if rest else ""
    if extreme and extreme[0] not in ("most", "least", "best", "worst", "highest", "lowest"):
        kind = f"{extreme[0]} {label}".strip()
        return f"The {kind} is {top}: its {what} is {first}{against}."
    sentence = f"{top} has the {'highest' if more else 'lowest'} {what}: {first}{against}."
    if counted:
        total = number(sum(row[column] for row in ranked))
        sentence = (
            f"{top} has the {'most' if more else 'fewest'}: {first}{against}; {total} in all."
        )
    return sentence


def _is_of_things(column: str, rows: Rows) -> bool:
    """Whether a column says how many there are of what it names, as "penguins" does."""
    plural = column.isalpha() and column.endswith("s") and not column.endswith("ss")
    return plural and all(isinstance(row.get(column), int | None) for row in rows)


def _single(rows: Rows, columns: Sequence[str], given: Sequence[str]) -> str:
    if len(rows) > 1:
        return f"There are {len(rows)} rows of {listed([spanned(c) for c in rows[0]][:6])}."
    said = ", ".join(
        f"{spanned(c) or 'value'} {spanned(number(v))}"
        for c, v in list(rows[0].items())[:8]
        if v is not None
    )
    about = next((g for g in given if "_" in g), "")
    return f"{about}: {said}." if about else f"{said[:1].upper()}{said[1:]}."


def listed(items: Sequence[str]) -> str:
    """The items as an English list: "a, b and c"."""
    return (
        items[0]
        if len(items) == 1
        else ", ".join(items[:-1]) + f" and {items[-1]}"
        if items
        else ""
    )


def markdown_table(rows: Rows, limit: int = 20) -> str:
    """The rows as a Markdown table."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    numeric = set(numeric_columns(rows))
    lines = [
        "| " + " | ".join(_in_table(c) or " " for c in columns) + " |",
        "|" + "|".join("---:" if c in numeric else "---" for c in columns) + "|",
    ]
    for row in rows[:limit]:
        shown = (str(row.get(c)) if "year" in c.lower() else number(row.get(c)) for c in columns)
        lines.append("| " + " | ".join(map(_in_table, shown)) + " |")
    if len(rows) > limit:
        more = len(rows) - limit
        lines.append(f"\n{more} more {'row is' if more == 1 else 'rows are'} left out.")
    return "\n".join(lines)


def _in_table(text: str) -> str:
    """A text in a cell of a table, as it is; a bar would end the cell, in code too."""
    return spanned(text).replace("|", "\\|")


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as it would be written in Python."""
    return f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"


def heading(fact: Fact) -> str:
    """What a fact is about: the step it came from, else what was called."""
    text = fact.step.rstrip("?.")
    if not text:
        values = [str(v) for k, v in fact.arguments.items() if k not in GROUPS]
        groups = [f"by {v}" for k, v in fact.arguments.items() if k in GROUPS]
        text = " ".join([*(values or [fact.name.replace("_", " ")]), *groups])
    return text[:1].upper() + text[1:120]


def report(facts: Sequence[tuple[Fact, str]], title: str) -> str:
    """A Markdown report of facts, each with what was asked of it.

    The findings first, then the tables, each with the call that it is from.
    """
    title = " ".join((title[:1].upper() + title[1:120]).split()) or "Report"
    sections = [f"# {title}"]
    good = [(fact, asked) for fact, asked in facts if fact.status == "ok"]
    sections += dict.fromkeys(text for fact, asked in good if (text := finding(fact, asked)))
    for fact, _ in good:
        if heading(fact).lower() != title.lower():
            sections.append(f"## {heading(fact)}")
        sections.append(markdown_table(fact.rows) if fact.rows else fact.text.strip())
        sections.append(f"Source: `{call_text(fact.name, fact.arguments)}`")
    return "\n\n".join(section for section in sections if section) + "\n"
