"""A session in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import _stored
from _measure import exchanges
from run_ours import Scripted, agent, message

import sagents_nb as sa
from sagents_nb.store import ConversationStore


class Kept:
    """See `Conversation`."""

    def __init__(self, path: Path, messages: int) -> None:
        self.store = ConversationStore(path.with_suffix(".db"))
        state = sa.State(messages=[message(*item) for item in exchanges(messages)])
        self.session = sa.Session(agent(Scripted()), store=self.store, state=state)

    async def turn(self) -> Any:
        """Done when the run is, which is when its end is on the disk."""
        assert (await self.session.send("go")).text == "done"

    def close(self) -> None:
        """The session with its store."""
        self.store.close()


class Ours:
    """See `Contestant`."""

    begin = Kept


if __name__ == "__main__":
    _stored.main(Ours())
