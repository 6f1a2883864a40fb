"""What a form needs to know of a tool's parameters: their order, and of what kind each is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tools import Tool

_TYPES = ("integer", "number", "boolean")
_CHOICES = 50  # more are no list that anybody picks from
_EXACT = 2**53  # whole numbers that JavaScript knows


def with_parameters(interrupt: dict[str, Any], tools: Mapping[str, Tool]) -> dict[str, Any]:
    """An interrupt, as data, whose requests say in which order a form has their arguments, and how.

    The tool of a sub-agent is none of ``tools``, and its request says nothing.
    """
    requests = []
    for request in interrupt.get("action_requests", ()):
        tool = tools.get(request["tool_name"])
        request = {name: value for name, value in request.items() if name != "parameters"}
        known = {} if tool is None else parameters_of(tool.schema, request)
        requests.append({**request, "parameters": known} if known else request)
    return {**interrupt, "action_requests": requests} if requests else interrupt


def parameters_of(schema: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """In the schema's order the request's arguments, ``{"type": …}``, ``{"enum": […]}`` or ``{}``.

    The last is of one that has no field of a kind. What the schema does not name is left out.

    >>> schema = {"properties": {"n": {"type": "integer"}, "to": {"type": "string"}}}
    >>> parameters_of(schema, {"arguments": {"to": "Oslo", "n": 1}})
    {'n': {'type': 'integer'}, 'to': {}}
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    given = {*request.get("arguments", {}), *request.get("defaults", {})}
    return {name: _parameter(of, schema) for name, of in properties.items() if name in given}


def _parameter(of: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(of, Mapping) and isinstance(reference := of.get("$ref"), str):
        definitions = schema.get("$defs")
        name = reference.removeprefix("#/$defs/")
        of = definitions.get(name) if isinstance(definitions, Mapping) else None
    if not isinstance(of, Mapping):
        return {}
    choices = of.get("enum")
    if isinstance(choices, list):
        fits = 0 < len(choices) <= _CHOICES and all(map(_is_plain, choices))
        return {"enum": choices} if fits else {}
    return {"type": of["type"]} if of.get("type") in _TYPES else {}


def _is_plain(choice: Any) -> bool:
    """Whether a page has that value just as Python does."""
    if choice is None or isinstance(choice, str | bool):
        return True
    return isinstance(choice, int) and abs(choice) < _EXACT
