"""Give work to other agents of a registry, each task in a stored conversation of its own."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from .. import kinds
from ..budget import Budget, SharedBudget, meter_of
from ..context import Caller, RunContext, ToolContext
from ..errors import NotFound, NotRunning, SagentsError
from ..events import Event, SubagentEvent
from ..interrupts import Decision, Interrupt
from ..messages import Message, TextPart, ToolCall
from ..middleware.base import Middleware
from ..middleware.sub_agent_runs import outer_ids, placeholder_of
from ..models.base import ModelRequest
from ..runtime.futures import executing, wait_uncancelled
from ..runtime.workers import workers
from ..search.words import query_words
from ..serialization import read_as, to_data
from ..session import Run, Session
from ..state import State
from ..tasks import TaskRecord
from ..tools import Tool, ToolOutput
from .agents import AgentRegistry, new_record
from .background import attend, recover
from .cards import AgentCard
from .task import Task

PROMPT = """\
## Colleagues

Other agents work for you: each is a tool whose name begins with `agent__`. One sees nothing of \
this conversation but what you write, so write down all that it needs to know, and what it should \
return."""

BACKGROUND = """\
With `start_task` one of them works while you go on. You are told when it is done, when it has \
failed and when it asks something: do not wait for it, and do not ask again and again."""

FOUND = "delegation"
"""In the state's metadata: "found", the agents that were found, and the last "words"."""

_PREFIX = "agent__"
_RECENT = 6  # messages that a delegate may be told
_LONGEST = 500  # characters of each

TaskId = Annotated[str, Meta(description="Its id, such as task-1f00.")]

_INSTRUCTIONS = "The whole task: what to do, what to know, and what to return."


class Delegation(Middleware):
    """Gives the model the agents of a registry as tools, ``agent__NAME`` each.

    Where ``agents`` has more than ``limit`` that take tasks, those are offered that fit the last
    message of the user best, with at least ``min_score`` of the best one's score; they stay for the
    conversation, and the model finds others with ``search_agents``.

    A call of one is a task: a conversation of its own in the registry's store. A process that ends
    loses none: the call is made again when the conversation goes on, and finds its task. What the
    delegate asks people is asked here, in an interrupt of the type "task".

    ``budget`` is for each task, within what is left of this agent's own; ``budget.shared()`` is for
    all of them together. At most ``max_depth`` agents may be in a chain of delegations, the first
    one included, and none twice: what would be is refused before anything is done. With
    ``share_context`` a delegate that accepts it is told the latest messages. With ``background``
    the model can also start tasks and go on; it is told of their ends and questions, for which
    the agent has to run in a session.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for options that make no sense.

    >>> import sagents_nb as sa
    >>> agents = sa.AgentRegistry()
    >>> weather = sa.Agent(sa.ScriptedModel(["Sun."]), name="weather", description="Forecasts.")
    >>> _ = agents.add(weather)
    >>> call = sa.ToolCall("c1", "agent__weather", {"instructions": "Tomorrow in Oslo?"})
    >>> model = sa.ScriptedModel([call, "It will be sunny."])
    >>> agent = sa.Agent(model, name="host", middleware=[sa.Delegation(agents)])
    >>> agent.run("What about tomorrow?").messages[2].tool_results[0].text
    'Sun.'
    """

    @kinds.checked(
        agents=kinds.of(AgentRegistry),
        limit=kinds.whole(1),
        min_score=kinds.Kind(
            "a number from 0 to 1", lambda value: kinds.number(0).fits(value) and value <= 1
        ),
        max_depth=kinds.whole(1),
    )
    def __init__(
        self,
        agents: AgentRegistry,
        limit: int = 3,
        *,
        min_score: float = 0.5,
        budget: Budget | None = None,
        max_depth: int = 3,
        share_context: bool = False,
        background: bool = False,
    ) -> None:
        self.agents = agents
        self.limit = limit
        self.min_score = min_score
        self.budget = budget
        self.max_depth = max_depth
        self.share_context = share_context
        self.background = background

    def system_prompt(self) -> str:
        """When to delegate."""
        return f"{PROMPT}\n\n{BACKGROUND}" if self.background else PROMPT

    # what the model sees

    def tools(self) -> list[Tool]:
        """``search_agents``, and those for tasks in the background."""
        tools = [Tool(self.search_agents, idempotent=True, display_text="Looking for an agent")]
        if self.background:
            # Starting one again after a crash finds what had begun.
            tools.append(Tool(self.start_task, idempotent=True, display_text=_starting))
            tools.append(Tool(self.check_task, idempotent=True, timeout=math.inf))
            tools.append(Tool(self.cancel_task, idempotent=True))
            tools.append(Tool(self.list_tasks, idempotent=True))
        return tools

    async def search_agents(
        self, query: Annotated[str, Meta(description="A few words.")], ctx: ToolContext
    ) -> ToolOutput:
        """Find further agents by what they are to do, in a few words. You can call them then."""
        known = _found(ctx.state)
        hits = await workers.run(self.agents.find, query, self.limit, self.min_score, known, True)
        if not hits:
            return ToolOutput("No further agent fits that; try other words.")
        cards = [self.agents.card(hit.id) for hit in hits]
        lines = [f"- {card.tool_name}: {card.description}" for card in cards]
        return ToolOutput(
            "\n".join(["You can call these now:", *lines]),
            metadata={FOUND: [card.name for card in cards]},
        )

    async def before_run(self, state: State, ctx: RunContext) -> None:
        """Let all that take tasks be called, and go on with those in the background."""
        wanted = {card.tool_name: card for card in self.agents.delegable()}
        missing = [card for name, card in wanted.items() if name not in ctx.tools]
        if missing:
            ctx.add_tools([self._tool_of(card) for card in missing])
        session = _session_of(ctx)
        if self.background and session is not None:
            caller = self._caller(ctx)
            await workers.run(recover, self.agents, session, caller)

    def _tool_of(self, card: AgentCard) -> Tool:
        name = card.name

        async def delegate(
            instructions: Annotated[str, Meta(description=_INSTRUCTIONS)], ctx: ToolContext
        ) -> Any:
            return await self.delegate(ctx, instructions, name)

        return Tool(
            delegate,
            name=card.tool_name,
            description=card.description or f"The agent {name}.",
            idempotent=True,  # it finds the task that had begun
            timeout=math.inf,  # the delegate's own tools have theirs
            display_text=f"Delegating to {name}",
        )

    def repeats(self, call: ToolCall) -> bool:
        """Whether it is a call of an agent, which finds its task again."""
        return call.name.startswith(_PREFIX)

    async def before_model(self, state: State, ctx: RunContext) -> State | None:
        """The state with the agents that fit what was said last, where there are many."""
        cards = list(self.agents.delegable())
        if len(cards) <= self.limit or not state.messages:
            return None
        last = state.messages[-1]
        found = [name for r in last.tool_results for name in r.metadata.get(FOUND, ())]
        words = None
        if last.role == "user":
            words = " ".join(query_words(last.text))
            if words == _noted(state).get("words"):
                return None
            hits = await workers.run(
                self.agents.find, last.text, self.limit, self.min_score, _found(state), True
            )
            found = [hit.id for hit in hits]
        elif not found:
            return None
        known = _found(state)
        further = [name for name in found if name not in known]
        noted = {"words": words or _noted(state).get("words"), "found": [*known, *further]}
        return state.put_metadata(FOUND, noted)

    def before_model_request(self, request: ModelRequest, ctx: RunContext) -> ModelRequest | None:
        """The request without the agents that were not found, where there are many."""
        cards = list(self.agents.delegable())
        if len(cards) <= self.limit:
            hidden = {"search_agents"}
        else:
            found = set(_found(ctx.state))
            hidden = {card.tool_name for card in cards if card.name not in found}
        kept = tuple([spec for spec in request.tools if spec.name not in hidden])
        return None if len(kept) == len(request.tools) else replace(request, tools=kept)

    # a call

    async def delegate(
        self, ctx: ToolContext, instructions: str, name: str
    ) -> ToolOutput | Interrupt:
        """Have the agent ``name`` do what ``instructions`` say, and give its answer, as a tool."""
        refused = self._refusal(ctx, instructions, name)
        if refused is not None:
            return refused
        record = self._record(ctx, instructions, name)
        task = await self._start(record, ctx)
        return await self._attended(task, ctx.run, ctx.tool_call_id, ctx.state)

    def _refusal(self, ctx: ToolContext, instructions: str, name: str) -> ToolOutput | None:
        """Why it is not done; nothing was done by then, and no model asked."""
        chain = ctx.run.chain
        shown = " → ".join([*chain, name])
        if not instructions.strip():
            return _refused("instructions are empty; say what is to be done.")
        if name in chain:
            return _refused(
                f"Not delegated: {name!r} is in the chain already ({shown}), so this would go in a "
                "circle; do it yourself, or say what is missing."
            )
        depth = self._depth(ctx.run)
        if len(chain) >= depth:
            return _refused(
                f"Not delegated: at most {depth} agents may be in a chain ({shown}); do it "
                "yourself, or say what is missing."
            )
        try:
            card = self.agents.card(name)
        except NotFound as error:
            return _refused(str(error))
        return None if card.delegable else _refused(f"The agent {name!r} takes no tasks.")

    def _record(
        self, ctx: ToolContext, instructions: str, name: str, background: bool = False
    ) -> TaskRecord:
        chain = ctx.run.chain
        text = instructions
        if self.share_context and self.agents.card(name).accepts_context:
            text = f"{_shared(ctx.state)}\n\n{instructions}"
        return new_record(
            _id_of(ctx),
            name,
            (TextPart(text),),
            (*chain, name),
            None,
            self.budget,
            caller=chain[-1],
            context=ctx.session_id,
            background=background,
            max_depth=self._depth(ctx.run),
        )

    def _depth(self, run: RunContext) -> int:
        """How many agents may be in a chain: as few as anybody in it says."""
        return self.max_depth if run.max_depth is None else min(self.max_depth, run.max_depth)

    async def _start(self, record: TaskRecord, ctx: ToolContext) -> Task:
        caller = self._caller(ctx.run)
        return await workers.run(self.agents.start, record, self._scope(ctx.run), caller)

    def _caller(self, run: RunContext) -> Caller:
        """What a task draws on: this run, and what all tasks have together."""
        budget = self.budget if isinstance(self.budget, SharedBudget) else None
        return Caller(run.chain, self.max_depth, meter_of(budget, run.meter))

    def _scope(self, run: RunContext) -> Any:
        return run.scope if self.agents.scope is None else self.agents.scope

    async def _attended(
        self,
        task: Task,
        run: RunContext,
        call_id: str,
        state: State,
        decisions: Mapping[str, Decision] | None = None,
    ) -> ToolOutput | Interrupt:
        """What came of it, once it stops; its events are told as those of a sub-agent."""
        telling = asyncio.ensure_future(_forward(task, run, call_id))
        try:
            await task.stopped()
        except asyncio.CancelledError:
            if _is_stopped(run):
                stopping = asyncio.ensure_future(_cancel(task))
                await wait_uncancelled(stopping)
            raise
        finally:
            telling.cancel()
        return await self._outcome(task, call_id, state)

    async def _outcome(self, task: Task, call_id: str, state: State) -> ToolOutput | Interrupt:
        record = task.record
        question = task.question
        if question is not None:
            return _asked(record, question, call_id, state)
        made = await workers.run(lambda: task.artifacts)
        about = {
            "id": record.id,
            "agent": record.agent,
            "state": record.state,
            "seconds": round(record.seconds, 3),
            "tokens": record.tokens,
            "artifacts": [each.name for each in made],
        }
        if record.state == "completed":
            said = record.text or "\n".join(map(_in_words, record.output))
            return ToolOutput(said or "It ended without saying anything.", metadata={"task": about})
        texts = {
            "failed": f"The task failed: {record.message}",
            "canceled": "The task was canceled.",
            "input_required": record.message,
        }
        elsewhere = f"Task {record.id} is worked on by another process."
        said = texts.get(record.state, elsewhere)
        return ToolOutput(said, is_error=True, metadata={"task": about})

    # people

    def check_decisions(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> None:
        """What does not fit the delegate's tools is refused before anything changes."""
        if interrupt.type == "task" and (agent := self._agent_of(interrupt)) is not None:
            agent.checked(_inner(interrupt), _own(interrupt, decisions))

    def _agent_of(self, interrupt: Interrupt) -> Any:
        name = str(interrupt.data.get("agent"))
        if name not in self.agents or self.agents.is_function(name):
            return None
        return self.agents.agent_named(name)

    async def handle_resume(
        self,
        interrupt: Interrupt,
        decisions: Mapping[str, Decision],
        state: State,
        ctx: RunContext,
    ) -> State | Interrupt | None:
        """Let the delegate that asked go on."""
        if interrupt.type != "task":
            return None
        call_id = str(interrupt.data.get("tool_call_id"))
        placeholder = placeholder_of(state, call_id)
        if placeholder is None:
            return state
        outcome = await self._answered(interrupt, decisions, state, ctx, call_id)
        if isinstance(outcome, Interrupt):
            return outcome
        answer = replace(
            placeholder,
            content=outcome.content,
            is_error=outcome.is_error,
            is_interrupt=False,
            metadata={**placeholder.metadata, **outcome.metadata},
        )
        return state.replace_tool_result(call_id, answer)

    async def _answered(
        self,
        interrupt: Interrupt,
        decisions: Mapping[str, Decision],
        state: State,
        ctx: RunContext,
        call_id: str,
    ) -> ToolOutput | Interrupt:
        id, asked = str(interrupt.data.get("task_id")), _inner(interrupt)
        own = _own(interrupt, decisions)
        caller, scope = self._caller(ctx), self._scope(ctx)

        def answer() -> Task:
            tasks = self.agents.store.scoped(scope).tasks
            task = self.agents.known(tasks.get(id), scope, caller).refresh()
            question = task.question
            # Else it was answered before the process ended, and goes on.
            if question is not None and question.id == asked.id:
                task.respond(own)
            elif task.state in ("submitted", "working") and not task.is_at_work:
                task.retry()
            return task

        try:
            task = await workers.run(answer)
        except (NotFound, NotRunning) as error:
            return ToolOutput(str(error), is_error=True)
        return await self._attended(task, ctx, call_id, state)

    # in the background

    async def start_task(
        self,
        agent: Annotated[str, Meta(description="The name of the agent, without `agent__`.")],
        instructions: Annotated[str, Meta(description=_INSTRUCTIONS)],
        ctx: ToolContext,
    ) -> ToolOutput:
        """Have an agent work in the background; you are told what comes of it."""
        name = agent.removeprefix(_PREFIX)
        session = _session_of(ctx.run)
        if session is None:
            return _refused(
                f"There is no session to tell later what came of it; call {_PREFIX}{name} instead."
            )
        refused = self._refusal(ctx, instructions, name)
        if refused is not None:
            return refused
        task = await self._start(self._record(ctx, instructions, name, background=True), ctx)
        attend(self.agents, task, session)
        return ToolOutput(
            f"Task {task.id} has begun. You will be told what comes of it.",
            metadata={"task": {"id": task.id, "agent": name, "state": task.state}},
        )

    async def check_task(self, task_id: TaskId, ctx: ToolContext) -> Any:
        """See how far a background task is. If it asks something, people are asked for it."""
        try:
            task = await self._own_task(task_id, ctx)
        except SagentsError as error:
            return _refused(str(error))
        question = task.question
        if question is not None:
            return _asked(task.record, question, ctx.tool_call_id, ctx.state)
        if task.record.is_terminal:
            return await self._outcome(task, ctx.tool_call_id, ctx.state)
        return f"Task {task.id} of {task.agent} is {task.state}."

    async def cancel_task(self, task_id: TaskId, ctx: ToolContext) -> Any:
        """Stop a background task."""
        try:
            task = await self._own_task(task_id, ctx)
            await workers.run(task.cancel)
        except SagentsError as error:
            return _refused(str(error))
        return f"Task {task.id} is canceled."

    async def list_tasks(self, ctx: ToolContext) -> Any:
        """See the tasks of this conversation, the newest first."""
        tasks = self.agents.store.scoped(self._scope(ctx.run)).tasks
        found = await workers.run(lambda: tasks.list(context=ctx.session_id, limit=50))
        lines = [f"- {record.id}, {record.agent}: {record.state}" for record in found]
        return "\n".join(lines) or "There are none."

    async def _own_task(self, id: str, ctx: ToolContext) -> Task:
        """One of this conversation; raises NotFound for others."""
        scope, caller = self._scope(ctx.run), self._caller(ctx.run)

        def find() -> Task:
            record = self.agents.store.scoped(scope).tasks.get(id)
            if record.context != ctx.session_id:
                raise NotFound(f"There is no task {id!r:.300} here; list_tasks has those.")
            return self.agents.known(record, scope, caller).refresh()

        return await workers.run(find)


def _starting(arguments: Mapping[str, Any]) -> str:
    return f"Starting a task of {arguments.get('agent')}"


def _refused(why: str) -> ToolOutput:
    return ToolOutput(why, is_error=True)


def _id_of(ctx: ToolContext) -> str:
    """The same for the same call, also in another process, and for no other."""
    run = executing.get()
    # Outside of a session, conversations have no name of their own, and nothing goes on later.
    within = ctx.session_id if isinstance(run, Run) else ctx.run.run_id
    place = f"{within} {len(ctx.state.messages)} {ctx.tool_call_id}"
    return f"task-{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _session_of(ctx: RunContext) -> Session | None:
    """The session that runs, if it is not a sub-agent of it."""
    run = executing.get()
    if ctx.within is not None or not isinstance(run, Run):
        return None
    return run.session if isinstance(run.session, Session) else None


def _is_stopped(run: RunContext) -> bool:
    """Whether somebody stopped it; a session that is closed leaves its tasks to go on."""
    inside = executing.get()
    session = inside.session if isinstance(inside, Run) else None
    return not (isinstance(session, Session) and session.status == "closed")


async def _cancel(task: Task) -> None:
    with suppress(SagentsError):  # it has ended by itself
        await workers.run(task.cancel)


async def _forward(task: Task, run: RunContext, call_id: str) -> None:
    """Tell the events of a task as they come, each once, until whoever waits has what it wants."""
    session = await task.opened()
    if session is None:
        return

    def hear(event: Event) -> None:
        if event.seq > task.told_to:
            task.told_to = event.seq
            run.publish(SubagentEvent, sub_agent_id=task.id, tool_call_id=call_id, event=event)

    stop = session.subscribe(hear, since=task.told_to)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        stop()


def _asked(record: TaskRecord, inner: Interrupt, call_id: str, parent: State) -> Interrupt:
    """What the task asks, as a question of the call; it can be answered in another process."""
    ids = outer_ids(call_id, inner.tool_call_ids, parent)
    requests = tuple(
        replace(request, tool_call_id=outer)
        for request, outer in zip(inner.action_requests, ids, strict=True)
    )
    return Interrupt(
        type="task",
        action_requests=requests,
        message=inner.message or f"{record.agent} needs an answer.",
        data={
            "task_id": record.id,
            "agent": record.agent,
            "tool_call_id": call_id,
            "ids": ids,
            "interrupt": to_data(inner),
        },
    )


def _inner(interrupt: Interrupt) -> Interrupt:
    """The question of the delegate, with the ids that it knows."""
    inner: Interrupt = read_as(interrupt.data.get("interrupt"), Interrupt)
    return inner


def _own(interrupt: Interrupt, decisions: Mapping[str, Decision]) -> dict[str, Decision]:
    ids: Mapping[str, str] = interrupt.data.get("ids", {})
    return {ids[i]: decision for i, decision in decisions.items() if i in ids}


def _noted(state: State) -> Mapping[str, Any]:
    noted: Mapping[str, Any] = state.metadata.get(FOUND, {})
    return noted


def _found(state: State) -> list[str]:
    return list(_noted(state).get("found", ()))


def _shared(state: State) -> str:
    """The latest messages, as something to read and not to follow."""
    said: Sequence[Message] = [m for m in state.messages[-_RECENT * 3 :] if m.text.strip()]
    lines = [f"{m.role}: {m.text[:_LONGEST]}" for m in said if m.role in ("user", "assistant")]
    return "\n".join(["<conversation>", *lines[-_RECENT:], "</conversation>"])


def _in_words(part: Any) -> str:
    return msgspec.json.encode(getattr(part, "data", to_data(part))).decode()
