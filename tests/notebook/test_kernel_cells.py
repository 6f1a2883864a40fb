"""``%%agent`` in real kernels: with nobody there, and with a front end."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from sagents_nb.notebook.headless import retry_start
from tests.notebook.kernel import WIDGET, Kernel
from tests.talking import PATIENCE

SETUP = textwrap.dedent(
    '''
    %load_ext sagents_nb
    import asyncio, pathlib, sys, threading, time
    import sagents_nb as sa
    from sagents_nb import ScriptedModel, ToolCall

    def write(id="w1", path="/report.md"):
        return ToolCall(id, "write_file", {"file_path": path, "content": "# Report"})

    def told(request):
        return "The tool said: " + request.messages[-1].tool_results[0].text

    def start(*turns, delay=0.0, tools=(), name=None, gate=("write_file",), **options):
        """Cells talk to a new session with that script; its first words make the file "begun"."""
        global s
        agent = sa.Agent(ScriptedModel(turns, delay=delay), tools=tools,
                         interrupt_on=dict.fromkeys(gate, True))
        s = sa.Session(agent, id=name, **options)
        s.subscribe(note(lambda e: e.type == "message_update", "begun"))
        s.subscribe(note(lambda e: getattr(e, "status", "") == "interrupted", "asked"))
        get_ipython().run_line_magic("agent", "use s")

    def note(meant, name):
        """Makes that file at the first event that is meant."""
        times = iter([1])
        pathlib.Path(name).unlink(missing_ok=True)
        return lambda event: meant(event) and next(times, 0) and pathlib.Path(name).touch()

    begun = pathlib.Path("begun")
    go_on = threading.Event()

    async def held(request):
        """Answers when the test lets it."""
        await asyncio.to_thread(go_on.wait)
        go_on.clear()
        return "Held."
    '''
)

ENDLESS = "'word ' * 100_000"


@pytest.fixture(scope="module", autouse=True)
def prepared(kernel: Kernel) -> None:
    kernel.ok(SETUP)


# Nobody there


@pytest.mark.parametrize(
    ("policy", "files", "said"),
    [
        ("'deny'", "[]", "This call was not run. Nobody was there to decide, so the policy"),
        ("'approve'", "['/report.md']", "The tool said: {"),
        ("[sa.Reject('Not today.')]", "[]", "Not today."),
        ("[dict(type='edit', arguments=dict(file_path='/x.md', content='y'))]", "['/x.md']", ""),
        ("[]", "[]", "the policy for unattended runs denied it"),
    ],
)
def test_where_nobody_can_click_a_policy_decides(
    kernel: Kernel, policy: str, files: str, said: str
) -> None:
    kernel.ok(f"start(write(), told, headless={policy})")
    cell = kernel.ok("%%agent\nWrite.")
    assert said in cell.shown[0]["text/markdown"]
    assert kernel.ok("print(s.files.list())").text == f"{files}\n"
    assert "policy" in kernel.ok("print(list(s.to_frame('decisions').by))").text


def test_what_only_a_person_can_answer_is_said_below_the_cell(kernel: Kernel) -> None:
    kernel.ok(
        "def pay(amount: int):\n    'Pay.'\n    from sagents_nb.loop.open_calls import in_doubt\n"
        "    return in_doubt([ToolCall('p1', 'pay', {'amount': amount})])\n"
        "start(ToolCall('p1', 'pay', {'amount': 9}), told, tools=[pay], headless='approve')"
    )
    cell = kernel.ok("%%agent\nPay.")
    assert kernel.ok("print(Out[max(Out)])").text == "Agent run interrupted: 1 turn, 1 tool call\n"
    assert cell.text.startswith(
        "Nobody is there to decide. The process ended when this had begun: pay."
    )
    assert "amount = 9" in cell.text
    id = kernel.ok("print(s.id)").text.strip()
    assert f"sa.sessions.get({id!r}) as the last line of a cell shows buttons" in cell.text
    assert kernel.ok("print(s.status)").text == "interrupted\n"


def test_a_wrong_policy_fails_the_cell_and_runs_nothing(kernel: Kernel) -> None:
    cell = kernel.run("start(write(), told, headless='maybe')")
    assert cell.error == "ConfigurationError"


def test_without_a_front_end_there_is_one_display_and_the_result_is_at_hand(kernel: Kernel) -> None:
    kernel.ok("start(['Let me.', write()], told, headless='approve')")
    cell = kernel.ok("%%agent\nWrite.")
    assert len(cell.shown) == 1
    assert not cell.updates
    assert set(cell.shown[0]) == {"text/plain", "text/markdown"}
    assert not cell.has_value
    assert kernel.ok("print(_, _ is Out[max(Out)])").text == (
        "Agent run completed: 2 turns, 1 tool call True\n"
    )
    assert cell.shown[0]["text/plain"] == cell.shown[0]["text/markdown"]
    assert cell.shown[0]["text/plain"].startswith("> Write.\n\nLet me.\n\n- `write_file(")
    assert not [m for m in cell.messages if m["msg_type"].startswith("comm")]


def test_text_that_is_not_unicode_does_not_fail_the_cell(kernel: Kernel) -> None:
    kernel.ok(
        "def odd() -> str:\n    'Odd.'\n    return 'caf\\udce9 \\ud800'\n"
        "start(ToolCall('c1', 'odd', {}), 'Done.', tools=[odd])"
    )
    cell = kernel.ok("%%agent\nGo.")
    assert "caf" in cell.shown[0]["text/markdown"]
    assert "Agent run completed" in kernel.ok("print(Out[max(Out)])").text


def notebook(tmp_path: Path, *cells: str) -> nbformat.NotebookNode:
    """These cells after SETUP, run as nbclient runs them by default."""
    v4 = nbformat.v4
    made = v4.new_notebook(cells=[v4.new_code_cell(code) for code in (SETUP, *cells)])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    place = {"metadata": {"path": str(tmp_path)}}
    retry_start(NotebookClient(made, timeout=PATIENCE, resources=place).execute)
    return made


def test_a_notebook_that_ran_unattended_is_the_same_twice_and_holds_no_widget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    cells = (
        "start(write(), told, 'And more.', name='talk')",
        "%%agent\nWrite.",
        "%%agent --plain\nMore?",
        "s",
        "s.to_frame('decisions')[['tool_call_id', 'decision', 'by']]",
        "%agent status",
    )
    made = [notebook(tmp_path, *cells) for _ in range(2)]
    outputs = [[cell.outputs for cell in nb.cells] for nb in made]
    assert outputs[0] == outputs[1]
    assert "widgets" not in made[0].metadata
    text = json.dumps(made[0])
    assert "widget" not in text.replace("sagents_nb", "")
    assert "denied" in outputs[0][2][0]["data"]["text/markdown"]


# Images


def test_the_figure_that_a_prompt_names_is_sent_with_it(kernel: Kernel) -> None:
    kernel.ok("""
from matplotlib.figure import Figure
figure = Figure(figsize=(2, 1))
start(lambda request: f"{request.messages[-1].text}: {request.messages[-1].parts[1].mime_type}")
""")
    cell = kernel.ok("%%agent\nWhat is {figure}?")
    assert cell.text == (
        "scripted may not see images: if its answer misses what is in them, choose another model "
        "with %agent model PROVIDER:NAME.\n"
    )
    shown = cell.shown[0]
    assert "What is attached image 1 (figure)?: image/png" in shown["text/plain"]
    assert "> What is {figure}?\n> \n> (with figure: image)" in shown["text/plain"]
    assert "\n![image](data:image/png;base64," in shown["text/markdown"]


def test_an_image_is_told_with_the_transcript_once_when_the_run_has_ended(kernel: Kernel) -> None:
    kernel.ok("""
def draw():
    return sa.ImagePart("iVBORw0KGgo=")
start(ToolCall("c1", "draw", {}), "Word by word it goes on, " * 20, delay=0.01, tools=[draw])
""")
    cell = kernel.ok("%%agent\nDraw.", front_end=True)
    told = [str(shown).count("base64,iVBORw0KGgo=") for shown in [*cell.shown, *cell.updates]]
    assert told == [0, 1]


def test_a_figure_that_a_tool_gives_back_is_seen_once_and_one_that_it_keeps_below_the_cell(
    kernel: Kernel,
) -> None:
    kernel.ok("""
def draw():
    import matplotlib.pyplot as plt
    kept, _ = plt.subplots(figsize=(2, 1))
    given, axes = plt.subplots(figsize=(1, 2))
    axes.plot([1, 2])
    return given
%matplotlib inline
start(ToolCall("c1", "draw", {}), "It is above.", tools=[draw])
""")
    cell = kernel.ok("%%agent\nDraw.", front_end=True)
    assert str(cell.updates[-1]).count("base64,") == 1
    below = [shown["text/plain"] for shown in cell.shown if "image/png" in shown]
    assert below == ["<Figure size 200x100 with 1 Axes>"]


def test_images_that_are_too_many_or_too_large_are_text_and_the_cell_says_so(
    kernel: Kernel,
) -> None:
    kernel.ok("""
class Shown:
    def __init__(self, size=9):
        self.size = size
    def _repr_png_(self):
        return bytes([137]) + b"PNG\\r\\n\\x1a\\n".ljust(self.size, b"0")
    def __repr__(self):
        return "a drawing"
large = Shown(6_000_000)
a, b, c, d, e, f, g, h, i = (Shown() for _ in range(9))
start(lambda request: f"{request.messages[-1].text}: {len(request.messages[-1].parts)} parts")
s.agent.model.reads_images = True
""")
    cell = kernel.ok("%%agent\n{large} {a} {b} {c} {d} {e} {f} {g} {h} {i}")
    assert cell.text == (
        "{large} was sent as text: an attached image has at most 5 MB.\n"
        "{i} was sent as text: a message has at most 8 images.\n"
    )
    text = cell.shown[0]["text/plain"]
    assert "a drawing attached image 1 (a) attached image 2 (b)" in text
    assert "attached image 8 (h) a drawing: 9 parts" in text


# A front end


def test_with_a_front_end_the_panel_and_the_transcript_are_one_output(kernel: Kernel) -> None:
    kernel.ok("start('Hello there.', name='talk-1')")
    cell = kernel.ok("%%agent\nhi", front_end=True)
    assert len(cell.shown) == 1
    assert len(cell.updates) == 1
    before, after = cell.shown[0], cell.updates[0]
    assert set(before) == set(after) == {WIDGET, "text/plain", "text/markdown"}
    assert before[WIDGET] == after[WIDGET]
    assert before["text/plain"] == after["text/plain"] == "<Panel 'run' of session 'talk-1'>"
    assert before["text/markdown"] == "*The agent was at work when this was saved.*"
    assert after["text/markdown"] == "> hi\n\nHello there."
    assert not cell.has_value
    assert kernel.ok("print(Out[max(Out)])").text == "Agent run completed: 1 turn\n"


@pytest.mark.parametrize(
    ("cell", "typed"),
    [("Count to 3.", True), ("Count to {n}.", True), ("%agent fix", False)],
)
def test_the_panel_knows_whether_its_cell_has_the_prompt_word_for_word(
    kernel: Kernel, cell: str, typed: bool
) -> None:
    kernel.ok("start('One, two, three.')\nn = 3")
    if typed:
        cell = f"%%agent\n{cell}"
    else:
        kernel.run("1 / 0")
    run = kernel.ok(cell, front_end=True)
    opened = [m["content"]["data"]["state"] for m in run.messages if m["msg_type"] == "comm_open"]
    assert [state["typed"] for state in opened if state.get("view") == "run"] == [typed]


def test_what_people_answered_is_in_the_transcript_of_the_cell(kernel: Kernel) -> None:
    kernel.ok(
        "def ask():\n    'Ask.'\n    return sa.Interrupt('tool', message='Which one?')\n"
        "def answer(event):\n    if getattr(event, 'status', '') == 'interrupted':\n"
        "        threading.Thread(target=s.resume, args=[sa.Respond('The blue one.')]).start()\n"
        "start(ToolCall('q1', 'ask', {}), 'Blue it is.', tools=[ask])\n"
        "_ = s.subscribe(answer)"
    )
    cell = kernel.ok("%%agent\nGo.", front_end=True)
    assert "The blue one." in cell.updates[-1]["text/markdown"]
    assert "Which one?" not in cell.updates[-1]["text/markdown"]
    assert "Blue it is." in cell.updates[-1]["text/markdown"]


def test_no_content_is_in_the_traits_of_a_panel(kernel: Kernel) -> None:
    kernel.ok("start('A secret answer.')")
    cell = kernel.ok("%%agent\nA secret question.", front_end=True)
    comms = [m["content"]["data"] for m in cell.messages if m["msg_type"].startswith("comm")]
    traits = [data for data in comms if data.get("method") != "custom"]
    assert traits
    assert "secret" not in json.dumps(traits)
    shown = kernel.ok("s", front_end=True)
    assert WIDGET in shown.shown[0]
    assert shown.shown[0]["text/markdown"] == "> A secret question.\n\nA secret answer."
    seen = kernel.ok(
        "from sagents_nb.notebook.widget import panel_of\n"
        "print({k: v for k, v in panel_of(s).get_state().items() if k[0] != '_'})\n"
        "print(panel_of(s))"
    ).text
    assert "secret" not in seen
    assert "'view': 'session'" in seen
    state, name = seen.splitlines()
    keys = {"session_id", "view", "run_id", "source", "version", "typed", "waiting"}
    assert keys <= set(eval(state)) <= {*keys, "layout", "tabbable", "tooltip"}
    assert name.startswith("<Panel 'session' of session 'session-")


def test_the_whole_panel_is_shown_and_how_to_keep_it_beside_the_notebook(kernel: Kernel) -> None:
    kernel.ok("start(write(), 'Later.', name='study')")
    kernel.ok("%%agent --no-wait\nWrite.", front_end=True)
    cell = kernel.ok("%agent panel", front_end=True)
    assert WIDGET in cell.shown[0]
    assert cell.shown[0]["text/plain"] == "<Panel 'session' of session 'study'>"
    [line] = cell.value["text/plain"].splitlines()
    assert line.startswith("To keep it beside the notebook in JupyterLab, right-click it")
    cell = kernel.ok("%agent panel")  # nobody could click
    assert cell.shown == []
    state, question = cell.value["text/plain"].splitlines()[:2]
    assert state.startswith("study: interrupted, ")
    assert question == "1 call waits for a decision:"
    kernel.ok("s.cancel()")


def test_a_cell_whose_message_comes_instead_of_an_answer_says_what_it_cancels(
    kernel: Kernel,
) -> None:
    kernel.ok("start(write(), 'Another way then.')")
    assert "waited" not in kernel.ok("%%agent --no-wait\nWrite.", front_end=True).text
    cell = kernel.ok("%%agent\nRather do not.", front_end=True)
    assert cell.text == (
        "write_file waited for an answer, and is cancelled: this message came instead.\n"
    )
    assert kernel.ok("print(s.files.exists('/a.md'), s.messages[-1].text)").text == (
        "False Another way then.\n"
    )


def test_a_cell_that_fails_shows_what_there_was(kernel: Kernel) -> None:
    kernel.ok("start(['First.', ToolCall('c1', 'ls', {})], sa.ModelError('The key is wrong.'))")
    for front_end in (True, False):
        cell = kernel.run("%%agent\nGo.", front_end=front_end)
        assert cell.error == "ModelError"
        shown = (cell.updates if front_end else cell.shown)[0]["text/markdown"]
        assert "> Go." in shown
        kernel.ok("start(['First.', ToolCall('c1', 'ls', {})], sa.ModelError('The key is wrong.'))")


# Stopping


@pytest.mark.parametrize("front_end", [True, False])
def test_an_interrupt_stops_the_run(kernel: Kernel, front_end: bool) -> None:
    kernel.ok(f"start({ENDLESS}, 'Later.', delay=0.01)")
    id = kernel.start("%%agent\nTell me.", front_end=front_end)
    kernel.wait_for("begun")
    kernel.manager.interrupt_kernel()
    cell = kernel.finish(id)
    assert cell.error == "KeyboardInterrupt"
    [told] = cell.of("error")
    assert told["traceback"] == ["KeyboardInterrupt: The run was stopped."]
    assert kernel.ok("print(s.status, s.current_run.done)").text == "cancelled True\n"
    shown = (cell.updates if front_end else cell.shown)[0]["text/markdown"]
    assert "> Tell me." in shown
    assert "Later." in kernel.ok("%%agent\nAgain.").shown[0]["text/markdown"]


def test_an_interrupt_denies_what_waits(kernel: Kernel) -> None:
    kernel.ok("start(write(), 'Later.')")
    id = kernel.start("%%agent\nWrite.", front_end=True)
    kernel.wait_for("asked")
    kernel.manager.interrupt_kernel()
    assert kernel.finish(id).error == "KeyboardInterrupt"
    assert kernel.ok("print(s.status, s.interrupt, s.files.list())").text == "cancelled None []\n"


def test_an_interrupt_stops_what_the_cell_began_and_not_what_it_waits_behind(
    kernel: Kernel,
) -> None:
    kernel.ok("start(held, 'Later.')")
    kernel.ok("%%agent --background\nOne.")
    kernel.ok(
        """
def look():
    while not s.info()["queued"]:
        time.sleep(0.02)
    pathlib.Path("queued").touch()

threading.Thread(target=look, daemon=True).start()
"""
    )
    id = kernel.start("%%agent\nTwo.")
    kernel.wait_for("queued")
    kernel.manager.interrupt_kernel()
    assert kernel.finish(id).error == "KeyboardInterrupt"
    assert kernel.ok("print(s.status)").text == "running\n"
    kernel.ok("go_on.set()")
    assert kernel.ok("print(s.current_run.result().status, len(s.messages))").text == (
        "completed 2\n"
    )


@pytest.mark.parametrize("code", ["time.sleep(3600)", "while True: pass"])
def test_an_interrupt_stops_code_that_blocks_the_main_thread(kernel: Kernel, code: str) -> None:
    kernel.ok(
        "inside = pathlib.Path('inside')\n"
        "start(ToolCall('c1', 'run_python', {'code': \"print('so far'); inside.touch()\\n"
        + code
        + "\"}), 'Later.')\n"
        "from sagents_nb.notebook import NotebookTools\n"
        "free = {'run_python': False}\n"
        "s.replace(agent=s.agent.with_(middleware=[NotebookTools()], interrupt_on=free))"
    )
    id = kernel.start("%%agent\nGo.")
    kernel.wait_for("inside")
    kernel.manager.interrupt_kernel()
    cell = kernel.finish(id)
    assert cell.error == "KeyboardInterrupt"
    assert kernel.ok("print(s.status)").text == "cancelled\n"
    kernel.ok("start('Still here.')")
    assert "Still here." in kernel.ok("%%agent\nhi").shown[0]["text/markdown"]


# Options


def test_background_returns_at_once(kernel: Kernel) -> None:
    kernel.ok("start(held)")
    cell = kernel.ok("%%agent --background\nTell me.", front_end=True)
    assert not cell.of("execute_result")
    assert WIDGET in cell.shown[0]
    assert "running" in kernel.ok("%agent status").value["text/plain"]
    assert kernel.ok("go_on.set(); print(s.current_run.result().status)").text == "completed\n"


@pytest.mark.parametrize("option", ["--no-wait", "--plain"])
def test_without_waiting_a_later_cell_approves(kernel: Kernel, option: str) -> None:
    kernel.ok("start(write(), told)")
    cell = kernel.ok(f"%%agent {option}\nWrite.", front_end=True)
    assert ("waits for a decision" in cell.text) is (option == "--plain")
    assert ("%agent approve or %agent reject" in cell.text) is (option == "--plain")
    assert kernel.ok("print(Out[max(Out)])").text == "Agent run interrupted: 1 turn, 1 tool call\n"
    status = kernel.ok("%agent status").value["text/plain"].splitlines()
    assert "  w1  write_file" in status
    assert "      content = '# Report'" in status
    assert "      overwrite = False (default)" in status
    approved = kernel.ok("%agent approve", front_end=True)
    assert approved.value["text/plain"] == "Approved."
    assert "The tool said" in kernel.ok("print(s.current_run.result().text)").text
    assert kernel.ok("print(s.files.list())").text == "['/report.md']\n"


def test_plain_shows_text_and_no_panel(kernel: Kernel) -> None:
    kernel.ok("start('Hello.')")
    cell = kernel.ok("%%agent --plain\nhi", front_end=True)
    assert cell.shown == [{"text/plain": "> hi\n\nHello.", "text/markdown": "> hi\n\nHello."}]
    assert not cell.updates


def test_a_question_in_plain_text_is_not_said_to_be_approved(kernel: Kernel) -> None:
    kernel.ok(
        "question = {'question': 'Which city?', 'response_type': 'freeform'}\n"
        "s = sa.Session(sa.Agent(ScriptedModel([sa.ToolCall('c1', 'ask_user', question), 'x']),"
        " middleware=[sa.AskUser()]))\n"
        "get_ipython().run_line_magic('agent', 'use s')"
    )
    cell = kernel.ok("%%agent --plain\nhi", front_end=True)
    assert "Which city?" in cell.text
    assert "as the last line of a cell shows buttons to answer with" in cell.text
    assert "%agent approve" not in cell.text


def test_a_usage_error_is_one_line(kernel: Kernel) -> None:
    cell = kernel.run("%%agent --bogus\nhi")
    assert "UsageError: %%agent: unrecognized arguments: --bogus; see %agent help." in (
        cell.text + str(cell.reply)
    )
    assert cell.reply["status"] == "error"


# Threads and loops


def test_tools_run_where_they_say_while_the_cell_awaits(kernel: Kernel) -> None:
    kernel.ok(
        "where = {}\n"
        "@sa.tool(run_on='main')\ndef on_main() -> str:\n    'M.'\n"
        "    where['main'] = threading.current_thread() is threading.main_thread(); return 'm'\n"
        "@sa.tool\ndef in_pool() -> str:\n    'P.'\n"
        "    where['pool'] = threading.current_thread().name; return 'p'\n"
        "@sa.tool\nasync def on_loop() -> str:\n    'L.'\n"
        "    where['loop'] = threading.current_thread().name; return 'l'\n"
        "calls = [ToolCall(n, n, {}) for n in ('on_main', 'in_pool', 'on_loop')]\n"
        "start(calls, 'Done.', calls, 'Done.', tools=[on_main, in_pool, on_loop])"
    )
    kernel.ok("%%agent\nGo.")
    assert (
        kernel.ok("print(where)").text
        == ("{'main': True, 'pool': 'sagents-tool_0', 'loop': 'sagents-runtime'}\n")
        or "sagents-tool" in kernel.ok("print(where)").text
    )
    kernel.ok("where.clear(); s.send('Again').result()")
    assert kernel.ok("print(where['main'])").text == "True\n"


def test_prints_of_tools_do_no_harm(kernel: Kernel) -> None:
    kernel.ok(
        "@sa.tool(run_on='main')\n"
        "def loud() -> str:\n    'L.'\n    print('from main'); return 'm'\n"
        "@sa.tool\ndef louder() -> str:\n    'L.'\n    print('from pool'); return 'p'\n"
        "@sa.tool\nasync def loudest() -> str:\n    'L.'\n    print('from loop'); return 'l'\n"
        "calls = [ToolCall(n, n, {}) for n in ('loud', 'louder', 'loudest')]\n"
        "start(calls, 'Done.', tools=[loud, louder, loudest])"
    )
    cell = kernel.ok("%%agent\nGo.")
    assert "Done." in cell.shown[0]["text/markdown"]
    for where in ("main", "pool", "loop"):  # print() writes its newline apart, so lines can mix
        assert f"from {where}" in cell.text


RUN = (
    "agent = sa.Agent(ScriptedModel([ToolCall('c1', 'main_name', {}), told]), tools=[main_name])\n"
    "r = agent.run('Go')\nprint(r.status, r.text)"
)
MAIN_NAME = (
    "@sa.tool(run_on='main')\ndef main_name() -> str:\n    'N.'\n"
    "    return threading.current_thread().name\n"
)


def test_a_blocking_run_works_in_a_cell_and_inside_a_running_loop(kernel: Kernel) -> None:
    kernel.ok(MAIN_NAME)
    expected = "completed The tool said: MainThread\n"
    assert kernel.ok(RUN).text == expected
    awaiting = textwrap.indent(RUN, "    ")
    assert kernel.ok(f"async def go():\n{awaiting}\nawait go()").text == expected
    assert kernel.ok(RUN.replace("agent.run('Go')", "await agent.arun('Go')")).text == expected


def test_a_blocking_run_of_a_gated_call_comes_back_interrupted(kernel: Kernel) -> None:
    code = (
        "agent = sa.Agent(ScriptedModel([write(), told]), interrupt_on={'write_file': True})\n"
        "r = agent.run('Go'); print(r.status)\n"
        "r = agent.resume(r, sa.Approve()); print(r.status)"
    )
    assert kernel.ok(code).text == "interrupted\ncompleted\n"


# What the model sees of the notebook


TOOLS = (
    "from sagents_nb.notebook import NotebookTools\n"
    "def call(tool_, **arguments):\n"
    "    agent = sa.Agent(ScriptedModel([ToolCall('c1', tool_, arguments), told]),\n"
    "                     middleware=[NotebookTools()], interrupt_on={'run_python': False})\n"
    "    print(agent.run('Go').text.removeprefix('The tool said: '))\n"
)


def test_run_python_sees_and_changes_the_notebook(kernel: Kernel) -> None:
    kernel.ok(TOOLS + "x = 20")
    assert kernel.ok("call('run_python', code='print(x)\\ny = x + 1\\ny * 2')").text == "20\n42\n"
    assert kernel.ok("print(y)").text == "21\n"
    assert "ran and printed nothing" in kernel.ok("call('run_python', code='z = 1')").text
    assert "ZeroDivisionError" in kernel.ok("call('run_python', code='1 / 0')").text
    assert "SyntaxError" in kernel.ok("call('run_python', code='1 +')").text
    long = kernel.ok("call('run_python', code='print(\"ab\" * 100_000)')").text
    assert 9_000 < len(long) < 11_000


@pytest.mark.parametrize("code", ["exit()", "quit", "import sys; sys.exit(3)", "raise SystemExit"])
def test_exit_ends_the_code_and_not_the_kernel(kernel: Kernel, code: str) -> None:
    kernel.ok(TOOLS)
    kernel.ok("same = exit, quit")
    kernel.ok(f"call('run_python', code={code!r}); time.sleep(0.2)")
    assert kernel.ok("print(same == (exit, quit))").text == "True\n"
    assert kernel.ok("call('run_python', code='6 * 7')").text == "42\n"


def test_inspect_variables_and_show_frame(kernel: Kernel) -> None:
    kernel.ok(
        TOOLS + "import pandas as pd\n"
        "from pandas import DataFrame\n"
        "df = pd.DataFrame({'name': ['Ada', None], 'age': [36, 41]})\n"
        "class Broken:\n    def __repr__(self): raise RuntimeError('no')\n"
        "broken = Broken(); _hidden = 1; n = 7"
    )
    listed = kernel.ok("call('inspect_variables')").text
    assert "n: int 7" in listed
    assert "df: DataFrame" in listed
    assert "broken: Broken" in listed
    assert "_hidden" not in listed
    told = kernel.ok("call('inspect_variables', names=['df', 'nothing'])").text
    assert "- age: int64" in told
    assert "nothing: there is no such variable" in told
    shown = kernel.ok("call('show_frame', name='df', rows=1)").text
    assert "Statistics:\n" in shown
    assert shown.rstrip().endswith("Rows:\nname,age\nAda,36")
    for name in ("n", "missing", "DataFrame"):
        assert "is no data frame" in kernel.ok(f"call('show_frame', name={name!r})").text


def test_a_frame_in_a_prompt_is_described(kernel: Kernel) -> None:
    kernel.ok(
        "import pandas as pd\ndf = pd.DataFrame({'age': [36, 41]})\n"
        "start(lambda request: request.messages[-1].text)"
    )
    cell = kernel.ok("%%agent\nWhat is in {df}?")
    shown = cell.shown[0]["text/markdown"]
    assert shown.startswith("> What is in {df}?\n> \n> (with df: 2 rows × 1 column)\n\n")
    assert "What is in `df`?\n\n`df` is a DataFrame, 2 rows × 1 column" in shown  # as was sent
    assert "- age: int64" in shown


# These change the kernel for good, so they have one of their own.


def test_beside_nest_asyncio(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    try:
        kernel.ok(SETUP + MAIN_NAME)
        kernel.ok("import nest_asyncio; nest_asyncio.apply()")
        assert kernel.ok(RUN).text == "completed The tool said: MainThread\n"
        nested = (
            "import asyncio\nasync def go():\n    return (await agent.arun('Go')).status\n"
            "agent = sa.Agent(ScriptedModel(['Hi.']))\n"
            "print(asyncio.get_event_loop().run_until_complete(go()))"
        )
        assert kernel.ok(nested).text == "completed\n"
        kernel.ok("start(write(), told, headless='approve')")
        assert "gave" in kernel.ok("%%agent\nWrite.").shown[0]["text/markdown"]
        kernel.ok(f"start({ENDLESS}, delay=0.01)")
        id = kernel.start("%%agent\nTell me.")
        kernel.wait_for("begun")
        kernel.manager.interrupt_kernel()
        assert kernel.finish(id).error == "KeyboardInterrupt"
        assert kernel.ok("print(s.status)").text == "cancelled\n"
    finally:
        kernel.stop()


def test_without_pandas(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    try:
        kernel.ok("import sys; sys.modules['pandas'] = None")
        kernel.ok(SETUP + TOOLS + "table = [1, 2]")
        assert "table: list [1, 2]" in kernel.ok("call('inspect_variables')").text
        assert "is no data frame" in kernel.ok("call('show_frame', name='table')").text
        assert kernel.ok("call('run_python', code='sum(table)')").text == "3\n"
        kernel.ok("start(lambda request: request.messages[-1].text)")
        assert "See [1, 2]" in kernel.ok("%%agent\nSee {table}").shown[0]["text/markdown"]
        assert "DataFrame" not in kernel.ok("print('pandas' in sys.modules)").text
    finally:
        kernel.stop()


def test_the_default_conversation_needs_no_key(kernel: Kernel, tmp_path: Path) -> None:
    own = Kernel(tmp_path)
    try:
        own.ok("%load_ext sagents_nb")
        own.ok("%%agent\nHello.")
        assert "Agent run completed" in own.ok("print(_)").text
        assert "notebook-1: idle" in own.ok("%agent").value["text/plain"]
        assert "demo" in own.ok("%agent model").value["text/plain"].lower()
    finally:
        own.stop()


def test_the_choice_of_the_model_is_said_once(kernel: Kernel) -> None:
    said = kernel.ok("%reload_ext sagents_nb\n") and kernel.ok("%%agent --new --plain\nHello.")
    assert (
        "The default model is 'demo', because no provider's key is set: a planner that works "
        "offline. Choose another with %agent model anthropic:NAME.\n"
    ) in said.text
    assert "The default model" not in kernel.ok("%%agent --new --plain\nHello.").text
