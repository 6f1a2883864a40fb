"""`import sagents_nb` is light: it loads no SDK, no data frames, no widgets, and little of its own.

``benchmarks/imports.py`` prints the time.
"""

from __future__ import annotations

from benchmarks.imports import load

HEAVY = {
    "IPython",
    "anthropic",
    "anywidget",
    "comm",
    "diskcache",
    "docstring_parser",
    "hashlib",
    "ipywidgets",
    "numpy",
    "openai",
    "pandas",
    "pydantic",
    "regex",
    "sqlalchemy",
    "traitlets",
    "wcmatch",
}
LATER = {"batch", "files", "frames", "loop", "middleware", "models", "notebook", "panel", "store"}
OURS = 21
"""Modules of ours that say what an agent, a session and a tool are."""


def test_the_public_names_load_nothing_heavy() -> None:
    _, modules = load()
    assert not HEAVY & {name.partition(".")[0] for name in modules}


def test_the_public_names_load_what_they_say_and_not_what_runs_them() -> None:
    _, modules = load()
    ours = [name for name in modules if name.partition(".")[0] == "sagents_nb"]
    assert not LATER & {name.split(".")[1] for name in ours if "." in name}
    assert len(ours) <= OURS, ours
