"""What requests may say, and what they are answered, as JSON; one struct each."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ...errors import ConfigurationError
from ..event_log import ThreadEvent

Key = Annotated[str, Meta(min_length=1, max_length=200)]


class Body(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a request says: a field that is not known is refused."""


def body_of(raw: bytes, kind: type[msgspec.Struct]) -> Any:
    """What these bytes say; nothing is an object without fields.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no JSON of that ``kind``, and
    for a field that is there twice: of what is approved and not approved somebody else may have
    read the other.
    """
    try:
        body = msgspec.json.decode(raw or b"{}", type=kind)
        json.loads(raw or b"{}", object_pairs_hook=_check_once)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"The body does not fit: {error!s:.300}.") from None
    except ConfigurationError:
        raise
    except (ValueError, RecursionError):
        raise ConfigurationError("The body is no JSON; send an object.") from None
    return body


def _check_once(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise ConfigurationError(f"The body has {name!r:.110} twice; say it once.")
        seen.add(name)


class Reply(msgspec.Struct, kw_only=True, rename="camel"):
    """What a request is answered."""


def moment(at: datetime | None) -> str | None:
    """A moment as replies have it."""
    return None if at is None else at.isoformat()


class ErrorReply(Reply):
    """Why nothing was done: one sentence that names the thing and the next step."""

    error: str


class ChatErrorReply(Reply):
    """The same, as OpenAI's clients read it: ``error`` has a ``message`` and a ``type``."""

    error: dict[str, str]


class OkReply(Reply):
    """It is done."""

    ok: bool = True


class NewAgency(Body):
    """An agency that is to be made."""

    name: Annotated[str, Meta(min_length=1, max_length=100)] | None = None


class AgencyReply(Reply, kw_only=True, omit_defaults=True):
    """An agency."""

    id: str
    name: str
    created_at: str
    notebook: bool = False


class CreatedAgency(AgencyReply, kw_only=True):
    """A new one, with the secret that opens it: it is shown this once."""

    secret: str


class AgenciesReply(Reply):
    """All agencies, the newest first."""

    agencies: list[AgencyReply]


class SecretReply(Reply):
    """Another secret, which is shown this once."""

    secret: str


class BlueprintChanges(Body):
    """A blueprint, or what is to be other in the one of that name."""

    name: str
    prompt: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    model: str | UnsetType | None = UNSET
    config: dict[str, Any] | UnsetType = UNSET


class BlueprintReply(Reply):
    """A blueprint; version 0 is that of the code, and has no times."""

    name: str
    description: str
    prompt: str
    tags: list[str]
    model: str | None
    config: dict[str, Any]
    version: int
    created_at: str | None
    updated_at: str | None


class BlueprintsReply(Reply):
    """Blueprints by name, or versions of one, the newest first."""

    blueprints: list[BlueprintReply]


class ChatMessage(Body):
    """Something to say to a thread."""

    content: str
    role: Literal["user", "system"] = "user"


class Invocation(Body):
    """What is said to a thread, put into its files and given to its tools.

    With the ``idempotencyKey`` of a request that was accepted nothing is done a second time.
    """

    messages: list[ChatMessage] = []
    files: dict[str, str] = {}
    idempotency_key: Key | None = None
    vars: dict[str, Any] = {}


class NewThread(Body):
    """A thread that is to be made; with an ``input`` it is invoked with it at once."""

    agent_type: str
    input: Invocation | str | None = None
    vars: dict[str, Any] = {}


class ThreadReply(Reply, omit_defaults=True):
    """A thread, without what was said in it: what it is about, and what it is, since when.

    Of a conversation of a notebook ``kernel`` is "here" where one serves it, else "away": it can
    only be read then.
    """

    id: str
    created_at: str
    request: dict[str, str]
    agent_type: str
    agency_id: str
    parent: dict[str, str] | None = None
    title: str = ""
    status: str = ""
    reason: str | None = None
    since: str | None = None
    kernel: Literal["here", "away"] | None = None


class ThreadsReply(Reply):
    """The threads of an agency, the newest first."""

    agents: list[ThreadReply]


class ApprovalReply(Reply):
    """A thread that waits for people, and the tools that it would use."""

    agency_id: str
    agency: str
    thread_id: str
    agent_type: str
    title: str
    since: str | None
    tools: list[str]


class ApprovalsReply(Reply):
    """What waits for people in all agencies, the longest first."""

    approvals: list[ApprovalReply]


class SpentReply(Reply):
    """What the threads of an agency have used; no cost is known where no model tells it."""

    agency_id: str
    threads: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class UsageReply(Reply):
    """What was used, by agency."""

    usage: list[SpentReply]


class RunReply(Reply):
    """A run that was accepted: it goes on when this is answered."""

    run_id: str
    status: str


class StateReply(Reply):
    """All that a thread is: its state, and that of its last run."""

    state: dict[str, Any]
    run: dict[str, Any]


class EventsReply(Reply):
    """Events of a thread, in their order."""

    events: list[ThreadEvent]


class CallEdit(Body):
    """A call that waits, as it is to be run; a ``name`` is that of its tool, and stays."""

    id: str
    args: dict[str, Any]
    name: str | None = None


class Approval(Body):
    """The answer to what waits: all of it is ``approved`` or rejected, and what asks is answered.

    ``answers``, by the ids of the calls, are for those that ask something: "ran", "did not run" or
    "retry" where nobody knows whether a call ran. ``interruptId`` and ``digests``, by the ids of
    the calls, are those of what somebody saw; a page has to send them.
    """

    approved: bool
    modified_tool_calls: list[CallEdit] = []
    answers: dict[str, Any] = {}
    interrupt_id: str | None = None
    digests: dict[str, str] | None = None


class ChildResult(Body):
    """What a child reports, with the token that it was made with."""

    token: str
    child_thread_id: str
    report: str


class Registration(Body, forbid_unknown_fields=False):
    """Of a thread that was made: its variables. What else its metadata say is as it was made."""

    id: str
    vars: dict[str, Any] = {}


class ScheduleChanges(Body):
    """A schedule, or what is to be other in one; ``intervalMs`` is in milliseconds."""

    name: str | UnsetType = UNSET
    agent_type: str | UnsetType = UNSET
    input: str | UnsetType = UNSET
    type: Literal["once", "cron", "interval"] | UnsetType = UNSET
    run_at: datetime | UnsetType | None = UNSET
    cron: str | UnsetType | None = UNSET
    interval_ms: Annotated[float, Meta(ge=1000)] | UnsetType | None = UNSET
    timezone: str | UnsetType = UNSET
    max_retries: Annotated[int, Meta(ge=0, le=3)] | UnsetType = UNSET
    overlap_policy: Literal["skip", "queue", "allow"] | UnsetType = UNSET


class ScheduleRunReply(Reply):
    """One time of a schedule: pending, running, completed, failed or skipped."""

    id: str
    schedule_id: str
    agent_id: str | None
    status: str
    retry_count: int
    error: str | None
    scheduled_at: str
    started_at: str | None
    completed_at: str | None


class ScheduleReply(Reply):
    """A schedule: ``status`` is active, paused or, once it is over, disabled.

    ``words`` say when it begins, and ``lastRun`` is the newest of its times.
    """

    id: str
    name: str
    agent_type: str
    input: str
    type: str
    run_at: str | None
    cron: str | None
    interval_ms: float | None
    timezone: str
    max_retries: int
    overlap_policy: str
    status: str
    created_at: str
    updated_at: str
    last_run_at: str | None
    next_run_at: str | None
    words: str
    last_run: ScheduleRunReply | None


class SchedulesReply(Reply):
    """The schedules of an agency, the newest first."""

    schedules: list[ScheduleReply]


class SchedulePreviewReply(Reply):
    """When a schedule would begin: in words, and its next times."""

    words: str
    times: list[str]


class ScheduleRunsReply(Reply):
    """The last times of a schedule, the newest first."""

    runs: list[ScheduleRunReply]


class Variables(Body):
    """Variables by their names; ``"$NAME"`` stands for one of the hub's process."""

    vars: dict[Key, Any]


class VariablesReply(Reply):
    """The names of variables: their values are shown to nobody."""

    vars: list[str]


class PluginReply(Reply):
    """A middleware, by its key in the config of a blueprint, and the tags that choose it."""

    name: str
    tags: list[str]


class ToolReply(Reply):
    """A tool, and the tags that choose it."""

    name: str
    description: str
    tags: list[str]


class PluginsReply(Reply):
    """What blueprints can be made of."""

    plugins: list[PluginReply]
    tools: list[ToolReply]


class CodeExchange(Body):
    """The code that the address of the page had."""

    code: str


class TokenReply(Reply):
    """The token that the code stood for."""

    token: str
