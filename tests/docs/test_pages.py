"""Every Python block and ``%%agent`` cell of the documentation runs, and shows what it says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from sybil.parsers.abstract.lexers import LexingException

from tests.docs.pages import PAGES, RECIPES, ROOT, run_page


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a page writes what it writes; nothing in it waits for a window."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield tmp_path
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


def with_code() -> list[Path]:
    code = re.compile(r"^\s*```(?:python|(?:text)?\n%%?agent)", re.MULTILINE)
    return [
        page
        for page in PAGES
        if page.parent != RECIPES and code.search(page.read_text(encoding="utf-8"))
    ]


def recipes() -> list[Any]:
    """What stands below each heading of their pages."""
    return [
        pytest.param(text, id=f"{page.stem}: {text.partition(chr(10))[0]}")
        for page in sorted(RECIPES.glob("*.md"))
        for text in re.split(r"(?m)^## ", page.read_text(encoding="utf-8"))[1:]
    ]


@pytest.mark.parametrize("page", with_code(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page: Path, shell: InteractiveShell, folder: Path) -> None:
    del shell.user_ns["sa"]  # the page imports what it uses
    run_page(page, shell)


@pytest.mark.parametrize("text", recipes())
def test_a_recipe_runs_by_itself_and_shows_what_comes(
    text: str, shell: InteractiveShell, folder: Path
) -> None:
    del shell.user_ns["sa"]
    assert "```output" in text
    assert run_page(written(folder, text), shell) > 0


def written(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_share_their_names_and_agent_cells_are_run(
    shell: InteractiveShell, folder: Path
) -> None:
    text = (
        "```python\nagent = sa.Agent(sa.ScriptedModel(['Hello!']))\n%agent use agent\n```\n"
        "```text\n%%agent\nHi\n```\n"
        "```python\n[len(m.requests) for m in [agent.model]]\n```\n```output\n[1]\n```\n"
    )
    assert run_page(written(folder, text), shell) == 3


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 / 0\n```\n",
        "```python\nprint(1)\n```\n\n```output\n2\n```\n",
        "```\n%%agent --no-such-option\nHi\n```\n",
        '```python title="chatlas"\nchat = (\n```\n',
        '```python title="sagents_nb"\n1 / 0\n```\n',
        "```python hurry\n1\n```\n",
        "<!-- not run: -->\n```python\n1 / 0\n```\n",
        "<!-- not run: only the first -->\n```python\n1 / 0\n```\n```python\n1 / 0\n```\n",
    ],
)
def test_a_page_that_is_not_true_fails(text: str, shell: InteractiveShell, folder: Path) -> None:
    with pytest.raises((AssertionError, LexingException)):
        run_page(written(folder, text), shell)


def test_what_is_not_run_says_why(shell: InteractiveShell, folder: Path) -> None:
    text = "<!-- not run: it has no key -->\n```python\n1 / 0\n```\n```sh\nfalse\n```\n"
    assert run_page(written(folder, text), shell) == 0


def test_code_of_another_package_is_read_and_not_run(shell: InteractiveShell, folder: Path) -> None:
    text = (
        '```python title="chatlas"\nimport nowhere\n%ai list\n```\n'
        '```python title="chatlas"\nawait chat.chat_async("Hi")\n```\n'
        '```python title="sagents_nb"\nprint(1)\n```\n```output\n1\n```\n'
    )
    assert run_page(written(folder, text), shell) == 1
