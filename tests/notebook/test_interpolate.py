"""``{name}`` in a prompt."""

from __future__ import annotations

import builtins
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image

from sagents_nb.messages import filled, message_of
from sagents_nb.notebook.interpolate import (
    describe,
    describe_frame,
    describe_values,
    fields_in,
    images_in,
    is_frame,
    unknown_names,
    with_index,
)


def interpolate(prompt: str, names: dict[str, Any]) -> str:
    """What a model is sent of a prompt."""
    return filled(prompt, fields_in(prompt, names))


@pytest.mark.parametrize(
    ("prompt", "result"),
    [
        ("{n}", "3"),
        ("{text}", "a {n} b"),
        ("{n}{n} {{n}} {{{n}}}", "33 {n} {3}"),
        ("{thing.size} {thing.part.name}", "7 'deep'"[:2] + "deep"),
        (
            "{unknown} {n.unknown} {thing.part.unknown}",
            "{unknown} {n.unknown} {thing.part.unknown}",
        ),
        ('{"json": {"a": 1}}', '{"json": {"a": 1}}'[:-2] + "}"),
        ("{n!r} {n:>10} {n[0]} {n()} {0} {} { n }", "{n!r} {n:>10} {n[0]} {n()} {0} {} { n }"),
        ("f(x) { return x; }", "f(x) { return x; }"),
        ("{", "{"),
        ("", ""),
    ],
)
def test_only_names_that_are_known_are_replaced(prompt: str, result: str) -> None:
    thing = SimpleNamespace(size=7, part=SimpleNamespace(name="deep"))
    assert interpolate(prompt, {"n": 3, "text": "a {n} b", "thing": thing}) == result


@pytest.mark.parametrize(
    "path", ["thing.__class__", "thing.__init__.__globals__", "thing.run.__globals__", "n.__doc__"]
)
def test_what_python_itself_gives_things_is_not_looked_up(path: str) -> None:
    class Thing:
        def run(self) -> None: ...

    names = {"thing": Thing(), "n": 3}
    assert interpolate(f"{{{path}}}", names) == f"{{{path}}}"
    said = f"{{{path}}} was sent as it stands; attributes that begin with __ are not looked up."
    assert unknown_names(f"{{{path}}}", names) == [said]


def test_a_format_in_braces_is_text_whatever_its_width() -> None:
    assert interpolate("{n:>99999999999}", {"n": 3}) == "{n:>99999999999}"


@given(st.text(), st.text())
def test_a_value_is_never_looked_at_again(before: str, value: str) -> None:
    assert interpolate("{x}", {"x": value[:3000], "y": 1}) == value[:3000]
    no_braces = before.replace("{", "(").replace("}", ")")
    assert interpolate(no_braces, {"x": value}) == no_braces


def test_a_long_value_says_that_there_is_more() -> None:
    assert describe("x" * 5000) == "x" * 4000 + "… (5,000 characters in all)"
    assert describe(list(range(10)), limit=5) == "[0, 1… (30 characters in all)"


def test_a_value_that_cannot_be_shown_says_so() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert "Broken that cannot be shown" in describe(Broken())


def frame() -> pd.DataFrame:
    return pd.DataFrame({"name": ["Ada", None, "Bob"], "age": [36, 41, 17]})


def test_a_frame_is_described() -> None:
    text = interpolate("Look at {df}.", {"df": frame()})
    assert text.startswith("Look at `df`.\n\n`df` is a DataFrame, 3 rows × 2 columns\n- name: ")
    assert ", 1 missing\n- age: int64\nFirst rows:\nname,age\nAda,36\n" in text


def test_what_a_name_stands_for_is_told_in_few_words() -> None:
    names = {"df": frame(), "one": frame()[["age"]][:1], "n": 3, "text": "a b\n" * 40}
    fields = fields_in("{df} {one} {n} {text} {unknown}", names)
    assert {name: field.brief for name, field in fields.items()} == {
        "df": "3 rows × 2 columns",
        "one": "1 row × 1 column",
        "n": "3",
        "text": ("a b " * 40)[:59] + "…",
    }


PNG = b"\x89PNG\r\n\x1a\n"


class Shown:
    """What a notebook shows as that."""

    def __init__(self, png: Any) -> None:
        self.png = png

    def _repr_png_(self) -> Any:
        return self.png

    def __repr__(self) -> str:
        return "Shown()"


def test_what_a_notebook_shows_as_an_image_is_attached_and_named_in_its_place() -> None:
    figure = Figure()
    axes = figure.subplots(1, 2)
    names = {
        "figure": figure,
        "axes": axes,
        "pandas": SimpleNamespace(plot=axes[0]),
        "picture": Image.new("RGB", (2, 2)),
        "png": Shown(PNG),
        "both": Shown((PNG, {})),
        "base64": Shown("iVBORw0KGgo="),
        "n": 3,
    }
    prompt = "{n} {figure} {axes} {pandas.plot} {picture} {png} {both} {base64} {figure}"
    images = images_in(prompt, names)
    assert list(images) == [name.strip("{}") for name in prompt.split()[1:-1]]
    assert all(image.bytes.startswith(PNG) for image in images.values())
    fields = fields_in("{n}: compare {figure} with {png}", names, ["png", "figure"])
    assert filled("{n}: compare {figure} with {png}", fields) == (
        "3: compare attached image 2 (figure) with attached image 1 (png)"
    )
    assert fields["figure"].brief == "image"


def test_what_is_no_image_stays_text() -> None:
    class Broken(Shown):
        def _repr_png_(self) -> Any:
            raise RuntimeError("no")

    secret = Image.new("RGB", (2, 2))
    names = {
        "none": Shown(None),
        "text": Shown("word"),
        "broken": Broken(PNG),
        "kind": Shown,
        "array": np.zeros((2, 2)),
        "path": Path("x.png"),
        "data": PNG,
        "api_key": secret,
    }
    prompt = " ".join(f"{{{name}}}" for name in [*names, "unknown"])
    assert list(images_in(prompt, names)) == []
    assert interpolate("{none} {broken}", names) == "Shown() Shown()"


def test_a_frame_that_is_named_twice_is_described_once_and_after_the_prompt() -> None:
    names = {"a": frame(), "b": frame(), "n": 3}
    text = interpolate("Join {a} with {b}, then {a} {n} times.", names)
    asked, first, second = text.split("\n\n")
    assert asked == "Join `a` with `b`, then `a` 3 times."
    assert first.startswith("`a` is a DataFrame, 3 rows")
    assert second.startswith("`b` is a DataFrame, 3 rows")


def test_a_wide_frame_says_how_many_columns_are_left_out() -> None:
    text = describe_frame(pd.DataFrame([range(60)]))
    assert "- and 10 more columns" in text
    assert text.count("\n- ") == 51


def test_frames_with_odd_columns() -> None:
    twice = pd.DataFrame([[1, None]], columns=["a", "a"])
    assert "- a: int64\n- a: object, 1 missing" in describe_frame(twice)
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")]))
    assert "('x', 'a'): int64" in describe_frame(levels)
    assert describe_frame(pd.DataFrame()).startswith("DataFrame, 0 rows × 0 columns")


def test_an_index_with_a_name_is_described_as_columns_are() -> None:
    dated = frame().set_index("name")
    assert describe_frame(dated).startswith(
        "DataFrame, 3 rows × 1 column, indexed by name\n- name: "
    )
    assert list(with_index(dated).columns) == ["name", "age"]
    for plain in (frame(), frame()[1:], frame().set_index("name", drop=False)):
        assert with_index(plain) is plain


def test_a_column_whose_name_is_a_number_says_so() -> None:
    told = describe_frame(pd.DataFrame({2024: [1, None], "2025": [1, 2]}))
    assert "\n- 2024: float64, named by a number, 1 missing\n- 2025: int64\n" in told


def test_values_are_counted_where_there_are_few() -> None:
    few = pd.DataFrame({"sex": ["f", "m", "f", None], "age": [1.5, 2, 3, 4], "n": [7, 7, 7, 8]})
    assert describe_values(few) == '- sex: {"f": 2, "m": 1}\n- n: {"7": 3, "8": 1}'
    many = pd.DataFrame({"name": [f"n{i}" for i in range(1200)], "kind": [[1], {}] * 600})
    assert describe_values(many).splitlines()[0] == "- name: 1,200 different"


@pytest.mark.parametrize("value", [pd.DataFrame, pd, frame().age, 3, None, "df"])
def test_what_is_no_frame(value: Any) -> None:
    assert not is_frame(value)
    assert describe(value) == (value if isinstance(value, str) else repr(value))


def test_a_subclass_of_a_frame_is_a_frame() -> None:
    class Mine(pd.DataFrame):
        pass

    assert is_frame(Mine({"a": [1]}))


def test_asking_does_not_import_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        assert not name.startswith("pandas")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert describe([1]) == "[1]"


def test_a_series_or_an_array_is_named_in_its_place_and_described_after_the_prompt() -> None:
    names = {
        "fines": pd.Series([0.15 * n for n in range(5000)], name="euros"),
        "grid": np.zeros((20, 30)),
        "secret": pd.Series(["sk-abcdefghijklmnopqrstuvwx"]),
        "n": np.float64(3.5),
    }
    prompt = "What is the mean of {fines} and {grid} over {n}?"
    message = message_of(prompt, fields_in(prompt, names))
    text = message.text
    assert text.startswith("What is the mean of `fines` and `grid` over ")
    assert "`fines` is a Series of 5,000 values:\n0 " in text
    assert "Name: euros" in text
    assert "`grid` is a NumPy array of 20 × 30 values:\n" in text
    field = fields_in("{fines}", names)["fines"]
    assert (field.brief, field.appended) == ("Series of 5,000 values", True)
    assert "sk-abc" not in fields_in("{secret}", names)["secret"].text
