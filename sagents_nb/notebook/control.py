"""The comm on which pages send commands to a kernel that is computing.

JupyterLab and Notebook 7 hand the messages of a comm's target to a subshell, a thread of its own,
so they are heard while a cell runs. But ipykernel 7.4 takes those of a comm on which a cell has
published to the cell's own thread (https://github.com/ipython/ipykernel/pull/1565), where sync
code holds them up, and on the comms of widgets cells publish all the time. So what pages are told
goes out on the widget's comm; on this one nothing is published but the answer to a ping, and that
from a subshell only: an answer from the cells' thread would bind the comm to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from comm import get_comm_manager

TARGET = "sagents.control"


class Control:
    """Takes what pages say on comms of that target to ``find(session_id)``, which takes it on.

    ``find`` gives None for a session that is not there any more. ``waiting`` tells a page that has
    just opened the notebook which cells wait for somebody, and what they show.
    """

    def __init__(
        self,
        find: Callable[[str], Callable[[dict[str, Any]], None] | None],
        waiting: Callable[[], list[dict[str, Any]]],
    ) -> None:
        self._find = find
        self._waiting = waiting
        self.heard = False
        """Whether a page was heard on another thread than the one that runs cells."""

    def register(self) -> None:
        """Have the kernel open such comms; harmless where it does already."""
        get_comm_manager().register_target(TARGET, self._opened)

    def _opened(self, comm: Any, message: Any) -> None:
        # Not on_msg(): that has IPython's "pre_execute" and "post_execute" triggered on this
        # thread, and the inline backend draws and closes figures which a cell is still making
        # (https://github.com/ipython/comm/blob/main/comm/base_comm.py, BaseComm.handle_msg).
        comm.handle_msg = partial(self._received, comm)

    def _received(self, comm: Any, message: Any) -> None:
        # On a subshell's thread, or on the main one where there are none: only enqueue.
        content = message["content"]["data"]
        if not isinstance(content, dict):
            return
        if content.get("type") == "ping":
            if threading.current_thread() is not threading.main_thread():
                self.heard = True
                comm.send({"type": "pong"})
        elif content.get("type") == "waiting":  # on a comm for that alone
            comm.send({"type": "waiting", "cells": self._waiting()})
        elif isinstance(id := content.get("session_id"), str) and (take := self._find(id)):
            take(content)
