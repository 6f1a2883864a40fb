"""A live conversation: one actor on the runtime loop, usable from any thread or loop.

Public methods hand their work to the runtime loop and wait for the answer, so there is one
writer and no lock. Reading needs neither: what is read are immutable snapshots.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from ..agent import Agent
from ..errors import ConfigurationError
from ..interrupts import Approve, Decisions, Reject
from ..loop.execution import Prompt, starting_point
from ..messages import Message
from ..runtime.thread import runtime
from ..state import State, restore_state
from .actor import Actor
from .opening import Held, conversations_of, created, from_state, opened
from .options import MessageContext, Preprocessor, Surroundings, preprocessed
from .run import Run
from .watched import Watched

if TYPE_CHECKING:
    pass

T = TypeVar("T")

_waking = threading.Lock()


class Session(Watched):
    """A conversation with ``agent`` that goes on over many runs.

    ``id`` names it; ``files`` is its virtual filesystem; ``around`` are the fields of
    :class:`~sagents_nb.session.options.Surroundings`, such as ``scope`` and ``headless``.
    Every public method may be called from any thread and any loop.

    With a ``store`` it is a new conversation there, of the ``scope``'s owner, and loses nothing:
    what :meth:`send`, a decision or any other change said is committed when the call returns.
    Where waiting would block an event loop, the call returns at once and the run starts after
    the commit. Such a call raises :class:`~sagents_nb.errors.StoreError` if it could not be
    written; it is written first the next time, but for decisions, which were not made then.
    :meth:`open` goes on with the conversation, also after a crash.

    A session that nobody used or watched for ``inactivity_timeout`` seconds rests: it is "closed"
    and lets the conversation go, so that another process may open it. The next message, decision
    or other call wakes it; only :meth:`close` is for good.
    """

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
        headless: Any = "deny",
        **around: Any,
    ) -> None:
        _check_agent(agent)
        surroundings = Surroundings(
            store=store,
            scope=scope,
            filesystem=filesystem,
            inactivity_timeout=inactivity_timeout,
            message_preprocessor=message_preprocessor,
            headless=headless,
            **around,
        )
        id = id or f"session-{uuid.uuid4().hex[:12]}"
        if store is None:
            held = Held(from_state(state or State()))
        else:
            held = created(store, scope, agent, id, state or State())
        self._begin(agent, id, held, surroundings)

    def _begin(self, agent: Agent, id: str, held: Held, surroundings: Surroundings) -> None:
        if surroundings.store is not None and surroundings.display_persistence is None:
            kept = conversations_of(surroundings.store, surroundings.scope)
            surroundings = replace(surroundings, display_persistence=kept)
        self.id = id
        self.surroundings = surroundings
        self.headless = surroundings.headless
        self.files = surroundings.filesystem
        if self.files is None:
            from ..files import FileSystem, open_filesystem

            shared = agent.filesystem_scope
            # Without a scope to share, the files are this session's and end with it.
            self.files = open_filesystem(shared) if shared else FileSystem(("session", id))
        self._actor = Actor(self, agent, held)
        runtime.call(self._actor.begin)

    @classmethod
    def open(
        cls,
        id: str,
        *,
        agent: Agent,
        store: Any,
        take_over: bool = False,
        **around: Any,
    ) -> Session:
        """Go on with a conversation of a store, wherever it was left, also by a crash.

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
        version wrote it. ``info()["problems"]`` tells what could not be read.
        """
        _check_agent(agent)
        surroundings = Surroundings(store=store, **around)
        held = opened(store, surroundings.scope, agent, id, take_over=take_over)
        session = cls.__new__(cls)
        session._begin(agent, id, held, surroundings)
        return session

    def _act(self, function: Callable[..., T], *args: Any) -> T:
        """Have the actor do something, and wait until it is safe where that blocks nobody."""
        if self._actor.asleep:
            self._wake()
        call: Callable[[], tuple[T, Future[None] | None]]
        call = functools.partial(self._actor.acted, function, args)
        value, safe = runtime.call(call)
        if safe is not None and _may_wait():
            safe.result()
        return value

    def _wake(self) -> None:
        around = self.surroundings
        with _waking:  # two who need it at once wake it once
            if self._actor.asleep:
                self._await_rest()
                held = None
                if around.store is not None:
                    held = opened(around.store, around.scope, self.agent, self.id)
                runtime.call(self._actor.wake, held)

    def _await_rest(self) -> None:
        """Return once a rest that has begun has let go of what it kept."""
        ended = self._actor.ended
        if not ended.done():
            runtime.refuse_here("Waking a session", "call it from another thread")
            ended.result()

    # talking

    def send(self, prompt: Prompt, when: str = "queue") -> Run:
        """Start a run with a message.

        While a run is active, ``when`` decides: "queue" runs it afterwards, "steer" gives it
        to the active run before its next model call, "raise" raises
        :class:`~sagents_nb.errors.Busy`. A message to an interrupted session answers the
        waiting calls as cancelled and goes on with the message.
        """
        if when not in ("queue", "steer", "raise"):
            raise ConfigurationError(f"when is 'queue', 'steer' or 'raise', not {when!r}.")
        return self._act(self._actor.send, self._said(prompt), when)

    def _said(self, prompt: Prompt) -> list[Message]:
        _, messages = starting_point(prompt, None)
        if not messages:
            raise ConfigurationError("A session keeps its own state; send it text or messages.")
        preprocessor = self.surroundings.message_preprocessor
        if preprocessor is None:
            return messages
        agent = self.agent
        ctx = MessageContext(agent.agent_id, self.id, agent.tool_context, self.state)
        return preprocessed(preprocessor, messages, ctx)

    def steer(self, message: Prompt) -> None:
        """Give the active run a message before its next model call, or keep it for the next."""
        self._act(self._actor.enqueue, self._said(message), "steer")

    def follow_up(self, message: Prompt) -> None:
        """Give the active run a message to go on with when it would end."""
        self._act(self._actor.enqueue, self._said(message), "follow_up")

    @property
    def steering_mode(self) -> str:
        """How many steered messages one turn takes: "one-at-a-time" or "all"."""
        return self._actor.queues.steering_mode

    @steering_mode.setter
    def steering_mode(self, mode: str) -> None:
        self._actor.queues.steering_mode = mode

    @property
    def follow_up_mode(self) -> str:
        """How many follow-ups one turn takes: "one-at-a-time" or "all"."""
        return self._actor.queues.follow_up_mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: str) -> None:
        self._actor.queues.follow_up_mode = mode

    @property
    def steering_batch(self) -> str:
        """What a steered message does to calls of a batch that have not started.

        "skip" answers them as skipped, "wait" lets the batch finish.
        """
        return self._actor.queues.steering_batch

    @steering_batch.setter
    def steering_batch(self, rule: str) -> None:
        if rule not in ("skip", "wait"):
            raise ConfigurationError(f"steering_batch is 'skip' or 'wait', not {rule!r}.")
        self._actor.queues.steering_batch = rule

    def retry(self) -> Run:
        """Run again from the last user or tool message, or with what is queued, or go on."""
        return self._act(self._actor.retry)

    # deciding

    def resume(self, decisions: Decisions, by: str = "user") -> Run:
        """Answer everything that waits and go on.

        Raises InvalidDecision (still interrupted), StaleApproval or NotRunning.
        """
        return self._act(self._actor.resume, decisions, by)

    def approve(self, *ids: str, by: str = "user") -> Run | None:
        """Approve these waiting calls, or all; the run goes on once all are decided."""
        return self._act(self._actor.decide_all, ids, Approve(), by)

    def reject(self, *ids: str, message: str = "", by: str = "user") -> Run | None:
        """Reject these waiting calls, or all; the run goes on once all are decided."""
        return self._act(self._actor.decide_all, ids, Reject(message), by)

    def decide(
        self,
        decisions: Mapping[str, Any],
        *,
        interrupt_id: str,
        digests: Mapping[str, str],
        by: str,
    ) -> Run | None:
        """Decide some of the waiting calls, as somebody saw them.

        ``interrupt_id`` and ``digests`` (by tool call id) are those of the shown request;
        anything that was answered or changed since raises
        :class:`~sagents_nb.errors.StaleApproval` and runs nothing.
        """
        return self._act(self._actor.decide_seen, decisions, interrupt_id, digests, by)

    def dismiss(self) -> None:
        """Let go of a halt; any other interrupt needs an answer (NotRunning)."""
        self._act(self._actor.dismiss)

    def notify_middleware(self, id: str, message: Any) -> None:
        """Call that middleware's ``handle_message`` between turns, or now if nothing runs."""
        runtime.post(self._actor.notify, id, message)

    # stopping

    def pause(self, reason: str = "") -> None:
        """Ask the active run to stop after its next model call, before the tools.

        :meth:`retry` goes on there; ``metadata["pause_reason"]`` is the ``reason``.
        """
        self._act(self._actor.pause, reason)

    def cancel(self) -> None:
        """Stop the active run, or deny what waits; finished messages stay. Else nothing."""
        self._act(self._actor.cancel)

    def cancel_run(self, run: Run) -> None:
        """Stop that run: the active one is cancelled, a queued one leaves the queue."""
        self._act(self._actor.cancel_run, run)

    def reset(self) -> None:
        """Stop a running run, then forget messages, todos, metadata and queues."""
        self._act(self._actor.reset)

    def close(self, reason: str = "closed") -> None:
        """Stop and release everything; further calls raise NotRunning.

        A stored conversation can be opened again, with what is queued.
        """
        done = runtime.call(self._actor.close, reason)
        if _may_wait():
            done.result()

    def transfer(self) -> None:
        """Leave a stored conversation to another process, which opens it; as :meth:`close`."""
        done = runtime.call(self._actor.transfer)
        if _may_wait():
            done.result()

    def touch(self) -> None:
        """Somebody needs the session: it does not rest for another ``inactivity_timeout``."""
        runtime.post(self._actor.attendance.touch)

    def replace(self, agent: Agent | None = None, state: State | None = None) -> None:
        """Go on with another agent or another state; raises Busy while a run is active."""
        self._act(self._actor.replace, agent, state)

    @classmethod
    def restore(cls, exported: Mapping[str, Any], agent: Agent, id: str | None = None) -> Session:
        """A session that goes on from an exported state.

        What waited for people still waits, unless it was a sub-agent: its call is answered
        as lost, and :meth:`retry` or a message goes on.
        """
        return cls(agent, id=id, state=restore_state(exported, agent._chain.state_schema))


def _check_agent(agent: Any) -> None:
    if not isinstance(agent, Agent):
        raise ConfigurationError(
            f"A session needs an Agent, not {type(agent).__name__}; pass sa.Agent(…)."
        )


def _may_wait() -> bool:
    """Whether the caller's thread runs no event loop that waiting would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False
