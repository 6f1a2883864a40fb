"""What can be asked of agencies: their blueprints, and the list of their threads."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ...errors import SagentsError
from ..agencies import Agency
from ..blueprints import KeptBlueprint
from ..records import ThreadRecord
from ..standings import Standing
from ..threads import Thread
from .agent_routes import invoke_thread
from .bodies import (
    AgenciesReply,
    AgencyReply,
    ApprovalReply,
    ApprovalsReply,
    BlueprintReply,
    BlueprintsReply,
    ChatMessage,
    CreatedAgency,
    Invocation,
    OkReply,
    PluginReply,
    PluginsReply,
    SecretReply,
    SpentReply,
    ThreadReply,
    ThreadsReply,
    ToolReply,
    UsageReply,
    moment,
)
from .call import Call


def agencies(call: Call) -> AgenciesReply:
    """All of them."""
    return AgenciesReply(agencies=[AgencyReply(**_seen(each)) for each in call.hub.agencies()])


def create_agency(call: Call) -> CreatedAgency:
    """A new one."""
    agency, secret = call.hub.create_agency(call.body.name)
    return CreatedAgency(**_seen(agency), secret=secret)


def delete_agency(call: Call) -> OkReply:
    """One less."""
    call.hub.delete_agency(call.agency)
    return OkReply()


def new_secret(call: Call) -> SecretReply:
    """Another secret."""
    return SecretReply(secret=call.hub.new_secret(call.agency))


def _seen(agency: Agency) -> dict[str, Any]:
    created_at = agency.created_at.isoformat()
    said = {"id": agency.id, "name": agency.name, "created_at": created_at}
    return {**said, "notebook": True} if agency.is_notebook else said


def plugins(call: Call) -> PluginsReply:
    """What blueprints can be made of."""
    system = call.hub.system
    return PluginsReply(
        plugins=[PluginReply(name=key, tags=tags) for key, tags in system.middleware.items()],
        tools=[
            ToolReply(name=tool.name, description=tool.description, tags=tags)
            for tool, tags in system.tools
        ],
    )


def blueprints(call: Call) -> BlueprintsReply:
    """Those that it can use."""
    return BlueprintsReply(blueprints=[_blueprint(k) for k in call.hub.blueprints(call.agency)])


def save_blueprint(call: Call) -> BlueprintReply:
    """A further version of one."""
    given = msgspec.structs.asdict(call.body)
    changes = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    return _blueprint(call.hub.save_blueprint(call.agency, changes))


def blueprint_versions(call: Call) -> BlueprintsReply:
    """All versions of one."""
    found = call.hub.blueprint_versions(call.agency, call.parameters["name"])
    return BlueprintsReply(blueprints=[_blueprint(kept) for kept in found])


def delete_blueprint(call: Call) -> OkReply:
    """What the agency kept of one is gone."""
    call.hub.delete_blueprint(call.agency, call.parameters["name"])
    return OkReply()


def _blueprint(kept: KeptBlueprint) -> BlueprintReply:
    blueprint = kept.blueprint
    return BlueprintReply(
        name=blueprint.name,
        description=blueprint.description,
        prompt=blueprint.prompt,
        tags=list(blueprint.tags),
        model=blueprint.model,
        config=blueprint.config,
        version=kept.version,
        created_at=moment(kept.created_at),
        updated_at=moment(kept.updated_at),
    )


def threads(call: Call) -> ThreadsReply:
    """Its threads."""
    agency = call.agency
    standings, unknown = call.hub.standings(agency), Standing()
    served = call.hub.served() if agency.is_notebook else set()

    def kernel(record: ThreadRecord) -> Literal["here", "away"] | None:
        if not record.in_notebook:
            return None
        return "here" if record.id in served else "away"

    return ThreadsReply(
        agents=[
            _thread(record, standings.get(record.id, unknown), kernel(record))
            for record in call.hub.threads(agency)
        ]
    )


def approvals(call: Call) -> ApprovalsReply:
    """What waits for people anywhere."""
    return ApprovalsReply(
        approvals=[
            ApprovalReply(
                agency_id=agency.id,
                agency=agency.name,
                thread_id=record.id,
                agent_type=record.type,
                title=record.title,
                since=moment(standing.at),
                tools=list(standing.asks),
            )
            for agency, record, standing in call.hub.waiting()
        ]
    )


def usage(call: Call) -> UsageReply:
    """What was used, by agency."""
    return UsageReply(
        usage=[
            SpentReply(agency_id=agency.id, **msgspec.structs.asdict(call.hub.spent(agency)))
            for agency in call.hub.agencies()
        ]
    )


def create_thread(call: Call) -> ThreadReply:
    """A new one, which may be invoked at once."""
    body, agency = call.body, call.agency
    said = body.input
    if isinstance(said, str):
        said = Invocation(messages=[ChatMessage(content=said)])
    if said is None:
        thread = _created(call)
        return _thread(thread.record, Standing(status=thread.status))
    with call.room() as beginning:
        thread = _created(call)
        beginning.thread_id = thread.record.id
        try:
            invoke_thread(call, agency, thread, said)
        except SagentsError:
            call.hub.delete_thread(agency, thread.record.id)  # what was refused changes nothing
            raise
    return _thread(thread.record, Standing(status=thread.status))


def _created(call: Call) -> Thread:
    body = call.body
    return call.hub.create_thread(
        call.agency, body.agent_type, request=call.origin, variables=body.vars
    )


def _thread(
    record: ThreadRecord, standing: Standing, kernel: Literal["here", "away"] | None = None
) -> ThreadReply:
    parent = record.parent
    return msgspec.structs.replace(
        msgspec.convert(record.view(), ThreadReply),
        # The token with which it reports is for itself: its own state has it.
        parent=None if parent is None else {"threadId": parent["threadId"]},
        title=record.title,
        status=standing.status,
        reason=standing.reason,
        since=moment(standing.at),
        kernel=kernel,
    )
