"""What a tool gives reaches the model: faults that were seen from outside."""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pydantic
import pytest

import sagents_nb as sa
from sagents_nb.events import ToolExecutionUpdate
from tests.faults.test_messages import IMAGE, PNG
from tests.talking import agent_of, call, of, run, session_of, streamed


class Colour(enum.Enum):
    RED = "red"


class Point(pydantic.BaseModel):
    x: int = 1


def given(value: Any) -> sa.ToolResult:
    """What the model is told of that value."""

    def show() -> Any:
        return value

    result = agent_of(call("show"), "done", tools=[show]).run("go").messages[2].tool_results[0]
    assert not result.is_error
    return result


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Point(), '{"x":1}'),
        ([Point(x=2)], '[{"x":2}]'),
        ({"m": np.float64(1.5), "n": np.int64(2)}, '{"m":1.5,"n":2}'),
        (np.array([[1, 2], [3, 4]]), "[[1,2],[3,4]]"),
        (np.float64(0.5), "0.5"),
        (np.str_("words"), "words"),
        (b"plain", "plain"),
        (b"\xff\xfe", "<2 bytes that are no text>"),
        ({"a"}, '["a"]'),
        (datetime.date(2026, 11, 22), '"2026-11-22"'),
        (Path("a/b"), "a/b"),
        ({"at": Path("a/b")}, '{"at":"a/b"}'),
        (["a", "b"], '["a","b"]'),
        ([], "[]"),
    ],
)
def test_b11_values_are_json_not_pythons_own_words(value: Any, text: str) -> None:
    assert given(value).content == text
    assert type(given(value).content) is str


def test_b11_a_large_array_is_summarized() -> None:
    assert len(given(np.zeros(100_000)).text) < 1000


def test_b11_text_beside_an_image_stays_text_and_image() -> None:
    assert given(["see:", sa.ImagePart(IMAGE)]).content == [
        sa.TextPart("see:"),
        sa.ImagePart(IMAGE),
    ]
    assert given([PNG, "is it"]).content == [sa.ImagePart(IMAGE), sa.TextPart("is it")]


@pytest.mark.parametrize(
    "value",
    [
        sa.TextPart(5),  # type: ignore[arg-type]
        ["see:", sa.ImagePart(5)],  # type: ignore[arg-type]
        sa.FilePart("aGk=", name=5),  # type: ignore[arg-type]
        sa.ToolOutput(sa.ThinkingPart(5)),  # type: ignore[arg-type]
        sa.ToolResult("c", "show", 5),  # type: ignore[arg-type]
        sa.ToolResult("c", "show", [sa.TextPart(5)]),  # type: ignore[arg-type]
        sa.TextPart(Path("a")),  # type: ignore[arg-type]
        sa.TextPart(pd.DataFrame({"a": [1]})),  # type: ignore[arg-type]
        sa.TextPart(Colour.RED),  # type: ignore[arg-type]
        sa.FilePart("aGk=", name=Path("a")),  # type: ignore[arg-type]
        sa.ToolResult("c", "show", Path("a")),  # type: ignore[arg-type]
        sa.ToolResult("c", "show", b"plain"),  # type: ignore[arg-type]
        sa.ToolResult("c", "show", datetime.date(2026, 11, 22)),  # type: ignore[arg-type]
        sa.ToolResult("c", "show", decimal.Decimal("1.5")),  # type: ignore[arg-type]
        sa.ToolResult("c", "show", [sa.TextPart(uuid.UUID(int=1))]),  # type: ignore[arg-type]
    ],
)
def test_what_a_tool_put_together_wrongly_is_its_error_and_the_run_goes_on(value: Any) -> None:
    def show() -> Any:
        return value

    result = agent_of(call("show"), "done", tools=[show]).run("go")
    told = result.messages[2].tool_results[0]
    assert (result.text, told.is_error) == ("done", True)
    assert "ConfigurationError: The tool show gave what cannot be kept: Expected" in told.text
    assert sa.State.restore(result.state.export()).messages[2] == result.messages[2]


def test_what_a_tool_nested_too_deep_is_its_error_and_the_run_goes_on() -> None:
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    session = session_of(
        call("show"),
        "done",
        "more",
        tools=[sa.Tool(lambda: sa.JsonPart(deep), name="show", description="Show.")],
    )
    assert session.send("go").result().text == "done"
    [told] = session.messages[2].tool_results
    assert "nested too deep" in told.text
    assert session.send("on").result().text == "more"


def test_b11_images_are_images() -> None:
    from matplotlib.figure import Figure
    from PIL import Image

    for value in (PNG, Image.new("RGB", (2, 2)), Figure()):
        content = given(value).content
        assert isinstance(content, list)
        (image,) = content
        assert isinstance(image, sa.ImagePart)
        assert base64.b64decode(image.data or "").startswith(b"\x89PNG")


def test_b11_all_columns_of_a_wide_frame_are_named() -> None:
    frame = pd.DataFrame({f"column_{n}": range(100) for n in range(30)})
    text = given(frame).text
    assert text.startswith("100 rows × 30 columns, the first 50:\n")
    assert all(f"column_{n}" in text for n in range(30))
    assert len(text.splitlines()) == 52
    assert given(pd.Series([1, 2], name="n")).text.startswith("2 rows:\n,n\n")
    assert "column_29" in given({"frame": frame}).text


def numbers(n: int) -> Iterator[str]:
    """Count."""
    for number in range(n):
        yield f"{number} "


async def later(n: int) -> AsyncIterator[str]:
    """Count, later."""
    for number in range(n):
        yield f"{number} "


@pytest.mark.parametrize("function", [numbers, later])
def test_b11_a_generator_is_run_and_its_pieces_are_progress(function: Any) -> None:
    agent = agent_of(call(function.__name__, n=3), "done", tools=[function])
    events = streamed(agent)
    assert [e.text for e in of(ToolExecutionUpdate, events)] == ["0 ", "1 ", "2 "]
    result = agent_of(call(function.__name__, n=3), "done", tools=[function]).run("go")
    assert result.messages[2].tool_results[0].content == "0 1 2 "


def test_b11_a_generator_runs_where_its_tool_does_and_fails_as_one() -> None:
    threads: list[str] = []

    def failing() -> Iterator[int]:
        threads.append(threading.current_thread().name)
        yield 1
        raise ValueError("half way")

    def parts() -> Iterator[Any]:
        yield "see:"
        yield sa.ImagePart(IMAGE)

    result = session_of(call("failing"), "done", tools=[failing]).send("go").result()
    (answer,) = result.messages[2].tool_results
    assert (answer.is_error, answer.text) == (True, "ValueError: half way")
    assert threads == ["sagents-tool"]
    result = session_of(call("parts"), "done", tools=[parts]).send("go").result()
    assert result.messages[2].tool_results[0].content == [
        sa.TextPart("see:"),
        sa.ImagePart(IMAGE),
    ]


def test_b11_an_async_generator_may_run_on_the_callers_loop() -> None:
    async def main() -> str:
        agent = agent_of(call("later", n=2), "done", tools=[sa.tool(run_on="caller")(later)])
        return (await agent.arun("go")).messages[2].tool_results[0].text

    assert run(main()) == "0 1 "
