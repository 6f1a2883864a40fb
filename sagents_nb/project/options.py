"""What a project is to be like, checked before anything is written."""

from __future__ import annotations

import importlib
import keyword
import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from .. import kinds
from ..errors import ConfigurationError

SOMEBODY = "alice"
"""Whose conversations the notebook and the tests of a project are."""

NO_OWNER = "none"
_OTHER_PACKAGES = {"data", "notebooks", "sagents_nb", "tests"}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """``folder`` is where the project goes, ``package`` the name that is imported.

    ``scope`` is "MODULE:CLASS", or empty for a class of the project's own; its instances have
    the id of their owner, an ``owner_type``, as ``owner_field``. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for what no project can be made of.
    """

    folder: Path
    package: str = ""
    scope: str = ""
    owner_type: str = "user"
    owner_field: str = "user_id"
    table_prefix: str = "sagents_"
    model: str = "demo"

    def __post_init__(self) -> None:
        kinds.check_fields(self)
        folder = Path(os.path.abspath(self.folder.expanduser()))
        force_setattr(self, "folder", folder)
        if not self.package:
            force_setattr(self, "package", _package_of(folder))
        _check_package(self.package)
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.owner_type):
            raise ConfigurationError(
                f"The owner type {self.owner_type!r} is not one word in small letters; write "
                f"user, account, team, org or the like, or {NO_OWNER!r}."
            )
        _check_name("owner field", self.owner_field)
        _check_prefix(self.table_prefix)
        _check_model(self.model)
        if self.scope and not self.has_owner:
            raise ConfigurationError(
                "Conversations without owners have no scope; leave out --scope or the owner type "
                f"{NO_OWNER!r}."
            )
        if self.scope:
            _check_scope(self.scope, self.owner_field, self.folder)

    @property
    def has_owner(self) -> bool:
        """Whether conversations belong to somebody."""
        return self.owner_type != NO_OWNER


def _package_of(folder: Path) -> str:
    name = re.sub(r"\W+", "_", folder.name, flags=re.ASCII).strip("_").lower()
    if not name.isidentifier():
        raise ConfigurationError(
            f"No package can be called after {folder.name!r}; name one with --package."
        )
    return name


def _check_package(name: str) -> None:
    _check_name("package", name)
    if name in _OTHER_PACKAGES or name in sys.stdlib_module_names:
        raise ConfigurationError(
            f"{name!r} is something else's name already; name the package with --package."
        )


def _check_name(what: str, name: str) -> None:
    if not _is_name(name) or name.startswith("_"):
        raise ConfigurationError(
            f"The {what} {name!r} cannot be a name in Python; begin with a letter, and "
            "use letters, digits and _."
        )


def _check_prefix(prefix: str) -> None:
    from ..store import ConversationStore  # noqa: F401  names the extra if SQLAlchemy is missing
    from ..store.database.schema import tables

    tables(prefix)


def _check_model(spec: str) -> None:
    from ..models.named import named_model

    named_model(spec)


def _is_name(text: str) -> bool:
    """Whether it is a name in Python, of letters that are the same on every disk."""
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text)


def scope_parts(scope: str) -> tuple[str, str]:
    """The module and the class of "MODULE:CLASS"."""
    module, colon, name = scope.partition(":")
    names = [*module.split("."), name]
    if not colon or not all(map(_is_name, names)):
        raise ConfigurationError(
            f"The scope {scope!r} is no MODULE:CLASS; write it as in accounts.scopes:Scope."
        )
    return module, name


def _check_scope(scope: str, field: str, folder: Path) -> None:
    """See that it can be imported from ``folder``, and that ``field`` alone makes one."""
    module, name = scope_parts(scope)
    scope_class = _imported(module, name, folder)
    try:
        owner = getattr(scope_class(**{field: SOMEBODY}), field)
    except Exception as error:
        raise ConfigurationError(
            f"{scope} cannot be made with {field}={SOMEBODY!r} alone ({_failure(error)}); name its "
            "field with --owner-field, or leave out --scope and import the class in scope.py."
        ) from None
    if owner != SOMEBODY:
        raise ConfigurationError(
            f"{scope} that is made with {field}={SOMEBODY!r} has {owner!r:.60} there; name "
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
            f"The module {module!r} cannot be imported ({_failure(error)})."
        ) from None
    finally:
        sys.path[:], sys.dont_write_bytecode = before
    scope_class = getattr(loaded, name, None)
    if not isinstance(scope_class, type):
        raise ConfigurationError(f"The module {module!r} has no class {name!r}.")
    return scope_class


def _failure(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
