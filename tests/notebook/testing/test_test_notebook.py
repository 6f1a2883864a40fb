"""``sagents-nb test-notebook`` with a provider that answers once, and then is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.conftest import PRIVATE_PREFIXES
from tests.models.loopback import KEY, Answer, Provider, Recorded

ROOT = Path(__file__).parents[3]

SETUP = '''
%load_ext sagents_nb
from pathlib import Path
import sagents_nb as sa

@sa.tool
def note(text: str) -> str:
    """Note it."""
    Path("notes.txt").write_text(text)
    return "noted"

model = sa.resolve_model("openai-chat:tiny", base_url="{url}/v1")
agent = sa.Agent(model, tools=[note], interrupt_on={{"note": True}},
                 defaults=False)
session = sa.Session(agent, id="notes")
session.headless = [sa.Approve()]
%agent use session
'''
CELLS = [
    SETUP,
    "%%agent\nPlease note that it rains.",
    "print(Path('notes.txt').read_text())",
    "print(agent.run('Hello!').text)",
    "%agent replay",
]


def answer(request: Recorded) -> Answer:
    """It calls the tool where it is asked to note something."""
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        delta: dict[str, Any] = {"content": f"It is {last['content']}."}
    elif "note" in last["content"]:
        call = {"name": "note", "arguments": '{"text": "rain"}'}
        delta = {"tool_calls": [{"index": 0, "id": "n1", "type": "function", "function": call}]}
    else:
        delta = {"content": "Hello from far away."}
    finish = "tool_calls" if "tool_calls" in delta else "stop"
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
    return Answer(body.encode(), framing="chunked")


class Notebooks:
    """A folder of notebooks, and the command that tests them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith(PRIVATE_PREFIXES)}
        self.environment = {**kept, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / ".ipython")}

    def write(self, name: str, cells: list[str]) -> Path:
        made = new_notebook(cells=[new_code_cell(cell.strip()) for cell in cells])
        path = self.folder / name
        nbformat.write(made, path)
        return path

    def copy(self, name: str, old: str, new: str) -> None:
        """The notebook and its cassette again, under another name and with a change."""
        notebook = nbformat.read(self.folder / "notes.ipynb", as_version=4)
        cell = next(cell for cell in notebook.cells if old in cell.source)
        cell.source = cell.source.replace(old, new)
        for cell in notebook.cells:
            cell.source = cell.source.replace("notes.txt", f"{name}.txt")
        nbformat.write(notebook, self.folder / f"{name}.ipynb")
        cassette = (self.folder / "notes.cassette.json").read_text()
        (self.folder / f"{name}.cassette.json").write_text(cassette)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sagents_nb.cli", "test-notebook", *arguments],
            env={**self.environment, **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
        )


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> Notebooks:
    """A notebook that was recorded live; its provider is closed since then."""
    provider = Provider()
    provider.answer = answer
    made = Notebooks(tmp_path_factory.mktemp("notebooks"))
    made.write("notes.ipynb", [cell.format(url=provider.url) for cell in CELLS])
    done = made.run("notes.ipynb", "--record", OPENAI_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert "3 answers in notes.cassette.json: 3 new, 0 changed, 0 dropped" in done.stdout
    assert len(provider.requests) == 3
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    before = (made.folder / "notes.cassette.json").read_bytes()
    done = made.run("notes.ipynb", "--record", OPENAI_API_KEY=KEY)
    assert "3 answers in notes.cassette.json: 0 new, 0 changed, 0 dropped" in done.stdout
    assert len(provider.requests) == 6
    assert (made.folder / "notes.cassette.json").read_bytes() == before
    provider.close()
    return made


def test_recording_saves_outputs_and_a_cassette_without_keys(notebooks: Notebooks) -> None:
    saved = nbformat.read(notebooks.folder / "notes.ipynb", as_version=4)
    text = json.dumps([cell.outputs for cell in saved.cells])
    assert "It is noted." in text
    assert "Hello from far away." in text
    assert "the mode is 'replay'" in text  # what a test will see
    assert "widgets" not in saved.metadata
    for path in notebooks.folder.rglob("*"):
        assert not path.is_file() or KEY[:12].encode() not in path.read_bytes()
    assert not list(notebooks.folder.glob(".sagents*"))


@pytest.fixture(scope="module")
def tested(notebooks: Notebooks) -> str:
    """What is said of the notebook and of three that differ from it, all tested at once."""
    (notebooks.folder / "notes.txt").unlink()
    notebooks.copy("changed", "Please note that it rains", "Please note that it snows")
    notebooks.copy("denied", "[sa.Approve()]", "'deny'")
    notebooks.write(
        "network.ipynb",
        [
            "import os, socket, urllib.request\nassert 'OPENAI_API_KEY' not in os.environ",
            "urllib.request.urlopen('http://example.com/data.csv')",
            "socket.create_connection(('127.0.0.1', 9))",
        ],
    )
    names = ("notes", "changed", "denied", "network")
    done = notebooks.run(*(f"{name}.ipynb" for name in names), OPENAI_API_KEY=KEY)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_a_replay_passes_with_its_tools_run_and_its_approvals_given_again(
    notebooks: Notebooks, tested: str
) -> None:
    assert "FAILED notes.ipynb" not in tested
    assert (notebooks.folder / "notes.txt").read_text() == "rain"


def test_a_question_that_was_not_recorded_is_named(tested: str) -> None:
    assert "changed.cassette.json has no recording of this request to" in tested
    assert "differs first in messages[0].parts[0].text, which was recorded as" in tested
    assert "«Please note that it snows.» now" in tested


def test_what_is_denied_in_a_replay_does_not_run(notebooks: Notebooks, tested: str) -> None:
    assert not (notebooks.folder / "denied.txt").exists()
    assert "differs first in messages[2].parts[0].content, which was recorded as «noted»" in tested


def test_nothing_connects(tested: str) -> None:
    assert "wanted to reach example.com" in tested
    assert "wanted to reach 127.0.0.1" in tested
    assert "FAILED network.ipynb::Cell 0" not in tested
    assert "FAILED network.ipynb::Cell 1" in tested


def test_what_is_no_notebook_is_named(notebooks: Notebooks) -> None:
    done = notebooks.run("nothing.ipynb")
    assert (done.returncode, done.stdout) == (1, "")
    assert "'nothing.ipynb' is no notebook; name an .ipynb file or a folder." in done.stderr


@pytest.mark.soak
def test_what_cannot_be_read_is_named(notebooks: Notebooks) -> None:
    (notebooks.folder / "torn.ipynb").write_text("{")
    notebooks.copy("damaged", "%%agent", "%%agent")
    (notebooks.folder / "damaged.cassette.json").write_text("{")
    for name, told in [
        ("torn", "torn.ipynb cannot be read as a notebook"),
        ("damaged", "damaged.cassette.json"),
    ]:
        done = notebooks.run(f"{name}.ipynb")
        assert (done.returncode, done.stdout) == (1, "")
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_a_notebook_that_fails_live_is_left_as_it_was(notebooks: Notebooks) -> None:
    """The provider is gone, so nothing can be recorded any more."""
    before = {p: p.read_bytes() for p in notebooks.folder.glob("notes.*") if p.suffix != ".txt"}
    notebook = notebooks.folder / "broken.ipynb"
    notebooks.copy("broken", "%%agent", "print(1 / 0)\n%%agent")
    copied = notebook.read_bytes()
    done = notebooks.run("broken.ipynb", "--record")
    assert done.returncode == 1
    assert "not recorded, because a cell failed" in done.stderr
    assert notebook.read_bytes() == copied
    assert {p: p.read_bytes() for p in before} == before


def test_a_kernel_that_ends_is_named_at_once(notebooks: Notebooks) -> None:
    notebooks.write("ends.ipynb", ["import os\nos._exit(3)"])
    done = notebooks.run("ends.ipynb")
    assert done.returncode == 1
    assert "The kernel has ended while this cell ran." in done.stdout
    done = notebooks.run("ends.ipynb", "--record")
    assert done.returncode == 1
    assert done.stderr.endswith("ends.ipynb: not recorded, because its kernel ended.\n")


@pytest.mark.soak
def test_short_says_a_line_of_each_cell_that_fails_and_no_color_is_heeded(
    notebooks: Notebooks,
) -> None:
    notebooks.write("wrong.ipynb", ["fine = 1", "raise ValueError('what a value')"])
    whole, short = notebooks.run("wrong.ipynb"), notebooks.run("wrong.ipynb", "--short")
    assert whole.returncode == short.returncode == 1
    assert "what a value" in whole.stdout
    assert "what a value" not in short.stdout
    assert "FAILED wrong.ipynb::Cell 1" in short.stdout
    assert len(short.stdout.splitlines()) < len(whole.stdout.splitlines())
    assert "\x1b[" not in notebooks.run("wrong.ipynb", "--short", NO_COLOR="1").stdout


@pytest.mark.soak
def test_answers_of_the_demo_are_not_recorded_which_is_said(notebooks: Notebooks) -> None:
    said = "answers of the demo are computed in each run, and not recorded"
    for name, model in [("unnamed", ""), ("named", "'demo'")]:
        code = f"import sagents_nb as sa\nprint(sa.Agent({model}).run('Hello!').text)"
        notebooks.write(f"{name}.ipynb", [code])
    done = notebooks.run("unnamed.ipynb", "--record")
    assert done.returncode == 0, done.stderr
    assert f"{said} (the demo is the default model here; set a provider's key" in done.stdout
    done = notebooks.run("named.ipynb", "--record", OPENAI_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{said}\n"), done.stdout
    assert not list(notebooks.folder.glob("*named.cassette.json"))
    done = notebooks.run("unnamed.ipynb", "named.ipynb")
    assert done.returncode == 0, done.stdout


FOREIGN_KEYS = {
    "C_SECRET_API_KEY": "hush-0001-abcdefgh",
    "C_GITHUB_TOKEN": "hush-0002-abcdefgh",
    "C_DB_PASSWORD": "hush-0003",
    "C_DATABASE_URL": "postgres://me:hush-0004@host/db",
    "C_PLAIN": "ghp_" + "hush0005" * 5,
}
QUOTING = """
%load_ext sagents_nb
import os, sys
import sagents_nb as sa
agent = sa.Agent(sa.resolve_model("openai-chat:tiny", base_url="{url}/v1"),
                 defaults=False)
%agent use agent
"""


def test_a_kernel_of_a_test_has_no_key_and_what_quotes_one_is_recorded_without(
    notebooks: Notebooks,
) -> None:
    provider = Provider()

    def quoting(request: Recorded) -> Answer:
        said = " ".join([f"Of {len(request.body['messages'])}:", *FOREIGN_KEYS.values()])
        chunk = {"choices": [{"index": 0, "delta": {"content": said}, "finish_reason": "stop"}]}
        return Answer(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), framing="chunked")

    provider.answer = quoting
    cells = [
        QUOTING.format(url=provider.url),
        "%%agent\nHello!",
        "%%agent\nAgain!",
        "print('Keys:', [name for name in os.environ if name.startswith('C_')])",
        "print('PATH' in os.environ)",
    ]
    notebooks.write("quotes.ipynb", cells)
    done = notebooks.run("quotes.ipynb", "--record", OPENAI_API_KEY=KEY, **FOREIGN_KEYS)
    provider.close()
    assert done.returncode == 0, done.stderr
    saved = nbformat.read(notebooks.folder / "quotes.ipynb", as_version=4)
    outputs = json.dumps([cell.outputs for cell in saved.cells])
    assert "Of 1: [redacted] [redacted] [redacted] [redacted]" in outputs
    assert "Of 3: [redacted]" in outputs
    assert "Keys: []" in outputs
    assert "hush" not in outputs
    assert "hush" not in (notebooks.folder / "quotes.cassette.json").read_text()
    for environment in ({}, FOREIGN_KEYS):
        done = notebooks.run("quotes.ipynb", **environment)
        assert done.returncode == 0, done.stdout
    notebooks.write("raises.ipynb", ["import os\nraise ValueError(os.environ['C_DB_PASSWORD'])"])
    done = notebooks.run("raises.ipynb", "--record", **FOREIGN_KEYS)
    assert done.returncode == 1
    assert "ValueError" in done.stderr
    assert "hush" not in done.stderr
