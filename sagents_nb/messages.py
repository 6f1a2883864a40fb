"""Messages and their parts: plain immutable data.

A message is a role and an ordered sequence of parts. Tool calls and tool results are parts
too, because providers care about the order of thinking, text and calls within one turn and
want thinking back exactly as it was.
"""

from __future__ import annotations

import base64
import builtins
import math
import re
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from numbers import Real
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal, TypeGuard, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from . import kinds
from .errors import ConfigurationError
from .serialization import encoded, read_as, to_data
from .text import logger_of

_log = logger_of("sagents_nb.models")

StopReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "refusal",
    "pause_turn",
    "context_window",
    "error",
    "aborted",
]
"""Why a model stopped. Only "tool_use" lets tools run; "error" and "aborted" are ours."""


CUT_SHORT = {
    "max_tokens": "The answer was cut: it reached the limit of output tokens.",
    "context_window": "The answer was cut: the conversation fills the model's context.",
    "refusal": "The model declined to answer.",
}
"""What people are told of an answer that is none, or not the whole one, by its stop reason."""


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """``text`` that a person or a model wrote.

    >>> from sagents_nb import Message, TextPart
    >>> Message.user("Hello").parts == (TextPart("Hello"),)
    True
    """

    text: str


class ThinkingPart(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True):
    """A model's reasoning, its ``text``.

    ``signature`` and ``raw`` go back to ``provider`` unchanged.

    >>> from sagents_nb import Message, TextPart, ThinkingPart
    >>> answer = Message("assistant", [ThinkingPart("It is a greeting."), TextPart("Hello!")])
    >>> answer.thinking, answer.text
    ('It is a greeting.', 'Hello!')
    """

    text: str
    signature: str | None = None
    provider: str | None = None
    raw: dict[str, Any] | None = None


class ImagePart(
    msgspec.Struct, metaclass=kinds.Record, frozen=True, tag="image", omit_defaults=True
):
    """An image: either base64 ``data`` with its ``mime_type``, or a ``url``.

    :meth:`of` makes one of a file, bytes or a figure.

    >>> from sagents_nb import ImagePart, Message
    >>> message = Message.user(["What is this?", ImagePart(url="https://example.org/cat.png")])
    >>> message.text, len(message.parts)
    ('What is this?', 2)
    """

    data: str | None = None
    mime_type: str = "image/png"
    url: str | None = None

    @property
    def bytes(self) -> builtins.bytes:
        r"""The image itself, as a file holds it.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for one of which only the ``url`` is
        known, and for ``data`` that are no base64 text.

        >>> ImagePart("iVBORw0KGgo=").bytes
        b'\x89PNG\r\n\x1a\n'
        """
        return _decoded(self, "image")

    @classmethod
    def of(cls, value: Any) -> ImagePart:
        """An image of a path, its bytes, a PIL image, a matplotlib figure or a web address.

        A ``value`` of text is an address if it begins with "http://", "https://" or "data:", else
        a path. Raises :class:`~sagents_nb.errors.ConfigurationError` for what is no PNG, JPEG, GIF
        or WebP image, and for what cannot be read.

        >>> ImagePart.of("https://example.com/plot.png").url
        'https://example.com/plot.png'
        """
        if isinstance(value, str):
            value = kinds.plain(value)
            if value.startswith(("http://", "https://", "data:")):
                return _from_url(value, cls)
            value = Path(value)
        if isinstance(value, PurePath) and not kinds.PATH.fits(value):
            said = f"{kinds.PATH.what}; not {kinds.shown_path(value)}"
            raise ConfigurationError(f"ImagePart.of(…) takes {said}.")
        if isinstance(value, ImagePart):
            return value
        image = image_of(value)
        if image is None:
            raise ConfigurationError(
                "ImagePart.of(…) takes the path of a PNG, JPEG, GIF or WebP image, its bytes, a "
                "PIL image, a matplotlib figure or a web address, and this is "
                f"{_shown(value)} that is none."
            )
        return image


class FilePart(msgspec.Struct, metaclass=kinds.Record, frozen=True, tag="file", omit_defaults=True):
    """A document: base64 ``data`` with its ``mime_type`` and a ``name``, or a ``url``.

    >>> import base64
    >>> from sagents_nb import FilePart, Message
    >>> data = base64.b64encode(b"%PDF-1.7").decode()
    >>> message = Message.user(["Sum it up.", FilePart(data, "application/pdf", "report.pdf")])
    >>> message.parts[1].name
    'report.pdf'
    """

    data: str | None = None
    mime_type: str = "application/octet-stream"
    name: str | None = None
    url: str | None = None

    @property
    def bytes(self) -> builtins.bytes:
        """The document itself.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for one of which only the ``url`` is
        known, and for ``data`` that are no base64 text.

        >>> FilePart("JVBERi0xLjc=", "application/pdf").bytes
        b'%PDF-1.7'
        """
        return _decoded(self, "file")


def _decoded(part: ImagePart | FilePart, what: str) -> bytes:
    data = part.data
    if data is None:
        raise ConfigurationError(f"The bytes of this {what} are not here; fetch them from its url.")
    if not isinstance(data, str):
        raise _no_base64(part)
    try:
        return base64.b64decode("".join(data.split()), validate=True)  # some wrap its lines
    except ValueError as error:
        raise ConfigurationError(
            f"The data of this {what} are no base64 ({error}); make them with base64.b64encode(…)."
        ) from None


class JsonPart(msgspec.Struct, frozen=True, tag="json"):
    """Structured ``data``; a model that only reads text is given it as JSON text.

    >>> from sagents_nb import JsonPart, ToolResult
    >>> ToolResult("c1", "load", [JsonPart({"rows": 3})]).text
    '{"rows":3}'
    """

    data: Any


class ProviderPart(msgspec.Struct, frozen=True, tag="provider"):
    """A block only ``provider`` understands, whose ``data`` are kept and sent back verbatim.

    >>> from sagents_nb import Message, ProviderPart
    >>> block = ProviderPart("anthropic", {"type": "redacted_thinking", "data": "…"})
    >>> Message("assistant", [block]).text
    ''
    """

    provider: str
    data: dict[str, Any]


ContentPart = TextPart | ThinkingPart | ImagePart | FilePart | JsonPart | ProviderPart


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """A model's wish to run the tool ``name`` with these ``arguments``; ``id`` is that of the call.

    ``error`` says why the arguments could not be read (cut stream, bad JSON); such a call
    is answered with that error and never run.

    >>> from sagents_nb import Agent, ScriptedModel, ToolCall
    >>> def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> model = ScriptedModel([ToolCall("c1", "add", {"a": 2, "b": 3}), "It is 5."])
    >>> Agent(model, tools=[add]).run("What is 2 + 3?").messages[1].tool_calls[0].arguments
    {'a': 2, 'b': 3}
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    error: str | None = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", omit_defaults=True):
    """What the call ``tool_call_id`` of the tool ``name`` came to.

    ``content`` is text or parts for the model. ``is_error`` says that it failed, and
    ``is_interrupt`` that it stands for a question that waits for people. ``metadata`` are kept with
    it, and no model sees them.

    >>> from sagents_nb import Agent, ScriptedModel, ToolCall
    >>> def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> model = ScriptedModel([ToolCall("c1", "add", {"a": 2, "b": 3}), "It is 5."])
    >>> result = Agent(model, tools=[add]).run("What is 2 + 3?").messages[2].tool_results[0]
    >>> result.name, result.text, result.status
    ('add', '5', 'completed')
    """

    tool_call_id: str
    name: str
    content: str | list[ContentPart]
    is_error: bool = False
    is_interrupt: bool = False
    metadata: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The text of the content, parts joined by newlines; JSON parts as JSON text."""
        return self.content if isinstance(self.content, str) else parts_text(self.content)

    @property
    def status(self) -> str:
        """How the call has ended, as :class:`~sagents_nb.events.ToolExecutionEnd` says it.

        "interrupted" is a question that waits for people, which is no result yet.
        """
        if self.is_interrupt:
            return "interrupted"
        if (not_run := self.metadata.get(NOT_RUN)) in ("rejected", "skipped", "cancelled"):
            return str(not_run)
        return "failed" if self.is_error else "completed"


Part = ContentPart | ToolCall | ToolResult
AnyPart = TypeVar("AnyPart", ImagePart, FilePart)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens and money of one or more model calls.

    ``input_tokens`` counts only what was neither read from the provider's cache
    (``cache_read_tokens``) nor written to it (``cache_write_tokens``), so the three input figures
    add up and can be priced apart. ``output_tokens`` are those of the answer. ``cost_usd`` is None
    where no price is known.

    >>> Usage(3, 4) + Usage(1, 1, cost_usd=0.5)
    Usage(input_tokens=4, output_tokens=5, cache_read_tokens=0, cache_write_tokens=0, cost_usd=0.5)
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        if self.cost_usd is None and other.cost_usd is None:
            cost = None
        else:
            cost = (self.cost_usd or 0.0) + (other.cost_usd or 0.0)
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            cost,
        )

    @property
    def total_tokens(self) -> int:
        """All tokens, cached ones included."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )


# More tokens, or dollars, than that are of no answer; whoever counts in floats would round them.
_MOST_USED = 2**53
doubted: set[str] = set()
"""The models of which it was said in the log that they name what is no number."""


def told_usage(usage: Any, model: str = "") -> Usage | None:
    """``usage`` of an answer of ``model``, or None if it is none; what is no number is not told.

    Servers, and models of other people's making, may say anything. What is a number from 0 is
    believed of tokens and dollars; one beyond reason counts as 2**53, so that it uses a budget up.
    All else counts as if nothing had been said of it, so that a budget is never paid back. The log
    says so once for each model.

    >>> told_usage(Usage(-5, 7, cost_usd=math.nan), "broken") == Usage(0, 7)
    True
    >>> told_usage(Usage(10**16), "broken") == Usage(2**53)
    True
    """
    if type(usage) is not Usage and not isinstance(usage, Usage):
        _doubt(model, "usage")
        return None
    cost = usage.cost_usd
    if cost is None or (type(cost) is float and 0 <= cost <= _MOST_USED):
        fresh, read = usage.input_tokens, usage.cache_read_tokens
        written, given = usage.cache_write_tokens, usage.output_tokens
        if type(fresh) is type(read) is type(written) is type(given) is int:
            least_is_0 = fresh >= 0 and read >= 0 and written >= 0 and given >= 0
            if least_is_0 and fresh + read + written + given <= _MOST_USED:
                return usage  # as nearly always
    told: dict[str, Any] = {}
    for name in usage.__struct_fields__:
        value: Any = getattr(usage, name)
        if _is_number(value) and value >= 0:
            if value > _MOST_USED:
                _doubt(model, name, "so much as could not be: it counts as 2**53")
                value = _MOST_USED
            told[name] = float(value) if name == "cost_usd" else math.ceil(value)
        elif value is not None:
            _doubt(model, name)
    return Usage(**told)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _doubt(
    model: str, what: str, why: str = "not what could be, from 0 on: it counts as not told"
) -> None:
    if model not in doubted:
        doubted.add(model)
        who = f"The model {model!r}" if model else "A model"
        _log.warning("%s gave an answer whose %s is %s.", who, what, why)


Content = str | Part | Mapping[str, Any] | Iterable[Any]
"""Text, a part, or several of: texts, parts, a provider's parts as dicts, images.

An image is a PIL image, a matplotlib figure, the bytes or the :class:`pathlib.Path` of one. A text
is always text, also one that looks like a path.
"""


def as_parts(content: Content) -> tuple[Part, ...]:
    """``content`` as a tuple of parts; "" is no part at all.

    Raises :class:`~sagents_nb.errors.ConfigurationError` that names what is no part.

    >>> as_parts(["Look:", {"type": "image_url", "image_url": {"url": "https://x.no/a.png"}}])[1].url
    'https://x.no/a.png'
    """
    if isinstance(content, str):
        text: str = kinds.plain(content)
        return (TextPart(text),) if text else ()
    if _is_part(content):
        return (_whole_part(content),)
    if (part := _as_part(content)) is not None:
        return (part,)
    no_list = isinstance(content, Mapping | bytes) or kinds.is_array(content)
    if no_list or not isinstance(content, Iterable):
        raise ConfigurationError(f"A message's content is {_PARTS}, not {_shown(content)}.")
    parts: list[Part] = []
    for number, item in enumerate(content, start=1):
        part = _whole_part(item) if _is_part(item) else _as_part(item)
        if part is None:
            raise ConfigurationError(
                f"Part {number} of a message is {_shown(item)}; it has to be {_PARTS}."
            )
        if part != TextPart(""):
            parts.append(part)
    return tuple(parts)


_PARTS = (
    "text, a part such as ImagePart(…), a provider's part as a dict, or an image (PIL, a "
    "matplotlib figure, its bytes or its Path)"
)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and "type" in value:
        return f"a dict of type {value['type']!r}"
    return "None" if value is None else f"of type {type(value).__name__}"


# What base64 begins with: a path or a text in its place would be nonsense to every provider.
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\s-]*")


def _whole_part(part: Part) -> Part:
    """The part; raises ConfigurationError for an image or a file whose data is no base64."""
    data: Any = part.data if isinstance(part, ImagePart | FilePart) else None
    if data is not None and not (isinstance(data, str) and _BASE64.fullmatch(data[:256])):
        raise _no_base64(part)
    return part


def _no_base64(part: Any) -> ConfigurationError:
    data = part.data
    given = repr(data[:40]) if isinstance(data, str) else f"of type {type(data).__name__}"
    way = "ImagePart.of(…)" if isinstance(part, ImagePart) else "base64.b64encode(…).decode()"
    return ConfigurationError(
        f"{type(part).__name__}(data=…) is base64 text, and this is {given}; use {way}."
    )


def _is_part(value: Any) -> TypeGuard[Part]:
    return isinstance(value, Part)


def _as_part(value: Any) -> Part | None:
    """What is said in another way as a part; None for what is none."""
    if isinstance(value, str):
        return TextPart(kinds.plain(value))
    if isinstance(value, Mapping):
        return _provider_part(value)
    return image_of(value)


def image_of(value: Any) -> ImagePart | None:
    """A PIL image, a matplotlib figure or axes, the bytes or Path of an image; None for another.

    Raises :class:`~sagents_nb.errors.ConfigurationError` for a path that is no image's.
    """
    if isinstance(value, Path):
        try:
            data = value.read_bytes()
        except OSError as error:
            name = str(value)
            shown = name if name.isprintable() else repr(name)
            why = error.strerror or type(error).__name__
            raise ConfigurationError(f"The image {shown} cannot be read ({why}).") from error
        if (image := image_of(data)) is None:
            raise ConfigurationError(
                f"{value} is no PNG, JPEG, GIF or WebP image; read a text file with .read_text()."
            )
        return image
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        for mime_type, begins in _IMAGES:
            if begins.match(data):
                return ImagePart(base64.b64encode(data).decode(), mime_type)
        return None
    library = _library(value)
    if library == "PIL" and hasattr(value, "save"):
        image = (
            value if value.mode in ("1", "L", "LA", "P", "RGB", "RGBA") else value.convert("RGB")
        )
        return _drawn(lambda file: image.save(file, format="PNG"))
    if (figure := figure_of(value)) is not None:
        return _drawn(lambda file: figure.savefig(file, format="png", bbox_inches="tight"))
    return None


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def figure_of(value: Any) -> Any:
    """A figure of matplotlib, or that of axes, of which pandas' ``plot`` gives one or an array."""
    if _library(value) == "numpy" and value.size and value.dtype.kind == "O":
        value = value.flat[0]
    if _library(value) != "matplotlib":
        return None
    if not hasattr(value, "savefig") and hasattr(value, "get_figure"):
        value = value.get_figure()
    return value if hasattr(value, "savefig") else None


# https://mimesniff.spec.whatwg.org/#matching-an-image-type-pattern: what every provider takes
_IMAGES = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF....WEBPVP", re.DOTALL)),
)
IMAGE_TYPES = tuple(mime_type for mime_type, _ in _IMAGES)


def _drawn(save: Callable[[BinaryIO], Any]) -> ImagePart:
    file = BytesIO()
    save(file)
    return ImagePart(base64.b64encode(file.getvalue()).decode(), "image/png")


def _provider_part(data: Mapping[str, Any]) -> Part | None:
    """A part as Anthropic's Messages, OpenAI's chat and Responses, or we ourselves write it."""
    kind = data.get("type")
    try:
        if kind in ("text", "input_text", "output_text"):
            return TextPart(_text(data["text"]))
        if kind in ("image_url", "input_image"):
            url = data["image_url"]
            return _from_url(url["url"] if isinstance(url, Mapping) else url, ImagePart)
        if kind in ("image", "document") and isinstance(source := data.get("source"), Mapping):
            made = ImagePart if kind == "image" else FilePart
            if source.get("type") == "url":
                return made(url=_text(source["url"]))
            content = _text(source["data"])
            if source.get("type") == "text":
                content = base64.b64encode(content.encode()).decode()
            return made(data=content, mime_type=_text(source["media_type"]))
        if kind in ("file", "input_file") and not {"data", "url"} & data.keys():
            file = data.get("file", data)
            if "file_url" in file:
                return FilePart(url=_text(file["file_url"]), name=file.get("filename"))
            return replace(_from_url(file["file_data"], FilePart), name=file.get("filename"))
        own: Part = read_as(dict(data), Part)
        return own
    except (KeyError, TypeError, UnicodeEncodeError, msgspec.ValidationError):
        return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _from_url(url: Any, part: type[AnyPart]) -> AnyPart:
    """A part of a web address, or of a "data:" one."""
    head, comma, data = _text(url).partition(",")
    if not head.startswith("data:") or not comma:
        return part(url=url)
    return part(data=data, mime_type=head.removeprefix("data:").removesuffix(";base64"))


@kinds.checked
def parts_text(parts: Iterable[Part]) -> str:
    """The readable text of parts, joined by newlines."""
    texts = []
    for part in parts:
        if isinstance(part, TextPart):
            texts.append(part.text)
        elif isinstance(part, JsonPart):
            texts.append(encoded(part.data).decode())
    return "\n".join(texts)


# In the metadata of a message: what people see instead of it, as data.
DISPLAY = "display"

# In the metadata of a message that was said in several ways: the id of that point.
BRANCH = "branch"

# In the metadata of a result: what people answered, as they read it; None if they did not.
ANSWER = "answer"

# In the metadata of a result: with what the call was run, where a person changed its arguments.
EDITED = "edited_arguments"

# In the metadata of a result: what the tool's function took, by its defaults, for arguments that a
# call left out on which something was decided.
DEFAULTS = "defaults"

# In the metadata of a result: its images stand in the cell that the run is of.
SHOWN_IN_CELL = "shown_in_cell"

# In the metadata of a result: what people, or a policy, decided on the call. Its "type", "by"
# whom, "at" what time (seconds), and what was said with it.
DECISION = "decision"

# In the metadata of a result: the traceback of what its tool raised, without secrets.
TRACEBACK = "traceback"

# In the metadata of an answer that no model gave: why it was needed, such as "max_runs".
FALLBACK = "fallback"

# By whom a call was approved that nobody was asked about, as its tool is always allowed.
ALWAYS = "always"

# In the metadata of a result: why its tool was not called, or not to its end.
NOT_RUN = "not_run"
# And that the tool has refused: nothing was changed, and the model is told what to do instead.
DECLINED = "declined"


# Of messages as dicts: "developer" is OpenAI's newer word.
_ROLES = {role: role for role in ("user", "assistant", "system", "tool")} | {"developer": "system"}


_STOP_REASON = kinds.or_none(kinds.one_of(*get_args(StopReason)))


def _no_calls(value: Any) -> ConfigurationError:
    return ConfigurationError(
        f"Message.assistant(tool_calls=…) is a list of ToolCall(…), and this is {_shown(value)}."
    )


class Message(msgspec.Struct, frozen=True, omit_defaults=True, weakref=True):
    """One entry of a conversation.

    ``role`` is "user", "assistant", "system", "tool", or a name of your own: messages of
    unknown roles are kept in the transcript and never sent to a model. ``parts`` may be given as
    :data:`Content`, such as text; raises :class:`~sagents_nb.errors.ConfigurationError` for others.
    ``usage`` and ``stop_reason`` are those of a model's answer, and ``error`` says what it failed
    with. ``metadata`` are kept with it, and no model sees them.

    >>> Message("user", "Hello").parts
    (TextPart(text='Hello'),)
    >>> m = Message.assistant("Let me look.", tool_calls=[ToolCall("c1", "ls", {})])
    >>> m.role, m.text, m.tool_calls[0].name
    ('assistant', 'Let me look.', 'ls')
    """

    role: str
    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    error: str | None = None
    metadata: dict[str, Any] = {}

    def __post_init__(self) -> None:
        # What is in a tuple is looked at before it is sent: a history has many.
        if type(self.parts) is not tuple:
            msgspec.structs.force_setattr(self, "parts", as_parts(self.parts))

    @classmethod
    def user(cls, content: Content, **metadata: Any) -> Message:
        """A person's message: ``content`` is text, a part, or several of them; see :data:`Content`.

        ``metadata`` are kept with it. Raises :class:`~sagents_nb.errors.ConfigurationError` for
        what is no content.

        >>> from sagents_nb import Message
        >>> Message.user("Hello", source="mail").metadata
        {'source': 'mail'}
        """
        return cls("user", as_parts(content), metadata=metadata)

    @classmethod
    def system(cls, content: Content, **metadata: Any) -> Message:
        """Instructions for the model, as ``content``; ``metadata`` are kept with it.

        >>> from sagents_nb import Message
        >>> Message.system("Be brief.").role
        'system'
        """
        return cls("system", as_parts(content), metadata=metadata)

    @classmethod
    def assistant(
        cls,
        content: Content = "",
        tool_calls: Iterable[ToolCall] = (),
        *,
        usage: Usage | None = None,
        stop_reason: StopReason | None = None,
        **metadata: Any,
    ) -> Message:
        """A model's message: what it says as ``content``, and its ``tool_calls``.

        ``stop_reason`` follows from ``tool_calls`` unless given. ``usage`` is what it took, and
        ``metadata`` are kept with it. Raises :class:`~sagents_nb.errors.ConfigurationError` for
        calls that are none.

        >>> from sagents_nb import Message
        >>> Message.assistant("Hello!").stop_reason
        'end_turn'
        """
        # Not by kinds.checked: models make one in each turn.
        if not isinstance(tool_calls, list | tuple) and not kinds.LIST.fits(tool_calls):
            raise _no_calls(tool_calls)
        calls = tuple(tool_calls)
        for call in calls:
            if not isinstance(call, ToolCall):
                raise _no_calls(call)
        if not (usage is None or isinstance(usage, Usage)) or not (
            stop_reason is None or _STOP_REASON.fits(stop_reason)
        ):
            raise ConfigurationError(
                "Message.assistant(usage=…) is a Usage(…) or None, and stop_reason=… is "
                f"{_STOP_REASON.what}; not {kinds.shown(usage)} and {kinds.shown(stop_reason)}."
            )
        reason = stop_reason or ("tool_use" if calls else "end_turn")
        return cls("assistant", as_parts(content) + calls, usage, reason, None, metadata)

    @classmethod
    @kinds.checked
    def tool(cls, results: Iterable[ToolResult], **metadata: Any) -> Message:
        """The ``results`` of one turn's tool calls, in the order of the calls.

        ``metadata`` are kept with it.

        >>> from sagents_nb import Message, ToolResult
        >>> Message.tool([ToolResult("c1", "add", "5")]).tool_results[0].text
        '5'
        """
        return cls("tool", tuple(results), metadata=metadata)

    @classmethod
    def of(cls, value: Any) -> Message:
        """The message that ``value`` is, also as providers write it: ``{"role": …, "content": …}``.

        Raises :class:`~sagents_nb.errors.ConfigurationError` for anything else.

        >>> from sagents_nb import Message
        >>> Message.of({"role": "user", "content": "Hello"}).text
        'Hello'
        """
        if isinstance(value, Mapping) and isinstance(value.get("role"), str):
            left = value.keys() - {"role", "content"}
            if left:
                raise ConfigurationError(
                    f"A message as a dict has 'role' and 'content' only, and this one has "
                    f"{', '.join(map(repr, sorted(left)))}; use Message(…) for more."
                )
            role = _ROLES.get(value["role"])
            if role is None:
                raise ConfigurationError(
                    f"A message as a dict has a role of {', '.join(map(repr, _ROLES))}, and this "
                    f"one has {value['role']!r}; Message(role, …) takes one of your own, which no "
                    "model is sent."
                )
            return cls(role, as_parts(value.get("content") or ""))
        if not isinstance(value, Message):
            raise ConfigurationError(f"{_shown(value)} is no message; use Message.user(…).")
        for number, part in enumerate(value.parts, start=1):
            if not _is_part(part):
                raise ConfigurationError(
                    f"Part {number} of a {value.role} message is {_shown(part)}, and no part; "
                    f"use Message.{value.role}([…]), which takes {_PARTS}."
                )
        return value

    @property
    def shown(self) -> Message:
        """What people see of it: itself, unless a message preprocessor said otherwise."""
        display = self.metadata.get(DISPLAY)
        if display is None:
            return self
        try:
            shown: Message = read_as(display, Message)
            return shown
        except msgspec.ValidationError:  # somebody else's key of that name
            return self

    @property
    def text(self) -> str:
        """The text parts, joined; thinking, calls and results are not text."""
        return "".join([p.text for p in self.parts if isinstance(p, TextPart)])

    @property
    def thinking(self) -> str:
        """The thinking parts, joined."""
        return "".join(p.text for p in self.parts if isinstance(p, ThinkingPart))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls, in order."""
        return [p for p in self.parts if isinstance(p, ToolCall)]

    @property
    def tool_results(self) -> list[ToolResult]:
        """The tool results, in order."""
        return [p for p in self.parts if isinstance(p, ToolResult)]


# ``{name}`` in what a person says. The model is sent all that it stands for; people see what they
# typed and, folded, what its names stood for.

# One pass; only plain names and attribute paths, so JSON and code in a prompt stay as typed,
# and a value's own braces are never looked at (jupyter-ai#27, #967).
_FIELD = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}")

# In the metadata of what people see of a message: its fields, as data.
FIELDS = "fields"


class Field(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a ``{name}`` stands for: ``text`` for the model, ``brief`` in few words for people.

    What is ``appended`` is named in its place and described after the message.
    """

    name: str
    brief: str
    text: str
    appended: bool = False


def names_in(typed: str) -> list[str]:
    """What stands in braces, each once.

    >>> names_in("{n} of {{all}} and {n}")
    ['n']
    """
    return list(dict.fromkeys(match[1] for match in _FIELD.finditer(typed) if match[1]))


def filled(typed: str, fields: Mapping[str, Field]) -> str:
    """``typed`` with what its fields stand for; other names are left, ``{{`` and ``}}`` are braces.

    >>> filled("{n} of {{all}}, {unknown}", {"n": Field("n", "3", "3")})
    '3 of {all}, {unknown}'
    """

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        field = fields.get(match[1])
        if field is None:
            return match[0]
        return f"`{field.name}`" if field.appended else field.text

    told = [fields[name] for name in names_in(typed) if name in fields]
    after = [f"`{field.name}` is a {field.text}" for field in told if field.appended]
    return "\n\n".join([_FIELD.sub(replace, typed), *after])


def message_of(typed: str, fields: Mapping[str, Field], others: Iterable[Content] = ()) -> Message:
    """A message that the model is sent :func:`filled`, and people see as it was typed.

    ``others`` are its further parts.
    """
    others = list(others)
    used = [fields[name] for name in names_in(typed) if name in fields]
    shown = Message.user([typed, *others], **{FIELDS: to_data(used)})
    return Message.user([filled(typed, fields), *others], **{DISPLAY: to_data(shown)})


def fields_of(message: Message) -> list[Field]:
    """The fields of a message, as people see it."""
    try:
        return msgspec.convert(message.shown.metadata.get(FIELDS, []), list[Field])
    except msgspec.ValidationError:  # somebody else's key of that name
        return []


def brief_of(fields: Iterable[Field]) -> str:
    """All of them in a line.

    >>> brief_of([Field("df", "500 rows × 6 columns", ""), Field("n", "3", "3")])
    'with df: 500 rows × 6 columns, n: 3'
    """
    return "with " + ", ".join(f"{field.name}: {field.brief}" for field in fields)


class TextDelta(msgspec.Struct, frozen=True, tag="text"):
    """A piece of the answer, its ``text``.

    >>> from sagents_nb import Agent, ScriptedModel, TextDelta
    >>> events = Agent(ScriptedModel(["Hello!"])).stream("hi")
    >>> deltas = [event.delta for event in events if event.type == "message_update"]
    >>> deltas == [TextDelta("Hell"), TextDelta("o!")]
    True
    """

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, tag="thinking"):
    """A piece of reasoning, its ``text``.

    >>> from sagents_nb import Agent, Message, ScriptedModel, ThinkingPart
    >>> model = ScriptedModel([Message("assistant", [ThinkingPart("Hm …")])])
    >>> events = Agent(model).stream("hi")
    >>> [event.delta for event in events if event.type == "message_update"]
    [ThinkingDelta(text='Hm …')]
    """

    text: str


class ToolCallDelta(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """A piece of the call at place ``index``.

    ``id`` and ``name`` come first, then JSON ``text`` of arguments.

    >>> from sagents_nb import Agent, ScriptedModel, ToolCall
    >>> events = Agent(ScriptedModel([ToolCall("c1", "ls", {}), "None."])).stream("Which files?")
    >>> deltas = [event.delta for event in events if event.type == "message_update"]
    >>> deltas[0].name, deltas[0].id
    ('ls', 'c1')
    """

    index: int
    text: str = ""
    id: str | None = None
    name: str | None = None


Delta = TextDelta | ThinkingDelta | ToolCallDelta
