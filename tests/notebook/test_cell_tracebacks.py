"""Tracebacks as a model is told of them, and as people are."""

from __future__ import annotations

import json
import traceback
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import sagents_nb as sa
from sagents_nb.notebook.cells import full_traceback, short_traceback, with_own_frames


def error_of(shell: InteractiveShell, code: str) -> Any:
    """What a cell raised."""
    with capture_output():
        result = shell.run_cell(code, store_history=True)
    return result.error_before_exec or result.error_in_exec


def test_frames_of_libraries_are_left_out(shell: InteractiveShell) -> None:
    told = short_traceback(error_of(shell, "import json\njson.loads('{')"), shell)
    assert told.splitlines()[1:3] == [
        '  File "<Cell In[1]>", line 2, in <module>',
        "    json.loads('{')",
    ]
    assert told.splitlines()[-1].startswith("json.decoder.JSONDecodeError: Expecting property")
    assert json.__file__ not in told


def test_it_is_the_same_in_every_kernel(shell: InteractiveShell) -> None:
    for code in ("1 / 0", "1 +"):
        error = error_of(shell, code)
        told = short_traceback(error, shell)
        assert 'File "<Cell In[' in told
        assert "ipykernel" not in told
        assert "ipython-input" not in told


def test_what_an_error_came_from_is_shortened_too(shell: InteractiveShell) -> None:
    code = (
        "import json\n"
        "try:\n    json.loads('{')\n"
        "except ValueError as error:\n    raise KeyError('a') from error"
    )
    told = short_traceback(error_of(shell, code), shell)
    assert "The above exception was the direct cause" in told
    assert json.__file__ not in told
    assert told.endswith("KeyError: 'a'")


@pytest.mark.soak
def test_what_calls_itself_without_end_is_short(shell: InteractiveShell) -> None:
    # IPython looks for the source of each frame in every module of this process: a few will do.
    code = """
import sys
before = sys.getrecursionlimit()
sys.setrecursionlimit(300)
def f(n):
    return f(n + 1)
try:
    f(0)
finally:
    sys.setrecursionlimit(before)
"""
    told = short_traceback(error_of(shell, code), shell)
    assert len(told) < 2_000
    assert "RecursionError" in told


def test_people_see_every_frame_from_the_code_on() -> None:
    code = compile("import json\njson.loads('{')", "<mine>", "exec")
    with pytest.raises(ValueError, match="Expecting") as caught:
        exec(code, {})
    full = full_traceback(caught.value, "<mine>")
    assert full.splitlines()[1].startswith('  File "<mine>", line 2')
    assert json.__file__ in full


def test_an_error_of_ours_shows_peoples_own_frames_and_leaves_the_error_as_it_is(
    shell: InteractiveShell,
) -> None:
    with pytest.raises(sa.ConfigurationError) as caught:
        exec("def build():\n    sa.Agent(tols=[])\nbuild()", {"sa": sa})
    error = caught.value
    before = traceback.extract_tb(error.__traceback__)
    with with_own_frames(error):
        shown = traceback.extract_tb(error.__traceback__)
    assert traceback.extract_tb(error.__traceback__) == before
    assert [frame.name for frame in shown][1:] == ["<module>", "build"]
    assert len(before) > len(shown)


def test_of_a_cause_in_a_library_its_sentence_is_left(shell: InteractiveShell) -> None:
    def fail() -> None:
        try:
            json.loads("{")
        except ValueError as cause:
            raise sa.ModelError("It gave no JSON.") from cause

    with pytest.raises(sa.ModelError) as caught:
        fail()
    told = "".join(traceback.format_exception(caught.value))
    assert "json/decoder.py" in told
    with with_own_frames(caught.value):
        told = "".join(traceback.format_exception(caught.value))
    assert "json/decoder.py" not in told
    assert "JSONDecodeError: Expecting" in told
