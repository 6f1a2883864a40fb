"""Limits of a run: how much it may call, use, spend and last."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextvars import ContextVar
from functools import cache, cached_property

import msgspec

from . import kinds
from .errors import BudgetExceeded
from .messages import Usage, told_usage

_LIMITS = {
    **dict.fromkeys(
        ("model_calls", "tool_calls", "tokens"), kinds.or_none(kinds.whole(0), "for no limit")
    ),
    **dict.fromkeys(
        ("cost_usd", "seconds"), kinds.or_none(kinds.number(0, finite=True), "for no limit")
    ),
}


class Budget(msgspec.Struct, metaclass=kinds.Record, frozen=True, kw_only=True, omit_defaults=True):
    """Hard limits of a run; None is no limit.

    ``model_calls`` and ``tool_calls`` are how many may be made, ``tokens`` how many those calls may
    use, cached ones included. Those of sub-agents, summaries and titles are among them. A run stops
    before the call that would go beyond a limit, so it overshoots by what one call uses at most; of
    many at the same time, by what each that is under way uses. ``seconds`` is wall time of the run
    itself: a model that still answers then is stopped, and so is an async tool that still works; a
    thread cannot be. The budget of an agent that another one has work for it holds beside the other
    one's. ``cost_usd`` needs a model
    whose answers say what they cost (``Usage.cost_usd``), as those of a :class:`~sagents_nb.Priced`
    one do: with one that never does, as those of Anthropic and OpenAI, no call is made, and any
    other stops at its first answer without it.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a limit that is no number from 0. A
    run that is at one ends with :class:`~sagents_nb.errors.BudgetExceeded`.

    >>> from sagents_nb import Agent, BudgetExceeded, ScriptedModel
    >>> agent = Agent(ScriptedModel(["Hello!"]), budget=Budget(model_calls=0))
    >>> try:
    ...     agent.run("hi")
    ... except BudgetExceeded as error:
    ...     print(len(error.result.messages))
    1
    """

    model_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        kinds.check_fields(self, **_LIMITS)

    def shared(self) -> SharedBudget:
        """These limits for all runs and agents together that are given what this returns.

        Its ``meter`` says what they have used. Of ``seconds`` those count in which any of them
        ran. It is of this process.

        >>> from sagents_nb import Agent, Budget, ScriptedModel
        >>> day = Budget(model_calls=2).shared()
        >>> agents = [Agent(ScriptedModel(["Hi"]), budget=day) for _ in range(2)]
        >>> [agent.run("hello").text for agent in agents], day.meter.model_calls
        (['Hi', 'Hi'], 2)
        """
        return SharedBudget(**msgspec.structs.asdict(self))


class SharedBudget(Budget, frozen=True, kw_only=True, omit_defaults=True, eq=False, dict=True):
    """What :meth:`Budget.shared` returns: many runs draw on it.

    Its limits (``model_calls``, ``tool_calls``, ``tokens``, ``cost_usd``, ``seconds``) are those of
    the budget, and ``meter`` says what was used.

    >>> from sagents_nb import Agent, Budget, BudgetExceeded, ScriptedModel
    >>> day = Budget(model_calls=1).shared()
    >>> Agent(ScriptedModel(["Hello!"]), budget=day).run("hi").text
    'Hello!'
    >>> try:
    ...     Agent(ScriptedModel(["Hello!"]), budget=day).run("hi")
    ... except BudgetExceeded as error:
    ...     print(error)
    The budget of 1 model_calls is used up; raise it with Budget(model_calls=…) to go on.
    """

    @cached_property
    def meter(self) -> Meter:
        """What was used of it."""
        return Meter(self)

    def shared(self) -> SharedBudget:
        """Itself.

        >>> from sagents_nb import Budget
        >>> day = Budget(model_calls=2).shared()
        >>> day.shared() is day
        True
        """
        return self


def meter_of(budget: Budget | None, parent: Meter | None = None) -> Meter:
    """What a run with that budget counts by: its own meter, which may draw on that of many.

    ``parent`` counts for the run that this one works for: what is left of both is what there is.
    """
    shared = budget.meter if isinstance(budget, SharedBudget) else None
    if shared is not None and (parent is None or not parent.draws_on(shared)):
        return _DrawingMeter(None, [shared] if parent is None else [shared, parent])
    if parent is not None and (budget is None or shared is not None):
        return parent
    return Meter(budget) if parent is None else _DrawingMeter(budget, [parent])


class Meter:
    """What a run has used of its budget, if that is ``limited``; shared with its sub-agents.

    ``limits_cost`` is whether somebody limits what it may cost.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or _unlimited()
        self.limited = budget is not None and budget != _unlimited()
        self.limits_cost = self.budget.cost_usd is not None
        self.model_calls = 0
        self.tool_calls = 0
        self.usage = Usage()
        self._untold = False  # what some answer cost
        self._uncounted = False  # and how many tokens it took
        self._running = 0
        self._began = 0.0
        self._seconds = 0.0

    def __repr__(self) -> str:
        used = f"model_calls={self.model_calls}, tool_calls={self.tool_calls}"
        return f"Meter({used}, seconds={self.seconds:.1f}, {self.usage!r})"

    def begin(self) -> None:
        """A run begins or goes on; runs inside of it may begin and end meanwhile."""
        if not self._running:
            self._began = time.monotonic()
        self._running += 1

    def end(self) -> None:
        """It has ended, or waits for people: the clock stands still."""
        self._running -= 1
        if not self._running:
            self._seconds += time.monotonic() - self._began

    @property
    def tokens(self) -> int:
        """How many tokens the model calls used."""
        return self.usage.total_tokens

    @property
    def cost_usd(self) -> float | None:
        """What they cost in US dollars; None where no answer said it."""
        return self.usage.cost_usd

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return self._seconds + (time.monotonic() - self._began if self._running else 0.0)

    @property
    def seconds_left(self) -> float | None:
        """How long it may still run; None if nobody limits that."""
        limit = self.budget.seconds
        return None if limit is None else limit - self.seconds

    def draws_on(self, pot: Meter) -> bool:
        """Whether what this one counts is counted by ``pot``, too."""
        return self is pot

    def out_of_time(self) -> BudgetExceeded:
        """What to say once no second is left."""
        return self._used_up("seconds", self.budget.seconds or 0)

    def check(self, tells_cost: bool = True) -> None:
        """Raises BudgetExceeded if nothing new may be begun; see :meth:`before_model`."""
        if self.limited:
            self._check_model(tells_cost)
            self._compare("tool_calls", self.tool_calls + 1, self.budget.tool_calls)

    def before_model(self, tells_cost: bool = True) -> CountedCall | None:
        """Count a model call; raises BudgetExceeded if it may not be made.

        ``tells_cost`` is whether that model may say what the call cost. If anything is limited,
        :data:`DRAWN_ON` is to be what this returns for as long as the model is asked.
        """
        if not self.limited:
            self.model_calls += 1
            return None
        self._check_model(tells_cost)
        self.model_calls += 1
        return CountedCall(self)

    def allows_another_model(self, tells_cost: bool = True) -> bool:
        """Whether a model call may be made that the run itself can do without; none is counted.

        One has to be left for the run.
        """
        budget = self.budget
        if not self.limited or (budget.cost_usd is not None and not tells_cost):
            return not self.limited
        try:
            self._check()
            self._compare("model_calls", self.model_calls + 2, budget.model_calls)
        except BudgetExceeded:
            return False
        return True

    def check_again(self) -> None:
        """Raises BudgetExceeded if others used the rest while a counted model call waited."""
        if self.limited:
            self._check()

    def before_tool(self) -> None:
        """Count a tool call; raises BudgetExceeded if it may not be made."""
        self.check_tools(1)
        self.tool_calls += 1

    def allows_tools(self, count: int) -> bool:
        """Whether so many tool calls may be made now; none is counted."""
        try:
            self.check_tools(count)
        except BudgetExceeded:
            return False
        return True

    def check_tools(self, count: int) -> None:
        """Raises BudgetExceeded if so many tool calls may not be made now; none is counted."""
        if self.limited:
            self._check()
            self._compare("tool_calls", self.tool_calls + count, self.budget.tool_calls)

    def add(self, usage: Usage | None) -> Usage | None:
        """Count what a model call used, of what it says only numbers; gives what was counted."""
        if usage is None or (usage := told_usage(usage)) is None:
            return None
        self.usage += usage
        if self.limited and usage.cost_usd is None:
            self._untold = True
            self._uncounted = self._uncounted or not usage.total_tokens
        return usage

    def add_calls(self, model_calls: int, tool_calls: int) -> None:
        """Count what another run has made, which counted for itself."""
        self.model_calls += model_calls
        self.tool_calls += tool_calls

    def take_back(self) -> None:
        """Count a model call less: it was not made."""
        self.model_calls -= 1

    def add_untold(self) -> None:
        """Count an answer that says nothing of what it used, and so not what it cost."""
        self._untold = self._uncounted = True

    def check_cost(self) -> None:
        """Raises BudgetExceeded if money is limited, and some answer did not say what it cost."""
        if self._untold and self.budget.cost_usd is not None:
            instead = (
                "it counts no tokens either, for prices or Budget(tokens=…), so limit "
                "Budget(model_calls=…)"
                if self._uncounted
                else "give its prices with Priced(model, input=…, output=…), or limit "
                "Budget(tokens=…)"
            )
            raise BudgetExceeded(
                "A budget of cost_usd cannot be kept, as the model does not say what its calls "
                f"cost; {instead} instead."
            )

    def _check_model(self, tells_cost: bool) -> None:
        self._untold = self._untold or not tells_cost
        self._check()
        self._compare("model_calls", self.model_calls + 1, self.budget.model_calls)

    def _check(self) -> None:
        budget = self.budget
        self.check_cost()
        self._compare("tokens", self.usage.total_tokens + 1, budget.tokens)
        if budget.cost_usd is not None and (self.usage.cost_usd or 0.0) >= budget.cost_usd:
            raise self._used_up("cost_usd", budget.cost_usd)
        if budget.seconds is not None and self.seconds >= budget.seconds:
            raise self.out_of_time()

    def _compare(self, name: str, needed: int, limit: int | None) -> None:
        if limit is not None and needed > limit:
            raise self._used_up(name, limit)

    def _used_up(self, name: str, limit: float) -> BudgetExceeded:
        """What is said at a limit, and how it goes on: what many share is no run's to renew."""
        shown = f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"
        larger = f"raise it with Budget({name}=…) to go on"
        if limit and not isinstance(self.budget, SharedBudget):
            larger = f"going on has as much again, and more with Budget({name}=…)"
        return BudgetExceeded(f"The budget of {shown} {name} is used up; {larger}.")


class _DrawingMeter(Meter):
    """What one run has used of its own budget, and so of that of each of the ``pots``."""

    def __init__(self, budget: Budget | None, pots: Sequence[Meter]) -> None:
        super().__init__(budget)
        self._pots = pots
        self.limited = self.limited or any(pot.limited for pot in pots)
        self.limits_cost = self.limits_cost or any(pot.limits_cost for pot in pots)

    def begin(self) -> None:
        super().begin()
        for pot in self._pots:
            pot.begin()

    def end(self) -> None:
        super().end()
        for pot in self._pots:
            pot.end()

    @property
    def seconds_left(self) -> float | None:
        left = [super().seconds_left, *(pot.seconds_left for pot in self._pots)]
        return min((seconds for seconds in left if seconds is not None), default=None)

    def draws_on(self, pot: Meter) -> bool:
        return self is pot or any(own.draws_on(pot) for own in self._pots)

    def out_of_time(self) -> BudgetExceeded:
        for pot in self._pots:
            if (left := pot.seconds_left) is not None and left <= 0:
                return pot.out_of_time()
        return super().out_of_time()

    def check(self, tells_cost: bool = True) -> None:
        super().check(tells_cost)
        for pot in self._pots:
            pot.check(tells_cost)

    def allows_another_model(self, tells_cost: bool = True) -> bool:
        return super().allows_another_model(tells_cost) and all(
            pot.allows_another_model(tells_cost) for pot in self._pots
        )

    def before_model(self, tells_cost: bool = True) -> CountedCall | None:
        counted = super().before_model(tells_cost)
        asked = []
        try:
            for pot in self._pots:
                pot.before_model(tells_cost)
                asked.append(pot)
        except BudgetExceeded:
            for pot in asked:
                pot.take_back()
            self.model_calls -= 1
            raise
        return counted

    def check_again(self) -> None:
        super().check_again()
        for pot in self._pots:
            pot.check_again()

    def before_tool(self) -> None:
        self.check_tools(1)
        for pot in self._pots:
            pot.before_tool()
        self.tool_calls += 1

    def check_tools(self, count: int) -> None:
        super().check_tools(count)
        for pot in self._pots:
            pot.check_tools(count)

    def add(self, usage: Usage | None) -> Usage | None:
        counted = super().add(usage)
        for pot in self._pots:
            pot.add(usage)
        return counted

    def add_calls(self, model_calls: int, tool_calls: int) -> None:
        super().add_calls(model_calls, tool_calls)
        for pot in self._pots:
            pot.add_calls(model_calls, tool_calls)

    def take_back(self) -> None:
        super().take_back()
        for pot in self._pots:
            pot.take_back()

    def add_untold(self) -> None:
        super().add_untold()
        for pot in self._pots:
            pot.add_untold()

    def check_cost(self) -> None:
        super().check_cost()
        for pot in self._pots:
            pot.check_cost()


class CountedCall:
    """A model call that a meter counted before it was made, for models that make it wait."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._is_open = True

    def check_again(self) -> None:
        """Raises BudgetExceeded if others used the rest while it waited."""
        self._meter.check_again()

    def asked(self) -> None:
        """A model was asked, and may be again: it counts, whatever comes."""
        self._is_open = False

    def give_back(self) -> None:
        """It has ended while it waited: unless a model was asked before, it is not counted."""
        if self._is_open:
            self._is_open = False
            self._meter.take_back()


DRAWN_ON: ContextVar[CountedCall | None] = ContextVar("DRAWN_ON", default=None)
"""The call that a run with limits makes of a model, for a model that waits before it asks."""


def was_asked() -> None:
    """Of the call that is under way, an attempt was made: it counts, also if no other is."""
    if (call := DRAWN_ON.get()) is not None:
        call.asked()


@cache
def _unlimited() -> Budget:
    return Budget()
