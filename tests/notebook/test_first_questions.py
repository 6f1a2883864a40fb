"""What a stranger asks first, without a key, is answered right or with an honest sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import msgspec
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt

import sagents_nb as sa
from sagents_nb.notebook.interpolate import interpolate
from tests.notebook.first_questions import FIRST, Plot, Question, frames

FRAMES = frames()


class Answer(msgspec.Struct):
    """What was said, what people were asked to approve, and the files that were written."""

    text: str
    approved: list[str]
    calls: list[str]
    files: dict[str, str]


def ask(*questions: str, decision: Any = None) -> Answer:
    """Ask in a notebook that has all the frames; who is asked approves, or decides otherwise."""
    namespace: dict[str, Any] = {name: frame.copy() for name, frame in FRAMES.items()}
    shell = SimpleNamespace(user_ns=namespace, user_ns_hidden={})
    agent = sa.Agent(sa.DemoModel(), middleware=[sa.NotebookTools(shell)])
    approved: list[str] = []
    calls: list[str] = []
    files: dict[str, str] = {}
    state = None
    for question in questions:
        result = agent.run(interpolate(question, namespace), state=state)
        while result.status == "interrupted":
            calls += [c.name for m in result.messages for c in m.tool_calls]
            approved += [request.arguments["code"] for request in result.interrupt.action_requests]
            result = agent.resume(result, decision or sa.Approve())
        calls += [c.name for m in result.messages for c in m.tool_calls]
        for message in result.messages:
            for call in message.tool_calls:
                if call.name == "write_file":
                    files[call.arguments["file_path"]] = call.arguments["content"]
        state = result.state
    return Answer(result.text, approved, calls, files)


@pytest.fixture(autouse=True)
def _no_figures() -> Iterator[None]:
    plt.close("all")
    yield
    plt.close("all")


def numbers(text: str) -> list[float]:
    return [float(n.replace(",", "")) for n in re.findall(r"[-+]?\d[\d,]*(?:\.\d+)?", text)]


def gives(text: str, fact: Any) -> bool:
    """Whether a text gives a name, or a number as exact as people write it."""
    if isinstance(fact, str):
        return re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", text) is not None
    close = 0.0 if isinstance(fact, int) else 0.005 * abs(fact)
    return any(abs(abs(n) - abs(fact)) <= close for n in numbers(text))


def wrong(question: Question) -> str:
    """What is wrong with the answer, "" if it is right."""
    answer = ask(question.text)
    right = question.right(FRAMES)
    if isinstance(right, Plot):
        return wrong_plot(right, answer.text)
    for fact in right:
        if not gives(answer.text, fact):
            return f"no {fact!r} in {answer.text!r}"
        if question.file and not gives(answer.files.get(question.file, ""), fact):
            return f"no {fact!r} in {question.file}: {answer.files}"
    places = {name: answer.text.find(name) for name in question.rivals if name in answer.text}
    if places and min(places, key=lambda name: places[name]) not in (right[0],):
        first = answer.text.find(str(right[0]))
        if first > min(places.values()):
            return f"{right[0]!r} is not first in {answer.text!r}"
    return ""


def wrong_plot(right: Plot, said: str) -> str:
    if not plt.get_fignums():
        return f"no plot: {said!r}"
    (axes,) = plt.figure(plt.get_fignums()[-1]).axes
    lines: list[Any] = [np.asarray(line.get_ydata(), float) for line in axes.lines]
    bars: list[Any] = [bar.get_height() for bar in axes.patches]
    if right.bins:
        return "" if sum(bars) == right.series[0][0] else f"the bars are {bars}"
    shown = lines or [bars]
    same = len(shown) == len(right.series) and all(
        len(one) == len(other) and np.allclose(one, other)
        for one, other in zip(shown, right.series, strict=True)
    )
    return "" if same else f"the plot shows {shown} and not {right.series}"


@pytest.mark.parametrize("question", FIRST, ids=lambda q: q.text[:60])
def test_a_first_question_is_answered_right(question: Question) -> None:
    assert wrong(question) == ""
