"""Rows of transcripts in the database.

Every function works in its caller's transaction and for one owner only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sql
from msgspec.structs import replace

from ..errors import ConfigurationError, NotFound
from ..scope import ID_LENGTH
from ..serialization import escaped
from ..sql import Prepared, driver_of
from ..text import REPLACEMENT, digest, logger_of, whole
from . import conversations
from .database import schema
from .database.connection import PROOF, ROW
from .database.schema import Tables
from .display import STATUSES, DisplayMessage, Row, checked

logger = logger_of(__name__)

DECISIONS = ("approved", "rejected", "answered")

LONGEST_TERM = 1000
"""Characters of what is searched for; SQLite takes patterns of 50,000 bytes."""

BEHIND = 100
"""Rows that SQLite's index may lack: a search looks at them, which is faster than to add them."""

CHARACTERS = 2_000_000
"""How much text one search adds to the index: a quarter of a second."""

CANDIDATES = 1000
"""How many rows the index may lead to that do not hold the term, or are somebody else's."""

LOOKED_AT = 100
"""Of the rows to which the index leads, how many are looked at before more are."""

_TRIGRAMS = 16  # of a term, of which the index is asked
_FIRST = -(2**63)  # the number before all others


def append(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    conversation_id: str,
    rows: Sequence[Row],
) -> list[DisplayMessage]:
    """Store the rows of one message behind those that are there."""
    conversations.touch(connection, tables, owner, conversation_id)
    last, adding = _appending(tables)
    newest = last(connection, {"conversation": conversation_id}).rows
    now = datetime.now(UTC)
    if newest and newest[0][0] >= now:  # two messages at once, or a clock set back
        now = newest[0][0] + timedelta(microseconds=1)
    keys: set[tuple[str, str | None]] = set()

    def key_of(row: Row) -> str | None:
        """By what it is found: of those of one id the first, which alone is ever run."""
        key = row.content_type, _call_key(row.tool_call_id)
        found = None if key in keys else key[1]
        keys.add(key)
        return found

    values = [
        {
            "conversation_id": conversation_id,
            "message_type": row.message_type,
            "content_type": row.content_type,
            "content": row.content,
            "status": row.status,
            "metadata": row.metadata,
            "inserted_at": now,
            "sequence": sequence,
            "tool_call_id": key_of(row),
            "search_text": compared(row.content.get("text")),
        }
        for sequence, row in enumerate(map(checked, rows))
    ]
    added = [message for each in values for message in _messages(adding(connection, each).rows)]
    if added:
        connection.info[PROOF] = {ROW: (added[-1].id,)}
    return added


def remove(
    connection: sql.Connection, tables: Tables, owner: str, conversation_id: str, ids: Sequence[str]
) -> None:
    """Rows of a conversation are there no more, as far as they were."""
    conversations.touch(connection, tables, owner, conversation_id)
    c = tables.display_messages.c
    which = c.conversation_id == conversation_id, c.id.in_(ids)
    connection.execute(tables.display_messages.delete().where(*which))


@functools.cache
def _appending(tables: Tables) -> tuple[Prepared, Prepared]:
    """What tells when the newest row of a conversation came, and what adds rows; made once."""
    table = tables.display_messages
    of_it = table.c.conversation_id == sql.bindparam("conversation")
    # Not max(): SQLite would look at every row of the conversation.
    newest_first = table.c.inserted_at.desc(), table.c.sequence.desc()
    last = sql.select(table.c.inserted_at).where(of_it).order_by(*newest_first).limit(1)
    return Prepared(last), Prepared(table.insert().returning(*_columns(tables)))


def load(
    connection: sql.Connection, tables: Tables, owner: str, conversation_id: str
) -> list[DisplayMessage]:
    """All rows of a conversation, in order; none for one that is not there."""
    if conversations.find(connection, tables, owner, conversation_id) is None:
        return []
    return load_all(connection, tables, [conversation_id])


def load_all(
    connection: sql.Connection, tables: Tables, ids: Sequence[str]
) -> list[DisplayMessage]:
    """All rows of these conversations, those of each in order."""
    c = tables.display_messages.c
    rows = _rows(tables).where(c.conversation_id.in_(ids))
    return _messages(connection.execute(rows.order_by(c.inserted_at, c.sequence, c.id)))


def search(
    connection: sql.Connection, tables: Tables, owner: str, term: str, limit: int
) -> list[DisplayMessage]:
    """The owner's rows whose text holds ``term`` in whatever case, newest first."""
    if not isinstance(term, str) or not 1 <= len(term) <= LONGEST_TERM:
        raise ConfigurationError(f"A search is for 1 to {LONGEST_TERM:,} characters of text.")
    asked = _Search(owner, compared(term) or "", conversations.counted("limit", limit))
    found = _found_by_index(connection, tables, asked)
    if found is None:
        scanning = _searching(tables).scan
        found = _messages(scanning(connection, {**asked.values, "most": asked.limit}).rows)
    return found


class _Search(NamedTuple):
    """What somebody looks for; ``text`` as texts are compared."""

    owner: str
    text: str
    limit: int

    @property
    def values(self) -> dict[str, str]:
        """What statements are told of it."""
        text = self.text
        for special in "/%_":
            text = text.replace(special, f"/{special}")
        return {"owned_by": self.owner, "pattern": f"%{text}%"}

    @property
    def trigrams(self) -> list[str]:
        """Some of those that a text has to have, if not all; none if it is too short."""
        all_of_it = [self.text[at : at + 3] for at in range(len(self.text) - 2)]
        return list(dict.fromkeys(all_of_it[:: max(1, len(all_of_it) // _TRIGRAMS)]))


class _Searching(NamedTuple):
    """The statements of a search, made once: of all rows, of those from a number on, of some."""

    scan: Prepared
    later: Prepared
    among: sql.Select[Any]


@functools.cache
def _searching(tables: Tables) -> _Searching:
    table, parents = tables.display_messages, tables.conversations
    owner = sql.bindparam("owned_by", type_=parents.c.owner.type)
    holding = (
        _rows(tables)
        .join(parents, parents.c.id == table.c.conversation_id)
        .where(table.c.search_text.like(sql.bindparam("pattern", type_=sql.Text), escape="/"))
    )
    newest_first = table.c.inserted_at.desc(), table.c.sequence.desc(), table.c.id.desc()
    most = sql.bindparam("most", type_=sql.BigInteger)
    # By the number of the row, not by the index of owners, which has all of theirs.
    whosever = holding.where(sql.func.coalesce(parents.c.owner, "") == owner)
    return _Searching(
        Prepared(holding.where(parents.c.owner == owner).order_by(*newest_first).limit(most)),
        Prepared(whosever.where(table.c.id > sql.bindparam("indexed", type_=sql.BigInteger))),
        whosever.where(table.c.id.in_(sql.bindparam("numbers", expanding=True))),
    )


def _found_by_index(
    connection: sql.Connection, tables: Tables, search: _Search
) -> list[DisplayMessage] | None:
    """What SQLite's index of trigrams leads to, or None where all texts have to be looked at."""
    trigrams = search.trigrams
    if not trigrams or connection.dialect.name != "sqlite" or not schema.has_trigrams():
        return None
    index = _brought_up_to_date(connection, tables)
    if index is None:
        return None
    searching, values = _searching(tables), search.values
    found = _messages(searching.later(connection, {**values, "indexed": index.indexed}).rows)
    all_of_them = " AND ".join('"' + each.replace('"', '""') + '"' for each in trigrams)
    most = search.limit + CANDIDATES
    numbers = driver_of(connection).execute(
        f"SELECT rowid FROM {tables.prefix}search WHERE {tables.prefix}search MATCH ? "
        "ORDER BY rowid DESC LIMIT ?",
        (all_of_them, most),
    )
    candidates = [number for (number,) in numbers]
    held = 0
    for first in range(0, len(candidates), LOOKED_AT):
        some = candidates[first : first + LOOKED_AT]
        rows = connection.execute(searching.among, {**values, "numbers": some}).all()
        found += _messages(rows)
        held += len(rows)
        if held >= search.limit and some[-1] > index.disordered:
            break  # those to come are older
    else:
        if len(candidates) == most:
            return None  # of others, or with the pieces of the term apart: there is no end to them
    found.sort(key=lambda row: (row.inserted_at, row.sequence, row.id), reverse=True)
    return found[: search.limit]


class _Index(NamedTuple):
    """How far SQLite's index of texts goes; see :func:`.schema.text_index`."""

    indexed: int
    disordered: int


def _brought_up_to_date(connection: sql.Connection, tables: Tables) -> _Index | None:
    """The index, once it has all rows but a few; None if there are too few, or too many as yet."""
    driver, prefix = driver_of(connection), tables.prefix
    is_made = schema.has_text_index(connection, tables)
    indexed, at, sequence, disordered = None, "", 0, _FIRST
    if is_made:
        (state,) = driver.execute(
            f"SELECT indexed, newest_at, newest_sequence, disordered FROM {prefix}search_state"
        ).fetchall()
        if state[0] is not None:
            indexed, at, sequence, disordered = state
            if driver.execute(f"SELECT id FROM {prefix}search_gone LIMIT 1").fetchone():
                schema.forget_deleted_texts(connection, tables)
    rows = f"FROM {tables.display_messages.name} WHERE id > ?"
    since = _FIRST if indexed is None else indexed
    few = driver.execute(f"SELECT id {rows} LIMIT ?", (since, BEHIND + 1)).fetchall()
    if len(few) <= BEHIND:
        return None if indexed is None else _Index(indexed, disordered)
    if not is_made:
        schema.make_text_index(connection, tables)
    elif indexed is None:
        driver.execute(f"INSERT INTO {prefix}search ({prefix}search) VALUES ('delete-all')")
        driver.execute(f"DELETE FROM {prefix}search_gone")
    newest, characters, until = (at, sequence), 0, since
    asked = f"SELECT id, inserted_at, sequence, length(search_text) {rows} ORDER BY id"
    for number, at, sequence, length in driver.execute(asked, (since,)):
        if characters > CHARACTERS:
            break
        until, characters = number, characters + (length or 0)
        if isinstance(at, str) and isinstance(sequence, int) and (at, sequence) >= newest:
            newest = at, sequence
        else:
            disordered = number
    driver.execute(
        f"INSERT INTO {prefix}search (rowid, text) SELECT id, search_text {rows} "
        "AND id <= ? AND search_text IS NOT NULL ORDER BY id",
        (since, until),
    )
    driver.execute(
        f"UPDATE {prefix}search_state SET indexed = ?, newest_at = ?, newest_sequence = ?, "
        "disordered = ?",
        (until, *newest, disordered),
    )
    few = driver.execute(f"SELECT id {rows} LIMIT ?", (until, BEHIND + 1)).fetchall()
    return _Index(until, disordered) if len(few) <= BEHIND else None


def change_tool_call(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    tool_call_id: str,
    conversation_id: str | None,
    status: str,
    info: Mapping[str, Any] | None,
) -> DisplayMessage:
    """The newest call of that id that can become ``status``, now that it has."""
    if status not in STATUSES or not isinstance(info, Mapping | None):
        raise ConfigurationError(
            f"A tool call can become {', '.join(STATUSES)}, with a dict of metadata, "
            f"not {status!r:.40} with {info!r:.40}."
        )
    before = STATUSES[status]
    call = _Call(owner, tool_call_id, conversation_id, "tool_call")
    row = _newest(connection, tables, call, before=before)
    if row is None:
        which = f"that is {' or '.join(before)} and could become {status}"
        raise NotFound(f"There is no tool call {tool_call_id!r:.300} {which}.")
    return _change(connection, tables, row, status=status, metadata=row.metadata | dict(info or {}))


def record_decision(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    tool_call_id: str,
    conversation_id: str | None,
    decision: str,
    said: Mapping[str, Any] | None = None,
) -> DisplayMessage:
    """The newest call of that id, with the decision in its metadata and in its result's.

    ``said`` is more about it, which goes into the metadata of the call alone.
    """
    if decision not in DECISIONS:
        raise ConfigurationError(
            f"A decision is {' or '.join(map(repr, DECISIONS))}, not {decision!r:.40}."
        )
    call = _newest(connection, tables, _Call(owner, tool_call_id, conversation_id, "tool_call"))
    if call is None:
        raise NotFound(f"There is no tool call {tool_call_id!r:.300}.")
    stamp = {"hitl_decision": decision}
    answer = _Call(owner, tool_call_id, call.conversation_id, "tool_result")
    result = _newest(connection, tables, answer, after=call.id)
    if result is not None:
        _change(connection, tables, result, metadata=result.metadata | stamp)
    more = {"decision": dict(said)} if said else {}
    return _change(connection, tables, call, metadata=call.metadata | stamp | more)


def resolve_result(
    connection: sql.Connection,
    tables: Tables,
    owner: str,
    tool_call_id: str,
    conversation_id: str | None,
    content: str,
) -> DisplayMessage:
    """The newest result of that id, if it is an interrupted one: ``content`` now."""
    if not isinstance(content, str):
        raise ConfigurationError(f"A tool's result is text, not {type(content).__name__}.")
    row = _newest(connection, tables, _Call(owner, tool_call_id, conversation_id, "tool_result"))
    if row is None or not row.content.get("is_interrupt"):
        raise NotFound(f"There is no interrupted result of tool call {tool_call_id!r:.300}.")
    kept = {name: value for name, value in row.content.items() if name != "is_interrupt"}
    return _change(connection, tables, row, content=kept | {"content": content})


class _Call(NamedTuple):
    """The owner's rows of a call that are of that type, in one conversation or in all (None)."""

    owner: str
    tool_call_id: str
    conversation_id: str | None
    content_type: str


def _newest(
    connection: sql.Connection,
    tables: Tables,
    call: _Call,
    *,
    before: Sequence[str] | None = None,
    after: int = -1,
) -> DisplayMessage | None:
    """The newest of its rows: with a status of ``before``, and a higher id than ``after``."""
    which: dict[str, Any] = {
        "owned_by": call.owner,
        "call": _call_key(_text(call.tool_call_id)),
        "type": call.content_type,
        "least": after,
    }
    if call.conversation_id is not None:
        which["conversation"] = _text(call.conversation_id)
    asked = _newest_first(tables, call.conversation_id is None, tuple(before or ()))
    found = _messages(asked(connection, which).rows)
    return found[0] if found else None


@functools.cache
def _newest_first(tables: Tables, anywhere: bool, statuses: tuple[str, ...]) -> Prepared:
    table, parents = tables.display_messages, tables.conversations
    owned = sql.select(parents.c.id).where(parents.c.owner == sql.bindparam("owned_by"))
    if not anywhere:
        owned = owned.where(parents.c.id == sql.bindparam("conversation"))
    which = sql.and_(
        table.c.conversation_id.in_(owned),
        table.c.tool_call_id == sql.bindparam("call"),
        table.c.content_type == sql.bindparam("type"),
        table.c.id > sql.bindparam("least"),
    )
    if statuses:
        which = which & sql.or_(*(table.c.status == status for status in statuses))
    newest = _rows(tables).where(which).order_by(table.c.id.desc()).limit(1)
    return Prepared(newest.with_for_update())


def _text(id: Any) -> str:
    if not isinstance(id, str):
        raise NotFound(f"There is no id {id!r:.300}.")
    return id


def _call_key(id: str | None) -> str | None:
    """What stands for the id of a tool call, which a provider may make as long as it likes."""
    if id is None or len(escaped(id)) <= ID_LENGTH:
        return id
    return digest(id)


def _change(
    connection: sql.Connection, tables: Tables, row: DisplayMessage, **values: Any
) -> DisplayMessage:
    changing = _changing(tables, frozenset(values))
    return _messages(changing(connection, {**values, "changed": row.id}).rows)[0]


@functools.cache
def _changing(tables: Tables, names: frozenset[str]) -> Prepared:
    table = tables.display_messages
    of_it = table.c.id == sql.bindparam("changed")
    new = {name: sql.bindparam(name, type_=table.c[name].type) for name in names}
    return Prepared(table.update().where(of_it).values(**new).returning(*_columns(tables)))


def _rows(tables: Tables) -> sql.Select[Any]:
    return sql.select(*_columns(tables))


def _columns(tables: Tables) -> list[sql.Column[Any]]:
    return [tables.display_messages.c[name] for name in DisplayMessage.__struct_fields__]


def _messages(found: Iterable[Any]) -> list[DisplayMessage]:
    return [_message(row) for row in found]


def _message(row: Iterable[Any]) -> DisplayMessage:
    """A row, be it damaged: the rest of the transcript can be read all the same."""
    message = DisplayMessage(**dict(zip(DisplayMessage.__struct_fields__, row, strict=True)))
    if isinstance(message.content, dict) and isinstance(message.metadata, dict):
        return message
    logger.warning("Row %s of conversation %r is damaged.", message.id, message.conversation_id)
    told = {"text": "This part of the conversation is damaged.", "error_type": "damaged"}
    return replace(message, content_type="error", content=told, metadata={})


def compared(text: Any) -> str | None:
    """``text`` as a search compares it: in whatever case; None for what is none."""
    if not isinstance(text, str):
        return None
    # What a database cannot hold, or would compare otherwise than the next one.
    return whole(text.casefold(), REPLACEMENT).replace("\0", REPLACEMENT)
