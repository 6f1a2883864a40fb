"""Spans of time in our frames are others each time, and a notebook passes; all else is compared."""

from __future__ import annotations

import re
from typing import Any

import nbformat
import pandas as pd
import pytest

from sagents_nb.frames import COLUMNS, frame_of
from sagents_nb.frames.columns import MEASURED
from sagents_nb.notebook.testing.comparison import without_measured
from tests.notebook.testing.test_test_notebook import Notebooks

SETUP = '''
%load_ext sagents_nb
import pandas as pd
import sagents_nb as sa

@sa.tool
def publish(text: str) -> str:
    """Publish it."""
    return f"Published: {text}"

calls = [
    sa.ToolCall("c1", "publish", {"text": "a"}),
    sa.ToolCall("c2", "write_file", {"file_path": "/a.md", "content": "a"}),
]
todos = [{"id": "1", "content": "Write.", "status": "pending"}]
plan = sa.ToolCall("c0", "write_todos", {"merge": False, "todos": todos})
model = sa.ScriptedModel([plan, calls[0], calls[1], "Done."])
agent = sa.Agent(model, tools=[publish], interrupt_on={"publish": True})
session = sa.Session(agent, id="news", headless=[sa.Approve()])
%agent use session
'''
KINDS = [kind for kind in COLUMNS if kind not in ("map", "tasks", "artifacts")]  # of a session
OURS = {
    **{kind: f"%agent frame {kind}" for kind in KINDS},
    "by name": "calls = session.to_frame('tool_calls')[['name', 'duration']]; calls",
    "sorted": "calls.sort_values('name').set_index('name')",
    "one column": "session.to_frame('events').duration",
    "means": "calls.groupby('name', observed=True).duration.mean()",
    "of two": "sa.to_frame('decisions', [session, session])",
    "map": "sa.Agent(sa.ScriptedModel(['Good.', 'Bad.'])).map(['one', 'two'])",
}
YOURS = {"film": "pd.DataFrame({'film': ['Heat'], 'duration': [170.5]})"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Notebooks:
    made = Notebooks(tmp_path_factory.mktemp("notebooks"))
    made.write("frames.ipynb", [SETUP, "%%agent\nGo on.", *OURS.values(), *YOURS.values()])
    done = made.run("frames.ipynb", "--record")
    assert done.returncode == 0, done.stderr
    return made


def outputs(notebooks: Notebooks) -> dict[str, Any]:
    saved = nbformat.read(notebooks.folder / "frames.ipynb", as_version=4)
    shown = [cell.outputs[-1]["data"] for cell in saved.cells[2:]]
    return dict(zip([*OURS, *YOURS], shown, strict=True))


@pytest.mark.soak
def test_a_notebook_with_every_frame_passes_each_time(recorded: Notebooks) -> None:
    for kind, data in outputs(recorded).items():
        if kind in COLUMNS:
            assert not data["text/plain"].startswith("Empty"), "a frame of no rows shows nothing"
    for _ in range(2):
        done = recorded.run("frames.ipynb")
        assert done.returncode == 0, done.stdout


def test_a_time_of_whole_milliseconds_is_shorter_and_no_failure(recorded: Notebooks) -> None:
    notebook = nbformat.read(recorded.folder / "frames.ipynb", as_version=4)
    data = notebook.cells[2 + list(outputs(recorded)).index("files")].outputs[-1]["data"]
    count = 0
    for mime in ("text/html", "text/plain"):
        data[mime], found = re.subn(r"(:\d\d\.\d{3})\d{3}\+", r"\1+", data[mime])
        count += found
    data["text/plain"] = data["text/plain"].replace("   modified", "modified")
    assert count == 2, data
    nbformat.write(notebook, recorded.folder / "milliseconds.ipynb")
    done = recorded.run("milliseconds.ipynb")
    assert done.returncode == 0, done.stdout


CHANGES = [  # of what was saved: the cell, what it showed, what it might have shown
    [
        ("tool_calls", "<td>completed</td>", "<td>failed</td>"),
        ("decisions", "<td>approve</td>", "<td>reject</td>"),
        ("by name", "<td>publish</td>", "<td>destroy</td>"),
        ("one column", r"\bNaN\n", "0.000001\n"),
        ("means", "publish ", "destroy "),
        ("map", "<td>Bad.</td>", "<td>Good.</td>"),
        ("film", "<td>170.5</td>", "<td>170.6</td>"),
    ],
    [
        ("decisions", r"<td>\d\.\d+</td>", "<td>NaN</td>"),  # nobody waited
        ("by name", "<th>duration</th>", "<th>time</th>"),
    ],
]


def test_whatever_else_has_changed_is_a_failure(recorded: Notebooks) -> None:
    places = {kind: place for place, kind in enumerate(outputs(recorded), 2)}
    wanted = []
    for number, changes in enumerate(CHANGES):
        name = f"changed-{number}.ipynb"
        notebook = nbformat.read(recorded.folder / "frames.ipynb", as_version=4)
        for kind, before, after in changes:
            data = notebook.cells[places[kind]].outputs[-1]["data"]
            mime = "text/html" if "text/html" in data else "text/plain"
            data[mime], count = re.subn(before, after, data[mime], count=1)
            assert count == 1, (kind, before, data[mime])
            wanted.append((name, str(places[kind])))
        nbformat.write(notebook, recorded.folder / name)
    done = recorded.run("--short", *(f"changed-{number}.ipynb" for number in range(len(CHANGES))))
    failed = re.findall(r"FAILED (\S+)::Cell (\d+)", done.stdout)
    assert sorted(failed) == sorted(wanted), done.stdout


def html(frame: Any) -> str:
    output = {"data": {"text/html": frame.to_html(), "text/plain": repr(frame)}}
    return str(without_measured(output, ["duration"])["data"]["text/html"])


def test_columns_are_found_below_names_of_the_index_and_levels_of_the_columns() -> None:
    frame = pd.DataFrame(
        {"of": ["a", "a", "b"], "name": ["x", "y", "x"], "duration": [0.5, 1e-7, float("nan")]}
    )
    for shaped, count in [
        (frame, 2),
        (frame.set_index(["of", "name"]), 2),  # rows with one cell of the index, and with two
        (frame.pivot_table(values=["duration"], index="of", columns="name"), 2),
        (frame.rename(columns={"duration": "seconds"}), 0),
        (frame.assign(duration=["0.5 km", "fast", "1 2"]), 0),
    ]:
        assert html(shaped).count("<td>MEASURED</td>") == count, html(shaped)


def test_a_frame_says_which_of_its_columns_are_measured() -> None:
    marks = {kind: frame_of(kind, ()).attrs.get(MEASURED) for kind in KINDS}
    assert {kind: names for kind, names in marks.items() if names} == {
        "tool_calls": ["duration"],
        "events": ["duration"],
        "decisions": ["waited"],
    }
