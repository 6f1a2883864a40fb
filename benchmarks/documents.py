"""How well passages are found, in documentation that installed packages ship; beside bm25s.

The collections are made of real files: the descriptions and Markdown of all installed packages,
whose sections are found by their headings, and the docstrings of pandas and NumPy, which are found
by their first lines. What is asked does not stand in the text that is right, of which there is one.
The measure is nDCG@10: 1 where it comes first, .63 where it is second, 0 behind the tenth. Beside
it stands bm25s with PyStemmer, in an environment of its own. What a search takes is compared with
FTS5's own for the same words.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import random
import re
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path

from peers._environments import Missing, environment

import sagents_nb as sa
from sagents_nb.search.words import FUNCTION_WORDS, query_words

PEER = Path(__file__).parent / "peers" / "search_bm25s.py"
HEADING = re.compile(r"^#{1,6} +(.+?)[ #]*$", re.MULTILINE)
MOST_ASKED = 1_000
WITHIN, MOST_OF_FTS5 = 0.01, 5
SEED = 5

Collection = tuple[list[str], list[tuple[str, int]]]
"""Texts, and questions with the number of the text that is right."""


def descriptions() -> Iterator[str]:
    """The Markdown that installed packages say of themselves, and that they ship."""
    for distribution in sorted(distributions(), key=lambda one: one.name or ""):
        yield distribution.metadata.get_payload() or distribution.metadata["Description"] or ""
        for path in distribution.files or ():
            if path.suffix == ".md":
                yield Path(path.locate()).read_text(encoding="utf-8", errors="replace")


def sections() -> Collection:
    """Sections, and their headings where those say something of one alone."""
    texts: dict[str, str] = {}
    for description in descriptions():
        cuts = [*HEADING.finditer(description)]
        ends = [*(cut.start() for cut in cuts), len(description)][1:]
        for cut, end in zip(cuts, ends, strict=True):
            body = description[cut.end() : end].strip()
            if len(body) > 80:
                texts.setdefault(body, cut[1])
    return asked([*texts.items()])


def docstrings() -> Collection:
    """What stands below the first lines of docstrings, and those."""
    texts: dict[str, str] = {}
    for name in ("numpy", "numpy.linalg", "numpy.ma", "pandas", "pandas.api.types"):
        module = import_module(name)
        for value in (getattr(module, attribute, None) for attribute in sorted(dir(module))):
            for one in [value, *(vars(value).values() if inspect.isclass(value) else ())]:
                text = inspect.getdoc(one) if callable(one) else None
                first, _, rest = (text or "").partition("\n\n")
                if len(rest) > 80 and "\n" not in first:
                    texts.setdefault(rest, first)
    return asked([*texts.items()])


def asked(sections: Sequence[tuple[str, str]]) -> Collection:
    """All texts, and as questions those headings that stand above one text, and say two words."""
    headings = [" ".join(query_words(heading)) for _, heading in sections]
    questions = [
        (heading, number)
        for number, (heading, words) in enumerate(
            zip((heading for _, heading in sections), headings, strict=True)
        )
        if len(words.split()) > 1 and headings.count(words) == 1
    ]
    random.Random(SEED).shuffle(questions)
    return [text for text, _ in sections], questions[:MOST_ASKED]


def ndcg(found: Sequence[Sequence[int]], questions: Sequence[tuple[str, int]]) -> float:
    """The mean over the questions; of each, one text is right."""
    gains = [
        1 / math.log2(numbers.index(right) + 2) if right in numbers else 0.0
        for numbers, (_, right) in zip(found, questions, strict=True)
    ]
    return sum(gains) / len(gains)


def ours(index: sa.DocumentIndex, question: str) -> list[int]:
    """The ten documents whose passages come first."""
    passages = index.search(question, limit=30)
    return [*dict.fromkeys(int(one.location.document) for one in passages)][:10]


def theirs(collection: Collection, python: str) -> tuple[list[list[int]], float]:
    """What bm25s finds, and in how many seconds of processor time."""
    texts, questions = collection
    given = json.dumps({"texts": texts, "questions": [question for question, _ in questions]})
    done = subprocess.run([python, str(PEER)], input=given, stdout=subprocess.PIPE, text=True)
    told = json.loads(done.stdout)
    return told["found"], told["seconds"]


def least(work: Callable[[], object], rounds: int = 3) -> float:
    """Seconds of processor time, the least of some rounds."""
    took = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def of_all(index: sa.DocumentIndex, questions: Sequence[tuple[str, int]]) -> float:
    """Seconds of processor time for all questions."""
    return least(lambda: [ours(index, question) for question, _ in questions])


def of_fts5(index: sa.DocumentIndex, texts: Sequence[str], questions: Sequence[str]) -> float:
    """What a search takes in terms of FTS5's own for the same words."""
    raw = sqlite3.connect(":memory:")
    raw.execute("CREATE VIRTUAL TABLE texts USING fts5(body, tokenize='porter')")
    raw.executemany("INSERT INTO texts VALUES (?)", [(text,) for text in texts])
    query = "SELECT body FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT 8"
    matches = [
        " OR ".join(f'"{word}"' for word in query_words(one, FUNCTION_WORDS)) for one in questions
    ]
    took = least(lambda: [index.search(question) for question in questions])
    return took / least(lambda: [raw.execute(query, (match,)).fetchall() for match in matches])


def verdict(what: str, value: float, good: bool, form: str = ".3f") -> None:
    """A line that `make bench` reads."""
    print(f"{'met' if good else 'MISSED':>6}  {what}: {value:{form}}")


def main() -> None:
    """Measure, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true", help="install bm25s beside, if it is not")
    install = parser.parse_args().peers
    try:
        python = environment("bm25s", ["bm25s", "PyStemmer"], install)
    except Missing as reason:
        python = None
        print(f"bm25s: {reason}\n")
    collections = {"sections of packages": sections(), "docstrings": docstrings()}
    verdicts = []
    print("| nDCG@10 | texts | questions | ours | bm25s | a search of ours in its time |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (texts, questions) in collections.items():
        index = sa.DocumentIndex()
        index.add({str(number): text for number, text in enumerate(texts)})
        found = [ours(index, question) for question, _ in questions]
        score = ndcg(found, questions)
        row = f"| {name} | {len(texts):,} | {len(questions):,} | {score:.3f} |"
        if python is None:
            print(f"{row} | |")
        else:
            numbers, seconds = theirs((texts, questions), python)
            beside = ndcg(numbers, questions)
            took = of_all(index, questions)
            print(f"{row} {beside:.3f} | {took / seconds:.2f} × |")
            what = f"≥ nDCG@10 of bm25s − {WITHIN}, {name}"
            verdicts.append((what, score - beside, score >= beside - WITHIN, "+.3f"))
        ratio = of_fts5(index, texts, [question for question, _ in questions])
        what = f"≤ {MOST_OF_FTS5} × FTS5's own, a search of {name}"
        verdicts.append((what, ratio, ratio <= MOST_OF_FTS5, ".2f"))
    print()
    for each in verdicts:
        verdict(*each)


if __name__ == "__main__":
    main()
