"""The widget: one session model for each session, and small view models that point at it.

Traits hold ids only. Conversation content travels as custom messages, which neither
"save widget state" nor nbclient writes into the notebook. What is shown can be made static:
see ``Session.freeze``.

ipywidgets keeps every model as long as the kernel lives. So a model knows its session weakly:
what shows a session does not keep it alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import anywidget
import msgspec
import traitlets
from IPython import get_ipython
from IPython.display import display, update_display

from .. import kinds
from ..events import Event, Frozen, StatusChanged
from ..messages import Field, Message
from ..panel.bundle import PARTS, bundle, loader, part
from ..panel.publisher import Publisher, Shown, publisher_of
from ..panel.requests import answer, live_fork
from ..runtime.main_thread import main_thread
from ..runtime.thread import runtime
from ..session import Session
from ..transcript import latest_markdown, markdown
from . import marimo
from .cells import unattended
from .control import Control
from .conversations import conversations_of
from .interpolate import fields_in
from .outputs import Place, here, note, page
from .status_text import MimeBundle, cleaning, folded_output, markdown_output, under_way_text

_bundle_sent = False


class Panel(anywidget.AnyWidget):
    """A view of a session; see ``widgets/PROTOCOL.md`` for its traits.

    It shows a session that somebody has: in a variable, or as ``sa.sessions`` do. Of one that is
    gone it shows the last that there was.
    """

    session_id = traitlets.Unicode().tag(sync=True)
    view = traitlets.Unicode("session").tag(sync=True)
    run_id = traitlets.Unicode().tag(sync=True)
    source = traitlets.Unicode().tag(sync=True)
    version = traitlets.Unicode().tag(sync=True)
    typed = traitlets.Bool().tag(sync=True)
    waiting = traitlets.Int().tag(sync=True)

    @kinds.checked
    def __init__(
        self, session: Session, view: str = "session", run_id: str = "", typed: bool = False
    ) -> None:
        self._session = weakref.ref(session)
        self._stop_watching: Callable[[], None] | None = None
        alone = (view == "session" and not run_id) or marimo.is_here()
        source = "" if alone else f"anywidget:{panel_of(session).model_id}"
        if marimo.is_here():
            marimo.lend_main_thread()
        super().__init__(
            _esm=loader(),
            session_id=session.id,
            view=view,
            run_id=run_id,
            source=source,
            version=bundle()[0],
            typed=typed,
        )
        self._shown: Shown | None = None
        self._last: bytes | None = None  # what was shown, once nobody has the session any more
        if (publisher := self.publisher) is not None:  # it follows the session from now on
            self._shown = publisher.shown
            late = weakref.finalize(session, runtime.loop.call_soon_threadsafe, self._gone)
            late.atexit = False
        self.on_msg(Panel._received)
        if (comm := self.comm) is not None:
            comm.on_close(partial(runtime.post, self._leave))

    @property
    def session(self) -> Session | None:
        """What it shows; None when nobody has that any more."""
        return self._session()

    @property
    def publisher(self) -> Publisher | None:
        """Who tells the pages what happens; None in a view of another model."""
        session = self.session
        return None if session is None or self.source else publisher_of(session)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Panel {self.view!r} of session {self.session_id!r}>"

    def _received(self, content: Any, buffers: Any) -> None:
        # May run on any thread (the main one, or a subshell's): only enqueue.
        if isinstance(content, dict):
            runtime.post(self._handle, content)

    def _handle(self, content: dict[str, Any]) -> None:
        kind, session = content.get("type"), self.session
        if kind == "bundle":
            self._send_bundle()
        elif kind in PARTS:
            self.send({"type": kind}, [part(kind)])
        elif kind == "ran":
            note(content.get("cell"), content.get("request"))
        elif session is None:
            if kind == "hello" and self._last is not None:
                self.send(msgspec.json.decode(self._last))
            self.send({"type": "closed"})
        elif kind == "hello" and not self.source:
            have: Any = content.get("have")
            self._tell(session, have if kinds.whole(0).fits(have) else 0)
        else:
            answer(session, content, self.send, _fork, fields=_fields)

    def _gone(self) -> None:
        if self._shown is not None:
            self._last, self._shown = self._shown.last(), None
        self.send({"type": "closed"})

    def send(self, content: Any, buffers: Any = None) -> None:
        """Tell its pages something, or notice that there can be none any more."""
        if not marimo.has_closed(self.comm):
            super().send(content, buffers)
            return
        self._leave()

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take nothing: a page shows what the kernel says, and asks for things by messages."""

    def _leave(self, message: Any = None) -> None:
        """No page has it any more."""
        if self.publisher is not None:
            self.publisher.leave(self.send)
        if self._stop_watching is not None:
            self._stop_watching()
        if (session := self.session) is not None and _panels.get(session) is self:
            del _panels[session]
        self.close()

    def _send_bundle(self) -> None:
        version, files = bundle()
        self.send({"type": "bundle", "version": version}, files)

    def _tell(self, session: Session, have: int) -> None:
        if self._stop_watching is None:  # for good: no page says good-bye
            self._stop_watching = session.watch(f"panel-{self.model_id}")
        publisher = publisher_of(session)
        self._shown = publisher.shown
        publisher.hello(self.send, have)

    def begin(self) -> None:
        """Tell a page all that it will ask for: soon the kernel may compute, and not hear it.

        The bundle is sent unasked once a process; whoever loads the page again asks for it.
        """
        runtime.call(self._begin)

    def _begin(self) -> None:
        global _bundle_sent
        if not _bundle_sent:
            _bundle_sent = True
            self._send_bundle()
        if (session := self.session) is not None and self._stop_watching is None:
            self._tell(session, 0)

    @kinds.checked
    def mimebundle(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget beside ``text`` as Markdown, for where there is no kernel."""
        return self._beside(text)

    def _beside(self, text: str) -> MimeBundle:
        data, metadata = super()._repr_mimebundle_() or ({}, {})
        return data | markdown_output(text, repr(self))[0], metadata

    def _repr_mimebundle_(self, **kwargs: Any) -> MimeBundle:
        session = self.session
        messages = [] if session is None else session.messages
        if (static := static_bundle(repr(self), messages)) is not None:
            return static
        note_shown(self, here())
        return self._beside(latest_markdown(messages, cleaning()))


def _fork(session: Session, before: int | None) -> tuple[Session, str]:
    conversations = conversations_of(get_ipython())
    if conversations is None:
        return live_fork(session, before)
    fork = conversations.fork(session, before)
    return fork, f"%agent load {fork.id}"


def _fields(typed: str) -> dict[str, Field]:
    shell = get_ipython()
    return {} if shell is None else fields_in(typed, shell.user_ns)


_panels: WeakKeyDictionary[Session, Panel] = WeakKeyDictionary()
_by_id: WeakValueDictionary[str, Panel] = WeakValueDictionary()


def _taking(session_id: str) -> Callable[[dict[str, Any]], None] | None:
    panel = _by_id.get(session_id)
    return None if panel is None else partial(runtime.post, panel._handle)


def _waiting() -> list[dict[str, Any]]:
    """The cells that wait for a run, and what each shows: a page may have an older save."""
    shown = [(cell, one) for cell, pages in list(_of_cells.items()) for one in pages.values()]
    return [
        {"cell": cell, "data": bundle_beside(view, under_way_text(session))[0]}
        for cell, one in shown
        for view in one.views
        if view.waiting and (session := view.session) is not None
    ]


_control = Control(_taking, _waiting)


def heard_while_busy() -> bool:
    """Whether pages were heard where a cell that computes does not hold them up."""
    return _control.heard


def panel_of(session: Session) -> Panel:
    """The one session model of that session, made on first use."""
    panel = _panels.get(session)
    if panel is None:
        panel = _panels[session] = Panel(session)
        _by_id[session.id] = panel
        _control.register()
    return panel


class _Shown(NamedTuple):
    """The views that a cell has shown in one output."""

    request: str
    views: list[Panel]


# By the id of the cell, and there by the page that ran it: another one has an output of its own.
_of_cells: dict[str, dict[str, _Shown]] = {}
# Of so many pages the views of a cell are kept; nobody says that one was closed.
_MOST_PAGES = 2


def run_view(session: Session, run_id: str, *, typed: bool = False) -> Panel:
    """A view of what one cell does, of which its page is told without asking.

    ``typed`` if the cell has the prompt word for word.
    """
    view = Panel(session, "run", run_id, typed)
    panel_of(session).begin()
    return view


def note_shown(view: Panel, place: Place) -> None:
    """Close the views that an earlier output of this cell had: it has others in its new one.

    In another page, as in a second tab of the notebook, that output stands as it was. What a
    variable holds or another cell shows stays, and so do session models, which others need.
    """
    cell, request = place
    if not cell or not view.source:
        return
    pages = _of_cells.setdefault(cell, {})
    before = pages.pop(page(), None)
    if before is not None and before.request == request:
        before.views.append(view)
        pages[page()] = before
        return
    gone = [*before.views] if before else []
    if len(pages) >= _MOST_PAGES:
        gone += pages.pop(next(iter(pages))).views
    pages[page()] = _Shown(request, [view])
    kept = (one for of_cell in _of_cells.values() for one in of_cell.values())
    shown = {each for one in kept for each in one.views}
    variables = getattr(get_ipython(), "user_ns", {})
    held = {id(value) for name, value in variables.items() if not name.startswith("_")}
    for old in gone:
        if old not in shown and id(old) not in held:
            _forget(old)


def _forget(view: Panel) -> None:
    session, layout = view.session, view.layout
    if session is not None:
        _displays.get(session, {}).pop(display_id_of(view), None)
    view.close()
    layout.close()  # a model of its own, which nothing else shows


def display_id_of(view: Panel) -> str:
    """The id of the display of a cell's view; another cell may show the same run."""
    return f"sagents-{view.model_id}"


def ChatView(session: Session) -> Panel:  # noqa: N802  (reads as the widget it makes)
    """The transcript of a ``session`` and the place to type.

    >>> import sagents_nb as sa
    >>> sa.ChatView(sa.Session(sa.Agent(sa.ScriptedModel([])), id="trip"))
    <Panel 'chat' of session 'trip'>
    """
    return Panel(session, "chat")


def TodoView(session: Session) -> Panel:  # noqa: N802
    """The to-do list of a ``session``.

    >>> import sagents_nb as sa
    >>> sa.TodoView(sa.Session(sa.Agent(sa.ScriptedModel([])), id="trip"))
    <Panel 'todos' of session 'trip'>
    """
    return Panel(session, "todos")


def FilesView(session: Session) -> Panel:  # noqa: N802
    """The file browser of a ``session``, with its viewer.

    >>> import sagents_nb as sa
    >>> sa.FilesView(sa.Session(sa.Agent(sa.ScriptedModel([])), id="trip"))
    <Panel 'files' of session 'trip'>
    """
    return Panel(session, "files")


def ApprovalView(session: Session) -> Panel:  # noqa: N802
    """What of a ``session`` waits for a decision.

    >>> import sagents_nb as sa
    >>> sa.ApprovalView(sa.Session(sa.Agent(sa.ScriptedModel([])), id="trip"))
    <Panel 'approvals' of session 'trip'>
    """
    return Panel(session, "approvals")


class _Display(NamedTuple):
    """A live display: what takes its place for good, and what is shown when a run has ended."""

    static: Callable[[Session], MimeBundle]
    renewed: Callable[[Session], MimeBundle] | None


# The live displays of a session, by their ids.
_displays: WeakKeyDictionary[Session, dict[str, _Display]] = WeakKeyDictionary()


def show(
    session: Session,
    display_id: str,
    live: MimeBundle,
    static: Callable[[Session], MimeBundle],
    renewed: Callable[[Session], MimeBundle] | None = None,
) -> None:
    """Show ``live``; when the session is frozen, what ``static`` makes of it takes its place.

    After each run it is what ``renewed`` makes of it, so that the notebook's file keeps what was
    said. Both are kept as long as the session, so they must not hold the session itself.
    """
    if session not in _displays:
        _displays[session] = {}

        def hear(event: Event) -> None:
            if isinstance(event, Frozen):
                main_thread.submit(_freeze, session)
            elif (
                isinstance(event, StatusChanged)
                and event.status != "running"
                and any(shown.renewed for shown in _displays[session].values())
            ):
                main_thread.submit(_renew, session)

        session.subscribe(hear)
    _displays[session][display_id] = _Display(static, renewed)
    data, metadata = live
    display(data, metadata=metadata, raw=True, display_id=display_id)


def update(session: Session, display_id: str, live: MimeBundle) -> None:
    """Show this in that display, unless that was made static or its cell was run again."""
    if display_id in _displays.get(session, {}):
        data, metadata = live
        update_display(data, metadata=metadata, raw=True, display_id=display_id)


def _renew(session: Session) -> None:
    for display_id, shown in list(_displays[session].items()):
        if shown.renewed is not None:
            update(session, display_id, shown.renewed(session))


def _freeze(session: Session) -> None:
    live = _displays[session]
    while live:
        display_id, shown = live.popitem()
        data, metadata = shown.static(session)
        update_display(data, metadata=metadata, raw=True, display_id=display_id)


def bundle_beside(panel: Panel, transcript: str) -> MimeBundle:
    """The panel beside a transcript, with the images of one that has some."""
    return panel._beside(transcript)


def live_bundle(session: Session) -> MimeBundle:
    """The panel of the session, beside the conversation as Markdown."""
    return bundle_beside(panel_of(session), latest_markdown(session.messages, cleaning()))


def static_bundle(name: str, messages: Sequence[Message]) -> MimeBundle | None:
    """The conversation folded under its name, where nobody could click; else None.

    Static at once: the widget of a saved notebook is dead.
    """
    if not unattended(get_ipython()):
        return None
    return folded_output(name, latest_markdown(messages, cleaning()))


def frozen_bundle(session: Session) -> MimeBundle:
    """The conversation as Markdown, in the place of its panel."""
    return markdown_output(markdown(session.messages, cleaning()) or "*Nothing was said.*")
