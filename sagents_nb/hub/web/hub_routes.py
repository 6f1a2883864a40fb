"""What can be asked of the hub itself, by whoever operates it and by browsers."""

from __future__ import annotations

from starlette.responses import Response

from . import pages
from .bodies import OkReply, TokenReply
from .call import Call
from .codes import WrongCode

PROMETHEUS = "text/plain; version=0.0.4"
"""What its text is."""


def page(call: Call) -> Response:
    """What this is, for people."""
    text, policy = pages.page(
        behind_jupyter=call.settings.behind_jupyter, of_notebook=call.hub.of_notebook
    )
    return Response(text, media_type="text/html", headers=policy)


def asset(name: str, call: Call) -> Response:
    """A file of that page."""
    content, kind = pages.asset(name)
    return Response(content, media_type=kind)


def health(call: Call) -> OkReply:
    """It takes new work."""
    return OkReply()


def exchange_code(call: Call) -> TokenReply:
    """The token for a code."""
    token = call.codes.exchanged(call.body.code) if call.codes else None
    if token is None:
        raise WrongCode
    return TokenReply(token=token)


def metrics(call: Call) -> str:
    """What happened in this process, and what is now, for Prometheus."""
    return call.hub.figures.text()
