"""Ask people before certain tools run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from .. import kinds
from ..context import RunContext
from ..errors import ConfigurationError, InvalidDecision
from ..interrupts import ALL_DECISIONS, ActionRequest, Decision, Interrupt
from ..messages import ToolCall
from .base import Middleware

_DECISIONS = ("approve", "edit", "reject", "respond")
UNSAID = object()
"""What an ``interrupt_on`` says of a tool that neither a name nor a glob in it is about."""

# In ``ctx.local``, never in the state: no copy of a conversation takes its approvals along.
PASSING = "HumanInTheLoop.always"


class Gates(dict[str, Any]):
    """An ``interrupt_on`` as it was given: the copies of an agent share it until one gets another.

    So it is known when people are to be asked anew.
    """


class HumanInTheLoop(Middleware):
    """Holds calls of the tools named in ``interrupt_on`` until people decide.

    An agent has one for its ``interrupt_on``, and for tools that need approval.

    A value is True for approve, edit and reject; False for never; or a dict whose
    "allowed_decisions" lists what is allowed. A name may be a glob, as ``"mcp_*"``, also for tools
    that a run is given later: a name in full wins over it, else the first that fits. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for a decision that does not exist.

    >>> from sagents_nb import Agent, Approve, HumanInTheLoop, ScriptedModel, ToolCall
    >>> def book(city: str) -> str:
    ...     "Book a room."
    ...     return f"Booked in {city}."
    >>> gate = HumanInTheLoop({"book": {"allowed_decisions": ["approve", "reject"]}})
    >>> model = ScriptedModel([ToolCall("c1", "book", {"city": "Oslo"}), "It is booked."])
    >>> agent = Agent(model, tools=[book], middleware=[gate])
    >>> agent.resume(agent.run("Book a room."), Approve()).text
    'It is booked.'
    """

    globs: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """What is allowed, by those names that are globs; empty where nobody is asked."""

    @kinds.checked
    def __init__(self, interrupt_on: Mapping[str, Any]) -> None:
        self.interrupt_on = dict(interrupt_on)
        self.allowed: dict[str, tuple[str, ...]] = {}
        for name, value in interrupt_on.items():
            decisions = _allowed(name, value)
            if is_glob(name):
                self.globs = {**self.globs, name: decisions}
            elif decisions:
                self.allowed[name] = decisions

    def check_decisions(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> None:
        """What these gates do not allow is refused, also where a call waited before they came."""
        for request in interrupt.action_requests:
            allowed = decisions_on(self, request.tool_name)
            decision = decisions.get(request.tool_call_id)
            if interrupt.type != "hitl" or not allowed or decision is None:
                continue
            if decision.__struct_config__.tag not in allowed:
                raise InvalidDecision(
                    f"Calls of {request.tool_name} take {', '.join(allowed)} only by now, not "
                    f"{decision.__struct_config__.tag}.",
                    tool_call_id=request.tool_call_id,
                )

    def before_tool(self, call: ToolCall, ctx: RunContext) -> Interrupt | None:
        """An interrupt for a gated call, None for a free one."""
        decisions = decisions_on(self, call.name)
        if not decisions or call.name in passing(ctx.local):
            return None
        tool = ctx.tools.get(call.name)
        return Interrupt(
            type="hitl",
            action_requests=(
                ActionRequest(
                    tool_call_id=call.id,
                    tool_name=call.name,
                    arguments=call.arguments,
                    display_text=tool.display(call.arguments) if tool else None,
                    allowed_decisions=decisions,
                ),
            ),
        )


def decisions_on(gate: HumanInTheLoop, tool_name: str) -> tuple[str, ...]:
    """What people may decide on calls of that tool; nothing where they are not asked."""
    if not gate.globs or tool_name in gate.interrupt_on:
        return gate.allowed.get(tool_name, ())
    decisions = said_of(gate.globs, tool_name)
    return () if decisions is UNSAID else decisions


def is_glob(name: str) -> bool:
    """Whether it is meant for all tools whose names fit: no tool is called so.

    >>> is_glob("mcp_*"), is_glob("mcp_read")
    (True, False)
    """
    return not {"*", "?", "["}.isdisjoint(name)


def said_of(interrupt_on: Mapping[str, Any], tool_name: str) -> Any:
    """What an ``interrupt_on`` says of a tool, or UNSAID.

    >>> gates = {"mcp_*": True, "mcp_read": False}
    >>> said_of(gates, "mcp_read"), said_of(gates, "mcp_write"), said_of(gates, "ls") is UNSAID
    (False, True, True)
    """
    if tool_name in interrupt_on:
        return interrupt_on[tool_name]
    fits = (value for glob, value in interrupt_on.items() if fnmatchcase(tool_name, glob))
    return next(fits, UNSAID)


def let_pass(local: dict[str, Any], tool_name: str) -> None:
    """Ask no more about that tool in the conversation whose ``ctx.local`` this is."""
    local.setdefault(PASSING, set()).add(tool_name)


def passing(local: Mapping[str, Any]) -> Collection[str]:
    """The tools that are asked about no more in that conversation."""
    names: Collection[str] = local.get(PASSING, ())
    return names


def ask_again(local: dict[str, Any], tool_names: Iterable[str] | None = None) -> None:
    """Ask about these tools again, or about all: the conversation is another one, say."""
    if tool_names is None:
        local.pop(PASSING, None)
        return
    names, globs = local.get(PASSING, set()), list(tool_names)
    names -= {name for name in names if any(fnmatchcase(name, glob) for glob in globs)}


def _allowed(name: str, value: Any) -> tuple[str, ...]:
    if value is True:
        return ALL_DECISIONS
    if value is False or value is None or value == []:  # as Sagents has it
        return ()
    decisions: Any = value
    if isinstance(value, Mapping):
        if others := sorted(map(str, value.keys() - {"allowed_decisions"})):
            raise ConfigurationError(
                f"interrupt_on[{name!r}] has {', '.join(others)}; its one key is allowed_decisions."
            )
        decisions = value.get("allowed_decisions", ALL_DECISIONS)
    if not isinstance(decisions, list | tuple | set | frozenset) or not decisions:
        raise ConfigurationError(
            f"interrupt_on[{name!r}] is True, False, or a list of some of {', '.join(_DECISIONS)}; "
            f"not {decisions!r}, which nobody could answer."
        )
    unknown = [d for d in decisions if d not in _DECISIONS]
    if unknown:
        raise ConfigurationError(
            f"interrupt_on[{name!r}] allows {unknown}, which is none of {', '.join(_DECISIONS)}."
        )
    return tuple(d for d in _DECISIONS if d in decisions)
