"""Spans and metrics of runs for OpenTelemetry, by its semantic conventions for generative AI.

There are some once the program has configured OpenTelemetry (a tracer or a meter provider), and
nothing of it is imported before: without it a run pays for two look-ups.

Spans, each inside of what caused it:

- ``invoke_agent {agent}``: a run, also of a sub-agent, with the tokens it used and how it ended;
- ``chat {model}``: a model call, with its tokens and why it ended;
- ``execute_tool {tool}``: a tool call; spans of the tool's own, in whatever thread, are inside;
- ``{middleware}.{hook}``: a hook, ``handle_message`` for a message that was sent to it;
- ``task {function}``: what a middleware does in the background.

Metrics: ``gen_ai.client.operation.duration`` (s) of the first three, ``gen_ai.client.token.usage``
(tokens), ``sagents.middleware.hook.duration`` and ``sagents.middleware.task.duration`` (s, the
latter by ``sagents.outcome``: "completed", "failed" or "cancelled"), and the counters
``sagents.middleware.task.spawned``, ``sagents.middleware.message.received`` and
``sagents.agent.halt``. No text of a conversation, no argument and no key is in any of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ..context import RunContext
from ..messages import Message, ToolCall, ToolResult, Usage
from ..serialization import to_data
from ..text import whole

# What a run says itself, which ``otel_attributes`` cannot.
DERIVED = frozenset(
    {
        "error.type",
        "gen_ai.agent.id",
        "gen_ai.agent.name",
        "gen_ai.conversation.id",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.model",
        "gen_ai.tool.call.id",
        "gen_ai.tool.name",
        "gen_ai.tool.type",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "sagents.hook",
        "sagents.interrupt.type",
        "sagents.middleware",
        "sagents.outcome",
        "sagents.run.id",
        "sagents.run.status",
        "sagents.task",
    }
)


def plain_attributes(given: Mapping[str, Any]) -> dict[str, Any]:
    """``otel_attributes`` as a span takes them.

    Numbers and truth values stay, other values become JSON, None and what a run says itself is
    left out.

    >>> plain_attributes({"tenant": 7, "who": {"id": 3}, "none": None, "error.type": "mine"})
    {'tenant': 7, 'who': '{"id": 3}'}
    """
    return {
        str(key): _plain(value)
        for key, value in given.items()
        if value is not None and key not in DERIVED
    }


def _plain(value: Any) -> Any:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)  # more than the protocol can carry
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(to_data(value), ensure_ascii=False)
    return whole(text)


def operation(name: str, model: Any) -> dict[str, Any]:
    """What is done, and with which model."""
    about: dict[str, Any] = {"gen_ai.operation.name": name}
    if model is not None:
        about["gen_ai.request.model"] = str(getattr(model, "name", ""))
        about["gen_ai.provider.name"] = _provider(model)
    return about


def _provider(model: Any) -> str:
    """Whose model it is, behind those that only ask it."""
    while (inner := getattr(model, "inner", None) or next(iter(_models(model)), None)) is not None:
        model = inner
    kind = type(model).__name__.removesuffix("Model").lower()
    return str(getattr(model, "provider", "") or kind or "unknown")


def _models(model: Any) -> Any:
    return getattr(model, "models", ())


def usage_attributes(usage: Usage) -> dict[str, int]:
    """The tokens of one or more model calls."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens + cached,  # there they are all of them
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


def error_type(error: BaseException | None) -> str:
    """What went wrong, in one word: never the error's text."""
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return str(getattr(error, "kind", "") or type(error).__name__)


T = TypeVar("T")
AnswerRecorder = Callable[[Message, str, BaseException | None], None]


class Instruments:
    """Where it is written to; the providers are the program's own unless they are given."""

    def __init__(self, tracer_provider: Any = None, meter_provider: Any = None) -> None:
        from opentelemetry import context, metrics, trace

        self.context = context
        self.trace = trace
        self.tracer = trace.get_tracer("sagents_nb", tracer_provider=tracer_provider)
        meter = metrics.get_meter("sagents_nb", meter_provider=meter_provider)
        self.operations = meter.create_histogram("gen_ai.client.operation.duration", "s")
        self.tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}")
        self.hooks = meter.create_histogram("sagents.middleware.hook.duration", "s")
        self.tasks = meter.create_histogram("sagents.middleware.task.duration", "s")
        self.spawned = meter.create_counter("sagents.middleware.task.spawned", "{task}")
        self.received = meter.create_counter("sagents.middleware.message.received", "{message}")
        self.halts = meter.create_counter("sagents.agent.halt", "{halt}")


_instruments: Instruments | None = None


def configured() -> Instruments | None:
    """The program's instruments, if it has configured OpenTelemetry by now."""
    global _instruments
    if _instruments is None:
        for module, get, unset in (
            ("opentelemetry.trace", "get_tracer_provider", "ProxyTracerProvider"),
            ("opentelemetry.metrics", "get_meter_provider", "_ProxyMeterProvider"),
        ):
            provider = getattr(sys.modules.get(module), get, None)
            if provider is not None and type(provider()).__name__ != unset:
                _instruments = Instruments()
                break
    return _instruments


_current: ContextVar[Tracing | None] = ContextVar("sagents_tracing", default=None)
current = _current.get
"""The tracing of the run that this code belongs to, or None."""


def tracing_of(ctx: RunContext) -> Tracing | None:
    """What a run that begins now is traced by; None if nobody listens."""
    instruments = configured()
    return None if instruments is None else Tracing(instruments, ctx)


class Tracing:
    """One run; inside of another one it has that one's ``otel_attributes`` too."""

    def __init__(self, instruments: Instruments, ctx: RunContext) -> None:
        above = current()
        own = plain_attributes(getattr(ctx.agent, "otel_attributes", {}))
        self.instruments = instruments
        self.ctx = ctx
        self.own_attributes: dict[str, Any] = {**above.own_attributes, **own} if above else own
        self.agent_name = str(getattr(ctx.agent, "name", "") or "Agent")
        self.identity = {
            "gen_ai.agent.name": self.agent_name,
            **({"gen_ai.agent.id": ctx.agent_id} if ctx.agent_id else {}),
            **({"gen_ai.conversation.id": ctx.session_id} if ctx.session_id else {}),
        }

    async def invoke_agent(self, work: Awaitable[T]) -> T:
        """Trace a run, which gives its Outcome."""
        about = {
            **operation("invoke_agent", self.ctx.model),
            "gen_ai.agent.name": self.agent_name,
        }
        self.ctx.spawn = self._spawning(self.ctx.spawn)
        name = f"invoke_agent {self.agent_name}"
        with self.inside(), self._span(name, about) as (span, metric):
            span.set_attribute("sagents.run.id", self.ctx.run_id)
            outcome: Any = await work
            span.set_attributes(usage_attributes(outcome.usage))
            span.set_attribute("sagents.run.status", outcome.status)
            if outcome.state.interrupt is not None:
                span.set_attribute("sagents.interrupt.type", outcome.state.interrupt.type)
            if outcome.status == "error":
                self._failed(span, metric, error_type(outcome.error))
            return outcome  # type: ignore[no-any-return]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What happens in this block is traced by this."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def chat(self, model: Any) -> Iterator[AnswerRecorder]:
        """Trace a model call; it is to be told the message, the name of who answered, the error."""
        about = operation("chat", model)
        name = getattr(model, "name", "")
        with self._span(f"chat {name}".rstrip(), about, client=True) as (span, metric):

            def record(message: Message, model: str, failure: BaseException | None) -> None:
                if model:
                    span.set_attribute("gen_ai.response.model", model)
                if message.stop_reason:
                    span.set_attribute("gen_ai.response.finish_reasons", [message.stop_reason])
                if message.usage is not None:
                    usage = usage_attributes(message.usage)
                    span.set_attributes(usage)
                    for kind in ("input", "output"):
                        tokens = usage[f"gen_ai.usage.{kind}_tokens"]
                        self.instruments.tokens.record(tokens, {**about, "gen_ai.token.type": kind})
                if failure is not None:
                    self._failed(span, metric, error_type(failure))

            yield record

    @contextmanager
    def execute_tool(self, call: ToolCall) -> Iterator[Callable[[ToolResult], None]]:
        """Trace a tool call; it is to be told the result."""
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
        }
        with self._span(f"execute_tool {call.name}", about) as (span, metric):
            span.set_attribute("gen_ai.tool.call.id", call.id)

            def ended(result: ToolResult) -> None:
                if result.is_error:
                    self._failed(span, metric, "tool_error")

            yield ended

    @contextmanager
    def hook(self, middleware: str, hook: str) -> Iterator[None]:
        """Trace a hook of a middleware."""
        about = {"sagents.middleware": middleware, "sagents.hook": hook}
        if hook == "handle_message":
            self.instruments.received.add(1, {"sagents.middleware": middleware})
        with self._span(f"{middleware}.{hook}", about, self.instruments.hooks):
            yield

    def halted(self) -> None:
        """Count a halt."""
        self.instruments.halts.add(1, {"gen_ai.agent.name": self.agent_name})

    def _spawning(self, spawn: Callable[..., Any]) -> Callable[..., Any]:
        def traced(work: Coroutine[Any, Any, Any]) -> Any:
            name = getattr(work, "__qualname__", type(work).__name__)
            self.instruments.spawned.add(1, {"sagents.task": name})
            return spawn(self._task(name, work))

        return traced

    async def _task(self, name: str, work: Awaitable[T]) -> T:
        about = {"sagents.task": name}
        with self._span(f"task {name}", about, self.instruments.tasks) as (_, metric):
            metric["sagents.outcome"] = "failed"
            try:
                value = await work
            except asyncio.CancelledError:
                metric["sagents.outcome"] = "cancelled"
                raise
            metric["sagents.outcome"] = "completed"
            return value

    @contextmanager
    def _span(
        self, name: str, about: dict[str, Any], histogram: Any = None, *, client: bool = False
    ) -> Iterator[tuple[Any, dict[str, Any]]]:
        """A span around this block, and the attributes of its duration as a metric."""
        instruments = self.instruments
        trace, context = instruments.trace, instruments.context
        kind = trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL
        attributes = {**self.own_attributes, **self.identity, **about}
        span = instruments.tracer.start_span(name, kind=kind, attributes=attributes)
        token = context.attach(trace.set_span_in_context(span))
        metric = dict(about)
        began = time.perf_counter()
        try:
            yield span, metric
        except BaseException as error:  # its text may tell what was said
            self._failed(span, metric, error_type(error))
            raise
        finally:
            duration = time.perf_counter() - began
            (histogram or instruments.operations).record(duration, metric)
            context.detach(token)
            span.end()

    def _failed(self, span: Any, metric: dict[str, Any], kind: str) -> None:
        span.set_attribute("error.type", kind)
        metric["error.type"] = kind
        if kind != "cancelled":
            span.set_status(self.instruments.trace.StatusCode.ERROR)
