from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from sagents_nb.agent import Agent
from sagents_nb.errors import ModelError
from sagents_nb.interrupts import Approve, Reject
from sagents_nb.loop.open_calls import lost_result
from sagents_nb.messages import (
    ImagePart,
    Message,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
)
from sagents_nb.middleware import FileSystem, TodoList
from sagents_nb.models.base import ModelRequest
from sagents_nb.models.demo import DemoModel
from sagents_nb.models.demo.model import LOST
from sagents_nb.notebook import NotebookTools
from sagents_nb.session import Session
from sagents_nb.state import State
from sagents_nb.tools import Tool, tool

PENGUINS = [
    ("Adelie", "Torgersen", 3750, 181),
    ("Adelie", "Biscoe", 3600, 190),
    ("Adelie", "Dream", 3250, 178),
    ("Chinstrap", "Dream", 3500, 192),
    ("Chinstrap", "Dream", 3900, 196),
    ("Gentoo", "Biscoe", 4500, 211),
    ("Gentoo", "Biscoe", 5700, 230),
]
COLUMNS = ("species", "island", "body_mass_g", "flipper_length_mm")


@tool
def describe(column: str, by: str | None = None) -> str:
    """Describe a numeric column of the penguins: count and mean, as JSON records.

    Args:
        column: body_mass_g or flipper_length_mm
        by: a column to group by, such as species or island
    """
    if column not in COLUMNS:
        raise ValueError(f"There is no column {column!r}; the columns are {', '.join(COLUMNS)}.")
    groups: dict[str, list[int]] = defaultdict(list)
    for row in PENGUINS:
        groups[str(row[COLUMNS.index(by)]) if by else "all"].append(int(row[COLUMNS.index(column)]))
    records = [
        {**({by: name} if by else {}), "count": len(v), "mean": sum(v) / len(v)}
        for name, v in sorted(groups.items())
    ]
    return json.dumps(records)


@tool
def count_rows(by: str) -> str:
    """Count the rows of the penguins per value of a column, as JSON records."""
    counts = Counter(row[COLUMNS.index(by)] for row in PENGUINS)
    return json.dumps([{by: name, "count": n} for name, n in sorted(counts.items())])


@tool
def get_weather(city: str, days: Annotated[int, Meta(ge=1, le=14)] = 7) -> str:
    """Forecast for a city."""
    return json.dumps({"city": city, "days": days, "degrees": 4.5})


@tool
def calculate(expression: str) -> str:
    """Evaluate an arithmetic expression."""
    return "391"


@tool
def task(instructions: str, subagent_type: Literal["general-purpose", "counter"]) -> str:
    """Hand a task to a sub-agent, who works on its own and reports back."""
    return "There are three islands."


@tool
def set_mode(
    mode: Literal["fast", "safe"], level: Annotated[int, Meta(ge=1, le=3)], tags: list[str]
) -> str:
    """Change the mode of the machine."""
    return "ok"


TODOS = list(TodoList().tools())
FILES = list(FileSystem().tools())
NOTEBOOK = [*TODOS, *FILES, *NotebookTools().tools()]
ALL = [*TODOS, *FILES, describe, count_rows, get_weather, calculate, task, set_mode]

TOUR = (
    "Which species is the heaviest? Make a plan, compare body_mass_g by species, and save a "
    "short report to /report.md"
)


def ask(messages: Sequence[Message], tools: Sequence[Any] = ()) -> Message:
    async def last() -> Message:
        items = [item async for item in DemoModel().stream(request_of(messages, tools))]
        assert isinstance(items[-1], Message)
        assert not items[-1].text.startswith(LOST)
        return items[-1]

    return asyncio.run(last())


def request_of(messages: Sequence[Message], tools: Sequence[Any] = ()) -> ModelRequest:
    return ModelRequest(tuple(messages), "You help.", tuple(t.spec for t in tools), {}, "demo")


Outcome = Callable[[ToolCall], ToolResult]


def converse(
    prompts: Sequence[str], tools: Sequence[Tool], outcome: Outcome, limit: int = 30
) -> list[Message]:
    """A conversation where ``outcome`` answers the calls."""
    known = {t.name: t for t in tools}
    messages: list[Message] = []
    for prompt in prompts:
        messages.append(Message.user(prompt))
        for _ in range(limit):
            answer = ask(messages, tools)
            messages.append(answer)
            if not answer.tool_calls:
                break
            for call in answer.tool_calls:
                known[call.name].arguments.check(call.arguments)
            messages.append(Message.tool([outcome(call) for call in answer.tool_calls]))
        else:
            pytest.fail(f"still calling tools after {limit} turns of {prompt!r}")
    return messages


def run(call: ToolCall) -> ToolResult:
    """What the plain tools of this file return."""
    found = next(t for t in ALL if t.name == call.name)
    try:
        return ToolResult(call.id, call.name, str(found(**call.arguments)))
    except Exception as error:
        return ToolResult(call.id, call.name, f"{type(error).__name__}: {error}", is_error=True)


def calls_of(messages: Sequence[Message]) -> list[tuple[str, dict[str, Any]]]:
    return [(c.name, c.arguments) for m in messages for c in m.tool_calls]


# The tour


def agent(**options: Any) -> Agent:
    return Agent(model=DemoModel(), tools=[describe, count_rows], **options)


def test_the_tour_plans_compares_and_writes_a_report() -> None:
    result = agent().run(TOUR)
    calls = calls_of(result.messages)
    assert [name for name, _ in calls] == [
        "write_todos",
        "describe",
        "write_todos",
        "write_file",
        "write_todos",
    ]
    assert [t["status"] for t in calls[0][1]["todos"]] == ["in_progress", "pending"]
    assert calls[1][1] == {"column": "body_mass_g", "by": "species"}
    written = calls[3][1]
    assert written["file_path"] == "/report.md"
    assert written["content"] == (
        "# Which species is the heaviest?\n\n"
        "The heaviest species is Gentoo: its mean body_mass_g is 5,100, against Chinstrap 3,700 "
        "and Adelie 3,533.\n\n"
        "## Compare body_mass_g by species\n\n"
        "| species | count | mean |\n|---|---:|---:|\n"
        "| Adelie | 3 | 3,533 |\n| Chinstrap | 2 | 3,700 |\n| Gentoo | 2 | 5,100 |\n\n"
        "Source: `describe(column='body_mass_g', by='species')`\n"
    )
    assert "The heaviest species is Gentoo" in result.text
    assert "/report.md" in result.text
    assert list(result.state.todos) == []


def test_a_follow_up_question_uses_what_was_asked_before() -> None:
    first = agent().run(TOUR)
    second = agent().run("and by island?", state=first.state)
    assert calls_of(second.messages) == [("describe", {"column": "body_mass_g", "by": "island"})]
    assert second.text.startswith("The heaviest island is Biscoe: its mean body_mass_g is 4,600")
    third = agent().run("What about flipper_length_mm?", state=second.state)
    assert calls_of(third.messages) == [
        ("describe", {"column": "flipper_length_mm", "by": "island"})
    ]
    assert "Biscoe has the highest mean flipper_length_mm: 210.3" in third.text


def test_what_was_answered_before_may_have_changed_and_is_asked_again() -> None:
    first = agent().run("Compare body_mass_g by species")
    second = agent().run("And which is the lightest?", state=first.state)
    assert calls_of(second.messages) == calls_of(first.messages)
    assert second.text.startswith("The lightest species is Adelie: its mean body_mass_g is 3,533")


def test_a_rejection_is_acknowledged_and_the_rest_goes_on() -> None:
    gated = agent(interrupt_on={"write_file": True})
    result = gated.run("Compare body_mass_g by species, save a report and count the rows by island")
    assert result.status == "interrupted"
    result = gated.resume(result, Reject(message="not now"))
    assert result.status == "completed"
    assert "You rejected `write_file` (“not now”), so I left that out." in result.text
    assert "Biscoe has the most: 3" in result.text
    again = gated.run("save it to /r.md", state=result.state)
    assert gated.resume(again, Approve()).text == "I wrote /r.md (“Body_mass_g by species”)."


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("", "Nobody was there to decide."),
        ("The policy for unattended runs denied it.",) * 2,
    ],
)
def test_what_nobody_was_there_to_decide_is_not_said_to_be_done_nor_rejected_by_a_person(
    message: str, why: str
) -> None:
    gated = agent(interrupt_on={"write_file": True})
    waiting = gated.run("Count the rows by island, and save the counts to /a.md")
    result = gated.resume(waiting, Reject(message, unattended=True))
    assert result.status == "completed"
    assert f"`write_file` was not run, so I left that out. {why}" in result.text
    assert "I wrote" not in result.text
    assert "You rejected" not in result.text
    assert [n for n, _ in calls_of(result.state.messages)].count("write_file") == 1


@pytest.mark.parametrize("marked", [False, True])
def test_whether_a_call_ran_is_told_by_the_mark_of_its_result_and_not_by_its_words(
    marked: bool,
) -> None:
    def outcome(call: ToolCall) -> ToolResult:
        text = "Wrote it." if marked else "A person rejected an offer on page 3."
        metadata = {"not_run": "rejected"} if marked else {}
        return ToolResult(call.id, call.name, text, metadata=metadata)

    messages = converse(['Write "hello" to /a.md'], FILES, outcome)
    assert ("I wrote /a.md" in messages[-1].text) is not marked


def test_files_are_written_edited_read_moved_searched_and_deleted() -> None:
    helper = Agent(model=DemoModel())
    result = helper.run(
        'Write "hello world" to /a.txt, then replace "world" with "moon" in /a.txt, '
        "move /a.txt to /b/c.txt and show me /b/c.txt"
    )
    assert result.text.endswith("/b/c.txt says:\n\nhello moon")
    for prompt, said in (
        ('add "and stars" to /b/c.txt', "I wrote /b/c.txt."),
        ("search for stars in /b/c.txt", "2\tand stars"),
        ("list the files", "There is 1 file: /b/c.txt."),
        ("delete /b/c.txt", "Deleted /b/c.txt."),
        ("read /b/c.txt", "`read_file` failed: File not found: /b/c.txt"),
    ):
        result = helper.run(prompt, state=result.state)
        assert said in result.text, prompt


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ('In /a.md replace "two" with "2"', "I replaced “two” with “2” in /a.md. It reads now:"),
        ('Replace line 2 of /a.md with "zwei"', "I replaced 1 line (2–2) of /a.md. It reads now:"),
        (
            'Replace "two" with "2" in /long.md',
            "I replaced “two” with “2” in /long.md. Lines 6–12 of 30 read now:",
        ),
    ],
)
def test_an_edit_is_told_in_a_sentence_with_the_lines_as_they_are(prompt: str, said: str) -> None:
    helper = Agent(model=DemoModel())
    lines = [str(n) for n in range(1, 31)]
    helper.files.write("/a.md", "one\ntwo\nthree")
    helper.files.write("/long.md", "\n".join([*lines[:8], "two", *lines[9:]]))
    text = helper.run(prompt).text
    sentence, _, shown = text.partition("\n\n")
    assert sentence == said
    assert shown.startswith("```text\n")
    assert "\t" not in shown


@pytest.mark.parametrize(
    "prompt",
    [
        "Read the files in notes",
        "read all files in the notes folder.",
        "Show me the files of /notes.",
        "Please open everything in the folder notes",
    ],
)
def test_the_files_of_a_folder_are_listed_and_read(prompt: str) -> None:
    helper = Agent(model=DemoModel(), middleware=[NotebookTools()])
    files = {"/notes/a.md": "Alpha.", "/notes/deep/b.txt": "Beta.", "/other.md": "Gamma."}
    for path, text in files.items():
        helper.files.write(path, text)
    result = helper.run(prompt)
    assert calls_of(result.messages) == [
        ("ls", {"pattern": "/notes/**"}),
        ("read_file", {"file_path": "/notes/a.md"}),
        ("read_file", {"file_path": "/notes/deep/b.txt"}),
    ]
    assert result.text == "/notes/a.md says:\n\nAlpha.\n\n/notes/deep/b.txt says:\n\nBeta."


def test_of_a_folder_of_many_files_the_first_are_read_and_all_named() -> None:
    helper = Agent(model=DemoModel())
    for number in range(20):
        helper.files.write(f"/many/{number:02}.md", f"Note {number}.")
    result = helper.run("Read the files in many")
    names = [name for name, _ in calls_of(result.messages)]
    assert names == ["ls", *["read_file"] * 8]
    assert result.text.startswith("There are 20 files: /many/00.md")
    assert helper.run("Read the files in nowhere").text == "`No files match '/nowhere/**'.`"


def test_to_read_the_notes_writes_none_and_reads_no_cells() -> None:
    result = Agent(model=DemoModel(), middleware=[NotebookTools()]).run("Read the notes.")
    assert calls_of(result.messages) == []


def test_a_report_in_the_way_of_another_file_goes_beside_it() -> None:
    helper = agent()
    result = helper.run('Write "mine" to /report.md')
    result = helper.run("count the rows by island and save a report", state=result.state)
    assert "I wrote /report-2.md" in result.text  # nobody said that the first was to go
    again = "count the rows by species and save a report to /report.md"
    result = helper.run(again, state=result.state)
    assert "I replaced /report.md" in result.text  # which the model wrote itself
    foreign = [
        Message.user("count the rows by island and save a report to /x.md"),
    ]

    def occupied(call: ToolCall) -> ToolResult:
        if call.name == "write_file" and call.arguments["file_path"] == "/x.md":
            return ToolResult(call.id, call.name, "/x.md exists already; …", is_error=True)
        return run(call) if call.name == "count_rows" else ToolResult(call.id, call.name, "{}")

    messages = converse([foreign[0].text], [count_rows, *FILES], occupied)
    assert [a["file_path"] for n, a in calls_of(messages) if n == "write_file"] == [
        "/x.md",
        "/x-2.md",
    ]


@pytest.mark.parametrize(
    "where", ["save it to /i.md", "store the report in `/i.md`", "put it into a file called /i.md"]
)
def test_a_report_is_written_only_to_where_it_is_said_to_be_saved(where: str) -> None:
    helper = agent()
    before = helper.run('Write "mine" to /report.md').state
    result = helper.run(f"Write a report about the rows by island and {where}.", state=before)
    written = [a["file_path"] for n, a in calls_of(result.messages) if n == "write_file"]
    assert written == ["/i.md"]
    assert helper.files.read("/report.md").content.strip() == "mine"


# Choosing tools and arguments


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("What is the weather in New York?", "get_weather", {"city": "New York"}),
        ("weather for Oslo, 3 days", "get_weather", {"city": "Oslo", "days": 3}),
        ("How many rows are there per island?", "count_rows", {"by": "island"}),
        (
            "Describe the body mass by species",
            "describe",
            {"column": "body_mass_g", "by": "species"},
        ),
        (
            "Which island has the heaviest penguins?",
            "describe",
            {"column": "body_mass_g", "by": "island"},
        ),
        ("average of flipper_length_mm", "describe", {"column": "flipper_length_mm"}),
        ("what is 17 * 23?", "calculate", {"expression": "17 * 23"}),
        (
            "Please ask a helper to count the rows.",
            "task",
            {"instructions": "Count the rows", "subagent_type": "general-purpose"},
        ),
        (
            "Delegate to the counter: count the islands",
            "task",
            {"instructions": "Count the islands", "subagent_type": "counter"},
        ),
        (
            "change the mode to safe with level 2",
            "set_mode",
            {"mode": "safe", "level": 2, "tags": []},
        ),
        ("list the files", "ls", {}),
        ("What files are there?", "ls", {}),
        ("Which files do you have?", "ls", {}),
        ("Show me all my files.", "ls", {}),
        ("ls", "ls", {}),
        ("read notes.txt", "read_file", {"file_path": "notes.txt"}),
        ("Could you delete /a.md please", "delete_file", {"file_path": "/a.md"}),
        ("rename /a.md to /b.md", "move_file", {"old_path": "/a.md", "new_path": "/b.md"}),
        (
            'change "x" to "y" in /a.md',
            "edit_file",
            {"file_path": "/a.md", "old_string": "x", "new_string": "y"},
        ),
        (
            'replace lines 2 to 3 of /a.md with "z"',
            "edit_lines",
            {"file_path": "/a.md", "start_line": 2, "end_line": 3, "new_content": "z"},
        ),
        ('search all files for "moon"', "search_text", {"pattern": "moon"}),
        ("Search the files for moon", "search_text", {"pattern": "moon"}),
        (
            'Write "Plan:\n- buy milk\n- call Ada." to /plan.md',
            "write_file",
            {"file_path": "/plan.md", "content": "Plan:\n- buy milk\n- call Ada."},
        ),
        (
            "Save this as /todo.md:\n'1. buy milk\n2. call Ada'",
            "write_file",
            {"file_path": "/todo.md", "content": "1. buy milk\n2. call Ada"},
        ),
        ("Search my documents for the word moon.", "search_text", {"pattern": "moon"}),
        ("Which files mention the full moon?", "search_text", {"pattern": "the full moon"}),
    ],
)
def test_words_find_the_tool_and_its_arguments(
    prompt: str, name: str, arguments: dict[str, Any]
) -> None:
    answer = ask([Message.user(prompt)], ALL)
    assert calls_of([answer]) == [(name, arguments)]


@pytest.mark.parametrize("prompt", ["launch the rocket", "send an email to Bob", "dance and sing"])
def test_what_it_cannot_do_it_says_with_the_tools_it_has(prompt: str) -> None:
    answer = ask([Message.user(prompt)], FILES)
    assert not answer.tool_calls
    assert "I cannot do" in answer.text
    assert "`read_file`" in answer.text


@pytest.mark.parametrize("prompt", ["tidy up", "look at /a.md", "what is in the files?", "hello"])
def test_nothing_is_deleted_moved_or_written_unless_it_is_asked_for(prompt: str) -> None:
    names = {name for name, _ in calls_of([ask([Message.user(prompt)], FILES)])}
    assert not names & {"delete_file", "move_file", "write_file", "edit_file", "edit_lines"}


def test_an_argument_it_cannot_tell_is_named() -> None:
    answer = ask([Message.user("delete the file")], FILES)
    assert not answer.tool_calls
    assert "`delete_file` needs a value for 'file_path'" in answer.text


def test_a_wrong_name_is_corrected_from_the_error_once() -> None:
    messages = converse(["describe flipper_length by species"], [describe], run)
    assert [a["column"] for _, a in calls_of(messages)] == ["flipper_length", "flipper_length_mm"]
    assert "Gentoo has the highest mean flipper_length_mm" in messages[-1].text


def test_without_tools_it_says_so_and_still_titles_and_summarizes() -> None:
    assert "I have no tools here" in ask([Message.user("hello")]).text
    assert "I have no tools here" in ask([Message.user("compare the masses")]).text
    title = ask([Message.user("Write a title for: compare the penguins by island, please")]).text
    assert title == "Compare the penguins by island"
    history = converse(["Compare body_mass_g by species"], [describe], run)
    summary = ask([*history, Message.user("Summarize the conversation.")]).text
    assert "Compare body_mass_g by species" in summary
    assert "Gentoo has the highest mean body_mass_g" in summary


def test_a_message_sent_meanwhile_adds_steps_and_stop_ends_them() -> None:
    start = [Message.user("count the rows by island and count the rows by species")]
    first = ask(start, [count_rows])
    history = [*start, first, Message.tool([run(first.tool_calls[0])])]
    more = [*history, Message.user("Also describe body_mass_g")]
    tools = [count_rows, describe]
    seen = []
    for _ in range(5):
        answer = ask(more, tools)
        if not answer.tool_calls:
            break
        seen += calls_of([answer])
        more += [answer, Message.tool([run(c) for c in answer.tool_calls])]
    assert seen == [("count_rows", {"by": "species"}), ("describe", {"column": "body_mass_g"})]
    stopped = ask([*history, Message.user("Stop.")], tools)
    assert not stopped.tool_calls


def test_what_a_crash_cut_off_and_nobody_said_anything_about_is_no_part_of_the_next_task() -> None:
    upload = ToolCall("call_1_1", "upload", {"name": "Ada"})
    task = [Message.user('Upload the name "Ada".'), Message.assistant("", [upload])]
    history = [*task, Message.tool([lost_result(upload)]), Message.user("Hello")]
    assert "Ada" not in ask(history).text


# Streaming


def test_it_streams_words_that_add_up_to_the_message() -> None:
    async def items() -> list[Any]:
        request = request_of([Message.user(TOUR)], ALL)
        return [item async for item in DemoModel().stream(request)]

    *deltas, message = asyncio.run(items())
    text = "".join(d.text for d in deltas if isinstance(d, TextDelta))
    thinking = "".join(d.text for d in deltas if isinstance(d, ThinkingDelta))
    arguments = "".join(d.text for d in deltas if isinstance(d, ToolCallDelta))
    assert text == message.text
    assert thinking == message.thinking
    assert len(deltas) > 20
    assert json.loads(arguments) == message.tool_calls[0].arguments
    assert message.tool_calls[0].id == "call_1_1"
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens > message.usage.output_tokens > 10


def test_an_image_counts_as_an_image_and_not_as_its_characters() -> None:
    def tokens(image: str) -> int:
        picture = ImagePart(image)
        result = ToolResult("c", "plot", [TextPart("here"), picture])
        parts: list[Any] = [TextPart("What is it?"), picture]
        return ask(
            [Message("user", tuple(parts)), Message("tool", (result,))], ()
        ).usage.input_tokens

    small, large = tokens("AAAA"), tokens("AAAA" * 100_000)
    assert small == large
    assert 2_000 < small < 2_200


def test_a_delay_lets_a_run_be_cancelled_half_way() -> None:
    seen = []

    async def half() -> None:
        task = asyncio.current_task()
        assert task is not None
        async for piece in DemoModel(delay=0.01).stream(request_of([Message.user("hello")])):
            seen.append(piece)
            if len(seen) == 3:
                task.cancel()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(half())
    assert len(seen) == 3


# Laws


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        " ",
        "1",
        "1+",
        "(",
        "a-",
        "a_",
        "/a",
        "/a.",
        '"a ',
        "'a ",
        "1 ",
        "1.(",
        ", count rows",
        " and then count",
        "in A ",
        "by x ",
        "which x? ",
        "\n1. x",
        "\x00",
        "\x000\x00",
    ],
)
def test_a_long_text_takes_no_long_time(piece: str) -> None:
    # What grows with the square of the length would take hours on any machine.
    ask([Message.user(piece * (1_000_000 // len(piece)))], ALL)


SENTENCES = st.sampled_from(
    [
        TOUR,
        "Compare body_mass_g by species and save a report to /r.md",
        "count rows by island; describe flipper_length_mm; then delete /r.md",
        'Write "a" to /a.md, add "b" to /a.md and show /a.md',
        "ask a helper to count the rows, then write what it found to /h.md",
        "change the mode to fast, list the files and calculate 2 + 2",
        "1. read /a.md\n2. read /a.md\n3. read /a.md",
        "and by island?",
        "update the report",
        "what about Oslo?",
        "Make a plan.",
        "hello",
        "What is the weather in Rome for 99 days?",
        ", ".join(f"then count the rows by c_{i}" for i in range(20)),
    ]
)
WORDS = (
    "write delete move read the file report /a.md /b.txt 'x' by species heaviest and then ? . , "
    "count describe 3 body_mass_g it all ask helper to plan"
)
PROMPTS = st.one_of(
    SENTENCES,
    st.lists(SENTENCES, min_size=2, max_size=3).map(". ".join),
    st.text(max_size=60),
    st.lists(
        st.sampled_from(WORDS.split()),
        max_size=15,
    ).map(" ".join),
)
RESULTS = st.one_of(
    st.sampled_from(
        [
            ("ok", "done"),
            ("ok", '[{"species": "A", "mean": 1.5}, {"species": "B", "mean": null}]'),
            ("ok", '{"a": {"b": 1}}'),
            ("ok", "[]"),
            ("ok", "     1\tline"),
            ("error", "Not there; did you mean body_mass_g or species?"),
            ("error", "/r.md exists already; use overwrite"),
            ("rejected", "A person rejected this call, so it was not run. They said: no"),
            ("rejected", "This call was not run. Nobody was there to decide."),
        ]
    ),
    st.tuples(st.sampled_from(["ok", "error"]), st.text(max_size=40)),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=8,
    ).map(lambda value: ("ok", json.dumps(value))),
)


@settings(max_examples=200)
@given(
    st.lists(PROMPTS, min_size=1, max_size=3),
    st.lists(st.sampled_from(ALL), unique=True).map(list),
    st.data(),
)
def test_whatever_comes_back_it_ends_keeps_to_the_schemas_and_repeats_no_failure(
    prompts: list[str], tools: list[Tool], data: st.DataObject
) -> None:
    def outcome(call: ToolCall) -> ToolResult:
        kind, text = data.draw(RESULTS)
        metadata = {"not_run": "rejected"} if kind == "rejected" else {}
        return ToolResult(call.id, call.name, text, is_error=kind == "error", metadata=metadata)

    messages = converse(prompts, tools, outcome)
    ids = [call.id for m in messages for call in m.tool_calls]
    assert len(ids) == len(set(ids))
    assert all(m.text or m.tool_calls for m in messages if m.role == "assistant")
    failed: list[tuple[str, dict[str, Any]]] = []
    for message, following in itertools.pairwise(messages):
        if message.role == "user":
            failed = []
        for call in message.tool_calls:
            assert (call.name, call.arguments) not in failed
        for call, result in zip(message.tool_calls, following.tool_results, strict=False):
            if result.is_error or result.metadata:
                failed.append((call.name, call.arguments))


@settings(max_examples=50)
@given(PROMPTS, st.permutations(ALL))
def test_the_same_request_gives_the_same_message(prompt: str, tools: list[Tool]) -> None:
    messages = [Message.user(prompt)]
    assert ask(messages, tools) == ask(messages, tools)


JSON_TYPES = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "minLength": 3, "maxLength": 5},
            {"type": "integer", "minimum": 5, "maximum": 7},
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "boolean"},
            {"enum": ["fast", "slow", 3, None]},
            {"type": ["string", "null"]},
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            {"$ref": "#/$defs/Mode"},
            {},
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda s: {"type": "array", "items": s, "minItems": 1}),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2).map(
            lambda p: {"type": "object", "properties": p, "required": sorted(p)}
        ),
    ),
    max_leaves=3,
)
NAMES = st.sampled_from(
    ["file_path", "content", "by", "column", "limit", "query", "city", "all", "x"]
)


@settings(max_examples=150)
@given(
    st.dictionaries(NAMES, JSON_TYPES, max_size=4),
    st.booleans(),
    st.sampled_from(
        [
            'write "abcd" to /a.md, all fast',
            "use the_tool with limit 6 by species in Oslo",
            "Which species is the heaviest of 3?",
        ]
    ),
)
def test_no_call_breaks_a_json_schema(
    properties: dict[str, Any], required: bool, prompt: str
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = {
        "type": "object",
        "properties": properties,
        "required": sorted(properties) if required else [],
        "$defs": {"Mode": {"enum": ["fast", "safe"]}},
    }
    offered = Tool(
        lambda: "", name="the_tool", description="Write or describe species.", schema=schema
    )
    answer = ask([Message.user(prompt)], [offered])
    for call in answer.tool_calls:
        jsonschema.validate(call.arguments, schema)


def test_the_description_of_a_frame_after_the_prompt_is_no_step_of_the_plan() -> None:
    described = (
        "\n\n`sales` is a DataFrame, 2 rows × 2 columns\n- region: str\nFirst rows:\nregion\nx"
    )
    prompt = "Which region grew fastest in `sales`? Then write 'It grew.' to /report.md."
    plans = []
    for text in (prompt, prompt + described):
        agent = Agent(DemoModel())
        state = agent.run(text).state
        plans.append([call.arguments for m in state.messages for call in m.tool_calls])
    assert plans[0] == plans[1]
    assert any("file_path" in arguments for arguments in plans[1])


@pytest.mark.parametrize("wanted", [str, list[str]])
def test_what_it_cannot_answer_as_a_type_is_an_error_and_no_invented_value(wanted: type) -> None:
    with pytest.raises(ModelError, match="gives no values of a type; choose a model that does"):
        Agent(DemoModel()).extract("Which cities are in: Paris has 2 million people.", wanted)


@pytest.mark.parametrize(
    "prompt",
    [
        "What will the weather be in Oslo? Calculate 2 + 3.",
        "Calculate 2 + 3. What will the weather be in Oslo?",
    ],
)
def test_a_question_that_a_tool_of_its_own_answers_is_asked_beside_what_another_does(
    prompt: str,
) -> None:
    messages = converse([prompt], [t for t in ALL if t.name in ("get_weather", "calculate")], run)
    assert {name for name, _ in calls_of(messages)} == {"get_weather", "calculate"}


@tool
def stamp(text: str) -> str:
    """Stamp a text."""
    return f"<i>{text}</i>".replace(" / ", "\n")


def test_what_people_and_tools_say_is_shown_as_it_is_and_not_as_markup() -> None:
    result = Agent(DemoModel(), tools=[stamp]).run('Stamp the text "$x$"')
    assert result.text == "`<i>$x$</i>`"
    result = Agent(DemoModel(), tools=[stamp]).run('Stamp the text "a / # b"')
    assert result.text == "```text\n<i>a\n# b</i>\n```"
    gated = Agent(DemoModel(), tools=[stamp], interrupt_on={"stamp": True})
    waiting = gated.run('Stamp the text "x"')
    result = gated.resume(waiting, Reject("Not now: data <incomplete> & $5"))
    assert result.text == (
        "You rejected `stamp` (“`Not now: data <incomplete> & $5`”), so I left that out."
    )
    result = Agent(DemoModel(), tools=[stamp]).run("dance <b>wildly</b>")
    assert "“`dance <b>wildly</b>`”" in result.text


@tool
def ship(item: str, note: str = "none") -> str:
    """Ship an item."""
    return f"{item}, {note}"


@tool
def dispatch(parcel: str, report: str) -> str:
    """Bring a parcel to the driver."""
    return f"{parcel}, {report}"


@tool
def upload(name: str) -> str:
    """Upload a file by its name."""
    return name


@pytest.mark.parametrize(
    ("prompt", "arguments"),
    [
        ('Upload the name "x.csv"', {"name": "x.csv"}),
        ('Ship the item "lamp"', {"item": "lamp"}),
        ('Ship the item "lamp" with the note "fragile"', {"item": "lamp", "note": "fragile"}),
        ('Ship the note "fragile" with the item "lamp"', {"item": "lamp", "note": "fragile"}),
        ('Ship the item named "lamp", the note: "a, b"', {"item": "lamp", "note": "a, b"}),
    ],
)
def test_what_is_quoted_goes_to_the_argument_that_it_is_said_for_and_to_no_other(
    prompt: str, arguments: dict[str, Any]
) -> None:
    result = Agent(DemoModel(), tools=[ship, upload]).run(prompt)
    assert [called for _, called in calls_of(result.messages)] == [arguments]


@pytest.mark.parametrize(
    ("prompt", "called"),
    [
        ('Ship "lamp" with the note "fragile"', ("ship", {"item": "lamp", "note": "fragile"})),
        ('Dispatch "lamp", the report "ok"', ("dispatch", {"parcel": "lamp", "report": "ok"})),
        ('Wrap "lamp" with the note "soft"', ("gift", {"item": "lamp", "note": "soft"})),
        ('Note "ship" in /n.md', ("write_file", {"file_path": "/n.md", "content": "ship"})),
    ],
)
def test_a_tool_that_the_verb_names_wins_over_writing_a_file(
    prompt: str, called: tuple[str, dict[str, Any]]
) -> None:
    @tool
    def gift(item: str, note: str) -> str:
        """Wrap an item."""
        return f"{item}, {note}"

    result = Agent(DemoModel(), tools=[ship, dispatch, gift]).run(prompt)
    assert calls_of(result.messages) == [called]


def test_and_then_is_no_step() -> None:
    result = Agent(DemoModel(), tools=[ship]).run('Ship "lamp". And then write "ok" to /a.md')
    assert [n for n, _ in calls_of(result.messages) if n != "write_todos"] == ["ship", "write_file"]
    assert result.text == "lamp, none\n\nI wrote /a.md."


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "`plot_sales` ran and returned nothing."),
        (1, "The picture is above, from `plot_sales`."),
        (2, "The pictures are above, from `plot_sales`."),
    ],
)
def test_a_picture_that_a_tool_returned_is_said_to_be_above(count: int, said: str) -> None:
    @tool
    def plot_sales() -> list[ImagePart] | str:
        """Plot the sales."""
        return [ImagePart("iVBORw0KGgo=") for _ in range(count)] or ""

    assert Agent(DemoModel(), tools=[plot_sales]).run("Plot the sales").text == said


# What takes a language model


@pytest.mark.parametrize(
    "prompt",
    [
        "Write a function that computes the standard error",
        "Write a Python script that plots the masses to /plot.py",
        "Generate unit tests for my code",
    ],
)
def test_code_is_not_written_and_no_tool_is_called_for_it(prompt: str) -> None:
    answer = ask([Message.user(prompt)], NOTEBOOK)
    assert answer.tool_calls == []
    assert answer.text == (
        "I am a planner without a language model, and I write no code: choose a model that does "
        "with `%agent model PROVIDER:NAME`."
    )


def test_what_is_asked_beside_code_is_done() -> None:
    prompt = "Write a function that doubles a number, and search for penguins in /notes.md"
    answer = ask([Message.user(prompt)], ALL)
    assert [call.name for call in answer.tool_calls] == ["search_text"]


def test_a_tool_that_writes_code_writes_it() -> None:
    @tool
    def implement(instructions: str) -> str:
        """Implement a function."""
        return "done"

    answer = ask([Message.user("Implement a function that halves a number")], [implement])
    assert [call.name for call in answer.tool_calls] == ["implement"]


def test_an_error_of_statistics_is_none_of_a_cell() -> None:
    answer = ask([Message.user("What is the standard error?")], NOTEBOOK)
    assert "last_error" not in [call.name for call in answer.tool_calls]


def test_of_an_attached_image_it_says_that_it_reads_none() -> None:
    answer = ask([Message.user("What does attached image 1 (fig) show?")], NOTEBOOK)
    assert answer.tool_calls == []
    assert answer.text == (
        "I am a planner without a language model, and I read no images: choose a model that does "
        "with `%agent model PROVIDER:NAME`."
    )


# Tools that are named


@tool
def histogram(column: str) -> str:
    """Draw a histogram of a column."""
    return "drawn"


@tool
def wrap(item: str) -> str:
    """Wrap an item."""
    return f"wrapped {item}"


@tool
def pack(item: str) -> str:
    """Pack an item."""
    return f"packed {item}"


def test_a_tool_that_is_named_comes_before_those_of_a_notebook() -> None:
    prompt = 'Draw a histogram of the column "mass_g".'
    answer = ask([Message.user(prompt)], [*NOTEBOOK, histogram])
    (call,) = answer.tool_calls
    assert (call.name, call.arguments) == ("histogram", {"column": "mass_g"})


@pytest.mark.parametrize(
    ("prompt", "calls"),
    [
        (
            'Wrap the item "lamp" and pack the item "desk"',
            [("wrap", {"item": "lamp"}), ("pack", {"item": "desk"})],
        ),
        ('Wrap the item "lamp and pack the desk"', [("wrap", {"item": "lamp and pack the desk"})]),
    ],
)
def test_each_verb_that_only_a_tool_knows_is_a_step(
    prompt: str, calls: list[tuple[str, dict[str, str]]]
) -> None:
    messages = converse([prompt], [wrap, pack], lambda call: ToolResult(call.id, call.name, "ok"))
    assert calls_of(messages) == calls


FAILED = Message(role="assistant", parts=(), stop_reason="error", error="There is no key.")


@pytest.mark.parametrize(
    ("newest", "answers"),
    [
        ("Calculate 2 + 3.", False),
        ("Try again.", True),
        ("please go on", True),
        ("Go on a trip and calculate 2 + 3.", False),
    ],
)
def test_what_failed_before_is_answered_only_if_somebody_asks_for_it_again(
    newest: str, answers: bool
) -> None:
    def calculate(expression: str) -> str:
        """Calculate an arithmetic expression."""
        return f"{expression} is known"

    messages = [Message.user("Calculate 6 * 7."), FAILED]
    agent = Agent(DemoModel(), tools=[calculate])
    result = agent.run(newest, State(messages=messages))
    called = [call for m in result.state.messages for call in m.tool_calls]
    asked = [call.arguments["expression"] for call in called if call.name == "calculate"]
    assert any("6 * 7" in expression for expression in asked) is answers


def test_a_call_that_was_stopped_is_made_again_where_somebody_has_it_go_on() -> None:
    def calculate(expression: str) -> str:
        """Calculate an arithmetic expression."""
        return f"{expression} is 42"

    stopped = ToolResult(
        "call_1_1", "calculate", "Cancelled.", True, False, {"not_run": "cancelled"}
    )
    messages = [
        Message.user("Calculate 6 * 7."),
        Message.assistant("", [ToolCall("call_1_1", "calculate", {"expression": "6 * 7"})]),
        Message.tool([stopped]),
    ]
    agent = Agent(DemoModel(), tools=[calculate])
    with Session(agent, state=State(messages=messages)) as session:
        result = session.retry().result()
    assert [call.arguments for m in result.messages for call in m.tool_calls] == [
        {"expression": "6 * 7"}
    ]
    assert "42" in result.text
    with Session(agent, state=State(messages=messages)) as session:
        result = session.send("Hello").result()
    assert [call for m in result.messages for call in m.tool_calls] == []


@pytest.mark.parametrize(
    ("asked", "arguments"),
    [
        ("Pay the invoice 77 with 40 euros.", {"invoice": 77, "euros": 40.0}),
        ("Pay 40 euros for invoice 77.", {"invoice": 77, "euros": 40.0}),
        ("Pay the invoice A-12 with 40 euros.", None),
        ("Pay the invoice XYZ, 40 in all.", None),
        ("Pay 40 euros.", None),
    ],
)
def test_a_number_that_is_said_of_one_thing_is_not_taken_for_another(
    asked: str, arguments: dict[str, Any] | None
) -> None:
    def pay(invoice: int, euros: float = 0.0) -> str:
        """Pay an invoice."""
        return f"Paid {euros} for {invoice}."

    result = Agent(DemoModel(), tools=[pay]).run(asked)
    called = [call.arguments for message in result.messages for call in message.tool_calls]
    assert called == ([] if arguments is None else [arguments])
    assert arguments or "'invoice', which I cannot tell" in result.text
