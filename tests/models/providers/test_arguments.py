"""Tool arguments are read strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagents_nb.models.providers.arguments import BadArguments, parse_arguments, read_call

pytestmark = pytest.mark.spec("P17")

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
objects = st.dictionaries(st.text(), values)


@given(objects, st.booleans(), st.sampled_from([None, 2]))
def test_every_object_comes_back_as_it_was(
    value: dict[str, Any], ascii: bool, indent: int | None
) -> None:
    assert parse_arguments(json.dumps(value, ensure_ascii=ascii, indent=indent)) == value


@given(objects, st.data())
def test_no_beginning_of_an_object_is_accepted(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(BadArguments):
        parse_arguments(text[:end])


@given(objects, st.text(min_size=1).filter(lambda t: t.strip(" \t\r\n")))
def test_nothing_may_follow_the_object(value: dict[str, Any], more: str) -> None:
    with pytest.raises(BadArguments):
        parse_arguments(json.dumps(value) + more)


@given(values.filter(lambda v: not isinstance(v, dict)))
def test_only_objects_are_accepted(value: Any) -> None:
    with pytest.raises(BadArguments):
        parse_arguments(json.dumps(value))


@given(st.text())
def test_any_text_gives_an_object_or_a_sentence(text: str) -> None:
    call = read_call("c1", "f", text)
    if call.error is not None:
        assert call.arguments == {}
        assert call.error.endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        '{"n": NaN}',
        '{"n": -Infinity}',
        '{"n": 1e999}',
        '{"n": 12',
        '{"n": 012}',
        '{"a": 1, "a": 2}',
        '{"o": {"a": 1, "a": 1}}',
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": undefined}',
        '{"a": 1} {"b": 2}',
        '{"a": "line\nbreak"}',
        '// note\n{"a": 1}',
        '{"d": ' + "[" * 5_000 + "]" * 5_000 + "}",
        '{"d": ' + "[" * 150 + "]" * 150 + "}",
        '{"n": ' + "9" * 5_000 + "}",
    ],
)
def test_what_is_nearly_json_is_refused(text: str) -> None:
    with pytest.raises(BadArguments):
        parse_arguments(text)


def test_arguments_of_five_megabytes_are_read() -> None:
    text = json.dumps({"content": "x" * 5_000_000})
    assert len(parse_arguments(text)["content"]) == 5_000_000


def test_a_call_that_the_provider_calls_unfinished_has_no_arguments() -> None:
    call = read_call("c1", "f", '{"n": 1}', cut=True)
    assert call.arguments == {}
    assert call.error
