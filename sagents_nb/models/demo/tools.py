"""How the demo model picks a tool for a step: words of the step against words of the tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ...tools import ToolSpec
from .words import (
    ACTS,
    ARITHMETIC,
    DELEGATES,
    IDENTIFIER,
    PATH,
    VERBS,
    first_verb,
    groups,
    own_verb,
    quoted,
    stem,
    stems,
    superlative,
    unquoted,
    words,
)

# Those of a notebook.
TOOLS = (
    "inspect_variables",
    "show_frame",
    "run_python",
    "plot",
    "read_cell",
    "last_error",
    "insert_cell",
)
ENOUGH = 4.0
FILE_WORDS = frozenset({"fil", "it", "report", "not"})  # the stems of file, report and notes

_PLACES = FILE_WORDS | {stem(word) for word in ("folder", "directory", "documents", "everything")}
# Errors that statistics have, of which no cell failed.
_ERRORS = re.compile(
    r"\b(?:(?:standard|mean|squared|square|absolute|percentage|relative|sampling)[ -])+errors?\b|"
    r"\bmargins? of error\b|\berror bars?\b",
    re.IGNORECASE,
)
# Shops that a frame has rows of, where nothing is stored.
_SHOPS = re.compile(
    r"\b(?:per|by|each|every|which|what|of|in|between|across|the|our|all|for)\s+stores?\b|\bstores\b|"
    r"\b(?:by|per)\s+\w+\s+and\s+store\s+(?:in|of|for|from)\s+(?=`)",
    re.IGNORECASE,
)
_ORDERS = {stem(word) for word in ("first", "last", "new", "all")}  # they say nothing of a tool


class Parameter:
    """One argument of a tool: its name, its JSON Schema, and whether it must be given."""

    def __init__(self, name: str, schema: Mapping[str, Any], required: bool) -> None:
        self.name = name
        self.schema = schema
        self.required = required
        self.words = words(name.replace("_", " "))
        self.stems = {stem(word) for word in self.words}

    @property
    def choices(self) -> list[Any]:
        """The values of an enum, [] without one."""
        if "const" in self.schema:
            return [self.schema["const"]]
        return [value for value in self.schema.get("enum", []) if value is not None]

    @property
    def type(self) -> str:
        """The JSON type; "string" where several or none are named."""
        kind = self.schema.get("type", "string")
        if isinstance(kind, list):
            kind = next((k for k in kind if k != "null"), "string")
        return str(kind)

    @property
    def is_number(self) -> bool:
        """Whether it takes a number of any size, and none of a few choices."""
        return self.type in ("integer", "number") and not self.choices

    def called(self, *names: str) -> bool:
        """Whether its name holds one of these words."""
        return any(word in names for word in self.words)


class Clause:
    """One step of a prompt, and what it says to whoever looks for its tool."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lower = text.lower()
        bare, does = _bare(text), _bare(_SHOPS.sub(" ", text))
        self.stems = stems(bare)
        self.verbs = groups([stem(first_verb(does))])
        self.asked = groups(stems(does)) if self.verbs != {"write"} else self.verbs
        self.own_verb = own_verb(bare)
        self.is_sum = ARITHMETIC.search(bare) is not None
        self.delegates = bool(DELEGATES.match(text))
        self.has_superlative = superlative(bare) is not None
        self.has_path = PATH.search(unquoted(text)) is not None


def _bare(text: str) -> str:
    """The text without its paths, what is quoted, and the errors of statistics."""
    return _ERRORS.sub(" ", unquoted(PATH.sub(" ", text)))


class Offer:
    """A tool as the demo model sees it."""

    def __init__(self, spec: ToolSpec) -> None:
        self.name = spec.name
        self.description = spec.description
        self.schema = spec.schema
        required = set(spec.schema.get("required", ()))
        self.parameters = [
            Parameter(name, _resolved(schema, spec.schema), name in required)
            for name, schema in spec.schema.get("properties", {}).items()
        ]

    @cached_property
    def name_stems(self) -> set[str]:
        """The stems of its name."""
        return {stem(word) for word in words(self.name.replace("_", " "))}

    @cached_property
    def groups(self) -> set[str]:
        """What its name says it does, such as "read"."""
        return groups(self.name_stems)

    @cached_property
    def _described(self) -> set[str]:
        # The first sentence says what a tool does; the rest mentions other tools, too.
        return stems(re.split(r"(?<=[.:])\s", self.description, maxsplit=1)[0])

    @cached_property
    def _described_groups(self) -> set[str]:
        return groups(self._described)

    def is_named_in(self, text: str) -> bool:
        """Whether a text says its whole name, as words."""
        return re.search(rf"\b{self.name.replace('_', '[ _]')}\b", text, re.IGNORECASE) is not None

    def is_said_in(self, text: str) -> bool:
        """Whether a text says what its name says, in any order: its nouns, of one also the verb."""
        nouns = {stem(w) for w in words(self.name.replace("_", " ")) if w not in VERBS}
        verb, said = own_verb(unquoted(text)), stems(text)
        if verb and self.is_meant_by(verb):
            return True
        does = len(nouns) > 1 or groups(self.name_stems - nouns) & groups(said)
        return bool(nouns and does) and nouns <= said

    def is_meant_by(self, verb: str) -> bool:
        """Whether its name holds a verb, or its description begins with it."""
        begins = words(self.description)[:1]
        return stem(verb) in {*self.name_stems, *map(stem, begins)}

    @cached_property
    def columns(self) -> list[str]:
        """Identifiers that its description and its enums mention, such as column names."""
        texts = [self.description]
        found: list[str] = []
        for parameter in self.parameters:
            texts.append(str(parameter.schema.get("description", "")))
            found += [c for c in parameter.choices if isinstance(c, str)]
        own = {p.name for p in self.parameters} | {self.name}
        found += [name for text in texts for name in IDENTIFIER.findall(text) if name not in own]
        return list(dict.fromkeys(found))

    def score(self, clause: Clause) -> float:
        """How well this tool fits a clause; below ``ENOUGH`` it does not."""
        if re.search(rf"\b{re.escape(self.name)}\b", clause.text) and "_" in self.name:
            return 100.0
        said, verb, asked = clause.stems, clause.verbs, clause.asked
        sum_asked = clause.is_sum and any(
            p.called("expression", "formula", "code") for p in self.parameters
        )
        delegates = "delegate" in self.groups and clause.delegates
        called = sum_asked or delegates  # "let a sub-agent write" is written by no tool here
        if (self.groups & ACTS) and not (self.groups & asked) and not called:
            return 0.0
        if "write" in self.groups and verb == {"read"}:  # "read the notes" notes nothing
            return 0.0
        score = 5.0 * sum_asked + 20.0 * delegates
        if clause.own_verb and self.is_meant_by(clause.own_verb):
            score += ENOUGH
        score += 4.0 * len((said & self.name_stems) - _ORDERS) + min(3, len(said & self._described))
        score += 6.0 * bool(verb & self.groups) + 2.0 * bool((asked - verb) & self.groups)
        score += 2.0 * bool(asked & self._described_groups)
        if clause.has_superlative and self.groups & {"describe", "count"}:
            score += 4.0
        for parameter in self.parameters:
            score += min(2, len(said & parameter.stems))
            score += 3.0 * any(
                len(str(c)) > 1 and re.search(rf"\b{re.escape(str(c).lower())}\b", clause.lower)
                for c in parameter.choices
            )
        # Files: a path needs a tool that takes one, and such a tool needs a path or the word.
        takes_path = any(p.called("path", "file", "filename") for p in self.parameters)
        if clause.has_path:
            if "read" in self.groups and not takes_path:
                return 0.0  # it shows something else
            score += 2.0 if takes_path else -2.0
        elif takes_path and not said & FILE_WORDS:
            if self.groups & {"delete", "move", "edit"}:
                return 0.0  # of something else than a file, such as rows
            score -= 3.0
        elif "list" in self.groups and not said & _PLACES:
            return 0.0  # of something else than files
        elif not takes_path and "read" in self.groups and said & FILE_WORDS - {"it"}:
            return 0.0  # it reads something else
        return score


def _searches_files(offer: Offer) -> bool:
    return "search" in offer.groups and any(p.called("path", "file") for p in offer.parameters)


def of_other_files(offer: Offer, clause: str) -> bool:
    """Whether a tool searches files, of which a clause says nothing."""
    return _searches_files(offer) and not (stems(clause) & _PLACES or quoted(clause))


def best(offers: Iterable[Offer], clause: str) -> list[Offer]:
    """The tools that fit a clause, the best first.

    A verb that only tools know says more than what else looks like one: 'Ship it with the note "x"'
    notes nothing where a tool ships. And a tool that is named comes before those of a notebook.
    """
    offers, verb = list(offers), own_verb(unquoted(clause))
    if verb and any(offer.is_meant_by(verb) for offer in offers):
        offers = [o for o in offers if o.is_meant_by(verb) or not o.groups & ACTS]
    said = Clause(clause)
    scored = [(offer.score(said), -n, offer) for n, offer in enumerate(offers)]
    fitting = sorted((s for s in scored if s[0] >= ENOUGH), key=lambda s: s[:2], reverse=True)
    found = [offer for _, _, offer in fitting]
    if found and of_other_files(found[0], clause):
        # "Find the area of Inari" searches no files where a tool knows areas.
        found.sort(key=_searches_files)
    bare = unquoted(PATH.sub(" ", clause))
    named = [offer for offer in found if offer.name not in TOOLS and offer.is_named_in(bare)]
    if named and found[0].name in TOOLS:
        return [*named, *(offer for offer in found if offer not in named)]
    return found


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema without a $ref at its top, and of a choice the first that is not null."""
    for _ in range(5):
        if not isinstance(schema, Mapping):
            return {}
        if "$ref" in schema:
            schema = {**_referred(schema["$ref"], root), **_without(schema, "$ref")}
        elif isinstance(schema.get("anyOf"), list):
            options = [o for o in schema["anyOf"] if o != {"type": "null"}]
            schema = {**(options[0] if options else {}), **_without(schema, "anyOf")}
        else:
            break
    return schema if isinstance(schema, Mapping) else {}


def _referred(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    target: Any = root
    for part in reference.removeprefix("#/").split("/"):
        target = target.get(part, {}) if isinstance(target, Mapping) else {}
    return target if isinstance(target, Mapping) else {}


def _without(schema: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if k != key}


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def conforms(value: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether a value is what a JSON Schema asks for; keywords it does not know are ignored.

    >>> conforms({"n": 3}, {"type": "object", "properties": {"n": {"maximum": 2}}}, {})
    False
    """
    if not isinstance(schema, Mapping):
        return schema is not False
    if "$ref" in schema:
        return conforms(value, _referred(schema["$ref"], root), root)
    if "anyOf" in schema and not any(conforms(value, s, root) for s in schema["anyOf"]):
        return False
    kinds: Sequence[str] = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(
        isinstance(value, _TYPES.get(k, (object,)))
        and not (isinstance(value, bool) and k in ("integer", "number"))
        for k in kinds
    ):
        return False
    if ("enum" in schema and value not in schema["enum"]) or value != schema.get("const", value):
        return False
    return _within(value, schema) and _parts_conform(value, schema, root)


def _within(value: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(
            value >= schema.get("minimum", value)
            and value <= schema.get("maximum", value)
            and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
            and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
            and ("multipleOf" not in schema or value % schema["multipleOf"] == 0)
        )
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            return False
        return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)))
    if isinstance(value, list):
        return bool(schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)))
    return True


def _parts_conform(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    if isinstance(value, list):
        return all(conforms(item, schema.get("items", {}), root) for item in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        rest = schema.get("additionalProperties", {})
        return all(name in value for name in schema.get("required", ())) and all(
            conforms(item, known.get(name, rest), root) for name, item in value.items()
        )
    return True
