"""Sessions on both databases: what is kept comes back, and one owns it."""

from __future__ import annotations

from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.errors import Owned, StaleOwner
from sagents_nb.store import ConversationStore, Scope
from tests.talking import agent_of, call, in_threads, results

ODD = "NUL \0, half \ud800, \ufffe, 🜚, \u202e"


@sa.tool
def write(path: str) -> str:
    """Write."""
    return f"wrote {path}"


GATED: dict[str, Any] = {"tools": [write], "interrupt_on": {"write": True}}


@pytest.fixture
def stores(url: str) -> Any:
    """Two stores on one database, as two processes have them."""
    made = [ConversationStore(url), ConversationStore(url)]
    yield made
    for store in made:
        store.close()


def test_a_conversation_goes_on_in_another_process(stores: Any) -> None:
    mine = Scope(user="alice")
    turns = [call("write", path=ODD), "done"]
    session = sa.Session(agent_of(*turns, **GATED), id="c1", store=stores[0], scope=mine)
    session.send(ODD).result()
    [refused] = in_threads(
        1, lambda _: sa.Session.open("c1", agent=agent_of(), store=stores[1], scope=mine)
    )
    assert isinstance(refused, Owned)
    with pytest.raises(sa.NotFound):
        sa.Session.open("c1", agent=agent_of(), store=stores[1], scope=Scope(user="bob"))
    session.close()
    again = sa.Session.open("c1", agent=agent_of("done", **GATED), store=stores[1], scope=mine)
    assert (again.state, again.status) == (session.state, "interrupted")
    assert again.messages[0].text == ODD
    assert again.resume(sa.Edit({"path": f"/{ODD}"})).result().text == "done"
    again.close()
    third = sa.Session.open("c1", agent=agent_of(), store=stores[0], scope=mine)
    assert third.state == again.state
    assert results(third.state)[0].startswith("wrote /NUL \0, half")


def test_who_lost_the_conversation_writes_nothing_more(stores: Any) -> None:
    session = sa.Session(agent_of("hi"), id="c1", store=stores[0])
    session.send("one").result()
    other = sa.Session.open("c1", agent=agent_of("hello"), store=stores[1], take_over=True)
    with pytest.raises(StaleOwner):
        session.send("lost")
    assert session.status == "closed"
    other.send("two").result()
    texts = [m["parts"][0]["text"] for m in stores[0].load_agent_state("c1")["state"]["messages"]]
    assert texts == ["one", "hi", "two", "hello"]


def test_who_is_refused_an_id_takes_it_from_nobody(store: sa.ConversationStore) -> None:
    mine = sa.Session(agent_of("one", "two"), store=store, id="taken")
    mine.send("first").result()
    for scope in (None, sa.Scope(user="z")):
        with pytest.raises(sa.ConfigurationError, match="'taken'"):
            sa.Session(agent_of(), store=store, id="taken", scope=scope)
    with pytest.raises(sa.Busy):
        store.delete_conversation("taken")
    assert mine.send("second").result().text == "two"
    mine.close()
    assert [m.text for m in sa.Session.open("taken", agent=agent_of(), store=store).messages] == [
        "first", "one", "second", "two",
    ]  # fmt: skip
