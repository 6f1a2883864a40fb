"""Random programs of sixteen threads on one session, beside a model of one call at a time."""

from __future__ import annotations

import asyncio
import faulthandler
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.errors import Busy
from sagents_nb.models.base import ModelRequest
from sagents_nb.runtime.thread import runtime
from sagents_nb.session.actor import Actor
from tests.session.sequential import Sequential, Step, in_history
from tests.session.stored import Disk, disk
from tests.talking import PATIENCE, in_threads, unanswered

THREADS = 16
NEW = "a new beginning"

SAID = st.sampled_from(["talk", "talk", "act", "ask", "both", "fail"])
OPS = st.one_of(
    st.tuples(st.just("send"), SAID, st.sampled_from(["queue", "queue", "steer", "raise"])),
    st.tuples(st.sampled_from(["steer", "follow_up"]), SAID),
    st.tuples(st.sampled_from(["approve", "approve_one", "reject", "resume"])),
    st.tuples(st.sampled_from(["cancel", "pause", "retry", "notify"])),
    st.tuples(st.sampled_from(["touch", "watch", "info"])),
    st.tuples(st.sampled_from(["reset", "replace", "reopen"])),
)
PROGRAMS = st.lists(st.lists(OPS, max_size=4), min_size=THREADS, max_size=THREADS)


pytestmark = pytest.mark.usefixtures("eager_switching")


class Host(sa.ChatModel):
    """Does what was said last, and needs no memory for it."""

    name = "host"
    calm = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        last = request.messages[-1]
        await asyncio.sleep(0)
        if last.role == "tool":
            yield sa.Message.assistant("done")
            return
        kind = last.text.split()[-1] if last.text else "talk"
        if kind == "fail" and not self.calm:
            raise ConnectionError("cable")
        names = {"act": ["act"], "ask": ["ask"], "both": ["ask", "act", "ask"]}.get(kind, [])
        calls = [sa.ToolCall(f"{last.text} {n}", name, {}) for n, name in enumerate(names)]
        yield sa.Message.assistant("" if calls else f"re: {last.text}", tool_calls=calls)


class Clerk(sa.Middleware):
    """Files what it is told, and takes its time."""

    id = "clerk"

    async def handle_message(self, message: Any, state: sa.State, ctx: Any) -> sa.State:
        await asyncio.sleep(0)
        return state.put_metadata("filed", [*state.get_metadata("filed", []), message])


class Life:
    """One program: its threads, the session they talk to, and the order of what took effect."""

    def __init__(self, store: sa.ConversationStore | None) -> None:
        self.store = store
        self.ran: list[str] = []
        self.host = Host()
        self.steps: dict[Actor, list[Step]] = {}
        self.events: dict[Actor, list[Any]] = {}
        self.first: dict[Actor, list[str]] = {}  # what people had said when it began
        self.runs: list[sa.Run] = []
        self._opening = threading.Lock()

        async def act(ctx: sa.ToolContext) -> str:
            self.ran.append(ctx.tool_call_id)
            await asyncio.sleep(0)
            return "acted"

        tools = [sa.tool(act, name=name) for name in ("act", "ask")]
        self.agent = sa.Agent(
            self.host,
            tools=tools,
            interrupt_on={"ask": True},
            middleware=[Clerk()],
            max_runs=1000,
            replace_default_middleware=True,
        )
        self.session = self._watched(sa.Session(self.agent, id="c1", store=store))

    def _watched(self, session: sa.Session) -> sa.Session:
        actor = session.actor
        self.steps[actor], self.events[actor] = [], []
        self.first[actor] = in_history(session.state)
        session.subscribe(self.events[actor].append, since=0)
        return session

    # what took effect, in order

    def seen(self, actor: Actor, name: str, args: Any, do: Callable[[], Any]) -> Any:
        """Note a call; on the runtime loop, as the call itself."""
        interrupt = actor.state.interrupt
        seen = (
            actor.status,
            actor.state,
            tuple(actor.approvals.open_ids(interrupt)) if interrupt else (),
            bool(len(actor.inbox)),
            actor.answers is not None,
        )
        try:
            outcome: Any = do()
            return outcome
        except sa.SagentsError as error:
            outcome = error
            raise
        finally:
            value = outcome[0] if isinstance(outcome, tuple) else outcome
            self.steps.setdefault(actor, []).append(Step(name, args, *seen, value, actor.status))

    # what a thread does

    def do(self, thread: int, number: int, op: tuple[Any, ...]) -> None:
        session, (name, *args) = self.session, op
        said = f"{thread} {number} {args[0]}" if args else ""
        waiting = session.interrupt  # asked once: another thread may answer it
        ids = waiting.tool_call_ids if waiting else ("none",)
        state = sa.State(messages=[sa.Message.user(NEW), sa.Message.assistant(f"re: {NEW}")])
        deeds: dict[str, Callable[[], Any]] = {
            "send": lambda: session.send(said, args[1]),
            "steer": lambda: session.steer(said),
            "follow_up": lambda: session.follow_up(said),
            "approve": session.approve,
            "approve_one": lambda: session.approve(ids[0]),
            "reject": session.reject,
            "resume": lambda: session.resume(dict.fromkeys(ids, sa.Approve())),
            "cancel": session.cancel,
            "pause": session.pause,
            "retry": session.retry,
            "touch": session.touch,
            "watch": lambda: session.watch(str(thread))(),
            "notify": lambda: session.notify_middleware("clerk", f"{thread} {number}"),
            "info": session.info,
            "reset": session.reset,
            "replace": lambda: session.replace(state=state),
            "reopen": lambda: self.reopen(session),
        }
        with suppress(sa.NotRunning, sa.StaleApproval, sa.InvalidDecision, Busy):
            outcome = deeds[name]()
            if isinstance(outcome, sa.Run):
                self.runs.append(outcome)

    def reopen(self, session: sa.Session) -> None:
        with self._opening:
            if session is not self.session:
                return
            session.close()
            if self.store is None:
                again = sa.Session.restore(session.export_state(), self.agent)
            else:
                again = sa.Session.open("c1", agent=self.agent, store=self.store)
            self.session = self._watched(again)

    def settle(self) -> None:
        """Let all that waits be done."""
        self.host.calm = True
        self.session.cancel()
        while True:
            session = self.session
            if session.status == "running":
                with suppress(sa.AgentError):
                    assert session.current_run is not None
                    session.current_run.result(PATIENCE)
                runtime.call(lambda: None)  # it may have ended a moment ago
            elif session.status == "interrupted":
                session.approve()
            elif session.info()["queued"] or session.status != "idle":
                try:
                    session.retry()
                except sa.NotRunning:
                    session.send("0 0 end")
            else:
                break
        for run in self.runs:
            with suppress(sa.AgentError):
                run.result(PATIENCE)
        actor = self.session.actor
        runtime.submit(actor.middleware.idle()).result(PATIENCE)
        if actor.journal is not None:  # nobody is told when what they made of the state is kept
            runtime.submit(actor.journal.committed()).result(PATIENCE)


def within(seconds: float, work: Callable[[], None]) -> None:
    """Do it, or fail with what every thread is at."""
    outcome: list[BaseException | None] = []

    def body() -> None:
        try:
            work()
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        with tempfile.TemporaryFile("w+") as file:
            faulthandler.dump_traceback(file, all_threads=True)
            file.seek(0)
            pytest.fail(f"It is at work after {seconds} s:\n{file.read()}")
    if outcome[0] is not None:
        raise outcome[0]


def live(program: list[list[Any]], store: sa.ConversationStore | None) -> Life:
    with pytest.MonkeyPatch.context() as patch:
        acted, closed, notify = Actor.acted, Actor.close, Actor.notify
        life: Life

        def acting(self: Actor, function: Any, args: Any) -> Any:
            name = function.__name__
            return life.seen(self, name, args, lambda: acted(self, function, args))

        def closing(self: Actor, reason: str) -> Any:
            return life.seen(self, "close", (), lambda: closed(self, reason))

        def notifying(self: Actor, *args: Any) -> Any:
            return life.seen(self, "notify", args, lambda: notify(self, *args))

        patch.setattr(Actor, "acted", acting)
        patch.setattr(Actor, "close", closing)
        patch.setattr(Actor, "notify", notifying)
        life = Life(store)

        def thread(index: int) -> None:
            for number, op in enumerate(program[index]):
                life.do(index, number, op)

        def work() -> None:
            outcomes = in_threads(THREADS, thread)
            for outcome in outcomes:
                if outcome is not None:
                    raise outcome
            life.settle()

        within(PATIENCE, work)
    return life


def check(life: Life) -> None:
    """It is what one thread would have made of it, in the order in which the calls took effect."""
    model, told = Sequential(), 0
    for actor, steps in life.steps.items():
        model = model.opened(steps, None if life.store else life.first[actor])
        for step in steps:
            model.take(step)
        numbers = [event.seq for event in life.events[actor]]
        first = numbers[0] if numbers and life.store else told + 1
        assert numbers == list(range(first, first + len(numbers)))
        assert first > told
        told = first + len(numbers) - 1 if life.store else 0
    session = life.session
    assert session.status == "idle"
    assert not unanswered(session.messages)
    texts = [text for text in in_history(session.state) if text != NEW]
    for queue, said in model.said.items():
        assert [text for text in texts if text in set(said)] == said, queue
    assert sorted(texts) == sorted(text for said in model.said.values() for text in said)
    for before, after in zip(session.messages, session.messages[1:], strict=False):
        if after.text.startswith("re: "):
            assert after.text == f"re: {before.text}"
    assert len(life.ran) == len(set(life.ran)), "a call ran twice"
    filed = session.state.get_metadata("filed", [])
    assert len(filed) == len(set(filed)), "a letter was read twice"
    assert set(model.letters) <= set(filed), "a letter was lost"


@pytest.mark.spec("S1.11.1", "S1.11.13")
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(PROGRAMS)
def test_sixteen_threads_do_what_one_would_have_done(program: Any) -> None:
    check(live(program, None))


@pytest.mark.spec("S1.11.1", "S1.11.13")
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(PROGRAMS)
def test_sixteen_threads_on_a_stored_session_do_what_one_would_have_done(program: Any) -> None:
    with disk() as place:
        check_stored(live(program, place.store()), place)


@pytest.mark.soak
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(PROGRAMS, PROGRAMS)
def test_two_hundred_programs_end_in_time_as_one_thread_would_have_done(
    one: Any, other: Any
) -> None:
    check(live(one, None))
    with disk() as place:
        check_stored(live(other, place.store()), place)


def check_stored(life: Life, place: Disk) -> None:
    """The same, and what is in the store is what the session is."""
    check(life)
    again = place.crashed(life.session, agent=life.agent)
    assert (again.state, again.status) == (life.session.state, "idle")
    assert again.info()["queued"] == 0
