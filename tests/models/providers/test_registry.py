"""A provider is said once; what cannot be read from there agrees with it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import sagents_nb as sa
from sagents_nb import models
from sagents_nb.models.providers import PROVIDERS, SDKS, Provider
from sagents_nb.models.providers.streaming import ProviderModel

EXTRAS = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=list(PROVIDERS))
def test_an_entry_gives_the_model_that_it_names(provider: Provider) -> None:
    model = sa.resolve_model(f"{provider.name}:some-model")
    assert isinstance(model, ProviderModel)
    assert model.sdk is provider.sdk in SDKS
    assert type(model) is getattr(models, provider.model) is getattr(sa, provider.model)


def test_each_sdk_is_an_extra_of_its_name_and_version() -> None:
    for sdk in SDKS:
        assert [need.split(",")[0] for need in EXTRAS[sdk.package]] == [
            f"{sdk.package}>={sdk.oldest}"
        ]
