"""``wait=True``: sync code waits for a run, and for what people answer it meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall
from tests.notebook.conftest import value
from tests.notebook.kernel import WIDGET, Cell, Kernel
from tests.notebook.test_control import Page
from tests.talking import PATIENCE

WRITE = ToolCall("w1", "write_file", {"file_path": "/report.md", "content": "# Report"})
SETUP = """
%load_ext sagents_nb
import sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall
write = ToolCall("w1", "write_file", {"file_path": "/report.md", "content": "# Report"})
also = ToolCall("w2", "write_file", {"file_path": "/more.md", "content": "# More"})

def agent(*turns):
    return sa.Agent(ScriptedModel(turns), interrupt_on={"write_file": True})
"""


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    kernel.ok(SETUP)


def agent(*turns: Any) -> sa.Agent:
    return sa.Agent(ScriptedModel(list(turns)), interrupt_on={"write_file": True})


class Asked:
    """What the cell's panel shows of what waits, read as its page reads it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.session_id, self.comm_id, self.interrupt = "", "", None
        self.seen: list[dict[str, Any]] = []
        while self.interrupt is None:
            message = kernel.client.get_iopub_msg(timeout=PATIENCE)
            self.seen.append(message)
            data = message["content"].get("data", {})
            if message["msg_type"] == "comm_open":
                self.session_id = data["state"].get("session_id") or self.session_id
            told = data.get("content", {}) if message["msg_type"] == "comm_msg" else {}
            if told:
                self.comm_id = message["content"]["comm_id"]
            for place in (told.get("state", {}), *told.get("events", [])):
                self.interrupt = place.get("interrupt") or self.interrupt

    def say(self, **content: Any) -> None:
        """As its page does, while the cell runs."""
        Page(self.kernel).say(data={"id": "1", "session_id": self.session_id, **content})

    def decide(self, **decision: Any) -> None:
        """The same of every call."""
        self.say(**self.decision(**decision))

    def decision(self, **decision: Any) -> dict[str, Any]:
        """What says that to the kernel."""
        assert self.interrupt is not None
        calls = self.interrupt["action_requests"]
        decisions = {c["tool_call_id"]: {**decision, "digest": c["digest"]} for c in calls}
        return {"type": "decide", "interrupt_id": self.interrupt["id"], "decisions": decisions}

    def finish(self, id: str) -> Cell:
        """What the cell put out, the whole of it."""
        cell = self.kernel.finish(id)
        cell.messages[:0] = [m for m in self.seen if m["parent_header"].get("msg_id") == id]
        return cell


def test_a_cell_waits_until_its_run_is_approved_and_has_the_whole_result(kernel: Kernel) -> None:
    id = kernel.start(
        "a = agent(['I write.', write], 'Done.')\n"
        "r = a.run('Write.', wait=True)\n"
        "print(r.status, r.text, [m.role for m in r.messages], a.files.list())",
        front_end=True,
    )
    asked = Asked(kernel)
    asked.decide(type="approve")
    ran = asked.finish(id)
    roles = "['user', 'assistant', 'tool', 'assistant']"
    assert ran.text == f"completed Done. {roles} ['/report.md']\n", ran.reply
    assert WIDGET in ran.shown[0], "its panel stood below the cell while it waited"
    assert "Done." in ran.updates[-1]["text/markdown"]


def test_a_run_of_a_session_is_waited_for_through_all_that_it_asks(kernel: Kernel) -> None:
    id = kernel.start(
        "s = sa.Session(agent([write, also], 'Told.'))\n"
        "r = s.send('Write.').result(wait=True)\nprint(r.status, r.text, s.files.list())",
        front_end=True,
    )
    asked = Asked(kernel)
    asked.decide(type="reject", message="no")
    ran = asked.finish(id)
    assert ran.text == "completed Told. []\n", ran.reply


def test_the_kernels_interrupt_ends_a_cell_that_waits_and_denies_what_waited(
    kernel: Kernel,
) -> None:
    id = kernel.start(
        "s = sa.Session(agent(write, 'Never.'))\ns.send('Write.').result(wait=True)",
        front_end=True,
    )
    Asked(kernel)
    kernel.manager.interrupt_kernel()
    assert kernel.finish(id).error == "KeyboardInterrupt"
    assert kernel.ok("print(s.status, s.files.list())").text == "cancelled []\n"


def test_stop_in_the_panel_ends_a_cell_that_waits(kernel: Kernel) -> None:
    id = kernel.start(
        "s = sa.Session(agent(write, 'Never.'))\ns.send('Write.').result(wait=True)",
        front_end=True,
    )
    Asked(kernel).say(type="cancel")
    assert kernel.finish(id).error == "KeyboardInterrupt"
    assert kernel.ok("print(s.status)").text == "cancelled\n"


def test_a_timeout_ends_the_waiting_and_not_the_run(kernel: Kernel) -> None:
    ran = kernel.run(
        "s = sa.Session(agent(write, 'Done.'))\ns.send('Write.').result(0.2, wait=True)",
        front_end=True,
    )
    assert ran.error == "TimeoutError"
    assert kernel.ok("print(s.status, s.approve().result().text)").text == "interrupted Done.\n"


def test_who_clicks_in_vain_is_told_why(kernel: Kernel) -> None:
    """Where a front end gives comms no thread of their own, no page is ever heard."""
    id = kernel.start(
        "from sagents_nb.notebook import waiting as w\n"
        "w.PATIENCE, heard, w.heard_while_busy = 0.01, w.heard_while_busy, lambda: False\n"
        "s = sa.Session(agent(write, 'Never.'))\n"
        "try:\n    s.send('Write.').result(0.5, wait=True)\nexcept TimeoutError:\n    pass\n"
        "w.heard_while_busy = heard",
        front_end=True,
    )
    assert kernel.finish(id).text.count("No page is heard while this cell runs") == 1


def test_a_kernel_without_subshells_says_so_before_anything_is_sent(kernel: Kernel) -> None:
    ran = kernel.run(
        "k = type(get_ipython().kernel)\nwhole = k.kernel_info\n"
        "k.kernel_info = {'supported_features': []}\n"
        "try:\n    a = agent(write)\n    a.run('Write.', wait=True)\n"
        "finally:\n    k.kernel_info = whole",
        front_end=True,
    )
    assert ran.error == "ConfigurationError"
    assert "ipykernel 7" in ran.reply["evalue"]
    assert kernel.ok("print(len(a.model.requests))").text == "0\n"


def test_where_nobody_can_click_the_policy_decides(kernel: Kernel) -> None:
    ran = kernel.ok(
        "print(agent(write, 'Denied.').run('Write.', wait=True).text)\n"
        "s = sa.Session(agent(write, 'Written.'), headless='approve')\n"
        "print(s.send('Write.').result(wait=True).text, s.files.list())"
    )
    assert ran.text == "Denied.\nWritten. ['/report.md']\n"
    assert all(WIDGET not in data for data in ran.shown)


def test_a_conversation_is_gone_on_with_from_its_state(shell: InteractiveShell) -> None:
    shell.user_ns["agent"] = agent("One.", "Two.", "Three.")
    code = (
        "r = agent.run('First', wait=True)\n"
        "r = agent.run('Second', r.state, wait=True)\n"
        "r = agent.run(r.state.add_message(sa.Message.user('Third')), wait=True, max_runs=1)\n"
        "(r.text, len(r.state.messages))"
    )
    assert value(shell.run_cell(code)) == ("Three.", 6)


def test_a_script_that_nobody_looks_at_is_told_at_once() -> None:
    asked = agent(WRITE)
    with pytest.raises(sa.ConfigurationError, match=r"wait=True needs a notebook with '%load_ext"):
        asked.run("Write.", wait=True)
    assert asked.model.requests == []  # type: ignore[attr-defined]
    session = sa.Session(asked)
    run = session.send("Write.")
    with pytest.raises(sa.ConfigurationError, match="wait=True needs a notebook"):
        run.result(wait=True)
    assert run.result().status == "interrupted"
