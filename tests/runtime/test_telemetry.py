from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import sagents_nb as sa
from sagents_nb.events import Emitter
from sagents_nb.middleware import Middleware, Summarization
from sagents_nb.runtime import telemetry
from sagents_nb.runtime.telemetry import DERIVED
from tests.talking import PATIENCE, agent_of, all_of, call, run, session_of

SECRET = "correct horse battery staple"


class Told:
    """What the program's own providers were told."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.instruments = telemetry.Instruments(
            self.provider, MeterProvider(metric_readers=[self.reader])
        )
        self.tracer = trace.get_tracer("the user's", tracer_provider=self.provider)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def __getitem__(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def tree(self) -> dict[str, str | None]:
        """By name of a span, that of the one it is in."""
        names = {span.context.span_id: span.name for span in self.spans if span.context}
        return {
            span.name: names.get(span.parent.span_id, "?") if span.parent else None
            for span in self.spans
        }

    def points(self, metric: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        return [p for m in metrics if m.name == metric for p in m.data.data_points]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """A program that has configured OpenTelemetry; its providers are not the process's."""
    told = Told()
    monkeypatch.setattr(telemetry, "configured", lambda: told.instruments)
    yield told
    told.provider.shutdown()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def look() -> str:
    return f"a secret: {SECRET}"


@pytest.mark.spec("S1.14.3")
def test_a_run_is_an_agent_with_its_chats_and_tools(told: Told) -> None:
    agent = agent_of(call("look"), "done", tools=[look], name="Finder", agent_id="a1")
    agent.run("go")
    names = [span.name for span in told.spans]
    assert names == [
        "chat scripted",
        "execute_tool look",
        "chat scripted",
        "invoke_agent Finder",
    ]
    whole = told["invoke_agent Finder"]
    assert all(s.parent and s.parent.span_id == whole.context.span_id for s in told.spans[:3])
    for span in told.spans:
        about = attributes(span)
        assert about["gen_ai.agent.id"] == "a1"
        assert about["gen_ai.agent.name"] == "Finder"
        assert about["gen_ai.conversation.id"] == "a1"
        assert span.status.status_code is StatusCode.UNSET
    assert [span.kind for span in told.spans] == [
        SpanKind.CLIENT,
        SpanKind.INTERNAL,
        SpanKind.CLIENT,
        SpanKind.INTERNAL,
    ]


@pytest.mark.spec("S1.14.3")
def test_what_is_known_of_each_is_named_by_the_conventions(told: Told) -> None:
    usage = sa.Usage(5, 7, cache_read_tokens=2, cache_write_tokens=1)
    first = sa.Message.assistant("", [call("look")], usage=usage)
    agent_of(first, "done", tools=[look]).run("go")
    chat, tool, _, whole = told.spans
    assert attributes(chat) | {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": ("tool_use",),
        "gen_ai.usage.input_tokens": 8,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 2,
        "gen_ai.usage.cache_creation.input_tokens": 1,
    } == attributes(chat)
    assert all(attributes(span).keys() <= DERIVED for span in told.spans)
    assert attributes(tool) | {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
    } == attributes(tool)
    about = attributes(whole)
    assert about["gen_ai.operation.name"] == "invoke_agent"
    assert about["gen_ai.agent.name"] == "Agent", "a fixed name where it has none"
    assert about["gen_ai.usage.input_tokens"] >= 8
    assert about["sagents.run.status"] == "completed"


@pytest.mark.spec("S1.14.3")
def test_metrics_tell_how_long_it_took_and_the_tokens(told: Told) -> None:
    agent_of(call("look"), "done", tools=[look]).run("go")
    durations = told.points("gen_ai.client.operation.duration")
    counted = {p.attributes["gen_ai.operation.name"]: p.count for p in durations}
    assert counted == {"chat": 2, "execute_tool": 1, "invoke_agent": 1}
    tokens = told.points("gen_ai.client.token.usage")
    assert {p.attributes["gen_ai.token.type"] for p in tokens} == {"input", "output"}
    assert all(p.attributes["gen_ai.request.model"] == "scripted" for p in tokens)
    assert not any("gen_ai.tool.call.id" in p.attributes for p in durations)


@pytest.mark.spec("S1.14.3")
def test_nothing_that_was_said_is_in_a_span_or_a_metric(told: Told) -> None:
    def angry(word: str) -> str:
        raise ValueError(SECRET)

    class Reader(Middleware):
        def before_model(self, state: sa.State, ctx: Any) -> None:
            assert state.messages

    agent = agent_of(
        call("angry", word=SECRET),
        call("look", "c2"),
        SECRET,
        tools=[angry, look],
        system_prompt=SECRET,
        middleware=[Reader()],
        tool_context={"key": SECRET},
    )
    agent.run(SECRET)
    assert len(told.spans) == 9
    assert SECRET not in "".join(span.to_json() for span in told.spans)
    data = told.reader.get_metrics_data()
    assert data is not None
    assert SECRET not in data.to_json()
    assert attributes(told["execute_tool angry"])["error.type"] == "tool_error"
    assert told["execute_tool angry"].status.status_code is StatusCode.ERROR


class Tenant:
    def __init__(self, id: int) -> None:
        self.id = id

    def __repr__(self) -> str:
        return f"Tenant({self.id})"


GIVEN = {
    "tenant": 7,
    "share": 0.5,
    "trial": True,
    "name": "Ada",
    "who": {"id": 3, "tags": ["a", "b"]},
    "list": [1, 2],
    "object": Tenant(1),
    "nothing": None,
    "huge": 10**30,
    "half": "\ud800",
    "gen_ai.agent.id": "mine",
    "gen_ai.usage.input_tokens": 1_000_000,
    "sagents.run.status": "mine",
}


@pytest.mark.spec("S1.14.3")
def test_own_attributes_are_on_every_span_as_they_are_or_as_json(told: Told) -> None:
    def threaded() -> str:
        return threading.current_thread().name

    agent = agent_of(
        [call("look"), call("threaded", "c2")],
        "done",
        tools=[look, threaded],
        agent_id="a1",
        otel_attributes=GIVEN,
    )
    result = agent.run("go")
    assert len(told.spans) == 5
    for span in told.spans:
        about = attributes(span)
        assert (about["tenant"], about["share"], about["trial"]) == (7, 0.5, True)
        assert about["name"] == "Ada"
        assert json.loads(about["who"]) == {"id": 3, "tags": ["a", "b"]}
        assert json.loads(about["list"]) == [1, 2]
        assert json.loads(about["object"]) == "Tenant(1)"
        assert "nothing" not in about
        assert (about["huge"], about["half"]) == (str(10**30), "?")
        assert about["gen_ai.agent.id"] == "a1"
        assert about.get("gen_ai.usage.input_tokens") != 1_000_000
        assert about.get("sagents.run.status") in (None, "completed")
    exported = json.dumps(result.state.export())
    assert "tenant" not in exported, "it is never stored"


def test_own_attributes_have_to_be_a_dict() -> None:
    with pytest.raises(sa.ConfigurationError, match=r"otel_attributes=…\) is a dict"):
        agent_of("hi", otel_attributes=["tenant"])


def delegating(**options: Any) -> sa.Agent:
    worker = sa.SubAgentConfig("worker", "Works.", "Work well and say what you found.", [look])
    task = call("task", instructions="Look.", subagent_type="worker")
    return sa.Agent(
        sa.ScriptedModel([task, call("look", "s1"), "found", "all done"]),
        tools=[],
        name="Boss",
        subagent_options={"subagents": [worker]},
        **options,
    )


@pytest.mark.spec("S1.14.3")
def test_a_sub_agent_is_inside_of_the_call_that_started_it_and_has_the_attributes(
    told: Told,
) -> None:
    assert delegating(otel_attributes={"tenant": 7}).run("go").text == "all done"
    tree = told.tree()
    assert tree["invoke_agent Boss"] is None
    assert tree["execute_tool task"] == "invoke_agent Boss"
    assert tree["execute_tool look"] == "invoke_agent worker"
    above = tree["invoke_agent worker"]
    while above != "execute_tool task":
        assert above is not None
        above = tree[above]
    assert all(attributes(span)["tenant"] == 7 for span in told.spans)


def test_a_compiled_sub_agent_has_the_attributes_of_both(told: Told) -> None:
    inner = agent_of("found", name="inner", otel_attributes={"own": 1, "tenant": 8})
    compiled = sa.CompiledSubAgent("worker", "Works.", inner)
    task = call("task", instructions="Look.", subagent_type="worker")
    agent = sa.Agent(
        sa.ScriptedModel([task, "all done"]),
        subagent_options={"subagents": [compiled]},
        otel_attributes={"tenant": 7},
    )
    agent.run("go")
    (inside,) = [s for s in told.spans if s.name.startswith("invoke_agent inner")]
    assert (attributes(inside)["own"], attributes(inside)["tenant"]) == (1, 8)
    assert "own" not in attributes(told["invoke_agent Agent"])


@pytest.mark.spec("S1.14.3")
@pytest.mark.parametrize("run_on", ["loop", "pool", "main", "async"])
def test_a_span_of_the_tool_itself_is_inside_of_its_call(told: Told, run_on: str) -> None:
    def mine() -> str:
        with told.tracer.start_as_current_span("mine"):
            return "ok"

    async def mine_too() -> str:
        await asyncio.sleep(0)
        return mine()

    if run_on == "async":
        tool = sa.tool(name="work")(mine_too)
    else:
        tool = sa.tool(name="work", run_on=run_on)(mine)  # type: ignore[call-overload]
    agent_of(call("work"), "ok", tools=[tool]).run("go")
    assert told.tree()["mine"] == "execute_tool work"


@pytest.mark.parametrize("how", ["run", "arun", "stream", "session"])
def test_a_run_is_inside_of_the_span_that_started_it(told: Told, how: str) -> None:
    agent = agent_of("hi")

    async def awaited() -> None:
        with told.tracer.start_as_current_span("cell"):
            await agent.arun("go")

    if how == "arun":
        run(awaited())
    else:
        with told.tracer.start_as_current_span("cell"):
            if how == "run":
                agent.run("go")
            elif how == "stream":
                all_of(agent.stream("go"))
            else:
                session = session_of("hi")
                session.send("go").result()
    assert told.tree()["invoke_agent Agent"] == "cell"


def test_runs_at_the_same_time_do_not_mix(told: Told) -> None:
    agents = [agent_of(call("look"), "ok", tools=[look], name=f"n{n}") for n in range(20)]

    async def together() -> None:
        await asyncio.gather(*(agent.arun("go") for agent in agents))

    run(together())
    for span in told.spans:
        above = [s for s in told.spans if span.parent and s.context.span_id == span.parent.span_id]
        for other in above:
            assert attributes(other)["gen_ai.agent.name"] == attributes(span)["gen_ai.agent.name"]
    assert len(told.spans) == 20 * 4


@pytest.mark.spec("S1.14.2")
def test_hooks_background_work_messages_and_halts_are_told(told: Told) -> None:
    class Busy(Middleware):
        def before_model(self, state: sa.State, ctx: Any) -> None:
            ctx.spawn(self.work(ctx, bad=False))
            ctx.spawn(self.work(ctx, bad=True)).add_done_callback(lambda task: task.exception())

        async def work(self, ctx: Any, bad: bool) -> None:
            if bad:
                raise ValueError(SECRET)
            ctx.notify("Busy", "done")

        async def after_model(self, state: sa.State, ctx: Any) -> None:
            await asyncio.sleep(0.01)

        def handle_message(self, message: Any, state: sa.State, ctx: Any) -> None:
            assert message == "done"

        def after_run(self, state: sa.State, ctx: Any) -> sa.Interrupt:
            return sa.Interrupt("halt", message="enough")

    assert agent_of("hi", middleware=[Busy()]).run("go").status == "interrupted"
    tree = told.tree()
    for hook in ("before_model", "after_model", "handle_message", "after_run"):
        assert tree[f"Busy.{hook}"] == "invoke_agent Agent"
    task = next(name for name in tree if name.startswith("task ") and name.endswith("Busy.work"))
    assert tree[task] == "Busy.before_model"
    tasks = told.points("sagents.middleware.task.duration")
    assert {p.attributes["sagents.outcome"]: p.count for p in tasks} == {
        "completed": 1,
        "failed": 1,
    }
    assert sum(p.value for p in told.points("sagents.middleware.task.spawned")) == 2
    assert sum(p.value for p in told.points("sagents.middleware.message.received")) == 1
    assert sum(p.value for p in told.points("sagents.agent.halt")) == 1
    hooks = told.points("sagents.middleware.hook.duration")
    assert {p.attributes["sagents.hook"] for p in hooks} >= {"before_model", "after_model"}
    whole = attributes(told["invoke_agent Agent"])
    assert whole["sagents.interrupt.type"] == "halt"
    assert all(attributes(span).keys() <= DERIVED for span in told.spans)
    assert SECRET not in "".join(span.to_json() for span in told.spans)


def test_a_model_call_of_a_middleware_is_told_as_one(told: Told) -> None:
    history = [m for i in range(9) for m in (sa.Message.user(f"{i}"), sa.Message.assistant("ok"))]
    short = Summarization(10, keep=2, model=sa.ScriptedModel(["short"]))
    agent_of("fine", middleware=[short]).run("go", sa.State(messages=history))
    inside = [s for s in told.spans if s.name == "chat scripted"]
    assert len(inside) == 2
    hook = told["Summarization.before_model"]
    assert inside[0].parent is not None
    assert inside[0].parent.span_id == hook.context.span_id


def test_a_failure_is_told_by_its_kind(told: Told) -> None:
    broken = sa.ModelError(SECRET, kind="rate_limit")
    model = sa.RetryingModel(sa.ScriptedModel([broken]), attempts=1)
    with pytest.raises(sa.ModelError):
        sa.Agent(model, replace_default_middleware=True).run("go")
    for span in told.spans:
        assert span.status.status_code is StatusCode.ERROR
        assert attributes(span)["error.type"] == "rate_limit"
        assert not span.status.description
    assert attributes(told["invoke_agent Agent"])["gen_ai.provider.name"] == "scripted"


def test_a_cancelled_run_is_no_failure(told: Told) -> None:
    started = threading.Event()

    async def forever() -> None:
        started.set()
        await asyncio.sleep(3600)

    session = session_of(call("forever"), tools=[forever])
    running = session.send("go")
    assert started.wait(PATIENCE)
    running.cancel()
    assert running.result().status == "cancelled"
    assert attributes(told["execute_tool forever"])["error.type"] == "cancelled"
    assert told["execute_tool forever"].status.status_code is StatusCode.UNSET
    assert attributes(told["invoke_agent Agent"])["sagents.run.status"] == "cancelled"


def test_after_a_run_nothing_of_it_is_left_in_the_context(told: Told) -> None:
    async def both() -> None:
        loop = agent_of("hi").new_run(sa.State(), Emitter(lambda event: None))
        await loop.run([sa.Message.user("go")])
        assert told.spans
        assert telemetry.current() is None
        assert trace.get_current_span() is trace.INVALID_SPAN

    run(both())


def test_a_message_to_a_middleware_of_an_idle_session_is_told_too(told: Told) -> None:
    handled = threading.Event()

    class Waits(Middleware):
        def handle_message(self, message: Any, state: sa.State, ctx: Any) -> None:
            handled.set()

    session = session_of(middleware=[Waits()])
    session.notify_middleware("Waits", "hello")
    assert handled.wait(PATIENCE)
    sa.Agent(sa.ScriptedModel(["by then it has ended"])).run("go")
    assert told.tree()["Waits.handle_message"] is None
    assert sum(p.value for p in told.points("sagents.middleware.message.received")) == 1


QUIET = """
    import sys
    import sagents_nb as sa

    def work() -> str:
        return "ok"

    model = sa.ScriptedModel([sa.ToolCall("c1", "work", {}), "ok"])
    assert sa.Agent(model, tools=[work], otel_attributes={"a": 1}).run("go").text == "ok"
    assert not [name for name in sys.modules if name.startswith("opentelemetry")]

    import opentelemetry.trace  # some library has; nobody has configured it
    from sagents_nb.runtime import telemetry
    assert telemetry.configured() is None

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    opentelemetry.trace.set_tracer_provider(provider)
    sa.Agent(sa.ScriptedModel(["ok"])).run("go")
    names = [span.name for span in exporter.get_finished_spans()]
    assert names[-1] == "invoke_agent Agent", names
    print("fine")
"""


@pytest.mark.spec("S1.14.3")
def test_nothing_is_imported_before_the_program_does_and_it_begins_once_it_is_configured() -> None:
    code = textwrap.dedent(QUIET)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "fine", done.stderr
