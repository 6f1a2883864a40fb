"""The old place of :class:`~sagents_nb.scope.Scope`, which projects import here."""

from ..scope import ID_LENGTH, Scope, owner_of

__all__ = ["ID_LENGTH", "Scope", "owner_of"]
