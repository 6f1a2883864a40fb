"""One answer outside of any conversation: text, JSON, values of a type, pieces as they come."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

import sagents_nb as sa
from sagents_nb.models.cache import Cassette
from tests.models.loopback import ANSWERS, KEY, Answer, Provider, model_for, recorded
from tests.talking import call


@dataclass
class Tide:
    port: str
    metres: float


@dataclass
class Maybe:
    port: str
    metres: float = 0.0


TIDE = '{"port": "Bergen", "metres": 1.4}'
SCHEMA = {
    "type": "object",
    "properties": {"metres": {"type": "number", "minimum": 0}},
    "required": ["metres"],
}


def schema_format(schema: Any = SCHEMA) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "tide", "schema": schema}}


def tides(port: str) -> str:
    """When the tide is high."""
    raise AssertionError("nothing is run")


def test_a_question_has_its_answer_and_leaves_nothing_behind() -> None:
    model = sa.ScriptedModel(["Hello!"])
    answer = model.complete("Say hello.", system="Be brief.", temperature=0)
    assert (answer.text, answer.value, answer.tool_calls) == ("Hello!", None, [])
    (request,) = model.requests
    assert (request.system, request.options) == ("Be brief.", {"temperature": 0})


def test_a_history_is_asked_about_as_it_is() -> None:
    model = sa.ScriptedModel(["Yes."])
    history = [sa.Message.user("hi"), sa.Message.assistant("Hello."), sa.Message.user("Sure?")]
    assert model.complete(history).text == "Yes."
    assert list(model.requests[0].messages) == history


def test_the_pieces_come_where_it_is_waited_for() -> None:
    pieces: list[str] = []
    threads: set[int] = set()

    def told(text: str) -> None:
        pieces.append(text)
        threads.add(threading.get_ident())

    assert sa.ScriptedModel(["Hello!"], chunk=3).complete("hi", on_text=told).text == "Hello!"
    assert pieces == ["Hel", "lo!"]
    assert threads == {threading.get_ident()}


def test_on_a_loop_the_pieces_may_be_awaited() -> None:
    pieces: list[str] = []

    async def told(text: str) -> None:
        await asyncio.sleep(0)
        pieces.append(text)

    answer = asyncio.run(sa.ScriptedModel(["Hello!"], chunk=3).acomplete("hi", on_text=told))
    assert (answer.text, pieces) == ("Hello!", ["Hel", "lo!"])


class Endless(sa.ChatModel):
    """Says a word after the other until somebody closes it."""

    name = "endless"

    def __init__(self) -> None:
        self.closed = threading.Event()

    async def stream(self, request: sa.ModelRequest) -> Any:
        try:
            while True:
                yield "word "
                await asyncio.sleep(0)
        finally:
            self.closed.set()


@pytest.mark.spec("R4.4.6")
@pytest.mark.parametrize("how", ["complete", "acomplete"])
def test_what_is_raised_for_a_piece_ends_the_answer_and_is_raised(how: str) -> None:
    model = Endless()

    def refuse(text: str) -> None:
        raise KeyError("enough")

    def ask() -> None:
        if how == "complete":
            model.complete("hi", on_text=refuse)
        else:
            asyncio.run(model.acomplete("hi", on_text=refuse))

    with pytest.raises(KeyError, match="enough"):
        ask()
    assert model.closed.wait(60)


def test_to_cancel_the_wait_ends_the_answer() -> None:
    model = Endless()
    begun = asyncio.Event()

    async def main() -> None:
        waiting = asyncio.create_task(model.acomplete("hi", on_text=lambda text: begun.set()))
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert model.closed.wait(60)


def test_a_model_that_is_busy_is_asked_again() -> None:
    busy = sa.ModelError("It is overloaded.", kind="overloaded", retry_after=0)

    async def at_once(seconds: float) -> None:
        pass

    model = sa.RetryingModel(sa.ScriptedModel([busy, "Hello!"]), sleep=at_once)
    assert model.complete("hi").text == "Hello!"


@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "context_window"])
def test_an_answer_that_is_not_whole_is_an_error(stop: Any) -> None:
    cut = sa.Message.assistant("Hel", stop_reason=stop)
    with pytest.raises(sa.ModelError, match=f"ended with '{stop}'"):
        sa.ScriptedModel([cut]).complete("hi")


def test_in_an_async_tool_it_is_awaited() -> None:
    inner = sa.ScriptedModel(["Inner.", "Inner."])

    async def look() -> str:
        """Look."""
        with pytest.raises(sa.Busy, match="acomplete"):
            inner.complete("hi")
        return (await inner.acomplete("hi")).text

    agent = sa.Agent(sa.ScriptedModel([call("look"), "Done."]), tools=[look], defaults=False)
    (looked,) = agent.run("go").tool_calls
    assert looked.result is not None
    assert looked.result.text == "Inner."


# values


@pytest.mark.parametrize(
    ("wanted", "said", "value"),
    [
        (Tide, TIDE, Tide("Bergen", 1.4)),
        (Literal["yes", "no"], '{"value": "no"}', "no"),
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (schema_format(), '{"metres": 1.4}', {"metres": 1.4}),
        ({"type": "json_object"}, '{"any": [1]}', {"any": [1]}),
        ({"type": "text"}, "It was high.", None),
    ],
)
def test_an_answer_is_read_as_what_was_asked_for(wanted: Any, said: str, value: Any) -> None:
    answer = sa.ScriptedModel([said]).complete("How high?", response_format=wanted)
    assert (answer.value, answer.text) == (value, said)


@pytest.mark.parametrize(
    ("wanted", "said", "why"),
    [
        (Tide, '{"port": "Bergen"}', "metres"),
        (Tide, "about a metre", "Expecting value"),
        (schema_format(), '{"metres": -1}', "-1 is less than the minimum"),
        ({"type": "json_object"}, "[1]", "no JSON object"),
        ({"type": "json_object"}, '{"a": ' * 100_000, "is not of its response_format"),
    ],
)
def test_an_answer_of_another_form_is_an_error_that_says_why(
    wanted: Any, said: str, why: str
) -> None:
    with pytest.raises(sa.ModelError, match=why):
        sa.ScriptedModel([said]).complete("How high?", response_format=wanted)


@pytest.mark.spec("R4.4.6")
@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"name": "tide"}},
        {"type": "yaml"},
        {},
        schema_format({"type": "no such type"}),
        TIDE,
    ],
)
def test_a_format_without_a_schema_is_refused_before_anybody_is_asked(wrong: Any) -> None:
    model = sa.ScriptedModel(["never"])
    with pytest.raises(sa.ConfigurationError):
        model.complete("How high?", response_format=wrong)
    assert model.requests == []


# tools


@pytest.mark.spec("R4.4.6")
def test_tools_are_told_of_and_not_run() -> None:
    model = sa.ScriptedModel([call("tides", port="Bergen")])
    answer = model.complete("High tide?", tools=[tides], tool_choice="required")
    assert [c.arguments for c in answer.tool_calls] == [{"port": "Bergen"}]
    assert model.requests[0].options == {"tool_choice": "required"}
    assert [spec.name for spec in model.requests[0].tools] == ["tides"]


@pytest.mark.spec("R4.4.6")
@pytest.mark.parametrize(
    ("choice", "said"), [("none", call("tides", port="Bergen")), ("required", "At 6.")]
)
def test_a_model_that_does_not_do_as_tool_choice_says_is_an_error(choice: str, said: Any) -> None:
    with pytest.raises(sa.ModelError, match=f"tool_choice is '{choice}'"):
        sa.ScriptedModel([said]).complete("?", tools=[tides], tool_choice=choice)


def test_a_choice_without_tools_is_refused() -> None:
    with pytest.raises(sa.ConfigurationError, match="no tools"):
        sa.ScriptedModel(["x"]).complete("?", tool_choice="required")


# what providers are sent


def body_of(provider: Provider, name: str, wanted: Any, **options: Any) -> dict[str, Any]:
    """The body of the request; the recorded answer to it is no JSON, and not looked at."""
    provider.answer = Answer(recorded(ANSWERS[name]), framing="chunked")
    with suppress(sa.ModelError):
        model_for(name, provider.url).complete("How high?", response_format=wanted, **options)
    body: dict[str, Any] = provider.requests[-1].body
    return body


def test_each_provider_is_told_of_the_schema_in_its_own_way(provider: Provider) -> None:
    chat = body_of(provider, "openai-chat", Tide)["response_format"]
    assert (chat["type"], chat["json_schema"]["strict"]) == ("json_schema", True)
    schema = chat["json_schema"]["schema"]
    assert set(schema["required"]) == {"port", "metres"}
    assert schema["additionalProperties"] is False
    text = body_of(provider, "openai", Tide, text={"verbosity": "low"})["text"]
    assert text["verbosity"] == "low"
    assert "format" in body_of(provider, "openai", Tide)["text"]
    assert body_of(provider, "openai", Tide)["text"]["format"] == {
        "type": "json_schema",
        **chat["json_schema"],
    }
    config = body_of(provider, "anthropic", Tide)["output_config"]
    assert config == {"format": {"type": "json_schema", "schema": schema}}
    assert "response_format" not in body_of(provider, "anthropic", Tide)


def test_claude_is_told_of_no_limits_and_keeps_its_effort(provider: Provider) -> None:
    config = body_of(provider, "anthropic", schema_format(), thinking="low")["output_config"]
    assert config["effort"] == "low"
    assert config["format"]["schema"]["properties"] == {"metres": {"type": "number"}}
    assert "output_config" not in body_of(provider, "anthropic", {"type": "json_object"})


def test_what_may_be_left_out_is_in_no_strict_schema(provider: Provider) -> None:
    sent = body_of(provider, "openai-chat", Maybe)["response_format"]["json_schema"]
    assert sent["strict"] is False


def test_an_agent_may_have_a_format_for_all_its_answers(provider: Provider) -> None:
    provider.answer = Answer(recorded("openai_responses_text"), framing="chunked")
    model = model_for("openai", provider.url, response_format={"type": "json_object"})
    sa.Agent(model, defaults=False).run("hi")
    assert provider.requests[-1].body["text"] == {"format": {"type": "json_object"}}


# recordings and keys


@pytest.mark.parametrize("cache", ["answers.json", "answers"])
def test_a_completion_is_recorded_and_replayed_by_its_format(tmp_path: Path, cache: str) -> None:
    path = tmp_path / cache
    model = sa.RecordedModel(sa.ScriptedModel([TIDE]), path)
    assert model.complete("How high?", response_format=Tide).value == Tide("Bergen", 1.4)
    replayed = sa.RecordedModel(sa.ScriptedModel([]), path, "replay")
    answer = replayed.complete("How high?", response_format=Tide)
    assert answer.value == Tide("Bergen", 1.4)
    assert answer.message.metadata["replayed"] is True
    with pytest.raises(sa.ReplayMiss, match="response_format"):
        replayed.complete("How high?", response_format={"type": "json_object"})


def test_no_key_is_in_an_error_or_a_recording(provider: Provider, tmp_path: Path) -> None:
    said = json.dumps({"error": {"message": f"bad format, your key was {KEY}"}})
    provider.answer = Answer(said.encode(), 400, {"content-type": "application/json"}, "length")
    model = sa.RecordedModel(model_for("openai-chat", provider.url), tmp_path / "a.json")
    with pytest.raises(sa.ModelError, match="bad format") as caught:
        model.complete("hi", response_format=Tide)
    assert KEY not in f"{caught.value!r} {caught.value.__context__!r}"
    provider.answer = Answer(recorded("openai_chat_text"), framing="chunked")
    model.complete("hi")
    assert KEY not in (tmp_path / "a.json").read_text()
    assert len(list(Cassette.at(tmp_path / "a.json").recordings())) == 1
