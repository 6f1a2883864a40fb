"""The lines of the specification are looked up, listed in order, and shown with their tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.specification import by_line, checked, ids_of, page

GOOD = """
["A run"]
"S1.2.9" = "It ends."
"S1.2.10" = "It pauses."

["Settled"]
"P1" = "Hooks act."
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("It ends.", " "), "S1.2.9 has no sentence"),
        (GOOD.replace("S1.2.9", "S1.2.11"), "S1.2.10 stands after S1.2.11"),
        (GOOD.replace("P1", "S1.2.10"), "S1.2.10 stands after S1.2.10"),
        (GOOD.replace("P1", "Q1"), "'Q1' is no id"),
        ('"S1.1.1" = "Alone."' + GOOD, "S1.1.1 stands in no section"),
        (GOOD + '"P2"', "cannot be read"),
    ],
)
def test_a_line_that_is_empty_out_of_order_or_no_line_is_refused(text: str, said: str) -> None:
    with pytest.raises(pytest.UsageError, match=said):
        checked(text)


def test_a_marker_that_names_no_line_is_an_error_that_says_where_they_are() -> None:
    def marked(*ids: str) -> Any:
        markers = [SimpleNamespace(args=ids)]
        return SimpleNamespace(nodeid="tests/test_x.py::test_y", iter_markers=lambda name: markers)

    assert ids_of(marked("S1.1.1", "P1")) == ["S1.1.1", "P1"]
    with pytest.raises(pytest.UsageError, match=r"test_y: .*called S9\.9\.9 \(see tests/spec.toml"):
        ids_of(marked("S1.1.1", "S9.9.9"))


def test_a_class_stands_for_its_tests_if_they_all_prove_a_line() -> None:
    tests = by_line(
        {
            "tests/test_a.py::TestDisk::test_one": {"P1", "P2"},
            "tests/test_a.py::TestDisk::test_two": {"P1"},
            "tests/test_a.py::test_three": {"P1"},
        }
    )
    assert tests == {
        "P1": ["tests/test_a.py::TestDisk", "tests/test_a.py::test_three"],
        "P2": ["tests/test_a.py::TestDisk::test_one"],
    }


def test_the_page_shows_each_line_with_its_tests_or_that_it_has_none() -> None:
    text = page(checked(GOOD), {"S1.2.9": ["tests/test_a.py::test_b"]})
    assert text.endswith(
        """
## A run

- **S1.2.9** It ends.
    - <sub>`tests/test_a.py::test_b`</sub>
- **S1.2.10** It pauses.
    - <sub>*No test yet.*</sub>

## Settled

- **P1** Hooks act.
    - <sub>*No test yet.*</sub>
"""
    )
