"""What we promise, and which tests prove it.

``spec.toml`` holds the lines of the behaviour specification: an id and a sentence each. A test
names the lines it proves with a ``spec`` marker. This script makes ``docs/specification.md`` of
both; it is committed, so that a review shows what a change proves. With ``--check`` it fails
when the file is not what it would write.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SENTENCES = HERE / "spec.toml"
PAGE = HERE.parent / "docs" / "specification.md"

Sections = dict[str, dict[str, str]]
"""By title: the sentences of a section by their ids."""

INTRODUCTION = """\
# What we promise

Made by `make spec-coverage` from `tests/spec.toml` and the `spec` markers of the tests; do not
edit.

Each line is one behaviour that you can rely on, with the tests that prove it; a test names it by
its id, as in `@pytest.mark.spec("S1.3.2")`. S is for agents, files, sessions and what they keep, A
for events, queues and the bare loop, H for the hub, R for the platform of tools, tasks and
documents, and P for points that win wherever two lines seem to disagree. The systems whose ideas
these are had lines of the same ids; where we differ, the line says so, and why.
"""


def checked(text: str) -> Sections:
    """The sections that ``spec.toml`` holds; raises UsageError for lines that cannot be meant."""
    try:
        sections: Sections = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise pytest.UsageError(f"tests/spec.toml cannot be read: {error}.") from None
    before = ""
    for title, sentences in sections.items():
        if not isinstance(sentences, dict):
            raise pytest.UsageError(f"tests/spec.toml: {title} stands in no section.")
        for id, sentence in sentences.items():
            if not isinstance(sentence, str) or not sentence.strip() or "\n" in sentence:
                raise pytest.UsageError(f"tests/spec.toml: {id} has no sentence, in one line.")
            if _place(id) <= _place(before):
                raise pytest.UsageError(
                    f"tests/spec.toml: {id} stands after {before}, which is not the order of ids."
                )
            before = id
    return sections


def _place(id: str) -> tuple[int, ...]:
    """Where an id stands among all others."""
    if not id:
        return ()
    if not re.fullmatch(r"[SAHRP][1-9]\d*(\.[1-9]\d*)*", id):
        raise pytest.UsageError(f"tests/spec.toml: {id!r} is no id such as S1.3.2 or P4.")
    return ("SAHRP".index(id[0]), *map(int, id[1:].split(".")))


@functools.cache
def sections() -> Sections:
    """The sections of ``spec.toml``."""
    return checked(SENTENCES.read_text(encoding="utf-8"))


def ids_of(item: pytest.Item) -> list[str]:
    """The lines that a test proves; an id that does not exist is an error."""
    ids = [id for marker in item.iter_markers("spec") for id in marker.args]
    unknown = sorted(id for id in set(ids) if not any(id in lines for lines in sections().values()))
    if unknown:
        raise pytest.UsageError(
            f"{item.nodeid}: no line of the specification is called {', '.join(unknown)} "
            "(see tests/spec.toml)"
        )
    return ids


class Collector:
    """A pytest plugin that only remembers who proves what: by test, the ids."""

    def __init__(self) -> None:
        self.proved: dict[str, set[str]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            test = item.nodeid.partition("[")[0]
            self.proved.setdefault(test, set()).update(ids_of(item))


def collect() -> dict[str, set[str]]:
    """Ask pytest for all tests with a marker, the ones that are deselected by default too."""
    collector = Collector()
    output = io.StringIO()
    files = (str(f) for f in HERE.rglob("test_*.py") if "mark.spec" in f.read_text("utf-8"))
    # Nothing is run: rewriting what is asserted, and a cache, would only take time.
    quick = ["--assert=plain", "-p", "no:cacheprovider"]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = pytest.main(
            ["--collect-only", "-qq", "-m", "", *quick, *sorted(files)], plugins=[collector]
        )
    if code != pytest.ExitCode.OK:
        sys.exit(f"{output.getvalue()}\nThe tests could not be collected.")
    return collector.proved


def by_line(proved: dict[str, set[str]]) -> dict[str, list[str]]:
    """By id, the tests that prove it; a class stands for its tests if they all do."""
    classes = defaultdict[str, list[str]](list)
    for test in proved:
        classes[test.rpartition("::")[0]].append(test)
    tests = defaultdict[str, set[str]](set)
    for test, ids in proved.items():
        above = test.rpartition("::")[0]
        for id in ids:
            whole = "::" in above and all(id in proved[other] for other in classes[above])
            tests[id].add(above if whole else test)
    return {id: sorted(found) for id, found in tests.items()}


def page(sections: Sections, tests: dict[str, list[str]]) -> str:
    """The text of the page: one thing a line, so that branches seldom conflict."""
    lines = [INTRODUCTION]
    for title, sentences in sections.items():
        lines += [f"## {title}", ""]
        for id, sentence in sentences.items():
            lines.append(f"- **{id}** {sentence}")
            lines += [f"    - <sub>`{test}`</sub>" for test in tests.get(id, ())]
            if id not in tests:
                lines.append("    - <sub>*No test yet.*</sub>")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Write the page, or check that the committed one is up to date."""
    try:
        lines = sections()
    except pytest.UsageError as error:
        sys.exit(str(error))
    tests = by_line(collect())
    text = page(lines, tests)
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        sys.exit("docs/specification.md is not up to date: run `make spec-coverage`.")
    total = sum(map(len, lines.values()))
    print(f"{len(tests)} of {total} lines of the specification have a test.")


if __name__ == "__main__":
    main()
