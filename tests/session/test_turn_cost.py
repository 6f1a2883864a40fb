"""What a stored turn costs, in counts: no machine is slow at these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.store import ConversationStore
from tests.talking import agent_of, call

COUNTED = {"BEGIN", "COMMIT", "SELECT", "INSERT", "UPDATE", "DELETE"}


def driver(connection: Any) -> Any:
    return connection.connection.driver_connection


@pytest.fixture
def statements(store: ConversationStore) -> Iterator[Counter[str]]:
    """How often SQLite was given each kind of statement."""
    counted: Counter[str] = Counter()

    def count(statement: str) -> None:
        counted[statement.split(maxsplit=1)[0]] += 1

    store.database.run(lambda connection: driver(connection).set_trace_callback(count))
    yield counted
    store.database.run(lambda connection: driver(connection).set_trace_callback(None))


def look(where: str) -> str:
    """Look there."""
    return "nothing"


def second_turn(store: ConversationStore, counted: Counter[str], *script: Any) -> dict[str, int]:
    """What one turn of a session costs that has had one before."""
    session = sa.Session(agent_of(*script, *script, tools=[look]), store=store)
    session.send("go").result()
    store.database.run(lambda connection: None)
    counted.clear()
    session.send("go").result()
    found = {kind: number for kind, number in counted.items() if kind in COUNTED}
    session.close()
    return found


def test_a_stored_session_is_made_in_one_transaction(
    store: ConversationStore, statements: Counter[str]
) -> None:
    state = sa.State().add_messages([sa.Message.user("go"), sa.Message.assistant("gone")])
    for begun in (None, state):
        statements.clear()
        session = sa.Session(agent_of("fine"), store=store, state=begun)
        made = dict(statements)
        assert (made["BEGIN"], made["COMMIT"]) == (1, 1)
        session.close()


def test_a_stored_turn_is_two_transactions(
    store: ConversationStore, statements: Counter[str]
) -> None:
    assert second_turn(store, statements, "fine") == {
        "BEGIN": 2,
        "COMMIT": 2,
        "SELECT": 4,  # whose it is, and when the last row came
        "INSERT": 8,  # six of the journal: queued, taken, run; message, run
        "UPDATE": 3,  # when it went on, and the tally at the end
    }


def test_a_turn_with_a_tool_is_two_more(store: ConversationStore, statements: Counter[str]) -> None:
    found = second_turn(store, statements, call("look", where="x"), "fine")
    assert found == {
        "BEGIN": 4,  # what was said; the call, begun; its result; the answer
        "COMMIT": 4,
        "SELECT": 10,  # twice for each, and once for each status of the call
        "INSERT": 14,
        "UPDATE": 7,  # four times when it went on, the two statuses, and the tally
    }


def work_of_answer(store: ConversationStore, call_ids: list[str]) -> int:
    """Operations of SQLite's machine, in hundreds, for an answer with these calls."""
    hundreds = 0

    def count() -> None:
        nonlocal hundreds
        hundreds += 1

    calls = [call("look", id, where="x") for id in call_ids]
    session = sa.Session(agent_of(calls, "fine", tools=[look]), store=store)
    store.database.run(lambda connection: driver(connection).set_progress_handler(count, 100))
    session.send("go").result()
    session.close()
    store.database.run(lambda connection: driver(connection).set_progress_handler(None, 0))
    return hundreds


@pytest.mark.parametrize("same_id", [True, False])
def test_an_answer_with_twice_as_many_calls_is_twice_the_work(
    store: ConversationStore, same_id: bool
) -> None:
    work = [
        work_of_answer(store, ["c" if same_id else f"c{n}" for n in range(size)])
        for size in (100, 200, 400)
    ]
    first, second = work[1] - work[0], work[2] - work[1]
    assert second < 2.3 * first, work
