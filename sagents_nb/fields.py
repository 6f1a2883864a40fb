"""``{name}`` in what a person says: what it stands for, kept beside what was typed.

The model is sent all of it. People see what they typed and, folded, what its names stood for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from .messages import DISPLAY, Content, Message
from .serialization import to_data

# One pass; only plain names and attribute paths, so JSON and code in a prompt stay as typed,
# and a value's own braces are never looked at (jupyter-ai#27, #967).
PATTERN = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}")

# In the metadata of what people see of a message: its fields, as data.
FIELDS = "fields"


class Field(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a ``{name}`` stands for: ``text`` for the model, ``brief`` in few words for people.

    What is ``appended`` is named in its place and described after the message.
    """

    name: str
    brief: str
    text: str
    appended: bool = False


def names_in(typed: str) -> list[str]:
    """What stands in braces, each once.

    >>> names_in("{n} of {{all}} and {n}")
    ['n']
    """
    return list(dict.fromkeys(match[1] for match in PATTERN.finditer(typed) if match[1]))


def filled(typed: str, fields: Mapping[str, Field]) -> str:
    """``typed`` with what its fields stand for; other names are left, ``{{`` and ``}}`` are braces.

    >>> filled("{n} of {{all}}, {unknown}", {"n": Field("n", "3", "3")})
    '3 of {all}, {unknown}'
    """

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        field = fields.get(match[1])
        if field is None:
            return match[0]
        return f"`{field.name}`" if field.appended else field.text

    told = [fields[name] for name in names_in(typed) if name in fields]
    after = [f"`{field.name}` is a {field.text}" for field in told if field.appended]
    return "\n\n".join([PATTERN.sub(replace, typed), *after])


def message_of(typed: str, fields: Mapping[str, Field], others: Iterable[Content] = ()) -> Message:
    """A message that the model is sent :func:`filled`, and people see as it was typed.

    ``others`` are its further parts.
    """
    others = list(others)
    used = [fields[name] for name in names_in(typed) if name in fields]
    shown = Message.user([typed, *others], **{FIELDS: to_data(used)})
    return Message.user([filled(typed, fields), *others], **{DISPLAY: to_data(shown)})


def fields_of(message: Message) -> list[Field]:
    """The fields of a message, as people see it."""
    try:
        return msgspec.convert(message.shown.metadata.get(FIELDS, []), list[Field])
    except msgspec.ValidationError:  # somebody else's key of that name
        return []


def brief_of(fields: Iterable[Field]) -> str:
    """All of them in a line.

    >>> brief_of([Field("df", "500 rows × 6 columns", ""), Field("n", "3", "3")])
    'with df: 500 rows × 6 columns, n: 3'
    """
    return "with " + ", ".join(f"{field.name}: {field.brief}" for field in fields)
