"""Code run like a cell: what comes of it, within which limits, and what it leaves behind."""

from __future__ import annotations

import contextlib
import itertools
import linecache
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from IPython.core.interactiveshell import InteractiveShell

import sagents_nb as sa
from sagents_nb.messages import ContentPart
from sagents_nb.notebook.capture import MOST_IMAGES, Capture
from sagents_nb.notebook.execution import NOT_BEGUN, STOPPED, TimeIsUp, run_code, within
from sagents_nb.redaction import KEY
from sagents_nb.runtime.main_thread import main_thread
from tests.talking import PATIENCE, agent_of, call, results, session_of, until

T = TypeVar("T")

LIMIT = 0.05  # seconds of what is to be stopped


def said(shell: InteractiveShell, code: str, **limits: Any) -> str:
    """What the code put out, as text."""
    content = run_code(code, shell, **limits).content
    assert isinstance(content, str)
    return content


def parts(shell: InteractiveShell, code: str, **limits: Any) -> list[ContentPart]:
    """What the code put out, with images."""
    content = run_code(code, shell, **limits).content
    assert isinstance(content, list)
    return content


def failure(shell: InteractiveShell, code: str, **limits: Any) -> str:
    output = run_code(code, shell, **limits)
    assert output.is_error
    return str(output.content)


# Like a cell


def test_output_and_then_the_value_of_the_last_expression(shell: InteractiveShell) -> None:
    assert said(shell, "print('x')\ny = 20\ny + 1") == "x\n21"
    assert shell.user_ns["y"] == 20
    assert run_code("y", shell).artifact == 20
    assert said(shell, "import sys; print('e', file=sys.stderr)") == "e\n"
    assert said(shell, "y + 1;") == said(shell, "z = 1") == "It ran and printed nothing."


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("%timeit -n1 -r1 1 + 1", "1 loop each"),
        ("%%time\nz = 5\nz + 1", "Wall time"),
        ("%%capture out\nprint('caught')", "It ran and printed nothing."),
        ("%who_ls int", "[]"),
        ("?len", "Return the number of items"),
    ],
)
def test_magics_work(shell: InteractiveShell, code: str, told: str) -> None:
    output = run_code(code, shell)
    assert told in str(output.content)
    assert not output.is_error


def test_the_value_of_a_timed_cell_is_seen(shell: InteractiveShell) -> None:
    assert said(shell, "%%time\nz = 5\nz + 1").endswith("\n6")
    assert shell.user_ns["z"] == 5


def test_what_the_shell_has_of_input_transformers_counts(shell: InteractiveShell) -> None:
    shell.input_transformers_cleanup.append(lambda lines: [x.replace("£", "print") for x in lines])
    assert said(shell, "£('hi')") == "hi\n"


def test_history_and_counters_stay_as_they_were(shell: InteractiveShell) -> None:
    shell.run_cell("40 + 2", store_history=True)
    names = ("_", "__", "_i", "_ii", "_1")
    before = (
        shell.execution_count,
        dict(shell.user_ns["Out"]),
        list(shell.user_ns["In"]),
        [shell.user_ns.get(name) for name in names],
        {n: len(o) for n, o in shell.history_manager.outputs.items()},
        shell.last_execution_result,
        set(vars(shell)),
        set(vars(shell.display_pub)),
    )
    for code in (
        "7 * 6",
        "%%time\n7 * 6",
        "1 / 0",
        "from IPython.display import display\ndisplay(1)",
    ):
        run_code(code, shell)
    assert before == (
        shell.execution_count,
        dict(shell.user_ns["Out"]),
        list(shell.user_ns["In"]),
        [shell.user_ns.get(name) for name in names],
        {n: len(o) for n, o in shell.history_manager.outputs.items()},
        shell.last_execution_result,
        set(vars(shell)),
        set(vars(shell.display_pub)),
    )
    assert before[1] == {1: 42}


def test_a_function_that_it_defines_has_a_source(shell: InteractiveShell) -> None:
    assert "    return 42" in said(
        shell, "def f():\n    return 42\nimport inspect\ninspect.getsource(f)"
    )


# What it may not


@pytest.mark.parametrize(
    "code",
    [
        *("!touch done", "x = !touch done", "%sx touch done", "%system touch done", "!!touch done"),
        *("%%bash\ntouch done", "%%script bash\ntouch done", "%%!\ntouch done", "%pip list"),
        *("%%time\n!touch done", "%%time\n%%sh\ntouch done", "get_ipython().system('touch done')"),
    ],
)
def test_shell_commands_are_refused_also_inside_of_magics(
    shell: InteractiveShell, code: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "run_python runs no shell commands" in failure(shell, code)
    assert not (tmp_path / "done").exists()


def test_commands_of_cells_work_as_before(shell: InteractiveShell) -> None:
    failure(shell, "!true")
    assert shell.getoutput("echo here") == ["here"]
    assert shell.find_cell_magic("bash") is not None


@pytest.mark.parametrize(
    "code", ["await f()", "x = await f()", "async with f: pass", "%%agent\nhi"]
)
def test_awaiting_is_refused_in_a_sentence(shell: InteractiveShell, code: str) -> None:
    told = failure(shell, code)
    assert told.startswith("SyntaxError: run_python cannot await, since")
    assert len(told.splitlines()) == 1


def test_the_way_that_the_sentence_names_works(shell: InteractiveShell) -> None:
    code = (
        "import asyncio, concurrent.futures\nasync def main():\n    return 42\n"
        "concurrent.futures.ThreadPoolExecutor().submit(asyncio.run, main()).result()"
    )
    assert said(shell, code) == "42"


# Errors


def test_an_error_is_the_frames_of_the_code_after_what_was_printed(shell: InteractiveShell) -> None:
    told = failure(shell, "import json\nprint('so far')\njson.loads('{')")
    assert told.startswith(
        'so far\nTraceback (most recent call last):\n  File "<run_python>", line 3, in <module>\n'
        "    json.loads('{')\njson.decoder.JSONDecodeError: "
    )
    assert told == failure(shell, "import json\nprint('so far')\njson.loads('{')")


@pytest.mark.parametrize(
    "code", ["exit()", "quit()", "import sys; sys.exit(3)", "raise SystemExit"]
)
def test_exit_is_an_error_of_the_code(shell: InteractiveShell, code: str) -> None:
    before = shell.user_ns.get("exit"), shell.user_ns.get("quit")
    assert "SystemExit" in failure(shell, code)
    assert (shell.user_ns.get("exit"), shell.user_ns.get("quit")) == before


@pytest.mark.parametrize("code", ["1 +", "def f(:", "%nonsense", "x = (", "asyncio.CancelledError"])
def test_what_cannot_run_is_an_error(shell: InteractiveShell, code: str) -> None:
    assert "Error" in failure(shell, code)


def test_an_error_that_a_magic_shows_by_itself_is_one_of_the_code(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.register_magic_function(lambda line: _shows(shell), "line", "showing")
    assert "ZeroDivisionError" in failure(shell, "%showing")
    assert capsys.readouterr().out == ""


def _shows(shell: InteractiveShell) -> None:
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError:
        shell.showtraceback()


# Limits


def test_an_interrupt_between_any_two_lines_leaves_no_watch_behind() -> None:
    """It would interrupt other cells later on, for ever."""
    handler = signal.getsignal(signal.SIGINT)

    def interrupted_at(place: int) -> bool:
        """Whether there was such a line, in what sets the watch and takes it away."""
        lines = itertools.count()

        def trace(frame: Any, event: str, _: Any) -> Any:
            if frame.f_code.co_name not in ("within", "limited", "perform", "interrupted"):
                return None
            source = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            sets = source.strip() == "work.runs = False"  # before which no signal is looked for
            if event == "line" and not sets and next(lines) == place:
                signal.raise_signal(signal.SIGINT)
            return trace

        def limited() -> None:
            sys.settrace(trace)
            try:
                within(3600, lambda: None)
            finally:
                sys.settrace(None)

        with contextlib.suppress(KeyboardInterrupt):
            main_thread.wait(main_thread.submit(limited))
        return next(lines) > place

    before = sys.gettrace()
    assert sum(1 for _ in itertools.takewhile(interrupted_at, itertools.count())) > 20
    sys.settrace(before)
    assert signal.getsignal(signal.SIGINT) is handler
    until(lambda: not [t for t in threading.enumerate() if t.name == "sagents-time-limit"])


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\nwhile True: time.sleep(3600)",
        "while True:\n    try: 1 / 0\n    except Exception: pass",
        "while True: print('spam')",
        "%time exec('while True: pass')",
        "class Slow:\n    def __repr__(self):\n        while True: pass\nSlow()",
        "get_ipython().run_cell('while True: pass')\nprint('went on')",
        "%run endless.py\nprint('went on')",
    ],
)
def test_code_that_takes_too_long_is_stopped(
    shell: InteractiveShell, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("endless.py").write_text("while True: pass\n")
    handler = signal.getsignal(signal.SIGINT)
    told = failure(shell, f"print('so far')\n{code}", timeout=LIMIT)
    assert told.startswith("so far\n")
    assert "It was stopped after 0.05 seconds, the most that run_python may take" in told
    assert signal.getsignal(signal.SIGINT) is handler
    assert said(shell, "6 * 7", timeout=PATIENCE) == "42"


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntry: time.sleep(3600)\nexcept KeyboardInterrupt: time.sleep(3600)",
        "while True:\n    try:\n        while True: pass\n    except:\n        pass",
        "while True:\n    try:\n        while True: pass\n    except: continue",
        "while True:\n    try:\n        while True: pass\n    finally: continue",
        "import contextlib, time\n"
        "while True:\n    with contextlib.suppress(BaseException):\n        time.sleep(3600)",
    ],
    ids=["catching once", "catching", "in one line", "finally going on", "suppressing"],
)
def test_code_that_takes_no_notice_is_told_again_until_it_ends(
    shell: InteractiveShell, code: str
) -> None:
    traced = sys.gettrace()
    assert "It was stopped after" in failure(shell, code, timeout=LIMIT)
    assert sys.gettrace() is traced
    assert sys.exc_info() == (None, None, None)
    assert said(shell, "6 * 7", timeout=PATIENCE) == "42"


def told_while(shell: InteractiveShell, code: str) -> list[str]:
    """What is told of the code's output until the code ends, which it does once ``end`` is set."""
    told: list[str] = []
    shell.user_ns["end"] = end = threading.Event()

    def tell(line: str) -> None:
        told.append(line)
        if line == "last":
            end.set()

    assert not run_code(f"{code}\nassert end.wait({PATIENCE})", shell, tell=tell).is_error
    return told


def test_the_last_line_that_was_printed_is_told_while_the_code_goes_on(
    shell: InteractiveShell,
) -> None:
    assert told_while(shell, "print('first')\nprint('last')")[-1] == "last"
    assert told_while(shell, "print('first\\nlast\\n\\n')") == ["last"]
    assert told_while(shell, "print('10 %\\rlast', end='\\r')") == ["last"]
    # Of a line that is not whole yet a secret may follow.
    assert told_while(shell, "print('last')\nprint('sk-', end='')") == ["last"]


KEY_OF_LINES = "\n".join(f"K{number:03}" + "zxcvbnmasdfghjkl" * 3 for number in range(30))


def test_of_a_secret_of_several_lines_none_is_told_though_it_is_printed_line_by_line(
    shell: InteractiveShell,
) -> None:
    shell.user_ns |= {"private_key": KEY_OF_LINES, "once": threading.Event()}
    told = told_while(
        shell,
        "import time\n"
        "for line in private_key.splitlines()[:3]:\n    print(line)\n    time.sleep(0.3)\n"
        "print('last')",
    )
    assert "zxcv" not in " ".join(told)


def test_of_a_line_that_is_longer_than_what_is_looked_at_nothing_is_told(
    shell: InteractiveShell,
) -> None:
    shell.user_ns["api_key"] = "hush-Zq81-very-secret-0042"
    code = "import time\nprint((api_key + ' ') * 3000)\ntime.sleep(0.5)\nprint('last')"
    told: list[str] = []
    run_code(code, shell, tell=told.append, max_output=100_000)
    assert "secret" not in " ".join(told)


@pytest.mark.parametrize(
    "code",
    [
        "print('x ' * 3000); print(private_key); print('y\\n' * 2000)",
        "print('x ' * 2485); print(private_key); print('y\\n' * 5000)",
        "print('x ' * 40_000); print(private_key); print('y\\n' * 40_000)",
        "print('x ' * 40_000); print(private_key * 20); print('y\\n' * 2450)",
        "print(private_key * 60)",
        "for line in range(20): print('x' * 243); print(private_key)",
    ],
)
@pytest.mark.parametrize("name", ["private_key", "text"])
def test_a_secret_at_a_cut_is_found_before_it_is_cut(
    shell: InteractiveShell, code: str, name: str
) -> None:
    pem = f"-----BEGIN PRIVATE KEY-----\n{KEY_OF_LINES}\n-----END PRIVATE KEY-----\n"
    shell.user_ns[name] = KEY_OF_LINES if name == "private_key" else pem
    content = run_code(code.replace("private_key", name), shell).content
    assert "zxcv" not in str(content)
    assert len(str(content)) <= 10_100


def test_what_is_told_of_a_line_has_no_secret_and_is_short(shell: InteractiveShell) -> None:
    shell.user_ns["api_key"] = "first of the key\nlast of the key"
    told = told_while(shell, "print('x' * 1000)\nprint(api_key)\nprint('last')")
    assert "of the key" not in " ".join(told)
    assert max(map(len, told)) <= 200


def test_an_interrupt_stops_the_code_and_says_so(shell: InteractiveShell) -> None:
    code = (
        "print('so far')\nimport signal, time\nsignal.raise_signal(signal.SIGINT)\ntime.sleep(3600)"
    )
    for timeout in (PATIENCE, float("inf")):
        output = interrupted(partial(run_code, code, shell, timeout=timeout))
        assert output.metadata["not_run"] == "cancelled"
        assert output.is_error
        assert output.content == f"so far\n{STOPPED}"


def interrupted(function: Callable[[], T]) -> T:
    """What it gives as a tool's call on the main thread, whose caller is interrupted."""
    work = main_thread.submit_call(function)
    with pytest.raises(KeyboardInterrupt):
        main_thread.wait(work)
    return work.result()


def test_a_persons_interrupt_is_heard_that_comes_together_with_the_end_of_the_time(
    shell: InteractiveShell,
) -> None:
    """While C computes, say."""
    code = (
        "import signal\n"
        "both = {signal.SIGINT, signal.SIGURG}\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, both)\n"
        "while signal.SIGURG not in signal.sigpending(): pass\n"
        "signal.raise_signal(signal.SIGINT)\n"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, both)"
    )
    output = interrupted(partial(run_code, code, shell, timeout=LIMIT))
    assert output.content == STOPPED
    assert output.metadata["not_run"] == "cancelled"


def test_code_that_is_out_of_time_takes_the_run_along_that_it_waits_for_and_no_other() -> None:
    @sa.tool(run_on="main")
    def compute() -> None:
        while True:
            pass

    inner = session_of(call("compute"), "never", tools=[compute])

    @sa.tool(run_on="main")
    def ask_inner() -> str:
        try:
            within(LIMIT, inner.send("go").result)
        except TimeIsUp:
            return "out of time"
        return "in time"

    outer = session_of(call("ask_inner"), "done", tools=[ask_inner])
    assert outer.send("go").result().text == "done"
    assert results(outer.state) == ["out of time"]
    until(lambda: inner.status == "cancelled")
    assert agent_of("Hello.").run("Are you there?").text == "Hello."


def test_what_comes_after_the_limited_part_is_interrupted_as_before() -> None:
    gone_on: list[bool] = []

    def tool() -> None:
        within(PATIENCE, lambda: None)
        signal.raise_signal(signal.SIGINT)
        gone_on.append(True)

    with pytest.raises(KeyboardInterrupt):
        main_thread.wait(main_thread.submit(tool))
    assert not gone_on


def test_an_interrupt_before_the_first_line_says_that_nothing_ran(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(source: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(shell, "transform_cell", interrupted)
    assert run_code("print('never')", shell).content == NOT_BEGUN


def test_what_is_in_time_keeps_no_thread(shell: InteractiveShell) -> None:
    assert within(PATIENCE, lambda: 42) == 42
    for thread in threading.enumerate():
        if thread.name == "sagents-time-limit":
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_another_thread_has_no_limit() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(within(1e-9, lambda: 42)))
    thread.start()
    thread.join()
    assert found == [42]


def test_the_limit_of_what_is_inside_comes_first() -> None:
    def forever() -> None:
        while True:
            pass

    with pytest.raises(TimeIsUp):
        within(PATIENCE, lambda: within(LIMIT, forever))
    assert within(PATIENCE, lambda: 42) == 42


def test_of_long_output_the_middle_is_left_out_and_counted(shell: InteractiveShell) -> None:
    told = said(shell, "for i in range(1000): print(f'line {i}')", max_output=200)
    assert told.startswith("line 0\nline 1\n")
    assert told.endswith("line 998\nline 999\n")
    assert "\n… 8,690 characters are left out here …\n" in told
    assert len(told) < 260
    assert said(shell, "print('x' * 199)", max_output=200) == "x" * 199 + "\n"
    one = said(shell, "print('x' * 1_000_000)", max_output=200)
    assert len(one) < 260


def test_an_error_after_long_output_is_seen(shell: InteractiveShell) -> None:
    assert failure(shell, "print('x' * 10_000)\n1 / 0", max_output=400).endswith(
        "ZeroDivisionError: division by zero"
    )


def test_endless_output_takes_bounded_memory(shell: InteractiveShell) -> None:
    capture = Capture(shell, 1000)
    for _ in range(10_000):
        capture.write("spam and eggs\n")
    assert len(str(capture.content())) < 1100


def test_a_secret_is_masked_wherever_the_output_is_cut(shell: InteractiveShell) -> None:
    shell.user_ns["password"] = secret = "correct-horse-battery"
    for most in range(60, 110):
        told = said(shell, "for _ in range(20): print('it is', password)", max_output=most)
        assert KEY in told or "battery" not in told
        for end in range(3, len(secret)):
            assert secret[:end] not in told
            assert secret[-end:] not in told


# What it displays


def test_what_is_displayed_is_seen_in_its_order(shell: InteractiveShell) -> None:
    code = (
        "from IPython.display import display, Markdown\n"
        "print('one'); display(2); print('three'); display(Markdown('*four*'))"
    )
    assert said(shell, code).splitlines()[:3] == ["one", "2", "three"]


def test_what_is_cleared_is_not_seen(shell: InteractiveShell) -> None:
    code = "from IPython.display import clear_output\nprint('one'); clear_output(); print('two')"
    assert said(shell, code) == "two\n"


def test_a_figure_is_seen_as_an_image_and_closed(shell: InteractiveShell) -> None:
    pytest.importorskip("matplotlib").use("agg")
    code = "import matplotlib.pyplot as plt\nprint('before')\nplt.plot([1, 2])\nprint('after')"
    text, image = parts(shell, code)
    assert text == sa.TextPart("before\nafter\n")
    assert isinstance(image, sa.ImagePart)
    assert (image.data or "").startswith("iVBORw0KGgo")
    assert said(shell, "plt.get_fignums()") == "[]"


@pytest.mark.parametrize(
    "last",
    [
        "plt.subplots()[0]",
        "plt.subplots()[1]",
        "plt.subplots(2)[1]",
        "pd.Series([1, 2]).plot()",
        "pd.DataFrame({'a': [1, 2], 'b': [2, 1]}).hist()",
        "plt.imshow([[1, 2]])",
    ],
)
def test_a_figure_whose_axes_are_the_last_value_is_seen_once(
    shell: InteractiveShell, last: str
) -> None:
    pytest.importorskip("matplotlib").use("agg")
    [image] = parts(shell, f"import matplotlib.pyplot as plt\nimport pandas as pd\n{last}")
    assert isinstance(image, sa.ImagePart)


def test_a_figure_of_the_persons_own_stays(shell: InteractiveShell) -> None:
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    mine = pyplot.figure()
    try:
        parts(shell, "import matplotlib.pyplot as plt\nplt.figure()")
        assert pyplot.get_fignums() == [mine.number]
    finally:
        pyplot.close(mine)


def test_of_code_that_is_stopped_no_figure_is_left(shell: InteractiveShell) -> None:
    pytest.importorskip("matplotlib").use("agg")
    code = "import matplotlib.pyplot as plt\nplt.figure()\nwhile True: pass"
    from matplotlib import pyplot

    assert "It was stopped" in failure(shell, code, timeout=LIMIT)
    assert pyplot.get_fignums() == []


def test_images_are_seen_whatever_made_them_up_to_a_number(shell: InteractiveShell) -> None:
    pytest.importorskip("PIL")
    code = (
        "from PIL import Image\nfrom IPython.display import display\n"
        "im = Image.new('RGB', (2, 2))\n"
    )
    (image,) = parts(shell, f"{code}im")
    assert isinstance(image, sa.ImagePart)
    shell.user_ns["png"] = image.data
    shown = "for _ in range(6): display({'image/png': png}, raw=True)"
    *images, more = parts(shell, f"{code}{shown}")
    assert images == [sa.ImagePart(image.data)] * MOST_IMAGES
    assert more == sa.TextPart("\n[2 more images are shown in the notebook]")


def test_texts_around_an_image_keep_their_places_where_the_middle_is_left_out(
    shell: InteractiveShell,
) -> None:
    shown = "display({'image/png': 'QUJD'}, raw=True)"
    code = f"print('a ' * 500)\n{shown}\nprint('b ' * 500)\n{shown}\nprint('end')"
    found = parts(shell, f"from IPython.display import display\n{code}", max_output=100)
    kinds = [p.text[:3].strip() if isinstance(p, sa.TextPart) else "image" for p in found]
    assert kinds == ["a a", "image", "…", "image", "end"]
