from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.frames import COLUMNS, Conversation, frame_of
from sagents_nb.frames.rows import MAKERS
from tests.batch.models import replying
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
        pd.testing.assert_frame_equal(sa.load_frame(kind, path), frame)


@dataclass
class Verdict:
    stars: int
    mood: Literal["good", "bad"]
    because: str
    words: list[str]
    sure: bool = True
    score: float | None = None
    seen: dict[str, int] = field(default_factory=dict)
    mixed: int | str = 1
    large: int = 10**30


def verdicts(prompts: list[str | None]) -> Any:
    """A map frame with a structured output; the first answer has a list, the second differs."""

    def reply(text: str) -> sa.Message:
        odd = {"mixed": "one", "score": 0.5, "large": 1, "seen": {"a": 1}} if text == "b" else {}
        arguments = {"stars": 5, "mood": "bad", "because": "=[1]", "words": [text, "é"], **odd}
        return sa.Message.assistant("", [sa.ToolCall("c1", "submit", arguments)])

    return replying(reply).map(prompts, output=Verdict, progress=False)


@pytest.mark.parametrize("prompts", [["a", "b", None], ["a"], [None], []], ids=len)
@pytest.mark.parametrize("ending", ["parquet", "json"])
def test_the_fields_of_an_output_come_back_where_and_as_they_were(
    prompts: list[str | None], ending: str, tmp_path: Path
) -> None:
    frame = verdicts(prompts)
    found = sa.load_frame("map", sa.save_frame(frame, tmp_path / f"frame.{ending}"))
    pd.testing.assert_frame_equal(found, frame)
    if prompts[:1] == ["a"]:
        assert found.words[0] == ["a", "é"]
        assert found.large[0] == 10**30


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_the_fields_of_an_output_are_text_in_csv_and_excel(ending: str, tmp_path: Path) -> None:
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    frame = verdicts(["a", None])
    found = sa.load_frame("map", sa.save_frame(frame, tmp_path / f"frame.{ending}"))
    assert list(found.columns) == list(frame.columns)
    assert {str(found[name].dtype) for name in Verdict.__dataclass_fields__} == {"string"}
    assert (found.words[0], found.because[0], found.stars[0]) == ('["a", "é"]', "=[1]", "5")


OWN = {
    "whole": pd.Series([1, 2]),
    "none": pd.Series([None, None], dtype="string"),
    "objects": pd.Series(["[1]", [1.5, {"a": None}]], dtype=object),
    "texts": pd.Series(["[1]", None], dtype=object),
    "days": pd.Series(
        pd.to_datetime(["2024-10-27", "2024-10-28T01:00:00.5"], format="ISO8601")
    ).dt.as_unit("us"),
    "oslo": pd.Series(pd.date_range("2024-10-27 00:30", periods=2, freq="2h", tz="Europe/Oslo")),
    "waits": pd.Series(pd.to_timedelta([1, None], unit="s")),
    "sizes": pd.Series(pd.Categorical(["L", None], ["S", "M", "L"], ordered=True)),
    "grades": pd.Series(pd.Categorical([2, 1], [2, 1])),
    "starts": pd.Series(pd.Categorical(pd.to_datetime(["2024-10-27", None]))),
    "small": pd.Series([0.1, math.nan], dtype="float32"),
}


def test_what_json_has_no_word_for_is_text_there(tmp_path: Path) -> None:
    frame = frame_of("todos", [Conversation("s", sa.State(todos=[sa.Todo("a")]))])
    frame["bins"] = pd.cut([3], [0, 5])
    frame["exact"] = pd.Series([[Decimal("0.1")]], dtype=object)
    found = sa.load_frame("todos", sa.save_frame(frame, tmp_path / "a.json"))
    assert (found.bins[0], found.exact[0]) == ("(0, 5]", ["0.1"])


@pytest.mark.parametrize("ending", ["parquet", "json"])
@pytest.mark.parametrize("name", OWN)
def test_columns_of_ones_own_come_back_with_their_dtype(
    name: str, ending: str, tmp_path: Path
) -> None:
    todos = [Conversation("s", sa.State(todos=[sa.Todo("a"), sa.Todo("b")]))]
    frame = frame_of("todos", todos)
    frame.insert(1, name, OWN[name])
    for part in (frame, frame[:0]):
        found = sa.load_frame("todos", sa.save_frame(part, tmp_path / f"frame.{ending}"))
        assert list(found.columns) == list(part.columns)
        assert found[name].dtype == part[name].dtype
        assert found[name].astype(object).where(found[name].notna(), None).tolist() == (
            part[name].astype(object).where(part[name].notna(), None).tolist()
        )


def test_json_is_a_table_with_its_schema_for_others_too(tmp_path: Path) -> None:
    frame = verdicts(["a", "b"]).drop(columns="large")  # than pandas reads
    path = sa.save_frame(frame, tmp_path / "a.json")
    table = json.loads(path.read_text())
    assert [each["name"] for each in table["schema"]["fields"]] == list(frame.columns)
    assert table["data"][0]["words"] == ["a", "é"]
    read = pd.read_json(path, orient="table", precise_float=True)
    assert read.stars.dtype == "Int64"
    assert list(read.mood.cat.categories) == ["good", "bad"]


def test_what_json_has_no_number_for_is_missing_also_in_lists(tmp_path: Path) -> None:
    frame = frame_of("todos", [Conversation("s", sa.State(todos=[sa.Todo("a")]))])
    frame["own"] = pd.Series([[math.inf, {"a": math.nan}]], dtype=object)
    path = sa.save_frame(frame, tmp_path / "a.json")
    assert sa.load_frame("todos", path).own[0] == [None, {"a": None}]


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_list_of_rows_as_it_was_written_before_is_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[]\n")
    empty = sa.load_frame(kind, path)
    assert {name: str(empty[name].dtype) for name in empty} == {
        name: column.dtype for name, column in COLUMNS[kind].items()
    }
    row = {"session_id": "s", "stars": 5, "id": "t", "content": "a", "words": '["x"]'}
    path.write_text(json.dumps([{**row, "status": "pending"}]))
    if kind == "todos":
        found = sa.load_frame(kind, path)
        assert list(found.columns) == ["session_id", "stars", "id", "content", "words", "status"]
        assert (found.stars[0], found.words[0], found.status[0]) == (5, '["x"]', "pending")


@pytest.mark.parametrize("text", ["", "[1]", "7", '{"a": 1}', '{"data": []}', '{"schema": 1'])
def test_a_file_that_holds_no_frame_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(sa.ConfigurationError, match="holds no frame"):
        sa.load_frame("todos", path)


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


@pytest.mark.parametrize("ending", ["parquet", "json", "csv", "xlsx"])
def test_where_the_disk_is_full_the_file_is_what_it_was(
    ending: str, tmp_path: Path, small_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    path = sa.save_frame(pd.DataFrame({"text": ["old"]}), tmp_path / f"a.{ending}")
    before = path.read_bytes()
    large = pd.DataFrame({"text": [hashlib.sha512(b"%d" % n).hexdigest() for n in range(900)]})
    said = rf"The frame cannot be written to '.*a\.{ending}' \(.+\); free some space there first\."
    with small_disk(), pytest.raises(sa.ConfigurationError, match=said):
        sa.save_frame(large, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_folder_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(sa.ConfigurationError, match="name a file in a folder that exists"):
        sa.save_frame(pd.DataFrame({"text": ["a"]}), tmp_path / "no" / "a.csv")


def test_another_ending_is_refused_and_a_file_of_another_kind_too(tmp_path: Path) -> None:
    frame = frame_of("todos", [Conversation("s", sa.State(todos=[sa.Todo("a")]))])
    with pytest.raises(sa.ConfigurationError, match=r"\.parquet.*'\.pickle'"):
        sa.save_frame(frame, tmp_path / "a.pickle")
    path = sa.save_frame(frame, tmp_path / "a.json")
    with pytest.raises(sa.ConfigurationError, match="has no column"):
        sa.load_frame("usage", path)


def test_the_frame_of_a_map_that_was_saved_before_it_told_its_prompts_is_read(
    tmp_path: Path,
) -> None:
    answers = sa.Agent(sa.ScriptedModel(["one", "two"])).map(["1", "2"], progress=False)
    for ending in (".json", ".csv", ".parquet", ".xlsx"):
        path = sa.save_frame(answers.drop(columns="prompt"), tmp_path / f"old{ending}")
        read = sa.load_frame("map", path)
        assert list(read.columns) == list(answers.columns)
        assert read["prompt"].isna().all()
        assert read["text"].tolist() == ["one", "two"]
