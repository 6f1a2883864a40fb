"""From a name to a model, and the model for those who name none."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any, NamedTuple

from .. import kinds
from ..errors import ConfigurationError
from ..redaction import looks_like_secret, without_known
from ..text import logger_of
from .base import ChatModel
from .providers import KEYS_GO, PROVIDERS

_log = logger_of("sagents_nb.models")
announced: set[str] = set()

_FORMS = (
    ", ".join(f"'{each.name}:NAME'{each.note}" for each in PROVIDERS.values())
    + ", 'demo', or a ChatModel"
)


def named_model(spec: ChatModel | str | None, **options: Any) -> ChatModel:
    """As :func:`~sagents_nb.models.resolve.resolve_model`, and never recorded."""
    if isinstance(spec, ChatModel):
        if options:
            raise ConfigurationError(
                f"{spec!r} is a model already and takes no options; pass {', '.join(options)} "
                "where you make it."
            )
        return spec
    if spec is None:
        return _default(options)
    spec = kinds.plain(spec)
    if not isinstance(spec, str):
        raise ConfigurationError(f"{kinds.shown(spec)} names no model: use {_FORMS}.")
    kind, _, name = spec.partition(":")
    if _is_key(spec):
        raise ConfigurationError(
            f"A key was given where a model is named, and is not shown: use {_FORMS}; the key goes "
            f"into {KEYS_GO}."
        )
    if _is_address(spec):
        raise ConfigurationError(
            "An address was given where a model is named: use "
            "OpenAIChatModel('NAME', base_url=…, api_key=…) for the model of a server."
        )
    if name and (provider := PROVIDERS.get(kind)):
        module = importlib.import_module(f"{__package__}.providers.{provider.module}")
        model: ChatModel = getattr(module, provider.model)(name, **options)
        return model
    if spec == "demo":
        from .demo import DemoModel

        return DemoModel()
    meant = [p.name for p in PROVIDERS.values() if p.prefixes and spec.startswith(p.prefixes)]
    near = f"{meant[0]}:{spec}" if meant else ""
    if name and (other := kinds.nearest(kind, PROVIDERS)):
        near = f"{other}:{name}"
    hint = f"; did you mean {near!r}?" if near else "."
    raise ConfigurationError(without_known(f"{spec!r} names no model: use {_FORMS}{hint}"))


# What no provider calls a model, and many call a key: half of one, too.
_KEY = re.compile(r"(?:\w+:)?(?:sk-.*|(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{24,})")


def _is_key(spec: str) -> bool:
    if _is_address(spec) or spec.partition(":")[0] in PROVIDERS:  # whose model looks itself
        return False
    return looks_like_secret(spec) or _KEY.fullmatch(spec) is not None


def _is_address(spec: str) -> bool:
    kind, _, rest = spec.partition(":")
    return "://" in spec or (
        kind not in PROVIDERS and "@" in rest
    )  # "anthropic:claude@2025" is none


def default_spec() -> tuple[str, str]:
    """The name of the default model, and why it is this one."""
    if spec := os.environ.get("SAGENTS_MODEL"):
        return spec, f"$SAGENTS_MODEL is {spec!r}"
    for provider in PROVIDERS.values():
        if provider.default and os.environ.get(variable := provider.sdk.key_variable):
            return f"{provider.name}:{provider.default}", f"${variable} is set"
    return "demo", "no provider's key is set: a planner that works offline"


class ModelChoice(NamedTuple):
    """A model that can be named, and the variable of the key it lacks, "" if it lacks none."""

    name: str
    missing: str


def model_choices() -> list[ModelChoice]:
    """The models that people need not know by name.

    They are that of ``$SAGENTS_MODEL``, the default of each provider, and "demo".
    """
    names = [os.environ.get("SAGENTS_MODEL", "")]
    names += [f"{each.name}:{each.default}" for each in PROVIDERS.values() if each.default]
    return [
        ModelChoice(name, missing_key(name))
        for name in dict.fromkeys([*names, "demo"])
        if name and not looks_like_secret(name)
    ]


def missing_key(name: str) -> str:
    """The variable of the key that a model of this name lacks, "" if it lacks none."""
    provider = PROVIDERS.get(name.partition(":")[0])
    if provider is None:
        return ""
    sdk = provider.sdk
    others = sdk.other_credentials if sdk.own_credentials else ()
    # A compatible server may want no key.
    enough = (sdk.key_variable, sdk.url_variable, *others)
    return "" if any(os.environ.get(variable) for variable in enough) else sdk.key_variable


def _default(options: dict[str, Any]) -> ChatModel:
    spec, reason = default_spec()
    model = named_model(spec, **options)
    model.chosen_because = f"The default model is {spec!r}, because {reason}."
    if model.chosen_because not in announced:
        announced.add(model.chosen_because)
        _log.info("%s", model.chosen_because)
    return model
