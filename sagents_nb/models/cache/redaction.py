"""No key is ever written down: what stands for it is ``[redacted]``.

It works on JSON text. Texts are redacted before a request's key is made, so a recording that
quotes a secret replays where the secret is not known.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

from ..base import ChatModel, ModelRequest
from ..providers.clients import ANTHROPIC, OPENAI, Secret

REDACTED = b"[redacted]"

# Values of these are never looked at; spelled as headers, options and parameters are.
_SECRET_NAME = re.compile(
    r"(api|access|secret|private)[-_]?key|authorization|cookie|password|passwd|secret"
    r"|(^|[-_])(token|key|credential)$",
    re.IGNORECASE,
)
# Each begins with letters of its own: re finds those ten times as fast as alternatives.
_KEYLIKE = [
    re.compile(pattern)
    for pattern in (
        rb"sk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic and most that are like them
        rb"Bearer +(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}",
        rb"bearer +(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}",
        rb"Basic +(?=[A-Za-z+/=]*[0-9])[A-Za-z0-9+/=]{16,}",
        rb"gh[opsur]_[A-Za-z0-9]{30,}",
        rb"github_pat_[A-Za-z0-9_]{30,}",
        rb"hf_[A-Za-z0-9]{30,}",
        rb"xox[a-z]-[A-Za-z0-9-]{20,}",
        rb"AKIA[0-9A-Z]{16}",
        rb"AIza[A-Za-z0-9_-]{30,}",
    )
]
_WORD = re.compile(rb"[A-Za-z0-9_-]")  # before it, "sk-" is but a part of "task-force"
_ENDS = frozenset({rb"\n", rb"\r", rb"\t", rb"\b", rb"\f"})  # line ends as JSON writes them
_SHORTEST = 8  # characters; what is shorter is no key, and would be found everywhere


def is_secret(name: str) -> bool:
    """Whether a header, option or parameter of that name holds a secret.

    >>> is_secret("Authorization"), is_secret("x-api-key"), is_secret("max_tokens")
    (True, True, False)
    """
    return _SECRET_NAME.search(name) is not None


def secrets_of(model: ChatModel, request: ModelRequest | None = None) -> tuple[str, ...]:
    """The keys that ``model``, ``request`` and the environment hold, the longest first."""
    found = {value for value in _keys(model) if value}
    for sdk in (ANTHROPIC, OPENAI):
        for name in (sdk.key_variable, *sdk.other_credentials):
            if is_secret(name) and (value := os.environ.get(name, "").strip()):
                found.add(value)
    if request is not None and request.api_key:
        found.add(request.api_key.strip())
    return tuple(sorted((s for s in found if len(s) >= _SHORTEST), key=len, reverse=True))


def _keys(model: ChatModel) -> Iterator[str | None]:
    secret = getattr(model, "_key", None)
    if isinstance(secret, Secret):
        yield secret.value
    for inner in (getattr(model, "inner", None), *getattr(model, "models", ())):
        if isinstance(inner, ChatModel):
            yield from _keys(inner)


def redacted(text: bytes, secrets: tuple[str, ...] = ()) -> bytes:
    """JSON ``text`` without ``secrets``, what begins like one of them, or looks like a key.

    >>> redacted(b'"use sk-0123456789abcdef0123 for it"')
    b'"use [redacted] for it"'
    """
    for secret in secrets:
        text = text.replace(json.dumps(secret)[1:-1].encode(), REDACTED)
        if len(secret) >= 2 * _SHORTEST:
            start = re.escape(json.dumps(secret[:_SHORTEST])[1:-1].encode())
            text = re.sub(start + rb"[A-Za-z0-9._~+/=-]*", REDACTED, text)
    for pattern in _KEYLIKE:
        text = pattern.sub(_hidden, text)
    return text


def _hidden(match: re.Match[bytes]) -> bytes:
    before = match.string[max(0, match.start() - 2) : match.start()]
    return match[0] if _ends_in_word(before) else REDACTED


def _ends_in_word(before: bytes) -> bool:
    """Whether a word is going on."""
    return _WORD.fullmatch(before[-1:]) is not None and before not in _ENDS
