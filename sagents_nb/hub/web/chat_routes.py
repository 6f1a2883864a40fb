"""What OpenAI's clients ask: which models there are, and an answer of one."""

from __future__ import annotations

from ..dialects.openai_chat import ChatModel, ChatModels, Completion, place_of
from .call import Call


def models(call: Call) -> ChatModels:
    """The kinds of agents of the agency, or of all."""
    hub, owner = call.hub, call.owner
    agencies = hub.agencies() if owner is None else [hub.agency(owner)]
    return ChatModels(
        data=[
            ChatModel(
                id=kept.blueprint.name if owner else f"{agency.id}/{kept.blueprint.name}",
                owned_by=agency.name,
            )
            for agency in agencies
            for kept in hub.blueprints(agency)
        ]
    )


def complete(call: Call) -> Completion:
    """An answer that has begun."""
    agency_id, kind = place_of(call.body.model, call.owner)
    session = call.hub.guest(call.hub.agency(agency_id), kind, call.limits)
    try:
        completion = Completion(session, call.body)
        completion.begin()
    except BaseException:
        session.close()
        raise
    return completion
