from __future__ import annotations

from pathlib import Path

import pytest

from sagents_nb.frames import COLUMNS

PAGE = Path(__file__).parents[2] / "docs" / "frames.md"


def table(kind: str) -> str:
    """The columns of a kind as the page has them."""
    rows = ["| column | dtype | |", "|---|---|---|"]
    for name, column in COLUMNS[kind].items():
        words = f" ({', '.join(column.categories)})" if column.categories else ""
        rows.append(f"| `{name}` | {column.dtype}{words} | {column.about} |")
    return "\n".join(rows)


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_page_of_the_frames_tells_every_column(kind: str) -> None:
    section = PAGE.read_text(encoding="utf-8").partition(f"## {kind}\n")[2].partition("\n## ")[0]
    assert table(kind) in section, f"docs/frames.md should say:\n\n{table(kind)}"
