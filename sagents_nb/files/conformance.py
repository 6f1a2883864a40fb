"""What every storage has to do, as tests that a storage of your own can run.

Needs pytest. In a test file of yours::

    from sagents_nb.files.conformance import StorageConformance


    class TestMyStorage(StorageConformance):
        def storage(self):
            return MyStorage(self.tmp_path / "files.db")

Each test calls ``storage()`` once or more: all of one test are on the same place, as after a
restart, and a new test finds that place empty. Where a storage cannot do something, say so in
the class (``keeps_metadata = False``), and its tests are skipped.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from .entry import FileEntry, new_directory, new_file
from .errors import FileChanged, FileError
from .storages.base import FileStorage

SCOPE = "user:1"

# No storage may take one of these for a place of its own, whoever asks.
HOSTILE = (
    *("", ".", "..", "/", "/a.md", "../a.md", "a/../b.md", "a/..", "./a.md", "a//b.md", "a/"),
    *("a/./b.md", "a\0b", "a\nb", "a\\b.md", "..\\a.md", "nul", "a/CON.txt", "com¹.md"),
    *("x" * 256, "/".join(["x" * 200] * 25), "\udc80.md"),
)
TEXTS = (
    "",
    "plain",
    "two\nlines\n",
    "crlf\r\nand\rcr",
    "é e\u0301 ß 漢 🙂",
    "\ufeffwith bom",
    "a\0b",
)
BYTES = (b"", b"plain", b"\xff\xfe\x00", "text as bytes: é".encode(), bytes(range(256)))
NAMES = (
    "a b.md",
    "a..b",
    ".hidden",
    "-x",
    "%2e%2e",
    "é.md",
    "漢字",
    "q?*[1].md",
    "x" * 200,
    "~a",
    "c:",
)


class StorageConformance:
    """The tests; a subclass has ``storage()``."""

    keeps_metadata: ClassVar[bool] = True
    keeps_directories: ClassVar[bool] = True
    keeps_scopes_apart: ClassVar[bool] = True

    tmp_path: Path

    def storage(self) -> FileStorage:
        """A new storage on the same place, which is empty when a test starts."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path

    def listed(self, scope: str = SCOPE) -> dict[str, FileEntry]:
        """What a new storage lists, by path."""
        return {entry.path: entry for entry in self.storage().list(scope)}

    # contents

    def test_a_new_place_is_empty(self) -> None:
        """Nothing is listed, nothing is made."""
        assert self.listed() == {}

    @pytest.mark.parametrize("content", [*TEXTS, *BYTES])
    def test_a_content_comes_back_as_it_was(self, content: str | bytes) -> None:
        """To the byte, and text as text."""
        self.storage().save(SCOPE, new_file("a.md", content))
        loaded = self.storage().load(SCOPE, "a.md")
        data = content.encode() if isinstance(content, str) else content
        if self.keeps_metadata:
            assert loaded.content == content
        else:
            assert loaded.content in (content, data)
        assert loaded.size == len(data)
        assert loaded.sha256 == hashlib.sha256(data).hexdigest()
        assert loaded.loaded
        assert loaded.persistence == "persisted"

    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_comes_back_as_it_was(self, name: str) -> None:
        """A name is text and nothing in it is special."""
        for path in (name, f"d/{name}"):
            self.storage().save(SCOPE, new_file(path, path))
            assert self.storage().load(SCOPE, path).content == path
        files = {p for p, e in self.listed().items() if not e.is_directory}
        assert files == {name, f"d/{name}"}

    def test_a_large_content_is_kept(self) -> None:
        """Five megabytes."""
        content = bytes(range(256)) * 20_000
        self.storage().save(SCOPE, new_file("large.bin", content))
        assert self.storage().load(SCOPE, "large.bin").content == content

    def test_a_file_is_replaced(self) -> None:
        """By a shorter one, of the other kind, and nothing of the old one stays."""
        storage = self.storage()
        storage.save(SCOPE, new_file("a.md", "a long first content"))
        storage.save(SCOPE, new_file("a.md", b"\xff2"))
        assert self.storage().load(SCOPE, "a.md").content == b"\xff2"
        assert [e.size for e in self.listed().values()] in ([2], [0])

    def test_a_missing_file_is_not_found(self) -> None:
        """Also where another file or a directory is near."""
        storage = self.storage()
        storage.save(SCOPE, new_file("d/a.md", "a"))
        for path in ("b.md", "d/b.md", "e/a.md", "D/a.md", "d/A.md", "d/a.md/b.md"):
            with pytest.raises(FileNotFoundError):
                storage.load(SCOPE, path)
            storage.delete(SCOPE, path)
        assert storage.load(SCOPE, "d/a.md").content == "a"

    # the list

    def test_the_list_has_all_files_without_contents(self) -> None:
        """Of all directories, each once."""
        storage = self.storage()
        paths = ["a.md", "d/a.md", "d/b/c.md", "e/f/g/h.md"]
        for path in paths:
            storage.save(SCOPE, new_file(path, path))
        for listed in (list(storage.list(SCOPE)), list(self.storage().list(SCOPE))):
            files = [e for e in listed if not e.is_directory]
            assert sorted(e.path for e in files) == paths
            assert all(e.content is None and not e.loaded for e in files)
            assert {e.persistence for e in listed} == {"persisted"}
            assert len({e.path for e in listed}) == len(listed)

    def test_sizes_times_and_digests_are_listed(self) -> None:
        """As they were saved, times in UTC."""
        if not self.keeps_metadata:
            pytest.skip("keeps no metadata")
        entry = new_file("a.md", "é")
        self.storage().save(SCOPE, entry)
        listed = self.listed()["a.md"]
        assert (listed.size, listed.sha256) == (2, entry.sha256)
        assert listed.modified_at == entry.modified_at
        assert listed.created_at == entry.created_at
        assert listed.modified_at.utcoffset() == UTC.utcoffset(None)

    # metadata

    def metadata(self) -> FileEntry:
        """A file with all that an entry can tell."""
        return FileEntry(
            path="d/a.md",
            content="text",
            title="Ä title",
            file_type="chapter",
            size=4,
            sha256=hashlib.sha256(b"text").hexdigest(),
            mime_type="text/x-own",
            created_at=datetime(2001, 2, 3, 4, 5, 6, 7, UTC),
            modified_at=datetime(2002, 2, 3, 4, 5, 6, 789, UTC),
            custom={"tags": ["a", 1, None, True, 1.5], "more": {"é": "ü"}},
        )

    def described(self, entry: FileEntry) -> dict[str, Any]:
        """All of an entry that a storage keeps beside the content."""
        left_out = {"loaded", "persistence", "content"}
        return {k: v for k, v in entry.describe().items() if k not in left_out}

    def test_metadata_are_kept(self) -> None:
        """In the list and with the content."""
        if not self.keeps_metadata:
            pytest.skip("keeps no metadata")
        entry = self.metadata()
        self.storage().save(SCOPE, entry)
        assert self.described(self.listed()["d/a.md"]) == self.described(entry)
        assert self.described(self.storage().load(SCOPE, "d/a.md")) == self.described(entry)

    def test_metadata_are_saved_without_the_content(self) -> None:
        """By save_metadata, where there is one; the content stays."""
        storage: Any = self.storage()
        if not self.keeps_metadata or not hasattr(storage, "save_metadata"):
            pytest.skip("saves no metadata alone")
        storage.save(SCOPE, new_file("d/a.md", "text"))
        before = self.listed()["d/a.md"]
        after = FileEntry(
            path="d/a.md",
            title="New",
            file_type="note",
            mime_type="text/plain",
            size=before.size,
            sha256=before.sha256,
            created_at=before.created_at,
            modified_at=before.modified_at,
            custom={"a": 1},
            loaded=False,
        )
        storage.save_metadata(SCOPE, after)
        assert self.described(self.listed()["d/a.md"]) == self.described(after)
        loaded = self.storage().load(SCOPE, "d/a.md")
        assert (loaded.content, loaded.title, loaded.custom) == ("text", "New", {"a": 1})

    def test_a_file_that_is_written_anew_has_nothing_of_the_deleted_one(self) -> None:
        """No title of before."""
        storage = self.storage()
        storage.save(SCOPE, self.metadata())
        storage.delete(SCOPE, "d/a.md")
        storage.save(SCOPE, new_file("d/a.md", "new"))
        loaded = self.storage().load(SCOPE, "d/a.md")
        assert (loaded.content, loaded.title, loaded.custom) == ("new", None, {})

    # directories

    def test_directories_are_kept(self) -> None:
        """Empty ones, with their titles."""
        if not self.keeps_directories:
            pytest.skip("keeps no directories")
        self.storage().save(SCOPE, new_directory("d/e", "Title"))
        listed = self.listed()["d/e"]
        assert listed.is_directory
        assert listed.content is None
        assert listed.title == "Title" or not self.keeps_metadata
        self.storage().delete(SCOPE, "d/e")
        assert "d/e" not in self.listed()

    def test_a_directory_that_is_deleted_leaves_its_files(self) -> None:
        """Its own entry goes, the files in it stay; without them nothing is left."""
        if not self.keeps_directories:
            pytest.skip("keeps no directories")
        storage = self.storage()
        storage.save(SCOPE, new_directory("d", "Title"))
        storage.save(SCOPE, new_file("d/a.md", "a"))
        storage.delete(SCOPE, "d")
        assert list(self.listed()) == ["d/a.md"]
        assert self.storage().load(SCOPE, "d/a.md").content == "a"
        storage.delete(SCOPE, "d/a.md")
        assert self.listed() == {}

    def test_a_directory_can_be_saved_again(self) -> None:
        """After it was deleted with a file in it."""
        if not self.keeps_directories:
            pytest.skip("keeps no directories")
        storage = self.storage()
        storage.save(SCOPE, new_file("d/a.md", "a"))
        storage.delete(SCOPE, "d")
        storage.save(SCOPE, new_directory("d", "Again"))
        storage.delete(SCOPE, "d/a.md")
        assert list(self.listed()) == ["d"]

    # deleting and moving

    def test_a_deleted_file_is_gone(self) -> None:
        """And only that one."""
        storage = self.storage()
        for path in ("a.md", "a.md2", "d/a.md"):
            storage.save(SCOPE, new_file(path, path))
        storage.delete(SCOPE, "a.md")
        with pytest.raises(FileNotFoundError):
            storage.load(SCOPE, "a.md")
        assert {p for p, e in self.listed().items() if not e.is_directory} == {"a.md2", "d/a.md"}

    def test_deleting_what_is_missing_is_fine(self) -> None:
        """Once, twice, and where there is no directory."""
        storage = self.storage()
        for path in ("a.md", "d/a.md", "d"):
            storage.delete(SCOPE, path)
            storage.delete(SCOPE, path)
        assert self.listed() == {}

    def test_a_moved_file_takes_its_metadata_along(self) -> None:
        """By move, where there is one; to another directory."""
        storage: Any = self.storage()
        if not hasattr(storage, "move"):
            pytest.skip("does not move")
        storage.save(SCOPE, self.metadata())
        storage.move(SCOPE, "d/a.md", "e/f/b.md")
        moved = self.storage().load(SCOPE, "e/f/b.md")
        assert moved.content == "text"
        assert (moved.title, moved.custom) == ("Ä title", self.metadata().custom)
        assert {p for p, e in self.listed().items() if not e.is_directory} == {"e/f/b.md"}
        with pytest.raises(FileNotFoundError):
            storage.move(SCOPE, "d/a.md", "g.md")

    def test_a_move_replaces_nothing(self) -> None:
        """A file at the new path stays, and the old one stays where it is."""
        storage: Any = self.storage()
        if not hasattr(storage, "move"):
            pytest.skip("does not move")
        storage.save(SCOPE, new_file("a.md", "a"))
        storage.save(SCOPE, new_file("b.md", "b"))
        with pytest.raises(FileError):
            storage.move(SCOPE, "a.md", "b.md")
        assert [self.storage().load(SCOPE, p).content for p in ("a.md", "b.md")] == ["a", "b"]

    # versions

    def test_a_version_is_another_once_somebody_has_written_the_file(self) -> None:
        """And the same for everybody who asks until then."""
        storage: Any = self.storage()
        if not hasattr(storage, "version"):
            pytest.skip("tells no versions")
        assert storage.version(SCOPE, "d/a.md") is None
        seen = set()
        for content in ("one", "two", b"two", "three"):
            other: Any = self.storage()
            other.save(SCOPE, new_file("d/a.md", content))
            assert storage.version(SCOPE, "d/a.md") == other.version(SCOPE, "d/a.md")
            seen.add(storage.version(SCOPE, "d/a.md"))
        assert len(seen) == 4
        assert storage.version(SCOPE, "d") is None
        storage.delete(SCOPE, "d/a.md")
        assert storage.version(SCOPE, "d/a.md") is None

    def test_versions_of_many_files_are_those_of_each(self) -> None:
        """Asked for at once, and None for what is no file."""
        storage: Any = self.storage()
        if not hasattr(storage, "versions"):
            pytest.skip("is asked for one at a time")
        wanted: dict[str, str | None] = {}
        for number in range(1200):
            path = f"d{number % 7}/{number}.md" if number % 2 else f"{number}.md"
            if number % 10 == 1:
                storage.save(SCOPE, new_file(path, path))
            wanted[path] = storage.version(SCOPE, path)
        wanted |= dict.fromkeys(("d1", "no/such/directory.md"))
        assert len(set(wanted.values())) == 121
        other: Any = self.storage()
        assert other.versions(SCOPE, list(wanted)) == wanted
        assert storage.versions(SCOPE, []) == {}

    def test_a_file_is_saved_over_the_version_that_was_meant_only(self) -> None:
        """By save_over, where there is one; "" is that of no file."""
        storage: Any = self.storage()
        if not hasattr(storage, "save_over"):
            pytest.skip("does not look at what it saves over")
        first = storage.save_over(SCOPE, new_file("d/a.md", "one"), "")
        assert first == storage.version(SCOPE, "d/a.md")
        second = storage.save_over(SCOPE, new_file("d/a.md", "two"), first)
        for version in ("", first, "no version"):
            with pytest.raises(FileChanged):
                storage.save_over(SCOPE, new_file("d/a.md", "three"), version)
            assert self.storage().load(SCOPE, "d/a.md").content == "two"
        storage.delete(SCOPE, "d/a.md")
        storage.save_over(SCOPE, new_file("d/a.md", "again"), second)
        assert self.storage().load(SCOPE, "d/a.md").content == "again"

    # other scopes, other threads, other people's paths

    def test_scopes_do_not_see_each_other(self) -> None:
        """The same path in two scopes is two files."""
        if not self.keeps_scopes_apart:
            pytest.skip("its place says whose files they are")
        storage = self.storage()
        for scope in ("user:1", "user:2", "USER:1", "user:1 ", ""):
            storage.save(scope, new_file("a.md", scope))
        for scope in ("user:1", "user:2", "USER:1", "user:1 ", ""):
            assert self.storage().load(scope, "a.md").content == scope
        storage.delete("user:2", "a.md")
        assert list(self.listed("user:1")) == ["a.md"]
        assert self.listed("user:2") == {}

    def test_threads_save_different_files_at_once(self) -> None:
        """Eight of them; nothing is lost."""
        storage = self.storage()
        paths = [f"d{n % 3}/f{n}.md" for n in range(40)]

        def work(path: str) -> None:
            storage.save(SCOPE, new_file(path, "first", title="t"))
            storage.save(SCOPE, new_file(path, path, title=path))
            assert storage.load(SCOPE, path).content == path
            if path.endswith("7.md"):
                storage.delete(SCOPE, path)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, paths))
        left = {path for path in paths if not path.endswith("7.md")}
        listed = {p: e for p, e in self.listed().items() if not e.is_directory}
        assert set(listed) == left
        assert not self.keeps_metadata or all(e.title == p for p, e in listed.items())
        assert all(self.storage().load(SCOPE, path).content == path for path in left)

    @pytest.mark.parametrize("path", HOSTILE)
    def test_a_path_that_is_none_is_refused(self, path: str) -> None:
        """By every operation, and nothing is stored."""
        storage: Any = self.storage()
        attempts = (
            (storage.save, new_file(path, "evil")),
            (storage.save, new_directory(path, "evil")),
            (storage.load, path),
            (storage.delete, path),
        )
        for operation, argument in attempts:
            with pytest.raises(FileError):
                operation(SCOPE, argument)
        assert self.listed() == {}

    def test_a_file_without_content_is_not_saved(self) -> None:
        """An entry that was never loaded must not empty its file."""
        storage = self.storage()
        storage.save(SCOPE, new_file("a.md", "text"))
        unread = next(e for e in storage.list(SCOPE) if e.path == "a.md")
        with pytest.raises(FileError):
            storage.save(SCOPE, unread)
        assert self.storage().load(SCOPE, "a.md").content == "text"

    def test_what_came_and_went_is_told_by_directory(self) -> None:
        """If it tells that at all: by another storage on the same place, too."""
        storage: Any = self.storage()
        if not hasattr(storage, "list_since"):
            pytest.skip("it does not tell")
        for path in ("a.md", "d/b.md", "d/e/c.md"):
            storage.save(SCOPE, new_file(path, path))
        mark, first = storage.list_since(SCOPE, None)
        assert set(first) == {"", "d", "d/e"}
        other = self.storage()
        other.save(SCOPE, new_file("n/o/p.md", "new"))
        other.delete(SCOPE, "d/e/c.md")
        mark, news = storage.list_since(SCOPE, mark)
        told = {path: {entry.path for entry in entries} for path, entries in news.items()}
        assert told[""] == {"a.md", "d", "n"}
        assert told["n"] == {"n/o"}
        assert told["n/o"] == {"n/o/p.md"}
        assert told["d/e"] == set()
        if hasattr(storage, "list_within"):
            other.save(SCOPE, new_file("d/e/f.md", "new"))
            other.save(SCOPE, new_file("n/g.md", "new"))
            mark, news = storage.list_within(SCOPE, mark, "d/e", 1)
            assert {entry.path for entry in news["d/e"]} == {"d/e/f.md"}
            assert "n" not in news
            mark, news = storage.list_since(SCOPE, mark)
            assert {entry.path for entry in news["n"]} == {"n/g.md", "n/o"}
            told["n"], told["d/e"] = {"n/g.md", "n/o"}, {"d/e/f.md"}
        again = storage.list_since(SCOPE, mark)[1]
        assert {path: {entry.path for entry in entries} for path, entries in again.items()} == {
            path: told.get(path, {"d/b.md", "d/e"}) for path in again
        }
