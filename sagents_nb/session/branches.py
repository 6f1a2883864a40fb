"""The ways in which a conversation went on from one message of a person, of which one is current.

A message that is said anew begins another branch: the former, and all that came after it, is
kept beside. All is in the state: each branch's first message has the id of the point in its
metadata, and the metadata of the state has, by that id, the branches that are not current. So
branches within branches need nothing of their own, they go and come back with their messages, and
what drops the message from the history (a summary, say) drops the point with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec.structs import replace

from .. import kinds
from ..errors import ConfigurationError
from ..messages import BRANCH, Message
from ..state import LooseTodo, State, Todo, to_data

T = TypeVar("T")


class BranchPoint(msgspec.Struct, frozen=True):
    """A message of a person that was said in several ways.

    ``position`` is its place in the messages, ``current`` the branch that they go on with, from 0,
    of ``count``.
    """

    position: int
    current: int
    count: int


_Number = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class _Kept(msgspec.Struct):
    """A branch that is not current."""

    messages: list[Message]
    todos: list[LooseTodo]


class _Point(msgspec.Struct):
    """What the metadata say of a point."""

    current: _Number
    count: _Number


def branch_points(state: State) -> list[BranchPoint]:
    """The points of a state whose messages it has, in order."""
    known = branches_of(state.metadata)
    found = enumerate(message.metadata.get(BRANCH) for message in state.messages if known)
    return [
        BranchPoint(place, *known[id]) for place, id in found if isinstance(id, str) and id in known
    ]


def branches_of(metadata: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """By the id of each point that metadata tell of: which branch is current, and how many."""
    points = {}
    for key, kept in metadata.items():
        point = _read(kept, _Point) if key.startswith(_POINT) else None
        if point is not None and point.current < point.count:
            points[key[len(_POINT) :]] = point.current, point.count
    return points


def branched(state: State, position: int) -> tuple[State, str]:
    """The state before that message, which is kept as a branch with all that follows it.

    The second is the id that the message in its stead has as ``metadata["branch"]``.
    """
    known = state.messages[position].metadata.get(BRANCH)
    current, count = _point(state, known) or (0, 1)
    id = uuid.uuid4().hex if count == 1 else str(known)
    metadata = _set_aside(state, position, id, current, _Point(count, count + 1))
    return replace(state, metadata=metadata, messages=state.messages[:position]), id


def switched(state: State, position: int, branch: int) -> State:
    """The state with that branch of the point at ``position`` as the current one.

    Its todos are those it was left with. Raises ConfigurationError where there is none.
    """
    message = state.messages[position] if 0 <= position < len(state.messages) else None
    id = None if message is None else message.metadata.get(BRANCH)
    current, count = _point(state, id) or (0, 0)
    if branch == current and count:
        return state
    chosen = _read(state.metadata.get(_key(str(id), branch)), _Kept) if branch < count else None
    if chosen is None or not chosen.messages or chosen.messages[0].metadata.get(BRANCH) != id:
        raise ConfigurationError(
            f"The message at {kinds.shown(position)} has no branch {kinds.shown(branch)}; see "
            "session.branches."
        )
    metadata = _set_aside(state, position, str(id), current, _Point(branch, count))
    del metadata[_key(str(id), branch)]
    state = replace(state, metadata=metadata).set_todos([todo.todo for todo in chosen.todos])
    return state.set_messages([*state.messages[:position], *chosen.messages])


def forked(state: State, before: int | None) -> State:
    """What a conversation of its own begins with that goes on from there; None is the end.

    With ``before`` it has the messages before that one, the todos that they tell of and the
    branches that they have. Raises ConfigurationError where no message of a person is.
    """
    if before is None:
        return state
    if before >= len(state.messages) or state.messages[before].role != "user":
        raise ConfigurationError(
            f"There is no message of a person at {kinds.shown(before)} to go on before; see "
            "session.messages."
        )
    messages = state.messages[:before]
    points = branches_of(state.metadata)
    reached = _points_reached(state, messages)
    lost = points.keys() - reached
    gone = {_POINT + id for id in lost}
    gone |= {_key(id, branch) for id in lost for branch in range(points[id][1])}
    metadata = {name: value for name, value in state.metadata.items() if name not in gone}
    state = replace(state, metadata=metadata, interrupt=None)
    return state.set_messages(messages).set_todos(_todos_of(messages))


def _points_reached(state: State, messages: Sequence[Message]) -> set[str]:
    """The points that these messages have, and those of the branches that are kept there."""
    points, reached = branches_of(state.metadata), set[str]()
    left = [message.metadata.get(BRANCH) for message in messages]
    while left:
        id = left.pop()
        if not isinstance(id, str) or id in reached or id not in points:
            continue
        reached.add(id)
        for branch in range(points[id][1]):
            kept = _read(state.metadata.get(_key(id, branch)), _Kept)
            left += [m.metadata.get(BRANCH) for m in (kept.messages if kept else ())]
    return reached


def _todos_of(messages: Sequence[Message]) -> list[Todo]:
    """The to-do list as the last result that tells of it left it."""
    for message in reversed(messages):
        for result in reversed(message.tool_results):
            told = _read(result.metadata.get("todos"), list[LooseTodo])
            if told is not None:
                return [] if result.metadata.get("cleared") else [todo.todo for todo in told]
    return []


_POINT = "branches:"


def _key(id: str, branch: int) -> str:
    return f"branch:{id}:{branch}"


def _point(state: State, id: Any) -> tuple[int, int] | None:
    key = f"{_POINT}{id}"
    return branches_of({key: state.metadata.get(key)}).get(id) if isinstance(id, str) else None


def _read(kept: Any, kind: type[T]) -> T | None:
    """What somebody has kept; None for what nobody can read, such as another's key."""
    try:
        return msgspec.convert(kept, kind)
    except (msgspec.ValidationError, ValueError, ArithmeticError, RecursionError):
        return None


def _set_aside(state: State, position: int, id: str, branch: int, point: _Point) -> dict[str, Any]:
    """The metadata that keep the messages from ``position`` on as that branch of ``point``."""
    first = state.messages[position]
    first = replace(first, metadata={**first.metadata, BRANCH: id})
    todos = [LooseTodo(todo.content, todo.status, todo.id) for todo in state.todos]
    kept = _Kept([first, *state.messages[position + 1 :]], todos)
    return {**state.metadata, _POINT + id: to_data(point), _key(id, branch): to_data(kept)}
