"""A kernel that computes hears what pages say on the comm of commands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.notebook.kernel import Kernel
from tests.talking import PATIENCE, until

SETUP = """
%load_ext sagents_nb
import pathlib, sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall
write = ToolCall("w1", "write_file", {"file_path": "/report.md", "content": "# Report"})
agent = sa.Agent(ScriptedModel([write, "Done."]), interrupt_on={"write_file": True})
s = sa.Session(agent, id="c1")
view = sa.ChatView(s)
"""


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    kernel.ok(SETUP)


class Page:
    """Its end of such a comm: what it sends goes to a subshell, as JupyterLab's does."""

    def __init__(self, kernel: Kernel) -> None:
        self.client = kernel.client
        session = self.client.session
        request = session.msg("create_subshell_request")
        self.client.control_channel.send(request)
        answer = self.client.get_control_msg(timeout=PATIENCE)
        self.subshell = answer["content"]["subshell_id"]
        self.say("comm_open", target_name="sagents.control", data={})

    def say(self, kind: str = "comm_msg", subshell: Any = ..., **content: Any) -> str:
        message = self.client.session.msg(kind, {"comm_id": "page", **content})
        to = self.subshell if subshell is ... else subshell
        if to is not None:
            message["header"]["subshell_id"] = to
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def heard(self) -> dict[str, Any]:
        """The next that the kernel says on it."""
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            content = message["content"]
            if message["msg_type"] == "comm_msg" and content["comm_id"] == "page":
                data: dict[str, Any] = content["data"]
                return data


def test_a_ping_is_answered_only_where_a_kernel_that_computes_reads_it(kernel: Kernel) -> None:
    page = Page(kernel)
    page.say(data={"type": "ping"}, subshell=None)
    id = kernel.start(
        "pathlib.Path('busy').touch()\nwhile pathlib.Path('busy').exists():\n    pass"
    )
    until((kernel.folder / "busy").exists)
    page.say(data={"type": "ping"})
    assert page.heard() == {"type": "pong"}
    (kernel.folder / "busy").unlink()
    assert [
        m["content"]["data"] for m in kernel.finish(id).messages if m["msg_type"] == "comm_msg"
    ] == []


def test_a_decision_counts_while_a_sync_cell_runs(kernel: Kernel) -> None:
    page = Page(kernel)
    shown = kernel.ok(
        "s.send('Write.').result()\n"
        "request = s.interrupt.action_requests[0]\n"
        "print(s.interrupt.id, request.digest)"
    )
    interrupt_id, digest = shown.text.split()
    id = kernel.start(
        "pathlib.Path('busy').touch()\n"
        "while '/report.md' not in s.files.list():\n    pass\n"
        "print('written')"
    )
    kernel.wait_for("busy")
    decisions = {"w1": {"type": "approve", "digest": digest}}
    asks = {"type": "decide", "id": "1", "interrupt_id": interrupt_id, "decisions": decisions}
    for odd in (None, 5, {}, {"session_id": "c1"}, {"session_id": 5}, {**asks, "session_id": "x"}):
        page.say(data=odd)
    page.say(data={**asks, "session_id": "c1"})
    assert kernel.finish(id).text == "written\n"


def test_what_a_page_says_ends_no_cell_that_computes(kernel: Kernel) -> None:
    """IPython's "post_execute" has figures drawn and closed that the cell is still making."""
    page = Page(kernel)
    page.say(data={"type": "ping"}, subshell=None)
    kernel.ok(
        "import threading\nended = []\n"
        "note = lambda: ended.append(threading.current_thread() is threading.main_thread())\n"
        "get_ipython().events.register('post_execute', note)"
    )
    id = kernel.start(
        "ended.clear()\npathlib.Path('busy').touch()\n"
        "while pathlib.Path('busy').exists():\n    pass\nprint(ended)"
    )
    until((kernel.folder / "busy").exists)
    page.say(data={"type": "ping"})
    assert page.heard() == {"type": "pong"}
    (kernel.folder / "busy").unlink()
    assert kernel.finish(id).text == "[]\n"
    kernel.ok("get_ipython().events.unregister('post_execute', note)")


def test_a_name_in_braces_is_in_the_panel_what_it_is_now_as_in_a_cell(kernel: Kernel) -> None:
    page = Page(kernel)
    kernel.ok(
        "import time\nbudget, other = 100, 7\n"
        "s = sa.Session(sa.Agent(ScriptedModel(['One.', 'Two.', 'Three.'])), id='named')\n"
        "%agent use s"
    )
    kernel.ok("%%agent\nSay {budget}.", front_end=True)
    kernel.ok("budget = 555")
    text = "Say {budget}, {other} and {unknown}."
    page.say(data={"type": "send", "id": "1", "session_id": "named", "text": text})
    kernel.ok("while len(s.messages) < 4 or s.status == 'running':\n    time.sleep(0.01)")
    assert kernel.ok("print(s.messages[2].text)").text == "Say 555, 7 and {unknown}.\n"
    kernel.ok("del budget")  # of which is known what it was
    page.say(data={"type": "send", "id": "2", "session_id": "named", "text": "And {budget}?"})
    kernel.ok("while len(s.messages) < 6 or s.status == 'running':\n    time.sleep(0.01)")
    assert kernel.ok("print(s.messages[4].text)").text == "And 555?\n"
