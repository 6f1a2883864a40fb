from __future__ import annotations

import json
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb import serialization
from sagents_nb.state import restore_state


@pytest.mark.spec("S1.10.4")
@pytest.mark.parametrize(
    "data", [None, [], "x", {}, {"state": None}, {"state": []}, {"version": 1, "messages": []}]
)
def test_what_is_no_export_is_refused(data: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="no 'state'"):
        sa.State.restore(data)


@pytest.mark.spec("S1.10.4", "S1.9.4")
def test_restoring_forgives_missing_lists_and_unknown_words() -> None:
    for odd in (None, "none", 5):
        loose = {"messages": odd, "todos": odd, "metadata": odd}
        assert sa.State.restore({"state": loose}) == sa.State()
    assert sa.State.restore({"state": {}}) == sa.State()
    for status in ("someday", None, 3):
        odd_todo = {"todos": [{"content": "a", "status": status}]}
        assert list(sa.State.restore({"state": odd_todo}).todos) == [sa.Todo("a", id=1)]


@pytest.mark.spec("S1.9.4")
@pytest.mark.parametrize("todo", [{"content": ""}, {"content": 5}, {}, {"content": "a", "id": []}])
def test_a_todo_that_cannot_be_is_an_error(todo: Any) -> None:
    with pytest.raises(sa.ConfigurationError):
        sa.State.restore({"state": {"todos": [todo]}})


@pytest.mark.spec("S1.10.4")
def test_a_new_state_stands_in_for_a_broken_one_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert sa.State.restore_or_new({"messages": []}) == sa.State()
    (record,) = caplog.records
    assert (record.levelname, "no 'state'" in record.getMessage()) == ("WARNING", True)
    caplog.clear()
    assert sa.State.restore_or_new(None) == sa.State()
    exported = sa.State(metadata={"k": 1}).export()
    assert sa.State.restore_or_new(exported) == sa.State(metadata={"k": 1})
    assert caplog.records == []


class Refusing:
    def __getattribute__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


@pytest.mark.parametrize("place", ["all", "state", "metadata"])
def test_what_raises_as_it_is_read_is_no_state(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    places = {"all": Refusing(), "state": {"state": Refusing()}}
    exported = places.get(place, {"state": {"metadata": Refusing()}})
    with pytest.raises(sa.ConfigurationError, match="cannot be read: ZeroDivisionError"):
        sa.State.restore(exported)
    assert sa.State.restore_or_new(exported) == sa.State()
    (record,) = caplog.records
    assert (record.levelname, "left aside" in record.getMessage()) == ("WARNING", True)


def test_a_broken_message_is_named() -> None:
    with pytest.raises(sa.ConfigurationError, match="cannot be read"):
        sa.State.restore({"state": {"messages": [{"role": 5}]}})


# versions


@pytest.mark.parametrize("version", [2, "1", None, True, 1.0])
def test_a_version_from_the_future_is_refused_with_advice(version: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="upgrade"):
        sa.State.restore({"version": version, "state": {}})


def test_a_version_that_nothing_reads_is_refused_with_advice() -> None:
    with pytest.raises(sa.ConfigurationError, match=r"version -1.*that wrote it"):
        sa.State.restore({"version": -1, "state": {}})


@pytest.mark.spec("S1.10.9")
def test_version_0_is_brought_up_to_date_and_left_as_it_was() -> None:
    result = {"type": "tool_result", "tool_call_id": "1", "name": "ls", "content": "a"}
    old = {
        "version": 0,
        "state": {
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
                {"role": "tool", "content": [result]},
                {"role": "assistant"},
            ],
            "metadata": {"kept": True},
        },
    }
    before = json.dumps(old)
    state = sa.State.restore(old)
    assert list(state.messages) == [
        sa.Message.user("hi"),
        sa.Message("assistant", (sa.TextPart("hello"),)),
        sa.Message.tool([sa.ToolResult("1", "ls", "a")]),
        sa.Message("assistant"),
    ]
    assert state.metadata == {"kept": True}
    assert json.dumps(old) == before
    assert state.export()["version"] == 1


@pytest.mark.spec("S1.10.9")
def test_migrations_are_applied_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(number: int) -> Any:
        def migrate(data: dict[str, Any]) -> dict[str, Any]:
            seen = data["metadata"].get("seen", "")
            return {**data, "metadata": {"seen": f"{seen}{number}"}}

        return migrate

    monkeypatch.setattr(serialization, "VERSION", 4)
    monkeypatch.setattr(serialization, "MIGRATIONS", {n: step(n) for n in range(4)})
    for version, seen in ((0, "0123"), (2, "23"), (3, "3")):
        state = restore_state({"version": version, "state": {"metadata": {}}})
        assert state.metadata == {"seen": seen}
    monkeypatch.setitem(serialization.MIGRATIONS, 3, lambda data: data["missing"])
    with pytest.raises(sa.ConfigurationError, match=r"version 4 \(KeyError.*damaged"):
        restore_state({"version": 1, "state": {"metadata": {}}})


# middleware that came and went


@pytest.mark.spec("S1.10.8")
def test_metadata_of_a_middleware_that_is_gone_is_kept() -> None:
    exported = sa.State(metadata={"OldMiddleware": {"n": 1}}).export()
    assert sa.State.restore(exported).metadata == {"OldMiddleware": {"n": 1}}


@pytest.mark.spec("S1.10.8")
def test_a_middleware_added_later_sets_its_own_defaults() -> None:
    class Counter(sa.Middleware):
        def before_model(self, state: sa.State, ctx: sa.RunContext) -> sa.State:
            return state.put_metadata("count", state.get_metadata("count", 0) + 1)

    old = sa.Agent(sa.ScriptedModel(["one"])).run("hi").state
    restored = sa.State.restore(old.put_metadata("gone", 1).export())
    new = sa.Agent(sa.ScriptedModel(["two"]), middleware=[Counter()]).run("and?", state=restored)
    assert new.state.metadata == {"gone": 1, "count": 1}
