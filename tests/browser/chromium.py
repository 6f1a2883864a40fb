"""Finds a Chromium, or installs Debian's."""

from __future__ import annotations

import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# No sandbox, since CI is root; and no word to anybody but this machine.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def find_chromium() -> str | None:
    """The path of a Chromium: ``$CHROMIUM``, one on PATH, or else what root can get from Debian."""
    if given := os.environ.get("CHROMIUM"):
        return given
    if found := _on_path():
        return found
    if shutil.which("apt-get") and os.geteuid() == 0:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", "-qq", *arguments], env=environment, check=False)
        return _on_path()
    return None


def _on_path() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)
