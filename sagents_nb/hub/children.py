"""Child threads: how they begin, their reports to who waits for them, and what is too late."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from typing import Protocol

from ..errors import NotFound, Owned, StaleApproval
from ..messages import Message
from ..text import logger_of
from .agencies import Agency, digest_of
from .blueprints import Blueprint
from .doors import Doors, NoDoor, Unreachable, thread_path
from .limits import Beginning, Limits
from .open_threads import OpenThreads
from .records import ThreadRecord
from .sub_agents import Link, Task, links_of
from .threads import NothingWaits, Thread
from .vocabulary import SPAWNED

logger = logger_of(__name__)


GONE = "Error: The sub-agent is gone."
"""What a parent hears of a child that was deleted."""


class Host(Protocol):
    """The hub, as far as children need it."""

    doors: Doors

    def thread(self, agency: Agency, id: str) -> Thread:
        """The thread of that id, open."""

    def room(
        self, agency: Agency, limits: Limits | None, thread: Thread
    ) -> AbstractContextManager[Beginning]:
        """Room for a run that is about to begin."""

    def cancel_thread(self, agency: Agency, id: str) -> None:
        """Stop the thread of that id, wherever it is open, and the children that it waits for."""


class Children:
    """Has children begin, and gives parents what they have to say, once and in time.

    ``threads`` has what is kept of them, ``blueprint_of`` is what a kind of an agency is made of.
    For no event loop.
    """

    def __init__(
        self,
        hub: Host,
        threads: OpenThreads,
        blueprint_of: Callable[[Agency, str], Blueprint],
    ) -> None:
        self._hub = hub
        self._threads = threads
        self._blueprint_of = blueprint_of
        self._deadlines: dict[str, threading.Timer] = {}

    def delegate(self, agency: Agency, parent: ThreadRecord, task: Task) -> tuple[str, str]:
        """Have the child of a task begin, if it has not; gives its id and its token's digest."""
        key = f"task {task.id}"
        if task.child is not None:
            child = self._hub.thread(agency, self._named(agency, parent, task.child))
            if not child.has_accepted(key):  # each report has a token of its own
                self._threads.keep(agency, child, parent=_reporting_to(parent))
        else:
            if self._threads.find(agency, task.id) is not None:  # it was made before a crash
                child = self._hub.thread(agency, task.id)
            else:
                record = ThreadRecord(
                    id=task.id,
                    agency_id=agency.id,
                    created_at=datetime.now(UTC),
                    blueprint=task.blueprint or self._blueprint_of(agency, task.type),
                    request=parent.request,
                    variables=parent.variables,
                    parent=_reporting_to(parent),
                )
                child = self._threads.create(agency, record)
            teller = self._hub.thread(agency, parent.id)
            if task.id not in teller.children:
                spawned = {"childThreadId": task.id, "toolCallId": task.tool_call_id}
                teller.tell([(SPAWNED, spawned)])
        with self._hub.room(agency, None, child):
            child.invoke([Message.user(task.description)], idempotency_key=key)
        assert child.record.parent is not None
        return child.record.id, digest_of(child.record.parent["token"])

    def _named(self, agency: Agency, parent: ThreadRecord, named: str) -> str:
        """The id of a child, which may be named by its number."""
        children = self._hub.thread(agency, parent.id).children
        if named.isascii() and named.isdigit() and 1 <= int(named[:9]) <= len(children):
            return children[int(named[:9]) - 1]
        if named in children:
            return named
        raise NotFound(
            f"There is no sub-agent {named!r:.110}; there are {len(children)}, by their numbers."
        )

    def cancel(self, agency: Agency, parent: Thread) -> None:
        """Stop those that a thread waits for."""
        for link in links_of(parent.session.state.interrupt):
            with suppress(NotFound):
                self._hub.cancel_thread(agency, link.child_id)

    def stop(self) -> None:
        """Look at no deadline any more."""
        for timer in self._deadlines.values():
            timer.cancel()

    def give(self, agency: Agency, child: Thread, parent: Mapping[str, str]) -> None:
        """A ``child`` has ended: its ``parent`` is told, also where another process has it."""
        self._tell(agency, child.record.id, lambda: child.answer, parent)

    def gone(self, agency: Agency, child_id: str, parent: Mapping[str, str]) -> None:
        """A child was deleted: its ``parent`` is told."""
        self._tell(agency, child_id, lambda: GONE, parent)

    def _tell(
        self, agency: Agency, child_id: str, answer: Callable[[], str], parent: Mapping[str, str]
    ) -> None:
        try:
            self._hub.thread(agency, parent["threadId"])
        except Owned as owned:
            report = {
                "token": parent["token"],
                "childThreadId": child_id,
                "report": answer(),
            }
            path = f"{thread_path(agency.id, parent['threadId'])}/child_result"
            try:
                self._hub.doors.ask(owned, "POST", path, report)
            except (NoDoor, Unreachable):  # its next process looks after it
                logger.warning("Thread %s waits where it cannot be told", parent["threadId"])
            return
        except NotFound:
            return  # it was deleted meanwhile
        self.settle(agency, parent["threadId"])

    def settle(self, agency: Agency, parent_id: str) -> None:
        """Give a thread the reports of those of its children that have ended, or are too late."""
        try:
            parent = self._hub.thread(agency, parent_id)
            for link in links_of(parent.session.state.interrupt):
                report = self._report_of(agency, link)
                if report is not None:
                    with suppress(NothingWaits, StaleApproval):  # somebody else was faster
                        parent.report(link.child_id, report)
                elif link.deadline is not None:
                    self._wake_at(link.deadline, agency, parent_id)
        except NotFound:
            return  # it was deleted meanwhile
        except Exception:
            logger.exception("Thread %s could not be given its reports", parent_id)

    def _report_of(self, agency: Agency, link: Link) -> str | None:
        with suppress(Owned):  # whoever has it open tells of its end
            try:
                child = self._hub.thread(agency, link.child_id)
            except NotFound:
                return GONE
            if child.status in ("completed", "error", "canceled"):
                return child.answer
        if link.deadline is not None and time.time() >= link.deadline:
            self._hub.cancel_thread(agency, link.child_id)
            return "Error: The sub-agent took longer than it was given."
        return None

    def _wake_at(self, deadline: float, agency: Agency, parent_id: str) -> None:
        if before := self._deadlines.get(parent_id):
            before.cancel()
        wait = max(0.0, deadline - time.time()) + 0.01
        timer = threading.Timer(wait, self.settle, (agency, parent_id))
        timer.daemon = True
        self._deadlines[parent_id] = timer
        timer.start()


def _reporting_to(parent: ThreadRecord) -> dict[str, str]:
    return {"threadId": parent.id, "token": secrets.token_urlsafe(32)}
