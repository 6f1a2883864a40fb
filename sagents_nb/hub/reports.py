"""Reports of child threads to those that wait for them, and what becomes of children too late."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from ..errors import NotFound, Owned, StaleApproval
from ..text import logger_of
from .agencies import Agency
from .doors import Doors, NoDoor, Unreachable, thread_path
from .sub_agents import Link, links_of
from .threads import NothingWaits, Thread

logger = logger_of(__name__)


class Host(Protocol):
    """The hub, as far as reports need it."""

    doors: Doors

    def thread(self, agency: Agency, id: str) -> Thread:
        """The thread of that id, open."""

    def cancel_thread(self, agency: Agency, id: str) -> None:
        """Stop the thread of that id, wherever it is open, and the children that it waits for."""


class Reports:
    """Gives parents what their children have to say, once and in time; for no event loop."""

    def __init__(self, hub: Host) -> None:
        self._hub = hub
        self._deadlines: dict[str, threading.Timer] = {}

    def stop(self) -> None:
        """Look at no deadline any more."""
        for timer in self._deadlines.values():
            timer.cancel()

    def give(self, agency: Agency, child: Thread, parent: Mapping[str, str]) -> None:
        """A ``child`` has ended: its ``parent`` is told, also where another process has it."""
        try:
            self._hub.thread(agency, parent["threadId"])
        except Owned as owned:
            report = {
                "token": parent["token"],
                "childThreadId": child.record.id,
                "report": child.answer,
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
                return "Error: The sub-agent is gone."
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
