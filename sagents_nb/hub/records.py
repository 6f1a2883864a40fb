"""What is kept of a thread: which conversation is one, of what kind, and where it came from."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from ..errors import ConfigurationError, NotFound
from ..serialization import to_data
from ..store.conversations import Conversation
from .agencies import NOTEBOOK, Agency
from .blueprints import Blueprint, blueprint_of

HUB = "hub"
"""In the metadata of a conversation: that it is a thread, and of what kind."""

IN_NOTEBOOK = Blueprint("notebook", "What this agent is, its notebook says.")
"""Stands for the kind of an agent that a kernel has; no agent is made of it."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


def is_id(text: str) -> bool:
    """Whether it can stand in an address: 1 to 100 letters, digits, _ and -."""
    return _ID.fullmatch(text) is not None


class ThreadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a thread without opening it.

    ``blueprint`` is the one it was made with: what is changed in it later is for later threads.
    ``request`` says where the request came from that made it, and ``variables`` what its tools are
    told. ``parent`` is the thread that waits for its report, and the token that it reports with.
    ``attempts`` counts how often it was gone on with since the process ended last, without an end;
    ``schedule_run`` is the run of a schedule that it does. ``title`` is what it is about: by
    default how the first message begins. ``in_notebook`` are conversations of a notebook: a kernel
    has their sessions and agents, and no hub opens them.
    """

    id: str
    agency_id: str
    created_at: datetime
    blueprint: Blueprint
    request: dict[str, str] = {}
    variables: dict[str, Any] = {}
    parent: dict[str, str] | None = None
    attempts: int = 0
    schedule_run: str | None = None
    title: str = ""
    in_notebook: bool = False

    @property
    def type(self) -> str:
        """Of which kind its agent is: the name of its blueprint."""
        return self.blueprint.name

    def metadata(self) -> dict[str, Any]:
        """As its conversation keeps it."""
        if self.in_notebook:
            return {HUB: {NOTEBOOK: self.agency_id}}
        kept = {"blueprint": to_data(self.blueprint), "request": self.request}
        if self.parent is not None:
            kept["parent"] = self.parent
        if self.attempts:
            kept["attempts"] = self.attempts
        if self.schedule_run is not None:
            kept["schedule_run"] = self.schedule_run
        return {HUB: {**kept, "variables": self.variables}}

    def view(self) -> dict[str, Any]:
        """As its clients see it."""
        seen: dict[str, Any] = {
            "id": self.id,
            "createdAt": self.created_at.isoformat(),
            "request": self.request,
            "agentType": self.type,
            "agencyId": self.agency_id,
        }
        return seen if self.parent is None else {**seen, "parent": self.parent}


def record_of(agency: Agency, conversation: Conversation) -> ThreadRecord | None:
    """What a conversation says of its thread, None where it is no thread, or damaged."""
    kept = conversation.metadata.get(HUB)
    if not isinstance(kept, dict):
        return None
    if agency.is_notebook:
        if kept.get(NOTEBOOK) != agency.id:
            return None
        return ThreadRecord(
            id=conversation.id,
            agency_id=agency.id,
            created_at=conversation.created_at,
            blueprint=IN_NOTEBOOK,
            title=conversation.title or conversation.id,
            in_notebook=True,
        )
    try:
        blueprint = blueprint_of(kept["blueprint"])
    except (ConfigurationError, TypeError, KeyError):
        return None
    return ThreadRecord(
        id=conversation.id,
        agency_id=agency.id,
        created_at=conversation.created_at,
        blueprint=blueprint,
        request=kept.get("request") or {},
        variables=kept.get("variables") or {},
        parent=kept.get("parent"),
        attempts=kept.get("attempts") or 0,
        schedule_run=kept.get("schedule_run"),
        title=conversation.title or "",
    )


def missing(thread_id: str) -> NotFound:
    """What is said of a thread that is not there, or is another agency's."""
    return NotFound(f"This agency has no thread {thread_id!r:.110}; its list of agents names them.")
