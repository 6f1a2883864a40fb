"""How a session comes to a conversation of a store, and what it begins with.

It makes a new one or opens one that is there; what it begins with is a state, or what a crash
left. After a crash a call has its result, or it started and nobody knows its end, or it has not
run; people have decided on none, some or all of what waited. Nothing runs by itself: what only
has to go on is "paused", what needs an answer is "interrupted".
"""

from __future__ import annotations

import inspect
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from ..agent import Agent
from ..errors import ConfigurationError, NotFound, pass_on
from ..interrupts import ActionRequest, Decision, Edit, Interrupt, decision_data
from ..loop.approvals import bound_anew, confirmed_result, join_interrupts
from ..loop.config import Unfinished
from ..loop.open_calls import doubtful_calls, given_up, in_doubt, open_calls
from ..messages import Message, ToolCall, ToolResult, Usage
from ..runtime.thread import runtime
from ..serialization import VERSION, StateSchema, deserialized, unreadable
from ..state import State, restore_state
from ..store.folding import Decided, Folded, QueuedMessage, fold
from ..store.persistence import AgentPersistence
from ..text import logger_of, said_by
from .journal import SessionJournal

if TYPE_CHECKING:
    from ..store import ConversationStore
    from ..store.journal import Journal
    from ..tools import Tool

logger = logger_of(__name__)

T = TypeVar("T")

# An approval is bound to an epoch. Each owner of a conversation has this many of its own.
_EPOCHS = 2**32

# Events are not kept, and yet their numbers ascend: each owner begins this far behind the one
# before. That is room for a month of pieces at a hundred a second, and for 2**25 owners below
# 2**53, up to where JavaScript counts.
_EVENTS = 2**28

LOST = "The sub-agent was at work when its process ended, so its work was lost."


class OpenedConversation(msgspec.Struct):
    """What a session begins with, who keeps it safe, and the first of its epochs.

    ``told`` is a number that no event of the conversation is over which was told before.
    """

    restored: RestoredSession
    journal: SessionJournal | None = None
    epoch: int = 1
    told: int = 0
    moved: bool = False  # it was in another process before


def create_conversation(
    store: Any, scope: Any, agent: Agent, id: str, state: State
) -> OpenedConversation:
    """A new conversation that begins with ``state``.

    Raises :class:`~sagents_nb.errors.ConfigurationError` if there is one of that id.
    """
    from ..store.journal import Journal

    runtime.refuse_here("Waiting for the store", "make the session in another thread")
    conversations = conversations_of(store, scope)
    rows = Journal.of_new(conversations.database, id, conversations.creation_of(id))
    try:
        return _begun(rows, state, agent, id)
    except BaseException as error:
        rows.release()
        if isinstance(error, ConfigurationError) and conversations.find_conversation(id):
            raise ConfigurationError(
                f"Conversation {id!r} is in the store already; go on with it by "
                "Session.open(id, agent=…, store=…), or choose another id."
            ) from None
        raise


def open_conversation(
    store: Any,
    scope: Any,
    agent: Agent,
    id: str,
    *,
    take_over: bool = False,
) -> OpenedConversation:
    """The conversation of that id, as its journal says; as it was saved if it has none yet.

    Raises :class:`~sagents_nb.errors.NotFound` for one that is not there or somebody else's,
    :class:`~sagents_nb.errors.Owned` for one that a living session has, and
    :class:`~sagents_nb.errors.ConfigurationError` for one that a newer version wrote.
    """
    from ..store.database import leases
    from ..store.journal import Journal

    conversations = conversations_of(store, scope)
    conversations.get_conversation(id)
    database = conversations.database
    before = database.run(lambda connection: leases.last(connection, database.tables, id))
    moved = before not in (None, here())
    rows, entries, problems = Journal.open(database, id, take_over=take_over)
    try:
        if not entries:
            _log(id, problems)  # there were entries, and all of them are lost
            return _begun(rows, _saved(conversations, agent, id), agent, id, problems)
        schema = agent.middleware_chain.state_schema
        journal = SessionJournal(rows, schema)
        epoch = rows.epoch * _EPOCHS
        folded = fold((entry.seq, entry.kind, entry.data) for entry in entries)
        stored, more = stored_state(folded, schema)
        restored = from_journal(folded, stored, problems + more, agent, id, epoch)
        _log(id, restored.problems)
        if folded.damaged:
            rows.set_aside(folded.damaged).result()
        if problems or folded.damaged or folded.version != VERSION:
            begin = lambda: journal.begin_anew(folded, stored, restored.usage)  # noqa: E731
        else:
            begin = lambda: journal.go_on(folded.rows, stored, folded.queued)  # noqa: E731
        _write(begin, journal, restored.state)
        return OpenedConversation(restored, journal, epoch, _told(rows), moved)
    except BaseException:
        rows.release()
        raise


def _begun(
    rows: Journal, given: State, agent: Agent, id: str, problems: Sequence[str] = ()
) -> OpenedConversation:
    """A journal that begins with a state; raises ConfigurationError for one it cannot keep."""
    for number, message in enumerate(given.messages, start=1):
        if why := unreadable(message, Message):
            raise ConfigurationError(f"Message {number} of the state cannot be kept: {why}.")
    journal = SessionJournal(rows, agent.middleware_chain.state_schema)
    epoch = rows.epoch * _EPOCHS
    first = from_state(bound_anew(given, id, epoch))
    first.problems = [*problems]
    _write(journal.begin, journal, first.state)
    return OpenedConversation(first, journal, epoch, _told(rows))


def _told(rows: Journal) -> int:
    """Up to where the owners before this one may have numbered their events."""
    return (rows.epoch - 1) * _EVENTS


def kept_state(
    persistence: AgentPersistence, scope: Any, agent: Agent, id: str
) -> tuple[State, list[str]]:
    """What somebody's persistence has of a conversation, and what was wrong with it.

    What cannot be read stops nobody: the conversation begins anew, and says so.
    """
    try:
        exported = persistence.load_state(scope, id)
        if inspect.isawaitable(exported):
            runtime.refuse_here("An async load_state", "make the session in another thread")
            exported = runtime.submit(_awaited(exported)).result()
        if exported is None:
            return State(), []
        return restore_state(exported, agent.middleware_chain.state_schema), []
    except BaseException as error:
        pass_on(error)
        problem = f"The kept state could not be read, so it begins anew: {said_by(error)}"
        logger.warning("Conversation %r: %s", id, problem)
        return State(), [problem]


def _log(id: str, problems: Iterable[str]) -> None:
    for problem in problems:
        logger.warning("Conversation %r: %s", id, problem)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def here() -> str:
    """This process, as events name it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def store_of(store: Any) -> Any:
    """``store`` itself, or the one at that path or URL: one for all sessions of this process.

    Raises :class:`~sagents_nb.errors.ConfigurationError` as
    :class:`~sagents_nb.store.ConversationStore` does.
    """
    if not isinstance(store, str | os.PathLike):
        return store
    from ..store import ConversationStore

    with _opening:
        place = _place_of(store)
        found = _stores.get(place)
        if found is None:
            found = ConversationStore(os.fspath(store))
            _stores[_place_of(store)] = found
        return found


_opening = threading.Lock()
_stores: WeakValueDictionary[tuple[str, int], ConversationStore] = WeakValueDictionary()


def _place_of(store: str | os.PathLike[str]) -> tuple[str, int]:
    """A URL, or a file with what tells it from one of that name that is made later."""
    if "://" in str(store):
        return str(store), 0
    path = Path(store).expanduser().absolute()
    try:
        return str(path), path.stat().st_ino
    except OSError:  # it is not there; or it cannot be, which opening it says
        return str(path), 0


def is_stored(store: Any, scope: Any, id: str) -> bool:
    """Whether there is a store, and a conversation of that id in it."""
    return store is not None and conversations_of(store, scope).find_conversation(id) is not None


def _write(begin: Callable[[], None], journal: SessionJournal, state: State) -> None:
    """Have the journal begin, and what the session begins with be safe.

    On the caller's thread, since nobody else has the journal yet: a long history would hold up
    the loop of all sessions.
    """
    begin()
    journal.note(state)
    future = journal.flush()
    if future is not None:
        future.result()


def conversations_of(store: Any, scope: Any) -> Any:
    """The conversations of whoever the session is for; ``store`` may be theirs already."""
    return store.scoped(scope) if hasattr(store, "scoped") else store


def _saved(conversations: Any, agent: Agent, id: str) -> State:
    try:
        exported = conversations.load_agent_state(id)
    except NotFound:
        return State()
    return restore_state(exported, agent.middleware_chain.state_schema)


class RestoredSession(msgspec.Struct, kw_only=True):
    """What a session begins with.

    ``decisions`` are those on ``state.interrupt`` that were made already; if they are all, the
    status is "paused" and a run takes them. ``said`` is what the results of calls that were decided
    keep of that. ``unfinished`` is known of the calls of the last
    message. ``problems`` are sentences about what could not be read, and ``given_up`` the results
    of calls whose questions only the process that has ended could have answered.
    """

    state: State
    status: str = "idle"
    error: str | None = None
    usage: Usage = Usage()
    run_id: str | None = None
    decisions: Mapping[str, Decision] = {}
    said: dict[str, dict[str, Any]] = {}
    unfinished: Unfinished | None = None
    queued: list[QueuedMessage] = []
    problems: list[str] = []
    given_up: list[ToolResult] = []


def from_state(state: State) -> RestoredSession:
    """Begin with a state of somebody's, without what only a living process could answer."""
    before = state
    if state.interrupt is None or not state.interrupt.restorable:
        state = state.clean_stale_interrupts()
    status = "paused" if open_calls(state) else "idle"
    if state.interrupt is not None:
        status = "interrupted"
    return RestoredSession(state=state, status=status, given_up=given_up(before, state))


def stored_state(folded: Folded, schema: StateSchema) -> tuple[State, list[str]]:
    """The state as it was written, its metadata as ``schema`` reads them; and all problems.

    What the schema cannot read stays as it was written.
    """
    metadata, problems = dict(folded.state.metadata), folded.problems
    for key in schema.keys() & metadata.keys():
        try:
            metadata.update(deserialized({key: metadata[key]}, schema))
        except ConfigurationError as error:
            problems.append(str(error))
    return replace(folded.state, metadata=metadata), problems


def from_journal(
    folded: Folded,
    state: State,
    problems: list[str],
    agent: Agent,
    session_id: str,
    epoch: int,
) -> RestoredSession:
    """Begin with what a journal says; ``state`` is what :func:`stored_state` gave."""
    if problems:
        state = _with_lost_calls(_mended(state), folded)
    restored = from_state(state)
    run = folded.run
    restored.queued, restored.problems = folded.queued, problems
    if run is not None:
        restored.run_id, restored.error, restored.usage = run.run_id, run.error, run.usage
        if run.status == "running":
            numbered = zip(folded.rows.numbers, state.messages, strict=False)
            for usage in (m.usage for n, m in numbered if n >= run.since):
                restored.usage += usage or Usage()
    _go_on(restored, folded, agent, session_id, epoch)
    return restored


def _go_on(
    restored: RestoredSession, folded: Folded, agent: Agent, session_id: str, epoch: int
) -> None:
    state = restored.state
    restored.said = {
        d.tool_call_id: decision_data(d.decision, d.by, d.at)
        for d in sorted(folded.decisions, key=lambda d: d.seq)
    }
    calls = {call.id: call for call in open_calls(state)}
    asked = {
        d.tool_call_id: (d.request, d.decision)
        for d in sorted(folded.decisions, key=lambda d: d.seq)
        if d.tool_call_id in calls and not d.in_doubt
    }
    results, doubtful = _ends(folded, calls, asked, agent, restored.problems)
    if calls:
        restored.unfinished = Unfinished(
            results=results, decisions=asked, doubtful=frozenset(call.id for call in doubtful)
        )
    interrupt = state.interrupt
    if doubtful:
        question = join_interrupts([in_doubt(doubtful)], session_id, epoch)
        restored.state, restored.status = state.with_interrupt(question), "interrupted"
    elif interrupt is None:
        restored.status = _status(restored, folded)
    elif interrupt.action_requests:
        said = _said(folded.decisions, interrupt)
        all_said = len(said) == len(interrupt.action_requests)
        gate = calls.keys() >= set(interrupt.tool_call_ids)  # the turn has no results yet
        if gate and (all_said or results or doubtful_calls(interrupt)):
            restored.state, restored.status = state.with_interrupt(None), "paused"
            return
        restored.decisions = said
        if all_said:
            restored.status = "paused"


def _ends(
    folded: Folded,
    calls: Mapping[str, ToolCall],
    asked: Mapping[str, tuple[ActionRequest, Decision]],
    agent: Agent,
    problems: Sequence[str],
) -> tuple[dict[str, ToolResult], list[ToolCall]]:
    """The results that are known, and the calls of which somebody has to say whether they ran."""
    results: dict[str, ToolResult] = {}
    doubtful: list[ToolCall] = []
    began = {row.tool_call_id: row for row in folded.calls}
    for id, call in calls.items():
        row, tool = began.get(id), agent.tools_by_name.get(call.name)
        if row is None:
            if problems and id not in asked and folded.state.interrupt is None:
                doubtful.append(call)  # it may be the row of its beginning that was lost
            continue
        if row.result is not None:
            results[id] = row.result
        elif _repeats(agent, call, tool):
            pass  # it is run again
        elif (word := _word(folded.decisions, id, row.seq)) is not None:
            result = confirmed_result(call, word)
            if result is not None:
                results[id] = result
        elif _delegates(agent, call):
            results[id] = ToolResult(id, call.name, LOST, is_error=True)
        else:
            decision = asked[id][1] if id in asked else None
            edited = decision.arguments if isinstance(decision, Edit) else call.arguments
            doubtful.append(replace(call, arguments=edited))
    return results, doubtful


def _word(decisions: list[Decided], id: str, since: int) -> Decision | None:
    """What somebody said of a call in doubt after it last started."""
    words = [d for d in decisions if d.tool_call_id == id and d.in_doubt and d.seq > since]
    return max(words, key=lambda d: d.seq).decision if words else None


def _said(decisions: list[Decided], interrupt: Interrupt) -> dict[str, Decision]:
    ids = set(interrupt.tool_call_ids)
    said = (d for d in decisions if d.interrupt_id == interrupt.id and d.tool_call_id in ids)
    return {d.tool_call_id: d.decision for d in said}


def _status(restored: RestoredSession, folded: Folded) -> str:
    """Whether a run was cut off, failed before an answer, or stopped by a pause.

    Nobody has to be asked. What a person cancelled does not go on.
    """
    messages, run = restored.state.messages, folded.run
    last = messages[-1] if messages else Message("assistant")
    if open_calls(restored.state):
        return "paused"
    # "interrupted": by a question of a sub-agent, which is gone with its process.
    if run is None or run.status not in ("running", "paused", "interrupted", "error"):
        return "idle"
    if last.role in ("user", "tool") or last.error or last.stop_reason == "pause_turn":
        return "paused"
    left = run.status != "error" and (folded.queued or run.status == "paused")
    return "paused" if left else "idle"


def _repeats(agent: Agent, call: ToolCall, tool: Tool | None) -> bool:
    """Whether it may be run again; of a tool that is added to runs its middleware knows that."""
    if tool is not None:
        return tool.idempotent
    return any(item.repeats(call) for item in agent.middleware)


def _delegates(agent: Agent, call: ToolCall) -> bool:
    from ..middleware import SubAgents

    return call.name == "task" and any(isinstance(m, SubAgents) for m in agent.middleware)


def _with_lost_calls(state: State, folded: Folded) -> State:
    """With a message in the place of one that was lost after its calls had begun.

    Else the model is asked again, and may have done again what was done.
    """
    if open_calls(state) or not folded.calls:
        return state
    calls = [
        ToolCall(row.tool_call_id, row.name) for row in sorted(folded.calls, key=lambda c: c.seq)
    ]
    text = "(This message was damaged. It is only known that these calls had begun.)"
    return state.add_message(Message.assistant(text, calls))


def _mended(state: State) -> State:
    """Without the gaps that lost rows leave: calls without results, questions without calls."""
    from ..middleware.patch_tool_calls import patched

    messages = state.messages[:]
    last = [messages.pop()] if open_calls(state) else []
    state = state.set_messages([*patched(messages), *last])
    interrupt, calls = state.interrupt, {call.id for call in open_calls(state)}
    if messages and not last:
        calls |= {r.tool_call_id for r in state.messages[-1].tool_results if r.is_interrupt}
    if interrupt is not None and not calls.issuperset(interrupt.tool_call_ids):
        return state.with_interrupt(None)
    return state
