"""A conversation for others: as Markdown, as one HTML page, as a notebook."""

from __future__ import annotations

import os
from pathlib import Path

from ..drives import replace_file, unwritten
from .document import Document, document_of
from .html import html_of
from .markdown import markdown_of
from .notebook import notebook_of

__all__ = ["Document", "document_of", "html_of", "markdown_of", "notebook_of", "written"]


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """``text``, also in the file ``path`` if there is one, which is replaced at once.

    Raises :class:`~sagents_nb.errors.ConfigurationError` where it cannot be written.
    """
    if path is not None:
        content = text.encode()
        try:
            replace_file(Path(path), content)
        except OSError as error:
            raise unwritten("The conversation", path, error) from error
    return text
