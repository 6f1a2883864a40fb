"""Files kept by functions of one's own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sagents_nb.errors import Busy, ConfigurationError
from sagents_nb.files import FileError, FileSystem, Mount, NotStorable, StorageFailed
from sagents_nb.files.entry import new_directory, new_file
from sagents_nb.files.storages.callbacks import CallbackStorage
from sagents_nb.runtime.thread import runtime

SCOPE = "user:1"


def test_functions_are_told_path_content_and_context() -> None:
    calls: list[tuple[Any, ...]] = []
    storage = CallbackStorage(
        on_read=lambda *args: calls.append(args) or "text",
        on_write=lambda *args: calls.append(args),
        on_delete=lambda *args: calls.append(args),
        on_list=lambda *args: calls.append(args) or ["a.md"],
        context={"user_id": 7},
    )
    entry = new_file("d/a.md", b"bytes")
    storage.save(SCOPE, entry)
    storage.load(SCOPE, "d/a.md")
    storage.delete(SCOPE, "d/a.md")
    storage.list(SCOPE)
    context = {"user_id": 7, "scope": "user:1"}
    assert calls == [
        ("d/a.md", b"bytes", {**context, "entry": entry}),
        ("d/a.md", context),
        ("d/a.md", context),
        (context,),
    ]


def test_only_what_is_given_can_be_done() -> None:
    reading = CallbackStorage(on_read=lambda path, context: "text")
    assert reading.list(SCOPE) == []
    assert reading.load(SCOPE, "a.md").content == "text"
    with pytest.raises(FileError, match=r"a\.md cannot be saved.*on_write"):
        reading.save(SCOPE, new_file("a.md", "a"))
    with pytest.raises(FileError, match=r"a\.md cannot be deleted.*on_delete"):
        reading.delete(SCOPE, "a.md")
    writing = CallbackStorage(on_write=lambda path, content, context: None)
    with pytest.raises(FileNotFoundError):
        writing.load(SCOPE, "a.md")


def test_what_a_function_raises_is_what_the_storage_raises() -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no connection")

    storage = CallbackStorage(on_read=broken, on_write=broken, on_delete=broken, on_list=broken)
    for attempt in (
        lambda: storage.save(SCOPE, new_file("a.md", "a")),
        lambda: storage.load(SCOPE, "a.md"),
        lambda: storage.delete(SCOPE, "a.md"),
        lambda: storage.list(SCOPE),
    ):
        with pytest.raises(RuntimeError, match="no connection"):
            attempt()


def test_a_directory_is_there_when_a_file_is_in_it() -> None:
    written: list[str] = []
    storage = CallbackStorage(on_write=lambda path, content, context: written.append(path))
    storage.save(SCOPE, new_directory("d"))
    storage.save(SCOPE, new_file("d/a.md", "a"))
    assert written == ["d/a.md"]


def test_a_directory_that_no_function_was_handed_needs_none_to_go() -> None:
    kept: dict[str, str] = {}
    storage = CallbackStorage(on_write=lambda path, content, context: kept.update({path: content}))
    fs = FileSystem(("user", 1), [Mount("m", storage)])
    fs.mkdir("/m/d")
    fs.delete("/m/d")
    assert fs.entries("/m/*") == []
    fs.write("/m/d/a.md", "a")
    with pytest.raises(StorageFailed, match="no on_delete"):
        fs.delete("/m/d/a.md")
    assert kept == {"d/a.md": "a"}


def test_what_no_function_would_be_handed_is_refused_and_nothing_waits_for_it() -> None:
    fs = FileSystem(("user", 1), [Mount("m", CallbackStorage(on_read=lambda path, context: "x"))])
    with pytest.raises(NotStorable, match="no on_write"):
        fs.write("/m/d/a.md", "a")
    assert fs.entries() == []
    fs.close()


@pytest.mark.parametrize("path", ["/a.md", "../a.md", "a\0", ".."])
def test_no_function_is_given_or_gives_a_path_that_is_none(path: str) -> None:
    storage = CallbackStorage(
        on_read=lambda *_: pytest.fail("was asked"), on_list=lambda context: [path]
    )
    with pytest.raises(FileError):
        storage.load(SCOPE, path)
    with pytest.raises(FileError):
        storage.list(SCOPE)


def test_a_content_that_is_none_is_told() -> None:
    storage = CallbackStorage(on_read=lambda path, context: {"text": "x"})
    with pytest.raises(FileError, match=r"on_read gave dict for a\.md"):
        storage.load(SCOPE, "a.md")


def test_async_functions_run_on_the_loop_of_the_runtime() -> None:
    threads: list[str] = []

    async def read(path: str, context: dict[str, Any]) -> str:
        threads.append(threading.current_thread().name)
        return path

    storage = CallbackStorage(on_read=read)
    assert storage.load(SCOPE, "a.md").content == "a.md"
    assert threads == ["sagents-runtime"]
    with pytest.raises(Busy, match="async on_read"):  # there it would wait for itself
        runtime.call(storage.load, SCOPE, "a.md")


@pytest.mark.parametrize("given", [{}, {"on_read": "text"}, {"on_delete": None}])
def test_what_is_no_storage_is_told(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        CallbackStorage(**given)
