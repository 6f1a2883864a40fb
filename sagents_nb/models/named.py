"""From a name to a model, and the model for those who name none."""

from __future__ import annotations

import logging
import os
from typing import Any

from ..errors import ConfigurationError
from .base import ChatModel

_log = logging.getLogger("sagents_nb.models")
_said: set[str] = set()

DEFAULT_ANTHROPIC = "claude-sonnet-5-5"
DEFAULT_OPENAI = "gpt-6.1-sol"

_FORMS = (
    "'anthropic:NAME', 'openai:NAME', 'openai-chat:NAME' (with base_url=… for a compatible "
    "server), 'demo', or a ChatModel"
)
_GUESSES = (("claude", "anthropic:"), ("gpt", "openai:"), ("o1", "openai:"), ("o3", "openai:"))


def named_model(spec: ChatModel | str | None, **options: Any) -> ChatModel:
    """As :func:`~sagents_nb.models.resolve.resolve_model`, and never recorded."""
    if isinstance(spec, ChatModel):
        if options:
            raise ConfigurationError(
                f"{spec!r} is a model already and takes no options; pass {', '.join(options)} "
                "where you make it."
            )
        return spec
    if spec is None:
        return _default(options)
    provider, colon, name = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if colon and name:
        if provider == "anthropic":
            from .providers.anthropic import AnthropicModel

            return AnthropicModel(name, **options)
        if provider == "openai":
            from .providers.openai import OpenAIModel

            return OpenAIModel(name, **options)
        if provider == "openai-chat":
            from .providers.openai_chat import OpenAIChatModel

            return OpenAIChatModel(name, **options)
    if spec == "demo":
        from .demo import DemoModel

        return DemoModel()
    guess = next(
        (p for start, p in _GUESSES if isinstance(spec, str) and spec.startswith(start)), ""
    )
    hint = f"; did you mean {guess + str(spec)!r}?" if guess else "."
    raise ConfigurationError(f"{spec!r} names no model: use {_FORMS}{hint}")


def default_spec() -> tuple[str, str]:
    """The name of the default model, and why it is this one."""
    if spec := os.environ.get("SAGENTS_MODEL"):
        return spec, f"$SAGENTS_MODEL is {spec!r}"
    if os.environ.get("ANTHROPIC_API_KEY"):
        return f"anthropic:{DEFAULT_ANTHROPIC}", "$ANTHROPIC_API_KEY is set"
    if os.environ.get("OPENAI_API_KEY"):
        return f"openai:{DEFAULT_OPENAI}", "$OPENAI_API_KEY is set"
    return "demo", "neither $SAGENTS_MODEL nor a provider's key is set; this one works offline"


def _default(options: dict[str, Any]) -> ChatModel:
    spec, reason = default_spec()
    model = named_model(spec, **options)
    model.chosen_because = f"The default model is {spec!r}, because {reason}."
    if model.chosen_because not in _said:
        _said.add(model.chosen_because)
        _log.info("%s", model.chosen_because)
    return model
