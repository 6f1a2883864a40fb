"""What the models of hub.py's contestants say, and how much is asked; only the standard library.

They say it at once, so what is left is the server's own.
"""

from __future__ import annotations

SHORT, LONG, HOLD, STEADY = "short", "long", "hold", "steady"
"""What the user says, and what the model does then: an answer in one piece, or in many, none until
somebody cancels it, and one that goes on for a while."""

DELTAS, PIECE = 1_000, "word "

STEADY_TURNS, STEADY_PIECES, STEADY_SIZE, STEADY_SECONDS = 60, 25, 4_000, 12.0
"""The last of these: how many turns, of how many pieces, of how many characters, over how long."""

CALLERS, AT_ONCE = 32, 20
SOCKETS, LISTENERS = 10_000, 5_000
LIVE, STALLED = 50, 50
KINDS = ("ws", "stream")  # of sockets: of the hub's own events, and of the panel

TOKEN = "of-a-hub-that-lives-for-a-benchmark"


def pieces(said: str) -> list[str]:
    """The answer to what was said."""
    return [PIECE] * DELTAS if said == LONG else ["done"]
