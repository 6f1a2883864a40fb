"""The hub of one kernel: the conversations of its notebook over HTTP, on a loop of its own."""

from __future__ import annotations

import secrets
import socket
import threading
from contextlib import suppress

from ...errors import ConfigurationError, NotFound, Owned
from ...session import Session
from ...store import ConversationStore
from .. import agencies
from ..agencies import Agency, digest_of
from ..hub import Hub
from ..system import AgentSystem
from .app import App
from .codes import Codes
from .serving import Server, listening_socket
from .settings import Settings

_HOST = "127.0.0.1"


class KernelHub(Hub):
    """Shows sessions of its process, and opens none: of agencies it has those of notebooks."""

    of_notebook = True

    def __init__(self, store: ConversationStore) -> None:
        super().__init__(AgentSystem(), store)

    def agencies(self) -> list[Agency]:
        """Those of the notebooks of this store, the newest first."""
        return [agency for agency in super().agencies() if agency.is_notebook]

    def agency(self, id: str) -> Agency:
        """The notebook's of that ``id``; others are not there."""
        agency = super().agency(id)
        if not agency.is_notebook:
            raise agencies.missing(id)
        return agency

    def create_agency(self, name: str | None = None) -> tuple[Agency, str]:
        """Refuse: nothing could be done with it here."""
        raise ConfigurationError(
            "This is the page of a notebook's kernel; make agencies with sagents-nb hub."
        )


class KernelServer:
    """Serves conversations of the ``notebook``, which are kept in ``store``, until it is closed.

    ``address`` is where.

    It listens on this machine only, on a port that is free, and its door says so to other hubs over
    the same store. Raises :class:`~sagents_nb.errors.StoreError` where the store cannot say it.
    """

    def __init__(self, store: ConversationStore, notebook: str) -> None:
        self.notebook = notebook
        token = secrets.token_urlsafe(32)
        self._codes = Codes(token)
        listening = listening_socket(_HOST, 0)
        self.address = f"http://{_HOST}:{listening.getsockname()[1]}"
        self._hub = KernelHub(store)
        begun = threading.Event()
        app = App(self._hub, Settings(token=digest_of(token)), self._codes)
        self._server = Server(app, begun.set)
        self._thread = threading.Thread(
            target=self._serve, args=(listening, begun), name="sagents-hub-page", daemon=True
        )
        self._thread.start()
        try:
            begun.wait()
            self._hub.doors.open(self.address)
        except BaseException:
            self.close()
            raise

    def _serve(self, listening: socket.socket, begun: threading.Event) -> None:
        try:
            with listening:
                self._server.run([listening])
        finally:
            begun.set()  # what failed says why by itself, and nobody waits for it

    def page(self) -> str:
        """An address that opens the page once, within a minute, without the token."""
        return f"{self.address}/#code={self._codes.new()}"

    def show(self, session: Session) -> None:
        """Have a ``session`` be seen; raises what :meth:`Hub.show` raises."""
        self._hub.show(self.notebook, session)

    def withdraw(self) -> None:
        """Show nothing of the notebook any more, here or elsewhere; all of it stays kept."""
        for agency in self._hub.agencies():
            if agency.id != agencies.id_of_notebook(self.notebook):
                continue
            for record in self._hub.threads(agency):
                with suppress(NotFound, Owned):  # another kernel shows that one
                    self._hub.delete_thread(agency, record.id)
            if not self._hub.threads(agency):
                self._hub.delete_agency(agency)

    def close(self) -> None:
        """Serve nobody any more; the sessions go on."""
        self._hub.doors.close()
        self._hub.close()
        self._server.should_exit = True
        self._thread.join()
