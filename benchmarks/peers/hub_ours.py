"""A hub whose model is scripted, with room for all that hub.py asks of it.

Usage: hub_ours.py STORE PORT
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from _hub import (
    HOLD,
    STEADY,
    STEADY_PIECES,
    STEADY_SECONDS,
    STEADY_SIZE,
    STEADY_TURNS,
    TOKEN,
    pieces,
)

sys.path.insert(0, str(Path(__file__).parents[2]))

from sagents_nb.hub import AgentSystem, Blueprint
from sagents_nb.hub.limits import Limits
from sagents_nb.hub.web.serving import serve
from sagents_nb.messages import Message, TextDelta, TextPart, ToolCall, Usage
from sagents_nb.models import ChatModel, ModelRequest

LIMITS = Limits(runs=1_000, sockets=20_000, sockets_of_agency=20_000)


class Scripted(ChatModel):
    """Says what `_hub` has it say, and keeps nothing."""

    name = "scripted"

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | Message]:
        """One answer."""
        said = next(each.text for each in reversed(request.messages) if each.role == "user")
        if said == HOLD:
            await asyncio.Event().wait()
        if said == STEADY:
            turn = sum(each.role == "assistant" for each in request.messages)
            if turn < STEADY_TURNS:
                for _ in range(STEADY_PIECES):
                    yield TextDelta("x" * STEADY_SIZE)
                    await asyncio.sleep(STEADY_SECONDS / STEADY_TURNS / STEADY_PIECES)
                # Kept short: by how much a conversation grows is not what is measured.
                parts = (TextPart("x"), ToolCall(f"c{turn}", "ls", {}))
                yield Message("assistant", parts, Usage(), stop_reason="tool_use")
                return
        told = pieces(said)
        for piece in told:
            yield TextDelta(piece)
        yield Message("assistant", (TextPart("".join(told)),), Usage(), stop_reason="end_turn")


if __name__ == "__main__":
    system = AgentSystem(Scripted()).defaults().add_agent(Blueprint("speaker", "Be brief."))
    serve(system, sys.argv[1], port=int(sys.argv[2]), token=TOKEN, limits=LIMITS)
