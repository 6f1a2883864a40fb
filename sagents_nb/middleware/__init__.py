"""What an agent can do, one capability a file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base import Middleware

if TYPE_CHECKING:
    from .ask_user import AskUser
    from .conversation_title import ConversationTitle
    from .debug_log import DebugLog
    from .filesystem import FileSystem
    from .human_in_the_loop import HumanInTheLoop
    from .patch_tool_calls import PatchToolCalls
    from .sub_agent_config import CompiledSubAgent, SubAgentConfig
    from .sub_agents import SubAgents
    from .summarization import Summarization
    from .todo_list import TodoList

# Loaded when the first agent is made, or when it is asked for: importing sagents_nb is light.
_MODULES = {
    "AskUser": "ask_user",
    "CompiledSubAgent": "sub_agent_config",
    "ConversationTitle": "conversation_title",
    "DebugLog": "debug_log",
    "FileSystem": "filesystem",
    "HumanInTheLoop": "human_in_the_loop",
    "PatchToolCalls": "patch_tool_calls",
    "SubAgentConfig": "sub_agent_config",
    "SubAgents": "sub_agents",
    "Summarization": "summarization",
    "TodoList": "todo_list",
}

__all__ = [
    "AskUser",
    "CompiledSubAgent",
    "ConversationTitle",
    "DebugLog",
    "FileSystem",
    "HumanInTheLoop",
    "Middleware",
    "PatchToolCalls",
    "SubAgentConfig",
    "SubAgents",
    "Summarization",
    "TodoList",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value
