"""The names of the package: all load, type checkers know them, and what was promised is kept."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sagents_nb as sa
from tests.public_face import LIST, broken, described, listed, read

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
    assert known - {"__all__"} == {*sa.__all__, "events"}


def test_what_was_public_is_there_and_is_called_as_before() -> None:
    promised = read(LIST.read_text())
    assert len(promised) > 1_000
    said = broken(promised, described(listed(promised)))
    assert not said, "\n".join(said)


def test_a_name_that_went_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sa.State, "reset")
    promised = {name: line for name, line in read(LIST.read_text()).items() if "nb.State." in name}
    said = broken(promised, described(listed(promised)))
    line = "def sagents_nb.State.reset() -> State"
    assert said == [f"sagents_nb.State.reset is gone; it was: {line}"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("def a.f(x: int)", "def a.f(x: int, y: int = 0)"),
        ("def a.f(x: int, **more: Any)", "def a.f(x: int, *, y: str = ', )', **more: Any)"),
        ("async def a.f() -> int", "async def a.f(*, y: int = 0) -> int"),
        ("class a.C(x: int) of Exception", "class a.C(x: int, y: int = 1) of Mine, Exception"),
        ("a.C.x: int", "a.C.x"),
        ("a.C.x", "a.C.x: int"),
        ("a.T = int | str", "a.T = str | bytes | int"),
        ("def a.f(x: Any) -> Any", "def a.f(x: int) -> int"),
        ("a.C.x: Any", "a.C.x: int"),
        ("a.C.x: TextDelta | ThinkingDelta | ToolCallDelta", "a.C.x: Delta"),
    ],
)
def test_what_is_added_breaks_nothing(before: str, now: str) -> None:
    assert broken(read(before), read(now)) == []


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("def a.f(x: int)", "def a.f(y: int)"),
        ("def a.f(x: int)", "def a.f(x: str)"),
        ("def a.f(x: int)", "def a.f(x: int, y: int)"),
        ("def a.f(x: int)", "def a.f(y: int = 0, x: int = 0)"),
        ("def a.f(x: int)", "def a.f(*, x: int)"),
        ("def a.f(x: int = 1)", "def a.f(x: int = 2)"),
        ("def a.f(**more: Any)", "def a.f()"),
        ("def a.f() -> int", "def a.f() -> str"),
        ("def a.f() -> int", "async def a.f() -> int"),
        ("def a.f()", "a.f: int"),
        ("class a.C(x: int)", "class a.C"),
        ("class a.C() of ValueError", "class a.C()"),
        ("class a.C() tagged 'x'", "class a.C() tagged 'y'"),
        ("a.C is b.C", "class a.C()"),
        ("a.C.x: int", "a.C.x: str"),
        ("a.T = int | str", "a.T = str"),
    ],
)
def test_what_a_caller_could_notice_is_told(before: str, now: str) -> None:
    (name,) = read(before)
    assert broken(read(before), read(now)) == [
        f"{name} is no longer what it was: {before} -> {now}"
    ]
