"""`import sagents_nb` is light: it loads no SDK, no data frames and no widgets."""

from __future__ import annotations

from benchmarks.imports import BUDGET_MS, measure

HEAVY = {
    "IPython",
    "anthropic",
    "anywidget",
    "comm",
    "diskcache",
    "ipywidgets",
    "numpy",
    "openai",
    "pandas",
    "pydantic",
    "sqlalchemy",
    "traitlets",
}


def test_the_public_names_load_nothing_heavy() -> None:
    milliseconds, modules = measure(processes=5)
    assert not HEAVY & {name.partition(".")[0] for name in modules}
    # Three times the budget: machines that run tests are busy. `make bench` prints the time.
    assert milliseconds < 3 * BUDGET_MS
