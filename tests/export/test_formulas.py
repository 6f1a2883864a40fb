"""Formulas of an exported page: found by the rules of the panel, and set without a script."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sagents_nb.export.formulas import mathml
from sagents_nb.export.html import markdown_renderer, rendered
from tests.export.pages import Page

CASES = json.loads((Path(__file__).parents[1] / "fixtures/formulas.json").read_text())


def formulas_in(text: str) -> list[str]:
    """The formulas of a text, as they were written."""
    tokens = markdown_renderer().parse(text)
    every = [each for token in tokens for each in [token, *(token.children or ())]]
    return [token.meta.raw.strip() for token in every if token.type == "formula"]


@pytest.mark.parametrize(("text", "found"), CASES["formulas"])
def test_a_formula_is_found_as_the_panel_finds_it(text: str, found: list[str]) -> None:
    assert formulas_in(text) == found
    assert rendered(text).count("</math>") == len(found)


@pytest.mark.parametrize("text", CASES["none"])
def test_a_price_is_none_and_every_sign_of_it_stays(text: str) -> None:
    assert formulas_in(text) == []
    assert "<math" not in rendered(text)
    assert rendered(text).count("$") == text.count("$")


def test_code_is_code_and_what_stands_round_a_formula_is_markdown() -> None:
    assert formulas_in("```\n$$a$$\n```") == []
    assert rendered("*a* $b$ \\* \\( d") == (
        '<p><em>a</em> <math display="inline"><mrow><mi>b</mi></mrow></math> * ( d</p>\n'
    )
    assert rendered("> $$\n> x\n> $$\n> more").count('<math display="block">') == 1
    assert "more" in rendered("> $$\n> x\n> $$\n> more")


def test_aligned_lines_are_a_table() -> None:
    html = rendered("$$\\begin{aligned}a &= b \\\\ &< c\\end{aligned}$$")
    assert (html.count("<mtr>"), html.count("<mtd")) == (2, 4)
    assert "&amp;" not in html
    assert "&lt;" in html


@pytest.mark.parametrize(
    "tex",
    [
        "\\notacommand{x}",
        "\\left( x",
        "x^a^b",
        "{" * 1_900,
        "\\frac" * 300,
        "\\newcommand{\\x}{\\x\\x}\\x",
        "\\begin{aligned} a & b",
        "a & b",
    ],
)
def test_what_cannot_be_set_is_the_code_that_it_is(tex: str) -> None:
    assert mathml(tex, display=False) is None
    assert rendered(f"So ${tex}$.") == f"<p>So <code>${tex.replace('&', '&amp;')}$</code>.</p>\n"


def test_without_the_converter_all_are_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", None)
    assert rendered("$x$ for $5") == "<p><code>$x$</code> for $5</p>\n"


@pytest.mark.parametrize(
    "tex",
    [
        "\\href{javascript:alert(1)}{x}",
        "\\href{https://evil.example}{x}",
        "\\style{background:url(https://evil.example)}{x}",
        "\\class{bubble}{x}",
        "\\text{<script>alert(1)</script>}",
        "\\text{</math><img src=x onerror=alert(1)>}",
        "\\includegraphics{https://evil.example/a.png}",
    ],
)
def test_a_formula_can_neither_link_nor_load_nor_run_anything(tex: str) -> None:
    assert Page(rendered(f"${tex}$")).live == []
