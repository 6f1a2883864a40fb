"""What a close leaves in the store."""

from __future__ import annotations

import asyncio

import sagents_nb as sa
from sagents_nb.store import ConversationStore
from tests.talking import PATIENCE, agent_of


def test_what_was_said_while_something_was_written_is_kept_by_a_close(
    store: ConversationStore,
) -> None:
    session = sa.Session(agent_of(*["hi"] * 9), id="a", store=store)

    async def say() -> None:  # on a loop, where nobody waits for the commit
        for number in range(5):
            session.follow_up(str(number))
        session.close()

    asyncio.run(say())
    session.actor.ended.result(PATIENCE)
    again = sa.Session.open("a", agent=agent_of(), store=store)
    assert again.info()["queued"] == 5
