"""No key and no password is shown or written down: what everything that quotes others uses.

Secrets in use are replaced wherever they stand, and so is what looks like a key. What people
read, errors and logs, loses also what is merely quoted like one (:func:`redacted`). What is
recorded loses only what can be nothing else, since it is replayed (:func:`redacted_json`):
texts are redacted before a request's key is made, so that a recording which quotes a secret is
found where the secret is not known.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from numbers import Integral
from pathlib import PurePath
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, AnyStr, Literal
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit
from uuid import UUID

KEY = "[key]"  # what stands for a secret in a text that people read,
RECORDED = "[redacted]"  # in a recording,
HIDDEN = "***"  # and in the address of a place
SHORTEST = 8  # characters of a secret; what is shorter would be found everywhere

# Headers, options and parameters with such a name are never looked at.
_SECRET_NAME = re.compile(
    r"(api|access|secret|private)[-_]?key|authorization|cookie|password|passwd|secret"
    r"|(^|[-_])(token|key|credential)$",
    re.IGNORECASE,
)
# Each begins with letters of its own: re finds those ten times as fast as alternatives.
_KEYS = [
    re.compile(pattern)
    for pattern in (
        r"sk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic and most that are like them
        r"Bearer +(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}",
        r"bearer +(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}",
        r"Basic +(?=[A-Za-z+/=]*[0-9])[A-Za-z0-9+/=]{16,}",
        r"gh[opsur]_[A-Za-z0-9]{30,}",
        r"github_pat_[A-Za-z0-9_]{30,}",
        r"hf_[A-Za-z0-9]{30,}",
        r"xox[a-z]-[A-Za-z0-9-]{20,}",
        r"AKIA[0-9A-Z]{16}",
        r"AIza[A-Za-z0-9_-]{30,}",
    )
]
_JSON_KEYS = [re.compile(pattern.pattern.encode()) for pattern in _KEYS]
# Also pieces, and half masked ones ("sk-proj-****abcd"): providers quote those in 401 texts.
_QUOTED = re.compile(r"\bsk-[^\s\"',;)]+|\bBearer\s+\S+", re.I)
_QUOTED_WORD = re.compile(r"[^\s\"',;()]+")  # once each: looking for "***" from every letter is not
_WORD = re.compile(r"[A-Za-z0-9-]")  # before it, "sk-" is but a part of "task-force"
# but not after a line end as JSON writes it, a space as an address does, nor behind the hyphens of
# an option.
_ENDS = re.compile(r"(\\[nrtbf]|--|%[0-9A-Fa-f]{2})$")


def is_secret(name: str) -> bool:
    """Whether a header, option or parameter of that name holds a secret.

    >>> is_secret("Authorization"), is_secret("x-api-key"), is_secret("max_tokens")
    (True, True, False)
    """
    return _SECRET_NAME.search(name) is not None


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` for people, without ``secrets``, their first 8 characters, or anything like a key.

    >>> redacted("Incorrect API key: sk-proj-****abcd.")
    'Incorrect API key: [key]'
    """
    for secret in _longest_first(secrets):
        text = text.replace(secret, KEY)
        if len(secret) >= 12:
            text = re.sub(re.escape(secret[:SHORTEST]) + r"\S*", KEY, text)
    text = _QUOTED.sub(KEY, text)
    if HIDDEN in text:
        text = _QUOTED_WORD.sub(lambda word: KEY if HIDDEN in word[0] else word[0], text)
    return _without_keys(text, KEY, _KEYS)


def redacted_json(text: bytes, secrets: Iterable[str] = (), words: Iterable[str] = ()) -> bytes:
    """JSON ``text`` without ``secrets``, what begins like one of them, or looks like a key.

    Of ``words``, which may begin as others do, all of one has to be there.

    >>> redacted_json(b'"use sk-0123456789abcdef0123 for it"')
    b'"use [redacted] for it"'
    """
    mark = RECORDED.encode()
    for secret in _longest_first(secrets):
        for written in _as_json(secret):
            text = text.replace(written, mark)
        for start in _as_json(secret[:SHORTEST]) if len(secret) >= 2 * SHORTEST else ():
            text = re.sub(re.escape(start) + b"[A-Za-z0-9._~+/=-]*", mark, text)
    for word in _longest_first(words):
        for written in _as_json(word):
            text = text.replace(written, mark)
    return _without_keys(text, mark, _JSON_KEYS)


def without(text: str, secrets: Iterable[str], mark: str = KEY) -> str:
    """``text`` with ``mark`` in place of ``secrets``, and of nothing else.

    >>> without("no k-1 for me:k-12", ["k-1", "k-12"], "***")
    'no *** for me:***'
    """
    for secret in _longest_first(secrets):
        text = text.replace(secret, mark)
    return text


# Of variables, whose values are all texts that could be one,
_SURE_NAME = re.compile(
    r"passw|passphrase|pwd|secret|api_?key|private_?key|access_?key|credential|bearer|(^|_)(pw|pat)$"
    r"|(auth|access|refresh|api)_?token",
    re.IGNORECASE,
)
# or mostly are the names of columns and the words of a sentence.
_WEAK_NAME = re.compile(r"token|(^|_)key$|(^|_)auth|cookie|dsn|connection", re.IGNORECASE)
# In the environment: where a shell is and was.
_DIRECTORIES = {"PWD", "OLDPWD"}
# What else is a key by its looks; recordings do not know these, so that they are found again.
_SHOWN_KEYS = [
    *_KEYS,
    *map(
        re.compile,
        (
            r"glpat-[A-Za-z0-9_-]{16,}",
            r"npm_[A-Za-z0-9]{30,}",
            r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
            r"gsk_[A-Za-z0-9]{30,}",
            r"xai-[A-Za-z0-9]{30,}",
            r"pplx-[A-Za-z0-9]{30,}",
            r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
            r"ya29\.[A-Za-z0-9_-]{20,}",
            r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
            r"ASIA[0-9A-Z]{16}",
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*",
        ),
    ),
]
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s:@]{0,100}:[^@\s/]{1,200}(?=@)")
_ASSIGNED = re.compile(
    r"((?:passw(?:or)?d|passphrase|pwd|secret|api_?key|token)[\"']?\s{0,3}[=:]\s{0,3}(?:b?[\"'])?)"
    r"(?!\d+\b|None\b|True\b|False\b|\[key\])[^\s\"',;)}\]]{4,}",
    re.IGNORECASE,
)


_Rank = Literal[0, 1, 2, 3]
_SURE: _Rank = 3  # of all that it holds
_KEYED: _Rank = 2  # of an entry of a mapping: of all its longer texts
_WEAK: _Rank = 1  # of the texts that look like a secret too
_MOST = 1000  # entries of a collection, and rows of a frame from each end, that are looked at
_IN_ALL = 20_000  # entries that are in all, those of the variables themselves before others
_DEEPEST = 5
LONGEST = 10_000  # characters of a secret
_SHORTEST_NUMBER = 6  # digits; what is shorter is a count, a year or a size elsewhere
_CUT = 40  # characters of a longer text in a frame: pandas shows 46 of them
_HISTORY = {"In", "Out", "_ih", "_oh", "_dh"}  # of a notebook: what it holds once more
_BYTES = (bytes, bytearray, memoryview)
_LEAVES = (str, *_BYTES, Integral, UUID, float, type(None))
_HOLDERS = (Mapping, list, tuple, set, frozenset, deque)
_CODE = (ModuleType, FunctionType)
_SHOWN = (bool, float, complex, type(None), PurePath, type, *_CODE)


def secrets_of_names(names: Mapping[str, Any]) -> Secrets:
    """What variables, and the process's environment, hold under the name of a secret.

    That is also the name of an attribute, an entry, a column or a row, at some depth. Bytes are
    found as text, in hexadecimal and as Python writes them, numbers from six digits on.

    >>> found = secrets_of_names({"db_password": "pw-1", "key": "species", "tokens": ["a", "b"]})
    >>> "pw-1" in found, "species" in found
    (True, False)
    """
    found: set[str] = set()
    for name, value in [*names.items(), *_environment().items()]:
        if (rank := _rank(name)) and isinstance(value, _LEAVES):
            found.update(_forms(value, rank, _SHORTEST_OPTION))
    held = [
        (_rank(name), value)
        for name, value in list(names.items())
        if name not in _HISTORY and not isinstance(value, (*_LEAVES, *_CODE))
    ]
    found.update(_found_in(held))
    return Secrets(found)


_shared: list[Mapping[str, Any]] = []


def share_names(names: Mapping[str, Any]) -> None:
    """Have errors without what these variables hold of secrets from now on: a notebook's."""
    _shared.append(names)


def unshare_names(names: Mapping[str, Any]) -> None:
    """Know them no more; harmless if they were not known."""
    _shared[:] = [known for known in _shared if known is not names]


def without_known(text: str) -> str:
    """``text`` of an error without the secrets of the environment and of shared variables.

    >>> share_names(names := {"api_key": "hush-1234"})
    >>> without_known("ValueError: no hush-1234 here")
    'ValueError: no [key] here'
    >>> unshare_names(names)
    """
    secrets: set[str] = set()
    for names in _shared or [{}]:
        secrets.update(secrets_of_names(names))
    return masked(text, secrets)


def hush(error: BaseException) -> None:
    """Take the known secrets out of what an error of ours says: others may have written it."""
    error.args = tuple(without_known(a) if isinstance(a, str) else a for a in error.args)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _DIRECTORIES}


def secret_variables() -> list[str]:
    """The names of the process's variables of the environment that hold a secret.

    By their own name, or since their value looks like a key or is an address with a password.
    """
    return [
        name
        for name, value in _environment().items()
        if is_secret(name) or hides(name, value) or looks_like_secret(value)
    ]


def secrets_of_environment() -> Secrets:
    """Of these the texts, the longest first, without the paths of files that hold one."""
    texts = {os.environ.get(name, "").strip() for name in secret_variables()}
    kept = (t for t in texts if len(t) >= SHORTEST and not t.startswith(("/", "~", ".")))
    return Secrets(_longest_first(sorted(kept)))


def hides(name: Any, value: Any) -> bool:
    """Whether a variable, an attribute or a column of that name holds a secret in ``value``.

    Then nothing of it is to be shown. Code is none, and neither is what is empty.

    >>> hides("api_key", b"k"), hides("api_key", len), hides("token", "word"), hides("pin", 1)
    (True, False, False, False)
    """
    with suppress(Exception):  # of values of others
        return _hides(_text(name), value)
    return True


def may_hide(name: Any) -> bool:
    """Whether :func:`hides` looks at the value at all, which may have to be gathered first."""
    return _rank(_text(name)) > 0


def _hides(name: str, value: Any) -> bool:
    rank = _rank(name)
    if not rank or isinstance(value, _SHOWN) or callable(value):
        return False
    if isinstance(value, Integral):
        return rank == _SURE and abs(int(value)) >= 1000
    if hasattr(type(value), "__len__") and not len(value):
        return False
    if rank == _SURE:
        return True
    inner = [each for _, each in _entries(value, rank)] if isinstance(value, _HOLDERS) else [value]
    return bool(inner) and all(_forms(each, rank, SHORTEST) for each in inner)


@lru_cache(10_000)
def _rank(name: str) -> _Rank:
    return _SURE if _SURE_NAME.search(name) else _WEAK if _WEAK_NAME.search(name) else 0


@lru_cache(10_000)
def _rank_of_key(name: str) -> _Rank:
    return max(_rank(name), _KEYED if is_secret(name) else 0)


def _found_in(held: Iterable[tuple[_Rank, Any]]) -> Iterator[str]:
    """The secrets in what variables hold, each beside the rank of its name."""
    left = deque((rank, value, 0) for rank, value in held)
    looked, seen = 0, dict[tuple[int, int], Any]()
    while left and looked < _IN_ALL:
        rank, value, depth = left.popleft()
        if (id(value), rank) in seen:
            continue
        seen[id(value), rank] = value  # kept, so that no other has its id
        looked += min(len(value), _MOST) if isinstance(value, _HOLDERS) else 10
        try:
            entries = _entries(value, rank)
        except Exception:  # of others, or changed meanwhile by another thread
            continue
        for inner_rank, inner in entries:
            if isinstance(inner, _LEAVES):
                yield from _forms(inner, inner_rank, SHORTEST)
            elif depth < _DEEPEST and not isinstance(inner, _CODE):
                left.append((inner_rank, inner, depth + 1))


# What names the entries of a named tuple: public, in spite of its look.
_NAMED = "_fields"


def _entries(value: Any, rank: _Rank) -> list[tuple[_Rank, Any]]:
    """What ``value`` holds, whose own name has that rank, and the rank of each; no plain text."""
    if isinstance(value, Mapping):
        if len(value) > _MOST and not rank:
            return []
        named = [(max(rank, _rank_of_key(_text(k))), v) for k, v in _some(value.items())]
    elif isinstance(value, tuple) and (fields := getattr(value, _NAMED, None)):
        named = [(max(rank, _rank(f)), v) for f, v in zip(fields, value, strict=False)]
    elif isinstance(value, _HOLDERS):
        named = [(rank, inner) for inner in _some(value)]
    elif library := _library(value):
        named = _of_library(value, library, rank)
    else:
        named = _attributes(value, rank)
    return [(r, inner) for r, inner in named if r or not isinstance(inner, _LEAVES)]


def _some(values: Iterable[Any]) -> list[Any]:
    return list(islice(values, _MOST))


def _text(name: Any) -> str:
    return name if isinstance(name, str) else str(name)


def _library(value: Any) -> str:
    """The one of these two that the value is of; neither need be installed."""
    for kind in type(value).__mro__:
        if (root := kind.__module__.partition(".")[0]) in ("pandas", "numpy"):
            return root
    return ""


def _of_library(value: Any, library: str, rank: _Rank) -> list[tuple[_Rank, Any]]:
    """Of an array or a column what has a name, or stands under one; of a frame its columns too."""
    if library == "numpy" or not hasattr(value, "iloc"):
        listed = value.ravel() if hasattr(value, "ravel") else value
        return [(rank, v) for v in _ends(listed)] if rank and hasattr(value, "tolist") else []
    named: list[tuple[_Rank, Any]] = []
    for i, level in enumerate(value.index.names):
        if inner := max(rank, _rank(_text(level))):
            named += [(inner, v) for v in _ends(value.index.get_level_values(i))]
    if hasattr(value, "columns"):
        for i, column in enumerate(value.columns[:_MOST]):
            if inner := max(rank, _rank(_text(column))):
                named += [(inner, v) for v in _ends(value.iloc[:, i])]
    elif inner := max(rank, _rank(_text(value.name))):
        named += [(inner, v) for v in _ends(value)]
    labels = value.index[:_MOST].tolist() if value.index.dtype.kind == "O" else []
    for i, label in enumerate(labels):
        if inner := _rank(_text(label)):
            row = value.iloc[i]
            named += [(inner, v) for v in (_ends(row) if hasattr(row, "tolist") else [row])]
    cut = [(r, v[:_CUT]) for r, v in named if isinstance(v, str) and len(v) > _CUT + 6]
    return [*named, *cut]


def _ends(values: Any) -> list[Any]:
    """The first and the last of what may be millions."""
    if values.dtype.kind in "bfcmM":
        return []
    at = getattr(values, "iloc", values)
    ends = [values] if len(values) <= 2 * _MOST else [at[:_MOST], at[-_MOST:]]
    return [inner for end in ends for inner in end.tolist()]


def _attributes(value: Any, rank: _Rank) -> list[tuple[_Rank, Any]]:
    """Those of an object, or of a class. What is below one of a library's is its own affair."""
    kind = value if isinstance(value, type) else type(value)
    own = kind.__module__ == "__main__" or kind is SimpleNamespace or hasattr(kind, _OF_DATA)
    held: dict[str, Any] = {}
    if kind is value:
        for base in reversed(kind.__mro__[:-1]):
            held |= vars(base)
    else:
        held |= getattr(value, "__dict__", None) or {}
        for base in kind.__mro__:
            slots = getattr(base, "__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                held.setdefault(slot, getattr(value, slot, None))
    entries: list[tuple[_Rank, Any]] = [
        (max(rank if own else 0, _rank(name)), inner)
        for name, inner in _some(held.items())
        if not name.startswith("__")
        and (own or isinstance(inner, (*_LEAVES, Mapping)) or _rank(name))
    ]
    return entries if kind is value else [*entries, (0, kind)]


_OF_DATA = "__dataclass_fields__"


def _forms(value: Any, rank: _Rank, shortest: int) -> set[str]:
    """How a secret may be written; none where it is none, for its kind, length or looks.

    ``shortest`` is that of a word. What has letters and something else may have four characters.
    """
    if isinstance(value, str):
        return _forms_of_text(value, rank, shortest)
    if isinstance(value, _BYTES):
        data = bytes(value[:LONGEST])
        try:
            found = _forms_of_text(data.decode(), rank, shortest)
        except UnicodeDecodeError:
            found = (
                {data.decode("latin-1")} if len(data) >= 2 * SHORTEST or rank == _SURE else set()
            )
        if found:
            found |= {repr(data)[2:-1], data.hex(), data.hex().upper()}
        return {text for text in found if len(text) >= _SHORTEST_OPTION}
    if isinstance(value, UUID):
        return {str(value), value.hex}
    if isinstance(value, bool) or not isinstance(value, Integral):
        return set()
    digits = str(int(value)) if rank == _SURE else ""
    return {digits} if len(digits) >= _SHORTEST_NUMBER else set()


def _forms_of_text(text: str, rank: _Rank, shortest: int) -> set[str]:
    mixed = not text.isalpha() and any(map(str.isalpha, text))
    short = _SHORTEST_OPTION if rank == _SURE and mixed else shortest
    if len(text) < short or (rank == _WEAK and not (_is_random(text) or _is_long_word(text))):
        return set()
    if text.isalnum() or len(text) > LONGEST:
        return {text}
    inner = text.strip() if len(text.strip()) >= short else text  # a file of one line has an end
    in_html = inner.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {text, inner, in_html, repr(inner)[1:-1], json.dumps(inner)[1:-1]}


def _is_long_word(text: str) -> bool:
    return 20 <= len(text) <= 10_000 and not any(map(str.isspace, text))


def looks_like_secret(text: str) -> bool:
    """Whether in ``text`` there is what can be nothing but a key, or an address with a password.

    >>> looks_like_secret("sk-0123456789abcdef"), looks_like_secret("claude-sonnet-5-5")
    (True, False)
    """
    return unkeyed(text) != text


def unkeyed(text: str) -> str:
    """``text`` without what can be nothing but a key, and the logins of addresses.

    >>> unkeyed("when must be 'queue', not 'sk-0123456789abcdef'.")
    "when must be 'queue', not '[key]'."
    """
    return _without_keys(_IN_ADDRESS.sub(KEY, text), KEY, _SHOWN_KEYS)


def masked_start(text: str, limit: int, secrets: Iterable[str] = ()) -> str:
    """What :func:`masked` begins with: ``limit`` characters, and no piece of a secret at its end.

    All of a shorter text; a much longer one is not looked through to its end.
    """
    whole = 10 * limit + 2 * LONGEST
    if len(text) <= whole:
        return masked(text, secrets)[:limit]
    return masked(text[:whole], secrets)[:-LONGEST][:limit]


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` for a model, without ``secrets`` and what can be nothing but one.

    >>> masked("Config(user='me', password='pw-1', limit=10)")
    "Config(user='me', password='[key]', limit=10)"
    """
    return _ASSIGNED.sub(rf"\1{KEY}", unkeyed(without(text, secrets)))


def texts_in(value: Any, shortest: int = SHORTEST) -> Iterator[str]:
    """The texts of ``shortest`` or more characters in ``value``, however deep: its secrets."""
    if isinstance(value, str):
        if len(value) >= shortest:
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts_in(inner, shortest)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from texts_in(inner, shortest)


class Secrets(tuple[str, ...]):
    """Texts that no repr, traceback or pickle shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} secrets>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Secrets, ()


class Unshown(dict[str, Any]):
    """Options that a traceback with locals does not show, since some of them may be secrets."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{', '.join(self)}>"


def secrets_of_call(url: str | None, options: Mapping[str, Any]) -> set[str]:
    """What the address of a provider and the options of a call hold of secrets.

    The password in the address; what has the name of a secret, however deep; and what looks like
    one in a query or a header, which gateways give names of their own.

    >>> sorted(secrets_of_call("http://me:pa55@host/v1", {"extra_query": {"sig": "a1b2c3d4e5f6"}}))
    ['a1b2c3d4e5f6', 'pa55']
    """
    found = set(_named_secrets(options))
    for sent in ("extra_query", "extra_headers"):
        given = options.get(sent)
        if isinstance(given, Mapping):
            found |= {text for text in texts_in(given) if _is_random(text)}
    with suppress(ValueError):  # no address, as the client says once it is made
        parts = urlsplit(url or "")
        password = parts.password or ""
        found |= set(texts_in([password, unquote(password)], _SHORTEST_OPTION))
        for name, value in parse_qsl(parts.query):
            if is_secret(name) or _is_random(value):
                found |= set(texts_in(value))
    return found


def _named_secrets(options: Any) -> Iterator[str]:
    if isinstance(options, Mapping):
        for name, value in options.items():
            yield from texts_in(value) if is_secret(str(name)) else _named_secrets(value)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from _named_secrets(value)


# Letters and digits, and no version, date or address.
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])(?!.*\d{4}-\d\d-\d\d)[A-Za-z0-9_~+/=.-]{12,}")


def _is_random(text: str) -> bool:
    return len(text) < 10_000 and _RANDOM.fullmatch(text) is not None


_GONE = object()  # where a secret was


def without_login(url: str) -> str:
    """An address without a name and password in it, and without what is behind its path.

    >>> without_login("https://me:pa55@host:1/v1?key=b#c")
    'https://host:1/v1'
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # no address, as the client says once it is made
        return unkeyed(url).partition("?")[0]
    return urlunsplit((*parts[:1], parts.netloc.rpartition("@")[2], parts.path, "", ""))


def redacted_options(options: Mapping[str, Any], secrets: Iterable[str]) -> dict[str, Any]:
    """``options`` with the ``secrets`` in them as recordings have them.

    >>> redacted_options({"extra_headers": {"X-Mine": "k-12"}, "seed": 1}, ["k-12"])
    {'extra_headers': {'X-Mine': '[redacted]'}, 'seed': 1}
    """
    hidden = _longest_first(secrets)

    def shown(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: shown(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [*map(shown, value)]
        if isinstance(value, str):
            return _without_keys(without(value, hidden, RECORDED), RECORDED, _KEYS)
        return value

    return {name: shown(value) for name, value in options.items()}


def without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """``options`` without what :func:`secrets_of_call` finds in them, or what looks like a key."""
    hidden = secrets_of_call(None, options)

    def kept(value: Any) -> Any:
        if isinstance(value, Mapping):
            inner = {name: kept(v) for name, v in value.items()}
            return {name: v for name, v in inner.items() if v is not _GONE}
        if isinstance(value, list | tuple):
            return [v for v in map(kept, value) if v is not _GONE]
        if isinstance(value, str) and (value in hidden or looks_like_secret(value)):
            return _GONE
        return value

    return dict(kept(options))


class PlaceRedaction:
    """Texts about a place without what its URL and its options may hold of secrets.

    >>> hidden = PlaceRedaction("ftp://me:pa55word@host/files", {"key": "k-123", "port": 21})
    >>> hidden("no k-123 for ftp://me:pa55word@host")
    'no *** for ftp://***@host'
    """

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        self._secrets = {*texts_in(options, _SHORTEST_OPTION), *_of_url(url)}

    def __call__(self, text: str) -> str:
        """The text in one line, with the secrets and what looks like a key masked."""
        return " ".join(_without_keys(without(text, self._secrets, HIDDEN), HIDDEN, _KEYS).split())

    def __repr__(self) -> str:
        return f"<PlaceRedaction of {len(self._secrets)} texts>"


_SHORTEST_OPTION = 4  # characters: a password of a file server may be short


def _of_url(url: str) -> Iterator[str]:
    """What stands before an "@" and behind a "?", as it is and decoded."""
    for link in url.split("::"):
        place, _, query = link.partition("://")[2].partition("?")
        user = place.rpartition("@")[0]
        for secret in (user, user.partition(":")[2], query, *query.split("&")):
            value = secret.rpartition("=")[2]
            yield from texts_in((secret, value, unquote(value)), _SHORTEST_OPTION)


def _longest_first(secrets: Iterable[str]) -> list[str]:
    """Without the empty; a secret may be the beginning of another."""
    return sorted(filter(None, secrets), key=len, reverse=True)


def _as_json(text: str) -> set[bytes]:
    """``text`` as it may stand in a JSON text, which may be written in ASCII only."""
    return {
        json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode(errors="surrogatepass")
        for ascii_only in (True, False)
    }


def _without_keys(text: AnyStr, mark: AnyStr, keys: Iterable[re.Pattern[AnyStr]]) -> AnyStr:
    """``text`` without what can be nothing but a key."""

    def hidden(match: re.Match[AnyStr]) -> AnyStr:
        before = match.string[max(0, match.start() - 3) : match.start()]
        ascii_before = before.decode("latin-1") if isinstance(before, bytes) else before
        inside = _WORD.fullmatch(ascii_before[-1:]) and not _ENDS.search(ascii_before)
        return match[0] if inside else mark

    for pattern in keys:
        text = pattern.sub(hidden, text)
    return text
