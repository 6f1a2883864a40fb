"""Where conversations are kept that nobody said a place for: in the folder that is worked in."""

from __future__ import annotations

from pathlib import Path

OWN_FOLDER = Path(".sagents")


def own_store() -> Path:
    """The file of its store; the folder is made, for this user only, where it is not there yet."""
    if not OWN_FOLDER.exists():
        OWN_FOLDER.mkdir(mode=0o700, exist_ok=True)
        # Conversations may hold what belongs in no repository.
        (OWN_FOLDER / ".gitignore").write_text("*\n")
    return OWN_FOLDER / "agents.db"
