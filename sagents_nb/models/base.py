"""What a model is: something that streams deltas and ends with one complete message."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from copy import copy
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any

import msgspec

from .. import kinds
from ..errors import ConfigurationError, ModelError
from ..messages import Delta, Message
from ..redaction import KEY, secrets_of_call, unkeyed
from ..tools import ToolSpec

if TYPE_CHECKING:
    from .completion import Completion


class ModelRequest(msgspec.Struct, frozen=True):
    """One call of a model: the history, the system prompt, the tools and the options.

    ``messages`` holds no system message: that is ``system``. ``tools`` are those it may call, and
    ``options`` such as ``temperature``. ``model`` is the model's name, for records; a hook that
    wants another one asked puts its spec there.
    ``api_key`` is used instead of the model's own key; no repr shows it. ``session_id`` says
    whose conversation it is.

    >>> from sagents_nb import Agent, ScriptedModel
    >>> model = ScriptedModel(["Hello!"])
    >>> _ = Agent(model, "You are brief.", defaults=False).run("hi")
    >>> request = model.requests[0]
    >>> request.system, [message.text for message in request.messages]
    ('You are brief.', ['hi'])
    """

    messages: Sequence[Message]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    options: dict[str, Any] = {}
    model: str = ""
    api_key: str | None = None
    session_id: str = ""

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"ModelRequest({self.model!r}, {len(self.messages)} messages)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("model", self.model), ("messages", self.messages)]


class RetryNotice(msgspec.Struct, frozen=True):
    """A model failed and is asked again, or another one is: yielded so that people see it.

    ``attempt`` is the number of the attempt that comes, so 2 or more; ``wait`` the seconds
    until then; ``reason`` one sentence. ``model`` is the name of the model that is asked
    from now on, "" if it is the same one.
    """

    attempt: int
    wait: float
    reason: str
    model: str = ""


StreamItem = Delta | str | Message | RetryNotice
Vectors = Sequence[Sequence[float]]

_ON_TEXT = kinds.or_none(kinds.Kind("a function of a text", callable))
_TOOL_CHOICE = kinds.of(str | Mapping[str, Any] | None)
_TEXTS = kinds.Kind(
    "a list of texts",
    lambda value: kinds.LIST.fits(value) and all(issubclass(type(text), str) for text in value),
)
_DIMENSIONS = kinds.or_none(kinds.whole(1), "for all that the model gives")


class ChatModel:
    """Base of all models. Subclasses implement :meth:`stream`.

    ``chosen_because`` says why a default model is this one; it is "" for a model that
    somebody named.

    >>> from sagents_nb import Agent, ChatModel, Message
    >>> class Parrot(ChatModel):
    ...     name = "parrot"
    ...     async def stream(self, request):
    ...         yield Message.assistant(request.messages[-1].text)
    >>> Agent(Parrot()).run("Hello!").text
    'Hello!'
    """

    name: str = ""
    provider: str = ""
    """Whose model it is, as traces say it; "" for one that is nobody's or only asks others."""
    chosen_because: str = ""
    asks_again: bool = False
    """Whether it already tries again by itself when that may help."""
    retries: int = 4
    """How often an agent asks it again when that may help; 0 is never. You may set it."""
    reads_images: bool = False
    """Whether it is worth handing it images, as the tool read_file then does."""
    context_window: int | None = None
    """How many tokens it takes at most, with its answer; None where that is not known.

    That of a wrapped model counts if it says none itself. You may set it.
    """
    defers_tools: bool = False
    """Whether its provider finds tools with ``defer_loading`` when they are needed.

    You may set it, for a server that does so as the provider's own.
    """
    tells_cost: bool | None = None
    """Whether its answers may say what they cost; None is as those that it asks."""
    is_offline: bool = False
    """Whether it needs neither key nor network.

    Where models are recorded or replayed, as in the test of a notebook, it is asked all the same.
    """

    def identity(self) -> dict[str, Any]:
        """What beside the request decides the answers, as JSON-ready data.

        Recorded answers are found by it. Override it for a model with settings of its own,
        under names other than ``kind`` and ``name``; ``options`` are merged with the
        request's.
        """
        return {"kind": type(self).__qualname__, "name": self.name}

    def secrets(self, options: Mapping[str, Any]) -> set[str]:
        """What a call with these ``options`` of a request sends that nobody else must see.

        It is masked in errors and recordings. Override it for a model with secrets of its own.
        """
        return secrets_of_call(None, options)

    def asked_once(self) -> ChatModel:
        """The same for somebody who tries again instead of it; see :attr:`asks_again`."""
        return self

    def preload(self) -> None:
        """Get ready in the background for the first call; does nothing where nothing helps."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Answer ``request``: yield deltas (a str is one) and last of all one complete Message.

        The message carries usage and a stop reason. A :class:`RetryNotice` may come in
        between: it becomes the event "model_retry" and is no part of the answer. Raise
        :class:`~sagents_nb.errors.ModelError` for anything that went wrong; the base itself raises
        NotImplementedError. Cancellation arrives as ``asyncio.CancelledError`` or by closing the
        generator.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement stream(request).")

    async def vectors(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        """A vector of ``dimensions`` for each of ``texts``, which one request can hold.

        Override it for a model that gives embeddings; :meth:`embed` asks for them. The base itself
        raises :class:`~sagents_nb.errors.ConfigurationError`.
        """
        raise ConfigurationError(
            f"{self!r} gives no embeddings; name a model that does, such as "
            "'openai:text-embedding-3-small'."
        )

    @kinds.checked(
        prompt=kinds.ANYTHING,
        tools=kinds.LIST,
        tool_choice=_TOOL_CHOICE,
        response_format=kinds.ANYTHING,
        on_text=_ON_TEXT,
    )
    def complete(
        self,
        prompt: Any,
        *,
        system: str = "",
        tools: Sequence[Any] = (),
        tool_choice: Any = None,
        response_format: Any = None,
        on_text: Callable[[str], Any] | None = None,
        **options: Any,
    ) -> Completion:
        """One answer to ``prompt``, outside of any conversation; it is waited for.

        ``prompt`` is text, other content of a message, or a list of messages; ``system`` says what
        holds for all of it. ``response_format``
        is a type, as ``output_type`` of an agent has it, or says with a dict what chat completions
        have there: JSON, or JSON of a schema; the answer has that as its ``value``. ``tools``
        are told of and not run; ``tool_choice`` is "auto", "none", "required" or what the provider
        takes. ``on_text`` is called with each piece of the text, and what it raises ends the answer
        and is raised. ``options`` are those of a request, such as ``temperature``.

        It is asked again as an agent asks it. Raises :class:`~sagents_nb.errors.ModelError` if it
        fails, for an answer that is cut off, refused or not of the ``response_format``, and where
        it does not do as ``tool_choice`` says; :class:`~sagents_nb.errors.ConfigurationError` for
        arguments that make no sense, such as a schema that is none; and
        :class:`~sagents_nb.errors.Busy` in an async tool or hook.

        >>> from dataclasses import dataclass
        >>> from sagents_nb import ScriptedModel
        >>> ScriptedModel(["Hello!"]).complete("Say hello.").text
        'Hello!'
        >>> @dataclass
        ... class Tide:
        ...     port: str
        ...     metres: float
        >>> model = ScriptedModel(['{"port": "Bergen", "metres": 1.4}'])
        >>> model.complete("How high was it?", response_format=Tide).value
        Tide(port='Bergen', metres=1.4)
        """
        from .completion import asked_for, completed
        from .waiting import wait_for

        asked = asked_for(self, prompt, system, tools, tool_choice, response_format, options)
        instead = "use 'await model.acomplete(…)' there"
        told = on_text is not None
        return wait_for(
            *("Waiting for a model", instead),
            lambda push: completed(self, asked, push if told else None),
            on_text,
        )

    @kinds.checked(
        prompt=kinds.ANYTHING,
        tools=kinds.LIST,
        tool_choice=_TOOL_CHOICE,
        response_format=kinds.ANYTHING,
        on_text=_ON_TEXT,
    )
    async def acomplete(
        self,
        prompt: Any,
        *,
        system: str = "",
        tools: Sequence[Any] = (),
        tool_choice: Any = None,
        response_format: Any = None,
        on_text: Callable[[str], Any] | None = None,
        **options: Any,
    ) -> Completion:
        """:meth:`complete`, to await on any loop; ``on_text`` may be async.

        ``prompt``, ``system``, ``tools``, ``tool_choice``, ``response_format`` and the ``options``
        are those of :meth:`complete`. Cancelling the await ends the answer. Raises what
        :meth:`complete` does.

        >>> import asyncio
        >>> from sagents_nb import ScriptedModel
        >>> asyncio.run(ScriptedModel(["Hello!"]).acomplete("Say hello.")).text
        'Hello!'
        """
        from .completion import asked_for, completed
        from .waiting import awaited

        asked = asked_for(self, prompt, system, tools, tool_choice, response_format, options)
        told = on_text is not None
        return await awaited(lambda push: completed(self, asked, push if told else None), on_text)

    @kinds.checked(texts=_TEXTS, dimensions=_DIMENSIONS)
    def embed(
        self, texts: Sequence[str], *, dimensions: int | None = None
    ) -> list[Sequence[float]]:
        """A vector of 32-bit floats for each of ``texts``, all of one length; it is waited for.

        ``dimensions`` is that length, for models that give shorter ones. The same text is sent
        once, and many in portions; it is asked again as an agent asks it. A model that gives
        none raises :class:`~sagents_nb.errors.ConfigurationError`, one that fails
        :class:`~sagents_nb.errors.ModelError`, and an async tool or hook
        :class:`~sagents_nb.errors.Busy`.

        >>> from sagents_nb import OpenAIModel
        >>> OpenAIModel("text-embedding-3-small").embed([])
        []
        """
        from .embedding import embedded
        from .waiting import wait_for

        instead = "use 'await model.aembed(…)' there"
        return wait_for(
            *("Waiting for a model", instead),
            lambda push: embedded(self, kinds.plain(list(texts)), dimensions),
        )

    @kinds.checked(texts=_TEXTS, dimensions=_DIMENSIONS)
    async def aembed(
        self, texts: Sequence[str], *, dimensions: int | None = None
    ) -> list[Sequence[float]]:
        """:meth:`embed` of ``texts`` in ``dimensions``, to await on any loop.

        Raises what :meth:`embed` does.

        >>> import asyncio
        >>> from sagents_nb import OpenAIModel
        >>> asyncio.run(OpenAIModel("text-embedding-3-small").aembed([]))
        []
        """
        from .embedding import embedded
        from .waiting import awaited

        return await awaited(lambda push: embedded(self, list(texts), dimensions))

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ModelAround(ChatModel):
    """Base of a model that asks another one, its ``inner``, and goes by that one's name.

    What is ``asked`` is the model itself, or for who retries instead that without retries.
    """

    def __init__(self, inner: ChatModel) -> None:
        self.inner = inner
        self.asked = inner
        self.name = inner.name
        self.chosen_because = inner.chosen_because
        self.reads_images = inner.reads_images

    @kinds.safe_repr
    def __repr__(self) -> str:
        return repr(self.inner)  # whose errors people read

    def asked_once(self) -> ChatModel:
        """The same around the model without its retries."""
        once = copy(self)  # which shares its limits, prices and recordings
        once.asked = self.inner.asked_once()
        return once

    def identity(self) -> dict[str, Any]:
        """As the model itself."""
        return self.inner.identity()

    def preload(self) -> None:
        """As the model itself."""
        self.inner.preload()

    async def vectors(self, texts: Sequence[str], dimensions: int | None) -> Vectors:
        """As the model itself."""
        return await self.asked.vectors(texts, dimensions)


_OF_ONE_SERVER = {
    name: argument
    for argument, others in {
        "api_key": "apikey x_api_key api_token token auth_token access_token bearer bearer_token"
        " authorization proxy_authorization auth credential credentials password passwd secret"
        " api_secret client_secret webhook_secret secret_key access_key azure_ad_token",
        "base_url": "api_base",
        "headers": "extra_headers default_headers http_headers cookie cookies organization project",
        "extra_query": "default_query query",
        "timeout": "request_timeout",
        "retries": "max_retries num_retries",
        "options": "proxy proxies http_proxy https_proxy client http_client",
    }.items()
    for name in (argument, *others.split())
}
del _OF_ONE_SERVER["options"]  # which holds what has no argument of its own
# Of these the names that mean the same however deep they stand: a search has a "query", and what
# is kept of a call has the "project" it was for.
_DEEP = {name for name, argument in _OF_ONE_SERVER.items() if argument in ("api_key", "headers")}
_DEEP |= {"extra_query", "default_query"}
_DEEP -= {"organization", "project"}


def of_one_server(name: str) -> str | None:
    """The argument of a model that an option of that name is, if it is meant for one server.

    >>> of_one_server("X-API-Key"), of_one_server("max_tokens")
    ('api_key', None)
    """
    return _OF_ONE_SERVER.get(_plain(name))


def refuse_of_one_server(options: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if the ``options`` of all requests have what is of one server.

    Fallbacks are given the same options, and a provider would find them in the body.
    """
    for given, argument in _parted(options)[1]:
        raise ConfigurationError(
            f"options={{{given}}} would go to every model that is asked, fallbacks too; "
            f"give it to the one it is for, as in OpenAIChatModel('NAME', {argument}=…)."
        )


def for_another_server(options: Mapping[str, Any]) -> dict[str, Any]:
    """The ``options`` of a request without what only the server it was meant for may see.

    At any depth that is what has the name of a key, or is one; a schema's names are its own.

    >>> for_another_server({"api_key": "k-1", "seed": 1, "extra_body": {"token": "t", "top_k": 5}})
    {'seed': 1, 'extra_body': {'top_k': 5}}
    """
    times = {name: value for name, value in options.items() if of_one_server(name) == "timeout"}
    return {**times, **_parted(options)[0]}


def _parted(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What any server may see, and what has a name: how it was given, and the argument it is.

    What has another name and is a key by its looks is in neither.
    """
    left: dict[str, Any] = {}
    rest: list[tuple[str, str]] = []
    for name, value in options.items():
        if argument := of_one_server(name):
            rest.append((f"{name!r}: …", argument))
            continue
        is_body = name == "extra_body" and isinstance(value, Mapping)
        within: list[str] = []
        if is_body:
            within = [f"{n!r}: …" for n in value if of_one_server(n)]
            value = {n: v for n, v in value.items() if not of_one_server(n)}
        if not _is_secret(value):
            left[name] = _without_secrets(value, within)
        rest += [
            (f"{name!r}: {{{inner}}}", "extra_body" if is_body else "options") for inner in within
        ]
    return left, rest


# What stands below these in a schema has names of its own,
_NAMED = {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
# and these show what its values may be, or name its properties.
_SAMPLES = {"default", "const", "enum", "examples", "input_examples"}
_SAMPLES |= {"discriminator", "dependentRequired"}
_SCHEMA = {"properties", "oneOf", "anyOf", "allOf", "$ref", "input_schema"}
_TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}
_DEEPEST = 100  # as no schema is, and as far as a walk by calls should go


def _without_secrets(value: Any, found: list[str], depth: int = 0, named: bool = False) -> Any:
    """``value`` without what is for one server alone; ``found`` are names of it, as given."""
    if isinstance(value, list | tuple) and depth < _DEEPEST:
        return [_without_secrets(each, found, depth + 1) for each in value if not _is_secret(each)]
    if not isinstance(value, Mapping) or depth == _DEEPEST:
        return value
    left: dict[str, Any] = {}
    for name, inner in value.items():
        is_schema = named and isinstance(inner, Mapping | bool)
        if not is_schema and _plain(name) in _DEEP and _is_told(inner):
            found.append(f"{name!r}: …")
        elif _is_secret(inner):
            continue
        elif not named and name in _SAMPLES and _describes(value):
            left[name] = inner
        else:
            within = not is_schema and name in _NAMED
            left[name] = _without_secrets(inner, found, depth + 1, within)
    return left


def _describes(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    known = kind in _TYPES if isinstance(kind, str) else isinstance(kind, list)
    return known or not _SCHEMA.isdisjoint(value)


def _is_told(value: Any) -> bool:
    """Whether it says anything: a number or a yes is no key."""
    return isinstance(value, str | bytes | Mapping | list | tuple) and len(value) > 0


def _is_secret(value: Any) -> bool:
    """Whether it is a key as a whole, or an address with one."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        return False
    shown = unkeyed(value)
    is_address = _ADDRESS.fullmatch(value) is not None
    return shown == KEY or (is_address and (shown != value or bool(secrets_of_call(value, {}))))


_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_LONGEST = 10_000  # characters of one


def _plain(name: Any) -> str:
    return str(name).lower().replace("-", "_")


def tells_cost(model: ChatModel) -> bool:
    """Whether the answers of ``model`` may say what they cost (``Usage.cost_usd``)."""
    if model.tells_cost is not None:
        return model.tells_cost
    return all(tells_cost(each) for each in asked_by(model))


def defers_tools(model: ChatModel) -> bool:
    """Whether ``model``, or each that it asks, has its provider find deferred tools."""
    inner = asked_by(model)
    return all(map(defers_tools, inner)) if inner else model.defers_tools


def context_window(model: ChatModel) -> int | None:
    """The context window of ``model``, or of the first that it asks."""
    if model.context_window is not None:
        return model.context_window
    return next(map(context_window, asked_by(model)), None)


def asked_by(model: ChatModel) -> list[ChatModel]:
    """The models that ``model`` asks: its ``inner`` one or its ``models``, if it has any."""
    inner = (getattr(model, "inner", None), *getattr(model, "models", ()))
    return [each for each in inner if isinstance(each, ChatModel)]


def stream_of(model: ChatModel, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
    """What :meth:`ChatModel.stream` gives, to iterate and to close.

    Raises :class:`~sagents_nb.errors.ModelError` for a method that is no async generator.
    """
    stream: Any = model.stream(request)
    if type(stream) is AsyncGeneratorType:  # as nearly always
        return stream
    if not hasattr(stream, "__aiter__") or not hasattr(stream, "aclose"):
        if inspect.iscoroutine(stream):
            stream.close()
        raise ModelError(
            f"{model!r}.stream(request) gave a {type(stream).__name__}; write it as 'async def' "
            "with 'yield': pieces of text, and last of all one Message."
        )
    return stream  # type: ignore[no-any-return]
