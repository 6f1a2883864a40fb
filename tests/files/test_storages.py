"""Every storage passes the one suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sagents_nb.files.conformance import StorageConformance
from sagents_nb.files.disk import DiskStorage
from sagents_nb.files.sql import SQLStorage

pytestmark = pytest.mark.spec("S1.8.12", "S1.8.13", "S1.8.16")


class TestDisk(StorageConformance):
    keeps_scopes_apart = False

    def storage(self) -> DiskStorage:
        return DiskStorage(self.tmp_path / "not made yet" / "files", fsync=False)


class TestSQLite(StorageConformance):
    def storage(self) -> SQLStorage:
        return SQLStorage(f"sqlite:///{self.tmp_path / 'files.db'}")


class TestSQLiteInMemory(StorageConformance):
    """One engine for all of a test, because its database ends with it."""

    @pytest.fixture(autouse=True)
    def _engine(self) -> Iterator[None]:
        self.engine = SQLStorage("sqlite://")._engine
        yield
        self.engine.dispose()

    def storage(self) -> SQLStorage:
        return SQLStorage(self.engine)


class TestPostgreSQL(StorageConformance):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def storage(self) -> SQLStorage:
        return SQLStorage(self.url)
