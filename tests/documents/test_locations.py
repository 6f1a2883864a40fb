"""Where a passage is said to stand, there it stands, in every kind of document."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pandas
import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.documents.chunking import MOST, Headings, pieces
from tests.documents.making import notebook, pdf

ROOT = Path(__file__).parents[2]
WORDS = [
    *("tide", "port", "ship", "crane", "harbour", "pilot", "storm"),
    *("anchor", "sail", "rope", "deck", "buoy", "current", "depth"),
]


def sentences(chance: random.Random, count: int) -> list[str]:
    return [" ".join(chance.choices(WORDS, k=8)).capitalize() + "." for _ in range(count)]


class Library:
    """Real Markdown and notebooks, a PDF and a frame; what stands where, read by other means."""

    def __init__(self, folder: Path) -> None:
        chance = random.Random(1)
        self.report = folder / "report.pdf"
        self.report.write_bytes(pdf([sentences(chance, 40) for _ in range(300)]))
        self.frame = pandas.DataFrame(
            {
                "key": [f"p{number}" for number in range(400)],
                "text": ["\n".join(["Gazette.", *sentences(chance, 3)]) for _ in range(400)],
            }
        )
        self.index = sa.DocumentIndex()
        self.index.add(f"{ROOT}/docs/**/*.md")
        self.index.add(ROOT / "CHANGELOG.md")
        for path in (ROOT / "notebooks").glob("*.ipynb"):
            self.index.add(path)
        self.index.add(self.report)
        self.index.add(self.frame, text="text", id="key")
        self.pages = [page.extract_text() for page in pypdf.PdfReader(self.report).pages]

    def text_at(self, place: sa.Location) -> str:
        if place.row is not None:
            return str(self.frame.loc[place.row, "text"])
        if place.page is not None:
            return self.pages[place.page - 1]
        text = Path(place.document).read_text(encoding="utf-8")
        if place.cell is not None:
            cell = json.loads(text)["cells"][place.cell - 1]
            if place.output:
                return "\n".join(map(printed, cell["outputs"]))
            text = "".join(cell["source"])
        assert place.line is not None
        assert place.last_line is not None
        return "\n".join(text.split("\n")[place.line - 1 : place.last_line])


def printed(output: dict[str, Any]) -> str:
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))


def kind_of(place: sa.Location) -> str:
    if place.row is not None:
        return "row"
    if place.page is not None:
        return "page"
    return "line" if place.cell is None else "output" if place.output else "cell"


@pytest.mark.spec("R4.4.7")
def test_of_a_thousand_citations_each_quotes_what_stands_there(tmp_path: Path) -> None:
    library = Library(tmp_path)
    chance = random.Random(2)
    asked = [" ".join(chance.choices(WORDS, k=3)) for _ in range(110)]
    asked += ["penguins mean mass", "table of species", "run a cell", "plot an island"]
    asked += [path.stem.replace("-", " ") for path in (ROOT / "docs").rglob("*.md")]
    asked += [f"gazette {word}" for word in WORDS]
    calls = [sa.ToolCall(f"c{n}", "search_documents", {"query": q}) for n, q in enumerate(asked)]
    answer = " ".join(f"So it is [{number}]." for number in range(1, 3_001))
    model = sa.ScriptedModel([sa.Message("assistant", calls, stop_reason="tool_use"), answer])
    agent = sa.Agent(model, middleware=[sa.Retrieval(library.index, limit=40)], defaults=False)
    verified = [each for each in agent.run("Tell me all.").citations if each.verified]
    assert len(verified) >= 1_000
    passages = (p for query in asked for p in library.index.search(query, limit=40))
    assert all(passage.text in library.text_at(passage.location) for passage in passages)
    by_kind: dict[str, int] = {}
    for citation in verified:
        place = citation.location
        assert place is not None
        assert citation.quote in library.text_at(place), str(place)
        by_kind[kind_of(place)] = by_kind.get(kind_of(place), 0) + 1
    assert by_kind.keys() >= {"line", "cell", "output", "page", "row"}
    assert min(by_kind["line"], by_kind["page"], by_kind["row"]) >= 50


TEXTS = st.text(st.sampled_from("ab #`~-\n\t. é漢"), max_size=300)


@given(st.lists(TEXTS, max_size=20).map("\n".join), st.booleans(), st.sampled_from([1, 40]))
def test_pieces_are_all_of_a_text_in_order_and_none_is_too_long(
    text: str, markdown: bool, times: int
) -> None:
    text = text * times
    lines = text.split("\n")
    made = [*pieces(text, Headings() if markdown else None)]
    for piece in made:
        assert piece.text in "\n".join(lines[piece.line - 1 : piece.last_line])
        assert 0 < len(piece.text) <= MOST
        assert piece.text.strip()
    said = "".join("".join(piece.text.split()) for piece in made)
    assert said == "".join(text.split())
    assert [p.line for p in made] == sorted(p.line for p in made)


def test_a_heading_begins_a_piece_and_one_in_code_is_none() -> None:
    text = "# A\n\n## B\nsaid\n```sh\n# no heading\n```\n## C ##\nmore\n# D\nend"
    made = [*pieces(text, Headings())]
    assert [piece.headings for piece in made] == [("A", "B"), ("A", "C"), ("D",)]
    assert [(piece.line, piece.last_line) for piece in made] == [(1, 7), (8, 9), (10, 11)]


def test_long_paragraphs_are_cut_between_lines_and_long_lines_between_words() -> None:
    made = [*pieces("word " * 1_000)]
    assert {(piece.line, piece.last_line) for piece in made} == {(1, 1)}
    assert all(piece.text.startswith("word ") for piece in made)
    many = "\n".join(f"line {number}" for number in range(1_000))
    assert all(piece.text.startswith("line ") for piece in pieces(many))


def test_lines_are_counted_as_editors_do() -> None:
    index = sa.DocumentIndex()
    index.add({"a": "one\r\ntwo\x0c\u2028still two\rthree\r\n\r\n\r\n" + "tide\n"})
    [passage] = index.search("tide")
    assert (passage.location.line, passage.location.last_line) == (1, 6)


def test_the_cells_of_a_notebook_and_what_they_have_put_out_are_found() -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["penguins weigh\n", "4201 g\n"]},
        {"output_type": "execute_result", "data": {"text/plain": "gentoo", "image/png": "iVBO"}},
        {"output_type": "error", "ename": "E", "evalue": "", "traceback": []},
    ]
    text = notebook(
        ("markdown", "# Study\nof birds"),
        ("code", ["mass = 1\n", "mean(mass)"], outputs),
        ("raw", ""),
    )
    files = sa.VirtualFilesystem()
    files.write("/study.ipynb", text)
    index = sa.DocumentIndex()
    index.add("/study.ipynb", files=files)

    def place(query: str) -> str:
        [passage] = index.search(query, limit=1)
        assert passage.heading == "Study"
        return str(passage.location)

    assert place("birds") == "/study.ipynb, cell 1, lines 1-2"
    assert place("mean mass") == "/study.ipynb, cell 2, lines 1-2"
    assert place("penguins weigh") == "/study.ipynb, output of cell 2"
    assert place("gentoo") == "/study.ipynb, output of cell 2"


def test_a_page_is_the_one_that_a_viewer_would_show() -> None:
    data = pdf([["First."], [], ["The (third) page has \\ a tide."]])
    assert "tide" in pypdf.PdfReader(io.BytesIO(data)).pages[2].extract_text()
    files = sa.VirtualFilesystem()
    files.write("/report.pdf", data)
    index = sa.DocumentIndex()
    index.add("/report.pdf", files=files)
    assert str(index.search("tide")[0].location) == "/report.pdf, page 3"


def test_a_row_of_a_table_is_found_with_the_names_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "ports.csv"
    path.write_text('port,tide\nBergen,"six,\nor later"\n\nOslo,\n')
    index = sa.DocumentIndex()
    index.add(path)
    [bergen] = index.search("Bergen")
    assert bergen.text == "port: Bergen\ntide: six,\nor later"
    assert [bergen.location.row, index.search("Oslo")[0].location.row] == [1, 2]
