"""``%agent serve``: the notebook's conversations on a hub's page, served by its kernel.

The only file here that knows the hub, which it loads when somebody says so.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from IPython.core.error import UsageError

from ..errors import SagentsError
from ..session import Session, sessions
from .cells import unattended
from .conversations import Conversations

if TYPE_CHECKING:
    from ..hub.web.in_kernel import KernelServer

_ENDING = ".ipynb"


class Serving:
    """Whether the conversations of one notebook are on a page, which they come to as they begin."""

    def __init__(self, shell: Any, conversations: Conversations) -> None:
        self._shell = shell
        self._conversations = conversations
        self._server: KernelServer | None = None
        self._known: WeakSet[Session] = WeakSet()  # what a page took off comes back by serve alone

    def begin(self) -> str:
        """Serve, if that is not done yet; where the page is, and what is not on it."""
        if unattended(self._shell):
            return "Nobody could open a page of a notebook that runs unattended."
        store = self._conversations.storage.store
        if store is None:
            raise UsageError("Nothing is kept here, and a page shows what is kept.")
        if self._server is None:
            self._server = _server(store, notebook_name(self._shell))
            self._conversations.on_change = self._tell
            atexit.register(self._close)
        untold = [self._show(sessions.get(id)) for id in sessions.list()]
        page = self._server.page()
        return "\n".join(
            [
                f"This notebook's conversations are at {page} – the address opens once, within a "
                "minute; %agent serve says another, %agent serve off ends it.",
                *filter(None, untold),
            ]
        )

    def end(self) -> str:
        """Serve no more; no hub shows the notebook's conversations from now on."""
        if self._server is None:
            return "Nothing is served."
        with suppress(SagentsError):  # what cannot be written now is on no page without a kernel
            self._server.withdraw()
        self._close()
        return "This notebook's conversations are on no page any more; all are kept as before."

    def _close(self) -> None:
        server, self._server = self._server, None
        self._conversations.on_change = None
        atexit.unregister(self._close)
        if server is not None:
            server.close()

    def _tell(self, session: Session) -> None:
        """Have it be on the page, from a cell; say why it is not."""
        if session not in self._known and (untold := self._show(session)):
            print(untold)

    def _show(self, session: Session) -> str:
        """Why it is not on the page, or ""."""
        if self._server is None:
            return ""
        self._known.add(session)
        if session.options.store is not self._conversations.storage.store:
            return (
                f"{session.id!r} is not on the page: it is not kept where this notebook's "
                "conversations are."
            )
        try:
            self._server.show(session)
        except SagentsError as error:
            return f"{session.id!r} is not on the page: {error}"
        return ""


def _server(store: Any, name: str) -> KernelServer:
    try:
        from ..hub.web.in_kernel import KernelServer
    except ImportError as error:
        raise UsageError(
            f"%agent serve needs {error.name}: pip install 'sagents-nb[hub]'."
        ) from None
    return KernelServer(store, name)


def notebook_name(shell: Any) -> str:
    """What the notebook's file is called, as far as its front end says; else its folder."""
    for path in (os.environ.get("JPY_SESSION_NAME"), shell.user_ns.get("__vsc_ipynb_file__")):
        if isinstance(path, str) and path.endswith(_ENDING):
            return Path(path).name
    return f"Notebooks in {Path.cwd().name or 'this folder'}"
