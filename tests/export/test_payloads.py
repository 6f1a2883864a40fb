"""Whatever is in a conversation stays text where it is exported to, or left behind."""

from __future__ import annotations

import re

import nbformat
import pytest
from nbconvert import HTMLExporter
from nbconvert.filters import markdown2html

import sagents_nb as sa
from sagents_nb.export import html_of, markdown_of, notebook_of
from sagents_nb.notebook.widget import frozen_bundle
from tests.export.pages import Page, leads_nowhere_else
from tests.export.payloads import ASKING, SCRIPTS, document_with

ALL = [*SCRIPTS, *ASKING]
BATCHES = [ALL[n : n + 25] for n in range(0, len(ALL), 25)]
IDS = [f"from {batch[0]!r:.30}" for batch in BATCHES]


def test_there_are_enough_of_them() -> None:
    assert len(set(SCRIPTS)) >= 300
    assert len(set(ASKING)) >= 100


@pytest.mark.parametrize("payload", ALL)
def test_a_page_with_one_is_text_only(payload: str) -> None:
    page = Page(html_of(document_with([payload])), frame=True)
    assert page.live == []
    assert len(page.metas) == 5, "the page's own"


@pytest.mark.parametrize("batch", BATCHES, ids=IDS)
def test_markdown_of_them_is_text_only_where_it_is_shown(batch: list[str]) -> None:
    assert Page(markdown2html(markdown_of(document_with(batch)))).live == []


@pytest.mark.parametrize("batch", BATCHES, ids=IDS)
def test_a_notebook_of_them_is_text_only_as_a_page(batch: list[str]) -> None:
    notebook = nbformat.reads(notebook_of(document_with(batch)), as_version=4)
    html, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    assert Page(html).live == []


@pytest.mark.parametrize("batch", BATCHES, ids=IDS)
def test_a_frozen_panel_of_them_is_text_only(batch: list[str]) -> None:
    said = [sa.Message.assistant(evil) for evil in batch]
    said += [sa.Message.assistant(e, [sa.ToolCall(e, e, {e: e})]) for e in batch]
    session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=sa.State(messages=said))
    shown = frozen_bundle(session)[0]
    session.close()
    live = Page(markdown2html(shown["text/markdown"])).live
    # A notebook that is gone on with may have links to what lies beside it.
    links = [found.removeprefix("a href=") for found in live if found.startswith("a href=")]
    assert [f"a href={address}" for address in links if leads_nowhere_else(address)] == live


@pytest.mark.soak
def test_a_notebook_of_all_of_them_adds_nothing_to_the_page_that_nbconvert_makes() -> None:
    def elements(payloads: list[str]) -> list[str]:
        notebook = nbformat.reads(notebook_of(document_with(payloads)), as_version=4)
        page = Page(HTMLExporter().from_notebook_node(notebook)[0], frame=True)
        return [found for found in page.live if re.match(r"<|\S+ (on|src|action|style)", found)]

    assert elements(ALL) == elements(["*nothing*"])
