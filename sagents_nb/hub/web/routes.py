"""The table of routes: what there is, who may, what is said and what is answered.

Nothing else says it: the guard, the validation of bodies, the OpenAPI document and the tests read
this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from ...errors import ConfigurationError
from ..dialects.agui import RunAgentInput
from ..dialects.openai_chat import ChatModels, ChatReply, ChatRequest
from ..records import is_id
from . import (
    agency_routes,
    agent_routes,
    agui_routes,
    chat_routes,
    hub_routes,
    openapi,
    pages,
    schedule_routes,
)
from .bodies import (
    AgenciesReply,
    Approval,
    ApprovalsReply,
    BlueprintChanges,
    BlueprintReply,
    BlueprintsReply,
    ChildResult,
    CodeExchange,
    CreatedAgency,
    EventsReply,
    Invocation,
    NewAgency,
    NewThread,
    OkReply,
    PluginsReply,
    Registration,
    RunReply,
    ScheduleChanges,
    SchedulePreviewReply,
    ScheduleReply,
    ScheduleRunReply,
    ScheduleRunsReply,
    SchedulesReply,
    SecretReply,
    StateReply,
    ThreadReply,
    ThreadsReply,
    TokenReply,
    UsageReply,
    Variables,
    VariablesReply,
)
from .route import Needs, Route

A, T = "/agency/{agency}", "/agency/{agency}/agent/{thread}"
S = "/agency/{agency}/schedules/{schedule}"
_NOT_THERE = (404,)

ROUTES: tuple[Route, ...] = (
    Route(
        *("GET", "/", Needs.NOTHING, "What this is, for people."),
        hub_routes.page,
        kind="page",
        at_once=True,
    ),
    *(
        Route(
            *("GET", f"/assets/{name}", Needs.NOTHING, "A file of that page."),
            partial(hub_routes.asset, name),
            kind="page",
            at_once=True,
        )
        for name in pages.ASSETS
    ),
    Route(
        *("GET", "/healthz", Needs.NOTHING, "Whether it takes new work."),
        hub_routes.health,
        reply=OkReply,
        at_once=True,
        tells_whether_ready=True,
    ),
    Route(
        *("GET", "/openapi.json", Needs.HUB, "This table as an OpenAPI document."),
        lambda call: openapi.document(ROUTES),
        at_once=True,
    ),
    Route(
        *("GET", "/metrics", Needs.HUB, "Figures for Prometheus."),
        hub_routes.metrics,
        media=hub_routes.PROMETHEUS,
    ),
    Route(
        *("POST", "/auth/exchange", Needs.NOTHING, "The token for the code of the address."),
        hub_routes.exchange_code,
        body=CodeExchange,
        reply=TokenReply,
        errors=(401,),
        at_once=True,
    ),
    Route(
        *("GET", "/plugins", Needs.ANY, "What blueprints can be made of, and by which tags."),
        agency_routes.plugins,
        reply=PluginsReply,
    ),
    Route(
        *("GET", "/agencies", Needs.HUB, "All agencies, the newest first."),
        agency_routes.agencies,
        reply=AgenciesReply,
    ),
    Route(
        *("POST", "/agencies", Needs.HUB, "A new agency, with the secret that opens it."),
        agency_routes.create_agency,
        body=NewAgency,
        reply=CreatedAgency,
        status=201,
        errors=(409,),
    ),
    Route(
        *("GET", "/approvals", Needs.HUB, "What waits for people, in all agencies."),
        agency_routes.approvals,
        reply=ApprovalsReply,
    ),
    Route(
        *("GET", "/usage", Needs.HUB, "What was used, by agency."),
        agency_routes.usage,
        reply=UsageReply,
    ),
    Route(
        *("DELETE", A, Needs.HUB, "Delete an agency, with all that it has."),
        agency_routes.delete_agency,
        reply=OkReply,
        errors=(404, 409),
    ),
    Route(
        *("POST", f"{A}/secret", Needs.HUB, "Another secret; the one before opens nothing."),
        agency_routes.new_secret,
        reply=SecretReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("GET", f"{A}/blueprints", Needs.AGENCY, "What kinds of agents there are."),
        agency_routes.blueprints,
        reply=BlueprintsReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("POST", f"{A}/blueprints", Needs.AGENCY, "Make or change a kind of agent."),
        agency_routes.save_blueprint,
        body=BlueprintChanges,
        reply=BlueprintReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("GET", f"{A}/blueprints/{{name}}/versions", Needs.AGENCY, "All versions of one."),
        agency_routes.blueprint_versions,
        reply=BlueprintsReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("DELETE", f"{A}/blueprints/{{name}}", Needs.AGENCY, "Forget what the agency kept."),
        agency_routes.delete_blueprint,
        reply=OkReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("GET", f"{A}/agents", Needs.AGENCY, "Its threads, the newest first."),
        agency_routes.threads,
        reply=ThreadsReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("POST", f"{A}/agents", Needs.AGENCY, "A new thread; with an input it is invoked."),
        agency_routes.create_thread,
        body=NewThread,
        reply=ThreadReply,
        status=201,
        errors=(404, 429),
    ),
    Route(
        *(
            "DELETE",
            T,
            Needs.AGENCY,
            "Stop a thread, and delete all of it.",
        ),
        agent_routes.delete_thread,
        reply=OkReply,
        errors=(404, 409),
    ),
    Route(
        *("POST", f"{T}/invoke", Needs.AGENCY, "Say something, and have the agent go on."),
        agent_routes.invoke,
        body=Invocation,
        reply=RunReply,
        status=202,
        errors=(404, 409, 429),
    ),
    Route(
        *("GET", f"{T}/state", Needs.AGENCY, "All that a thread is."),
        agent_routes.state,
        reply=StateReply,
        errors=(404, 409),
    ),
    Route(
        *("POST", f"{T}/approve", Needs.AGENCY, "Answer what waits for an approval."),
        agent_routes.approve,
        body=Approval,
        reply=OkReply,
        errors=(404, 409),
    ),
    Route(
        *("POST", f"{T}/cancel", Needs.AGENCY, "Stop what it does, and deny what waits."),
        agent_routes.cancel,
        reply=OkReply,
        errors=(404, 409),
    ),
    Route(
        *("POST", f"{T}/child_result", Needs.AGENCY, "A child thread's report."),
        agent_routes.child_result,
        body=ChildResult,
        reply=OkReply,
        errors=(404, 409),
    ),
    Route(
        *("POST", f"{T}/register", Needs.AGENCY, "Variables of a thread that was made."),
        agent_routes.register,
        body=Registration,
        reply=OkReply,
        errors=(404, 409),
    ),
    Route(
        *("GET", f"{T}/events", Needs.AGENCY, "What was told of it; live as an event stream."),
        agent_routes.events,
        reply=EventsReply,
        errors=(404, 409, 429),
        tells="events",
    ),
    Route(
        *("POST", f"{A}/agui/{{name}}", Needs.AGENCY, "A run, as AG-UI's clients ask for it."),
        agui_routes.run,
        body=RunAgentInput,
        errors=(404, 409, 429),
        streams=True,
    ),
    Route(
        *("GET", "/v1/models", Needs.ANY, "Kinds of agents, as OpenAI's clients list models."),
        chat_routes.models,
        reply=ChatModels,
    ),
    Route(
        *("POST", "/v1/chat/completions", Needs.ANY, "An agent's answer, for OpenAI's clients."),
        chat_routes.complete,
        body=ChatRequest,
        reply=ChatReply,
        errors=(404, 422, 429),
    ),
    Route(
        *("POST", "/mcp", Needs.ANY, "The agents of an agency as tools of MCP's clients."),
        kind="mcp",
    ),
    Route("DELETE", "/mcp", Needs.ANY, "End a session of such a client.", kind="mcp"),
    Route(
        *("POST", f"{A}/mcp", Needs.AGENCY, "The same, of the agency in the address."),
        kind="mcp",
    ),
    Route("DELETE", f"{A}/mcp", Needs.AGENCY, "End a session of such a client.", kind="mcp"),
    Route(
        *("GET", f"{A}/schedules", Needs.AGENCY, "Its schedules, the newest first."),
        schedule_routes.schedules,
        reply=SchedulesReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("POST", f"{A}/schedules", Needs.AGENCY, "Have threads begin by themselves."),
        schedule_routes.create_schedule,
        body=ScheduleChanges,
        reply=ScheduleReply,
        status=201,
        errors=_NOT_THERE,
    ),
    Route(
        *("POST", f"{A}/schedule_preview", Needs.AGENCY, "When a schedule would begin."),
        schedule_routes.preview_schedule,
        body=ScheduleChanges,
        reply=SchedulePreviewReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("GET", S, Needs.AGENCY, "One schedule, and when it begins next."),
        schedule_routes.schedule,
        reply=ScheduleReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("PATCH", S, Needs.AGENCY, "Change a schedule; it goes on from now."),
        schedule_routes.change_schedule,
        body=ScheduleChanges,
        reply=ScheduleReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("DELETE", S, Needs.AGENCY, "Forget a schedule; what it began goes on."),
        schedule_routes.delete_schedule,
        reply=OkReply,
        errors=_NOT_THERE,
    ),
    Route(
        "POST",
        f"{S}/pause",
        Needs.AGENCY,
        "Have it begin nothing for now; what is queued waits until it is resumed.",
        schedule_routes.pause_schedule,
        reply=ScheduleReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("POST", f"{S}/resume", Needs.AGENCY, "Have it go on; what was missed is left out."),
        schedule_routes.resume_schedule,
        reply=ScheduleReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("POST", f"{S}/trigger", Needs.AGENCY, "Have it begin now, whatever is due."),
        schedule_routes.trigger_schedule,
        reply=ScheduleRunReply,
        errors=(404, 429),
    ),
    Route(
        *("GET", f"{S}/runs", Needs.AGENCY, "What became of its last times."),
        schedule_routes.schedule_runs,
        reply=ScheduleRunsReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("GET", f"{A}/vars", Needs.AGENCY, "The names of its variables, never their values."),
        schedule_routes.variables,
        reply=VariablesReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("POST", f"{A}/vars", Needs.AGENCY, "Keep variables, for what its tools are told."),
        schedule_routes.save_variables,
        body=Variables,
        reply=VariablesReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("DELETE", f"{A}/vars/{{name}}", Needs.AGENCY, "Forget a variable."),
        schedule_routes.delete_variable,
        reply=OkReply,
        errors=_NOT_THERE,
    ),
    Route(
        *("GET", f"{T}/ws", Needs.AGENCY, "What is told of it, live, an event a frame."),
        errors=(404, 409, 429),
        kind="websocket",
        tells="events",
    ),
    Route(
        *("GET", f"{T}/stream", Needs.AGENCY, "As a panel hears and says it, see PROTOCOL.md."),
        errors=(404, 409, 429),
        kind="websocket",
        tells="panel",
    ),
    Route(
        *("GET", f"{T}/stream", Needs.AGENCY, "What a panel hears of it; live as an event stream."),
        errors=(404, 409, 429),
        tells="panel",
    ),
)

_PATTERNS = [
    (re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]*)", re.escape(route.path))), route)
    for route in ROUTES
]


class Match(NamedTuple):
    """What the table says of a request: its route, or why there is none."""

    route: Route | None
    parameters: Mapping[str, str]
    allowed: tuple[str, ...] = ()

    @property
    def malformed(self) -> str | None:
        """The name of a parameter that can be nobody's id, if one is."""
        found = (name for name, value in self.parameters.items() if not is_id(value))
        return next(found, None)


def match(kind: str, method: str, path: str) -> Match:
    """The route of a request; ``kind`` is that of its ASGI scope, "http" or "websocket"."""
    allowed: list[str] = []
    for pattern, route in _PATTERNS:
        found = pattern.fullmatch(path)
        if found is None:
            continue
        if (route.kind == "websocket") != (kind == "websocket"):
            continue
        if method in (route.method, "HEAD" if route.method == "GET" else "") or kind != "http":
            return Match(route, found.groupdict())
        allowed.append(route.method)
    return Match(None, {}, tuple(allowed))


def check(routes: tuple[Route, ...]) -> None:
    """Raise ConfigurationError for a route of which nobody said who may."""
    for route in routes:
        if not isinstance(route.needs, Needs):
            raise ConfigurationError(
                f"{route.method} {route.path} does not say whose token it needs."
            )


check(ROUTES)
