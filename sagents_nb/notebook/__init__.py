"""The notebook: magics, the panel, and tools that see the kernel.

Names are loaded when asked for: a pytest plugin lives below, which must cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tools import NotebookTools
    from .views import ApprovalView, ChatView, FilesView, TodoView
    from .widget import Panel

_MODULES = {
    "ApprovalView": "views",
    "ChatView": "views",
    "FilesView": "views",
    "NotebookTools": "tools",
    "Panel": "widget",
    "TodoView": "views",
}

__all__ = ["ApprovalView", "ChatView", "FilesView", "NotebookTools", "Panel", "TodoView"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value
