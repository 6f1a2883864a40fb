"""Answers as values of a type: the model calls a tool whose arguments are that type's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from .context import AgentProtocol, joined_prompt
from .errors import AgentError, ConfigurationError, MaxRunsExceeded, UntilToolNotCalled
from .events import Emitter
from .loop.config import Source, settled
from .loop.execution import Execution, Prompt, check_unanswered, new_run_id, starting_point
from .loop.loop import Loop
from .messages import Message, ToolResult, Usage
from .models.output_type import VALUE, Output
from .result import Answered, RunResult
from .state import State
from .text import text_or_why
from .tools import (
    Tool,
    ToolOutput,
)

T = TypeVar("T")
A = TypeVar("A", bound=AgentProtocol)


# So many answers that do not fit, and no further one is asked for.
WRONG = 5


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
