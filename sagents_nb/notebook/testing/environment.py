"""What a kernel under test finds in its environment; see ``sagents_nb/models/recorded.py``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...models.cache import Cassette
from ...models.named import default_spec
from ...models.providers import SDKS
from ...models.recorded import CASSETTE, REPLAY
from ...redaction import secret_variables

MODEL = "SAGENTS_MODEL"
DEFAULT = "default_model"  # in a cassette's header: what to replay where nobody names a model

_KEYS = [name for sdk in SDKS for name in sdk.variables]


def cassette_of(notebook: Path) -> Path:
    """Where the notebook's cassette is, or would be.

    >>> cassette_of(Path("notebooks/study.ipynb")).name
    'study.cassette.json'
    """
    return notebook.with_name(f"{notebook.stem}.cassette.json")


def replaying(cassette: Path) -> dict[str, str | None]:
    """The changes for a kernel that replays: no keys, and the model that was recorded.

    Whatever has the name or the looks of a secret is a key, whoever it is for.
    """
    model = Cassette(cassette).header.get(DEFAULT)
    return {
        **dict.fromkeys([*_KEYS, *secret_variables()]),
        MODEL: model,
        REPLAY: "replay",
        CASSETTE: str(cassette.absolute()),
    }


def recording(cassette: Path) -> dict[str, str | None]:
    """The changes for a kernel that asks the models; the default one is named, not guessed."""
    spec, _ = default_spec()
    return {
        MODEL: None if spec == "demo" else spec,
        REPLAY: "record",
        CASSETTE: str(cassette.absolute()),
    }


@contextmanager
def changed(changes: dict[str, str | None]) -> Iterator[None]:
    """The environment with these changes; None removes a variable."""
    before = {name: os.environ.get(name) for name in changes}
    _change(changes)
    try:
        yield
    finally:
        _change(before)


def _change(changes: dict[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
