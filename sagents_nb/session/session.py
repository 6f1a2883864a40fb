"""A live conversation: one actor on the runtime loop, usable from any thread or loop.

Public methods hand their work to the runtime loop and wait for the answer, so there is one
writer and no lock. Reading needs neither: what is read are immutable snapshots.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from .. import kinds
from ..agent import Agent
from ..errors import Busy, ConfigurationError, NotRunning, Owned, StaleApproval
from ..events import AnyEvent, Event, Frozen
from ..interrupts import Approve, Decisions, Interrupt, Reject
from ..messages import Message, Usage
from ..runtime.event_stream import EventStream
from ..runtime.thread import runtime
from ..state import State, Todo, restore_or_new, restore_state
from ..text import logger_of

# Here for type checkers; when it runs, by _load().
if TYPE_CHECKING:
    import pandas

    from ..export import Document
    from ..files import FileEntry, VirtualFilesystem
    from ..frames import Conversation
    from ..loop.approvals import bound_anew
    from ..loop.execution import Prompt, check_unanswered, messages_of
    from ..result import RunResult
    from ..runtime.face import has_face
    from ..runtime.futures import in_tool, refuse_stopped
    from ..runtime.workers import workers
    from ..tools import Tool
    from .actor import Actor
    from .approvals import Handed
    from .branches import BranchPoint, branch_points, forked
    from .event_log import stored_events
    from .headless import decide
    from .inbox import Queued
    from .opening import (
        OpenedConversation,
        conversations_of,
        create_conversation,
        from_state,
        here,
        is_stored,
        kept_state,
        open_conversation,
        store_of,
    )
    from .options import MessageContext, Preprocessor, SessionOptions, preprocessed
    from .run import Run

logger = logger_of(__name__)

T = TypeVar("T")
R = TypeVar("R", bound="Run | None")

_waking = threading.Lock()


@cache
def _load() -> None:
    """Load what makes and runs sessions, with the first: importing the package stays light."""
    global Actor, Handed, MessageContext, OpenedConversation, SessionOptions
    global conversations_of, create_conversation, from_state, here, kept_state, open_conversation
    global \
        bound_anew, \
        branch_points, \
        forked, \
        check_unanswered, \
        in_tool, \
        refuse_stopped, \
        preprocessed, \
        messages_of, \
        stored_events
    global decide, has_face, is_stored, store_of, workers
    from ..loop.approvals import bound_anew
    from ..loop.execution import check_unanswered, messages_of
    from ..runtime.face import has_face
    from ..runtime.futures import in_tool, refuse_stopped
    from ..runtime.workers import workers
    from .actor import Actor
    from .approvals import Handed
    from .branches import branch_points, forked
    from .event_log import stored_events
    from .headless import decide
    from .opening import (
        OpenedConversation,
        conversations_of,
        create_conversation,
        from_state,
        here,
        is_stored,
        kept_state,
        open_conversation,
        store_of,
    )
    from .options import MessageContext, SessionOptions, preprocessed


_STORE = kinds.either(
    "a sa.ConversationStore('sqlite:///…'), or its path",
    kinds.PATH,
    kinds.having("", "load_agent_state", "create_conversation"),
)
_STATE = kinds.Kind(
    "a State, such as result.state (Session.restore takes what State.export gave)",
    lambda value: isinstance(value, State),
)


_PATH = kinds.or_none(kinds.PATH)
_BATCH = kinds.one_of("skip", "wait")

# What can be seen to go away, as most objects can, but no text and no number. Below 0 where Python
# keeps it before the object, from 3.12 on.
_OWNER = kinds.Kind(
    "an object that can be gone, such as a widget",
    lambda value: getattr(type(value), "__weakrefoffset__", 0) != 0,
)


class Session:
    """A conversation with ``agent`` that goes on over many runs.

    ``id`` names it, a new one by default. ``state`` is what it begins with, such as
    ``result.state``. ``filesystem`` is where its ``files`` are: a filesystem, or the path of a
    folder, in which :meth:`open` finds them if it is given the same; by default they are the
    session's own, in memory, or those of the agent's ``filesystem_scope``. ``message_preprocessor``
    is a function of each message and its context that says what the model and people see of it.
    ``headless`` says what becomes of approvals where nobody can click: see :attr:`headless`.
    ``around`` are the other fields of :class:`~sagents_nb.session.options.SessionOptions`.
    Every public method may be called from any thread and any loop. With an ``id`` and an
    ``agent_persistence``, and neither ``state`` nor ``store``, it goes on with what that has kept.
    Raises :class:`~sagents_nb.errors.ConfigurationError` for an ``id`` that is empty or that the
    store has already, and for an argument that there is not.

    With a ``store`` it is a new conversation there, of the ``scope``'s owner, and loses nothing:
    what :meth:`send`, a decision or any other change said is committed when the call returns.
    Where waiting would block an event loop, the call returns at once and the run starts after
    the commit. Such a call raises :class:`~sagents_nb.errors.StoreError` if it could not be
    written; it is written first the next time, but for decisions, which were not made then.
    :meth:`open` goes on with the conversation, also after a crash.

    A session that nobody used or watched for ``inactivity_timeout`` seconds rests: it is "closed"
    and lets the conversation go, so that another process may open it. The next message, decision
    or other call wakes it; only :meth:`close` is for good.

    ``actor`` does the work, on the runtime loop; call it from nowhere else.

    >>> import sagents_nb as sa
    >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])), id="greeting")
    >>> session.send("hi").result().text, session.status, len(session.messages)
    ('Hello!', 'idle', 2)
    """

    id: str
    files: VirtualFilesystem

    @kinds.checked(
        load=_load,
        state=kinds.or_none(_STATE),
        store=kinds.or_none(_STORE),
        message_preprocessor=kinds.or_none(kinds.Kind("a function", callable)),
    )
    def __init__(
        self,
        agent: Agent,
        id: str | None = None,
        state: State | None = None,
        *,
        store: Any = None,
        scope: Any = None,
        filesystem: Any = None,
        inactivity_timeout: float | None = 300,
        message_preprocessor: Preprocessor | None = None,
        headless: Any = None,
        **around: Any,
    ) -> None:
        _load()
        _refuse_unknown(around)
        store = store_of(store)
        options = SessionOptions(
            store=store,
            scope=scope,
            filesystem=filesystem,
            inactivity_timeout=inactivity_timeout,
            message_preprocessor=message_preprocessor,
            headless=headless,
            **around,
        )
        problems: list[str] = []
        if state is None and store is None and id and options.agent_persistence is not None:
            state, problems = kept_state(options.agent_persistence, scope, agent, id)
        if id == "":
            raise ConfigurationError("An id has a character at least; leave it out for a new one.")
        id = f"session-{uuid.uuid4().hex[:12]}" if id is None else id
        if store is None:
            restored = from_state(bound_anew(state or State(), id, 1))
            restored.problems = problems
            opened = OpenedConversation(restored)
        else:
            opened = create_conversation(store, scope, agent, id, state or State())
        self._begin(agent, id, opened, options)

    def _begin(
        self, agent: Agent, id: str, opened: OpenedConversation, options: SessionOptions
    ) -> None:
        if options.store is not None and options.display_persistence is None:
            conversations = conversations_of(options.store, options.scope)
            options = replace(options, display_persistence=conversations)
        self.id = id
        self.options = options
        if isinstance(options.filesystem, str | os.PathLike):
            options = replace(options, filesystem=_in_folder(options.filesystem, id))
        self.files = options.filesystem
        if self.files is None:
            from ..files import VirtualFilesystem, open_filesystem

            shared = agent.filesystem_scope
            # Without a scope to share, the files are this session's and end with it.
            self.files = open_filesystem(shared) if shared else VirtualFilesystem(("session", id))
        self.actor = Actor(self, agent, self.files, options, opened)
        runtime.call(self.actor.begin)
        self._opened_on = weakref.ref(threading.current_thread())
        self._handed = Handed()
        if opened.journal is not None:
            _stored[opened.journal.owner, id] = self

    @classmethod
    @kinds.checked(load=_load, store=_STORE)
    def open(
        cls,
        id: str,
        *,
        agent: Agent,
        store: Any,
        create: bool = False,
        take_over: bool = False,
        **around: Any,
    ) -> Session:
        """Go on with a conversation of a store, wherever it was left, also by a crash.

        ``id`` names it, ``agent`` goes on with it, and ``store`` may be the path of its file, or a
        URL. With ``create`` it is made if it is not there; and if a session of this process has it,
        that one is given back, with ``agent`` from its next run on, so that a cell can be run again
        as it is.

        It has its transcript, todos, metadata, usage, queue and what waited for people. The
        status is "interrupted" if somebody has to answer: an approval, a question, or whether
        a call ran that was at work when the process ended (``interrupt.type == "in_doubt"``,
        :class:`~sagents_nb.interrupts.Respond` with "ran", "did not run" or "retry"). It is
        "paused" if a turn or a message has only to be gone on with, by :meth:`retry`, else
        "idle". Nothing runs by itself. The first who watches is told the status, unless it was
        answered before: then all hear of is the run. ``around`` is as for a new session.

        Raises :class:`~sagents_nb.errors.NotFound`, also for somebody else's,
        :class:`~sagents_nb.errors.Owned` if it is open in a living session, from where
        ``take_over`` takes it, and :class:`~sagents_nb.errors.ConfigurationError` if a newer
        version wrote it, or for an argument that there is not. A cell may be run again: the session
        that this thread opened before is closed then, with a warning, unless it is at work.
        ``info()["problems"]`` tells what could
        not be read.

        >>> import sagents_nb as sa
        >>> store = sa.ConversationStore("sqlite://")  # in memory
        >>> agent = sa.Agent(sa.ScriptedModel(["Hello!", "Still here."]))
        >>> session = sa.Session(agent, id="example-open", store=store)
        >>> _ = session.send("hi").result()
        >>> session.close()
        >>> session = sa.Session.open("example-open", agent=agent, store=store)
        >>> session.status, session.send("Are you there?").result().text
        ('idle', 'Still here.')
        >>> session.close()
        >>> store.close()
        """
        _load()
        _refuse_unknown(around)
        store = store_of(store)
        options = SessionOptions(store=store, **around)
        with _turn_to_open(store, id):
            if create and (new := new_unless_stored(agent, id, store=store, **around)) is not None:
                return new
            try:
                opened = open_conversation(store, options.scope, agent, id, take_over=take_over)
            except Owned as owned:
                if create and (live := _stored.get((owned.owner, id))) is not None:
                    return live._with_agent(agent)
                _close_unneeded(owned, id)
                opened = open_conversation(store, options.scope, agent, id)
            session = cls.__new__(cls)
            session._begin(agent, id, opened, options)
            return session

    def _with_agent(self, agent: Agent) -> Session:
        try:
            if agent is not self.agent:
                self.replace(agent)
        except Busy:
            logger.warning(
                "Session %r is running and keeps its agent; open it again after that for the new "
                "one, or use session.replace(agent).",
                self.id,
            )
        return self

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @classmethod
    @kinds.checked
    def restore(
        cls, exported: Mapping[str, Any], agent: Agent, id: str | None = None, **around: Any
    ) -> Session:
        """A session with ``agent`` that goes on from an ``exported`` state.

        Its ``id`` is a new one by default.

        What waited for people still waits, unless it was a sub-agent: its call is answered
        as lost, and :meth:`retry` or a message goes on. ``around`` is as for a new session: with
        a ``store`` it is kept there from now on. Files are no part of an exported state.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no exported state.

        >>> import sagents_nb as sa
        >>> agent = sa.Agent(sa.ScriptedModel(["Hello!"]))
        >>> session = sa.Session(agent)
        >>> _ = session.send("hi").result()
        >>> len(sa.Session.restore(session.export_state(), agent=agent).messages)
        2
        """
        state = restore_state(exported, agent.middleware_chain.state_schema)
        return cls(agent, id=id, state=state, **around)

    @classmethod
    @kinds.checked
    def restore_or_new(
        cls, exported: Any, agent: Agent, id: str | None = None, **around: Any
    ) -> Session:
        """:meth:`restore`, or an empty session and a logged warning where that fails.

        For what a program of yours kept, such as a cache. ``exported`` is that, and None, where
        nothing was kept, is an empty session without a warning. ``agent``, ``id`` and ``around``
        are as for :meth:`restore`.

        >>> import sagents_nb as sa
        >>> agent = sa.Agent(sa.ScriptedModel(["Hello!"]))
        >>> sa.Session.restore_or_new(None, agent).send("hi").result().text
        'Hello!'
        """
        state = restore_or_new(exported, agent.middleware_chain.state_schema)
        return cls(agent, id=id, state=state, **around)

    # what it is now

    if not TYPE_CHECKING:  # for type checkers there is nothing else

        def __getattr__(self, name: str) -> Any:
            return kinds.no_attribute(self, name)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<Session {self.id!r}: {self.actor.status}, {len(self.messages)} messages>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows of it without the extension, which has the panel."""
        if "ipykernel" not in sys.modules:
            return {}
        hint = "In a notebook, %load_ext sagents_nb shows it live."
        return {"text/plain": f"{self!r}\n{hint}"}

    def _display_(self) -> Any:
        """What marimo shows of it, where there is no extension to load: the whole panel."""
        from ..notebook.widget import Panel

        return Panel(self)

    @property
    def headless(self) -> Any:
        """What becomes of approvals where nobody can click: "deny", "approve" or decisions.

        Raises ConfigurationError for what is none of these.
        """
        return "deny" if self.options.headless is None else self.options.headless

    @headless.setter
    def headless(self, value: Any) -> None:
        self.options = replace(self.options, headless=value)

    def by_policy(self, run: Run, result: RunResult) -> Run | None:
        """The run that goes on after ``run``, with its ``result``, as ``headless`` says.

        That is outside of notebooks. None where nothing waits or nothing was said, where people can
        be asked, or where only they can answer.
        """
        if self.options.headless is None or result.interrupt is None or has_face():
            return None
        decisions = decide(self.options.headless, result.interrupt)
        if not decisions:
            return None
        try:
            return self.resume(decisions, by="policy")
        except (StaleApproval, NotRunning):  # another who waits for the run was faster
            current = self.current_run
            is_further = current is not None and current.id == run.id and current is not run
            return current if is_further else None

    @property
    def agent(self) -> Agent:
        """The agent that answers."""
        return self.actor.agent

    @property
    def scope(self) -> Any:
        """Whose it is, or None."""
        return self.options.scope

    @property
    def surroundings(self) -> SessionOptions:
        """The ``options``, by their name of before."""
        return self.options

    @property
    def status(self) -> str:
        """One of "idle", "running", "interrupted", "paused", "cancelled", "error" and "closed"."""
        return self.actor.status

    @property
    def resting(self) -> str | None:
        """The status that it wakes with, while it rests; else None."""
        return self.actor.awakes_as

    @property
    def state(self) -> State:
        """The state now, also in the middle of a run."""
        return self.actor.state

    @property
    def messages(self) -> list[Message]:
        """The conversation so far."""
        return self.state.messages[:]

    @property
    def initial_messages(self) -> list[Message]:
        """What the conversation held when this session began; no event tells of it."""
        return self.actor.initial[:]

    @property
    def todos(self) -> list[Todo]:
        """The to-do list now."""
        return self.state.todos[:]

    @property
    def tools(self) -> dict[str, Tool]:
        """By name what the model may call now: the agent's tools, and those added since."""
        return {**self.agent.tools_by_name, **self.actor.added_tools}

    @property
    def interrupt(self) -> Interrupt | None:
        """What waits for people, or None; calls that were decided already are not of it."""
        interrupt = self.state.interrupt
        self._handed.hand(interrupt)
        return None if interrupt is None else self.actor.approvals.waiting(interrupt)

    @property
    def usage(self) -> Usage:
        """The sum over all runs so far."""
        return self.actor.usage

    @property
    def error(self) -> str | None:
        """What the last run failed with, or None."""
        return self.actor.error

    @property
    def stream_message(self) -> Message | None:
        """What has arrived of the answer that is being streamed, without calls; else None."""
        return self.actor.log.partial()

    @property
    def pending_tool_calls(self) -> list[str]:
        """The ids of the calls that are at work now."""
        return list(self.actor.log.calls)

    @property
    def current_run(self) -> Run | None:
        """The active run, or the last one; None before the first."""
        return self.actor.current_run

    def info(self) -> dict[str, Any]:
        """A summary as plain data.

        Times are in seconds, and moments in seconds since the epoch. ``inactivity`` holds the
        ``timeout`` after which it rests (None is never), whether the ``timer_active``, and the
        ``time_since_activity``.

        >>> import sagents_nb as sa
        >>> info = sa.Session(sa.Agent(sa.ScriptedModel([])), id="trip").info()
        >>> info["id"], info["status"], info["messages"], info["model"]
        ('trip', 'idle', 0, 'scripted')
        """
        return {
            "id": self.id,
            "agent": self.agent.name,
            "model": self.agent.model.name,
            "status": self.actor.status,
            "messages": len(self.state.messages),
            "todos": len(self.state.todos),
            "queued": len(self.actor.inbox),
            "started_at": self.actor.started_at,
            "last_activity_at": self.actor.presence.last_activity,
            "inactivity": self.actor.presence.inactivity,
            "node": here(),
            "scope": getattr(self.scope, "owner_id", self.scope),
            "viewers": self.viewers,
            "problems": list(self.actor.problems),
            "abandoned_tools": workers.abandoned(self.id),
        }

    @property
    def viewers(self) -> list[str]:
        """The ids of those who watch now; a panel in a page is one."""
        return list(self.actor.presence.viewers)

    # talking

    @kinds.checked(
        prompt=kinds.ANYTHING,
        when=kinds.one_of("queue", "steer", "raise"),
        instead_of=kinds.ANYTHING,  # looked at where it is used: each message comes by here
    )
    def send(
        self,
        prompt: Prompt,
        when: str = "queue",
        *,
        instead_of: int | None = None,
        **overrides: Any,
    ) -> Run:
        """Start a run with a message; ``prompt`` and ``overrides`` are as for :meth:`Agent.run`.

        Overrides are for this run and what goes on with it in this session; a conversation that is
        opened again has none. :meth:`pause` is what ``should_pause`` is there.

        While a run is active, ``when`` decides: "queue" runs it afterwards, "steer" gives it
        to the active run before its next model call, "raise" raises
        :class:`~sagents_nb.errors.Busy`. A message to an interrupted session answers the
        waiting calls as cancelled and goes on with the message.

        With ``instead_of``, the place of a message of a person in :attr:`messages`, it is said in
        the stead of that one: that and all after it leave the conversation, and are kept as a
        branch (see :attr:`branches`). Todos and files stay as they are. Raises Busy while a run
        is active or waits.

        Raises :class:`~sagents_nb.errors.NotRunning` for a session that is closed,
        :class:`~sagents_nb.errors.StoreError` where the store could not keep the message, and
        :class:`~sagents_nb.errors.ConfigurationError` for what is no message. What the run itself
        raises is raised by the handle's ``result()``.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!", "Bye!"])))
        >>> session.send("hi").result().text, session.send("bye").result().text
        ('Hello!', 'Bye!')
        """
        if overrides:
            if when == "steer":
                raise ConfigurationError(
                    f"A steered message is no run of its own, so it has no "
                    f"{', '.join(overrides)}; send it with when='queue'."
                )
            self.agent.overridden(overrides)  # raises for what cannot be
        messages = self._said(prompt)
        if instead_of is not None:
            return self._begun(self.actor.send_instead, messages, instead_of, overrides)
        return self._begun(self.actor.send, messages, when, overrides)

    @property
    def branches(self) -> list[BranchPoint]:
        """Where messages were said in several ways, each of which is kept with what followed.

        When a summary takes the place of such a message, its point is gone from the conversation.
        """
        return branch_points(self.state)

    @kinds.checked(position=kinds.whole(0), branch=kinds.whole(0))
    def switch_branch(self, position: int, branch: int) -> None:
        """Go on with another ``branch``, counted from 0, of the message at that ``position``.

        The one that is left is kept as it is, with its todos; files stay as they are. Raises
        :class:`~sagents_nb.errors.ConfigurationError` where there is none, and Busy while a run
        is active or waits.

        >>> import sagents_nb as sa
        >>> s = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!", "Salut !"])))
        >>> s.send("Say hello.").result().text
        'Hello!'
        >>> s.send("Say hello in French.", instead_of=0).result().text
        'Salut !'
        >>> s.branches
        [BranchPoint(position=0, current=1, count=2)]
        >>> s.switch_branch(0, 0)
        >>> s.messages[-1].text
        'Hello!'
        """
        self._act(self.actor.switch_branch, position, branch)

    @kinds.checked(before=kinds.or_none(kinds.whole(0)))
    def fork(
        self, id: str | None = None, *, before: int | None = None, filesystem: Any = None
    ) -> Session:
        """A conversation of its own that goes on from what was said here; this one stays as it is.

        It has the messages and the to-do list, all or what there was ``before`` the message of a
        person at that place of :attr:`messages`, and the agent, the store and the other options of
        this one. Its ``id`` is a new one by default. Files are copied as they are now, into
        ``filesystem`` if it is given; those that this session shares with others stay shared. What
        was approved here is not there.

        Raises :class:`~sagents_nb.errors.ConfigurationError` where no message of a person is, or
        the id is taken, Busy for all of a conversation whose run is active, and
        :class:`~sagents_nb.files.errors.FileError` for a file that cannot be copied.

        >>> import sagents_nb as sa
        >>> s = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!", "Bye!", "Salut !"])))
        >>> _ = s.send("Hi").result(), s.send("Bye").result()
        >>> other = s.fork(before=2)
        >>> other.send("In French?").result().text
        'Salut !'
        >>> len(s.messages), [m.text for m in other.messages]
        (4, ['Hi', 'Hello!', 'In French?', 'Salut !'])
        """
        if before is None and self.status == "running":
            raise Busy(f"Session {self.id!r} is running; stop the run first, or wait for it.")
        state, options = forked(self.state, before), self.options
        files: list[FileEntry] = []
        if filesystem is not None or self.files.scope == ("session", self.id):
            options = replace(options, filesystem=filesystem)
            files = [self.files.read(path) for path in self.files.list()]
        given = {name: getattr(options, name) for name in options.__struct_fields__}
        session = Session(self.agent, id, state, **given)
        try:
            for file in files:
                content = file.content or ""
                session.files.write(file.path, content, file.title, file.custom, file.mime_type)
        except BaseException:
            session.close("its files could not be copied")
            raise
        return session

    def _said(self, prompt: Prompt) -> list[Message]:
        messages = messages_of(prompt)
        if not messages:
            raise ConfigurationError("A session keeps its own state; send it text or messages.")
        check_unanswered(self.state, messages)
        preprocessor = self.options.message_preprocessor
        if preprocessor is None:
            return messages
        agent = self.agent
        ctx = MessageContext(agent.agent_id, self.id, agent.tool_context, self.state)
        return preprocessed(preprocessor, messages, ctx)

    @kinds.checked(message=kinds.ANYTHING)
    def steer(self, message: Prompt) -> None:
        """Give the active run a ``message`` before its next model call, or keep it for the next.

        It is what :meth:`send` takes. Raises :class:`~sagents_nb.errors.NotRunning` for a session
        that is closed, and :class:`~sagents_nb.errors.ConfigurationError` for what is no message.

        >>> import sagents_nb as sa
        >>> def look() -> str:
        ...     "Look out of the window."
        ...     session.steer("In Fahrenheit, please.")  # as a person would meanwhile
        ...     return "It has 20 degrees."
        >>> model = sa.ScriptedModel([sa.ToolCall("c1", "look", {}), "68 degrees."])
        >>> session = sa.Session(sa.Agent(model, tools=[look]))
        >>> session.send("How warm is it?").result().text
        '68 degrees.'
        >>> session.messages[-2].text
        'In Fahrenheit, please.'
        """
        self._act(self.actor.enqueue, self._said(message), "steer")

    @kinds.checked(message=kinds.ANYTHING)
    def follow_up(self, message: Prompt) -> None:
        """Give the active run a ``message`` to go on with when it would end, else keep it.

        It is what :meth:`send` takes, and the errors are those of :meth:`steer`.

        >>> import sagents_nb as sa
        >>> def look() -> str:
        ...     "Look out of the window."
        ...     session.follow_up("And tomorrow?")  # as a person would meanwhile
        ...     return "Sun."
        >>> model = sa.ScriptedModel([sa.ToolCall("c1", "look", {}), "It is sunny.", "It rains."])
        >>> session = sa.Session(sa.Agent(model, tools=[look]))
        >>> session.send("How is the weather?").result().text
        'It rains.'
        >>> [message.text for message in session.messages if message.text]
        ['How is the weather?', 'It is sunny.', 'And tomorrow?', 'It rains.']
        """
        self._act(self.actor.enqueue, self._said(message), "follow_up")

    @kinds.checked(message=kinds.ANYTHING)
    def wake(self, message: Prompt) -> Run | None:
        """Have the agent answer a ``message`` that no person waits for, such as news of a task.

        It begins a run, or one after the active run. Where people have to answer first, or a
        pause holds a turn open, it disturbs neither: it is kept for when that goes on, and None is
        given. The message is what :meth:`send` takes, and the errors are those of :meth:`send`.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["I will look at it."])))
        >>> session.wake("The report is there.").result().text
        'I will look at it.'
        """
        return self._act(self.actor.wake_agent, self._said(message))

    @kinds.checked(which=kinds.one_of("steering", "follow_up", "all"))
    def clear_queue(self, which: str = "all") -> None:
        """Forget what waits: ``which`` is "steering", "follow_up", or "all" with the runs behind.

        Those of runs that will not happen end as cancelled. The active run goes on.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([])))
        >>> session.steer("Be brief.")  # nothing runs: it waits for the next run
        >>> session.clear_queue()
        >>> session.queued
        []
        """
        self._act(self.actor.clear_queue, which)

    @kinds.checked
    def withdraw(self, message: Message) -> None:
        """Take back one ``message`` of :attr:`queued`: the very object, not one that is equal.

        A run that it would have begun ends as cancelled, with all it was sent with. Raises
        :class:`~sagents_nb.errors.NotRunning` if it does not wait any more.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([])))
        >>> session.steer("Be brief.")
        >>> session.withdraw(session.queued[0].message)
        >>> session.queued
        []
        """
        self._act(self.actor.withdraw, message)

    @property
    def queued(self) -> list[Queued]:
        """What waits: steered messages, follow-ups, and those that begin runs of their own."""
        return self.actor.inbox.queued

    def said(self) -> list[Message]:
        """All that was said here, in one moment: :attr:`messages`, what waits, and in between.

        What a run has just taken out of the queue is in neither of the two for a while.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> _ = session.send("hi").result()
        >>> session.steer("Be brief.")
        >>> [message.text for message in session.said()]
        ['hi', 'Hello!', 'Be brief.']
        """
        actor = self.actor

        def now() -> list[Message]:
            waiting = [queued.message for queued in actor.inbox.queued]
            return [*actor.state.messages, *actor.taken, *waiting]

        return runtime.call(now)

    @property
    def steering_mode(self) -> str:
        """How many steered messages one turn takes: "one-at-a-time" or "all"."""
        return self.actor.inbox.steering_mode

    @steering_mode.setter
    def steering_mode(self, mode: str) -> None:
        self.actor.inbox.steering_mode = mode

    @property
    def follow_up_mode(self) -> str:
        """How many follow-ups one turn takes: "one-at-a-time" or "all"."""
        return self.actor.inbox.follow_up_mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: str) -> None:
        self.actor.inbox.follow_up_mode = mode

    @property
    def steering_batch(self) -> str:
        """What a steered message does to calls of a batch that have not started.

        "skip" answers them as skipped, "wait" lets the batch finish.
        """
        return self.actor.inbox.steering_batch

    @steering_batch.setter
    def steering_batch(self, rule: str) -> None:
        if not _BATCH.fits(rule):
            raise ConfigurationError(f"steering_batch is {_BATCH.what}, not {kinds.shown(rule)}.")
        self.actor.inbox.steering_batch = rule

    @kinds.checked
    def retry(self, run_id: str = "") -> Run:
        """Run again without a new message; what it does depends on where the session stopped.

        Calls that people have answered, or that a pause left open, are gone on with. Else an
        answer that failed, was stopped, refused or cut is taken back, and the model asked again
        for the user or tool message before it; what is queued runs after that. Where all is
        answered, what is queued runs now. It is a run of its own, or goes on as the last one under
        the ``run_id`` of that, so that whoever follows that one sees the rest. Raises
        :class:`~sagents_nb.errors.NotRunning` where nothing is left to do or ``run_id`` is not the
        last run, and :class:`~sagents_nb.errors.Busy` while a run is active or waits for people.

        >>> import sagents_nb as sa
        >>> model = sa.ScriptedModel([sa.ModelError("It is down."), "Hello!"])
        >>> session = sa.Session(sa.Agent(model))
        >>> try:
        ...     session.send("hi").result()
        ... except sa.ModelError:
        ...     print(f"It is in the status {session.status!r}.")
        It is in the status 'error'.
        >>> session.retry().result().text
        'Hello!'
        """
        return self._begun(self.actor.retry, run_id)

    def proceed(self) -> Run:
        """Run without a new message, also where the last one is an answer.

        What :meth:`retry` would do it does, too. Else the model is asked with the conversation as
        it is, and with what a ``before_run`` hook adds to it: what happened meanwhile, say. A
        provider that wants a message of a person at the end, or any at all, refuses what has
        none, and the run fails. Raises :class:`~sagents_nb.errors.NotRunning` for a session that
        is closed, and :class:`~sagents_nb.errors.Busy` while a run is active or waits for people.

        >>> import sagents_nb as sa
        >>> class Mail(sa.Middleware):
        ...     def before_run(self, state, ctx):
        ...         return state.add_message(sa.Message.user("There are 3 new letters."))
        >>> model = sa.ScriptedModel(["I will read them."])
        >>> session = sa.Session(sa.Agent(model, middleware=[Mail()]))
        >>> session.proceed().result().text
        'I will read them.'
        """
        return self._begun(self.actor.proceed)

    # deciding

    @kinds.checked(decisions=kinds.ANYTHING)
    def resume(
        self, decisions: Decisions, by: str = "user", *, interrupt_id: str | None = None
    ) -> Run:
        """Answer everything that waits and go on.

        ``decisions`` are as for :meth:`Agent.resume`; ``by`` says who decided, for the record. The
        answer is to the interrupt of that ``interrupt_id``; without one, to the last that this
        thread or task was handed (by a result, an event of a run it iterates, or
        :attr:`interrupt`), and if it was handed none, to what is open. Raises InvalidDecision
        (still interrupted), StaleApproval if another one is open by now, or NotRunning.

        >>> import sagents_nb as sa
        >>> def book(city: str) -> str:
        ...     "Book a room."
        ...     return f"Booked in {city}."
        >>> model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"city": "Oslo"}), "Done."])
        >>> session = sa.Session(sa.Agent(model, tools=[book], interrupt_on={"book": True}))
        >>> _ = session.send("Book a room.").result()
        >>> session.resume(sa.Edit(arguments={"city": "Bergen"})).result().text
        'Done.'
        >>> session.messages[-2].tool_results[0].text
        'Booked in Bergen.'
        """
        return self._answered(interrupt_id, self.actor.resume, decisions, by)

    @kinds.checked
    def approve(self, *ids: str, by: str = "user", interrupt_id: str | None = None) -> Run | None:
        """Approve the waiting calls of these ``ids``, or all; the run goes on once all are decided.

        ``by`` and ``interrupt_id`` are as in :meth:`resume`, and so is what it raises. None where
        some calls still wait.

        >>> import sagents_nb as sa
        >>> def book(city: str) -> str:
        ...     "Book a room."
        ...     return f"Booked in {city}."
        >>> model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"city": "Oslo"}), "It is booked."])
        >>> agent = sa.Agent(model, tools=[book], interrupt_on={"book": True})
        >>> session = sa.Session(agent)
        >>> session.send("Book a room in Oslo.").result().status
        'interrupted'
        >>> session.approve().result().text
        'It is booked.'
        """
        return self._answered(interrupt_id, self.actor.decide_all, ids, Approve(), by)

    @kinds.checked
    def reject(
        self, *ids: str, message: str = "", by: str = "user", interrupt_id: str | None = None
    ) -> Run | None:
        """Reject the waiting calls of these ``ids``, or all; the run goes on once all are decided.

        ``by`` and ``interrupt_id`` are as in :meth:`resume`, and so is what it raises. ``message``
        is told to the model. None where some calls still wait.

        >>> import sagents_nb as sa
        >>> def book(city: str) -> str:
        ...     "Book a room."
        ...     return f"Booked in {city}."
        >>> model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"city": "Oslo"}), "I leave it."])
        >>> agent = sa.Agent(model, tools=[book], interrupt_on={"book": True})
        >>> session = sa.Session(agent)
        >>> session.send("Book a room in Oslo.").result().status
        'interrupted'
        >>> session.reject(message="Too late.").result().text
        'I leave it.'
        """
        return self._answered(interrupt_id, self.actor.decide_all, ids, Reject(message), by)

    def _answered(self, interrupt_id: str | None, take: Callable[..., R], *args: Any) -> R:
        """Have the actor take an answer to the interrupt that whoever calls means."""
        try:
            meant = self._handed.last() if interrupt_id is None else interrupt_id
            taken = self._begun(take, *args, meant)
        except StaleApproval:
            self._handed.hand(self.state.interrupt)  # whose calls the sentence names
            raise
        self._handed.hand(None)
        return taken

    @kinds.checked
    def hand(self, interrupt: Interrupt) -> None:
        """This thread or task is handed ``interrupt`` now: its next answer is meant for that."""
        self._handed.hand(interrupt)

    @kinds.checked(interrupt_id=kinds.ANYTHING, digests=kinds.of(Mapping[Any, Any]))
    def decide(
        self,
        decisions: Mapping[str, Any],
        *,
        interrupt_id: str,
        digests: Mapping[str, str],
        by: str,
    ) -> Run | None:
        """Decide some of the waiting calls, as somebody saw them.

        ``decisions`` are by tool call id, and ``by`` says who decided, for the record.
        ``interrupt_id`` and ``digests`` (by tool call id) are those of the shown request;
        anything that was answered or changed since raises
        :class:`~sagents_nb.errors.StaleApproval` and runs nothing.

        >>> import sagents_nb as sa
        >>> def book(city: str) -> str:
        ...     "Book a room."
        ...     return f"Booked in {city}."
        >>> model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"city": "Oslo"}), "It is booked."])
        >>> session = sa.Session(sa.Agent(model, tools=[book], interrupt_on=["book"]))
        >>> shown = session.send("Book a room in Oslo.").result().interrupt
        >>> digests = {request.tool_call_id: request.digest for request in shown.action_requests}
        >>> yes = {"c1": sa.Approve()}
        >>> session.decide(yes, interrupt_id=shown.id, digests=digests, by="Ada").result().text
        'It is booked.'
        """
        return self._begun(self.actor.decide_seen, decisions, interrupt_id, digests, by)

    @property
    def always_allowed(self) -> list[str]:
        """The tools that nobody is asked about any more, as somebody has always allowed them.

        ``Approve(always=True)`` does, for as long as this session lives. An ``interrupt_on`` that
        :meth:`replace` brings asks about its tools again.
        """
        return runtime.call(self.actor.always_allowed)

    @kinds.checked
    def ask_again(self, *tool_names: str) -> None:
        """Ask people again before these tools, or all, though somebody has always allowed them.

        ``tool_names`` are of those that :attr:`always_allowed` lists. Allowing them is what
        ``Approve(always=True)`` did.

        >>> import sagents_nb as sa
        >>> def book(city: str) -> str:
        ...     "Book a room."
        ...     return f"Booked in {city}."
        >>> model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"city": "Oslo"}), "It is booked."])
        >>> session = sa.Session(sa.Agent(model, tools=[book], interrupt_on=["book"]))
        >>> _ = session.send("Book a room in Oslo.").result()
        >>> _ = session.resume(sa.Approve(always=True)).result()
        >>> session.always_allowed
        ['book']
        >>> session.ask_again("book")
        >>> session.always_allowed
        []
        """
        self._act(self.actor.ask_again, tool_names or self.always_allowed)

    def dismiss(self) -> None:
        """Let go of a halt, that is an interrupt without requests.

        Any other interrupt needs an answer: then, or where nothing waits,
        :class:`~sagents_nb.errors.NotRunning` is raised.

        >>> import sagents_nb as sa
        >>> class Halt(sa.Middleware):
        ...     def before_run(self, state, ctx):
        ...         return sa.Interrupt("halt", message="Closed today.")
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([]), middleware=[Halt()]))
        >>> session.send("hi").result().status
        'interrupted'
        >>> session.dismiss()
        >>> session.status
        'idle'
        """
        self._act(self.actor.dismiss)

    @kinds.checked
    def notify_middleware(self, id: str, message: Any) -> None:
        """Tell a middleware a ``message``, between turns or now if nothing runs.

        The ``handle_message`` of the one with that ``id`` is called; an ``id`` is by default the
        name of the class.

        >>> import threading
        >>> import sagents_nb as sa
        >>> heard = threading.Event()
        >>> class Listener(sa.Middleware):
        ...     def handle_message(self, message, state, ctx):
        ...         if message == "ping":
        ...             heard.set()
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([]), middleware=[Listener()]))
        >>> session.notify_middleware("Listener", "ping")
        >>> heard.wait(60)
        True
        """
        runtime.post(self.actor.notify, id, message)

    # stopping

    @kinds.checked
    def pause(self, reason: str = "") -> None:
        """Ask the active run to stop after its next model call, before the tools.

        :meth:`retry` goes on there; ``metadata["pause_reason"]`` is the ``reason``. Where no run is
        active it does nothing.

        >>> import sagents_nb as sa
        >>> def look() -> str:
        ...     "Look out of the window."
        ...     session.pause("lunch")  # as a person would meanwhile
        ...     return "Sun."
        >>> call = sa.ToolCall("c1", "look", {})
        >>> model = sa.ScriptedModel([call, sa.ToolCall("c2", "look", {}), "It is sunny."])
        >>> session = sa.Session(sa.Agent(model, tools=[look]))
        >>> session.send("How is the weather?").result().status
        'paused'
        >>> session.state.metadata["pause_reason"]
        'lunch'
        """
        self._act(self.actor.pause, reason)

    def cancel(self) -> None:
        """Stop the active run, or deny what waits; finished messages stay. Else nothing.

        What is queued stays too: it runs with the next message or :meth:`retry`, unless
        :meth:`clear_queue` forgets it.

        >>> import sagents_nb as sa
        >>> def look() -> str:
        ...     "Look out of the window."
        ...     session.cancel()  # as a person would meanwhile
        ...     return "Sun."
        >>> model = sa.ScriptedModel([sa.ToolCall("c1", "look", {})])
        >>> session = sa.Session(sa.Agent(model, tools=[look]))
        >>> session.send("How is the weather?").result().status
        'cancelled'
        """
        self._act(self.actor.cancel)

    @kinds.checked
    def cancel_run(self, run: Run) -> None:
        """Stop that ``run``: the active one is cancelled, a queued one leaves the queue.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello! " * 99], delay=60)))
        >>> run = session.send("hi")
        >>> session.cancel_run(run)
        >>> run.result().status
        'cancelled'
        """
        self._act(self.actor.cancel_run, run)

    @kinds.checked
    def stop(self, run_id: str | None = None) -> None:
        """Stop the run ``run_id`` as Ctrl-C would, queued or active; without one the active.

        What waits for a decision is denied, and who waits for the run on the main thread is
        interrupted: see :meth:`~sagents_nb.session.run.Run.stop`. A run that has ended stays as
        it is.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello! " * 99], delay=60)))
        >>> run = session.send("hi")
        >>> session.stop(run.id)
        >>> run.result().status
        'cancelled'
        """
        active = self.current_run
        waiting = [] if run_id is None else self.actor.inbox.runs
        found = next((run for run in waiting if run.id == run_id), None)
        if found is None and active is not None and run_id in (None, active.id):
            found = active
        if found is not None:
            found.stop()
        elif run_id is None:
            self.cancel()  # what an earlier process left may wait for a decision

    @kinds.checked
    def reset(self, *, files: bool = False) -> None:
        """Stop a running run, then forget messages, todos, metadata and queues.

        The id, the agent and its options, the usage and those who watch stay, and so do the files,
        unless ``files``: then files in memory are removed, and those of mounts are listed anew
        after what waits was saved. Raises :class:`~sagents_nb.errors.ConfigurationError`
        where the files are not the session's own (``filesystem=``, or the agent's
        ``filesystem_scope``), and StorageFailed if some cannot be saved; nothing has changed then.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])), id="again")
        >>> _ = session.send("hi").result()
        >>> session.reset()
        >>> session.id, session.messages
        ('again', [])
        """
        self._refuse_inside("Resetting a session")
        if files:
            if self.files.scope != ("session", self.id) or self.options.filesystem is not None:
                raise ConfigurationError(
                    f"The files of session {self.id!r} are not its own, so reset(files=True) does "
                    "not touch them; call session.files.reset() if nobody else needs them."
                )
            self.files.flush()
        self._act(self.actor.reset)
        if files:
            self.files.reset()

    @kinds.checked
    def close(self, reason: str = "closed") -> None:
        """Stop and release everything; further calls raise NotRunning.

        Who listens is told the ``reason``.

        A stored conversation can be opened again, with what is queued. Raises
        :class:`~sagents_nb.errors.Busy` in a tool of the session itself, which would wait for its
        own end. ``with`` closes a session as well.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([])))
        >>> session.close()
        >>> session.status
        'closed'
        """
        self._refuse_inside("Closing a session")
        done = runtime.call(self.actor.close, reason)
        if _may_wait():
            done.result()

    def close_if_unneeded(self) -> bool:
        """Close, if this thread opened it and it is not at work; whether it is closed now.

        So a cell that opens a conversation can be run again.
        """
        if self._opened_on() is not threading.current_thread():
            return False
        if self.status in ("running", "closed"):
            return False
        logger.warning(
            "Conversation %r was open in this process already; that session is closed now, and "
            "the new one goes on with it.",
            self.id,
        )
        runtime.call(self.actor.close, "opened again").result()
        return True

    def transfer(self) -> None:
        """Leave a stored conversation to another process, which opens it; as :meth:`close`.

        >>> import sagents_nb as sa
        >>> store = sa.ConversationStore("sqlite://")  # in memory
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([])), id="example-transfer", store=store)
        >>> session.transfer()
        >>> session.status
        'closed'
        >>> store.close()
        """
        self._refuse_inside("Leaving a session to another process")
        done = runtime.call(self.actor.transfer)
        if _may_wait():
            done.result()

    def touch(self) -> None:
        """Somebody needs the session: it does not rest for another ``inactivity_timeout``.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([])), inactivity_timeout=3600)
        >>> session.touch()
        >>> session.status
        'idle'
        """
        runtime.post(self.actor.presence.touch)

    @kinds.checked(state=kinds.or_none(_STATE))
    def replace(self, agent: Agent | None = None, state: State | None = None) -> None:
        """Go on with another ``agent`` or another ``state``; what is not given stays.

        Raises :class:`~sagents_nb.errors.Busy` while a run is active.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> _ = session.send("hi").result()
        >>> session.replace(sa.Agent(sa.ScriptedModel(["Bye!"])))
        >>> session.send("bye").result().text, len(session.messages)
        ('Bye!', 4)
        """
        self._act(self.actor.replace, agent, state)

    # watching

    @kinds.checked(owner=kinds.or_none(_OWNER))
    def watch(self, viewer: str, owner: Any = None) -> Callable[[], None]:
        """Count ``viewer`` among those who watch, until the returned function is called.

        With an ``owner`` also until that object is gone: who dies does not watch for ever.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([])))
        >>> leave = session.watch("my dashboard")
        >>> session.viewers
        ['my dashboard']
        >>> leave()
        """
        leave = runtime.call(self.actor.presence.join, viewer)
        stop = functools.partial(runtime.post, leave)
        if owner is not None:
            weakref.finalize(owner, stop).atexit = False
        return stop

    def freeze(self) -> None:
        """Have everything that shows this session become static: panels in a notebook, say.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([])))
        >>> session.freeze()
        >>> [event.type for event in session.to_frame("events").itertuples()]
        ['frozen']
        """
        self.publish(Frozen())

    @kinds.checked
    def publish(self, event: Event) -> None:
        """Tell everybody who listens an ``event``; it gets the next ``seq`` and the ids.

        It may be one of a class of yours.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel([])))
        >>> class Step(sa.events.Event, frozen=True, tag="step"):
        ...     number: int
        >>> heard = []
        >>> stop = session.subscribe(lambda event: heard.append(event.type))
        >>> session.publish(Step(number=1))
        >>> "step" in heard
        True
        """
        runtime.call(self.actor.publish, event)

    @kinds.checked(since=kinds.or_none(kinds.whole(0)))
    def subscribe(
        self, callback: Callable[[AnyEvent], Any], since: int | None = None, *, debug: bool = False
    ) -> Callable[[], None]:
        """Call ``callback`` on the runtime loop for every further event; it must not block.

        An async one is awaited, one event after the other. With ``since`` it is first called
        for the kept events after that sequence number; without, who comes late is first told the
        status, with the reason "snapshot". With ``debug`` it hears
        :class:`~sagents_nb.events.Debug` events as well. Subscribing twice is one subscription.
        Returns the unsubscribe.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> types = []
        >>> stop = session.subscribe(lambda event: types.append(event.type))
        >>> _ = session.send("hi").result()
        >>> stop()
        >>> "agent_start" in types, "agent_end" in types
        (True, True)
        """
        runtime.call(self.actor.subscribe, callback, since, debug)
        return lambda: runtime.post(self.actor.log.unsubscribe, callback)

    @kinds.checked(since=kinds.whole(0))
    def events(self, since: int = 0) -> EventStream:
        """The events after ``since`` and all further ones, to iterate on any loop.

        >>> import asyncio
        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> async def types():
        ...     run = session.send("hi")
        ...     async for event in session.events():
        ...         if event.type == "agent_end":
        ...             return event.type, (await run).text
        >>> asyncio.run(types())
        ('agent_end', 'Hello!')
        """
        stream = EventStream()
        runtime.call(self.actor.follow, stream, since)
        return stream

    @kinds.checked(since=kinds.whole(0))
    def follow(self, stream: EventStream, run_id: str, since: int = 0) -> None:
        """Feed ``stream`` with the events of run ``run_id`` after ``since``, up to its next end."""
        runtime.call(self.actor.log.follow, stream, since, run_id)

    # taking it elsewhere

    def export_state(self) -> dict[str, Any]:
        """The state as JSON-ready data; see :meth:`State.export`.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> _ = session.send("hi").result()
        >>> exported = session.export_state()
        >>> [message["role"] for message in exported["state"]["messages"]]
        ['user', 'assistant']
        """
        return self.actor.exported()

    @kinds.checked
    def to_frame(self, kind: str = "messages") -> pandas.DataFrame:
        """The conversation as a frame.

        ``kind`` is "messages", "tool_calls", "todos", "usage", "events", "files" or
        "decisions"; :data:`sagents_nb.frames.COLUMNS` lists the columns of each.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> _ = session.send("hi").result()
        >>> session.to_frame()[["role", "text"]]
                role    text
        0       user      hi
        1  assistant  Hello!
        """
        from ..frames import frame_of

        return frame_of(kind, [self._conversation(kind == "files")])

    def to_openai(self) -> list[dict[str, Any]]:
        """The messages as OpenAI's chat completions have them, as JSON-ready dicts.

        They are those of the conversation, without the agent's own instructions; thoughts have no
        place there. Keys are masked as in :meth:`to_markdown`.

        >>> from sagents_nb import Agent, ScriptedModel, Session
        >>> with Session(Agent(ScriptedModel(["Hello!"]))) as session:
        ...     _ = session.send("hi").result()
        ...     session.to_openai()
        [{'role': 'user', 'content': 'hi'}, {'role': 'assistant', 'content': 'Hello!'}]
        """
        from ..models.providers.openai_chat import chat_messages
        from ..redaction import redacted_json, secrets_of_names, texts_in
        from ..serialization import encoded

        secrets = {*secrets_of_names({}), *texts_in(self.agent.tool_context)}
        data = encoded(chat_messages(self.messages))
        messages: list[dict[str, Any]] = json.loads(redacted_json(data, secrets))
        return messages

    @kinds.checked(path=_PATH)
    def to_markdown(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        files: bool = True,
        secrets: Iterable[str] = (),
    ) -> str:
        """The conversation as Markdown, also written to ``path``.

        What ran, what the model had asked for where a person changed it, who decided, results
        and thoughts are folded; at the end are the to-do list, the ``files`` (text of up to
        200 kB, images of up to 1 MB, of others the names), the tokens and what they cost.
        Whatever a model, a tool or a person wrote stays text: no HTML, no image from elsewhere,
        no link but to http, https and mailto. Keys are masked, and so are ``secrets``, the values
        of ``tool_context`` and what the environment holds under the name of a secret; what an
        image shows is not.

        Raises :class:`~sagents_nb.errors.ConfigurationError` where ``path`` cannot be written.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> _ = session.send("hi").result()
        >>> "Hello!" in session.to_markdown()
        True
        """
        from ..export import markdown_of, written

        return written(markdown_of(self._document(files, secrets)), path)

    @kinds.checked(path=_PATH)
    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        files: bool = True,
        secrets: Iterable[str] = (),
    ) -> str:
        """The conversation as one HTML page that looks like the panel, also written to ``path``.

        ``files`` and ``secrets`` are as for :meth:`to_markdown`. It has no script and asks nobody
        for anything. Needs the extra ``export``, else it raises
        :class:`~sagents_nb.errors.ConfigurationError`.

        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> _ = session.send("hi").result()
        >>> session.to_html()[:15]
        '<!DOCTYPE html>'
        """
        from ..export import html_of, written

        return written(html_of(self._document(files, secrets)), path)

    @kinds.checked(path=_PATH)
    def to_notebook(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        files: bool = True,
        secrets: Iterable[str] = (),
    ) -> str:
        """The conversation as a notebook, its JSON, also written to ``path``.

        ``files`` and ``secrets`` are as for :meth:`to_markdown`. Calls of ``run_python`` are code
        cells with what they put out. Needs the extra ``export``, else it raises
        :class:`~sagents_nb.errors.ConfigurationError`.

        >>> import json
        >>> import sagents_nb as sa
        >>> session = sa.Session(sa.Agent(sa.ScriptedModel(["Hello!"])))
        >>> _ = session.send("hi").result()
        >>> json.loads(session.to_notebook())["cells"][0]["cell_type"]
        'markdown'
        """
        from ..export import notebook_of, written

        return written(notebook_of(self._document(files, secrets)), path)

    def _document(self, files: bool, secrets: Iterable[str]) -> Document:
        from ..export import document_of
        from ..redaction import texts_in

        secrets = [*secrets]  # which nobody could look into, if they come once only
        if not all(isinstance(each, str) for each in secrets):
            raise ConfigurationError("secrets=… is a list, each of it text; write str(…) of each.")
        return document_of(
            self._conversation(files),
            usage=self.usage,
            model=self.agent.model.name,
            read=self.files.read,
            secrets=[*secrets, *texts_in(self.agent.tool_context)],
        )

    def _conversation(self, with_files: bool) -> Conversation:
        from ..frames import Conversation

        state = self.state
        log = self.actor.log
        events = runtime.call(lambda: [*log.before(state.messages), *log.kept()])
        if self.options.store is not None:
            kept = conversations_of(self.options.store, self.scope).history(self.id)
            events = [*stored_events(kept, state, events), *events]
        return Conversation(self.id, state, events, self.files.entries() if with_files else [])

    # how it is done

    def _act(self, function: Callable[..., T], *args: Any) -> T:
        """Have the actor do something, and wait until it is safe where that blocks nobody."""
        if self.options.store is not None:
            self.options.store.database.check_process()
        if self.actor.asleep:
            self._wake()
        call: Callable[[], tuple[T, Future[None] | None]]
        call = functools.partial(self.actor.acted, function, args)
        value, safe = runtime.call(call)
        if safe is not None and _may_wait():
            safe.result()
        return value

    def _begun(self, begin: Callable[..., R], *args: Any) -> R:
        """The run that the actor begins, or puts in line."""
        refuse_stopped()
        begun: list[Run] = []

        @functools.wraps(begin)
        def keep(*args: Any) -> R:
            active = self.current_run
            run = begin(*args)
            if run is not None and run is not active:  # to which a message was given
                begun.append(run)
            return run

        def cancel() -> None:
            for run in begun:
                run.cancel()

        try:
            run = self._act(keep, *args)
            refuse_stopped()
            return run
        except (KeyboardInterrupt, asyncio.CancelledError):  # nobody gets it
            runtime.post(cancel)
            raise

    def check_open(self) -> None:
        """Raise NotRunning if it is closed: StaleOwner if the conversation was taken over."""
        self.actor.check_open()

    def when_kept(self, tell: Callable[[BaseException | None], object]) -> None:
        """Have ``tell`` called once all that was done until now is kept, or with why it is not.

        For those who cannot wait for it, as on the runtime thread, where it is called, too; at
        once if nothing is to be written.
        """
        runtime.call(self.actor.when_kept, tell)

    def _refuse_inside(self, what: str) -> None:
        """Raise Busy in a tool of its own, which would end itself or wait for itself."""
        run = self.current_run
        if run is not None and (in_tool.get() is run or not runtime.here()):
            run.refuse_inside(what, "do it once the run has ended")

    def _wake(self) -> None:
        options = self.options
        with _waking:  # two who need it at once wake it once
            if self.actor.asleep:
                self._await_rest()
                opened = None
                if options.store is not None:
                    opened = open_conversation(options.store, options.scope, self.agent, self.id)
                runtime.call(self.actor.wake, opened)

    def _await_rest(self) -> None:
        """Return once a rest that has begun has let go of what it kept."""
        ended = self.actor.ended
        if not ended.done():
            runtime.refuse_here("Waking a session", "call it from another thread")
            ended.result()


# Those of this process, by the owner of their lease and their id.
_stored: WeakValueDictionary[tuple[str, str], Session] = WeakValueDictionary()

_turns: WeakValueDictionary[tuple[int, str], threading.Lock] = WeakValueDictionary()
_taking_turns = threading.Lock()


def _turn_to_open(store: Any, conversation_id: str) -> threading.Lock:
    """Of several threads that open one conversation, one does, and the others find what it made.

    Between its lease and its session there is a moment in which nobody is known to have it.
    """
    with _taking_turns:
        return _turns.setdefault((id(store), conversation_id), threading.Lock())


def _refuse_unknown(around: Iterable[str]) -> None:
    kinds.refuse_unknown("Session", around, ("id", "state", *SessionOptions.__struct_fields__))


def _in_folder(folder: str | os.PathLike[str], id: str) -> VirtualFilesystem:
    """The files of a session that are those of a folder on the disk, at once."""
    from ..files import DiskStorage, Mount, VirtualFilesystem

    mount = Mount(default=True, storage=DiskStorage(folder), debounce=0)
    return VirtualFilesystem(("session", id), [mount])


def _close_unneeded(owned: Owned, id: str) -> None:
    """Close the session of this process that has the conversation and is not needed any more.

    It is one that nobody has, or that this thread opened itself, as a cell that is run again
    has, and that is not at work. Raises ``owned`` for any other.
    """
    from ..store.database.thread import database_of, let_go_of_forgotten

    let_go_of_forgotten()
    database = database_of(owned.owner)
    if database is None:
        raise owned
    session = _stored.get((owned.owner, id))
    if session is None:
        database.run(lambda connection: None)  # what nobody has was let go before that
    elif not session.close_if_unneeded():
        raise owned


def new_unless_stored(agent: Agent, id: str, *, store: Any = None, **around: Any) -> Session | None:
    """A new session; None if the store has that conversation, also since another was faster."""
    _load()
    store = store_of(store)

    def is_there() -> bool:
        return is_stored(store, around.get("scope"), id)

    if is_there():
        return None
    try:
        return Session(agent, id=id, store=store, **around)
    except ConfigurationError:
        if not is_there():
            raise
        return None


def _may_wait() -> bool:
    """Whether the caller's thread runs no event loop that waiting would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False
