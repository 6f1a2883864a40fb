"""A shell for the code of the pages, and the site that is built of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.site import build
from tests.notebook.conftest import shell as shell


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    return build(tmp_path_factory.mktemp("site"))
