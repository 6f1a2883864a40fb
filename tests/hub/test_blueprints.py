"""Blueprints: in the code, and in an agency, where each change is a further version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import Blueprint, Hub
from sagents_nb.hub.blueprints import blueprint_of
from tests.hub.world import World, say
from tests.talking import in_threads


@pytest.mark.spec("H3.5.1")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"prompt": "Be."}, "name"),
        ({"name": "a b", "prompt": "Be."}, "letters, digits, _ and -"),
        ({"name": "x" * 101, "prompt": "Be."}, "1 to 100"),
        ({"name": "new"}, "needs a prompt"),
        ({"name": "new", "prompt": " "}, "prompt"),
        ({"name": "new", "prompt": "Be.", "tags": "x"}, "tags"),
        ({"name": "new", "prompt": "Be.", "tags": [""]}, "tags"),
        ({"name": "new", "prompt": "Be.", "model": 1}, "model"),
        ({"name": "new", "prompt": "Be.", "config": []}, "config"),
        ({"name": "new", "prompt": "Be.", "config": {"planning": {"x": 1}}}, "planning"),
        ({"name": "new", "prompt": "Be.", "config": {"hitl": {"tools": "pay"}}}, "hitl"),
        ({"name": "new", "prompt": "Be.", "colour": "red"}, "colour"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_kept(
    world: World, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(sa.ConfigurationError, match=said):
        world.hub.save_blueprint(world.agency, fields)
    assert [kept.blueprint.name for kept in world.hub.blueprints(world.agency)] == ["clerk"]


def test_tags_are_those_of_the_default_unless_they_are_given() -> None:
    assert Blueprint("a", "Be.").tags == ("default",)
    assert Blueprint("a", "Be.", tags=[]).tags == ("default",)  # type: ignore[arg-type]
    assert Blueprint("a", "Be.", tags=["x", "x"]).tags == ("x",)  # type: ignore[arg-type]
    assert blueprint_of({"name": "a", "prompt": "Be.", "tags": ["x"]}).tags == ("x",)


@pytest.mark.spec("H3.5.1", "H3.4.4")
def test_a_change_is_a_further_version_of_what_there_was(stored_world: World) -> None:
    hub, agency = stored_world.hub, stored_world.agency
    first = hub.save_blueprint(agency, {"name": "clerk", "description": "For guests."})
    second = hub.save_blueprint(agency, {"name": "clerk", "prompt": "Be kind."})
    assert (first.version, second.version) == (1, 2)
    assert first.blueprint.prompt == "Be brief."
    assert second.blueprint.description == "For guests."
    assert second.blueprint.config == {"hitl": {"tools": ["pay"]}}
    assert second.created_at == first.created_at
    kept = hub.blueprint_versions(agency, "clerk")
    assert [each.version for each in kept] == [2, 1, 0]
    assert kept[:2] == [second, first]
    assert hub.blueprints(agency) == [second]
    hub.delete_blueprint(agency, "clerk")
    assert [(each.version, each.blueprint.prompt) for each in hub.blueprints(agency)] == [
        (0, "Be brief.")
    ]
    with pytest.raises(sa.NotFound):
        hub.delete_blueprint(agency, "clerk")


@pytest.fixture
def two_hubs(stored_world: World) -> Iterator[list[Hub]]:
    """Two over one database, as two processes have them."""
    other = Hub(stored_world.system, stored_world.url)
    yield [stored_world.hub, other]
    other.close()


def test_of_changes_at_once_each_is_a_version(stored_world: World, two_hubs: list[Hub]) -> None:
    def change(number: int) -> int:
        changes = {"name": "clerk", "description": str(number)}
        return two_hubs[number % 2].save_blueprint(stored_world.agency, changes).version

    assert sorted(in_threads(8, change)) == list(range(1, 9))


@pytest.mark.spec("H3.4.4")
def test_a_thread_keeps_the_blueprint_that_it_was_made_with(stored_world: World) -> None:
    world = stored_world
    before = world.thread("hi")
    world.hub.save_blueprint(world.agency, {"name": "clerk", "prompt": "Be kind."})
    after = world.hub.create_thread(world.agency, "clerk")
    prompts = []
    for thread in (before, after):
        say(world.reopened(thread, "hi"), "a")
        prompts.append(world.model.requests[-1].system)
    assert "Be brief." in prompts[0]
    assert "Be kind." in prompts[1]
