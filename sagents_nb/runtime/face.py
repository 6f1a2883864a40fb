"""Who shows a run to people, and takes their answers, while its caller waits: a notebook can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..errors import ConfigurationError
from ..result import RunResult


class Face(Protocol):
    """What ``wait=True`` asks for; in the thread that waits."""

    def run(self, agent: Any, prompt: Any, state: Any, overrides: Mapping[str, Any]) -> RunResult:
        """Run the agent to its end, with all that people have to decide on the way."""

    def wait(self, run: Any, timeout: float | None) -> RunResult:
        """Wait for the end of a session's run, up to ``timeout`` seconds; raises TimeoutError."""


_faces: list[Face] = []  # the last one is asked


def put_on(face: Face) -> None:
    """Have that one asked from now on."""
    _faces.append(face)


def take_off(face: Face) -> None:
    """Have it asked no more; harmless if it was not."""
    if face in _faces:
        _faces.remove(face)


def has_face() -> bool:
    """Whether people could be asked."""
    return bool(_faces)


def asked_face() -> Face:
    """Raises :class:`~sagents_nb.errors.ConfigurationError` where nobody could be asked."""
    if not _faces:
        raise ConfigurationError(
            "wait=True needs a notebook with '%load_ext sagents_nb', where people can answer; "
            "leave it out here, and answer what result.interrupt asks with agent.resume(…), or in "
            "a session with session.resume(…)."
        )
    return _faces[-1]
