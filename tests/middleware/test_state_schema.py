from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.middleware.chain import Chain
from sagents_nb.state import export_state, restore_state


class Seen(sa.Middleware):
    """Keeps a set, which JSON has not."""

    state_schema = {"seen": (sorted, set)}  # noqa: RUF012


class When(sa.Middleware):
    state_schema = {"when": (datetime.isoformat, datetime.fromisoformat)}  # noqa: RUF012


@pytest.mark.spec("S1.14.7")
def test_a_session_writes_and_reads_its_metadata_by_them() -> None:
    agent = sa.Agent(sa.ScriptedModel(["ok"]), middleware=[Seen()])
    state = sa.State(metadata={"seen": {"b", "a"}})
    exported = json.loads(json.dumps(sa.Session(agent, state=state).export_state()))
    assert exported["state"]["metadata"] == {"seen": ["a", "b"]}
    again = sa.Session.restore(exported, agent=agent, id="again")
    assert again.state.metadata == {"seen": {"a", "b"}}


def test_the_schemas_of_all_middleware_write_and_read_the_metadata() -> None:
    schema = Chain([Seen(), sa.TodoList(), When()]).state_schema
    assert set(schema) == {"seen", "when"}
    when = datetime(2026, 1, 2, tzinfo=UTC)
    state = sa.State(metadata={"seen": {"b", "a"}, "when": when, "other": 1})
    exported = json.loads(json.dumps(export_state(state, schema)))
    assert exported["state"]["metadata"] == {
        "seen": ["a", "b"],
        "when": "2026-01-02T00:00:00+00:00",
        "other": 1,
    }
    assert restore_state(exported, schema) == state
    assert state.metadata["seen"] == {"b", "a"}


def test_a_schema_says_nothing_about_metadata_that_is_not_there() -> None:
    schema = Chain([Seen()]).state_schema
    assert restore_state(export_state(sa.State(), schema), schema) == sa.State()


def test_a_schema_that_fails_names_the_key() -> None:
    schema = Chain([Seen()]).state_schema
    with pytest.raises(sa.ConfigurationError, match=r"metadata\['seen'\] cannot be written"):
        export_state(sa.State(metadata={"seen": 5}), schema)
    with pytest.raises(sa.ConfigurationError, match=r"metadata\['seen'\] cannot be read"):
        restore_state({"state": {"metadata": {"seen": 5}}}, schema)


def test_two_middlewares_cannot_write_one_key_differently() -> None:
    class Other(sa.Middleware):
        state_schema = {"seen": (list, set)}  # noqa: RUF012

    with pytest.raises(sa.ConfigurationError, match="Seen and Other both serialize"):
        Chain([Seen(), Other()])


@pytest.mark.parametrize("functions", [None, sorted, (sorted,), (sorted, "set")])
def test_a_schema_is_two_functions_a_key(functions: Any) -> None:
    class Wrong(sa.Middleware):
        state_schema = {"k": functions}  # noqa: RUF012

    with pytest.raises(sa.ConfigurationError, match=r"Wrong.state_schema\['k'\]"):
        Chain([Wrong()])
