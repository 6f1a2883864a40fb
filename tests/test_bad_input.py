"""Whatever people get wrong is one sentence that names it and the way out; nothing changes."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pandas
import pytest

import sagents_nb as sa
from sagents_nb import ToolCall
from sagents_nb.errors import UnknownArgument
from sagents_nb.messages import DISPLAY
from sagents_nb.runtime.event_stream import EventStream
from tests.public_face import exposed
from tests.talking import agent_of, call, session_of


@sa.tool
def look(at: str = "") -> str:
    """Look."""
    return f"saw {at}"


def one_sentence(error: BaseException) -> bool:
    text = str(error)
    return text.endswith(".") and "\n" not in text and len(text) < 400


class Named(sa.Middleware):
    def __init__(self, id: str = "") -> None:
        self.id = id


def without_annotation(at) -> str:  # type: ignore[no-untyped-def]
    return ""


def with_stars(*at: str) -> str:
    return ""


def of_something(at: threading.Lock) -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


class Opaque:
    """Nothing that JSON Schema could describe."""


def opaque(at: Opaque) -> str:
    return ""


# describing an agent


@pytest.mark.spec("S1.1.1", "S1.1.4")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": 5}, "model"),
        ({"model": "nobody:nothing"}, "nobody"),
        ({"interrupt_on": {"wirte": True}}, "interrupt_on names wirte, but the tools are look"),
        ({"interrupt_on": {"wirte": {}}}, "interrupt_on names wirte"),
        ({"until_tool": ["look", "submit"]}, "until_tool names submit, but the tools are look"),
        ({"until_tool_success": "submit"}, "until_tool_success names submit"),
        ({"middleware": [Named("m"), Named("m")]}, "Two middlewares have the id 'm'.*own 'id'"),
        ({"middleware": [Named(), Named()]}, "Two middlewares have the id 'Named'"),
        ({"middleware": [Named]}, "is no middleware; pass an instance"),
        ({"middleware": [(Named, {"id": "m"})]}, "is no middleware; pass an instance"),
        ({"tools": [without_annotation]}, "'at' has no annotation; write for example 'at: str'"),
        ({"tools": [with_stars]}, r"takes \*at; a model needs named parameters"),
        ({"tools": [of_something]}, "names something that is not there.*define or import it"),
        (
            {"tools": [opaque]},
            "'opaque': 'at' cannot be described .type .*Opaque.*; use",
        ),
        ({"tools": [3]}, "This int is no tool; decorate a function"),
        ({"max_runs": -1}, "=…\\) is a whole number from 0; not -1."),
        ({"max_parallel_tools": 0}, "=…\\) is a whole number from 1; not 0."),
        ({"max_parallel_tools": "all"}, "max_parallel_tools"),
    ],
)
def test_an_agent_that_cannot_work_is_refused_when_it_is_made(
    options: dict[str, Any], said: str
) -> None:
    given = {"model": sa.ScriptedModel([]), "tools": [look], **options}
    with pytest.raises(sa.SagentsError, match=said) as raised:
        sa.Agent(replace_default_middleware=True, **given)
    assert one_sentence(raised.value), str(raised.value)


@pytest.mark.parametrize(
    "option", ["todo_options", "filesystem_options", "subagent_options", "summarization_options"]
)
def test_an_option_that_a_default_middleware_does_not_have_is_named(option: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=rf"{option} \(colour\) do not fit \w+: "):
        sa.Agent(sa.ScriptedModel([]), **{option: {"colour": "red"}})


@pytest.mark.spec("S1.1.5")
@pytest.mark.parametrize("what", ["system_prompt", "tools"])
@pytest.mark.parametrize(
    ("gives", "said"), [(ValueError("no database"), "failed .ValueError: no database"), (5, "int")]
)
def test_a_middleware_that_cannot_describe_itself_is_named(
    what: str, gives: Any, said: str
) -> None:
    def describe(self: Any) -> Any:
        if isinstance(gives, Exception):
            raise gives
        return gives

    kind = type("Broken", (sa.Middleware,), {what: describe})
    with pytest.raises(sa.ConfigurationError, match=rf"Broken\.{what} .*{said}") as raised:
        agent_of(middleware=[kind()])
    assert one_sentence(raised.value)


# while it runs


HOOKS = ["before_run", "before_model", "after_model", "after_run", "before_tool", "after_tool"]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_returns_the_wrong_type_is_named_with_what_it_may_return(hook: str) -> None:
    kind = type("Odd", (sa.Middleware,), {hook: lambda self, *rest: {"messages": []}})
    state = sa.State(metadata={"k": 1})
    agent = agent_of(call("look"), "done", tools=[look], middleware=[kind()])
    with pytest.raises(sa.MiddlewareError, match=rf"Odd\.{hook} returned dict; return ") as raised:
        agent.run("go", state)
    assert one_sentence(raised.value)
    assert raised.value.result.state.metadata == {"k": 1}


def test_a_check_of_decisions_that_breaks_is_named_and_the_question_waits() -> None:
    class Odd(sa.Middleware):
        def check_decisions(self, interrupt: Any, decisions: Any) -> None:
            raise KeyError("answer")

    session = session_of(
        call("look"), "done", tools=[look], middleware=[Odd()], interrupt_on={"look": True}
    )
    session.send("go").result()
    before = session.state
    with pytest.raises(sa.MiddlewareError, match=r"Odd\.check_decisions failed: KeyError"):
        session.resume(sa.Approve())
    assert (session.status, session.state) == ("interrupted", before)


def test_a_message_for_a_middleware_that_answers_oddly_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Odd(sa.Middleware):
        def handle_message(self, message: Any, state: sa.State, ctx: sa.RunContext) -> Any:
            return "text"

        def before_run(self, state: sa.State, ctx: sa.RunContext) -> None:
            ctx.notify("Odd", "hello")

    result = agent_of("done", middleware=[Odd()]).run("go")
    assert result.text == "done"
    assert "Odd.handle_message returned str; return None or a State" in caplog.text


# deciding


@pytest.mark.spec("P3", "S1.3.6", "S1.3.10")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([sa.Approve()], "2 calls wait for a decision, but 1 were given"),
        ([sa.Approve()] * 3, "2 calls wait for a decision, but 3 were given"),
        ({"a": sa.Approve(), "foreign": sa.Approve()}, r"unknown \['foreign'\], missing \['b'\]"),
        ([sa.Approve(), sa.Respond("x")], "Decision 1 .for look. is 'respond', but only approve"),
        ([sa.Approve(), {"type": "edit"}], "edit without 'arguments'"),
        ([sa.Edit({"town": "x"}), sa.Approve()], "edited arguments do not fit look"),
        ("yes", "A decision is Approve, Edit, Reject, Respond"),
    ],
)
@pytest.mark.parametrize("kind", ["agent", "session"])
def test_decisions_of_the_wrong_number_kind_or_owner_change_nothing(
    given: Any, said: str, kind: str
) -> None:
    turn = [call("look", "a", at="1"), call("look", "b", at="2")]
    options: dict[str, Any] = {"tools": [look], "interrupt_on": {"look": True}}
    agent = agent_of(turn, "done", **options)
    if kind == "agent":
        waiting = agent.run("go")
        state = waiting.state
        with pytest.raises(sa.InvalidDecision, match=said):
            agent.resume(waiting, given)
        assert waiting.state is state
        assert agent.resume(waiting, sa.Approve()).text == "done"
        return
    session = sa.Session(agent)
    session.send("go").result()
    state = session.state
    with pytest.raises(sa.InvalidDecision, match=said):
        session.resume(given)
    assert (session.status, session.state) == ("interrupted", state)
    assert session.resume(sa.Approve()).result().text == "done"


@pytest.mark.parametrize(
    ("option", "said"),
    [({"temperature": 1}, "has no temperature="), ({"max_runs": -1}, "=…\\) is")],
)
def test_an_option_of_one_run_that_cannot_work_is_refused_before_any_model_call(
    option: dict[str, Any], said: str
) -> None:
    agent = agent_of("never")
    with pytest.raises(sa.ConfigurationError, match=said):
        agent.run("go", **option)
    assert agent.model.requests == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.follow(None, "x"), r"Session.follow\(stream=…\) is an EventStream"),
        (lambda s: s.follow(EventStream(), 5), r"Session.follow\(run_id=…\) is text; not 5"),
        (lambda s: s.follow(EventStream(), "x", True), "is a whole number from 0; not True"),
        (lambda s: s.events(-1), r"Session.events\(since=…\) is a whole number from 0; not -1"),
        (lambda s: s.subscribe(print, -1), r"since=…\) is a whole number from 0, or None; not -1"),
    ],
)
def test_who_follows_a_session_oddly_is_told_what_it_takes(call: Any, said: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=said):
        call(sa.Session(sa.Agent(sa.ScriptedModel([]))))


HALF = "\ud800"  # of a character, as broken JSON and file names bring it


def test_half_a_character_where_it_cannot_be_is_an_error_that_names_the_thing() -> None:
    write = ToolCall("w1", "write_file", {"file_path": "/a.md", "content": "A"})
    session = sa.Session(
        sa.Agent(sa.ScriptedModel([write]), interrupt_on={"write_file": True}), id="c"
    )
    session.send("Go").result()
    with pytest.raises(sa.InvalidDecision, match=r"Decision 0 \(for write_file\) cannot be read"):
        session.resume([{"type": HALF}])
    with pytest.raises(sa.ConfigurationError, match="Message 1 of the prompt cannot be kept"):
        session.send(sa.Message("user", "x", metadata=HALF))  # type: ignore[arg-type]
    with pytest.raises(sa.ConfigurationError, match="This state cannot be read"):
        sa.State.restore({"version": 1, "state": {"messages": [HALF], "todos": []}})
    odd = {"type": "document", "source": {"type": "text", "data": HALF, "media_type": "text/plain"}}
    with pytest.raises(sa.ConfigurationError):
        sa.Message.user([odd])
    assert session.status == "interrupted"


def test_half_a_character_where_it_can_be_is_kept_or_shown_as_a_question_mark() -> None:
    message = sa.Message("user", "x", metadata={"a": HALF, DISPLAY: HALF})
    assert message.shown is message
    agent = sa.Agent(sa.ScriptedModel(["Read."]))
    assert agent.run(message).messages[0].metadata["a"] == HALF
    assert sa.Agent("demo").run(f"Say hello to {HALF}.").status == "completed"


@pytest.mark.parametrize(
    "give",
    [
        lambda key: sa.resolve_model(f"openai_{key}"),
        lambda key: sa.Session(agent_of()).send("hi", when=key),
        lambda key: sa.OpenAIChatModel("m", **{key: 1}),
        lambda key: agent_of().run("hi", **{key: 1}),
        lambda key: agent_of().map(["a"], "{" + key + "}"),
        lambda key: agent_of(until_tool=key),
        lambda key: sa.Session(agent_of(), filesystem=f"https://me:{key}@host/x"),
    ],
)
def test_no_sentence_quotes_a_key_that_was_given_in_a_wrong_place(give: Any) -> None:
    key = "sk-proj-AbCdEf0123456789ZyXw"
    with pytest.raises(sa.ConfigurationError) as raised:
        give(key)
    assert key not in str(raised.value)
    assert key not in repr(raised.value)


@pytest.mark.parametrize("odd", [pandas.DataFrame({"look": [1, 2]}), numpy.zeros(3)], ids=type)
@pytest.mark.parametrize(
    "name",
    ["tools", "middleware", "subagents", "interrupt_on", "until_tool", "until_tool_success"],
)
def test_an_array_or_a_frame_is_no_list_of_an_agents(name: str, odd: Any) -> None:
    with pytest.raises(sa.ConfigurationError) as raised:
        sa.Agent(sa.ScriptedModel([]), **{name: odd})
    assert f"Agent({name}=…) is " in str(raised.value)
    assert "a list" in str(raised.value)
    assert one_sentence(raised.value)


def test_a_series_of_answers_is_scripted_and_a_frame_is_not() -> None:
    answers = pandas.DataFrame({"said": ["Hello!", "Bye!"]})
    agent = sa.Agent(sa.ScriptedModel(answers["said"]))
    assert [agent.run("hi").text, agent.run("bye").text] == ["Hello!", "Bye!"]
    with pytest.raises(sa.ConfigurationError, match=r"ScriptedModel\(turns=…\) is a list"):
        sa.ScriptedModel(answers)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.fork(before=10**5000), r"fork\(before=…\) is a whole number"),
        (lambda s: s.fork(before=10**30), "no message of a person at so large a number"),
        (lambda s: s.switch_branch(10**30, 0), "message at so large a number has no branch 0"),
        (lambda s: s.switch_branch(0, 10**30), "at 0 has no branch so large a number"),
        (lambda s: sa.Budget(tokens=10**5000), r"Budget\(tokens=…\) is a whole number.*so large"),
        (lambda s: sa.Budget(model_calls=10**309), r"Budget\(model_calls=…\) is a whole number"),
        (lambda s: sa.Todo("x", id=10**5000), r"Todo\(id=…\) is a whole number"),
        (lambda s: sa.Scope(user=10**5000), r"Scope\(user=…\) is text or a whole number"),
        (lambda s: sa.open_filesystem(("u", 10**5000)), "scope is written as text.*so large"),
        (lambda s: sa.Agent(s.agent.model, max_runs=10**5000), r"Agent\(max_runs=…\) is a whole"),
    ],
)
def test_a_number_that_python_does_not_write_is_refused_in_a_sentence(call: Any, said: str) -> None:
    session = session_of("one")
    session.send("a").result()
    with pytest.raises(sa.ConfigurationError, match=said):
        call(session)


def test_a_number_that_python_writes_is_a_limit() -> None:
    assert str(10**308) in repr(sa.Budget(tokens=10**308).shared())


def test_more_digits_than_a_number_has_are_the_text_of_a_todo() -> None:
    nines = "9" * 5000
    assert (sa.Todo("x", id=nines).id, sa.Todo("x", id="9").id) == (nines, 9)
    todos = [{"id": nines, "content": "Count them", "status": "pending"}]
    agent = sa.Agent(sa.ScriptedModel([call("write_todos", merge=False, todos=todos), "Planned."]))
    assert agent.run("plan").state.todos[0].id == nines


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("m\0", "not str with NUL"),
        (Path("m\0"), "Path with NUL"),
        ("m\ud800", "not str with half a character"),
    ],
)
def test_a_folder_with_what_no_path_has_is_refused_for_that(folder: Any, said: str) -> None:
    with pytest.raises(sa.ConfigurationError, match=rf"filesystem=…\) is .*{said}\."):
        sa.Session(agent_of("hi"), filesystem=folder)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: sa.Session(agent_of(), filesystem="x☃"), "str"),
        (lambda: sa.Session(agent_of(), store="x☃.db"), "str"),
        (lambda: sa.Session(agent_of()).to_html(Path("x☃.html")), r"\w*Path"),
        (lambda: sa.DiskStorage("x☃"), "str"),
        (lambda: sa.ImagePart.of(Path("x☃.png")), r"\w*Path"),
        (lambda: agent_of().map(["a"], "{}", cache="x☃"), "str"),
    ],
)
def test_a_name_that_the_process_cannot_write_is_refused_for_that(
    call: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsencode", lambda path: os.fspath(path).encode("ascii"))
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")  # as it is with LC_ALL=C
    why = "with a character that paths in ascii cannot have, .* PYTHONUTF8=1 can"
    with pytest.raises(sa.ConfigurationError, match=rf"not {what} {why}\.$"):
        call()
    with pytest.raises(sa.ConfigurationError, match=r"not str\.$"):
        sa.Session("x☃")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sa.Budget(5), r"takes no arguments without a name.*Budget\(model_calls=…\)"),  # type: ignore[misc]
        (lambda: sa.Todo("a", "pending", 1, 2), "takes 3 arguments without a name, not 4"),  # type: ignore[call-arg]
    ],
)
def test_a_record_says_which_arguments_it_takes(call: Any, said: str) -> None:
    with pytest.raises(UnknownArgument, match=said) as raised:
        call()
    assert isinstance(raised.value, TypeError)


def with_a_repr() -> list[type]:
    """The public classes that say themselves how they are shown, but those made at one stroke."""
    found: set[type] = set()
    for module, names in exposed().items():
        for name in names:
            cls = getattr(importlib.import_module(module), name)
            if isinstance(cls, type) and not issubclass(cls, tuple | msgspec.Struct):
                ours = [c for c in cls.__mro__ if c.__module__.startswith("sagents_nb")]
                if any("__repr__" in vars(c) for c in ours):
                    found.add(cls)
    return sorted(found, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", with_a_repr(), ids=lambda cls: cls.__name__)
def test_what_a_constructor_left_half_way_can_be_shown(cls: Any) -> None:
    """As a traceback with locals does, or a debugger."""
    assert isinstance(repr(cls.__new__(cls)), str)


def test_a_frame_that_is_of_something_else_is_not_drawn() -> None:
    frame = pandas.DataFrame({"x": [1]})
    with pytest.raises(sa.ConfigurationError, match="none of events; give a session") as raised:
        sa.plot_timeline(frame)
    assert one_sentence(raised.value)
    with pytest.raises(sa.ConfigurationError, match="none of usage; give a session"):
        sa.plot_usage(frame, "x")


def test_what_was_shown_is_told_by_text_alone() -> None:
    session = sa.Session(agent_of(call("look"), "done", tools=[look], interrupt_on=["look"]))
    interrupt = session.send("go").result().interrupt
    assert interrupt is not None
    (request,) = interrupt.action_requests
    yes, shown = {request.tool_call_id: sa.Approve()}, {request.tool_call_id: request.digest}
    odd: Any = numpy.array([request.digest, interrupt.id])
    for id, digests in ((odd, shown), (interrupt.id, {request.tool_call_id: odd})):
        with pytest.raises(sa.StaleApproval):
            session.decide(yes, interrupt_id=id, digests=digests, by="Ada")
    assert session.decide(yes, interrupt_id=interrupt.id, digests=shown, by="Ada")


def test_a_frame_is_no_message_of_the_names_of_its_columns() -> None:
    for odd in (pandas.DataFrame({"look": [1]}), pandas.Series(["a"]), numpy.array(["a"])):
        for make in (sa.Message.user, sa.Message.assistant, agent_of("hi").run):
            with pytest.raises(sa.ConfigurationError, match=f"not .*{type(odd).__name__}"):
                make(odd)
