"""What there is besides threads: agencies, the kinds of agents they have, and their variables."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sql

from ..errors import ConfigurationError, NotFound
from ..store.database.schema import Tables
from ..store.database.thread import Database
from . import agencies, blueprints, variables
from .agencies import Agency
from .blueprints import Blueprint, KeptBlueprint
from .system import AgentSystem


class Catalogue:
    """Agencies, with the blueprints and variables of each, in a ``database``.

    Blueprints of the ``system`` are for all agencies; of the process's variables those of the
    ``environment`` may be named. For no event loop.
    """

    def __init__(
        self, database: Database, system: AgentSystem, environment: Collection[str]
    ) -> None:
        self._database = database
        self._system = system
        self._environment = environment
        self._key: bytes | None = None

    # agencies

    def create(self, name: str | None) -> tuple[Agency, str]:
        """A new agency, and its secret."""
        return self._database.query(agencies.create, name)

    def agencies(self) -> list[Agency]:
        """All of them, the newest first."""
        return self._database.query(agencies.listed)

    def agency(self, id: str) -> Agency:
        """The one of that id; raises NotFound."""
        return self._database.query(agencies.get, id)

    def of_secret(self, digest: str) -> str | None:
        """The id of the agency that the token of that digest opens."""
        return self._database.query(agencies.of_secret, digest)

    def new_secret(self, agency: Agency) -> str:
        """Another secret for an agency."""
        _refuse_notebook(agency)
        return self._database.query(agencies.new_secret, agency.id)

    def forget(self, agency: Agency) -> None:
        """Delete an agency, whose threads are deleted already."""
        self._database.query(agencies.delete, agency)

    # blueprints

    def blueprints(self, agency: Agency) -> list[KeptBlueprint]:
        """Those that an agency can use, by name."""
        if agency.is_notebook:
            return []
        kept = self._database.query(blueprints.listed, agency.id)
        return blueprints.merged(self._system.blueprints.values(), kept)

    def blueprint(self, agency: Agency, name: str) -> Blueprint:
        """The one that threads of that kind are made of now; raises NotFound."""
        _refuse_notebook(agency)
        kept = self._database.query(blueprints.find, agency.id, name)
        found = self._system.blueprints.get(name) if kept is None else kept.blueprint
        if found is None:
            raise _no_blueprint(name)
        return found

    def save_blueprint(self, agency: Agency, changes: Mapping[str, Any]) -> KeptBlueprint:
        """A further version of the blueprint ``changes["name"]``."""
        _refuse_notebook(agency)

        def save(connection: sql.Connection, tables: Tables) -> KeptBlueprint:
            agencies.get(connection, tables, agency.id)  # it may be deleted by now
            static = self._system.blueprints
            kept = blueprints.save(connection, tables, agency.id, changes, static)
            self._system.check(kept.blueprint)
            return kept

        return self._database.query(save)

    def versions(self, agency: Agency, name: str) -> list[KeptBlueprint]:
        """All versions of a blueprint, the newest first; raises NotFound."""
        _refuse_notebook(agency)
        found = self._database.query(blueprints.versions, agency.id, name)
        if name in self._system.blueprints:
            found.append(KeptBlueprint(self._system.blueprints[name]))
        if not found:
            raise _no_blueprint(name)
        return found

    def delete_blueprint(self, agency: Agency, name: str) -> None:
        """Forget what an agency keeps of a blueprint; raises NotFound."""
        self._database.query(blueprints.delete, agency.id, name)

    # variables

    def save_variables(self, agency: Agency, changes: Mapping[str, Any]) -> None:
        """Keep variables of an agency."""
        _refuse_notebook(agency)
        variables.check(changes, self._environment)
        self._database.query(variables.save, agency.id, changes)

    def variables(self, agency: Agency) -> list[str]:
        """Their names."""
        return list(self._database.query(variables.listed, agency.id))

    def values(self, agency: Agency) -> dict[str, Any]:
        """The variables of an agency, as its agents are told them."""
        return variables.resolved(
            self._database.query(variables.listed, agency.id), self._environment
        )

    def delete_variable(self, agency: Agency, name: str) -> None:
        """Forget one; raises NotFound."""
        self._database.query(variables.delete, agency.id, name)

    # names that clients choose

    def signed(self, text: str) -> bytes:
        """32 bytes for a text, the same from all over one store."""
        if self._key is None:
            self._key = self._database.query(variables.key_of_hub)
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")


def _refuse_notebook(agency: Agency) -> None:
    """Raise ConfigurationError for an agency in which nothing begins but in its notebook."""
    if agency.is_notebook:
        raise ConfigurationError(
            f"What {agency.name!r:.110} has begins in that notebook; choose another agency."
        )


def _no_blueprint(name: str) -> NotFound:
    return NotFound(
        f"This agency has no blueprint {name!r:.110}; its list of blueprints names them."
    )
