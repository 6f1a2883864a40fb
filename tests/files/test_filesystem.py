from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sagents_nb.errors import NotFound, SagentsError
from sagents_nb.events import Event, FileDeleted, FileMoved, FileUpdated
from sagents_nb.files import (
    FileError,
    FileMissing,
    FileSystem,
    FilesystemClosed,
    InvalidPath,
    LimitExceeded,
    PathTaken,
    WrongKind,
)


def paths_of(fs: FileSystem) -> list[str]:
    return [entry.path for entry in fs.entries()]


@pytest.mark.spec("S1.8.13")
def test_an_entry_knows_bytes_digest_times_and_types() -> None:
    before = datetime.now(UTC)
    entry = FileSystem().write("a.md", "é")
    assert (entry.path, entry.content, entry.size) == ("/a.md", "é", 2)
    assert entry.sha256 == hashlib.sha256("é".encode()).hexdigest()
    assert (entry.mime_type, entry.file_type, entry.persistence) == (
        "text/markdown",
        "markdown",
        "memory",
    )
    assert before <= entry.created_at == entry.modified_at <= datetime.now(UTC)
    assert entry.created_at.utcoffset() == timedelta(0)
    directory = FileSystem().mkdir("/d")
    assert (directory.file_type, directory.content, directory.size) == (None, None, 0)


@pytest.mark.spec("S1.8.13")
def test_bytes_stay_bytes_and_are_text_where_they_can_be() -> None:
    fs = FileSystem()
    image = fs.write("/i.png", b"\x89PNG\0")
    assert (image.content, image.text, image.mime_type) == (b"\x89PNG\0", None, "image/png")
    assert fs.write("/t.bin", "ä".encode()).text == "ä"
    assert fs.write("/latin.bin", "ä".encode("latin1")).text is None


@pytest.mark.spec("S1.7.3")
def test_an_empty_text_stays_an_empty_text() -> None:
    fs = FileSystem()
    fs.write("/empty.md", "")
    assert fs.read("/empty.md").content == ""
    assert fs.read("/empty.md").size == 0


@pytest.mark.spec("S1.7.3", "S1.8.11")
def test_missing_directories_are_made_and_titled_by_their_name() -> None:
    fs = FileSystem()
    fs.write("/a/b/c.md", "x")
    assert [(e.path, e.title, e.is_directory) for e in fs.entries()] == [
        ("/a", "a", True),
        ("/a/b", "b", True),
        ("/a/b/c.md", None, False),
    ]
    assert fs.list() == ["/a/b/c.md"]


@pytest.mark.spec("S1.8.11")
def test_mkdir_of_what_exists_says_so() -> None:
    fs = FileSystem()
    fs.mkdir("/a/b")
    fs.write("/f", "x")
    for path in ("/a", "/a/b", "/f", "/"):
        with pytest.raises(PathTaken, match="exists already"):
            fs.mkdir(path)


@pytest.mark.spec("S1.8.11", "S1.7.7")
def test_a_deleted_directory_keeps_its_files_and_is_listed_but_not_stored() -> None:
    fs = FileSystem()
    fs.write("/a/x.md", "x")
    fs.delete("/a")
    assert fs.exists("/a")
    assert fs.stats().total == 1
    assert paths_of(fs) == ["/a", "/a/x.md"]
    assert fs.stats().total == 1
    with pytest.raises(WrongKind, match="delete those"):
        fs.delete("/a")
    with pytest.raises(WrongKind, match="is a directory"):
        fs.read("/a")
    with pytest.raises(WrongKind, match="is a directory"):
        fs.write("/a", "x")
    assert fs.update_entry("/a", title="Now made").title == "Now made"
    assert fs.stats().total == 2


@pytest.mark.spec("S1.7.4")
def test_a_rewrite_keeps_creation_time_title_and_custom_metadata() -> None:
    fs = FileSystem()
    first = fs.write("/a", "1", title="A", custom={"k": [1]}, mime_type="text/x-own")
    second = fs.write("/a", "22")
    assert second.created_at == first.created_at
    assert second.modified_at >= first.modified_at
    assert (second.title, second.custom, second.mime_type) == ("A", {"k": [1]}, "text/x-own")
    third = fs.edit("/a", lambda entry: f"{entry.content}!")
    assert (third.content, third.custom) == ("22!", {"k": [1]})
    assert fs.write("/a", "3", title="B", custom={}).title == "B"
    assert fs.read("/a").custom == {}


def test_what_was_read_before_does_not_change() -> None:
    fs = FileSystem()
    old = fs.write("/a", "1", custom={"k": 1})
    fs.write("/a", "2", custom={"k": 2})
    fs.move("/a", "/b")
    assert (old.path, old.content, old.custom) == ("/a", "1", {"k": 1})


@pytest.mark.spec("S1.8.12")
def test_custom_metadata_merges_and_an_update_without_change_tells_nobody() -> None:
    fs = FileSystem()
    entry = fs.write("/a", "x", custom={"a": 1})
    events: list[Event] = []
    fs.subscribe(events.append)
    assert fs.update_metadata("/a", {"b": 2}).custom == {"a": 1, "b": 2}
    assert fs.update_entry("/a", title="T", file_type="draft", mime_type="text/plain") == fs.read(
        "/a"
    )
    assert len(events) == 2
    fs.update_metadata("/a", {"b": 2})
    fs.update_entry("/a", title="T")
    fs.update_entry("/a")
    assert len(events) == 2
    assert fs.read("/a").content == "x"
    assert fs.read("/a").modified_at == entry.modified_at


@pytest.mark.spec("S1.8.14")
def test_stats_count_and_add_up() -> None:
    fs = FileSystem()
    fs.write("/a/b.md", "12345")
    fs.write("/c.md", "é")
    stats = fs.stats()
    assert (stats.total, stats.size, stats.dirty, stats.not_loaded) == (3, 7, 0, 0)
    assert stats.total == stats.memory + stats.persisted == stats.loaded + stats.not_loaded
    fs.write("/c.md", "")
    fs.delete("/a/b.md")
    assert (fs.stats().total, fs.stats().size) == (2, 0)


@pytest.mark.spec("S1.7.8")
def test_a_directory_moves_with_its_children_and_its_neighbours_stay() -> None:
    fs = FileSystem()
    fs.write("/a/x.md", "x")
    fs.write("/a/s/y.md", "y", custom={"k": 1})
    fs.write("/ab/z.md", "z")
    moved = fs.move("/a", "/n/b")
    assert [e.path for e in moved] == ["/n/b", "/n/b/s", "/n/b/s/y.md", "/n/b/x.md"]
    assert moved[0].title == "b"
    assert fs.list() == ["/ab/z.md", "/n/b/s/y.md", "/n/b/x.md"]
    assert fs.read("/n/b/s/y.md").custom == {"k": 1}
    assert not fs.exists("/a")


@pytest.mark.spec("S1.7.8")
def test_a_directory_that_nobody_made_moves_too() -> None:
    fs = FileSystem()
    fs.write("/a/x.md", "x")
    fs.delete("/a")
    assert [e.path for e in fs.move("/a", "/b")] == ["/b/x.md"]
    assert paths_of(fs) == ["/b", "/b/x.md"]


@pytest.mark.spec("S1.7.8")
@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("/none", "/x", FileMissing),
        ("/none", "/none", FileMissing),
        ("/a", "/b.md", PathTaken),
        ("/b.md", "/a", PathTaken),
        ("/a", "/a/in", InvalidPath),
        ("/b.md", "/b.md/in", InvalidPath),
        ("/a", "/b.md/in", WrongKind),
        ("/", "/x", InvalidPath),
        ("/a", "/" + "d" * 200 + "/" + "/".join(["e" * 200] * 19) + "/" + "f" * 70, InvalidPath),
    ],
)
def test_a_move_that_cannot_be_moves_nothing(old: str, new: str, error: type[Exception]) -> None:
    fs = FileSystem()
    fs.write("/a/" + "n" * 100, "x")
    fs.write("/b.md", "y")
    events: list[Event] = []
    fs.subscribe(events.append)
    before = fs.entries()
    with pytest.raises(error):
        fs.move(old, new)
    assert fs.entries() == before
    assert events == []


@pytest.mark.spec("S1.7.8")
def test_moving_onto_itself_is_fine_and_does_nothing() -> None:
    fs = FileSystem()
    fs.write("/a/x", "x")
    events: list[Event] = []
    fs.subscribe(events.append)
    assert fs.move("/a", "a") == []
    assert events == []


@pytest.mark.spec("S1.8.15")
def test_events_come_after_success_only() -> None:
    fs = FileSystem()
    events: list[Event] = []
    seen: list[bool] = []
    fs.subscribe(events.append)
    fs.subscribe(lambda event: seen.append(fs.exists("/a/x.md")))
    fs.write("/a/x.md", "x", title="X")
    fs.move("/a", "/b")
    fs.delete("/b/x.md")
    fs.mkdir("/d")
    assert [e.type for e in events] == [
        "file_updated",
        "file_moved",
        "file_deleted",
        "file_updated",
    ]
    updated, moved, deleted, made = events
    assert isinstance(updated, FileUpdated)
    assert isinstance(moved, FileMoved)
    assert isinstance(deleted, FileDeleted)
    assert isinstance(made, FileUpdated)
    assert updated.entry["title"] == "X"
    assert "content" not in updated.entry
    assert (moved.old_path, moved.path, deleted.path) == ("/a", "/b", "/b/x.md")
    assert made.entry["is_directory"] is True
    assert seen == [True, False, False, False]
    failing: list[Callable[[], Any]] = [
        lambda: fs.delete("/none"),
        lambda: fs.write("/d", "x"),
        lambda: fs.mkdir("/d"),
        lambda: fs.move("/none", "/x"),
        lambda: fs.update_entry("/none", title="x"),
    ]
    for operation in failing:
        with pytest.raises(FileError):
            operation()
    assert len(events) == 4


@pytest.mark.spec("S1.8.15")
def test_a_failing_subscriber_hurts_nobody_and_one_may_unsubscribe(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fs = FileSystem()
    events: list[Event] = []

    def fail(event: Event) -> None:
        raise RuntimeError("subscriber")

    fs.subscribe(fail)
    unsubscribe = fs.subscribe(events.append)
    fs.write("/a", "1")
    unsubscribe()
    unsubscribe()
    fs.write("/a", "2")
    assert len(events) == 1
    assert "subscriber" in caplog.text


def test_a_subscriber_may_write_and_the_order_stays() -> None:
    fs = FileSystem()
    told: list[str] = []

    def copy(event: Event) -> None:
        if isinstance(event, FileUpdated) and event.path == "/a":
            fs.write("/copy", fs.read("/a").content or "")

    def tell(event: Event) -> None:
        if isinstance(event, FileUpdated):
            told.append(event.path)

    fs.subscribe(copy)
    fs.subscribe(tell)
    fs.write("/a", "1")
    assert told == ["/a", "/copy"]


@pytest.mark.spec("S1.8.8")
def test_reset_drops_files_in_memory_and_tells() -> None:
    fs = FileSystem()
    fs.write("/a/x", "x")
    events: list[Event] = []
    fs.subscribe(events.append)
    fs.reset()
    assert fs.entries() == []
    assert fs.stats().size == 0
    assert [e.path for e in events if isinstance(e, FileDeleted)] == ["/a", "/a/x"]
    fs.flush()


def test_limits_refuse_and_write_nothing() -> None:
    fs = FileSystem(max_file_size=10, max_total_size=25, max_entries=4, max_depth=3)
    events: list[Event] = []
    fs.write("/d/a", "é" * 5)
    fs.subscribe(events.append)
    before = fs.entries()
    with pytest.raises(LimitExceeded, match="11 bytes, over the limit of 10"):
        fs.write("/big", "x" * 11)
    with pytest.raises(LimitExceeded, match="3 levels"):
        fs.write("/1/2/3/4", "")
    with pytest.raises(LimitExceeded, match="limit is 4"):
        fs.write("/p/q/r", "")
    with pytest.raises(LimitExceeded, match="3 levels"):
        fs.move("/d", "/1/2/3")
    assert fs.entries() == before
    fs.write("/b", "x" * 10)
    with pytest.raises(LimitExceeded, match="all files would be 30 bytes"):
        fs.write("/c", "x" * 10)
    fs.write("/b", "y" * 10)  # in the place of the old ten bytes
    assert fs.stats().size == 20
    assert len(events) == 2


def test_errors_name_the_path_and_are_of_the_family() -> None:
    fs = FileSystem()
    with pytest.raises(NotFound, match="File not found: /none") as caught:
        fs.read("none")
    assert isinstance(caught.value, SagentsError)
    assert isinstance(caught.value, FileError)
    assert caught.value.path == "/none"
    fs.write("/f", "x")
    with pytest.raises(WrongKind, match="/f is a file"):
        fs.write("/f/in", "x")
    with pytest.raises(PathTaken):
        fs.write("/f", "y", overwrite=False)
    with pytest.raises(FileError, match="must be text or bytes, not int"):
        fs.write("/n", 1)  # type: ignore[arg-type]
    with pytest.raises(FileError, match="not Unicode"):
        fs.write("/n", "\ud800")
    for odd in ({"title": "a\ud800"}, {"mime_type": "text/\ud800"}):
        with pytest.raises(FileError, match=r"The (title|mime type) for .* has half a"):
            fs.write("/n", "x", **odd)
        with pytest.raises(FileError, match=r"The (title|mime type) for .* has half a"):
            fs.update_entry("/f", **odd)
    with pytest.raises(FileError, match="The title for /d has half a character"):
        fs.mkdir("/d", title="\ud800")
    with pytest.raises(InvalidPath, match="not NoneType"):
        fs.read(None)  # type: ignore[arg-type]
    assert fs.list() == ["/f"]


def test_a_closed_filesystem_says_so() -> None:
    fs = FileSystem()
    fs.write("/a", "x")
    fs.close()
    fs.close()
    for operation in (
        fs.entries,
        fs.reset,
        fs.flush,
        lambda: fs.read("/a"),
        lambda: fs.write("/a", "y"),
        lambda: fs.delete("/a"),
        lambda: fs.subscribe(print),
    ):
        with pytest.raises(FilesystemClosed, match="open_filesystem"):
            operation()


def test_edits_from_many_threads_lose_nothing() -> None:
    fs = FileSystem()
    fs.write("/n", "0")
    sizes: list[int] = []
    fs.subscribe(lambda event: sizes.append(1))

    def work(name: str) -> None:
        for i in range(200):
            fs.edit("/n", lambda entry: str(int(entry.text or "0") + 1))
            fs.write(f"/{name}/{i % 7}", name)
            fs.move(f"/{name}/{i % 7}", f"/{name}/m")
            fs.delete(f"/{name}/m")

    threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fs.read("/n").content == "1600"
    assert fs.list() == ["/n"]
    assert fs.stats().total == 9
    fs.write("/last", "")
    assert len(sizes) == 8 * 200 * 4 + 1


def test_a_directory_may_have_a_title() -> None:
    fs = FileSystem()
    assert fs.mkdir("/notes", title="My notes").title == "My notes"
    assert fs.mkdir("/other").title == "other"
