"""The ground that the other browser tests stand on."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.lab import NOTEBOOK, Lab, LabWindow, SharedLab, SharedPage
from tests.browser.test_agent_cell import agent_notebook, part

pytestmark = [pytest.mark.browser, pytest.mark.soak]

BUTTON = """
import anywidget, asyncio, traitlets

class Button(anywidget.AnyWidget):
    _esm = '''
    function render({ model, el }) {
      const button = document.createElement("button");
      const show = () => { button.textContent = model.get("label"); };
      button.className = "harness-button";
      button.onclick = () => model.send({ type: "click" });
      model.on("change:label", show);
      show();
      el.append(button);
    }
    export default { render };
    '''
    label = traitlets.Unicode("waiting").tag(sync=True)

button = Button()
clicked = asyncio.get_running_loop().create_future()
button.on_msg(lambda _, content, __: clicked.done() or clicked.set_result(content["type"]))
"""
AWAIT = """
display(button)
button.label = "clicked: " + await clicked
"""


def test_cells_run_and_show_their_output(lab: Lab) -> None:
    notebook = lab.open(["print('hello')", "1/0"])
    notebook.run_all()
    expect(notebook.cell_outputs(0)).to_have_text(["hello"])
    expect(notebook.cell_output(1)).to_contain_text("ZeroDivisionError")
    expect(notebook.cell_prompt(0)).to_have_text("[1]:")


def test_a_click_reaches_the_kernel_while_the_cell_awaits(lab: Lab) -> None:
    notebook = lab.open([BUTTON, AWAIT])
    notebook.run_all()
    button = notebook.cell_output(1).locator(".harness-button")
    expect(button).to_have_text("waiting")
    expect(notebook.cell_prompt(1)).to_have_text("[*]:")
    button.click()
    expect(button).to_have_text("clicked: click")
    notebook.wait_for_cell(1)
    assert notebook.foreign_requests == []


def test_the_widget_is_back_after_a_reload_while_the_cell_awaits(lab_window: LabWindow) -> None:
    notebook = lab_window.open([BUTTON, AWAIT, "button.label"])
    notebook.run_cell(0)
    notebook.wait_for_cell(0)
    notebook.run_cell(1)
    button = notebook.cell_output(1).locator(".harness-button")
    expect(button).to_have_text("waiting")
    notebook.reload(wait_for_idle=False)
    button.click()
    expect(button).to_have_text("clicked: click")
    notebook.run_cell(2)
    expect(notebook.cell_output(2)).to_contain_text("clicked: click")


def test_the_stop_button_interrupts_a_busy_cell(lab: Lab) -> None:
    notebook = lab.open(["import time\nprint('busy')\ntime.sleep(60)"])
    notebook.run_cell(0)
    expect(notebook.cell_output(0)).to_contain_text("busy")
    notebook.interrupt_kernel()
    expect(notebook.cell_output(0)).to_contain_text("KeyboardInterrupt")
    notebook.wait_for_cell(0)


def test_theme_source_save_and_restart(lab: Lab) -> None:
    notebook = lab.open(["x = 1", "x", "open('data.csv').read()"], files={"data.csv": "a,b"})
    notebook.set_theme("dark")
    notebook.set_source(0, "x = 2")
    notebook.run_all()
    expect(notebook.cell_outputs(1)).to_have_text(["2"])
    expect(notebook.cell_output(2)).to_contain_text("a,b")
    assert notebook.save().cells[0].source == "x = 2"
    notebook.restart_kernel()
    notebook.run_cell(1)
    expect(notebook.cell_output(1)).to_contain_text("NameError")
    notebook.set_theme("light")
    assert notebook.screenshot("harness").stat().st_size > 10_000


def test_who_comes_next_finds_nothing_in_the_shared_page_of_who_was_there(
    shared_page: SharedPage,
) -> None:
    before = SharedLab(shared_page, "before")
    first = agent_notebook(before, "session()", "s")
    first.run_cell(1)
    part(first, 1, "composer").fill("A draft.")
    before.close()
    page = shared_page.page()
    assert page.evaluate("jupyterapp.shell.currentWidget?.context") is None
    assert shared_page.server.request("GET", "api/sessions") == []

    after = SharedLab(shared_page, "after")
    second = after.open(["1"])
    assert page.evaluate(f"{NOTEBOOK}.context.path").startswith("after")
    expect(page.locator(".jp-NotebookPanel")).to_have_count(1)
    expect(page.get_by_test_id("sagents-panel")).to_have_count(0)
    # What panels do when people look at the page again: none is left that asks a kernel.
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert second.console == []
    assert first.console == []
    after.close()


def test_who_leaves_the_shared_page_otherwise_is_told_and_nobody_gets_it_any_more(
    shared_page: SharedPage,
) -> None:
    lab = SharedLab(shared_page, "narrow")
    notebook = lab.open(["1"])
    notebook.page.set_viewport_size({"width": 480, "height": 800})
    with pytest.raises(AssertionError, match=r"'size': .480, 800.*lab_window"):
        lab.close()
    assert notebook.page.is_closed()


def test_a_page_in_which_a_test_failed_nobody_gets_any_more(shared_page: SharedPage) -> None:
    lab = SharedLab(shared_page, "failed")
    notebook = lab.open(["1"])
    lab.has_failed = True
    lab.close()
    assert notebook.page.is_closed()
