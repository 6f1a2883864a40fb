"""Any sequence of operations gives what a plain dict gives."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sagents_nb.events import Event, FileDeleted, FileMoved, FileUpdated
from sagents_nb.files import FileError, FileSystem

names = st.sampled_from(["a", "ab", "b", "c.md"])
some_path = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
contents = st.one_of(st.text(max_size=5), st.binary(max_size=5))


def below(path: str, directory: str) -> bool:
    return path.startswith(directory + "/")


class AgainstADict(RuleBasedStateMachine):
    """The model: path → content, None for a directory; nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.fs = FileSystem(max_entries=12, max_total_size=30)
        self.model: dict[str, str | bytes | None] = {}
        self.mirror: dict[str, bool] = {}  # what a subscriber knows: path → is it a directory
        self.fs.subscribe(self.follow)

    def follow(self, event: Event) -> None:
        if isinstance(event, FileUpdated):
            self.mirror[event.path] = bool(event.entry.get("is_directory"))
        elif isinstance(event, FileDeleted):
            del self.mirror[event.path]
        elif isinstance(event, FileMoved):
            for path in list(self.mirror):
                if path == event.old_path or below(path, event.old_path):
                    self.mirror[event.path + path[len(event.old_path) :]] = self.mirror.pop(path)

    def is_dir(self, path: str) -> bool:
        stored = path in self.model and self.model[path] is None
        return stored or any(below(p, path) for p in self.model)

    def parents(self, path: str) -> list[str]:
        parts = path[1:].split("/")
        return ["/" + "/".join(parts[:n]) for n in range(1, len(parts))]

    def place(self, changed: dict[str, str | bytes | None], at: str) -> bool:
        """Take the change if the rules allow it."""
        if any(self.model.get(p) is not None for p in self.parents(at)):
            return False
        if at not in self.model:
            changed = {**dict.fromkeys(p for p in self.parents(at) if p not in changed), **changed}
        size = sum(len(c.encode() if isinstance(c, str) else c or b"") for c in changed.values())
        if len(changed) > max(12, len(self.model)) or size > 30:
            return False
        self.model = changed
        return True

    def agree(self, allowed: bool, operation: object) -> None:
        assert callable(operation)
        if allowed:
            operation()
        else:
            with pytest.raises(FileError):
                operation()

    @rule(path=some_path, content=contents, overwrite=st.booleans())
    def write(self, path: str, content: str | bytes, overwrite: bool) -> None:
        allowed = not self.is_dir(path) and (overwrite or path not in self.model)
        allowed = allowed and self.place({**self.model, path: content}, path)
        self.agree(allowed, lambda: self.fs.write(path, content, overwrite=overwrite))

    @rule(path=some_path)
    def mkdir(self, path: str) -> None:
        allowed = path not in self.model and not self.is_dir(path)
        allowed = allowed and self.place({**self.model, path: None}, path)
        self.agree(allowed, lambda: self.fs.mkdir(path))

    @rule(path=some_path)
    def delete(self, path: str) -> None:
        allowed = path in self.model
        self.model.pop(path, None)
        self.agree(allowed, lambda: self.fs.delete(path))

    @rule(old=some_path, new=some_path)
    def move(self, old: str, new: str) -> None:
        there = old in self.model or self.is_dir(old)
        if there and old == new:
            assert self.fs.move(old, new) == []
            return
        allowed = there and not below(new, old) and new not in self.model and not self.is_dir(new)
        if allowed:
            changed = {
                (new + p[len(old) :] if p == old or below(p, old) else p): c
                for p, c in self.model.items()
            }
            allowed = self.place(changed, new)
        self.agree(allowed, lambda: self.fs.move(old, new))

    @rule()
    def reset(self) -> None:
        self.fs.reset()
        self.model = {}
        self.mirror = {}

    @invariant()
    def holds_the_same(self) -> None:
        found = {e.path: e for e in self.fs.entries()}
        virtual = {p for path in self.model for p in self.parents(path)} - set(self.model)
        assert sorted(found) == sorted(set(self.model) | virtual)
        for path, content in self.model.items():
            assert found[path].content == content
            assert found[path].is_directory == (content is None)
        stats = self.fs.stats()
        assert stats.total == len(self.model)
        assert stats.size == sum(e.size for e in found.values())
        assert self.fs.list() == sorted(p for p, c in self.model.items() if c is not None)

    @invariant()
    def a_subscriber_can_follow_the_files(self) -> None:
        assert [p for p in sorted(self.mirror) if not self.mirror[p]] == self.fs.list()


AgainstADict.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestAgainstADict = pytest.mark.spec("S1.8.11", "S1.8.14", "S1.8.15", "S1.7.8")(
    AgainstADict.TestCase
)
