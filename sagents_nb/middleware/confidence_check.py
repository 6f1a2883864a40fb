"""Have the model look again where it is not sure of its answer."""

from __future__ import annotations

import re

from .. import kinds
from ..context import RunContext
from ..messages import Message
from ..state import State
from .base import Middleware

PROMPT = """\
## How sure you are

End your final answer with a line of its own that says how sure you are that it is right and \
whole, from 0 to 100: "Confidence: 85"."""

_AGAIN = (
    "You are {stated} of 100 sure of that answer. Use the tools you have to check what you are not "
    "sure of, or to find what is missing, and then answer again."
)
_STATED = re.compile(r"confidence[\s*_`:=]{1,9}(\d{1,3})(?:\.\d+)?\s{0,3}(?:%|/\s?100)?", re.I)
_ASKED = "confidence_check"
_LOOKED_AT = 200  # characters of the end of an answer


class ConfidenceCheck(Middleware):
    """Asks the model to use its tools where it says it is less than ``minimum`` of 100 sure.

    The model is told to say at the end of its answer how sure it is. An answer that says nothing of
    it is final, and so is any without a tool to use. It is asked again as long as it used tools in
    between, within ``max_runs``: what models say of themselves is a weak sign, so this is for
    agents whose tools can find out. Raises :class:`~sagents_nb.errors.ConfigurationError` for a
    ``minimum`` that is no number from 0 to 100.

    >>> from sagents_nb import Agent, ConfidenceCheck, ScriptedModel, ToolCall
    >>> def look_up(city: str) -> str:
    ...     "Look a city up."
    ...     return "1048"
    >>> turns = ["1050? Confidence: 40", ToolCall("c1", "look_up", {"city": "Oslo"})]
    >>> model = ScriptedModel([*turns, "In 1048. Confidence: 95"])
    >>> agent = Agent(model, tools=[look_up], middleware=[ConfidenceCheck(80)], defaults=False)
    >>> agent.run("When was Oslo founded?").text
    'In 1048. Confidence: 95'
    """

    @kinds.checked(
        minimum=kinds.Kind(
            "a number from 0 to 100", lambda value: kinds.number(0).fits(value) and value <= 100
        )
    )
    def __init__(self, minimum: float = 80) -> None:
        self.minimum = minimum

    def system_prompt(self) -> str:
        """How to say it."""
        return PROMPT

    def before_stop(self, state: State, ctx: RunContext) -> Message | None:
        """What to say to an answer that is not sure enough."""
        stated = stated_confidence(state.messages[-1].text)
        if not ctx.tools or stated is None or stated >= self.minimum:
            return None
        if _was_asked(state):
            return None
        return Message.user(_AGAIN.format(stated=stated), **{_ASKED: stated})


def stated_confidence(text: str) -> int | None:
    """How sure an answer says that it is, from 0 to 100; None where it does not.

    >>> stated_confidence("In 1048. **Confidence:** 95 %"), stated_confidence("In 1048.")
    (95, None)
    """
    found = [*_STATED.finditer(text[-_LOOKED_AT:])]
    return min(int(found[-1][1]), 100) if found else None


def _was_asked(state: State) -> bool:
    """Whether the last thing that somebody said was this very question."""
    for message in reversed(state.messages):
        if message.role == "tool":
            return False
        if message.role == "user":
            return _ASKED in message.metadata
    return False
