"""Projects that ``sagents-nb setup`` wrote, and what runs in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

ACCOUNTS = """
from dataclasses import dataclass


@dataclass(frozen=True)
class Membership:
    team_id: str
    role: str = "reader"


class Guest:
    def __init__(self, name):
        self.user_id = name


class Shouting:
    def __init__(self, user_id):
        self.user_id = user_id.upper()
"""
"""A module of classes that may be there already."""


def files_of(folder: Path) -> dict[str, bytes]:
    """All files in a folder, as they are."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def run(folder: Path, *arguments: str) -> str:
    """Run ``python …`` in the project with this checkout; what it printed, once it went well."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SAGENTS", "PYTEST"))
    }
    environment |= {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
