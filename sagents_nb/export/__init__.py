"""A conversation for others: as Markdown, as one HTML page, as a notebook."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ConfigurationError
from .document import Document, document_of
from .html import html_of
from .markdown import markdown_of
from .notebook import notebook_of

__all__ = ["Document", "document_of", "html_of", "markdown_of", "notebook_of", "written"]


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """``text``, also in the file ``path`` if there is one.

    Raises :class:`~sagents_nb.errors.ConfigurationError` where it cannot be written.
    """
    if path is not None:
        content = text.encode()
        try:
            Path(path).write_bytes(content)
        except OSError as error:
            raise ConfigurationError(
                f"The conversation cannot be written to {os.fspath(path)!r:.300} "
                f"({error.strerror}); name a file in a folder that exists."
            ) from error
    return text
