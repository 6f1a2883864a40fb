"""Doors: where each process can be asked for the threads that it has open."""

from __future__ import annotations

import http.client
import secrets
import selectors
import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import msgspec
import sqlalchemy as sql

from ..errors import AgentError, Owned, StoreError
from ..serialization import encoded
from ..store.database import leases
from ..store.database.leases import Owner
from ..store.database.schema import Tables
from ..store.database.thread import Database

ANSWER_SECONDS = 30.0
"""That a process has for an answer, while it answers to others."""

SILENT_AFTER = 4.0
"""Seconds without a word after which it is looked whether it answers at all."""

_SETTLED = (200, 400, 404)


def thread_path(agency_id: str, thread_id: str) -> str:
    """The address of a thread at any door."""
    return f"/agency/{agency_id}/agent/{thread_id}"


class Door(msgspec.Struct, frozen=True):
    """One process: its ``address``, and the token for others.

    It is such as "http://127.0.0.1:8765", or "unix:/run/user/1000/hub", a socket of the same user.
    """

    owner: str
    address: str
    token: str

    @property
    def host(self) -> str:
        """The name and the port of its address."""
        return urlsplit(self.address).netloc.lower() or "localhost"

    @property
    def path(self) -> str | None:
        """Where its socket lies in the file system, None where it is an address of a network."""
        parts = urlsplit(self.address)
        return parts.path if parts.scheme == "unix" else None

    def ask(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: bytes = b"",
    ) -> http.client.HTTPResponse:
        """What that process answers; for no event loop.

        Raises :class:`Unreachable`, within seconds where it answers nobody.
        """
        connection = self._connection()
        given = {**headers, "Authorization": f"Bearer {self.token}"}
        until = time.monotonic() + ANSWER_SECONDS
        try:
            connection.request(method, target, body or None, given)
            while not _speaks(connection.sock):
                if time.monotonic() > until or not self.answers():
                    raise TimeoutError
            speaking = connection.sock
            answer = connection.getresponse()
            if is_stream(answer):  # in which there are pauses
                speaking.settimeout(ANSWER_SECONDS)
            return answer
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unreachable() from error

    def answers(self) -> bool:
        """Whether that process answers to anything; for no event loop."""
        connection = self._connection()
        try:
            connection.request("GET", "/healthz")
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True

    def _connection(self) -> _Connection:
        connection = _Connection(self.host, timeout=SILENT_AFTER)
        connection.path = self.path
        return connection


class _Connection(http.client.HTTPConnection):
    """One that may be by a socket in the file system."""

    path: str | None = None

    def connect(self) -> None:
        if self.path is None:
            super().connect()
            return
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def is_stream(answer: http.client.HTTPResponse) -> bool:
    """Whether it goes on as something happens."""
    return answer.getheader("content-type", "").startswith("text/event-stream")


def _speaks(connection: socket.socket) -> bool:
    """Whether something is to be read soon."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(SILENT_AFTER))


class Unreachable(StoreError):
    """The process that has a thread open does not answer."""

    def __init__(self) -> None:
        super().__init__(
            "Another process has this thread open and does not answer; try again in a moment."
        )


class Moved(Unreachable):
    """The process that had a thread open has it no more; another may."""


class NoDoor(AgentError):
    """The process that has a thread open cannot be asked."""

    def __init__(self, owned: Owned) -> None:
        super().__init__(
            f"Process {owned.pid} on {owned.host} has this thread open and serves nobody; close it "
            "there."
        )


class Doors:
    """The doors of all processes over one ``database``, and the one of this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.own: Door | None = None

    def open(self, address: str) -> Door:
        """Say that this process can be asked at ``address``."""
        door = Door(self._database.owner.text, address, secrets.token_urlsafe(32))
        self._database.run(lambda connection: _open(connection, self._database.tables, door))
        self.own = door
        return door

    def close(self) -> None:
        """Say that it cannot be any more."""
        if self.own is not None:
            owner, self.own = self.own.owner, None
            t = self._database.tables.hub_doors
            self._database.run(lambda c: c.execute(t.delete().where(t.c.owner == owner)))

    def of(self, owner: str) -> Door | None:
        """The door of that owner of a lease, None where it has none."""
        t = self._database.tables.hub_doors
        query = sql.select(t.c.owner, t.c.address, t.c.token).where(t.c.owner == owner)
        row = self._database.run(lambda connection: connection.execute(query).first())
        return None if row is None else Door(*row)

    def holder(self, thread_id: str) -> Owned | None:
        """Who has a thread open elsewhere and can be asked for it, None if nobody does."""
        database = self._database
        owned = database.run(
            lambda connection: leases.holder(connection, database.tables, database.owner, thread_id)
        )
        if owned is None or owned.owner == database.owner.text or self.of(owned.owner) is None:
            return None
        return owned

    def reachable(self) -> set[str]:
        """The threads that somebody has open who can be asked for them, here too."""
        held, doors = self._database.tables.leases.c, self._database.tables.hub_doors.c
        query = sql.select(held.conversation_id, held.owner).where(
            held.conversation_id.in_(leases.held(self._database.tables)), held.owner == doors.owner
        )
        rows = self._database.run(lambda connection: connection.execute(query).all())
        alive = {owner for _, owner in rows if _may_live(owner)}
        return {id for id, owner in rows if owner in alive}

    def ask(self, owned: Owned, method: str, path: str, said: Any = None) -> None:
        """Have the process do it that has a thread open.

        What is gone there, or waits for nothing any more, is no error. For no event loop. Raises
        :class:`NoDoor`, :class:`Moved`, and :class:`Unreachable` where it was not done otherwise.
        """
        door = self.of(owned.owner)
        if door is None:
            raise NoDoor(owned)
        headers = {} if said is None else {"Content-Type": "application/json"}
        answer = door.ask(method, path, headers, b"" if said is None else encoded(said))
        answer.close()
        if answer.status == 409:
            raise Moved()
        if answer.status not in _SETTLED:
            raise Unreachable()


def _open(connection: sql.Connection, tables: Tables, door: Door) -> None:
    t = tables.hub_doors
    for (owner,) in connection.execute(sql.select(t.c.owner)).all():  # of processes that ended
        if not _may_live(owner) or owner == door.owner:
            connection.execute(t.delete().where(t.c.owner == owner))
    row = {"owner": door.owner, "address": door.address, "token": door.token}
    connection.execute(t.insert().values(opened_at=datetime.now(UTC), **row))


def _may_live(owner: str) -> bool:
    read = Owner.read(owner)
    return read is not None and read.lives() is not False
