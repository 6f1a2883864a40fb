"""What cells leave on the page: one view each, current also where nobody waited for the run."""

from __future__ import annotations

import pytest

from tests.notebook.kernel import WIDGET, Kernel
from tests.talking import until

SETUP = """
%load_ext sagents_nb
import gc
import sagents_nb as sa
from ipywidgets.widgets.widget import _instances

def use(*turns, gate=()):
    global agent
    agent = sa.Agent(sa.ScriptedModel(turns), interrupt_on=dict.fromkeys(gate, True))
    get_ipython().run_line_magic("agent", "use agent")
"""

WRITE = "sa.ToolCall('w1', 'write_file', {'file_path': '/a.md', 'content': 'A'})"


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    kernel.ok(SETUP)


def live_models(kernel: Kernel) -> int:
    return int(kernel.ok("print(len(_instances))").text)


def shown_at_last(kernel: Kernel, display_id: str) -> str:
    """The Markdown that the display has by now, from cells that only let the loop turn."""
    found: list[str] = []

    def looked() -> bool:
        cell = kernel.ok("import asyncio; await asyncio.sleep(0.05)")
        found.extend(said(cell.messages, display_id))
        return bool(found)

    until(looked)
    return found[-1]


def said(messages: list[dict[str, object]], display_id: str) -> list[str]:
    contents = [m["content"] for m in messages if m["msg_type"] == "update_display_data"]
    return [
        str(content["data"].get("text/markdown"))  # type: ignore[index]
        for content in contents
        if content["transient"]["display_id"] == display_id  # type: ignore[index]
    ]


def test_a_cell_that_is_run_again_replaces_its_view(kernel: Kernel) -> None:
    kernel.ok("use(*['Hello.'] * 30)", front_end=True)
    kernel.ok("%%agent\nHi.", front_end=True, cell="a")
    before = live_models(kernel)
    for _ in range(20):
        cell = kernel.ok("%%agent\nHi.", front_end=True, cell="a")
        assert WIDGET in cell.shown[0]
    assert live_models(kernel) == before
    kernel.ok("%%agent\nHi.", front_end=True, cell="b")  # another cell has a view of its own
    assert live_models(kernel) == before + 2


def test_the_transcript_of_a_session_is_current_after_each_run(kernel: Kernel) -> None:
    kernel.ok("use('First.', 'Second.')", front_end=True)
    kernel.ok("%%agent\nHi.", front_end=True)
    cell = kernel.ok("s = sa.sessions.get(sorted(sa.sessions.list())[-1])\ns", front_end=True)
    (shown,) = cell.of("display_data")
    assert "First." in shown["data"]["text/markdown"]
    cell = kernel.ok("%%agent\nAgain.", front_end=True)
    place = shown["transient"]["display_id"]
    found = said(cell.messages, place)
    assert "Second." in (found[-1] if found else shown_at_last(kernel, place))


def test_a_cell_in_the_background_shows_what_was_said_once_it_was(kernel: Kernel) -> None:
    kernel.ok("use('The answer.')", front_end=True)
    cell = kernel.ok("%%agent --background\nTell me.", front_end=True)
    (shown,) = cell.of("display_data")
    place = shown["transient"]["display_id"]
    found = said(cell.messages, place)
    assert "The answer." in (found[-1] if found else shown_at_last(kernel, place))


def test_after_approve_the_answer_is_shown_there_and_below_the_cell_that_did_not_wait(
    kernel: Kernel,
) -> None:
    kernel.ok(f"use({WRITE}, 'It is written.', gate=['write_file'])", front_end=True)
    asked = kernel.ok("%%agent --no-wait\nWrite it.", front_end=True)
    (first,) = asked.of("display_data")
    approved = kernel.ok("%agent approve", front_end=True)
    (second,) = approved.of("display_data")
    assert WIDGET in second["data"]
    for display in (first, second):
        place = display["transient"]["display_id"]
        found = said(approved.messages, place)
        text = found[-1] if found else shown_at_last(kernel, place)
        assert text.endswith("It is written.")


def test_using_an_agent_again_goes_on_with_its_conversation_and_says_so(kernel: Kernel) -> None:
    kernel.ok("use('One.', 'Two.')", front_end=True)
    kernel.ok("%%agent\nHi.", front_end=True)
    mine = kernel.ok("mine = agent\nbefore = sorted(sa.sessions.list())")
    again = str(kernel.ok("%agent use mine", front_end=True).value["text/plain"])
    assert "It goes on after 2 messages; %%agent --new begins another." in again
    assert kernel.ok("print(sorted(sa.sessions.list()) == before)").text == "True\n"
    assert not mine.error
