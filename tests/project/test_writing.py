"""All files of a project are written, or none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.project import existing, write
from tests.project.projects import files_of

FILES = {Path("a.md"): "A", Path("b/c.md"): "C", Path("b/d/e.md"): "E"}


def test_they_are_written_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "x" / "y"
    write(folder, {**FILES, Path("ü.md"): "ü\n"})
    assert files_of(folder) == {
        "a.md": b"A", "b/c.md": b"C", "b/d/e.md": b"E", "ü.md": "ü\n".encode()
    }  # fmt: skip
    assert existing(folder, [Path("a.md"), Path("z.md")]) == [Path("a.md")]


@pytest.mark.parametrize("place", ["a.md", "b/c.md", "b/d/e.md"])
def test_where_a_directory_is_in_the_way_all_is_as_it_was(place: str, tmp_path: Path) -> None:
    (tmp_path / place / "kept").mkdir(parents=True)
    (tmp_path / "a.md" if place != "a.md" else tmp_path / "other.md").write_text("old")
    before, directories = files_of(tmp_path), sorted(tmp_path.rglob("*"))
    with pytest.raises(sa.ConfigurationError, match=r"is a directory.*nothing was changed"):
        write(tmp_path, FILES)
    assert (files_of(tmp_path), sorted(tmp_path.rglob("*"))) == (before, directories)


def test_where_a_file_is_in_the_way_of_a_directory_all_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("a file")
    with pytest.raises(sa.ConfigurationError, match="nothing was changed"):
        write(tmp_path, FILES)
    assert files_of(tmp_path) == {"b": b"a file"}
    with pytest.raises(sa.ConfigurationError, match="nothing was changed"):
        write(tmp_path / "b", FILES)
    with pytest.raises(sa.ConfigurationError, match="nothing was changed"):
        write(tmp_path / "b" / "c", FILES)
    assert files_of(tmp_path) == {"b": b"a file"}


def test_a_link_is_replaced_and_what_it_names_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("theirs")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.md").symlink_to(elsewhere)
    assert existing(folder, FILES) == [Path("a.md")]
    write(folder, FILES)
    assert (folder / "a.md").read_text() == "A"
    assert elsewhere.read_text() == "theirs"


@given(fails_at=st.integers(0, 40), is_there=st.sets(st.sampled_from(sorted(FILES))))
def test_whatever_call_fails_it_is_all_or_nothing(
    fails_at: int, is_there: set[Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    top = tmp_path_factory.mktemp("any")
    folder = top / "new" / "project"
    for path in is_there:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("old")
    before, calls = files_of(top), 0
    rename, mkdir = os.rename, os.mkdir

    def failing(real):  # type: ignore[no-untyped-def]
        def call(*args, **kwargs):  # type: ignore[no-untyped-def]
            nonlocal calls
            calls += 1
            if calls == fails_at:
                raise OSError(28, "No space left on device")
            return real(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", failing(rename))
        patch.setattr(os, "mkdir", failing(mkdir))
        try:
            write(folder, FILES)
        except sa.ConfigurationError as error:
            said = str(error)
            assert files_of(top) == before
            assert is_there or not list(top.iterdir())
            assert "No space left" in said
        else:
            assert files_of(folder) == {str(path): text.encode() for path, text in FILES.items()}
