"""An index of documents: what is in it, whose it is, and what is found, the best first."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas
import pytest

import sagents_nb as sa
from sagents_nb.documents.index import Added

NOTES = {
    "tides": "# Bergen\n\nHigh tide is at six.\n\n# Oslo\n\nThere is nearly no tide.",
    "cities": "Oslo is the largest city, Bergen the rainiest.",
    "lamps": "Lamps are sold in red and in green.",
}


def found(index: sa.DocumentIndex, query: str, **options: Any) -> list[str]:
    return [str(passage.location) for passage in index.search(query, **options)]


@pytest.fixture
def index() -> sa.DocumentIndex:
    index = sa.DocumentIndex()
    index.add(NOTES)
    return index


@pytest.mark.spec("R4.4.7")
def test_passages_are_found_by_their_words_the_best_first(index: sa.DocumentIndex) -> None:
    passages = index.search("high tides")
    assert [str(p.location) for p in passages] == ["tides:1-3", "tides:5-7"]
    assert passages[0].score == 1 > passages[1].score > 0
    assert passages[0].text == "# Bergen\n\nHigh tide is at six."
    assert passages[0].heading == "Bergen"


def test_what_stands_below_a_heading_is_found_by_it() -> None:
    index = sa.DocumentIndex()
    rain = "It rains.\n\n" + "Umbrellas help. " * 140
    index.add({"a": f"# Weather\n\n## Bergen\n\n{rain}\n\nTake boots along. " + "Or wait. " * 200})
    [last] = index.search("boots in Bergen", limit=1)
    assert last.text.startswith("Take boots")
    assert last.heading == "Weather > Bergen"


@pytest.mark.spec("R4.4.7")
def test_a_minimum_score_and_a_limit_leave_out_what_fits_less(index: sa.DocumentIndex) -> None:
    index.add({f"other{number}": "Something else." for number in range(20)})
    assert len(found(index, "tide Oslo Bergen city")) == 3
    assert len(found(index, "tide Oslo Bergen city", limit=1)) == 1
    scores = [passage.score for passage in index.search("tide Oslo Bergen city")]
    assert scores[0] == 1 > scores[1] >= scores[2] > 0.1
    assert len(found(index, "tide Oslo Bergen city", min_score=scores[2])) == 3
    assert found(index, "tide Oslo Bergen city", min_score=1) == ["cities:1"]


@pytest.mark.parametrize("query", ["", "?!", "the of", "xyzzy", '"', "a" * 100_000, "\0", "NOT ("])
def test_where_nothing_fits_nothing_is_found(index: sa.DocumentIndex, query: str) -> None:
    assert index.search(query) == []


@pytest.mark.spec("R4.4.7")
def test_a_document_that_is_added_again_is_replaced(index: sa.DocumentIndex) -> None:
    assert index.add({"tides": "It is low now."}) == Added(replaced=1)
    assert found(index, "high tide six") == []
    assert found(index, "low") == ["tides:1"]
    assert index.documents() == ["cities", "lamps", "tides"]


def test_one_that_is_unchanged_stays_and_one_of_other_metadata_does_not(
    index: sa.DocumentIndex,
) -> None:
    assert index.add(NOTES) == Added(unchanged=3)
    assert index.add(NOTES, metadata={"year": 2024}) == Added(replaced=3)
    assert index.add(NOTES, metadata={"year": "2024"}) == Added(unchanged=3)
    assert index.search("lamps")[0].metadata == {"year": "2024"}


@pytest.mark.spec("R4.4.7")
def test_a_filter_takes_documents_whose_metadata_are_just_so() -> None:
    index = sa.DocumentIndex()
    for year in (2023, 2024):
        for kind in ("a%", 'b"', "c'"):
            about = {"year": year, "kind of": kind}
            index.add({f"{kind}{year}": "The tide."}, metadata=about)
    assert len(found(index, "tide")) == 6
    assert found(index, "tide", filter={"year": "2024", "kind of": 'b"'}) == ['b"2024:1']
    assert len(found(index, "tide", filter={"year": 2024.0})) == 3
    assert found(index, "tide", filter={"year": "202%"}) == []
    assert found(index, "tide", filter={"unknown": "2024"}) == []
    assert len(found(index, "tide", filter={"year": 2023}, limit=2)) == 2


OWNERS = [None, sa.Scope("ada"), sa.Scope("bob"), sa.Scope(1), sa.Scope("1")]


@pytest.mark.spec("R4.4.7")
@pytest.mark.parametrize("embedder", [None, lambda texts: [[1.0, float(len(t))] for t in texts]])
def test_nobody_finds_a_passage_of_another_owner(embedder: Any) -> None:
    index = sa.DocumentIndex(embedder=embedder)
    for number, owner in enumerate(OWNERS):
        for text in range(30):
            said = {f"doc{text}": f"The tide of {number} at {text}."}
            assert index.add(said, scope=owner).added == 1  # though the names are the same
    for number, owner in enumerate(OWNERS):
        passages = index.search("tide", limit=1_000, scope=owner)
        whose = {int(passage.text.split()[3]) for passage in passages}
        assert whose == {0, number}
        assert len(passages) == (60 if number else 30)
    assert index.add({"doc0": "New."}, scope=OWNERS[1]).replaced == 1
    assert len(index.search("tide", limit=1_000, scope=OWNERS[2])) == 60


def test_a_scope_that_says_no_owner_is_refused(index: sa.DocumentIndex) -> None:
    with pytest.raises(sa.ConfigurationError, match="owner_id"):
        index.search("tide", scope="ada")


def test_a_document_is_forgotten_for_its_owner_alone(index: sa.DocumentIndex) -> None:
    index.add(NOTES, scope=sa.Scope("ada"))
    index.remove("tides")
    assert found(index, "high tide") == []
    assert found(index, "high tide", scope=sa.Scope("ada"), limit=1) == ["tides:1-3"]
    assert index.documents() == ["cities", "lamps"]
    assert index.documents(scope=sa.Scope("ada")) == ["cities", "lamps", "tides"]
    with pytest.raises(sa.NotFound, match="tides"):
        index.remove("tides")


def test_a_file_of_it_is_opened_again_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    index = sa.DocumentIndex(path)
    index.add(NOTES)
    script = f"""
import sagents_nb as sa
index = sa.DocumentIndex({str(path)!r})
print(index.search("high tide")[0].location)
index.add({{"tides": "It is low now."}})
"""
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert told.stdout == "tides:1-3\n"
    assert found(index, "low") == ["tides:1"]  # beside this one, which has it open
    index.close()


def test_a_file_that_is_no_index_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("These are my notes, and no database at all.\n" * 100)
    with pytest.raises(sa.ConfigurationError, match="not a database"):
        sa.DocumentIndex(path)
    assert path.read_text().startswith("These are my notes")
    other = tmp_path / "other.db"
    sa.ConversationStore(other).close()
    before = other.read_bytes()
    with pytest.raises(sa.ConfigurationError, match="no index of documents of this version"):
        sa.DocumentIndex(other)
    assert other.read_bytes() == before
    with pytest.raises(sa.ConfigurationError, match="cannot be used"):
        sa.DocumentIndex(tmp_path / "no" / "folder.db")


def test_threads_add_and_search_at_once(tmp_path: Path) -> None:
    index = sa.DocumentIndex(tmp_path / "notes.db")
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for each in range(20):
                index.add({f"{number}-{each}": f"The tide of number{number} and each{each}."})
                assert found(index, f"number{number} each{each}")[0] == f"{number}-{each}:1"
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(index.documents()) == 80


def test_rows_of_a_frame_are_documents_by_the_column_that_names_them() -> None:
    frame = pandas.DataFrame(
        {
            "doi": ["10/a", "10/b", "10/c"],
            "text": ["Drag.", None, "Lift."],
            "year": [2020, 2021, None],
        },
        index=["x", "y", "z"],
    )
    index = sa.DocumentIndex()
    added = index.add(frame, text="text", id="doi", metadata=["year"])
    assert added == Added(added=2, refused={"10/b": "10/b has no text in 'text'."})
    assert found(index, "drag", filter={"year": 2020}) == ["10/a, row x"]
    [lift] = index.search("lift")
    assert lift.location.row == "z"
    assert lift.metadata == {}
    assert index.add(frame, text="text", id="doi", metadata=["year"]).unchanged == 2
    moved = frame.iloc[::-1].reset_index(drop=True)
    assert index.add(moved, text="text", id="doi", metadata=["year"]).replaced == 2
    assert found(index, "drag") == ["10/a, row 2"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"text": "body", "id": "doi"}, "no column 'body'; it has doi, text"),
        ({"text": "text", "id": "text", "metadata": ["no"]}, "no column 'no'"),
        ({"text": "text", "id": "doi"}, "'10/a' twice"),
        ({"text": "text"}, 'add\\(df, text="abstract", id="doi"\\)'),
    ],
)
def test_a_frame_that_does_not_say_which_row_is_which_is_refused_whole(
    options: dict[str, Any], said: str
) -> None:
    frame = pandas.DataFrame({"doi": ["10/b", "10/a", "10/a"], "text": ["Drag.", "Lift.", "Up."]})
    index = sa.DocumentIndex()
    with pytest.raises(ValueError, match=said):
        index.add(frame, **options)
    assert index.documents() == []


@pytest.mark.parametrize("source", [3, b"x", None, {"a": 1}, {1: "a"}, {"": "a"}, [1], object()])
def test_what_is_no_source_is_refused(source: Any) -> None:
    index = sa.DocumentIndex()
    with pytest.raises(sa.ConfigurationError, match="add\\("):
        index.add(source)
    with pytest.raises(sa.ConfigurationError, match="name columns of a data frame"):
        index.add({"a": "b"}, text="a")
    assert index.documents() == []
