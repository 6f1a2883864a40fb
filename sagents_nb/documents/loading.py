"""What a document says, by its format: text, Markdown, notebooks, PDF, tables and data frames."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from ..citations import Location
from ..errors import DocumentError, pass_on
from ..serialization import encoded
from ..text import sha256, whole
from .chunking import Headings, Piece, pieces

MOST_BYTES = 50_000_000
"""Of a file; what is larger is no document that somebody reads."""

MOST_TEXT = 20_000_000
"""Characters of all that a document says."""

MOST_PAGES = 10_000
"""Of a PDF."""

_MARKDOWN = {".md", ".markdown", ".mdx", ".qmd", ".rmd"}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Chunk(NamedTuple):
    """A passage as it is kept: what it says, the headings above it, where it stands."""

    text: str
    heading: str
    location: Location


class Document(NamedTuple):
    """A document before it is read: ``digest`` is of all that it is made of."""

    id: str
    digest: str
    metadata: dict[str, str]
    read: Callable[[], list[Chunk]]


def file_document(id: str, content: str | bytes, metadata: Mapping[str, str]) -> Document:
    """The document that a file is, by the ending of its name.

    Reading it raises :class:`~sagents_nb.errors.DocumentError`.
    """
    id = whole(id)
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return Document(id, _digest(data, metadata), dict(metadata), lambda: _read(id, data))


def text_document(id: str, text: str, metadata: Mapping[str, str]) -> Document:
    """A document that is a text, as Markdown has it."""
    id = whole(id)
    digest = _digest(text.encode("utf-8", "surrogatepass"), metadata)
    return Document(id, digest, dict(metadata), lambda: _whole(id, _lined(id, text)))


def _digest(data: bytes, metadata: Mapping[str, str]) -> str:
    return sha256(data + b"\0" + encoded(dict(sorted(metadata.items()))))


def _read(id: str, data: bytes) -> list[Chunk]:
    ending = PurePosixPath(id.lower()).suffix
    if ending == ".pdf" or data.startswith(b"%PDF-"):
        return _whole(id, _pages(id, data))
    text = _decoded(id, data)
    if ending == ".ipynb":
        return _whole(id, _cells(id, text))
    if ending in (".csv", ".tsv"):
        return _whole(id, _table(id, text, "\t" if ending == ".tsv" else ","))
    return _whole(id, _lined(id, text, markdown=ending in _MARKDOWN))


def _whole(id: str, chunks: Iterator[Chunk]) -> list[Chunk]:
    """All of them, if it is not too much and not nothing."""
    found: list[Chunk] = []
    size = 0
    for chunk in chunks:
        size += len(chunk.text)
        if size > MOST_TEXT:
            raise DocumentError(
                f"{id} has more than {MOST_TEXT:,} characters of text; add parts of it."
            )
        found.append(chunk._replace(text=whole(chunk.text), heading=whole(chunk.heading)))
    if not found:
        raise DocumentError(f"{id} has no text, so nothing in it could be found.")
    return found


def checked_size(id: str, size: int) -> None:
    """Refuse a file of so many bytes before it is read, if they are too many."""
    if size > MOST_BYTES:
        raise DocumentError(
            f"{id} has {size:,} bytes, and a document has at most {MOST_BYTES:,}; add parts of it."
        )


def _decoded(id: str, data: bytes) -> str:
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{id} is no text in UTF-8 (byte {error.start:,}), and no PDF or notebook; save it as "
            "UTF-8, or leave it out."
        ) from None
    if "\0" in text:
        raise DocumentError(f"{id} is binary and no text, PDF or notebook; leave it out.")
    return text


def _lines(text: str) -> str:
    """With ends of lines as editors count them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _placed(piece: Piece, location: Location, *, lines: bool = True) -> Chunk:
    if lines:
        location = msgspec.structs.replace(location, line=piece.line, last_line=piece.last_line)
    return Chunk(piece.text, " > ".join(piece.headings), location)


def _lined(id: str, text: str, *, markdown: bool = True) -> Iterator[Chunk]:
    headings = Headings() if markdown else None
    return (_placed(piece, Location(id)) for piece in pieces(_lines(text), headings))


def _cells(id: str, text: str) -> Iterator[Chunk]:
    try:
        notebook = msgspec.json.decode(text, type=dict[str, Any])
        cells = notebook["cells"]
        parts = [
            (number, str(cell["cell_type"]), joined(cell["source"]), list(_outputs(cell)))
            for number, cell in enumerate(cells, start=1)
        ]
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = str(error) if isinstance(error, msgspec.DecodeError) else "it has no list of cells"
        raise DocumentError(
            f"{id} is no notebook of nbformat 4 ({why}); save it with Jupyter once more."
        ) from None
    headings = Headings()
    for number, kind, source, outputs in parts:
        said = pieces(_lines(source), headings if kind == "markdown" else None)
        for piece in said:
            yield _placed(piece._replace(headings=headings.titles), Location(id, cell=number))
        for output in outputs:
            for piece in pieces(_lines(output)):
                place = Location(id, cell=number, output=True)
                yield _placed(piece._replace(headings=headings.titles), place, lines=False)


def joined(source: Any) -> str:
    """Text of a notebook, which may be a list of its lines."""
    return source if isinstance(source, str) else "".join(source)


def _outputs(cell: Mapping[str, Any]) -> Iterator[str]:
    """What a cell has put out as text."""
    for output in cell.get("outputs", ()):
        if output["output_type"] == "stream":
            yield joined(output["text"])
        else:
            yield joined(output.get("data", {}).get("text/plain", ""))


def _pages(id: str, data: bytes) -> Iterator[Chunk]:
    try:
        import pypdf
    except ImportError:
        raise DocumentError(
            f'{id} is a PDF, and reading one needs pypdf: pip install "sagents-nb[documents]".'
        ) from None
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise DocumentError(f"{id} opens with a password only; save it without one.")
        count = len(reader.pages)
        if count > MOST_PAGES:
            raise DocumentError(f"{id} has {count:,} pages, more than {MOST_PAGES:,}; split it.")
        pages = []
        size = 0
        for page in reader.pages:
            pages.append(page.extract_text())
            size += len(pages[-1])
            if size > MOST_TEXT:
                break
    except DocumentError:
        raise
    except BaseException as error:  # of a file that is made to break its reader, any
        pass_on(error)
        raise DocumentError(
            f"{id} cannot be read as a PDF ({type(error).__name__}: {error}); open it in a viewer, "
            "and print it to a new file."
        ) from None
    if not any(page.strip() for page in pages):
        raise DocumentError(
            f"{id} has {count:,} page{'' if count == 1 else 's'} and no text: it was scanned, so "
            "have its text recognised first (ocrmypdf, say)."
        )
    for number, text in enumerate(pages, start=1):
        for piece in pieces(_lines(text.replace("\0", " "))):
            yield _placed(piece, Location(id, page=number), lines=False)


def _table(id: str, text: str, delimiter: str) -> Iterator[Chunk]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        for number, row in enumerate(filter(None, rows), start=1):
            if len(row) != len(header):
                raise DocumentError(
                    f"{id} is no table: row {number:,} (line {rows.line_num:,}) has {len(row)} "
                    f"fields, and there are {len(header)} columns; mend it, or save it as .txt."
                )
            said = [f"{name}: {value}" for name, value in zip(header, row, strict=True) if value]
            for piece in pieces(_lines("\n".join(said))):
                yield _placed(piece, Location(id, row=number), lines=False)
    except csv.Error as error:
        raise DocumentError(
            f"{id} is no table ({error}, at line {rows.line_num:,}); mend it, or save it as .txt."
        ) from None


def frame_documents(
    frame: Any,
    text: str,
    id: str,
    metadata: Sequence[str],
    more: Mapping[str, str],
    refused: dict[str, str],
) -> Iterator[Document]:
    """A document for each row of a data frame; those without a text are ``refused``.

    ``text``, ``id`` and ``metadata`` are names of columns; ``more`` is metadata of all rows.
    """
    known = [str(column) for column in frame.columns]
    for name in (text, id, *metadata):
        if name not in known:
            raise DocumentError(f"The frame has no column {name!r}; it has {', '.join(known)}.")
    labels = frame.index if hasattr(frame, "index") else range(len(frame))
    columns = [frame[name].to_list() for name in metadata]
    seen: set[str] = set()
    rows = zip(labels, frame[id].to_list(), frame[text].to_list(), *columns, strict=True)
    for label, key, said, *values in rows:
        name = plain(key)
        if not name or name in seen:
            what = f"the {id} {name!r} twice" if name else f"a row without {id}"
            raise DocumentError(f"The frame has {what}; take a column that names each row.")
        seen.add(name)
        if not isinstance(said, str) or not said.strip():
            refused[name] = f"{name} has no text in {text!r}."
            continue
        about = {**more, **{n: plain(v) for n, v in zip(metadata, values, strict=True)}}
        yield _row(name, said, label, {n: v for n, v in about.items() if v})


def _row(id: str, text: str, label: Any, metadata: dict[str, str]) -> Document:
    whole_number = hasattr(label, "__index__") and not isinstance(label, bool)
    row = int(label) if whole_number else whole(str(label))

    def read() -> list[Chunk]:
        made = (_placed(piece, Location(id, row=row), lines=False) for piece in pieces(text))
        return _whole(id, made)

    # The place is a part of it: a row that has moved is found where it is now.
    data = f"{row!r}\0{text}".encode("utf-8", "surrogatepass")
    return Document(id, _digest(data, metadata), metadata, read)


def plain(value: Any) -> str:
    """A value of a frame as text, by which filters compare; "" for one that is missing.

    >>> plain(2024.0), plain("2024"), plain(float("nan")), plain(None)
    ('2024', '2024', '', '')
    """
    if value is None or value != value or str(value) in ("<NA>", "NaT"):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return whole(str(value))
