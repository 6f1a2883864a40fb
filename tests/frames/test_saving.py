from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.frames import Conversation, frame_of
from sagents_nb.frames.rows import MAKERS
from tests.talking import call, session_of

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

EVIL = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", " =1+1", "＝1", "'=1", "''=1", "'tis", "ok"]


@pytest.fixture(scope="module")
def session() -> sa.Session:
    session = session_of(
        [call("look", "c1", at="sky")],
        sa.Message.assistant("done", usage=sa.Usage(10, 5, cost_usd=0.1 + 0.2)),
        tools=[look],
        interrupt_on={"look": True},
    )
    session.send("=go").result()
    session.resume(sa.Approve()).result()
    session.files.write("/a.md", "hello")
    return session


def look(at: str) -> Any:
    return sa.ToolOutput("saw", update={"todos": [sa.Todo("=a"), sa.Todo("b", "completed")]})


@pytest.mark.parametrize("ending", ["parquet", "json"])
@pytest.mark.parametrize("kind", MAKERS)
def test_parquet_and_json_give_back_the_same_frame(
    session: sa.Session, kind: str, ending: str, tmp_path: Path
) -> None:
    for frame in (session.to_frame(kind), frame_of(kind, [])):
        path = sa.save_frame(frame, tmp_path / f"frame.{ending}")
        if ending == "json" and not len(frame):
            continue  # an empty list has no columns
        pd.testing.assert_frame_equal(sa.load_frame(kind, path), frame)


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
@pytest.mark.parametrize("kind", MAKERS)
def test_csv_and_excel_give_back_the_same_values(
    session: sa.Session, kind: str, ending: str, tmp_path: Path
) -> None:
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    frame = session.to_frame(kind)
    found = sa.load_frame(kind, sa.save_frame(frame, tmp_path / f"frame.{ending}"))
    texts = [name for name in frame.columns if frame[name].dtype == "string"]
    frame[texts] = frame[texts].replace("", pd.NA)  # which a cell cannot tell from missing
    pd.testing.assert_frame_equal(found, frame)


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_no_cell_is_a_formula_and_the_texts_come_back(ending: str, tmp_path: Path) -> None:
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    state = sa.State(messages=[sa.Message(text, (sa.TextPart(text),)) for text in EVIL])
    frame = frame_of("messages", [Conversation("=s", state)])
    path = sa.save_frame(frame.assign(**{"=column": 1}), tmp_path / f"a.{ending}")
    for cell in cells(path):
        assert not cell.lstrip(" '").startswith(tuple("=+-@\t\r\n＝")) or cell.startswith("'")
    found = sa.load_frame("messages", path)
    texts = [text.replace("\r", "\n") for text in EVIL] if ending == "xlsx" else EVIL
    assert list(found.text) == texts
    assert list(found.role) == texts
    assert "=column" in found.columns


def cells(path: Path) -> list[str]:
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [cell for row in csv.reader(file) for cell in row]
    import openpyxl

    rows = openpyxl.load_workbook(path).active.iter_rows()
    found = [cell for row in rows for cell in row if cell.value is not None]
    assert all(cell.data_type != "f" for cell in found)
    return [str(cell.value) for cell in found]


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(st.text(st.characters(exclude_categories=[]), min_size=1), min_size=1))
@pytest.mark.parametrize("ending", ["parquet", "json", "csv"])
def test_any_text_comes_back(texts: list[str], ending: str, tmp_path: Path) -> None:
    state = sa.State(messages=[sa.Message.user(text) for text in texts])
    frame = frame_of("messages", [Conversation("s", state)])
    found = sa.load_frame("messages", sa.save_frame(frame, tmp_path / f"a.{ending}"))
    expected = frame.text
    if ending == "csv":
        expected = expected.str.replace("[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", regex=True)
    assert list(found.text) == list(expected)


def test_another_ending_is_refused_and_a_file_of_another_kind_too(tmp_path: Path) -> None:
    frame = frame_of("todos", [Conversation("s", sa.State(todos=[sa.Todo("a")]))])
    with pytest.raises(sa.ConfigurationError, match=r"\.parquet.*'\.pickle'"):
        sa.save_frame(frame, tmp_path / "a.pickle")
    path = sa.save_frame(frame, tmp_path / "a.json")
    with pytest.raises(sa.ConfigurationError, match="has no column"):
        sa.load_frame("usage", path)
