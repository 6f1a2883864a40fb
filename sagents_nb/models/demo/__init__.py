"""The offline demo model: rules in place of a language model, real plans and real tool calls.

``words`` reads a prompt, ``plan`` makes steps of it and says where the conversation stands,
``choose`` and ``fill`` pick a tool and its arguments, ``data`` reads results, ``say`` and
``talk`` write what is told.
"""

from .model import DemoModel

__all__ = ["DemoModel"]
