"""What people install: built from a clean clone, and used where there is no Node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "notebooks" / "tour.ipynb"
STATIC = ("loader.js", "panel.js", "panel.css", "math.js", "colours.js", "reopened.js")
PAGE = ("dashboard.js", "dashboard.css")
BUNDLE = {f"sagents_nb/panel/static/{name}" for name in STATIC} | {
    f"sagents_nb/hub/web/static/{name}" for name in PAGE
}
# Where JupyterLab looks for extensions, below the environment's own folder.
EXTENSION = "data/share/jupyter/labextensions/sagents-nb"
UV = (sys.executable, "-m", "uv", "--quiet")

EXECUTE = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
"""
USE_THE_CORE = """
import sagents_nb as sa
print(sa.Agent(model=sa.ScriptedModel(["It works."])).run("Does it?").text)
"""


def run(*command: object, path: Path | None = None, cwd: Path | None = None) -> str:
    """Run a command and return what it printed; ``path`` is then its whole PATH."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "PYTHON"))}
    environment.pop("VIRTUAL_ENV", None)
    if path is not None:
        assert shutil.which("node", path=str(path)) is None
        environment["PATH"] = str(path)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}"
    return done.stdout


def new_environment(folder: Path, requirement: str) -> Path:
    """A virtual environment with nothing but the requirement; returns its folder of programs."""
    run(*UV, "venv", "--python", sys.executable, folder)
    run(*UV, "pip", "install", "--python", folder / "bin" / "python", requirement)
    return folder / "bin"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run("git", "clone", "--quiet", ROOT, folder / "clone")
    run(*UV, "build", "--sdist", "--out-dir", folder, folder / "clone")
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, without Node: what pip does where there is no wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    run(*UV, "build", "--wheel", "--out-dir", folder, sdist, path=folder)
    return next(folder.glob("*.whl"))


def test_the_sdist_has_the_bundle_and_its_sources(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {*BUNDLE, "LICENSE", "README.md", "hatch_build.py", "widgets/package.json"}
    assert not [name for name in names if "node_modules" in name or name.startswith("tests")]


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    step = "sagents_nb/store/migrations/versions/v0001.py"
    assert names >= {*BUNDLE, "sagents_nb/py.typed", step}
    assert "sagents_nb/hub/launcher.svg" in names
    extension = {"data/" + name.partition(".data/data/")[2] for name in names if ".data/" in name}
    assert extension == {f"{EXTENSION}/{name}" for name in ("package.json", "static/reopened.js")}
    templates = (ROOT / "sagents_nb" / "project" / "templates").rglob("*.in")
    assert names >= {str(path.relative_to(ROOT)) for path in templates}
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"sagents_nb"}
    assert not [name for name in names if name.endswith((".ipynb", ".ts", ".tsx"))]


def test_jupyter_is_told_of_the_hub(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        told = archive.read(name).decode()
    group = "[jupyter_serverproxy_servers]\nsagents = sagents_nb.hub.jupyter:server_process\n"
    assert group in told


def test_the_core_works_without_any_extra(wheel: Path, tmp_path: Path) -> None:
    programs = new_environment(tmp_path / "venv", str(wheel))
    assert run(programs / "python", "-c", USE_THE_CORE, path=programs) == "It works.\n"


@pytest.mark.skipif(not TOUR.exists(), reason="the tour is not written yet")
def test_the_tour_runs_with_the_notebook_extra(wheel: Path, tmp_path: Path) -> None:
    programs = new_environment(tmp_path / "venv", f"sagents-nb[notebook] @ {wheel.as_uri()}")
    shutil.copy(TOUR, tmp_path)
    run(programs / "python", "-c", EXECUTE, TOUR.name, path=programs, cwd=tmp_path)


def test_a_new_project_passes_its_tests_where_it_is_installed(wheel: Path, tmp_path: Path) -> None:
    programs = new_environment(tmp_path / "venv", f"sagents-nb[testing] @ {wheel.as_uri()}")
    project = tmp_path / "my-agents"
    run(programs / "sagents-nb", "setup", project, "--yes", path=programs)
    run(*UV, "pip", "install", "--python", programs / "python", "--editable", project)
    run(programs / "python", "-m", "pytest", "-q", path=programs, cwd=project)
