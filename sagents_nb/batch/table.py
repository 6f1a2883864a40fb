"""The frame of a map: a row for each answer, a column for each field of a structured output."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from ..frames import COLUMNS, Column, framed
from ..frames.columns import LARGEST_INTEGER
from ..messages import Usage
from ..models.output_type import Output
from .rows import Answer, Row

if TYPE_CHECKING:
    import pandas


def tabled(
    rows: Sequence[Row],
    answers: Sequence[Answer],
    output: Output | None,
    index: Any,
    earlier: Collection[str],
) -> pandas.DataFrame:
    """One row for each answer; those whose keys are in ``earlier`` are of an earlier time."""
    base = COLUMNS["map"]
    values: dict[str, Any] = {
        name: list(map(attrgetter(name), answers))
        for name in Answer.__struct_fields__
        if name in base
    }
    for name in Usage.__struct_fields__:
        values[name] = list(map(attrgetter(f"usage.{name}"), answers))
    values["prompt"] = [row.messages[-1].text if row.messages else None for row in rows]
    has_text = [bool(a.model_calls) and a.status != "not_run" for a in answers]
    values["text"] = [a.text if has else None for a, has in zip(answers, has_text, strict=True)]
    values["model"] = [answer.model or None for answer in answers]
    values["kept"] = [answer.key in earlier for answer in answers]
    columns = {name: base[name] for name in ("prompt", "text")}
    if output is not None:
        found = [{} if a.fields is None else output.row(a.fields) for a in answers]
        types, defs = output.types, output.schema.get("$defs", {})
        for field, schema in output.columns.items():
            name = f"output_{field}" if field in base else field
            values[name] = [fields.get(field) for fields in found]
            columns[name] = _column(_resolved(schema, defs), _words(types.get(field)), values[name])
    frame = framed({**columns, **base}, values)
    if index is not None:
        frame.index = index
    return frame


def _resolved(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a field that may also be null as that of the field itself."""
    if "$ref" in schema:
        return _resolved(defs.get(str(schema["$ref"]).removeprefix("#/$defs/"), {}), defs)
    options = [s for s in schema.get("anyOf", ()) if s.get("type") != "null"]
    if len(options) == 1:
        return _resolved(options[0], defs)
    return dict(schema)


def _words(annotation: Any) -> tuple[Any, ...]:
    """The words of a Literal or an Enum, in the order in which they were written."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return tuple(member.value for member in annotation)
    inside = [_words(part) for part in get_args(annotation)]
    return next((words for words in inside if words), ())


def _column(schema: Mapping[str, Any], declared: Sequence[Any], values: Sequence[Any]) -> Column:
    about = str(schema.get("description", ""))
    words = schema.get("enum", [schema["const"]] if "const" in schema else [])
    words = declared if set(declared) == set(words) else words
    if words and all(isinstance(word, str) for word in words):
        return Column("category", about, tuple(words))
    kind = schema.get("type")
    if kind == "integer" and any(v is not None and abs(v) > LARGEST_INTEGER for v in values):
        kind = "whole numbers beyond 64 bits"
    dtypes = {"string": "string", "integer": "Int64", "number": "float64", "boolean": "boolean"}
    return Column(dtypes.get(str(kind), "object"), about)
