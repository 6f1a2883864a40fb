"""A class that is there already, and says whose a conversation is."""

from __future__ import annotations

import importlib
import keyword
import sys
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError

SOMEBODY = "alice"
"""Whose conversations the notebook and the tests of a project are."""


def is_name(text: str) -> bool:
    """Whether it is a name in Python, of letters that are the same on every disk."""
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text)


def parts(scope: str) -> tuple[str, str]:
    """The module and the class of "MODULE:CLASS"."""
    module, colon, name = scope.partition(":")
    names = [*module.split("."), name]
    if not colon or not all(map(is_name, names)):
        raise ConfigurationError(
            f"The scope {scope!r} is no MODULE:CLASS; write it as in accounts.scopes:Scope."
        )
    return module, name


def check_scope(scope: str, field: str, folder: Path) -> None:
    """See that it can be imported from ``folder``, and that ``field`` alone makes one."""
    module, name = parts(scope)
    made = _imported(module, name, folder)
    try:
        found = getattr(made(**{field: SOMEBODY}), field)
    except Exception as error:
        raise ConfigurationError(
            f"{scope} cannot be made with {field}={SOMEBODY!r} alone ({_said(error)}); name its "
            "field with --owner-field, or leave out --scope and import the class in scope.py."
        ) from None
    if found != SOMEBODY:
        raise ConfigurationError(
            f"{scope} that is made with {field}={SOMEBODY!r} has {found!r:.60} there; name "
            "another field with --owner-field."
        )


def _imported(module: str, name: str, folder: Path) -> Any:
    before = sys.path[:], sys.dont_write_bytecode
    # Where the project's own tests look first; nothing is to be left there by looking.
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        importlib.invalidate_caches()
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"There is no module {error.name or module!r}; --scope names one that is installed, "
            f"or lies in {folder}."
        ) from None
    except (Exception, SystemExit) as error:
        raise ConfigurationError(
            f"The module {module!r} cannot be imported ({_said(error)})."
        ) from None
    finally:
        sys.path[:], sys.dont_write_bytecode = before
    found = getattr(loaded, name, None)
    if not isinstance(found, type):
        raise ConfigurationError(f"The module {module!r} has no class {name!r}.")
    return found


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
