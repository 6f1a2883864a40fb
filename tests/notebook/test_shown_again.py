"""What cells leave on the page: one view each, current also where nobody waited for the run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.notebook.kernel import WIDGET, Cell, Kernel
from tests.talking import PATIENCE

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

PAUSING = """
def pausing(request):
    s.pause("lunch")
    return sa.ToolCall("l1", "ls", {})
"""
WRITE = "sa.ToolCall('w1', 'write_file', {'file_path': '/a.md', 'content': 'A'})"


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    kernel.ok(SETUP)


def live_models(kernel: Kernel) -> int:
    return int(kernel.ok("print(len(_instances))").text)


def wait_until_said(kernel: Kernel, cell: Cell, endings: dict[str, str]) -> None:
    """Until each display, by its id, was given a text that ends so: maybe after its cell."""
    messages = iter(cell.messages)
    while endings:
        message = next(messages, None) or kernel.client.get_iopub_msg(timeout=PATIENCE)
        for place, ending in list(endings.items()):
            if any(text.endswith(ending) for text in said([message], place)):
                del endings[place]


def said(messages: list[dict[str, Any]], display_id: str) -> list[str]:
    contents = [m["content"] for m in messages if m["msg_type"] == "update_display_data"]
    return [
        str(content["data"].get("text/markdown"))
        for content in contents
        if content["transient"]["display_id"] == display_id
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


def test_what_another_page_shows_of_a_cell_stays_there(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.ok("use(*['Hello.'] * 30)", front_end=True)
    kernel.ok("%%agent\nHi.", front_end=True, cell="tabs")
    before = live_models(kernel)
    first, second, third = kernel.client.session.session, "a second tab", "a third tab"
    for tab, more in [(second, 2), (first, 2), (second, 2), (third, 2)]:
        monkeypatch.setattr(kernel.client.session, "session", tab)
        kernel.ok("%%agent\nHi.", front_end=True, cell="tabs")
        assert live_models(kernel) == before + more


VIEWS = "sa.ChatView, sa.TodoView, sa.FilesView, sa.ApprovalView"


@pytest.mark.parametrize("code", ["sa.ChatView(s)", f"for make in ({VIEWS}): display(make(s))"])
def test_views_of_a_session_are_replaced_too_when_their_cell_is_run_again(
    kernel: Kernel, code: str
) -> None:
    kernel.ok("s = sa.Session(sa.Agent(sa.ScriptedModel(['Hello.'])))", front_end=True)
    kernel.ok(code, front_end=True, cell=f"views {code}")
    before = live_models(kernel)
    for _ in range(5):
        cell = kernel.ok(code, front_end=True, cell=f"views {code}")
        assert all(WIDGET in shown for shown in cell.shown)
    assert live_models(kernel) == before


def test_a_view_that_a_variable_holds_or_another_cell_shows_stays(kernel: Kernel) -> None:
    kernel.ok("s = sa.Session(sa.Agent(sa.ScriptedModel(['Hello.'])))", front_end=True)
    kernel.ok("mine = sa.ChatView(s); mine", front_end=True, cell="c")
    kernel.ok("other = [sa.ChatView(s)]; other[0]", front_end=True, cell="d")
    kernel.ok("other[0]", front_end=True, cell="e")
    kernel.ok("mine", front_end=True, cell="c")
    kernel.ok("sa.TodoView(s)", front_end=True, cell="c")
    kernel.ok("sa.TodoView(s)", front_end=True, cell="d")
    assert kernel.ok("print(mine.comm is not None, other[0].comm is not None)").text == (
        "True True\n"
    )


def test_the_transcript_of_a_session_is_current_after_each_run(kernel: Kernel) -> None:
    kernel.ok("use('First.', 'Second.')", front_end=True)
    kernel.ok("%%agent\nHi.", front_end=True)
    cell = kernel.ok("s = sa.sessions.get(sorted(sa.sessions.list())[-1])\ns", front_end=True)
    (shown,) = cell.of("display_data")
    assert "First." in shown["data"]["text/markdown"]
    cell = kernel.ok("%%agent\nAgain.", front_end=True)
    place = shown["transient"]["display_id"]
    wait_until_said(kernel, cell, {place: "Second."})


def test_a_cell_in_the_background_shows_what_was_said_once_it_was(kernel: Kernel) -> None:
    kernel.ok("use('The answer.')", front_end=True)
    cell = kernel.ok("%%agent --background\nTell me.", front_end=True)
    (shown,) = cell.of("display_data")
    place = shown["transient"]["display_id"]
    wait_until_said(kernel, cell, {place: "The answer."})


def test_after_approve_the_answer_is_shown_there_and_below_the_cell_that_did_not_wait(
    kernel: Kernel,
) -> None:
    kernel.ok(f"use({WRITE}, 'It is written.', gate=['write_file'])", front_end=True)
    asked = kernel.ok("%%agent --no-wait\nWrite it.", front_end=True)
    (first,) = asked.of("display_data")
    approved = kernel.ok("%agent approve", front_end=True)
    (second,) = approved.of("display_data")
    assert WIDGET in second["data"]
    places = [display["transient"]["display_id"] for display in (first, second)]
    wait_until_said(kernel, approved, dict.fromkeys(places, "It is written."))


@pytest.mark.parametrize(
    ("turns", "cell"),
    [
        ("sa.ModelError('It is down.'), 'It is back.'", "%%agent\nGo."),
        ("pausing, 'It is back.'", "%%agent\nGo."),
        ("sa.ModelError('It is down.'), 'It is back.'", "s.send('Go.').result(wait=True)"),
    ],
)
def test_what_the_view_of_a_cell_has_go_on_is_shown_there_too(
    kernel: Kernel, turns: str, cell: str
) -> None:
    made = f"s = sa.Session(sa.Agent(sa.ScriptedModel([{turns}, 'Then.'])))"
    kernel.ok(f"{PAUSING}\n{made}\n%agent use s", front_end=True)
    ended = kernel.run(cell, front_end=True)
    (shown,) = ended.of("display_data")
    place = shown["transient"]["display_id"]
    assert "It is back." not in said(ended.messages, place)[-1]
    kernel.start("s.retry(s.current_run.id)", front_end=True)
    wait_until_said(kernel, Cell(), {place: "It is back."})
    # A run that another one follows is over.
    after = kernel.ok("s.send('And now?').result(30).status", front_end=True)
    assert said(after.messages, place) == []


def test_using_an_agent_again_goes_on_with_its_conversation_and_says_so(kernel: Kernel) -> None:
    kernel.ok("use('One.', 'Two.')", front_end=True)
    kernel.ok("%%agent\nHi.", front_end=True)
    mine = kernel.ok("mine = agent\nbefore = sorted(sa.sessions.list())")
    again = str(kernel.ok("%agent use mine", front_end=True).value["text/plain"])
    assert "It goes on after 2 messages; %%agent --new begins another." in again
    assert kernel.ok("print(sorted(sa.sessions.list()) == before)").text == "True\n"
    assert not mine.error


def test_a_session_says_without_the_extension_what_shows_it_live(kernel: Kernel) -> None:
    kernel.ok("u = sa.Session(sa.Agent(sa.ScriptedModel([])), id='mine')\n%unload_ext sagents_nb")
    plain = kernel.ok("u", front_end=True)
    kernel.ok("%load_ext sagents_nb")
    assert plain.value == {
        "text/plain": "<Session 'mine': idle, 0 messages>\n"
        "In a notebook, %load_ext sagents_nb shows it live."
    }
    assert WIDGET in kernel.ok("u", front_end=True).shown[0]
