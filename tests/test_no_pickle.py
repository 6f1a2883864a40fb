"""Nothing of this package reads or writes what runs when it is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import sagents_nb

PACKAGE = Path(sagents_nb.__file__).parent
FORBIDDEN = {
    "pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "jsonpickle",
}


def imported(source: str) -> Iterator[str]:
    """The modules that the source imports, by whatever way there is."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]
            yield from (alias.name for alias in node.names if alias.name in FORBIDDEN)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = ast.unparse(node.func).split(".")[-1]
            if name in ("import_module", "__import__"):
                yield str(node.args[0].value).split(".")[0]


def test_no_module_imports_what_can_run_code() -> None:
    files = list(PACKAGE.rglob("*.py"))
    assert len(files) > 100
    for path in files:
        found = FORBIDDEN.intersection(imported(path.read_text(encoding="utf-8")))
        assert not found, f"{path.relative_to(PACKAGE)} imports {', '.join(found)}"


def test_the_check_finds_every_way_to_import() -> None:
    for source in (
        "import pickle",
        "import os, pickle as p",
        "from pickle import loads",
        "from cloudpickle.compat import pickle",
        "def f():\n import dill",
        "import importlib\nimportlib.import_module('marshal')",
        "__import__('shelve')",
        "from somewhere import pickle",
    ):
        assert FORBIDDEN.intersection(imported(source)), source
    assert not FORBIDDEN.intersection(imported("from .pickle import x\nimport json"))
