"""``sagents-nb setup``: a small project whose conversations are kept, written once.

What is written belongs to whoever asked for it; nothing here is needed afterwards. The files
are in ``templates/``.
"""

from .options import Options
from .rendering import existing, rendered, write

__all__ = ["Options", "existing", "rendered", "write"]
