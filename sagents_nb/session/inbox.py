"""What waits for a run: steering, follow-ups, and whole runs behind the active one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .. import kinds
from ..errors import ConfigurationError
from ..messages import Message
from .run import Run

MODES = ("one-at-a-time", "all")


class Queued(NamedTuple):
    """A message that waits; ``when`` is "steer", "follow_up" or "queue".

    One that begins a run of its own has that run's ``run_id``, others have "".
    """

    run_id: str
    when: str
    message: Message


class Inbox:
    """The queues of one session; used on the runtime loop only.

    A steered message or follow-up is taken once it ``is_safe``: before, it may yet be refused.
    """

    def __init__(self, is_safe: Callable[[Message], bool] = lambda message: True) -> None:
        self._is_safe = is_safe
        # Lists: there are few of them, and an empty deque takes ten times as much.
        self._steering: list[Message] = []
        self._follow_ups: list[Message] = []
        self._runs: list[tuple[list[Message], Run]] = []
        self.steering_batch = "skip"
        self._pause: bool | str = False
        self._modes = {"steer": "one-at-a-time", "follow_up": "one-at-a-time"}

    def __len__(self) -> int:
        return len(self._steering) + len(self._follow_ups) + len(self._runs)

    @property
    def steering_mode(self) -> str:
        """How many steered messages one turn takes."""
        return self._modes["steer"]

    @steering_mode.setter
    def steering_mode(self, mode: str) -> None:
        self._modes["steer"] = _checked(mode)

    @property
    def follow_up_mode(self) -> str:
        """How many follow-ups one turn takes."""
        return self._modes["follow_up"]

    @follow_up_mode.setter
    def follow_up_mode(self, mode: str) -> None:
        self._modes["follow_up"] = _checked(mode)

    def add(self, message: Message, when: str) -> None:
        """Queue a message for the active run."""
        (self._steering if when == "steer" else self._follow_ups).append(message)

    def forget(self, message: Message) -> None:
        """Take a message out that was refused after all, or taken back."""
        for queue in (self._steering, self._follow_ups):
            queue[:] = [waiting for waiting in queue if waiting is not message]

    def steering(self) -> list[Message]:
        """Take what the next turn gets of the steered messages."""
        return self._taken(self._steering, self._modes["steer"])

    def follow_ups(self) -> list[Message]:
        """Take what the next turn gets of the follow-ups."""
        return self._taken(self._follow_ups, self._modes["follow_up"])

    def _taken(self, queue: list[Message], mode: str) -> list[Message]:
        taken: list[Message] = []
        while queue and self._is_safe(queue[0]) and (mode == "all" or not taken):
            taken.append(queue.pop(0))
        return taken

    def skips_rest(self) -> bool:
        """Whether a steered message waits that makes the rest of a batch be skipped."""
        return self.steering_batch == "skip" and bool(self._steering)

    @property
    def has_messages(self) -> bool:
        """Whether a steered message or a follow-up waits."""
        return bool(self._steering or self._follow_ups)

    def ask_pause(self, reason: str) -> None:
        """Ask the active run to pause after its model call."""
        self._pause = reason or True

    def takes_pause(self) -> bool | str:
        """Whether somebody asked for a pause, or why; asking is forgotten then."""
        asked, self._pause = self._pause, False
        return asked

    def put(self, messages: list[Message], run: Run) -> None:
        """Queue a whole run."""
        self._runs.append((messages, run))

    def put_first(self, messages: list[Message], run: Run) -> None:
        """Queue a whole run before all others."""
        self._runs.insert(0, (messages, run))

    @property
    def queued(self) -> list[Queued]:
        """All that waits, in the order in which it is taken."""
        return [
            *(Queued("", "steer", message) for message in self._steering),
            *(Queued("", "follow_up", message) for message in self._follow_ups),
            *(Queued(run.id, "queue", message) for said, run in self._runs for message in said),
        ]

    @property
    def runs(self) -> list[Run]:
        """Those that wait, the next one first."""
        return [run for _, run in self._runs]

    @property
    def has_runs(self) -> bool:
        """Whether a run waits."""
        return bool(self._runs)

    def take(self) -> tuple[list[Message], Run]:
        """The next run and its messages."""
        return self._runs.pop(0)

    def remove(self, run: Run) -> list[Message] | None:
        """Take that run out; its messages, or None if it was not there."""
        found = next((messages for messages, queued in self._runs if queued is run), None)
        self._runs = [item for item in self._runs if item[1] is not run]
        return found

    def clear_queue(self, which: str) -> tuple[list[Queued], list[Run]]:
        """Empty "steering", "follow_up" or "all"; what waited, and runs that will not happen."""
        whens = {"steering": {"steer"}, "follow_up": {"follow_up"}}.get(which)
        dropped = [queued for queued in self.queued if whens is None or queued.when in whens]
        for name, queue in (("steering", self._steering), ("follow_up", self._follow_ups)):
            if which in (name, "all"):
                queue.clear()
        runs = self.runs if which == "all" else []
        if runs:
            self._runs = []
        return dropped, runs

    def clear(self) -> list[Run]:
        """Empty all queues and forget a pause; returns the runs that will not happen."""
        self._pause = False
        _, runs = self.clear_queue("all")
        return runs


_MODE = kinds.one_of(*MODES)


def _checked(mode: str) -> str:
    if not _MODE.fits(mode):
        raise ConfigurationError(f"A queue's mode is {_MODE.what}, not {kinds.shown(mode)}.")
    return mode
