"""What an export of a conversation shows, in each of its formats."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
import pytest

import sagents_nb as sa
from sagents_nb.export.document import MOST_IMAGE, MOST_TEXT
from sagents_nb.export.markdown import folded, plain
from sagents_nb.messages import Field, message_of
from tests.export.pages import Page

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)
ANNA = sa.Scope(user="anna")
KEY = "sk-ant-0123456789abcdef0123"
FORMATS = ["to_markdown", "to_html", "to_notebook"]


def run_python(code: str) -> str:
    """Run code."""
    return f"ran {code}"


def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


def talked(**around: Any) -> sa.Session:
    """A session in which a call was edited, one rejected, and code ran."""
    thinking = sa.ThinkingPart("I had better look.")
    model = sa.ScriptedModel(
        [
            sa.Message.assistant(
                [thinking, "Looking **now**."],
                [
                    sa.ToolCall("c1", "remove", {"path": "/all"}),
                    sa.ToolCall("c2", "remove", {"path": "/b"}),
                ],
                usage=sa.Usage(1000, 200, cost_usd=0.25),
            ),
            sa.Message.assistant("", [sa.ToolCall("c3", "run_python", {"code": "1 +\n1"})]),
            sa.Message.assistant("See [this](https://a.example/b)."),
        ]
    )
    agent = sa.Agent(
        model,
        tools=[run_python, remove],
        middleware=[sa.HumanInTheLoop({"remove": True})],
        tool_context={"db": "pw-of-the-database"},
    )
    session = sa.Session(agent, id="c-1", **around)
    session.send(f"Tidy up with {KEY} and pw-of-the-database").result()
    answers = [sa.Edit({"path": "/a"}), sa.Reject("It is needed")]
    session.resume(answers, by="anna").result()
    session.files.write("/notes.txt", f"kept {KEY}")
    session.files.write("/plot.png", PNG)
    session.files.write("/data.bin", b"\0\1\2")
    session.files.write("/long.txt", "x" * (MOST_TEXT + 1))
    session.files.write("/huge.png", PNG + b"\0" * MOST_IMAGE)
    return session


def shown(session: sa.Session, format: str) -> str:
    """All text of an export, of a notebook that of its cells."""
    text: str = getattr(session, format)()
    if format == "to_html":
        return Page(text, frame=True).text
    if format == "to_markdown":
        return text
    cells = nbformat.reads(text, as_version=4).cells
    outputs = [output.text for cell in cells for output in cell.get("outputs", [])]
    return "\n".join([*(cell.source for cell in cells), *outputs])


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_tells_what_ran_who_decided_and_what_came_of_it(format: str) -> None:
    session = talked()
    text = shown(session, format)
    for told in (
        *("Tidy up with", "I had better look.", "edited by anna", "removed /a", "1 +\n1"),
        *("The model had asked for", "/all", "rejected by anna: It is needed", "ran 1 +\n1"),
        *("https://a.example/b", "1,200 tokens: 1,000 in, 200 out", "0.2500 USD"),
    ):
        assert told in text, told
    session.close()


@pytest.mark.parametrize("format", FORMATS)
def test_tokens_of_the_demo_are_said_to_be_estimates_that_cost_nothing(format: str) -> None:
    session = sa.Session(sa.Agent("demo"))
    session.send("Hello.").result()
    assert " out. The demo only estimates what a language model" in shown(session, format)
    session.replace(agent=sa.Agent(sa.ScriptedModel(["Hello."])))  # it has answered nothing yet
    assert "The demo only estimates" in shown(session, format)
    session.close()
    assert "The demo only estimates" not in shown(talked(), format)


@pytest.mark.parametrize("format", FORMATS)
def test_a_picture_that_a_tool_made_is_seen_without_unfolding_its_call(format: str) -> None:
    def draw() -> list[Any]:
        """Draw."""
        return ["Here it is.", sa.ImagePart(base64.b64encode(PNG).decode())]

    model = sa.ScriptedModel([sa.ToolCall("c1", "draw", {}), "The picture is above."])
    session = sa.Session(sa.Agent(model, tools=[draw]))
    session.send("Draw.").result()
    raw = getattr(session, format)()
    call, picture, answer = map(
        raw.index, ("Here it is.", base64.b64encode(PNG).decode(), "The picture is above.")
    )
    assert call < raw.index("</details>") < picture < answer
    assert raw.count(base64.b64encode(PNG).decode()) == 1


@pytest.mark.parametrize("format", FORMATS)
def test_files_are_shown_as_far_as_they_are_small(format: str) -> None:
    session = talked()
    text, raw = shown(session, format), getattr(session, format)()
    for told in ("/notes.txt", "kept [key]", "/plot.png", "/data.bin", "neither text nor an image"):
        assert told in text, told
    assert text.count("It is too large to be shown here.") == 2
    assert base64.b64encode(PNG).decode() in raw
    assert "x" * 300 not in raw
    assert "/notes.txt" not in getattr(session, format)(files=False)
    session.close()


@pytest.mark.parametrize("format", FORMATS)
def test_no_secret_is_exported(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_PASSWORD", "It is needed")
    session = talked()
    raw = getattr(session, format)(secrets=["Looking"])
    for secret in (KEY, "pw-of-the-database", "It is needed", "Looking"):
        assert secret not in raw
    assert "Looking" not in getattr(session, format)(secrets=iter(["Looking"]))
    session.close()


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_no_list_of_texts_is_no_list_of_secrets(format: str) -> None:
    session = talked()
    odd: Any
    for odd in ([1], iter([1]), map(len, ["a"]), iter([b"x"])):
        with pytest.raises(sa.ConfigurationError, match=r"secrets=….* is a list, each of it text"):
            getattr(session, format)(secrets=odd)
    session.close()


@pytest.mark.parametrize(
    "arguments", [{"password": "hunter22"}, {"config": {"api_key": "hunter22", "port": 1}}]
)
def test_an_argument_with_the_name_of_a_secret_is_masked(arguments: dict[str, Any]) -> None:
    call = sa.ToolCall("c1", "connect", arguments)
    state = sa.State(messages=[sa.Message.assistant("", [call])])
    session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=state)
    for format in FORMATS:
        assert "hunter22" not in getattr(session, format)()
    session.close()


@pytest.mark.parametrize("format", FORMATS)
def test_what_waits_and_what_failed_is_told(format: str) -> None:
    calls = [sa.ToolCall(id, "look", {}) for id in ("c1", "c2", "c3", "c4")]
    results = [
        sa.ToolResult("c1", "look", "It broke", is_error=True),
        sa.ToolResult("c2", "look", "fine"),
        sa.ToolResult("c4", "look", "Not there", is_error=True, metadata={"declined": True}),
    ]
    messages = [
        sa.Message.assistant("", calls),
        sa.Message.tool(results),
        sa.Message("assistant", error="The provider is away."),
    ]
    todos = [sa.Todo("mend it", "in_progress")]
    state = sa.State(messages=messages, todos=todos)
    session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=state)
    text = shown(session, format)
    for told in (
        "failed",
        "It broke",
        "not done",
        "Not there",
        "wait",
        "The provider is away.",
        "▸",
        "mend it",
    ):
        assert told in text, told
    session.close()


@pytest.mark.parametrize("format", FORMATS)
def test_a_sub_agents_answer_and_its_calls_are_shown(format: str) -> None:
    inner = sa.ScriptedModel(
        [sa.Message.assistant("", [sa.ToolCall("i1", "remove", {"path": "/x"})]), "Found it"]
    )
    helper = sa.SubAgentConfig("finder", "Finds.", "Find.", tools=[remove], model=inner)
    outer = sa.ScriptedModel(
        [
            sa.Message.assistant(
                "",
                [sa.ToolCall("c1", "task", {"instructions": "find it", "subagent_type": "finder"})],
            ),
            "Done.",
        ]
    )
    session = sa.Session(sa.Agent(outer, subagent_options={"subagents": [helper]}))
    session.send("go").result()
    text = shown(session, format)
    assert "Found it" in text
    assert "remove completed" in text
    session.close()


def test_a_stored_conversation_is_exported_by_its_id(tmp_path: Path) -> None:
    store = sa.ConversationStore(f"sqlite:///{tmp_path}/a.db")
    session = talked(store=store, scope=ANNA)
    session.close()
    mine = store.scoped(ANNA)
    mine.update_conversation("c-1", title="Tidying <b>up</b>")
    for format, ending in zip(FORMATS, ("md", "html", "ipynb"), strict=True):
        path = tmp_path / f"a.{ending}"
        text = getattr(mine, format)("c-1", path)
        assert path.read_text(encoding="utf-8") == text
        for told in ("Tidying", "edited by anna", "removed /a", "1,200 tokens"):
            assert told in text, (format, told)
        assert KEY not in text
        assert "kept.md" not in text, "nobody has said where files are"
    mount = sa.Mount(default=True, storage=sa.DiskStorage(tmp_path / "files"))
    files = sa.open_filesystem(("session", "c-1"), [mount])
    files.write("/kept.md", f"What was kept, without {KEY}.")
    for format in FORMATS:
        text = getattr(mine, format)("c-1", filesystem=files)
        assert "kept.md" in text
        assert "What was kept, without" in text
        assert KEY not in text
    files.close()
    with pytest.raises(sa.ConfigurationError, match=r"filesystem.*sa\.open_filesystem"):
        mine.to_html("c-1", filesystem="/files")
    with pytest.raises(sa.NotFound):
        mine.to_html("c-2")
    with pytest.raises(sa.NotFound):
        store.scoped(sa.Scope(user="ben")).to_html("c-1")
    store.close()


# the page


def test_a_page_has_a_policy_and_no_script_and_says_where_links_lead() -> None:
    session = talked()
    html = session.to_html()
    page = Page(html, frame=True)
    assert page.live == []
    policies = [meta["content"] for meta in page.metas if "http-equiv" in meta]
    assert len(policies) == 1
    assert str(policies[0]).startswith(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    )
    assert "url(" not in html
    assert "@import" not in html
    assert "this (https://a.example/b)" in page.text
    assert '<details class="thinking">' in html
    session.close()


def test_a_page_shows_the_markdown_of_models_and_the_words_of_people_as_they_are() -> None:
    table = "| a | b |\n|---|--:|\n| *1* | `2` |\n\n1. one\n2. two"
    state = sa.State(messages=[sa.Message.user("*a*\n  b"), sa.Message.assistant(table)])
    session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=state)
    html = session.to_html()
    assert '<div class="bubble">*a*\n  b</div>' in html
    assert '<div class="table" tabindex="0"><table>' in html
    assert "</tbody></table></div>" in html.replace("\n", "")
    assert "<td><em>1</em></td>" in html
    assert '<td style="text-align:right"><code>2</code></td>' in html
    assert "<li>one</li>" in html
    session.close()


# the notebook


def test_code_that_ran_is_a_code_cell_with_its_output() -> None:
    session = talked()
    notebook = nbformat.reads(session.to_notebook(), as_version=4)
    nbformat.validate(notebook)
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cell.source == "1 +\n1"
    assert [output.text for output in cell.outputs] == ["ran 1 +\n1\n"]
    assert notebook.metadata.sagents_nb == {"exported_from": "c-1", "version": sa.__version__}
    assert notebook.metadata.kernelspec.name == "python3"
    assert session.to_notebook() == session.to_notebook(), "nothing in it is by chance"
    session.close()


# files and what is missing


@pytest.mark.parametrize("format", FORMATS)
def test_where_the_disk_is_full_the_file_is_what_it_was(
    format: str, tmp_path: Path, small_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    path, agent = tmp_path / "a", sa.Agent(sa.ScriptedModel(["short", "long " * 9_000]))
    session = sa.Session(agent, id="talk")
    session.send("hi").result()
    before = getattr(session, format)(path)
    session.send("more").result()
    said = r"cannot be written to '.*a' \(.+\); free some space there first\."
    with small_disk(), pytest.raises(sa.ConfigurationError, match=said):
        getattr(session, format)(path)
    assert path.read_text(encoding="utf-8") == before
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_what_cannot_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    session = sa.Session(sa.Agent(sa.ScriptedModel([])))
    with pytest.raises(sa.ConfigurationError, match="a folder that exists"):
        session.to_markdown(tmp_path / "no" / "a.md")
    with pytest.raises(sa.ConfigurationError):
        session.to_markdown(3)  # type: ignore[arg-type]
    session.close()


@pytest.mark.parametrize(
    ("format", "library"), [("to_html", "markdown_it"), ("to_notebook", "nbformat")]
)
def test_a_missing_library_is_named(
    format: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sagents_nb.export.html as page

    page.markdown_renderer.cache_clear()
    monkeypatch.setitem(sys.modules, library, None)
    state = sa.State(messages=[sa.Message.assistant("hi")])
    session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=state)
    with pytest.raises(sa.ConfigurationError, match=r"pip install 'sagents-nb\[export\]'"):
        getattr(session, format)()
    assert "hi" in session.to_markdown()
    session.close()


def test_half_characters_and_data_that_is_no_json_are_exported(tmp_path: Path) -> None:
    call = sa.ToolCall("c1", "look", {"a": "\ud83d", "b": {"\udcff": float("nan")}})
    told = [sa.Message.assistant("half \ud83d", [call]), sa.Message(f"\ud83d {KEY}", "x")]
    state = sa.State(messages=told)
    session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=state)
    for format in FORMATS:
        getattr(session, format)(tmp_path / "a")
        text = (tmp_path / "a").read_text(encoding="utf-8")
        assert "half \\" in text  # and its code
        assert KEY not in text
    session.close()


def test_an_answer_that_ends_in_its_code_does_not_swallow_the_next() -> None:
    messages = [sa.Message.assistant("```python\n1"), sa.Message.assistant("# After")]
    session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=sa.State(messages=messages))
    text = session.to_markdown()
    assert "```python\n1\n```\n\n# After" in text
    cells = json.loads(session.to_notebook())["cells"]
    assert any("# After" in "".join(cell["source"]) for cell in cells)
    session.close()


@pytest.mark.parametrize("format", FORMATS)
def test_what_names_in_a_message_stood_for_is_folded_below_what_was_typed(format: str) -> None:
    frame = Field("df", "2 rows × 1 column", "DataFrame, 2 rows\n- a: int64\n<b>", appended=True)
    session = sa.Session(sa.Agent(sa.ScriptedModel(["Plotted."])))
    session.send(message_of("Plot {df}, {{please}}.", {"df": frame})).result()
    text = getattr(session, format)()
    if format == "to_notebook":
        (text,) = (
            cell.source for cell in nbformat.reads(text, 4).cells if "with df" in cell.source
        )
    typed, summary = "Plot {df}, {{please}}.", "<summary>with df: 2 rows × 1 column</summary>"
    assert text.index(typed) < text.index(summary) < unescape(text).index("- a: int64")
    assert "<b>" not in text
    assert "is a DataFrame" not in text
    if format != "to_html":
        assert f"> {typed}\n\n<details>{summary}\n\ndf:\n\n" in text


STYLED = r"$\style{cursor:url(//x)}{y}$"


@pytest.mark.parametrize("made", [plain, lambda text: folded(text, [])])
def test_formulas_in_names_and_summaries_have_no_style(made: Callable[[str], str]) -> None:
    """What sets formulas reads the page, whatever was escaped in its source."""
    text = Page(f"<p>{made(STYLED)}</p>").text
    assert r"$\ style{cursor:url(//x)}{y}$" in text


def test_only_addresses_of_the_web_become_links_in_plain_text() -> None:
    assert "ftp://" not in plain("ftp://x FTP://x".lower())
    assert plain("http://x") == "http://x"


@pytest.mark.parametrize("format", FORMATS)
def test_the_list_of_to_dos_is_shown_and_not_each_change_of_it(format: str) -> None:
    def todos(id: str, status: str) -> sa.ToolCall:
        items = [{"content": "Weigh the boxes", "status": status}]
        return sa.ToolCall(id, "write_todos", {"merge": False, "todos": items})

    refused = sa.ToolCall("t3", "write_todos", {"todos": "all"})
    turns = [todos("t1", "pending"), ["I begin.", todos("t2", "in_progress")], refused, "Done."]
    with sa.Session(sa.Agent(sa.ScriptedModel(turns))) as session:
        session.send("Weigh them").result()
        text = shown(session, format)
    assert text.count("write_todos") == 1  # what was refused
    assert text.count("Weigh the boxes") == 1
    assert "I begin." in text


@pytest.mark.parametrize("format", FORMATS)
def test_a_conversation_without_a_title_is_called_by_its_first_question(format: str) -> None:
    with sa.Session(sa.Agent(sa.ScriptedModel(["3.", "4."])), id="notebook-1") as session:
        for question in ("How many boxes\n\nare there?", "And lids?"):
            session.send(question).result()
        text = getattr(session, format)()
    title = {"to_markdown": "# How many boxes\n", "to_html": "<title>How many boxes</title>"}
    assert title.get(format, "# How many boxes") in text


@pytest.mark.parametrize("format", FORMATS)
def test_a_title_is_cut_after_secrets_are_taken_out_of_it(format: str) -> None:
    model = sa.ScriptedModel(["Yes."])
    with sa.Session(sa.Agent(model, tool_context={"db": "hush-Zq81-very-secret-0042"})) as session:
        session.send("w " * 18 + "hush-Zq81-very-secret-0042 is it").result()
        assert "hush" not in getattr(session, format)()
