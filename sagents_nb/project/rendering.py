"""From the templates to the files of one project: all of them are written, or none.

A template is the file itself, with ``$names`` to fill in. A line that ends with ``#+owner`` is
for projects whose conversations have owners, one with ``#-owner`` for those without, and the
like for ``existing``, a scope that was there already.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from string import Template

from .. import kinds
from ..errors import ConfigurationError
from ..models.providers import PROVIDERS
from .options import Options, scope_parts

TEMPLATES = Path(__file__).with_name("templates")

_MARKED = re.compile(r" ?#([+-])(\w+)$")


@kinds.checked
def rendered(options: Options) -> dict[Path, str]:
    """The texts of a project's files, by their paths in its folder."""
    flags = {"owner": options.has_owner, "existing": bool(options.scope)}
    values = _values(options)
    files = {}
    for template in sorted(TEMPLATES.rglob("*.in")):
        path = template.relative_to(TEMPLATES).with_suffix("")
        if path.parts[0] == "package":
            path = Path(options.package, *path.parts[1:])
        if path.name == "scope.py" and not options.has_owner:
            continue
        text = template.read_text(encoding="utf-8")
        lines = "\n".join(_chosen(text.splitlines(), flags)) + "\n"
        files[path] = Template(lines).substitute(values)
    return files


def _chosen(lines: list[str], flags: dict[str, bool]) -> Iterator[str]:
    for line in lines:
        mark = _MARKED.search(line)
        if mark is None:
            yield line
        elif flags[mark[2]] is (mark[1] == "+"):
            yield line[: mark.start()]


def _values(options: Options) -> dict[str, str]:
    has_owner = options.has_owner
    provider = PROVIDERS.get(options.model.partition(":")[0])
    extras = ["notebook", "store", "testing", provider.sdk.package if provider else ""]
    return {
        "alice": "ALICE" if has_owner else "",
        "alice_first": "ALICE, " if has_owner else "",
        "then_alice": ", ALICE" if has_owner else "",
        "scope": "scope" if has_owner else "",
        "scope_first": "scope, " if has_owner else "",
        "then_scope": ", scope" if has_owner else "",
        "distribution": options.package.replace("_", "-"),
        "extras": ",".join(sorted(filter(None, extras))),
        "import_scope": _import_of(options) if options.scope else "",
        "model": options.model,
        "model_literal": json.dumps(options.model, ensure_ascii=False),
        "owner_field": options.owner_field,
        "owner_type": options.owner_type,
        "package": options.package,
        "table_prefix": options.table_prefix,
        "title": options.package.replace("_", " ").capitalize(),
        "variable": options.package.upper(),
    }


def _import_of(options: Options) -> str:
    module, name = scope_parts(options.scope)
    top = options.folder / module.partition(".")[0]
    # Imports of the project's own come after a blank line.
    own = top.is_dir() or top.with_suffix(".py").is_file()
    alias = "" if name == "Scope" else " as Scope"
    return "\n" * own + f"from {module} import {name}{alias}"


_PATHS = kinds.Kind(
    "a list, each of it a Path",
    lambda value: kinds.of(Iterable[Path]).fits([*value] if isinstance(value, dict) else value),
)


@kinds.checked(paths=_PATHS)
def existing(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Those of ``paths`` that are in ``folder`` already."""
    return [path for path in paths if os.path.lexists(folder / path)]


@kinds.checked
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
    topmost = None
    for place in (folder, *folder.parents):
        if os.path.lexists(place):
            break
        topmost = place
    return topmost


def _remove_empty(folder: Path, top: Path) -> None:
    for place in (folder, *folder.parents):
        if place.exists():
            place.rmdir()
        if place == top:
            return
