"""Conversations as pandas frames, with the same columns and dtypes also when empty.

Times are UTC with zone, words are categories, whole numbers that can be missing are Int64.
:data:`COLUMNS` says what each column holds. pandas is imported when the first frame is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import kinds
from ..errors import ConfigurationError
from ..result import RunResult
from .columns import COLUMNS, OF_TASKS, Column, conformed, framed, marked, pandas_module
from .plots import plot_timeline, plot_usage
from .rows import MAKERS, Conversation
from .saving import load_frame, save_frame

if TYPE_CHECKING:
    import pandas

__all__ = [
    "COLUMNS",
    "OF_CONVERSATIONS",
    "Column",
    "Conversation",
    "conformed",
    "frame_of",
    "framed",
    "load_frame",
    "plot_timeline",
    "plot_usage",
    "save_frame",
    "to_frame",
]

OF_CONVERSATIONS = tuple(MAKERS)
"""The kinds that are made of conversations: what a session's ``to_frame`` knows."""

_SOURCES = kinds.either(
    "a session or a store, or a list of them", kinds.having("", "to_frame"), kinds.LIST
)


@kinds.checked(kind=kinds.ANYTHING, sources=kinds.ANYTHING)
def to_frame(kind: Any, sources: Any = None) -> pandas.DataFrame:
    """One frame of several sessions or stores: of anything with a ``to_frame(kind)``.

    ``kind`` and ``sources`` may be given in either order, and ``to_frame(session)`` is of its
    messages. ``kind`` is "messages", "tool_calls", "todos", "usage", "events", "files" or
    "decisions", of stores also "tasks" or "artifacts"; the column ``session_id`` tells whose
    each row is. Raises :class:`~sagents_nb.errors.ConfigurationError` for a kind that does not
    exist.

    >>> from sagents_nb import Agent, ScriptedModel, Session, to_frame
    >>> session = Session(Agent(ScriptedModel(["Hello!"])), id="trip")
    >>> _ = session.send("hi").result()
    >>> to_frame("messages", [session])[["session_id", "text"]]
      session_id    text
    0       trip      hi
    1       trip  Hello!
    """
    if not isinstance(kind, str):
        kind, sources = ("messages" if sources is None else sources), kind
    if isinstance(kind, str) and type(sources) is RunResult:
        raise ConfigurationError(_no_source("RunResult"))
    if not isinstance(kind, str) or not _SOURCES.fits(sources):
        raise ConfigurationError(
            "to_frame(kind, sources) takes the name of a kind, such as 'messages', and "
            f"{_SOURCES.what}; not {kinds.shown(kind)} and {kinds.shown(sources)}."
        )
    columns = COLUMNS[kind] if kind in OF_TASKS else _columns_from_conversations(kind)
    sources = [sources] if hasattr(sources, "to_frame") else list(sources)
    for source in sources:
        if not hasattr(source, "to_frame") or isinstance(source, type):
            raise ConfigurationError(_no_source(type(source).__name__))
    parts = [source.to_frame(kind) for source in sources]
    if not parts:
        return framed(columns, dict.fromkeys(columns, ()))
    return marked(columns, conformed(columns, pandas_module().concat(parts, ignore_index=True)))


def _no_source(name: str) -> str:
    way = "; make one of it by Session(agent, state=result.state)" if name == "RunResult" else ""
    return f"A frame is made of sessions and stores, not of a {name}{way}."


@kinds.checked
def frame_of(kind: str, conversations: Iterable[Conversation]) -> pandas.DataFrame:
    """The frame of that kind, of these conversations; see :data:`COLUMNS`.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a kind that does not exist.

    >>> from sagents_nb import Message, State
    >>> state = State(messages=[Message.user("hi")])
    >>> frame_of("messages", [Conversation("c-1", state)])[["session_id", "role", "text"]]
      session_id  role text
    0        c-1  user   hi
    """
    columns = _columns_from_conversations(kind)
    return framed(columns, MAKERS[kind](conversations))


def _columns_from_conversations(kind: str) -> dict[str, Column]:
    if kind in OF_CONVERSATIONS:
        return COLUMNS[kind]
    if kind in OF_TASKS:
        raise ConfigurationError(f"{kind!r} frames come from store.to_frame({kind!r}) alone.")
    if kind in COLUMNS:
        raise ConfigurationError(f"{kind!r} frames come from agent.{kind}(…) alone.")
    known = ", ".join(OF_CONVERSATIONS)
    raise ConfigurationError(f"There is no frame {kind!r:.40}; kinds are {known}.")
