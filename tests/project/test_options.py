"""What no project can be made of is refused in a sentence, before anything is written."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from sagents_nb.cli import main
from tests.project.projects import ACCOUNTS, files_of

pytestmark = pytest.mark.spec("S1.14.4")


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scope", "accounts"], "'accounts' is no MODULE:CLASS"),
        (["--scope", ""], "--scope is empty"),
        (["--scope", "my accounts:Scope"], "is no MODULE:CLASS"),
        (["--scope", "class:Scope"], "is no MODULE:CLASS"),
        (["--scope", "nowhere_at_all:Scope"], "no module 'nowhere_at_all'"),
        (["--scope", "seen_here.deeper:Scope"], "no module 'seen_here.deeper'"),
        (["--scope", "seen_here:Nobody"], "no class 'Nobody'"),
        (["--scope", "seen_here:ACCOUNT"], "no class 'ACCOUNT'"),
        (["--scope", "seen_here:Membership"], "--owner-field"),
        (["--scope", "seen_here:Guest"], "--owner-field"),
        (["--scope", "seen_here:Shouting"], "has 'ALICE' there"),
        (["--scope", "broken_here:Scope"], "'broken_here' cannot be imported (ValueError: no)"),
        (["--scope", "ended_here:Scope"], "'ended_here' cannot be imported (SystemExit: 3)"),
        (["--scope", "seen_here:Membership", "-t", "none"], "leave out --scope"),
        (["--owner-type", "Ein Team"], "owner type 'Ein Team'"),
        (["--owner-field", "user-id"], "owner field 'user-id'"),
        (["--owner-field", "class"], "owner field 'class'"),
        (["--owner-field", "_id"], "owner field '_id'"),
        (["--table-prefix", "1; drop"], "table prefix '1; drop'"),
        (["--package", "two words"], "package 'two words'"),
        (["--package", "tests"], "'tests' is something else's name"),
        (["--package", "json"], "'json' is something else's name"),
        (["--package", "sagents_nb"], "something else's name"),
        (["--model", "gpt-6"], "did you mean 'openai:gpt-6'"),
    ],
)
def test_what_cannot_work_is_told_in_a_sentence_and_nothing_is_written(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "seen_here.py").write_text(f"{ACCOUNTS}\nACCOUNT = 1\n")
    (folder / "broken_here.py").write_text("raise ValueError('no')\n")
    (folder / "ended_here.py").write_text("raise SystemExit(3)\n")
    before, path = files_of(folder), sys.path[:]
    try:
        assert main(["setup", str(folder), *options]) == 1
    finally:
        sys.modules.pop("seen_here", None)
    error = capsys.readouterr().err
    assert said in error
    assert error.startswith("sagents-nb: ")
    assert error.count("\n") == 1
    assert files_of(folder) == before
    assert sys.path == path


def test_a_folder_whose_name_is_no_packages_needs_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["setup", str(tmp_path / "2026")]) == 1
    assert "name one with --package" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main(["setup", str(tmp_path / "2026"), "--package", "year"]) == 0
    assert (tmp_path / "2026" / "year" / "factory.py").is_file()


def test_the_package_is_called_after_the_folder_and_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["setup", "deep/down/../My Agents"]) == 0
    assert (tmp_path / "deep" / "My Agents" / "my_agents" / "factory.py").is_file()


def test_help_tells_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["setup", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for option in ("-s", "--owner-type", "--owner-field", "--table-prefix", "--package", "--model"):
        assert option in said
    assert "(default: sagents_)" in said
