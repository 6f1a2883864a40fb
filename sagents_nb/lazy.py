"""Faces of packages whose names are loaded when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def face(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for ``package``: names, and the modules in it that have them."""

    def load(name: str) -> Any:
        if name not in homes:
            raise NoSuchName(package, name, homes)
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


class NoSuchName(AttributeError):
    """It looks for the name that was meant when it is shown: an import asks for modules like this.

    >>> str(NoSuchName("boxes", "Lidd", {"Lid": "lids"}))
    "module 'boxes' has no attribute 'Lidd'; did you mean Lid?"
    """

    def __str__(self) -> str:
        from .kinds import nearest

        package, name, homes = self.args
        near = nearest(name, homes)
        hint = f"; did you mean {near}?" if near else ""
        return f"module {package!r} has no attribute {name!r}{hint}"
