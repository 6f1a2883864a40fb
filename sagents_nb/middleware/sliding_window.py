"""Show the model the latest turns alone, however long the conversation is."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from .. import kinds
from ..context import RunContext
from ..frozenlist import FrozenList
from ..messages import Message
from ..models.base import ModelRequest
from .base import Middleware, middleware_id
from .turns import Turns, turns_of, without_thinking


class SlidingWindow(Middleware):
    """Shows the model the last ``turns`` before the present one; all are kept.

    A turn is what a user said with all that came of it, so no result loses its call. Instructions
    and a summary at the beginning are always shown. What is cut off changes the beginning of the
    request, for which caches of providers have to be written anew: with ``slack`` up to so many
    further turns are shown, and it is cut once in ``slack + 1`` turns. Earlier turns that are shown
    after a cut lose their thinking, which providers refuse after another beginning. It takes no
    longer in a long conversation. Raises :class:`~sagents_nb.errors.ConfigurationError` for numbers
    below 0.

    >>> from sagents_nb import Agent, ScriptedModel, SlidingWindow
    >>> model = ScriptedModel(["One.", "Two.", "Three."])
    >>> agent = Agent(model, middleware=[SlidingWindow(turns=1)], defaults=False)
    >>> result = None
    >>> for prompt in ("first", "second", "third"):
    ...     result = agent.run(prompt, state=result)
    >>> [message.text for message in model.requests[-1].messages]
    ['second', 'Two.', 'third']
    >>> len(result.state.messages)
    6
    """

    @kinds.checked(turns=kinds.whole(0), slack=kinds.whole(0))
    def __init__(self, turns: int = 10, slack: int = 0) -> None:
        self.turns = turns
        self.slack = slack

    def before_model_request(self, request: ModelRequest, ctx: RunContext) -> ModelRequest | None:
        """The request with the latest turns alone; None while there are no more."""
        messages = request.messages
        local = ctx.local if messages is ctx.state.messages else {}
        turns = turns_of(messages, local)
        first = self._first(turns)
        if not first:
            return None
        key = middleware_id(self)
        before: _Shown | None = local.get(key)
        if before is None or not before.fits(messages, turns, first):
            before = local[key] = _Shown(messages, turns, first)
        return replace(request, messages=[*before.messages, *messages[turns.starts[-1] :]])

    def _first(self, turns: Turns) -> int:
        """Which turn is the first that is shown, from 0."""
        more = len(turns.starts) - 1 - self.turns
        return more - more % (self.slack + 1) if more > 0 else 0


class _Shown:
    """What is shown before the present turn: the same objects as long as that lasts."""

    def __init__(self, messages: Sequence[Message], turns: Turns, first: int) -> None:
        starts = turns.starts
        self._of = messages
        self._known = len(starts), first
        earlier = map(without_thinking, messages[starts[first] : starts[-1]])
        self.messages = [*messages[: turns.head], *earlier]

    def fits(self, messages: Sequence[Message], turns: Turns, first: int) -> bool:
        """Whether it is the beginning of these, too."""
        return (
            isinstance(self._of, FrozenList)
            and isinstance(messages, FrozenList)
            and messages.continues(self._of)
            and self._known == (len(turns.starts), first)
        )
