"""What a page may ask about files: what they are, all of one, and where it lies."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.files import DiskStorage, FileSystem, Mount
from sagents_nb.panel.requests import answer
from sagents_nb.runtime.thread import runtime
from tests.panel.pages import session_of
from tests.talking import until

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR4nGNgAAIAAAUAAXpeqz8AAAAASUVORK5CYII="
)
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00",
    "image/gif": b"GIF89a\x01\x00\x01\x00\x00",
    "image/webp": b"RIFF\x1a\x00\x00\x00WEBPVP8L\x00",
}


def ask(session: Any, kind: str, **fields: Any) -> dict[str, Any]:
    """The one answer to a request, which may come from a thread that waited for a disk."""
    answers: list[dict[str, Any]] = []
    request = {"type": kind, "id": secrets.token_hex(4), **fields}
    runtime.call(answer, session, request, answers.append)
    until(lambda: answers)
    assert len(answers) == 1
    return answers[0]


def read(session: Any, path: str, **fields: Any) -> dict[str, Any]:
    """What is told of that file."""
    file: dict[str, Any] = ask(session, "read_file", path=path, **fields)["file"]
    return file


@pytest.mark.parametrize("media_type", IMAGES)
def test_an_image_is_sent_with_what_its_bytes_say_it_is(media_type: str) -> None:
    session = session_of()
    data = IMAGES[media_type]
    session.files.write("/plot.dat", data)
    assert read(session, "/plot.dat") == {
        "path": "/plot.dat",
        "size": len(data),
        "content": None,
        "truncated": False,
        "media_type": media_type,
        "data": base64.b64encode(data).decode(),
    }


def test_a_large_image_and_what_is_none_are_only_named() -> None:
    session = session_of()
    session.files.write("/large.png", PNG + b"\0" * 2_000_000)
    session.files.write("/all.zip", b"PK\x03\x04\x00\xff")
    for path, media_type in (("/large.png", "image/png"), ("/all.zip", "application/zip")):
        file = read(session, path)
        assert (file["content"], file["media_type"]) == (None, media_type)
        assert "data" not in file


@pytest.mark.parametrize("content", ["ü" * 300_000, b"\x00\xff" * 1_500_000, ""])
def test_a_whole_file_is_all_its_bytes(content: str | bytes) -> None:
    session = session_of()
    session.files.write("/a", content)
    data = base64.b64decode(read(session, "/a", whole=True)["data"])
    assert data == (content if isinstance(content, bytes) else content.encode())


def test_a_file_that_is_too_large_for_a_page_says_how_to_read_it() -> None:
    session = session_of(filesystem=FileSystem(max_file_size=30_000_000))
    session.files.write("/a.bin", b"\0" * 20_000_001)
    reply = ask(session, "read_file", path="/a.bin", whole=True)
    assert (reply["type"], reply["kind"]) == ("error", "ValueError")
    assert "20,000,001 bytes" in reply["message"]
    assert "session.files.read('/a.bin')" in reply["message"]


def test_a_file_on_a_disk_says_where_it_lies(tmp_path: Path) -> None:
    files = FileSystem(mounts=[Mount("study", DiskStorage(tmp_path))])
    session = session_of(filesystem=files)
    files.write("/study/notes/a.md", "# A")
    files.write("/b.md", "# B")
    location = read(session, "/study/notes/a.md")["location"]
    assert Path(location).read_text() == "# A"
    assert "location" not in read(session, "/b.md")
    Path(location).write_text("# By hand")  # and what a person has made of it there is seen
    assert read(session, "/study/notes/a.md")["content"] == "# By hand"
    session.close()
    files.close()


def test_a_file_that_a_mount_cannot_give_is_an_error(tmp_path: Path) -> None:
    files = FileSystem(mounts=[Mount("study", DiskStorage(tmp_path))])
    session = session_of(filesystem=files)
    reply = ask(session, "read_file", path="/study/missing.md")
    assert (reply["type"], reply["kind"]) == ("error", "FileMissing")
    session.close()
    files.close()
