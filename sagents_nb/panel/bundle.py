"""The built front end: a loader that every model carries, and what a page asks for once."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"


@cache
def loader() -> str:
    """The ``_esm`` of all models, a few kB."""
    return _read("loader.js").decode()


@cache
def bundle() -> tuple[str, list[bytes]]:
    """The bundle's version, and its JavaScript and style sheet."""
    buffers = [_read("panel.js"), _read("panel.css")]
    return hashlib.sha256(b"".join(buffers)).hexdigest()[:16], buffers


PARTS = ("math", "colours")
"""What a page asks for when it has the first formula, and the first code that has colours."""


@cache
def part(name: str) -> bytes:
    """The JavaScript of one of :data:`PARTS`."""
    return _read(f"{name}.js")


def _read(name: str) -> bytes:
    try:
        return (STATIC / name).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"The widget's {name} is missing; run 'npm ci && npm run build' in widgets/, or "
            "install sagents-nb from a wheel."
        ) from None
