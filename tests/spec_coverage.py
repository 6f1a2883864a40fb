"""Which test proves which line of the behaviour specification.

A test names the lines it proves with ``@pytest.mark.spec("S1.3.2")``. ``spec_ids.txt`` holds the
ids of all lines; ``spec_coverage.md`` is made from the markers by this script and committed, so
that a review shows what a change proves. With ``--check`` it fails when the two differ.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import defaultdict
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPORT = HERE / "spec_coverage.md"
IDS = tuple((HERE / "spec_ids.txt").read_text().split())


def ids_of(item: pytest.Item) -> list[str]:
    """The lines that a test proves; an id that does not exist is an error."""
    ids = [id for marker in item.iter_markers("spec") for id in marker.args]
    unknown = sorted(set(ids) - set(IDS))
    if unknown:
        raise pytest.UsageError(
            f"{item.nodeid}: no line of the specification is called {', '.join(unknown)} "
            "(see tests/spec_ids.txt)"
        )
    return ids


class Collector:
    """A pytest plugin that only remembers who proves what."""

    def __init__(self) -> None:
        self.tests: defaultdict[str, set[str]] = defaultdict(set)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for id in ids_of(item):
                self.tests[id].add(item.nodeid.partition("[")[0])


def collect() -> dict[str, set[str]]:
    """Ask pytest for all tests, the ones that are deselected by default too."""
    collector = Collector()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = pytest.main(["--collect-only", "-qq", "-m", "", f"{HERE}"], plugins=[collector])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(f"{output.getvalue()}\nThe tests could not be collected.")
    return collector.tests


def report(tests: dict[str, set[str]]) -> str:
    """The text of spec_coverage.md: one thing a line, so that branches seldom conflict."""
    lines = [
        "# Specification coverage",
        "",
        "Made by `make spec-coverage` from the `spec` markers of the tests; do not edit.",
        "",
    ]
    for id in IDS:
        if id in tests:
            lines += [f"- `{id}`", *(f"  - {test}" for test in sorted(tests[id]))]
    lines += ["", "## Without a test", "", *(f"- `{id}`" for id in IDS if id not in tests), ""]
    return "\n".join(lines)


def main() -> None:
    """Write the report, or check that the committed one is up to date."""
    tests = collect()
    text = report(tests)
    if "--check" not in sys.argv:
        REPORT.write_text(text, encoding="utf-8")
    elif not REPORT.exists() or REPORT.read_text(encoding="utf-8") != text:
        sys.exit("tests/spec_coverage.md is not what the markers say: run `make spec-coverage`.")
    print(f"{len(tests)} of {len(IDS)} lines of the specification have a test.")


if __name__ == "__main__":
    main()
