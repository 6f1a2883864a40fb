"""The offline demo model: rules in place of a language model, real plans and real tool calls.

``words`` knows English, ``history`` reads the conversation and what calls came to, ``tools``
and ``calls`` pick a tool and its arguments for a step, ``model`` plans, speaks and streams.
"""

from .model import DemoModel

__all__ = ["DemoModel"]
