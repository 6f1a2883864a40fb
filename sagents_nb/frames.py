"""Conversations as pandas frames, with the same columns and dtypes also when empty.

Times are UTC with zone, words from a fixed set are categories, whole numbers that can be
missing are Int64. pandas is imported when the first frame is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .errors import ConfigurationError
from .events import DecisionMade, Event, MessageEnd, TokenUsage, ToolExecutionEnd
from .messages import Message, ToolResult
from .state import TODO_STATUSES, State

if TYPE_CHECKING:
    import pandas

    from .files import FileEntry

_TIME = "datetime64[us, UTC]"
_TOOL_STATUSES = ("completed", "failed", "rejected", "cancelled", "skipped", "interrupted")

# Per kind: the columns in order, each with its dtype or its categories.
COLUMNS: dict[str, dict[str, Any]] = {
    "messages": {
        "position": "int64",
        "role": "category",
        "text": "string",
        "thinking": "string",
        "tool_calls": "int64",
        "stop_reason": "category",
        "input_tokens": "Int64",
        "output_tokens": "Int64",
        "error": "string",
        "run_id": "string",
        "time": _TIME,
    },
    "tool_calls": {
        "tool_call_id": "string",
        "name": "category",
        "arguments": "string",
        "status": _TOOL_STATUSES,
        "result": "string",
        "is_error": "boolean",
        "duration": "float64",
        "run_id": "string",
        "time": _TIME,
    },
    "todos": {"id": "string", "content": "string", "status": TODO_STATUSES},
    "usage": {
        "model": "category",
        "input_tokens": "int64",
        "output_tokens": "int64",
        "cache_read_tokens": "int64",
        "cache_write_tokens": "int64",
        "cost_usd": "float64",
        "run_id": "string",
        "time": _TIME,
    },
    "events": {"seq": "int64", "type": "category", "run_id": "string", "time": _TIME},
    "files": {
        "path": "string",
        "size": "int64",
        "mime_type": "category",
        "sha256": "string",
        "modified": _TIME,
    },
    "decisions": {
        "tool_call_id": "string",
        "decision": ("approve", "edit", "reject", "respond"),
        "message": "string",
        "by": "category",
        "run_id": "string",
        "time": _TIME,
    },
}


def frame(
    kind: str, state: State, events: Sequence[Event] = (), files: Iterable[FileEntry] = ()
) -> pandas.DataFrame:
    """The frame of that kind; see ``COLUMNS`` for what each holds.

    ``events`` give times, runs and durations; what they do not cover is missing there.
    Raises :class:`~sagents_nb.errors.ConfigurationError` for a kind that does not exist.
    """
    if kind not in COLUMNS:
        raise ConfigurationError(f"There is no frame {kind!r}; kinds are {', '.join(COLUMNS)}.")
    if kind == "messages":
        rows = _messages(state, events)
    elif kind == "tool_calls":
        rows = _tool_calls(state, events)
    elif kind == "todos":
        rows = [(str(t.id), t.content, t.status) for t in state.todos]
    elif kind == "usage":
        rows = _usage(events)
    elif kind == "events":
        rows = [(e.seq, e.type, e.run_id, e.ts) for e in events]
    elif kind == "files":
        rows = _files(files)
    else:
        rows = _decisions(events)
    return _typed(COLUMNS[kind], rows)


def _typed(columns: dict[str, Any], rows: list[tuple[Any, ...]]) -> pandas.DataFrame:
    import pandas

    made = {}
    for index, (name, dtype) in enumerate(columns.items()):
        values = [row[index] for row in rows]
        if dtype == _TIME:
            made[name] = pandas.Series(pandas.to_datetime(values, unit="s", utc=True)).astype(dtype)
        elif isinstance(dtype, tuple):
            made[name] = pandas.Series(values, dtype=pandas.CategoricalDtype(list(dtype)))
        else:
            made[name] = pandas.Series(values, dtype=dtype)
    return pandas.DataFrame(made, columns=list(columns))


def _messages(state: State, events: Sequence[Event]) -> list[tuple[Any, ...]]:
    told = {id(e.message): e for e in events if isinstance(e, MessageEnd)}
    return [
        (
            position,
            message.role,
            _text(message),
            message.thinking or None,
            len(message.tool_calls),
            message.stop_reason,
            message.usage.input_tokens if message.usage else None,
            message.usage.output_tokens if message.usage else None,
            message.error,
            told[id(message)].run_id if id(message) in told else None,
            told[id(message)].ts if id(message) in told else None,
        )
        for position, message in enumerate(state.messages)
    ]


def _text(message: Message) -> str:
    if message.role == "tool":
        return "\n".join(result.text for result in message.tool_results)
    return message.text


def _tool_calls(state: State, events: Sequence[Event]) -> list[tuple[Any, ...]]:
    ended = {e.tool_call_id: e for e in events if isinstance(e, ToolExecutionEnd)}
    results: dict[str, ToolResult] = {}
    for message in state.messages:
        results |= {r.tool_call_id: r for r in message.tool_results}
    rows = []
    for message in state.messages:
        for call in message.tool_calls:
            end, result = ended.get(call.id), results.get(call.id)
            rows.append(
                (
                    call.id,
                    call.name,
                    msgspec.json.encode(call.arguments).decode(),
                    end.status if end else None,
                    result.text if result else None,
                    result.is_error if result else None,
                    end.duration if end else None,
                    end.run_id if end else None,
                    end.ts if end else None,
                )
            )
    return rows


def _usage(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    return [
        (
            e.model,
            e.usage.input_tokens,
            e.usage.output_tokens,
            e.usage.cache_read_tokens,
            e.usage.cache_write_tokens,
            e.usage.cost_usd,
            e.run_id,
            e.ts,
        )
        for e in events
        if isinstance(e, TokenUsage)
    ]


def _files(files: Iterable[FileEntry]) -> list[tuple[Any, ...]]:
    return [
        (f.path, f.size, f.mime_type, f.sha256, f.modified_at.timestamp())
        for f in files
        if not f.is_directory
    ]


def _decisions(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    return [
        (
            e.tool_call_id,
            e.decision.__struct_config__.tag,
            getattr(e.decision, "message", None) or None,
            e.by,
            e.run_id,
            e.ts,
        )
        for e in events
        if isinstance(e, DecisionMade)
    ]
