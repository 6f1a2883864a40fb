from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sagents_nb
from sagents_nb.errors import ConfigurationError
from sagents_nb.files import FilesystemClosed, Mount, filesystems, open_filesystem
from sagents_nb.files.registry import Filesystems
from tests.files.doubles import DictStorage


@pytest.mark.spec("S1.8.1", "S1.8.15")
def test_a_scope_has_one_filesystem_that_all_share() -> None:
    scope = ("test", "shared")
    fs = open_filesystem(scope)
    assert open_filesystem(scope) is fs
    assert filesystems.get(scope) is fs
    assert scope in filesystems.list()
    fs.write("/a", "x")
    assert not open_filesystem(("test", "other")).exists("/a")
    filesystems.close(scope)
    filesystems.close(scope)
    filesystems.close(("test", "other"))
    assert filesystems.get(scope) is None
    assert scope not in filesystems.list()
    with pytest.raises(FilesystemClosed):
        fs.read("/a")
    assert open_filesystem(scope).list() == []
    open_filesystem(scope).close()
    assert filesystems.get(scope) is None
    assert open_filesystem(scope) is not fs
    filesystems.close(scope)


@pytest.mark.spec("S1.8.15")
@pytest.mark.parametrize("scope", ["agent", (), ["user", 1], ("user", [1])])
def test_a_scope_that_is_no_tuple_is_an_error(scope: Any) -> None:
    with pytest.raises(ConfigurationError, match="scope is a"):
        open_filesystem(scope)


def test_importing_the_files_loads_no_pattern_library() -> None:
    code = (
        "import sys, sagents_nb.files as f; f.FileSystem().write('/a', 'x')\n"
        "assert not {'wcmatch', 'regex'} & set(sys.modules)"
    )
    root = Path(sagents_nb.__file__).parents[1]  # also where the package is not installed
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_mounts_that_are_none_open_no_filesystem() -> None:
    mine = Filesystems()
    storage = DictStorage()
    for mounts in ([5], [Mount("a", storage), Mount("a", storage)], Mount("a", storage)):
        with pytest.raises(ConfigurationError):
            mine.open(("user", 1), mounts)  # type: ignore[arg-type]
        assert mine.list() == []
