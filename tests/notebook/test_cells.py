"""The cells of a notebook: what they put out, the one that failed last, one that is offered."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from sagents_nb.notebook.cells import (
    cells_text,
    code_block,
    failures_of,
    forget_failures,
    last_python,
    latest_numbers,
    offer,
    takes_cells,
)


def run(shell: InteractiveShell, code: str, cell_id: str | None = None) -> None:
    with capture_output():
        shell.run_cell(code, store_history=True, cell_id=cell_id)


# What failed


def test_the_cell_that_failed_last_is_remembered(shell: InteractiveShell) -> None:
    run(shell, "1 / 0")
    run(shell, "x = 1")
    run(shell, "y = {}\ny['a']")
    failed = failures_of(shell).last
    assert failed is not None
    assert (failed.number, failed.source) == (3, "y = {}\ny['a']")
    assert failed.traceback.endswith("KeyError: 'a'")


def test_a_cell_that_cannot_be_read_has_failed_too(shell: InteractiveShell) -> None:
    run(shell, "1 +")
    failed = failures_of(shell).last
    assert failed is not None
    assert "SyntaxError" in failed.traceback


@pytest.mark.parametrize("code", ["x = 1", "%agent status", "%%agent --bogus\nhi", " "])
def test_others_do_not_make_it_forgotten(shell: InteractiveShell, code: str) -> None:
    run(shell, "1 / 0", "a")
    run(shell, code, "b")
    failed = failures_of(shell).last
    assert failed is not None
    assert failed.source == "1 / 0"


def test_once_the_cell_runs_nothing_has_failed(shell: InteractiveShell) -> None:
    run(shell, "1 / n", "a")
    run(shell, "1 / 2", "a")
    assert failures_of(shell).last is None
    run(shell, "1 / n")
    run(shell, "n = 1")
    run(shell, "1 / n")
    assert failures_of(shell).last is None


def test_what_a_person_stopped_has_not_failed(shell: InteractiveShell) -> None:
    run(shell, "raise KeyboardInterrupt")
    failures_of(shell).note(None)  # as IPython tells of a cell that was cancelled
    assert failures_of(shell).last is None


def test_of_an_error_texts_are_kept_and_no_frames(shell: InteractiveShell) -> None:
    run(shell, "big = [1]\n1 / 0")
    failed = failures_of(shell).last
    assert failed is not None
    assert {type(value) for value in failed} <= {str, int, type(None)}


def test_a_forgotten_shell_is_no_longer_looked_at(shell: InteractiveShell) -> None:
    before = failures_of(shell)
    forget_failures(shell)
    forget_failures(shell)
    run(shell, "1 / 0")
    assert before.last is None
    assert failures_of(shell).last is None


# What was run


def test_a_cell_is_its_source_and_what_it_put_out(shell: InteractiveShell) -> None:
    run(shell, "print('one')\n1 + 1")
    run(shell, "x = 3")
    run(shell, "1 / 0")
    first = cells_text(shell, [1], 1000)
    assert first.startswith("In [1]:\nprint('one')\n1 + 1\n\n")
    assert "one\n" in first
    assert "Out[1]: 2" in first
    assert cells_text(shell, [2], 1000) == "In [2]:\nx = 3"
    assert "It failed: ZeroDivisionError: division by zero" in cells_text(shell, [3], 1000)
    assert cells_text(shell, [1, 2], 1000).endswith("\n\nIn [2]:\nx = 3")


def test_long_cells_are_cut(shell: InteractiveShell) -> None:
    run(shell, "for i in range(10_000):\n    print('spam')  # " + "x" * 500)
    text = cells_text(shell, [1], 100)
    assert text.count("(cut)") == 2
    assert len(text) < 250


@pytest.mark.parametrize("number", [0, -1, 2, 99])
def test_a_number_that_no_cell_has(shell: InteractiveShell, number: int) -> None:
    with pytest.raises(ValueError, match=f"There is no cell {number}; the numbers are none yet"):
        cells_text(shell, [number], 100)
    run(shell, "x = 1")
    with pytest.raises(ValueError, match=f"There is no cell {number}; the numbers are 1 to 1"):
        cells_text(shell, [number], 100)


def test_the_last_cells_are_those_before_the_one_that_runs(shell: InteractiveShell) -> None:
    assert latest_numbers(shell, 3) == []
    for _ in range(4):
        run(shell, "x = 1")
    assert latest_numbers(shell, 3) == [2, 3, 4]
    shell.user_ns["latest"] = lambda: latest_numbers(shell, 2)
    run(shell, "y = latest()")
    assert shell.user_ns["y"] == [3, 4]


# What is offered


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("No code.", None),
        ("```python\nx = 1\n```", "x = 1"),
        ("```py\nx = 1\n```\nor\n```Python\nx = 2\n\ny = 3\n```\nso", "x = 2\n\ny = 3"),
        ("```python\nx = 1\n```\n```\n1\n```\n```bash\nls\n```", "x = 1"),
        ("```\nx = 1\n```", "x = 1"),
        ("```bash\nls\n```", None),
        ("~~~python\nx = '''\n```\n'''\n~~~", "x = '''\n```\n'''"),
        ("````python\nx = '```'\n```\n````", "x = '```'\n```"),
        ("```python\nx = 1", None),
        ("  ```python title=x\nx = 1\n  ```", "x = 1"),
        ("```{python}\nx = 1\n```", "x = 1"),
        ("Use `x = 1`.", None),
        ("```python\n```", ""),
    ],
)
def test_the_last_python_block_of_an_answer(answer: str, code: str | None) -> None:
    assert last_python(answer) == code


@pytest.mark.parametrize("text", ["x = 1", "'''\n```\n'''", "a\n````\nb"])
def test_a_block_holds_any_text(text: str) -> None:
    assert last_python(code_block(text, "python")) == text


def test_where_nobody_could_take_a_cell_none_is_offered(shell: InteractiveShell) -> None:
    assert not takes_cells(shell)
    assert not offer(shell, "x = 1")
