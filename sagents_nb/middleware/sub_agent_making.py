"""From an agent and a description to the agent that does the work of a sub-agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .base import Middleware
from .sub_agent_config import CompiledSubAgent, SubAgentConfig
from .sub_agent_prompts import PREAMBLE


def bare(
    parent: Any, name: str, system_prompt: str, *, middleware: Sequence[Middleware], **changes: Any
) -> Any:
    """An agent with the parent's model, options and tool_context, and else only what is given."""
    nothing: dict[str, Any] = {
        "tools": (),
        "interrupt_on": None,
        "until_tool": None,
        "until_tool_success": None,
        "budget": None,  # the parent's meter counts for both
    }
    if "model" in changes:  # what may stand in for the parent's model is no match for this one
        nothing["fallback_models"] = ()
    return parent.with_(
        **{
            **nothing,
            "name": name,
            "system_prompt": f"{PREAMBLE}\n\n{system_prompt}",
            "middleware": middleware,
            "replace_default_middleware": True,
            **changes,
        }
    )


def configured(
    parent: Any, config: SubAgentConfig, *, middleware: Sequence[Middleware], **changes: Any
) -> Any:
    """The agent that ``config`` describes, working for ``parent``."""
    if config.model is not None:
        changes["model"] = config.model
    return bare(
        parent,
        config.name,
        config.system_prompt,
        tools=config.tools,
        middleware=middleware,
        interrupt_on=config.interrupt_on,
        until_tool=config.until_tool,
        max_runs=config.max_runs,
        **changes,
    )


def compiled(
    config: CompiledSubAgent,
    *,
    middleware: Sequence[Middleware],
    values: Mapping[str, Any],
    **changes: Any,
) -> Any:
    """The agent of ``config``, told that it is a sub-agent; its own tool_context wins."""
    agent = config.agent
    return agent.with_(
        system_prompt=f"{PREAMBLE}\n\n{agent.system_prompt}".strip(),
        middleware=middleware,
        replace_default_middleware=True,
        interrupt_on=None,  # the middleware that asks is among the others
        tool_context={**values, **agent.tool_context},
        **changes,
    )
