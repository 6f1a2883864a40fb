"""The agent of the tour and of ``sagents-nb demo``: it answers questions about penguins.

The data are the Palmer penguins (Horst, Hill and Gorman 2020, CC0), which the PyPI package
``palmerpenguins`` ships: 344 birds of three species on three islands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import kinds
from .agent import Agent
from .errors import ConfigurationError
from .models import ChatModel, DemoModel
from .tools import Tool, tool

if TYPE_CHECKING:
    import pandas

Measure = Literal["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
Group = Literal["species", "island", "sex", "year"]

QUESTION = (
    "Which species is the heaviest? Make a plan, compare body_mass_g by species, and save a "
    "short report to /report.md."
)


def load_penguins() -> pandas.DataFrame:
    """The data; raises ConfigurationError where the package that ships them is missing."""
    try:
        import palmerpenguins
    except ImportError:
        raise ConfigurationError(
            "The tour's data are not installed; pip install 'sagents-nb[notebook]'."
        ) from None
    frame: pandas.DataFrame = palmerpenguins.load_penguins()
    return frame


@kinds.checked
def penguin_tools(penguins: pandas.DataFrame) -> list[Tool]:
    """Two tools over the data."""

    @tool(display_text=lambda a: f"Comparing {a.get('column')} by {a.get('by', 'species')}")
    def describe(column: Measure, by: Group = "species") -> list[dict[str, Any]]:
        """Describe a measurement of the penguins: count, mean, lowest and highest per group.

        Args:
            column: the measurement
            by: what to group the penguins by
        """
        table = penguins.groupby(by)[column].agg(["count", "mean", "min", "max"]).round(1)
        rows: list[dict[str, Any]] = table.reset_index().to_dict("records")
        return rows

    @tool(display_text=lambda a: f"Counting penguins by {a.get('by', 'species')}")
    def count_rows(by: Group = "species") -> list[dict[str, Any]]:
        """Count the penguins in each group.

        Args:
            by: what to group the penguins by
        """
        table = penguins.groupby(by).size().rename("penguins")
        rows: list[dict[str, Any]] = table.reset_index().to_dict("records")
        return rows

    return [describe, count_rows]


@kinds.checked
def penguin_agent(penguins: pandas.DataFrame, model: str | ChatModel | None = None) -> Agent:
    """An agent that knows the data, keeps a to-do list, and asks before it writes a file.

    Its model is the offline demo unless you give one.
    """
    return Agent(
        model or DemoModel(delay=0.02),
        "You answer questions about the Palmer penguins. Use the tools for every number.",
        tools=penguin_tools(penguins),
        interrupt_on={"write_file": True},
        name="Penguins",
    )
