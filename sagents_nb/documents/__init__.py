"""Documents: an index of what is in them, and where it stands."""

from __future__ import annotations

from .index import Added, DocumentIndex, Passage

__all__ = ["Added", "DocumentIndex", "Passage"]
