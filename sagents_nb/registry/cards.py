"""What is said of an agent to those who may want it to work for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from .. import kinds
from ..agent import Agent
from ..context import AgentProtocol
from ..errors import ConfigurationError
from ..middleware.sub_agent_config import UNNAMED

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_UNSPOKEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # to list such names breaks a terminal

LONGEST_NAME = 57
"""Of an agent's name, so that "agent__" and it are the name of a tool."""


class AgentCard(msgspec.Struct, metaclass=kinds.Record, frozen=True, kw_only=True):
    """Who an agent is: ``name`` and ``description``, what it is found by.

    ``capabilities`` are words that :meth:`AgentRegistry.route` goes by, ``tools`` the names of what
    it can do, ``avatar`` a picture for people, such as an emoji. One that is not ``delegable`` is
    found, but takes no tasks; one that ``accepts_context`` may be told what was said before.
    ``version`` is one of your own.

    >>> import sagents_nb as sa
    >>> agents = sa.AgentRegistry()
    >>> weather = sa.Agent(sa.ScriptedModel([]), name="weather", description="Forecasts.")
    >>> agents.add(weather, capabilities=["weather"]).description
    'Forecasts.'
    """

    name: str
    description: str = ""
    capabilities: tuple[str, ...] = ()
    avatar: str = ""
    tools: tuple[str, ...] = ()
    delegable: bool = True
    accepts_context: bool = False
    version: str = "1"

    def __post_init__(self) -> None:
        kinds.check_fields(self)

    @property
    def tool_name(self) -> str:
        """The name of the tool by which other agents call it."""
        return f"agent__{_NO_NAME.sub('_', self.name)}"

    @kinds.checked
    def to_a2a(self, url: str) -> dict[str, Any]:
        """The AgentCard of A2A 1.0, as JSON-ready data; ``url`` is where it can be asked.

        >>> import sagents_nb as sa
        >>> sa.AgentCard(name="weather").to_a2a("https://example.org/a2a")["name"]
        'weather'
        """
        tags = ["agent", *self.capabilities]
        skill = {"id": self.name, "name": self.name, "description": self.description, "tags": tags}
        tools = [
            {"id": f"{self.name}/{tool}", "name": tool, "tags": ["tool"]} for tool in self.tools
        ]
        icon = {"iconUrl": self.avatar} if "://" in self.avatar else {}
        said = {"description": self.description} if self.description else {}
        return {
            "name": self.name,
            **said,
            "supportedInterfaces": [
                {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            ],
            "version": self.version,
            "capabilities": {"streaming": True},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain", "application/json"],
            "skills": [{key: value for key, value in skill.items() if value}, *tools],
            **icon,
        }

    @classmethod
    @kinds.checked
    def from_a2a(cls, data: Mapping[str, Any]) -> AgentCard:
        """The card that A2A's JSON ``data`` says.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for what is none.

        >>> import sagents_nb as sa
        >>> card = sa.AgentCard(name="weather", capabilities=("weather",), tools=("tides",))
        >>> sa.AgentCard.from_a2a(card.to_a2a("https://example.org/a2a")) == card
        True
        """
        try:
            read = msgspec.convert(dict(data), _A2ACard)
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"This is no card of A2A: {error}.") from None
        tools = [skill for skill in read.skills if skill.tags == ["tool"]]
        others = [skill.tags for skill in read.skills if skill not in tools]
        tags = [tag for each in others for tag in each[each[:1] == ["agent"] :]]
        return checked_card(
            cls(
                name=read.name,
                description=read.description,
                capabilities=tuple(dict.fromkeys(tags)),
                avatar=read.iconUrl,
                tools=tuple(skill.name for skill in tools),
                version=read.version or "1",
            )
        )


class _A2ASkill(msgspec.Struct):
    name: str
    tags: list[str] = []


class _A2ACard(msgspec.Struct):
    name: str
    description: str = ""
    version: str = ""
    iconUrl: str = ""  # noqa: N815
    skills: list[_A2ASkill] = []


def card_of(agent: AgentProtocol, **said: Any) -> AgentCard:
    """The card of an agent; its own words stand where nothing is ``said``.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for one without a name.
    """
    if agent.name == UNNAMED:
        raise ConfigurationError(
            "An agent that others are to find needs a name; give it Agent(name=…)."
        )
    described = agent.description
    if not described and isinstance(agent.system_prompt, str):
        described = agent.system_prompt.strip().partition("\n")[0][:200]
    said["description"] = said.get("description") or described
    tools = tuple(tool.name for tool in agent.own_tools)
    return checked_card(AgentCard(name=agent.name, tools=tools, **said))


def checked_card(card: AgentCard) -> AgentCard:
    """``card``; raises ConfigurationError for a name that cannot be called."""
    if odd := _UNSPOKEN.search(card.name):
        raise ConfigurationError(
            f"The name of an agent has the character {odd[0]!a}, which cannot be shown; leave it "
            "out."
        )
    if not card.name.strip() or len(card.name) > LONGEST_NAME:
        raise ConfigurationError(
            f"The name of an agent that others call has 1 to {LONGEST_NAME} characters, not "
            f"{card.name!r:.80}."
        )
    return card


def words(given: Sequence[str] | str) -> tuple[str, ...]:
    """Capabilities as they are given; one may be a text."""
    return (given,) if isinstance(given, str) else tuple(given)


def is_agent(value: Any) -> bool:
    """Whether it is an agent, and no class."""
    return isinstance(value, Agent)
