"""Functions as agents: what one does is the answer of a model that is asked once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import msgspec

from .. import kinds
from ..errors import ConfigurationError, ModelError, pass_on
from ..loop.tool_values import content_of
from ..messages import ContentPart, FilePart, JsonPart, Message, TextPart, Usage
from ..models.base import ChatModel, ModelRequest, StreamItem
from ..runtime.thread import runtime
from ..runtime.workers import workers
from ..serialization import to_data
from ..tasks import Artifact, text_of_parts
from ..text import said_by
from .task import Task

T = TypeVar("T")

NOTHING_USED = Usage(cost_usd=0.0)

_FRACTION = kinds.or_none(
    kinds.Kind("a number from 0 to 1", lambda v: kinds.number(0).fits(v) and v <= 1),
    "where it is not known",
)


class Pending(Generic[T]):
    """Something that is being done: await it in an async function, or wait for its ``result()``."""

    def __init__(self, future: Future[T]) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self) -> T:
        """What came of it, for a function that is not async."""
        runtime.refuse_here("Waiting for it", "await it there")
        return self._future.result()


class TaskContext:
    """What a function that works on a task can do besides returning its answer.

    A parameter of the annotation ``TaskContext`` is given it, and one of ``Task`` the ``task``. In
    a function that is not async, what has to be waited for is waited for by ``.result()``.

    >>> import sagents_nb as sa
    >>> async def report(task: sa.Task, ctx: sa.TaskContext):
    ...     await ctx.emit_artifact("tides", {"high": [6, 18]})
    ...     return "done"
    >>> agents = sa.AgentRegistry()
    >>> _ = agents.add(report)
    >>> task = agents.delegate("Report.", to="report").wait()
    >>> task.text, task.artifacts[0].value
    ('done', {'high': [6, 18]})
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    @property
    def cancelled(self) -> bool:
        """Whether the task has ended meanwhile: a long function should look now and then."""
        return self.task.record.is_terminal

    @kinds.checked
    def request_input(self, question: str) -> Pending[Any]:
        """What people answer to a ``question``; until then the task is "input_required".

        Raises :class:`~sagents_nb.errors.ConfigurationError` for an empty one.

        >>> import sagents_nb as sa
        >>> async def report(ctx: sa.TaskContext):
        ...     return f"The tides of {await ctx.request_input('Which port?')}"
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(report)
        >>> agents.delegate("Report.", to="report").wait().respond("Bergen").wait().text
        'The tides of Bergen'
        """
        if not question.strip():
            raise ConfigurationError("The question is empty; say what is to be known.")
        return _pending(self.task.ask(question))

    @kinds.checked(value=kinds.ANYTHING)
    def emit_artifact(
        self,
        name: str,
        value: Any,
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Pending[Artifact]:
        """Keep ``value`` as something that the task has made, called ``name``.

        Text, parts and data are kept as they are, a frame as its columns and rows, bytes as a
        file. ``description`` says what it is, ``metadata`` is data of your own. It gives the
        :class:`~sagents_nb.Artifact`. Raises :class:`~sagents_nb.errors.ConfigurationError` for
        what cannot be kept.

        >>> import sagents_nb as sa
        >>> def count(ctx: sa.TaskContext):
        ...     return f"Kept as number {ctx.emit_artifact('counts', [1, 2]).result().index}."
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(count)
        >>> agents.delegate("Count.", to="count").wait().text
        'Kept as number 0.'
        """
        artifact = Artifact(
            task_id=self.task.id,
            name=name,
            description=description,
            parts=parts_of_value(value),
            metadata=to_data(dict(metadata or {})),
        )
        return _pending(self.task.emit(artifact))

    @kinds.checked(fraction=_FRACTION)
    def progress(self, text: str, fraction: float | None = None) -> None:
        """Tell people in a ``text`` how far the task is; ``fraction`` is 0 to 1.

        >>> import sagents_nb as sa
        >>> def count(ctx: sa.TaskContext):
        ...     ctx.progress("Half of it.", 0.5)
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(count)
        >>> agents.delegate("Count.", to="count").wait().state
        'completed'
        """
        self.task.progress(text, fraction)

    @kinds.checked
    def output(self, text: str) -> None:
        """Tell a piece ``text`` of the answer before its end.

        >>> import sagents_nb as sa
        >>> def count(ctx: sa.TaskContext):
        ...     ctx.output("One, ")
        ...     return "One, two."
        >>> agents = sa.AgentRegistry()
        >>> _ = agents.add(count)
        >>> agents.delegate("Count.", to="count").wait().text
        'One, two.'
        """
        self.task.say(text)


def _pending(work: Coroutine[Any, Any, T]) -> Pending[T]:
    return Pending(runtime.submit(work))


class FunctionModel(ChatModel):
    """The ``function`` of an agent, working on one ``task``."""

    retries = 0
    tells_cost = True
    is_offline = True  # a test of a notebook runs it: its answer is no model's, to be recorded

    def __init__(self, function: Callable[..., Any], task: Task) -> None:
        self.name = getattr(function, "__name__", "function")
        self._function = function
        self._task = task
        self._arguments = arguments_of(function)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """What the function returns, as the answer."""
        given = {"task": self._task, "ctx": TaskContext(self._task), "text": _asked(request)}
        arguments = {name: given[kind] for name, kind in self._arguments.items()}
        try:
            if inspect.iscoroutinefunction(self._function):
                value = await self._function(**arguments)
            else:
                value = await workers.run(lambda: self._function(**arguments))
        except BaseException as error:
            pass_on(error)
            raise ModelError(said_by(error), kind="invalid_request") from error
        parts = () if value is None else parts_of_value(value)
        self._task.returned(parts)
        said = text_of_parts(parts) or "\n".join(_in_words(part) for part in parts) or "Done."
        yield Message.assistant(said, usage=NOTHING_USED, stop_reason="end_turn")


def _asked(request: ModelRequest) -> str:
    return next((m.text for m in reversed(request.messages) if m.role == "user"), "")


def _in_words(part: ContentPart) -> str:
    return msgspec.json.encode(to_data(getattr(part, "data", part))).decode()


def arguments_of(function: Callable[..., Any]) -> dict[str, str]:
    """Which of its parameters is the "task", the "ctx" or the "text" of the task.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a function that takes anything else.
    """
    name = getattr(function, "__name__", repr(function))
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except (TypeError, ValueError, NameError) as error:
        raise ConfigurationError(
            f"It cannot be read what {name} takes ({said_by(error)}); give it parameters of "
            "sa.Task and sa.TaskContext."
        ) from None
    found: dict[str, str] = {}
    for parameter in parameters.values():
        if parameter.annotation is Task or parameter.name == "task":
            kind = "task"
        elif parameter.annotation is TaskContext or parameter.name == "ctx":
            kind = "ctx"
        elif parameter.default is not inspect.Parameter.empty and "text" in found.values():
            continue  # for other callers of the function
        elif parameter.annotation in (str, inspect.Parameter.empty):
            kind = "text"
        elif parameter.default is not inspect.Parameter.empty:
            continue
        else:
            raise ConfigurationError(
                f"{name} takes {parameter.name}, which no task gives; a function as an agent takes "
                "a text, a sa.Task, a sa.TaskContext, or none of them."
            )
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY or parameter.kind in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        ):
            raise ConfigurationError(
                f"{name} takes {parameter.name} by its place alone; let it be named."
            )
        found[parameter.name] = kind
    return found


def parts_of_value(value: Any) -> tuple[ContentPart, ...]:
    """Anything as parts; raises ConfigurationError for what cannot be kept."""
    if isinstance(value, bytes):
        import base64

        return (FilePart(base64.b64encode(value).decode()),)
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return (JsonPart(_table(value)),)
    if isinstance(value, str):
        return (TextPart(value),)
    if isinstance(value, ContentPart):
        return (value,)
    if isinstance(value, list | tuple) and value and all(isinstance(v, ContentPart) for v in value):
        return tuple(value)
    if isinstance(value, Mapping | list | tuple | int | float | bool) or value is None:
        data = to_data(value)
        try:
            msgspec.json.encode(data)
        except (TypeError, ValueError, UnicodeEncodeError, RecursionError) as error:
            raise ConfigurationError(f"This cannot be kept as JSON: {error}.") from None
        return (JsonPart(data),)
    said = content_of(value)
    return (TextPart(said),) if isinstance(said, str) else tuple(said)


def _table(frame: Any) -> dict[str, Any]:
    """A frame's columns and rows, as JSON has them."""
    import json

    table: dict[str, Any] = json.loads(frame.to_json(orient="split", date_format="iso"))
    return {"columns": table["columns"], "data": table["data"]}
