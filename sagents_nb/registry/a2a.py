"""Tasks and artifacts as the JSON of A2A 1.0 (Agent2Agent), and back.

The names are those of its protocol buffers as JSON: what is empty is left out, states and roles
are in capitals. Plain dicts: whoever speaks A2A has its SDK, which reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .. import kinds
from ..errors import ConfigurationError
from ..messages import ContentPart, FilePart, ImagePart, JsonPart, TextPart
from ..serialization import to_data
from ..tasks import STATES, Artifact, TaskRecord

_STATE = "TASK_STATE_"
_EXACT = 2**53  # above, a number of JSON is not exact for its readers

_OURS = "sagents_nb"
"""The key in ``metadata`` of what A2A has no word for."""


@kinds.checked(history=kinds.of(Sequence[Mapping[str, Any]]))
def task_to_a2a(
    record: TaskRecord,
    artifacts: Sequence[Artifact] = (),
    history: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The Task of A2A for a ``record`` with its ``artifacts``.

    Its output is the message of its status once it is completed; before, that says what it asks.
    ``history`` are messages as :func:`message_to_a2a` makes them, by default its input alone.

    >>> record = TaskRecord(id="task-1", agent="weather", state="working", context="c-1")
    >>> task_to_a2a(record)["status"]
    {'state': 'TASK_STATE_WORKING'}
    """
    said = record.output or ((TextPart(record.message),) if record.message else ())
    status: dict[str, Any] = {"state": _STATE + record.state.upper()}
    if said:
        about = f"{record.id}/{record.change}"
        status["message"] = message_to_a2a(said, "agent", about, record)
    if record.updated_at is not None:
        status["timestamp"] = time_to_a2a(record.updated_at)
    told = list(history)
    if not told and record.input:
        told = [message_to_a2a(record.input, "user", f"{record.id}/input", record)]
    ours = {"agent": record.agent, "caller": record.caller, "chain": list(record.chain)}
    return _filled(
        id=record.id,
        contextId=record.context,
        status=status,
        artifacts=[artifact_to_a2a(artifact) for artifact in artifacts],
        history=told,
        metadata={_OURS: ours},
    )


@kinds.checked
def task_from_a2a(data: Mapping[str, Any]) -> tuple[TaskRecord, list[Artifact]]:
    """The task that A2A's JSON ``data`` says, and its artifacts.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for what is none.

    >>> said = (TextPart("Sun."),)
    >>> record = TaskRecord(id="task-1", agent="weather", state="completed", output=said)
    >>> task_from_a2a(task_to_a2a(record))[0] == record
    True
    """
    status = _mapping(data, "status")
    state = _text(status, "state").removeprefix(_STATE).lower()
    if state not in STATES:
        raise ConfigurationError(
            f"{_text(status, 'state')!r:.60} is no state of a task; there are "
            f"{', '.join(_STATE + each.upper() for each in STATES)}."
        )
    ours = _mapping(_mapping(data, "metadata"), _OURS)
    chain = ours.get("chain")
    said = parts_from_a2a(_mapping(status, "message").get("parts", ()))
    done, sentence = state == "completed", _sentence(said)
    asked: tuple[ContentPart, ...] = ()
    for message in _list(data, "history")[:1]:
        asked = parts_from_a2a(message.get("parts", ()))
    time = time_from_a2a(_text(status, "timestamp"))
    record = TaskRecord(
        id=_text(data, "id", needed=True),
        agent=_text(ours, "agent"),
        caller=_text(ours, "caller"),
        context=_text(data, "contextId"),
        chain=tuple(map(str, chain)) if isinstance(chain, list) else (),
        state=state,
        input=asked,
        output=said if done or sentence is None else (),
        message="" if done or sentence is None else sentence,
        updated_at=time,
        completed_at=time if done else None,
    )
    artifacts = [
        artifact_from_a2a(each, record.id, index)
        for index, each in enumerate(_list(data, "artifacts"))
    ]
    return record, artifacts


@kinds.checked
def artifact_to_a2a(artifact: Artifact) -> dict[str, Any]:
    """The Artifact of A2A.

    >>> artifact_to_a2a(Artifact(task_id="task-1", name="tides", parts=(JsonPart({"high": 6}),)))
    {'artifactId': 'task-1/0', 'name': 'tides', 'parts': [{'data': {'high': 6}}]}
    """
    return _filled(
        artifactId=artifact.id,
        name=artifact.name,
        description=artifact.description,
        parts=[part_to_a2a(part) for part in artifact.parts],
        metadata=_exact(artifact.metadata),
    )


@kinds.checked
def artifact_from_a2a(data: Mapping[str, Any], task_id: str = "", index: int = 0) -> Artifact:
    """The artifact that A2A's JSON ``data`` says, as number ``index`` of that task.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for what is none.

    >>> artifact_from_a2a({"artifactId": "a", "parts": [{"text": "Sun."}]}).value
    'Sun.'
    """
    return Artifact(
        task_id=task_id,
        index=index,
        name=_text(data, "name"),
        description=_text(data, "description"),
        parts=parts_from_a2a(_list(data, "parts")),
        metadata=dict(_mapping(data, "metadata")),
    )


@kinds.checked(role=kinds.one_of("user", "agent"), parts=kinds.LIST)
def message_to_a2a(
    parts: Sequence[ContentPart], role: str, id: str, record: TaskRecord | None = None
) -> dict[str, Any]:
    """A Message of A2A with these ``parts``, of that ``id``; ``role`` is "user" or "agent".

    ``record`` is the task that it is about.

    >>> message_to_a2a([TextPart("Sun.")], "agent", "m-1")["role"]
    'ROLE_AGENT'
    """
    return _filled(
        messageId=id,
        contextId="" if record is None else record.context,
        taskId="" if record is None else record.id,
        role=f"ROLE_{role.upper()}",
        parts=[part_to_a2a(part) for part in parts],
    )


@kinds.checked(part=kinds.ANYTHING)
def part_to_a2a(part: ContentPart) -> dict[str, Any]:
    """A Part of A2A; one that it has no word for is data.

    >>> part_to_a2a(FilePart("JVBERg==", "application/pdf", "report.pdf"))
    {'raw': 'JVBERg==', 'filename': 'report.pdf', 'mediaType': 'application/pdf'}
    """
    if isinstance(part, TextPart):
        return {"text": part.text}
    if isinstance(part, JsonPart):
        return {"data": _exact(part.data)}
    if isinstance(part, FilePart | ImagePart):
        where = {"url": part.url} if part.data is None else {"raw": part.data}
        named = getattr(part, "name", None) or ""
        return _filled(**where, filename=named, mediaType=part.mime_type)
    return {"data": _exact(to_data(part))}


@kinds.checked(given=kinds.ANYTHING)
def parts_from_a2a(given: Any) -> tuple[ContentPart, ...]:
    """The parts that A2A's JSON says; raises ConfigurationError for what is none.

    >>> parts_from_a2a([{"text": "Sun."}])
    (TextPart(text='Sun.'),)
    """
    if not isinstance(given, list | tuple):
        raise ConfigurationError(f"Parts are a list, not {kinds.shown(given)}.")
    return tuple(map(_part, given))


def _part(data: Any) -> ContentPart:
    if isinstance(data, Mapping):
        if isinstance(text := data.get("text"), str):
            return TextPart(text)
        if "data" in data:
            return JsonPart(data["data"])
        raw, url = data.get("raw"), data.get("url")
        if isinstance(raw, str) or isinstance(url, str):
            kind = _text(data, "mediaType") or "application/octet-stream"
            name = _text(data, "filename") or None
            if kind.startswith("image/") and name is None:
                return ImagePart(data=raw, mime_type=kind, url=url)
            return FilePart(data=raw, mime_type=kind, name=name, url=url)
    raise ConfigurationError(
        f"A part has 'text', 'data', 'raw' or 'url'; this one is {kinds.shown(data)}."
    )


def time_to_a2a(time: datetime) -> str:
    """A moment as protocol buffers write it: with as many threes of digits as it needs.

    >>> time_to_a2a(datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC))
    '2026-01-02T03:04:05.600Z'
    """
    time = time.astimezone(UTC)
    fraction = f".{time.microsecond:06}" if time.microsecond else ""
    if fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{time:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def time_from_a2a(text: str) -> datetime | None:
    """The moment that it says; None for none, and for what is none."""
    # Up to nine digits, of which a datetime keeps six.
    short = re.sub(r"(\.\d{6})\d+", r"\1", text)
    try:
        return datetime.fromisoformat(short).astimezone(UTC) if short else None
    except ValueError:
        return None


def _sentence(parts: tuple[ContentPart, ...]) -> str | None:
    """The text that they are; None for anything more."""
    return parts[0].text if len(parts) == 1 and isinstance(parts[0], TextPart) else None


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _exact(value: Any) -> Any:
    """JSON data in which every number is what its readers take it for; NaN is null."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else str(value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, Mapping):
        return {str(key): _exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return value


def _text(data: Mapping[str, Any], name: str, *, needed: bool = False) -> str:
    value = data.get(name, "")
    if not isinstance(value, str) or (needed and not value):
        raise ConfigurationError(f"A2A's {name!r} is a text, not {kinds.shown(value)}.")
    return value


def _mapping(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"A2A's {name!r} is an object, not {kinds.shown(value)}.")
    return value


def _list(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = data.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise ConfigurationError(f"A2A's {name!r} is a list of objects, not {kinds.shown(value)}.")
    return value
