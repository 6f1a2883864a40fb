"""Codes by which a page is given the hub's token, which stands in no address."""

from __future__ import annotations

import secrets
import time

from ...errors import SagentsError

CODE_SECONDS = 60.0


class WrongCode(SagentsError):
    """It was used, or is too old, or never was one."""

    def __init__(self) -> None:
        super().__init__("That code is used or too old; start the hub's page again.")


class Codes:
    """Codes that stand for the token, for an address: each once, and for a minute."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._until: dict[str, float] = {}

    def new(self) -> str:
        """A further one."""
        # Of hexadecimal digits: where it is said, nothing takes it for a key and masks it.
        code = secrets.token_hex(24)
        self._until[code] = time.monotonic() + CODE_SECONDS
        return code

    def exchanged(self, code: str) -> str | None:
        """The token, if the code is one of these, and stands for it still."""
        until = self._until.pop(code, 0.0)
        return self._token if time.monotonic() < until else None
