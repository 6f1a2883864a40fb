"""The columns of every frame: names, dtypes, and what they say. docs/frames.md is this table."""

from __future__ import annotations

import msgspec

from ..state import TODO_STATUSES

TIME = "datetime64[us, UTC]"

TOOL_STATUSES = ("completed", "failed", "rejected", "cancelled", "skipped", "interrupted")
ROW_STATUSES = ("completed", "failed", "interrupted", "not_run")
DECISIONS = ("approve", "edit", "reject", "respond")


class Column(msgspec.Struct, frozen=True):
    """What a column holds. ``categories`` are all there can be, where that is known.

    A "category" without them has the words that occur, sorted.
    """

    dtype: str
    about: str
    categories: tuple[str, ...] = ()


def _text(about: str) -> Column:
    return Column("string", about)


def _word(about: str, categories: tuple[str, ...] = ()) -> Column:
    return Column("category", about, categories)


def _count(about: str) -> Column:
    return Column("Int64", about)


_SESSION = _word("the id of the conversation")
_SUB_AGENT = _word("the id of the sub-agent that it happened in; missing for the agent itself")
_RUN = _text("the id of the run")
_USAGE = {
    "input_tokens": _count("tokens read that were neither read from nor written to a cache"),
    "output_tokens": _count("tokens written"),
    "cache_read_tokens": _count("tokens read from the provider's cache"),
    "cache_write_tokens": _count("tokens written to it"),
    "cost_usd": Column("float64", "US dollars; missing where no price is known"),
}

COLUMNS: dict[str, dict[str, Column]] = {
    "messages": {
        "session_id": _SESSION,
        "position": Column("int64", "the place in the conversation, from 0"),
        "role": _word("user, assistant, system, tool, or a role of your own"),
        "text": _text("what was said; of tool results, all of them, a line each"),
        "thinking": _text("the model's reasoning, where it is told"),
        "tool_calls": Column("int64", "how many tools it asked for"),
        "stop_reason": _word("why the model stopped"),
        **_USAGE,
        "error": _text("why the message is incomplete"),
        "run_id": _RUN,
        "time": Column(TIME, "when it was complete"),
    },
    "tool_calls": {
        "session_id": _SESSION,
        "tool_call_id": _text("the id of the call, as the model gave it"),
        "name": _word("the tool"),
        "arguments": _text("what it was called with, as JSON"),
        "status": _word("how it ended", TOOL_STATUSES),
        "result": _text("what the model was told"),
        "is_error": Column("boolean", "whether that was an error"),
        "duration": Column("float64", "seconds"),
        "sub_agent": _SUB_AGENT,
        "run_id": _RUN,
        "time": Column(TIME, "when it ended"),
    },
    "todos": {
        "session_id": _SESSION,
        "id": _text("the id of the item"),
        "content": _text("what is to be done"),
        "status": _word("how far it is", TODO_STATUSES),
    },
    "usage": {
        "session_id": _SESSION,
        "model": _word("the model that answered; a row is one call of it"),
        **_USAGE,
        "sub_agent": _SUB_AGENT,
        "run_id": _RUN,
        "time": Column(TIME, "when it had answered"),
    },
    "events": {
        "session_id": _SESSION,
        "seq": Column("int64", "the number of the event; a sub-agent's has its own numbers"),
        "type": _word("the event, such as tool_execution_end"),
        "name": _text("the tool, role, model or path that it is about"),
        "tool_call_id": _text("the call that it is about"),
        "status": _word("what ended how"),
        "duration": Column("float64", "seconds since what ends here began; see below"),
        "sub_agent": _SUB_AGENT,
        "run_id": _RUN,
        "time": Column(TIME, "when it happened"),
    },
    "files": {
        "session_id": _SESSION,
        "path": _text("the absolute, virtual path"),
        "title": _text("its title, where it has one"),
        "size": Column("int64", "bytes"),
        "mime_type": _word("such as text/markdown"),
        "sha256": _text("the digest of the content, hexadecimal"),
        "modified": Column(TIME, "when it was last written"),
    },
    "decisions": {
        "session_id": _SESSION,
        "tool_call_id": _text("the call that was decided about"),
        "name": _word("its tool"),
        "decision": _word("what was decided", DECISIONS),
        "message": _text("what was said with it"),
        "by": _word("who decided"),
        "waited": Column("float64", "seconds that the run waited for it"),
        "run_id": _text("the id of the run that waited"),
        "time": Column(TIME, "when it was decided"),
    },
    "map": {
        "text": _text("the answer's text"),
        "status": _word("how the row ended", ROW_STATUSES),
        "error": _text("why there is no answer"),
        "error_type": _word("the name of the exception"),
        "model": _word("the model that answered"),
        "model_calls": _count("how often it was asked"),
        "tool_calls": _count("how many tools were called"),
        **_USAGE,
        "duration": Column("float64", "seconds, of the run that gave the answer"),
        "time": Column(TIME, "when the row was done"),
        "kept": Column("boolean", "whether the answer is of an earlier time"),
    },
}
"""Per kind of frame its columns in order. "map" is what :meth:`Agent.map` gives, where the
fields of a structured output stand between ``text`` and ``status``."""
