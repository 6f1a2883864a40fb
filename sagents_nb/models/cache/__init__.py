"""Where recorded answers are kept, and how one is found again.

A request is brought into one canonical form (``recording``), whose digest finds its ``Recording``
again: in a ``ResponseCache``, a directory for one person, or in a ``Cassette``, a readable
file for a repository. Nothing here is ever unpickled or run.
"""

from .cassette import Cassette
from .recording import Asked, Recording, asked
from .response_cache import ResponseCache

__all__ = ["Asked", "Cassette", "Recording", "ResponseCache", "asked"]
