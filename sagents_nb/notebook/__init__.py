"""The notebook: magics, the panel, and tools that see the kernel."""

from .tools import NotebookTools
from .views import ApprovalView, ChatView, FilesView, TodoView
from .widget import Panel

__all__ = ["ApprovalView", "ChatView", "FilesView", "NotebookTools", "Panel", "TodoView"]
