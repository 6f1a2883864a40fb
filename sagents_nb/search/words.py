"""What is looked for in a text: its words, without those that say nothing."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any

MOST_WORDS = 80
"""So many different words of a query are looked for, its first ones."""

# The most frequent English words, and those in which people ask for things.
_STOPS = """
a about am an and any are as at be been but by can could did do does for from get give had has have
how i if in into is it its just let like may me my need no not of on or our out please say shall
should show so some tell than that the their them then there these they this those to us was we were
what when where which who whom will with would you your
"""
STOP_WORDS = frozenset(_STOPS.split())
# In texts that tell how something is done they say something.
_TELLING = (
    "any can from get give had has have just let like may need no not out say show so some tell "
    "than when where which"
)
FUNCTION_WORDS = STOP_WORDS.difference(_TELLING.split())

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def query_words(text: str, without: Set[str] = STOP_WORDS) -> list[str]:
    """The different words of ``text`` that are worth looking for, in order; ``without`` others.

    >>> query_words("What is the weather in Oslo? And the weather in Bergen?")
    ['weather', 'oslo', 'bergen']
    """
    words = (word.lower() for word in _WORD.findall(text))
    return list(dict.fromkeys(word for word in words if word not in without))[:MOST_WORDS]


def spaced(name: str) -> str:
    """A name of code as words.

    >>> spaced("getWeather_forCity")
    'get Weather for City'
    """
    return " ".join(_WORD.findall(_HUMP.sub(" ", name)))


def schema_words(schema: Any, depth: int = 4) -> str:
    """What a JSON Schema says in words: names, descriptions and choices, ``depth`` levels of it."""
    said: list[str] = []
    if isinstance(schema, dict) and depth:
        properties = schema.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            said += [spaced(str(name)), schema_words(inner, depth - 1)]
        if isinstance(text := schema.get("description"), str):
            said.append(text)
        if isinstance(choices := schema.get("enum"), list):
            said += [spaced(choice) for choice in choices if isinstance(choice, str)]
        said.append(schema_words(schema.get("items"), depth - 1))
        for key in ("anyOf", "oneOf", "allOf"):
            alternatives = schema.get(key)
            for inner in alternatives if isinstance(alternatives, list) else ():
                said.append(schema_words(inner, depth - 1))
    return " ".join(filter(None, said))
