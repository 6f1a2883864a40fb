"""Models: the protocol, the providers behind it, and those that need none.

Importing this loads no provider's SDK and no HTTP client; names are loaded when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import face

if TYPE_CHECKING:
    from .base import ChatModel, ModelRequest
    from .cache import ResponseCache
    from .demo import DemoModel
    from .fallback import FallbackModel, resilient
    from .limited import Limited
    from .priced import Priced
    from .providers.anthropic import AnthropicModel
    from .providers.openai import OpenAIModel
    from .providers.openai_chat import OpenAIChatModel
    from .recorded import RecordedModel
    from .resolve import default_model, resolve_model
    from .retry import RetryingModel
    from .scripted import ScriptedModel

_MODULES = {
    "AnthropicModel": "providers.anthropic",
    "ChatModel": "base",
    "DemoModel": "demo",
    "FallbackModel": "fallback",
    "Limited": "limited",
    "ModelRequest": "base",
    "OpenAIChatModel": "providers.openai_chat",
    "OpenAIModel": "providers.openai",
    "Priced": "priced",
    "RecordedModel": "recorded",
    "ResponseCache": "cache",
    "RetryingModel": "retry",
    "ScriptedModel": "scripted",
    "default_model": "resolve",
    "resilient": "fallback",
    "resolve_model": "resolve",
}

__all__ = [
    "AnthropicModel",
    "ChatModel",
    "DemoModel",
    "FallbackModel",
    "Limited",
    "ModelRequest",
    "OpenAIChatModel",
    "OpenAIModel",
    "Priced",
    "RecordedModel",
    "ResponseCache",
    "RetryingModel",
    "ScriptedModel",
    "default_model",
    "resilient",
    "resolve_model",
]

__getattr__ = face(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_MODULES))
