"""What a notebook keeps of its conversations, over restarts of real kernels."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.notebook.kernel import WIDGET, Kernel
from tests.talking import until

SETUP = """
%load_ext sagents_nb
import sagents_nb as sa
"""


@pytest.fixture
def new_kernel(tmp_path: Path) -> Iterator[Callable[[], Kernel]]:
    """Kernels of one notebook, each in the place of the last."""
    running: list[Kernel] = []

    def start() -> Kernel:
        if running:
            running.pop().stop()  # killed, as by a crash
        kernel = Kernel(tmp_path)
        running.append(kernel)
        kernel.ok(SETUP)
        return kernel

    yield start
    for kernel in running:
        kernel.stop()


def test_a_conversation_and_its_files_survive_a_restart_of_the_kernel(
    new_kernel: Callable[[], Kernel], tmp_path: Path
) -> None:
    kernel = new_kernel()
    said = kernel.ok("%%agent --name study --model demo\nSay hello.", front_end=True)
    assert WIDGET in said.shown[0]
    kernel.ok(
        "s = sa.sessions.get('study'); s.files.write('/notes.md', 'remember'); s.files.flush()"
    )
    before = kernel.ok("print([m.text for m in s.messages])").text

    kernel = new_kernel()
    listed = str(kernel.ok("%agent list", front_end=True).value["text/plain"])
    assert listed.startswith("  study: kept, last used")
    assert listed.endswith(", “Say hello.”")
    loaded = kernel.ok("%agent load study", front_end=True)
    assert "study: idle" in str(loaded.value)
    assert WIDGET in loaded.shown[0]
    assert "Say hello." in loaded.shown[0]["text/markdown"]
    listed = str(kernel.ok("%agent list", front_end=True).value["text/plain"])
    assert listed == "* study: idle, 2 messages, model demo, “Say hello.”"
    kernel.ok("s = sa.sessions.get('study')")
    assert kernel.ok("print([m.text for m in s.messages])").text == before
    assert kernel.ok("print(s.files.read('/notes.md').content)").text == "remember\n"
    kernel.ok("%%agent\nAnd again.", front_end=True)
    assert kernel.ok("print(len(s.messages) > 2)").text == "True\n"
    assert (tmp_path / ".sagents" / ".gitignore").read_text() == "*\n"


def test_a_fork_is_kept_beside_its_conversation_with_files_of_its_own(
    new_kernel: Callable[[], Kernel],
) -> None:
    kernel = new_kernel()
    kernel.ok("%%agent --name study --model demo\nSay hello.", front_end=True)
    kernel.ok(
        """
from sagents_nb.notebook.extension import extension_of
conversations = extension_of(get_ipython()).conversations
s = sa.sessions.get("study")
s.files.write("/notes.md", "remember")
fork = conversations.fork(s, None)
again = conversations.fork(s, 0)
s.files.write("/notes.md", "later"); s.files.flush(); fork.files.flush()
print(fork.id, again.id, conversations.current.id)
""",
        front_end=True,
    )

    kernel = new_kernel()
    loaded = kernel.ok("%agent load study-fork", front_end=True)
    assert "study-fork: idle" in str(loaded.value)
    kernel.ok("f = sa.sessions.get('study-fork')")
    assert kernel.ok("print(f.messages[0].text, len(f.messages))").text == "Say hello. 2\n"
    assert kernel.ok("print(f.files.read('/notes.md').content)").text == "remember\n"
    listed = str(kernel.ok("%agent list", front_end=True).value["text/plain"])
    there = {line.split(":")[0] for line in listed.splitlines()}
    assert there == {"* study-fork", "  study-fork-2", "  study"}


def test_the_name_alone_goes_on_with_it_and_new_ones_get_a_name_of_their_own(
    new_kernel: Callable[[], Kernel],
) -> None:
    kernel = new_kernel()
    kernel.ok("%%agent --name study --model demo\nOne.", front_end=True)
    kernel.ok("%%agent --new --model demo\nTwo.", front_end=True)

    kernel = new_kernel()
    kernel.ok("%%agent --name study --model demo\nThree.", front_end=True)
    asked = "print([m.text for m in sa.sessions.get('study').messages if m.role == 'user'])"
    assert kernel.ok(asked).text == "['One.', 'Three.']\n"
    kernel.ok("%%agent --new --model demo\nFour.", front_end=True)
    assert kernel.ok("print(sorted(sa.sessions.list()))").text == "['notebook-2', 'study']\n"


def test_two_notebooks_of_a_directory_that_begin_at_once_have_names_of_their_own(
    new_kernel: Callable[[], Kernel],
) -> None:
    kernel = new_kernel()
    kernel.ok(
        """
from sagents_nb.notebook.extension import extension_of
from sagents_nb.store import ConversationStore
store = extension_of(get_ipython()).conversations.storage.store
find = store.find_conversation

def found_late(id):  # the other notebook takes the name just after this one has looked
    found = find(id)
    if id == "notebook-1" and found is None:
        ConversationStore(".sagents/agents.db").create_conversation(id=id)
    return found

store.find_conversation = found_late
""",
        front_end=True,
    )
    kernel.ok("%%agent --model demo\nHello.", front_end=True)
    assert kernel.ok("print(sa.sessions.list())").text == "['notebook-2']\n"


def test_an_approval_that_waits_can_be_given_after_a_restart(
    new_kernel: Callable[[], Kernel],
) -> None:
    kernel = new_kernel()
    agent = (
        "agent = sa.Agent(sa.ScriptedModel([{turns}]), interrupt_on={{'write_file': True}})\n"
        "%agent use agent"
    )
    call = "sa.ToolCall('c1', 'write_file', {'file_path': '/a.md', 'content': 'A'})"
    kernel.ok(agent.format(turns=call), front_end=True)
    kernel.ok("%%agent --no-wait\nWrite it.", front_end=True)
    name = kernel.ok("print(sa.sessions.list()[0])").text.strip()

    kernel = new_kernel()
    kernel.ok(agent.format(turns="'Written.'"), front_end=True)
    loaded = kernel.ok(f"%agent load {name}", front_end=True)
    assert "interrupted" in str(loaded.value)
    # It is asked in the panel, and told once.
    assert "It waits for your answer above." in str(loaded.value)
    assert "write_file" not in str(loaded.value)
    assert "write_file" in loaded.shown[0]["text/markdown"]
    kernel.ok(f"s = sa.sessions.get('{name}'); s.approve().result()")
    assert kernel.ok("print(s.files.read('/a.md').content, s.messages[-1].text)").text == (
        "A Written.\n"
    )


def test_who_begins_anew_after_a_restart_is_told_what_still_waits(
    new_kernel: Callable[[], Kernel],
) -> None:
    kernel = new_kernel()
    call = "sa.ToolCall('c1', 'write_file', {'file_path': '/a.md', 'content': 'A'})"
    kernel.ok(
        f"agent = sa.Agent(sa.ScriptedModel([{call}]), interrupt_on={{'write_file': True}})\n"
        "%agent use agent",
        front_end=True,
    )
    kernel.ok("%%agent --no-wait\nWrite it.", front_end=True)
    name = kernel.ok("print(sa.sessions.list()[0])").text.strip()
    hint = f"'{name}' still waits for an answer: %agent load {name} goes on with it."

    kernel = new_kernel()
    assert hint in kernel.ok("%%agent\nSay hello.", front_end=True).text
    assert hint not in kernel.ok("%%agent --new\nSay hello.", front_end=True).text
    kernel.ok(f"%agent load {name}", front_end=True)
    kernel.ok(f"sa.sessions.get('{name}').cancel()", front_end=True)

    assert "still waits" not in new_kernel().ok("%%agent\nSay hello.", front_end=True).text


def test_a_conversation_that_cannot_be_read_keeps_nobody_from_beginning_another(
    new_kernel: Callable[[], Kernel], tmp_path: Path
) -> None:
    new_kernel().ok("%%agent --model demo\nSay hello.", front_end=True)
    with contextlib.closing(sqlite3.connect(tmp_path / ".sagents/agents.db")) as raw, raw:
        begun = (json.dumps({"version": 999}), None)  # of a newer version of the package
        raw.execute("UPDATE sagents_journal SET data = ?, checksum = ? WHERE kind = 'begin'", begun)
    cell = new_kernel().ok("%%agent --model demo\nSay hello.", front_end=True)
    assert "still waits" not in cell.text


def test_what_waits_below_a_cell_still_waits_after_the_kernel_was_shut_down(
    new_kernel: Callable[[], Kernel], tmp_path: Path
) -> None:
    kernel = new_kernel()
    kernel.ok(
        """
import pathlib, threading, time
import sagents_nb.notebook.cell
sagents_nb.notebook.cell.SHUTDOWN = 3600
call = sa.ToolCall("c1", "write_file", {"file_path": "/a.md", "content": "A"})
agent = sa.Agent(sa.ScriptedModel([call]), interrupt_on={"write_file": True})
%agent use agent

def look():
    while "study" not in sa.sessions.list() or sa.sessions.get("study").status != "interrupted":
        time.sleep(0.02)
    pathlib.Path("waits").touch()

threading.Thread(target=look, daemon=True).start()
""",
        front_end=True,
    )
    kernel.start("%%agent --name study\nWrite it.", front_end=True)
    kernel.wait_for("waits")
    # A restart in Lab interrupts the kernel before it is told to end.
    kernel.manager.interrupt_kernel()
    time.sleep(0.1)
    kernel.client.shutdown()
    until(lambda: not kernel.manager.is_alive())

    kernel = new_kernel()
    loaded = str(kernel.ok("%agent load study", front_end=True).value)
    assert "study: interrupted" in loaded


def test_of_a_call_at_work_in_a_kernel_that_was_shut_down_is_asked_whether_it_ran(
    new_kernel: Callable[[], Kernel], tmp_path: Path
) -> None:
    kernel = new_kernel()
    kernel.ok(
        """
import pathlib, threading
import sagents_nb.notebook.cell
sagents_nb.notebook.cell.SHUTDOWN = 3600

def upload(name: str) -> str:
    "Upload a file."
    pathlib.Path("at_work").touch()
    threading.Event().wait()

agent = sa.Agent(sa.ScriptedModel([sa.ToolCall("c1", "upload", {"name": "a"})]), tools=[upload])
%agent use agent
""",
        front_end=True,
    )
    kernel.start("%%agent --name study\nUpload it.", front_end=True)
    kernel.wait_for("at_work")
    kernel.manager.interrupt_kernel()
    time.sleep(0.1)
    kernel.client.shutdown()
    until(lambda: not kernel.manager.is_alive())

    kernel = new_kernel()
    loaded = str(kernel.ok("%agent load study", front_end=True).value)
    assert "study: interrupted" in loaded
    assert "It waits for your answer above." in loaded  # the panel has the buttons
    status = str(kernel.ok("%agent status", front_end=True).value)
    assert "The process ended when this had begun: upload. Look whether it ran" in status
    assert "or do not run it again." in status
    assert "sa.sessions.get('study') as the last line of a cell shows buttons" in status


def test_a_notebook_saved_in_mid_run_says_what_goes_on_in_the_next_kernel(
    new_kernel: Callable[[], Kernel],
) -> None:
    cell = new_kernel().ok("%%agent --name study --model demo\nSay hello.", front_end=True)
    assert cell.shown[0]["text/markdown"] == (
        "*The agent was at work when this was saved.* After `%load_ext sagents_nb`, "
        "`%agent load study` goes on with what was kept."
    )
    assert "at work" not in cell.updates[-1]["text/markdown"]


def test_an_unattended_notebook_keeps_nothing(
    new_kernel: Callable[[], Kernel], tmp_path: Path
) -> None:
    kernel = new_kernel()
    kernel.ok("%%agent --name study --model demo\nSay hello.")
    assert not (tmp_path / ".sagents").exists()
    assert kernel.run("%agent save").error == "UsageError"


def test_a_session_of_ones_own_is_kept_when_asked(new_kernel: Callable[[], Kernel]) -> None:
    kernel = new_kernel()
    kernel.ok("mine = sa.Session(sa.Agent('demo'), id='mine'); mine.send('Hello.').result()")
    kernel.ok("%agent use mine", front_end=True)
    assert "'mine' is in" in str(kernel.ok("%agent save", front_end=True).value)

    kernel = new_kernel()
    kernel.ok("%agent load mine", front_end=True)
    assert kernel.ok("print(sa.sessions.get('mine').messages[0].text)").text == "Hello.\n"
    assert kernel.run("%agent load nobody", front_end=True).error == "UsageError"


def test_what_is_open_in_another_kernel_says_so_and_is_taken_over_when_that_is_meant(
    new_kernel: Callable[[], Kernel], tmp_path: Path
) -> None:
    kernel = new_kernel()
    kernel.ok("%%agent --name 'my study' --model demo\nSay hello.", front_end=True)
    other = Kernel(tmp_path)
    try:
        other.ok(SETUP)
        listed = str(other.ok("%agent list", front_end=True).value["text/plain"])
        assert listed.startswith("  my study: open elsewhere, last used"), listed
        for line in ("%agent load my study", "%%agent --name 'my study'\nAnd?"):
            refused = other.run(line, front_end=True)
            assert refused.error == "UsageError"
            assert "Conversation 'my study' has been open in process" in refused.reply["evalue"]
            assert refused.reply["evalue"].endswith("%agent load my study --take-over.")
        loaded = other.ok("%agent load my study --take-over", front_end=True)
        assert "my study: idle, 2 messages" in str(loaded.value)
        other.ok("%%agent\nAnd again.", front_end=True)
    finally:
        other.stop()
    # And no other conversation takes its place unasked.
    for line in ("%%agent\nMine?", "%%agent\nMine?", "%agent reset"):
        refused = kernel.run(line, front_end=True)
        assert refused.error == "UsageError"
        assert "'my study' was taken over by process" in refused.reply["evalue"]
        assert refused.reply["evalue"].endswith(
            "%agent load my study --take-over takes it back, and %%agent --new begins another one."
        )
    back = kernel.ok("%agent load my study --take-over", front_end=True)
    assert "my study: idle, 4 messages" in str(back.value)


DOUBLE = "def double(n: int) -> int:\n    'Double.'\n    return 2 * n"
GATES = "print(sorted(sa.sessions.get('mine').agent.interrupt_on))"


def test_what_asked_before_it_ran_asks_after_a_restart_too_also_where_its_tool_is_missing(
    new_kernel: Callable[[], Kernel],
) -> None:
    kernel = new_kernel()
    kernel.ok(DOUBLE)
    first = "%%agent --name mine --model demo --tools double --approve write_file,double --no-wait"
    kernel.ok(f"{first}\nSay hello.", front_end=True)
    kernel.ok("%%agent --name other\nSay hello.", front_end=True)
    assert kernel.ok(GATES).text == "['double', 'write_file']\n"

    kernel = new_kernel()
    loaded = kernel.ok("%agent load mine", front_end=True)
    assert "'mine' had tools that this notebook does not have by now: double." in loaded.text
    assert kernel.ok(GATES).text == "['write_file']\n"
    asked = kernel.ok("%%agent --no-wait\nWrite 'hello' to /c.md", front_end=True)
    assert "write_file" in str(kernel.ok("%agent status", front_end=True).value)
    assert not asked.error
    assert kernel.ok("print(sa.sessions.get('mine').files.list())").text == "[]\n"
    kernel.ok(DOUBLE)
    kernel.ok("%agent reject", front_end=True)
    kernel.ok("await sa.sessions.get('mine').current_run")
    kernel.ok("%agent tools add double", front_end=True)
    assert kernel.ok(GATES).text == "['double', 'write_file']\n"

    kernel = new_kernel()
    kernel.ok(DOUBLE)
    assert "had tools" not in kernel.ok("%agent load other", front_end=True).text
    assert kernel.ok(GATES.replace("mine", "other")).text == "['double', 'write_file']\n"


def test_a_conversation_of_the_notebooks_agent_goes_on_with_it_after_another_was_used(
    new_kernel: Callable[[], Kernel],
) -> None:
    kernel = new_kernel()
    kernel.ok("%%agent --name study --model demo\nSay hello.", front_end=True)
    used = "other = sa.Agent(sa.ScriptedModel(['Hm.'] * 3), name='other')\n%agent use other"
    for line in ("%agent load study", "%%agent --name study\nSay hello."):
        kernel = new_kernel()
        kernel.ok(f"{used}\nimport os; os.environ['SAGENTS_MODEL'] = 'demo'", front_end=True)
        loaded = kernel.ok(line, front_end=True)
        assert loaded.text.endswith(
            "'study' goes on with the notebook's own agent (demo), as before: the one that "
            "answered here last has no tools that see the notebook.\n"
        )
        tools = "print('run_python' in sa.sessions.get('study').agent.tools_by_name)"
        assert kernel.ok(tools).text == "True\n"
    # Whoever began it with an agent of their own goes on with that.
    kernel.ok(used, front_end=True)
    kernel.ok("%%agent --name mine\nHello.", front_end=True)
    kernel = new_kernel()
    kernel.ok(used, front_end=True)
    assert kernel.ok("%agent load mine", front_end=True).text == ""
    assert kernel.ok("print(sa.sessions.get('mine').agent.name)").text == "other\n"


def test_what_is_open_elsewhere_is_refused_before_anything_is_said_of_its_tools(
    new_kernel: Callable[[], Kernel], tmp_path: Path
) -> None:
    kernel = new_kernel()
    kernel.ok(DOUBLE)
    kernel.ok("%%agent --name mine --model demo --tools double\nSay hello.", front_end=True)
    other = Kernel(tmp_path)
    try:
        other.ok(SETUP)
        refused = other.run("%agent load mine", front_end=True)
        assert refused.error == "UsageError"
        assert "had tools" not in refused.text
        assert "had tools" in other.ok("%agent load mine --take-over", front_end=True).text
    finally:
        other.stop()


def test_a_frozen_session_leaves_text_instead_of_widgets(
    new_kernel: Callable[[], Kernel],
) -> None:
    kernel = new_kernel()
    run = kernel.ok("%%agent --name study --model demo\nSay hello.", front_end=True)
    shown = kernel.ok("sa.sessions.get('study')", front_end=True)
    assert WIDGET in run.shown[0]
    assert WIDGET in shown.shown[0]
    frozen = """%agent freeze
import asyncio
from sagents_nb.runtime.main_thread import main_thread
await asyncio.wrap_future(main_thread.submit(lambda: None))  # after what freezes
"""
    updates = kernel.ok(frozen).updates
    assert len(updates) == 2
    assert all(WIDGET not in data for data in updates)
    assert all("> Say hello." in data["text/markdown"] for data in updates)
    live = kernel.ok("%%agent\nOnce more.", front_end=True)
    assert WIDGET in live.shown[0]
