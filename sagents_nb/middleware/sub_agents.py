"""Hand work to sub-agents: each in a conversation of its own, only its answer comes back."""

from __future__ import annotations

import asyncio
import copy
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from .. import kinds
from ..context import AgentProtocol, RunContext, ToolContext
from ..errors import ConfigurationError
from ..events import ToolExecutionUpdate
from ..interrupts import Decision, Interrupt
from ..messages import Message
from ..models.base import ChatModel
from ..models.resolve import resolve_model
from ..state import State
from ..text import logger_of
from ..tools import FunctionArguments, Tool, ToolOutput
from .base import Middleware, middleware_id
from .human_in_the_loop import HumanInTheLoop
from .sub_agent_config import (
    GENERAL,
    GENERAL_PURPOSE,
    LONGEST_PROMPT,
    CompiledSubAgent,
    SubAgent,
    bare,
    checked_messages,
    checked_subagents,
    compiled,
    configured,
    sub_agent_of,
)
from .sub_agent_runs import SubAgentRun, placeholder_of, team_of, waiting_for

logger = logger_of(__name__)

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

INSTRUCTIONS = "The whole task: what to do, what to know, and what to return."

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
        "instructions": INSTRUCTIONS,
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


async def _task(
    instructions: str, subagent_type: str, ctx: ToolContext, system_prompt: str | None = None
) -> Any:
    """What ``task`` takes."""


@functools.cache
def _task_arguments() -> FunctionArguments:
    """Of all agents; reading annotations takes longer than all else of making an agent."""
    return FunctionArguments("task", _task)


class SubAgents(Middleware):
    """Gives the model ``task``, which runs a sub-agent and returns its answer.

    ``subagents`` are agents with a name and a description, :class:`SubAgentConfig` and
    :class:`CompiledSubAgent` objects. There is always "general-purpose" as well: the parent's
    middleware with what it brings, but not the parent's own tools. ``block_middleware`` (classes
    or ids) is kept from that one; from none of the others. At most ``max_parallel`` work at once.
    ``max_depth`` is how deep sub-agents may have sub-agents; 1 is not at all, but for those that a
    compiled agent brings. ``include_task_list`` names them in the prompt too. ``model`` is for
    those that name none, in place of the parent's, and ``middleware`` is added to that of all but
    compiled ones.

    Tools and files that ask people first ask in the parent's name: its run is interrupted,
    and decisions go to the sub-agent that asked. While it waits it lives in this process only.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for what cannot work.

    >>> from sagents_nb import Agent, ScriptedModel, SubAgents, ToolCall
    >>> historian = Agent(ScriptedModel(["In 1048."]), name="historian", description="Knows dates.")
    >>> task = {"instructions": "When was Oslo founded?", "subagent_type": "historian"}
    >>> model = ScriptedModel([ToolCall("c1", "task", task), "It is old."])
    >>> agent = Agent(model, middleware=[SubAgents([historian])], defaults=False)
    >>> agent.run("How old is Oslo?").messages[2].tool_results[0].text
    'In 1048.'
    """

    @kinds.checked(max_parallel=kinds.whole(1))
    def __init__(
        self,
        subagents: Iterable[SubAgent | AgentProtocol] = (),
        block_middleware: Iterable[type[Middleware] | str] = (),
        max_parallel: int = 5,
        max_depth: int = 1,
        include_task_list: bool = False,
        model: str | ChatModel | None = None,
        middleware: Iterable[Middleware] = (),
    ) -> None:
        for option, value in (("max_parallel", max_parallel), ("max_depth", max_depth)):
            if not isinstance(value, int) or value < 1:
                raise ConfigurationError(
                    f"SubAgents: {option} must be a whole number from 1, not {value!r}."
                )
        self.subagents = checked_subagents(subagents)
        self.block_middleware = tuple(block_middleware)
        for item in self.block_middleware:
            if not isinstance(item, str | type):
                raise ConfigurationError(
                    f"SubAgents: block_middleware holds {item!r}; name a class or an id."
                )
        self.max_parallel = max_parallel
        self.max_depth = max_depth
        self.include_task_list = include_task_list
        self.model = None if model is None else resolve_model(model)
        self.middleware = tuple(middleware)
        self._looked_for: set[str] = set()
        self._slots: WeakKeyDictionary[RunContext, asyncio.Semaphore] = WeakKeyDictionary()

    @property
    def names(self) -> list[str]:
        """The types that ``task`` takes."""
        return [*self.subagents, GENERAL_PURPOSE]

    def check_agent(self, agent: Any) -> None:
        """Raise for a sub-agent that this agent cannot have; warn of a block without effect."""
        for name, config in self.subagents.items():
            try:
                self._agent(agent, name, agent.tool_context)
            except ConfigurationError as error:
                raise ConfigurationError(f"Sub-agent {config.name!r}: {error}") from None
        self._check_gates(agent)
        for item in self.block_middleware:
            name = item if isinstance(item, str) else item.__name__
            checked_before = name in self._looked_for
            self._looked_for.add(name)
            if not checked_before and not any(_is(item, other) for other in agent.middleware):
                logger.warning(
                    "block_middleware names %s, which this agent does not have; it has %s",
                    name,
                    ", ".join(map(middleware_id, agent.middleware)),
                )

    def _check_gates(self, agent: Any) -> None:
        """Raise where a blocked gate would leave its tools to a sub-agent, and nobody asked."""
        gates = [item for item in agent.middleware if isinstance(item, HumanInTheLoop)]
        for gate in filter(self._is_blocked, gates):
            left = self._agent(agent, GENERAL_PURPOSE, agent.tool_context).tools
            if names := ", ".join(tool.name for tool in left if tool.name in gate.allowed):
                raise ConfigurationError(
                    f"block_middleware keeps {middleware_id(gate)} from a sub-agent that has "
                    f"{names}, so nobody would be asked; block what brings that too, or open it "
                    "by interrupt_on."
                )

    def system_prompt(self) -> str:
        """When to delegate."""
        return f"{PROMPT}\n\n{self._task_list()}" if self.include_task_list else PROMPT

    def _task_list(self) -> str:
        lines = [f"- {name}: {config.description}" for name, config in self.subagents.items()]
        general = f"- {GENERAL_PURPOSE}: for anything else; it has the tools for files and plans."
        return "\n".join([*lines, general])

    def tools(self) -> list[Tool]:
        """``task``, and ``task_instructions`` if a sub-agent has such instructions."""

        async def task(
            instructions: str,
            subagent_type: str,
            ctx: ToolContext,
            system_prompt: str | None = None,
        ) -> Any:
            return await self.start_subagent(ctx, instructions, subagent_type, system_prompt)

        def task_instructions(subagent_type: str) -> Any:
            """Read how to instruct a sub-agent, before its first task."""
            config = self.subagents.get(subagent_type)
            if config is None:
                return self._unknown(subagent_type)
            return config.use_instructions or f"Nothing special: {config.description}"

        tools = [
            Tool(
                task,
                description=DESCRIPTION + self._task_list(),
                schema=task_schema(self.names),
                arguments=_task_arguments(),
                display_text=self._display,
                timeout=math.inf,  # the sub-agent's own tools have theirs
            )
        ]
        if any(config.use_instructions for config in self.subagents.values()):
            tools.append(Tool(task_instructions, run_on="loop", idempotent=True))
        return tools

    def _display(self, arguments: Mapping[str, Any]) -> str:
        name = arguments.get("subagent_type")
        config = self.subagents.get(str(name))
        return (config.display_text if config else None) or f"Delegating to {name}"

    def _unknown(self, name: str) -> ToolOutput:
        return ToolOutput(
            f"There is no sub-agent {name!r}; there are {', '.join(self.names)}.", is_error=True
        )

    async def start_subagent(
        self,
        ctx: ToolContext,
        instructions: str,
        subagent_type: str = GENERAL_PURPOSE,
        system_prompt: str | None = None,
        messages: Sequence[Message] = (),
    ) -> ToolOutput | Interrupt:
        """Run a sub-agent from an async tool of your own, which returns what this returns.

        ``subagent_type`` is its name, ``instructions`` are its task, and ``system_prompt`` is for
        "general-purpose" alone. ``messages`` stand between the sub-agent's own initial messages and
        the instructions; raises :class:`~sagents_nb.errors.ConfigurationError` if they are no list
        of messages.
        """
        further = checked_messages("messages", messages)
        config = self.subagents.get(subagent_type)
        if config is None and subagent_type != GENERAL_PURPOSE:
            return self._unknown(subagent_type)
        if not isinstance(instructions, str) or not instructions.strip():
            return ToolOutput("instructions are empty; say what is to be done.", is_error=True)
        if system_prompt is not None and (config is None or system_prompt.strip()):
            problem = prompt_problem(system_prompt)
            if config is not None:
                problem = f"{subagent_type!r} has its own system_prompt; leave it out."
            if problem:
                return ToolOutput(problem, is_error=True)
        async with self._slots.setdefault(ctx.run, asyncio.Semaphore(self.max_parallel)):
            team = team_of(ctx.run.local)
            team.begin(ctx.state)
            work = self._new_run(ctx, team.count, subagent_type, system_prompt or GENERAL, further)
            task = [Message.user(instructions)]
            outcome = await work.start(ctx.run, ctx.tool_call_id, task, ctx.progress)
            return team.keep(work, outcome)

    def _new_run(
        self,
        ctx: ToolContext,
        number: int,
        kind: str,
        system_prompt: str,
        messages: Sequence[Message],
    ) -> SubAgentRun:
        id = f"{ctx.session_id}-sub-{number}"
        agent = self._agent(ctx.run.agent, kind, ctx.values, system_prompt, agent_id=id)
        config = self.subagents.get(kind)
        extract_result = None
        if isinstance(config, CompiledSubAgent):
            messages = [*config.initial_messages, *messages]
            extract_result = config.extract_result
        state = State(metadata=dict(ctx.state.metadata)).add_messages(messages)
        quiet = config is not None and config.suppress_debug_events
        return SubAgentRun(agent, kind, state, extract_result=extract_result, quiet=quiet)

    def _agent(
        self,
        parent: AgentProtocol,
        kind: str,
        values: Mapping[str, Any],
        system_prompt: str = GENERAL,
        **changes: Any,
    ) -> AgentProtocol:
        """The agent of that type, working for ``parent``."""
        config = self.subagents.get(kind)
        if isinstance(config, CompiledSubAgent):
            own: list[Middleware] = []
            for item in config.agent.middleware:
                brought = isinstance(item, SubAgents) and item.subagents
                own += [item] if brought else self._deeper([item])
            return compiled(config, middleware=own, values=values, **changes)
        if self.model is not None:
            changes["model"] = self.model
        if config is not None:
            own = self._deeper([*config.middleware, *self.middleware])
            return configured(parent, config, middleware=own, **changes)
        inherited = [item for item in parent.middleware if not self._is_blocked(item)]
        own = self._deeper([*inherited, *self.middleware])
        return bare(parent, kind, system_prompt, middleware=own, **changes)

    def _is_blocked(self, item: Middleware) -> bool:
        from .ask_user import AskUser  # agents without it do without its import

        if isinstance(item, AskUser):  # nobody listens to a sub-agent
            return True
        return any(_is(blocked, item) for blocked in self.block_middleware)

    def _deeper(self, middleware: Iterable[Middleware]) -> list[Middleware]:
        """``middleware`` one level down: sub-agents of sub-agents end at ``max_depth``."""
        deeper: list[Middleware] = []
        for item in middleware:
            if isinstance(item, SubAgents):
                depth = min(item.max_depth, self.max_depth - 1)
                if depth < 1:
                    continue
                item = copy.copy(item)
                item.max_depth = depth
            deeper.append(item)
        return deeper

    def check_decisions(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> None:
        """What does not fit the sub-agent's tools is refused before anything changes."""
        work = waiting_for(interrupt) if interrupt.type == "subagent_hitl" else None
        if work is not None:
            work.check(decisions)

    async def handle_resume(
        self,
        interrupt: Interrupt,
        decisions: Mapping[str, Decision],
        state: State,
        ctx: RunContext,
    ) -> State | Interrupt | None:
        """Let the sub-agent that asked go on; the others' results stay as they are."""
        if interrupt.type != "subagent_hitl":
            return None
        call_id = str(interrupt.data.get("tool_call_id"))
        placeholder = placeholder_of(state, call_id)
        if placeholder is None:  # answered before somebody else's answer was refused
            return state
        team = team_of(ctx.local)
        work = team.waiting.get(str(interrupt.data.get("key")))
        if work is None:
            outcome: ToolOutput | Interrupt = ToolOutput(GONE, is_error=True)
        else:
            key = work.key
            outcome = await work.resume(ctx, call_id, decisions, _teller(ctx, call_id))
            del team.waiting[key]
            outcome = team.keep(work, outcome)
        if isinstance(outcome, Interrupt):
            if outcome.type == "halt":
                halted = replace(placeholder, content=HALTED, is_interrupt=False)
                ctx.state = state.replace_tool_result(call_id, halted)
            return outcome
        answer = replace(
            placeholder,
            content=outcome.content,
            is_error=outcome.is_error,
            is_interrupt=False,
            metadata={**placeholder.metadata, **outcome.metadata},
        )
        return state.replace_tool_result(call_id, answer)


def tool_of(agent: AgentProtocol, name: str | None, description: str | None) -> Tool:
    """See :meth:`Agent.as_tool <sagents_nb.agent.Agent.as_tool>`."""
    config = sub_agent_of(agent, name, description)
    delegation = SubAgents([config])

    async def delegate(instructions: Annotated[str, INSTRUCTIONS], ctx: ToolContext) -> Any:
        return await delegation.start_subagent(ctx, instructions, config.name)

    return Tool(
        delegate,
        name=_NO_NAME.sub("_", config.name)[:64],
        description=config.description,
        display_text=f"Delegating to {config.name}",
        timeout=math.inf,
    )


_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")


def _teller(ctx: RunContext, call_id: str) -> Callable[[str], None]:
    return lambda text: ctx.publish(ToolExecutionUpdate, tool_call_id=call_id, text=text)


def _is(wanted: type | str, item: Middleware) -> bool:
    return middleware_id(item) == wanted if isinstance(wanted, str) else isinstance(item, wanted)
