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


def test_a_kept_conversation_that_waits_for_an_answer_is_listed_as_such() -> None:
    call = sa.ToolCall("c1", "write_file", {"file_path": "/a.md", "content": "x"})
    with sa.ConversationStore("sqlite://") as store:
        for id, turns in (("asks", [call]), ("is-done", ["Done."])):
            agent = sa.Agent(sa.ScriptedModel(turns), interrupt_on=["write_file"])
            with sa.Session(agent, id=id, store=store) as session:
                session.send("go").result()
        lines = {line.split(":")[0].strip(): line for line in list_text(None, store).splitlines()}
    assert ": kept, waits for an answer, last used 20" in lines["asks"]
    assert ": kept, last used 20" in lines["is-done"]
