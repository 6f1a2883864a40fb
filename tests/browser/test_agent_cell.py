"""An agent in a real notebook, as a person sees it: one subject a test."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, LabWindow, NotebookPage

pytestmark = pytest.mark.browser

LONG = "\\n\\n".join(f"Paragraph {i} of an answer that streams slowly." for i in range(12))

# One script for all tests: a plan, a gated write, an answer that says what became of it, and
# words that wait until the test has seen those before.
SETUP = f'''
%load_ext sagents_nb
import asyncio, itertools, pathlib
import sagents_nb as sa
from sagents_nb import ScriptedModel, ToolCall

async def given(name):
    while not (path := pathlib.Path(name)).exists():
        await asyncio.sleep(0.02)
    return path.read_text()

class Paced(sa.ChatModel):
    name = "paced"
    async def stream(self, request):
        said = []
        for n in itertools.count():
            if (piece := await given(f"piece{{n}}")) == "end":
                break
            said.append(piece)
            yield piece
        yield sa.Message.assistant("".join(said))

def once(name, turn):
    async def answer(request):
        await given(name)
        return turn
    return answer

def todos(*items):
    listed = [dict(id=i, content=c, status=s) for i, (c, s) in enumerate(items, 1)]
    return ToolCall(f"t{{id(items)}}", "write_todos", dict(merge=False, todos=listed))

def write(text, path="/report.md"):
    return ToolCall("w1", "write_file", dict(file_path=path, content=text))

def told(request):
    return "The tool said: " + request.messages[-1].tool_results[0].text

LONG = "{LONG}"

def session(*turns, delay=0.01, gate=True):
    agent = sa.Agent(ScriptedModel(turns, delay=delay),
                     interrupt_on={{"write_file": True}} if gate else None)
    return sa.Session(agent)
'''


def agent_notebook(lab: Lab, script: str, *cells: str) -> NotebookPage:
    """A notebook that talks to the session that ``script`` makes, up to the first cell of yours."""
    use = f"{SETUP}\ns = {script}\n%agent use s"
    notebook = lab.open([use, *cells])
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    return notebook


def give(notebook: NotebookPage, name: str, text: str = "") -> None:
    """What a cell waits for: a file beside the notebook, whole at once."""
    path = notebook.path.with_name(name)
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def part(notebook: NotebookPage, i: int, name: str) -> Locator:
    """Something of the panel below a cell, by its test id."""
    return notebook.cell(i).get_by_test_id(name)


def test_text_appears_while_the_cell_still_runs(lab: Lab) -> None:
    notebook = agent_notebook(lab, "sa.Session(sa.Agent(Paced()))", "%%agent\nTell me.")
    notebook.run_cell(1)
    panel = part(notebook, 1, "sagents-panel")
    for n in range(3):
        give(notebook, f"piece{n}", f"Paragraph {n} of an answer.\n\n")
        expect(panel).to_contain_text(f"Paragraph {n}")
        expect(notebook.cell_prompt(1)).to_have_text("[*]:")
    give(notebook, "piece3", "end")
    notebook.wait_for_cell(1)
    for n in range(3):
        expect(panel).to_contain_text(f"Paragraph {n}")
    assert notebook.console == []
    assert notebook.foreign_requests == []


@pytest.mark.soak
def test_the_todo_list_changes(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        """session(
        ["First.", todos(("Look", "in_progress"), ("Write", "pending"))], once("seen", "And then"))
s.follow_up("And now?")
s.agent.model.turns += [
    ["Next.", todos(("Look", "completed"), ("Write", "in_progress"))], "Done"]""",
        "%%agent\nPlan it.",
    )
    notebook.run_cell(1)
    todo = part(notebook, 1, "todo")
    expect(todo).to_have_count(2)
    expect(todo.nth(0)).to_have_attribute("data-status", "in_progress")
    give(notebook, "seen")
    expect(todo.nth(0)).to_have_attribute("data-status", "completed")
    notebook.wait_for_cell(1)
    expect(todo.nth(1)).to_have_attribute("data-status", "unfinished")  # nobody is at it


def test_approve_writes_the_file_and_only_then_the_next_cell_runs(lab: Lab) -> None:
    notebook = agent_notebook(
        lab, "session(write('# Report'), told)", "%%agent\nWrite.", "print(s.files.list())"
    )
    notebook.run_cell(1)
    expect(part(notebook, 1, "approval")).to_contain_text("# Report")
    expect(part(notebook, 1, "tool-card")).to_have_attribute("data-status", "interrupted")
    notebook.run_cell(2)
    expect(notebook.cell_prompt(2)).to_have_text("[*]:")
    notebook.page.wait_for_timeout(400)
    expect(notebook.cell_prompt(2)).to_have_text("[*]:")
    part(notebook, 1, "approve").click()
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_contain_text("/report.md")
    expect(part(notebook, 1, "approval")).to_have_count(0)
    expect(part(notebook, 1, "tool-card")).to_have_attribute("data-status", "completed")


def test_edit_changes_what_is_written(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        "session(write('wrong'), told)",
        "%%agent\nWrite.",
        "print(s.files.read('/report.md').content)",
    )
    notebook.run_cell(1)
    part(notebook, 1, "edit").click()
    field = notebook.cell(1).locator("[data-testid=edit-field][data-field=content]")
    field.fill("right, by a person")
    part(notebook, 1, "edit-save").click()
    notebook.wait_for_cell(1)
    notebook.run_cell(2)
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_have_text("right, by a person")


def test_reject_is_told_to_the_model(lab: Lab) -> None:
    notebook = agent_notebook(
        lab, "session(write('no'), told)", "%%agent\nWrite.", "print(s.files.list())"
    )
    notebook.run_cell(1)
    part(notebook, 1, "reject").click()
    part(notebook, 1, "reject-message").fill("Not on a Sunday.")
    part(notebook, 1, "reject-message-send").click()
    notebook.wait_for_cell(1)
    panel = part(notebook, 1, "sagents-panel")
    expect(panel).to_contain_text("The tool said: A person rejected this call")
    expect(panel).to_contain_text("Not on a Sunday.")
    expect(part(notebook, 1, "tool-card")).to_have_attribute("data-status", "rejected")
    notebook.run_cell(2)
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_have_text("[]")


@pytest.mark.parametrize("button", ["panel", "kernel"])
def test_stop_ends_a_long_run(lab: Lab, button: str) -> None:
    notebook = agent_notebook(
        lab, "session(LONG * 50, 'later', delay=0.05)", "%%agent\nTell me.", "1 + 1", "s.status"
    )
    notebook.run_cell(1)
    expect(part(notebook, 1, "sagents-panel")).to_contain_text("Paragraph 0")
    if button == "panel":
        part(notebook, 1, "stop").click()
    else:
        notebook.interrupt_kernel()
    notebook.wait_for_cell(1)
    expect(part(notebook, 1, "status")).to_contain_text(re.compile("stopped|cancelled", re.I))
    notebook.run_cell(3)
    notebook.wait_for_cell(3)
    expect(notebook.cell_output(3)).to_contain_text("'cancelled'")


@pytest.mark.soak
def test_the_kernels_interrupt_denies_what_waits(lab: Lab) -> None:
    notebook = agent_notebook(
        lab, "session(write('x'), 'later')", "%%agent\nWrite.", "print(s.status, s.files.list())"
    )
    notebook.run_cell(1)
    expect(part(notebook, 1, "approve")).to_be_visible()
    notebook.interrupt_kernel()
    notebook.wait_for_cell(1)
    expect(part(notebook, 1, "approve")).to_have_count(0)
    notebook.run_cell(2)
    notebook.wait_for_cell(2)
    expect(notebook.cell_output(2)).to_have_text("cancelled []")


def test_after_a_reload_the_panel_shows_the_same_transcript(lab_window: LabWindow) -> None:
    notebook = agent_notebook(
        lab_window,
        "session([LONG[:150], todos(('Look', 'completed'), ('Write', 'pending'))], LONG)",
        "%%agent\nTell me.",
    )
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    panel, status = part(notebook, 1, "sagents-panel"), part(notebook, 1, "status")
    expect(status).to_contain_text("Done")
    before = _without_times(panel)
    notebook.reload()
    expect(status).to_contain_text("Done")
    assert _without_times(panel) == before
    assert notebook.console == []


@pytest.mark.soak
def test_after_a_reload_a_session_that_nobody_has_is_shown_as_it_was_last(
    lab_window: LabWindow,
) -> None:
    """As what ``agent.run(…, wait=True)`` leaves below its cell."""
    notebook = agent_notebook(
        lab_window,
        "session('Nothing.')",
        "agent = session(todos(('Look', 'completed'), ('Write', 'pending')), LONG).agent\n"
        "print(agent.run('Tell me.', wait=True).status)",
        "import gc\nprint(gc.collect() > 0)",
    )
    for cell in (1, 2):
        notebook.run_cell(cell)
        notebook.wait_for_cell(cell)
    panel, status = part(notebook, 1, "sagents-panel"), part(notebook, 1, "status")
    expect(panel).to_contain_text("Paragraph 11")
    notebook.reload()
    expect(panel).to_contain_text("Paragraph 11")
    expect(panel).to_contain_text("Look")
    expect(status).to_contain_text("Done")
    status.scroll_into_view_if_needed()
    notebook.screenshot("session-that-nobody-has")
    assert notebook.console == []


@pytest.mark.soak
def test_a_run_that_failed_goes_on_below_its_cell_and_is_kept_there(lab: Lab) -> None:
    turns = "sa.ModelError('The line is down.'), write('# Report'), told"
    notebook = agent_notebook(lab, f"session({turns}, gate=False)", "%%agent\nWrite.")
    notebook.run_cell(1)
    expect(part(notebook, 1, "status")).to_have_text("Failed")
    part(notebook, 1, "retry").click()
    panel = part(notebook, 1, "sagents-panel")
    expect(panel).to_contain_text("The tool said")
    expect(part(notebook, 1, "status")).to_have_text("Done")
    expect(part(notebook, 1, "retry")).to_have_count(0)
    (kept, *_) = notebook.save().cells[1].outputs
    assert "The line is down." in kept["data"]["text/markdown"]
    assert "The tool said" in kept["data"]["text/markdown"]


def test_a_reload_in_the_middle_of_a_run_goes_on_streaming(lab_window: LabWindow) -> None:
    notebook = agent_notebook(lab_window, "sa.Session(sa.Agent(Paced()))", "%%agent\nTell me.")
    notebook.run_cell(1)
    panel = part(notebook, 1, "sagents-panel")
    give(notebook, "piece0", "Paragraph 0.\n\n")
    expect(panel).to_contain_text("Paragraph 0")
    notebook.reload(wait_for_idle=False)
    expect(panel).to_contain_text("Paragraph 0")
    for n in (1, 2):
        give(notebook, f"piece{n}", f"Paragraph {n}.\n\n")
        expect(panel).to_contain_text(f"Paragraph {n}")
    part(notebook, 1, "stop").click()
    expect(part(notebook, 1, "stop")).to_have_count(0)


def test_two_views_of_one_session_agree(lab: Lab) -> None:
    notebook = agent_notebook(
        lab, "session('First answer.', LONG)", "s", "%%agent\nOne.", "s", "sa.ChatView(s)"
    )
    for i in (1, 2, 3, 4):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    for i in (1, 3, 4):
        expect(part(notebook, i, "sagents-panel")).to_contain_text("First answer.")
    for i in (1, 3, 4):  # those that are drawn at once have room for what they say
        assert part(notebook, i, "composer").evaluate("box => box.clientHeight") > 15
    composer = part(notebook, 1, "composer")
    composer.fill("Two.")
    composer.press("Enter")
    for i in (1, 3, 4):
        expect(part(notebook, i, "sagents-panel")).to_contain_text("Paragraph 11")
        expect(part(notebook, i, "status")).to_have_attribute("data-status", "idle")
    texts = {tuple(part(notebook, i, "entry").all_text_contents()) for i in (1, 3, 4)}
    assert len(texts) == 1
    assert notebook.console == []


def test_a_second_cell_continues_the_conversation(lab: Lab) -> None:
    notebook = agent_notebook(
        lab,
        "session('I am Ada.', lambda r: f'You wrote {len(r.messages)} messages: ' "
        "+ ' / '.join(m.text for m in r.messages))",
        "%%agent\nWho are you?",
        "%%agent\nWhat did I ask?",
    )
    for i in (1, 2):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    second = part(notebook, 2, "sagents-panel")
    expect(second).to_contain_text("Who are you? / I am Ada. / What did I ask?")
    assert part(notebook, 2, "entry").count() == 1  # the answer; the cell has the question


def test_a_failed_run_says_so_and_fails_the_cell(lab: Lab) -> None:
    notebook = agent_notebook(
        lab, "session(sa.ModelError('The key is wrong; set X.'))", "%%agent\nGo."
    )
    notebook.run_cell(1)
    notebook.wait_for_cell(1)
    expect(part(notebook, 1, "sagents-panel")).to_contain_text("The key is wrong; set X.")
    expect(notebook.cell_output(1)).to_contain_text("ModelError")


def _without_times(panel: Locator) -> str:
    return re.sub(r"\d+(\.\d+)? ?(ms|s)\b", "", panel.text_content() or "")
