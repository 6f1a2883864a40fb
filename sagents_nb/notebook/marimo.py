"""What is different in marimo: there is no IPython, and a widget's model ends with its cell.

So no model is shared between cells there: each view is a session model of its own.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import suppress
from typing import Any

from ..runtime.main_thread import main_thread


def is_here() -> bool:
    """Whether it is a cell of marimo's that calls this."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


def lend_main_thread() -> None:
    """Let tools run on the main thread between cells; from a cell. Apps have none to lend."""
    if threading.current_thread() is threading.main_thread():
        with suppress(RuntimeError):  # no loop turns
            main_thread.attach(asyncio.get_running_loop())


def has_closed(comm: Any) -> bool:
    """Whether that is a comm of marimo's whose cell was run again, or deleted."""
    manager = getattr(comm, "comm_manager", None)
    return manager is not None and comm.comm_id not in manager.comms
