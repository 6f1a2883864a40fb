"""``%agent serve`` in a cell: what it says, and what a notebook is without it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from sagents_nb.notebook.serving import notebook_name
from tests.notebook.conftest import value
from tests.notebook.kernel import Kernel


def test_the_hub_is_loaded_when_somebody_says_so_and_not_before(kernel: Kernel) -> None:
    loaded = "print([m for m in ('starlette', 'uvicorn') if m in __import__('sys').modules])"
    kernel.ok("%load_ext sagents_nb\nimport sagents_nb as sa")
    kernel.ok("agent = sa.Agent('demo')\n%agent use agent", front_end=True)
    kernel.ok("%%agent\nhi", front_end=True)
    assert kernel.ok(loaded).text == "[]\n"
    assert "sagents_nb.hub" not in kernel.ok("print(*__import__('sys').modules)").text.split()
    threads = (
        "import threading; print([t.name for t in threading.enumerate() if 'runtime' in t.name])"
    )
    kernel.ok("%agent serve", front_end=True)
    assert kernel.ok(threads).text == "['sagents-runtime']\n"
    assert kernel.ok(loaded).text == "['starlette', 'uvicorn']\n"
    kernel.ok("%agent serve off", front_end=True)
    left = "print([t.name for t in threading.enumerate() if 'hub' in t.name])"
    assert kernel.ok(left).text == "[]\n"


def test_it_says_what_is_not_on_the_page(kernel: Kernel) -> None:
    kernel.ok("%load_ext sagents_nb\nimport sagents_nb as sa")
    kernel.ok("s = sa.Session(sa.Agent('demo'), id='loose')\n%agent use s", front_end=True)
    said = kernel.ok("%agent serve", front_end=True).value["text/plain"]
    assert "'loose' is not on the page: it is not kept where" in said
    again = kernel.ok("%agent serve", front_end=True).value["text/plain"]
    first, second = (text.partition("#code=")[2][:48] for text in (said, again))
    assert first != second
    assert said.partition("#code=")[0] == again.partition("#code=")[0]
    named = kernel.ok("%%agent --new --name=my.trip\nhi", front_end=True)
    assert "'my.trip' is not on the page: 'my.trip' can be no address" in named.text
    kernel.ok("%agent serve off", front_end=True)


def test_where_nobody_could_open_a_page_there_is_none(kernel: Kernel) -> None:
    kernel.ok("%load_ext sagents_nb")
    said = kernel.ok("%agent serve").value["text/plain"]
    assert said == "Nobody could open a page of a notebook that runs unattended."
    assert kernel.run("%agent serve on", front_end=True).error == "UsageError"


def test_without_the_extra_it_is_named(
    shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sagents_nb.notebook.serving.unattended", lambda shell: False)
    monkeypatch.setattr("sagents_nb.notebook.conversations.unattended", lambda shell: False)
    for name in ("in_kernel", "serving"):  # what needs it; others would be there twice afterwards
        monkeypatch.delitem(sys.modules, f"sagents_nb.hub.web.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result: Any = shell.run_cell("%agent serve")
    assert "%agent serve needs uvicorn: pip install 'sagents-nb[hub]'." in str(result.error_in_exec)


def test_a_notebook_is_called_as_its_file(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert notebook_name(shell).startswith("Notebooks in ")
    shell.user_ns["__vsc_ipynb_file__"] = "/home/ada/code.ipynb"
    assert notebook_name(shell) == "code.ipynb"
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/ada/Trip to Oslo.ipynb")
    assert notebook_name(shell) == "Trip to Oslo.ipynb"
    assert value(shell.run_cell("%agent serve off")) == "Nothing is served."
