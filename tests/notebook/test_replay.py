"""``%agent replay``: the answers of a conversation's model, kept for another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import sagents_nb as sa
from sagents_nb.models import ChatModel, ModelRequest
from tests.notebook.conftest import value


class Counted(ChatModel):
    name = "counted"
    asked = 0

    async def stream(self, request: ModelRequest) -> Any:
        Counted.asked += 1
        yield sa.Message.assistant("Hello!")


def run(shell: InteractiveShell, code: str) -> Any:
    with capture_output():
        return value(shell.run_cell(code))


@pytest.fixture
def asked(shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The shell in a folder of its own, talking to a model that counts."""
    monkeypatch.chdir(tmp_path)
    Counted.asked = 0
    shell.user_ns["agent"] = sa.Agent(Counted())
    run(shell, "%agent use agent")
    return shell


def test_answers_are_kept_and_used_again(asked: InteractiveShell, tmp_path: Path) -> None:
    assert "are not recorded" in run(asked, "%agent replay")
    assert "the mode is 'auto'" in run(asked, "%agent replay auto")
    run(asked, "%%agent\nhi")
    assert (tmp_path / ".sagents" / "cache").is_dir()
    run(asked, "%agent reset --yes")
    assert run(asked, "%%agent\nhi").text == "Hello!"
    assert Counted.asked == 1
    assert "the mode is 'replay'" in run(asked, "%agent replay replay")
    with pytest.raises(sa.ReplayMiss):
        run(asked, "%%agent\nsomething else")
    assert "are not recorded" in run(asked, "%agent replay off")
    run(asked, "%agent reset --yes")
    run(asked, "%%agent\nhi")
    assert Counted.asked == 2


def test_the_conversation_goes_on_when_the_mode_changes(asked: InteractiveShell) -> None:
    run(asked, "%%agent\nhi")
    run(asked, "%agent replay record")
    assert run(asked, "%%agent\nand again").status == "completed"
    run(asked, "%agent replay auto")
    assert Counted.asked == 2
    assert len(run(asked, "%agent frame messages")) == 4


def test_a_mode_that_does_not_exist_is_named(asked: InteractiveShell) -> None:
    with pytest.raises(UsageError, match="'auto', 'record', 'replay', 'off'"):
        run(asked, "%agent replay maybe")


def test_help_names_it(asked: InteractiveShell) -> None:
    assert "%agent replay [MODE]" in run(asked, "%agent help")
