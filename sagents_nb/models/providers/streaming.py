"""One call of a provider: send, read events, hand out deltas, and never trust a cut stream.

What differs between the providers is a :class:`Reader`, which knows neither sockets nor SDKs.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from ... import kinds
from ...errors import ConfigurationError, ModelError
from ...messages import Delta, Message, Part, ToolCall
from ...redaction import (
    Secrets,
    Unshown,
    looks_like_secret,
    redacted_options,
    secrets_of_call,
    without,
    without_login,
    without_secrets,
)
from ...runtime.foreign import TURN
from ..base import ChatModel, ModelRequest, of_one_server
from ..windows import known_window
from . import KEYS_GO, Sdk, clients
from .arguments import ParameterNames
from .clients import Secret
from .errors import Where, cut_stream, from_exception, not_a_stream, of_headers
from .history import Items, joined

Event = tuple[str, bytes]
"""An event's name, "" if it has none, and its data."""


_MARK = b"\xef\xbb\xbf"  # of UTF-8, where a body begins

LONGEST_EVENT = 64_000_000
"""Bytes of one event: an answer of a provider with its images, and no more than memory bears."""

LONGEST_BODY = 100_000_000
"""Bytes of all events of an answer: of 128,000 tokens they have some 50 million.

What is no piece of the answer is kept, too, logprobs and citations say, and whoever reads the
answer does not see it grow.
"""


class EventDecoder:
    r"""Splits a body, fed in chunks of any size, into events.

    >>> decoder = EventDecoder()
    >>> decoder.feed(b"event: ping\ndata: {")
    []
    >>> decoder.feed(b"}\n\n")
    [('ping', b'{}')]
    """

    __slots__ = ("_data", "_held", "_name", "_rest", "_size", "_started", "_total", "seen")

    def __init__(self) -> None:
        self._held = b""  # the beginning of a mark or of a line end, whose rest is to come
        self._rest: list[bytes] = []  # pieces of a line; joined once, when it ends
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0  # of the event so far
        self._total = 0
        self._started = False
        self.seen = False  # whether there was any event at all

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that ``chunk`` completes; raises ValueError beyond the limits."""
        if self._held:
            chunk, self._held = self._held + chunk, b""
        if not self._started:
            if len(chunk) < len(_MARK) and _MARK.startswith(chunk):
                self._held = chunk
                return []
            self._started = True
            chunk = chunk.removeprefix(_MARK)
        if b"\r" in chunk:
            if chunk.endswith(b"\r"):  # which may be half of a CRLF
                self._held, chunk = b"\r", chunk[:-1]
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        size = len(chunk)
        self._size += size
        self._total += size
        *lines, rest = chunk.split(b"\n")
        if lines and self._rest:
            self._rest.append(lines[0])
            lines[0], self._rest = b"".join(self._rest), []
        events: list[Event] = []
        name, data = self._name, self._data
        for line in lines:  # in place: a call for each line would be a third of the time
            if line.startswith(b"data: "):
                data.append(line[6:])
            elif not line:
                self._size = 0
                if data:
                    events.append((name, data[0] if len(data) == 1 else b"\n".join(data)))
                    data = []
                name = ""
            elif line.startswith(b"data:"):
                data.append(line[5:])
            elif line.startswith(b"event:"):
                name = line[6:].strip().decode("utf-8", "replace")
        self._name, self._data = name, data
        if events:
            self.seen = True
        if rest:
            self._rest.append(rest)
        if self._size > LONGEST_EVENT:
            raise ValueError(f"one event has over {LONGEST_EVENT:,} bytes")
        if self._total > LONGEST_BODY:
            raise ValueError(f"it has over {LONGEST_BODY:,} bytes")
        return events

    def end(self) -> list[Event]:
        """The last event of a body that ended cleanly but without a final empty line."""
        return self.feed(b"\n\n")


# Once the end was announced nothing is missing but, in chat completions, the usage. Reading
# on lets the connection be used again; a server that stalls here must not hold up the answer.
AFTER_END = 5.0
_DRAIN = 0.25

LONGEST_CALL = 3600.0
"""Seconds of one call in all, however lively the server is; `Budget(seconds=…)` may be less."""


class Reader(Protocol):
    """Turns the events of one answer into deltas and, at the end, a message.

    ``complete`` is True once the provider announced the end and why it stopped; ``ended``
    once nothing more is to come.
    """

    complete: bool
    ended: bool

    def feed(self, event: str, data: bytes) -> list[Delta]:
        """The deltas of one event; raises ModelError if the event reports an error."""

    def message(self) -> Message:
        """The whole message; only to be asked for when ``complete``."""


# What a model takes of all providers' beside its own arguments.
_OURS = {
    *("max_tokens", "thinking", "thinking_budgets", "tool_choice", "stop_sequences", "betas"),
    "response_format",
    *("extra_headers", "extra_query", "extra_body"),
}
# What others call an argument of ours.
_ALSO_CALLED = {
    "key": "api_key",
    "token": "api_key",
    "api_base": "base_url",
    "url": "base_url",
    "endpoint": "base_url",
    "default_headers": "headers",
    "request_timeout": "timeout",
    "max_retries": "retries",
    "num_retries": "retries",
}
# A number, or the httpx2.Timeout of those who want its parts.
_SECONDS = kinds.either(
    "a number of seconds over 0",
    kinds.number(0, over=True, finite=True),
    kinds.having("", "connect", "read", "write", "pool"),
)


def _refused(model: type[ProviderModel], name: str, known: frozenset[str]) -> ConfigurationError:
    arguments = inspect.signature(model.__init__).parameters.keys() - {"self", "parameters"}
    near = _ALSO_CALLED.get(name) or kinds.nearest(name, arguments | known | _OURS)
    hint = f"did you mean {near}=…? If not, " if near else ""
    return ConfigurationError(
        f"{model.__name__} knows no option {name!r}: {hint}put what its server takes all the same "
        f"into options={{{name!r}: …}}."
    )


class ProviderModel(ChatModel):
    """What the models of Anthropic and OpenAI share.

    ``headers`` go with each request. ``timeout`` is the seconds that are waited for the answer to
    begin and for each further event of it (by default the SDK's, ten minutes). ``retries`` is how
    often it is asked again when that may help: by default 4 times, and never with 0.
    ``context_window`` is for a model of which :mod:`sagents_nb.models.windows` does not know it.

    All else goes into the body of each request, and the options of a request before it. Besides
    the provider's own ``parameters``, which are passed through as they are (None leaves one out):
    ``max_tokens``; ``thinking``: "off", "minimal", "low", "medium", "high" or "xhigh", and
    ``thinking_budgets``, a dict of tokens by those words, for models that take a budget;
    ``response_format``, as chat completions have it and
    :meth:`~sagents_nb.ChatModel.complete` says;
    ``extra_headers``, ``extra_query`` and ``extra_body``. A name that is none of these raises
    :class:`~sagents_nb.errors.ConfigurationError`; ``options`` is a dict for what is newer than
    they are.
    """

    parameters: frozenset[str] = frozenset()
    """What the provider's API takes, as far as it is known."""
    tells_cost = False
    sdk: Sdk
    path: str
    plain_parameters = False
    """Whether the provider refuses names of parameters such as ``größe``."""

    @kinds.checked(
        timeout=kinds.or_none(_SECONDS, "for the SDK's own"),
        retries=kinds.or_none(kinds.whole(0), "for 4"),
    )
    def __init__(
        self,
        name: str,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        retries: int | None = None,
        context_window: int | None = None,
        options: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        if looks_like_secret(name):
            raise ConfigurationError(
                f"A key was given as the name of a model, and is not shown: name it, as in "
                f"{type(self).__name__}('NAME'); the key goes into {KEYS_GO}."
            )
        unknown = parameters.keys() - self.parameters - _OURS
        if unknown:
            raise _refused(type(self), min(unknown), self.parameters)
        for key in options or {}:
            argument = None if key in _OURS | {"timeout"} else of_one_server(key)
            if argument and argument != "options":
                raise ConfigurationError(
                    f"options={{{key!r}: …}} of {type(self).__name__} would be sent in the body of "
                    f"each request; it has {argument}=… for that."
                )
        options = {**(options or {}), **parameters}
        if headers:
            options["extra_headers"] = {**(options.get("extra_headers") or {}), **headers}
        if timeout is not None:
            options["timeout"] = timeout
        if retries is not None:
            self.retries = retries
        self.name = name
        self.context_window = known_window(name) if context_window is None else context_window
        self.provider = self.sdk.package
        self.base_url = base_url
        self.defers_tools = self.is_official and self.finds_tools(name)
        self.options: dict[str, Any] = options
        self.key = Secret(api_key)

    def identity(self) -> dict[str, Any]:
        """Its name, its own options, and the address it talks to unless that is the default.

        No secret is among them, nor what is behind the path of the address.
        """
        url = self.base_url or os.environ.get(self.sdk.url_variable)
        url = without_login(url) if url else None
        options = redacted_options(self.options, self.secrets({}))
        return {**super().identity(), "base_url": url, "options": options}

    @property
    def is_official(self) -> bool:
        """Whether it talks to the provider itself, and not to a server that is like it."""
        url = self.base_url or os.environ.get(self.sdk.url_variable) or self.sdk.default_url
        try:
            host = urlsplit(url).hostname or ""
        except ValueError:  # no address, as the client says once it is made
            return False
        return self._is_its_own(host)

    def _is_its_own(self, host: str) -> bool:
        return host.endswith(f"{self.sdk.package}.com")

    @staticmethod
    def finds_tools(name: str) -> bool:
        """Whether the provider's model of that ``name`` is sent deferred tools and finds them."""
        return False

    def preload(self) -> None:
        """Import the provider's SDK in the background, so that the first call is quick."""
        clients.preload(self.sdk)

    def body(self, request: ModelRequest, options: dict[str, Any]) -> dict[str, Any]:
        """The request body; ``options`` are what is left for the provider."""
        names = ParameterNames(request.tools if self.plain_parameters else ())
        body = self.encoded_body(request, options, names)
        return {k: v.plain() if isinstance(v, Items) else v for k, v in body.items()}

    def encoded_body(
        self, request: ModelRequest, options: dict[str, Any], names: ParameterNames
    ) -> dict[str, Any]:
        """:meth:`body` with its messages as :class:`Items`, which are JSON already.

        ``names`` are those that parameters of the request's tools have for the provider.
        """
        raise NotImplementedError

    def reader(self, where: Where) -> Reader:
        """A new reader for one answer; ``where`` says, for error messages, whom it comes from."""
        raise NotImplementedError

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta | str | Message]:
        """Call the provider; see :meth:`sagents_nb.models.ChatModel.stream`."""
        return _stream(self, request)

    def secrets(self, options: Mapping[str, Any]) -> set[str]:
        """See :meth:`sagents_nb.models.ChatModel.secrets`; its key, address and options too."""
        url = self.base_url or os.environ.get(self.sdk.url_variable)
        found = secrets_of_call(url, {**self.options, **options})
        return found | {self.key.value} if self.key.value else found

    def where(self, client: Any, options: Mapping[str, Any] = MappingProxyType({})) -> Where:
        """Whom we talk to with ``client``, for error messages; ``options`` are of the request."""
        secrets = self.secrets(options)
        for name in ("api_key", "auth_token"):
            if isinstance(key := getattr(client, name, None), str) and key:
                secrets.add(key)
        url = urlsplit(str(client.base_url))
        official = self._is_its_own(url.hostname or "")
        return Where(
            self.sdk.label if official else "the server",
            self.name,
            url.netloc.rpartition("@")[2] or "a base_url without https://",
            self.sdk.key_variable,
            Secrets(secrets),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without secrets: a copy in another process is given its own."""
        url = self.base_url and without_login(self.base_url)
        return {**self.__dict__, "base_url": url, "options": without_secrets(self.options)}

    def __copy__(self) -> ProviderModel:
        """With its secrets: it stays in this process."""
        made: ProviderModel = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


def merged(body: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """``body`` with the options, which come first; what is a list of ours is added to.

    So ``tools=[{"type": "web_search"}]`` stands beside the agent's own, and what ``include``
    asks for beside what we need.
    """
    added: dict[str, Any] = {}
    for name in ("tools", "include"):
        own, more = body.get(name, []), options.get(name)
        if isinstance(more, list | tuple):
            added[name] = [*own, *(item for item in more if item not in own)]
    if isinstance(more := options.get("stream_options"), dict):
        added["stream_options"] = {**body.get("stream_options", {}), **more}
    return {**body, **options, **added}


def request_options(options: dict[str, Any]) -> dict[str, Any]:
    """Take what is meant for the transport out of ``options``, as the SDKs' request options."""
    transport = Unshown()
    if (timeout := options.pop("timeout", None)) is not None:
        transport["timeout"] = timeout
    headers = Unshown({"accept-encoding": "identity"})
    headers |= options.pop("extra_headers", None) or {}
    if betas := options.pop("betas", None):
        headers["anthropic-beta"] = betas if isinstance(betas, str) else ",".join(betas)
    if headers:
        transport["headers"] = headers
    if query := options.pop("extra_query", None):
        transport["params"] = Unshown(query)
    return transport


async def _stream(
    model: ProviderModel, request: ModelRequest
) -> AsyncIterator[Delta | str | Message]:
    key = Secret(request.api_key) if request.api_key else model.key
    client = await clients.client(model.sdk, key, Secret(model.base_url))
    options = Unshown({**model.options, **request.options})
    where = model.where(client, options)
    names = ParameterNames(request.tools if model.plain_parameters else ())
    transport = request_options(options)
    patience = clients.take_reading_time(client, transport, LONGEST_CALL)
    patient = _Patience(patience)
    extra = Unshown(options.pop("extra_body", None) or {})
    if type(model).body is ProviderModel.body:
        body = Unshown(model.encoded_body(request, options, names))
    else:  # a subclass of somebody's, which may change any of it
        body = Unshown(model.body(request, options))
    body |= extra
    content = joined(body)
    reader = model.reader(where)
    told: dict[str, Any] = {}
    decoder = EventDecoder()
    response: Any = None
    chunks: AsyncGenerator[bytes, None] | None = None
    message: Message | None = None
    failure: ModelError | None = None
    events: list[Event] = []
    data = b""
    try:
        response, failure = await _open(client, model.path, content, transport, where, patience)
        del body, content, extra, options, transport
        if response is not None:
            told = of_headers(response.headers, where)
            chunks = clients.pieces(response.aiter_raw(), response.headers)
        has_come = True
        while chunks is not None:
            events = []
            try:
                if reader.complete:
                    async with asyncio.timeout(_DRAIN if reader.ended else AFTER_END):
                        events = decoder.feed(await anext(chunks))
                else:
                    if patient.begin(has_come):
                        await asyncio.sleep(0)
                    events = decoder.feed(await anext(chunks))
                    patient.rest()
                    has_come = bool(events)
            except asyncio.CancelledError:
                if not patient.gave_up():
                    raise
                failure = _broken(TimeoutError(), where)
                break
            except StopAsyncIteration:
                patient.end()
                chunks = None
                events = [event for event in decoder.end() if _whole(event[1])]
            except Exception as error:
                failure = None if reader.complete else _broken(error, where)
                break
            for name, data in events:
                if reader.ended:  # what comes behind the end belongs to no answer
                    break
                try:
                    deltas = reader.feed(name, data)
                except Exception as error:
                    chunks = None
                    failure = None if reader.complete else _unreadable(error, where)
                    break
                for delta in deltas:
                    yield delta
        if failure is None and not reader.complete:
            failure = _unfinished(response, decoder, where)
        if failure is None:
            message, failure = _finish(reader, where)
    finally:
        patient.end()
        if chunks is not None:
            await chunks.aclose()
        if response is not None:
            await response.aclose()
    # Here and not in an except block: what we raise must not carry the SDK's error, whose
    # request holds the key, as its context; nor should a frame of ours hold the response.
    del client, response
    events, data = [], b""
    if message is None:
        raise failure or _unreadable(None, where)
    yield names.received(_without_echoes(message, told, where.secrets))


def _without_echoes(message: Message, told: dict[str, Any], secrets: Secrets) -> Message:
    """``message`` and what was ``told`` of it, without what a server echoes of what it was sent.

    Its texts are the model's words; what is beside them goes into errors, exports and stores.
    """
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            id, name = without(part.id, secrets), without(part.name, secrets)
            if (id, name) != (part.id, part.name):
                part = replace(part, id=id, name=name)
        parts.append(part)
    said = _masked(message.metadata, secrets)
    return replace(message, parts=tuple(parts), metadata={**said, **told})


def _masked(said: Any, secrets: Secrets) -> Any:
    if isinstance(said, str):
        return without(said, secrets)
    if isinstance(said, dict):
        return {name: _masked(value, secrets) for name, value in said.items()}
    if isinstance(said, list):
        return [_masked(each, secrets) for each in said]
    return said


class _Patience:
    """How long the next event is waited for: a server may send comments and single bytes for ever.

    As ``asyncio.timeout``, with one timer for all waits of a call: setting one for each would
    cost a fifth of what a delta does.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._since = self._shared = self._loop.time()
        self._ends = self._since + LONGEST_CALL
        self._waiting: asyncio.Task[Any] | None = None
        self._cancelling: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, has_come: bool) -> bool:
        """Wait, as long as for any event if one has come; whether others should have a turn."""
        now = self._loop.time()  # not that of the event: whoever reads the answer takes its time
        if has_come:
            self._since = now
        self._waiting = asyncio.current_task()
        if self._timer is None:
            self._timer = self._loop.call_at(self._latest, self._look)
        if now - self._shared <= TURN:
            return False
        self._shared = now
        return True

    def rest(self) -> None:
        """What was waited for is there."""
        self._waiting = None

    def gave_up(self) -> bool:
        """Whether a cancellation came from here, as no event came for too long."""
        task, before = self._waiting, self._cancelling
        return task is not None and before is not None and task.uncancel() <= before

    def end(self) -> None:
        """Nothing is waited for any more."""
        self.rest()
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _latest(self) -> float:
        return min(self._since + self._seconds, self._ends)

    def _look(self) -> None:
        if self._loop.time() < self._latest:
            self._timer = self._loop.call_at(self._latest, self._look)
        elif self._waiting is not None:
            self._cancelling = self._waiting.cancelling()
            self._waiting.cancel()
        else:
            self._timer = self._loop.call_later(self._seconds, self._look)


async def _open(
    client: Any,
    path: str,
    content: bytes,
    transport: dict[str, Any],
    where: Where,
    patience: float,
) -> tuple[Any, ModelError | None]:
    try:
        async with asyncio.timeout(patience):
            return await clients.post(client, path, content, transport, where.secrets), None
    except Exception as error:
        return None, from_exception(error, where)


def _finish(reader: Reader, where: Where) -> tuple[Message | None, ModelError | None]:
    try:
        return reader.message(), None
    except Exception as error:
        return None, _unreadable(error, where)


def _unreadable(error: Exception | None, where: Where) -> ModelError:
    """An error that the provider reported, else that of an event in no shape we can read."""
    if isinstance(error, ModelError):
        return error.with_traceback(None)  # whose frames hold what the provider said
    return cut_stream(where, "an event could not be read")


def _whole(data: bytes) -> bool:
    """Whether this is a complete JSON object; no beginning of one is."""
    try:
        return isinstance(msgspec.json.decode(data), dict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return data == b"[DONE]"


def _broken(error: Exception, where: Where) -> ModelError:
    if isinstance(error, ValueError | zlib.error):  # of a body that nobody should read on
        return cut_stream(where, str(error))
    failure = from_exception(error, where)
    if failure.kind == "timeout":
        return failure
    return cut_stream(where, "the connection broke")


def _unfinished(response: Any, decoder: EventDecoder, where: Where) -> ModelError:
    kind = response.headers.get("content-type", "")
    if not decoder.seen and "event-stream" not in kind:
        return not_a_stream(where, kind, response.status_code)
    return cut_stream(where, "the connection closed before the end was announced")
