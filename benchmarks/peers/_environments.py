"""An environment of its own for each peer, below .venv-peers/, made with uv."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv-peers"


class Missing(Exception):
    """Why there are no figures of somebody."""


def environment(name: str, requirements: list[str], install: bool) -> str:
    """The Python of a peer."""
    folder = ENVIRONMENTS / name
    python = str(folder / "bin" / "python")
    ready = folder / ".ready"
    if ready.exists():
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
    ready.touch()
    return python


def last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2] or "it said nothing"
