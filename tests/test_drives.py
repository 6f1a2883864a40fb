"""What is a network drive, by lists of mounts as systems give them; files replaced at once."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from sagents_nb import drives
from sagents_nb.drives import filesystem_of, mounts_of, network_kind, replace_file, unwritten
from sagents_nb.errors import ConfigurationError
from sagents_nb.store.database.thread import Database

MOUNTS = r"""
/dev/sda1 / ext4 rw,relatime 0 0
server:/export/home /srv/home nfs4 rw,vers=4.2 0 0
//nas/share /srv/my\040share cifs rw 0 0
/dev/sdb1 /srv/home/local xfs rw 0 0
me@host:/ /srv/remote fuse.sshfs rw 0 0
host0 /srv/shared 9p rw,trans=virtio 0 0
/dev/sdc1 /srv/stick fuseblk rw 0 0
/dev/sda1 /srv/over ext4 rw 0 0
server:/over /srv/over nfs rw 0 0
"""


@pytest.fixture(autouse=True)
def mounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(MOUNTS.lstrip())
    monkeypatch.setattr(drives, "MOUNT_TABLE", tmp_path / "mounts")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/a.db", None),
        ("/srv/home/me/a.db", "nfs4"),
        ("/srv/home", "nfs4"),
        ("/srv/homes/a.db", None),
        ("/srv/home/local/a.db", None),
        ("/srv/my share/a.db", "cifs"),
        ("/srv/my share/../home/a.db", "nfs4"),
        ("/srv/remote/deep/er/a.db", "fuse.sshfs"),
        ("/srv/shared/a.db", None),
        ("/srv/stick/a.db", None),
        ("/srv/over/a.db", "nfs"),
    ],
)
def test_the_innermost_mount_decides(path: str, kind: str | None) -> None:
    assert network_kind(Path(path)) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/", "ext4"), ("/home/me", "nfs4"), ("/homes", "ext4"), ("/mnt/a b/c", "cifs")],
)
def test_the_deepest_mount_counts(path: str, kind: str) -> None:
    table = "/dev/a / ext4 rw\nserver:/h /home nfs4 rw\n//s/x /mnt/a\\040b cifs rw\nodd\n"
    assert filesystem_of(path, mounts_of(table)) == kind


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/srv/home/me")
    assert network_kind(tmp_path / "link" / "a.db") == "nfs4"


def test_a_store_on_a_network_drive_is_refused_with_the_reason_and_the_next_step() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Database("sqlite:////srv/home/me/a.db")
    assert str(caught.value) == (
        "The store /srv/home/me/a.db is on a network drive (nfs4), where SQLite loses data "
        "because locks are not kept; choose a path on a local disk, or use PostgreSQL."
    )


def test_macos_tells_by_its_mount_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = (
        "/dev/disk3s1 on / (apfs, sealed, local, read-only)\n"
        "//me@nas/share on /Volumes/share (1) (smbfs, nodev, nosuid)\n"
    )

    class Done:
        stdout = told

    monkeypatch.setattr(drives, "MOUNT_TABLE", tmp_path / "not there")
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("subprocess.run", lambda *args, **options: Done)
    assert network_kind(Path("/Volumes/share (1)/a.db")) == "smbfs"
    assert network_kind(Path("/Users/me/a.db")) is None


# A file that is replaced


def test_a_file_is_replaced_and_keeps_its_mode_and_the_links_to_it(tmp_path: Path) -> None:
    file, link = tmp_path / "there" / "a.html", tmp_path / "link.html"
    file.parent.mkdir()
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    replace_file(link, b"new")
    assert (link.is_symlink(), file.read_bytes()) == (True, b"new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [each.name for each in file.parent.iterdir()] == ["a.html"]


@pytest.mark.parametrize("nameless", [True, False], ids=["without a name", "with one"])
def test_a_write_that_fails_in_the_middle_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    def half(descriptor: int, content: Any) -> int:
        if len(content) < 10:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, content[:10])

    def refuse(*args: Any, **options: Any) -> None:
        raise OSError("no links here")

    write, file = os.write, tmp_path / "here" / "a.html"
    file.parent.mkdir()
    replace_file(file, b"old and whole")
    if not nameless:
        monkeypatch.setattr(os, "link", refuse)
        monkeypatch.setattr(os, "O_TMPFILE", 0, raising=False)
    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="space"):
        replace_file(file, b"new and longer")
    assert file.read_bytes() == b"old and whole"
    assert [each.name for each in file.parent.iterdir()] == ["a.html"]


def test_what_is_write_protected_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    file.write_bytes(b"old")
    file.chmod(0o444)
    with pytest.raises(PermissionError, match="write-protected"):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"


def test_what_is_no_file_is_written_to_and_a_long_name_is_no_trouble(tmp_path: Path) -> None:
    replace_file(Path(os.devnull), b"x")
    assert not Path(os.devnull).is_file()
    long = tmp_path / ("☃" * 80 + ".html")
    replace_file(long, b"x")
    assert long.read_bytes() == b"x"


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (errno.ENOSPC, "free some space there first"),
        (errno.EFBIG, "free some space there first"),
        (errno.ENOENT, "name a file in a folder that exists"),
        (errno.EACCES, "name a file that you may write"),
        (errno.EIO, "name another file"),
    ],
)
def test_why_a_file_is_not_written_is_said_with_a_step_that_fits(number: int, step: str) -> None:
    error = unwritten("The frame", Path("x/a.csv"), OSError(number, os.strerror(number)))
    assert str(error) == (
        f"The frame cannot be written to 'x/a.csv' ({os.strerror(number)}); {step}."
    )
