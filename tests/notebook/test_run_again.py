"""What a cell waits for stands in the output of the request that its page has sent last."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sagents_nb.notebook.outputs import Place, awaited, note
from sagents_nb.runtime.main_thread import main_thread
from tests.notebook.kernel import WIDGET, Kernel
from tests.notebook.test_control import Page
from tests.talking import PATIENCE

SETUP = """
%load_ext sagents_nb
import pathlib, time
import sagents_nb as sa

def begin(id):
    global s
    write = sa.ToolCall("w1", "write_file", {"file_path": "/report.md", "content": "# Report"})
    agent = sa.Agent(sa.ScriptedModel([write] * 9), interrupt_on={"write_file": True})
    s = sa.Session(agent, id=id)
    get_ipython().run_line_magic("agent", "use s")
"""

_numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    kernel.ok(SETUP)


class Notebook:
    """A page that tells of the cells that it runs, and a session whose runs ask for approval."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.session = f"c{next(_numbers)}"
        kernel.ok(f"begin({self.session!r})")
        kernel.ok("sa.ChatView(s)", front_end=True)  # from the first panel on pages are heard
        self.page = Page(kernel)

    def say(self, **message: str) -> None:
        self.page.say(data={**message, "session_id": self.session})

    def start(self, cell: str, code: str = "%%agent\nWrite.") -> str:
        id = self.kernel.start(code, front_end=True, cell=cell)
        self.say(type="ran", cell=cell, request=id)
        return id

    def next_shown(self) -> tuple[str, Any]:
        """The request in whose output a panel is shown next, and the panel's model."""
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=PATIENCE)
            data = message["content"].get("data", {})
            if message["msg_type"] == "display_data" and WIDGET in data:
                return message["parent_header"]["msg_id"], data[WIDGET]

    def next_waiting(self) -> Any:
        """How many requests of a cell wait for its run, when a panel says so next."""
        while True:
            message = self.kernel.client.get_iopub_msg(timeout=PATIENCE)
            state = message["content"].get("data", {}).get("state", {})
            if message["msg_type"] == "comm_msg" and "waiting" in state:
                return state["waiting"]

    def stop(self, last: str) -> None:
        """Stop the run that waits, and so all that waits behind it."""
        self.cancel()
        self.kernel.finish(last)

    def cancel(self) -> None:
        """Stop the run that waits."""
        self.say(type="cancel", id="stop")


WAITS = ["%%agent\nWrite.", "s.send('Write.').result(wait=True)"]


@pytest.mark.parametrize("code", WAITS)
def test_the_panel_of_a_cell_that_waits_is_shown_in_each_new_output(
    kernel: Kernel, code: str
) -> None:
    notebook = Notebook(kernel)
    first = notebook.start("a", code)
    request, panel = notebook.next_shown()
    assert request == first
    for _ in range(2):
        again = notebook.start("a", code)
        assert notebook.next_shown() == (again, panel)
    notebook.stop(again)


@pytest.mark.parametrize("code", WAITS)
def test_a_panel_says_how_many_requests_of_its_cell_wait(kernel: Kernel, code: str) -> None:
    notebook = Notebook(kernel)
    notebook.start("g", code)
    assert notebook.next_waiting() == 1
    for count in (2, 3):
        again = notebook.start("g", code)
        assert notebook.next_waiting() == count
    notebook.cancel()
    assert notebook.next_waiting() == 0
    kernel.finish(again)


def test_a_cell_that_was_run_twice_before_its_turn_has_its_panel_in_the_second_output(
    kernel: Kernel,
) -> None:
    notebook = Notebook(kernel)
    busy = "pathlib.Path('busy').touch()\nwhile pathlib.Path('busy').exists():\n    pass"
    kernel.start(busy)
    notebook.start("b")
    second = notebook.start("b")
    notebook.start("c")  # of another cell
    kernel.wait_for("busy")
    while notebook.next_shown()[0] != second:
        pass
    notebook.stop(second)


def test_what_was_told_before_of_a_cell_does_not_count_where_nobody_tells(kernel: Kernel) -> None:
    notebook = Notebook(kernel)
    notebook.say(type="ran", cell="d", request="long gone")
    id = kernel.start("%%agent\nWrite.", front_end=True, cell="d")
    request, _ = notebook.next_shown()
    assert request == id
    notebook.stop(id)


def test_a_cell_that_has_ended_is_not_shown_again_and_odd_words_do_no_harm(kernel: Kernel) -> None:
    notebook = Notebook(kernel)
    id = notebook.start("e")
    notebook.next_shown()
    notebook.stop(id)
    for odd in ({}, {"cell": 5, "request": id}, {"cell": "e", "request": ["x"]}):
        notebook.page.say(data={"type": "ran", "session_id": notebook.session, **odd})
    notebook.say(type="ran", cell="e", request="later")
    notebook.page.say(data={"type": "ping"})
    seen = []
    while not seen or seen[-1]["content"].get("data") != {"type": "pong"}:
        seen.append(kernel.client.get_iopub_msg(timeout=PATIENCE))
    assert "display_data" not in [message["msg_type"] for message in seen]


def test_what_is_told_at_the_very_end_of_a_cell_moves_nothing() -> None:
    moved: list[Place] = []
    with awaited(Place("f", "first"), moved.append):
        moved.clear()
        note("f", "second")  # the main thread gets to it later
    main_thread.wait(main_thread.submit(int))
    assert moved == []
