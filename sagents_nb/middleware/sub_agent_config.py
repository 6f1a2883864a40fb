"""What sub-agents there are, checked when they are made, and what models are told about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from ..errors import ConfigurationError
from ..messages import Message
from ..models.base import ChatModel
from ..models.resolve import resolve_model
from ..tools import Tool, as_tool
from .base import Middleware

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


class SubAgentConfig(msgspec.Struct, frozen=True):
    """A sub-agent that is made anew for each task.

    ``model`` is the parent's unless given. ``middleware`` is all that it has besides its
    ``tools``: nothing is inherited, so list ``FileSystem()`` here if it is to read files.
    ``interrupt_on`` names tools that ask people first; they are asked in the parent.
    ``until_tool`` names the tool, or tools, whose result is the answer. ``display_text`` is what
    people read while it works. ``suppress_debug_events`` keeps its events to itself.
    ``use_instructions`` is a longer text on how to instruct it, which the parent's model can
    ask for. Raises :class:`~sagents_nb.errors.ConfigurationError` for what cannot work.
    """

    name: str
    description: str
    system_prompt: str
    tools: Sequence[Tool | Callable[..., Any]]
    model: str | ChatModel | None = None
    middleware: Sequence[Middleware] = ()
    interrupt_on: Mapping[str, Any] | None = None
    until_tool: str | Iterable[str] | None = None
    max_runs: int = 50
    display_text: str | None = None
    suppress_debug_events: bool = False
    use_instructions: str | None = None

    def __post_init__(self) -> None:
        _check_described(self.name, self.description)
        _check_text(f"Sub-agent {self.name!r}: system_prompt", self.system_prompt, LONGEST_PROMPT)
        tools = tuple(as_tool(tool) for tool in self.tools or ())
        if not tools:
            raise ConfigurationError(f"Sub-agent {self.name!r} has no tools; give it at least one.")
        force_setattr(self, "tools", tools)
        for item in self.middleware:
            if not isinstance(item, Middleware):
                raise ConfigurationError(
                    f"Sub-agent {self.name!r}: {item!r} is no middleware; pass an instance."
                )
        if self.model is not None:
            force_setattr(self, "model", resolve_model(self.model))
        wanted = [self.until_tool] if isinstance(self.until_tool, str) else self.until_tool or ()
        brought = [as_tool(t) for item in self.middleware for t in item.tools()]
        names = [tool.name for tool in (*tools, *brought)]
        force_setattr(self, "until_tool", tuple(wanted))
        for name in self.until_tool or ():
            if name not in names:
                raise ConfigurationError(
                    f"Sub-agent {self.name!r}: until_tool names {name!r}, but its tools are "
                    f"{', '.join(names)}."
                )


class CompiledSubAgent(msgspec.Struct, frozen=True):
    """A sub-agent that is an agent of its own.

    ``initial_messages`` stand before the instructions of each task. ``extract_result`` makes
    the answer from the final :class:`~sagents_nb.state.State`; sync (in a worker thread) or
    async. Raises :class:`~sagents_nb.errors.ConfigurationError` for what cannot work.
    """

    name: str
    description: str
    agent: Any
    initial_messages: Sequence[Message] = ()
    extract_result: Callable[[Any], Any] | None = None
    display_text: str | None = None
    suppress_debug_events: bool = False
    use_instructions: str | None = None

    def __post_init__(self) -> None:
        _check_described(self.name, self.description)
        # By its methods: Agent stands above middleware and cannot be imported here.
        if isinstance(self.agent, type) or not all(
            callable(getattr(self.agent, method, None)) for method in ("loop", "with_", "checked")
        ):
            raise ConfigurationError(
                f"Sub-agent {self.name!r}: agent must be an Agent, not {self.agent!r}."
            )
        where = f"Sub-agent {self.name!r}: initial_messages"
        force_setattr(self, "initial_messages", checked_messages(where, self.initial_messages))
        if self.extract_result is not None and not callable(self.extract_result):
            raise ConfigurationError(
                f"Sub-agent {self.name!r}: extract_result must be a function of the final State."
            )


SubAgent = SubAgentConfig | CompiledSubAgent


def checked_subagents(subagents: Iterable[Any]) -> dict[str, SubAgent]:
    """``subagents`` by name; raises ConfigurationError for a wrong type or a name used twice."""
    by_name: dict[str, SubAgent] = {}
    for item in subagents:
        if not isinstance(item, SubAgentConfig | CompiledSubAgent):
            raise ConfigurationError(
                f"subagents holds {item!r}; give SubAgentConfig or CompiledSubAgent objects."
            )
        if item.name in by_name:
            raise ConfigurationError(f"Two sub-agents are called {item.name!r}; rename one.")
        by_name[item.name] = item
    return by_name


def checked_messages(where: str, messages: Any) -> tuple[Message, ...]:
    """``messages`` as a tuple; raises ConfigurationError for anything but a list of them."""
    if not isinstance(messages, list | tuple):
        raise ConfigurationError(
            f"{where} must be a list of Message objects, not {type(messages).__name__}."
        )
    for message in messages:
        if not isinstance(message, Message):
            raise ConfigurationError(
                f"{where} holds {type(message).__name__}; use Message.user(…) and the like."
            )
    return tuple(messages)


def _check_described(name: Any, description: Any) -> None:
    _check_text("A sub-agent's name", name, 100)
    if name == GENERAL_PURPOSE:
        raise ConfigurationError(f"{name!r} is the sub-agent that is always there; use a new name.")
    _check_text(f"Sub-agent {name!r}: description", description, 500)


def _check_text(what: str, text: Any, longest: int) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError(f"{what} must be text and not empty, not {text!r}.")
    if len(text) > longest:
        raise ConfigurationError(
            f"{what} has {len(text):,} characters; at most {longest:,} are allowed."
        )
