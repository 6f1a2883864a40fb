"""How many tokens a provider's model takes at most, by its name.

What is here was looked up on 2026-11-25 in the providers' documentation: for Anthropic
https://platform.claude.com/docs/en/build-with-claude/context-windows and its models overview, for
OpenAI https://developers.openai.com/api/docs/models (and what gateways repeat of it). A model that
is not here is not known: no size is guessed from the name of another.
"""

from __future__ import annotations

import re

_ANTHROPIC = {
    1_000_000: "claude-fable-5 claude-fable-5-1 claude-fable-5-2 claude-mythos-5 claude-mythos-5-1 "
    "claude-opus-5-5 claude-opus-5 claude-opus-4-8 claude-opus-4-7 claude-opus-4-6 "
    "claude-sonnet-5-5 claude-sonnet-5 claude-sonnet-4-6 claude-haiku-5-5",
    200_000: "claude-opus-4-5 claude-opus-4-1 claude-opus-4-0 claude-opus-4 claude-sonnet-4-5 "
    "claude-sonnet-4-0 claude-sonnet-4 claude-haiku-4-5 claude-3-7-sonnet claude-3-5-sonnet "
    "claude-3-5-haiku claude-3-opus claude-3-haiku",
}
_OPENAI = {
    1_050_000: "gpt-6-astra gpt-6-sol gpt-6.1-sol gpt-6.2-sol gpt-5.4",
    1_047_576: "gpt-4.1 gpt-4.1-mini gpt-4.1-nano",
    400_000: "gpt-5 gpt-5.1",
    200_000: "o3 o4-mini",
    128_000: "gpt-4o gpt-4o-mini",
}
_WINDOWS = {
    name: tokens
    for sizes in (_ANTHROPIC, _OPENAI)
    for tokens, names in sizes.items()
    for name in names.split()
}
_SNAPSHOT = re.compile(r"-(?:\d{8}|\d{4}-\d\d-\d\d|latest)")


def known_window(name: str) -> int | None:
    """The tokens of the model of that name, or of which it is a dated snapshot; None if unknown.

    >>> known_window("claude-haiku-4-5-20251001"), known_window("claude-haiku-4-5-large")
    (200000, None)
    """
    dated = _SNAPSHOT.search(name)
    if dated and dated.end() == len(name):
        name = name[: dated.start()]
    return _WINDOWS.get(name)
