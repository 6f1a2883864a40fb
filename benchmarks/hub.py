"""What the hub takes beside langgraph's development server and pydantic-ai's AG-UI application.

Each server is a process of its own, and so is the client, which writes and reads bytes: what it
takes is no server's. The models' words are scripted and come at once. Ours keeps all in an SQLite
file, in the directory for temporary files: set TMPDIR to measure another disk. Of the peers,
langgraph's development server keeps it in memory, and pydantic-ai's application nowhere. The limits
of a hub (32 runs, 1,024 listeners, 64 of an agency) are settings, and raised here.

Each peer has an environment of its own below .venv-peers/, made by --peers; nobody's account is
needed. All is asked over the loopback, 127.0.0.2 and so on for the many sockets, in counts and
times that are bounded. A part is measured by itself with --only, which takes several. Linux only.

Usage: python benchmarks/hub.py [--peers] [--only PART,PART…]
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from peers._environments import ROOT, Missing, environment, last_line
from peers._hub import (
    AT_ONCE,
    CALLERS,
    DELTAS,
    KINDS,
    LISTENERS,
    LIVE,
    SOCKETS,
    STALLED,
    STEADY_SECONDS,
)

PEERS_HERE = Path(__file__).parent / "peers"
OURS, LANGGRAPH, PYDANTIC_AI = "the hub", "langgraph dev", "pydantic-ai"
NEEDED = {
    LANGGRAPH: ("hub-langgraph", ["langgraph-cli[inmem]"]),
    PYDANTIC_AI: ("hub-pydantic-ai", ["pydantic-ai-slim[ag-ui]", "uvicorn"]),
}
STARTING = 90.0  # seconds that a server may take to answer
PART_SECONDS = 300  # a part takes a minute at most where little else runs

# What may be, in the units of what is told.
MOST_ACKNOWLEDGED, LEAST_A_SECOND, MOST_TO_END = 10, 200, 70
MOST_DELTAS, MOST_AT_ONCE = 110, 1.5
MOST_SOCKET, MOST_EVENT, MOST_LIVE, MOST_GROWTH, MOST_IDLE = 35, 200, 250, 60, 80

Figures = dict[str, float]


class Server(NamedTuple):
    """A server that answers, and how many seconds it took until then."""

    port: int
    pid: int
    seconds: float


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def served(command: list[str], port: int, path: str, folder: Path) -> Iterator[Server]:
    """The server that ``command`` starts, which says that it is there when asked for ``path``."""
    said = folder / "said.txt"
    # Nothing may be sent to anybody, nor a key be asked for.
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1"}
    began = time.perf_counter()
    with said.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | quiet,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while not answers(port, path):
            if process.poll() is not None or time.perf_counter() - began > STARTING:
                raise Missing(f"does not start: {last_line(said.read_text())}")
            time.sleep(0.02)
        yield Server(port, process.pid, time.perf_counter() - began)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def started(name: str, install: bool) -> Iterator[Server]:
    """The server of that contestant."""
    port = free_port()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if name == OURS:
            script = [sys.executable, str(PEERS_HERE / "hub_ours.py")]
            command, path = [*script, str(folder / "hub.db"), str(port)], "/healthz"
        else:
            python = environment(*NEEDED[name], install)
            if name == PYDANTIC_AI:
                command = [python, str(PEERS_HERE / "hub_pydantic_ai.py"), str(port)]
                path = "/"
            else:
                graph = f"{PEERS_HERE / 'hub_langgraph.py'}:graph"
                config = folder / "langgraph.json"
                config.write_text(json.dumps({"dependencies": ["."], "graphs": {"agent": graph}}))
                command = [str(Path(python).parent / "langgraph"), "dev", "--no-browser"]
                command += ["--no-reload", "--port", str(port), "--config", str(config)]
                path = "/ok"
        with served(command, port, path, folder) as server:
            yield server


@contextlib.contextmanager
def started_as_users_do() -> Iterator[Server]:
    """A hub by its command, with nothing but what that has by default."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).parent / "sagents-nb"), "hub", "--port", str(port)]
        with served(command, port, "/healthz", Path(folder)) as server:
            yield server


def asked(part: str, server: Server) -> Figures:
    """What a client of its own measures."""
    script = str(PEERS_HERE / "hub_client.py")
    command = [sys.executable, script, part, str(server.port), str(server.pid)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PART_SECONDS
    )
    if done.returncode:
        raise Missing(f"failed: {last_line(done.stderr)}")
    return {line["item"]: line["value"] for line in map(json.loads, done.stdout.splitlines())}


def memory(server: Server) -> float:
    """Megabytes that it has in memory."""
    with open(f"/proc/{server.pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / 1e6


def of_peers(measure: Callable[[str], Figures], names: list[str]) -> dict[str, Figures]:
    """The figures of each, and why somebody has none."""
    found = {}
    for name in names:
        try:
            found[name] = measure(name)
        except (Missing, subprocess.TimeoutExpired) as error:
            if name == OURS:
                sys.exit(f"The hub {error}")
            print(f"{name} {error}", flush=True)
    return found


def table(found: dict[str, Figures], rows: list[tuple[str, str, float, int]]) -> None:
    """A row for each item: its label, the item, from seconds or bytes to the unit, digits."""
    print(f"\n{'':44}" + "".join(f"{name:>15}" for name in found))
    for label, item, scale, digits in rows:
        cells = (f"{f[item] * scale:,.{digits}f}" if item in f else "–" for f in found.values())
        print(f"{label:44}" + "".join(f"{cell:>15}" for cell in cells), flush=True)


def at_most(limit: float, value: float, what: str, unit: str, digits: int = 0) -> None:
    verdict = "met" if value <= limit else "MISSED"
    print(f"{verdict:>6}  ≤ {limit:g} {unit} {what}: {value:.{digits}f} {unit}", flush=True)


def start(install: bool) -> None:
    """How long servers take to answer, and what they have in memory then."""

    def measure(name: str) -> Figures:
        with started_as_users_do() if name == OURS else started(name, install) as server:
            time.sleep(2)  # what comes after the start
            return {"seconds": server.seconds, "memory": memory(server)}

    found = of_peers(measure, [OURS, LANGGRAPH, PYDANTIC_AI])
    rows = [("s until it answers", "seconds", 1.0, 1), ("MB while it does nothing", "memory", 1, 0)]
    table(found, rows)
    at_most(MOST_IDLE, found[OURS]["memory"], "of a hub that does nothing", "MB")


def imports(install: bool) -> None:
    """Nothing of a server is loaded with the package."""
    code = "import sys, sagents_nb; print(*sorted({n.partition('.')[0] for n in sys.modules}))"
    loaded = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).split()
    servers = {"starlette", "uvicorn", "websockets", "sqlalchemy", "cronsim"} & set(loaded)
    verdict = "MISSED" if servers else "met"
    what = "no package of the hub is loaded by import sagents_nb"
    print(f"\n{verdict:>6}  {what}: {', '.join(sorted(servers)) or 'none'}")


def of_ours(part: str) -> Figures:
    def measure(name: str) -> Figures:
        with started(name, False) as server:
            return asked(part, server)

    return of_peers(measure, [OURS])[OURS]


def committed() -> float:
    """Seconds that a row takes by sqlite3 alone, on this disk: the median of some."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(f"{folder}/floor.db", isolation_level=None)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE said (text TEXT)")
        for _ in range(40):
            began = time.perf_counter()
            connection.execute("INSERT INTO said VALUES ('short')")
            times.append(time.perf_counter() - began)
        connection.close()
    return statistics.median(times)


def invoke(install: bool) -> None:
    """What is said is kept when that is acknowledged."""
    found = of_ours("invoke") | {"committed": committed()}
    rows = [
        ("ms of a row by sqlite3 alone, on this disk", "committed", 1e3, 1),
        ("ms until a post is acknowledged, one caller", "invoke, p50", 1e3, 1),
        ("  the longest", "invoke, longest", 1e3, 1),
        (f"ms of {CALLERS} callers at once", f"invoke, {CALLERS} callers, p50", 1e3, 1),
        ("  the longest", f"invoke, {CALLERS} callers, longest", 1e3, 1),
        ("acknowledged in a second, these", "invokes a second", 1, 0),
        ("  and their runs ended", "runs a second", 1, 0),
        ("ms of the processor for one, with its run", "processor of an invoke and its run", 1e3, 1),
    ]
    table({OURS: found}, rows)
    at_most(MOST_ACKNOWLEDGED, found["invoke, p50"] * 1e3, "until a post is kept", "ms", 1)
    rate = found["invokes a second"]
    verdict = "met" if rate >= LEAST_A_SECOND else "MISSED"
    print(f"{verdict:>6}  ≥ {LEAST_A_SECOND} posts a second of {CALLERS} callers: {rate:.0f}")


def runs(install: bool) -> None:
    """From a post to the end of its run, and long answers, beside the peers."""

    def measure(name: str) -> Figures:
        with started(name, install) as server:
            if name == OURS:
                return {**asked("runs", server), **asked("agui", server)}
            return asked("langgraph" if name == LANGGRAPH else "pydantic-ai", server)

    found = of_peers(measure, [OURS, LANGGRAPH, PYDANTIC_AI])
    rows = [
        ("ms from a post to the end of its run", "post to end, p50", 1e3, 1),
        ("  the longest", "post to end, longest", 1e3, 1),
        ("ms of a run over AG-UI, new conversation", "post to end, agui, p50", 1e3, 1),
        (f"ms of {DELTAS:,} deltas, new conversation", "deltas, new, p50", 1e3, 1),
        ("  the longest", "deltas, new, longest", 1e3, 1),
        ("ms of them where it goes on", "deltas, again, p50", 1e3, 1),
        ("  the longest", "deltas, again, longest", 1e3, 1),
        (f"s of {AT_ONCE} such answers at once", "deltas, at once", 1, 2),
    ]
    table(found, rows)
    ours = found[OURS]
    at_most(MOST_TO_END, ours["post to end, p50"] * 1e3, "from a post to its run's end", "ms", 1)
    for kind in ("new", "again"):
        what = f"for {DELTAS:,} deltas over AG-UI, {kind}"
        at_most(MOST_DELTAS, ours[f"deltas, {kind}, p50"] * 1e3, what, "ms", 1)
    at_most(MOST_AT_ONCE, ours["deltas, at once"], f"for {AT_ONCE} of these at once", "s", 2)


def idle(install: bool) -> None:
    """What sockets cost on which nothing happens; of each kind in a hub of its own."""
    found: Figures = {}
    for kind in KINDS:
        found |= of_ours(f"idle {kind}")
    rows = []
    for kind in KINDS:
        rows += [
            (
                f"kB of one of {SOCKETS:,} idle sockets, {kind}",
                f"bytes of a socket, {kind}",
                1e-3,
                1,
            ),
            ("  s to open these", f"to open them, {kind}", 1, 1),
            ("  ms of the processor for one", f"processor to open one, {kind}", 1e3, 2),
        ]
    table({OURS: found}, rows)
    for kind in KINDS:
        kb = found[f"bytes of a socket, {kind}"] / 1e3
        at_most(MOST_SOCKET, kb, f"of an idle socket of {SOCKETS:,}, {kind}", "kB", 1)


def fanout(install: bool) -> None:
    """How long one event takes to all who listen."""
    found = of_ours("fanout")
    rows = [
        (f"ms of an event until {LISTENERS:,} have it", "event to all, p50", 1e3, 0),
        ("  the longest", "event to all, longest", 1e3, 0),
        ("ms from the post that it tells of", "post to all, p50", 1e3, 0),
        ("  of these the processor's, in the hub", "processor of an event", 1e3, 0),
    ]
    table({OURS: found}, rows)
    what = f"until an event is with {LISTENERS:,} sockets"
    at_most(MOST_EVENT, found["event to all, p50"] * 1e3, what, "ms")


def stalled(install: bool) -> None:
    """Whether those who read nothing hold up those who do."""
    found = of_ours("stalled")
    rows = [
        (f"ms until an event is read, {LIVE} live readers", "live p50", 1e3, 1),
        ("  of a hundred the longest", "live p99", 1e3, 1),
        ("  the longest", "live longest", 1e3, 1),
        (f"MB told to each in {STEADY_SECONDS:g} s", "told", 1e-6, 1),
        ("  of these on the way to one that is stalled", "on the way", 1e-6, 1),
        ("pieces of text that live readers missed", "missed", 1, 0),
        ("MB that the hub has more, at most", "growth", 1e-6, 0),
    ]
    table({OURS: found}, rows)
    beside = f"beside {STALLED} stalled readers"
    at_most(MOST_LIVE, found["live p99"] * 1e3, f"for 99 of 100 events, {beside}", "ms")
    at_most(MOST_GROWTH, found["growth"] / 1e6, f"more of the hub, {beside}", "MB")


PARTS: dict[str, Callable[[bool], None]] = {
    "imports": imports,
    "start": start,
    "invoke": invoke,
    "runs": runs,
    "idle": idle,
    "fanout": fanout,
    "stalled": stalled,
}


def main() -> None:
    """Measure and print, part by part."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", action="store_true", help="install the peers that are missing")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := [part for part in chosen if part not in PARTS]:
        sys.exit(f"There is no part {unknown[0]}; there are {', '.join(PARTS)}.")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < SOCKETS + 1_000:
        sys.exit(f"A process may have {hard:,} files open; raise ulimit -n to {SOCKETS + 1_000:,}.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"Load of this machine: {os.getloadavg()[0]:.1f}.", flush=True)
    for part in chosen:
        PARTS[part](options.peers)


if __name__ == "__main__":
    main()
