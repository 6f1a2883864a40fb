"""Whether anybody can click: not under nbval, nbclient and papermill."""

from __future__ import annotations

from typing import Any


def unattended(shell: Any) -> bool:
    """Whether nobody can click: nbclient, nbval and papermill run cells without stdin."""
    kernel = getattr(shell, "kernel", None)
    return kernel is None or not getattr(kernel, "_allow_stdin", False)
