"""Files kept by functions of yours."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from ... import kinds
from ...errors import Busy, ConfigurationError
from ...runtime.thread import runtime
from ..entry import FileEntry, guessed_type, new_file
from ..errors import FileError, NotStorable
from .base import Metadata, data_of, segments


class CallbackStorage:
    """Your functions for reading, writing, deleting and listing; give those that you need.

    - ``on_read(path, context)`` gives the content (text or bytes), or None if there is no
      such file.
    - ``on_write(path, content, context)`` keeps it.
    - ``on_delete(path, context)`` removes it; if there is none, that is fine.
    - ``on_list(context)`` gives the paths.

    Those who keep titles and the like find the whole FileEntry in ``context["entry"]`` when
    writing, and give FileEntries when reading and listing. ``context`` is a dict: what was given
    as ``context``, and "scope" ("user:1"). Paths are relative to the mount ("notes/a.md").

    What a function raises means that it failed. They are called from several threads; async
    ones run on the loop of the runtime. Without ``on_list`` nothing is listed, without
    ``on_read`` nothing is found, and without ``on_write`` or ``on_delete`` that is refused, with a
    FileError (NotStorable for a write). A directory is there when a file is in it. Raises
    :class:`~sagents_nb.errors.ConfigurationError` for what is no function, and without any.

    >>> kept = {}
    >>> storage = CallbackStorage(
    ...     on_write=lambda path, content, context: kept.update({path: content}),
    ...     on_read=lambda path, context: kept.get(path),
    ...     on_list=lambda context: kept,
    ... )
    >>> storage.save("user:1", new_file("notes/a.md", "# A"))
    >>> kept, storage.load("user:1", "notes/a.md").size
    ({'notes/a.md': '# A'}, 3)
    """

    @kinds.checked
    def __init__(
        self,
        *,
        on_read: Callable[..., Any] | None = None,
        on_write: Callable[..., Any] | None = None,
        on_delete: Callable[..., Any] | None = None,
        on_list: Callable[..., Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        functions = {
            "on_read": on_read,
            "on_write": on_write,
            "on_delete": on_delete,
            "on_list": on_list,
        }
        for name, function in functions.items():
            if function is not None and not callable(function):
                raise ConfigurationError(f"{name} must be a function, not {function!r}.")
        if not any(functions.values()):
            raise ConfigurationError("CallbackStorage needs on_read, on_write or on_list.")
        self._functions = functions
        # What nobody was handed needs nobody to remove it.
        self._directories: set[tuple[str, str]] = set()
        self._context = dict(context or {})

    @kinds.safe_repr
    def __repr__(self) -> str:
        names = ", ".join(name for name, function in self._functions.items() if function)
        return f"<CallbackStorage: {names}>"

    def list(self, scope: str) -> Iterable[FileEntry]:
        """What ``on_list`` gives; of a bare path, only what its name tells is known."""
        if self._functions["on_list"] is None:
            return []
        now = datetime.now(UTC)
        return [_entry_of(item, now) for item in self._call("on_list", scope) or ()]

    def load(self, scope: str, path: str) -> FileEntry:
        """What ``on_read`` gives."""
        segments(path)
        content = None
        if self._functions["on_read"] is not None:
            content = self._call("on_read", scope, path)
        if content is None:
            raise FileNotFoundError(path)
        if isinstance(content, FileEntry):
            data_of(content)
            return replace(content, path=path, persistence="persisted", loaded=True)
        if not isinstance(content, str | bytes):
            raise FileError(
                f"on_read gave {type(content).__name__} for {path}; give its text or bytes.", path
            )
        mime_type = guessed_type(path)
        return replace(new_file(path, content, mime_type=mime_type), persistence="persisted")

    def save(self, scope: str, entry: FileEntry) -> None:
        """Hand a file to ``on_write``; a directory is there when a file is in it."""
        segments(entry.path)
        if entry.is_directory:
            self._directories.add((scope, entry.path))
            return
        data_of(entry)
        if self._functions["on_write"] is None:
            raise NotStorable(self._lacking("on_write", entry.path, "saved"), entry.path)
        self._call("on_write", scope, entry.path, entry.content, entry=entry)

    def delete(self, scope: str, path: str) -> None:
        """Hand a path to ``on_delete``."""
        segments(path)
        ours = (scope, path) in self._directories
        self._directories.discard((scope, path))
        if self._functions["on_delete"] is not None:
            self._call("on_delete", scope, path)
        elif not ours:
            raise FileError(self._lacking("on_delete", path, "deleted"), path)

    def _lacking(self, name: str, path: str, done: str) -> str:
        return f"{path} cannot be {done}: its CallbackStorage has no {name}."

    def _call(self, name: str, scope: str, *args: Any, **more: Any) -> Any:
        function = self._functions[name]
        assert function is not None
        result = function(*args, {**self._context, "scope": scope, **more})
        if not inspect.isawaitable(result):
            return result
        try:
            runtime.refuse_here(f"The async {name}", "use the file from a thread")
        except Busy:
            if inspect.iscoroutine(result):
                result.close()
            raise
        return runtime.submit(_awaited(result)).result()


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def _entry_of(item: str | FileEntry, now: datetime) -> FileEntry:
    if isinstance(item, FileEntry):
        segments(item.path)
        return replace(item, content=None, persistence="persisted", loaded=item.is_directory)
    segments(item)
    mime_type = guessed_type(item)
    file_type = "markdown" if mime_type.startswith("text/") else "binary"
    metadata = Metadata(file_type=file_type, mime_type=mime_type, created_at=now, modified_at=now)
    return metadata.entry(item)
