"""What the demo model writes into files: what a step wants written, and in which format.

A file holds what was found, or what people quote; a format that its ending asks for, or none.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from typing import Any

from .words import PATH, quoted, stem, unquoted, word_set, words

ONLY = "I write only what I found, or a text that you quote"
TABLES = ("csv", "tsv", "json")
FORMATS = ("md", "markdown", "txt", "rst", "log", "py", *TABLES)

_INTO = re.compile(
    r"\s*\b(?:in|into|to|as|at|under|on)\s+(?:(?:a|an|the|my)\s+)?(?:new\s+)?"
    r"(?:(?:file|report|note|csv|folder)\s+)?(?:(?:called|named|at)\s+)?\x00(?:\s+file)?",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"^(?:please\s+)?(?:write|overwrite|save|store|create|record|export|put|make|note|update|refresh|"
    r"rewrite|extend|redo|add|document|report)\b(?:\s+(?:me|us|down|up))?\s*",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"^(?:(?:a|an|the|my|some)\s+)?(?:(?:short|brief|small|quick|simple|nice|new|full|long)\s+)*"
    r"(?:report|summary|overview|description|notes?|document|analysis|table|file)\s+"
    r"(?:of|about|on|for|with|that (?:has|shows|tells|holds))\s+(?=\S)",
    re.IGNORECASE,
)
_SAYING = re.compile(
    r"(?:\b(?:saying|that says|which says|with the text)\b:?|:)\s*(.+)$", re.DOTALL
)

_SAVES_IT = re.compile(
    r"(?:write|save|store|put|keep|record)\s+(?:it|that|this|(?:the|this|that|my)\s+"
    r"(?:report|summary|overview|notes?|document|file|result))(?:\s+(?:down|away))?",
    re.IGNORECASE,
)

_AS_TABLE = re.compile(
    r"\b(?:as|in|into|to)\s+(?:an?\s+)?(csv|tsv|json|table|spreadsheet|excel)(?:\s+(?:file|sheet))?$",
    re.IGNORECASE,
)
_ENDINGS = {"table": "csv", "spreadsheet": "csv", "excel": "xlsx"}

_POINTS = word_set("this that it these")
_BLOCKS = word_set("following below above code text snippet block script")
_PASTED = {
    stem(word) for word in _POINTS | _BLOCKS | word_set("the my a python sql cell here content as")
}

# They name what was found, whatever that was, or nothing.
_REFERS = word_set(
    "a an the my our your this that these those it them its of on about for with from in to into "
    "as at and all both each what which was were is are i you we me us did do have has been found "
    "find got asked answered said told above so far there here now then also too again please "
    "short brief small quick simple nice new full long little proper result results report reports "
    "summary summaries note notes finding findings answer answers table tables output outputs "
    "numbers figures everything data list lists analysis conclusion conclusions overview response "
    "file files markdown md csv tsv json text document code file folder"
)


def place_of(step: str) -> str:
    """The path that a step saves "it" to, which the step before it wrote; else "".

    >>> place_of("save it to /r.md"), place_of("store the report in /r.md"), place_of("open /r.md")
    ('/r.md', '/r.md', '')
    """
    paths = PATH.findall(step)
    if len(paths) == 1 and _VERB.match(step) and not wanted_of(step):
        return str(paths[0])  # "write /r.md"
    saves_it = _SAVES_IT.fullmatch(without_path(step.replace("`", "")))
    return str(paths[0]) if saves_it and len(paths) == 1 else ""


def named_for(step: str) -> str:
    """The path of what is to be saved as a table and the like, where no path is said; else "".

    >>> named_for("save that as a table"), named_for("write a report")
    ('/result.csv', '')
    """
    match = _AS_TABLE.search(step)
    kind = match[1].lower() if match else ""
    return f"/result.{_ENDINGS.get(kind, kind)}" if kind else ""


def literal(step: str) -> str:
    """The text that a step itself gives to be written, "" if it gives none.

    >>> literal("write a note that says hello to /n1.md"), literal("save it to /r.md")
    ('hello', '')
    """
    bare = re.sub(r"`[^`\n]*`", " ", step)
    if said := [text for text in quoted(bare) if not PATH.fullmatch(text)]:
        return said[0]
    ticked = [text for text in quoted(step) if not PATH.fullmatch(text)]
    if ticked and not words(wanted_of(step.replace(f"`{ticked[0]}`", " "))):
        return ticked[0]
    match = _SAYING.search(step)
    return without_path(match[1]) if match else ""


def without_path(text: str) -> str:
    """A text without the path that it is to be written to."""
    return " ".join(_INTO.sub(" ", PATH.sub("\x00", text)).replace("\x00", " ").split())


def wanted_of(step: str) -> str:
    """What a step wants written, in its words, without its verb and its path.

    >>> wanted_of("save the mean salary by dept to /a.md"), wanted_of("summarise staff in /s.md")
    ('the mean salary by dept', 'summarise staff')
    >>> wanted_of("save the mean salary to `/a.md`")
    'the mean salary'
    """
    text = PATH.sub("\x00", step).replace("`\x00`", "\x00")
    text = _INTO.sub(" ", text).replace("\x00", " ")
    return " ".join(_VERB.sub("", text.strip()).strip(" .,:;").split())


def subject_of(wanted: str) -> tuple[str, bool]:
    """What a report is to be about, and whether it is a report that is wanted of it."""
    match = _ABOUT.match(wanted)
    return (wanted[match.end() :], True) if match else (wanted, False)


def refers(wanted: str, said: str) -> bool:
    """Whether it means what was found: by pronouns and the like, or in the words that were said."""
    known = {stem(word) for word in words(said)}
    counted = re.search(r"\bnumber\s+of\b", wanted, re.IGNORECASE)
    left = [word for word in words(wanted) if word not in _REFERS]
    return not counted and all(stem(word) in known for word in left)


def refers_to_pasted(wanted: str, alone: bool) -> bool:
    """Whether a block beside it is meant: "the following code", and "this" where it is ``alone``.

    >>> refers_to_pasted("the following code", False), refers_to_pasted("this", False)
    (True, False)
    """
    said = set(words(wanted))
    left = {stem(word) for word in said} - _PASTED
    return not left and bool(said & (_BLOCKS | (_POINTS if alone else set())))


def format_of(step: str) -> str:
    """The ending of the path that a step writes to, "" without one."""
    paths = PATH.findall(unquoted(step)) or [q for q in quoted(step) if PATH.fullmatch(q)]
    name = paths[-1].rsplit("/", 1)[-1] if paths else ""
    return name.rpartition(".")[2].lower() if "." in name else ""


def table_text(rows: Sequence[dict[str, Any]], ending: str) -> str:
    r"""Rows as CSV, as TSV or as JSON.

    >>> table_text([{"city": "Oslo", "rain": 2.5}], "csv")
    'city,rain\nOslo,2.5\n'
    """
    if ending == "json":
        return json.dumps(list(rows), indent=2, ensure_ascii=False, default=str) + "\n"
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    table = csv.DictWriter(
        out, names, lineterminator="\n", delimiter="\t" if ending == "tsv" else ","
    )
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()
