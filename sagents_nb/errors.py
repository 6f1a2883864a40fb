"""Every error the package raises on purpose.

A message is one sentence that names the thing and the next step. Errors of a *run* carry
what the run had done so far in ``.result``; interrupts, pauses and cancellation are results,
not errors.
"""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any

LONGEST = 2_000
"""Characters of a message that quotes what it was given; what is between is left out."""


class SagentsError(Exception):
    """Base of all errors of this package; ``said`` is the sentence.

    What it quotes may be a key in a wrong place, which it does not show.
    """

    def __init__(self, *said: Any) -> None:
        super().__init__(*map(_readable, said))


def _readable(said: Any) -> Any:
    if not isinstance(said, str):
        return said
    from .redaction import unkeyed  # with what it needs, which few have errors for

    said = unkeyed(said)
    if len(said) <= LONGEST:
        return said
    return f"{said[: LONGEST // 2]} … {said[-LONGEST // 4 :]}"


class ConfigurationError(SagentsError, ValueError):
    """An agent, tool, model or middleware was described in a way that cannot work."""


class UnknownArgument(ConfigurationError, TypeError):
    """A function was given an argument that it does not have; it says which was meant."""


class NotFound(SagentsError, LookupError):
    """No such conversation, session or file, or it belongs to somebody else."""


class DocumentError(SagentsError, ValueError):
    """A document cannot be read, or has no text to be found, as it is ``said``; none was changed.

    In one line, whatever the document is called.
    """

    def __init__(self, said: str) -> None:
        super().__init__(" ".join(said.split()))


class AgentError(SagentsError):
    """A run failed, as ``message`` says.

    ``result`` is the :class:`~sagents_nb.result.RunResult` so far, or None.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class ModelError(AgentError):
    """The model, its key, its package or its server failed.

    ``kind`` is one of "missing_key", "missing_package", "connection", "timeout",
    "rate_limit", "overloaded", "invalid_request", "context_window", "authentication",
    "server", "refusal", "cut_stream", "scripted", "not_recorded" or "unknown"; ``status`` is the
    HTTP status where there was one; ``retry_after`` is in seconds; ``request_id`` is what the
    provider knows the call by, where it said so.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "unknown",
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        result: Any = None,
    ) -> None:
        super().__init__(message, result)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.request_id = request_id


class ReplayMiss(ModelError):
    """A model that only replays was asked something that was not recorded.

    ``path`` is the first field in which the request differs from the ``nearest`` recording,
    whose key this is: ``messages[2].parts[0].text``, say. Both are "" if nothing is recorded.
    """

    def __init__(self, message: str, *, nearest: str = "", path: str = "") -> None:
        super().__init__(message, kind="not_recorded")
        self.nearest = nearest
        self.path = path


class MaxRunsExceeded(AgentError):
    """The model still wanted tools after ``max_runs`` calls; the run can be continued."""


class BudgetExceeded(AgentError):
    """The run's budget is used up; the run can be continued with a larger one."""


class FailuresExceeded(AgentError):
    """Three turns in a row had a failing tool call; the run can be continued."""


class UntilToolNotCalled(AgentError):
    """The model ended its turn without calling a tool named in ``until_tool``."""


class MiddlewareError(AgentError):
    """A hook of a middleware raised; the message names the middleware and the hook."""


class InvalidDecision(AgentError):
    """The decisions do not fit the interrupt; nothing has changed, so answer it again.

    ``tool_call_id`` says whose decision it is that does not fit, "" if it is not one call's.
    """

    def __init__(self, message: str, result: Any = None, *, tool_call_id: str = "") -> None:
        super().__init__(message, result)
        self.tool_call_id = tool_call_id


class StaleApproval(AgentError):
    """The request was already answered, or changed since it was shown; nothing has run.

    ``tool_call_id`` says of which call, "" if it is not one call's.
    """

    def __init__(self, message: str, result: Any = None, *, tool_call_id: str = "") -> None:
        super().__init__(message, result)
        self.tool_call_id = tool_call_id


class NotRunning(AgentError):
    """The session has nothing that this call could act on, or is closed."""


class StoreError(AgentError):
    """The journal of the conversation could not be written; nothing ran that it does not tell of.

    What could not be written is written before anything else the next time.
    """


class StaleOwner(NotRunning):
    """Nothing that this session does is kept any more: the conversation was taken over by another.

    Or what was written last is not in the store any more: an older copy was put in its place.
    """


class Owned(AgentError):
    """The conversation is open in a session that lives, as ``message`` says.

    ``host``, ``pid`` and ``since`` (a datetime in UTC) say where and since when, ``owner`` which
    store of that process has it; ``take_over=True`` takes it away from there.
    """

    def __init__(
        self, message: str, *, host: str, pid: int, since: datetime, owner: str = ""
    ) -> None:
        super().__init__(message)
        self.owner = owner
        self.host = host
        self.pid = pid
        self.since = since


class Busy(AgentError):
    """A run is active and the call cannot wait for it."""


def pass_on(error: BaseException) -> None:
    """Raise what is not of the code that was called, but came to it from outside.

    That is the cancellation of the task that calls, a GeneratorExit of a coroutine that is let
    go, and a KeyboardInterrupt on the main thread. All else ends the code that raised it and
    nobody else: asyncio would end its loop by SystemExit and KeyboardInterrupt.
    """
    kind = type(error)  # isinstance would ask an error of somebody's for its class, which may raise
    if issubclass(kind, KeyboardInterrupt):
        if threading.current_thread() is threading.main_thread():
            raise error
        return
    import asyncio

    if issubclass(kind, asyncio.CancelledError | GeneratorExit):
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no loop runs here
            task = None
            if issubclass(kind, GeneratorExit):
                raise error from None
        if issubclass(kind, asyncio.CancelledError) and task is not None and task.cancelling():
            raise error
