"""What people of other toolkits write first works, or says the right spelling in a sentence."""

from __future__ import annotations

import base64
import copy
import logging
import operator
import pickle
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

import sagents_nb as sa
from sagents_nb import kinds
from tests.talking import agent_of, call, in_threads, run

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@sa.tool
def look() -> int:
    """Look."""
    return 1


def told(result: sa.RunResult) -> list[sa.ToolResult]:
    return [r for message in result.state.messages for r in message.tool_results]


# Images


def test_an_image_is_a_path_bytes_or_an_address_and_never_nonsense(tmp_path: Path) -> None:
    path = tmp_path / "plot.png"
    path.write_bytes(PNG)
    encoded = base64.b64encode(PNG).decode()
    for given in (str(path), path, PNG, sa.ImagePart(encoded)):
        assert sa.ImagePart.of(given) == sa.ImagePart(encoded)
    assert sa.ImagePart.of("https://x.no/a.png") == sa.ImagePart(url="https://x.no/a.png")
    assert agent_of("A dot.").run(["What is it?", path, PNG]).text == "A dot."


@pytest.mark.parametrize("data", [PNG, "plot.png", Path("plot.png"), 5])
def test_what_is_no_base64_never_goes_to_a_provider(data: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match=re.escape("use ImagePart.of(…)")):
        agent_of("x").run([sa.ImagePart(data)])
    with pytest.raises(sa.ConfigurationError, match="is base64 text"):
        agent_of("x").run([sa.FilePart(data)])


def test_what_is_no_image_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no image")
    for wrong in (tmp_path / "a.png", tmp_path / "nope.png", b"text", 5, None):
        with pytest.raises(sa.ConfigurationError):
            sa.ImagePart.of(wrong)


# What comes before, and who asks


def test_a_result_is_what_the_next_run_goes_on_with() -> None:
    agent = agent_of("one", "two", "three", "four")
    first = agent.run("a")
    second = agent.run("b", first)
    assert [m.text for m in second.state.messages] == ["a", "one", "b", "two"]
    assert run(agent.arun("c", state=second)).text == "three"
    events = list(agent.stream("d", second))
    assert events


@pytest.mark.parametrize("given", [["look"], "look", {"look": True}, ("look",)])
def test_tools_that_ask_are_named_in_a_list_too(given: Any) -> None:
    agent = agent_of(call("look"), "done", tools=[look], interrupt_on=given)
    assert agent.run("go").status == "interrupted"


def test_a_number_as_a_budget_says_what_a_budget_is() -> None:
    for attempt in (lambda: agent_of("x").run("x", budget=5), lambda: agent_of("x", budget=5)):
        with pytest.raises(sa.ConfigurationError, match=re.escape("Budget(model_calls=5)")):
            attempt()


# Headless


@pytest.mark.parametrize(
    ("policy", "said", "ran"),
    [("approve", "1", True), ("deny", "denied", False), ([sa.Reject("No.")], "No.", False)],
)
def test_headless_decides_in_scripts_where_it_is_said(policy: Any, said: str, ran: bool) -> None:
    def session() -> sa.Session:
        agent = agent_of(call("look"), "done", tools=[look], interrupt_on={"look": True})
        return sa.Session(agent, headless=list(policy) if isinstance(policy, list) else policy)

    async def awaited() -> sa.RunResult:
        return await session().send("go")

    for result in (session().send("go").result(), run(awaited())):
        assert (result.status, result.text) == ("completed", "done")
        answer = told(result)[0]
        assert said in answer.text
        assert (answer.status == "completed") is ran
        assert [m.role for m in result.messages] == ["user", "assistant", "tool", "assistant"]


def test_all_who_wait_get_the_whole_run_that_headless_decides() -> None:
    agent = agent_of(call("look"), "done", tools=[look], interrupt_on={"look": True})
    started = sa.Session(agent, headless="approve").send("go")
    answers = in_threads(6, lambda _: started.result().text)
    assert answers == ["done"] * 6


def test_headless_that_nobody_said_leaves_the_question_to_the_script() -> None:
    agent = agent_of(call("look"), "done", tools=[look], interrupt_on={"look": True})
    session = sa.Session(agent)
    assert session.send("go").result().status == "interrupted"
    assert session.headless == "deny"
    assert session.resume(sa.Approve()).result().text == "done"


# Frames and maps


def test_a_function_makes_the_prompt_of_each_row() -> None:
    frame = pd.DataFrame({"t": ["a", "b"], "n": [1, 2]})
    agent = agent_of(*[lambda request: request.messages[-1].text.upper()] * 3)
    mapped = agent.map(frame, lambda row: f"{row['t']}{row.n}", progress=False)
    assert sorted(mapped["text"]) == ["A1", "B2"]
    listed = agent.map(["x"], lambda value: value * 2, progress=False)
    assert list(listed["text"]) == ["XX"]


def test_a_function_that_fails_names_its_row_and_nothing_is_asked() -> None:
    model = sa.ScriptedModel([])
    with pytest.raises(sa.ConfigurationError, match="row 1, so nothing was asked: KeyError"):
        sa.Agent(model).map([{"a": 1}, {}], lambda row: str(row["a"]), progress=False)
    assert model.requests == []


def test_a_frame_of_a_session_is_asked_for_in_either_order() -> None:
    session = sa.Session(agent_of("hello"))
    session.send("hi").result()
    right = sa.to_frame("messages", session)
    for frame in (sa.to_frame(session), sa.to_frame(session, "messages")):  # type: ignore[arg-type]
        assert frame.equals(right)
    for wrong in ((5,), ("messages",), (session, session), ("messages", "todos")):
        with pytest.raises(sa.ConfigurationError, match=r"'messages'|no frame|made of"):
            sa.to_frame(*wrong)


def test_what_the_type_argument_is_called_does_not_matter() -> None:
    answer = sa.ToolCall("c1", "submit", {"value": ["Oslo"]})
    spellings: list[Callable[[sa.Agent], Any]] = [
        lambda agent: agent.extract("?", list[str]),
        lambda agent: agent.extract("?", output_type=list[str]),
        lambda agent: agent.extract("?", type=list[str]),
        lambda agent: agent.extract("?", list[str], full=True).value,
        lambda agent: run(agent.aextract("?", list[str], full=True)).value,
        lambda agent: agent.run("?", output_type=list[str]).output,
    ]
    for spelling in spellings:
        assert spelling(agent_of(answer)) == ["Oslo"]
    for keyword in ("output", "output_type"):
        frame = agent_of(answer).map(["?"], progress=False, **{keyword: list[str]})
        assert list(frame["value"]) == [["Oslo"]]
    for none_or_both in ({}, {"output_type": str, "type": str}):
        with pytest.raises(sa.ConfigurationError, match="output_type"):
            agent_of(answer).extract("?", **none_or_both)


def test_what_an_extraction_used_comes_with_it() -> None:
    said = sa.Message.assistant(
        "", [sa.ToolCall("c1", "submit", {"value": 3})], usage=sa.Usage(10, 2)
    )
    found = agent_of(said).extract("How many?", int, full=True)
    assert (found.value, found.usage) == (3, sa.Usage(10, 2))
    assert found.result.status == "completed"


# Tools that raise


def test_a_tool_that_raises_tells_where_but_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    @sa.tool(name="look")
    def deep() -> int:
        """Look."""
        raise KeyError("kaput hush-hush-1234567")

    agent = agent_of(*[call("look")] * 3, tools=[deep], tool_context={"key": "hush-hush-1234567"})
    with caplog.at_level(logging.WARNING), pytest.raises(sa.FailuresExceeded) as failed:
        agent.run("go")
    assert isinstance(failed.value.__cause__, KeyError)
    trace = told(failed.value.result)[-1].metadata["traceback"]
    assert "in deep" in trace
    assert "sagents_nb/" not in trace
    assert "The tool look raised" in caplog.text
    assert "in deep" in caplog.text
    assert "hush-hush" not in trace + caplog.text


# Agents of agents


def helper(*turns: Any, **options: Any) -> sa.Agent:
    return sa.Agent(sa.ScriptedModel([*turns]), name="historian", **options)


def test_an_agent_is_a_sub_agent_under_its_own_name() -> None:
    task = call("task", instructions="When?", subagent_type="historian")
    wise = helper("In 1048.", description="Knows history.")
    agent = sa.Agent(sa.ScriptedModel([task, "Old."]), subagents=[wise])
    session = sa.Session(agent)
    result = session.send("How old is Oslo?").result()
    (work,) = result.sub_agents
    assert (work.subagent_type, work.status, work.text) == ("historian", "completed", "In 1048.")
    assert [m.text for m in work.messages] == ["When?", "In 1048."]
    frame = session.to_frame("messages")
    inside = frame[frame["sub_agent"].notna()]
    assert list(inside["text"]) == ["When?", "In 1048."]
    assert set(inside["sub_agent"]) == {work.sub_agent_id}
    roles = ["user", "assistant", "tool", "assistant"]
    assert list(frame[frame["sub_agent"].isna()]["role"]) == roles
    assert "historian: Knows history." in agent.tools_by_name["task"].description
    with_ = agent.with_(max_runs=3)
    assert "historian" in with_.tools_by_name["task"].description


def test_sub_agents_need_no_default_middleware() -> None:
    task = call("task", instructions="When?", subagent_type="historian")
    wise = helper("In 1048.", system_prompt="You know history.\nAll of it.")
    agent = sa.Agent(sa.ScriptedModel([task, "Old."]), subagents=[wise], defaults=False)
    assert [tool.name for tool in agent.tools] == ["task"]
    assert agent.run("How old?").sub_agents[0].text == "In 1048."
    assert "historian: You know history." in agent.tools_by_name["task"].description


def test_a_configured_sub_agent_is_one_of_an_agent_too() -> None:
    scripted = sa.ScriptedModel(["In 1048."])
    wise = sa.SubAgentConfig("historian", "Knows history.", "You do.", [look], model=scripted)
    task = call("task", instructions="When?", subagent_type="historian")
    agent = sa.Agent(sa.ScriptedModel([task, "Old."]), subagents=[wise])
    assert agent.run("How old is Oslo?").sub_agents[0].text == "In 1048."
    with pytest.raises(sa.ConfigurationError, match="SubAgentConfig"):
        sa.Agent(sa.ScriptedModel([]), subagents=[3])  # type: ignore[list-item]


def test_an_agent_is_a_tool_and_asks_in_the_name_of_who_has_it() -> None:
    gated = helper(call("look"), "Seen.", description="Looks.", tools=[look], interrupt_on=["look"])
    asks = call("ask_it", instructions="Look.")
    agent = sa.Agent(sa.ScriptedModel([asks, "Done."]), tools=[gated.as_tool("ask_it")])
    waiting = agent.run("go")
    assert waiting.interrupt is not None
    assert waiting.interrupt.action_requests[0].tool_name == "look"
    done = agent.resume(waiting, sa.Approve())
    assert done.text == "Done."
    assert told(done)[0].text == "Seen."
    assert [work.text for work in done.sub_agents] == ["Seen."]


def test_who_cannot_be_called_is_told_what_is_missing() -> None:
    with pytest.raises(sa.ConfigurationError, match="name"):
        agent_of("x", subagents=[sa.Agent("demo", description="Nobody.")])
    with pytest.raises(sa.ConfigurationError, match="description="):
        helper("x").as_tool()


def test_the_default_middleware_is_left_out_by_a_word() -> None:
    assert sa.Agent("demo", defaults=False).tools == []
    assert sa.Agent("demo").with_(defaults=False).tools == []


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("instructions", "system_prompt"),
        ("deps", "tool_context"),
        ("handoffs", "subagents"),
        ("model_settings", "options"),
        ("result_type", "output_type"),
        ("max_turns", "max_runs"),
        ("tool", "tools"),
    ],
)
def test_what_others_call_it_is_answered_with_what_it_is_called_here(name: str, ours: str) -> None:
    for make in (sa.Agent, agent_of("x").with_):
        with pytest.raises((TypeError, sa.ConfigurationError), match=f"did you mean {ours}=…"):
            make(**{name: None})


def test_an_argument_that_nobody_has_is_answered_with_those_that_there_are() -> None:
    agent = agent_of("x")
    with pytest.raises(TypeError, match=r"Agent\(…\) has no colour=…; it has model, system_prompt"):
        sa.Agent(colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean concurrency=…"):
        agent.map(["x"], concurency=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Session\(…\) has no stor=…; did you mean store=…"):
        sa.Session(agent, stor="x.db")
    with pytest.raises(TypeError, match="did you mean readonly=…"):
        sa.Mount("/out", "x", read_only=True)  # type: ignore[call-arg]
    with pytest.raises(sa.ConfigurationError, match="did you mean tool_context=…"):
        agent.run("x", deps=3)


@pytest.mark.parametrize(
    ("make", "name", "said"),
    [
        (sa.Budget, "wrong", "it has model_calls, tool_calls, tokens, cost_usd, seconds."),
        (sa.Budget, "model_call", "did you mean model_calls=…?"),
        (sa.Budget, "request_limit", "did you mean model_calls=…?"),
        (sa.Approve, "allways", "did you mean always=…?"),
        (sa.Edit, "args", "it has arguments."),
        (sa.Reject, "reason", "it has message, unattended."),
        (sa.Respond, "answr", "did you mean answer=…?"),
        (sa.ImagePart, "mimetype", "did you mean mime_type=…?"),
        (sa.FilePart, "mimetype", "did you mean mime_type=…?"),
        (sa.Todo, "contents", "did you mean content=…?"),
        (sa.Scope, "usr", "did you mean user=…?"),
        (sa.SubAgentConfig, "instructions", "did you mean system_prompt=…?"),
        (sa.CompiledSubAgent, "agnt", "did you mean agent=…?"),
        (sa.Interrupt, "mesage", "did you mean message=…?"),
    ],
)
def test_a_record_that_is_made_by_hand_names_the_field_that_was_meant(
    make: Any, name: str, said: str
) -> None:
    with pytest.raises(TypeError) as told:
        make(**{name: "sk-canary"})
    assert isinstance(told.value, sa.ConfigurationError)
    assert str(told.value) == f"{make.__name__}(…) has no {name}=…; {said}"


def test_a_record_without_what_it_needs_is_named_with_that() -> None:
    with pytest.raises(TypeError, match=r"^SubAgentConfig\(…\) needs description=… and sys"):
        sa.SubAgentConfig("reader")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Edit\(…\) needs arguments=… too\.$"):
        sa.Edit()  # type: ignore[call-arg]


def test_a_name_that_is_spelled_wrong_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Sesion'; did you mean Session"):
        sa.Sesion  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'colour'$"):
        sa.colour  # noqa: B018
    assert not hasattr(sa, "__wrapped__")
    with pytest.raises(sa.ConfigurationError, match="did you mean 'openai:gpt-5'"):
        sa.Agent("opnai:gpt-5")


def test_records_that_each_turn_makes_are_made_at_full_speed() -> None:
    each_turn = (sa.Message, sa.TextPart, sa.ThinkingPart, sa.ToolCall, sa.ToolResult, sa.Usage)
    assert {type(made) for made in (*each_turn, sa.TextDelta)} == {msgspec.StructMeta}


@pytest.mark.parametrize(
    ("of", "name", "ours"),
    [
        ("agent", "run_sync", "run"),
        ("agent", "run_stream", "stream"),
        ("agent", "ainvoke", "arun"),
        ("agent", "clone", "with_"),
        ("agent", "instructions", "system_prompt"),
        ("result", "final_output", "output"),
        ("result", "content", "text"),
        ("result", "all_messages", "state.messages"),
        ("session", "run", "send"),
        ("session", "history", "messages"),
        ("session", "clear_session", "reset"),
        ("session", "session_id", "id"),
    ],
)
def test_an_attribute_by_anothers_name_says_what_it_is_called_here(
    of: str, name: str, ours: str
) -> None:
    agent = agent_of("x")
    result = agent.run("?")
    with sa.Session(agent) as session:
        one = {"agent": agent, "result": result, "session": session}[of]
        assert not hasattr(one, name)
        with pytest.raises(AttributeError) as told:
            getattr(one, name)
        operator.attrgetter(ours)(one)
    said = f"{type(one).__name__!r} object has no attribute {name!r}; did you mean {ours!r}?"
    assert traceback.format_exception_only(told.value) == [f"AttributeError: {said}\n"]
    assert told.value.name == name


def test_an_attribute_that_nobody_has_is_pythons_own_error() -> None:
    result = agent_of("x").run("?")
    for name in ("colour", "statu", "_repr_html_", "__array__"):
        with pytest.raises(AttributeError) as told:
            getattr(result, name)
        assert str(told.value) == f"'RunResult' object has no attribute {name!r}"
        assert (told.value.name, told.value.obj) == (name, result)
    for again in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert again.text == "x"


def test_a_property_that_fails_has_its_own_error() -> None:
    class Mine(sa.Agent):
        @property
        def run_sync(self) -> Any:
            return None.missing  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match=r"^'NoneType' object has no attribute 'missing'$"):
        _ = Mine(sa.ScriptedModel(["x"])).run_sync


def test_a_type_error_of_somebody_elses_code_stays_as_it_is() -> None:
    def text() -> str:
        """Text."""
        raise TypeError("mine")

    @kinds.checked
    def ask(question: str, **more: Any) -> str:
        return text()

    for more in ({}, {"colour": "red"}):
        with pytest.raises(TypeError, match=r"^mine$"):
            ask("why?", **more)


def test_the_context_of_a_hook_is_none_of_a_tool() -> None:
    def weigh(ctx: sa.RunContext, kg: float) -> str:
        """Weigh."""
        return f"{kg}"

    with pytest.raises(sa.ConfigurationError, match="a tool knows of its run is a ToolContext"):
        sa.tool(weigh)


def test_axes_of_a_tool_are_their_figure() -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": [3, 4]})

    def draw(apart: bool) -> Any:
        """Draw."""
        return frame.plot(subplots=apart)

    both = [call("draw", "c1", apart=False), call("draw", "c2", apart=True)]
    result = agent_of(both, "Drawn.", tools=[draw]).run("go")
    for one in (m for m in result.messages if m.role == "tool"):
        for told in one.tool_results:
            assert [type(part) for part in told.content] == [sa.ImagePart], told


def test_the_frames_of_a_result_are_those_of_a_session_that_is_made_of_it() -> None:
    agent = agent_of("Hello!")
    result = agent.run("hi")
    for ask in (lambda: sa.to_frame("messages", result), lambda: sa.to_frame("usage", [result])):
        with pytest.raises(sa.ConfigurationError, match=r"Session\(agent, state=result.state\)"):
            ask()
    assert len(sa.to_frame("messages", sa.Session(agent, state=result.state))) == 2


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("before_tol", "before_tool"),
        ("before_tool_call", "before_tool"),
        ("on_tool_start", "before_tool"),
        ("after_model_", "after_model"),
    ],
)
def test_a_hook_that_nobody_would_call_is_refused(name: str, ours: str) -> None:
    guard = type("Guard", (sa.Middleware,), {name: lambda *args: None})
    with pytest.raises(sa.ConfigurationError, match=rf"Guard.{name} is no hook.*mean {ours}\?"):
        sa.Agent(sa.ScriptedModel([]), middleware=[guard()])


def test_methods_of_ones_own_beside_the_hooks_are_fine() -> None:
    own = dict.fromkeys(("count", "before", "reset", "on_alarm", "run"), lambda *args: None)
    guard = type("Guard", (sa.Middleware,), own)
    assert sa.Agent(sa.ScriptedModel(["Hi"]), middleware=[guard()]).run("?").text == "Hi"


def test_an_unknown_argument_is_an_error_of_the_package_and_of_python() -> None:
    for raised in (sa.SagentsError, sa.ConfigurationError, TypeError):
        with pytest.raises(raised, match="did you mean system_prompt"):
            sa.Agent(instructions="x")  # type: ignore[call-arg]


def test_a_call_of_a_script_without_an_id_is_named() -> None:
    with pytest.raises(sa.ModelError, match=r"ToolCall\(id, name, arguments\); .* 'look'"):
        agent_of(sa.ToolCall("look", {"what": "x"}), tools=[look]).run("?")  # type: ignore[arg-type]


def test_as_many_wrong_answers_are_taken_as_were_allowed() -> None:
    calls = [sa.ToolCall(f"c{n}", "submit", {"value": "many"}) for n in range(20)]
    for allowed in (3, 5, 9):
        with pytest.raises(sa.MaxRunsExceeded, match=f"in {allowed} calls.* or raise max_runs"):
            sa.Agent(sa.ScriptedModel(calls)).extract("How many?", int, max_runs=allowed)
    with pytest.raises(sa.MaxRunsExceeded, match=r"in 5 calls.*what is wanted\.$"):
        sa.Agent(sa.ScriptedModel(calls)).run("How many?", output_type=int)


def test_braces_of_a_prompt_that_are_text_are_told_how_to_be_written() -> None:
    with pytest.raises(sa.ConfigurationError, match=r"are text are \{\{ and \}\}"):
        agent_of("x").map(pd.DataFrame({"n": [1]}), 'JSON {"k": 1} for {n}')


def test_a_read_only_folder_that_is_not_there_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sa.Mount("/there", tmp_path, readonly=True)
    sa.Mount("/made", tmp_path / "made")
    assert caplog.records == []
    sa.Mount("/protocols", tmp_path / "protokols", readonly=True)
    (record,) = caplog.records
    assert "protokols' of the read-only mount '/protocols' is not there" in record.getMessage()


def test_a_shared_budget_says_what_was_used_of_it_by_the_names_of_its_limits() -> None:
    said = sa.Message.assistant("Yes.", usage=sa.Usage(100, 10, cost_usd=0.25))
    pot = sa.Budget(cost_usd=10).shared()
    assert pot.meter.cost_usd is None
    sa.Agent(sa.Priced(sa.ScriptedModel([said]), input=1, output=1), budget=pot).run("?")
    meter = pot.meter
    assert (meter.model_calls, meter.tokens, meter.cost_usd) == (1, 110, 0.25)
    assert "model_calls=1" in repr(meter)
