"""What a journal comes to where some of its rows make no sense."""

from __future__ import annotations

from sagents_nb.serialization import VERSION
from sagents_nb.state import State
from sagents_nb.store.folding import fold


def test_a_todo_that_is_none_is_told_by_the_number_of_its_row() -> None:
    folded = fold(
        [(3, "begin", {"version": VERSION}), (7, "todos", [{"content": ""}, {"content": "b"}])]
    )
    assert [todo.content for todo in folded.state.todos] == ["b"]
    [problem] = folded.problems
    assert problem.startswith("Journal entry 7 was set aside: it holds a todo that is none (")


def test_of_an_older_journal_too_what_cannot_be_read_is_told_by_the_number_of_its_row() -> None:
    older = [(3, "begin", {"version": 0}), (5, "interrupt", {"type": 5}), (7, "todos", [5])]
    older += [(seq, "message", {"n": seq, "role": 5}) for seq in (8, 9)]
    folded = fold(older)
    assert folded.state == State()
    assert sorted(folded.damaged) == [5, 7, 8, 9]
