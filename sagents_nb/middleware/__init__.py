"""What an agent can do, one capability a file."""

from .base import Middleware
from .filesystem import FileSystem
from .human_in_the_loop import HumanInTheLoop
from .todo_list import TodoList

__all__ = ["FileSystem", "HumanInTheLoop", "Middleware", "TodoList"]
