"""A PostgreSQL of one's own; run as a script, installs Debian's where there is none."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# Debian keeps the server's programs off PATH.
PLACES = "/usr/lib/postgresql"

# A test's server may lose everything when the machine does.
SETTINGS = ("fsync=off", "full_page_writes=off", "listen_addresses=127.0.0.1")


def find_programs() -> Path | None:
    """The directory of ``postgres`` and ``initdb``, or None."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = [path for path in Path(PLACES).glob("*/bin") if (path / "initdb").exists()]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The SQLAlchemy URL of a new, empty server on loopback, which ends with the block."""
    programs = find_programs()
    assert programs, "there is no PostgreSQL; run python tests/store/postgres.py as root"
    # The server refuses to be root, and pytest's temporary directories let nobody else in.
    user = "postgres" if os.geteuid() == 0 else None
    root = Path(tempfile.mkdtemp(prefix="sagents-postgres-"))
    try:
        (root / "password").write_text("tests")
        if user:
            account = pwd.getpwnam(user)
            for path in (root, root / "password"):
                os.chown(path, account.pw_uid, account.pw_gid)
        data, port = root / "data", _free_port()
        command = [programs / "initdb", "-D", data, "-U", "tests", "--no-sync", "-E", "UTF8"]
        command += ["--auth=scram-sha-256", f"--pwfile={root / 'password'}", "--locale=C"]
        subprocess.run(command, user=user, cwd=root, check=True, stdout=subprocess.DEVNULL)
        command = [programs / "postgres", "-D", data, "-p", str(port)]
        for setting in (*SETTINGS, f"unix_socket_directories={root}"):
            command += ["-c", setting]
        with (
            (root / "log").open("w") as log,
            subprocess.Popen(command, user=user, cwd=root, stdout=log, stderr=log) as server,
        ):
            try:
                _wait_for(server, port, root / "log")
                yield f"postgresql+psycopg://tests:tests@127.0.0.1:{port}/postgres"
            finally:
                server.send_signal(signal.SIGINT)  # "fast": connections are closed
                server.wait()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + 300
    while True:
        try:
            psycopg.connect(
                host="127.0.0.1", port=port, user="tests", password="tests", dbname="postgres"
            ).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
            time.sleep(0.05)


def main() -> None:
    """Install Debian's PostgreSQL if there is none and we may."""
    if find_programs() or not shutil.which("apt-get") or os.geteuid() != 0:
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
        subprocess.run(["apt-get", "-qq", *arguments], env=environment, check=True)


if __name__ == "__main__":
    main()
