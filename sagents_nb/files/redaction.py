"""Keeping the secrets of a storage out of what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote


class Redaction:
    """Texts without what a URL and the options of a storage may hold of secrets.

    >>> hidden = Redaction("ftp://me:pa55word@host/files", {"key": "k-123", "port": 21})
    >>> hidden("no k-123 for ftp://me:pa55word@host")
    'no *** for ftp://***@host'
    """

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        found = {*_texts(options), *_of_url(url)}
        self._secrets = sorted(found, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text in one line, with the secrets masked."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())

    def __repr__(self) -> str:
        return f"<Redaction of {len(self._secrets)} texts>"


def _texts(options: Any) -> Iterator[str]:
    """All texts in options, at any depth: any of them may be secret."""
    if isinstance(options, str):
        if len(options) > 3:
            yield options
    elif isinstance(options, dict):
        for value in options.values():
            yield from _texts(value)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from _texts(value)


def _of_url(url: str) -> Iterator[str]:
    """What stands before an "@" and behind a "?", as it is and decoded."""
    for link in url.split("::"):
        place, _, query = link.partition("://")[2].partition("?")
        user = place.rpartition("@")[0]
        for secret in (user, user.partition(":")[2], query, *query.split("&")):
            value = secret.rpartition("=")[2]
            yield from (text for text in (secret, value, unquote(value)) if len(text) > 3)
