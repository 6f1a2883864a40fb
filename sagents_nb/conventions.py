"""What a span or a metric of a run says, by the GenAI conventions: names, and plain values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from .messages import Usage
from .serialization import to_data

_PROVIDERS = {"AnthropicModel": "anthropic", "OpenAIModel": "openai", "OpenAIChatModel": "openai"}

# What a run says itself, which ``otel_attributes`` cannot.
DERIVED = frozenset(
    {
        "error.type",
        "gen_ai.agent.id",
        "gen_ai.agent.name",
        "gen_ai.conversation.id",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.model",
        "gen_ai.tool.call.id",
        "gen_ai.tool.name",
        "gen_ai.tool.type",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "sagents.hook",
        "sagents.interrupt.type",
        "sagents.middleware",
        "sagents.outcome",
        "sagents.run.id",
        "sagents.run.status",
        "sagents.task",
    }
)


def plain_attributes(given: Mapping[str, Any]) -> dict[str, Any]:
    """``otel_attributes`` as a span takes them.

    Numbers and truth values stay, other values become JSON, None and what a run says itself is
    left out.

    >>> plain_attributes({"tenant": 7, "who": {"id": 3}, "none": None, "error.type": "mine"})
    {'tenant': 7, 'who': '{"id": 3}'}
    """
    return {
        str(key): _plain(value)
        for key, value in given.items()
        if value is not None and key not in DERIVED
    }


def _plain(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)  # more than the protocol can carry
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(to_data(value), ensure_ascii=False)
    return text.encode(errors="replace").decode()


def operation(name: str, model: Any) -> dict[str, Any]:
    """What is done, and with which model."""
    about: dict[str, Any] = {"gen_ai.operation.name": name}
    if model is not None:
        about["gen_ai.request.model"] = str(getattr(model, "name", ""))
        about["gen_ai.provider.name"] = _provider(model)
    return about


def _provider(model: Any) -> str:
    """Whose model it is, behind those that only ask it."""
    while (inner := getattr(model, "inner", None) or next(iter(_models(model)), None)) is not None:
        model = inner
    kind = type(model).__name__
    return _PROVIDERS.get(kind, kind.removesuffix("Model").lower() or "unknown")


def _models(model: Any) -> Any:
    return getattr(model, "models", ())


def usage_attributes(usage: Usage) -> dict[str, int]:
    """The tokens of one or more model calls."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens + cached,  # there they are all of them
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


def error_type(error: BaseException | None) -> str:
    """What went wrong, in one word: never the error's text."""
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return str(getattr(error, "kind", "") or type(error).__name__)
