"""How one run of a session is written down, in its journal and its transcript."""

from __future__ import annotations

from ..errors import NotRunning
from ..messages import Message, ToolCall, ToolResult
from ..state import State
from ..tools import Tool
from .recorder import Recorder
from .transcribing import Transcriber


class RunRecorder:
    """What a run knows as its :class:`~sagents_nb.loop.config.Recorder`.

    After ``stop`` nothing of that run is written any more.
    """

    def __init__(self, recorder: Recorder | None, transcriber: Transcriber | None) -> None:
        self._recorder = recorder
        self._transcriber = transcriber
        self._stopped = False

    def stop(self) -> None:
        """The session has let the run go."""
        self._stopped = True

    def _check(self) -> None:
        if self._stopped:
            raise NotRunning("The session went on without this run, so nothing of it is kept.")

    async def showing(self, message: Message) -> None:
        """Save what people see of it."""
        if self._transcriber is not None:
            await self._transcriber.keep(message)

    async def keep(self, state: State) -> None:
        """As :meth:`Recorder.keep`."""
        self._check()
        if self._recorder is not None:
            await self._recorder.keep(state)

    async def starting(self, call: ToolCall, tool: Tool) -> None:
        """As :meth:`Recorder.starting`."""
        self._check()
        if self._recorder is not None:
            await self._recorder.starting(call, tool)
            self._check()

    def finished(self, call: ToolCall, result: ToolResult) -> None:
        """As :meth:`Recorder.finished`."""
        self._check()
        if self._recorder is not None:
            self._recorder.finished(call, result)
