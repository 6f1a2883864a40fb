"""One sub-agent at work: it runs, may wait for people in its parent's name, and answers."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from ..budget import Meter, meter_of
from ..calls import SubAgentResult
from ..context import AgentProtocol, RunContext
from ..errors import InvalidDecision, NotRunning, pass_on
from ..events import Emitter, Event, StatusChanged, SubagentEvent, ToolExecutionStart
from ..interrupts import Decision, Interrupt
from ..messages import CUT_SHORT, ContentPart, Message, ToolResult, Usage
from ..runtime.workers import workers
from ..serialization import to_data
from ..state import State
from ..text import said_by, whole
from ..tools import ToolOutput

# Below the time that a cancelled run waits for its tools: the parent hears the end of its
# sub-agents, and never a word after its own.
PATIENCE = 1.5

_waiting: WeakValueDictionary[str, SubAgentRun] = WeakValueDictionary()


def waiting_for(interrupt: Interrupt) -> SubAgentRun | None:
    """The sub-agent that asked, if it still lives in this process and waits for this."""
    return _waiting.get(str(interrupt.data.get("key")))


class SubAgentRun:
    """A sub-agent with one task.

    ``status`` is "idle", "running", "completed", "interrupted", "error" or "cancelled". It
    starts once, and resumes only when it is interrupted. Everything happens on the runtime
    loop.
    """

    def __init__(
        self,
        agent: AgentProtocol,
        kind: str,
        state: State,
        *,
        extract_result: Callable[[State], Any] | None = None,
        quiet: bool = False,
    ) -> None:
        self.agent = agent
        self.kind = kind
        self.state = state
        self._before = len(state.messages)
        self.status = "idle"
        self.usage = Usage()
        self.duration = 0.0
        self._extract_result = extract_result
        self._quiet = quiet
        self._key = ""
        self._ids: dict[str, str] = {}  # of its calls that wait, by those in the parent
        self._local: dict[str, Any] = {}
        self._meter: Meter | None = None
        self._rounds = 0
        self._run_id = f"run-{uuid.uuid4().hex[:12]}"
        self._numbers = itertools.count(1)

    @property
    def id(self) -> str:
        """Its id, such as "conversation-1-sub-2"."""
        return self.agent.agent_id

    @property
    def key(self) -> str:
        """What only its present question has, also in another process; "" if there is none."""
        return self._key

    async def start(
        self, ctx: RunContext, call_id: str, messages: Sequence[Message], tell: Callable[[str], Any]
    ) -> ToolOutput | Interrupt:
        """Work on ``messages``; ``tell`` hears what people may read meanwhile."""
        if self.status != "idle":
            raise NotRunning(f"Sub-agent {self.id!r} is {self.status}; start another one.")
        return await self._go(ctx, call_id, tell, messages, None)

    async def resume(
        self,
        ctx: RunContext,
        call_id: str,
        decisions: Mapping[str, Decision],
        tell: Callable[[str], Any],
    ) -> ToolOutput | Interrupt:
        """Go on with what people decided, by the ids that the parent's interrupt has."""
        interrupt = self.state.interrupt
        if self.status != "interrupted" or interrupt is None:
            raise NotRunning(f"Sub-agent {self.id!r} is {self.status}: it waits for nothing.")
        return await self._go(ctx, call_id, tell, (), self._own(decisions))

    def check(self, decisions: Mapping[str, Decision]) -> None:
        """Raise InvalidDecision for what does not fit its tools; nothing has changed then."""
        interrupt = self.state.interrupt
        if interrupt is not None:
            own = self._own(decisions)
            decided = tuple(r for r in interrupt.action_requests if r.tool_call_id in own)
            try:
                self.agent.checked(replace(interrupt, action_requests=decided), own)
            except InvalidDecision as error:  # people know the call by the parent's id
                outer = {inner: outer for outer, inner in self._ids.items()}
                error.tool_call_id = outer.get(error.tool_call_id, "")
                raise

    async def _go(
        self,
        ctx: RunContext,
        call_id: str,
        tell: Callable[[str], Any],
        messages: Sequence[Message],
        decisions: Mapping[str, Decision] | None,
    ) -> ToolOutput | Interrupt:
        heard = True

        def sink(event: Event) -> None:
            if not heard or self._quiet:
                return
            ctx.publish(SubagentEvent, sub_agent_id=self.id, tool_call_id=call_id, event=event)
            if type(event) is ToolExecutionStart:
                tell(event.display_text or event.tool_call.name)

        emitter = Emitter(sink, self.id, self._run_id, counter=self._numbers)
        self._rounds += 1
        self._set_status("running", emitter)
        began = time.perf_counter()
        loop = self.agent.new_run(
            self.state,
            emitter,
            files=ctx.files,
            scope=ctx.scope,
            local=self._local,
            meter=self._meter_within(ctx),
            epoch=self._rounds,
        )
        loop.ctx.within = ctx
        loop.ctx.decided = {self._ids[i]: said for i, said in ctx.decided.items() if i in self._ids}
        # A task of its own, so that a cancellation is told to it first, and waited for.
        work = ctx.spawn(loop.run(messages, decisions))
        try:
            await asyncio.wait([work])
            outcome = work.result()
            self.state = outcome.state
            self.usage += outcome.usage
            self.duration += time.perf_counter() - began
            self._set_status(outcome.status, emitter)
            if outcome.status != "interrupted":
                ctx.sub_agents = (*ctx.sub_agents, *loop.ctx.sub_agents, self._result(call_id))
            return await self._answer(outcome, call_id, ctx)
        except asyncio.CancelledError:
            loop.ctx.cancelled.set()
            work.cancel()
            await asyncio.wait([work], timeout=PATIENCE)
            self._set_status("cancelled", emitter)
            raise
        finally:
            heard = False
            ctx.usage += loop.ctx.usage  # the meter they share has it already

    def _meter_within(self, ctx: RunContext) -> Meter:
        """Its own, for as long as it lives; one without a budget counts with its parent alone."""
        if self._meter is None:
            self._meter = meter_of(self.agent.budget, ctx.meter)
        return self._meter

    def _result(self, call_id: str) -> SubAgentResult:
        return SubAgentResult(
            sub_agent_id=self.id,
            subagent_type=self.kind,
            tool_call_id=call_id,
            status=self.status,
            messages=list(self.state.messages)[self._before :],
            usage=self.usage,
            duration=self.duration,
        )

    def _set_status(self, status: str, emitter: Emitter) -> None:
        previous, self.status = self.status, status
        emitter.emit(StatusChanged, status=status, previous=previous)

    async def _answer(self, outcome: Any, call_id: str, ctx: RunContext) -> ToolOutput | Interrupt:
        interrupt = outcome.state.interrupt
        if outcome.status == "interrupted" and interrupt is not None:
            if isinstance(outcome.error, InvalidDecision):  # it still waits, and so the parent
                raise outcome.error
            return self._question(interrupt, call_id, ctx.state)
        if outcome.status == "error":
            return self._output(f"The sub-agent failed: {outcome.error}", is_error=True)
        if outcome.status != "completed":
            return self._output("The sub-agent was stopped before it was done.", is_error=True)
        if self._extract_result is not None:
            try:
                return self._output(_content(await _call(self._extract_result, outcome.state)))
            except BaseException as error:
                pass_on(error)
                return self._output(
                    f"The sub-agent was done, but its result could not be read: {said_by(error)}",
                    is_error=True,
                )
        result = outcome.tool_result
        if result is not None:
            return self._output(result.content, is_error=result.is_error)
        answers = [m for m in reversed(outcome.messages) if m.role == "assistant"]
        text = next((m.text for m in answers if m.text.strip()), "")
        note = CUT_SHORT.get(answers[0].stop_reason or "", "") if answers else ""
        said = "\n\n".join(filter(None, [text, f"({note})" if note else ""]))
        return self._output(said or "The sub-agent ended without saying anything.")

    def _own(self, decisions: Mapping[str, Decision]) -> dict[str, Decision]:
        return {self._ids[i]: decision for i, decision in decisions.items() if i in self._ids}

    def _output(self, content: Any, *, is_error: bool = False) -> ToolOutput:
        if isinstance(content, str):
            content = whole(content)
        about = {
            "sub_agent_id": self.id,
            "subagent_type": self.kind,
            "duration": round(self.duration, 3),
            "usage": to_data(self.usage),
        }
        return ToolOutput(content, is_error=is_error, metadata={"sub_agent": about})

    def _question(self, inner: Interrupt, call_id: str, parent: State) -> Interrupt:
        """Its interrupt as one of the parent's call; the ids of its calls become unique."""
        self._key = uuid.uuid4().hex
        origin = {"sub_agent_id": self.id, "subagent_type": self.kind, "tool_call_id": call_id}
        if inner.type == "halt":  # nobody goes on, so it is not kept
            data = {**to_data(inner.data), **origin}
            return Interrupt(type="halt", message=inner.message, data=data)
        _waiting[self._key] = self
        message = inner.message or f"Sub-agent {self.kind!r} needs approval."
        self._ids = outer_ids(call_id, inner.tool_call_ids, parent)
        requests = tuple(
            replace(request, tool_call_id=outer)
            for request, outer in zip(inner.action_requests, self._ids, strict=True)
        )
        return Interrupt(
            type="subagent_hitl",
            action_requests=requests,
            message=message,
            data={**origin, "key": self._key, "interrupt": described(inner)},
        )


def outer_ids(call_id: str, inner: Sequence[str], parent: State) -> dict[str, str]:
    """What people decide on as, to the ids that calls of the sub-agent of ``call_id`` have.

    No other call waits under one of them, whatever ids the models chose.
    """
    asked = next((m.tool_calls for m in reversed(parent.messages) if m.tool_calls), [])
    taken = {call.id for call in asked}
    prefix = call_id.replace("~", "~0").replace("/", "~1")  # so that "a", "b/c" is not "a/b", "c"
    found = {}
    for id in inner:
        outer = f"{prefix}/{id}"
        while outer in taken:
            outer += "~"
        found[outer] = id
    return found


def described(interrupt: Interrupt) -> dict[str, Any]:
    """What whoever shows the question may need to know of it."""
    parts = [described(part) for part in interrupt.parts]
    return {
        "type": interrupt.type,
        "message": interrupt.message,
        "data": to_data(interrupt.data),
        "parts": parts,
    }


def _content(value: Any) -> Any:
    """Text and parts as they are, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(v, ContentPart) for v in value):
        return value
    return msgspec.json.encode(to_data(value)).decode()


async def _call(function: Callable[[State], Any], state: State) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(state)
    value = await workers.run(function, state)
    return await value if inspect.isawaitable(value) else value


# The key in ``ctx.local``: never in the state, which may be stored.
_LOCAL = "sub_agents"


class Team:
    """How many sub-agents there were, and who of them waits for people."""

    def __init__(self) -> None:
        self.count = 0
        self.waiting: dict[str, SubAgentRun] = {}
        self.turn: Any = None

    def begin(self, state: State) -> None:
        """One more; all calls of a turn see the same messages.

        Who still waits when another turn begins was given up.
        """
        self.count += 1
        if state.messages is not self.turn:
            self.turn = state.messages
            self.waiting.clear()

    def keep(self, work: SubAgentRun, outcome: ToolOutput | Interrupt) -> ToolOutput | Interrupt:
        """``outcome``; while it is a question, ``work`` is kept for the answer."""
        if isinstance(outcome, Interrupt) and outcome.type == "subagent_hitl":
            self.waiting[work.key] = work
        return outcome


def team_of(local: dict[str, Any]) -> Team:
    """The team that a conversation's ``ctx.local`` holds, made on first use."""
    team: Team = local.setdefault(_LOCAL, Team())
    return team


def placeholder_of(state: State, call_id: str) -> ToolResult | None:
    """What stands for the answer of that call while it waits; None if it is answered."""
    for message in reversed(state.messages[-2:]):  # a halt may have been said after it
        for result in message.tool_results:
            if result.tool_call_id == call_id and result.is_interrupt:
                return result
    return None
