"""What a user's message becomes before it is taken."""

from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.events import MessageEnd
from sagents_nb.panel.protocol import wire
from sagents_nb.store import ConversationStore
from sagents_nb.transcript import markdown
from tests.session.stored import Disk
from tests.talking import agent_of, call, of


def expanded(message: sa.Message, ctx: Any) -> Any:
    return message.text, f"{message.text} (today is Monday)"


def preparing(preprocessor: Any, *turns: Any, **options: Any) -> sa.Session:
    return sa.Session(agent_of(*turns, **options), "c1", message_preprocessor=preprocessor)


@pytest.mark.spec("S1.12.1")
def test_people_see_one_message_and_the_model_another(store: ConversationStore) -> None:
    agent = agent_of("fine")
    session = sa.Session(agent, "c1", store=store, message_preprocessor=expanded)
    events: list[Any] = []
    session.subscribe(events.append)
    session.send("how are you").result()
    model: Any = agent.model
    assert model.requests[0].messages[-1].text == "how are you (today is Monday)"
    assert store.load_display_messages("c1")[0].content["text"] == "how are you"
    assert "Monday" not in markdown(session.messages)
    assert "Monday" not in str(wire(of(MessageEnd, events)[0]))


@pytest.mark.spec("S1.12.1")
def test_it_is_told_whose_message_it_is() -> None:
    seen: list[Any] = []

    def look(message: sa.Message, ctx: Any) -> Any:
        seen.append(ctx)
        return message, message

    session = preparing(look, "a", "b", tool_context={"unit": "mm"})
    session.send("one").result()
    session.send("two").result()
    assert [ctx.conversation_id for ctx in seen] == ["c1", "c1"]
    assert seen[0].agent_id == session.agent.agent_id
    assert seen[0].tool_context == {"unit": "mm"}
    assert [len(ctx.state.messages) for ctx in seen] == [0, 2]


@pytest.mark.spec("S1.12.1")
@pytest.mark.parametrize(
    ("failure", "expected", "says"),
    [
        (ValueError("bad word"), sa.AgentError, "message_preprocessor failed.*bad word"),
        (sa.AgentError("not today"), sa.AgentError, "^not today$"),
    ],
)
def test_what_it_refuses_is_not_appended_and_starts_nothing(
    failure: Exception, expected: type[Exception], says: str
) -> None:
    def refuse(message: sa.Message, ctx: Any) -> Any:
        raise failure

    session = preparing(refuse, "a")
    with pytest.raises(expected, match=says):
        session.send("one")
    assert (session.status, session.messages) == ("idle", [])


@pytest.mark.parametrize(
    "wrong", [None, "text", ("a",), ("a", 3), ("a", sa.Message.assistant("b"))]
)
def test_anything_but_two_messages_is_refused(wrong: Any) -> None:
    session = preparing(lambda message, ctx: wrong, "a")
    with pytest.raises(sa.ConfigurationError, match="returns a tuple"):
        session.send("one")
    assert session.messages == []


def test_it_may_be_async() -> None:
    async def expand(message: sa.Message, ctx: Any) -> Any:
        return expanded(message, ctx)

    session = preparing(expand, "a")
    session.send("one").result()
    assert session.messages[0].text == "one (today is Monday)"
    assert session.messages[0].shown.text == "one"


@pytest.mark.spec("S1.12.1")
def test_it_is_not_asked_about_decisions_or_what_is_restored(disk: Disk) -> None:
    asked: list[str] = []

    def look(message: sa.Message, ctx: Any) -> Any:
        asked.append(message.text)
        return expanded(message, ctx)

    @sa.tool
    def hold() -> str:
        """Wait."""
        return "held"

    store = disk.store()
    agent = agent_of(call("hold"), "done", tools=[hold], interrupt_on={"hold": True})
    session = sa.Session(agent, "c1", store=store, message_preprocessor=look)
    session.send("one").result()
    session.close()
    again = sa.Session.open("c1", agent=agent, store=store, message_preprocessor=look)
    run = again.approve()
    assert run is not None
    run.result()
    assert asked == ["one"]
    assert again.messages[0].shown.text == "one"  # what people see survives as well
