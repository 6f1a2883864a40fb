"""Whatever other people's code raises, wherever it is called: it ends a run at most.

Afterwards the run has ended and has said why in one sentence, the session can be used, and so
can every other one of the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, ClassVar

import msgspec
import pydantic
import pytest

import sagents_nb as sa
from sagents_nb.events import TitleGenerated
from sagents_nb.files import CallbackStorage, FileSystem, Mount, StorageFailed
from sagents_nb.loop.agent_loop import AgentContext, AgentLoopConfig, agent_loop
from sagents_nb.runtime.thread import runtime
from tests.talking import PATIENCE, agent_of, all_of, call, session_of

Raise = Callable[[], Any]


class Mute(Exception):
    """Nobody can say what it says."""

    def __str__(self) -> str:
        raise ValueError("no text")


class MuteExit(SystemExit):
    """The same for one that would end a thread."""

    def __str__(self) -> str:
        raise SystemExit("no text")


RAISED: dict[str, Callable[[], BaseException]] = {
    "RuntimeError": lambda: RuntimeError("two\nlines"),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "StopIteration": lambda: StopIteration(5),
    "StopAsyncIteration": StopAsyncIteration,
    "RecursionError": lambda: RecursionError("deep"),
    "MemoryError": MemoryError,
    "Mute": Mute,
    "MuteExit": MuteExit,
    "a group": lambda: BaseExceptionGroup("group", [SystemExit(1), ValueError("x")]),
}


# What comes to who called on a thread of their own; Ctrl-C there is theirs.
CALLERS = (sa.AgentError, StorageFailed, KeyboardInterrupt, GeneratorExit)


def hook(name: str) -> Callable[[Raise], Any]:
    """A run whose middleware raises in that hook."""

    def place(boom: Raise) -> Any:
        middleware = type("Bad", (sa.Middleware,), {name: lambda self, *args: boom()})()
        turns = [call("work"), "done"]
        return ends(session_of(*turns, tools=[work], middleware=[middleware]))

    return place


def async_hook(boom: Raise) -> Any:
    class Bad(sa.Middleware):
        async def before_model(self, state: Any, ctx: Any) -> None:
            await asyncio.sleep(0)
            boom()

    return ends(session_of("done", middleware=[Bad()]))


def work() -> str:
    """Work."""
    return "worked"


def ends(session: sa.Session, prompt: Any = "go") -> Any:
    """The run's result or error, and a session that is not at work any more."""
    try:
        return session.send(prompt).result(PATIENCE)
    except sa.AgentError as error:
        return error
    finally:
        assert session.status != "running"
        session.close()


def in_tool(**options: Any) -> Callable[[Raise], Any]:
    def place(boom: Raise) -> Any:
        @sa.tool(**options)
        def bad() -> str:
            return str(boom())

        result = ends(session_of(call("bad"), "done", tools=[bad]))
        if isinstance(result, sa.RunResult) and result.status == "completed":
            assert result.messages[2].tool_results[0].is_error
        return result

    return place


def in_async_tool(boom: Raise) -> Any:
    async def bad() -> str:
        await asyncio.sleep(0)
        return str(boom())

    result = ends(session_of(call("bad"), "done", tools=[bad]))
    assert result.messages[2].tool_results[0].is_error
    return result


def in_prompt(boom: Raise) -> Any:
    return ends(session_of("done", system_prompt=lambda ctx: boom()))


def in_validator(boom: Raise) -> Any:
    def check(n: int) -> int:
        boom()
        return n

    def bad(n: Any) -> str:
        return "ran"

    bad.__annotations__["n"] = Annotated[int, pydantic.AfterValidator(check)]
    result = ends(session_of(call("bad", n=1), "done", tools=[bad]))
    if isinstance(result, sa.RunResult) and result.status == "completed":
        assert result.messages[2].tool_results[0].is_error
    return result


def in_handler(boom: Raise) -> Any:
    tool = sa.Tool.from_schema("bad", "", {"type": "object"}, lambda **arguments: boom())
    result = ends(session_of(call("bad"), "done", tools=[tool]))
    if isinstance(result, sa.RunResult) and result.status == "completed":
        assert result.messages[2].tool_results[0].is_error
    return result


def in_display_text(boom: Raise) -> Any:
    @sa.tool(display_text=lambda arguments: str(boom()))
    def fine() -> str:
        return "fine"

    result = ends(session_of(call("fine"), "done", tools=[fine]))
    assert result.messages[2].tool_results[0].text == "fine"
    return result


checking: Raise = lambda: None  # noqa: E731  # what the check of an Odd does


class Odd(msgspec.Struct):
    n: int

    def __post_init__(self) -> None:
        checking()


def in_argument(boom: Raise) -> Any:
    @sa.tool
    def fine(odd: Odd) -> str:
        return "fine"

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "checking", boom)
        result = ends(session_of(call("fine", odd={"n": 1}), "done", tools=[fine]))
    assert result.messages[2].tool_results[0].is_error
    return result


class Talker(sa.ChatModel):
    """A model that raises before or after its first words."""

    name = "talker"

    def __init__(self, boom: Raise, first: bool) -> None:
        self.boom = boom
        self.first = first

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        if not self.first:
            yield "Half an "
        self.boom()
        yield sa.Message.assistant("answer")


def in_model(first: bool) -> Callable[[Raise], Any]:
    def place(boom: Raise) -> Any:
        agent = sa.Agent(Talker(boom, first), replace_default_middleware=True)
        error = ends(sa.Session(agent))
        assert isinstance(error, sa.ModelError)
        return error

    return place


def in_first_of_two_models(boom: Raise) -> Any:
    agent = sa.Agent(
        Talker(boom, True),
        fallback_models=[sa.ScriptedModel(["from the other"])],
        replace_default_middleware=True,
    )
    result = ends(sa.Session(agent))
    assert result.text == "from the other"
    return result


def in_before_fallback(boom: Raise) -> Any:
    agent = sa.Agent(
        Talker(failing, True),
        fallback_models=[sa.ScriptedModel(["y"])],
        before_fallback=lambda model, request: boom(),
        replace_default_middleware=True,
    )
    error = ends(sa.Session(agent))
    assert isinstance(error, sa.ModelError)
    return error


def failing() -> None:
    raise sa.ModelError("It is down.")


def in_title(boom: Raise) -> Any:
    titled = sa.ConversationTitle(Talker(boom, True))
    result = ends(session_of("done", middleware=[titled]))
    assert result.text == "done"
    return result


def in_summary(boom: Raise) -> Any:
    summing = sa.Summarization(model=Talker(boom, True), max_tokens=10, keep=1)
    session = session_of("one", "two", "three", middleware=[summing])
    for _ in range(2):
        session.send("word " * 40).result(PATIENCE)
    result = ends(session)
    assert result.text == "three"
    return result


def in_token_counter(boom: Raise) -> Any:
    summing = sa.Summarization(max_tokens=10, token_counter=lambda message: boom())
    return ends(session_of("done", middleware=[summing]))


def listening(debug: bool) -> Callable[[Raise], Any]:
    def place(boom: Raise) -> Any:
        session = session_of("done")
        session.subscribe(lambda event: boom(), debug=debug)
        result = ends(session)
        assert result.text == "done"
        return result

    return place


def async_listener(boom: Raise) -> Any:
    async def bad(event: Any) -> None:
        await asyncio.sleep(0)
        boom()

    session = session_of("done")
    session.subscribe(bad)
    result = ends(session)
    assert result.text == "done"
    return result


def run_events(boom: Raise) -> Any:
    session = session_of(call("work"), "done", tools=[work])
    session.send("go").events(lambda event: boom())
    return ends(session)


def in_config(name: str, *args: Any) -> Callable[[Raise], Any]:
    """A bare loop whose function of that name raises."""

    def place(boom: Raise) -> Any:
        model = sa.ScriptedModel([sa.ToolCall("c", "work", {}), "done"])
        config = AgentLoopConfig(model=model, **{name: lambda *given: boom()})
        try:
            return all_of(agent_loop("go", AgentContext(tools=[work]), config))[-1]
        except sa.AgentError as error:
            return error

    return place


def in_preprocessor(boom: Raise) -> Any:
    session = sa.Session(agent_of("done"), message_preprocessor=lambda message, ctx: boom())
    with pytest.raises(CALLERS):  # Ctrl-C is the caller's
        session.send("go")
    assert session.status == "idle"
    session.close()


def in_async_preprocessor(boom: Raise) -> Any:
    async def bad(message: Any, ctx: Any) -> Any:
        boom()

    session = sa.Session(agent_of("done"), message_preprocessor=bad)
    with pytest.raises(CALLERS):
        session.send("go")
    assert session.status == "idle"
    session.close()


class Rows:
    """Keeps nothing, and raises where it is told to."""

    def __init__(self, boom: Raise) -> None:
        self.save_message = self.save_row = lambda *args: boom()
        self.update_tool_status = self.record_decision = self.save_message
        self.resolve_tool_result = self.save_message
        self.save_state = self.load_state = self.save_message


def in_rows(boom: Raise) -> Any:
    agent = agent_of(call("work"), "done", tools=[work])
    result = ends(sa.Session(agent, display_persistence=Rows(boom)))
    assert result.text == "done"
    return result


def in_async_rows(boom: Raise) -> Any:
    async def bad(*args: Any) -> None:
        boom()

    rows = Rows(boom)
    rows.save_message = rows.save_row = bad  # type: ignore[assignment]
    result = ends(sa.Session(agent_of("done"), display_persistence=rows))
    assert result.text == "done"
    return result


def in_state(boom: Raise) -> Any:
    rows: Any = Rows(boom)
    rows.load_state = lambda *args: None
    result = ends(sa.Session(agent_of("done"), agent_persistence=rows))
    assert result.text == "done"
    return result


def in_title_listener(boom: Raise) -> Any:
    session = session_of("done", middleware=[sa.ConversationTitle(sa.ScriptedModel(["Title"]))])
    session.subscribe(lambda event: boom() if isinstance(event, TitleGenerated) else None)
    return ends(session)


def in_storage(name: str) -> Callable[[Raise], Any]:
    """A session whose files are kept by functions, of which that one raises."""

    def place(boom: Raise) -> Any:
        functions: dict[str, Any] = {
            "on_read": lambda path, context: "text",
            "on_write": lambda path, content, context: None,
            "on_delete": lambda path, context: None,
            "on_list": lambda context: ["old"],
        }
        functions[name] = lambda *args: boom()
        mount = Mount("kept", CallbackStorage(**functions), debounce=0.0)
        files = FileSystem(("user", name))
        try:
            files.mount(mount)
        except CALLERS:
            return None
        turns = [
            call("read_file", "r", file_path="/kept/old"),
            call("write_file", "w", file_path="/kept/new", content="1"),
            call("delete_file", "d", file_path="/kept/old"),
            "done",
        ]
        agent = agent_of(*turns, middleware=[sa.FileSystem()])
        result = ends(sa.Session(agent, filesystem=files))
        failed = [r.name for m in result.messages for r in m.tool_results if r.is_error]
        expected = {
            "on_read": ["read_file"],
            "on_write": ["write_file"],
            "on_delete": ["delete_file"],
        }
        assert failed == expected.get(name, [])
        if name == "on_write":
            with pytest.raises(CALLERS):
                files.flush()
            functions[name] = boom = lambda *args: None  # else the end of the process says it
            mount.storage = CallbackStorage(**functions)
        files.flush()
        return result

    return place


def in_files_subscriber(boom: Raise) -> Any:
    agent = agent_of(
        call("write_file", "w", file_path="/a", content="1"), "done", middleware=[sa.FileSystem()]
    )
    session = sa.Session(agent)
    session.files.subscribe(lambda event: boom())
    result = ends(session)
    assert result.messages[2].tool_results[0].is_error is False
    return result


def in_state_schema(boom: Raise) -> Any:
    class Keeping(sa.Middleware):
        state_schema: ClassVar[Any] = {"odd": (lambda value: boom(), lambda value: value)}

        def before_model(self, state: sa.State, ctx: Any) -> sa.State:
            return state.put_metadata("odd", 1)

    store = sa.ConversationStore("sqlite://")
    return ends(sa.Session(agent_of("done", middleware=[Keeping()]), store=store))


def in_sub_agent_result(boom: Raise) -> Any:
    helper = sa.CompiledSubAgent(
        "helper", "Help.", agent_of("helped"), extract_result=lambda state: boom()
    )
    agent = agent_of(
        call("task", "t", instructions="go", subagent_type="helper"),
        "done",
        middleware=[sa.SubAgents([helper])],
    )
    result = ends(sa.Session(agent))
    assert result.messages[2].tool_results[0].is_error
    return result


PLACES: dict[str, Callable[[Raise], Any]] = {
    "a tool": in_tool(),
    "a tool on the loop": in_tool(run_on="loop"),
    "a tool on the main thread": in_tool(run_on="main"),
    "an async tool": in_async_tool,
    "a display text": in_display_text,
    "an argument's type": in_argument,
    "before_run": hook("before_run"),
    "before_model": hook("before_model"),
    "before_model_request": hook("before_model_request"),
    "a prompt": in_prompt,
    "a validator": in_validator,
    "a handler of a schema": in_handler,
    "after_model": hook("after_model"),
    "after_run": hook("after_run"),
    "before_tool": hook("before_tool"),
    "after_tool": hook("after_tool"),
    "on_event": hook("on_event"),
    "on_session_start": hook("on_session_start"),
    "an async hook": async_hook,
    "a model": in_model(first=True),
    "a model that speaks": in_model(first=False),
    "the first of two models": in_first_of_two_models,
    "what is done between two models": in_before_fallback,
    "a title's model": in_title,
    "a summary's model": in_summary,
    "a token counter": in_token_counter,
    "a subscriber": listening(debug=False),
    "a debugger": listening(debug=True),
    "an async subscriber": async_listener,
    "a run's events": run_events,
    "a title's subscriber": in_title_listener,
    "a transform": in_config("transform_context"),
    "a converter": in_config("convert_to_llm"),
    "a key": in_config("get_api_key"),
    "steering": in_config("get_steering_messages"),
    "follow-ups": in_config("get_follow_up_messages"),
    "a stop": in_config("should_stop_after_turn"),
    "a preprocessor": in_preprocessor,
    "an async preprocessor": in_async_preprocessor,
    "a row": in_rows,
    "an async row": in_async_rows,
    "a kept state": in_state,
    "a storage's list": in_storage("on_list"),
    "a storage's read": in_storage("on_read"),
    "a storage's write": in_storage("on_write"),
    "a storage's delete": in_storage("on_delete"),
    "a subscriber of files": in_files_subscriber,
    "a state schema": in_state_schema,
    "a sub-agent's result": in_sub_agent_result,
}


@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("place", PLACES)
def test_it_ends_a_run_at_most(place: str, kind: str) -> None:
    def boom() -> Any:
        raise RAISED[kind]()

    outcome = PLACES[place](boom)
    if isinstance(outcome, sa.AgentError):
        assert str(outcome)
        assert outcome.result is None or outcome.result.status == "error"
    assert runtime.call(lambda: "alive") == "alive"
    assert session_of("fine").send("and another?").result(PATIENCE).text == "fine"


class Refusing(Exception):
    """Nobody can ask it anything, not even for its class, as isinstance does."""

    def __getattribute__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


# Where it is not logged with its traceback: the handler of these tests does not bear it.
@pytest.mark.parametrize(
    "place",
    [
        *(place for place in PLACES if "tool" in place or "model" in place or "storage" in place),
        *("a prompt", "a transform", "a key", "a stop", "a row"),
    ],
)
def test_what_it_raises_need_not_tell_anything(place: str) -> None:
    def boom() -> Any:
        raise Refusing

    PLACES[place](boom)
    assert session_of("fine").send("and another?").result(PATIENCE).text == "fine"
