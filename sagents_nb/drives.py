"""What a drive is asked: whether it is a network's, to keep names, to replace a file at once.

On a network drive SQLite's locks cannot be relied on. The store and the cache are both SQLite
files, so one answer holds for both. What they make of it differs with what is at stake: a store is
refused, since conversations would be lost; a cache is not used and says so once, since a model can
be asked again.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from .errors import ConfigurationError

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


def replace_file(path: Path, content: bytes) -> None:
    """Put a file with that content in the place of ``path``: it is whole, or what it was.

    It has no name until it is whole, where the system can do that: who is killed leaves nothing.
    A link stays one, and a file keeps its mode. What is no file, as /dev/stdout, is written to.
    Raises OSError, also for a file that is write-protected.
    """
    mode = None
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
    if mode is not None and not S_ISREG(mode):
        path.write_bytes(content)
        return
    if mode is not None and not (mode & 0o222 and os.access(path, os.W_OK)):
        raise PermissionError(errno.EACCES, "it is write-protected", str(path))
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name[:_LONGEST]}.{secrets.token_hex(8)}.new")
    try:
        if not _made_whole(beside, content, mode):
            with open(beside, "xb") as file:
                _fill(file.fileno(), content, mode)
        os.replace(beside, target)
    finally:
        with suppress(OSError):
            beside.unlink()


def remove_left_beside(path: Path) -> None:
    """Remove what was left by those who were killed in :func:`replace_file`.

    For who is the only one to write that file.
    """
    for left in path.parent.glob(f".{glob.escape(path.name[:_LONGEST])}.*.new"):
        with suppress(OSError):
            left.unlink()


def unwritten(what: str, path: str | os.PathLike[str], error: OSError) -> ConfigurationError:
    """What to raise where ``what`` could not be written: why, and the next step.

    >>> print(unwritten("The page", "a/b.html", OSError(errno.ENOSPC, "The disk is full")))
    The page cannot be written to 'a/b.html' (The disk is full); free some space there first.
    """
    step = _STEPS.get(error.errno or 0, "name another file")
    why = error.strerror or error
    return ConfigurationError(
        f"{what} cannot be written to {os.fspath(path)!r:.300} ({why}); {step}."
    )


_LONGEST = 50  # characters of a name, which get a few more and are 255 bytes at most then
_SPACE = "free some space there first"
_STEPS = {
    errno.ENOENT: "name a file in a folder that exists",
    errno.ENOTDIR: "name a file in a folder that exists",
    errno.EISDIR: "name a file, which is no folder",
    errno.EACCES: "name a file that you may write",
    errno.EPERM: "name a file that you may write",
    errno.EROFS: "name a file that you may write",
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ENOSPC: _SPACE,
    errno.EFBIG: _SPACE,  # more than a file may have there
    getattr(errno, "EDQUOT", errno.ENOSPC): _SPACE,
}


def _made_whole(path: Path, content: bytes, mode: int | None) -> bool:
    """Make a file of that content that has no name before; False where the system cannot."""
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (AttributeError, OSError):
        return False
    try:
        _fill(descriptor, content, mode)
        try:
            # With a folder as source Python calls linkat, which takes the file behind the link.
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)
        except OSError:
            return False
        return True
    finally:
        os.close(descriptor)


def _fill(descriptor: int, content: bytes, mode: int | None) -> None:
    if mode is not None and hasattr(os, "fchmod"):  # before there is anything to read in it
        os.fchmod(descriptor, mode & 0o777)
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


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
