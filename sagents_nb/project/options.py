"""What a project is to be like, checked before anything is written."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec
from msgspec.structs import force_setattr

from ..errors import ConfigurationError
from .existing_scope import check_scope, is_name

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
            check_scope(self.scope, self.owner_field, self.folder)

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
    if not is_name(name) or name.startswith("_"):
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
