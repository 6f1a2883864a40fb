"""From our history to what a provider may be sent: what all providers have in common.

Nothing here changes a message. What is left out or replaced follows from the message alone,
so that each request extends the one before it: the providers' caches, and Claude's checks of
preserved thinking, depend on that. It is also why a message is made JSON once: the bytes are kept
while it lives, and a request is a join of them.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import msgspec

from ...frozenlist import FrozenList, Root
from ...messages import FilePart, ImagePart, JsonPart, Message, Part, TextPart, ToolCall, ToolResult
from ...text import REPLACEMENT, digest, whole

_ROLES = frozenset({"user", "assistant", "tool"})
_BROKEN = ("error", "aborted")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SentTurn(msgspec.Struct, frozen=True):
    """One message as it is to be sent. ``whole`` is False for what is left of a broken one."""

    role: str
    parts: tuple[Part, ...]
    message: Message
    whole: bool = True


def sendable(messages: Iterable[Message]) -> Iterator[SentTurn]:
    """The turns to send.

    Left out: roles no provider knows; of an assistant message that ended in an error or was
    aborted, all but its text, and so the results of its calls.
    """
    dropped: Collection[str] = ()
    for message in messages:
        if message.role not in _ROLES:
            continue
        turn = _turn(message, dropped)
        if message.role == "assistant":
            dropped = _dropped_by(message)
        if turn.parts:
            yield turn


def _turn(message: Message, dropped: Collection[str]) -> SentTurn:
    """What is sent of a message; ``dropped`` are the calls whose results nobody is sent."""
    parts = message.parts
    if message.role == "assistant":
        if message.stop_reason in _BROKEN:
            parts = tuple(p for p in parts if isinstance(p, TextPart) and p.text.strip())
            return SentTurn(message.role, parts, message, whole=False)
    elif dropped:
        parts = tuple(
            p for p in parts if not (isinstance(p, ToolResult) and p.tool_call_id in dropped)
        )
    return SentTurn(message.role, parts, message)


def _dropped_by(message: Message) -> Collection[str]:
    if message.stop_reason not in _BROKEN:
        return ()
    return {part.id for part in message.parts if isinstance(part, ToolCall)}


def _answers(message: Message, dropped: Collection[str]) -> bool:
    return any(isinstance(p, ToolResult) and p.tool_call_id in dropped for p in message.parts)


# A history as JSON


class Piece(msgspec.Struct, frozen=True, gc=False):
    """One turn as JSON: items of a provider's list, with commas between them; none is b"".

    Turns in a row that have the same ``role`` become one, unless it is "". ``first`` is where
    that ends which comes before the other turns' rest.
    """

    data: bytes
    role: str = ""
    first: int = 0


def _only(pieces: Sequence[Piece]) -> bytes:
    return b",".join(piece.data for piece in pieces)


class Dialect(NamedTuple):
    """How a provider has a turn: ``encode`` is given the turn and ``variant``.

    What else the form depends on has to be in ``variant``: turns are kept by it.
    """

    encode: Callable[[SentTurn, Any], Piece]
    variant: Hashable = None
    merge: Callable[[Sequence[Piece]], bytes] = _only


class EncodedHistory(msgspec.Struct, frozen=True):
    """The first ``length`` messages of a history: what is sent of them.

    ``pieces`` are finished; ``last`` are those of the turn that the next message may add to.
    ``dropped`` are the calls whose results are not sent, and ``system`` the texts of messages
    that are instructions.
    """

    length: int = 0
    pieces: FrozenList[bytes] = msgspec.field(default_factory=FrozenList)
    last: tuple[Piece, ...] = ()
    dropped: Collection[str] = ()
    system: tuple[str, ...] = ()

    def instructions(self, system: str) -> str:
        """The system prompt, with the system messages that somebody put into the history."""
        return "\n\n".join(text for text in (system, *self.system) if text)

    def items(self, dialect: Dialect, *before: Any) -> Items:
        """What is sent of the messages, behind the items ``before``."""
        after = (_joined(self.last, dialect),) if self.last else ()
        return Items(self.pieces, tuple(map(encode_body, before)), after)


_NOTHING = EncodedHistory()


class Items:
    """A list in a body, of which there is only the JSON, in pieces without the commas between.

    >>> Items([b"2", b"3,4"], before=[b"1"]).plain()
    [1, 2, 3, 4]
    """

    __slots__ = ("_after", "_before", "_pieces")

    def __init__(
        self,
        pieces: FrozenList[bytes] | list[bytes],
        before: Sequence[bytes] = (),
        after: Sequence[bytes] = (),
    ) -> None:
        self._pieces = pieces
        self._before = before
        self._after = after

    def pieces(self) -> list[bytes]:
        """All pieces, in a list that is the caller's: the only copy of a long one."""
        pieces = self._pieces[:]  # quicker than to iterate over it
        pieces[:0] = self._before
        pieces += self._after
        return pieces

    def plain(self) -> list[Any]:
        """The items."""
        items: list[Any] = msgspec.json.decode(b"[%b]" % b",".join(self.pieces()))
        return items


class _Kept(ref[Message]):
    """A message's piece, as long as there is the message."""

    __slots__ = ("key", "piece", "place")

    key: int
    piece: Piece
    place: dict[int, _Kept]


class _Cache:
    """What was made JSON lately: single messages, and histories as far as they were asked for.

    It is thrown away as a whole once it holds too much; who still uses it then fills what
    nobody sees any more. So no lock is needed, and a count that two threads change at once need
    not be exact.
    """

    def __init__(self) -> None:
        # By the id of a message, whose piece goes before the id can be another's.
        self.pieces: dict[Dialect, dict[int, _Kept]] = {}
        self.histories: WeakKeyDictionary[Root, dict[Dialect, EncodedHistory]] = WeakKeyDictionary()
        self.size = 0
        self._gone = self._forget  # one for all messages

    def keep(self, message: Message, piece: Piece, place: dict[int, _Kept]) -> None:
        """Keep a message's piece in ``place`` until the message goes."""
        kept = _Kept(message, self._gone)
        kept.key, kept.piece, kept.place = id(message), piece, place
        place[kept.key] = kept
        self.size += len(piece.data) + _OVERHEAD

    def _forget(self, kept: Any) -> None:
        self.size -= len(kept.piece.data) + _OVERHEAD
        if kept.place.get(kept.key) is kept:
            del kept.place[kept.key]

    @property
    def is_full(self) -> bool:
        """Whether it is to be thrown away."""
        return self.size > LARGEST_CACHE or len(self.pieces) > _DIALECTS

    def clear(self) -> None:
        """Let go of all at once: they hold each other."""
        self.histories.clear()
        for place in list(self.pieces.values()):
            place.clear()


LARGEST_CACHE = 256_000_000
"""Bytes that are kept of messages as JSON, in all."""

_DIALECTS = 32  # with those of tools whose parameters have other names, which may be many
_OVERHEAD = 500  # what keeping a piece takes beside its bytes

_cache = _Cache()


def encoded(messages: Sequence[Message], dialect: Dialect) -> EncodedHistory:
    """What is sent of ``messages``: each is encoded once for each dialect, and then remembered.

    By what it is and not by what it says: a message that a hook replaced is another one. Of a
    history that continues one that was asked for, only the new messages are looked at.
    """
    global _cache
    cache = _cache
    if cache.is_full:
        cache.clear()
        cache = _cache = _Cache()
    place = cache.pieces.setdefault(dialect, {})
    if not isinstance(messages, FrozenList):
        return _extended(_NOTHING, messages, dialect, cache, place)
    known = cache.histories.setdefault(messages.root, {})
    earlier = known.get(dialect, _NOTHING)
    if earlier.length > len(messages):  # what came before the newest, which is asked for again
        return _extended(_NOTHING, messages, dialect, cache, place)
    if earlier.length < len(messages):
        new = messages[earlier.length :]
        known[dialect] = earlier = _extended(earlier, new, dialect, cache, place)
    return earlier


def _extended(
    earlier: EncodedHistory,
    messages: Sequence[Message],
    dialect: Dialect,
    cache: _Cache,
    place: dict[int, _Kept],
) -> EncodedHistory:
    dropped = earlier.dropped
    last, system = list(earlier.last), list(earlier.system)
    pieces: list[bytes] = []
    for message in messages:
        role = message.role
        if role not in _ROLES:
            if role == "system":
                system.append(message.text)
            continue
        # What is left of results depends on what came before them: that is of this history only.
        is_cut = dropped and role != "assistant" and _answers(message, dropped)
        kept = None if is_cut else place.get(id(message))
        if kept is not None and kept() is message:
            piece = kept.piece
        else:
            turn = _turn(message, dropped)
            piece = dialect.encode(turn, dialect.variant) if turn.parts else Piece(b"")
            if not is_cut:
                cache.keep(message, piece, place)
        if role == "assistant" and (dropped or message.stop_reason in _BROKEN):
            dropped = _dropped_by(message)
        if not piece.data:
            continue
        if not piece.role:
            pieces.append(piece.data)
            continue
        if last and piece.role != last[0].role:
            pieces.append(_joined(last, dialect))
            last = []
        last.append(piece)
    length = earlier.length + len(messages)
    return EncodedHistory(
        length, earlier.pieces.extend(pieces), tuple(last), dropped, tuple(system)
    )


def _joined(pieces: Sequence[Piece], dialect: Dialect) -> bytes:
    return pieces[0].data if len(pieces) == 1 else dialect.merge(pieces)


def extras(turn: SentTurn, provider: str) -> Mapping[str, Any]:
    """By index of the part, the fields of its block that our parts have no place for.

    Readers put them into ``metadata["extras"]``. They are void when the provider is another
    one, or when somebody has changed the parts.
    """
    metadata = turn.message.metadata
    if not turn.whole or metadata.get("provider") != provider:
        return {}
    stored = metadata.get("extras")
    if not isinstance(stored, Mapping) or stored.get("parts") != len(turn.parts):
        return {}
    return stored


def wire_id(id: str) -> str:
    """``id``, or for an id that not every provider takes, one of its own that all take."""
    if _ID.fullmatch(id):
        return id
    return "call_" + digest(id)[:32]


def wire_name(name: str) -> str:
    """``name`` of a tool with what no provider takes replaced: models make names up."""
    return name if _ID.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


# Files and images


def data_url(part: ImagePart | FilePart) -> str:
    """The part's URL, or its data as one."""
    return part.url or f"data:{part.mime_type};base64,{part.data or ''}"


def text_of_file(part: FilePart) -> str | None:
    """The text of a text file, else None."""
    if part.data is None or not part.mime_type.startswith(("text/", "application/json")):
        return None
    try:
        return base64.b64decode(part.data).decode("utf-8")
    except ValueError:
        return None


def cannot_show(part: ImagePart | FilePart) -> str:
    """What a model is told of a file that its provider does not take."""
    name = getattr(part, "name", None) or part.url or "a file"
    return f"[{name} ({part.mime_type}) cannot be shown to this model]"


# JSON


def json_text(value: Any) -> str:
    """``value`` as JSON text; what JSON cannot carry is replaced."""
    return encode_body(value).decode()


def text_of(part: TextPart | JsonPart) -> str:
    """The text a model reads for the part."""
    return part.text if isinstance(part, TextPart) else json_text(part.data)


def encode_items(items: Sequence[Any]) -> bytes:
    """``items`` as JSON with commas between them.

    >>> encode_items([1, {"a": None}]), encode_items([])
    (b'1,{"a":null}', b'')
    """
    return encode_body(items)[1:-1] if items else b""


def joined(body: Mapping[str, Any]) -> bytes:
    """The JSON object ``body``, of which one member may be :class:`Items`; None leaves one out.

    >>> joined({"a": 1, "b": None, "c": Items([b"2", b"3"]), "d": Items([])})
    b'{"a":1,"c":[2,3],"d":[]}'
    """
    around: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    pieces: list[bytes] = []
    for name, value in body.items():
        if isinstance(value, Items) and (made := value.pieces()):
            pieces = made
            pieces[0] = encode_body(name) + b":[" + pieces[0]
            pieces[-1] += b"]"
        elif value is not None:
            around[bool(pieces)][name] = [] if isinstance(value, Items) else value
    before, after = (encode_body(members)[1:-1] for members in around)
    if not pieces:
        return b"{%b}" % before
    # One join of all, so that a long history is copied once: members have commas between them too.
    pieces[0] = (b"{%b,%b" if before else b"{%b%b") % (before, pieces[0])
    pieces[-1] = (b"%b,%b}" if after else b"%b%b}") % (pieces[-1], after)
    return b",".join(pieces)


def encode_body(body: Any) -> bytes:
    """``body`` as JSON in UTF-8.

    Halves of surrogate pairs, which come from cut text and which UTF-8 cannot carry, become
    U+FFFD; NaN and infinities become null, unknown objects their repr. NUL is kept: JSON
    carries it.
    """
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        text = json.dumps(_plain(body), ensure_ascii=False, separators=(",", ":"))
        return whole(text, REPLACEMENT).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    try:
        return _plain(msgspec.to_builtins(value))
    except (TypeError, ValueError):
        return repr(value)
