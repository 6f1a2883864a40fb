"""The old place of :class:`~sagents_nb.store.store.ScopedStore`, which projects import here."""

from .store import ScopedStore

__all__ = ["ScopedStore"]
