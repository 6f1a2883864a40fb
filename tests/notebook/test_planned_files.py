"""A file of the planner holds what was asked, in the format of its path, or is not written."""

from __future__ import annotations

import io
import json
from typing import Any

import pandas as pd
import pytest

from tests.notebook.test_first_questions import ask as ask_about
from tests.notebook.test_words_of_questions import FRAMES, ORDERS

pytestmark = pytest.mark.usefixtures("shell")


def ask(*questions: Any) -> Any:
    return ask_about(*questions, frames=FRAMES)


# Formats


def test_a_csv_holds_rows() -> None:
    answer = ask("Count the orders by product in {orders} and save the result as /out/counts.csv")
    rows = pd.read_csv(io.StringIO(answer.files["/out/counts.csv"]))
    assert dict(zip(rows["product"], rows["count"], strict=True)) == dict(
        ORDERS["product"].value_counts()
    )
    assert answer.todos["Save the result as /out/counts.csv"] == "completed"


def test_a_json_file_holds_records_and_a_tsv_tabs() -> None:
    question = "Save the average salary by dept of {staff} to "
    assert json.loads(ask(question + "/s.json").files["/s.json"]) == [
        {"dept": "HR", "salary": 5900.0},
        {"dept": "IT", "salary": 5650.0},
        {"dept": "Ops", "salary": 3900.0},
    ]
    assert ask(question + "/s.tsv").files["/s.tsv"].startswith("dept\tsalary\nHR\t5900.0\n")


def test_a_small_frame_is_written_whole_and_a_large_one_not_in_part() -> None:
    written = ask("export {weather} to /w.csv").files["/w.csv"]
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(written)), FRAMES["weather"])
    answer = ask("Save {orders} as /o.csv")
    assert answer.files == {}
    assert "there are more rows than I see" in answer.text
    assert answer.todos["Save orders as /o.csv"] == "cancelled"


def test_a_python_file_holds_the_code_that_ran() -> None:
    answer = ask("What is the median Age by arm in {patients}? Save the code as /c.py")
    assert answer.files["/c.py"] == answer.approved[0] + "\n"


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("Write a report about {staff} to /r.html", "no .html"),
        ("plot revenue by region in {orders} and save it as /x.csv", "no table"),
        ("How many rows has {staff}? Save it to /a.md and to /b.md", "one file at a time"),
        ("write a haiku about {staff}", "I write no texts of my own"),
        ("Write a poem to /poem.md", "I write no texts of my own"),
        ("Write a letter to my boss about {orders} to /l.md", "I write no texts of my own"),
        ("Save the recipe for pancakes to /p.md", "I write only what I found"),
        ("Save it to /it.md", "I have found nothing yet"),
        ("average blood pressure in {staff}, then save it to /b.md", "there is no answer to"),
    ],
)
def test_what_is_not_there_to_be_written_is_not_written(question: str, why: str) -> None:
    answer = ask(question)
    assert answer.files == {}
    assert why in answer.text
    assert "completed" not in [
        s for t, s in answer.todos.items() if t.startswith(("Save", "Write"))
    ]


# What is in them


def test_a_summary_of_a_frame_is_one() -> None:
    answer = ask("Please save a summary of {weather} to /w.md")
    assert answer.files["/w.md"].startswith("# Report on weather\n\n`weather` has 6 rows")


def test_each_file_holds_what_its_own_sentence_asks_for() -> None:
    answer = ask(
        "What is the average revenue by region in {orders}? Then save it to /region.md and "
        "summarise staff in /staff.md"
    )
    assert "Average `revenue` by `region`" in answer.files["/region.md"]
    assert "`staff` has 5 rows" in answer.files["/staff.md"]
    assert "revenue" not in answer.files["/staff.md"]
    assert set(answer.todos.values()) == {"completed"}
    answer = ask(
        "total salary in {staff}, save it to /a.md, then total revenue in {orders} and save that "
        "to /b.md"
    )
    assert "The total `salary` is 27,000." in answer.files["/a.md"]
    assert "The total `revenue` is" in answer.files["/b.md"]


def test_a_later_file_holds_what_it_asks_for_and_not_the_earlier_answer() -> None:
    answer = ask(
        "What is the mean salary by dept in {staff}? Then save it to /a/salary.md",
        "Now save the number of staff by dept to /a/salary.md",
    )
    assert "Number of rows by `dept`: IT (2), HR (2) and Ops (1)." in answer.files["/a/salary.md"]
    assert "5,900" not in answer.files["/a/salary.md"]


def test_the_last_answer_can_be_written_afterwards() -> None:
    first = "average salary by dept in {staff}"
    answer = ask(first, "save that to /a.md", "save it as /a.csv")
    assert answer.files["/a.md"] == (
        "# Report\n\nAverage `salary` by `dept`: HR (5,900), IT (5,650) and Ops (3,900).\n"
    )
    assert answer.files["/a.csv"] == "dept,salary\nHR,5900.0\nIT,5650.0\nOps,3900.0\n"


def test_a_text_that_is_said_is_written_without_its_path() -> None:
    answer = ask("Write a note that says hello to /n1.md. Save a note saying all is well as /n2.md")
    assert answer.files == {"/n1.md": "hello", "/n2.md": "all is well"}


def test_to_do_items_are_plain_text() -> None:
    answer = ask("Show me {staff}, then save a short report of it to /r.md.")
    assert list(answer.todos) == ["Show me staff", "Save a short report of it to /r.md"]


def test_files_that_were_read_are_not_taken_for_frames() -> None:
    answer = ask("Open the files in /notes and summarise them")
    assert "inspect_variables" not in answer.calls
    assert "I cannot do “summarise them”" in answer.text
    assert answer.todos["Summarise them"] == "cancelled"


# Nothing that was not asked for


@pytest.mark.parametrize("asked", ["Save that to /x.md", "Save that as a table", "Write a report"])
def test_a_refusal_is_nothing_to_write(asked: str) -> None:
    answer = ask("Rank the moons in {staff}", asked)
    assert answer.files == {}
    assert "I cannot do" in answer.text


def test_what_was_found_is_written_without_what_was_refused() -> None:
    answer = ask("What is the total salary in {staff}? Who owns the moon?", "Save it to /a.md")
    assert answer.files["/a.md"] == "# Report\n\nThe total `salary` is 27,000.\n"


def test_a_table_is_written_as_one() -> None:
    answer = ask("average salary by dept in {staff}", "Save that as a table")
    assert answer.files == {"/result.csv": "dept,salary\nHR,5900.0\nIT,5650.0\nOps,3900.0\n"}
    assert "no .xlsx" in ask("total salary in {staff}", "Save it as an Excel file").text


def test_a_report_of_a_list_is_written_once_and_where_it_is_said() -> None:
    answer = ask(
        "Make a to-do list: find the total salary in {staff}, write a report. Then write /sum.md"
    )
    assert list(answer.files) == ["/sum.md"]
    assert "The total `salary` is 27,000." in answer.files["/sum.md"]
    answer = ask("Plan: 1. count the rows of {staff} 2. write a report to /r.md")
    assert list(answer.todos) == ["Count the rows of staff", "Write a report to /r.md"]


def test_a_list_whose_step_has_no_answer_writes_nothing() -> None:
    answer = ask("Make a to-do list: find the largest, write a report. Then write /s.md")
    assert answer.files == {}
    assert "there is no answer to “find the largest”" in answer.text


# Files that are shown


@pytest.mark.parametrize(
    "asked",
    [
        "show me /report.md",
        "Show `/report.md`",
        "What does /report.md say?",
        "Let me see /report.md",
        "what is in /report.md?",
    ],
)
def test_a_file_is_read_where_it_is_to_be_shown(asked: str) -> None:
    answer = ask('Write "hello" to /report.md', asked)
    assert answer.calls == ["write_file", "read_file"]
    assert answer.text == "/report.md says:\n\nhello"


def test_a_file_that_is_not_there_is_named() -> None:
    answer = ask("show me /none.md")
    assert "File not found: /none.md" in answer.text
    answer = ask('Write "hello" to /a.md', "show /a.md and /b.md")
    assert "hello" in answer.text
    assert "File not found: /b.md" in answer.text
