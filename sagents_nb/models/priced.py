"""A model whose answers say what they cost, by prices that somebody gives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from msgspec.structs import replace

from .. import kinds
from ..messages import Message, Usage, told_usage
from .base import ChatModel, ModelAround, ModelRequest, StreamItem, stream_of
from .resolve import resolve_model

_PRICE = kinds.number(0, "dollars", finite=True)
_PRICE_OR_INPUTS = kinds.or_none(_PRICE, "for that of the input")


class Priced(ModelAround):
    """``model``, whose answers say what they cost: ``Usage.cost_usd``, in US dollars.

    ``input``, ``output``, ``cache_read`` and ``cache_write`` are dollars per million tokens.
    ``input`` is the price of what was neither read from the provider's cache nor written to it;
    without a price of their own, those tokens cost as much. Thoughts are output, as providers
    count them. An answer that says itself what it cost keeps that, and one that says nothing of
    its tokens has no cost. ``inner`` is the model.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a price that is no number from 0.

    >>> from sagents_nb import Agent, Message, ScriptedModel, Usage
    >>> answer = Message.assistant("Hello!", usage=Usage(1_000_000, 200_000))
    >>> model = Priced(ScriptedModel([answer]), input=1.25, output=10.0)
    >>> Agent(model).run("hi").usage.cost_usd
    3.25
    """

    tells_cost = True

    @kinds.checked(
        input=_PRICE, output=_PRICE, cache_read=_PRICE_OR_INPUTS, cache_write=_PRICE_OR_INPUTS
    )
    def __init__(
        self,
        model: ChatModel | str,
        *,
        input: float,
        output: float,
        cache_read: float | None = None,
        cache_write: float | None = None,
    ) -> None:
        super().__init__(resolve_model(model))
        self.asks_again = self.inner.asks_again
        self.retries = self.inner.retries
        self.input = input
        self.output = output
        self.cache_read = input if cache_read is None else cache_read
        self.cache_write = input if cache_write is None else cache_write

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Stream the answer, whose message says what it cost."""
        async with aclosing(stream_of(self.asked, request)) as stream:
            async for item in stream:
                if isinstance(item, Message) and item.usage is not None:
                    usage = told_usage(item.usage, self.name)
                    item = replace(item, usage=usage and self._with_cost(usage))
                yield item

    def _with_cost(self, usage: Usage) -> Usage:
        # No answer is of no tokens: a server that counts none is not one that costs nothing.
        if usage.cost_usd is not None or not usage.total_tokens:
            return usage
        millionths = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_write_tokens * self.cache_write
        )
        return replace(usage, cost_usd=millionths / 1_000_000)
