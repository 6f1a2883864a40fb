"""A recorded model asks once, and says the same ever after."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import Emitter
from sagents_nb.messages import TextDelta, ToolCallDelta
from sagents_nb.models import ChatModel, ModelRequest
from sagents_nb.models.base import RetryNotice
from sagents_nb.models.cache import nearest
from tests.models.cache.asking import answered, request, say
from tests.models.loopback import RECORDED, Answer, Provider, model_for, provider_of
from tests.models.loopback import ask as hear_all
from tests.models.loopback import recorded as recorded_stream
from tests.session.hours import Hours

CALL = sa.ToolCall("c1", "look", {"at": "the sky"})
TURNS = ["Let me see.", CALL]


@sa.tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is blue"


def seen(result: sa.RunResult) -> list[tuple[str, str]]:
    return [(m.role, m.text or m.tool_results[0].text) for m in result.messages[1:]]


@pytest.fixture(params=["cache", "tape.json"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory, and a cassette."""
    return tmp_path / request.param


def recorded(place: Any, *turns: Any, mode: Any = "auto", **options: Any) -> sa.RecordedModel:
    return sa.RecordedModel(sa.ScriptedModel(turns), place, mode, **options)


def test_a_run_replays_turn_by_turn(place: Path) -> None:
    agent = sa.Agent(recorded(place, TURNS, "It is blue."), tools=[look])
    live = agent.run("How is the sky?")
    again = sa.Agent(recorded(place, mode="replay"), tools=[look]).run("How is the sky?")
    assert seen(again) == seen(live)
    assert again.text == "It is blue."


def test_a_stream_replays_as_the_same_stream(place: Path) -> None:
    live = answered(recorded(place, TURNS), request())
    again = answered(recorded(place, mode="replay"), request())
    assert again[0] == live[0]
    assert len(live[0]) > 5
    assert again[1].parts == live[1].parts


def test_pauses_come_back_with_pacing(
    place: Path, hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("scripted.asyncio", "replay.asyncio", "replay.time"):
        monkeypatch.setattr(f"sagents_nb.models.{name}", hours)
    slow = sa.ScriptedModel(["abcdefgh"], delay=0.1)
    answered(sa.RecordedModel(slow, place), request())
    pauses = [0.1, 0.1]
    assert hours.slept == pauses
    for pacing, slept in (("original", pauses), ("none", [])):
        hours.slept.clear()
        assert say(recorded(place, mode="replay", pacing=pacing)) == "abcdefgh"
        assert hours.slept == slept


def test_a_replay_costs_nothing_and_says_so(place: Path) -> None:
    usage = sa.Usage(100, 20, cost_usd=0.5)
    answer = sa.Message.assistant("Hello!", usage=usage, response_id="r1")
    live = sa.Agent(recorded(place, answer)).run("hi")
    again = sa.Agent(recorded(place, mode="replay")).run("hi")
    assert (live.usage, again.usage) == (usage, sa.Usage(100, 20, cost_usd=0.0))
    assert again.messages[-1].metadata == {"response_id": "r1", "replayed": True}
    assert "replayed" not in live.messages[-1].metadata


# Modes


def test_auto_asks_only_for_what_is_missing(place: Path) -> None:
    model = recorded(place, "one", "two")
    assert [say(model, text) for text in ("a", "a", "b", "a", "b")] == [
        "one",
        "one",
        "two",
        "one",
        "two",
    ]
    assert say(recorded(place), "b") == "two"


def test_record_asks_anew_and_once(place: Path) -> None:
    say(recorded(place, "old"))
    model = recorded(place, "new", mode="record")
    assert [say(model), say(model)] == ["new", "new"]
    assert say(recorded(place, mode="replay")) == "new"


def test_off_asks_and_records_nothing(place: Path) -> None:
    model = recorded(place, "one", "two", mode="off")
    assert [say(model), say(model)] == ["one", "two"]
    with pytest.raises(sa.ReplayMiss):
        say(recorded(place, mode="replay"))


@pytest.mark.parametrize("options", [{"mode": "reply"}, {"pacing": "slow"}])
def test_a_mode_that_does_not_exist_is_named(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(sa.ConfigurationError, match=r"mode|pacing"):
        recorded(tmp_path / "x.json", **options)


def test_who_asks_for_the_same_at_once_shares_the_answer(place: Path) -> None:
    model = sa.RecordedModel(sa.ScriptedModel(["only once"], delay=0.01), place)

    async def both() -> list[str]:
        async def one() -> str:
            *_, message = [item async for item in model.stream(request())]
            return str(message.text)

        return await asyncio.gather(*(one() for _ in range(5)))

    assert asyncio.run(both()) == ["only once"] * 5


def test_who_waited_for_one_that_failed_asks_itself(place: Path) -> None:
    model = recorded(place, sa.ModelError("No.", kind="authentication"), "yes")

    async def both() -> list[Any]:
        async def one() -> str:
            *_, message = [item async for item in model.stream(request())]
            return str(message.text)

        return await asyncio.gather(one(), one(), return_exceptions=True)

    first, second = asyncio.run(both())
    assert isinstance(first, sa.ModelError)
    assert second == "yes"


# What is kept


class Odd(ChatModel):
    """Streams these items, and raises what is an exception."""

    name = "odd"

    def __init__(self, *items: Any) -> None:
        self.items = items

    async def stream(self, request: ModelRequest) -> Any:
        for item in self.items:
            if isinstance(item, BaseException):
                raise item
            yield item


def message(reason: Any, **fields: Any) -> sa.Message:
    return sa.Message("assistant", (sa.TextPart("Hello"),), stop_reason=reason, **fields)


NOT_KEPT: dict[str, tuple[Any, ...]] = {
    **{
        f"an error of kind {kind}": ("He", sa.ModelError("No.", kind=kind))
        for kind in ("connection", "rate_limit", "authentication", "server", "cut_stream")
    },
    "an exception": ("He", ValueError("No.")),
    "a cut stream": ("He", "llo"),
    "nothing at all": (),
    "no stop reason": ("Hello", message(None)),
    "an error as a message": (message("error", error="No."),),
    "an aborted message": (message("aborted"),),
    "a message with an error": (message("end_turn", error="No."),),
    "an error after the message": (message("end_turn"), sa.ModelError("No.")),
    "a cancellation": ("He", asyncio.CancelledError()),
}


@pytest.mark.parametrize("what", NOT_KEPT)
def test_only_whole_answers_are_kept(place: Path, what: str) -> None:
    model = sa.RecordedModel(Odd(*NOT_KEPT[what]), place)

    async def ask() -> None:
        try:
            async for _ in model.stream(request()):
                pass
        except (Exception, asyncio.CancelledError):
            return

    asyncio.run(ask())
    with pytest.raises(sa.ReplayMiss):
        say(recorded_of(model, place))


def recorded_of(model: sa.RecordedModel, place: Path) -> sa.RecordedModel:
    return sa.RecordedModel(model.inner, place, "replay")


def test_an_answer_that_nobody_waited_for_is_not_kept(place: Path) -> None:
    model = recorded(place, "a long answer", "asked again")

    async def leave() -> None:
        stream: Any = model.stream(request())
        await anext(stream)
        await stream.aclose()

    asyncio.run(leave())
    assert say(model) == "asked again"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "pause_turn", "stop_sequence"])
def test_what_the_model_itself_ended_is_kept(place: Path, reason: str) -> None:
    answered(sa.RecordedModel(Odd(message(reason)), place), request())
    _, again = answered(sa.RecordedModel(Odd(), place, "replay"), request())
    assert again.stop_reason == reason


def test_an_answer_that_json_cannot_carry_is_given_and_not_kept(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    odd = sa.Message.assistant("\ud800")
    assert say(recorded(place, odd)) == "\ud800"
    assert "is not recorded" in caplog.text


@pytest.mark.parametrize("name", RECORDED)
def test_streams_of_real_providers_are_recorded_if_they_are_whole(
    place: Path, provider: Provider, name: str
) -> None:
    """Each stream as it is, and cut after every third of it."""
    body = recorded_stream(name)
    kind = provider_of(name)
    model = sa.RecordedModel(model_for(kind, provider.url), place)
    for cut in (len(body) // 3, 2 * len(body) // 3):
        provider.answer = Answer(body[:cut], framing="chunked")
        assert hear_all(model).error is not None
    provider.answer = Answer(body, framing="chunked")
    live = hear_all(model)
    provider.close()
    again = hear_all(sa.RecordedModel(model_for(kind, provider.url), place, "replay"))
    assert live.message is not None
    assert again.message is not None
    assert again.message.parts == live.message.parts
    # Arguments are written anew, perhaps with fewer spaces than the provider's.
    assert [d for d in again.deltas if not isinstance(d, ToolCallDelta)] == [
        d for d in live.deltas if not isinstance(d, ToolCallDelta)
    ]
    assert len(again.deltas) > 1 or "refusal" in name


# With retries, fallbacks and sub-agents


def test_failures_are_retried_inside_and_the_answer_is_recorded(place: Path) -> None:
    failing = sa.RetryingModel(
        sa.ScriptedModel([sa.ModelError("Busy.", kind="overloaded"), "at last"]),
        sleep=lambda seconds: asyncio.sleep(0),
    )
    items, _ = _items(sa.RecordedModel(failing, place))
    assert isinstance(items[0], RetryNotice)
    items, last = _items(recorded(place, mode="replay"))
    assert not any(isinstance(item, RetryNotice) for item in items)
    assert last.text == "at last"


def _items(model: ChatModel) -> tuple[list[Any], sa.Message]:
    return answered(model, request())


def test_an_agent_does_not_retry_twice(place: Path) -> None:
    model = recorded(place, "hello")
    assert sa.Agent(model).new_run(sa.State(), Emitter()).config.model is model


def test_the_fallback_that_answered_replays_as_well(place: Path) -> None:
    class First(ChatModel):
        name = "first"

        async def stream(self, request: ModelRequest) -> Any:
            raise sa.ModelError("No.", kind="authentication")
            yield

    def agent(mode: Any, *turns: str) -> sa.Agent:
        first = sa.RecordedModel(First(), place, mode)
        return sa.Agent(first, fallback_models=[recorded(place, *turns, mode=mode)])

    assert agent("auto", "the second").run("hi").text == "the second"
    assert agent("replay").run("hi").text == "the second"


def test_sub_agents_and_titles_are_recorded_with_it(place: Path) -> None:
    def agent(mode: Any) -> sa.Agent:
        model = sa.RecordedModel(Helper(), place, mode)
        helper = sa.SubAgentConfig("helper", "Helps.", "You help.", [look])
        return sa.Agent(
            model,
            subagent_options={"subagents": [helper]},
            middleware=[sa.ConversationTitle(model), Titled()],
        )

    Helper.asked = 0
    live = agent("auto").run("Delegate it.")
    assert Helper.asked >= 3
    before = Helper.asked
    again = agent("replay").run("Delegate it.")
    assert again.text == live.text
    assert again.state.metadata["conversation_title"] == live.state.metadata["conversation_title"]
    assert Helper.asked == before


class Titled(sa.Middleware):
    """The model goes on after a tool only when the title has come."""

    def before_run(self, state: sa.State, ctx: Any) -> None:
        self.come, notify = asyncio.Event(), ctx.notify

        def notified(*message: Any) -> None:
            notify(*message)
            self.come.set()

        ctx.notify = notified

    async def before_model(self, state: sa.State, ctx: Any) -> None:
        if state.messages[-1].role == "tool":
            await self.come.wait()


class Helper(ChatModel):
    """Delegates, and answers what was delegated."""

    name = "helper"
    asked = 0

    async def stream(self, request: ModelRequest) -> Any:
        Helper.asked += 1
        tools = [tool.name for tool in request.tools]
        done = request.messages[-1].role == "tool"
        if "task" in tools and not done:
            task = {"instructions": "Look.", "subagent_type": "helper"}
            answer = sa.Message.assistant("", [sa.ToolCall("t1", "task", task)])
        else:
            answer = sa.Message.assistant(f"Done with {len(tools)} tools.")
        yield answer


def test_tools_run_and_are_gated_in_a_replay_too(place: Path) -> None:
    ran: list[str] = []

    @sa.tool
    def send(text: str) -> str:
        """Send it."""
        ran.append(text)
        return "sent"

    def agent(*turns: Any, mode: Any = "auto") -> sa.Agent:
        model = recorded(place, *turns, mode=mode)
        return sa.Agent(model, tools=[send], interrupt_on={"send": True})

    live = agent(sa.ToolCall("s1", "send", {"text": "hello"}), "It is sent.")
    live.resume(live.run("Send hello."), sa.Approve())
    assert ran == ["hello"]
    again = agent(mode="replay")
    waiting = again.run("Send hello.")
    assert waiting.status == "interrupted"
    assert ran == ["hello"]
    assert again.resume(waiting, sa.Approve()).text == "It is sent."
    assert ran == ["hello", "hello"]


# Misses


@pytest.fixture(autouse=True)
def all_are_compared(hours: Hours, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for the nearest recording takes no time."""
    monkeypatch.setattr("sagents_nb.models.cache.nearest.time", hours)


def _miss(model: ChatModel, what: ModelRequest) -> sa.ReplayMiss:
    with pytest.raises(sa.ReplayMiss) as caught:
        answered(model, what)
    return caught.value


def test_a_miss_names_the_nearest_and_the_first_difference(place: Path) -> None:
    model = recorded(place, "one", "two")
    for text in ("How is the sky over Oslo today?", "Something else."):
        say(model, text)
    miss = _miss(recorded(place, mode="replay"), request("How is the sky over Rome today?"))
    assert miss.path == "messages[0].parts[0].text"
    assert "was recorded as «How is the sky over Oslo today?»" in str(miss)
    assert "and is «How is the sky over Rome today?» now" in str(miss)
    assert miss.nearest[:12] in str(miss)
    assert miss.kind == "not_recorded"


def test_a_miss_of_a_long_text_shows_where_it_differs(place: Path) -> None:
    long = "word " * 2_000
    say(recorded(place, "one"), long + "THE END " + long)
    miss = _miss(recorded(place, mode="replay"), request(long + "the end " + long))
    assert "word THE END word" in str(miss)
    assert "word the end word" in str(miss)
    assert len(str(miss)) < 700


def test_a_miss_names_tools_by_their_name(place: Path) -> None:
    sa.Agent(recorded(place, "one"), tools=[look]).run("hi")

    @sa.tool(name="look")
    def other(at: str) -> str:
        """Look at something else."""
        return at

    with pytest.raises(sa.ReplayMiss, match=r"tools\['look'\]\.description"):
        sa.Agent(recorded(place, mode="replay"), tools=[other]).run("hi")


def test_a_miss_of_an_empty_place_says_so(place: Path) -> None:
    assert "nothing like it is recorded" in str(_miss(recorded(place, mode="replay"), request()))


def test_a_run_raises_the_miss_with_what_was_done(place: Path) -> None:
    sa.Agent(recorded(place, TURNS, "done"), tools=[look]).run("hi")
    ran = 0

    @sa.tool(name="look")
    def later(at: str) -> str:
        """Look at something."""
        nonlocal ran
        ran += 1
        return f"{at} is grey"

    with pytest.raises(sa.ReplayMiss, match=r"messages.*is blue.*is grey") as caught:
        sa.Agent(recorded(place, mode="replay"), tools=[later]).run("hi")
    assert ran == 1
    assert len(caught.value.result.messages) > 2


def test_the_search_for_the_nearest_takes_less_than_a_second(
    tmp_path: Path, hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = sa.ResponseCache(tmp_path / "cache")
    model = sa.RecordedModel(sa.ScriptedModel(["x"] * 40), cache)
    for i in range(40):
        say(model, f"{i} " + "a long history " * 2_000)
    compared = []
    likeness = nearest.likeness

    def slow(*forms: Any) -> Any:
        hours.pass_by(0.1)
        compared.append(forms)
        return likeness(*forms)

    monkeypatch.setattr(nearest, "likeness", slow)
    _miss(sa.RecordedModel(sa.ScriptedModel([]), cache, "replay"), request("short"))
    assert 1 < len(compared) < 10


def test_a_replay_opens_no_socket_and_loads_no_sdk(tmp_path: Path) -> None:
    """In a process of its own, so that nothing is loaded yet."""
    script = f"""
        import sys
        sys.addaudithook(lambda event, _: (_ for _ in ()).throw(RuntimeError(event))
                         if event in ("socket.connect", "socket.getaddrinfo") else None)
        import sagents_nb as sa
        for spec in ("anthropic:claude", "openai:gpt", "openai-chat:gemma"):
            model = sa.RecordedModel(spec, {str(tmp_path / "x.json")!r}, "replay")
            model.preload()
            try:
                sa.Agent(model).run("hi")
            except sa.ReplayMiss:
                print("missed")
        print([name for name in ("anthropic", "openai", "httpx2") if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={"PYTHONPATH": str(Path(sa.__file__).parents[1]), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split("\n") == ["missed", "missed", "missed", "[]", ""], done.stderr


# What the environment says


class Live(ChatModel):
    """A model that is not offline."""

    name = "live"
    asked = 0

    async def stream(self, request: ModelRequest) -> Any:
        Live.asked += 1
        yield TextDelta("from the model")
        yield sa.Message.assistant("from the model")


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the mode for every model of this process."""
    monkeypatch.setenv("SAGENTS_CASSETTE", str(tmp_path / "told.json"))

    def say_mode(mode: str) -> None:
        monkeypatch.setenv("SAGENTS_REPLAY", mode)

    Live.asked = 0
    return say_mode


def test_the_environment_has_every_model_recorded_and_replayed(told: Any) -> None:
    told("record")
    assert sa.Agent(Live()).run("hi").text == "from the model"
    assert sa.Agent(Live()).run("hi").text == "from the model"  # another, of the same cassette
    told("replay")
    assert sa.Agent(Live()).run("hi").text == "from the model"
    assert Live.asked == 1
    with pytest.raises(sa.ReplayMiss):
        sa.Agent(Live()).run("ho")
    with pytest.raises(sa.ReplayMiss):
        sa.Agent("anthropic:claude", replace_default_middleware=True).run("hi")
    with pytest.raises(sa.ReplayMiss):
        sa.Agent(sa.RetryingModel(Live())).run("ho")


def test_offline_models_need_no_recording(told: Any) -> None:
    told("replay")
    assert sa.Agent(sa.ScriptedModel(["hello"])).run("hi").text == "hello"
    assert sa.Agent("demo").run("Hello!").text.startswith("Hello")
    assert sa.Agent(sa.RetryingModel(sa.ScriptedModel(["hello"]))).run("hi").text == "hello"
    assert sa.Agent().run("Hello!").text.startswith("Hello")
    own = Live()
    own.is_offline = True
    assert sa.Agent(sa.RetryingModel(own)).run("hi").text == "from the model"


def test_a_recorded_model_of_ones_own_keeps_its_place(told: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    told("record")
    sa.Agent(sa.RecordedModel(Live(), mine)).run("hi")
    assert not (tmp_path / "told.json").exists()
    told("replay")
    assert sa.Agent(sa.RecordedModel(Live(), mine)).run("hi").text == "from the model"
    with pytest.raises(sa.ReplayMiss, match=r"mine\.json"):
        sa.Agent(sa.RecordedModel(Live(), mine)).run("ho")
    assert Live.asked == 1
    assert sa.Agent(sa.RecordedModel(Live(), mine, "record")).run("ho").text == "from the model"


def test_a_mode_of_the_environment_that_does_not_exist_is_named(told: Any) -> None:
    told("yes")
    with pytest.raises(sa.ConfigurationError, match=r"\$SAGENTS_REPLAY"):
        sa.Agent(Live())


def test_no_socket_of_this_process_is_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    say(recorded(place, "one"))

    def refuse(*args: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    model = sa.RecordedModel(sa.ScriptedModel([]), place, "replay")
    assert say(model) == "one"
