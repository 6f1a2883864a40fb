"""Docstrings as the site shows them: roles of Sphinx become links, and examples code."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import griffe

ROLE = re.compile(r":\w+:`(?:(?P<title>[^`<]+)<)?(?P<short>~?)(?P<target>[\w.]+)>?`")
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)

STRUCTS = {"Struct", "msgspec.Struct", "Event"}


class Docstrings(griffe.Extension):
    """What mkdocstrings cannot read of our docstrings, made Markdown."""

    def on_object(self, *, obj: griffe.Object, **around: Any) -> None:
        """Rewrite the docstring of an object that was just read."""
        if obj.docstring is None:
            return

        def linked(role: re.Match[str]) -> str:
            target = role["target"]
            shown = role["title"] or (target.rpartition(".")[2] if role["short"] else target)
            # Optional: what the reference does not show is a name without a link.
            path = full_path(obj, target)
            return f'<autoref optional identifier="{path}"><code>{shown.strip()}</code></autoref>'

        text = ROLE.sub(linked, obj.docstring.value)
        obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)

    def on_class_members(self, *, node: Any, cls: griffe.Class, **around: Any) -> None:
        """Give a class of msgspec the constructor that its fields make."""
        if "__init__" in cls.members or not STRUCTS & {str(base) for base in cls.bases}:
            return
        fields = [
            griffe.Parameter(
                name,
                annotation=field.annotation,
                kind=griffe.ParameterKind.positional_or_keyword,
                default=field.value,
            )
            for name, field in cls.members.items()
            if field.is_attribute
            and field.annotation
            and "instance-attribute" in field.labels  # no property, and nothing of the class
        ]
        own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
        made = griffe.Function("__init__", parameters=griffe.Parameters(own, *fields))
        cls.set_member("__init__", made)


def full_path(obj: griffe.Object, name: str) -> str:
    """The path of what a docstring of ``obj`` calls ``name``."""
    first, dot, rest = name.partition(".")
    if first != "sagents_nb":
        inside = obj if obj.is_class or obj.is_module else obj.parent
        with suppress(griffe.NameResolutionError):
            return inside.resolve(first) + dot + rest
    return name
