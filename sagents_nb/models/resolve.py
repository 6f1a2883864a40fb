"""The model that is meant, recorded if the environment says so."""

from __future__ import annotations

import os
from typing import Any

from .. import kinds
from .base import ChatModel
from .named import named_model

REPLAY = "SAGENTS_REPLAY"


@kinds.checked(spec=kinds.ANYTHING)
def resolve_model(spec: ChatModel | str | None, **options: Any) -> ChatModel:
    """The model that ``spec`` names; a ChatModel as it is, None the default model.

    ``options`` go to the model: ``api_key``, ``base_url`` and whatever it sends with every
    request. Raises :class:`~sagents_nb.errors.ConfigurationError` for anything else. Where
    ``$SAGENTS_REPLAY`` is set, a model that is not offline comes back recorded: see
    ``recorded.py``.

    >>> resolve_model("anthropic:claude-sonnet-5-5")
    AnthropicModel('claude-sonnet-5-5')
    """
    model = named_model(spec, **options)
    if not os.environ.get(REPLAY):
        return model
    from .recorded import recorded_by_environment

    return recorded_by_environment(model)


def default_model(**options: Any) -> ChatModel:
    """The model for those who name none; its ``chosen_because`` says why it is this one.

    ``$SAGENTS_MODEL``, else the provider whose key is set (Anthropic before OpenAI), else the
    offline demo model. The choice is logged once. ``options`` go to the model, as with
    :func:`resolve_model`, which says what is raised.

    >>> import os
    >>> from unittest.mock import patch
    >>> from sagents_nb import default_model
    >>> with patch.dict(os.environ, SAGENTS_MODEL="demo"):
    ...     default_model().chosen_because
    "The default model is 'demo', because $SAGENTS_MODEL is 'demo'."
    """
    return resolve_model(None, **options)
