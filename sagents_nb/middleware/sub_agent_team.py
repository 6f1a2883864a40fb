"""What a conversation knows of its sub-agents, for as long as the process lives."""

from __future__ import annotations

from typing import Any

from ..interrupts import Interrupt
from ..messages import ToolResult
from ..state import State
from ..tools import ToolOutput
from .sub_agent_runs import SubAgentRun

# The key in ``ctx.local``: never in the state, which may be stored.
_LOCAL = "sub_agents"


class Team:
    """How many sub-agents there were, and who of them waits for people."""

    def __init__(self) -> None:
        self.count = 0
        self.waiting: dict[str, SubAgentRun] = {}
        self.turn: Any = None

    def begin(self, state: State) -> None:
        """One more; all calls of a turn see the same messages.

        Who still waits when another turn begins was given up.
        """
        self.count += 1
        if state.messages is not self.turn:
            self.turn = state.messages
            self.waiting.clear()

    def keep(self, work: SubAgentRun, outcome: ToolOutput | Interrupt) -> ToolOutput | Interrupt:
        """``outcome``; while it is a question, ``work`` is kept for the answer."""
        if isinstance(outcome, Interrupt) and outcome.type == "subagent_hitl":
            self.waiting[work.key] = work
        return outcome


def team_of(local: dict[str, Any]) -> Team:
    """The team that a conversation's ``ctx.local`` holds, made on first use."""
    team: Team = local.setdefault(_LOCAL, Team())
    return team


def placeholder_of(state: State, call_id: str) -> ToolResult | None:
    """What stands for the answer of that call while it waits; None if it is answered."""
    for message in reversed(state.messages[-2:]):  # a halt may have been said after it
        for result in message.tool_results:
            if result.tool_call_id == call_id and result.is_interrupt:
                return result
    return None
