"""Agents that share a limited model take turns: so many at once, so many in a minute."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.models.base import ModelRequest
from tests.talking import PATIENCE, run, until


class Crowded(sa.ChatModel):
    """Knows how many ask it at once; answers nobody before ``company`` have asked at once."""

    name = "crowded"

    def __init__(self, *, fails: int = 0, company: int = 1) -> None:
        self.now = self.most = self.asked = 0
        self.fails = fails
        self.company = company

    async def stream(self, request: Any) -> Any:
        self.now += 1
        self.asked += 1
        self.most = max(self.most, self.now)
        try:
            async with asyncio.timeout(30):
                while self.most < self.company:
                    await asyncio.sleep(0)
            for _ in range(5):
                await asyncio.sleep(0)
            if self.asked <= self.fails:
                raise sa.ModelError("Too many.", kind="rate_limit", retry_after=0.0)
            yield "Yes."
            yield sa.Message.assistant("Yes.")
        finally:
            self.now -= 1


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def asked(model: sa.ChatModel, times: int) -> list[str]:
    async def ask() -> str:
        items = [item async for item in model.stream(ModelRequest([sa.Message.user("?")]))]
        return str(items[-1].text)

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*(ask() for _ in range(times)))

    return run(all_at_once())


@pytest.mark.parametrize("most", [1, 3, 20])
def test_so_many_are_asked_at_once_and_all_get_their_answer(most: int) -> None:
    model = Crowded(company=most)
    assert asked(sa.Limited(model, concurrent=most), 20) == ["Yes."] * 20
    assert model.most == most


def test_agents_share_the_places_of_one_model() -> None:
    model = Crowded(company=2)
    limited = sa.Limited(model, concurrent=2)
    agents = [sa.Agent(limited, replace_default_middleware=True) for _ in range(6)]

    async def all_at_once() -> list[str]:
        return [r.text for r in await asyncio.gather(*(agent.arun("?") for agent in agents))]

    assert run(all_at_once()) == ["Yes."] * 6
    assert model.most == 2


def test_a_minute_has_so_many_turns_and_no_more() -> None:
    clock = Clock()
    limited = sa.Limited(Crowded(), per_minute=2, sleep=clock.sleep, clock=lambda: clock.now)
    for expected in ([], [], [60.0]):
        assert asked(limited, 1) == ["Yes."]
        assert clock.slept == expected
    clock.now += 30
    asked(limited, 1)
    assert clock.slept == [60.0]  # the third was at 60, so at 90 there is room for one
    asked(limited, 1)
    assert clock.slept == [60.0, 30.0]


def test_a_place_is_free_again_after_a_failure_and_after_a_cancelled_wait() -> None:
    limited = sa.Limited(Crowded(fails=1), concurrent=1)
    with pytest.raises(sa.ModelError):
        asked(limited, 1)

    async def given_up() -> None:
        stream = limited.stream(ModelRequest([sa.Message.user("?")]))
        await anext(stream)
        waiting = asyncio.create_task(anext(limited.stream(ModelRequest([sa.Message.user("?")]))))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await stream.aclose()

    run(given_up())
    assert asked(limited, 1) == ["Yes."]


def test_an_agent_retries_a_limited_model_as_the_model_itself() -> None:
    model = Crowded(fails=2)
    assert sa.Agent(sa.Limited(model, concurrent=1)).run("?").text == "Yes."
    assert model.asked == 3
    patient = Crowded(fails=2)
    patient.retries = 0
    with pytest.raises(sa.ModelError):
        sa.Agent(sa.Limited(patient, concurrent=1)).run("?")
    assert patient.asked == 1


def test_it_is_its_model_by_name_errors_and_recordings() -> None:
    limited = sa.Limited("openai-chat:gemma", concurrent=1)
    assert (limited.name, repr(limited)) == ("gemma", "OpenAIChatModel('gemma')")
    assert limited.identity() == limited.inner.identity()


def test_no_limit_and_wrong_ones_are_refused() -> None:
    with pytest.raises(sa.ConfigurationError, match="give it concurrent="):
        sa.Limited("demo")
    for wrong in ({"concurrent": 0}, {"per_minute": 1.5}, {"concurrent": True}):
        with pytest.raises(sa.ConfigurationError, match="Limited"):
            sa.Limited("demo", **wrong)


class Paid(sa.ChatModel):
    """Each answer has its tokens and its price."""

    name = "paid"
    tells_cost = True

    def __init__(self) -> None:
        self.asked = 0

    async def stream(self, request: Any) -> Any:
        self.asked += 1
        await asyncio.sleep(0)
        yield sa.Message.assistant("Yes.", usage=sa.Usage(50, 5, cost_usd=0.01))


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("budget", [sa.Budget(tokens=300), sa.Budget(cost_usd=0.06)])
def test_who_waited_for_a_place_looks_again_what_others_have_left(
    budget: sa.Budget, concurrent: int
) -> None:
    model, pot = Paid(), budget.shared()
    limited = sa.Limited(model, concurrent=concurrent)
    agents = [sa.Agent(limited, budget=pot, defaults=False) for _ in range(20)]

    async def all_at_once() -> list[Any]:
        runs = (agent.arun("?") for agent in agents)
        return await asyncio.gather(*runs, return_exceptions=True)

    came = run(all_at_once())
    refused = [each for each in came if isinstance(each, sa.BudgetExceeded)]
    assert 6 <= model.asked < 6 + concurrent  # those that are under way at the same time
    assert len(refused) == 20 - model.asked
    assert "is used up" in str(refused[-1])


def test_no_fallback_is_asked_for_what_the_budget_does_not_allow() -> None:
    pot, other = sa.Budget(tokens=60).shared(), Paid()
    limited = sa.Limited(Paid(), concurrent=1)
    agents = [
        sa.Agent(limited, budget=pot, defaults=False, fallback_models=[other]) for _ in range(9)
    ]

    async def all_at_once() -> list[Any]:
        runs = (agent.arun("?") for agent in agents)
        return await asyncio.gather(*runs, return_exceptions=True)

    came = run(all_at_once())
    assert sum(isinstance(each, sa.BudgetExceeded) for each in came) == 7
    assert other.asked == 0


def shared_runs(model: sa.ChatModel, pot: Any, count: int, **options: Any) -> list[Any]:
    """What comes of so many runs at once that draw on one budget."""
    agents = [sa.Agent(model, budget=pot, defaults=False, **options) for _ in range(count)]

    async def all_at_once() -> list[Any]:
        runs = (agent.arun("?") for agent in agents)
        return await asyncio.gather(*runs, return_exceptions=True)

    return run(all_at_once())


@pytest.mark.parametrize("limits", [{"concurrent": 1}, {"concurrent": 2, "per_minute": 999}])
def test_a_call_that_was_refused_while_it_waited_is_not_counted(limits: dict[str, int]) -> None:
    model, pot = Paid(), sa.Budget(tokens=60).shared()
    came = shared_runs(sa.Limited(model, **limits), pot, 10)
    assert sum(isinstance(each, sa.BudgetExceeded) for each in came) == 10 - model.asked > 0
    assert pot.meter.model_calls == model.asked


class Held(sa.ChatModel):
    """Answers nobody before it is let go; tells when it is asked for the first time."""

    name = "held"

    def __init__(self) -> None:
        self.asked = 0
        self.is_asked, self.may_go = threading.Event(), threading.Event()

    async def stream(self, request: Any) -> Any:
        self.asked += 1
        self.is_asked.set()
        while not self.may_go.is_set():
            await asyncio.sleep(0)
        yield sa.Message.assistant("Yes.")


def test_a_call_that_was_cancelled_while_it_waited_is_not_counted() -> None:
    model, pot = Held(), sa.Budget(model_calls=100).shared()
    limited = sa.Limited(model, concurrent=1)
    agent = sa.Agent(limited, budget=pot, defaults=False)
    first = sa.Session(agent).send("?")
    assert model.is_asked.wait(PATIENCE)
    waiting = [sa.Session(agent).send("?") for _ in range(9)]
    until(lambda: pot.meter.model_calls == 10)  # a place is kept for each while it waits
    for each in waiting:
        each.cancel()
        assert each.result().status == "cancelled"
    assert (model.asked, pot.meter.model_calls) == (1, 1)
    model.may_go.set()
    assert first.result().text == "Yes."
    assert pot.meter.model_calls == 1


def test_a_place_is_kept_for_a_call_that_waits() -> None:
    model, pot = Paid(), sa.Budget(model_calls=3).shared()
    came = shared_runs(sa.Limited(model, concurrent=1), pot, 10)
    assert sum(isinstance(each, sa.BudgetExceeded) for each in came) == 7
    assert (model.asked, pot.meter.model_calls) == (3, 3)


class Busy(sa.ChatModel):
    """Is busy whenever it is asked; uses up a budget of somebody's meanwhile."""

    name = "busy"

    def __init__(self, pot: Any) -> None:
        self.pot = pot

    async def stream(self, request: Any) -> Any:
        self.pot.meter.add(sa.Usage(1000))
        raise sa.ModelError("Busy.", kind="overloaded", retry_after=0.0)
        yield


@pytest.mark.parametrize("how", ["retry", "fallback"])
def test_a_call_that_was_asked_before_it_was_refused_counts(how: str) -> None:
    pot, other = sa.Budget(tokens=60).shared(), Paid()
    busy: sa.ChatModel = Busy(pot)
    busy.retries = 0 if how == "fallback" else 1
    fallbacks = [sa.Limited(other, concurrent=1)] if how == "fallback" else []
    model = busy if fallbacks else sa.Limited(busy, concurrent=1)
    (came,) = shared_runs(model, pot, 1, fallback_models=fallbacks)
    assert isinstance(came, sa.BudgetExceeded)
    assert other.asked == 0
    assert pot.meter.model_calls == 1


def test_who_gives_up_leaves_the_minute_to_the_next() -> None:
    clock = Clock()
    sleeps: list[asyncio.Future[None]] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(asyncio.get_running_loop().create_future())
        await sleeps[-1]
        clock.now += seconds

    model = Crowded()
    limited = sa.Limited(model, per_minute=1, sleep=sleep, clock=lambda: clock.now)

    async def ask() -> None:
        async for _ in limited.stream(ModelRequest([sa.Message.user("?")])):
            pass

    async def all_of_them() -> None:
        await ask()
        waiting = [asyncio.create_task(ask()) for _ in range(9)]
        for each in waiting[:8]:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            each.cancel()
        await asyncio.gather(*waiting[:8], return_exceptions=True)
        while not sleeps or sleeps[-1].done():
            await asyncio.sleep(0)
        sleeps[-1].set_result(None)
        await waiting[8]

    run(all_of_them())
    assert (clock.now, model.asked) == (60.0, 2)
