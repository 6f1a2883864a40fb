"""Sub-agents that are threads of their own: their parent waits, also over an end of the process."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from .. import kinds
from ..context import ToolContext
from ..errors import ConfigurationError, SagentsError
from ..interrupts import ActionRequest, Interrupt
from ..middleware.base import Middleware
from ..tools import Tool, ToolOutput
from .blueprints import Blueprint, blueprint_of
from .vocabulary import SUB_AGENTS

_PROMPT = """\
## Sub-agents

Give work that stands by itself to a sub-agent with `task`, and say all that it needs to know: it \
has not heard this conversation. Several may work at once; their results come when all are done."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a sub-agent is to do: one call of a tool, which always means the same.

    ``id`` names it, and is that of the new thread which is to do it, of the kind ``type``, or made
    by ``blueprint``; or ``child`` names one that the agent has already.
    """

    id: str
    tool_call_id: str
    description: str
    type: str = ""
    blueprint: Blueprint | None = None
    child: str | None = None


class Link(msgspec.Struct, frozen=True):
    """A child that a thread waits for: its call, and the digest of the token it reports with."""

    request: ActionRequest
    child_id: str
    token: str
    deadline: float | None = None


Delegate = Callable[[Task], tuple[str, str]]
"""Has a child thread begin with a task, if it has not; gives its id and its token's digest."""


class Delegation(Middleware):
    """The tool ``task``, with which an agent has a thread of another kind do some work.

    With ``message_agent`` it says more to one of these, which knows what it did before.

    ``subagents`` are the kinds it may use: names of blueprints, or blueprints as objects; by
    default all that the agency has. Its work is done by a :class:`~sagents_nb.hub.Hub`; elsewhere
    the tool says that there is none.

    >>> from sagents_nb.hub.sub_agents import Delegation
    >>> [tool.name for tool in Delegation(["writer"]).tools()]
    ['task', 'message_agent']
    """

    delegate: Delegate | None = None

    @kinds.checked(subagents=kinds.or_none(kinds.LIST))
    def __init__(self, subagents: Sequence[str | Mapping[str, Any]] | None = None) -> None:
        self.subagents: dict[str, Blueprint | None] | None = None
        if subagents is not None:
            self.subagents = {}
            for each in subagents:
                if isinstance(each, str):
                    self.subagents[each] = None
                elif isinstance(each, Mapping):
                    blueprint = blueprint_of(each)
                    self.subagents[blueprint.name] = blueprint
                else:
                    raise ConfigurationError(
                        f"A sub-agent is a blueprint or the name of one, not {kinds.shown(each)}."
                    )

    def system_prompt(self) -> str:
        """When to use one."""
        return _PROMPT

    def tools(self) -> list[Tool]:
        """The tools ``task`` and ``message_agent``."""
        return self._tools

    @functools.cached_property
    def _tools(self) -> list[Tool]:
        # Running one again after a crash finds what it had begun.
        return [
            Tool(self._task, name="task", idempotent=True),
            Tool(self._message, name="message_agent", idempotent=True),
        ]

    def _task(
        self,
        ctx: ToolContext,
        description: Annotated[str, Meta(description="All that it needs to know, and what to do.")],
        subagentType: Annotated[str, Meta(description="Of which kind it is to be.")],  # noqa: N803
        timeoutMs: Annotated[  # noqa: N803
            int | None, Meta(ge=1, description="Milliseconds after which it is given up.")
        ] = None,
    ) -> Interrupt | ToolOutput:
        """Have a sub-agent of a kind do some work, and give its report."""
        known = self.subagents
        if known is not None and subagentType not in known:
            names = ", ".join(known) or "none"
            return _refused(f"There is no sub-agent {subagentType!r:.110}; there is {names}.")
        blueprint = known.get(subagentType) if known is not None else None
        return self._waits(ctx, description, timeoutMs, type=subagentType, blueprint=blueprint)

    def _message(
        self,
        ctx: ToolContext,
        agentId: Annotated[  # noqa: N803
            str,
            Meta(description='Its id, or its number in the order you began them: "1", "2", …'),
        ],
        message: Annotated[str, Meta(description="What to say.")],
        timeoutMs: Annotated[  # noqa: N803
            int | None, Meta(ge=1, description="Milliseconds after which it is given up.")
        ] = None,
    ) -> Interrupt | ToolOutput:
        """Say more to a sub-agent that has worked for you, and give its report."""
        return self._waits(ctx, message, timeoutMs, child=agentId)

    def _waits(
        self, ctx: ToolContext, description: str, milliseconds: int | None, **who: Any
    ) -> Interrupt | ToolOutput:
        if self.delegate is None:
            return _refused("No hub is here, so there are no sub-agents.")
        if not description.strip():  # it could not even begin
            return _refused("Nothing is said there; say what it is to do.")
        place = f"{ctx.session_id} {len(ctx.state.messages)} {ctx.tool_call_id}"
        task = Task(
            id=hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:32],
            tool_call_id=ctx.tool_call_id,
            description=description,
            **who,
        )
        try:
            child_id, token = self.delegate(task)
        except SagentsError as error:
            return _refused(str(error))
        deadline = None if milliseconds is None else time.time() + milliseconds / 1_000
        link = {"childThreadId": child_id, "token": token, "deadline": deadline}
        return Interrupt("tool", message="A sub-agent works on it.", data={SUB_AGENTS: link})


def _refused(why: str) -> ToolOutput:
    return ToolOutput(why, is_error=True)


def links_of(waiting: Interrupt | None) -> list[Link]:
    """The children that an interrupt waits for."""
    if waiting is None:
        return []
    found: list[Link] = []
    for part in waiting.parts or (waiting,):
        link = part.data.get(SUB_AGENTS)
        if not isinstance(link, dict):
            continue
        ids = set(part.tool_call_ids)
        for request in waiting.action_requests:
            if request.tool_call_id in ids:
                found.append(
                    Link(request, link["childThreadId"], link["token"], link.get("deadline"))
                )
    return found
