"""What a filesystem is of: a tuple in the process, text for a storage."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigurationError

Scope = tuple[Any, ...]


def check_scope(scope: Any) -> None:
    """Raise ConfigurationError for what is no scope."""
    if not isinstance(scope, tuple) or not scope:
        raise ConfigurationError(
            f"A filesystem's scope is a tuple such as ('user', 123), not {scope!r}."
        )
    try:
        hash(scope)
    except TypeError:
        raise ConfigurationError(
            f"A filesystem's scope is a key, so {scope!r} may hold no lists or dicts."
        ) from None


def scope_text(scope: Scope) -> str:
    """A scope as its storages know it; ":" and "%" within a part are escaped.

    >>> scope_text(("user", 123)), scope_text(("a:b", "c"))
    ('user:123', 'a%3Ab:c')
    """
    parts = (str(part).replace("%", "%25").replace(":", "%3A") for part in scope)
    return ":".join(parts)
