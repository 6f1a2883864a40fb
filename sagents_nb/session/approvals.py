"""The decisions on one interrupt of a session, collected until all are in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from ..agent import Agent
from ..errors import InvalidDecision, StaleApproval
from ..interrupts import Decision, Decisions, Interrupt, decision_data, is_decision


class Handed:
    """Which interrupt each thread or task that answers was handed last; from any of them.

    Who answers without a name means that one: of two who saw the same question, the slower one
    must not answer the next, which it has not seen.
    """

    __slots__ = ("_ids",)

    def __init__(self) -> None:
        self._ids: WeakKeyDictionary[Any, str] | None = None  # most sessions never ask

    def hand(self, interrupt: Interrupt | None) -> None:
        """Whoever calls is handed this; None forgets what it was handed."""
        if interrupt is None:
            if self._ids is not None:
                self._ids.pop(_here(), None)
            return
        with _making:
            if self._ids is None:
                self._ids = WeakKeyDictionary()
        self._ids[_here()] = interrupt.id

    def last(self) -> str | None:
        """The id of what whoever calls was handed last; None without one."""
        return None if self._ids is None else self._ids.get(_here())


_making = threading.Lock()


def _here() -> Any:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop turns here
        task = None
    return task or threading.current_thread()


class Approvals:
    """What people decided so far; used on the runtime loop only, so one of them is first.

    ``local`` is the conversation's ``ctx.local``.
    """

    def __init__(self, local: Mapping[str, Any]) -> None:
        self._local = local
        self._taken: dict[str, Decision] = {}
        self.said: dict[str, dict[str, Any]] = {}
        """Of the last interrupt, by call id: what results keep of the decisions."""

    def open_ids(self, interrupt: Interrupt) -> list[str]:
        """The calls that nobody has decided, in call order."""
        return [i for i in interrupt.tool_call_ids if i not in self._taken]

    def waiting(self, interrupt: Interrupt) -> Interrupt:
        """It with the requests alone that nobody has decided; from any thread."""
        taken = self._taken
        left = tuple(r for r in interrupt.action_requests if r.tool_call_id not in taken)
        return replace(interrupt, action_requests=left) if taken else interrupt

    def check_open(self, interrupt: Interrupt, ids: tuple[str, ...]) -> None:
        """Raise StaleApproval if one of these calls does not wait."""
        open_ids = self.open_ids(interrupt)
        unknown = [i for i in ids if i not in open_ids]
        if unknown:
            raise StaleApproval(f"No decision is open for {unknown}; open are {open_ids}.")

    def rest(self, agent: Agent, interrupt: Interrupt, given: Decisions) -> dict[str, Decision]:
        """Decisions on all that is open; raises InvalidDecision, or StaleApproval for another."""
        if isinstance(given, Mapping) and not is_decision(given):
            stale = [i for i in given if i in self._taken]
            if stale:
                raise StaleApproval(
                    f"{stale} are decided already; open are {self.open_ids(interrupt)}."
                )
        return agent.checked(self.waiting(interrupt), given, self._local)

    def check_seen(
        self, interrupt: Interrupt, decisions: Mapping[str, Any], digests: Mapping[str, str]
    ) -> None:
        """Raise StaleApproval if a decided request is not the one that somebody saw."""
        for request in interrupt.action_requests:
            i = request.tool_call_id
            seen = digests.get(i)
            is_seen = isinstance(seen, str) and seen == request.digest
            if i in decisions and (not is_seen or i in self._taken):
                raise StaleApproval(
                    f"The request for {request.tool_name} was answered or has changed since it "
                    "was shown; nothing was run.",
                    tool_call_id=i,
                )

    def checked(
        self, agent: Agent, interrupt: Interrupt, given: Mapping[str, Any]
    ) -> dict[str, Decision]:
        """Decisions on some of the waiting calls; raises InvalidDecision."""
        requests = tuple(r for r in interrupt.action_requests if r.tool_call_id in given)
        if not requests or len(requests) != len(given):
            raise InvalidDecision(
                f"Decisions must name waiting calls, which are {interrupt.tool_call_ids}."
            )
        part = replace(interrupt, action_requests=requests)
        return agent.checked(part, given, self._local)

    def add(
        self, interrupt: Interrupt, decisions: Mapping[str, Decision], by: str, at: float
    ) -> dict[str, Decision] | None:
        """Take them; all decisions once nothing is open, else None."""
        if not self._taken:
            self.said = {}
        self._taken.update(decisions)
        self.said |= {i: decision_data(d, by, at) for i, d in decisions.items()}
        if self.open_ids(interrupt):
            return None
        taken, self._taken = self._taken, {}
        return taken

    def said_of(self, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """What the results of these calls keep of the decisions on them."""
        return {i: self.said[i] for i in ids if i in self.said}

    @property
    def taken(self) -> dict[str, Decision]:
        """The decisions so far, by call id."""
        return dict(self._taken)

    def restore(self, taken: Mapping[str, Decision]) -> None:
        """These are the decisions so far: those that came after were not written, say."""
        self._taken = dict(taken)

    def clear(self) -> None:
        """Forget them: the interrupt is gone."""
        self._taken = {}
