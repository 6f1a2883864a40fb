"""The directory of a cache: nobody's but the user's, and on a disk of this machine."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ...errors import ConfigurationError

# SQLite's locks do not hold there, and a damaged cache is what comes of it.
_NETWORK = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "gfs2", "glusterfs", "lustre", "nfs", "nfs4"}
    | {"ncpfs", "smb2", "smb3", "smbfs"}
)


def prepared(path: Path) -> None:
    """Make the directory with mode 0700, or see that it is fit.

    Raises ConfigurationError for a directory that others own, can enter, or could replace by
    one of theirs, and OSError where there is none and none can be made.
    """
    if os.name == "nt":  # where the user's profile is private and there is no mode
        path.mkdir(parents=True, exist_ok=True)
        return
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(mode=0o755, exist_ok=True)
    above = path.parent.stat()
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        raise ConfigurationError(
            f"The cache {str(path)!r} would lie in a directory that anybody may change; choose a "
            "directory of your own."
        )
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        _check(path)


def _check(path: Path) -> None:
    found = path.stat()  # of what a link points to: that is what must be ours
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigurationError(f"The cache {str(path)!r} is a file; name a directory.")
    if found.st_uid != os.geteuid():
        raise ConfigurationError(
            f"The cache {str(path)!r} belongs to another user, who could change what it says; "
            "choose a directory of your own."
        )
    if not found.st_mode & 0o077:
        return
    if any(path.iterdir()):
        raise ConfigurationError(
            f"The cache {str(path)!r} is open to other users of this machine; close it with: "
            f"chmod 700 {path}"
        )
    path.chmod(0o700)


def on_network(path: Path) -> bool:
    """Whether the directory is on a network drive, as far as this system tells."""
    try:
        mounts = Path("/proc/self/mounts").read_text()
    except OSError:
        return False
    return filesystem_of(path.resolve(), mounts) in _NETWORK


def filesystem_of(path: Path, mounts: str) -> str:
    r"""The type of the filesystem that holds ``path``, by a table as in /proc/self/mounts.

    >>> filesystem_of(Path("/home/me/x"), "/dev/sda1 / ext4 rw\nserver:/h /home nfs4 rw")
    'nfs4'
    """
    deepest, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " "))
        # A later mount over the same point hides the earlier.
        if len(point.parts) >= deepest and (point == path or point in path.parents):
            deepest, kind = len(point.parts), fields[2]
    return kind
