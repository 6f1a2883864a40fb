"""requirements.lock holds what pyproject.toml asks for, for every Python and system we name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
SYSTEMS = {
    "linux": {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    "darwin": {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
}


def asked() -> list[Requirement]:
    """What is installed by the lock: everything named but the engine of `make test-model`."""
    project = PROJECT["project"]
    texts = [
        *project["dependencies"],
        *(text for extra in project["optional-dependencies"].values() for text in extra),
        *PROJECT["dependency-groups"]["dev"],
        *PROJECT["dependency-groups"]["docs"],
        *PROJECT["build-system"]["requires"],
    ]
    found = [Requirement(text) for text in texts]
    return [requirement for requirement in found if requirement.name != project["name"]]


def locked() -> list[tuple[Requirement, int]]:
    """Each entry of the lock, and how many hashes it has."""
    entries = re.split(r"\n(?=[^\s#])", LOCK.partition("\n")[2])[1:]
    return [
        (Requirement(re.split(r"\s*\\\n", entry)[0]), entry.count("--hash=sha256:"))
        for entry in entries
    ]


def test_every_entry_is_one_version_with_hashes_and_names_no_place() -> None:
    assert len(locked()) > 100
    for requirement, hashes in locked():
        assert [specifier.operator for specifier in requirement.specifier] == ["=="], requirement
        assert hashes, requirement
        assert requirement.url is None
    assert not re.search(r"://|--(extra-)?index|--find-links|^-e|@", LOCK, re.MULTILINE)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_one_version_in_range_of_all_that_is_asked_for(
    python: str, system: str
) -> None:
    around = {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        **SYSTEMS[system],
    }
    versions: dict[str, list[str]] = {}
    for requirement, _ in locked():
        if requirement.marker is None or requirement.marker.evaluate(around):
            (specifier,) = requirement.specifier
            versions.setdefault(canonicalize_name(requirement.name), []).append(specifier.version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
    wrong = [
        f"{requirement}: {versions.get(canonicalize_name(requirement.name), 'not locked')}"
        for requirement in asked()
        if not any(
            requirement.specifier.contains(version)
            for version in versions.get(canonicalize_name(requirement.name), ())
        )
    ]
    assert wrong == [], "run `make lock`"
