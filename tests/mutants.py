"""Mutation testing: breaks the code in small ways, one at a time, and asks whether a test notices.

    make mutants                     # 300 of them, always the same
    .venv/bin/python tests/mutants.py --count 20 --only loop

A mutant that no test notices is printed with its change. Each is tried in a clone of what is
committed, by the tests of its floor, until the first of them fails. See CONTRIBUTING.md.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

# What is broken, and who has to notice: the quick tests first.
SUBJECTS = {
    "loop": (
        ["sagents_nb/loop", "sagents_nb/interrupts.py"],
        ["tests/test_frozen.py", "tests/loop", "tests/test_interrupts.py", "tests/test_agent.py",
         "tests/test_budget.py", "tests/faults", "tests/test_output_type.py",
         "tests/test_extract.py", "tests/middleware", "tests/session/test_in_doubt.py",
         "tests/test_bad_input_matrix.py"],
    ),
    "session": (
        ["sagents_nb/session"],
        ["tests/test_frozen.py", "tests/session", "tests/test_bad_input_matrix.py", "tests/faults",
         "tests/test_output_type.py", "tests/frames", "tests/test_public_face.py"],
    ),
    "store": (
        ["sagents_nb/store"],
        ["tests/test_frozen.py", "tests/store", "tests/session/test_open.py",
         "tests/session/test_journaled.py", "tests/test_public_face.py",
         "tests/test_bad_input_matrix.py"],
    ),
}  # fmt: skip

# Of no meaning for a program that is typed: they change a name for another one, or ask whether
# two things are one instead of whether they are equal.
NOT_USED = (
    "core/Variable",
    *(f"core/ReplaceComparisonOperator_{two}" for two in ("Is_Eq", "Eq_Is", "IsNot_NotEq")),
    "core/ReplaceComparisonOperator_NotEq_IsNot",
)

BUILT = "sagents_nb/panel/static"
"""What the tests need and no clone has: the widget, as it is built from widgets/."""

LIMIT = 600.0
"""Seconds that the tests of one mutant may take; one that makes them hang is noticed."""


class Mutant(NamedTuple):
    """One change of one file."""

    subject: str
    path: str
    operator: str
    occurrence: int
    line: int

    def changed(self, source: str) -> str:
        """The file with the change."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        code = mutate_code(source, get_operator(self.operator)(), self.occurrence)
        assert code is not None
        return str(code)


def mutants_of(subject: str, path: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast(path.read_text())))
    for name in operator_names():
        if name.startswith(NOT_USED) or get_operator(name).arguments():
            continue
        positions = (p for node in nodes for p in get_operator(name)().mutation_positions(node))
        for occurrence, (start, _) in enumerate(positions):
            yield Mutant(subject, str(path.relative_to(ROOT)), name, occurrence, start[0])


def can_be_noticed(mutant: Mutant) -> bool:
    """Whether it is a program, and another one."""
    source = (ROOT / mutant.path).read_text()
    return _meaning(mutant.changed(source)) not in (None, _meaning(source))


class _Unmeant(ast.NodeTransformer):
    """Drops annotations, which change nothing when it runs."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def _meaning(source: str) -> str | None:
    try:
        return ast.dump(_Unmeant().visit(ast.parse(source)))
    except SyntaxError:
        return None


def chosen(count: int, seed: int, only: str | None) -> list[Mutant]:
    """That many mutants, at most one of a line, an equal share of each subject."""
    chance = random.Random(seed)
    found: list[Mutant] = []
    subjects = [name for name in SUBJECTS if only in (None, name)]
    for number, subject in enumerate(subjects):
        by_line: dict[tuple[str, int], list[Mutant]] = {}
        for place in map(ROOT.joinpath, SUBJECTS[subject][0]):
            for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
                for mutant in mutants_of(subject, path):
                    by_line.setdefault((mutant.path, mutant.line), []).append(mutant)
        wanted = len(found) + count // len(subjects) + (number < count % len(subjects))
        lines = sorted(by_line)
        chance.shuffle(lines)
        for line in lines:
            chance.shuffle(by_line[line])
            mutant = next(filter(can_be_noticed, by_line[line]), None)
            found += [] if mutant is None else [mutant]
            if len(found) == wanted:
                break
    return found


def noticed(mutant: Mutant | None, tree: Path, tests: list[str]) -> bool:
    """Whether a test fails in ``tree`` with that change."""
    if mutant is None:
        return fails(tree, tests, told=True)
    path = tree / mutant.path
    source = path.read_text()
    path.write_text(mutant.changed(source))
    try:  # to read all tests takes longer than to run those that are likely to notice
        named = [
            str(t.relative_to(tree))
            for t in sorted(
                tree.joinpath("tests").rglob(f"test_*{path.stem.removesuffix('s')}*.py")
            )
        ]
        stages = [named, tests[:2], tests[2:]]
        return any(fails(tree, some) for some in stages if some)
    finally:
        path.write_text(source)


def fails(tree: Path, tests: list[str], *, told: bool = False) -> bool:
    """Whether one of these tests fails there, or does not end; ``told`` prints which."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "no:nbval"]  # which takes 2 s to be read
    marks = ["-m", "not engine and not soak and not browser and not packaging"]
    try:
        done = subprocess.run(
            [*command, "--timeout", "60", *marks, *tests],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return True
    if told and done.returncode:
        print(done.stdout[-3000:], flush=True)
    return done.returncode not in (0, 5)  # 5: there are none


def main() -> int:
    """Try them and tell what was not noticed; 1 if that is more than one in ten."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="so many of them, tried before")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", choices=SUBJECTS)
    given = parser.parse_args()
    mutants = chosen(given.count, given.seed, given.only)[given.skip :]
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.workers):
            tree = Path(place, str(number))
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=True)
            shutil.copytree(ROOT / BUILT, tree / BUILT, dirs_exist_ok=True)
            trees.put(tree)

        def untouched(subject: str) -> bool:
            tree = trees.get()
            try:
                return not noticed(None, tree, SUBJECTS[subject][1])
            finally:
                trees.put(tree)

        def tried(mutant: Mutant) -> bool:
            tree = trees.get()
            try:
                found = noticed(mutant, tree, SUBJECTS[mutant.subject][1])
            finally:
                trees.put(tree)
            if not found:
                source = (ROOT / mutant.path).read_text()
                lines = source.splitlines(), mutant.changed(source).splitlines()
                print(f"\n{mutant.path}:{mutant.line} {mutant.operator}")
                print("\n".join(line for line in list(unified_diff(*lines, n=0))[3:]), flush=True)
            outcomes.append(found)
            print(f"{sum(outcomes)} of {len(outcomes)}", file=sys.stderr, flush=True)
            return found

        outcomes: list[bool] = []
        with ThreadPoolExecutor(given.workers) as pool:
            subjects = sorted({mutant.subject for mutant in mutants})
            if not all(pool.map(untouched, subjects)):
                raise SystemExit("The tests fail without any change, so they would notice all.")
            list(pool.map(tried, mutants))
    share = sum(outcomes) / len(outcomes)
    print(f"\n{sum(outcomes)} of {len(outcomes)} were noticed: {share:.1%}")
    return int(share < 0.9)


if __name__ == "__main__":
    raise SystemExit(main())
