"""What an answer is taken from: passages of documents, and the markers that name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from . import kinds
from .messages import Message
from .serialization import to_data

CITATIONS = "citations"
"""In the metadata of a model's message: its citations, as data."""

UNVERIFIED = "not verified: no passage with this number was shown to the model"


class Location(msgspec.Struct, metaclass=kinds.Record, frozen=True, omit_defaults=True):
    """Where in a ``document`` something stands; as text, in a few words.

    Lines, pages and cells are counted from 1: it stands from ``line`` to ``last_line`` of the file,
    or of the ``cell`` where there is one, and on a ``page`` of a PDF. What a cell has put out is
    its ``output``. A ``row`` is the label that it has in the index of its frame, or its number in a
    table's file. Only what there is of it is set.

    >>> from sagents_nb import Location
    >>> str(Location("notes/a.md", line=3, last_line=7)), str(Location("report.pdf", page=4))
    ('notes/a.md:3-7', 'report.pdf, page 4')
    >>> str(Location("study.ipynb", cell=2, line=1, last_line=1))
    'study.ipynb, cell 2, line 1'
    """

    document: str
    line: int | None = None
    last_line: int | None = None
    page: int | None = None
    cell: int | None = None
    output: bool = False
    row: int | str | None = None

    def __post_init__(self) -> None:
        kinds.check_fields(self)

    def __str__(self) -> str:
        said = self.document
        if self.page is not None:
            said += f", page {self.page}"
        if self.row is not None:
            said += f", row {self.row}"
        if self.cell is not None:
            said += f", output of cell {self.cell}" if self.output else f", cell {self.cell}"
        if self.line is None:
            return said
        last = self.line if self.last_line is None else self.last_line
        lines = f"{self.line}" if last == self.line else f"{self.line}-{last}"
        if said == self.document:
            return f"{said}:{lines}"
        return f"{said}, line{'' if last == self.line else 's'} {lines}"


class Citation(msgspec.Struct, metaclass=kinds.Record, frozen=True, omit_defaults=True):
    """What a marker such as ``[3]`` in an answer stands for.

    ``location`` is where the passage of that ``number`` stands, and ``quote`` how it begins there.
    Where none with that number was shown to the model there is no location, and the citation is
    not ``verified``. That it is says where the model may have it from, not that it is right.

    >>> from sagents_nb import Citation
    >>> Citation(7).verified, str(Citation(7))
    (False, '[7] not verified: no passage with this number was shown to the model')
    """

    number: int
    location: Location | None = None
    quote: str = ""

    def __post_init__(self) -> None:
        kinds.check_fields(self)

    @property
    def verified(self) -> bool:
        """Whether a passage with that number was shown to the model."""
        return self.location is not None

    def __str__(self) -> str:
        return f"[{self.number}] {self.location or UNVERIFIED}"


_CODE = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)|(`{1,2})(?!`).+?\2", re.DOTALL)
# Numbers in brackets, several with commas, and no link of Markdown.
_MARKER = re.compile(r"\[(\d{1,6}(?:\s{0,2}[,;]\s{0,2}\d{1,6}){0,20})\](?!\()")


def cited_numbers(text: str) -> list[int]:
    """The numbers of its markers, each once, in order; what stands in code is none.

    >>> cited_numbers("At 6 [2], or at 7 [1, 2]: `tides[0]`.")
    [2, 1]
    """
    prose = _CODE.sub(" ", text)
    found = (
        number for marker in _MARKER.finditer(prose) for number in re.findall(r"\d+", marker[1])
    )
    return list(dict.fromkeys(map(int, found)))


def cited(text: str, shown: Mapping[int, Citation]) -> dict[str, Any]:
    """What to keep with the message of such a text, where passages were ``shown`` by number."""
    numbers = cited_numbers(text)
    return {CITATIONS: to_data([shown.get(n) or Citation(n) for n in numbers])} if numbers else {}


def citations_of(message: Message) -> list[Citation]:
    """The citations of a model's message, in the order of their markers."""
    try:
        return msgspec.convert(message.metadata.get(CITATIONS, []), list[Citation])
    except msgspec.ValidationError:  # somebody else's key of that name
        return []
