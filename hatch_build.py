"""Builds the widgets' JavaScript when it is not there yet.

A release carries the built files in its wheel and in its sdist, so only a checkout that was
never built needs Node.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PANEL = ("loader.js", "panel.js", "panel.css", "math.js", "colours.js", "reopened.js")
BUNDLE = (
    *(f"sagents_nb/panel/static/{name}" for name in PANEL),
    *(f"sagents_nb/hub/web/static/{name}" for name in ("dashboard.js", "dashboard.css")),
)


class WidgetBundleHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before the wheel, the sdist and the editable install are put together."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if all(Path(self.root, name).is_file() for name in BUNDLE):
            return
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit(
                "The widgets are not built and npm is not on PATH: install Node.js 20 or newer, "
                "or install sagents-nb from PyPI, where they are built."
            )
        widgets = Path(self.root, "widgets")
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=widgets, check=True)
        subprocess.run([npm, "run", "build"], cwd=widgets, check=True)
        missing = [name for name in BUNDLE if not Path(self.root, name).is_file()]
        if missing:
            raise SystemExit(f"`npm run build` in widgets/ did not make {', '.join(missing)}.")
