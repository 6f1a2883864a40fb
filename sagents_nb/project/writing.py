"""All files of a project, or none."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import ConfigurationError


def existing(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Those of ``paths`` that are in ``folder`` already."""
    return [path for path in paths if os.path.lexists(folder / path)]


def write(folder: Path, files: Mapping[Path, str]) -> None:
    """Write them into ``folder``, which is made if it is missing, over what is there.

    Raises :class:`~sagents_nb.errors.ConfigurationError` if that fails; all is then as it was.
    """
    missing = _missing(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staged = folder / f".setup-{uuid.uuid4().hex}"  # on the same disk: moving is enough
        staged.mkdir()
        try:
            for path, text in files.items():
                new = staged / "new" / path
                new.parent.mkdir(parents=True, exist_ok=True)
                new.write_text(text, encoding="utf-8", newline="\n")
            _move(staged, folder, list(files))
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    except OSError as error:
        if missing is not None:
            with contextlib.suppress(OSError):
                _remove_empty(folder, missing)
        raise ConfigurationError(
            f"The project cannot be written into {folder} ({error.strerror or error}); nothing "
            "was changed."
        ) from None


def _move(staged: Path, folder: Path, paths: list[Path]) -> None:
    """Put the new files in their places; what fails is undone."""
    with contextlib.ExitStack() as undo:
        for path in paths:
            place, old = folder / path, staged / "old" / path
            for parent in reversed(path.parents):
                if not (folder / parent).is_dir():
                    (folder / parent).mkdir()
                    undo.callback((folder / parent).rmdir)
            if os.path.lexists(place):
                if place.is_dir():
                    raise IsADirectoryError(0, f"{path} is a directory")
                old.parent.mkdir(parents=True, exist_ok=True)
                os.rename(place, old)
                undo.callback(os.replace, old, place)
            os.rename(staged / "new" / path, place)
            undo.callback(place.unlink, missing_ok=True)
        undo.pop_all()


def _missing(folder: Path) -> Path | None:
    """The topmost directory that has to be made for ``folder``, or None."""
    found = None
    for place in (folder, *folder.parents):
        if os.path.lexists(place):
            break
        found = place
    return found


def _remove_empty(folder: Path, top: Path) -> None:
    for place in (folder, *folder.parents):
        if place.exists():
            place.rmdir()
        if place == top:
            return
