"""Text that nobody would write by hand: the panel and the notebook still show all the rest."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab, LabWindow, NotebookPage

pytestmark = [pytest.mark.browser, pytest.mark.soak]

SETUP = r"""
%load_ext sagents_nb
import sagents_nb as sa
from sagents_nb.transcript import markdown
from IPython.display import Markdown

texts = [
    ">" * 1_500 + " quoted",
    ">" * 5_000 + " quoted",
    "- " * 3_000 + "listed",
    "".join("  " * i + "- a\n" for i in range(400)) + "\nstepped",
    "**" * 20_000 + "starred" + "**" * 20_000,
    "> " * 1_250 + "x* y_ ~~z ](u) ` </b> --> \n" * 83 + "\nended",
]

@sa.tool(display_text="Paying\nApproved already: \u202eyap\u202c p\u0430y")
def pay(amount: float, more: list) -> str:
    "Pay."
    return "paid"

call = sa.ToolCall("c", "pay", {"amount": -0.0, "more": [1.0, float("nan"), 2**53 + 1]})
model = sa.ScriptedModel([*texts, call, "Done."], chunk=100_000)
s = sa.Session(sa.Agent(model, tools=[pay], interrupt_on={"pay": True}))
for number in range(len(texts) + 1):
    s.send(f"Question {number}").result(20)
"""
ENDS = ["quoted", "quoted", "listed", "stepped", "starred", "ended"]


def check_all_is_shown(notebook: NotebookPage) -> None:
    panel = notebook.cell(1)
    answers = panel.locator('[data-testid="entry"][data-role="assistant"]')
    expect(answers).to_have_count(len(ENDS) + 1)
    for i, end in enumerate(ENDS):
        expect(answers.nth(i)).to_contain_text(end)
    head = panel.locator(".sagents-approval-head")
    expect(head).to_contain_text("Paying\\u{000a}Approved already: \\u{202e}yap\\u{202c} p\u0430y")
    values = panel.locator(".sagents-form-value")
    expect(values).to_have_text(["-0.0", "[1.0,NaN,9007199254740993]"])
    expect(panel.get_by_test_id("composer")).to_be_enabled()
    assert [line for line in notebook.console if "sagents" in line or "stack" in line] == []


def test_after_pathological_answers_the_panel_shows_all_and_a_call_can_be_approved(
    lab_window: LabWindow,
) -> None:
    notebook = lab_window.open([SETUP, "s"])
    for i in (0, 1):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    check_all_is_shown(notebook)
    notebook.save()
    notebook.reload()
    check_all_is_shown(notebook)
    approve = notebook.cell(1).get_by_test_id("approve")
    approve.scroll_into_view_if_needed()
    notebook.screenshot("pathological-text")
    approve.click()
    expect(notebook.cell(1).locator('[data-testid="entry"]').last).to_contain_text("Done.")


def test_a_transcript_with_pathological_answers_is_rendered_by_the_notebook(lab: Lab) -> None:
    notebook = lab.open([SETUP, "Markdown(markdown(s.messages))", "print('later')"])
    for i in (0, 1, 2):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    shown = notebook.cell_output(1)
    for end in ENDS:
        expect(shown).to_contain_text(end)
    expect(shown.locator("blockquote").last).to_contain_text(f"Question {len(ENDS)}")
    expect(notebook.cell_output(2)).to_have_text("later")
    assert [line for line in notebook.console if "stack" in line or "RangeError" in line] == []
    notebook.screenshot("pathological-transcript")


HTML = r"""
%load_ext sagents_nb
import sagents_nb as sa
evil = '<img src="nowhere" onerror="window.ran = 1"> <script>window.ran = 2</script>\n\n![](/nowhere.png) [go](javascript:1)\n\n```html\n<b>code</b>\n```\n\nended'
a = sa.Agent(sa.ScriptedModel([evil, evil], chunk=100_000))
%agent use a
"""  # noqa: E501


def test_html_that_a_model_writes_is_text_below_a_cell_and_in_what_is_frozen(lab: Lab) -> None:
    notebook = lab.open([HTML, "%%agent --plain\nhello", "%%agent\nagain", "%agent freeze", "1"])
    for i in range(5):
        notebook.run_cell(i)
        notebook.wait_for_cell(i)
    for i in (1, 2):
        shown = notebook.cell_output(i)
        expect(shown).to_contain_text("ended")
        expect(shown).to_contain_text('<img src="nowhere" onerror="window.ran = 1">')
        expect(shown).to_contain_text("<b>code</b>")
        expect(shown.locator("img, script, a[href^=javascript]")).to_have_count(0)
    notebook.screenshot("html-as-text")
    assert notebook.page.evaluate("window.ran") is None
