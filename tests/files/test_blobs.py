"""One suite for blobs on disk, in a database, over fsspec in memory, and in NATS."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.files import Blob, FileError, FileStorage, InvalidPath, NotStorable, PathTaken
from sagents_nb.runtime.thread import runtime
from tests.bus.conftest import NatsServer, nats_server
from tests.talking import in_threads

__all__ = ["nats_server"]  # a fixture

KINDS = ["disk", "sql", "fsspec", "nats"]


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], FileStorage]]:
    """Makes a storage of one kind, each time over the same place, as another process would."""
    name = uuid.uuid4().hex
    if request.param == "disk":
        yield lambda: sa.DiskStorage(tmp_path / "blobs")
    elif request.param == "sql":
        yield lambda: sa.SQLStorage(f"sqlite:///{tmp_path / 'blobs.db'}")
    elif request.param == "fsspec":
        yield lambda: sa.FsspecStorage(f"memory://{name}")
    else:
        server: NatsServer = request.getfixturevalue("nats_server")
        bus = sa.NatsBus(server.url)
        yield lambda: sa.NatsStorage(bus, name)
        runtime.submit(bus.close()).result()


@pytest.fixture
def blobs(storage: Callable[[], FileStorage]) -> sa.BlobStore:
    return sa.BlobStore(storage())


class Clock:
    """The time, as a test says it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.spec("R4.4.2")
def test_a_blob_comes_back_with_all_that_was_said_of_it(
    storage: Callable[[], FileStorage],
) -> None:
    data = bytes(range(256)) * 2_000
    put = sa.BlobStore(storage()).put("plots/a.png", data, metadata={"of": "tides", "n": [1]})
    got = sa.BlobStore(storage()).get("plots/a.png")
    assert got.data == data
    assert (got.size, got.mime_type) == (len(data), "image/png")
    assert got.metadata == {"of": "tides", "n": [1]}
    assert (got.sha256, got.expires_at) == (put.sha256, None)
    assert put.data is None


@pytest.mark.spec("R4.4.2")
@pytest.mark.parametrize("data", [b"", b"plain", "höher \0", b"\xff\x00"])
def test_any_data_comes_back_as_bytes(blobs: sa.BlobStore, data: bytes | str) -> None:
    blobs.put("any.bin", data)
    assert blobs.get("any.bin").data == (data.encode() if isinstance(data, str) else data)
    assert blobs.list()[0].size == len(blobs.get("any.bin").data or b"")


@pytest.mark.spec("R4.4.2")
def test_a_name_that_is_taken_is_refused_and_what_is_there_stays(blobs: sa.BlobStore) -> None:
    blobs.put("a.txt", "first")
    with pytest.raises(PathTaken, match=r"a\.txt exists already"):
        blobs.put("a.txt", "second")
    assert blobs.get("a.txt").data == b"first"
    blobs.delete("a.txt")
    blobs.delete("a.txt")
    blobs.put("a.txt", "third")
    assert blobs.get("a.txt").data == b"third"


@pytest.mark.spec("R4.4.2")
def test_a_missing_blob_is_an_error(blobs: sa.BlobStore) -> None:
    with pytest.raises(sa.FileMissing, match=r"no blob 'a\.txt'; list them"):
        blobs.get("a.txt")
    assert blobs.list() == []


@pytest.mark.spec("R4.4.2")
def test_a_blob_that_has_lived_its_time_is_gone_from_everywhere(
    storage: Callable[[], FileStorage],
) -> None:
    clock = Clock()
    blobs = sa.BlobStore(storage(), clock=clock)
    blobs.put("short.txt", "s", ttl=60)
    blobs.put("long.txt", "l", ttl=600)
    clock.now += 59.9
    assert [blob.name for blob in blobs.list()] == ["long.txt", "short.txt"]
    clock.now += 0.1
    with pytest.raises(sa.FileMissing):
        blobs.get("short.txt")
    assert [blob.name for blob in blobs.list()] == ["long.txt"]
    kept = [entry.path for entry in storage().list("blobs") if not entry.is_directory]
    assert kept == ["long.txt"]
    blobs.put("short.txt", "again")
    assert blobs.get("short.txt").data == b"again"


@pytest.mark.spec("R4.4.2")
def test_a_name_whose_blob_has_lived_its_time_is_free(storage: Callable[[], FileStorage]) -> None:
    clock = Clock()
    blobs = sa.BlobStore(storage(), clock=clock)
    blobs.put("a.txt", "old", ttl=1, metadata={"old": True})
    clock.now += 1
    blobs.put("a.txt", "new")
    assert (blobs.get("a.txt").data, blobs.get("a.txt").metadata) == (b"new", {})


@pytest.mark.spec("R4.4.2")
def test_a_list_has_no_data_and_is_by_name(blobs: sa.BlobStore) -> None:
    for name in ("b/2.txt", "b/1.txt", "a.txt", "b-2.txt"):
        blobs.put(name, name, metadata={"name": name})
    found = blobs.list("b/")
    assert [(blob.name, blob.data, blob.metadata) for blob in found] == [
        ("b/1.txt", None, {"name": "b/1.txt"}),
        ("b/2.txt", None, {"name": "b/2.txt"}),
    ]
    assert len(blobs.list()) == 4


def test_of_many_who_put_one_name_at_once_one_does(blobs: sa.BlobStore) -> None:
    outcomes: list[Any] = in_threads(8, lambda n: blobs.put("a.txt", f"{n}"))
    put = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Blob)]
    assert len(put) == 1
    assert blobs.get("a.txt").data == f"{put[0]}".encode()
    assert sum(isinstance(outcome, PathTaken) for outcome in outcomes) == 7


class Late(sa.DiskStorage):
    """One that does not see yet what another process has just put."""

    def load(self, scope: str, path: str) -> Any:
        raise FileNotFoundError(path)


def test_what_another_process_put_just_now_is_not_replaced(tmp_path: Path) -> None:
    sa.BlobStore(sa.DiskStorage(tmp_path)).put("a.txt", "first")
    with pytest.raises(PathTaken, match=r"a\.txt exists already"):
        sa.BlobStore(Late(tmp_path)).put("a.txt", "second")
    assert sa.BlobStore(sa.DiskStorage(tmp_path)).get("a.txt").data == b"first"


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/../b", "a\0b", "a//b"])
def test_what_is_no_name_is_refused_and_nothing_is_kept(blobs: sa.BlobStore, name: str) -> None:
    for ask in (lambda: blobs.put(name, "x"), lambda: blobs.get(name), lambda: blobs.delete(name)):
        with pytest.raises(InvalidPath):
            ask()
    assert blobs.list() == []


def test_metadata_that_no_json_holds_is_refused(blobs: sa.BlobStore) -> None:
    with pytest.raises(NotStorable, match="no JSON data"):
        blobs.put("a.txt", "x", metadata={"o": threading.Lock()})
    assert blobs.list() == []


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e30, "1"])
def test_a_time_to_live_is_seconds_above_0(tmp_path: Path, ttl: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="ttl"):
        sa.BlobStore(sa.DiskStorage(tmp_path)).put("a.txt", "x", ttl=ttl)


def test_scopes_have_names_of_their_own_where_the_storage_tells_them_apart(tmp_path: Path) -> None:
    storage = sa.SQLStorage(f"sqlite:///{tmp_path / 'blobs.db'}")
    mine, theirs = sa.BlobStore(storage, "me"), sa.BlobStore(storage, "them")
    mine.put("a.txt", "mine")
    assert theirs.list() == []
    theirs.put("a.txt", "theirs")
    assert mine.get("a.txt").data == b"mine"


@pytest.mark.parametrize("bucket", ["", "a b", "a.b", "a/b"])
def test_what_is_no_bucket_is_refused(bucket: str) -> None:
    with pytest.raises(sa.ConfigurationError, match="bucket"):
        sa.NatsStorage(sa.NatsBus(), bucket)


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    blobs = sa.BlobStore(sa.NatsStorage(sa.NatsBus("nats://127.0.0.1:1")))
    with pytest.raises((ConnectionError, FileError), match="could not be reached"):
        blobs.list()
