"""What models are told about sub-agents, and what they may tell them."""

from __future__ import annotations

import re
from typing import Any

GENERAL_PURPOSE = "general-purpose"

LONGEST_PROMPT = 10_000  # characters

PREAMBLE = """\
You work as a sub-agent: another agent gave you this task, and no user is listening. Ask nothing \
back; decide for yourself and say what you assumed. End with one complete answer: it is all that \
the other agent gets to see."""

GENERAL = "You carry out tasks of several steps with the tools you have, carefully and completely."

DESCRIPTION = """\
Delegate a task to a sub-agent. It works in a conversation of its own, sees nothing of this one, \
and returns only its final answer; files are shared. Several calls in one message run at the \
same time.

Sub-agents:
"""

PROMPT = """\
## Sub-agents

Use `task` for work that needs many steps, or much reading, of which only the outcome matters \
here, and for parts that can be done at the same time. Write down all that the sub-agent needs to \
know and what it should return. Do what takes a step or two yourself."""

GONE = (
    "The sub-agent is gone, for its process has ended, and its work is lost; start it again if "
    "it is still needed."
)

HALTED = "The run was halted here."

# What people try who want to talk a model out of its instructions. It stops the crude ones:
# what a sub-agent may do is decided by its tools and approvals, never by its prompt.
_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+|the\s+|your\s+|these\s+|of\s+)*"
    r"(?:previous|prior|above|earlier|system|safety|original)?\s*"
    r"(?:instructions?|prompts?|rules|guidelines|guardrails)\b"
    r"|\byou\s+are\s+now\s+(?:in\s+)?(?:dan\b|developer\s+mode|jailbroken|unrestricted)"
    r"|<\|im_(?:start|end)\|>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)


def prompt_problem(prompt: str) -> str | None:
    """Why a model may not give a sub-agent this system prompt; None if it may."""
    if not prompt.strip():
        return "system_prompt is empty; leave it out or say who the sub-agent is."
    if len(prompt) > LONGEST_PROMPT:
        return f"system_prompt has {len(prompt):,} characters; at most {LONGEST_PROMPT:,} are read."
    if _INJECTION.search(prompt):
        return "system_prompt tries to undo instructions; describe the sub-agent's role instead."
    return None


def task_schema(names: list[str]) -> dict[str, Any]:
    """The arguments of ``task``, with the types that there are."""
    described = {
        "instructions": "The whole task: what to do, what to know, and what to return.",
        "subagent_type": "Who does it.",
        "system_prompt": f"Who the sub-agent is; for {GENERAL_PURPOSE} only, and seldom needed.",
    }
    properties: dict[str, Any] = {
        name: {"type": "string", "description": text} for name, text in described.items()
    }
    properties["subagent_type"]["enum"] = names
    return {
        "type": "object",
        "properties": properties,
        "required": ["instructions", "subagent_type"],
        "additionalProperties": False,
    }
