"""The ways in which a conversation went on from one message of a person, of which one is current.

A message that is said anew begins another branch: the former, and all that came after it, is
kept beside. All is in the state: each branch's first message has the id of the point in its
metadata, and the metadata of the state has, by that id, the branches that are not current. So
branches within branches need nothing of their own, they go and come back with their messages, and
what drops the message from the history (a summary, say) drops the point with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import ConfigurationError
from ..messages import BRANCH, Message
from ..state import LooseTodo, State, to_data


class BranchPoint(msgspec.Struct, frozen=True):
    """A message of a person that was said in several ways.

    ``position`` is its place in the messages, ``current`` the branch that they go on with, from 0,
    of ``count``.
    """

    position: int
    current: int
    count: int


class _Kept(msgspec.Struct):
    """A branch that is not current."""

    messages: list[Message]
    todos: list[LooseTodo]


class _Point(msgspec.Struct):
    """What the metadata say of a point: which branch is current, and the others in order."""

    current: int
    others: list[_Kept]


def branch_points(state: State) -> list[BranchPoint]:
    """The points of a state whose messages it has, in order."""
    known = branches_of(state.metadata)
    found = enumerate(message.metadata.get(BRANCH) for message in state.messages if known)
    return [BranchPoint(place, *known[id]) for place, id in found if known.get(id)]


def branches_of(metadata: Mapping[str, Any]) -> dict[Any, tuple[int, int]]:
    """By the id of each point that metadata tell of: which branch is current, and how many."""
    points = {}
    for key, kept in metadata.items():
        if key.startswith(_PREFIX):
            try:
                points[key[len(_PREFIX) :]] = int(kept["current"]), len(kept["others"]) + 1
            except (TypeError, KeyError, ValueError):  # somebody else's key
                continue
    return points


def branched(state: State, position: int) -> tuple[State, str]:
    """The state before that message, which is kept as a branch with all that follows it.

    The second is the id that the message in its stead has as ``metadata["branch"]``.
    """
    known = state.messages[position].metadata.get(BRANCH)
    point = _point(state, known)
    id = uuid.uuid4().hex if point is None else str(known)
    point = point or _Point(0, [])
    point.others.insert(point.current, _left(state, position, id))
    point.current = len(point.others)
    return _with(state, id, point).set_messages(state.messages[:position]), id


def switched(state: State, position: int, branch: int) -> State:
    """The state with that branch of the point at ``position`` as the current one.

    Its todos are those it was left with. Raises ConfigurationError where there is none.
    """
    message = state.messages[position] if 0 <= position < len(state.messages) else None
    id = None if message is None else message.metadata.get(BRANCH)
    point = _point(state, id)
    if point is None or not 0 <= branch <= len(point.others):
        raise ConfigurationError(
            f"The message at {position} has no branch {branch}; see session.branches."
        )
    if branch == point.current:
        return state
    point.others.insert(point.current, _left(state, position, str(id)))
    chosen = point.others.pop(branch)
    point.current = branch
    state = _with(state, str(id), point).set_todos([todo.todo for todo in chosen.todos])
    return state.set_messages([*state.messages[:position], *chosen.messages])


_PREFIX = "branch:"


def _point(state: State, id: Any) -> _Point | None:
    kept = state.metadata.get(_PREFIX + id) if isinstance(id, str) else None
    try:
        return msgspec.convert(kept, _Point)
    except msgspec.ValidationError:
        return None


def _with(state: State, id: str, point: _Point) -> State:
    return state.put_metadata(_PREFIX + id, to_data(point))


def _left(state: State, position: int, id: str) -> _Kept:
    first = state.messages[position]
    first = replace(first, metadata={**first.metadata, BRANCH: id})
    todos = [LooseTodo(todo.content, todo.status, todo.id) for todo in state.todos]
    return _Kept([first, *state.messages[position + 1 :]], todos)
