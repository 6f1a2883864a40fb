"""Where ipykernel is older than the one we ask for, as on Colab: what docs/hosts.md promises."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from tests.notebook.kernel import ROOT, WIDGET, Kernel, Python
from tests.notebook.test_waiting import Asked

VERSION = "6.29.5"  # the last of the 6es: no subshells, and one message after the other

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

SETUP = """
%load_ext sagents_nb
import sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall
write = ToolCall("w1", "write_file", {"file_path": "/report.md", "content": "# Report"})
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with that ipykernel, and all else as it is here."""
    folder = tmp_path_factory.mktemp("old")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    made = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [sys.executable, "-m", "uv", "--quiet", "pip", "install", "--no-deps"]
    subprocess.run([*install, "--python", made, f"ipykernel=={VERSION}"], check=True)
    asked = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    own = subprocess.run([made, "-c", asked], check=True, capture_output=True, text=True).stdout
    Path(own.strip(), "the_rest.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{ROOT}\n")
    return made


@pytest.fixture(scope="module")
def old(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel of that version."""
    made = Kernel(tmp_path_factory.mktemp("kernel"), python)
    assert VERSION in made.ok("import ipykernel; print(ipykernel.__version__)").text
    made.ok(SETUP)
    yield made
    made.stop()


def test_a_cell_of_the_demo_model_runs_and_shows_its_panel(old: Kernel) -> None:
    ran = old.ok("%%agent --new --model demo\nWrite 'Hei' to /hei.md and read it.", front_end=True)
    assert WIDGET in ran.shown[0]
    assert "Hei" in ran.updates[-1]["text/markdown"]


def test_a_notebook_with_such_a_cell_runs_unattended(python: Path, tmp_path: Path) -> None:
    manager = AsyncKernelManager(kernel_spec_manager=Python(python))
    cells = [
        SETUP,
        "import ipykernel; print(ipykernel.__version__)",
        "%%agent --model demo\nWrite 'Hei' to /hei.md.",
        "%agent files",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, km=manager).execute(cwd=str(tmp_path))
    assert VERSION in notebook.cells[1].outputs[0]["text"]
    assert "/hei.md" in notebook.cells[3].outputs[0]["data"]["text/plain"]


def ask(old: Kernel, options: str = "") -> str:
    """Start a cell whose run wants an approval."""
    old.ok(
        "agent = sa.Agent(ScriptedModel([write, 'Done.']), interrupt_on={'write_file': True})\n"
        "agent_session = sa.Session(agent)\n%agent use agent_session"
    )
    return old.start(f"%%agent {options}\nWrite.", front_end=True)


def say(old: Kernel, asked: Asked, **content: Any) -> None:
    """As its page does where no comm of commands is heard: on the comm of its session's model."""
    data = {"method": "custom", "content": {"id": "1", **content}}
    message = old.client.session.msg("comm_msg", {"comm_id": asked.comm_id, "data": data})
    old.client.shell_channel.send(message)


@pytest.mark.parametrize("option", ["--no-wait", "--background"])
def test_a_click_is_heard_once_the_cell_has_ended(old: Kernel, option: str) -> None:
    id = ask(old, option)
    asked = Asked(old)
    assert not asked.finish(id).error
    say(old, asked, **asked.decision(type="approve"))
    old.ok("await agent_session.current_run")
    assert "/report.md" in old.ok("%agent files").value["text/plain"]


def test_the_kernels_interrupt_ends_a_cell_that_waits_for_a_click(old: Kernel) -> None:
    id = ask(old)
    asked = Asked(old)
    say(old, asked, **asked.decision(type="approve"))  # which is not heard before it has ended
    old.manager.interrupt_kernel()
    ran = asked.finish(id)
    assert (ran.error, ran.reply["evalue"]) == ("KeyboardInterrupt", "The run was stopped.")
    assert "/report.md" not in old.ok("%agent files").value["text/plain"]


def test_stop_in_the_panel_is_heard_between_cells(old: Kernel) -> None:
    old.ok(
        "import asyncio\nasync def never(request):\n    await asyncio.Event().wait()\n"
        "agent_session = sa.Session(sa.Agent(ScriptedModel([write, never]),"
        " interrupt_on={'write_file': True}))\n%agent use agent_session"
    )
    id = old.start("%%agent --background\nWrite.", front_end=True)
    asked = Asked(old)
    asked.finish(id)
    run = old.ok("agent_session.approve().status").value["text/plain"]
    assert run == "'running'"
    say(old, asked, type="cancel")
    assert old.ok("(await agent_session.current_run).status").value["text/plain"] == "'cancelled'"


def test_the_magic_approves_after_a_cell_that_did_not_wait(old: Kernel) -> None:
    assert not old.finish(ask(old, "--no-wait")).error
    old.ok("%agent approve", front_end=True)
    assert "/report.md" in old.ok("%agent files").value["text/plain"]


def test_waiting_in_sync_code_is_refused_with_what_to_do_instead(old: Kernel) -> None:
    ran = old.run("sa.Agent(ScriptedModel([write])).run('Write.', wait=True)", front_end=True)
    assert ran.error == "ConfigurationError"
    assert "ipykernel 7 or newer; here use %%agent" in ran.reply["evalue"]
