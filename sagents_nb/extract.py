"""Answers as values of a type: the model calls a tool whose arguments are that type's."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from . import kinds
from .context import AgentProtocol, joined_prompt
from .errors import AgentError, ConfigurationError, MaxRunsExceeded, UntilToolNotCalled
from .events import Emitter
from .loop.config import Source, settled
from .loop.execution import Execution, Prompt, check_unanswered, new_run_id, starting_point
from .loop.loop import Loop
from .messages import Message, ToolResult, Usage
from .result import Answered, RunResult
from .state import State
from .text import text_or_why
from .tools import (
    Tool,
    ToolOutput,
    described,
    own_names,
    plain,
    read_arguments,
    readable,
    type_name,
)

T = TypeVar("T")
A = TypeVar("A", bound=AgentProtocol)


# So many answers that do not fit, and no further one is asked for.
WRONG = 5

# What a type without fields is called as an argument, and as a column.
VALUE = "value"


class Output:
    """What is asked for: a type, its JSON Schema, and how to read what a model sent.

    A dataclass, TypedDict, msgspec.Struct or pydantic model has ``fields``; any other type,
    such as ``list[str]`` or ``Literal["yes", "no"]``, is the one field "value". Raises
    :class:`~sagents_nb.errors.ConfigurationError` for a type that no JSON can hold.
    """

    def __init__(self, annotation: Any) -> None:
        kind = type(annotation)  # of which a class of somebody's own is not asked
        is_value = issubclass(kind, str | bytes | Mapping | int | float | list)
        if is_value or kinds.is_array(annotation):
            raise ConfigurationError(
                f"An answer is of a type, and {kind.__name__} is none; give plain "
                "types, a dataclass, a TypedDict, a msgspec.Struct or a pydantic model."
            )
        self.annotation = annotation
        self.name = type_name(annotation)
        try:
            self._read_as = readable(annotation)
        except (TypeError, ImportError) as error:
            reason = str(error).strip().splitlines()[-1].rstrip(".")
            raise ConfigurationError(
                f"No answer can be a {self.name} ({reason}); use plain types, a dataclass, a "
                "TypedDict, a msgspec.Struct or a pydantic model."
            ) from error
        schema = described(self._read_as)
        self.flat = schema.get("type") == "object" and "properties" in schema
        self.schema = schema if self.flat else _wrapped(schema)
        wrapper = msgspec.defstruct(f"{VALUE}_of_answer", [(VALUE, self._read_as)])
        self._arguments = self._read_as if self.flat else wrapper
        self._own = own_names(self._read_as) if self.flat else {}

    @property
    def fields(self) -> list[str]:
        """The names of the arguments, in order."""
        return list(self.schema["properties"])

    @property
    def types(self) -> dict[str, Any]:
        """The annotation of each field, as far as it can be told."""
        if not self.flat:
            return {VALUE: self.annotation}
        try:
            return get_type_hints(self._type)
        except (NameError, TypeError):
            return {}

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        """The schema of each field, by its name in a value of the type."""
        return {self._own.get(n, n): schema for n, schema in self.schema["properties"].items()}

    @property
    def _type(self) -> Any:
        """The class itself, without what Annotated says or what it is generic in."""
        base = self.annotation
        base = get_args(base)[0] if get_origin(base) is Annotated else base
        return get_origin(base) or base

    def read(self, arguments: Mapping[str, Any]) -> Any:
        """A value of the type; raises ValueError with a sentence for the model."""
        unknown = sorted(set(arguments) - set(self.fields))
        if unknown and not self.schema.get("additionalProperties"):
            raise ValueError(
                f"Invalid arguments: Object contains unknown field {unknown[0]!r}; the fields are "
                f"{', '.join(self.fields)}"
            )
        answer = read_arguments(arguments, self._arguments)
        return answer if self.flat else getattr(answer, VALUE)

    def data(self, value: Any) -> dict[str, Any]:
        """A value of the type as JSON-ready arguments; the reverse of :meth:`read`."""
        data = plain(value, self._read_as)
        if not self.flat:
            return {VALUE: data}
        arguments = {own: argument for argument, own in self._own.items()}
        return {arguments.get(name, name): item for name, item in data.items()}

    def row(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """What :meth:`data` gave, by the names of :attr:`columns`.

        Older caches have the own names of a pydantic model, and no defaults of a dataclass or
        Struct.
        """
        defaults = {}
        if dataclasses.is_dataclass(self._type) or hasattr(self._type, "__struct_fields__"):
            defaults = {n: s["default"] for n, s in self.columns.items() if "default" in s}
        if any(name in data for name in set(self._own.values()) - self._own.keys()):
            return defaults | dict(data)
        return defaults | {self._own.get(name, name): item for name, item in data.items()}


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    inner = dict(schema)
    defs = inner.pop("$defs", None)
    whole = {"type": "object", "properties": {VALUE: inner}, "required": [VALUE]}
    return {**whole, "$defs": defs} if defs else whole


class _OutputArguments:
    """The arguments of the tool that takes the answer."""

    def __init__(self, output: Output) -> None:
        self.context_parameter: str | None = None
        self.schema = output.schema
        self._read = output.read

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A value of the type; raises ValueError with a sentence for the model."""
        return {VALUE: self._read(arguments)}


class Asking(Generic[A]):
    """An agent that answers with a value of a type: all its own, and a tool for the answer.

    Errors of validation go back to the model; a text instead of a call is answered with a
    reminder. It ends with the first answer that fits, after ``wrong`` that do not, or after
    ``max_runs`` model calls, where these are not 0.
    """

    def __init__(self, agent: A, annotation: Any, max_runs: int, wrong: int = WRONG) -> None:
        self.output = output = Output(annotation)
        taken = {tool.name for tool in agent.tools}
        names = ("submit", *(f"submit_{n}" for n in range(2, len(taken) + 3)))
        self.tool = name = next(name for name in names if name not in taken)

        async def submit(value: Any) -> ToolOutput:
            return ToolOutput(output.data(value), artifact=Answered(value))

        tool = Tool(
            submit,
            name=name,
            description="Give the answer. It is checked, and you are done once it is right.",
            arguments=_OutputArguments(output),
            display_text="Giving the answer",
        )
        self.reminder = f"Call {name} with your answer; text alone is not read."
        self.agent = agent.with_(
            system_prompt=joined_prompt(agent.system_prompt, self.reminder),
            tools=[*agent.own_tools, tool],
            output_type=None,
            until_tool=None,
            until_tool_success=name,
            # One more, else the last call's answer would not be looked at.
            max_runs=max_runs and max_runs + 1,
        )
        self.max_runs = max_runs or math.inf
        self._most_wrong = wrong

    def new_run(
        self,
        state: State,
        emitter: Emitter,
        *,
        follow_ups: Source | None = None,
        should_stop: Callable[[Message, Sequence[ToolResult]], Any] | None = None,
        **given: Any,
    ) -> Loop:
        """One run, with the reminder where a run would end without an answer."""
        wrong = 0

        async def remind() -> Sequence[Message]:
            nonlocal wrong
            if follow_ups is not None and (said := await settled(follow_ups())):
                return said
            wrong += 1
            return [Message.user(self.reminder, reminder=True)] if wrong < self._most_wrong else ()

        async def enough(message: Message, results: Sequence[ToolResult]) -> bool:
            nonlocal wrong
            wrong += any(r.is_error and r.name == self.tool for r in results)
            if should_stop is not None and await settled(should_stop(message, results)):
                return True
            return wrong >= self._most_wrong or loop.model_calls >= self.max_runs

        loop: Loop = self.agent.new_run(
            state,
            emitter,
            follow_ups=remind,
            should_stop=enough,
            unanswered=self._without_answer,
            **given,
        )
        return loop

    def start(self, prompt: Prompt) -> Execution:
        """Begin on the runtime thread; :meth:`value` reads the result."""
        state, messages = starting_point(prompt, None)
        check_unanswered(state, messages)
        emitter = Emitter(session_id=self.agent.agent_id, run_id=new_run_id())
        return Execution(self.new_run(state, emitter, local={}), messages, None, {})

    def value(self, result: RunResult) -> Any:
        """The answer in the result; raises AgentError if the run ended before there was one."""
        if result.status != "completed" or result.tool_result is None:
            raise self._unanswered(result)
        return result.output

    def _unanswered(self, result: RunResult) -> AgentError:
        """Why there is no answer, of a run that is no error by itself."""
        if result.interrupt is not None:
            names = ", ".join(r.tool_name for r in result.interrupt.action_requests)
            why = f"waits for a person ({names or result.interrupt.type})"
            hint = "take away the tools that ask, or their interrupt_on"
        else:
            why, hint = f"was {result.status}", "run it again"
        return AgentError(f"There is no {self.output.name}: the run {why}; {hint}.", result)

    def _without_answer(self, error: AgentError, messages: Sequence[Message]) -> AgentError:
        """What was wrong with the answers, where an error only says that none fits."""
        if not isinstance(error, MaxRunsExceeded | UntilToolNotCalled):
            return error
        refused = [
            result.text.removeprefix("Invalid arguments: ")
            for message in messages
            for result in message.tool_results
            if result.is_error and result.name == self.tool
        ]
        last = " ".join(refused[-1].split()).rstrip(".") if refused else "it gave text alone"
        calls = sum(message.role == "assistant" for message in messages)
        more = ", or raise max_runs" if calls >= self.max_runs else ""
        return MaxRunsExceeded(
            f"The model gave no {self.output.name} in {calls} calls, last: {last[:300]}; "
            f"say in the prompt what is wanted{more}."
        )


class Extracted(Generic[T]):
    """A value that was extracted, and the ``result`` of the run that gave it."""

    def __init__(self, value: T, result: RunResult) -> None:
        self.value = value
        self.result = result

    @property
    def usage(self) -> Usage:
        """The tokens of all its model calls."""
        return self.result.usage

    def __repr__(self) -> str:
        return f"Extracted({text_or_why(self.value, repr)})"


def extract(
    agent: AgentProtocol, prompt: Prompt, annotation: type[T], max_runs: int
) -> Extracted[T]:
    """See :meth:`Agent.extract <sagents_nb.agent.Agent.extract>`."""
    asking = Asking(agent, annotation, max_runs, wrong=max(WRONG, max_runs))
    result = asking.start(prompt).result()
    return Extracted(asking.value(result), result)


async def aextract(
    agent: AgentProtocol, prompt: Prompt, annotation: type[T], max_runs: int
) -> Extracted[T]:
    """See :meth:`Agent.aextract <sagents_nb.agent.Agent.aextract>`."""
    asking = Asking(agent, annotation, max_runs, wrong=max(WRONG, max_runs))
    result = await asking.start(prompt)
    return Extracted(asking.value(result), result)


def type_given(output_type: Any, older: Any, name: str) -> Any:
    """The type, by its name or by the older one; raises ConfigurationError for both or none."""
    if (output_type is None) == (older is None):
        raise ConfigurationError(
            f"The type of the answer is given once, as output_type=…; {name}=… is its older name."
        )
    return older if output_type is None else output_type
