"""The table of routes as an OpenAPI 3.1 document."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from typing import Any

import msgspec

from .bodies import ChatErrorReply, ErrorReply
from .route import Needs, Route

_REF = "#/components/schemas/{name}"

_WORDS = {
    400: "It does not fit, and the sentence says why.",
    401: "No token, or one that opens nothing here.",
    403: "From another host or origin.",
    404: "It is not there, or is another agency's.",
    409: "Something else is in its way.",
    413: "The body is too large.",
    415: "The body is no JSON.",
    422: "The agent's run failed.",
    429: "So much is under way that there is room for no more.",
    503: "Not now: the hub ends, or its database is away.",
}


@functools.cache
def document(table: tuple[Route, ...]) -> dict[str, Any]:
    """Of that table; sockets are in none, OpenAPI has no word for them."""
    routes = [route for route in table if route.kind == "http"]
    types = [kind for route in routes for kind in (route.body, route.reply) if kind is not None]
    _, schemas = msgspec.json.schema_components(
        [*types, ErrorReply, ChatErrorReply], ref_template=_REF
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sagents_nb hub",
            "version": importlib.metadata.version("sagents-nb"),
            "description": "Agencies of agents: their blueprints, their threads, and approvals.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "secret": {"type": "apiKey", "in": "header", "name": "X-SECRET"},
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    name = re.sub(r"\W+", "_", f"{route.method.lower()}{route.path}").strip("_")
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": route.summary,
        "responses": {str(route.status): _response(route)},
    }
    failures = {403, 503, *route.errors}
    if route.needs is not Needs.NOTHING:
        operation["security"] = [{"bearer": []}, {"secret": []}]
        failures.add(401)
    parameters = [
        {
            "name": each,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,100}$"},
        }
        for each in route.parameters
    ]
    if route.tells is not None:
        since = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
        parameters.append({"name": "since", "in": "query", "required": False, "schema": since})
    if parameters:
        operation["parameters"] = parameters
        failures.add(400)
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _json(route.body)}
    if route.method != "GET":
        failures |= {400, 413, 415}
    for status in sorted(failures):
        operation["responses"][str(status)] = {
            "description": _WORDS[status],
            "content": _json(ChatErrorReply if route.path.startswith("/v1/") else ErrorReply),
        }
    return operation


def _response(route: Route) -> dict[str, Any]:
    said: dict[str, Any] = {"description": route.summary}
    if route.streams:
        said["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    elif route.reply is not None:
        said["content"] = _json(route.reply)
    else:
        kind = "object" if route.media == "application/json" else "string"
        said["content"] = {route.media: {"schema": {"type": kind}}}
    if route.tells is not None:
        said["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    return said


def _json(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(name=kind.__name__)}}}
