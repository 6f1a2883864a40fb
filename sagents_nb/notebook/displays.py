"""What a notebook shows of its sessions, so that it can be made static: see ``Session.freeze``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from IPython.display import display, update_display

from ..events import Event, Frozen
from ..runtime.main_thread import main_thread
from ..session import Session

Bundle = tuple[dict[str, Any], dict[str, Any]]

_shown: WeakKeyDictionary[Session, dict[str, Callable[[], Bundle]]] = WeakKeyDictionary()


def show(session: Session, display_id: str, live: Bundle, static: Callable[[], Bundle]) -> None:
    """Show ``live``; when the session is frozen, what ``static`` makes takes its place."""
    if session not in _shown:
        _shown[session] = {}
        shown = _shown[session]  # no more than this: the session must not be kept by its panels

        def hear(event: Event) -> None:
            if isinstance(event, Frozen):
                main_thread.submit(_freeze, shown)

        session.subscribe(hear)
    _shown[session][display_id] = static
    data, metadata = live
    display(data, metadata=metadata, raw=True, display_id=display_id)


def _freeze(shown: dict[str, Callable[[], Bundle]]) -> None:
    while shown:
        display_id, static = shown.popitem()
        data, metadata = static()
        update_display(data, metadata=metadata, raw=True, display_id=display_id)
