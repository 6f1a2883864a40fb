"""Every storage passes the one suite."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from sagents_nb.bus import NatsBus
from sagents_nb.files.conformance import StorageConformance
from sagents_nb.files.entry import FileEntry, guessed_type
from sagents_nb.files.storages.callbacks import CallbackStorage
from sagents_nb.files.storages.disk import DiskStorage
from sagents_nb.files.storages.fsspec import FsspecStorage
from sagents_nb.files.storages.nats import NatsStorage
from sagents_nb.files.storages.sql import SQLStorage
from sagents_nb.runtime.thread import runtime
from tests.bus.conftest import NatsServer, nats_server

__all__ = ["nats_server"]  # a fixture

pytestmark = pytest.mark.spec("S1.8.12", "S1.8.13", "S1.8.16")


class TestDisk(StorageConformance):
    keeps_scopes_apart = False

    def storage(self) -> DiskStorage:
        return DiskStorage(self.tmp_path / "not made yet" / "files", fsync=False)


class TestNats(StorageConformance):
    @pytest.fixture(autouse=True)
    def bus(self, nats_server: NatsServer) -> Iterator[None]:
        self._bus, self._bucket = NatsBus(nats_server.url), uuid.uuid4().hex
        yield
        runtime.submit(self._bus.close()).result()

    def storage(self) -> NatsStorage:
        return NatsStorage(self._bus, self._bucket)


class TestSQLite(StorageConformance):
    def storage(self) -> SQLStorage:
        return SQLStorage(f"sqlite:///{self.tmp_path / 'files.db'}")


class TestPostgreSQL(StorageConformance):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def storage(self) -> SQLStorage:
        return SQLStorage(self.url)


class TestFsspecInMemory(StorageConformance):
    keeps_scopes_apart = False

    def storage(self) -> FsspecStorage:
        return FsspecStorage(f"memory://{self.tmp_path}")


class TestFsspecOnDisk(StorageConformance):
    keeps_scopes_apart = False

    def storage(self) -> FsspecStorage:
        return FsspecStorage(f"file://{self.tmp_path}/not made yet/files")


class TestCallbacks(StorageConformance):
    """A store of contents alone."""

    keeps_metadata = False
    keeps_directories = False

    def storage(self) -> CallbackStorage:
        kept: dict[tuple[str, str], str | bytes] = self.__dict__.setdefault("kept", {})
        return CallbackStorage(
            on_read=lambda path, context: kept.get((context["scope"], path)),
            on_write=lambda path, text, context: kept.update({(context["scope"], path): text}),
            on_delete=lambda path, context: kept.pop((context["scope"], path), None),
            on_list=lambda context: [p for scope, p in list(kept) if scope == context["scope"]],
        )


class TestAsyncCallbacks(StorageConformance):
    """A store of whole entries, whose functions are async."""

    keeps_directories = False

    def storage(self) -> CallbackStorage:
        kept: dict[tuple[str, str], FileEntry] = self.__dict__.setdefault("kept", {})

        async def read(path: str, context: dict[str, Any]) -> FileEntry | None:
            await asyncio.sleep(0)
            return kept.get((context["scope"], path))

        async def write(path: str, content: str | bytes, context: dict[str, Any]) -> None:
            await asyncio.sleep(0)
            kept[context["scope"], path] = context["entry"]

        async def delete(path: str, context: dict[str, Any]) -> None:
            kept.pop((context["scope"], path), None)

        async def listed(context: dict[str, Any]) -> list[FileEntry]:
            return [entry for (scope, _), entry in kept.items() if scope == context["scope"]]

        return CallbackStorage(on_read=read, on_write=write, on_delete=delete, on_list=listed)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/notes.md", "text/markdown"),
        ("/NOTES.MD", "text/markdown"),
        ("/cmd", "application/octet-stream"),
        ("/d.md/x", "application/octet-stream"),
        ("/a.b.csv", "text/csv"),
        ("/rows.csv.gz", "text/csv"),
        ("/all.tgz", "application/x-tar"),
        ("/R.PNG", "image/png"),
        ("/.bashrc", "application/octet-stream"),
        ("/.hidden.json", "application/json"),
        ("/a.", "application/octet-stream"),
    ],
)
def test_the_kind_of_a_file_is_told_by_its_endings(path: str, kind: str) -> None:
    assert guessed_type(path) == kind
