"""The widget: one session model for each session, and small view models that point at it.

Traits hold ids only. Conversation content travels as custom messages, which neither
"save widget state" nor nbclient writes into the notebook. What is shown can be made static:
see ``Session.freeze``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import anywidget
import traitlets
from IPython import get_ipython
from IPython.display import display, update_display

from ..events import Event, Frozen
from ..panel.bundle import loader, panel
from ..panel.publisher import Publisher
from ..panel.requests import answer
from ..runtime.main_thread import main_thread
from ..runtime.thread import runtime
from ..session import Session
from ..transcript import folded, markdown
from .unattended import unattended

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


class Panel(anywidget.AnyWidget):
    """A view of a session; see ``widgets/PROTOCOL.md`` for its traits."""

    session_id = traitlets.Unicode().tag(sync=True)
    view = traitlets.Unicode("session").tag(sync=True)
    run_id = traitlets.Unicode().tag(sync=True)
    source = traitlets.Unicode().tag(sync=True)
    version = traitlets.Unicode().tag(sync=True)

    def __init__(self, session: Session, view: str = "session", run_id: str = "") -> None:
        self.session = session
        source = (
            "" if view == "session" and not run_id else f"anywidget:{panel_of(session).model_id}"
        )
        super().__init__(
            _esm=loader(),
            session_id=session.id,
            view=view,
            run_id=run_id,
            source=source,
            version=panel()[0],
        )
        self._watches = False
        self.publisher = None if source else Publisher(session, self._send_raw)
        self.on_msg(Panel._received)

    def __repr__(self) -> str:
        return f"<Panel {self.view!r} of session {self.session.id!r}>"

    def _send_raw(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        self.send(message, buffers)

    def _received(self, content: Any, buffers: Any) -> None:
        # May run on any thread (the main one, or a subshell's): only enqueue.
        if isinstance(content, dict):
            runtime.post(self._handle, content)

    def _handle(self, content: dict[str, Any]) -> None:
        kind = content.get("type")
        if kind == "bundle":
            version, files = panel()
            self._send_raw({"type": "bundle", "version": version}, files)
        elif kind == "hello" and self.publisher is not None:
            if not self._watches:
                self._watches = True  # for as long as this model lives: no page says good-bye
                self.session.watch(f"panel-{self.model_id}", owner=self)
            have = content.get("have")
            self.publisher.hello(have if isinstance(have, int) else 0)
        else:
            answer(self.session, content, lambda reply: self._send_raw(reply, []))

    def mimebundle(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget beside ``text`` as Markdown, for where there is no kernel."""
        data, metadata = super()._repr_mimebundle_() or ({}, {})
        data = {**data, "text/plain": repr(self), "text/markdown": text}
        return data, metadata

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        messages = self.session.messages
        return static_bundle(self.session, repr(self)) or self.mimebundle(markdown(messages))


def static_bundle(session: Session, name: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The conversation folded under its name, where nobody could click; else None.

    Static at once: the widget of a saved notebook is dead.
    """
    if not unattended(get_ipython()):
        return None
    return {"text/plain": name, "text/html": folded(name, session.messages)}, {}


def frozen_bundle(session: Session) -> tuple[dict[str, Any], dict[str, Any]]:
    """The conversation as Markdown, in the place of its panel."""
    text = markdown(session.messages) or "*Nothing was said.*"
    return {"text/plain": text, "text/markdown": text}, {}


_panels: dict[Session, Panel] = {}


def panel_of(session: Session) -> Panel:
    """The one session model of that session, made on first use."""
    found = _panels.get(session)
    if found is None:
        found = _panels[session] = Panel(session)
    return found


def run_view(session: Session, run_id: str) -> Panel:
    """A view of what one cell did."""
    return Panel(session, "run", run_id)


def ChatView(session: Session) -> Panel:  # noqa: N802  (reads as the widget it makes)
    """The transcript and the place to type."""
    return Panel(session, "chat")


def TodoView(session: Session) -> Panel:  # noqa: N802
    """The to-do list."""
    return Panel(session, "todos")


def FilesView(session: Session) -> Panel:  # noqa: N802
    """The file browser with its viewer."""
    return Panel(session, "files")


def ApprovalView(session: Session) -> Panel:  # noqa: N802
    """What waits for a decision."""
    return Panel(session, "approvals")
