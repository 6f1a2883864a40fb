"""The names of the package: all of them load, and type checkers know them."""

from __future__ import annotations

import ast
from pathlib import Path

import sagents_nb as sa

STUB = Path(sa.__file__).with_suffix(".pyi")


def test_every_public_name_is_there() -> None:
    assert [name for name in sa.__all__ if not hasattr(sa, name)] == []


def test_type_checkers_know_every_public_name() -> None:
    known: set[str] = set()
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            assert all(alias.name == alias.asname for alias in node.names)  # else it is private
            known |= {alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef):
            known.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            known.add(node.target.id)
    assert known - {"__all__"} == set(sa.__all__)
