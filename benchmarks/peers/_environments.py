"""An environment of its own for each peer, below .venv-peers/, made with uv."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv-peers"

PEERS = {
    "chatlas": ["chatlas", "openai"],
    "deepagents": ["deepagents", "langgraph-checkpoint-sqlite"],
    "google-adk": ["google-adk"],
    "openai-agents": ["openai-agents"],
    "pydantic-ai": ["pydantic-ai-slim"],
    "smolagents": ["smolagents"],
    "strands": ["strands-agents"],
}
"""What to install for each."""


class Missing(Exception):
    """Why there are no figures of somebody."""


def environment(name: str, requirements: list[str], install: bool) -> str:
    """The Python of a peer."""
    folder = ENVIRONMENTS / name
    python = str(folder / "bin" / "python")
    ready = folder / ".ready"
    needed = "\n".join(sorted(requirements))
    if ready.exists() and ready.read_text() == needed:
        return python
    if not install:
        raise Missing(f"not installed: python {sys.argv[0]} --peers")
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise Missing("not installed: there is no uv, see https://docs.astral.sh/uv/")
    for command in (
        [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        [uv, "pip", "install", "--quiet", "--python", python, *requirements],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing(f"cannot be installed: {last_line(done.stderr)}")
    ready.write_text(needed)
    return python


def newer_sqlite(install: bool) -> list[str]:
    """The Python, and its script, that run a script with an SQLite whose WAL is safe.

    There are our own requirements, and openai-agents, for who compares the two in one process.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ours = [*project["dependencies"], *project["optional-dependencies"]["store"]]
    python = environment("newer-sqlite", ["pysqlite3>=0.6.1", *ours, "openai-agents"], install)
    return [python, str(Path(__file__).parent / "_newer_sqlite.py")]


def last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2] or "it said nothing"
