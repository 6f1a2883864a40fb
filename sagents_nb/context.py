"""What hooks and tools are told about the run they act in."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from .events import Emitter, Event
from .state import State

if TYPE_CHECKING:
    from .tools import Tool


class RunContext:
    """One run, as middleware hooks see it. Never stored: it may hold keys and scopes.

    ``values`` is the agent's ``tool_context``; ``files`` the virtual filesystem, or None;
    ``cancelled`` a :class:`threading.Event` that is set when the run is cancelled.
    """

    def __init__(
        self,
        *,
        emitter: Emitter,
        agent_id: str = "",
        scope: Any = None,
        values: Mapping[str, Any] | None = None,
        files: Any = None,
        tools: Mapping[str, Tool] | None = None,
        headless: Any = None,
    ) -> None:
        self.emitter = emitter
        self.agent_id = agent_id
        self.scope = scope
        self.values: Mapping[str, Any] = values or {}
        self.files = files
        self.tools: Mapping[str, Tool] = tools or {}
        self.headless = headless
        self.cancelled = threading.Event()
        self.state = State()

    @property
    def session_id(self) -> str:
        """The session's id; an agent's own id outside of a session."""
        return self.emitter.session_id

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.emitter.run_id

    def publish(self, kind: type[Event], **fields: Any) -> None:
        """Emit an event; from the runtime loop only."""
        self.emitter.emit(kind, **fields)


class _Told:
    """Nothing to wait for: lets ``progress`` be called from sync and async tools alike."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


class ToolContext:
    """One tool call, as the tool sees it.

    A parameter annotated ``ToolContext`` receives it and is absent from the tool's schema.
    """

    def __init__(
        self,
        run: RunContext,
        state: State,
        tool_call_id: str,
        on_progress: Callable[[str, float | None], None],
    ) -> None:
        self.run = run
        self.state = state
        self.tool_call_id = tool_call_id
        self._on_progress = on_progress

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.run.session_id

    @property
    def scope(self) -> Any:
        """The caller's scope, or None."""
        return self.run.scope

    @property
    def values(self) -> Mapping[str, Any]:
        """The agent's ``tool_context``."""
        return self.run.values

    @property
    def files(self) -> Any:
        """The virtual filesystem, or None."""
        return self.run.files

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled: a long sync tool should look now and then."""
        return self.run.cancelled.is_set()

    def progress(self, text: str, fraction: float | None = None) -> Awaitable[None]:
        """Tell people how far the tool is; ``fraction`` is 0 to 1. Awaiting it is optional."""
        self._on_progress(text, fraction)
        return _Told()
