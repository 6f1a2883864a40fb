"""Finds a Chromium; run as a script, installs Debian's where there is none."""

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
    # Letters that look the same on every machine: see pictures.py.
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def find_chromium() -> str | None:
    """The path of a Chromium: ``$CHROMIUM``, or one on PATH."""
    found = (path for name in NAMES if (path := shutil.which(name)))
    return os.environ.get("CHROMIUM") or next(found, None)


def main() -> None:
    """Install Debian's Chromium if there is none and we may."""
    if find_chromium() or not shutil.which("apt-get") or os.geteuid() != 0:
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        subprocess.run(["apt-get", "-qq", *arguments], env=environment, check=True)


if __name__ == "__main__":
    main()
