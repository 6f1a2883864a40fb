"""What all agents of a hub are made of: tools and middleware by tags, and kinds of agents."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .. import kinds
from ..agent import Agent
from ..errors import ConfigurationError
from ..middleware.base import Middleware
from ..middleware.filesystem import FileSystem
from ..middleware.human_in_the_loop import is_glob
from ..middleware.patch_tool_calls import PatchToolCalls
from ..middleware.summarization import Summarization
from ..middleware.todo_list import TodoList
from ..models import default_model
from ..models.base import ChatModel
from ..text import logger_of
from ..tools import Tool, as_tool
from .blueprints import DEFAULT_TAG, Blueprint
from .sub_agents import Delegate, Delegation
from .variables import iterations
from .vocabulary import SUB_AGENTS

logger = logger_of(__name__)

MAX_ITERATIONS = 200
"""Model calls of one run, unless the variable of that name says otherwise; 0 is no limit."""

MOST_AT_ONCE = 25
"""Tools of one turn that run side by side."""

_HITL = "hitl"
_TAGS = kinds.either("a word or a list of words", kinds.of(str), kinds.LIST)
_MODEL = kinds.or_none(
    kinds.either("a model, or its name", kinds.of(str), kinds.having("", "stream"))
)


class _Registered(NamedTuple):
    make: Callable[..., Middleware]
    tags: frozenset[str]


class AgentSystem:
    """Tools, middleware and blueprints, from which a hub makes the agents of its threads.

    ``default_model`` is that of blueprints which name none: a name such as "openai:gpt-5", or a
    model. Without one it is what :class:`~sagents_nb.Agent` takes by default. Each method gives the
    system back.

    >>> import sagents_nb as sa
    >>> from sagents_nb.hub import AgentSystem, Blueprint
    >>> def weather(city: str) -> str:
    ...     "The weather of a city."
    ...     return f"Sun in {city}."
    >>> system = AgentSystem(sa.ScriptedModel(["Sun."])).defaults().add_tool(weather)
    >>> agent = system.add_agent(Blueprint("guide", "Answer briefly.")).agent("guide")
    >>> sorted(agent.tools_by_name)[-3:]
    ['weather', 'write_file', 'write_todos']
    """

    @kinds.checked(default_model=_MODEL)
    def __init__(self, default_model: str | ChatModel | None = None) -> None:
        self.default_model = default_model
        self.blueprints: dict[str, Blueprint] = {}
        self._tools: dict[str, tuple[Tool, frozenset[str]]] = {}
        self._middleware: dict[str, _Registered] = {}

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<AgentSystem: {', '.join(sorted(self.blueprints)) or 'no blueprints'}>"

    def defaults(self) -> AgentSystem:
        """With a to-do list, files and sub-agents: for "default", and each for a tag of its own.

        A file has to be read before it is edited; the to-do list is written whole.

        >>> from sagents_nb.hub import AgentSystem
        >>> sorted(AgentSystem().defaults().tags)
        ['default', 'filesystem', 'planning', 'subagents']
        """
        self.use(_todo_list, [DEFAULT_TAG, "planning"], key="planning")
        self.use(_filesystem, [DEFAULT_TAG, "filesystem"], key="filesystem")
        return self.use(Delegation, [DEFAULT_TAG, SUB_AGENTS], key=SUB_AGENTS)

    @kinds.checked(tool=kinds.ANYTHING, tags=_TAGS)
    def add_tool(
        self, tool: Tool | Callable[..., Any], tags: str | Iterable[str] = ()
    ) -> AgentSystem:
        """With ``tool``, a function or a :class:`~sagents_nb.Tool`, for blueprints of these tags.

        Without ``tags`` it has the tag "default". Of two of one name the last counts, and one that
        a middleware brings comes before both. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for what is no tool, or has no name.

        >>> from sagents_nb.hub import AgentSystem
        >>> def weather(city: str) -> str:
        ...     "The weather of a city."
        ...     return f"Sun in {city}."
        >>> AgentSystem().add_tool(weather, tags=["travel"]).tags
        {'travel'}
        """
        if not isinstance(tool, Tool) and getattr(tool, "__name__", "<lambda>") == "<lambda>":
            raise ConfigurationError("This tool has no name; give it one with @sa.tool(name=…).")
        made = as_tool(tool)
        self._tools[made.name] = (made, _words(tags))
        return self

    @kinds.checked(middleware=kinds.Kind("a class of middleware, or a function", callable))
    def use(
        self,
        middleware: Callable[..., Middleware],
        tags: str | Iterable[str] = (),
        key: str | None = None,
    ) -> AgentSystem:
        """With ``middleware`` for blueprints of these ``tags``, which are joined by its own.

        It is a class, or a function that makes one; ``config[key]`` of a blueprint are the
        arguments it is made with. ``key`` is the class's name by default.

        >>> import sagents_nb as sa
        >>> from sagents_nb.hub import AgentSystem, Blueprint
        >>> system = AgentSystem("demo").use(sa.AskUser, tags="people")
        >>> agent = system.add_agent(Blueprint("guide", "Ask.", tags=["people"])).agent("guide")
        >>> "ask_user" in agent.tools_by_name
        True
        """
        own = getattr(middleware, "tags", ())
        words = _words([*_listed(tags), *_listed(own)])
        named = key or str(getattr(middleware, "__name__", type(middleware).__name__))
        self._middleware[named] = _Registered(middleware, words)
        return self

    @kinds.checked
    def add_agent(self, blueprint: Blueprint) -> AgentSystem:
        """With a ``blueprint`` that all agencies have; of two of one name the last counts.

        >>> from sagents_nb.hub import AgentSystem, Blueprint
        >>> AgentSystem().add_agent(Blueprint("guide", "Answer briefly."))
        <AgentSystem: guide>
        """
        self.blueprints[blueprint.name] = blueprint
        return self

    @property
    def tags(self) -> set[str]:
        """Those that choose something here."""
        chosen = [tags for _, tags in (*self._tools.values(), *self._middleware.values())]
        return set().union(*chosen)

    @property
    def middleware(self) -> dict[str, list[str]]:
        """The tags of each middleware, by its key in ``config``."""
        return {key: sorted(each.tags) for key, each in self._middleware.items()}

    @property
    def tools(self) -> list[tuple[Tool, list[str]]]:
        """The tools that blueprints can have, with their tags."""
        return [(tool, sorted(tags)) for tool, tags in self._tools.values()]

    @kinds.checked(
        variables=kinds.of(Mapping[str, Any]),
        delegate=kinds.or_none(kinds.Kind("a function of a Task", callable)),
    )
    def agent(
        self,
        blueprint: Blueprint | str,
        variables: Mapping[str, Any] = {},
        delegate: Delegate | None = None,
    ) -> Agent:
        """The agent of a ``blueprint``, or of the one of that name in the code.

        ``variables`` are its ``tool_context``; ``MAX_ITERATIONS`` among them is the number of its
        model calls a run, 0 for no limit. ``delegate`` has sub-agents begin: a hub's own. A tag
        that chooses nothing is logged. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for a ``config`` or a model that cannot work,
        and for a name that is not there.

        >>> from sagents_nb.hub import AgentSystem, Blueprint
        >>> system = AgentSystem("demo").add_agent(Blueprint("guide", "Answer briefly."))
        >>> system.agent("guide").max_runs
        200
        """
        if isinstance(blueprint, str):
            if blueprint not in self.blueprints:
                known = ", ".join(sorted(self.blueprints)) or "none"
                raise ConfigurationError(
                    f"This system has no blueprint {blueprint!r:.110}; it has {known}."
                )
            blueprint = self.blueprints[blueprint]
        unknown = [tag for tag in blueprint.tags if tag not in self.tags and tag != DEFAULT_TAG]
        if unknown:
            logger.warning(
                "Blueprint %r has tags that choose nothing here: %s.",
                blueprint.name,
                ", ".join(unknown),
            )
        stack = self._stack(blueprint)
        for item in stack:
            if isinstance(item, Delegation):
                item.delegate = delegate
        brought = _brought(stack)
        chosen = [tool for tool in self._chosen(blueprint) if tool.name not in brought]
        return Agent(
            blueprint.model or self.default_model or default_model(),
            blueprint.prompt,
            chosen,
            [*stack, Summarization(), PatchToolCalls()],
            replace_default_middleware=True,
            interrupt_on=_gated(blueprint),
            name=blueprint.name,
            description=blueprint.description,
            tool_context=variables,
            max_runs=iterations(variables, MAX_ITERATIONS),
            max_parallel_tools=MOST_AT_ONCE,
            retry_blank=True,
        )

    @kinds.checked
    def check(self, blueprint: Blueprint) -> None:
        """Raise ConfigurationError where a ``blueprint`` says what nothing here can be made of.

        Nor may people be asked about a tool that it has not: nobody would be asked about the one
        that was meant. No model is looked for: its key may come later.

        >>> from sagents_nb.hub import AgentSystem, Blueprint
        >>> AgentSystem("demo").check(Blueprint("guide", "Answer.", config={"hitl": {"tools": 1}}))
        Traceback (most recent call last):
        sagents_nb.errors.ConfigurationError: The config "hitl" of blueprint 'guide' is ...
        """
        stack, chosen = self._stack(blueprint), self._chosen(blueprint)
        there = _brought(stack) | {tool.name for tool in chosen}
        for name in _gated(blueprint):
            if name not in there and not is_glob(name):
                raise ConfigurationError(
                    f'The config "hitl" of blueprint {blueprint.name!r} names {name!r:.110}, which '
                    "its tags do not give; name a tool that they give, or write a pattern such as "
                    "'mcp_*' for those that come later."
                )

    def _chosen(self, blueprint: Blueprint) -> list[Tool]:
        tags = set(blueprint.tags)
        return [tool for tool, its in self._tools.values() if its & tags]

    def _stack(self, blueprint: Blueprint) -> list[Middleware]:
        chosen = {
            key: registered.make
            for key, registered in self._middleware.items()
            if registered.tags & set(blueprint.tags)
        }
        unused = [key for key in blueprint.config if key not in (*chosen, _HITL)]
        if unused:
            logger.warning(
                "Blueprint %r configures what it does not use: %s.",
                blueprint.name,
                ", ".join(unused),
            )
        return [_made(blueprint, key, make) for key, make in chosen.items()]


def _listed(tags: str | Iterable[str]) -> list[str]:
    return [tags] if isinstance(tags, str) else list(tags)


def _words(tags: str | Iterable[str]) -> frozenset[str]:
    words = _listed(tags) or [DEFAULT_TAG]
    if not all(isinstance(tag, str) and tag.strip() for tag in words):
        raise ConfigurationError("Tags are words, such as ['travel'].")
    return frozenset(words)


def _made(blueprint: Blueprint, key: str, make: Callable[..., Middleware]) -> Middleware:
    given = blueprint.config.get(key, {})
    where = f"The config {key!r} of blueprint {blueprint.name!r}"
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ConfigurationError(f"{where} is an object of arguments, not {kinds.shown(given)}.")
    try:
        inspect.signature(make).bind(**given)
        made = make(**given)
    except (TypeError, ConfigurationError) as error:
        raise ConfigurationError(f"{where} does not fit: {str(error).rstrip('.')}.") from None
    if not isinstance(made, Middleware):
        raise ConfigurationError(
            f"{key!r} is to make a Middleware, and made a {type(made).__name__}."
        )
    return made


def _brought(stack: Iterable[Middleware]) -> set[str]:
    """The names of the tools that these bring."""
    return {as_tool(tool).name for item in stack for tool in item.tools()}


def _gated(blueprint: Blueprint) -> dict[str, bool]:
    # A word that is written wrong would have nobody asked.
    if wrong := next((key for key in blueprint.config if _HITL == key.casefold() != key), None):
        raise ConfigurationError(
            f'The config of blueprint {blueprint.name!r} has {wrong!r}; write it "hitl".'
        )
    given = blueprint.config.get(_HITL, {"tools": []})
    names = given["tools"] if isinstance(given, Mapping) and [*given] == ["tools"] else None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(
            f'The config "hitl" of blueprint {blueprint.name!r} is {{"tools": […]}}, with names.'
        )
    return dict.fromkeys(names, True)


def _todo_list(**options: Any) -> TodoList:
    return TodoList(**{"replace_only": True, "max_content": 2_000, "keep_done": True, **options})


def _filesystem(**options: Any) -> FileSystem:
    return FileSystem(**{"must_read_before_edit": True, **options}) if options else _files()


@functools.cache
def _files() -> FileSystem:
    """One for all agents without options: to make its tools takes longer than the rest of one."""
    return FileSystem(must_read_before_edit=True)
