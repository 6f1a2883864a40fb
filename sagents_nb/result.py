"""What a run gives back."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

from . import kinds
from .budget import Meter
from .calls import CallRecord, SubAgentResult, call_records
from .citations import Citation, citations_of
from .errors import StaleApproval
from .interrupts import Interrupt
from .messages import Message, StopReason, ToolResult, Usage
from .state import State
from .transcript import folded, markdown, run_summary


class Answered(NamedTuple):
    """What the tool that takes an answer of an ``output_type`` keeps: the value itself."""

    value: Any


class _Once:
    """What can be taken once, by one thread, also of copies and of what was pickled here."""

    _known: ClassVar[WeakValueDictionary[str, _Once]] = WeakValueDictionary()

    def __init__(self, name: str = "", left: bool = True) -> None:
        self._left = [True] * left  # a list, since its pop is atomic
        self._name = name

    def take(self) -> bool:
        """Whether it was there."""
        try:
            return self._left.pop()
        except IndexError:
            return False

    def __deepcopy__(self, memo: Any) -> _Once:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._name:
            self._name = secrets.token_hex(16)
        _Once._known.setdefault(self._name, self)
        return _Once._of, (self._name, bool(self._left))

    @classmethod
    def _of(cls, name: str, left: bool) -> _Once:
        return cls._known.setdefault(name, cls(name, left))  # in another process it is a new one


class RunResult:
    """The outcome of one run.

    ``status`` is "completed", "interrupted", "paused" or "cancelled" ("error" only on the
    ``result`` of an exception). ``messages`` are the new ones, ``state`` is the whole;
    ``duration`` is in seconds; ``artifacts`` holds what tools kept in the process, by
    tool call id; ``session_id`` names the session whose run it was, "" without one; ``usage`` is
    that of all its model calls; ``tool_result`` is that of an ``until_tool``; ``sub_agents`` are
    those that ended in it, in that order. ``model_calls`` is how often its model was asked, and
    ``finish_reason`` why it ended: its status, "until_tool", "max_runs" (a ``fallback_text`` is the
    answer then), and of an error "max_runs", "max_failures" or "budget". A resumption goes on with
    its ``overrides``, with the values of the process in ``local``, and with the ``meter`` of what
    was used; ``typed`` says whether the run had an ``output_type``.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> result = Agent(ScriptedModel(["Hello!"])).run("hi")
    >>> result.status, result.text, [message.role for message in result.messages]
    ('completed', 'Hello!', ['user', 'assistant'])
    """

    def __init__(
        self,
        *,
        status: str,
        state: State,
        messages: list[Message],
        usage: Usage,
        duration: float,
        tool_result: ToolResult | None = None,
        artifacts: dict[str, Any] | None = None,
        overrides: dict[str, Any] | None = None,
        local: dict[str, Any] | None = None,
        meter: Meter | None = None,
        typed: bool = False,
        session_id: str = "",
        sub_agents: Sequence[SubAgentResult] = (),
        model_calls: int | None = None,
        finish_reason: str = "",
    ) -> None:
        self.status = status
        self.state = state
        self.messages = messages
        self.usage = usage
        self.duration = duration
        self.tool_result = tool_result
        self.artifacts = artifacts or {}
        self.overrides = overrides or {}
        self.local = {} if local is None else local
        self.meter = meter
        self.typed = typed  # whether the run had an output_type
        self.session_id = session_id
        self.sub_agents = list(sub_agents)
        self.model_calls = model_calls
        self.finish_reason = finish_reason or status
        self._unanswered = _Once()

    def __getstate__(self) -> dict[str, Any]:
        """Without what only the process has: a run's own ``tool_context``, keys in ``options``."""
        from .redaction import without_secrets  # seldom, and it imports more

        overrides = {k: v for k, v in self.overrides.items() if k != "tool_context"}
        if options := overrides.get("options"):
            overrides["options"] = without_secrets(options)
        return {**self.__dict__, "overrides": overrides}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Those kept by an earlier version do not say all of it."""
        self.__dict__.update({"model_calls": None, "finish_reason": kept["status"], **kept})

    def __copy__(self) -> RunResult:
        """With all of it: it stays in this process."""
        made: RunResult = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> RunResult:
        """With all of it, too."""
        made = self.__copy__()
        memo[id(self)] = made
        made.__dict__.update(deepcopy(self.__dict__, memo))
        return made

    def take_answer(self) -> None:
        """Say that its interrupt is answered; raises StaleApproval the second time."""
        if not self._unanswered.take():
            raise StaleApproval(
                "This result was resumed before, so nothing was run for it now; go on with what "
                "that gave, or with the 'result' of its error."
            )

    @property
    def tool_calls(self) -> list[CallRecord]:
        """Its calls in order, each with its arguments, what was decided, and its result."""
        return call_records(self.messages)

    @property
    def citations(self) -> list[Citation]:
        """What its answers say they are taken from, each passage once.

        With a :class:`~sagents_nb.Retrieval`; of a marker without a passage one that is not
        ``verified``.
        """
        found = (each for message in self.messages for each in citations_of(message))
        return list(dict.fromkeys(found))

    @property
    def text(self) -> str:
        """The text of the last assistant message; "" if there is none."""
        answer = self._answer
        return "" if answer is None else answer.text

    @property
    def output(self) -> Any:
        """The answer as a value of the run's ``output_type``; the ``text`` where it had none.

        None where the run stopped before there was a value, for people or by a cancellation.
        """
        if self.tool_result is not None:
            kept = self.artifacts.get(self.tool_result.tool_call_id)
            if isinstance(kept, Answered):
                return kept.value
        return None if self.typed else self.text

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the model stopped after its last message; None if there is none.

        "end_turn" is a whole answer. With "max_tokens" or "context_window" it was cut.
        """
        answer = self._answer
        return None if answer is None else answer.stop_reason

    @property
    def _answer(self) -> Message | None:
        for message in reversed(self.messages):
            if message.role == "assistant":
                return message
        return None

    @property
    def interrupt(self) -> Interrupt | None:
        """What the run waits for, if it is interrupted."""
        return self.state.interrupt

    if not TYPE_CHECKING:  # for type checkers there is nothing else

        def __getattr__(self, name: str) -> Any:
            return kinds.no_attribute(self, name)

    @kinds.safe_repr
    def __repr__(self) -> str:
        return run_summary(self.status, self.messages)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {
            "text/plain": repr(self),
            "text/html": folded(repr(self), markdown(self.messages)),
        }
