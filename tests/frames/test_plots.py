from __future__ import annotations

import sys
import warnings
from itertools import pairwise
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb import events as ev
from sagents_nb.frames import Conversation, frame_of
from tests.batch.models import replying

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("pandas")
matplotlib.use("agg")


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Any:
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def ended(name: str, start: float, duration: float, status: str = "completed") -> ev.Event:
    return ev.ToolExecutionEnd(
        ts=1000 + start + duration,
        tool_call_id="c1",
        tool_name=name,
        result=sa.ToolResult("c1", name, ""),
        status=status,
        duration=duration,
    )


def answered(start: float, duration: float) -> list[ev.Event]:
    said = sa.Message.assistant("hi")
    return [
        ev.MessageStart(ts=1000 + start, message=said),
        ev.MessageEnd(ts=1000 + start + duration, message=said),
    ]


def events_of(*happened: ev.Event, session: str = "s") -> Any:
    return frame_of("events", [Conversation(session, sa.State(), happened)])


def test_a_timeline_has_a_lane_for_the_model_for_people_and_for_each_tool() -> None:
    request = sa.Approve()
    waits = ev.Interrupt(
        ts=1004.0,
        interrupt=sa.Interrupt(
            type="hitl", action_requests=(sa.ActionRequest("c9", "wipe", {}, None, ("approve",)),)
        ),
    )
    decided = ev.DecisionMade(ts=1009.0, tool_call_id="c9", decision=request)
    frame = events_of(
        *answered(0, 2),
        ended("look", 2, 1),
        ended("look", 2.5, 1),
        ended("wipe", 9, 1, "failed"),
        waits,
        decided,
    )
    ax = sa.plot_timeline(frame)
    assert isinstance(ax, matplotlib.axes.Axes)
    lanes = [label.get_text() for label in ax.get_yticklabels()]
    assert lanes == ["waiting for people", "model", "look", "wipe"]
    spans = {
        (bars.get_label(), round(bar.get_x(), 3), round(bar.get_width(), 3))
        for bars in ax.containers
        for bar in bars
    }
    assert spans == {
        ("model", 0.0, 2.0),
        ("tool", 2.0, 1.0),
        ("tool", 2.5, 1.0),
        ("failed", 9.0, 1.0),
        ("waiting for people", 4.0, 5.0),
    }


def test_calls_at_the_same_time_do_not_cover_each_other() -> None:
    ax = sa.plot_timeline(events_of(*[ended("look", n * 0.1, 1.0) for n in range(3)]))
    bars = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in ax.containers[0])
    assert all(above[1] <= below[0] for above, below in pairwise(bars))


def test_several_sessions_are_lanes_below_each_other() -> None:
    frames = [events_of(*answered(n, 1), session=f"s{n}") for n in (1, 0)]
    import pandas as pd

    ax = sa.plot_timeline(pd.concat(frames))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["s0 · model", "s1 · model"]


def test_usage_is_stacked_by_model_or_by_call_with_what_it_cost() -> None:
    usages = [sa.Usage(1000, 50, 200, 0, 0.01), sa.Usage(3000, 100, 0, 0, 0.02)]
    told = [ev.TokenUsage(ts=1.0, usage=u, model="small") for u in usages]
    told.append(ev.TokenUsage(ts=1.0, usage=sa.Usage(10), model="large"))
    frame = frame_of("usage", [Conversation("s", sa.State(), told)])
    ax = sa.plot_usage(frame)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["small", "large"]
    assert [t.get_text() for t in ax.texts] == ["4.35 k · $0.03", "10"]
    assert [bars.get_label() for bars in ax.containers] == ["input", "read from cache", "output"]
    assert len(sa.plot_usage(frame, by="call").texts) == 3
    with pytest.raises(sa.ConfigurationError, match="no column 'day'"):
        sa.plot_usage(frame, by="day")


def test_what_a_map_gave_is_drawn_too() -> None:
    ax = sa.plot_usage(replying().map(["a", "b"], progress=False))
    assert [t.get_text() for t in ax.texts] == ["30 · $0.02"]


def test_a_given_axes_is_drawn_into_and_odd_names_are_text() -> None:
    from matplotlib import pyplot

    _, ax = pyplot.subplots()
    name = "$tool^{" + "x" * 60
    assert sa.plot_timeline(events_of(ended(name, 0, 1)), ax) is ax
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.canvas.draw()


def test_nothing_to_draw_and_no_matplotlib_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(sa.ConfigurationError, match="nothing to draw"):
        sa.plot_timeline(events_of())
    with pytest.raises(sa.ConfigurationError, match="nothing to draw"):
        sa.plot_usage(frame_of("usage", []))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(sa.ConfigurationError, match=r"sagents-nb\[plots\]"):
        sa.plot_timeline(events_of(ended("look", 0, 1)))
