"""Which file is kept where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sagents_nb.errors import ConfigurationError
from sagents_nb.files import (
    DiskStorage,
    FileError,
    FileStorage,
    FileSystem,
    LimitExceeded,
    Mount,
    ReadOnly,
    filesystems,
    open_filesystem,
)
from sagents_nb.files import open_filesystem as open_fs
from sagents_nb.files.mounts import Mounts
from tests.files.doubles import Desk, DictStorage, HandClock, RichStorage, stored


def mounted(*mounts: Mount) -> FileSystem:
    return FileSystem(("test", 1), mounts, clock=HandClock())


@pytest.mark.parametrize(
    ("address", "way"),
    [
        ("s3://key:secret@bucket/x", r"storage=sa\.FsspecStorage\('s3://…'\)"),
        ("gs://bucket/secret", r"storage=sa\.FsspecStorage\('gs://…'\)"),
        ("HTTPS://x.no/secret", r"storage=sa\.FsspecStorage\('https://…'\)"),
        (Path("s3://bucket/secret"), r"storage=sa\.FsspecStorage\('s3://…'\)"),
        ("sqlite:///secret.db", r"storage=sa\.SQLStorage\('sqlite://…'\)"),
        ("postgresql+psycopg://me:secret@host/x", r"storage=sa\.SQLStorage\('postgresql"),
        ("file:///tmp/secret", r"give its path alone, without 'file://'"),
    ],
)
def test_an_address_is_no_folder_and_the_storage_for_it_is_named(
    address: Any, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for make in (DiskStorage, lambda place: Mount("m", place, readonly=True)):
        with pytest.raises(
            ConfigurationError, match=rf"is an address, and no folder .*{way}"
        ) as told:
            make(address)
        assert "secret" not in str(told.value)
    mounted(Mount("m", "./s3:/x", debounce=0)).write("/m/a.md", "A")
    assert (tmp_path / "s3:/x/a.md").read_text() == "A"
    assert [path.name for path in tmp_path.iterdir()] == ["s3:"]


def test_a_tilde_is_the_home_of_who_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.md").write_text("A")
    assert mounted(Mount("m", "~", readonly=True)).list() == ["/m/a.md"]
    assert mounted(Mount("m", Path("~"))).list() == ["/m/a.md"]
    assert caplog.records == []


@pytest.mark.spec("S1.8.3")
def test_what_no_mount_takes_is_in_memory_and_no_storage_hears_of_it() -> None:
    desk = Desk()
    desk.storage.asked.clear()
    desk.fs.write("/other/a.md", "x")
    desk.fs.write("/other/a.md", "y")
    desk.fs.update_metadata("/other/a.md", {"k": 1})
    desk.fs.move("/other/a.md", "/b.md")
    desk.fs.delete("/b.md")
    desk.clock.pass_time(100)
    assert desk.storage.asked == []
    assert desk.fs.stats().dirty == 0


@pytest.mark.spec("S1.8.3")
def test_a_base_takes_whole_segments() -> None:
    storage = DictStorage()
    fs = mounted(Mount("base", storage))
    assert fs.write("/base/x", "1").persistence == "persisted"
    assert fs.write("/basefoo", "2").persistence == "memory"
    assert fs.write("/Base/x", "3").persistence == "memory"
    assert storage.contents() == {"x": "1"}
    with pytest.raises(FileError, match="/base is a directory"):
        fs.write("/base", "x")


@pytest.mark.spec("S1.8.3")
def test_the_default_mount_takes_the_rest_and_a_base_beats_it() -> None:
    rest, notes = DictStorage(), DictStorage()
    fs = mounted(Mount(default=True, storage=rest), Mount("notes", notes))
    fs.write("/notes/a.md", "1")
    fs.write("/b.md", "2")
    fs.write("/c/d.md", "3")
    assert notes.contents() == {"a.md": "1"}
    assert rest.contents() == {"b.md": "2", "c/d.md": "3"}


@pytest.mark.spec("S1.8.4", "P11")
@pytest.mark.parametrize("turned", [False, True])
def test_the_longest_base_wins_in_any_order(turned: bool) -> None:
    outer, inner = DictStorage(), DictStorage()
    outer.save("", stored("b/hidden.md", "nobody sees this"))
    mounts = [Mount("a", outer), Mount("a/b", inner)]
    fs = mounted(*(reversed(mounts) if turned else mounts))
    fs.write("/a/x", "1")
    fs.write("/a/b/x", "2")
    fs.write("/a/bc/x", "3")
    assert inner.contents() == {"x": "2"}
    assert set(outer.contents()) == {"x", "bc/x", "b/hidden.md"}
    assert fs.list() == ["/a/b/x", "/a/bc/x", "/a/x"]


@pytest.mark.spec("S1.8.3")
@pytest.mark.parametrize(
    "options",
    [
        {"base": "//a"},
        {"base": "a/"},
        {"base": ".a"},
        {"base": "a."},
        {"base": ""},
        {"base": "a//b"},
        {"base": "a/../b"},
        {"base": "a/./b"},
        {"base": "~a"},
        {"base": "con"},
        {"base": 3},
        {"base": "a", "debounce": -1},
        {"base": "a", "debounce": float("nan")},
        {"base": "a", "debounce": float("inf")},
        {"base": "a", "debounce": "5"},
        {"base": "a", "default": True},
        {},
        {"base": "a", "storage": None},
        {"base": "a", "storage": object()},
    ],
)
def test_a_mount_that_cannot_be_is_a_configuration_error(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"(?i)mount|debounce"):
        Mount(**{"storage": DictStorage(), **options})


@pytest.mark.spec("S1.8.3")
def test_one_base_is_mounted_once() -> None:
    storage = DictStorage()
    with pytest.raises(ConfigurationError, match="a mount at 'a' already"):
        mounted(Mount("a", storage), Mount("a", DictStorage()))
    with pytest.raises(ConfigurationError, match="a default mount already"):
        mounted(Mount(default=True, storage=storage), Mount(default=True, storage=storage))
    fs = mounted(Mount("a", storage))
    with pytest.raises(ConfigurationError, match="already"):
        fs.mount(Mount("a", DictStorage()))
    with pytest.raises(ConfigurationError, match="is a Mount"):
        fs.mount("a")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="is a list"):
        FileSystem(("test", 1), Mount("a", storage))  # type: ignore[arg-type]


@pytest.mark.spec("S1.8.1")
def test_a_storage_is_told_the_scope_as_text() -> None:
    storage = DictStorage()
    scope = ("agent", "x1")
    FileSystem(scope, [Mount("m", storage)]).write("/m/a", "x")
    assert storage.scopes == {"agent:x1"}


@pytest.mark.spec("S1.8.1")
def test_no_two_scopes_are_one_text() -> None:
    storage = DictStorage()
    for scope in (("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c"), ("a", "b", "c")):
        FileSystem(scope, [Mount("m", storage)])
    assert len(storage.scopes) == 4


def test_the_protocol_knows_a_storage() -> None:
    assert isinstance(DictStorage(), FileStorage)
    assert isinstance(RichStorage(), FileStorage)
    assert not isinstance({}, FileStorage)


@pytest.mark.spec("S1.8.15")
def test_opening_again_adds_the_mounts_that_are_new() -> None:
    scope = ("test", "mounts")
    one, two = DictStorage(), DictStorage()
    try:
        fs = open_fs(scope)
        fs.write("/one/early.md", "in memory until now")
        assert open_fs(scope, [Mount("one", one)]) is fs
        assert open_fs(scope, [Mount("one", DictStorage()), Mount("two", two)]) is fs
        assert [mount.base for mount in fs.mounts] == ["one", "two"]
        assert one.contents() == {"early.md": "in memory until now"}
        with pytest.raises(ConfigurationError, match="already"):
            open_fs(scope, [Mount("x", one), Mount("x", two)])
    finally:
        filesystems.close(scope)


@pytest.mark.spec("S1.8.15")
def test_opening_again_with_another_place_is_an_error_and_not_the_old_place() -> None:
    class Placed(DictStorage):
        def __init__(self, place: str) -> None:
            super().__init__()
            self.place = place

        def __repr__(self) -> str:
            return f"Placed({self.place!r})"

    scope = ("test", "other place")
    try:
        fs = open_fs(scope, [Mount("m", Placed("here"))])
        assert open_fs(scope, [Mount("m", Placed("here"))]) is fs
        for other in (
            Mount("m", Placed("there")),
            Mount("m", DictStorage()),
            Mount("m", Placed("here"), readonly=True),
            Mount("m", Placed("here"), debounce=1),
        ):
            with pytest.raises(ConfigurationError, match=r"/m is mounted .*filesystems\.close"):
                open_fs(scope, [Mount("n", DictStorage()), other])
        assert len(fs.mounts) == 1
    finally:
        filesystems.close(scope)


@pytest.mark.spec("S1.8.6")
def test_a_read_only_mount_is_read_and_nothing_else() -> None:
    storage = RichStorage()
    storage.save("", stored("d/a.md", "x", title="A"))
    storage.asked.clear()
    fs = mounted(Mount("ro", storage, readonly=True))
    fs.write("/b.md", "y")
    before = fs.entries()
    for change in (
        lambda: fs.write("/ro/d/a.md", "z"),
        lambda: fs.write("/ro/new.md", "z"),
        lambda: fs.edit("/ro/d/a.md", lambda entry: "z"),
        lambda: fs.delete("/ro/d/a.md"),
        lambda: fs.delete("/ro/no.md"),
        lambda: fs.mkdir("/ro/e"),
        lambda: fs.mkdir("/ro"),
        lambda: fs.update_metadata("/ro/d/a.md", {"k": 1}),
        lambda: fs.update_entry("/ro/d/a.md", title="B"),
        lambda: fs.move("/ro/d/a.md", "/c.md"),
        lambda: fs.move("/ro/d", "/d"),
        lambda: fs.move("/b.md", "/ro/b.md"),
        lambda: fs.register(stored("ro/r.md", "r")),
    ):
        with pytest.raises(ReadOnly, match="is in /ro, which is read-only"):
            change()
    assert [e.path for e in fs.entries()] == [e.path for e in before]
    assert fs.read("/ro/d/a.md").content == "x"
    assert fs.exists("/ro/d")
    assert {what for what, _ in storage.asked} == {"list", "load"}


def test_a_directory_above_a_read_only_mount_does_not_move_with_it() -> None:
    fs = mounted(Mount("a/ro", DictStorage(), readonly=True))
    fs.mkdir("/a/b")
    with pytest.raises(FileError):
        fs.move("/a/b", "/a/ro/b")
    assert fs.exists("/a/b")


def test_under_a_read_only_default_a_mount_needs_no_directory_made_there() -> None:
    outer, inner = DictStorage(), DictStorage()
    fs = mounted(Mount(default=True, storage=outer, readonly=True), Mount("a/b", inner))
    fs.write("/a/b/c/x.md", "x")
    assert fs.list() == ["/a/b/c/x.md"]
    assert outer.files == {}
    assert inner.contents() == {"c/x.md": "x"}


@pytest.mark.spec("S1.8.14")
def test_stats_of_mounted_and_other_files_add_up() -> None:
    desk = Desk()
    desk.storage.save("", stored("old.md", "12345"))
    desk = Desk(desk.storage)
    desk.fs.write("/m/d/new.md", "1")
    desk.fs.write("/m/d/new.md", "12")
    desk.fs.write("/mem.md", "1")
    stats = desk.fs.stats()
    assert (stats.total, stats.memory, stats.persisted) == (5, 1, 4)
    assert (stats.loaded, stats.not_loaded, stats.dirty, stats.size) == (4, 1, 1, 8)
    assert stats.total == stats.memory + stats.persisted == stats.loaded + stats.not_loaded


def test_a_mount_is_said_as_paths_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("on disk")
    fs = open_filesystem([Mount("/data", str(tmp_path)), Mount("/", DictStorage())])
    assert fs.read("/data/a.md").content == "on disk"
    assert fs.write("/b.md", "kept").persistence == "persisted"
    assert Mount("/data", tmp_path).is_like(Mount("data", DiskStorage(tmp_path)))


def test_filesystems_without_a_scope_are_each_their_own() -> None:
    first, second = open_filesystem([Mount("notes", DictStorage())]), open_filesystem()
    first.write("/notes/a.md", "x")
    assert not second.exists("/notes/a.md")
    assert first.scope not in filesystems.list()


@pytest.mark.parametrize(
    ("path", "mime_type"),
    [
        ("/a.csv", "text/csv"),
        ("/a.py", "text/x-python"),
        ("/a.txt", "text/plain"),
        ("/a.json", "application/json"),
        ("/a.ts", "text/typescript"),
        ("/a.md", "text/markdown"),
        ("/a", "text/markdown"),
        ("/a.png", "text/markdown"),
    ],
)
def test_a_text_has_the_type_of_its_name(path: str, mime_type: str) -> None:
    assert open_filesystem().write(path, "x").mime_type == mime_type


def test_a_path_of_too_many_directories_is_refused_before_each_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = mounted(Mount("/m", DictStorage()))
    looked: list[str] = []
    of = Mounts.of
    monkeypatch.setattr(Mounts, "of", lambda self, path: (looked.append(path), of(self, path))[1])
    with pytest.raises(LimitExceeded, match="more than 32 levels"):
        files.write("/m/" + "d/" * 1000 + "x", "a")
    assert len(looked) < 50
