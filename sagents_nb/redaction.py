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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, AnyStr
from urllib.parse import parse_qsl, unquote, urlsplit

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
_WORD = re.compile(r"[A-Za-z0-9_-]")  # before it, "sk-" is but a part of "task-force"
_ENDS = frozenset({r"\n", r"\r", r"\t", r"\b", r"\f"})  # line ends as JSON writes them


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


def redacted_json(text: bytes, secrets: Iterable[str] = ()) -> bytes:
    """JSON ``text`` without ``secrets``, what begins like one of them, or looks like a key.

    >>> redacted_json(b'"use sk-0123456789abcdef0123 for it"')
    b'"use [redacted] for it"'
    """
    mark = RECORDED.encode()
    for secret in _longest_first(secrets):
        for written in _as_json(secret):
            text = text.replace(written, mark)
        for start in _as_json(secret[:SHORTEST]) if len(secret) >= 2 * SHORTEST else ():
            text = re.sub(re.escape(start) + b"[A-Za-z0-9._~+/=-]*", mark, text)
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
    r"passw|passphrase|pwd|secret|api_?key|private_?key|access_?key|credential|bearer|(^|_)(pw|pat)$",
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
    r"((?:passw(?:or)?d|passphrase|pwd|secret|api_?key|token)[\"']?\s{0,3}[=:]\s{0,3}[\"']?)"
    r"(?!\d+\b|None\b|True\b|False\b|\[key\])[^\s\"',;)}\]]{4,}",
    re.IGNORECASE,
)


def secrets_of_names(names: Mapping[str, Any]) -> Secrets:
    """What variables, and the process's environment, hold under the name of a secret.

    >>> found = secrets_of_names({"db_password": "pw-1", "key": "species", "tokens": ["a", "b"]})
    >>> "pw-1" in found, "species" in found
    (True, False)
    """
    found: set[str] = set()
    shells = {name: value for name, value in os.environ.items() if name not in _DIRECTORIES}
    for name, value in [*names.items(), *shells.items()]:
        if isinstance(value, str):
            weak = _WEAK_NAME.search(name) and (_is_random(value) or _is_long_word(value))
            if _SURE_NAME.search(name) or weak:
                found.update(texts_in(value, _SHORTEST_OPTION))
        elif isinstance(value, Mapping) and len(value) <= 1000:
            found.update(_named_secrets(value))
    return Secrets(found)


def _is_long_word(text: str) -> bool:
    return 20 <= len(text) <= 10_000 and not any(map(str.isspace, text))


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` for a model, without ``secrets`` and what can be nothing but one.

    >>> masked("Config(user='me', password='pw-1', limit=10)")
    "Config(user='me', password='[key]', limit=10)"
    """
    text = _IN_ADDRESS.sub(KEY, without(text, secrets))
    return _ASSIGNED.sub(rf"\1{KEY}", _without_keys(text, KEY, _SHOWN_KEYS))


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
    """An address without a name and password in it.

    >>> without_login("https://me:pa55@host:1/v1?a=b")
    'https://host:1/v1?a=b'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """``options`` without what :func:`secrets_of_call` finds in them."""
    hidden = secrets_of_call(None, options)

    def kept(value: Any) -> Any:
        if isinstance(value, Mapping):
            inner = {name: kept(v) for name, v in value.items()}
            return {name: v for name, v in inner.items() if v is not _GONE}
        if isinstance(value, list | tuple):
            return [v for v in map(kept, value) if v is not _GONE]
        return _GONE if isinstance(value, str) and value in hidden else value

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
        before = match.string[max(0, match.start() - 2) : match.start()]
        ascii_before = before.decode("latin-1") if isinstance(before, bytes) else before
        inside = _WORD.fullmatch(ascii_before[-1:]) and ascii_before not in _ENDS
        return match[0] if inside else mark

    for pattern in keys:
        text = pattern.sub(hidden, text)
    return text
