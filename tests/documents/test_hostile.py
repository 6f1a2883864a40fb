"""What is no document, or means harm, is refused in a sentence, and changes nothing."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pandas
import pytest

import sagents_nb as sa
from sagents_nb.documents import loading
from tests.documents.making import notebook, pdf

ROWS = "a,b\n" + "1,2\n" * 5
GOOD_PDF = pdf([["The tide is high."]] * 3)
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(index: sa.DocumentIndex) -> list[Any]:
    return [index.documents(), [str(p) for p in index.search("tide before", limit=100)]]


HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "scan.pdf": (pdf([[], [], []]), "scan.pdf has 3 pages and no text: it was scanned"),
    "cut.pdf": (GOOD_PDF[:300], "cut.pdf cannot be read as a PDF"),
    "words.pdf": ("The tide is high.", "words.pdf cannot be read as a PDF"),
    "empty.pdf": (b"", "empty.pdf cannot be read as a PDF"),
    "named.txt": (GOOD_PDF[:300], "named.txt cannot be read as a PDF"),
    "wrong.pdf": (GOOD_PDF.replace(b"/Pages", b"/Kides"), "wrong.pdf cannot be read as a PDF"),
    "loop.pdf": (GOOD_PDF.replace(b"/Kids [5 0 R", b"/Kids [2 0 R"), "loop.pdf cannot be read"),
    "bytes.md": (bytes(range(256)), "bytes.md is no text in UTF-8 (byte 128)"),
    "nul.txt": ("tide\0tide", "nul.txt is binary"),
    "image.png": (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "image.png is no text"),
    "utf16.txt": (b"\xff\xfe\x00", "utf16.txt is no text"),
    "blank.md": (" \n\n\t", "blank.md has no text"),
    "nothing.md": ("", "nothing.md has no text"),
    "cut.ipynb": (notebook(("code", "tide"))[:-30], "cut.ipynb is no notebook of nbformat 4"),
    "list.ipynb": ("[]", "list.ipynb is no notebook"),
    "old.ipynb": (json.dumps({"worksheets": [], "nbformat": 3}), "old.ipynb is no notebook"),
    "cells.ipynb": (json.dumps({"cells": "abc"}), "cells.ipynb is no notebook"),
    "source.ipynb": (json.dumps({"cells": [{"cell_type": "code", "source": 3}]}), "is no notebook"),
    "output.ipynb": (
        json.dumps({"cells": [{"cell_type": "code", "source": "", "outputs": [{"data": 3}]}]}),
        "output.ipynb is no notebook",
    ),
    "deep.ipynb": ('{"cells": ' + DEEP + "}", "deep.ipynb is no notebook"),
    "none.ipynb": (notebook(), "none.ipynb has no text"),
    "rows.csv": (ROWS + "1,2,3\n", "rows.csv is no table: row 6 (line 7) has 3 fields"),
    "quote.csv": (ROWS + '1,"2\n', "quote.csv is no table"),
    "strict.csv": (ROWS + '1,"2"3\n', "strict.csv is no table"),
    "field.csv": (f"a,b\n1,{'x' * 200_000}\n", "field.csv is no table"),
    "header.csv": ("a,b\n", "header.csv has no text"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_document_is_refused_in_a_sentence_and_changes_nothing(
    folder: Path, name: str
) -> None:
    content, said = HOSTILE[name]
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    index = sa.DocumentIndex()
    index.add({name: "The tide was here before.", "other": "And the tide before."})
    before = contents(index)
    with pytest.raises(sa.DocumentError) as refused:
        index.add(name)
    assert said in str(refused.value)
    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 500
    assert contents(index) == before
    index.add({"more": "It is of use as before."})
    assert "more" in index.documents()


def test_of_several_files_those_are_left_out_and_named(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, (content, _) in HOSTILE.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "good.md").write_text("The tide is high.")
    (folder / "good.pdf").write_bytes(GOOD_PDF)
    index = sa.DocumentIndex()
    with caplog.at_level(logging.WARNING, "sagents_nb.documents"):
        added = index.add("*")
    assert index.documents() == ["good.md", "good.pdf"]
    assert added.added == 2
    assert added.refused.keys() == HOSTILE.keys()
    assert "scanned" in repr(added)
    assert f"{len(HOSTILE)} documents were left out" in caplog.text
    assert index.add(".").unchanged == 2


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("no.md", "no.md cannot be read: there is none"),
        ("*.md", "No file fits '\\*.md'"),
        ("empty", "No file fits"),
        ("pipe", "pipe cannot be read: it is no file"),
        ("locked.md", "locked.md cannot be read"),
        ("/dev/zero", "/dev/zero cannot be read: it is no file"),
    ],
)
def test_what_is_no_file_is_refused(folder: Path, source: str, said: str) -> None:
    (folder / "empty").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "locked.md").symlink_to("locked.md")
    with pytest.raises(sa.DocumentError, match=said):
        sa.DocumentIndex().add(source)


@pytest.mark.parametrize("source", ["notes", "notes/**/*.md", "notes/*/*.md", "notes/**"])
def test_a_link_out_of_the_folder_is_left_out_and_named(folder: Path, source: str) -> None:
    (folder / "notes/sub").mkdir(parents=True)
    (folder / "private").mkdir()
    for path in ("notes/sub/good.md", "private/secret.md"):
        (folder / path).write_text(f"The tide of {path} is high.")
    (folder / "notes/sub/link.md").symlink_to(folder / "private/secret.md")
    (folder / "notes/other").symlink_to(folder / "private")
    index = sa.DocumentIndex()
    added = index.add(source)
    assert index.documents() == ["notes/sub/good.md"]
    assert "notes/sub/link.md" in added.refused
    assert all("leads out of the folder by a link" in why for why in added.refused.values())
    assert any(path.startswith("notes/other") for path in added.refused)
    assert index.add("notes/other").added == 1, "who names the link means it"


@pytest.mark.parametrize("source", ["notes", "notes/**/*.md", "notes/**/**/*"])
def test_a_link_back_into_the_folder_is_not_gone_round(folder: Path, source: str) -> None:
    (folder / "notes/sub").mkdir(parents=True)
    (folder / "notes/good.md").write_text("The tide is high.")
    for name in ("up", "back"):  # with two, each level has twice as many as the one above
        (folder / "notes/sub" / name).symlink_to("..")
    index = sa.DocumentIndex()
    assert index.add(source).added == 1
    assert index.documents() == ["notes/good.md"]


def test_a_closed_index_says_so() -> None:
    index = sa.DocumentIndex()
    index.add({"tides": "The tide is high."})
    index.close()
    for ask in (
        lambda: index.add({"tides": "The tide is low."}),
        lambda: index.search("tide"),
        lambda: index.remove("tides"),
        index.documents,
    ):
        with pytest.raises(sa.StoreError, match="is closed; make another DocumentIndex"):
            ask()
    index.close()


def test_a_file_that_is_broken_meanwhile_is_told_in_a_sentence(folder: Path) -> None:
    index = sa.DocumentIndex("tides.db")
    index.add({"tides": "The tide is high. " * 10_000})
    (folder / "tides.db").write_bytes(b"no database " * 10_000)
    with pytest.raises(sa.StoreError, match=r"tides\.db> could not be read or written"):
        sa.DocumentIndex.search(index, "tide")
    index.close()


def test_a_scope_of_half_a_character_has_documents_of_its_own() -> None:
    index = sa.DocumentIndex()
    half = sa.Scope("ada \ud800")
    index.add({"diary": "The tide came late."}, scope=half)
    assert [len(index.search("tide", scope=scope)) for scope in (half, sa.Scope("ada"))] == [1, 0]
    index.remove("diary", scope=half)
    assert index.documents(scope=half) == []


def test_a_limit_beyond_what_a_database_counts_is_none() -> None:
    index = sa.DocumentIndex()
    index.add({"tides": "The tide is high."})
    assert len(index.search("tide", limit=10**30)) == 1


def test_a_huge_file_is_refused_before_it_is_read(folder: Path) -> None:
    with open("huge.md", "wb") as file:
        file.truncate(10**12)  # with nothing in it
    with pytest.raises(sa.DocumentError, match=r"huge\.md has 1,000,000,000,000 bytes"):
        sa.DocumentIndex().add("huge.md")


def test_a_document_of_too_much_text_or_too_many_pages_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "report.pdf").write_bytes(GOOD_PDF)
    monkeypatch.setattr(loading, "MOST_PAGES", 2)
    with pytest.raises(sa.DocumentError, match="3 pages, more than 2"):
        sa.DocumentIndex().add("report.pdf")
    monkeypatch.setattr(loading, "MOST_TEXT", 1_000)
    with pytest.raises(sa.DocumentError, match="more than 1,000 characters"):
        sa.DocumentIndex().add({"long": "tide " * 1_000})


def test_of_texts_and_rows_all_are_taken_or_none() -> None:
    index = sa.DocumentIndex()
    texts = {f"n{number}": "The tide." for number in range(500)}
    with pytest.raises(sa.DocumentError, match="last has no text"):
        index.add({**texts, "last": " "})
    assert index.documents() == []
    frame = pandas.DataFrame({"id": [*texts, "n0"], "text": "The tide."})
    with pytest.raises(sa.DocumentError, match="'n0' twice"):
        index.add(frame, text="text", id="id")
    assert index.documents() == []


def test_a_pdf_needs_its_extra_and_says_which(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "report.pdf").write_bytes(GOOD_PDF)
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(sa.DocumentError, match=r'pip install "sagents-nb\[documents\]"'):
        sa.DocumentIndex().add("report.pdf")


def test_odd_text_is_kept_and_found() -> None:
    index = sa.DocumentIndex()
    odd = "half \ud800, tag \U000e0041, nul-less, 'quote\" tide"
    name = "odd ' \" \ud800"
    index.add({name: odd, "漢字": "tide"}, metadata={"\ud800": "\ud800"})
    assert len(index.search("tide \ud800", filter={"\ud800": "\ud800"})) == 2
    assert index.add({name: odd}, metadata={"\ud800": "\ud800"}).unchanged == 1
    index.remove(name)
    assert index.documents() == ["漢字"]


def test_a_file_whose_name_is_no_utf_8_is_a_document(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.md")
    (folder / name).write_text("The tide.")
    index = sa.DocumentIndex()
    index.add("*.md")
    assert index.documents() == ["caf?.md"]
