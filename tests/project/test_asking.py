"""What is there already is asked about, and so is the class that was not named."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sagents_nb.cli import main
from tests.project.projects import ACCOUNTS, files_of

pytestmark = pytest.mark.spec("S1.14.4")

Terminal = Callable[[str], None]


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Somebody sits at the terminal and types this."""

    def type_in(text: str) -> None:
        terminal = io.StringIO(text)
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stdin", terminal)

    return type_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which something of the same names is already."""
    folder = tmp_path / "agents"
    (folder / "notebooks").mkdir(parents=True)
    (folder / "README.md").write_text("mine")
    (folder / "notebooks" / "chat.ipynb").write_text("mine too")
    (folder / "notebooks" / "other.ipynb").write_text("untouched")
    return folder


@pytest.mark.parametrize("answer", ["n\n", "\n", "never\n"])
def test_no_changes_nothing(
    answer: str, folder: Path, types: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(folder)
    types("\n" + answer)
    assert main(["setup", str(folder)]) == 1
    said = capsys.readouterr().out
    assert "README.md\n" in said
    assert "chat.ipynb\n" in said
    assert "other" not in said
    assert "Nothing was changed." in said
    assert files_of(folder) == before


def test_who_leaves_without_an_answer_changes_nothing(
    folder: Path, types: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(folder)
    for typed in ("", "\n"):
        types(typed)
        assert main(["setup", str(folder)]) == 1
        assert "Nothing was written" in capsys.readouterr().err
    assert files_of(folder) == before


def test_yes_overwrites_them_all_and_leaves_others_alone(folder: Path, types: Terminal) -> None:
    types("\ny\n")
    assert main(["setup", str(folder)]) == 0
    assert (folder / "README.md").read_text().startswith("# Agents\n")
    assert (folder / "notebooks" / "chat.ipynb").read_text() != "mine too"
    assert (folder / "notebooks" / "other.ipynb").read_text() == "untouched"
    assert not list(folder.glob(".setup*"))


def test_without_a_terminal_they_are_named_and_nothing_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(folder)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert main(["setup", str(folder)]) == 1
    error = capsys.readouterr().err
    assert "README.md" in error
    assert "--yes" in error
    assert files_of(folder) == before
    assert main(["setup", str(folder), "--yes"]) == 0
    assert files_of(folder) != before


def test_the_class_is_asked_for_and_enter_writes_one(tmp_path: Path, types: Terminal) -> None:
    types("\n")
    assert main(["setup", str(tmp_path / "small")]) == 0
    assert "class Scope:" in (tmp_path / "small/small/scope.py").read_text()

    big = tmp_path / "big"
    big.mkdir()
    (big / "asked_for.py").write_text(ACCOUNTS)
    types("asked_for:Membership\n")
    assert main(["setup", str(big), "--owner-field", "team_id"]) == 0
    text = (big / "big" / "scope.py").read_text()
    assert "from asked_for import Membership as Scope" in text
    assert "class Scope" not in text


def test_nobody_is_asked_for_a_class_where_there_are_no_owners(
    tmp_path: Path, types: Terminal
) -> None:
    types("")
    assert main(["setup", str(tmp_path / "bare"), "-t", "none"]) == 0
    assert not (tmp_path / "bare" / "bare" / "scope.py").exists()
