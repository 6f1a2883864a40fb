"""Many tools: the model is told of those that fit, and of no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.middleware.tool_search import found_tools
from sagents_nb.search.lexical import LexicalIndex
from tests.talking import call


def tides(port: str = "") -> str:
    """When the tide is high in a port."""
    return "At 6."


def find_city(name: str = "") -> str:
    """Where a city is."""
    return "There."


def order_lamp(count: int = 1) -> str:
    """Order lamps."""
    return "Ordered."


MANY = [tides, find_city, order_lamp]


def agent_of(*turns: Any, tools: Sequence[Any] = MANY, **options: Any) -> sa.Agent:
    search = sa.ToolSearch(
        **{k: options.pop(k) for k in ("limit", "embedder", "store") if k in options}
    )
    stack = [search, *options.pop("more", ())]
    return sa.Agent(
        sa.ScriptedModel(turns), tools=tools, middleware=stack, defaults=False, **options
    )


def offered(agent: sa.Agent, number: int = -1) -> list[str]:
    """The tools that the model was told of."""
    return [tool.name for tool in agent.model.requests[number].tools]  # type: ignore[attr-defined]


@pytest.mark.spec("R4.1.2")
def test_only_the_tools_that_fit_the_question_are_told_of() -> None:
    agent = agent_of("At 6.")
    agent.run("When is high tide in Bergen?")
    assert offered(agent) == ["search_tools", "tides"]


@pytest.mark.spec("R4.1.2")
def test_where_none_fits_the_model_answers_without_and_may_look_for_more() -> None:
    agent = agent_of("Hello!")
    assert agent.run("hi").text == "Hello!"
    assert offered(agent) == ["search_tools"]


@pytest.mark.spec("R4.1.2")
def test_tools_that_are_not_deferred_are_always_there_and_others_are_found() -> None:
    rare = sa.tool(defer_loading=True)(tides)
    agent = agent_of("1", "2", tools=[find_city, order_lamp, rare])
    result = agent.run("hi")
    assert offered(agent) == ["find_city", "order_lamp", "search_tools"]
    agent.run("And the tide?", state=result)
    assert offered(agent) == ["find_city", "order_lamp", "search_tools", "tides"]


def test_what_was_found_stays_in_its_order_and_is_never_dropped() -> None:
    agent = agent_of("1", "2", "3", "4")
    result = None
    for prompt in ("high tide?", "Order a lamp.", "hi", "Which city?"):
        result = agent.run(prompt, state=result)
    assert offered(agent, 1) == ["search_tools", "tides", "order_lamp"]
    assert offered(agent, 2) == offered(agent, 1)
    assert offered(agent, 3) == ["search_tools", "tides", "order_lamp", "find_city"]


def test_the_model_looks_for_more_and_may_call_it_in_the_next_turn() -> None:
    agent = agent_of(call("search_tools", query="order lamps"), call("order_lamp", "c2"), "Done.")
    result = agent.run("hi")
    found, ordered = result.tool_calls
    assert found.result is not None
    assert "order_lamp: Order lamps." in found.result.text
    assert ordered.status == "completed"
    assert offered(agent) == ["search_tools", "order_lamp"]


def test_two_searches_at_once_both_count() -> None:
    both = [call("search_tools", "a", query="lamps"), call("search_tools", "b", query="high tide")]
    agent = agent_of(sa.Message.assistant("", both), "Done.")
    agent.run("hi")
    assert sorted(offered(agent)) == ["order_lamp", "search_tools", "tides"]


def test_a_search_without_result_says_so() -> None:
    agent = agent_of(call("search_tools", query="xyzzy"), "Done.")
    (search,) = agent.run("hi").tool_calls
    assert search.result is not None
    assert search.result.text == "No further tool fits that; try other words."


def test_a_tool_that_was_not_found_is_not_run() -> None:
    agent = agent_of(call("order_lamp"), "Done.")
    (ordered,) = agent.run("hi").tool_calls
    assert ordered.status == "failed"
    assert ordered.result is not None
    assert "no tool 'order_lamp' in this turn" in ordered.result.text


def test_a_gate_holds_for_what_was_found() -> None:
    agent = agent_of(call("order_lamp"), "Done.", interrupt_on=["order_lamp"])
    result = agent.run("Order a lamp.")
    assert result.status == "interrupted"
    assert agent.resume(result, sa.Approve()).text == "Done."


def test_one_question_is_searched_once_however_often_the_model_is_asked() -> None:
    asked: list[str] = []

    def embedded(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts if len(texts) == 1 else ())
        return [[1.0, 0.0]] * len(texts)

    turns = [call("tides", f"c{n}", port="Bergen") for n in range(4)]
    agent_of(*turns, "Done.", embedder=embedded).run("high tide?")
    assert len(asked) == 1


def test_an_embedder_that_fails_leaves_the_words(caplog: pytest.LogCaptureFixture) -> None:
    def fails(texts: Sequence[str]) -> Any:
        raise OSError("no connection")

    agent = agent_of("Done.", embedder=fails)
    agent.run("high tide?")
    assert offered(agent) == ["search_tools", "tides"]
    assert "no connection" in caplog.text


def test_a_conversation_that_is_opened_again_has_the_tools_that_it_had() -> None:
    store = sa.ConversationStore("sqlite://")
    session = sa.Session(agent_of("1", "2"), store=store, id="talk")
    session.send("high tide?").result()
    session.send("Order a lamp.").result()
    session.close()
    agent = agent_of("3")
    session = sa.Session.open("talk", agent=agent, store=store)
    session.send("hi").result()
    assert offered(agent) == ["search_tools", "tides", "order_lamp"]
    session.close()
    store.close()


def test_of_recorded_answers_the_same_tools_are_offered_again(tmp_path: Any) -> None:
    def ask(model: Any) -> list[str]:
        agent = sa.Agent(model, tools=MANY, middleware=[sa.ToolSearch()], defaults=False)
        result = agent.run("And now?", state=agent.run("high tide?"))
        return [result.text, *found_tools(result.state)]

    path = tmp_path / "talk.json"
    first = ask(sa.RecordedModel(sa.ScriptedModel(["At 6.", "At 18."]), path, "record"))
    assert ask(sa.RecordedModel(sa.ScriptedModel([]), path, "replay")) == first


@pytest.mark.spec("R4.1.12")
def test_a_tool_that_was_called_with_success_is_found_for_the_like_and_a_failing_one_is_not() -> (
    None
):
    @sa.tool(defer_loading=True)
    def kettle(litres: int = 1) -> str:
        """Boil water."""
        return "Hot."

    @sa.tool(defer_loading=True)
    def stove() -> str:
        """Boil and heat."""
        raise ValueError("out of order")

    wants = sa.Message.assistant("", [call("kettle", "a"), call("stove", "b")])
    agent = agent_of(wants, "Done.", "Hi.", tools=[kettle, stove])
    agent.run("Boil something for my cuppa")
    agent.run("another cuppa")
    assert offered(agent) == ["search_tools", "kettle"]


@pytest.mark.spec("R4.1.12")
def test_for_what_a_tool_was_of_use_is_known_to_another_process_of_the_same_owner(
    tmp_path: Path,
) -> None:
    path, mine, theirs = tmp_path / "talks.db", sa.Scope(user="me"), sa.Scope(user="other")

    def asked(prompt: str, scope: sa.Scope, *turns: Any) -> list[str]:
        with sa.ConversationStore(path) as store:
            agent = agent_of(*turns, store=store.scoped(scope))
            agent.run(prompt)
            return offered(agent)

    assert asked("tide for my cuppa", mine, call("tides"), "Done.") == ["search_tools", "tides"]
    assert asked("another cuppa", mine, "Hi.") == ["search_tools", "tides"]
    assert asked("another cuppa", theirs, "Hi.") == ["search_tools"]


@pytest.mark.spec("R4.1.12")
def test_feedback_that_cannot_be_kept_or_read_never_reaches_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = sa.ConversationStore("sqlite://")
    store.close()
    agent = agent_of(call("tides"), "At 6.", store=store)
    assert agent.run("high tide?").text == "At 6."
    assert "is not known" in caplog.text
    assert "is not kept" in caplog.text


def test_what_was_of_use_for_the_same_is_written_once() -> None:
    written: list[Any] = []

    class Store:
        def load_tool_feedback(self) -> dict[str, list[str]]:
            return {}

        def add_tool_feedback(self, queries: Any) -> None:
            written.append(queries)

    turns = [call("tides", f"c{n}") for n in range(5)]
    agent_of(*turns, "Done.", store=Store()).run("high tide?")
    assert written == [{"tides": ["high tide"]}]


def test_a_question_is_one_query_and_a_call_of_the_model_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queries: list[str] = []
    search = LexicalIndex.search

    def counted(index: LexicalIndex, query: str, *args: Any) -> Any:
        queries.append(query)
        return search(index, query, *args)

    monkeypatch.setattr(LexicalIndex, "search", counted)
    turns = [call("tides", f"c{n}", port="Bergen") for n in range(20)]
    agent = agent_of(*turns, "1", "2")
    result = agent.run("high tide?")
    assert len(queries) == 1
    agent.run("Order a lamp.", state=result)
    assert len(queries) == 2


def test_tools_that_a_hook_adds_are_found_too() -> None:
    class Harbour(sa.Middleware):
        def before_run(self, state: sa.State, ctx: sa.RunContext) -> None:
            ctx.add_tools([sa.tool(defer_loading=True)(tides)])

    agent = agent_of("At 6.", tools=[], more=[Harbour()])
    agent.run("high tide?")
    assert offered(agent) == ["search_tools", "tides"]


def test_after_a_summary_what_was_found_is_still_there() -> None:
    stack = [sa.Summarization(turns=0, model=sa.ScriptedModel(["S"])), sa.ToolSearch()]
    model = sa.ScriptedModel(["1", "2"])
    agent = sa.Agent(model, tools=MANY, middleware=stack, defaults=False)
    agent.run("Order a lamp.", state=agent.run("high tide?"))
    assert offered(agent) == ["search_tools", "tides", "order_lamp"]


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"min_score": 1.1}, {"min_score": -1}, {"embedder": "openai:e"}]
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(sa.ConfigurationError, match=next(iter(wrong))):
        sa.ToolSearch(**wrong)
