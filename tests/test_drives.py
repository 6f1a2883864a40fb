"""What is a network drive, read from lists of mounts as systems give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sagents_nb import drives
from sagents_nb.drives import filesystem_of, mounts_of, network_kind
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
