"""Documents to be indexed: a PDF with the text that is said, notebooks, embedders."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy


def pdf(pages: Sequence[Sequence[str]], compress: bool = True) -> bytes:
    """A PDF whose pages have these lines of text; a page without any is as a scan's."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for lines in pages:
        shown = [f"({_escaped(line)}) Tj T*" for line in lines]
        content = "\n".join(["BT /F1 11 Tf 14 TL 50 800 Td", *shown, "ET"]).encode("latin-1")
        how = b""
        if compress:
            content, how = zlib.compress(content), b"/Filter /FlateDecode "
        objects.append(b"<< %s/Length %d >>\nstream\n%s\nendstream" % (how, len(content), content))
        resources = b"/Resources << /Font << /F1 3 0 R >> >>"
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] %s /Contents %d 0 R >>"
        objects.append(page % (resources, len(objects)))
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    made, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    size = len(objects) + 1
    return made + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + end % (size, len(made))


def _escaped(line: str) -> str:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def notebook(*cells: tuple[str, Any] | tuple[str, Any, list[Any]]) -> str:
    """A notebook of cells: their kind, their source, and what they have put out."""
    made = []
    for kind, source, *outputs in cells:
        cell = {"cell_type": kind, "metadata": {}, "source": source}
        if kind == "code":
            cell |= {"execution_count": 1, "outputs": outputs[0] if outputs else []}
        made.append(cell)
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


class Embedder:
    """Vectors by the words of a text, and of some words by what they mean; it counts its texts."""

    def __init__(self, size: int = 16, same: Sequence[set[str]] = ()) -> None:
        self.size = size
        self.same = same
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Any:
        vector = numpy.zeros(self.size)
        for word in text.lower().split():
            word = word.strip(".,:;?!#")
            meant = next((min(words) for words in self.same if word in words), word)
            vector[zlib.crc32(meant.encode()) % self.size] += 1
        return vector
