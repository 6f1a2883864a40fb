"""Repair histories in which tool calls and their results do not fit together."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ..context import RunContext
from ..events import ToolCallsPatched
from ..frozenlist import FrozenList
from ..messages import Message, ToolCall, ToolResult
from ..state import State
from ..text import logger_of
from .base import Middleware, middleware_id

logger = logger_of(__name__)

# Messages of other roles never reach a model, or not as part of the conversation.
_SPOKEN = frozenset({"user", "assistant", "tool"})


class PatchToolCalls(Middleware):
    """Answers tool calls that nobody answered, once, in the history that is kept.

    Providers want each call answered in the very next message. Histories from elsewhere,
    lists of messages given as a prompt, and other middleware may break that. Each message is
    looked at once. A repair is told as ``tool_calls_patched``.

    >>> from sagents_nb import Agent, Message, PatchToolCalls, ScriptedModel, ToolCall
    >>> asked = Message.assistant(tool_calls=[ToolCall("c1", "ls", {})])  # that nobody answered
    >>> agent = Agent(ScriptedModel(["Hello!"]), middleware=[PatchToolCalls()], defaults=False)
    >>> result = agent.run([Message.user("Which files?"), asked, Message.user("hi")])
    >>> [message.role for message in result.state.messages]
    ['user', 'assistant', 'tool', 'user', 'assistant']
    """

    # Not before_run: then the calls that a resumed run is about to answer are still open, and
    # the messages that a run was started with are not yet there.
    def before_model(self, state: State, ctx: RunContext) -> State | None:
        """The repaired state; None if nothing was wrong."""
        key = middleware_id(self)
        messages = state.messages
        fine: FrozenList[Message] | None = ctx.local.get(key)
        unchecked = messages.since(fine)
        if is_paired(unchecked):
            ctx.local[key] = messages
            return None
        repaired, count = _repaired(unchecked)
        known = len(messages) - len(unchecked)
        state = state.set_messages([*messages[:known], *repaired])
        ctx.local[key] = state.messages
        logger.debug("The history was repaired: %d tool calls had no result", count)
        ctx.publish_kept(ToolCallsPatched, count=count)
        return state


def patched(messages: Iterable[Message] | None) -> list[Message]:
    """``messages`` with each tool call answered once, in order, by the very next message.

    A result that is missing is made up: an error that says the call was cancelled, with the
    metadata ``{"patched": True}``. One that comes too late is moved to its call; one that
    belongs to no call before it, or answers a call again, is left out. Messages with nothing
    wrong stay the same objects.

    >>> broken = [Message.assistant(tool_calls=[ToolCall("c1", "ls")]), Message.user("Well?")]
    >>> [message.role for message in patched(broken)]
    ['assistant', 'tool', 'user']
    """
    items = list(messages or ())
    return items if is_paired(items) else _repaired(items)[0]


def is_paired(messages: Iterable[Message]) -> bool:
    """Whether each call is answered once, in order, by the next message that a model reads."""
    waiting: list[str] = []
    for message in messages:
        if message.role not in _SPOKEN:
            continue
        calls: list[str] = []
        results: list[str] = []
        for part in message.parts:
            if type(part) is ToolCall:
                calls.append(part.id)
            elif type(part) is ToolResult:
                results.append(part.tool_call_id)
        if results != waiting or (results and message.role != "tool"):
            return False
        if calls and message.role != "assistant":
            return False
        waiting = calls
    return not waiting


def _repaired(messages: Sequence[Message]) -> tuple[list[Message], int]:
    """The messages as :func:`patched` gives them, and how many results were made up."""
    answers = _answers(messages)
    in_place = _in_place(messages, answers)
    repaired: list[Message] = []
    count = 0
    for position, message in enumerate(messages):
        rest = message if position in in_place else _without_pairs(message)
        if rest is not None:
            repaired.append(rest)
        if position in answers and _next(messages, position) not in in_place:
            found = zip(message.tool_calls, answers[position], strict=True)
            results = [result or _made_up(call) for call, result in found]
            count += answers[position].count(None)
            repaired.append(Message.tool(results))
    return repaired, count


def _answers(messages: Sequence[Message]) -> dict[int, list[ToolResult | None]]:
    """By position of a message with calls, the first result after it of each of them."""
    answers: dict[int, list[ToolResult | None]] = {}
    waiting: dict[str, list[tuple[int, int]]] = {}  # by id, whose calls they are
    for position, message in enumerate(messages):
        if message.role not in _SPOKEN:
            continue
        for result in message.tool_results:
            if places := waiting.get(result.tool_call_id):
                answered, index = places.pop(0)
                answers[answered][index] = result
        if message.role == "assistant" and (calls := message.tool_calls):
            answers[position] = [None] * len(calls)
            for call in calls:  # an id that comes again means the newer call from here on
                waiting[call.id] = []
            for index, call in enumerate(calls):
                waiting[call.id].append((position, index))
    return answers


def _next(messages: Sequence[Message], position: int) -> int:
    """The position of the next message that a model reads; behind the end if there is none."""
    following = range(position + 1, len(messages))
    return next((p for p in following if messages[p].role in _SPOKEN), len(messages))


def _in_place(
    messages: Sequence[Message], answers: Mapping[int, Sequence[ToolResult | None]]
) -> set[int]:
    """The positions of messages that hold the answers to the calls before them, and no more."""
    found = set()
    for position, results in answers.items():
        following = _next(messages, position)
        if following < len(messages) and messages[following].role == "tool":
            given = messages[following].tool_results
            same = len(given) == len(results) and all(map(operator.is_, given, results))
            if same and not messages[following].tool_calls:
                found.add(following)
    return found


def _without_pairs(message: Message) -> Message | None:
    """The message without results, and without calls that are nobody's; None if that is all."""
    if message.role not in _SPOKEN:
        return message
    nobodys = ToolResult if message.role == "assistant" else (ToolCall, ToolResult)
    parts = tuple(part for part in message.parts if not isinstance(part, nobodys))
    if len(parts) == len(message.parts):
        return message
    return replace(message, parts=parts) if parts else None


def _made_up(call: ToolCall) -> ToolResult:
    text = (
        f"The call of {call.name} (id {call.id}) was cancelled, because another message came "
        "before it had a result."
    )
    return ToolResult(call.id, call.name, text, is_error=True, metadata={"patched": True})
