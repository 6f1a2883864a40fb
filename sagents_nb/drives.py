"""Whether a path is on a network drive, where SQLite's locks cannot be relied on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

# What GNU df and stat take for remote, and what is mounted through FUSE. 9p and virtiofs are not
# here: containers and virtual machines have their own disks on them.
_REMOTE = re.compile(
    r"acfs|afpfs|afs|auristorfs|beegfs|ceph|cifs|coda|davfs|fhgfs|glusterfs|gpfs|ibrix|lustre|ncpfs"
    r"|nfs[34]?|ocfs2|orangefs|panfs|pvfs2|smb[23]?|smbfs|snfs|webdav|(macfuse|osxfuse)_sshfs"
    r"|fuse\.(ceph|cephfs|curlftpfs|davfs2?|gcsfuse|glusterfs|goofys|juicefs|mount-s3|quobyte"
    r"|rclone|s3fs|smbnetfs|sshfs)"
)
_MOUNTS = Path("/proc/self/mounts")
_OCTAL = re.compile(r"\\([0-7]{3})")


def network_kind(path: Path) -> str | None:
    """The kind of the network drive that holds ``path``, such as "nfs4"; None for a local one.

    None also where the system does not tell.
    """
    place = os.path.realpath(path)
    if sys.platform == "win32":
        return "a network share" if place.startswith("\\\\") else None
    kind, longest = "", -1
    for point, this in _mounts():
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # a later mount on the same point hides the former
            kind, longest = this, len(point)
    return kind if _REMOTE.fullmatch(kind) else None


def _mounts() -> list[tuple[str, str]]:
    """Where something is mounted, and its kind."""
    if _MOUNTS.exists():
        lines = [line.split() for line in _MOUNTS.read_text(errors="surrogateescape").splitlines()]
        return [(_OCTAL.sub(lambda o: chr(int(o[1], 8)), line[1]), line[2]) for line in lines]
    if sys.platform != "darwin":
        return []
    try:
        told = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=5).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return re.findall(r" on (/.*) \((\w+)", told)
