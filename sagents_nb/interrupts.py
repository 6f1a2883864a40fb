"""What a run stops for, and how people answer: plain data and its validation.

An interrupt is an *output* of a run and a part of its state, never a suspended coroutine,
so it survives a restart for free.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from . import kinds
from .errors import ConfigurationError, InvalidDecision, pass_on
from .serialization import read_as, to_data
from .text import exact, said_by, sha256

ALL_DECISIONS = ("approve", "edit", "reject")

InterruptType = Literal[
    "hitl", "subagent_hitl", "task", "ask_user", "tool", "multiple", "halt", "in_doubt"
]
"""The types that are known here; a tool or hook may use one of its own, such as "payment"."""


class ActionRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tool call that waits for a decision.

    It is the call ``tool_call_id`` of the tool ``tool_name``, with its ``arguments``;
    ``display_text`` is how the tool says it to people, and ``allowed_decisions`` are of "approve",
    "edit" and "reject". ``defaults`` are what the tool's function takes for arguments that the call
    leaves out, as JSON. ``digest`` binds an answer to exactly these arguments and defaults; see
    :func:`digest_of`.

    >>> import sagents_nb as sa
    >>> def book(city: str, nights: int = 1) -> str:
    ...     "Book a room."
    ...     return f"Booked in {city}."
    >>> model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"city": "Oslo"})])
    >>> result = sa.Agent(model, tools=[book], interrupt_on=["book"]).run("Book a room.")
    >>> request = result.interrupt.action_requests[0]
    >>> request.tool_name, request.arguments, request.defaults
    ('book', {'city': 'Oslo'}, {'nights': 1})
    >>> request.allowed_decisions
    ('approve', 'edit', 'reject')
    """

    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any] = {}
    display_text: str | None = None
    allowed_decisions: tuple[str, ...] = ALL_DECISIONS
    digest: str = ""
    defaults: dict[str, Any] = {}


class Interrupt(msgspec.Struct, metaclass=kinds.Record, frozen=True, omit_defaults=True):
    """Why a run waits. ``data`` belongs to whoever raised it; ``message`` is for people.

    ``type`` is an :data:`InterruptType`, or a word of whoever raised it. ``id`` is given to it
    where it is raised.

    Where several calls of one turn wait, ``parts`` holds each one's own interrupt and
    ``action_requests`` all their requests. A tool that returns one waits for people, whose answer
    is its result:

    >>> import sagents_nb as sa
    >>> def pay(amount: int) -> sa.Interrupt:
    ...     "Pay an amount."
    ...     return sa.Interrupt("payment", message=f"Pay {amount}?", data={"amount": amount})
    >>> model = sa.ScriptedModel([sa.ToolCall("c1", "pay", {"amount": 5}), "It is paid."])
    >>> agent = sa.Agent(model, tools=[pay])
    >>> result = agent.run("Pay 5.")
    >>> result.interrupt.message
    'Pay 5?'
    >>> agent.resume(result, sa.Respond("paid")).text
    'It is paid.'
    """

    type: str
    action_requests: tuple[ActionRequest, ...] = ()
    message: str | None = None
    data: dict[str, Any] = {}
    id: str = ""
    parts: tuple[Interrupt, ...] = ()

    def __post_init__(self) -> None:
        kinds.check_fields(self)

    @property
    def review_configs(self) -> dict[str, dict[str, list[str]]]:
        """Per distinct tool name: the decisions that are allowed."""
        return {
            request.tool_name: {"allowed_decisions": list(request.allowed_decisions)}
            for request in self.action_requests
        }

    @property
    def tool_call_ids(self) -> list[str]:
        """The ids of the calls that wait, in call order."""
        return [request.tool_call_id for request in self.action_requests]

    @property
    def restorable(self) -> bool:
        """Whether it can still be answered once the process that raised it has ended.

        A sub-agent that waits cannot: it lives in its process only. Several are restorable if
        each of them is.
        """
        if self.type == "multiple":
            return bool(self.parts) and all(part.restorable for part in self.parts)
        return self.type != "subagent_hitl"


class Approve(
    msgspec.Struct,
    metaclass=kinds.Record,
    frozen=True,
    tag="approve",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Run the call as the model asked.

    With ``always`` the gate of ``interrupt_on`` also lets the further calls of that tool pass,
    in this conversation and in this process only, until ``interrupt_on`` is given anew or
    :meth:`Session.ask_again() <sagents_nb.Session.ask_again>`. A tool or middleware that asks for
    reasons of its own asks on.

    >>> import sagents_nb as sa
    >>> def book(city: str) -> str:
    ...     "Book a room."
    ...     return f"Booked in {city}."
    >>> model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"city": "Oslo"}), "It is booked."])
    >>> agent = sa.Agent(model, tools=[book], interrupt_on=["book"])
    >>> agent.resume(agent.run("Book a room."), sa.Approve()).text
    'It is booked.'
    """

    always: bool = False

    def __post_init__(self) -> None:
        kinds.check_fields(self)


class Edit(
    msgspec.Struct, metaclass=kinds.Record, frozen=True, tag="edit", forbid_unknown_fields=True
):
    """Run the call with these ``arguments`` instead.

    >>> import sagents_nb as sa
    >>> def book(city: str) -> str:
    ...     "Book a room."
    ...     return f"Booked in {city}."
    >>> model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"city": "Oslo"}), "It is booked."])
    >>> agent = sa.Agent(model, tools=[book], interrupt_on=["book"])
    >>> result = agent.resume(agent.run("Book a room."), sa.Edit({"city": "Bergen"}))
    >>> result.messages[0].tool_results[0].text
    'Booked in Bergen.'
    """

    arguments: dict[str, Any]

    def __post_init__(self) -> None:
        kinds.check_fields(self)


class Reject(
    msgspec.Struct,
    metaclass=kinds.Record,
    frozen=True,
    tag="reject",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Do not run the call; ``message`` is told to the model.

    ``unattended`` says that nobody was there to decide: then no person is said to have.

    >>> import sagents_nb as sa
    >>> def book(city: str) -> str:
    ...     "Book a room."
    ...     return f"Booked in {city}."
    >>> model = sa.ScriptedModel([sa.ToolCall("c1", "book", {"city": "Oslo"}), "I leave it."])
    >>> agent = sa.Agent(model, tools=[book], interrupt_on=["book"])
    >>> result = agent.resume(agent.run("Book a room."), sa.Reject("Too late."))
    >>> "Too late." in result.messages[0].tool_results[0].text, result.text
    (True, 'I leave it.')
    """

    message: str = ""
    unattended: bool = False

    def __post_init__(self) -> None:
        kinds.check_fields(self)


class Respond(
    msgspec.Struct,
    metaclass=kinds.Record,
    frozen=True,
    tag="respond",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """The ``answer`` to a question, for interrupts that ask one.

    >>> import sagents_nb as sa
    >>> question = {"question": "Which city?", "response_type": "freeform"}
    >>> model = sa.ScriptedModel([sa.ToolCall("c1", "ask_user", question), "To Oslo, then."])
    >>> agent = sa.Agent(model, middleware=[sa.AskUser()])
    >>> agent.resume(agent.run("Book a room."), sa.Respond("Oslo")).text
    'To Oslo, then.'
    """

    answer: Any = None


Decision = Approve | Edit | Reject | Respond
Decisions = Decision | dict[str, Any] | Sequence[Any] | Mapping[str, Any]


@kinds.checked
def decision_data(decision: Decision, by: str = "user", at: float = 0.0) -> dict[str, Any]:
    """What the result of a call keeps of the decision on it; ``at`` in seconds, 0 if unknown.

    Without the arguments of an edit, which are beside it.
    """
    data: dict[str, Any] = to_data(decision)
    data.pop("arguments", None)
    return {**data, "by": by} | ({"at": at} if at else {})


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys, so that equal values give equal bytes, and others never."""
    try:
        json.dumps(value, allow_nan=False)  # msgspec writes NaN as null, and bytes as a text
        return msgspec.json.encode(value, order="sorted")
    except (TypeError, ValueError, RecursionError):  # half characters too, as models send them
        try:
            text = json.dumps(
                value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_named
            )
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"There is no JSON of it: {error}.") from None
        return exact(text)


def _named(value: Any) -> str:
    """What JSON has no word for, as a text that no model sends."""
    return f"\udcff{type(value).__qualname__} {value!r}"


@kinds.checked
def digest_of(session_id: str, epoch: int, call_id: str, name: str, arguments: Any) -> str:
    """SHA-256 (hex) over what an approval is bound to.

    Call ids alone are not safe as keys, since providers reuse them
    (openai/openai-agents-python#4257).
    """
    return sha256(canonical_json([session_id, epoch, call_id, name, arguments]))


def is_decision(given: Any) -> bool:
    """Whether a mapping is one decision as data, not several by the ids of calls."""
    return isinstance(given, Mapping) and isinstance(given.get("type"), str)


@kinds.checked(given=kinds.ANYTHING)
def decisions_for(interrupt: Interrupt, given: Decisions) -> dict[str, Decision]:
    """``given`` as one validated decision per waiting call, keyed by ``tool_call_id``.

    ``given`` is one decision for all, a list by position, or a dict by ``tool_call_id``; a
    decision may be a dict such as ``{"type": "approve"}``. Raises
    :class:`~sagents_nb.errors.InvalidDecision`, and then nothing has changed.
    """
    requests = interrupt.action_requests
    if not requests:
        raise InvalidDecision("This interrupt waits for no tool call, so it takes no decision.")
    if isinstance(given, Approve | Edit | Reject | Respond):
        chosen: list[Any] = [given] * len(requests)
    elif is_decision(given):
        chosen = [given] * len(requests)
    elif isinstance(given, Mapping):
        waiting = set(interrupt.tool_call_ids)
        unknown = [key for key in given if key not in waiting]
        missing = [key for key in interrupt.tool_call_ids if key not in given]
        if unknown or missing:
            raise InvalidDecision(
                f"Decisions must name exactly the waiting calls: unknown {unknown}, "
                f"missing {missing}; waiting are {interrupt.tool_call_ids}."
            )
        chosen = [given[key] for key in interrupt.tool_call_ids]
    elif isinstance(given, Sequence) and not isinstance(given, str):
        chosen = list(given)
        if len(chosen) != len(requests):
            waits = "1 call waits" if len(requests) == 1 else f"{len(requests)} calls wait"
            raise InvalidDecision(
                f"{waits} for a decision, but {len(chosen)} were given; give one each, in call "
                "order."
            )
    else:
        raise InvalidDecision(
            f"A decision is Approve, Edit, Reject, Respond or a dict with 'type', "
            f"not {type(given).__name__}."
        )
    return {
        request.tool_call_id: _check(index, request, decision)
        for index, (request, decision) in enumerate(zip(requests, chosen, strict=True))
    }


def _check(index: int, request: ActionRequest, decision: Any) -> Decision:
    def refused(why: str) -> InvalidDecision:
        where = f"Decision {index} (for {request.tool_name})"
        return InvalidDecision(f"{where} {why}", tool_call_id=request.tool_call_id)

    if isinstance(decision, Mapping):
        if "type" not in decision:
            raise refused(f"has no 'type'; use one of {_names(request)}.")
        if not isinstance(decision["type"], str):
            given = type(decision["type"]).__name__
            raise refused(f"has a {given} as its 'type'; use one of {_names(request)}.")
        if decision["type"] == "edit" and not isinstance(decision.get("arguments"), dict):
            raise refused("is an edit without 'arguments', a dict.")
        try:
            decision = read_as(dict(decision), Decision)
        except msgspec.ValidationError as error:
            known = _names(request)
            raise refused(f"cannot be read ({error}); its 'type' is one of {known}.") from None
    if not isinstance(decision, Approve | Edit | Reject | Respond):
        given = type(decision).__name__
        raise refused(f"is a {given}; use Approve(), Edit(…), Reject(…) or a dict.")
    kind = decision.__struct_config__.tag
    if kind not in request.allowed_decisions:
        raise refused(f"is {kind!r}, but only {_names(request)} are allowed.")
    if isinstance(decision, Edit) and not isinstance(decision.arguments, dict):
        raise refused("is an edit whose 'arguments' are not a dict.")
    try:
        canonical_json([getattr(decision, name) for name in decision.__struct_fields__])
        return copy.deepcopy(decision)  # who gave it may change it: what runs is what is kept
    except Exception as error:  # also of a class of somebody's own
        pass_on(error)
        raise refused(f"holds what cannot be kept ({said_by(error)}).") from None


def _names(request: ActionRequest) -> str:
    return ", ".join(request.allowed_decisions)
