"""One answer to all that waits of a thread: what it decides on each call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..errors import InvalidDecision
from ..interrupts import ActionRequest, Approve, Decision, Edit, Interrupt, Reject, Respond
from ..loop.open_calls import DOUBT_ANSWERS, doubtful_calls
from .sub_agents import links_of


def decisions_on(
    waiting: Interrupt,
    approved: bool,
    edits: Mapping[str, Mapping[str, Any]],
    answers: Mapping[str, Any],
    names: Mapping[str, str],
) -> dict[str, Decision]:
    """The decisions on all that waits: approved or rejected, with ``edits`` and ``answers``.

    ``names`` are the tools that somebody took calls to be of. Raises
    :class:`~sagents_nb.errors.InvalidDecision` for what does not fit what waits.
    """
    reported = {link.request.tool_call_id for link in links_of(waiting)}  # of which threads tell
    requests = {
        r.tool_call_id: r for r in waiting.action_requests if r.tool_call_id not in reported
    }
    if strangers := [id for id in (*edits, *answers) if id not in requests]:
        raise InvalidDecision(
            f"No call {strangers[0]!r:.110} waits; those that do are {', '.join(requests)}."
        )
    for id, name in names.items():
        if id in requests and name != requests[id].tool_name:
            raise InvalidDecision(
                f"The call {id!r:.110} is of {requests[id].tool_name}, not {name!r:.110}; "
                "a change is of its arguments."
            )
    changed = {id for id in requests if id not in answers}
    if edits and (left_out := [id for id in requests if id in changed - set(edits)]):
        # Whoever leaves a call out may well mean that it is not to run.
        raise InvalidDecision(
            f"The changed calls are to be all that wait; {', '.join(left_out)} is left out."
        )
    asking = doubtful_calls(waiting)

    def decision_on(id: str, request: ActionRequest) -> Decision:
        if id in answers:
            if "respond" not in request.allowed_decisions:
                raise InvalidDecision(
                    f"The call {id!r:.110} of {request.tool_name} asks nothing; "
                    "approve or reject it."
                )
            if id in asking and answers[id] not in DOUBT_ANSWERS:
                raise _no_answer(id, request, asking)
            return Respond(answers[id])
        if ("approve" if approved else "reject") not in request.allowed_decisions:
            raise _no_answer(id, request, asking)
        if not approved:
            return Reject("Rejected.")
        arguments = edits.get(id, request.arguments)
        return Approve() if arguments == request.arguments else Edit(dict(arguments))

    return {id: decision_on(id, request) for id, request in requests.items()}


def _no_answer(id: str, request: ActionRequest, asking: Collection[str]) -> InvalidDecision:
    choice = " or ".join(f'"{each}"' for each in DOUBT_ANSWERS) if id in asking else "what it asks"
    return InvalidDecision(
        f"The call {id!r:.110} of {request.tool_name} needs an answer; "
        f"send answers with its id, and {choice}.",
        tool_call_id=id,
    )
