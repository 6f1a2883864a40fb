"""``%load_ext sagents_nb`` in an IPython of this process: the magics and what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import sagents_nb as sa
from sagents_nb.notebook.cell_options import OPTIONS
from sagents_nb.notebook.conversations import NotebookStorage
from sagents_nb.notebook.extension import awaiting_cell, extension_of
from sagents_nb.notebook.magics import COMMANDS, HELP, AgentMagics
from tests.notebook.conftest import value
from tests.panel.pages import plan, session_of, write


def run(shell: InteractiveShell, code: str) -> Any:
    """Run a cell quietly; its value, or what it raised."""
    with capture_output():
        return value(shell.run_cell(code))


def use(shell: InteractiveShell, session: Any) -> Any:
    shell.user_ns["s"] = session
    run(shell, "%agent use s")
    return session


# Loading


def test_a_result_is_shown_without_the_secrets_of_variables_and_inert(
    shell: InteractiveShell,
) -> None:
    secret = "pw-CANARY-1234"
    shell.user_ns["password"] = secret
    said = f"It is {secret}, <script>"
    shell.user_ns["r"] = session_of(said).send("What?").result(20)
    data, _ = shell.display_formatter.format(shell.user_ns["r"])
    assert secret not in str(data)
    assert "It is [key], &lt;script&gt;" in data["text/html"]


def test_dollars_in_a_frame_of_ours_are_no_formulas_and_ones_own_is_as_pandas_has_it(
    shell: InteractiveShell,
) -> None:
    pandas = pytest.importorskip("pandas")
    shell.user_ns["s"] = session_of("It costs $5, not $6.")
    shell.user_ns["s"].send("What?").result(20)
    run(shell, "%agent use s")

    def html(frame: Any) -> str:
        return str(shell.display_formatter.format(frame)[0]["text/html"])

    ours, own = run(shell, "%agent frame messages"), pandas.DataFrame({"a": ["$x$"]})
    for frame in (ours, ours[ours.role == "assistant"], ours.head(1)):
        assert 'class="dataframe tex2jax_ignore mathjax_ignore"' in html(frame)
    assert html(own) == own._repr_html_()
    sa.unload_ipython_extension(shell)
    assert html(ours) == ours._repr_html_()


def test_how_somebody_else_shows_frames_stays(shell: InteractiveShell) -> None:
    pandas = pytest.importorskip("pandas")
    formatter = shell.display_formatter.formatters["text/html"]
    sa.unload_ipython_extension(shell)
    formatter.for_type(pandas.DataFrame, lambda frame: "mine")
    sa.load_ipython_extension(shell)
    frame = session_of().to_frame("messages")
    for _ in range(2):
        assert shell.display_formatter.format(frame)[0]["text/html"] == "mine"
        sa.unload_ipython_extension(shell)


def test_loading_twice_is_loading_once(shell: InteractiveShell) -> None:
    sa.load_ipython_extension(shell)
    assert shell.input_transformers_cleanup.count(awaiting_cell) == 1
    extension = extension_of(shell)
    shell.extension_manager.load_extension("sagents_nb")
    assert extension_of(shell) is extension


def test_unloading_takes_everything_away_and_loading_brings_it_back(
    shell: InteractiveShell,
) -> None:
    formatter = shell.display_formatter.mimebundle_formatter
    assert formatter.lookup_by_type(sa.Session)
    for _ in range(2):
        sa.unload_ipython_extension(shell)
    assert awaiting_cell not in shell.input_transformers_cleanup
    assert "agent" not in shell.magics_manager.magics["line"]
    assert "agent" not in shell.magics_manager.magics["cell"]
    with pytest.raises(KeyError):
        formatter.lookup_by_type(sa.Session)
    sa.load_ipython_extension(shell)
    assert shell.input_transformers_cleanup.count(awaiting_cell) == 1
    assert "agent" in shell.magics_manager.magics["line"]


def test_unloading_is_content_when_somebody_removed_the_transformer(
    shell: InteractiveShell,
) -> None:
    shell.input_transformers_cleanup.remove(awaiting_cell)
    sa.unload_ipython_extension(shell)
    assert "agent" not in shell.magics_manager.magics["line"]


def test_after_a_reload_a_new_conversation_does_not_meet_the_old_one(
    shell: InteractiveShell,
) -> None:
    shell.user_ns["one"] = sa.Agent(sa.ScriptedModel(["I am one."]))
    shell.user_ns["two"] = sa.Agent(sa.ScriptedModel(["I am two."]))
    run(shell, "%agent use one")
    assert run(shell, "%%agent\nhi").text == "I am one."
    sa.unload_ipython_extension(shell)
    sa.load_ipython_extension(shell)
    run(shell, "%agent use two")
    assert run(shell, "%%agent\nhi").text == "I am two."


# The awaiting cell


@pytest.mark.parametrize(
    "cell",
    [
        "%%agent\nhi",
        "%%agent --plain\nhi",
        "\n\n%%agent\nhi",
        "%%agent",
        '%%agent\nquotes \' " """ \\ and {braces}\n\n%time\n!ls\n',
    ],
)
def test_an_agent_cell_becomes_one_that_awaits(cell: str) -> None:
    (line,) = awaiting_cell(cell.splitlines(keepends=True))
    assert line.startswith("await ")
    compile(line, "<cell>", "exec", flags=0x2000)  # top-level await


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "\n",
        "x = 1\n%%agent\nhi",
        "# %%agent\nhi",
        "%%agents\nhi",
        "%%agent?",
        "%%agent??",
        "%agent status",
        "%%time\n%%agent\nhi",
        "text = '''\n%%agent\n'''",
    ],
)
def test_any_other_cell_is_left_alone(cell: str) -> None:
    lines = cell.splitlines(keepends=True)
    assert awaiting_cell(list(lines)) == lines


def test_the_prompt_arrives_as_it_was_typed(shell: InteractiveShell) -> None:
    session = use(shell, session_of("Ok.", "Ok.", "Ok."))
    shell.user_ns["n"] = 3
    typed = 'line \'one\' """ \\n\n\n  %time {n}\n!ls {unknown} ünï'
    run(shell, f"%%agent\n{typed}\n")
    assert session.messages[0].text == typed.replace("{n}", "3")
    run(shell, f"%%agent --raw\n{typed}\n")
    assert session.messages[2].text == typed


def test_an_empty_prompt_asks_nobody_and_says_so(shell: InteractiveShell) -> None:
    session = use(shell, session_of("Ok."))
    with capture_output() as said:
        assert value(shell.run_cell("%%agent\n   \n")) is None
    assert session.messages == []
    assert "The cell is empty" in said.stdout


def test_a_variable_that_is_nearly_spelt_right_is_sent_as_it_stands_and_said(
    shell: InteractiveShell,
) -> None:
    session = use(shell, session_of("Ok.", "Ok."))
    shell.user_ns["sales"] = [1, 2]
    with capture_output() as said:
        shell.run_cell("%%agent\nPlot {slaes} by {x} as \\frac{a}{b}, not {{other}}.")
    assert "{slaes}" in session.messages[0].text
    assert said.stdout.startswith("{slaes} was sent as it stands; did you mean {sales}?\n")
    assert said.stdout.count("did you mean") == 1
    with capture_output() as said:
        shell.run_cell("%%agent --raw\nPlot {slaes}.")
    assert "did you mean" not in said.stdout


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("Summarise {nope}.", "{nope} was sent as it stands; no variable has that name.\n"),
        ("{nope} and {nope}", "{nope} was sent as it stands; no variable has that name.\n"),
        (
            "Plot {sales.colour}",
            "{sales.colour} was sent as it stands; sales has no attribute colour.\n",
        ),
        ("Why is ({nope}) gone?", "{nope} was sent as it stands; no variable has that name.\n"),
        ("Call `get({nope})`, then ```\nf{nope} {nope}\n```", ""),
        ("Explain \\mathbf{nope} and $\\int {nope} dx$ and $$\n{nope}\n$$", ""),
        ("GET /users/{nope}/posts, f'{nope}', x_{max}, {{nope}}, {k}, {red, green}", ""),
    ],
)
def test_a_name_that_no_variable_has_is_said_where_it_stands_as_a_word(
    shell: InteractiveShell, typed: str, said: str
) -> None:
    session = use(shell, session_of("Ok."))
    shell.user_ns["sales"] = [1, 2]
    with capture_output() as printed:
        shell.run_cell(f"%%agent\n{typed}")
    assert session.messages[0].text.count("nope") == typed.count("nope")
    assert (
        "".join(line for line in printed.stdout.splitlines(True) if "as it stands" in line) == said
    )


def test_the_magic_itself_refuses_a_cell(shell: InteractiveShell) -> None:
    with pytest.raises(UsageError, match="first line of its cell"):
        shell.run_cell_magic("agent", "", "hi")


def test_bad_options_are_one_sentence_and_start_nothing(shell: InteractiveShell) -> None:
    before = sa.sessions.list()
    with pytest.raises(UsageError, match=r"^%%agent: unrecognized arguments: --bogus"):
        run(shell, "%%agent --bogus\nhi")
    assert sa.sessions.list() == before


# Which conversation


def shown(shell: InteractiveShell, cell: str) -> str:
    """What stands below a cell that fails."""
    with capture_output() as captured:
        assert not shell.run_cell(cell).success
    return re.sub(r"\x1b\[[0-9;]*m", "", captured.stdout + captured.stderr).strip()


def test_an_error_of_ours_is_its_sentence(shell: InteractiveShell) -> None:
    shell.user_ns["df"] = pd.DataFrame({"secret": range(30)})
    use(shell, sa.Agent(sa.ScriptedModel(["hi"])))
    shown_of = {
        options: shown(shell, f"%%agent --new {options}\nhi")
        for options in ("--model gpt-99", "--tools df", "--tools nothing", "--approve nope")
    }
    assert all(len(text.splitlines()) == 1 for text in shown_of.values()), shown_of
    assert shown_of["--tools df"].endswith(
        "This DataFrame is no tool; decorate a function with @tool."
    )
    assert shown_of["--tools nothing"].startswith("UsageError: ")
    use(shell, sa.Session(sa.Agent(sa.ScriptedModel([ValueError("the model is gone")]))))
    failed = shown(shell, "%%agent\nhi")
    assert len(failed.splitlines()) == 1
    assert "the model is gone" in failed


def test_code_of_others_that_failed_is_shown_with_its_lines(shell: InteractiveShell) -> None:
    shell.run_cell(
        "import sagents_nb as sa\n"
        "class Mine(sa.Middleware):\n"
        "    def before_run(self, state, ctx):\n"
        "        return 1 / 0\n"
        "s = sa.Session(sa.Agent(sa.ScriptedModel(['hi']), middleware=[Mine()]))\n"
        "%agent use s"
    )
    failed = shown(shell, "%%agent\nhi")
    assert "in before_run\n    return 1 / 0" in failed
    assert "sagents_nb/" not in failed
    assert len(failed.splitlines()) < 6


def test_what_to_do_where_nobody_can_click_is_checked(shell: InteractiveShell) -> None:
    session = sa.Session(sa.Agent(sa.ScriptedModel(["hi"])))
    with pytest.raises(sa.ConfigurationError, match=r"headless.*'deny', 'approve'.*'aprove'"):
        session.headless = "aprove"
    assert session.headless == "deny"
    session.headless = "approve"
    assert session.headless == "approve"


def test_without_use_there_is_a_default_agent(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGENTS_MODEL", "demo")
    result = run(shell, "%%agent\nSay hello in one short sentence.")
    assert result.status == "completed"
    assert result.text
    session = extension_of(shell).conversations.current
    assert session.id.startswith("notebook-")
    tools = {tool.name for tool in session.agent.tools}
    assert {"run_python", "inspect_variables", "show_frame", "write_todos", "read_file"} <= tools
    assert "notebook" in session.agent.assembled_system_prompt


def test_the_default_agent_asks_before_it_runs_python(shell: InteractiveShell) -> None:
    agent = extension_of(shell).conversations.agent()
    call = sa.ToolCall("p1", "run_python", {"code": "gone = 1"})
    session = use(shell, sa.Session(agent.with_(model=sa.ScriptedModel([call, "Ok."]))))
    run(shell, "%%agent\nRun it.")
    assert "policy" in session.messages[2].tool_results[0].text
    assert "gone" not in shell.user_ns


def test_new_name_and_going_on(shell: InteractiveShell) -> None:
    shell.user_ns["agent"] = sa.Agent(sa.ScriptedModel([str(i) for i in range(9)]))
    run(shell, "%agent use agent")
    conversations = extension_of(shell).conversations
    first = conversations.current
    run(shell, "%%agent\nhi")
    run(shell, "%%agent --new\nhi")
    second = conversations.current
    assert second is not first
    run(shell, "%%agent --name talk-a\nhi")
    third = conversations.current
    assert third.id == "talk-a"
    run(shell, "%%agent --name talk-b\nhi")
    run(shell, "%%agent --name talk-a\nhi")
    assert conversations.current is third
    assert len(third.messages) == 4
    run(shell, "%%agent --new --name talk-c\nhi")
    assert conversations.current.id == "talk-c"
    for name in ("talk-a", "talk-c"):
        with pytest.raises(UsageError, match="already"):
            run(shell, f"%%agent --new --name {name}\nhi")
    assert len(third.messages) == 4


def test_a_closed_conversation_is_followed_by_a_new_one(shell: InteractiveShell) -> None:
    session = use(shell, session_of("One.", "Two."))
    run(shell, "%%agent\nhi")
    session.close()
    assert run(shell, "%%agent\nhi").text == "Two."
    assert extension_of(shell).conversations.current is not session


def test_options_change_the_agent(shell: InteractiveShell) -> None:
    shell.user_ns["double"] = double
    session = use(shell, session_of(sa.ToolCall("c1", "double", {"n": 4}), "Ok."))
    run(shell, "%%agent --tools double --approve double\nhi")
    assert "double" in {tool.name for tool in session.agent.tools}
    assert "policy" in session.messages[2].tool_results[0].text
    run(shell, "%%agent --model demo\nhi")
    assert session.agent.model.name == "demo"
    shell.user_ns["mine"] = mine = sa.ScriptedModel(["Mine."])
    run(shell, "%%agent --model mine\nhi")
    assert session.agent.model is mine
    with pytest.raises(UsageError, match="no function 'missing'"):
        run(shell, "%%agent --tools missing\nhi")
    with pytest.raises(sa.ConfigurationError):
        run(shell, "%%agent --model nonsense:x\nhi")


def double(n: int) -> int:
    """Twice as much.

    Args:
        n: a number
    """
    return 2 * n


# %agent


def say(shell: InteractiveShell, line: str) -> str:
    return repr(run(shell, f"%agent {line}"))


def test_help_names_every_command_and_option(shell: InteractiveShell) -> None:
    text = say(shell, "help")
    assert text.startswith(HELP)
    for command in COMMANDS:
        assert callable(getattr(AgentMagics, f"_{command}"))
        assert command in text
    written = (Path(__file__).parents[2] / "docs/notebook.md").read_text()
    for word in (*COMMANDS, *OPTIONS):
        assert re.search(rf"`{word}[ `]", written), word
    for option in ("--new", "--name", "--model", "--approve", "--tools", "--no-wait", "--raw"):
        assert f"  {option} " in text


def test_a_conversation_is_exported_by_the_ending_and_without_the_notebooks_secrets(
    shell: InteractiveShell, tmp_path: Path
) -> None:
    shell.user_ns["db_password"] = "hunter-22"
    use(shell, sa.Agent(sa.ScriptedModel(["It is hunter-22."])))
    run(shell, "%%agent\nWhat is it?")
    for ending in ("md", "html", "ipynb"):
        path = tmp_path / f"my talk.{ending}"
        assert str(path) in say(shell, f'export "{path}"')
        text = path.read_text(encoding="utf-8")
        assert "It is [key]." in text
        assert "hunter-22" not in text
    for wrong in ("", "talk", "talk.txt"):
        with pytest.raises(UsageError, match=r"\.md, \.html or \.ipynb"):
            say(shell, f"export {wrong}")
    with pytest.raises(UsageError, match=r", not in \.txt\.$"):
        say(shell, "export talk.txt")
    with pytest.raises(UsageError, match="a folder that exists"):
        say(shell, f"export {tmp_path}/no/a.md")


def test_options_that_are_almost_right_are_told_as_they_are(shell: InteractiveShell) -> None:
    with pytest.raises(UsageError, match="no option --takeover; its one is --take-over"):
        say(shell, "load talk --takeover")
    with pytest.raises(UsageError, match="no tool 'writefile'; did you mean write_file"):
        run(shell, "%%agent --approve writefile\nhi")
    with pytest.raises(UsageError, match="no tool 'xyz'; %agent tools lists what there is"):
        run(shell, "%%agent --approve xyz\nhi")


def test_a_question_mark_shows_help(shell: InteractiveShell) -> None:
    with capture_output() as captured:
        shell.run_cell("%agent?")
    assert "Talk to an agent" in captured.stdout
    assert "%agent fix" in captured.stdout
    assert "--cell" in captured.stdout
    with capture_output() as captured:
        shell.run_cell("%%agent?")
    assert "Talk to an agent" in captured.stdout


@pytest.mark.parametrize(
    "line",
    [
        *("", "status", "todos", "files", "usage", "approve", "reject", "cancel", "reset"),
        *("tools", "tools remove x", "frame", "frame todos"),
    ],
)
def test_without_a_conversation_a_command_says_how_to_start_one(
    shell: InteractiveShell, line: str
) -> None:
    with pytest.raises(UsageError, match="There is no conversation yet"):
        run(shell, f"%agent {line}")


def test_what_waits_for_a_tool_that_is_gone_says_so_until_it_is_added(
    shell: InteractiveShell,
) -> None:
    run(shell, "def double(n: int) -> int:\n    'Double.'\n    return 2 * n")
    double = shell.user_ns["double"]
    call = sa.ToolCall("d1", "double", {"n": 2})
    asking = sa.Agent(sa.ScriptedModel([call]), tools=[double], interrupt_on={"double": True})
    first = sa.Session(asking)
    first.send("Go").result(20)
    agent = sa.Agent(sa.ScriptedModel(["Done."]))
    use(shell, sa.Session.restore(first.export_state(), agent, id="restored"))
    said = "The agent has no tool double by now, so the call would fail. Define it and add it with"
    assert f"{said} %agent tools add double, or reject." in str(run(shell, "%agent status"))
    run(shell, "%agent tools add double")
    assert "double" in str(run(shell, "%agent status"))
    assert said not in str(run(shell, "%agent status"))


def test_tools_may_be_added_before_anything_was_said(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGENTS_MODEL", "demo")
    run(shell, "def double(n: int) -> int:\n    'Double.'\n    return 2 * n")
    with pytest.raises(UsageError, match="There is no function 'dubble' in this notebook"):
        run(shell, "%agent tools add dubble")
    with pytest.raises(UsageError, match="There is no conversation yet"):
        run(shell, "%agent status")  # nor has one begun for what is not there
    added = run(shell, "%agent tools add double")
    assert str(added).startswith("Added double. Nobody is asked before double;")
    assert "double: Double." in str(run(shell, "%agent tools")).splitlines()
    assert "0 messages" in str(run(shell, "%agent status"))


@pytest.mark.parametrize(
    "word",
    ["bogus", "session", "remove_tools", "trait_values", "_messages", "config_changed", "-h"],
)
def test_an_unknown_command_is_one_sentence(shell: InteractiveShell, word: str) -> None:
    use(shell, session_of())
    with pytest.raises(UsageError) as caught:
        run(shell, f"%agent {word} x")
    assert str(caught.value) == f"%agent knows no {word!r}; see %agent help."


@pytest.mark.parametrize(
    ("word", "meant"), [("frames", "frame"), ("aprove", "approve"), ("Status", "status")]
)
def test_a_command_that_is_nearly_one_says_which(
    shell: InteractiveShell, word: str, meant: str
) -> None:
    with pytest.raises(UsageError) as caught:
        run(shell, f"%agent {word} x")
    assert str(caught.value) == f"%agent knows no {word!r}; did you mean %agent {meant}?"


@pytest.mark.parametrize("name", ["", "nothing", "number", "sa"])
def test_use_of_what_is_no_agent(shell: InteractiveShell, name: str) -> None:
    shell.user_ns["number"] = 3
    with pytest.raises(UsageError, match="is an Agent or a Session"):
        run(shell, f"%agent use {name}")


def test_use_says_whom_cells_talk_to(shell: InteractiveShell) -> None:
    shell.user_ns["mine"] = sa.Agent(sa.ScriptedModel([]))
    assert "Cells talk to 'notebook-" in say(shell, "use mine")
    session = shell.user_ns["s"] = sa.Session(shell.user_ns["mine"], id="talk")
    assert say(shell, "use s") == "Cells talk to 'talk' now (scripted)."
    assert extension_of(shell).conversations.current is session


def test_what_the_commands_say(shell: InteractiveShell) -> None:
    session = use(
        shell, session_of([plan("Look", "Write")], [write()], "Done.", id="talk", gate=True)
    )
    assert say(shell, "") == say(shell, "status") == "talk: idle, 0 messages, model scripted"
    assert say(shell, "todos") == "The to-do list is empty."
    assert say(shell, "files") == "There are no files."
    session.headless = "approve"
    run(shell, "%%agent\nGo.")
    assert say(shell, "status") == "talk: idle, 6 messages, model scripted"
    assert say(shell, "todos") == "[ ] Look\n[ ] Write"
    assert say(shell, "files").split() == ["8", "/report.md"]
    assert say(shell, "usage") == "0 tokens: 0 in, 0 out"
    assert isinstance(run(shell, "%agent frame"), pd.DataFrame)
    assert list(run(shell, "%agent frame decisions")["by"]) == ["policy"]
    with pytest.raises(UsageError, match="nonsense"):
        run(shell, "%agent frame nonsense")


def test_what_the_demo_has_used_is_told_as_an_estimate(shell: InteractiveShell) -> None:
    session = use(shell, sa.Session(sa.Agent("demo")))
    run(shell, "%%agent\nHello.")
    told = say(shell, "usage")
    assert told.startswith(f"{session.usage.total_tokens:,} tokens: ")
    assert told.endswith("asks no provider, and costs nothing.")


def test_a_conversation_is_forgotten_only_where_that_is_said_twice(
    shell: InteractiveShell,
) -> None:
    session = use(shell, session_of([plan("Look"), write()], "Done.", id="talk"))
    assert say(shell, "reset") == "'talk' is empty now."
    run(shell, "%%agent\nGo.")
    before = session.state
    with pytest.raises(UsageError) as refused:
        run(shell, "%agent reset")
    assert str(refused.value) == (
        "%agent reset would forget 'talk' for good, its 4 messages, so nothing was done: "
        "%agent reset --yes does it, and %%agent --new begins another conversation and keeps this "
        "one."
    )
    with pytest.raises(UsageError, match="takes nothing but --yes"):
        run(shell, "%agent reset --no")
    assert session.state is before
    assert say(shell, "reset --yes") == "'talk' is empty now; its 1 file stayed."
    assert (session.messages, session.todos) == ([], [])
    assert say(shell, "files").split() == ["8", "/report.md"]


def test_code_that_waits_is_shown_in_the_lines_that_it_has(shell: InteractiveShell) -> None:
    code = "import math\n\nprint('a\\n')\x1b[2J\n      path = 'forged'"
    session = use(shell, session_of(write("/a.py", code, "w1"), gate=True))
    session.send("Go").result()
    text = say(shell, "status")
    assert (
        "      content =\n"
        "        | import math\n"
        "        | \n"
        "        | print('a\\n')\\x1b[2J\n"
        "        |       path = 'forged'\n"
    ) in text + "\n"
    assert "file_path = '/a.py'" in text
    session.close()


def test_what_waits_is_shown_with_its_arguments_and_decided_by_line(
    shell: InteractiveShell,
) -> None:
    two = [write("/a.md", "A\x1b[2J", "w1"), write("/b.md", "B", "w2")]
    session = use(shell, session_of(two, "Done.", gate=True))
    session.send("Go").result()
    text = say(shell, "status")
    assert "2 calls wait for a decision:" in text
    assert "file_path = '/a.md'" in text
    assert "\x1b" not in text
    assert "w2" in say(shell, "approve w1")
    with pytest.raises(UsageError, match="No decision is open"):
        run(shell, "%agent approve w1")
    assert say(shell, "reject Not that one.") == "Rejected."
    assert session.current_run.result().text == "Done."
    assert session.files.list() == ["/a.md"]
    with pytest.raises(UsageError) as refused:
        run(shell, "%agent approve")
    assert str(refused.value) == (
        f"Nothing waits for a decision in session {session.id!r}, whose status is 'idle'."
    )


def test_a_paused_conversation_says_how_it_goes_on_and_does(shell: InteractiveShell) -> None:
    def look() -> str:
        """Look."""
        session.pause("lunch")
        return "Sun."

    calls = [sa.ToolCall("c1", "look", {}), sa.ToolCall("c2", "look", {})]
    agent = sa.Agent(sa.ScriptedModel([*calls, "It is sunny."]), tools=[look])
    session = use(shell, sa.Session(agent))
    assert session.send("How is it?").result().status == "paused"
    assert say(shell, "status").endswith("\n%agent continue goes on.")
    assert say(shell, "continue") == "It goes on."
    assert session.current_run.result().text == "It is sunny."
    with pytest.raises(UsageError, match="nothing to retry"):
        run(shell, "%agent continue")


def test_no_item_and_no_name_begins_a_line_of_its_own(shell: InteractiveShell) -> None:
    asks = write("/a.md", "A", "w1\n  w2")
    session = use(shell, session_of([plan("Look\n[x] Paid")], [asks], gate=True))
    session.send("Go").result()
    assert say(shell, "todos") == "[ ] Look [x] Paid"
    assert "  w1 w2  write_file" in say(shell, "status").splitlines()


def test_cancel_stops_what_waits(shell: InteractiveShell) -> None:
    session = use(shell, session_of(write(), gate=True))
    session.send("Go").result()
    assert say(shell, "cancel") == "Stopped."
    assert session.status == "cancelled"
    assert say(shell, "cancel") == "Nothing runs."


@pytest.mark.parametrize("line", ["cancel it", "status all", "save notes.md", "status now"])
def test_a_command_that_takes_nothing_says_so(shell: InteractiveShell, line: str) -> None:
    use(shell, session_of())
    with pytest.raises(UsageError, match=f"%agent {line.split()[0]} stands alone"):
        say(shell, line)


def test_tools_are_added_or_removed_and_nothing_else(shell: InteractiveShell) -> None:
    use(shell, session_of())
    with pytest.raises(UsageError, match="knows add and remove, not 'frob'"):
        say(shell, "tools frob")
    with pytest.raises(UsageError, match="add needs the name of a function"):
        say(shell, "tools add")


def test_all_commands_of_a_cell_show_what_they_say(shell: InteractiveShell) -> None:
    use(shell, session_of(id="talk"))
    with capture_output() as shown:
        last = value(shell.run_cell("%agent status\nif True:\n    %agent todos\n%agent usage"))
    assert shown.stdout.startswith("talk: idle, 0 messages")
    assert str(say(shell, "todos")) in shown.stdout
    assert repr(last) == say(shell, "usage")
    assert shown.stdout.count(repr(last)) <= 1  # which is the cell's own value
    with capture_output() as shown:
        value(shell.run_cell("said = %agent status\nNone"))
    assert shown.stdout == ""
    assert shell.user_ns["said"].startswith("talk: idle")


def test_a_tool_that_is_added_says_in_a_line_whether_it_asks(shell: InteractiveShell) -> None:
    use(shell, session_of("Gone."))
    shell.user_ns["double"] = double
    shell.user_ns["thrice"] = sa.tool(name="treble")(double)
    free = "Nobody is asked before {0}; %%agent --approve {0} changes that."
    assert say(shell, "tools add double") == f"Added double. {free.format('double')}"
    run(shell, "%%agent --approve double\nGo.")
    assert say(shell, "tools add thrice double") == (
        f"Added treble, double. You are asked before double. {free.format('treble')}"
    )


def test_a_tool_that_is_removed_takes_its_gate_along(shell: InteractiveShell) -> None:
    session = use(shell, session_of("Hello!"))
    shell.user_ns["double"] = double
    shell.user_ns["thrice"] = sa.tool(name="thrice")(double)
    say(shell, "tools add double thrice")
    run(shell, "%%agent --approve double,thrice\nGo.")
    assert say(shell, "tools remove double") == "Removed double."
    assert session.agent.interrupt_on == {"thrice": True}
    assert "Nobody is asked before double" in say(shell, "tools add double")


def test_what_asks_is_told_by_what_the_run_goes_by(shell: InteractiveShell) -> None:
    gate = sa.HumanInTheLoop({"by_gate": True})
    use(shell, sa.Session(sa.Agent(sa.ScriptedModel([]), middleware=[gate])))
    shell.user_ns["by_gate"] = sa.tool(name="by_gate")(double)
    assert say(shell, "tools add by_gate") == "Added by_gate. You are asked before by_gate."
    use(shell, sa.Session(sa.Agent(sa.ScriptedModel([]), interrupt_on={"by_gl*": True})))
    shell.user_ns["by_itself"] = sa.tool(name="by_itself", needs_approval=True)(double)
    shell.user_ns["by_glob"] = sa.tool(name="by_glob")(double)
    said = say(shell, "tools add by_itself by_glob")
    assert said == "Added by_itself, by_glob. You are asked before by_itself, by_glob."
    listed = say(shell, "tools").splitlines()
    asking = [line.split(":")[0] for line in listed if "(asks first)" in line]
    assert asking == ["by_itself (asks first)", "by_glob (asks first)"]


def test_a_middleware_that_looks_at_calls_may_ask(shell: InteractiveShell) -> None:
    class Curfew(sa.Middleware):
        def before_tool(self, call: sa.ToolCall, ctx: sa.RunContext) -> None:
            pass

    use(shell, sa.Session(sa.Agent(sa.ScriptedModel([]), middleware=[Curfew()])))
    shell.user_ns["double"] = double
    assert say(shell, "tools add double") == (
        "Added double. A middleware of the agent decides whether you are asked before double."
    )


def test_a_tool_that_was_always_allowed_says_how_to_be_asked_again(shell: InteractiveShell) -> None:
    shell.user_ns["double"] = sa.tool(name="double", needs_approval=True)(double)
    call = sa.ToolCall("d1", "double", {"n": 2})
    session = use(shell, session_of([call], "Four."))
    say(shell, "tools add double")
    session.send("Go").result()
    session.resume(sa.Approve(always=True)).result()
    assert say(shell, "tools add double") == (
        "Added double. You have always allowed double; %agent ask double changes that."
    )


def test_model_and_tools_are_shown_and_changed(shell: InteractiveShell) -> None:
    session = use(shell, session_of())
    shell.user_ns["double"] = double
    assert "Scripted" in say(shell, "model")
    say(shell, "tools add double")
    assert "double: Twice as much." in say(shell, "tools")
    assert say(shell, "tools remove double") == "Removed double."
    assert "double" not in say(shell, "tools")
    with pytest.raises(UsageError, match="ls cannot be removed"):
        run(shell, "%agent tools remove ls")
    with pytest.raises(UsageError, match="no function 'nothing'"):
        run(shell, "%agent tools add nothing")
    say(shell, "model demo")
    assert session.agent.model.name == "demo"
    shell.user_ns["mine"] = sa.ScriptedModel(["Mine."])
    assert "Scripted" in say(shell, "model mine")
    with pytest.raises(UsageError):
        run(shell, "%agent model nonsense:x")


def test_list_names_the_live_conversations(shell: InteractiveShell) -> None:
    shell.user_ns["mine"] = sa.Agent(sa.ScriptedModel([]))
    run(shell, "%agent use mine")
    id = extension_of(shell).conversations.current.id
    assert f"{id}: idle, 0 messages" in say(shell, "list")


# What a session looks like


def test_a_session_is_shown_as_text_where_nobody_could_click(shell: InteractiveShell) -> None:
    session = use(shell, session_of("Hello <b>there</b>.", id="talk"))
    run(shell, "%%agent\nhi")
    show = shell.display_formatter.mimebundle_formatter
    data, _ = show(session)
    assert data["text/plain"] == "<Session 'talk': idle, 2 messages>"
    assert "&gt; hi\n\nHello &lt;b&gt;there" in data["text/html"]
    assert set(data) == {"text/plain", "text/html"}
    view, _ = show(sa.ChatView(session))
    assert view["text/plain"] == "<Panel 'chat' of session 'talk'>"
    assert set(view) == {"text/plain", "text/html"}


def test_a_model_is_chosen_before_the_first_conversation(shell: InteractiveShell) -> None:
    shell.user_ns["mine"] = sa.ScriptedModel(["Scripted."])
    assert str(value(shell.run_cell("%agent model mine"))) == "ScriptedModel('scripted')"
    with capture_output() as said:
        result = run(shell, "%%agent\nhello\n")
    assert result.text == "Scripted."
    assert "The default model" not in said.stdout
    assert str(value(shell.run_cell("%agent model"))) == "ScriptedModel('scripted')"


def test_a_session_that_was_used_is_found_again_by_its_id(shell: InteractiveShell) -> None:
    shell.user_ns["cruise"] = sa.Session(sa.Agent(sa.ScriptedModel(["One", "Two"])), id="cruise-7")
    run(shell, "%agent use cruise")
    run(shell, "%%agent\nHello")
    shell.user_ns["other"] = sa.Agent(sa.ScriptedModel(["Else"]))
    run(shell, "%agent use other")
    run(shell, "%%agent\nHello")
    assert "cruise-7" in say(shell, "list")
    assert run(shell, "%%agent --name cruise-7\nAgain").text == "Two"
    assert len(shell.user_ns["cruise"].messages) == 4
    shell.user_ns["twin"] = sa.Session(sa.Agent(sa.ScriptedModel([])), id="cruise-7")
    with pytest.raises(UsageError, match="'cruise-7' is live here already"):
        run(shell, "%agent use twin")
    sa.sessions.stop("cruise-7")


@pytest.mark.parametrize("command", ["model", "model foo:", "model anthropic:", "use", "load", ""])
def test_what_a_command_says_has_no_key_that_was_typed(
    shell: InteractiveShell, command: str
) -> None:
    key = "sk-ant-api03-AbCdEf0123456789xyzXYZ"
    separator = "" if command.endswith(":") else " "
    with pytest.raises(UsageError) as raised:
        shell.run_line_magic("agent", f"{command}{separator}{key}")
    assert key not in str(raised.value)


@pytest.mark.parametrize("option", ["--model ", "--model foo:", "--tools ", "--api-key ", "--"])
def test_what_a_cell_says_has_no_key_that_was_typed(shell: InteractiveShell, option: str) -> None:
    key = "sk-ant-api03-AbCdEf0123456789xyzXYZ"
    with capture_output() as shown:
        raised = shell.run_cell(f"%%agent {option}{key}\nhi").error_in_exec
    assert raised is not None
    assert key not in f"{raised}{shown.stdout}{shown.stderr}"


def test_a_question_that_stands_beside_the_magic_is_told_where_it_belongs(
    shell: InteractiveShell,
) -> None:
    with pytest.raises(UsageError) as caught:
        run(shell, "%agent how many rows has df")
    assert str(caught.value) == (
        "%agent knows no 'how'; what you ask an agent stands below %%agent, on lines of its own."
    )


def test_a_model_whose_key_is_missing_says_so_as_it_is_chosen(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    use(shell, session_of())
    said = "$OPENAI_API_KEY is not set here: set it, or go back with %agent model demo."
    assert say(shell, "model openai:gpt-5").splitlines()[-1] == said
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert "not set" not in say(shell, "model openai:gpt-5")
    assert "not set" not in say(shell, "model demo")


def test_a_store_that_is_gone_is_not_said_to_keep_anything(
    shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept" / "agents.db"
    kept.parent.mkdir()
    with sa.ConversationStore(kept) as store:
        monkeypatch.setattr(NotebookStorage, "store", property(lambda self: store))
        use(shell, sa.Agent(sa.ScriptedModel(["Hello."])))
        run(shell, "%%agent\nhi")
        assert "agents.db" in say(shell, "save")
        kept.rename(kept.with_name("elsewhere.db"))
        with pytest.raises(UsageError, match=r"agents\.db is not there any more"):
            say(shell, "save")
