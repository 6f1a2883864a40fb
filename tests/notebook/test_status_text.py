"""What magics say of conversations, in words."""

from __future__ import annotations

import sagents_nb as sa
from sagents_nb.notebook.status_text import list_text


def test_of_many_kept_conversations_the_latest_are_listed_and_the_others_counted() -> None:
    with sa.ConversationStore("sqlite://") as store:
        for i in range(53):
            store.create_conversation(title=f"Trip {i}")
        lines = list_text(None, store).splitlines()
        assert len(lines) == 51
        assert "“Trip 52”" in lines[0]
        assert lines[-1] == "  and 3 older; %agent list all shows them."
        every = list_text(None, store, whole=True).splitlines()
        assert len(every) == 53
        assert "“Trip 0”" in every[-1]
