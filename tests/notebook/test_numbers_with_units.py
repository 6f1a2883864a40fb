"""A number with a unit is of the column that follows it, or that has the unit in its name."""

from __future__ import annotations

import pytest

from tests.notebook.test_first_questions import ask
from tests.notebook.test_superlatives import FRAMES, LAKES, TRIAL

SHALLOW = LAKES[LAKES.depth_m < 10]
DEEP = f"`oxygen` with `depth_m` over 5 is {LAKES[LAKES.depth_m > 5].oxygen.mean():.4g}"
HEAVY = TRIAL[TRIAL.weight_kg > 70].sbp_before.mean()


@pytest.mark.parametrize(
    ("question", "right"),
    [
        (
            "What is the correlation between temp_C and oxygen in {lakes}, below 10 m depth?",
            f"`temp_C` and `oxygen` with `depth_m` under 10: r = "
            f"{SHALLOW.temp_C.corr(SHALLOW.oxygen):.3f}",
        ),
        ("Mean oxygen in {lakes} above 5 m depth", DEEP),
        ("Mean oxygen in {lakes} above 5 m", DEEP),
        (
            "Mean oxygen in {lakes} between 5 and 10 m depth",
            f"is {LAKES[LAKES.depth_m.between(5, 10)].oxygen.mean():.4g}",
        ),
        (
            "Mean sbp_before over 70 kg weight in {trial}",
            f"`sbp_before` with `weight_kg` over 70 is {HEAVY:.1f}",
        ),
        (
            "Mean weight_kg of patients over 70 years of age in {trial}",
            f"`weight_kg` with `age` over 70 is {TRIAL[TRIAL.age > 70].weight_kg.mean():.3g}",
        ),
    ],
)
def test_a_number_with_a_unit_is_of_the_column_that_follows(question: str, right: str) -> None:
    assert right in ask(question, frames=FRAMES).text
