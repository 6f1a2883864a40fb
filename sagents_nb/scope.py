"""Whose conversations and documents they are."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import msgspec

from . import kinds
from .errors import ConfigurationError
from .serialization import escaped

ID_LENGTH = 255
"""Characters that an id may take as a store writes it."""


class Scope(msgspec.Struct, metaclass=kinds.Record, frozen=True):
    """The conversations of one user.

    A store takes any object with an ``owner_id`` for a scope, so an application can pass its
    own.

    >>> Scope(user="alice").owner_id
    'alice'
    """

    user: str | int

    def __post_init__(self) -> None:
        kinds.check_fields(self)

    @property
    def owner_id(self) -> str | int:
        """The user."""
        return self.user


def owner_of(scope: Any) -> str:
    """What a store writes for the owner: JSON, so that 1 and "1" are two; "" for no scope.

    An ``owner_id`` is text, a whole number, a UUID or a tuple of these. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for any other, and for an empty one: a
    visitor without a name must not be taken for everybody without one.
    """
    if scope is None:
        return ""
    if not hasattr(scope, "owner_id"):
        raise ConfigurationError(
            f"A scope has an owner_id, but this {type(scope).__name__} has none; "
            "pass Scope(user=…) or an object of your own."
        )
    owner = _plain(scope.owner_id)
    if owner is None or owner == "" or owner == []:
        raise ConfigurationError(
            f"The owner_id of this {type(scope).__name__} is {kinds.shown(scope.owner_id)}; it "
            "must be "
            "text, a whole number, a UUID or a tuple of these, and not empty."
        )
    key = json.dumps(owner, ensure_ascii=False, separators=(",", ":"))
    if len(escaped(key)) > ID_LENGTH:
        raise ConfigurationError(f"The owner_id of a scope is longer than {ID_LENGTH} characters.")
    return key


def _plain(owner: Any) -> Any:
    """``owner`` as JSON takes it, or None if it is nothing that can be told apart for good."""
    if isinstance(owner, str | UUID):
        return str(owner)
    if kinds.of(int).fits(owner):
        return owner
    if isinstance(owner, tuple | list):
        items = [_plain(item) for item in owner]
        return None if None in items else items
    return None
