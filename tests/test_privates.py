"""A reach into another file's privates is found, and what a file defines itself is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import privates
from tests.privates import main, reaches


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("session._actor.close()", "session._actor"),
        ("class A(B):\n    def f(self): return self._x", "self._x"),
        ("class A(B):\n    @classmethod\n    def f(cls): return cls._x()", "cls._x"),
        ("thing._x = 1", "thing._x"),  # what is put there from outside is no definition
        ("def f():\n    _x = 1\n    return thing._x", "thing._x"),
        ("from sagents_nb.tools import _x", "sagents_nb.tools._x"),
        ("from . import _x as y", "._x"),
        ("from sagents_nb import tools\ntools._x()", "tools._x"),
        ("getattr(thing, '_x', None)", "thing._x"),
        ("monkeypatch.setattr(thing, '_x', 1)", "thing._x"),
        ("monkeypatch.setattr('sagents_nb.tools._x', 1)", "sagents_nb.tools._x"),
        ("mock.patch.object(thing, '_x')", "thing._x"),
        ("run('''\n    import a\n    a._x()\n''')", "a._x"),
    ],
)
def test_a_reach_is_found(source: str, found: str) -> None:
    assert [text for _, _, text in reaches(source)] == [found]


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def __init__(self): self._x = 1\ndef f(a): return a._x",
        "class A:\n    _x: int\ndef f(a): return a._x",
        "class A:\n    __slots__ = ('_x',)\ndef f(a): return a._x",
        "class A:\n    def _x(self): ...\n    def f(self, other): return other._x()",
        "try:\n    from a import b as _x\n    _y = 1\nexcept ImportError:\n    _y = 2\nmodule._y",
        "thing.__dict__",
        "panel._repr_html_()",
        "getattr(thing, 'x')",
        "'''What ._x is, in prose.'''",
    ],
)
def test_what_a_file_defines_is_its_own(source: str) -> None:
    assert reaches(source) == []


def test_a_reach_is_told_with_its_place_unless_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(privates, "ROOT", tmp_path)
    (tmp_path / "good.py").write_text("import os\nos._exit(1)\n")
    assert main(["good.py"]) == 0
    assert capsys.readouterr().out == ""
    (tmp_path / "bad.py").write_text("x = 1\nthing._exit(1)\n")
    assert main(["."]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "bad.py:2: _exit is another file's: thing._exit",
        "1 to mend: give it a public name, or look at it from outside.",
    ]


def test_an_allowance_that_nobody_needs_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(privates, "PLACES", (tmp_path,))
    monkeypatch.setattr(privates, "ALLOWED", {"os._exit": "ends a process"})
    assert main([]) == 1
    assert "nobody needs os._exit any more" in capsys.readouterr().out
