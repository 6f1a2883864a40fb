"""What a page may ask about the files of a session, and what the last run did to them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from ..events import AgentEnd, AgentStart, Event, FileDeleted, FileMoved, FileUpdated
from ..files.changes import LARGEST, Change, Changes
from ..files.entry import FileEntry
from ..messages import image_of
from ..session import Session

SHOWN_CHARACTERS = 200_000
SHOWN_IMAGE = 2_000_000  # bytes of one that a page shows
WHOLE_FILE = 20_000_000  # bytes of one that a person may download


def read_file(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """The beginning of a text, an image, or what kind of file it is; ``whole``: all its bytes."""
    entry = session.files.read(request["path"])
    text = entry.text
    image = image_of(entry.content) if text is None and entry.size <= SHOWN_IMAGE else None
    file: dict[str, Any] = {
        "path": entry.path,
        "size": entry.size,
        "content": None if text is None else text[:SHOWN_CHARACTERS],
        "truncated": text is not None and len(text) > SHOWN_CHARACTERS,
        "media_type": image.mime_type if image else entry.mime_type or "",
    }
    if (location := session.files.location(entry.path)) is not None:
        file["location"] = location
    if request.get("whole"):
        file["data"] = base64.b64encode(_bytes(entry)).decode()
    elif image is not None:
        file["data"] = image.data
    return {"file": file}


def shown_text(entry: FileEntry) -> str | None:
    """The text of a file that is shown whole; None for a longer one and for what is no text."""
    text = entry.text
    return None if text is None or len(text) > SHOWN_CHARACTERS else text


def _bytes(entry: FileEntry) -> bytes:
    if entry.size > WHOLE_FILE:
        raise ValueError(
            f"{entry.path} has {entry.size:,} bytes, and a page is sent at most {WHOLE_FILE:,}; "
            f"read it in a cell: session.files.read({entry.path!r}).content."
        )
    return entry.content.encode() if isinstance(entry.content, str) else entry.content or b""


class RunChanges:
    """The files that were changed while the last run went on.

    ``going`` is whether that run still goes on. One that waited, was paused or failed, and goes on
    as itself, is one run. Who else changes files of the session meanwhile is not told apart from
    it.
    Of what was changed before this was made the kept events tell, but not what it was before.
    """

    def __init__(self, session: Session) -> None:
        self.changes = Changes()
        self.going = False
        self._run_id = ""
        self._began = 0.0  # seconds since the epoch
        self._files = session.files
        self._is_past = True
        session.subscribe(self._hear, since=0)
        self._is_past = False
        if self.going:
            self._stop = self._files.track(self.changes)

    def _hear(self, event: Event) -> None:
        if isinstance(event, AgentStart) and not self.going:
            if event.run_id != self._run_id:
                self.changes, self._began, self._run_id = Changes(), event.ts, event.run_id
            if not self._is_past:
                self._stop = self._files.track(self.changes)
            self.going = True
        elif isinstance(event, AgentEnd) and self.going:
            self.going = False
            if not self._is_past:
                self._stop()
        elif self._is_past and self.going:
            self._see(event)

    def _see(self, event: Event) -> None:
        """Note what an event tells of a file that was changed before anybody kept what it was."""
        if isinstance(event, FileUpdated):
            told, unknown = event.entry, _unknown(event.path, event.ts)
            known = {
                name: told[name] for name in ("size", "sha256", "is_directory") if name in told
            }
            is_new = datetime.fromisoformat(told["created_at"]).timestamp() >= self._began
            self.changes.note(None if is_new else unknown, replace(unknown, **known))
        elif isinstance(event, FileDeleted):
            self.changes.note(_unknown(event.path, event.ts), None)
        elif isinstance(event, FileMoved):
            for entry in self._files.entries():
                inside = entry.path.removeprefix(event.path)
                moved = inside != entry.path and inside[:1] in ("", "/")
                if entry.is_directory or not moved:
                    continue
                self.changes.note(_unknown(event.old_path + inside, event.ts), None)
                self.changes.note(None, entry)

    def undo(self, path: str) -> None:
        """Make a file what it was before the run.

        Raises ValueError, with a sentence for people, and FileError; nothing has changed then.
        """
        if self.going:
            raise ValueError("The run still goes on; stop it or wait for its end, and undo then.")
        change, files = self.of(path), self._files
        before, after = change
        if before is not None and before.content is None:
            raise ValueError(f"What {path} was before is not known: {NOT_KEPT}")
        if before is None:
            _check_left(change, files.read(path))
            files.delete(path)
        elif after is None:
            assert before.content is not None
            fields = (before.title, before.custom, before.mime_type)
            files.write(path, before.content, *fields, overwrite=False)
        else:
            content = before.content

            def written_back(entry: FileEntry) -> Any:
                _check_left(change, entry)
                return content

            files.edit(path, written_back)
        self.changes.forget(path)

    def of(self, path: str) -> Change:
        """What was done to that file; raises ValueError."""
        change = self.changes.of(path) if isinstance(path, str) else None
        if change is None:
            raise ValueError("The last run has left that file as it was.")
        return change


NOT_KEPT = f"only texts of up to {LARGEST // 1000} kB are kept, once there is a panel."


def _unknown(path: str, ts: float) -> FileEntry:
    """A file of which nobody has kept what it was."""
    moment = datetime.fromtimestamp(ts, UTC)
    return FileEntry(path=path, size=-1, created_at=moment, modified_at=moment, loaded=False)


def _check_left(change: Change, entry: FileEntry) -> None:
    if not change.left(entry):
        raise ValueError(
            f"{entry.path} has changed since the run, so nothing was undone; change it by hand."
        )


def _kind(change: Change) -> str:
    if change.before is None:
        return "new"
    return "deleted" if change.after is None else "changed"


_of_sessions: WeakKeyDictionary[Session, RunChanges] = WeakKeyDictionary()


def run_changes_of(session: Session) -> RunChanges:
    """Those of that session, which keep what files were from the first call on."""
    found = _of_sessions.get(session)
    if found is None:
        found = _of_sessions[session] = RunChanges(session)
    return found


def read_changes(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """Which files the last run has changed."""
    changes = run_changes_of(session).changes
    told = [(path, change) for path in changes.paths() if (change := changes.of(path))]
    return {"changes": [{"path": path, "kind": _kind(change)} for path, change in told]}


def read_change(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """What a file was and is, and whether that can be undone or why not."""
    run = run_changes_of(session)
    change = run.of(request["path"])
    files, path = session.files, request["path"]
    now = files.read(path) if files.exists(path) else None
    kept = change.before is None or change.before.content is not None
    return {
        "change": {
            "path": path,
            "kind": _kind(change),
            "before": change.before and change.before.text,
            "after": None if now is None else shown_text(now),
            "kept": kept,
            "since": not change.left(now),
        }
    }


def undo_change(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """Make a file what it was before the run."""
    run_changes_of(session).undo(request["path"])
    return {}
