"""The notebook: magics, the panel, and tools that see the kernel.

Names are loaded when asked for: a pytest plugin lives below, which must cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import face

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

__getattr__ = face(__name__, _MODULES)
