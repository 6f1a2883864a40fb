"""What sub-agents an agent may have, checked when they are made, and the agents made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from .. import kinds
from ..context import AgentProtocol, joined_prompt
from ..errors import ConfigurationError
from ..messages import Message
from ..models.base import ChatModel
from ..models.resolve import resolve_model
from ..tools import Tool, as_tool
from .base import Middleware

GENERAL_PURPOSE = "general-purpose"

UNNAMED = "Agent"

LONGEST_PROMPT = 10_000  # characters

PREAMBLE = """\
You work as a sub-agent: another agent gave you this task, and no user is listening. Ask nothing \
back; decide for yourself and say what you assumed. End with one complete answer: it is all that \
the other agent gets to see."""

GENERAL = "You carry out tasks of several steps with the tools you have, carefully and completely."


class SubAgentConfig(msgspec.Struct, metaclass=kinds.Record, frozen=True):
    """A sub-agent that is made anew for each task.

    ``name`` is what the model calls it by, and ``description`` says what it is for.
    ``system_prompt``, ``max_runs`` and ``model`` are as for an :class:`~sagents_nb.Agent`; the
    model is the parent's unless given. ``middleware`` is all that it has besides its ``tools``:
    nothing is inherited, so list ``FileSystem()`` here if it is to read files. ``interrupt_on``
    names tools that ask people first; they are asked in the parent. ``until_tool`` names the tool,
    or tools, whose result is the answer. ``display_text`` is what people read while it works.
    ``suppress_debug_events`` keeps its events to itself. ``use_instructions`` is a longer text on
    how to instruct it, which the parent's model can ask for. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for what cannot work.

    >>> from sagents_nb import Agent, ScriptedModel, SubAgentConfig, ToolCall
    >>> def count(by: str) -> str:
    ...     "Count rows."
    ...     return "3"
    >>> helper = ScriptedModel([ToolCall("c2", "count", {"by": "city"}), "There are 3."])
    >>> counter = SubAgentConfig("counter", "Counts rows.", "You count.", [count], helper)
    >>> task = {"instructions": "Count the cities.", "subagent_type": "counter"}
    >>> model = ScriptedModel([ToolCall("c1", "task", task), "3 cities."])
    >>> agent = Agent(model, subagents=[counter])
    >>> agent.run("How many cities?").messages[2].tool_results[0].text
    'There are 3.'
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
        kinds.check_fields(
            self,
            name=kinds.ANYTHING,
            description=kinds.ANYTHING,
            system_prompt=kinds.ANYTHING,
            tools=kinds.or_none(kinds.LIST),
            middleware=kinds.LIST,
        )
        _check_described(self.name, self.description)
        _check_text(f"Sub-agent {self.name!r}: system_prompt", self.system_prompt, LONGEST_PROMPT)
        tools = tuple(as_tool(tool) for tool in self.tools or ())
        if not tools:
            raise ConfigurationError(f"Sub-agent {self.name!r} has no tools; give it at least one.")
        force_setattr(self, "tools", tools)
        for item in self.middleware:
            if not isinstance(item, Middleware):
                raise ConfigurationError(
                    f"Sub-agent {self.name!r}: {kinds.shown(item)} is no middleware; pass an "
                    "instance."
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


class CompiledSubAgent(msgspec.Struct, metaclass=kinds.Record, frozen=True):
    """A sub-agent that is an ``agent`` of its own.

    ``name`` is what the model calls it by, and ``description`` says what it is for.
    ``initial_messages`` stand before the instructions of each task. ``extract_result`` makes
    the answer from the final :class:`~sagents_nb.state.State`; sync (in a worker thread) or
    async. ``display_text``, ``suppress_debug_events`` and ``use_instructions`` are as for
    :class:`SubAgentConfig`. Raises :class:`~sagents_nb.errors.ConfigurationError` for what cannot
    work.

    >>> from sagents_nb import Agent, CompiledSubAgent, ScriptedModel, ToolCall
    >>> poet = Agent(ScriptedModel(["Roses are red."]))
    >>> writer = CompiledSubAgent("writer", "Writes poems.", poet)
    >>> task = {"instructions": "Write about roses.", "subagent_type": "writer"}
    >>> model = ScriptedModel([ToolCall("c1", "task", task), "Done."])
    >>> agent = Agent(model, subagents=[writer])
    >>> agent.run("A poem, please.").messages[2].tool_results[0].text
    'Roses are red.'
    """

    name: str
    description: str
    agent: Any  # an AgentProtocol; people may pass what type checkers cannot see to be one
    initial_messages: Sequence[Message] = ()
    extract_result: Callable[[Any], Any] | None = None
    display_text: str | None = None
    suppress_debug_events: bool = False
    use_instructions: str | None = None

    def __post_init__(self) -> None:
        kinds.check_fields(
            self,
            name=kinds.ANYTHING,
            description=kinds.ANYTHING,
            initial_messages=kinds.ANYTHING,
            extract_result=kinds.ANYTHING,
        )
        _check_described(self.name, self.description)
        if isinstance(self.agent, type) or not isinstance(self.agent, AgentProtocol):
            raise ConfigurationError(
                f"Sub-agent {self.name!r}: agent must be an Agent, not {kinds.shown(self.agent)}."
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
    for given in subagents:
        item = given
        if isinstance(given, AgentProtocol) and not isinstance(given, type):
            item = sub_agent_of(given)
        if not isinstance(item, SubAgentConfig | CompiledSubAgent):
            raise ConfigurationError(
                f"subagents holds {kinds.shown(item)}; give agents, SubAgentConfig or "
                "CompiledSubAgent objects."
            )
        if item.name in by_name:
            raise ConfigurationError(f"Two sub-agents are called {item.name!r}; rename one.")
        by_name[item.name] = item
    return by_name


def sub_agent_of(
    agent: AgentProtocol, name: str | None = None, description: str | None = None
) -> CompiledSubAgent:
    """An agent under its own name and description, unless others are given.

    The first line of its system prompt stands for a description. Raises
    :class:`~sagents_nb.errors.ConfigurationError` where there is nothing to call it by.
    """
    name = name or agent.name
    if name == UNNAMED:
        raise ConfigurationError(
            "An agent that another one is to call needs a name; give it Agent(name=…)."
        )
    description = description or agent.description
    if not description and isinstance(agent.system_prompt, str):
        description = agent.system_prompt.strip().partition("\n")[0][:200]
    if not description:
        raise ConfigurationError(
            f"Nothing says what agent {name!r} is for; give it Agent(description=…)."
        )
    return CompiledSubAgent(name, description, agent)


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
        raise ConfigurationError(f"{what} must be text and not empty, not {kinds.shown(text)}.")
    if len(text) > longest:
        raise ConfigurationError(
            f"{what} has {len(text):,} characters; at most {longest:,} are allowed."
        )


# The agents


def bare(
    parent: AgentProtocol,
    name: str,
    system_prompt: str,
    *,
    middleware: Sequence[Middleware],
    **changes: Any,
) -> AgentProtocol:
    """An agent with the parent's model, options and tool_context, and else only what is given."""
    nothing: dict[str, Any] = {
        "tools": (),
        "interrupt_on": None,
        "until_tool": None,
        "until_tool_success": None,
        "output_type": None,
        "subagents": (),  # they are in the middleware
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
    parent: AgentProtocol,
    config: SubAgentConfig,
    *,
    middleware: Sequence[Middleware],
    **changes: Any,
) -> AgentProtocol:
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
) -> AgentProtocol:
    """The agent of ``config``, told that it is a sub-agent; its own tool_context wins."""
    agent: AgentProtocol = config.agent
    return agent.with_(
        system_prompt=joined_prompt(PREAMBLE, agent.system_prompt),
        middleware=middleware,
        replace_default_middleware=True,
        interrupt_on=None,  # the middleware that asks is among the others
        subagents=(),  # and so is that
        tool_context={**values, **agent.tool_context},
        **changes,
    )
