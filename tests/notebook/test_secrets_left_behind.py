"""No secret of a model's call is in what a notebook saves, shows or sends to its page."""

from __future__ import annotations

import json
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
