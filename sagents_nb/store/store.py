"""Conversations in one database, each one its owner's: :class:`ConversationStore`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

import sqlalchemy as sql
from msgspec.structs import replace

from .. import kinds
from ..errors import ConfigurationError, NotFound
from ..frames import Conversation as Framed
from ..frames import frame_of
from ..frames.columns import OF_TASKS
from ..interrupts import Interrupt
from ..messages import Message
from ..scope import owner_of
from ..sql import url_of_place
from ..state import Todo
from . import conversations, states, tool_feedback
from . import display_rows as rows
from . import frames as framing
from .conversations import Conversation
from .database import leases
from .database.connection import backup, url_of
from .database.schema import Tables
from .database.thread import Database
from .display import DisplayMessage, Row, rows_of
from .persistence import AgentPersistence, DisplayMessagePersistence, Lifecycle
from .tasks import StoredTasks

if TYPE_CHECKING:
    import pandas

    from ..export import Document


_LET_OTHERS = 0.02
"""Seconds between two pieces of a long work: SQLite has no queue, so who waits for the file in
another process gets it only if it is free when they look."""

P = ParamSpec("P")
T = TypeVar("T")
Query = Callable[Concatenate[sql.Connection, Tables, str, P], T]


# What is no JSON is kept as what it says.
_METADATA = kinds.or_none(kinds.of(Mapping[Any, Any]))
_PATH = kinds.or_none(kinds.PATH)
_FILESYSTEM = kinds.or_none(
    kinds.having("a filesystem, as sa.open_filesystem(…) gives", "read", "entries")
)


class ScopedStore:
    """The conversations of one owner; :meth:`ConversationStore.scoped` makes it.

    To it, conversations of others do not exist: for them as for missing ones, the methods raise
    :class:`~sagents_nb.errors.NotFound`, and what gives a list gives an empty one. All raise
    :class:`~sagents_nb.errors.ConfigurationError` for values that make no sense and
    :class:`~sagents_nb.errors.StoreError` when the database fails; nothing is changed then.
    """

    def __init__(self, database: Database, owner: str) -> None:
        self.database = database
        self._owner = owner

    def _work(
        self, query: Query[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Callable[[sql.Connection], T]:
        tables, owner = self.database.tables, self._owner
        return lambda connection: query(connection, tables, owner, *args, **kwargs)

    def _run(self, query: Query[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run_on(None, query, *args, **kwargs)

    def _run_on(self, id: str | None, query: Query[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self.database.run(self._work(query, *args, **kwargs), about=id)

    @property
    def tasks(self) -> StoredTasks:
        """The tasks that agents have worked on for others, or still do."""
        return StoredTasks(self.database, self._owner)

    # conversations

    @kinds.checked(metadata=_METADATA)
    def create_conversation(
        self,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
    ) -> Conversation:
        """A new conversation with that ``title`` and ``metadata``.

        ``id`` is its own by default, and :class:`~sagents_nb.errors.ConfigurationError` is raised
        for one that is taken.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> store.create_conversation(metadata={"year": 2026}).metadata
        {'year': 2026}
        >>> store.close()
        """
        return self._run_on(id, conversations.create, title, metadata, id)

    @kinds.checked
    def get_conversation(self, id: str) -> Conversation:
        """The conversation of that ``id``.

        Raises :class:`~sagents_nb.errors.NotFound` where there is none, or it is somebody else's.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> store.get_conversation(trip.id).title
        'Trip'
        >>> store.close()
        """
        return self._run_on(id, conversations.get, id)

    @kinds.checked
    def find_conversation(self, id: str) -> Conversation | None:
        """The conversation of that ``id``, or None.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> store.find_conversation("unknown") is None
        True
        >>> store.close()
        """
        return self._run_on(id, conversations.find, id)

    @kinds.checked(title=kinds.of(str | None), metadata=kinds.of(Mapping[str, Any] | None))
    def update_conversation(self, id: str, **changes: Any) -> Conversation:
        """The conversation ``id`` with another ``title`` or ``metadata``.

        What is not among the ``changes`` stays. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for other changes, and
        :class:`~sagents_nb.errors.NotFound`.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> store.update_conversation(trip.id, title="To Oslo").title
        'To Oslo'
        >>> store.close()
        """
        if unknown := sorted(set(changes) - {"title", "metadata"}):
            raise ConfigurationError(
                f"A conversation has a title and metadata, not {', '.join(unknown)}."
            )
        return self._run_on(id, conversations.update, id, changes)

    @kinds.checked
    def delete_conversation(self, id: str) -> None:
        """Delete the conversation ``id`` with its state, its transcript and its journal.

        Raises :class:`~sagents_nb.errors.Busy` while it is open in a session that lives.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> store.delete_conversation(trip.id)
        >>> store.list_conversations()
        []
        >>> store.close()
        """
        self._run_on(id, conversations.delete, id)

    @kinds.checked(limit=kinds.whole(0), offset=kinds.whole(0))
    def list_conversations(self, limit: int = 50, offset: int = 0) -> list[Conversation]:
        """The conversations, those that went on last first.

        There are at most ``limit``, after the first ``offset``.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> [conversation.title for conversation in store.list_conversations(limit=10)]
        ['Trip']
        >>> store.close()
        """
        return self._run(conversations.listed, limit, offset)

    def open_conversations(self) -> set[str]:
        """The ids of those that are open in a session that lives, here or in another process.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> store.open_conversations()
        set()
        >>> store.close()
        """
        return self._run(leases.open_now)

    @kinds.checked(limit=kinds.whole(0))
    def search_messages(self, term: str, limit: int = 50) -> list[DisplayMessage]:
        """Up to ``limit`` rows of transcripts whose text holds ``term``, newest first.

        Upper and lower case are the same. What the model thought is found as well as what was said:
        the ``content_type`` of a row is "thinking" or "text".

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> _ = store.append_text_message(trip.id, "user", "To Oslo, please.")
        >>> [row.text for row in store.search_messages("oslo")]
        ['To Oslo, please.']
        >>> store.close()
        """
        return self._run(rows.search, term, limit)

    # the state

    @kinds.checked
    def save_agent_state(self, id: str, exported: Mapping[str, Any]) -> None:
        """Keep for the conversation ``id`` what ``State.export()`` gave as ``exported``.

        It takes the place of what was kept before. A conversation that a session was opened on has
        a journal, which is its state: it takes no other.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> from sagents_nb import Message, State
        >>> store.save_agent_state(trip.id, State(messages=[Message.user("hi")]).export())
        >>> len(store.load_agent_state(trip.id)["state"]["messages"])
        1
        >>> store.close()
        """
        self._run_on(id, states.save, id, exported)

    @kinds.checked
    def load_agent_state(self, id: str) -> dict[str, Any]:
        """The exported state of ``id``: what its session wrote, else what was saved.

        Raises :class:`~sagents_nb.errors.NotFound` also for a conversation that has none yet.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> from sagents_nb import State
        >>> store.save_agent_state(trip.id, State().export())
        >>> State.restore(store.load_agent_state(trip.id)) == State()
        True
        >>> store.close()
        """
        found = self._run_on(id, states.load, id)
        if found is None:
            raise NotFound(f"Conversation {id!r:.300} has no state yet.")
        return found

    @kinds.checked
    def load_todos(self, id: str) -> list[Todo]:
        """The to-do list of the conversation ``id``, read without an agent.

        It is empty for a conversation that is not there.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> from sagents_nb import State, Todo
        >>> store.save_agent_state(trip.id, State(todos=[Todo("Find a room")]).export())
        >>> store.load_todos(trip.id)[0].content
        'Find a room'
        >>> store.close()
        """
        return self._run_on(id, states.todos, id)

    @kinds.checked
    def load_interrupt(self, id: str) -> Interrupt | None:
        """What the conversation ``id`` waits for people to decide, read without an agent.

        It is None where nothing waits, and for a conversation that is not there.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> from sagents_nb import ActionRequest, Interrupt, State
        >>> asked = Interrupt("hitl", action_requests=(ActionRequest("c1", "book", {"room": 7}),))
        >>> store.save_agent_state(trip.id, State(interrupt=asked).export())
        >>> [request.tool_name for request in store.load_interrupt(trip.id).action_requests]
        ['book']
        >>> store.close()
        """
        return self._run_on(id, states.interrupt, id)

    # tools

    def load_tool_feedback(self) -> dict[str, list[str]]:
        """For which questions each tool was of use, in their words, the oldest first.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> store.add_tool_feedback({"tides": ["high tide bergen"]})
        >>> store.load_tool_feedback()
        {'tides': ['high tide bergen']}
        >>> store.close()
        """
        return self._run(tool_feedback.load)

    @kinds.checked
    def add_tool_feedback(self, queries: Mapping[str, Sequence[str]]) -> None:
        """Keep the words of further ``queries``, by tools: of each tool the newest 40.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> store.add_tool_feedback({"tides": ["high tide"], "find_city": ["bergen"]})
        >>> sorted(store.load_tool_feedback())
        ['find_city', 'tides']
        >>> store.close()
        """
        self._run(tool_feedback.add, queries)

    # the transcript

    @kinds.checked
    def append_display_message(self, id: str, row: Mapping[str, Any]) -> DisplayMessage:
        """Add a ``row`` to the transcript of the conversation ``id``.

        It is a dict with "message_type", "content_type" and "content"; "status" is "completed" and
        "metadata" empty unless given. What each content_type needs is in
        :data:`~sagents_nb.store.display.CONTENT_TYPES`; content is kept word for word. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for what is no such row.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> note = {"text": "The prices were read yesterday."}
        >>> row = {"message_type": "system", "content_type": "notification", "content": note}
        >>> store.append_display_message(trip.id, row).status
        'completed'
        >>> store.close()
        """
        missing = {"message_type", "content_type", "content"} - set(row)
        if missing or set(row) - set(Row.__struct_fields__):
            raise ConfigurationError(
                f"A row has {', '.join(Row.__struct_fields__)}, of which the last two may be left "
                f"out; this one has {', '.join(map(str, row)) or 'nothing'}."
            )
        return self._run_on(id, rows.append, id, [Row(**row)])[0]

    @kinds.checked
    def append_text_message(self, id: str, message_type: str, text: str) -> DisplayMessage:
        """Add a row of ``text`` to the transcript of the conversation ``id``.

        ``message_type`` is who says it, such as "assistant".

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> store.append_text_message(trip.id, "assistant", "Where to?").content
        {'text': 'Where to?'}
        >>> store.close()
        """
        return self._run_on(id, rows.append, id, [Row(message_type, "text", {"text": text})])[0]

    @kinds.checked
    def load_display_messages(self, id: str) -> list[DisplayMessage]:
        """The transcript of the conversation ``id``, in order; empty for one that is not there.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> _ = store.append_text_message(trip.id, "user", "To Oslo, please.")
        >>> [row.content["text"] for row in store.load_display_messages(trip.id)]
        ['To Oslo, please.']
        >>> store.close()
        """
        return self._run_on(id, rows.load, id)

    # the life of a tool call; the newest of that id, in all conversations unless one is named

    @kinds.checked
    def mark_tool_executing(
        self, tool_call_id: str, *, conversation_id: str | None = None
    ) -> DisplayMessage:
        """The pending call ``tool_call_id`` runs now.

        It is the newest call of that id, in all conversations unless ``conversation_id`` names one.
        Raises :class:`~sagents_nb.errors.NotFound` where there is none.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> call = {"call_id": "c1", "name": "book", "arguments": {"city": "Oslo"}}
        >>> row = {"message_type": "assistant", "content_type": "tool_call", "content": call}
        >>> _ = store.append_display_message(trip.id, {**row, "status": "pending"})
        >>> store.mark_tool_executing("c1").status
        'executing'
        >>> store.close()
        """
        return self._changed(tool_call_id, conversation_id, "executing", {})

    @kinds.checked(metadata=_METADATA)
    def complete_tool_call(
        self,
        tool_call_id: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        conversation_id: str | None = None,
    ) -> DisplayMessage:
        """The call ``tool_call_id``, that was pending, executing or interrupted, has ended well.

        ``metadata`` are added to those of its row. It is the newest call of that id, in all
        conversations unless ``conversation_id`` names one. Raises
        :class:`~sagents_nb.errors.NotFound` where there is none.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> call = {"call_id": "c1", "name": "book", "arguments": {"city": "Oslo"}}
        >>> row = {"message_type": "assistant", "content_type": "tool_call", "content": call}
        >>> _ = store.append_display_message(trip.id, {**row, "status": "pending"})
        >>> store.complete_tool_call("c1").status
        'completed'
        >>> store.close()
        """
        return self._changed(tool_call_id, conversation_id, "completed", metadata)

    @kinds.checked(metadata=_METADATA)
    def fail_tool_call(
        self,
        tool_call_id: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        conversation_id: str | None = None,
    ) -> DisplayMessage:
        """The call ``tool_call_id``, that was pending, executing or interrupted, has failed.

        ``metadata`` are added to those of its row. It is the newest call of that id, in all
        conversations unless ``conversation_id`` names one. Raises
        :class:`~sagents_nb.errors.NotFound` where there is none.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> call = {"call_id": "c1", "name": "book", "arguments": {"city": "Oslo"}}
        >>> row = {"message_type": "assistant", "content_type": "tool_call", "content": call}
        >>> _ = store.append_display_message(trip.id, {**row, "status": "pending"})
        >>> store.fail_tool_call("c1").status
        'failed'
        >>> store.close()
        """
        return self._changed(tool_call_id, conversation_id, "failed", metadata)

    @kinds.checked(metadata=_METADATA)
    def interrupt_tool_call(
        self,
        tool_call_id: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        conversation_id: str | None = None,
    ) -> DisplayMessage:
        """The pending or executing call ``tool_call_id`` waits for people.

        ``metadata`` are added to those of its row. It is the newest call of that id, in all
        conversations unless ``conversation_id`` names one. Raises
        :class:`~sagents_nb.errors.NotFound` where there is none.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> call = {"call_id": "c1", "name": "book", "arguments": {"city": "Oslo"}}
        >>> row = {"message_type": "assistant", "content_type": "tool_call", "content": call}
        >>> _ = store.append_display_message(trip.id, {**row, "status": "pending"})
        >>> store.interrupt_tool_call("c1").status
        'interrupted'
        >>> store.close()
        """
        return self._changed(tool_call_id, conversation_id, "interrupted", metadata)

    @kinds.checked
    def cancel_tool_call(
        self, tool_call_id: str, *, conversation_id: str | None = None
    ) -> DisplayMessage:
        """The call ``tool_call_id``, that was pending, executing or interrupted, has no result.

        It is the newest call of that id, in all conversations unless ``conversation_id`` names one.
        Raises :class:`~sagents_nb.errors.NotFound` where there is none.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> call = {"call_id": "c1", "name": "book", "arguments": {"city": "Oslo"}}
        >>> row = {"message_type": "assistant", "content_type": "tool_call", "content": call}
        >>> _ = store.append_display_message(trip.id, {**row, "status": "pending"})
        >>> store.cancel_tool_call("c1").status
        'cancelled'
        >>> store.close()
        """
        return self._changed(tool_call_id, conversation_id, "cancelled", {})

    def _changed(
        self, call_id: str, conversation_id: str | None, status: str, metadata: Any
    ) -> DisplayMessage:
        change = rows.change_tool_call
        return self._run_on(conversation_id, change, call_id, conversation_id, status, metadata)

    @kinds.checked
    def record_hitl_decision(
        self,
        tool_call_id: str,
        decision: Literal["approved", "rejected"],
        *,
        conversation_id: str | None = None,
    ) -> DisplayMessage:
        """Somebody decided on the call ``tool_call_id``: ``decision`` is "approved" or "rejected".

        It is "hitl_decision" in the metadata of the call and of its result. ``conversation_id`` is
        as for :meth:`complete_tool_call`. Raises :class:`~sagents_nb.errors.ConfigurationError` for
        another decision.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> call = {"call_id": "c1", "name": "book", "arguments": {"city": "Oslo"}}
        >>> row = {"message_type": "assistant", "content_type": "tool_call", "content": call}
        >>> _ = store.append_display_message(trip.id, {**row, "status": "pending"})
        >>> store.record_hitl_decision("c1", "approved").metadata["hitl_decision"]
        'approved'
        >>> store.close()
        """
        if decision not in ("approved", "rejected"):
            raise ConfigurationError(f"A decision is 'approved' or 'rejected', not {decision!r}.")
        return self._run_on(
            conversation_id, rows.record_decision, tool_call_id, conversation_id, decision
        )

    @kinds.checked
    def resolve_interrupted_tool_result(
        self, tool_call_id: str, content: str, *, conversation_id: str | None = None
    ) -> DisplayMessage:
        """The result of ``tool_call_id`` that stood for an interrupt is ``content`` now.

        Any other is left alone. ``conversation_id`` is as for :meth:`complete_tool_call`.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> waits = {"tool_call_id": "c1", "name": "book", "content": "…", "is_interrupt": True}
        >>> row = {"message_type": "tool", "content_type": "tool_result", "content": waits}
        >>> _ = store.append_display_message(trip.id, row)
        >>> store.resolve_interrupted_tool_result("c1", "Booked in Oslo.").content["content"]
        'Booked in Oslo.'
        >>> store.close()
        """
        return self._run_on(
            conversation_id, rows.resolve_result, tool_call_id, conversation_id, content
        )

    @kinds.checked
    def to_frame(self, kind: str) -> pandas.DataFrame:
        """All conversations' "messages", "tool_calls", "todos", "usage" or "decisions" as a frame.

        That is the ``kind``; also "tasks" and "artifacts", those of :attr:`tasks`.
        The column ``session_id`` is the conversation's. Times and durations
        are missing where no session wrote them down.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> from sagents_nb import Message, State
        >>> store.save_agent_state(trip.id, State(messages=[Message.user("hi")]).export())
        >>> store.to_frame("messages")["text"].tolist()
        ['hi']
        >>> store.close()
        """
        if kind in OF_TASKS:
            return self.tasks.to_frame(kind)
        framing.check_kind(kind)
        return frame_of(kind, self._read(kind))

    def _read(self, kind: str) -> Iterator[Framed]:
        for number, stored in enumerate(self._stored(kind)):
            yield stored.read()
            if number % 10 == 0:
                time.sleep(0)  # whoever waits for Python goes first

    def _stored(self, kind: str) -> Iterator[framing.Stored]:
        """All conversations, some in each transaction: nobody else waits for all of them."""
        ids = self._run(framing.ids_of)
        for first in range(0, len(ids), framing.AT_ONCE):
            yield from self._run(framing.stored, ids[first : first + framing.AT_ONCE], kind)

    @kinds.checked
    def history(self, id: str) -> Framed:
        """What frames are made of for ``id``: its state, and events of what is known."""
        return self._run_on(id, framing.one, id).read()

    @kinds.checked(path=_PATH, filesystem=_FILESYSTEM)
    def to_markdown(
        self,
        id: str,
        path: str | os.PathLike[str] | None = None,
        *,
        filesystem: Any = None,
        secrets: Iterable[str] = (),
    ) -> str:
        """The conversation of that ``id`` as :meth:`Session.to_markdown` writes it.

        ``path`` and ``secrets`` are as there. A store does not know where files are: those of
        ``filesystem`` are shown, which is what the session had, as
        :func:`~sagents_nb.open_filesystem` gives it.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> from sagents_nb import Message, State
        >>> store.save_agent_state(trip.id, State(messages=[Message.user("hi")]).export())
        >>> "hi" in store.to_markdown(trip.id)
        True
        >>> store.close()
        """
        from ..export import markdown_of, written

        return written(markdown_of(self._document(id, filesystem, secrets)), path)

    @kinds.checked(path=_PATH, filesystem=_FILESYSTEM)
    def to_html(
        self,
        id: str,
        path: str | os.PathLike[str] | None = None,
        *,
        filesystem: Any = None,
        secrets: Iterable[str] = (),
    ) -> str:
        """The conversation of that ``id`` as :meth:`Session.to_html` writes it.

        ``path`` and ``secrets`` are as there. ``filesystem`` is as for :meth:`to_markdown`.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> from sagents_nb import Message, State
        >>> store.save_agent_state(trip.id, State(messages=[Message.user("hi")]).export())
        >>> "hi" in store.to_html(trip.id)
        True
        >>> store.close()
        """
        from ..export import html_of, written

        return written(html_of(self._document(id, filesystem, secrets)), path)

    @kinds.checked(path=_PATH, filesystem=_FILESYSTEM)
    def to_notebook(
        self,
        id: str,
        path: str | os.PathLike[str] | None = None,
        *,
        filesystem: Any = None,
        secrets: Iterable[str] = (),
    ) -> str:
        """The conversation of that ``id`` as :meth:`Session.to_notebook` writes it.

        ``path`` and ``secrets`` are as there. ``filesystem`` is as for :meth:`to_markdown`.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> from sagents_nb import Message, State
        >>> store.save_agent_state(trip.id, State(messages=[Message.user("hi")]).export())
        >>> "hi" in store.to_notebook(trip.id)
        True
        >>> store.close()
        """
        from ..export import notebook_of, written

        return written(notebook_of(self._document(id, filesystem, secrets)), path)

    def _document(self, id: str, filesystem: Any, secrets: Iterable[str]) -> Document:
        from ..export import document_of

        title, history, read = self.get_conversation(id).title, self.history(id), None
        if filesystem is not None:
            history, read = replace(history, files=filesystem.entries()), filesystem.read
        return document_of(history, title=title, read=read, secrets=secrets)

    # what a session calls: AgentPersistence and DisplayMessagePersistence

    async def save_state(
        self, scope: Any, conversation_id: str, exported: dict[str, Any], context: Lifecycle
    ) -> None:
        """Keep the ``exported`` state of ``conversation_id``, which has no journal.

        Also the title that a generated one gives. ``context`` says when in its life that is.
        """
        self._check(scope)
        work = self._work(states.keep, conversation_id, exported, context)
        await asyncio.wrap_future(self.database.submit(work, about=conversation_id))

    async def load_state(self, scope: Any, conversation_id: str) -> dict[str, Any] | None:
        """The exported state of ``conversation_id``, or None where there is none to be seen."""
        self._check(scope)
        work = _if_there(self._work(states.load, conversation_id))
        return await asyncio.wrap_future(self.database.submit(work, about=conversation_id))

    async def save_message(
        self, scope: Any, conversation_id: str, message: Message
    ) -> list[DisplayMessage]:
        """Keep what there is to see of a ``message`` of ``conversation_id``."""
        saved: list[DisplayMessage] = await self._awaited(
            "save_message", scope, conversation_id, message
        )
        return saved

    async def save_row(self, scope: Any, conversation_id: str, row: Row) -> DisplayMessage:
        """Keep a ``row`` of ``conversation_id``: what no message says."""
        saved: DisplayMessage = await self._awaited("save_row", scope, conversation_id, row)
        return saved

    async def update_tool_status(
        self,
        scope: Any,
        conversation_id: str,
        tool_call_id: str,
        status: str,
        info: dict[str, Any],
    ) -> DisplayMessage | None:
        """The row of the call ``tool_call_id`` that has another ``status`` now, or None.

        The call is of ``conversation_id``, and ``info`` is what the row says of it.
        """
        saved: DisplayMessage | None = await self._awaited(
            "update_tool_status", scope, conversation_id, tool_call_id, status, info
        )
        return saved

    async def record_decision(
        self,
        scope: Any,
        conversation_id: str,
        tool_call_id: str,
        decision: str,
        said: dict[str, Any],
    ) -> DisplayMessage | None:
        """The row of the call ``tool_call_id`` that somebody decided, or None.

        ``decision`` is "approved", "rejected" or "answered", and ``said`` what else is kept of it.
        The call is of ``conversation_id``.
        """
        saved: DisplayMessage | None = await self._awaited(
            "record_decision", scope, conversation_id, tool_call_id, decision, said
        )
        return saved

    async def resolve_tool_result(
        self, scope: Any, conversation_id: str, tool_call_id: str, content: str
    ) -> DisplayMessage | None:
        """The row of the result of ``tool_call_id`` that is interrupted no more, or None.

        It is ``content`` now. The call is of ``conversation_id``.
        """
        saved: DisplayMessage | None = await self._awaited(
            "resolve_tool_result", scope, conversation_id, tool_call_id, content
        )
        return saved

    @kinds.checked
    def creation_of(self, id: str) -> Callable[[sql.Connection], str]:
        """What makes a conversation of that id, for a transaction of its journal."""
        return self._work(conversations.add, None, None, id)

    def work_of(self, method: str, scope: Any, id: str, *args: Any) -> Callable[..., Any]:
        """What one of these five methods does, for a transaction of somebody else's.

        ``method`` is its name; ``scope``, ``id`` (of the conversation) and ``args`` are its
        arguments. Or "remove_rows": undo what the first two did, where nobody knows whether it was
        committed.
        """
        self._check(scope)
        if method == "remove_rows":
            return self._work(rows.remove, id, *args)
        if method == "save_message":
            return self._work(rows.append, id, rows_of(*args))
        if method == "save_row":
            saving = self._work(rows.append, id, list(args))
            return lambda connection: saving(connection)[0]
        call_id, *rest = args
        changes: dict[str, Query[..., DisplayMessage]] = {
            "update_tool_status": rows.change_tool_call,
            "record_decision": rows.record_decision,
            "resolve_tool_result": rows.resolve_result,
        }
        return _if_there(self._work(changes[method], call_id, id, *rest))

    async def _awaited(self, method: str, scope: Any, id: str, *args: Any) -> Any:
        work = self.work_of(method, scope, id, *args)
        return await asyncio.wrap_future(self.database.submit(work, about=id))

    def _check(self, scope: Any) -> None:
        if scope is not None and owner_of(scope) != self._owner:
            raise NotFound("This store was made for another scope; use store.scoped(…).")


def _if_there(work: Callable[[sql.Connection], T]) -> Callable[[sql.Connection], T | None]:
    def found(connection: sql.Connection) -> T | None:
        try:
            return work(connection)
        except NotFound:
            return None

    return found


if TYPE_CHECKING:

    def _is_both(store: ScopedStore) -> tuple[AgentPersistence, DisplayMessagePersistence]:
        return store, store


class ConversationStore(ScopedStore):
    """Conversations in SQLite or PostgreSQL, each one its owner's.

    ``url`` is a path or any SQLAlchemy URL, "sqlite:///agents.db" or "postgresql://user@host/db";
    the names of all tables begin with ``table_prefix``. A new database gets its tables, an
    older one is brought up to date. Every method may be called from any thread but the
    runtime's, which has to await the ones that are async.

    :meth:`scoped` gives the conversations of one owner. The store's own methods are for those
    that have none: whoever has no scope sees nobody's conversations.

    >>> from sagents_nb import Scope
    >>> store = ConversationStore("sqlite://")  # in memory
    >>> mine = store.scoped(Scope(user="alice"))
    >>> conversation = mine.create_conversation(title="Trip")
    >>> row = mine.append_text_message(conversation.id, "user", "To Oslo, please.")
    >>> [row.content["text"] for row in mine.search_messages("oslo")]
    ['To Oslo, please.']
    >>> store.scoped(Scope(user="bob")).search_messages("oslo")
    []
    >>> store.close()

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a place that cannot work and a
    database of a newer version, and :class:`~sagents_nb.errors.StoreError` for one that cannot
    be opened.
    """

    @kinds.checked(
        url=kinds.either(f"{kinds.PATH.what}, or a database's URL", kinds.PATH, kinds.of(sql.URL))
    )
    def __init__(self, url: str | Path | sql.URL, table_prefix: str = "sagents_") -> None:
        try:
            database = Database(url_of(url_of_place(url)), table_prefix=table_prefix)
        except ConfigurationError as error:
            raise error.with_traceback(None) from None
        finally:
            url = ""  # a traceback with locals shows no password
        super().__init__(database, owner_of(None))
        self.database.run(lambda connection: None)  # what cannot be opened is told here

    def __repr__(self) -> str:
        if not hasattr(self, "database"):  # a traceback with locals may show what could not be made
            return "<ConversationStore that is not open>"
        return f"ConversationStore({self.database.name!r})"

    def scoped(self, scope: Any) -> ScopedStore:
        """The conversations of one owner.

        ``scope`` is ``Scope(user=…)`` or any object with an ``owner_id``.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> from sagents_nb import Scope
        >>> store.scoped(Scope(user="alice")).list_conversations()  # that one is nobody's
        []
        >>> store.close()
        """
        return ScopedStore(self.database, owner_of(scope))

    @kinds.checked
    def to_frame(self, kind: str, scope: Any = None) -> pandas.DataFrame:
        """The ``kind`` of frame of one owner's conversations.

        The kinds are those of :meth:`ScopedStore.to_frame`. The owner is that of ``scope``, as for
        :meth:`scoped`; without one it is nobody.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> len(store.to_frame("messages"))
        0
        >>> store.close()
        """
        return super().to_frame(kind) if scope is None else self.scoped(scope).to_frame(kind)

    @kinds.checked(days=kinds.number(0))
    def delete_older_than(self, days: float = 30) -> int:
        """Delete what nobody went on with for ``days``, whosever it is; how many it were.

        What is open in a session that lives is left alone.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> trip = store.create_conversation(title="Trip")
        >>> store.delete_older_than(days=30)
        0
        >>> store.close()
        """
        database, deleted = self.database, 0
        old = database.run(partial(conversations.older_than, tables=database.tables, days=days))
        for first in range(0, len(old), conversations.OLD_AT_ONCE):
            among = old[first : first + conversations.OLD_AT_ONCE]
            delete = conversations.delete_older_than
            deleted += database.run(partial(delete, tables=database.tables, days=days, among=among))
            time.sleep(_LET_OTHERS)
        return deleted

    @staticmethod
    @kinds.checked(path=kinds.PATH, to=kinds.PATH)
    def backup(path: str | Path, to: str | Path) -> None:
        """Copy the SQLite file of a store to a new file, also while sessions write to it.

        ``path`` is the file of the store, ``to`` that of the copy, which is as the store was at one
        moment. Sessions wait while it is made, unless the file has WAL; the store itself is not
        changed. Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no store's file
        and a name that is taken, and :class:`~sagents_nb.errors.StoreError` if it cannot be read or
        written.

        >>> import tempfile
        >>> from sagents_nb import ConversationStore
        >>> folder = tempfile.mkdtemp()
        >>> store = ConversationStore(f"{folder}/talks.db")
        >>> _ = store.create_conversation(title="Trip")
        >>> ConversationStore.backup(f"{folder}/talks.db", f"{folder}/copy.db")
        >>> store.close()
        >>> copy = ConversationStore(f"{folder}/copy.db")
        >>> [conversation.title for conversation in copy.list_conversations()]
        ['Trip']
        >>> copy.close()
        """
        if "://" in str(path) or "://" in str(to):  # with a password perhaps, so it is not shown
            raise ConfigurationError(
                "A backup is of an SQLite file, named by its path; PostgreSQL's tool is pg_dump."
            )
        backup(Path(path).expanduser(), Path(to).expanduser())

    def __enter__(self) -> ConversationStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is waiting and close the database. Sessions that use the store end badly.

        >>> from sagents_nb import ConversationStore
        >>> store = ConversationStore("sqlite://")  # in memory
        >>> store.close()
        """
        self.database.close()
