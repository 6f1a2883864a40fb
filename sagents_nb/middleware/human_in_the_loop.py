"""Ask people before certain tools run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from .. import kinds
from ..context import RunContext
from ..errors import ConfigurationError, InvalidDecision
from ..interrupts import ALL_DECISIONS, ActionRequest, Decision, Interrupt
from ..messages import ToolCall
from .base import Middleware

_DECISIONS = ("approve", "edit", "reject", "respond")
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
    "allowed_decisions" lists what is allowed. Raises
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

    @kinds.checked
    def __init__(self, interrupt_on: Mapping[str, Any]) -> None:
        self.interrupt_on = dict(interrupt_on)
        self.allowed: dict[str, tuple[str, ...]] = {}
        for name, value in interrupt_on.items():
            decisions = _allowed(name, value)
            if decisions:
                self.allowed[name] = decisions

    def check_decisions(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> None:
        """What these gates do not allow is refused, also where a call waited before they came."""
        for request in interrupt.action_requests:
            allowed = self.allowed.get(request.tool_name)
            decision = decisions.get(request.tool_call_id)
            if interrupt.type != "hitl" or allowed is None or decision is None:
                continue
            if decision.__struct_config__.tag not in allowed:
                raise InvalidDecision(
                    f"Calls of {request.tool_name} take {', '.join(allowed)} only by now, not "
                    f"{decision.__struct_config__.tag}.",
                    tool_call_id=request.tool_call_id,
                )

    def before_tool(self, call: ToolCall, ctx: RunContext) -> Interrupt | None:
        """An interrupt for a gated call, None for a free one."""
        decisions = self.allowed.get(call.name)
        if decisions is None or call.name in passing(ctx.local):
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
    else:
        local.get(PASSING, set()).difference_update(tool_names)


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
