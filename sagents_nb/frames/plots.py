"""Pictures of what an agent did; matplotlib is imported when the first one is drawn."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import kinds
from ..errors import ConfigurationError
from .columns import pandas_module

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind people tell apart, in an order in which
# neighbours also differ in lightness.
_BLUE, _GREEN, _ORANGE, _RED, _SKY, _INK = (
    "#0072B2",
    "#009E73",
    "#E69F00",
    "#D55E00",
    "#56B4E9",
    "#333333",
)
_MODEL, _PEOPLE = "model", "waiting for people"
_KINDS = {"model": _BLUE, "tool": _GREEN, "people": _ORANGE, "failed": _RED}
_KIND_NAMES = {"model": "model", "tool": "tool", "people": "waiting for people", "failed": "failed"}
_TOKENS = {
    "input_tokens": ("input", _BLUE),
    "cache_read_tokens": ("read from cache", _SKY),
    "cache_write_tokens": ("written to cache", _GREEN),
    "output_tokens": ("output", _ORANGE),
}
_LONGEST = 28  # characters of a label


_SOURCE = kinds.either(
    "a session, or a frame of one",
    kinds.Kind("", lambda value: hasattr(value, "to_frame") and not kinds.is_array(value)),
    kinds.having("", "columns", "iloc"),
)
_OF_EVENTS = ("session_id", "sub_agent", "type", "name", "status", "time", "duration")


@kinds.checked(source=_SOURCE)
def plot_timeline(source: Any, ax: Axes | None = None) -> Axes:
    """When the model, each tool and people were at work; a lane each, seconds from left to right.

    ``source`` is a session, or an "events" frame of one or several. What failed is hatched.
    Returns the Axes: of a new figure unless ``ax`` is given. Raises
    :class:`~sagents_nb.errors.ConfigurationError` if nothing in it took any time.

    >>> import matplotlib
    >>> from sagents_nb import Agent, ScriptedModel, Session, plot_timeline
    >>> matplotlib.use("agg")  # without a window
    >>> session = Session(Agent(ScriptedModel(["Hello!"], delay=0.01)))
    >>> _ = session.send("hi").result()
    >>> [label.get_text() for label in plot_timeline(session).get_yticklabels()]
    ['model']
    """
    events = source.to_frame("events") if hasattr(source, "to_frame") else source
    _check_columns("events", events, _OF_EVENTS)
    spans = _spans(events)
    if not len(spans):
        raise ConfigurationError("There is nothing to draw: no event tells how long it took.")
    lanes = list(dict.fromkeys(spans["lane"]))
    ax = ax or _axes(height=1.2 + 0.34 * len(lanes))
    for kind, color in _KINDS.items():
        some = spans[spans["kind"] == kind]
        if not len(some):
            continue
        heights = 0.72 / some["parallel"]
        ax.barh(
            some["lane"].map(lanes.index) - 0.36 + heights * (some["row"] + 0.5),
            some["width"],
            left=some["start"],
            height=heights * 0.94,
            color=color,
            hatch="////" if kind == "failed" else None,
            edgecolor="white",
            linewidth=0.6,
            label=_KIND_NAMES[kind],
        )
    ax.set_yticks(range(len(lanes)), [_short(lane) for lane in lanes])
    ax.set_ylim(len(lanes) - 0.4, -0.6)  # the first lane on top
    ax.set_xlabel("seconds")
    ax.set_xlim(0, float((spans["start"] + spans["width"]).max()) * 1.01)
    _tidy(ax, legend=spans["kind"].nunique())
    return ax


def _check_columns(kind: str, frame: Any, columns: Sequence[str]) -> None:
    if missing := [name for name in columns if name not in frame.columns]:
        raise ConfigurationError(
            f"This frame has no column {missing[0]!r}, so it is none of {kind}; give a session, or "
            f"what its to_frame({kind!r}) gives."
        )


def _spans(events: Any) -> Any:
    """What took time: lane, kind, start, width in seconds, and how to share the lane."""
    pandas = pandas_module()
    rows = []
    several = events["session_id"].nunique() > 1
    for e in events[events["duration"].notna()].itertuples():
        if e.type == "message_end" and e.name == "assistant":
            lane, kind = _MODEL, "model"
        elif e.type == "tool_execution_end":
            lane, kind = str(e.name), "failed" if e.status == "failed" else "tool"
        elif e.type == "decision":
            lane, kind = _PEOPLE, "people"
        else:
            continue
        where = [e.session_id] if several else []
        where += [] if pandas.isna(e.sub_agent) else [e.sub_agent]
        order = {"model": 1, "people": 0}.get(kind, 2)
        label = " · ".join([*where, lane])
        rows.append((label, kind, e.time, e.duration, "\n".join(where), order))
    columns = ["lane", "kind", "end", "width", "where", "order"]
    spans = pandas.DataFrame(rows, columns=columns)
    if not rows:
        return spans
    end = spans["end"].astype("int64") / 1e6
    spans["start"] = end - spans["width"]
    spans["start"] -= spans["start"].min()
    spans["width"] = spans["width"].clip(lower=float((end.max() - end.min()) or 1.0) * 0.002)
    spans["first"] = spans.groupby("where")["start"].transform("min")
    spans = spans.sort_values(["first", "where", "order", "start"], ignore_index=True)
    return _shared(spans)


def _shared(spans: Any) -> Any:
    """Those that overlap in a lane lie below each other."""
    spans["row"], spans["parallel"] = 0, 1
    for _, lane in spans.groupby("lane", sort=False):
        ends: list[float] = []
        together: list[Any] = []
        for index, span in lane.iterrows():
            if together and span["start"] >= max(ends):
                ends, together = [], []
            free = next((n for n, end in enumerate(ends) if end <= span["start"]), len(ends))
            ends[free : free + 1] = [span["start"] + span["width"]]
            together.append(index)
            spans.loc[index, "row"] = free
            spans.loc[together, "parallel"] = len(ends)
    return spans


@kinds.checked(source=_SOURCE)
def plot_usage(source: Any, by: str = "model", ax: Axes | None = None) -> Axes:
    """How many tokens went where, and what they cost; a bar for each value of ``by``.

    ``source`` is a session, a "usage" frame of one or several, or what ``agent.map`` gave.
    ``by`` is a column of it, or "call" for a bar for each row. Returns the Axes: of a new
    figure unless ``ax`` is given. Raises :class:`~sagents_nb.errors.ConfigurationError` if
    there is no such column, or no usage.

    >>> import matplotlib
    >>> from sagents_nb import Agent, DemoModel, Session, plot_usage
    >>> matplotlib.use("agg")  # without a window
    >>> session = Session(Agent(DemoModel()))
    >>> _ = session.send("Hello!").result()
    >>> [label.get_text() for label in plot_usage(session).get_yticklabels()]
    ['demo']
    """
    usage = source.to_frame("usage") if hasattr(source, "to_frame") else source
    if by != "call" and by not in usage.columns:
        columns = ", ".join(map(str, usage.columns))
        raise ConfigurationError(f"There is no column {by!r}; take one of {columns}, or 'call'.")
    _check_columns("usage", usage, (*_TOKENS, "cost_usd"))
    usage = usage[usage[list(_TOKENS)].notna().any(axis=1)]
    if not len(usage):
        raise ConfigurationError("There is nothing to draw: no call tells what it used.")
    keys = range(1, len(usage) + 1) if by == "call" else usage[by].astype("string").fillna("–")
    groups = usage.assign(_by=list(keys)).groupby("_by", sort=by == "call")
    sums = groups[list(_TOKENS)].sum().astype("float64")
    costs = groups["cost_usd"].sum(min_count=1)
    ax = ax or _axes(height=1.4 + 0.36 * len(sums))
    left = sums.iloc[:, 0] * 0
    for name, (label, color) in _TOKENS.items():
        if sums[name].any():
            ax.barh(
                range(len(sums)),
                sums[name],
                left=left,
                height=0.7,
                color=color,
                edgecolor="white",
                linewidth=0.6,
                label=label,
            )
            left = left + sums[name]
    for place, (total, cost) in enumerate(zip(left, costs, strict=True)):
        label = _tokens(total) + ("" if cost != cost else f" · {_dollars(cost)}")
        ax.annotate(
            label, (total, place), (4, 0), textcoords="offset points", va="center", color=_INK
        )
    ax.set_yticks(range(len(sums)), [_short(str(key)) for key in sums.index])
    ax.set_ylim(len(sums) - 0.4, -0.6)
    ax.set_ylabel("call" if by == "call" else by.replace("_", " "))
    ax.set_xlabel("tokens")
    ax.set_xlim(0, float(left.max()) * 1.2 or 1.0)
    ax.xaxis.set_major_formatter(lambda value, _: _tokens(value))
    _tidy(ax, legend=len(ax.containers))
    return ax


def _tokens(count: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f}"


def _dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:.2g}"


def _short(label: str) -> str:
    # A dollar would begin a formula.
    label = label.replace("$", r"\$")
    return label if len(label) <= _LONGEST else f"…{label[1 - _LONGEST :]}"


def _axes(height: float) -> Any:
    try:
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ConfigurationError(
            'Plots need matplotlib, which is not installed; pip install "sagents-nb[plots]".'
        ) from error
    return pyplot.subplots(figsize=(8, min(height, 24)), layout="constrained")[1]


def _tidy(ax: Any, legend: int) -> None:
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    ax.set_axisbelow(True)
    if legend > 1:
        ax.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, borderaxespad=0.2
        )
