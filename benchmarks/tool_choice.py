"""How often the right tool is among the five first that are found, of 200 and of 1,096.

The questions are those of the Berkeley Function-Calling Leaderboard, version 4 (data/bfcl): live
ones, by people, and synthetic ones. Each is asked of a catalog with the functions that it comes
with, among others that are drawn with a fixed seed. Beside it stands what the best-known peer does:
how many of the question's words stand in a tool's name or description. The time of a query is
compared with FTS5's own for the same words.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import sagents_nb as sa
from sagents_nb.search.tool_catalog import ToolCatalog
from sagents_nb.search.words import query_words
from sagents_nb.tools import ToolSpec

DATA = Path(__file__).parent / "data" / "bfcl"
KINDS = {"live": ("live_multiple", "live_simple"), "synthetic": ("multiple", "simple_python")}
SEED = 4
OF_200, FIRST = 300, 5  # questions; tools that are looked at
LEAST = {("live", 200): 0.89, ("synthetic", 200): 0.98, ("live", 0): 0.78, ("synthetic", 0): 0.92}
SAMPLING = 0.02  # the error that a sample of 300 questions may have
MOST_SENT, MOST_OF_FTS5 = 4, 3  # %; times
TURNS, MOST_OF_A_CALL = 200, 100  # calls of the model in a run; microseconds

Search = Callable[[str], Sequence[str]]


class Question(NamedTuple):
    """What is asked, the functions that it comes with, and those that are right."""

    text: str
    own: list[str]
    right: set[str]


def lines_of(name: str) -> list[Any]:
    """The objects of a file."""
    with gzip.open(DATA / f"BFCL_v4_{name}.json.gz") as file:
        return [json.loads(line) for line in file]


def read() -> tuple[dict[str, ToolSpec], dict[str, list[Question]]]:
    """All functions by name, and the questions of each kind."""
    tools: dict[str, ToolSpec] = {}
    questions: dict[str, list[Question]] = {kind: [] for kind in KINDS}
    for kind, names in KINDS.items():
        for name in names:
            answers = {one["id"]: one["ground_truth"] for one in lines_of(f"{name}.ans")}
            for asked in lines_of(name):
                for function in asked["function"]:
                    known = function["name"], function["description"], function["parameters"]
                    tools.setdefault(known[0], ToolSpec(*known))
                text = [m["content"] for m in asked["question"][0] if m["role"] == "user"][-1]
                right = {name for call in answers[asked["id"]] for name in call}
                own = [function["name"] for function in asked["function"]]
                questions[kind].append(Question(text, own, right))
    return tools, questions


def ours(tools: Sequence[ToolSpec]) -> Search:
    """What ToolSearch does."""
    catalog = ToolCatalog(tools)
    return lambda text: [hit.id for hit in catalog.search(text, FIRST, min_score=0)]


def overlap(tools: Sequence[ToolSpec]) -> Search:
    """The words of the question that a tool has, by their number."""
    words = {
        spec.name: set(
            re.findall(r"\w+", f"{spec.name} {spec.description}".lower().replace("_", " "))
        )
        for spec in tools
    }

    def search(text: str) -> list[str]:
        asked = set(re.findall(r"\w+", text.lower()))
        return sorted(words, key=lambda name: (-len(asked & words[name]), name))[:FIRST]

    return search


def recall(
    make: Callable[[Sequence[ToolSpec]], Search],
    tools: dict[str, ToolSpec],
    questions: list[Question],
    size: int,
) -> float:
    """The share of right tools that are among the first; of all tools with ``size`` 0."""
    chance = random.Random(SEED)
    names = sorted(tools)
    whole = make([*tools.values()]) if not size else None
    asked = questions if whole else chance.sample(questions, min(OF_200, len(questions)))
    found = right = 0
    for question in asked:
        search = whole
        if search is None:
            others = [name for name in names if name not in question.own]
            chosen = [*question.own, *chance.sample(others, size - len(question.own))]
            search = make([tools[name] for name in chosen])
        found += len(question.right & set(search(question.text)))
        right += len(question.right)
    return found / right


def times(tools: dict[str, ToolSpec], texts: list[str]) -> tuple[float, float]:
    """Microseconds of a query, and of FTS5's own for the same words, the least of five rounds."""
    search = ours([*tools.values()])
    raw = sqlite3.connect(":memory:")
    raw.execute("CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, body, tokenize='porter')")
    for spec in tools.values():
        said = f"{spec.name} {spec.description} {msgspec.json.encode(spec.schema).decode()}"
        raw.execute("INSERT INTO texts VALUES (?, ?)", (spec.name, said))
    query = "SELECT id FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT 5"
    matches = [" OR ".join(f'"{word}"' for word in query_words(text)) for text in texts]

    def least(work: Callable[[], object]) -> float:
        took = []
        for _ in range(5):
            began = time.process_time()
            work()
            took.append(time.process_time() - began)
        return min(took) / len(texts) * 1e6

    return (
        least(lambda: [search(text) for text in texts]),
        least(lambda: [raw.execute(query, (match,)).fetchall() for match in matches if match]),
    )


def _nothing() -> str:
    return ""


def two_hundred(tools: dict[str, ToolSpec]) -> list[sa.Tool]:
    """Tools that an agent can have, of 200 of the functions."""
    names = random.Random(SEED).sample(sorted(tools), 200)
    many = []
    for number, name in enumerate(names):
        legal = f"{re.sub('[^A-Za-z0-9_-]', '_', name)[:56]}_{number}"
        schema = {**tools[name].schema, "type": "object"}
        about = {"name": legal, "description": tools[name].description, "schema": schema}
        many.append(sa.Tool(_nothing, **about))
    return many


def sent(tools: dict[str, ToolSpec], questions: list[Question]) -> float:
    """Of the characters of 200 definitions, how many percent go to the model, on the mean."""
    chance = random.Random(SEED)
    many = two_hundred(tools)
    whole = sum(len(msgspec.json.encode(tool.spec)) for tool in many)
    told = []
    for question in chance.sample(questions, 100):
        model = sa.ScriptedModel(["Done."])
        sa.Agent(model, tools=many, middleware=[sa.ToolSearch()], defaults=False).run(question.text)
        told.append(sum(len(msgspec.json.encode(spec)) for spec in model.requests[0].tools))
    return 100 * sum(told) / len(told) / whole


def of_a_call(tools: dict[str, ToolSpec]) -> float:
    """Microseconds of the processor that ToolSearch takes of a call of the model, with 200 tools.

    The same run of many turns with it and without; the least difference of rounds that alternate.
    """
    many = two_hundred(tools)
    first = many[0]
    calls = [sa.ToolCall(f"c{n}", first.name, {}) for n in range(TURNS)]

    def took(middleware: list[Any]) -> float:
        agent = sa.Agent(
            sa.ScriptedModel([*calls, "Done."]),
            tools=many,
            middleware=middleware,
            defaults=False,
            max_runs=0,
        )
        said = " ".join(query_words(first.description or first.name))
        began = time.process_time()
        agent.run(said)
        return time.process_time() - began

    search = sa.ToolSearch()
    took([search])  # which makes the catalog
    rounds = [(took([search]), took([])) for _ in range(9)]
    return (min(a for a, _ in rounds) - min(b for _, b in rounds)) / TURNS * 1e6


def verdict(what: str, value: float, good: bool, form: str = ".3f") -> None:
    """A line that `make bench` reads."""
    print(f"{'met' if good else 'MISSED':>6}  {what}: {value:{form}}")


def main() -> None:
    """Measure, and compare."""
    tools, questions = read()
    print(f"{len(tools):,} functions, {sum(map(len, questions.values())):,} questions.\n")
    print("| recall@5 | ours | keyword overlap |\n|---|---:|---:|")
    found = {}
    for kind, size in LEAST:
        of = f"{size or len(tools):,} tools, {kind}"
        found[kind, size] = recall(ours, tools, questions[kind], size)
        beside = recall(overlap, tools, questions[kind], size)
        print(f"| {of} | {found[kind, size]:.3f} | {beside:.3f} |")
    took, floor = times(tools, [question.text for question in questions["live"]])
    print(f"\nA query of {len(tools):,} tools takes {took:,.0f} µs, FTS5's own {floor:,.0f}.\n")
    for (kind, size), least in LEAST.items():
        allowed = SAMPLING if size else 0.0
        what = f"≥ {least} recall@5 of {size or len(tools):,} tools, {kind} questions"
        verdict(what, found[kind, size], found[kind, size] >= least - allowed)
    verdict(
        f"≤ {MOST_OF_FTS5} × FTS5's own, a query", took / floor, took <= MOST_OF_FTS5 * floor, ".2f"
    )
    per_call = of_a_call(tools)
    what = f"≤ {MOST_OF_A_CALL} µs of the processor a call of the model, with 200 tools"
    verdict(what, per_call, per_call <= MOST_OF_A_CALL, ".0f")
    share = sent(tools, questions["live"])
    verdict(
        f"≤ {MOST_SENT} % of the characters of 200 definitions are sent",
        share,
        share <= MOST_SENT,
        ".2f",
    )


if __name__ == "__main__":
    main()
