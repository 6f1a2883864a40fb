"""Let the model ask people: one choice, several, or their own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from .. import kinds
from ..context import RunContext, ToolContext
from ..errors import ConfigurationError, InvalidDecision
from ..interrupts import ActionRequest, Decision, Interrupt, Reject, Respond
from ..messages import ANSWER, ToolResult
from ..serialization import read_as
from ..state import State, to_data
from ..tools import Tool, ToolOutput
from .base import Middleware, middleware_id

RESPONSE_TYPES = ("single_select", "multi_select", "freeform")
OTHER = "other"  # what an answer selects for words of one's own

_DESCRIPTION = """\
Ask the user a question and wait for the answer. Use it when you cannot go on without a \
decision, a preference or a fact that only the user has; not for what you can find out \
yourself, and not to ask whether you may go on."""

_CANCELLED = (
    "The user does not want to answer. Stop here, say briefly where you are, and wait for the user."
)


class Option(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer to choose."""

    label: Annotated[str, Meta(description="What the user reads.")]
    value: Annotated[str, Meta(description="A short name of your own, different for each.")]
    description: Annotated[str | None, Meta(description="What choosing it means.")] = None


class Question(msgspec.Struct, frozen=True):
    """What is asked; an interrupt's ``data`` has these fields."""

    question: str
    response_type: str
    options: list[Option] = []
    allow_other: bool = False
    allow_cancel: bool = True
    context: str | None = None

    def problem(self, enabled: Sequence[str]) -> str:
        """What is wrong with it, as a sentence for the model; "" if nothing is."""
        if not self.question.strip():
            return "The question is empty."
        if self.response_type not in enabled:
            return f"response_type is {' or '.join(enabled)}, not {self.response_type!r}."
        if self.response_type == "freeform":
            return "A freeform question takes no options." if self.options else ""
        if not 2 <= len(self.options) <= 10:
            count = len(self.options)
            return f"A {self.response_type} question needs 2 to 10 options, not {count}."
        if any(not option.label.strip() or not option.value.strip() for option in self.options):
            return "Every option needs a label and a value."
        if len({option.value for option in self.options}) < len(self.options):
            return "Two options have the same value."
        return ""


class QuestionAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What people answered."""

    selected: list[str] = []
    other_text: str | None = None
    cancel: bool = False


class AskUser(Middleware):
    """Gives the model ``ask_user``; the run is interrupted until people answer.

    An answer is ``Respond({"selected": ["a"], "other_text": …})`` or
    ``Respond({"cancel": True})``; for short, text for a question in free words, a value for a
    single choice, a list of values for several. Rejecting leaves the question unanswered, like
    cancelling. ``response_types`` are those the model may use, of "single_select", "multi_select"
    and "freeform". ``allow_other`` and ``allow_cancel``, if given, hold for every question, and the
    model is not asked about them. Raises :class:`~sagents_nb.errors.ConfigurationError` for a type
    that does not exist.

    >>> from sagents_nb import Agent, AskUser, Respond, ScriptedModel, ToolCall
    >>> question = {"question": "Which city?", "response_type": "freeform"}
    >>> model = ScriptedModel([ToolCall("c1", "ask_user", question), "To Oslo, then."])
    >>> agent = Agent(model, middleware=[AskUser()])
    >>> result = agent.run("Plan a trip.")
    >>> result.interrupt.type, agent.resume(result, Respond("Oslo")).text
    ('ask_user', 'To Oslo, then.')
    """

    @kinds.checked
    def __init__(
        self,
        response_types: Iterable[str] = RESPONSE_TYPES,
        allow_other: bool | None = None,
        allow_cancel: bool | None = None,
    ) -> None:
        self.response_types = tuple(response_types)
        unknown = [t for t in self.response_types if t not in RESPONSE_TYPES]
        if unknown or not self.response_types:
            raise ConfigurationError(
                f"AskUser's response_types are among {', '.join(RESPONSE_TYPES)}, "
                f"not {', '.join(map(repr, unknown)) or 'none'}."
            )
        self.forced = {
            name: value
            for name, value in (("allow_other", allow_other), ("allow_cancel", allow_cancel))
            if value is not None
        }

    def tools(self) -> list[Tool]:
        """``ask_user``."""
        tool = Tool(self._ask, name="ask_user", description=_DESCRIPTION)
        schema = deepcopy(tool.schema)
        schema["properties"]["response_type"]["enum"] = list(self.response_types)
        for name in self.forced:
            del schema["properties"][name]
        return [
            Tool(
                self._ask,
                name="ask_user",
                description=_DESCRIPTION,
                schema=schema,
                run_on="loop",
                idempotent=True,  # a crash loses the question at most, and it is asked again
                display_text=lambda arguments: str(arguments["question"]),
            )
        ]

    def _ask(
        self,
        ctx: ToolContext,
        question: Annotated[str, Meta(description="One clear question.")],
        response_type: Annotated[
            str, Meta(description="One of the options, several of them, or free words.")
        ],
        options: Annotated[
            list[Option], Meta(description="2 to 10 answers to choose from; none for freeform.")
        ] = [],  # noqa: B006 - a schema's default, copied for each call
        allow_other: Annotated[
            bool, Meta(description="Whether the user may answer in other words instead.")
        ] = False,
        allow_cancel: Annotated[
            bool, Meta(description="Whether the user may leave it unanswered.")
        ] = True,
        context: Annotated[
            str | None, Meta(description="What the user should know to answer it.")
        ] = None,
    ) -> ToolOutput | Interrupt:
        allowed = {"allow_other": allow_other, "allow_cancel": allow_cancel, **self.forced}
        asked = Question(question, response_type, options, context=context, **allowed)
        if problem := asked.problem(self.response_types):
            return ToolOutput(f"{problem} Nothing was asked.", is_error=True)
        data = to_data(asked)
        request = ActionRequest(
            tool_call_id=ctx.tool_call_id,
            tool_name="ask_user",
            arguments=data,
            display_text=question,
            allowed_decisions=("respond", "reject"),
        )
        return Interrupt("ask_user", (request,), question, {**data, "by": middleware_id(self)})

    def check_decisions(self, interrupt: Interrupt, decisions: Mapping[str, Decision]) -> None:
        """Raise InvalidDecision for an answer that does not fit its question."""
        question = self._question(interrupt)
        if question is not None:
            for decision in decisions.values():
                _chosen(question, decision)

    def handle_resume(
        self,
        interrupt: Interrupt,
        decisions: Mapping[str, Decision],
        state: State,
        ctx: RunContext,
    ) -> State | None:
        """Put the answers into the place of the questions."""
        question = self._question(interrupt)
        if question is None:
            return None
        for call_id, decision in decisions.items():
            result = _result(call_id, question, decision)
            state = state.replace_tool_result(call_id, result)
        return state

    def _question(self, interrupt: Interrupt) -> Question | None:
        """What was asked, if this middleware asked it."""
        if interrupt.type != "ask_user" or interrupt.data.get("by") != middleware_id(self):
            return None
        return msgspec.convert(interrupt.data, Question)


def _result(call_id: str, question: Question, decision: Decision) -> ToolResult:
    chosen = _chosen(question, decision)
    result = ToolResult(call_id, "ask_user", _CANCELLED, metadata={ANSWER: None})
    if chosen is None:
        comment = decision.message if isinstance(decision, Reject) else ""
        return replace(result, content=f"{_CANCELLED} They said: {comment}") if comment else result
    options, other = chosen
    texts = []
    if options:
        texts.append("The user chose: " + ", ".join(map(_named, options)) + ".")
    if other:
        texts.append(f"The user answered in their own words: {other}")
    labels = [option.label for option in options] + ([other] if other else [])
    return replace(result, content="\n".join(texts), metadata={ANSWER: labels})


def _named(option: Option) -> str:
    same = option.label == option.value
    return option.label if same else f"{option.label} (value {option.value!r})"


def _chosen(question: Question, decision: Decision) -> tuple[list[Option], str] | None:
    """The chosen options and the person's own words; None for a question left unanswered.

    Raises InvalidDecision for an answer that does not fit.
    """
    if isinstance(decision, Reject):
        return None
    answer = _answer(question, decision)
    if answer.cancel:
        if not question.allow_cancel:
            raise InvalidDecision(_not(question, "must be answered, it cannot be cancelled"))
        return None
    other = (answer.other_text or "").strip()
    if question.response_type == "freeform":
        if answer.selected or not other:
            raise InvalidDecision(_not(question, "is answered in words: give 'other_text'"))
        return [], other
    offered = {option.value: option for option in question.options}
    values = list(answer.selected)
    wants_other = OTHER in values and OTHER not in offered
    if wants_other:
        values.remove(OTHER)
    if (wants_other or other) and not question.allow_other:
        raise InvalidDecision(_not(question, f"takes only {', '.join(offered)}"))
    if wants_other and not other:
        raise InvalidDecision(_not(question, "needs 'other_text' where 'other' is selected"))
    unknown = [value for value in values if value not in offered]
    if unknown:
        raise InvalidDecision(_not(question, f"has no {unknown[0]!r}; it has {', '.join(offered)}"))
    if len(set(values)) < len(values):
        raise InvalidDecision(_not(question, "was given one option twice"))
    count = len(values) + bool(other)
    if question.response_type == "single_select" and count != 1:
        raise InvalidDecision(_not(question, f"takes exactly one answer, not {count}"))
    if not count:
        raise InvalidDecision(_not(question, "needs at least one answer"))
    return [offered[value] for value in values], other


def _answer(question: Question, decision: Decision) -> QuestionAnswer:
    reply = decision.answer if isinstance(decision, Respond) else None
    if isinstance(reply, str):
        values = {option.value for option in question.options}
        selects = bool(values) and (reply in values or not question.allow_other)
        return QuestionAnswer(selected=[reply]) if selects else QuestionAnswer(other_text=reply)
    if isinstance(reply, list | tuple):
        reply = {"selected": list(reply)}
    try:
        answer: QuestionAnswer = read_as(reply, QuestionAnswer)
        return answer
    except msgspec.ValidationError as error:
        how = f"takes {{'selected': […], 'other_text': …}} or {{'cancel': True}} ({error})"
        raise InvalidDecision(_not(question, how)) from None


def _not(question: Question, text: str) -> str:
    return f"The question {question.question[:80]!r} {text}."
