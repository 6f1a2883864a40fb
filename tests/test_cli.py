"""The command line: a demonstration, a check of the installation, the version."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

import sagents_nb as sa
from sagents_nb import tour
from sagents_nb.cli import main


def test_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.strip() == sa.__version__


def test_doctor_says_what_is_installed_and_which_model_answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGENTS_MODEL", "demo")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-canary")
    main(["doctor"])
    out = capsys.readouterr().out
    assert "ipykernel" in out
    assert "The default model is 'demo', because $SAGENTS_MODEL is 'demo'." in out
    assert "ANTHROPIC_API_KEY  set" in out
    assert "canary" not in out


def test_demo_asks_at_the_terminal_and_writes_what_was_approved(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO("y\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "[x] Compare body_mass_g by species" in out
    assert "write_file completed" in out
    assert "--- /report.md ---" in out
    assert "| Gentoo | 123 | 5,076 |" in out


def test_demo_writes_nothing_where_nobody_can_be_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "write_file rejected" in out
    assert "--- /report.md ---" not in out


def test_demo_shows_a_made_up_name_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = sa.ToolCall("c1", "look\x1b[2J\n  * write_file completed", {})
    model = sa.ScriptedModel([odd, "Done."])
    monkeypatch.setattr(tour, "penguin_agent", lambda penguins: sa.Agent(model))
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "\n  * look\\x1b[2J * write_file completed failed: " in out


def test_backup_copies_a_store_and_overwrites_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sa.ConversationStore(tmp_path / "agents.db").close()
    names = [str(tmp_path / "agents.db"), str(tmp_path / "copy.db")]
    assert main(["backup", *names]) == 0
    assert capsys.readouterr().out == "{} is copied to {}, as it was at one moment.\n".format(
        *names
    )
    sa.ConversationStore(tmp_path / "copy.db").close()
    assert main(["backup", *names]) == 1
    assert "copy.db is there already" in capsys.readouterr().err
