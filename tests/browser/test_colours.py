"""What colours code comes when a page has the first code, and moves nothing on the page."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import Lab, LabWindow
from tests.browser.marimo import Marimo
from tests.browser.test_agent_cell import agent_notebook, part
from tests.browser.test_marimo import say, talk

pytestmark = [pytest.mark.browser, pytest.mark.soak]

ANSWER = """It is this:

```python
# A comment that is set in italics
def mean(numbers):
    "The mean, or None without any."
    return sum(numbers) / len(numbers) if numbers else None
```

- in a list:

  ```sql
  SELECT name, avg(mass) FROM birds WHERE mass > 3000 GROUP BY name;
  ```
"""
CODE = "import os\n\n# All of them, one by one\nfor name in os.listdir():\n    print(name)\n"
CALL = f"ToolCall('w1', 'write_file', dict(file_path='/a.py', content={CODE!r}))"
# As long as the kernel knows no parts of the panel it is silent, as a slow one is for a while.
SILENT = "from sagents_nb.notebook import widget\nparts, widget.PARTS = widget.PARTS, ()\ns"
GIVE = """from sagents_nb.panel.bundle import part
widget.PARTS = parts
widget.panel_of(s).send({"type": "colours"}, [part("colours")])"""
# Where each element is, and how large; but for what stands in code, which is in pieces afterwards.
BOXES = """(panel) => [...panel.querySelectorAll("*:not(code, code *)")].map((element) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return [element.localName, x, y - panel.getBoundingClientRect().y, width, height];
}).filter(([, , , width, height]) => width > 0 && height > 0)"""


def places_of(panel: Locator) -> list[Any]:
    places: list[Any] = panel.evaluate(BOXES)
    return places


def names_of(places: list[Any]) -> list[str]:
    return [name for name, *_ in places]


@pytest.mark.parametrize("host", ["lab_window", pytest.param("notebook7", marks=pytest.mark.soak)])
def test_code_is_laid_out_the_same_before_it_has_its_colours(
    request: pytest.FixtureRequest, host: str
) -> None:
    window: Lab = request.getfixturevalue(host)
    notebook = agent_notebook(
        window, f"session([{ANSWER!r}, {CALL}], told)", f"s.send('Go.').result()\n{SILENT}", GIVE
    )
    of_the_host = set(notebook.console)  # there is no panel yet
    notebook.run_cell(1)
    panel = part(notebook, 1, "sagents-panel")
    expect(part(notebook, 1, "approval")).to_contain_text("All of them, one by one")
    expect(panel.locator("pre")).to_have_count(3)
    words = panel.locator(".hljs-keyword")
    expect(words).to_have_count(0)
    plain, text = places_of(panel), panel.locator("pre").all_text_contents()
    notebook.screenshot(f"code-plain-{host}")
    notebook.run_cell(2)
    expect(words.filter(has_text="SELECT")).to_be_visible()
    expect(words.filter(has_text="def")).to_be_visible()
    expect(words.filter(has_text="for")).to_be_visible()
    assert names_of(places_of(panel)) == names_of(plain)
    for place, before in zip(places_of(panel), plain, strict=True):
        assert place[1:] == pytest.approx(before[1:], abs=0.1), before
    assert panel.locator("pre").all_text_contents() == text
    notebook.screenshot(f"code-coloured-{host}")
    assert set(notebook.console) <= of_the_host
    assert notebook.foreign_requests == []


@pytest.mark.soak
def test_what_a_sync_cell_waits_for_has_its_colours_though_the_kernel_computes(
    lab_window: LabWindow,
) -> None:
    notebook = agent_notebook(
        lab_window, f"session({CALL}, told)", "result = s.send('Write.').result(wait=True)"
    )
    notebook.run_cell(1)
    expect(part(notebook, 1, "approval").locator(".hljs-keyword").first).to_have_text("import")
    expect(notebook.cell_prompt(1)).to_have_text("[*]:")
    part(notebook, 1, "approve").click()
    notebook.wait_for_cell(1)


def test_code_has_its_colours_in_marimo(marimo: Marimo) -> None:
    notebook = talk(marimo, f"session({ANSWER!r})")
    say(notebook.cell(1), "Go.")
    words = notebook.cell(1).locator(".hljs-keyword")
    expect(words.filter(has_text="def")).to_have_css("font-weight", "600")
    expect(words.filter(has_text="SELECT")).to_be_visible()
    words.first.scroll_into_view_if_needed()
    notebook.screenshot("code-coloured-marimo")
    assert notebook.console == []
    assert notebook.foreign_requests == []
