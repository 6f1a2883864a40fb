"""Where the conversations of a notebook are kept: ``.sagents/`` beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import SagentsError
from ..files import FileSystem
from .policy import unattended

DIRECTORY = Path(".sagents")


class Kept:
    """The store of one notebook, and the files of its conversations; opened on first use.

    Nothing is kept of a notebook that runs unattended: it has to run the same every time.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._store: Any = None
        self._failed = False

    @property
    def store(self) -> Any:
        """The :class:`~sagents_nb.store.ConversationStore`, or None."""
        if self._store is None and not self._failed and not unattended(self._shell):
            try:
                self._store = _opened()
            except (SagentsError, OSError) as error:
                self._failed = True
                print(f"Conversations are kept in memory only: {error}")
        return self._store

    def options(self, id: str) -> dict[str, Any]:
        """What a session of that id is to be started with, so that it is kept."""
        if self.store is None:
            return {}
        from ..files import DiskStorage, Mount

        # A name may hold anything; a directory's may not.
        place = DIRECTORY / "files" / quote(id, safe=" ")
        files = FileSystem(("session", id), [Mount(default=True, storage=DiskStorage(place))])
        return {"store": self.store, "filesystem": files}


def _opened() -> Any:
    from ..store import ConversationStore

    if not DIRECTORY.exists():
        DIRECTORY.mkdir(mode=0o700)
        # Conversations may hold what belongs in no repository.
        (DIRECTORY / ".gitignore").write_text("*\n")
    return ConversationStore(DIRECTORY / "agents.db")
