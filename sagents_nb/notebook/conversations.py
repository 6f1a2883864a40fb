"""Which conversation the cells of this notebook talk to, and where they are kept: ``.sagents/``."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote
from weakref import WeakKeyDictionary

from IPython.core.error import UsageError

from .. import kinds
from ..agent import Agent
from ..errors import (
    ConfigurationError,
    NotRunning,
    Owned,
    SagentsError,
    StaleOwner,
    StoreError,
)
from ..files import VirtualFilesystem
from ..middleware.human_in_the_loop import is_glob
from ..models.base import ChatModel
from ..models.resolve import default_model, resolve_model
from ..serialization import to_data
from ..session import Session, sessions
from ..sql import path_of
from ..store.own_folder import OWN_FOLDER, own_store
from ..tools import Tool, as_tool
from .cell_options import names
from .cells import unattended
from .tools import NotebookTools

TAKE_OVER = "--take-over"
YES = "--yes"

_AGENT = "agent"  # in the metadata of a conversation: what is kept of who answers


class _Kept(NamedTuple):
    """What is kept of who answers: gates by tool, names of own tools, and if it has ours too."""

    gates: dict[str, Any]
    tools: list[str]
    sees_notebook: bool


class NotebookStorage:
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
                self._store = _open_store()
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
        place = OWN_FOLDER / "files" / quote(id, safe=" ")
        mount = Mount(default=True, storage=DiskStorage(place))
        files = VirtualFilesystem(("session", id), [mount])
        return {"store": self.store, "filesystem": files}

    def tell_of_waiting(self) -> None:
        """Say so where the conversation that went on last waits for an answer, and is not open.

        Who has restarted the kernel may have forgotten that it does.
        """
        if self.store is None:
            return
        with suppress(SagentsError):  # one that cannot be read keeps nobody from beginning another
            latest = next(iter(self.store.list_conversations(1)), None)
            if latest is None or latest.id in self.store.open_conversations():
                return
            if self.store.load_interrupt(latest.id) is not None:
                load = f"%agent load {latest.id}"
                print(f"{latest.id!r} still waits for an answer: {load} goes on with it.")

    def kept(self, id: str) -> _Kept:
        """What is kept of that conversation's agent."""
        found = None if self.store is None else self.store.find_conversation(id)
        return _kept({} if found is None else found.metadata)

    def keep(self, id: str, agent: Agent) -> None:
        """Have what asks before it runs ask also in the kernel that comes after this one."""
        found = None if self.store is None else self.store.find_conversation(id)
        if found is None:
            return
        names = {tool.name for tool in agent.tools}
        gates = {
            name: gate for name, gate in _kept(found.metadata).gates.items() if name not in names
        }
        gates |= {name: to_data(gate) for name, gate in agent.interrupt_on.items() if gate}
        data = {
            "gates": gates,
            "tools": [tool.name for tool in agent.own_tools],
            "sees_notebook": _sees_notebook(agent),
        }
        if found.metadata.get(_AGENT) != data:
            self.store.update_conversation(id, metadata={**found.metadata, _AGENT: data})


def _kept(metadata: dict[str, Any]) -> _Kept:
    data = metadata.get(_AGENT)
    kept = data if isinstance(data, dict) else {}
    gates, tools = kept.get("gates"), kept.get("tools")
    return _Kept(
        gates if isinstance(gates, dict) else {},
        tools if isinstance(tools, list) else [],
        kept.get("sees_notebook") is True,
    )


def _sees_notebook(agent: Agent) -> bool:
    return any(isinstance(each, NotebookTools) for each in agent.middleware)


def _open_store() -> Any:
    from ..store import ConversationStore

    return ConversationStore(own_store())


_of_shells: WeakKeyDictionary[Any, Conversations] = WeakKeyDictionary()


def conversations_of(shell: Any) -> Conversations | None:
    """Those of that shell; None where the extension was not loaded."""
    return None if shell is None else _of_shells.get(shell)


def _decided_as(session: Session | None) -> dict[str, Any]:
    """The option of a session that goes on from this one: who decides where nobody can click.

    A list of decisions is one list for both: each was meant for one call of this notebook, and
    none is taken twice.
    """
    return {} if session is None else {"headless": session.options.headless}


class Conversations:
    """The current session of one notebook; made by its first ``%%agent``."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.current: Session | None = None
        self.storage = NotebookStorage(shell)
        self._sessions: dict[Agent, Session] = {}  # those that agents were used in
        self._count = 0
        self._model_announced = False
        self._chosen: ChatModel | None = None  # before there is a conversation
        self.on_change: Callable[[Session], None] | None = None
        """Is told of each conversation that cells, or a fork, come to."""
        _of_shells[shell] = self

    def use(self, name: str) -> tuple[Session, bool]:
        """Go on with an Agent or a Session that is a variable of the notebook.

        An agent goes on with the conversation that it was used in last, if that is not closed;
        also whether it is a new one.
        """
        value, is_new = self._variable(name), False
        if isinstance(value, Agent):
            agent, value = value, self._sessions.get(value)
            if value is None or value.status == "closed":
                value, is_new = self._start(agent), True
                self._sessions[agent] = value
        if not name:
            raise UsageError(
                "%agent use needs the name of a variable that is an Agent or a Session."
            )
        if not isinstance(value, Session):
            raise UsageError(
                f"No variable {name!r} of this notebook is an Agent or a Session; make one first."
            )
        sessions.add(value)  # by its id it is found again, also when another is current
        self.current = value
        self._keep(value)
        return value, is_new

    def _keep(self, session: Session) -> None:
        self.storage.keep(session.id, session.agent)
        self._changed(session)

    def _changed(self, session: Session) -> None:
        if self.on_change is not None:
            self.on_change(session)

    def session_for(self, options: argparse.Namespace) -> Session:
        """The session that a ``%%agent`` line asks for, with its changes applied."""
        session, name = self.current, options.name
        if name and options.new and self._is_taken(name):
            raise UsageError(
                f"There is a conversation {name!r} already; leave out --new to go on with it, or "
                "choose another name."
            )
        if session is not None and not (name or options.new):
            try:
                session.check_open()
            except StaleOwner:  # another has it now, and nobody means to begin a new one
                raise
            except NotRunning:
                pass
        if session is None or session.status == "closed" or options.new:
            session = self._start(self.agent(), name, **_decided_as(session))
        elif name and session.id != name:
            session = self._start(session.agent, name, **_decided_as(session))
        agent = self._agent_with(session, options)
        if agent is not session.agent:
            session.replace(agent=agent)
        if options.approve:  # the newer word counts
            session.ask_again(*names(options.approve))
        self.current = session
        self._keep(session)
        return session

    def lost(self, error: StaleOwner) -> UsageError:
        """What to say of the current conversation, which another has now, and what to do."""
        session, store = self.current, self.storage.store
        back = ""
        if session is not None and store is not None and store.find_conversation(session.id):
            back = f"%agent load {session.id} {TAKE_OVER} takes it back, and "
        return UsageError(f"{error} {back}%%agent --new begins another one.")

    def load(self, id: str, take_over: bool = False) -> Session:
        """Go on with a conversation that is live, or kept, or with ``take_over`` open elsewhere."""
        if not self._is_taken(id):
            raise UsageError(f"There is no conversation {id!r}; %agent list shows what there is.")
        self.current = self._start(self.agent(), id, take_over)
        self._changed(self.current)
        return self.current

    def fork(self, session: Session, before: int | None) -> Session:
        """What was said in a session, or ``before`` a message, as a conversation of its own.

        It is kept where the session is; ``load`` goes on with it.
        """
        number = itertools.count(2)
        name = f"{session.id}-fork"
        while self._is_taken(name):
            name = f"{session.id}-fork-{next(number)}"
        kept = session.options.store is not None and session.options.store is self.storage.store
        own = kept and session.files.scope == ("session", session.id)
        files = self.storage.options(name)["filesystem"] if own else None
        fork = session.fork(name, before=before, filesystem=files)
        sessions.add(fork)
        self._keep(fork)
        return fork

    def save(self) -> str:
        """See that the current conversation is kept; where it is."""
        session, store = self.current, self.storage.store
        if session is None:
            raise UsageError("There is no conversation yet; start one with an %%agent cell.")
        if store is None:
            raise UsageError("Nothing is kept here; session.export_state() gives it as data.")
        if session.options.store is None:
            if store.find_conversation(session.id) is None:
                store.create_conversation(id=session.id)
            store.save_agent_state(session.id, session.export_state())
        session.files.flush()
        path = path_of(store.database.url)
        if path is not None and not path.exists():
            raise UsageError(
                f"{path} is not there any more, so nothing is kept: restart the kernel to begin a "
                "new one; session.export_state() gives this conversation as data."
            )
        if isinstance(session.error, StoreError):
            raise UsageError(f"The newest of {session.id!r} is not kept: {session.error}")
        return f"{session.id!r} is in {store.database.name}; %agent load {session.id} opens it."

    def agent(self) -> Agent:
        """Who answers in a new conversation: who answers now, else the default agent."""
        return self._notebook_agent() if self.current is None else self.current.agent

    def _notebook_agent(self) -> Agent:
        agent = Agent(self._chosen, middleware=[NotebookTools(self.shell)], name="Agent")
        if self._chosen is None and not self._model_announced:
            self._model_announced = True
            because = agent.model.chosen_because
            print(f"{because} Choose another with %agent model anthropic:NAME.")
        return agent

    def choose_model(self, name: str) -> ChatModel:
        """Have that model answer from now on, and in the first conversation; "" leaves it."""
        if self.current is not None:
            if name:
                agent = self.current.agent.with_(model=self.model(name))
                self.current.replace(agent=agent)
            return self.current.agent.model
        if name:
            self._chosen = resolve_model(self.model(name))
        return self._chosen or default_model()

    def model(self, name: str) -> ChatModel | str:
        """The model that is a variable of the notebook, else what names one, as it is."""
        value = self._variable(name)
        return value if isinstance(value, ChatModel) else name

    def functions(self, wanted: list[str]) -> list[Tool]:
        """These functions of the notebook as tools; raises UsageError for what is none."""
        for name in wanted:
            if name not in self.shell.user_ns:
                raise UsageError(
                    f"There is no function {name!r} in this notebook; define it first."
                )
        return [as_tool(self.shell.user_ns[name]) for name in wanted]

    def with_tools(self, agent: Agent, wanted: list[str], id: str) -> Agent:
        """The agent with these functions of the notebook too, and the gates that ``id`` had."""
        tools = {tool.name: tool for tool in [*agent.own_tools, *self.functions(wanted)]}
        agent = agent.with_(tools=list(tools.values()))
        there = {tool.name for tool in agent.tools}
        gates = {name: gate for name, gate in self.storage.kept(id).gates.items() if name in there}
        gated = {**agent.interrupt_on, **gates}
        return agent if gated == agent.interrupt_on else agent.with_(interrupt_on=gated)

    def _as_kept(self, agent: Agent, id: str) -> tuple[Agent, list[str]]:
        """``agent`` with the tools and the gates of that conversation, and what is to be said.

        One that had the tools of the notebook goes on with the notebook's own agent where
        ``agent`` has none of them: of data that could answer nothing.
        """
        gates, tools, sees_notebook = self.storage.kept(id)
        said = []
        if sees_notebook and not _sees_notebook(agent):
            agent = self._notebook_agent()
            said.append(
                f"{id!r} goes on with the notebook's own agent ({agent.model.name}), as before: "
                "the one that answered here last has no tools that see the notebook."
            )
        own = {tool.name for tool in agent.own_tools}
        here = [name for name in tools if name not in own and callable(self._variable(name))]
        agent = self.with_tools(agent, here, id) if gates or here else agent
        if gone := [name for name in tools if name not in {tool.name for tool in agent.tools}]:
            said.append(
                f"{id!r} had tools that this notebook does not have by now: {', '.join(gone)}. "
                f"Define them, and add them with %agent tools add {' '.join(gone)}."
            )
        return agent, said

    def _variable(self, name: Any) -> Any:
        return self.shell.user_ns.get(name)

    def _start(
        self, agent: Agent, name: str | None = None, take_over: bool = False, **options: Any
    ) -> Session:
        """The conversation of that name, or a new one of these options with a name of its own."""
        if name is None and self.current is None:
            self.storage.tell_of_waiting()
        while name is None:
            self._count += 1
            if self._claims(f"notebook-{self._count}"):
                name = f"notebook-{self._count}"
        if name in sessions.list():
            return sessions.get(name)
        options = {**self.storage.options(name), **options}
        if agent.filesystem_scope is not None:
            options.pop("filesystem", None)
        agent, said = self._as_kept(agent, name)
        # It stays as long as its kernel: people come back to a notebook after a while.
        try:
            session = sessions.start(
                agent, name, inactivity_timeout=None, take_over=take_over, **options
            )
        except Owned as owned:
            where = str(owned).rpartition("; ")[0]
            raise UsageError(
                f"{where}; close it there, or take it over with %agent load {name} {TAKE_OVER}."
            ) from None
        for sentence in said:
            print(sentence)
        return session

    def _claims(self, name: str) -> bool:
        """Whether a new conversation may have that name; in the store it has it from now on.

        Notebooks of one directory have one store, and look for a name at the same time.
        """
        store = self.storage.store
        if self._is_taken(name):
            return False
        if store is not None:
            try:
                store.create_conversation(id=name)
            except ConfigurationError:
                return False
        return True

    def _is_taken(self, name: str) -> bool:
        """Whether there is a conversation of that name, live or kept."""
        store = self.storage.store
        return name in sessions.list() or (
            store is not None and store.find_conversation(name) is not None
        )

    def _agent_with(self, session: Session, options: argparse.Namespace) -> Agent:
        agent = session.agent
        if options.tools:
            agent = self.with_tools(agent, names(options.tools), session.id)
        changes: dict[str, Any] = {}
        if options.model:
            changes["model"] = self.model(options.model)
        asked = names(options.approve)
        known = {tool.name for tool in agent.tools}
        if unknown := [name for name in asked if name not in known and not is_glob(name)]:
            near = kinds.nearest(unknown[0], known)
            hint = f"did you mean {near}?" if near else "%agent tools lists what there is."
            raise UsageError(f"%%agent --approve: there is no tool {unknown[0]!r}; {hint}")
        gated = {**agent.interrupt_on, **dict.fromkeys(asked, True)}
        if gated != agent.interrupt_on:
            changes["interrupt_on"] = gated
        return agent.with_(**changes) if changes else agent
