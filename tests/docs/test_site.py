"""The site is built strictly, loads nothing from elsewhere, and has no link that leads nowhere."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.docs.site import ROOT, problems


def test_every_link_and_anchor_is_good_and_nothing_comes_from_elsewhere(site: Path) -> None:
    assert len(list(site.rglob("*.html"))) > 10
    assert list(problems(site)) == []


@pytest.mark.parametrize(
    "added",
    [
        '<script src="https://example.org/x.js"></script>',
        '<img src="//example.org/x.png">',
        '<link rel="stylesheet" href="https://example.org/x.css">',
        '<a href="gone.html">x</a>',
        '<a href="#gone">x</a>',
        '<a href="frames.html#gone">x</a>',
    ],
)
def test_what_is_wrong_is_found(added: str, site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    page = copy / "index.html"
    page.write_text(page.read_text(encoding="utf-8") + added, encoding="utf-8")
    assert len(list(problems(copy))) == 1


def test_the_reference_shows_what_an_event_is_made_of(site: Path) -> None:
    page = (site / "reference" / "events.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", "", re.sub(r"<[^>]+>", "", page))
    assert "AgentStart()" in text
    assert "TokenUsage(usage:Usage" in text


def test_each_page_of_docs_is_in_the_navigation() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    docs = ROOT / "docs"
    pages = sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))
    assert sorted(named(config["project"]["nav"])) == pages


def named(part: Any) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(part, str):
        return [part]
    return [
        page for each in (part.values() if isinstance(part, dict) else part) for page in named(each)
    ]
