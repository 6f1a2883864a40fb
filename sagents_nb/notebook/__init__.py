"""The notebook: magics, the panel, and tools that see the kernel.

Names are loaded when asked for: a pytest plugin lives below, which must cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import face

if TYPE_CHECKING:
    from .tools import NotebookTools
    from .widget import ApprovalView, ChatView, FilesView, Panel, TodoView

_MODULES = {
    "ApprovalView": "widget",
    "ChatView": "widget",
    "FilesView": "widget",
    "NotebookTools": "tools",
    "Panel": "widget",
    "TodoView": "widget",
}

__all__ = ["ApprovalView", "ChatView", "FilesView", "NotebookTools", "Panel", "TodoView"]

__getattr__ = face(__name__, _MODULES)
