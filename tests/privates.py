"""Who reaches into another's privates: ``python tests/privates.py [PATH…]``, part of ``make lint``.

A name with one leading underscore belongs to the file that defines it. What another file needs
of it gets a public name, or is tested by what can be seen from outside. A reach is, where this
file does not define ``_x`` itself:

- ``thing._x``, on ``self`` and ``cls`` too: what a class inherits from another file;
- ``from module import _x``;
- ``getattr(thing, "_x")`` and its kin, ``monkeypatch.setattr`` and ``patch`` among them;
- each of these in Python that stands in a string, as the code of a cell or of a child process.

``_x_`` is no private but a protocol, such as IPython's ``_repr_html_``.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES = "test_privates.py"  # what it holds in strings is meant to be found
PLACES = ("sagents_nb", "tests", "benchmarks", "docs", "hatch_build.py")

# Privates of the standard library and of packages that have no public name, by the end of what is
# written, and why we need them. One that nobody uses any more has to go.
ALLOWED = {
    "os._exit": "ends a process as a kill would; public for all its name",
    "_replace": "a NamedTuple's; named so for its fields' sake",
    "row._mapping": "a SQLAlchemy row's; named so for its columns' sake",
    "asyncio._enter_task": "for who has tasks of his own; public for all its name, and documented",
    "asyncio._leave_task": "for who has tasks of his own; likewise",
    "fs._strip_protocol": "fsspec: the path of a URL, as the file system itself reads it",
    "fs._parent": "fsspec: the folder of a path, as the file system itself sees it",
    "kernel._allow_stdin": "ipykernel: whether the request of now may ask; no other way to it",
}

_PRIVATE = re.compile(r"(?:[\w.]*\.)?(_(?!_)\w*(?<!_))")
_BY_NAME = {"getattr", "setattr", "hasattr", "delattr", "attrgetter", "patch", "object"}

Reach = tuple[int, str, str]
"""The line, the private name, and what is written, as ``thing._x``."""


def definitions(tree: ast.Module) -> set[str]:
    """The private names that the file defines: itself, for its classes and for their objects."""
    found = set(_bound(tree.body))
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef():
                found.update(_bound(node.body), _slots(node))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.Global(names=names):
                found.update(names)
    return {name for name in found if _PRIVATE.fullmatch(name)}


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    """What these statements name, also in an ``if`` or ``try``, but not inside of functions."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                for node in ast.walk(statement):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        yield node.id
            case _:
                for inner in ("body", "orelse", "finalbody"):
                    yield from _bound(getattr(statement, inner, []))
                for handler in getattr(statement, "handlers", []):
                    yield from _bound(handler.body)


def _slots(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                for constant in ast.walk(value):
                    if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                        yield constant.value


def reaches(source: str, known: Iterable[str] = ()) -> list[Reach]:
    """The reaches in this source, in order, ``known`` names aside; raises SyntaxError."""
    tree = ast.parse(source)
    mine = definitions(tree) | set(known)
    found = {
        (node.lineno, name, text)
        for node in ast.walk(tree)
        for name, text in _named(node)
        if name not in mine
    }
    return sorted(found.union(_in_strings(tree, mine)))


def _named(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Attribute(value=owner, attr=name):
            named = [(name, f"{ast.unparse(owner)}.{name}")]
        case ast.ImportFrom(module=module, names=names):
            named = [(alias.name, f"{module or ''}.{alias.name}") for alias in names]
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called in _BY_NAME:
            named = list(_by_name(node.args))
        case _:
            return
    for name, text in named:
        found = _PRIVATE.fullmatch(name)
        if found:
            yield found[1], text


def _by_name(arguments: list[ast.expr]) -> Iterator[tuple[str, str]]:
    match arguments:
        case [ast.Constant(value=str(path)), *_]:
            yield path, path
        case [owner, ast.Constant(value=str(name)), *_]:
            yield name, f"{ast.unparse(owner)}.{name}"


def _in_strings(tree: ast.Module, mine: set[str]) -> Iterator[Reach]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if not re.search(r"\._|import _", node.value):
            continue
        try:
            found = reaches(textwrap.dedent(node.value), mine)
        except (SyntaxError, ValueError):
            continue  # prose
        yield from ((node.lineno, name, text) for _, name, text in found)


def allowance(text: str) -> str | None:
    """The entry of :data:`ALLOWED` that what is written falls under."""
    return next((end for end in ALLOWED if re.search(rf"(^|[\W_]){re.escape(end)}$", text)), None)


def files(places: Iterable[str | Path]) -> Iterator[Path]:
    """The Python files in these places, which are paths or relative to the checkout."""
    for place in places:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            if file.name != EXAMPLES:
                yield file


def main(places: list[str]) -> int:
    """Print each reach; returns the exit status."""
    count = 0
    unused = set(() if places else ALLOWED)
    for path in files(places or PLACES):
        for line, name, text in reaches(path.read_text()):
            allowed = allowance(text)
            unused.discard(allowed or "")
            if allowed is None:
                count += 1
                print(f"{path.relative_to(ROOT)}:{line}: {name} is another file's: {text:.80}")
    for entry in sorted(unused):
        count += 1
        print(f"tests/privates.py: nobody needs {entry} any more; take it from ALLOWED.")
    if count:
        print(f"{count} to mend: give it a public name, or look at it from outside.")
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
