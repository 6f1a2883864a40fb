"""``sagents-nb test-notebook``: run notebooks as tests, or record them anew."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ...errors import ConfigurationError
from ...models.cache import Cassette
from ...redaction import without_known
from .environment import DEFAULT, MODEL, cassette_of, changed, recording, replaying
from .guard import GUARD

_CELL = 120  # seconds a cell may take

_NOT_NEEDED = (
    "no model was asked that needs a cassette; answers of the demo are computed in each run, "
    "and not recorded"
)
_DEMO = "the demo is the default model here; set a provider's key to record another"


def run_tests(paths: Sequence[str], *, short: bool = False) -> int:
    """Test the notebooks, or those in the folders; pytest's exit code.

    ``short`` says a line of each cell that fails.
    """
    if not (find_spec("nbval") and find_spec("pytest")):
        raise ConfigurationError(
            "Testing notebooks needs nbval and pytest; pip install 'sagents-nb[testing]'."
        )
    import pytest

    files = [str(path.absolute()) for path in notebooks(paths)]
    for file in files:
        _check(Path(file))
    # Not the project's own settings of pytest: they are about its other tests.
    settings = ["-c", os.devnull, "--rootdir", os.path.commonpath([*map(os.path.dirname, files)])]
    options = ["-q", "-p", "no:cacheprovider", "-p", "sagents_nb.notebook.testing.plugin"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # it is imported already
    if short:
        options += ["--tb=no", "-rfE"]
        for name in ("CI", "BUILD_NUMBER"):  # where they are set pytest cuts no line short
            os.environ.pop(name, None)
    if os.environ.get("NO_COLOR"):  # https://no-color.org; nbval colours by pytest's option alone
        options.append("--color=no")
    return int(
        pytest.main([*options, *settings, "--sagents", f"--nbval-cell-timeout={_CELL}", *files])
    )


def _check(notebook: Path) -> None:
    """Raise ConfigurationError for a file that is no notebook, and for a damaged cassette."""
    import nbformat

    try:
        nbformat.read(notebook, as_version=4)
    except Exception as error:  # whatever JSON, and the schema, say
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise ConfigurationError(f"{notebook.name} cannot be read as a notebook: {first}") from None
    Cassette(cassette_of(notebook))


def notebooks(paths: Sequence[str]) -> list[Path]:
    """The notebooks that are named, and those in the folders that are."""
    files: list[Path] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            inside = sorted(path.rglob("*.ipynb"))
            files += [p for p in inside if ".ipynb_checkpoints" not in p.parts]
        elif path.suffix == ".ipynb" and path.is_file():
            files.append(path)
        else:
            raise ConfigurationError(f"{name!r} is no notebook; name an .ipynb file or a folder.")
    if not files:
        raise ConfigurationError(f"There is no notebook in {', '.join(paths)}.")
    return files


def record(paths: Sequence[str]) -> int:
    """Ask the models anew and keep what they say, then replay and save that; 1 if a cell fails.

    Each notebook runs twice: live, and replayed, since what it shows then is what a test will
    see. Notebook and cassette are changed only if both went well.
    """
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    for notebook in notebooks(paths):
        try:
            print(f"{notebook}: {_recorded(notebook)}")
        except CellExecutionError as error:
            why = without_known(str(error))
            print(f"{notebook}: not recorded, because a cell failed.\n{why}", file=sys.stderr)
            return 1
        except DeadKernelError:
            print(f"{notebook}: not recorded, because its kernel ended.", file=sys.stderr)
            return 1
    return 0


def _recorded(notebook: Path) -> str:
    """Record one notebook; what has changed, in words."""
    from ..headless import execute

    place = cassette_of(notebook)
    with tempfile.TemporaryDirectory(prefix=".sagents-", dir=notebook.parent) as folder:
        live = Path(folder) / place.name
        environment = recording(live)
        with changed(environment):
            execute(notebook)
        fresh = Cassette(live)
        if len(fresh):
            if environment[MODEL]:
                fresh.header[DEFAULT] = environment[MODEL]
            new, other, gone = fresh.keep_of(Cassette(place))
        with changed(replaying(live)):
            execute(notebook, save=True, setup=GUARD)
        if not len(fresh):
            place.unlink(missing_ok=True)
            return _NOT_NEEDED if environment[MODEL] else f"{_NOT_NEEDED} ({_DEMO})"
        os.replace(live, place)
    return f"{len(fresh)} answers in {place.name}: {new} new, {other} changed, {gone} dropped"
