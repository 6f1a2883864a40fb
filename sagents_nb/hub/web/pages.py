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

POLICY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
}

# Its own address is not known here: a proxy may have it below another path.
PAGE = """<!doctype html>
<html lang="en">
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
