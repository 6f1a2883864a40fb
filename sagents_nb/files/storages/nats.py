"""Files in an object store of NATS: on a server, for all who are connected to it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from ... import kinds
from ...bus.nats import NatsBus
from ...errors import ConfigurationError
from ...runtime.thread import runtime
from ..entry import FileEntry
from .base import Metadata, as_json, content_of, data_of, metadata_of, segments

T = TypeVar("T")

_BUCKET = re.compile(r"[A-Za-z0-9_-]{1,200}")
_METADATA = "Sagents-File"  # the header of an object, in which is all of an entry but its content
_read = msgspec.json.Decoder(Metadata).decode


class NatsStorage:
    """Files in the object store ``bucket`` of the server of ``bus``, made when first needed.

    The server needs JetStream (``nats-server --jetstream``). Each scope has files of its own. A
    save replaces a file as a whole. What the server refuses raises its error, and a name that no
    bucket has :class:`~sagents_nb.errors.ConfigurationError`.

    >>> from sagents_nb import NatsBus, NatsStorage
    >>> NatsStorage(NatsBus("nats://127.0.0.1:4222"), "papers")
    NatsStorage(NatsBus('127.0.0.1:4222'), 'papers')
    """

    @kinds.checked
    def __init__(self, bus: NatsBus, bucket: str = "files") -> None:
        if not _BUCKET.fullmatch(bucket):
            raise ConfigurationError(
                f"The bucket {kinds.shown(bucket)} cannot be one: use letters, digits, '-' and '_'."
            )
        self.bus = bus
        self.bucket = bucket
        self._store: Any = None

    @kinds.safe_repr
    def __repr__(self) -> str:
        return f"NatsStorage({self.bus!r}, {self.bucket!r})"

    def list(self, scope: str) -> Iterable[FileEntry]:
        """All files and saved directories, without contents."""

        async def work(store: Any) -> Any:
            from nats.js.errors import NotFoundError

            try:
                return await store.list(ignore_deletes=True)
            except NotFoundError:  # of an empty bucket
                return []

        start = _name(scope, "")
        found = self._done(work)
        return [
            _entry(info, info.name.removeprefix(start))
            for info in found
            if info.name.startswith(start)
        ]

    def load(self, scope: str, path: str) -> FileEntry:
        """One file with its content; raises FileNotFoundError."""
        name = _name(scope, "/".join(segments(path)))

        async def work(store: Any) -> Any:
            from nats.js.errors import NotFoundError

            try:
                return await store.get(name)
            except NotFoundError:
                return None

        found = self._done(work)
        if found is None:
            raise FileNotFoundError(path)
        metadata = _metadata(found.info)
        return metadata.entry(path, content_of(found.data or b"", metadata.text))

    def save(self, scope: str, entry: FileEntry) -> None:
        """Create or replace a file or directory."""
        name = _name(scope, "/".join(segments(entry.path)))
        data = b"" if entry.is_directory else data_of(entry)
        # In ASCII, as a header is.
        told = quote(as_json(metadata_of(entry), entry.path))

        async def work(store: Any) -> None:
            from nats.js.api import ObjectMeta

            await store.put(name, data, ObjectMeta(name=name, headers={_METADATA: [told]}))

        self._done(work)

    def delete(self, scope: str, path: str) -> None:
        """Delete a file, or a directory's own entry; missing is fine."""
        name = _name(scope, "/".join(segments(path)))

        async def work(store: Any) -> None:
            from nats.js.errors import NotFoundError

            try:
                await store.delete(name)
            except NotFoundError:
                return

        self._done(work)

    def _done(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        runtime.refuse_here(
            "A file in NATS", "use it in a thread, as a tool that is no coroutine is"
        )
        return runtime.submit(self._with_store(work)).result()

    async def _with_store(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        if self._store is None:
            self._store = await self._opened()
        return await work(self._store)

    async def _opened(self) -> Any:
        client = await self.bus.client()
        from nats.js.errors import BadRequestError, BucketNotFoundError

        stream = client.jetstream()
        try:
            return await stream.object_store(self.bucket)
        except BucketNotFoundError:
            pass
        try:
            return await stream.create_object_store(self.bucket)
        except BadRequestError:  # somebody else made it just now
            await asyncio.sleep(0)
            return await stream.object_store(self.bucket)


def _name(scope: str, path: str) -> str:
    return f"{quote(scope, safe='')}/{path}"


def _metadata(info: Any) -> Metadata:
    from urllib.parse import unquote_to_bytes

    (told,) = info.headers[_METADATA]
    return _read(unquote_to_bytes(told))


def _entry(info: Any, path: str) -> FileEntry:
    return _metadata(info).entry(path)
