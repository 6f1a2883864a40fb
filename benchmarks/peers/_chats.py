"""The chats of benchmarks/panel.py in a real browser: the panel, a naive widget, and peers.

Each says the answer of ``_answer.py`` when it is asked. What is done with their pages is
``panel.py``'s business.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from peers._answer import TOKEN
from peers._environments import environment
from playwright.sync_api import Browser, Page, expect

from sagents_nb.panel import bundle
from tests.browser.lab import LabWindow, NotebookPage
from tests.browser.marimo import Marimo
from tests.browser.servers import LabServer, MarimoServer, Server
from tests.browser.windows import HostPage, Window

HERE = Path(__file__).parent
WIDGETS = HERE.parents[1] / "widgets"
JUPYTER_AI = ["jupyter-ai>=3,<4"]
PIECE = 400
"""Characters: 20 of them a second make up 2,000 tokens."""

PATH = f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
OURS = f"""{PATH}
%load_ext sagents_nb
from pathlib import Path
import sagents_nb as sa
import sagents_nb.panel.bundle
from _answer import answer, conversation, pieces

class Steady(sa.ChatModel):
    "Says the answer to whatever it is asked, a token at a time."
    name = "steady"
    async def stream(self, request):
        async for piece in pieces({TOKEN}):
            yield piece
        yield sa.Message.assistant(answer(), usage=sa.Usage(10, len(answer()) // {TOKEN}))

def session(messages=0):
    said = tuple(sa.Message(role, (sa.TextPart(text),)) for role, text in conversation(messages))
    return sa.Session(sa.Agent(Steady()), state=sa.State(messages=said))
"""
NAIVE = f"""{PATH}
from pathlib import Path
from _answer import conversation
from panel_naive import Naive

def naive(messages=0):
    text = "\\n\\n".join(text for role, text in conversation(messages))
    return Naive(text=text, _esm=Path("naive.js").read_text())
"""
NAIVE_SCRIPT = """
import {{ marked }} from "marked";
const render = ({{ model, el }}) => {{
  const box = el.appendChild(document.createElement("div"));
  box.className = "naive";
  box.style.cssText = "height: 480px; overflow: auto;{style}";
  const show = () => {{
    const text = model.get("text");
    {show};
    box.scrollTop = box.scrollHeight;
  }};
  model.on("change:text", show);
  requestAnimationFrame(show);
}};
export default {{ render }};
"""
MARIMO = f"""{PATH}
import marimo as mo
from _answer import pieces

async def steady(messages, config):
    async for piece in pieces(SIZE):
        yield piece

chat = mo.ui.chat(steady)
"""
PERSONA = f"""{PATH}
from _answer import pieces
from jupyter_ai_persona_manager import BasePersona, PersonaDefaults

class Steady(BasePersona):
    "Says the answer to whatever it is asked."

    @property
    def defaults(self):
        return PersonaDefaults(name="Steady", description="", avatar_path="", system_prompt="")

    async def process_message(self, message):
        await self.stream_message(pieces(SIZE))
"""


@dataclass
class Chat:
    """A chat that is open in a page and was asked nothing."""

    page: Page
    box: str
    """JavaScript: the element, or the root, that shows what was said."""
    composer: str = ""
    """The selector of where one writes; empty for what is asked by the next cell."""
    notebook: NotebookPage | None = None
    newest: str = ""
    """JavaScript: the last of what a conversation that is opened shows, if it is there."""

    def show(self) -> None:
        """Run the cell that shows it, where there is one."""
        if self.notebook is not None:
            self.notebook.run_cell(1)
            self.page.wait_for_function(f"{self.box} !== null")

    def ask(self) -> None:
        """Have it answer."""
        if self.composer:
            self.page.locator(self.composer).first.fill("Go.")
            self.page.keyboard.press("Enter")
        else:
            assert self.notebook is not None
            self.notebook.run_cell(2)


class FreeLab(LabServer):
    """A JupyterLab that drops no message of whoever sends much."""

    def command(self, folder: Path) -> Sequence[str]:
        return [*super().command(folder), "--ZMQChannelsWebsocketConnection.limit_rate=False"]


class JupyterAi(LabServer):
    """A JupyterLab with jupyter-ai, in an environment of its own."""

    name = "jupyter-ai"

    def command(self, folder: Path) -> Sequence[str]:
        persona = "jupyter-ai-personas::steady_persona::Steady"
        return [*super().command(folder), f"--PersonaManager.default_persona_id={persona}"]


def naive_script(markdown: bool) -> str:
    """The script of the naive widget: Markdown by ``marked``, or the text as it is."""
    if markdown:
        script = NAIVE_SCRIPT.format(style="", show="box.innerHTML = marked.parse(text)")
    else:
        script = NAIVE_SCRIPT.format(style=" white-space: pre-wrap", show="box.textContent = text")
    return bundled(script)


def bundled(script: str, form: str = "esm") -> str:
    """A script with all that it imports, from the panel's sources and what they depend on."""
    build = subprocess.run(
        [
            WIDGETS / "node_modules/.bin/esbuild",
            *("--bundle", f"--format={form}", "--loader=ts", "--minify"),
        ],
        input=script,
        cwd=WIDGETS,
        capture_output=True,
        text=True,
        check=True,
    )
    return build.stdout


def probed(page: HostPage, probe: str) -> None:
    """Load the page again, with that script in it from the beginning."""
    page.page.add_init_script(probe)
    page.page.reload()
    page.wait_until_ready()


class Chats:
    """Opens them, each in a window of its own, with a script in its page that sees all."""

    def __init__(self, browser: Browser, folder: Path, probe: str) -> None:
        self._browser = browser
        self._folder = folder
        self._probe = probe
        self._servers: dict[type[Server], Server] = {}

    def close(self) -> None:
        for server in self._servers.values():
            server.stop()

    def _server(self, kind: type[Server], **options: str) -> Server:
        if kind not in self._servers:
            folder = self._folder / kind.__name__
            folder.mkdir()
            self._servers[kind] = server = kind(folder, **options)
            server.wait_until_ready()
        return self._servers[kind]

    @contextlib.contextmanager
    def notebook(self, cells: Sequence[str], **files: str) -> Iterator[NotebookPage]:
        """A notebook in JupyterLab of which the first cell was run."""
        server = self._server(FreeLab)
        assert isinstance(server, LabServer)
        window = LabWindow(server, self._browser, "panel")
        try:
            notebook = window.open(
                cells, files={f"{name}.js": text for name, text in files.items()}
            )
            probed(notebook, self._probe)
            notebook.run_cell(0)
            notebook.wait_for_cell(0)
            yield notebook
        finally:
            window.close()

    @contextlib.contextmanager
    def ours(self, messages: int = 0, static: Path = bundle.STATIC) -> Iterator[Chat]:
        """The panel, of that build; the second cell shows it."""
        made = f"sa.panel.bundle.STATIC = Path({str(static)!r})\ns = session({messages})"
        with self.notebook([OURS + made, "s"]) as notebook:
            box = "document.querySelector('.sagents-transcript')"
            newest = f"[...{box}?.querySelectorAll('[data-testid=entry]') ?? []].at(-1)"
            yield Chat(notebook.page, box, "[data-testid=composer]", notebook, newest)

    @contextlib.contextmanager
    def panels(self, count: int, messages: int) -> Iterator[NotebookPage]:
        """A notebook of which each further cell is to show a panel of its own."""
        made = f"sessions = [session({messages}) for _ in range({count})]"
        with self.notebook([OURS + made, *(f"sessions[{n}]" for n in range(count))]) as notebook:
            yield notebook

    @contextlib.contextmanager
    def naive(self, markdown: bool, messages: int = 0) -> Iterator[Chat]:
        """The naive widget; the second cell shows it."""
        cells = [NAIVE + f"\nw = naive({messages})", "w", f"w.answer({PIECE})"]
        with self.notebook(cells, naive=naive_script(markdown)) as notebook:
            box = "document.querySelector('.naive')"
            yield Chat(notebook.page, box, notebook=notebook, newest=f"{box}?.lastElementChild")

    @contextlib.contextmanager
    def marimo(self, size: int) -> Iterator[Chat]:
        """The chat of marimo."""
        server = self._server(MarimoServer)
        assert isinstance(server, MarimoServer)
        window = Marimo(server, self._browser, "panel")
        try:
            notebook = window.open([MARIMO.replace("SIZE", str(size)), "chat"])
            probed(notebook, self._probe)
            notebook.run_all()
            composer = "marimo-chatbot [contenteditable=true]"
            expect(notebook.page.locator(composer).first).to_be_visible()
            box = "document.querySelector('marimo-chatbot').shadowRoot"
            yield Chat(notebook.page, box, composer)
        finally:
            window.close()

    @contextlib.contextmanager
    def jupyter_ai(self, install: bool) -> Iterator[Chat]:
        """The chat of jupyter-ai."""
        python = environment("jupyter-ai", JUPYTER_AI, install)
        server = self._server(JupyterAi, python=python)
        window = Window(server, self._browser, "panel", ChatPage)
        try:
            personas = server.root / ".jupyter" / "personas"
            personas.mkdir(parents=True, exist_ok=True)
            (personas / "steady_persona.py").write_text(PERSONA.replace("SIZE", str(PIECE)))
            path = window.new_folder() / "talk.chat"
            path.write_text(json.dumps({}))
            chat = window.open_file(path)
            probed(chat, self._probe)
            yield Chat(chat.page, "document.querySelector('.jp-chat-messages-container')", COMPOSER)
        finally:
            window.close()


COMPOSER = ".jp-chat-input-textfield textarea, .jp-chat-input-textfield [contenteditable=true]"


class ChatPage(HostPage):
    """A chat of jupyter-ai's in a browser tab."""

    def wait_until_ready(self) -> None:
        expect(self.page.locator(COMPOSER).first).to_be_visible()
