"""The page at the address of a hub, and its files: no secret is in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...errors import ConfigurationError
from ...panel.bundle import STATIC as PANEL

STATIC = Path(__file__).parent / "static"

ASSETS = {
    "dashboard.js": STATIC,
    "dashboard.css": STATIC,
    "panel.css": PANEL,
    "math.js": PANEL,
    "colours.js": PANEL,
}
"""The files of the page, and the folders where they lie."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors {frames}"
)

# Its own address is not known here: a proxy may have it below another path.
_PAGE = """<!doctype html>
<html lang="en" data-door="{door}" data-agencies="{agencies}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>sagents_nb hub</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="assets/panel.css">
<link rel="stylesheet" href="assets/dashboard.css">
<script type="module" src="assets/dashboard.js"></script>
</head>
<body>
<noscript>This page needs JavaScript; every route is in /openapi.json.</noscript>
</body>
</html>
"""

_TYPES = {".js": "text/javascript", ".css": "text/css"}


def page(*, behind_jupyter: bool, of_notebook: bool) -> tuple[str, dict[str, str]]:
    """The page and its policy: whom Jupyter lets in needs no token, and has it in a tab of Lab.

    Of a hub ``of_notebook`` the agencies are the notebooks', and it offers to make none.
    """
    door, frames = ("jupyter", "'self'") if behind_jupyter else ("token", "'none'")
    policy = {"Content-Security-Policy": _POLICY.format(frames=frames)}
    return _PAGE.format(door=door, agencies="notebooks" if of_notebook else "any"), policy


@cache
def asset(name: str) -> tuple[bytes, str]:
    """One of :data:`ASSETS`, and what it is."""
    path = ASSETS[name] / name
    try:
        return path.read_bytes(), _TYPES[path.suffix]
    except FileNotFoundError:
        raise ConfigurationError(
            f"The page's {name} is missing; run 'npm ci && npm run build' in widgets/, or install "
            "sagents-nb from a wheel."
        ) from None
