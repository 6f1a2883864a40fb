"""The agent: immutable configuration."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .budget import Budget, Meter
from .context import RunContext
from .errors import ConfigurationError
from .events import Emitter
from .interrupts import Decision, Decisions, Interrupt
from .loop.approvals import checked_decisions
from .loop.config import LoopConfig
from .loop.execution import observed
from .loop.loop import Loop
from .middleware.base import Middleware
from .middleware.chain import Chain
from .models.base import ChatModel
from .runnable import Runnable
from .runtime.thread import runtime
from .state import State
from .tools import Tool, as_tool


class Agent(Runnable):
    """What an agent can do. Frozen and shareable; it holds no conversation.

    ``model`` is a spec such as "anthropic:claude-sonnet-4-5", a ChatModel, or None for the
    default model. ``interrupt_on`` names the tools that ask people first. ``max_runs`` bounds
    the model calls of one run. ``otel_attributes`` go to every span of its runs, also those of
    sub-agents, where OpenTelemetry is configured. See the README for the whole list.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> Agent(ScriptedModel(["Hello!"])).run("hi").text
    'Hello!'
    """

    def __init__(
        self,
        model: str | ChatModel | None = None,
        system_prompt: str = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        middleware: Sequence[Middleware] = (),
        *,
        replace_default_middleware: bool = False,
        interrupt_on: Mapping[str, Any] | None = None,
        fallback_models: Sequence[str | ChatModel] = (),
        before_fallback: Callable[..., Any] | None = None,
        filesystem_scope: Any = None,
        tool_context: Mapping[str, Any] | None = None,
        max_runs: int = 50,
        until_tool: str | Iterable[str] | None = None,
        until_tool_success: str | Iterable[str] | None = None,
        name: str | None = None,
        agent_id: str | None = None,
        max_parallel_tools: int = 5,
        budget: Budget | None = None,
        options: Mapping[str, Any] | None = None,
        otel_attributes: Mapping[str, Any] | None = None,
        todo_options: Mapping[str, Any] | None = None,
        filesystem_options: Mapping[str, Any] | None = None,
        subagent_options: Mapping[str, Any] | None = None,
        summarization_options: Mapping[str, Any] | None = None,
    ) -> None:
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        put = super().__setattr__
        # Loaded with the first agent: importing the package stays light.
        from .middleware.defaults import default_middleware, human_in_the_loop
        from .models import default_model, resilient, resolve_model

        config["model"] = default_model() if model is None else resolve_model(model)
        put("_config", config)  # with the model itself: copies share its connections
        put("model", config["model"])
        put("system_prompt", system_prompt)
        put("_asked", resilient(self.model, fallback_models, before_fallback))
        put("name", name or "Agent")
        put("agent_id", agent_id or f"agent-{uuid.uuid4().hex[:12]}")
        if filesystem_scope is not None:
            from .files.paths import check_scope

            check_scope(filesystem_scope)
        put("filesystem_scope", filesystem_scope)
        put("tool_context", dict(tool_context or {}))
        put("options", dict(options or {}))
        if not isinstance(otel_attributes or {}, Mapping):
            raise ConfigurationError(
                f"otel_attributes is a dict of what every span has, not {otel_attributes!r}."
            )
        put("otel_attributes", dict(otel_attributes or {}))
        if not isinstance(max_runs, int) or max_runs < 1:
            raise ConfigurationError(f"max_runs must be a whole number from 1, not {max_runs!r}.")
        put("max_runs", max_runs)
        if not isinstance(max_parallel_tools, int) or max_parallel_tools < 1:
            raise ConfigurationError(
                f"max_parallel_tools must be a whole number from 1, not {max_parallel_tools!r}."
            )
        put("max_parallel_tools", max_parallel_tools)
        put("budget", budget)

        stack: list[Middleware] = []
        if not replace_default_middleware:
            stack = default_middleware(
                todo_options, filesystem_options, subagent_options, summarization_options
            )
        stack += middleware
        if interrupt_on:
            stack.append(human_in_the_loop(interrupt_on))
        put("_chain", Chain(stack))
        put("middleware", self._chain.middleware)

        by_name: dict[str, Tool] = {}
        for tool in [*map(as_tool, tools), *self._chain.tools()]:
            if tool.name in by_name:
                raise ConfigurationError(
                    f"Two tools are called {tool.name!r}; rename one with @tool(name=…)."
                )
            by_name[tool.name] = tool
        put("_tools", by_name)
        gated = [n for n, v in (interrupt_on or {}).items() if v or isinstance(v, Mapping)]
        self._check_names("interrupt_on", gated)
        put("until_tool", self._names("until_tool", until_tool))
        put("until_tool_success", self._names("until_tool_success", until_tool_success))
        if self.until_tool and self.until_tool_success:
            raise ConfigurationError(
                "until_tool and until_tool_success exclude each other; give one of them."
            )
        prompts = [system_prompt, *self._chain.prompts()]
        put("assembled_system_prompt", "\n\n".join(text for text in prompts if text))
        for item in stack:
            item.check_agent(self)

    model: ChatModel
    system_prompt: str
    name: str
    agent_id: str
    filesystem_scope: Any
    tool_context: dict[str, Any]
    options: dict[str, Any]
    otel_attributes: dict[str, Any]
    max_runs: int
    max_parallel_tools: int
    budget: Budget | None
    middleware: tuple[Middleware, ...]
    until_tool: frozenset[str]
    until_tool_success: frozenset[str]
    assembled_system_prompt: str
    _config: dict[str, Any]
    _chain: Chain
    _asked: ChatModel
    _tools: dict[str, Tool]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"An Agent cannot be changed; use agent.with_({name}=…) for a copy.")

    def __repr__(self) -> str:
        return f"<Agent {self.name!r}: {self.model!r}, {len(self._tools)} tools>"

    @property
    def tools(self) -> list[Tool]:
        """Its own tools, then those of its middleware."""
        return list(self._tools.values())

    def with_(self, **changes: Any) -> Agent:
        """A changed copy; takes the arguments of :class:`Agent`."""
        unknown = sorted(set(changes) - set(self._config))
        if unknown:
            raise ConfigurationError(f"An Agent has no {', '.join(unknown)}; see help(Agent).")
        return Agent(**{**self._config, "agent_id": self.agent_id, **changes})

    def checked(self, interrupt: Interrupt, given: Decisions) -> dict[str, Decision]:
        """``given`` by call id; raises InvalidDecision if it does not answer ``interrupt``."""
        return checked_decisions(interrupt, given, self._tools, self._chain)

    def _names(self, option: str, value: str | Iterable[str] | None) -> frozenset[str]:
        names = [value] if isinstance(value, str) else list(value or ())
        self._check_names(option, names)
        return frozenset(names)

    def _check_names(self, option: str, names: Iterable[str]) -> None:
        missing = [name for name in names if name not in self._tools]
        if missing:
            raise ConfigurationError(
                f"{option} names {', '.join(missing)}, but the tools are "
                f"{', '.join(self._tools) or 'none'}."
            )

    def loop(
        self,
        state: State,
        emitter: Emitter,
        *,
        files: Any = None,
        scope: Any = None,
        local: dict[str, Any] | None = None,
        meter: Meter | None = None,
        notify: Callable[[str, Any], None] | None = None,
        **config: Any,
    ) -> Loop:
        """The turn loop of one run of this agent, to be run on the runtime loop.

        ``config`` holds further fields of :class:`~sagents_nb.loop.config.LoopConfig`; None
        leaves the default.
        """
        if files is None:
            from .files import open_filesystem

            files = open_filesystem(self.filesystem_scope or ("agent", self.agent_id))
        ctx = RunContext(
            emitter=emitter,
            agent=self,
            scope=scope,
            values=self.tool_context,
            files=files,
            tools=self._tools,
            local=local,
            meter=meter or Meter(self.budget),
            spawn=runtime.spawn,
        )
        observers = self._chain.hooks["on_event"]
        if observers:
            emitter.sink = observed(emitter.sink, [hook for _, hook in observers], ctx)
        loop = Loop(
            LoopConfig(
                model=self._asked,
                system=self.assembled_system_prompt,
                chain=self._chain,
                options=self.options,
                max_runs=self.max_runs,
                until_tool=self.until_tool or self.until_tool_success,
                until_success=bool(self.until_tool_success),
                max_parallel_tools=self.max_parallel_tools,
                **{name: value for name, value in config.items() if value is not None},
            ),
            ctx,
            state,
        )
        ctx.notify = notify or (lambda to, message: loop.mail.append((to, message)))
        return loop
