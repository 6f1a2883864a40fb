"""What a drive is to be asked: whether it is a network's, and to keep the names in a directory.

On a network drive SQLite's locks cannot be relied on. The store and the cache are both SQLite
files, so one answer holds for both. What they make of it differs with what is at stake: a store is
refused, since conversations would be lost; a cache is not used and says so once, since a model can
be asked again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

# What GNU df and stat take for remote, and what is mounted through FUSE. 9p and virtiofs are not
# here: containers and virtual machines have their own disks on them, where one kernel keeps the
# locks and there may be no other disk to choose.
_REMOTE = re.compile(
    r"acfs|afpfs|afs|auristorfs|beegfs|ceph|cifs|coda|davfs|fhgfs|gfs2|glusterfs|gpfs|ibrix|lustre"
    r"|ncpfs|nfs[34]?|ocfs2|orangefs|panfs|pvfs2|smb[23]?|smbfs|snfs|webdav|(macfuse|osxfuse)_sshfs"
    r"|fuse\.(ceph|cephfs|curlftpfs|davfs2?|gcsfuse|glusterfs|goofys|juicefs|mount-s3|quobyte"
    r"|rclone|s3fs|smbnetfs|sshfs)"
)
MOUNT_TABLE = Path("/proc/self/mounts")
_OCTAL = re.compile(r"\\([0-7]{3})")


def sync_names(directory: Path) -> None:
    """See that the names in it outlive a power cut, where the system lets us."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def network_kind(path: Path) -> str | None:
    """The kind of the network drive that holds ``path``, such as "nfs4"; None for a local one.

    None also where the system does not tell.
    """
    place = os.path.realpath(path)
    if sys.platform == "win32":
        return "a network share" if place.startswith("\\\\") else None
    kind = filesystem_of(place, _mounts())
    return kind if _REMOTE.fullmatch(kind) else None


def filesystem_of(path: str, mounts: Iterable[tuple[str, str]]) -> str:
    """The kind of the filesystem that holds ``path``, by where which kind is mounted.

    >>> filesystem_of("/home/me", [("/", "ext4"), ("/home", "nfs4")])
    'nfs4'
    """
    kind, longest = "", -1
    for point, mounted in mounts:
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # a later mount on the same point hides the former
            kind, longest = mounted, len(point)
    return kind


def mounts_of(table: str) -> list[tuple[str, str]]:
    """Where something is mounted and its kind, by a table as in /proc/self/mounts."""
    lines = [fields for line in table.splitlines() if len(fields := line.split()) > 2]
    return [(_OCTAL.sub(lambda o: chr(int(o[1], 8)), line[1]), line[2]) for line in lines]


def _mounts() -> list[tuple[str, str]]:
    """As :func:`mounts_of`, of this system; empty where it does not tell."""
    try:
        if MOUNT_TABLE.exists():
            return mounts_of(MOUNT_TABLE.read_text(errors="surrogateescape"))
        if sys.platform != "darwin":
            return []
        listing = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=5).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return re.findall(r" on (/.*) \((\w+)", listing)
