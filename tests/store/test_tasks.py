"""Tasks in a store: listed by filters, page by page, and gone with their conversation."""

from __future__ import annotations

import pytest

import sagents_nb as sa
from sagents_nb.store import tasks as rows
from sagents_nb.tasks import Artifact, TaskRecord


def fill(store: sa.ConversationStore) -> list[TaskRecord]:
    """Twelve tasks of two agents, a third of them failed, the newest first."""
    made = []
    for number in range(12):
        agent = "ab"[number % 2]
        record = TaskRecord(id=f"t{number}", agent=agent, context=f"c{number % 3}", chain=(agent,))
        assert store.tasks.run(rows.create, record)
        if number % 3 == 0:
            store.tasks.run(rows.change, record.id, "failed", message="It broke.\0\ud800")
        made.append(store.tasks.get(record.id))
    return made[::-1]


@pytest.mark.spec("R4.3.10")
def test_all_filters_must_hold(store: sa.ConversationStore) -> None:
    made = fill(store)
    assert store.tasks.list() == made
    found = store.tasks.list("failed", agent="a", context="c0")
    assert found == [r for r in made if r.state == "failed" and r.agent == "a"]
    assert store.tasks.list("failed", context="c1") == []
    assert store.tasks.list(limit=0) == []


@pytest.mark.spec("R4.3.10")
def test_pages_repeat_nothing(store: sa.ConversationStore) -> None:
    made, pages, last = fill(store), [], None
    while page := store.tasks.list(limit=5, before=last):
        pages += page
        last = page[-1].created_at
    assert pages == made


def test_what_was_written_is_read(store: sa.ConversationStore) -> None:
    question = sa.Interrupt("input", message="Which port?")
    record = TaskRecord(
        id="t",
        agent="weather",
        caller="host",
        context="c",
        chain=("host", "weather"),
        input=(sa.TextPart("Tomorrow? \0\ud800"), sa.JsonPart({"a": [1]})),
        budget={"tokens": 5},
        max_depth=3,
        deadline=1.5,
        background=True,
    )
    store.tasks.run(rows.create, record)
    store.tasks.run(rows.change, "t", "working")
    asked = {"question": {"type": question.type}, "message": "Which port?", "cost_usd": 0.5}
    _, changed = store.tasks.run(rows.change, "t", "input_required", **asked)
    read = store.tasks.get("t")
    assert read == changed
    assert (read.input, read.chain, read.budget) == (record.input, record.chain, record.budget)
    assert (read.background, read.deadline, read.max_depth) == (True, 1.5, 3)
    assert (read.question, read.change, read.cost_usd) == ({"type": "input"}, 2, 0.5)


@pytest.mark.spec("R4.3.9")
def test_artifacts_are_numbered_in_their_task(store: sa.ConversationStore) -> None:
    fill(store)
    for id in ("t1", "t2", "t1"):
        made = Artifact(task_id=id, name="made", parts=(sa.TextPart(id),), metadata={"a": 1})
        store.tasks.run(rows.add_artifact, made)
    assert [each.index for each in store.tasks.artifacts("t1")] == [0, 1]
    assert [each.id for each in store.tasks.artifacts("t2")] == ["t2/0"]
    assert store.tasks.artifacts("t2")[0].metadata == {"a": 1}


def test_a_task_goes_with_its_conversation(store: sa.ConversationStore) -> None:
    fill(store)
    store.tasks.run(rows.add_artifact, Artifact(task_id="t1", parts=(sa.TextPart("x"),)))
    store.delete_conversation("t1")
    with pytest.raises(sa.NotFound, match="There is no task 't1'"):
        store.tasks.get("t1")
    assert len(store.tasks.list()) == 11
    assert store.to_frame("artifacts").empty


def test_tasks_of_others_do_not_exist(store: sa.ConversationStore) -> None:
    fill(store)
    others = store.scoped(sa.Scope(user="bob")).tasks
    assert others.list() == []
    for function, args in [
        (rows.get, ("t1",)),
        (rows.change, ("t1", "working")),
        (rows.told, ("t1", 1)),
        (rows.artifacts, ("t1",)),
        (rows.add_artifact, (Artifact(task_id="t1"),)),
    ]:
        with pytest.raises(sa.NotFound):
            others.run(function, *args)
    with pytest.raises(sa.ConfigurationError, match="taken"):
        others.run(rows.create, TaskRecord(id="t1", agent="a"))
    assert others.run(rows.statistics) == {}


def test_tasks_are_a_frame(store: sa.ConversationStore) -> None:
    empty = store.to_frame("tasks")
    fill(store)
    frame = store.to_frame("tasks")
    assert len(frame) == 12
    assert (frame.dtypes == empty.dtypes).drop(["agent", "caller", "state"]).all()
    assert sorted(frame["state"].unique()) == ["failed", "submitted"]
    assert len(sa.to_frame("tasks", [store, store])) == 24
    with pytest.raises(sa.ConfigurationError, match="frames come from store"):
        sa.Session(sa.Agent(sa.ScriptedModel([]))).to_frame("tasks")
