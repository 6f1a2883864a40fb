"""A notebook that is opened after its kernel has ended shows what was said."""

from __future__ import annotations

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.lab import NOTEBOOK, Lab, LabWindow
from tests.browser.test_agent_cell import agent_notebook, part

pytestmark = pytest.mark.browser


@pytest.mark.soak
def test_long_results_are_folded_without_their_kernel_too(lab_window: LabWindow) -> None:
    notebook = agent_notebook(
        lab_window,
        "session(ToolCall('c1', 'read_file', {'file_path': '/a.md'}), 'It has many lines.')",
        "s.files.write('/a.md', '\\n'.join(f'line {n}' for n in range(1, 31)))",
        "%%agent\nRead it.",
    )
    for i in range(1, 3):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    notebook.save()
    notebook.page.evaluate(f"{NOTEBOOK}.sessionContext.shutdown()")
    notebook.reload()
    output = notebook.cell_outputs(2)
    expect(output).to_contain_text("It has many lines.")
    expect(output.get_by_text("line 17")).to_be_hidden()
    output.get_by_text("30 lines").click()
    expect(output.get_by_text("line 17")).to_be_visible()
    notebook.screenshot("reopened-folded")


@pytest.mark.parametrize("host", ["lab_window", pytest.param("notebook7", marks=pytest.mark.soak)])
def test_what_was_said_is_there_without_its_kernel(
    request: pytest.FixtureRequest, host: str
) -> None:
    window: Lab = request.getfixturevalue(host)
    notebook = agent_notebook(
        window,
        "session('There are **three** species.', 'The second answer.')",
        "%%agent\nHow many?",
        "import ipywidgets\nipywidgets.IntSlider()",
        "sa.ChatView(s)",
        "%%agent\nAnd then?",
    )
    for i in range(1, 5):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    notebook.reload()
    expect(part(notebook, 1, "sagents-panel")).to_contain_text("three species")  # it lives
    notebook.page.evaluate(f"{NOTEBOOK}.sessionContext.shutdown()")
    notebook.reload()
    for i, said in [(1, "three species"), (3, "three species"), (4, "The second answer.")]:
        expect(notebook.cell_outputs(i)).to_contain_text(said)
        expect(part(notebook, i, "sagents-panel")).to_have_count(0)
    expect(notebook.cell_outputs(1).locator("strong")).to_have_text("three")
    expect(notebook.cell_output(2)).to_contain_text("model not found")  # that is of others
    assert notebook.page.evaluate(f"{NOTEBOOK}.context.model.dirty") is False
    notebook.screenshot(f"reopened-{host}")


@pytest.mark.soak
def test_what_a_tool_drew_is_seen_without_its_kernel_where_nobody_trusts_the_notebook(
    lab_window: LabWindow,
) -> None:
    notebook = agent_notebook(
        lab_window,
        """None
from matplotlib.figure import Figure

@sa.tool
def plot():
    "Draw."
    figure = Figure(figsize=(3, 2))
    figure.add_subplot().plot([1, 3, 2])
    return ["Drawn:", sa.ImagePart.of(figure)]

turns = [ToolCall("c1", "plot", {}), "Here it is."]
s = sa.Session(sa.Agent(ScriptedModel(turns), tools=[plot]))""",
        "%%agent\nDraw it.",
        "s",
    )
    for i in (1, 2):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
        expect(part(notebook, i, "sagents-panel").locator("img")).to_have_count(1)
    saved = notebook.save()
    notebook.page.evaluate(f"{NOTEBOOK}.sessionContext.shutdown()")
    for cell in saved.cells:  # as it comes from elsewhere: unsigned, and no output is trusted
        cell.metadata.pop("trusted", None)
        cell.source += "\n"
    path = lab_window.server.root / "from-elsewhere.ipynb"
    nbformat.write(saved, path)
    opened = lab_window.open_file(path)
    for i in (1, 2):
        image = opened.cell_outputs(i).locator("img")
        expect(image).to_have_count(1)
        opened.page.wait_for_function(
            "image => image.naturalWidth > 200", arg=image.element_handle()
        )
        expect(opened.cell_outputs(i)).to_contain_text("Drawn:")
        expect(part(opened, i, "sagents-panel")).to_have_count(0)
    trusted = f"[...{NOTEBOOK}.context.model.cells].some((cell) => cell.trusted)"
    assert opened.page.evaluate(trusted) is False
    opened.cell(2).scroll_into_view_if_needed()
    opened.screenshot("reopened-image")


# ipywidgets' renderer looks for a model once and, as on a machine that does nothing for a while,
# only after its time again: what comes between is loaded, and not found.
LOOKS_ONCE = """(() => {
  const real = window.setTimeout;
  window.setTimeout = (run, after, ...rest) => {
    const looks = after === 100 && new Error().stack.includes("get_model");
    if (looks) window.looked = true;
    return real(run, looks ? 4000 : after, ...rest);
  };
})()"""


def test_panels_that_came_too_late_for_their_page_are_drawn_when_they_are_there(
    lab_window: LabWindow,
) -> None:
    notebook = agent_notebook(
        lab_window,
        "session('There are **three** species.')",
        "%%agent\nHow many?",
        "import ipywidgets\nipywidgets.IntSlider()",
    )
    for i in range(1, 3):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    notebook.save()
    notebook.page.add_init_script(LOOKS_ONCE)
    notebook.page.reload()
    notebook.wait_until_ready()
    expect(notebook.cell_output(2)).to_contain_text("model not found")  # that is of others
    assert notebook.page.evaluate("window.looked")
    panel = part(notebook, 1, "sagents-panel")
    expect(panel).to_contain_text("three species")
    expect(panel).to_have_count(1)
    assert notebook.page.evaluate(f"{NOTEBOOK}.context.model.dirty") is False


def test_what_a_cell_waits_for_is_there_after_a_reload_though_nobody_saved_nor_trusts_the_notebook(
    lab_window: LabWindow,
) -> None:
    write = "ToolCall('w1', 'write_file', {'file_path': '/a.md', 'content': 'A.'})"
    notebook = agent_notebook(lab_window, f"session({write}, 'Written.')", "%%agent\nWrite.")
    notebook.run_cell(1)
    expect(part(notebook, 1, "approve")).to_be_visible()
    notebook.page.reload()
    notebook.wait_until_shown()
    trusted = f"[...{NOTEBOOK}.context.model.cells].some((cell) => cell.trusted)"
    assert notebook.page.evaluate(trusted) is False
    part(notebook, 1, "approve").click()
    expect(part(notebook, 1, "sagents-panel")).to_contain_text("Written.")
    assert notebook.page.evaluate(trusted) is False
