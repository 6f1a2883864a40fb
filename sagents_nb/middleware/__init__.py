"""What an agent can do, one capability a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import face
from .base import Middleware

if TYPE_CHECKING:
    from .ask_user import AskUser
    from .confidence_check import ConfidenceCheck
    from .conversation_title import ConversationTitle
    from .debug_log import DebugLog
    from .filesystem import FileSystem
    from .human_in_the_loop import HumanInTheLoop
    from .patch_tool_calls import PatchToolCalls
    from .retrieval import Retrieval
    from .sliding_window import SlidingWindow
    from .sub_agent_config import CompiledSubAgent, SubAgentConfig
    from .sub_agents import SubAgents
    from .summarization import Summarization
    from .todo_list import TodoList
    from .tool_search import ToolSearch

# Loaded when the first agent is made, or when it is asked for: importing sagents_nb is light.
_MODULES = {
    "AskUser": "ask_user",
    "CompiledSubAgent": "sub_agent_config",
    "ConfidenceCheck": "confidence_check",
    "ConversationTitle": "conversation_title",
    "DebugLog": "debug_log",
    "FileSystem": "filesystem",
    "HumanInTheLoop": "human_in_the_loop",
    "PatchToolCalls": "patch_tool_calls",
    "Retrieval": "retrieval",
    "SlidingWindow": "sliding_window",
    "SubAgentConfig": "sub_agent_config",
    "SubAgents": "sub_agents",
    "Summarization": "summarization",
    "TodoList": "todo_list",
    "ToolSearch": "tool_search",
}

__all__ = [
    "AskUser",
    "CompiledSubAgent",
    "ConfidenceCheck",
    "ConversationTitle",
    "DebugLog",
    "FileSystem",
    "HumanInTheLoop",
    "Middleware",
    "PatchToolCalls",
    "Retrieval",
    "SlidingWindow",
    "SubAgentConfig",
    "SubAgents",
    "Summarization",
    "TodoList",
    "ToolSearch",
]

__getattr__ = face(__name__, _MODULES)
