"""The answer that every chat of benchmarks/panel.py is to show, and how a model says it.

Whoever imports this has nothing but Python's own library.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from functools import cache

CHARACTERS = 200_000
TOKEN = 4  # characters
TOKENS_A_SECOND = 2_000
END = "This is the end of it."

WORDS = [
    *("agent", "reads", "table", "prices", "finds", "city", "grow", "rents", "north", "years"),
    *("the", "a", "of", "and", "that", "most", "with", "while", "over", "all", "were", "here"),
]


def blocks(characters: int, seed: int = 1) -> list[str]:
    """The blocks of a text: paragraphs, headings, lists and code."""
    chance = random.Random(seed)

    def words(least: int, most: int) -> str:
        said = chance.choices(WORDS, k=chance.randint(least, most))
        for mark in ("**", "`", "*"):
            place = chance.randrange(len(said))
            said[place] = f"{mark}{said[place]}{mark}"
        return " ".join(said).capitalize() + "."

    def paragraph() -> str:
        return " ".join(words(8, 20) for _ in range(chance.randint(2, 6)))

    def items() -> str:
        return "\n".join(f"- {words(5, 25)}" for _ in range(chance.randint(4, 12)))

    def code() -> str:
        body = "\n".join(
            f"    total_{i} = prices['{chance.choice(WORDS)}'].mean() + {i}  # {words(4, 8)}"
            for i in range(chance.randint(10, 40))
        )
        return f"```python\ndef measure(prices):\n{body}\n    return total_0\n```"

    made, length = [], 0
    while length < characters:
        make = chance.choice([paragraph, paragraph, items, code])
        made.append(make() if chance.random() > 0.1 else f"## {words(3, 6)}")
        length += len(made[-1]) + 2
    return made


@cache
def answer() -> str:
    """All of it."""
    return "\n\n".join([*blocks(CHARACTERS), END])


async def pieces(size: int) -> AsyncIterator[str]:
    """It, so many characters at once, as quickly as the model speaks."""
    text, began = answer(), time.monotonic()
    for at in range(0, len(text), size):
        ahead = began + at / (TOKEN * TOKENS_A_SECOND) - time.monotonic()
        if ahead > 0:
            await asyncio.sleep(ahead)
        yield text[at : at + size]


def conversation(messages: int) -> list[tuple[str, str]]:
    """Who says what, a question and an answer of two kilobytes in turns."""
    answers = ["\n\n".join(blocks(2_000, seed)) for seed in range(100)]
    return [
        ("assistant", f"{answers[n // 2 % 100]}\n\nThat was answer {n}.")
        if n % 2
        else ("user", f"And what of number {n}?")
        for n in range(messages)
    ]
