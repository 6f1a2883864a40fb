"""With an embedder passages are found by meaning, and none is asked for what is known."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from tests.documents.making import Embedder

SAME = [{"car", "automobile", "voiture"}, {"tide", "flut"}]
NOTES = {"cars": "An automobile for two.", "seas": "Flut um sechs.", "lamps": "Red and green."}


def first(index: sa.DocumentIndex, query: str, **options: Any) -> str:
    return index.search(query, **options)[0].location.document


def test_what_is_said_in_other_words_is_found() -> None:
    index = sa.DocumentIndex(embedder=Embedder(256, SAME))
    index.add(NOTES)
    assert first(index, "a voiture?") == "cars"
    assert first(index, "tide") == "seas"
    assert sa.DocumentIndex().search("voiture") == []


def test_scope_filter_and_limit_hold_for_meaning_too() -> None:
    index = sa.DocumentIndex(embedder=Embedder(256, SAME))
    index.add(NOTES, scope=sa.Scope("ada"), metadata={"year": 1})
    index.add({"more": "An automobile for four."}, scope=sa.Scope("bob"), metadata={"year": 2})
    assert index.search("voiture") == []
    assert first(index, "voiture", scope=sa.Scope("bob")) == "more"
    assert index.search("voiture", scope=sa.Scope("bob"), filter={"year": 1}) == []
    assert len(index.search("voiture", scope=sa.Scope("ada"), limit=2)) == 2


@pytest.mark.spec("R4.4.7")
def test_a_thousand_files_that_are_added_again_embed_nothing(tmp_path: Path) -> None:
    for number in range(1_000):
        (tmp_path / f"{number}.md").write_text(f"# Note {number}\n\nThe tide of day {number}.")
    embedder = Embedder()
    index = sa.DocumentIndex(tmp_path / "notes.db", embedder)
    assert index.add(f"{tmp_path}/*.md").added == 1_000
    assert len(embedder.texts) == 1_001  # one of them tells whose the vectors are
    embedder.texts.clear()
    assert index.add(f"{tmp_path}/*.md").unchanged == 1_000
    index.close()
    again = sa.DocumentIndex(tmp_path / "notes.db", embedder)
    assert again.add(f"{tmp_path}/*.md").unchanged == 1_000
    assert embedder.texts == []
    (tmp_path / "7.md").write_text("# Note 7\n\nIt is low now.")
    assert again.add(f"{tmp_path}/*.md").replaced == 1
    assert [text for text in embedder.texts if "low" in text] == embedder.texts[1:]


def test_of_a_document_that_has_changed_only_what_is_new_is_embedded() -> None:
    parts = [f"# Part {number}\n\nWord{number} stands here." for number in range(20)]
    embedder = Embedder()
    index = sa.DocumentIndex(embedder=embedder)
    index.add({"book": "\n\n".join(parts)})
    embedder.texts.clear()
    index.add({"book": "\n\n".join(["# New\n\nThis is new.", *parts])})
    assert embedder.texts == ["New\n# New\n\nThis is new."]
    assert first(index, "word7 stands") == "book"


def test_another_embedder_has_all_made_anew_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = sa.DocumentIndex(tmp_path / "notes.db", Embedder(256, SAME))
    index.add(NOTES)
    index.close()
    for other in (Embedder(128, SAME), Embedder(128, [{"tide", "lamps"}])):  # by size, by meaning
        other.texts.clear()
        caplog.clear()
        index = sa.DocumentIndex(tmp_path / "notes.db", other)
        with caplog.at_level(logging.WARNING, "sagents_nb.documents"):
            index.search("tide")
            index.search("tide")
            index.add(NOTES)
        assert caplog.text.count("another embedder's vectors") == 1
        assert set(NOTES.values()) <= set(other.texts)
        assert len(other.texts) == 1 + 2 + 3
        index.close()


def test_two_that_have_it_open_do_not_compare_each_others_vectors(tmp_path: Path) -> None:
    one = sa.DocumentIndex(tmp_path / "notes.db", Embedder(256, SAME))
    one.add(NOTES)
    other = sa.DocumentIndex(tmp_path / "notes.db", Embedder(64, [{"tide", "red"}]))
    assert first(one, "tide") == "seas"
    assert first(other, "tide") == "lamps"
    assert first(one, "tide") == "seas"


def test_an_index_without_vectors_gets_them_and_one_with_them_does_without(tmp_path: Path) -> None:
    plain = sa.DocumentIndex(tmp_path / "notes.db")
    plain.add(NOTES)
    embedder = Embedder(256, SAME)
    assert first(sa.DocumentIndex(tmp_path / "notes.db", embedder), "voiture") == "cars"
    plain.add({"new": "A voiture."})
    assert first(plain, "voiture") == "new"


def test_where_the_embedder_fails_passages_are_found_by_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    works = True
    embedder = Embedder(256, SAME)

    def moody(texts: Sequence[str]) -> Any:
        if not works:
            raise OSError("the service is away")
        return embedder(texts)

    index = sa.DocumentIndex(embedder=moody)
    index.add(NOTES)
    works = False
    assert first(index, "red lamps") == "lamps"
    assert "the service is away" in caplog.text
    with pytest.raises(sa.DocumentError, match="were added and are found by their words"):
        index.add({"new": "A voiture."})
    works = True
    assert first(index, "automobile for two voiture") == "cars"
    assert {"cars", "new"} == {p.location.document for p in index.search("car", limit=2)}


@pytest.mark.parametrize("wrong", [[1.0], [[1.0]] * 9, [[float("nan")]] * 4, [["a"]] * 4, None])
def test_an_embedder_that_gives_no_vectors_is_named(wrong: Any) -> None:
    index = sa.DocumentIndex(embedder=lambda texts: wrong)
    with pytest.raises((sa.ConfigurationError, sa.DocumentError), match="embedder"):
        index.add(NOTES)
    assert first(index, "red lamps") == "lamps"
