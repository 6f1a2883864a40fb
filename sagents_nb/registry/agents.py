"""The agents that can be found: by words, by what they can do, by how well they did it."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from .. import kinds
from ..agent import Agent
from ..budget import Budget, SharedBudget
from ..context import Caller
from ..errors import ConfigurationError, NotFound
from ..frames.columns import Column, framed
from ..search.lexical import Hit, LexicalIndex
from ..search.tool_catalog import ToolCatalog
from ..search.words import spaced
from ..serialization import to_data
from ..session import Session
from ..session.opening import store_of
from ..store import tasks as rows
from ..tasks import TaskRecord
from .background import Watch
from .cards import AgentCard, card_of, checked_card, is_agent, words
from .task import Task, parts_of

if TYPE_CHECKING:
    import pandas

    from ..store import ConversationStore

# The name says most; what it can do in a word counts more than how it is described.
_WEIGHTS = {"name": 2, "capabilities": 1.5, "description": 1, "tools": 0.6}

_FURTHER = 50

RECENT = 0.7
"""What the score of a tool is worth that was used a moment ago, so that others come first."""

_AGENTS = {
    "name": Column("string", "of the agent"),
    "score": Column("float64", "a share of the best one's"),
    "calls": Column("int64", "tasks that have ended"),
    "success_rate": Column("float64", "of these, from 0 to 1"),
    "latency": Column("float64", "seconds of work, as a mean", measured=True),
    "cost": Column("float64", "US dollars, as a mean"),
}
_TOOLS = {
    "tool": Column("string", "agent/tool"),
    "agent": Column("string", "who has it"),
    "description": Column("string", "what it does"),
    "score": Column("float64", "how well it fits"),
}

_LIMIT = kinds.or_none(kinds.number(0), "for no limit")
_SHARE = kinds.Kind("a number from 0 to 1", lambda v: kinds.number(0).fits(v) and v <= 1)
_AGENT = kinds.Kind("an Agent, or a function", lambda v: is_agent(v) or callable(v))
_CAPABILITIES = kinds.either("a list of words", kinds.of(Sequence[str]), kinds.of(str))


class Record(NamedTuple):
    """How an agent did so far: ``calls`` are tasks that ended, well or badly.

    The ``success_rate`` is from 0 to 1, ``latency`` the mean of seconds of work and ``cost_usd``
    that of money, of those that ended well; None where that is not known.
    """

    calls: int = 0
    success_rate: float | None = None
    latency: float | None = None
    cost_usd: float | None = None


class Entry(NamedTuple):
    """An agent that is registered: an ``agent``, or a ``function``."""

    card: AgentCard
    agent: Agent | None = None
    function: Callable[..., Any] | None = None


class AgentRegistry:
    """Agents by name, to be searched, routed to, and given tasks.

    ``store`` is where tasks are kept, a :class:`~sagents_nb.ConversationStore` or its path; without
    one they are in memory, and end with the process. ``scope`` is whose they are. Any thread may
    use it, and agents may be added while others work: who adds one of a name that is there puts it
    in the place of that.

    >>> import sagents_nb as sa
    >>> agents = sa.AgentRegistry()
    >>> model = sa.ScriptedModel(["Sun, 20 degrees."])
    >>> weather = sa.Agent(model, name="weather", description="Forecasts for sailing.")
    >>> _ = agents.add(weather, capabilities=["weather"])
    >>> agents.route("weather").name
    'weather'
    >>> agents.delegate("How will it be?", to="weather").wait().text
    'Sun, 20 degrees.'

    Raises :class:`~sagents_nb.errors.ConfigurationError` as a store does.
    """

    @kinds.checked(
        store=kinds.or_none(
            kinds.either(
                "a sa.ConversationStore('sqlite:///…'), or its path",
                kinds.PATH,
                kinds.having("", "scoped", "tasks"),
            )
        ),
        scope=kinds.ANYTHING,
    )
    def __init__(self, store: Any = None, scope: Any = None) -> None:
        self._given = store
        self.scope = scope
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._index: LexicalIndex | None = None
        self._catalog: ToolCatalog | None = None
        self._tasks: WeakValueDictionary[str, Task] = WeakValueDictionary()
        self.watched: dict[str, Watch] = {}
        self.told: dict[str, int] = {}  # by task, the last change that this process told of

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"<AgentRegistry: {', '.join(self._entries) or 'no agents'}>"

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[AgentCard]:
        return iter([entry.card for entry in self._entries.values()])

    @cached_property
    def store(self) -> ConversationStore:
        """Where tasks are kept."""
        with self._lock:
            if "store" in vars(self):  # another thread was faster
                return vars(self)["store"]  # type: ignore[no-any-return]
            if self._given is None:
                from ..store import ConversationStore

                made: Any = ConversationStore("sqlite://")  # which nobody else has
            else:
                made = store_of(self._given)
            vars(self)["store"] = made
        return made  # type: ignore[no-any-return]

    # who is there

    @kinds.checked(
        agent=_AGENT,
        capabilities=_CAPABILITIES,
        name=kinds.of(str | None),
        description=kinds.of(str | None),
    )
    def add(
        self,
        agent: Any,
        capabilities: Sequence[str] | str = (),
        *,
        name: str | None = None,
        description: str | None = None,
        avatar: str = "",
        delegable: bool = True,
        accepts_context: bool = False,
    ) -> AgentCard:
        """Take in an ``agent``, or a function that works as one; gives its card.

        An agent goes by its own name; a function by that or by ``name``. ``description`` is its own
        by default, that of a function its docstring. ``capabilities`` are words to route by,
        ``avatar`` a picture for people. One that is not ``delegable`` takes no tasks of other
        agents; one that ``accepts_context`` may be told what was said before.

        A function is given the text of the task, a ``sa.Task`` and a ``sa.TaskContext``, whichever
        of them it takes, and returns the answer; further parameters keep their defaults. Raises
        :class:`~sagents_nb.errors.ConfigurationError` for an agent without a name, and one whose
        tool would be called as that of another.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> def shout(text: str) -> str:
        ...     "Says it loudly."
        ...     return text.upper()
        >>> agents.add(shout, avatar="📣").name
        'shout'
        >>> agents.delegate("hello", to="shout").wait().text
        'HELLO'
        """
        said: dict[str, Any] = {
            "capabilities": words(capabilities),
            "description": description,
            "avatar": avatar,
            "delegable": delegable,
            "accepts_context": accepts_context,
        }
        if is_agent(agent):
            if name not in (None, agent.name):
                raise ConfigurationError(
                    f"An agent goes by its own name; use agent.with_(name={name!r})."
                )
            entry = Entry(card_of(agent, **said), agent=agent)
        else:
            entry = Entry(_card_of_function(agent, name, **said), function=agent)
        card = checked_card(entry.card)
        with self._lock:
            for other in self._entries.values():
                if other.card.tool_name == card.tool_name and other.card.name != card.name:
                    raise ConfigurationError(
                        f"{card.name!r} and {other.card.name!r} would be called by one tool, "
                        f"{card.tool_name}; rename one of them."
                    )
            self._entries = {**self._entries, card.name: entry}
            self._index = self._catalog = None
        return card

    @kinds.checked
    def remove(self, name: str) -> None:
        """Forget the agent of that ``name``; its tasks stay, and nobody can go on with them.

        Raises :class:`~sagents_nb.errors.NotFound`.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel([]), name="weather"))
        >>> agents.remove("weather")
        >>> len(agents)
        0
        """
        with self._lock:
            self._entry(name)
            self._entries = {n: entry for n, entry in self._entries.items() if n != name}
            self._index = self._catalog = None

    @kinds.checked
    def card(self, name: str) -> AgentCard:
        """The card of the agent of that ``name``; raises :class:`~sagents_nb.errors.NotFound`.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel([]), name="weather"), avatar="🌤️")
        >>> agents.card("weather").avatar
        '🌤️'
        """
        return self._entry(name).card

    def _entry(self, name: str) -> Entry:
        entry = self._entries.get(name)
        if entry is None:
            known = ", ".join(self._entries) or "none"
            raise NotFound(f"No agent {name!r:.100} is registered; there is {known}.")
        return entry

    # finding them

    def find(
        self,
        query: str,
        limit: int = 3,
        min_score: float = 0.0,
        without: Sequence[str] = (),
        delegable: bool = False,
    ) -> list[Hit]:
        """Who fits ``query`` best: ids are names, and scores shares of the best one's.

        At most ``limit``, none below ``min_score`` and none ``without``; only ``delegable`` ones,
        if that is asked for.
        """
        entries = self._entries
        left_out = set(without)
        if delegable:
            left_out |= {name for name, entry in entries.items() if not entry.card.delegable}
        hits = self._searchable().search(query, _FURTHER, tuple(left_out))
        best = hits[0].score if hits else 0.0
        shares = [Hit(hit.id, hit.score / best if best > 0 else 0.0) for hit in hits]
        return [hit for hit in shares if hit.score >= min_score and hit.id in entries][:limit]

    def _searchable(self) -> LexicalIndex:
        with self._lock:
            if self._index is None:
                self._index = LexicalIndex(_WEIGHTS)
                ordered = sorted(self._entries.items())
                self._index.put({name: _said_of(entry.card) for name, entry in ordered})
            return self._index

    @kinds.checked(limit=kinds.whole(0), min_score=_SHARE)
    def search(
        self, query: str, limit: int = 10, min_score: float = 0.0, *, delegable: bool = False
    ) -> pandas.DataFrame:
        """Who fits ``query``, the best first, as a frame of at most ``limit`` rows.

        The columns are name, score (a share of the best one's), calls (tasks that have ended),
        success_rate, latency (seconds) and cost (US dollars), these as means. Those below
        ``min_score`` are left out, and with ``delegable`` those that take no tasks of others. An
        empty query finds all.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> weather = sa.Agent(sa.ScriptedModel([]), name="weather", description="For sailing.")
        >>> _ = agents.add(weather)
        >>> agents.search("sailing tomorrow")[["name", "score", "calls"]]
              name  score  calls
        0  weather    1.0      0
        """
        if query.strip():
            hits = self.find(query, limit, min_score, (), delegable)
        else:
            all_of_them = [e for e in self._entries.values() if e.card.delegable or not delegable]
            hits = [Hit(entry.card.name, 0.0) for entry in all_of_them][:limit]
        did = self.records()
        found = [(hit.id, hit.score, *did.get(hit.id, Record())) for hit in hits]
        return _framed(_AGENTS, found)

    @kinds.checked(
        exclude=kinds.of(Sequence[str]), recent=kinds.of(Sequence[str]), limit=kinds.whole(0)
    )
    def search_tools(
        self,
        query: str,
        exclude: Sequence[str] = (),
        recent: Sequence[str] = (),
        limit: int = 10,
    ) -> pandas.DataFrame:
        """The tools of all agents that fit ``query``, the best ``limit``, as a frame.

        The columns are tool ("agent/tool"), agent, description and score. Those in ``exclude`` are
        left out; those in ``recent``, used a moment ago, count for less. Both name tools with their
        agents, or without.

        >>> import sagents_nb as sa
        >>> def tides(port: str) -> str:
        ...     "When the tide is high in a port."
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel([]), name="harbour", tools=[tides]))
        >>> agents.search_tools("tide table")["tool"].tolist()
        ['harbour/tides']
        """
        entries = self._entries
        specs = {
            f"{name}/{tool.name}": tool.spec
            for name, entry in entries.items()
            for tool in (entry.agent.own_tools if entry.agent is not None else ())
        }
        catalog = self._catalog
        if catalog is None:
            from msgspec.structs import replace

            named = [replace(spec, name=id) for id, spec in specs.items()]
            catalog = self._catalog = ToolCatalog(named)
        without = [id for id in specs if id in exclude or id.partition("/")[2] in exclude]
        hits = catalog.search(query, _FURTHER, 0.0, without)
        again = [id for id in specs if id in recent or id.partition("/")[2] in recent]
        lowered = [Hit(h.id, h.score * (RECENT if h.id in again else 1.0)) for h in hits]
        best = sorted(lowered, key=lambda hit: -hit.score)[:limit]
        found = [
            (hit.id, hit.id.partition("/")[0], specs[hit.id].description, hit.score)
            for hit in best
            if hit.id in specs
        ]
        return _framed(_TOOLS, found)

    @kinds.checked(max_latency=_LIMIT, max_cost_usd=_LIMIT, min_success_rate=kinds.or_none(_SHARE))
    def route(
        self,
        capability: str,
        *,
        max_latency: float | None = None,
        max_cost_usd: float | None = None,
        min_success_rate: float | None = None,
    ) -> AgentCard:
        """Who is best for that ``capability``, or for what its words say.

        Of those that have it, the one with the best success rate, then the fastest and the
        cheapest. ``max_latency`` is in seconds of work, ``max_cost_usd`` in US dollars a task,
        ``min_success_rate`` from 0 to 1; one of which that is not known yet may be tried.

        Raises :class:`~sagents_nb.errors.NotFound` where none fits.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel([]), name="meteo"), ["weather"])
        >>> agents.route("weather", max_latency=2, max_cost_usd=0.05).name
        'meteo'
        """
        did = self.records()
        asked = capability.casefold()
        takes = [entry.card for entry in self._entries.values() if entry.card.delegable]
        ranks = {c.name: 0 for c in takes if asked in map(str.casefold, c.capabilities)}
        if not ranks:
            hits = self.find(capability, _FURTHER, 0.0, (), True)
            ranks = {hit.id: rank for rank, hit in enumerate(hits)}

        def fits(name: str) -> bool:
            record = did.get(name, Record())
            return not (
                _over(record.latency, max_latency)
                or _over(record.cost_usd, max_cost_usd)
                or _over(min_success_rate, record.success_rate)
            )

        def order(name: str) -> tuple[float, ...]:
            record = did.get(name, Record())
            success = 1.0 if record.success_rate is None else record.success_rate
            return ranks[name], -success, record.latency or 0.0, record.cost_usd or 0.0

        fitting = sorted(filter(fits, ranks), key=order)
        if not fitting:
            among = f"; {', '.join(ranks)} would, but not within the limits" if ranks else ""
            raise NotFound(f"No agent fits {capability!r:.100}{among}.")
        return self._entry(fitting[0]).card

    def records(self) -> dict[str, Record]:
        """How the agents did so far, by name, as the store's tasks say.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> _ = agents.delegate("Tomorrow?", to="weather").wait()
        >>> agents.records()["weather"].success_rate
        1.0
        """
        found = self.store.scoped(self.scope).tasks.run(rows.statistics)
        return {
            name: Record(calls, well / calls, latency, cost)
            for name, (calls, well, latency, cost) in found.items()
        }

    # tasks

    @kinds.checked(
        prompt=kinds.ANYTHING,
        timeout=kinds.or_none(kinds.number(0, "seconds", over=True), "for never"),
        to=kinds.of(str | None),
        budget=kinds.of(Budget | None),
    )
    def delegate(
        self,
        prompt: Any,
        to: str | None = None,
        *,
        timeout: float | None = None,
        budget: Budget | None = None,
    ) -> Task:
        """Have an agent do something; gives its task, which has begun, at once.

        ``prompt`` is a text, or a list of parts. ``to`` is the name of the agent, by default the
        one that fits best. After ``timeout`` seconds, waiting for people included, the task fails
        and its run is stopped; ``budget`` limits what it uses. Raises
        :class:`~sagents_nb.errors.NotFound` where no agent fits.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> task = agents.delegate("How is the weather?")
        >>> task.agent, task.wait().text
        ('weather', 'Sun.')
        """
        parts = parts_of(prompt)
        if to is None:
            said = " ".join(getattr(part, "text", "") for part in parts)
            to = self.route(said).name
        self._entry(to)
        record = new_record(f"task-{uuid.uuid4().hex}", to, parts, (to,), timeout, budget)
        return self.start(record, self.scope, Caller())

    @kinds.checked
    def task(self, id: str) -> Task:
        """The task of that ``id``, as it is in the store; nothing runs by that.

        Raises :class:`~sagents_nb.errors.NotFound`.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> id = agents.delegate("Tomorrow?", to="weather").wait().id
        >>> agents.task(id).text
        'Sun.'
        """
        live = self._tasks.get(id)
        if live is not None:
            return live.refresh()
        return self.known(self.store.scoped(self.scope).tasks.get(id), self.scope, Caller())

    @kinds.checked
    def recover(self, session: Session) -> list[Task]:
        """Go on with the background tasks of a ``session`` that the end of a process cut off.

        Its next run does so, too; this is for one that nobody talks to. It is told of those that
        have ended meanwhile, once, and so begins a run. Gives the tasks.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> agents.recover(sa.Session(sa.Agent(sa.ScriptedModel([]))))
        []
        """
        from .background import recover

        return recover(self, session, Caller())

    # for tasks and delegations

    def start(self, record: TaskRecord, scope: Any, caller: Caller) -> Task:
        """The task of that ``record``, made if need be, at work for ``caller``; in a thread."""
        tasks = self.store.scoped(scope).tasks
        tasks.run(rows.create, record)  # unless it was begun before the process ended
        task = self.known(tasks.get(record.id), scope, caller)
        if task.state in ("submitted", "working"):
            from ..runtime.thread import runtime

            runtime.call(task.go)
        return task

    def known(self, record: TaskRecord, scope: Any, caller: Caller) -> Task:
        """The one object here for the task of that ``record``; ``caller`` is for whom it is."""
        with self._lock:
            task = self._tasks.get(record.id)
            if task is None:
                task = self._tasks[record.id] = Task(self, record, scope, caller)
            return task

    def agent_for(self, task: Task) -> Agent:
        """Who works on that ``task``; raises NotFound for one that is not there."""
        entry = self._entry(task.record.agent)
        if entry.agent is not None:
            return entry.agent
        from .functions import FunctionModel

        assert entry.function is not None
        model = FunctionModel(entry.function, task)
        return Agent(model, name=entry.card.name, defaults=False)

    def agent_named(self, name: str) -> Agent | None:
        """The agent of that name; None for a function."""
        return self._entry(name).agent

    def is_function(self, name: str) -> bool:
        """Whether the agent of that name is a function."""
        entry = self._entries.get(name)
        return entry is not None and entry.function is not None

    def delegable(self) -> Iterable[AgentCard]:
        """The cards of those that take tasks, by name."""
        cards = [entry.card for entry in self._entries.values() if entry.card.delegable]
        return sorted(cards, key=lambda card: card.name)


def new_record(
    id: str,
    agent: str,
    parts: tuple[Any, ...],
    chain: tuple[str, ...],
    timeout: float | None = None,
    budget: Budget | None = None,
    **further: Any,
) -> TaskRecord:
    """A task that is to be made."""
    limits = None if budget is None or isinstance(budget, SharedBudget) else to_data(budget)
    return TaskRecord(
        id=id,
        agent=agent,
        input=parts,
        chain=chain,
        deadline=None if timeout is None else time.time() + timeout,
        budget=limits,
        **further,
    )


def _framed(columns: Mapping[str, Column], rows: Sequence[tuple[Any, ...]]) -> pandas.DataFrame:
    return framed(columns, {name: [row[i] for row in rows] for i, name in enumerate(columns)})


def _over(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value > limit


def _said_of(card: AgentCard) -> dict[str, str]:
    return {
        "name": spaced(card.name),
        "capabilities": " ".join(card.capabilities),
        "description": card.description,
        "tools": " ".join(map(spaced, card.tools)),
    }


def _card_of_function(function: Callable[..., Any], name: str | None, **said: Any) -> AgentCard:
    from .functions import arguments_of

    arguments_of(function)  # raises for one that takes what no task gives
    name = name or getattr(function, "__name__", "")
    if name == "<lambda>":
        raise ConfigurationError("A lambda has no name; give it one by add(…, name=…).")
    document = (function.__doc__ or "").strip().partition("\n")[0]
    said["description"] = said["description"] or document
    return AgentCard(name=str(name), **said)
