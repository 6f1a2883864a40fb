"""Tasks in the database: a row beside the conversation in which each is worked on.

Every function works in its caller's transaction and for one owner only, who is that of the
conversation. The database decides between two who change a task at once: a change names the
states that it may follow, and only one of the two finds the row in one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import sqlalchemy as sql

from .. import kinds
from ..errors import ConfigurationError, NotFound
from ..messages import ContentPart
from ..serialization import read_as, to_data
from ..sql import insert_new
from ..tasks import STATES, TERMINAL, Artifact, TaskRecord, before
from . import conversations
from .database import leases
from .database.schema import Tables
from .database.thread import Database

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")

_IN_COLUMNS = [
    "context",
    "caller",
    "agent",
    "state",
    "background",
    "change",
    "told",
    "seconds",
    "tokens",
    "cost_usd",
    "created_at",
    "updated_at",
    "completed_at",
]
_IN_DATA = [
    name
    for name in TaskRecord.__struct_fields__
    if name not in ("id", "input", "output", *_IN_COLUMNS)
]


def create(connection: sql.Connection, tables: Tables, owner: str, record: TaskRecord) -> bool:
    """Make the task and its empty conversation, unless it is there; whether it was not."""
    found = conversations.find(connection, tables, owner, record.id)
    if found is None:
        title = f"{record.agent}: {record.id}"
        conversations.add(connection, tables, owner, title, None, record.id)
        leases.begin(connection, tables, record.id)
    now = datetime.now(UTC)
    record = msgspec.structs.replace(record, created_at=now, updated_at=now)
    made = insert_new(connection, tables.tasks).values(_row(record))
    return connection.execute(made.returning(tables.tasks.c.conversation_id)).first() is not None


def get(connection: sql.Connection, tables: Tables, owner: str, id: str) -> TaskRecord:
    """The task of that id."""
    query = _of(tables, owner).where(tables.tasks.c.conversation_id == id)
    row = connection.execute(query).first()
    if row is None:
        raise NotFound(
            f"There is no task {id!r:.300}; store.tasks.list() has those that there are."
        )
    return _record(row)


def change(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    id: str,
    state: str,
    **values: Any,
) -> tuple[bool, TaskRecord]:
    """The task in another ``state`` with other ``values``, if that may follow the one it has.

    Whether it was changed, and what it is now.
    """
    record = get(connection, tables, owner, id)
    if record.state not in before(state):
        return False, record
    now = datetime.now(UTC)
    ended = {"completed_at": now} if state in TERMINAL else {}
    changed = msgspec.structs.replace(
        record, state=state, change=record.change + 1, updated_at=now, **ended, **values
    )
    c = tables.tasks.c
    update = (
        sql.update(tables.tasks)
        .where(c.conversation_id == id, c.state == record.state, c.change == record.change)
        .values(_row(changed))
    )
    done = bool(connection.execute(update).rowcount)
    return done, get(connection, tables, owner, id)


def told(connection: sql.Connection, tables: Tables, owner: str, id: str, number: int) -> None:
    """Its change of that number was told to who waits for it."""
    get(connection, tables, owner, id)
    c = tables.tasks.c
    update = sql.update(tables.tasks).where(c.conversation_id == id, c.told < number)
    connection.execute(update.values(told=number))


def untold(
    connection: sql.Connection, tables: Tables, owner: str, context: str
) -> list[TaskRecord]:
    """The background tasks of a conversation that are at work, or of which it has yet to hear."""
    c = tables.tasks.c
    ours = _of(tables, owner).where(c.context == context, c.background.is_(True))
    query = ours.where(c.state.not_in(TERMINAL) | (c.told < c.change))
    return [_record(row) for row in connection.execute(query.order_by(c.created_at))]


def listed(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    limit: int | None,
    before: datetime | None,
    equal: dict[str, Any],
) -> list[TaskRecord]:
    """Those that fit all of it, the newest first."""
    c = tables.tasks.c
    query = _of(tables, owner)
    for name, value in equal.items():
        query = query.where(c[name] == value)
    if before is not None:
        query = query.where(c.created_at < before)
    most = None if limit is None else min(limit, kinds.MOST_ROWS)
    query = query.order_by(c.created_at.desc(), c.conversation_id).limit(most)
    return [_record(row) for row in connection.execute(query)]


def add_artifact(
    connection: sql.Connection, tables: Tables, owner: str, artifact: Artifact
) -> Artifact:
    """The artifact with the next index of its task."""
    get(connection, tables, owner, artifact.task_id)
    c = tables.artifacts.c
    last = sql.select(sql.func.max(c.position)).where(c.conversation_id == artifact.task_id)
    highest = connection.execute(last).scalar()
    artifact = msgspec.structs.replace(
        artifact,
        index=0 if highest is None else highest + 1,
        created_at=datetime.now(UTC),
    )
    data = {name: getattr(artifact, name) for name in ("name", "description", "parts", "metadata")}
    connection.execute(
        sql.insert(tables.artifacts).values(
            conversation_id=artifact.task_id,
            position=artifact.index,
            data=to_data(data),
            created_at=artifact.created_at,
        )
    )
    return artifact


def artifacts(connection: sql.Connection, tables: Tables, owner: str, id: str) -> list[Artifact]:
    """Those of a task, in order."""
    get(connection, tables, owner, id)
    t = tables.artifacts
    query = sql.select(t).where(t.c.conversation_id == id).order_by(t.c.position)
    return [_artifact(row) for row in connection.execute(query)]


def all_artifacts(connection: sql.Connection, tables: Tables, owner: str) -> list[Artifact]:
    """Those of all tasks, of the newest task first."""
    t, tasks, owned = tables.artifacts, tables.tasks, tables.conversations
    query = (
        sql.select(t)
        .join(tasks, tasks.c.conversation_id == t.c.conversation_id)
        .join(owned, owned.c.id == t.c.conversation_id)
        .where(owned.c.owner == owner)
        .order_by(tasks.c.created_at.desc(), t.c.conversation_id, t.c.position)
    )
    return [_artifact(row) for row in connection.execute(query)]


def statistics(
    connection: sql.Connection, tables: Tables, owner: str
) -> dict[str, tuple[int, int, float | None, float | None]]:
    """By agent: how many tasks ended well or badly, how many well, and the means of these.

    The means are of seconds of work and of US dollars, None where they are not known.
    """
    c = tables.tasks.c
    well = sql.case((c.state == "completed", 1), else_=0)
    query = (
        sql.select(
            c.agent,
            sql.func.count(),
            sql.func.sum(well),
            sql.func.avg(sql.case((c.state == "completed", c.seconds))),
            sql.func.avg(sql.case((c.state == "completed", c.cost_usd))),
        )
        .join(tables.conversations, tables.conversations.c.id == c.conversation_id)
        .where(tables.conversations.c.owner == owner, c.state.in_(("completed", "failed")))
        .group_by(c.agent)
    )
    return {row[0]: (row[1], row[2], row[3], row[4]) for row in connection.execute(query)}


def _of(tables: Tables, owner: str) -> Any:
    t = tables.tasks
    return (
        sql.select(t)
        .join(tables.conversations, tables.conversations.c.id == t.c.conversation_id)
        .where(tables.conversations.c.owner == owner)
    )


def _row(record: TaskRecord) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in _IN_COLUMNS}
    values["conversation_id"] = record.id
    values["data"] = to_data({name: getattr(record, name) for name in _IN_DATA})
    values["input"] = to_data(record.input)
    values["output"] = to_data(record.output)
    return values


def _record(row: Any) -> TaskRecord:
    """What the row says; of what somebody has damaged, what can be read."""
    data = row.data if isinstance(row.data, dict) else {}
    values: dict[str, Any] = {name: data[name] for name in _IN_DATA if name in data}
    values |= {name: getattr(row, name) for name in _IN_COLUMNS}
    values["input"], values["output"] = _parts(row.input), _parts(row.output)
    times = {name: values.pop(name) for name in ("created_at", "updated_at", "completed_at")}
    record: TaskRecord
    try:
        record = read_as({**values, "id": row.conversation_id}, TaskRecord, strict=False)
    except msgspec.ValidationError:
        record = TaskRecord(id=row.conversation_id, agent=str(row.agent), state=str(row.state))
    real = {name: time for name, time in times.items() if isinstance(time, datetime)}
    return msgspec.structs.replace(record, **real)


def _parts(data: Any) -> Any:
    try:
        return to_data(read_as(data, tuple[ContentPart, ...]))
    except msgspec.ValidationError:
        return []


def _artifact(row: Any) -> Artifact:
    data = row.data if isinstance(row.data, dict) else {}
    return Artifact(
        task_id=row.conversation_id,
        index=row.position,
        name=str(data.get("name", "")),
        description=str(data.get("description", "")),
        parts=read_as(_parts(data.get("parts")), tuple[ContentPart, ...]),
        metadata=data["metadata"] if isinstance(data.get("metadata"), dict) else {},
        created_at=row.created_at,
    )


_MOMENT = kinds.or_none(
    kinds.Kind("a datetime with its zone", lambda v: bool(getattr(v, "tzinfo", None)))
)
_WORD = kinds.or_none(kinds.of(str))


class StoredTasks:
    """The tasks of one owner; ``store.tasks`` is one.

    Its methods raise what those of :class:`~sagents_nb.store.store.ScopedStore` raise.

    >>> from sagents_nb import ConversationStore
    >>> store = ConversationStore("sqlite://")  # in memory
    >>> store.tasks.list(state="input_required", limit=20)
    []
    >>> store.close()
    """

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    def run(self, function: Callable[..., T], *args: Any, **values: Any) -> T:
        """What a ``function`` of this module does with these arguments, in a transaction."""
        tables, owner = self._database.tables, self._owner
        return self._database.run(
            lambda connection: function(connection, tables, owner, *args, **values)
        )

    @kinds.checked(
        state=kinds.or_none(kinds.one_of(*STATES)),
        agent=_WORD,
        caller=_WORD,
        context=_WORD,
        limit=kinds.or_none(kinds.whole(0), "for all"),
        before=_MOMENT,
    )
    def list(
        self,
        state: str | None = None,
        *,
        agent: str | None = None,
        caller: str | None = None,
        context: str | None = None,
        limit: int | None = None,
        before: datetime | None = None,
    ) -> Sequence[TaskRecord]:
        """The tasks that fit all that is given, the newest first, at most ``limit``.

        ``agent`` works on them for ``caller``, from the conversation ``context``; ``before`` is a
        time that they were made before, such as that of the last one of a page.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> _ = agents.delegate("Tomorrow?", to="weather").wait()
        >>> [(task.agent, task.state) for task in agents.store.tasks.list("completed")]
        [('weather', 'completed')]
        """
        given = {"state": state, "agent": agent, "caller": caller, "context": context}
        equal = {name: value for name, value in given.items() if value is not None}
        return self.run(listed, limit, before, equal)

    @kinds.checked
    def get(self, id: str) -> TaskRecord:
        """The task of that ``id``; raises :class:`~sagents_nb.errors.NotFound`.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> task = agents.delegate("Tomorrow?", to="weather").wait()
        >>> agents.store.tasks.get(task.id).text
        'Sun.'
        """
        return self.run(get, id)

    @kinds.checked
    def artifacts(self, id: str) -> Sequence[Artifact]:
        """What the task of that ``id`` has made, in order.

        Raises :class:`~sagents_nb.errors.NotFound`.

        >>> import sagents_nb as sa
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(sa.Agent(sa.ScriptedModel(["Sun."]), name="weather"))
        >>> task = agents.delegate("Tomorrow?", to="weather").wait()
        >>> agents.store.tasks.artifacts(task.id)
        []
        """
        return self.run(artifacts, id)

    def to_frame(self, kind: str) -> pandas.DataFrame:
        """All "tasks" or "artifacts" as a frame; that is the ``kind``."""
        from ..frames import framed
        from ..frames.columns import COLUMNS

        if kind == "tasks":
            return framed(COLUMNS[kind], _task_columns(self.run(listed, None, None, {})))
        if kind != "artifacts":
            raise ConfigurationError(f"There are frames of tasks and artifacts, not {kind!r:.40}.")
        return framed(COLUMNS[kind], _artifact_columns(self.run(all_artifacts)))


def _task_columns(records: Sequence[TaskRecord]) -> dict[str, Iterable[Any]]:
    same = [
        "agent",
        "caller",
        "context",
        "state",
        "message",
        "seconds",
        "tokens",
        "cost_usd",
        "background",
    ]
    values: dict[str, Iterable[Any]] = {name: [getattr(r, name) for r in records] for name in same}
    return {
        "task_id": [record.id for record in records],
        **values,
        "chain": [" → ".join(record.chain) for record in records],
        "input": [_said(record.input) for record in records],
        "output": [_said(record.output) for record in records],
        "created": [_epoch(record.created_at) for record in records],
        "updated": [_epoch(record.updated_at) for record in records],
        "completed": [_epoch(record.completed_at) for record in records],
    }


def _artifact_columns(made: Sequence[Artifact]) -> dict[str, Iterable[Any]]:
    return {
        "task_id": [artifact.task_id for artifact in made],
        "index": [artifact.index for artifact in made],
        "name": [artifact.name for artifact in made],
        "description": [artifact.description for artifact in made],
        "content": [_said(artifact.parts) for artifact in made],
        "time": [_epoch(artifact.created_at) for artifact in made],
    }


def _said(parts: Sequence[ContentPart]) -> str:
    """Text as it is, other parts as JSON."""
    said = [
        getattr(part, "text", None) or msgspec.json.encode(to_data(part)).decode() for part in parts
    ]
    return "\n".join(said)


def _epoch(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
