from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb import ConversationTitle, Message, ScriptedModel, State
from sagents_nb.events import TitleGenerated
from sagents_nb.middleware.conversation_title import ASKED
from sagents_nb.runtime.thread import runtime
from tests.middleware.histories import context, said, user
from tests.talking import PATIENCE, agent_of, call, of, run


class Job:
    """What a title's context is told: the job to run, and the letter it sends."""

    def __init__(self, heard: list[Any] | None = None, **options: Any) -> None:
        self.jobs: list[Any] = []
        self.letters: list[tuple[str, Any]] = []
        self.ctx = context(
            heard, spawn=self.jobs.append, notify=lambda *letter: self.letters.append(letter)
        )

    def finish(self) -> None:
        while self.jobs:
            run(self.jobs.pop())


def titled(
    messages: list[Message], *turns: Any, heard: list[Any] | None = None, **options: Any
) -> tuple[State, ScriptedModel]:
    """The state after hook, job and letter, and the model that was asked."""
    model = ScriptedModel(turns)
    middleware = ConversationTitle(model, **options)
    job = Job(heard)
    state = State(messages=messages)
    state = middleware.before_model(state, job.ctx) or state
    job.finish()
    for to, letter in job.letters:
        assert to == "ConversationTitle"
        state = middleware.handle_message(letter, state, job.ctx) or state
    return state, model


@pytest.mark.spec("S1.14.1")
def test_a_model_is_required() -> None:
    with pytest.raises(TypeError):
        ConversationTitle()  # type: ignore[call-arg]
    with pytest.raises(sa.ConfigurationError, match=r"ConversationTitle\(model=…\) is"):
        ConversationTitle(None)  # type: ignore[arg-type]


@pytest.mark.spec("S1.14.1")
def test_the_title_of_the_last_user_message_is_kept_and_told() -> None:
    heard: list[Any] = []
    messages = [user("one"), said(), user("Plot the penguins")]
    state, model = titled(messages, "Plot of penguins", heard=heard)
    assert state.get_metadata("conversation_title") == "Plot of penguins"
    assert [(event.type, event.title) for event in heard] == [
        ("title_generated", "Plot of penguins")
    ]
    assert model.requests[0].messages == [user("Plot the penguins")]


@pytest.mark.spec("S1.14.1")
def test_it_is_asked_once_even_before_the_title_is_there() -> None:
    middleware = ConversationTitle(ScriptedModel([]))
    job = Job()
    state = middleware.before_model(State(messages=[user()]), job.ctx)
    assert state is not None
    assert middleware.before_model(state, job.ctx) is None
    assert len(job.jobs) == 1
    job.jobs.pop().close()


@pytest.mark.spec("S1.14.1")
def test_a_conversation_with_a_title_or_without_a_user_needs_none() -> None:
    middleware = ConversationTitle(ScriptedModel([]))
    state = State(messages=[user()], metadata={"conversation_title": "Mine"})
    assert middleware.before_model(state, context()) is None
    assert middleware.before_model(State(messages=[said()]), context()) is None


@pytest.mark.spec("S1.14.1")
@pytest.mark.parametrize("turn", [ValueError("cable"), "", "\n ** \n"])
def test_a_failure_is_only_logged_and_not_tried_again(
    turn: Any, caplog: pytest.LogCaptureFixture
) -> None:
    state, _ = titled([user()], turn, "a title too late")
    assert "conversation_title" not in state.metadata
    assert "no title" in caplog.text
    job = Job()
    assert ConversationTitle(ScriptedModel(["x"])).before_model(state, job.ctx) is None
    assert job.jobs == []


@pytest.mark.spec("S1.14.1")
def test_when_a_model_fails_the_next_one_is_asked() -> None:
    fallbacks = [ScriptedModel([ValueError("again")]), ScriptedModel(["Third time lucky"])]
    state, _ = titled([user()], ValueError("cable"), fallback_models=fallbacks)
    assert state.get_metadata("conversation_title") == "Third time lucky"


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ('"Slow SQL query"', "Slow SQL query"),
        ("**Slow SQL query**\n\nIt is about…", "Slow SQL query"),
        ("\n# Slow   SQL\tquery", "Slow SQL query"),
        ("Slow \x1b[2Jquery", "Slow \\x1b[2Jquery"),
        ("word " * 50, f"{('word ' * 16)[:79].rstrip()}…"),
    ],
)
def test_a_title_is_one_short_visible_line(answer: str, title: str) -> None:
    state, _ = titled([user()], answer)
    assert state.get_metadata("conversation_title") == title


def test_a_title_that_comes_after_a_reset_or_another_title_is_dropped() -> None:
    middleware = ConversationTitle(ScriptedModel(["Late"]))
    job = Job()
    state = middleware.before_model(State(messages=[user()]), job.ctx)
    job.finish()
    (_, letter), heard = job.letters[0], list[Any]()
    assert state is not None
    named = state.put_metadata("conversation_title", "Mine")
    for other in (state.reset(), named):
        assert middleware.handle_message(letter, other, context(heard)) is None
    assert heard == []


def test_the_prompt_can_be_another_and_long_messages_are_cut() -> None:
    _, model = titled([user("x" * 10_000)], "X", prompt="One word.")
    assert model.requests[0].system == "One word."
    assert len(model.requests[0].messages[0].text) == 4_000


# In a session


@pytest.mark.spec("S1.14.1")
def test_a_slow_title_never_delays_the_run_and_comes_when_it_is_ready() -> None:
    ready = threading.Event()

    async def slow(request: Any) -> str:
        while not ready.is_set():
            await asyncio.sleep(0.005)
        return "Better late"

    heard: list[Any] = []
    named = threading.Event()

    def listen(event: Any) -> None:
        heard.append(event)
        if isinstance(event, TitleGenerated):
            named.set()

    session = sa.Session(agent_of("fine", middleware=[ConversationTitle(ScriptedModel([slow]))]))
    session.subscribe(listen)
    assert session.send("go").result().text == "fine"
    assert "conversation_title" not in session.state.metadata
    ready.set()
    assert named.wait(PATIENCE)
    runtime.call(lambda: None)  # who hears of it hears it a moment before the state has it
    assert session.state.get_metadata("conversation_title") == "Better late"
    exported = session.export_state()
    assert exported["state"]["metadata"]["conversation_title"] == "Better late"
    (event,) = of(TitleGenerated, heard)
    assert event.session_id == session.id
    session.close()


@pytest.mark.spec("S1.14.1")
def test_in_a_long_run_the_title_comes_between_two_turns() -> None:
    titles = ScriptedModel(["Early"])
    seen: list[Any] = []

    async def wait(ctx: sa.ToolContext) -> str:
        await asyncio.sleep(0)
        seen.append(ctx.state.get_metadata("conversation_title"))
        return "waited"

    turns = [call("wait", f"c{i}") for i in range(3)]
    agent = agent_of(*turns, "fine", tools=[wait], middleware=[ConversationTitle(titles)])
    result = agent.run("go")
    assert result.state.get_metadata("conversation_title") == "Early"
    assert seen[-1] == "Early"
    assert len(titles.requests) == 1


@pytest.mark.spec("S1.14.1")
def test_a_run_is_as_it_was_when_no_title_comes(caplog: pytest.LogCaptureFixture) -> None:
    asked = threading.Event()

    def fail(request: Any) -> str:
        asked.set()
        raise ValueError("cable")

    titles = ScriptedModel([fail])
    agent = agent_of("fine", "again", middleware=[ConversationTitle(titles)])
    session = sa.Session(agent)
    assert session.send("go").result().text == "fine"
    assert asked.wait(PATIENCE)
    assert session.send("go on").result().text == "again"
    assert len(titles.requests) == 1
    session.close()


def test_examples_of_yours_take_the_place_of_ours() -> None:
    model = ScriptedModel(["x"])
    ours = ConversationTitle(model)
    assert "Slow SQL query" in ours.prompt
    yours = ConversationTitle(model, examples=["Q3 close", "Audit"])
    assert yours.prompt.endswith('\n\nExamples: "Q3 close", "Audit".')
    assert "Slow SQL query" not in yours.prompt
    assert "Examples" not in ConversationTitle(model, examples=[]).prompt
    own = ConversationTitle(model, prompt="Name it.", examples=["Audit"])
    assert own.prompt == 'Name it.\n\nExamples: "Audit".'
    with pytest.raises(sa.ConfigurationError, match=r"examples=…\) is a list"):
        ConversationTitle(model, examples="Audit")


def used(title: ConversationTitle, budget: sa.Budget | None, *turns: Any) -> sa.SharedBudget:
    """The budget of a session that has ended its first run, and has its title if it gets one."""
    shared = (budget or sa.Budget()).shared()
    session = sa.Session(agent_of(*turns, middleware=[title], budget=shared))
    ended = threading.Event()
    session.subscribe(lambda event: ended.set() if event.type == "title_generated" else None)
    assert session.send("hi").result(PATIENCE).text == "Hello!"
    if session.state.get_metadata(ASKED):  # the model may be asked only after the run
        assert ended.wait(PATIENCE)
    return shared


def test_its_request_is_counted_in_the_budget() -> None:
    title = ConversationTitle(ScriptedModel(["A greeting"]))
    assert used(title, sa.Budget(model_calls=2), "Hello!").meter.model_calls == 2
    first, second = ScriptedModel([sa.ModelError("down")]), ScriptedModel(["A greeting"])
    title = ConversationTitle(first, fallback_models=[second])
    assert used(title, sa.Budget(model_calls=4), "Hello!").meter.model_calls == 3


@pytest.mark.parametrize(
    "budget", [sa.Budget(model_calls=1), sa.Budget(model_calls=9, cost_usd=1.0)]
)
def test_no_title_is_asked_for_that_would_take_the_last_call_or_has_no_price(
    budget: sa.Budget,
) -> None:
    answer = Message.assistant("Hello!", usage=sa.Usage(1, 1, cost_usd=0.1))
    model = Unpriced(["A greeting"]) if budget.cost_usd else ScriptedModel(["A greeting"])
    assert used(ConversationTitle(model), budget, answer).meter.model_calls == 1
    assert model.requests == []


class Unpriced(ScriptedModel):
    tells_cost = False


def test_a_second_model_is_not_asked_for_the_runs_last_call() -> None:
    second = ScriptedModel(["A greeting"])
    title = ConversationTitle(
        ScriptedModel([sa.ModelError("down")]), fallback_models=[second, second]
    )
    meter = sa.Budget(model_calls=2).shared().meter
    job = Job()
    job.ctx.meter = meter
    title.before_model(State(messages=[user("hi")]), job.ctx)
    assert meter.model_calls == 1
    job.finish()
    assert (meter.model_calls, second.requests) == (1, [])
