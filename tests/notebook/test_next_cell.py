"""The code of an answer, and to whom it can be offered as a cell."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

from sagents_nb.notebook.next_cell import code_block, last_python, offer, takes_cells


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
