"""No secret of a model's call is in what a notebook saves, shows or sends to its page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.serving import serving
from tests.notebook.kernel import WIDGET, Cell, Kernel

SECRETS = {
    "C_KEY": "sk-CANARY-key-1234567890",
    "C_PASSWORD": "pw-CANARY-1234",
    "C_QUERY": "qry-CANARY-1234",
    "C_HEADER": "hdr-CANARY-1234",
    "C_BODY": "bod-CANARY-1234",
}

# Out of the environment: what a person types is in the notebook by their own hand.
SETUP = """
%load_ext sagents_nb
import os
import sagents_nb as sa
model = sa.OpenAIChatModel(
    "m",
    api_key=os.environ["C_KEY"],
    base_url=f"http://me:{os.environ['C_PASSWORD']}@127.0.0.1:{PORT}/v1",
    extra_headers={"X-Api-Token": os.environ["C_HEADER"]},
    extra_query={"sig": os.environ["C_QUERY"]},
    extra_body={"access_token": os.environ["C_BODY"]},
)
agent = sa.Agent(model)
session = sa.Session(agent, id="c1")
"""

THAWED = """%agent freeze
import asyncio
from sagents_nb.runtime.main_thread import main_thread
await asyncio.wrap_future(main_thread.submit(lambda: None))  # after what freezes
"""


def all_of(cell: Cell) -> str:
    """Everything that the kernel told the page: outputs, widget states and their changes."""
    return json.dumps([[m["content"], [bytes(b).decode("latin-1") for b in m["buffers"]]]
                       for m in cell.messages], default=str)  # fmt: skip


@pytest.mark.parametrize("status", [200, 400])
def test_no_secret_of_a_call_is_in_the_notebook(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    kernel = Kernel(tmp_path)
    cells: dict[str, Cell] = {}
    try:
        with serving() as server:
            server.status = status
            kernel.ok(f"PORT = {server.server_port}\n{SETUP}")
            for code in (
                "session",
                "%agent use agent",
                "%%agent --name kept\nSay hello.",
                "session.send('more').result()",
                "agent.run('once')",
                "model",
                "agent",
                "session.info()",
                "session.error",
                "session.to_frame('events')",
                "%agent status",
                "%agent list",
                "%agent save",
                THAWED,
                "session",
            ):
                cells[code] = kernel.run(code, front_end=True)
    finally:
        kernel.stop()
    assert WIDGET in cells["session"].shown[0]
    assert "> Say hello." in cells[THAWED].updates[0]["text/markdown"]
    assert bool(cells["agent.run('once')"].error) is (status != 200)
    left = {code: all_of(cell) for code, cell in cells.items()}
    left |= {
        str(path): path.read_bytes().decode("latin-1")
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert any(".sagents" in name for name in left)
    found = {
        place: name for place, text in left.items() for name, s in SECRETS.items() if s in text
    }
    assert found == {}


ERRORS = """
%load_ext sagents_nb
import os
import sagents_nb as sa
api_key = b"VAR-hush-" + bytes([48] * 8)
password = ["LST-" + "hush-2222"]

@sa.tool
def tells() -> str:
    "Tells them."
    return f"it is {api_key.decode()} and {password} and {os.environ['C_SECRET_KEY']}"

@sa.tool
def fails() -> str:
    "Fails with them."
    raise RuntimeError(tells.function())

def failing(kind=RuntimeError):
    return kind("boom " + tells.function())

calls = [sa.ToolCall("a", "tells", {}), sa.ToolCall("b", "fails", {})]
hidden = sa.Message("assistant", error="boom " + tells.function())

def agent_of(*turns):
    return sa.Agent(sa.ScriptedModel(turns), tools=[tells, fails])
"""
QUOTED = ("VAR-hush", "LST-hush", "ENV-hush")


def quoted(text: str) -> list[str]:
    return [secret for secret in QUOTED if secret in text]


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("C_SECRET_KEY", "ENV-hush-1111")
        kernel = Kernel(tmp_path_factory.mktemp("failing"))
    kernel.ok(ERRORS)
    yield kernel
    kernel.stop()


@pytest.mark.parametrize("turn", ["failing()", "failing(sa.ModelError)", "hidden"])
def test_no_error_of_a_model_quotes_a_secret_in_panel_or_notebook(
    turn: str, failing: Kernel
) -> None:
    failing.ok(f"session = sa.Session(agent_of({turn}))\n%agent use session", front_end=True)
    ran = failing.run("%%agent\ngo", front_end=True)
    assert ran.error == "ModelError"
    assert "boom it is [key] and ['[key]'] and [key]" in all_of(ran)
    assert quoted(all_of(ran) + json.dumps(ran.reply)) == []
    left = failing.run("%agent status\nsession", front_end=True)
    shown = failing.ok("print(session.error); session.to_frame('events')", front_end=True)
    assert quoted(all_of(left) + all_of(shown)) == []


def test_no_secret_that_a_tool_tells_or_raises_is_in_what_magics_show(failing: Kernel) -> None:
    failing.ok("session = sa.Session(agent_of(calls, 'done'))\n%agent use session", front_end=True)
    failing.ok("%%agent --plain\ngo", front_end=True)
    for code in ("tool_calls", "messages", "decisions", "usage", "files", "todos"):
        shown = failing.ok(f"%agent frame {code}", front_end=True)
        assert quoted(all_of(shown)) == []
    shown = failing.ok("%agent frame tool_calls", front_end=True)
    assert "it is [key]" in shown.value["text/html"]
    assert (
        "RuntimeError: it is [key]" in failing.ok("_.result[1]", front_end=True).value["text/plain"]
    )
    for code in ("%agent list", "%agent status", "%agent help", "_ = 1\nsession"):
        assert quoted(all_of(failing.ok(code, front_end=True))) == []


def test_no_secret_in_the_arguments_of_what_waits_is_in_what_magics_show(failing: Kernel) -> None:
    failing.ok(
        "asked = sa.ToolCall('w', 'write_file', {'file_path': '/a', 'content': api_key.decode()})\n"
        "agent = sa.Agent(sa.ScriptedModel([[asked]]), interrupt_on={'write_file': True})\n"
        "%agent use agent",
        front_end=True,
    )
    failing.ok("%%agent --plain\ngo", front_end=True)
    shown = failing.ok("%agent status", front_end=True)
    assert "content = '[key]'" in shown.value["text/plain"]
    assert quoted(all_of(shown)) == []
    wrong = failing.run("%agent model nobody:" + "hush", front_end=True)
    assert wrong.error == "UsageError"
    failing.ok("%agent cancel", front_end=True)


@pytest.mark.parametrize("how", ["run('go')", "run('go', wait=True)"])
def test_no_traceback_of_a_run_in_a_cell_of_python_quotes_a_secret(
    how: str, failing: Kernel
) -> None:
    ran = failing.run(f"agent_of(failing()).{how}", front_end=True)
    assert ran.error == "ModelError"
    assert "boom it is [key]" in "\n".join(ran.reply["traceback"])
    assert quoted(all_of(ran) + json.dumps(ran.reply)) == []
